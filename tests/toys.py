"""Small models, tokenizers and clocks that answer at once and always the same."""

import pytest
import torch
from safetensors.torch import save
from transformers import AutoConfig, AutoModelForCausalLM

from shapelab.model.load import ByteTokenizer, Lab
from shapelab.theory.model_spec import ModelSpec

WEIGHTS = save({"weight": torch.zeros(3)})  # a whole safetensors file

_COMMON = {"vocab_size": 300, "max_position_embeddings": 512, "bos_token_id": 1, "eos_token_id": 2}
_LLAMA_LIKE = {
    "num_hidden_layers": 2,
    "hidden_size": 64,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 96,
    **_COMMON,
}
CONFIGS = {
    "llama": {"model_type": "llama", **_LLAMA_LIKE},
    "qwen2": {"model_type": "qwen2", **_LLAMA_LIKE},
    "mistral": {"model_type": "mistral", **_LLAMA_LIKE, "sliding_window": 16},
    "qwen3": {"model_type": "qwen3", **_LLAMA_LIKE},
    "gemma": {"model_type": "gemma", **_LLAMA_LIKE},
    "gemma2": {"model_type": "gemma2", **_LLAMA_LIKE},
    "gemma3_text": {"model_type": "gemma3_text", **_LLAMA_LIKE},
    "mixtral": {"model_type": "mixtral", **_LLAMA_LIKE, "num_local_experts": 4, "num_experts_per_tok": 2},
    "gpt2": {
        "model_type": "gpt2",
        "n_layer": 2,
        "n_embd": 64,
        "n_head": 4,
        "n_positions": 512,
        **{key: value for key, value in _COMMON.items() if key != "max_position_embeddings"},
    },
}


def toy_model(family: str = "llama", dtype=torch.float64, **changes):
    """A two-layer model whose weights (standard deviation 0.3) make it write many different ids."""
    torch.manual_seed(0)
    config = AutoConfig.for_model(**{**CONFIGS[family], "initializer_range": 0.3, **changes})
    model = AutoModelForCausalLM.from_config(config, dtype=dtype).eval().requires_grad_(False)
    generator = torch.Generator().manual_seed(1)
    for parameter in model.parameters():
        if parameter.dim() > 1:
            parameter.copy_(torch.randn(parameter.shape, generator=generator, dtype=torch.float64) * 0.3)
    return model


def toy_lab(family: str = "llama", **changes) -> Lab:
    model = toy_model(family, **changes)
    spec = ModelSpec.from_config(model.config)
    return Lab(model, ByteTokenizer(spec.vocab_size), f"toy-{family}", "random", torch.device("cpu"), torch.float64, spec)


def random_ids(batch: int, length: int, seed: int = 0) -> torch.Tensor:
    return torch.randint(3, 300, (batch, length), generator=torch.Generator().manual_seed(seed))


class ScriptedTime:
    """A host clock that moves only when told to."""

    def __init__(self):
        self.ns = 0

    def __call__(self) -> int:
        return self.ns

    def advance(self, milliseconds: float):
        self.ns += round(milliseconds * 1e6)


class ScriptedModel(torch.nn.Module):
    """Writes the ids it is told to and takes the time it is told to: prefill_ms for the prompt, step_ms a step."""

    def __init__(self, time: ScriptedTime, prefill_ms=100.0, step_ms=10.0, ids=(5,), vocab_size=16):
        super().__init__()
        self.time, self.prefill_ms, self.step_ms = time, prefill_ms, step_ms
        self.ids, self.vocab_size, self.passes = list(ids), vocab_size, []
        self.config = AutoConfig.for_model(**CONFIGS["llama"])

    def forward(self, input_ids, cache=None, use_cache=None, logits_to_keep=0, attention_mask=None, position_ids=None):
        batch, length = input_ids.shape
        first = cache.get_seq_length() == 0
        self.passes.append((batch, length, logits_to_keep))
        self.time.advance(self.prefill_ms if first else self.step_ms)
        for layer in range(self.config.num_hidden_layers):
            states = torch.zeros(batch, 2, length, 16)
            cache.update(states, states, layer)
        step = 0 if first else cache.get_seq_length() - self._prompt
        if first:
            self._prompt = length
        chosen = self.ids[min(step, len(self.ids) - 1)]
        logits = torch.zeros(batch, 1, self.vocab_size)
        logits[:, :, chosen] = 1.0
        return type("Output", (), {"logits": logits})()


def scripted_lab(model: ScriptedModel) -> Lab:
    spec = ModelSpec.from_config(model.config)
    return Lab(model, ByteTokenizer(), "scripted", "random", torch.device("cpu"), torch.float32, spec)


# A lack of memory, as the backends word it.
OUT_OF_MEMORY = [
    torch.OutOfMemoryError("no"),
    MemoryError(),
    RuntimeError("MPS backend out of memory (MPS allocated: 17.12 GB, other allocations: 1.20 GB, max allowed: 18.13 GB)."),
    RuntimeError(
        "[enforce fail at alloc_cpu.cpp:117] . DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes."
    ),
    RuntimeError("DefaultCPUAllocator: not enough memory: you tried to allocate 400000000000 bytes."),
    RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
    RuntimeError("HIP out of memory. Tried to allocate 2.00 GiB"),
    RuntimeError("Invalid buffer size: 32.00 GiB"),
    RuntimeError("std::bad_alloc"),
    RuntimeError("hipErrorOutOfMemory"),
    RuntimeError("could not create a memory object"),
    RuntimeError("Failed to allocate 4096 bytes"),
    OSError(12, "Cannot allocate memory"),
]
EVERY_OUT_OF_MEMORY = pytest.mark.parametrize("error", OUT_OF_MEMORY, ids=lambda error: str(error)[:20] or "MemoryError")
