"""The loop that is taught and measured: prefill reads the prompt in one pass, decode writes one token a pass.

Nothing waits for the device between the prefill and the last step: each id is chosen on the device and fed back to it.
"""

import contextlib
import gc
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from shapelab.model.forward import forward, greedy
from shapelab.model.kv_cache import held_bytes, new_cache
from shapelab.record.timeline import Timeline
from shapelab.request.shape import RequestShape


def prefill(model, input_ids, cache):
    """Read the whole prompt in one pass.   input_ids (B, S), cache grows by S  ->  next ids (B, 1)"""
    return greedy(forward(model, input_ids, cache))


def decode_step(model, last_ids, cache):
    """Write one token: read the last one.   last_ids (B, 1), cache grows by 1  ->  next ids (B, 1)"""
    return greedy(forward(model, last_ids, cache))


def generate(model, input_ids, output_tokens, cache, clock):
    """One prefill and N - 1 decode steps, stamped.   input_ids (B, S)  ->  N times the next ids (B, 1), on the device

    To stream, read the ids as they come; to stop early, break. Reading an id makes the host wait for the device.
    """
    clock.start()
    token = prefill(model, input_ids, cache)
    clock.prefill_done()
    yield token
    for _ in range(output_tokens - 1):
        token = decode_step(model, token, cache)
        clock.step_done()
        yield token


@dataclass(frozen=True)
class Generation:
    """What a run wrote, and when.

    ids             (B, N) on the device
    timeline        its shape has the N that were written; requested_output_tokens is what was asked for
    kv_cache_bytes  held by the cache at the end
    """

    ids: torch.Tensor
    timeline: Timeline
    requested_output_tokens: int
    kv_cache_bytes: int


@torch.inference_mode()
def timed(model, input_ids, output_tokens, clock, cache=None) -> Generation:
    """Run `generate` to its end and keep ids and stamps.   input_ids (B, S); cache None: a fresh one with room for the run"""
    rows, length = input_ids.shape
    if cache is None:
        cache = new_cache(model, length + output_tokens - 1)
    shape = RequestShape(length, output_tokens, rows, cached_tokens=int(cache.get_seq_length()))
    with garbage_collector_paused():
        tokens = list(generate(model, input_ids, output_tokens, cache, clock))
        host_ns, event_s = clock.finish()
    timeline = Timeline(shape, host_ns, event_s, clock.per_step_sync)
    return Generation(torch.cat(tokens, dim=1), timeline, output_tokens, held_bytes(cache))


@contextlib.contextmanager
def garbage_collector_paused() -> Iterator[None]:
    """A collection in the middle of a step would be counted as the model's time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
