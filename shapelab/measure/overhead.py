"""What a pass costs before any arithmetic: measured on a hollow twin, and what compiling takes off it."""

import contextlib
import copy
import dataclasses
from collections.abc import Iterator

import torch
from transformers import AutoModelForCausalLM, StaticCache

from shapelab.measure.ceilings import measure_ceilings
from shapelab.measure.experiment import measure_shapes
from shapelab.model.load import ByteTokenizer, Lab
from shapelab.record import metrics
from shapelab.record.fields import now
from shapelab.record.machine_ceilings import Limits
from shapelab.request.shape import RequestShape
from shapelab.theory.model_spec import ModelSpec

_HOLLOW_HEAD_DIM = 8
_HOLLOW = {"intermediate_size": 16, "n_inner": 16, "vocab_size": 256, "head_dim": _HOLLOW_HEAD_DIM}


def hollow_twin(lab: Lab) -> Lab:
    """The same model with the same layers, heads and operations, and matrices so small that they weigh nothing.

    What its pass takes is Python, operation launches and waiting: the overhead of the real one. Random weights.
    """
    config = copy.deepcopy(lab.model.config)
    heads = lab.spec.num_attention_heads
    narrow = {**_HOLLOW, "hidden_size": heads * _HOLLOW_HEAD_DIM, "n_embd": heads * _HOLLOW_HEAD_DIM}
    for name, value in narrow.items():
        if name in vars(config) or name == "head_dim":  # a config spells a field in one way only
            setattr(config, name, value)
    for name in ("bos_token_id", "eos_token_id", "pad_token_id"):
        setattr(config, name, None)  # they may lie beyond the hollow vocabulary
    with torch.device(lab.device):
        model = AutoModelForCausalLM.from_config(config, dtype=lab.dtype).eval().requires_grad_(False)
    spec = ModelSpec.from_config(model)
    return dataclasses.replace(
        lab, model=model, tokenizer=ByteTokenizer(), name=f"hollow {lab.name}", weights="random", spec=spec
    )


def overhead_s(lab: Lab, *, repeats: int = 5, clock=None) -> float:
    """Seconds of a pass of the hollow twin: the median TPOT of 32 tokens after a prompt of 16."""
    run = measure_shapes(hollow_twin(lab), {"hollow": RequestShape(16, 32)}, repeats=repeats, clock=clock, progress=False)
    return run["hollow"].median(metrics.tpot_s)


def measure_limits(lab: Lab) -> Limits:
    """Ceilings of the lab's device in its dtype, and the overhead of its model's pass. Some seconds on a CPU."""
    device = measure_ceilings(lab.device, (lab.dtype,)).device(lab.dtype_name)
    return Limits(
        memory_read_bytes_per_s=device.bytes_per_s,
        flops_per_s=device.flops_per_s,
        overhead_s=overhead_s(lab),
        measured_at=now(),
    )


@contextlib.contextmanager
def compiled(lab: Lab) -> Iterator[None]:
    """Inside, the model's forward pass is compiled: operations fused, and on CUDA replayed as one graph.

    The first passes compile, which takes long beside a step and needs a C++ compiler on a CPU (Triton on CUDA). Use one
    `static_cache` for all runs: a graph works on fixed addresses.
    """
    lab.model.forward = torch.compile(lab.model.forward, mode="reduce-overhead" if lab.device.type == "cuda" else None)
    try:
        yield
    finally:
        del lab.model.forward  # the instance's; the class's own comes back
        torch._dynamo.reset()


def static_cache(lab: Lab, capacity: int, batch_size: int = 1) -> StaticCache:
    """transformers' cache of a fixed size, with room for `capacity` tokens; attention looks at all of it, masked.

    Its tensors are made here and not in the first pass: made inside a compiled region they would have no fixed address,
    and no CUDA graph could be replayed on them. Empty it with `.reset()` to use it again.
    """
    spec = lab.spec
    cache = StaticCache(config=lab.model.config, max_cache_len=capacity)
    cache.early_initialization(batch_size, spec.num_key_value_heads, spec.head_dim, lab.dtype, lab.device)
    return cache
