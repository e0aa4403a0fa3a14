"""One pass through a model, and the greedy choice: prefill and decode are made of these two."""

import contextlib
import functools
import inspect
from collections.abc import Iterator

import torch


def forward(model, ids, cache, logits_to_keep: int | torch.Tensor = 1, **more) -> torch.Tensor:
    """One pass through the model.   ids (B, T), cache grows by T  ->  logits (B, kept, V)

    logits_to_keep  how many of the last positions get logits, or a tensor of positions. Only the last one is needed to go on,
                    and a whole prompt's logits, V numbers a token, can fill the memory.
    more            attention_mask and position_ids, where rows are padded or packed
    """
    named_cache = {cache_argument(type(model)): cache}
    return model(input_ids=ids, use_cache=True, logits_to_keep=logits_to_keep, **named_cache, **more).logits


def greedy(logits: torch.Tensor) -> torch.Tensor:
    """The likeliest next id at each position, chosen on the device.   logits (B, T, V)  ->  ids (B, T)"""
    return logits.argmax(dim=-1)


@functools.cache
def cache_argument(model_class: type) -> str:
    """transformers calls a model's KV cache `cache` from 5.x on and `past_key_values` before.

    The old releases accept the new name without a word and then run without a cache, so the signature decides.
    """
    return "cache" if "cache" in inspect.signature(model_class.forward).parameters else "past_key_values"


@contextlib.contextmanager
def compiled(model) -> Iterator[None]:
    """Inside, the model's forward pass is compiled: operations fused, and on CUDA replayed as one graph.

    The first passes compile, which takes long beside a step and needs a C++ compiler on a CPU (Triton on CUDA). Use one
    `static_cache` for all runs: a graph works on fixed addresses.
    """
    model.forward = torch.compile(model.forward, mode="reduce-overhead" if model.device.type == "cuda" else None)
    try:
        yield
    finally:
        del model.forward  # the instance's; the class's own comes back
        torch._dynamo.reset()
