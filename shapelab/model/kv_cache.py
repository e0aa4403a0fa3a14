"""The KV cache: what the tokens so far leave behind, so that a step reads only the newest one."""

import torch
from transformers import DynamicCache, StaticCache
from transformers.cache_utils import DynamicLayer

from shapelab.errors import BadArgument, DoesNotFit
from shapelab.theory.model_spec import ModelSpec


class PreallocatedLayer(DynamicLayer):
    """Keys and values of one layer, (B, K, capacity, d), written in place.

    The usual growing cache copies all it holds at every step (torch.cat). Here a step writes one position, and attention
    gets `keys` and `values`, views of the part that is filled. Their length is the only length there is, so nothing can go
    stale: `crop` shortens the views, and where transformers replaces them (rows chosen, repeated, moved to the host) the
    next step moves them into buffers of their own.
    """

    def __init__(self, capacity: int):
        super().__init__()
        self.capacity = capacity
        self.key_buffer = self.value_buffer = None

    def update(self, key_states, value_states, *_, **__):
        """Append (B, K, T, d) states. Raises DoesNotFit beyond the capacity, BadArgument for another number of rows."""
        start = 0 if self.keys is None else self.keys.shape[-2]
        end = start + key_states.shape[-2]
        if end > self.capacity:
            raise DoesNotFit(
                f"This KV cache has room for {self.capacity} tokens and would hold {end}. Make a larger one: new_cache(model, {end})."
            )
        if start and key_states.shape[0] != self.keys.shape[0]:
            raise BadArgument(
                f"This KV cache holds {self.keys.shape[0]} rows and a pass brings {key_states.shape[0]}. "
                "Call its reset(), or choose its rows, before another batch.", "input_ids"
            )  # fmt: skip
        if not self._can_write_in_place():
            self._move_into_buffers(key_states, value_states, start)
        self.key_buffer[:, :, start:end] = key_states
        self.value_buffer[:, :, start:end] = value_states
        self.keys, self.values = self.key_buffer[:, :, :end], self.value_buffer[:, :, :end]
        return self.keys, self.values

    def crop(self, tokens: int):
        """Forget the newest tokens: crop(-3) forgets three. Above 0 it is transformers' to refuse, or before 5.x a length to keep."""
        if tokens > 0:
            super().crop(tokens)
        elif self.keys is not None:
            end = max(0, self.keys.shape[-2] + tokens)
            self.keys, self.values = self.keys[:, :, :end], self.values[:, :, :end]

    def reset(self):
        """Forget everything, buffers included: the next batch may have another number of rows."""
        self.keys = self.values = self.key_buffer = self.value_buffer = None
        self.is_initialized = False

    def offload(self):
        super().offload()
        self.key_buffer = self.value_buffer = None  # they would stay on the device

    def _can_write_in_place(self) -> bool:
        if self.key_buffer is None or self.keys.data_ptr() != self.key_buffer.data_ptr():
            return False
        return torch.is_inference_mode_enabled() or not self.key_buffer.is_inference()  # torch's own rule for writing

    def _move_into_buffers(self, key_states, value_states, length: int):
        self.key_buffer, self.value_buffer = (
            states.new_empty(*states.shape[:2], self.capacity, states.shape[-1]) for states in (key_states, value_states)
        )
        if length:
            self.key_buffer[:, :, :length] = self.keys
            self.value_buffer[:, :, :length] = self.values
        self.device, self.is_initialized = key_states.device, True


def new_cache(model, capacity: int) -> DynamicCache:
    """An empty KV cache with room for `capacity` tokens. Layers with a sliding window keep transformers' own kind."""
    cache = DynamicCache(config=model.config)
    cache.layers = [PreallocatedLayer(capacity) if type(layer) is DynamicLayer else layer for layer in cache.layers]
    return cache


def static_cache(model, capacity: int, batch_size: int = 1) -> StaticCache:
    """transformers' cache of a fixed size, for a compiled model; attention looks at all of it, masked.

    Its tensors are made here and not in the first pass: made inside a compiled region they would have no fixed address,
    and no CUDA graph could be replayed on them. Empty it with `.reset()` to use it again.
    """
    spec = ModelSpec.from_config(model)
    cache = StaticCache(config=model.config, max_cache_len=capacity)
    cache.early_initialization(batch_size, spec.num_key_value_heads, spec.head_dim, model.dtype, model.device)
    return cache


def held_bytes(cache) -> int:
    """Bytes that a cache holds, counted on its layers' tensors: keys and values, and the states of a layer without keys."""
    return sum(tensor.numel() * tensor.element_size() for layer in cache.layers for tensor in _states(layer))


def _states(layer) -> list[torch.Tensor]:
    own = vars(layer)
    # a convolution or a linear attention holds {number: state or None}; a layer that shares another's keys holds None
    states = [own.get("keys"), own.get("values"), own.get("indexer_keys")]
    for name in ("conv_states", "recurrent_states"):
        states += own.get(name, {}).values()
    return [state for state in states if state is not None]
