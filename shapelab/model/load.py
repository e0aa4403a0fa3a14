"""`load()`: a model, its tokenizer, the device and the dtype, chosen with reasons and checked before anything runs."""

import ctypes
import gc
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import torch

from shapelab.errors import ShapelabError
from shapelab.model import embedded
from shapelab.model.quiet import quiet_transformers
from shapelab.request.shape import RequestShape
from shapelab.theory.model_spec import ModelSpec, hub_id, known_config

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
            raise ShapelabError(
                f"The shape {shape} needs {shape.total_tokens:,} tokens of context and {self.name} has {context:,}. "
                f"Shorten it by {shape.total_tokens - context:,} tokens, or load a model with a longer context."
            )


class ByteTokenizer:
    """One token a byte: for models with random weights, whose text is noise under any tokenizer."""

    chat_template = None
    eos_token_id = pad_token_id = None

    def __call__(self, text: str, **_) -> dict[str, list[int]]:
        return {"input_ids": list(text.encode("utf-8"))}

    def decode(self, ids, **_) -> str:
        return bytes(int(number) % 256 for number in ids).decode("utf-8", errors="replace")


def load(name: str = "auto", device: str = "auto", dtype: str = "auto", weights: str = "auto") -> Lab:
    """Load a model by name and return a Lab.

    name     "auto" (tinyllama on a CUDA GPU with 6 GB or more, else smollm2-135m), a name that `shapelab models` lists,
             a hub id, a local folder or .gguf file; `:random` behind a name keeps the architecture and draws the weights.
    device   "auto", "cpu", "cuda", "cuda:1", "mps"
    dtype    "auto" (see `choose_dtype`), or float32, bfloat16, float16 (fp32, bf16, fp16)
    weights  "auto", or "random", which is the same as `:random`

    Raises ShapelabError with what would work. Remote code is never run; only safetensors and GGUF files are read.
    """
    if weights not in ("auto", "random"):
        raise ShapelabError(f"weights must be 'auto' or 'random', not {weights!r}.")
    where = choose_device(device)
    precision = choose_dtype(where, dtype)
    base, _, suffix = name.partition(":random")
    if suffix:
        raise ShapelabError(f"{name!r} is not a model name; write {base}:random.")
    random = weights == "random" or name.endswith(":random")
    if base == "auto":
        base, reason = choose_model(where)
        try:
            return _load(base, where, precision, random, (reason,))
        except ShapelabError as error:
            if base == embedded.NAME:
                raise
            return _load(
                embedded.NAME,
                where,
                precision,
                random,
                (
                    reason,
                    f"But: {error} So {embedded.NAME} it is.",
                ),
            )
    return _load(base, where, precision, random, ())


def choose_device(device: str = "auto") -> torch.device:
    """The device asked for, if it is there; "auto" takes CUDA, else Apple's MPS, else the CPU."""
    if device == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        wanted = torch.device(device)
    except RuntimeError:
        raise ShapelabError(f"{device!r} is not a device; use auto, cpu, cuda, cuda:1 or mps.") from None
    there = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if not there.get(wanted.type, False):
        raise ShapelabError(f"There is no {wanted.type} device that this torch can use here; try --device auto or cpu.")
    if wanted.type == "cuda" and (wanted.index or 0) >= torch.cuda.device_count():
        raise ShapelabError(f"There is no {device}: {torch.cuda.device_count()} CUDA device(s) are visible.")
    return wanted


def choose_dtype(device: torch.device, dtype: str = "auto", capability: tuple[int, int] | None = None) -> torch.dtype:
    """The dtype asked for, if this device computes in it; "auto": fp32 on a CPU, fp16 on Apple's GPU and on CUDA below
    compute capability 8 (a T4 answers yes to bf16 and emulates it), bf16 from 8 up."""
    if dtype != "auto" and dtype not in DTYPES:
        raise ShapelabError(f"{dtype!r} is not a dtype; use auto, float32, bfloat16 or float16.")
    if device.type == "cuda" and capability is None:
        capability = torch.cuda.get_device_capability(device)
    if dtype == "auto":
        if device.type == "cpu":
            return torch.float32
        return torch.bfloat16 if device.type == "cuda" and capability >= (8, 0) else torch.float16
    wanted = DTYPES[dtype]
    if device.type == "cpu" and wanted == torch.float16:
        raise ShapelabError("CPUs compute float16 poorly or not at all; use --dtype float32 or bfloat16.")
    if device.type == "cuda" and wanted == torch.bfloat16 and capability < (8, 0):
        raise ShapelabError(
            f"This GPU (compute capability {capability[0]}.{capability[1]}) has no bfloat16, it would emulate it; "
            "use --dtype float16."
        )
    if device.type == "mps" and wanted == torch.float64:
        raise ShapelabError("Apple's GPU has no float64; use --dtype float32.")
    return wanted


def choose_model(device: torch.device) -> tuple[str, str]:
    """The default model for a device, and the reason."""
    if device.type == "cuda":
        there = torch.cuda.get_device_properties(device).total_memory
        if there >= TINYLLAMA_NEEDS_BYTES:
            return "tinyllama", f"A GPU with {there / 1e9:.0f} GB holds tinyllama, the model of the talk."
        return embedded.NAME, f"{there / 1e9:.0f} GB of GPU memory are too few for tinyllama."
    return embedded.NAME, f"Small enough to measure on {'this GPU' if device.type == 'mps' else 'a CPU'}."


def give_back_memory():
    """Hand freed memory back to the system, which glibc otherwise keeps: 0.1 to 0.4 GB after a prompt of 1,205 to
    1,920 tokens (measured, smollm2-135m in float32 on a CPU).

    Between measurements only: the next run must fetch it again, which its warm-up does.
    """
    gc.collect()  # a model is full of cycles
    with suppress(OSError, AttributeError, TypeError):  # another C library has no such call, and keeps less
        ctypes.CDLL(None).malloc_trim(0)


def memory_available(device: torch.device) -> int:
    """Bytes that can still be had on the device; on a CPU no more than a container's limit leaves."""
    if device.type == "cuda":
        unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)  # torch's own, to be used again
        return torch.cuda.mem_get_info(device)[0] + unused
    free = psutil.virtual_memory().available
    group = Path("/sys/fs/cgroup")
    try:
        limit, used = (int((group / name).read_text()) for name in ("memory.max", "memory.current"))
        stat = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
        return min(free, limit - used + int(stat.get("inactive_file", 0)))  # file pages not in use are given up first
    except (OSError, ValueError):  # no container, or no limit ("max")
        return free


def _load(name, device, dtype, random, notes) -> Lab:
    from transformers import AutoConfig, AutoModelForCausalLM

    label = f"{name}:random" if random else name
    with quiet_transformers():
        if random:
            config, source = _random_config(name), None
        else:
            source, kind, more = _source(name)
            notes += more
            config = _from_hub(AutoConfig, source, "config")
        if getattr(config, "is_encoder_decoder", False):
            raise ShapelabError(f"{name} is an encoder-decoder model; this course is about decoder-only models.")
        _refuse_if_too_large(config, label, device, dtype)
        if random:
            torch.manual_seed(0)
            with torch.device(device):
                model = AutoModelForCausalLM.from_config(config, dtype=dtype)
            tokenizer, kind = ByteTokenizer(), "random"
        else:
            model = _from_hub(AutoModelForCausalLM, source, "weights", dtype=dtype).to(device)
            tokenizer = _tokenizer(source)
    model.eval().requires_grad_(False)
    return Lab(model, tokenizer, label, kind, device, dtype, ModelSpec.from_config(model.config), notes)


def _source(name: str) -> tuple[str, str, tuple[str, ...]]:
    """Where a name's files are (hub id or path), what kind of weights they are, and what to note."""
    if name == embedded.NAME:
        try:
            return str(embedded.ensure()), "dequantised from 4-bit", ()
        except embedded.DownloadFailed as error:
            from transformers import AutoConfig

            try:
                _from_hub(AutoConfig, embedded.HUB_ID, "config")
            except ShapelabError:
                raise error from None
            return embedded.HUB_ID, "original", (f"From the hub ({embedded.HUB_ID}); the package could not be had.",)
    return hub_id(name), "original", ()


def _random_config(name: str):
    from transformers import AutoConfig

    try:
        fields = known_config(name)
    except KeyError:
        return _from_hub(AutoConfig, name, "config")
    return AutoConfig.for_model(**fields)


def _from_hub(auto, source: str, what: str, **options):
    """from_pretrained without remote code and without pickles; every failure becomes a sentence."""
    path = Path(source)
    if path.suffix == ".gguf" and os.path.isfile(source):
        source, options["gguf_file"] = str(path.parent), path.name
    elif what == "weights":
        options["use_safetensors"] = True
    try:
        return auto.from_pretrained(source, trust_remote_code=False, **options)
    except (OSError, ValueError, ImportError, RuntimeError) as error:
        raise ShapelabError(_why_not(source, what, error)) from error
    except Exception as error:
        if type(error).__name__ != "SafetensorError":
            raise
        raise ShapelabError(_why_not(source, what, error)) from error


def _why_not(source: str, what: str, error: Exception) -> str:
    text = str(error)
    if Path(source) == embedded.folder():
        return f"The cached {embedded.NAME} cannot be read ({_first_line(error)}). Run `shapelab models --clear` and try again."
    if os.path.exists(source):
        return f"The {what} in {source} cannot be loaded: {_first_line(error)} A folder with config.json and .safetensors, or a .gguf file, works."
    if "trust_remote_code" in text:
        return f"{source} needs code of its own to load, and shapelab never runs a model's code. Choose a model that transformers knows."
    if "gated" in text.lower() or "401" in text or "restricted" in text:
        return f"{source} is gated or private on the hub. Accept its terms there and set HF_TOKEN, or choose an open model."
    return (
        f"The {what} of {source} cannot be had: {_first_line(error)} If that is a name on the hub, check its spelling "
        f"and the network; without a hub, {embedded.NAME}, tinyllama:random and local folders work."
    )


def _first_line(error: Exception) -> str:
    line = (str(error).strip().splitlines() or [type(error).__name__])[0]
    return line if line.endswith(".") else line + "."


def _tokenizer(source: str):
    from transformers import AutoTokenizer

    return _from_hub(AutoTokenizer, source, "tokenizer")


def _refuse_if_too_large(config, label: str, device: torch.device, dtype: torch.dtype):
    from transformers import AutoModelForCausalLM

    with torch.device("meta"):
        shell = AutoModelForCausalLM.from_config(config, dtype=dtype)
    needed = sum(parameter.numel() for parameter in shell.parameters()) * dtype.itemsize
    available = memory_available(device)
    if needed > available:
        raise ShapelabError(
            f"The weights of {label} take {needed / 1e9:.1f} GB in {str(dtype).removeprefix('torch.')} and this "
            f"{device.type} has {available / 1e9:.1f} GB left. Choose a smaller model, a smaller dtype or another device."
        )
