"""The loop that is measured: prefill reads the prompt in one pass, decode writes one token a pass.

Greedy and plain. Between the prefill and the last step nothing here waits for the device: the next id is chosen on it
and fed back to it. (A ragged batch does wait, inside transformers, and its timeline says so.) Of the logits only the
last position's are computed.
"""

import contextlib
import functools
import gc
import inspect
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import torch
from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer

from shapelab.record.timeline import Timeline
from shapelab.request.shape import RequestShape


def prefill(model, input_ids, cache, **ragged):
    """Read the whole prompt in one pass.   input_ids (B, S), cache grows by S  ->  next ids (B, 1)"""
    logits = forward(model, input_ids, cache, **ragged)
    return logits[:, -1].argmax(dim=-1, keepdim=True)


def decode_step(model, last_ids, cache, **ragged):
    """Write one token: read the last one.   last_ids (B, 1), cache grows by 1  ->  next ids (B, 1)"""
    logits = forward(model, last_ids, cache, **ragged)
    return logits[:, -1].argmax(dim=-1, keepdim=True)


def generate(model, input_ids, output_tokens, cache, clock, *, mask=None, on_token=None, stop_ids=()):
    """One prefill and N - 1 decode steps, stamped.   input_ids (B, S) on the device  ->  Generation, ids (B, N)

    mask      (B, cached + S), 0 where a row is padded on the left; None for rows of equal length
    on_token  called with each step's device tensor (B, 1). Reading a value from it makes the host wait.
    stop_ids  stop when every row has written one of these. Looking at each token makes the host wait, so a shape run
              gives none: EOS is written like any other token and the run goes on to exactly N.
    """
    with torch.inference_mode(), garbage_collector_paused():
        rows = Rows(mask, output_tokens)
        clock.start()
        token = prefill(model, input_ids, cache, **rows.for_prefill(input_ids))
        clock.prefill_done()
        tokens = [token]
        if on_token:
            on_token(token)
        while len(tokens) < output_tokens and not (stop_ids and all_stopped(tokens, stop_ids)):
            token = decode_step(model, token, cache, **rows.for_step(len(tokens)))
            clock.step_done()
            tokens.append(token)
            if on_token:
                on_token(token)
        host_ns, event_s = clock.finish()
    waited = clock.per_step_sync or mask is not None  # transformers reads a given mask at every pass
    return Generation.from_run(tokens, input_ids, host_ns, event_s, waited, stop_ids, output_tokens)


def forward(model, ids, cache, **ragged):
    """One pass through the model.   ids (B, T)  ->  logits of the last position (B, 1, V)"""
    named_cache = {cache_argument(type(model)): cache}
    return model(input_ids=ids, use_cache=True, logits_to_keep=1, **named_cache, **ragged).logits


@functools.cache
def cache_argument(model_class: type) -> str:
    """transformers calls a model's KV cache `cache` from 5.x on and `past_key_values` before.

    The old releases accept the new name without a word and without a cache, so the signature decides.
    """
    return "cache" if "cache" in inspect.signature(model_class.forward).parameters else "past_key_values"


class PreallocatedLayer(DynamicLayer):
    """Keys and values of one layer, (B, K, capacity, d), written in place.

    The usual growing cache copies all it holds at every step (torch.cat). Here a step writes one position and attention
    gets a view of what is filled.
    """

    def __init__(self, capacity: int):
        super().__init__()
        self.capacity, self.length = capacity, 0

    def update(self, key_states, value_states, *_, **__):
        if not self.is_initialized:
            batch, heads, _, head_dim = key_states.shape
            self.key_buffer = key_states.new_empty(batch, heads, self.capacity, head_dim)
            self.value_buffer = value_states.new_empty(batch, heads, self.capacity, value_states.shape[-1])
            self.is_initialized = True
        end = self.length + key_states.shape[-2]
        self.key_buffer[:, :, self.length : end] = key_states
        self.value_buffer[:, :, self.length : end] = value_states
        self.keys, self.values = self.key_buffer[:, :, :end], self.value_buffer[:, :, :end]
        self.length = end
        return self.keys, self.values


def new_cache(model, capacity: int) -> DynamicCache:
    """An empty KV cache with room for `capacity` tokens. Layers with a sliding window keep transformers' own kind."""
    cache = DynamicCache(config=model.config)
    cache.layers = [PreallocatedLayer(capacity) if type(layer) is DynamicLayer else layer for layer in cache.layers]
    return cache


def held_bytes(cache) -> int:
    """Bytes of the keys and values that a cache holds, counted on its tensors."""
    return sum(tensor.numel() * tensor.element_size() for layer in cache.layers for tensor in (layer.keys, layer.values))


class Rows:
    """Mask and positions of a ragged batch as it grows; nothing at all for rows of equal length."""

    def __init__(self, mask: torch.Tensor | None, output_tokens: int):
        self.mask = mask
        if mask is not None:
            ones = mask.new_ones(mask.shape[0], output_tokens)
            self.grown = torch.cat([mask, ones], dim=1)  # (B, cached + S + N)
            self.positions = (self.grown.cumsum(dim=1) - 1).clamp(min=0)  # a row's first real token is at 0

    def for_prefill(self, input_ids) -> dict:
        return {} if self.mask is None else self._until(self.mask.shape[1], input_ids.shape[1])

    def for_step(self, step: int) -> dict:
        return {} if self.mask is None else self._until(self.mask.shape[1] + step, 1)

    def _until(self, end: int, new: int) -> dict:
        return {"attention_mask": self.grown[:, :end], "position_ids": self.positions[:, end - new : end]}


def left_pad(rows: Sequence[Sequence[int]], pad_id: int, device) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Rows of ids -> input_ids (B, S) padded on the left, mask (B, S), or None where no row needs padding."""
    longest = max(map(len, rows))
    ids = [[pad_id] * (longest - len(row)) + list(row) for row in rows]
    mask = [[0] * (longest - len(row)) + [1] * len(row) for row in rows]
    ragged = any(len(row) != longest for row in rows)
    return torch.tensor(ids, device=device), torch.tensor(mask, device=device) if ragged else None


def all_stopped(tokens: Sequence[torch.Tensor], stop_ids: Collection[int]) -> bool:
    """Whether every row has written a stop id. Reads values, so the host waits."""
    return all(count is not None for count in _stops(torch.cat(list(tokens), dim=1), stop_ids))


def _stops(ids: torch.Tensor, stop_ids: Collection[int]) -> list[int | None]:
    """For each row, how many tokens it wrote up to and with its first stop id; None when it never did."""
    return [next((n + 1 for n, token in enumerate(row) if token in stop_ids), None) for row in ids.tolist()]


@dataclass(frozen=True)
class Generation:
    """What a run wrote, and when.

    ids: (B, N) on the device; requested_output_tokens: what was asked for; kv_cache_bytes: keys and values held at the end,
    where they were looked at.
    """

    ids: torch.Tensor
    timeline: Timeline
    requested_output_tokens: int
    kv_cache_bytes: int | None = None

    @classmethod
    def from_run(cls, tokens, input_ids, host_ns, event_s, per_step_sync, stop_ids, requested) -> "Generation":
        ids = torch.cat(tokens, dim=1)
        rows = tuple(count or len(tokens) for count in _stops(ids, stop_ids)) if stop_ids else None
        timeline = Timeline(
            RequestShape(input_ids.shape[1], len(tokens), input_ids.shape[0]), host_ns, event_s=event_s, per_step_sync=per_step_sync or bool(stop_ids), row_output_tokens=rows,
        )  # fmt: skip
        return cls(ids, timeline, requested)


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
