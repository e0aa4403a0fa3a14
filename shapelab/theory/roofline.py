"""The least time physics allows: all FLOPs at the device's peak, or all bytes at its bandwidth, whichever is longer."""

from dataclasses import dataclass

from shapelab.errors import ShapelabError
from shapelab.request.shape import RequestShape
from shapelab.theory import arithmetic
from shapelab.theory.model_spec import ModelSpec


@dataclass(frozen=True)
class Floor:
    """Seconds that the arithmetic alone takes at the peak, and the bytes alone at full bandwidth."""

    compute_s: float
    memory_s: float

    @property
    def seconds(self) -> float:
        """Both run at once, so the longer one counts (Williams, Waterman and Patterson 2009)."""
        return max(self.compute_s, self.memory_s)


@dataclass(frozen=True)
class Device:
    """What a device can do at best: dense FLOP/s in one dtype, and bytes/s."""

    name: str
    flops_per_s: float
    bytes_per_s: float

    def __post_init__(self):
        if not (self.flops_per_s > 0 and self.bytes_per_s > 0):
            raise ShapelabError(f"{self.name}: a device's FLOP/s and bytes/s must be positive.")


def prefill_floor(
    spec: ModelSpec, shape: RequestShape, device: Device, dtype: str | float = "float16", kv_dtype: str | float | None = None
) -> Floor:
    """Floor of the prefill of a shape, over the whole batch."""
    flops = shape.batch_size * arithmetic.prefill_flops(spec, shape.input_tokens, shape.cached_tokens)
    moved = arithmetic.prefill_bytes(spec, shape.input_tokens, shape.cached_tokens, shape.batch_size, dtype, kv_dtype)
    return Floor(flops / device.flops_per_s, moved / device.bytes_per_s)


def decode_floor(
    spec: ModelSpec, context_tokens: int, batch_size: int, device: Device,
    dtype: str | float = "float16", kv_dtype: str | float | None = None,
) -> Floor:  # fmt: skip
    """Floor of one decode step of a batch at a context (the new token included)."""
    flops = batch_size * arithmetic.decode_flops(spec, context_tokens)
    moved = arithmetic.decode_bytes(spec, context_tokens, batch_size, dtype, kv_dtype)
    return Floor(flops / device.flops_per_s, moved / device.bytes_per_s)


def total_floor_s(
    spec: ModelSpec, shape: RequestShape, device: Device, dtype: str | float = "float16", kv_dtype: str | float | None = None
) -> float:
    """Floor of a whole request: its prefill and N - 1 steps at their mean context."""
    steps = shape.output_tokens - 1
    prefill = prefill_floor(spec, shape, device, dtype, kv_dtype).seconds
    context = shape.prompt_tokens + shape.output_tokens // 2
    return prefill + (steps * decode_floor(spec, context, shape.batch_size, device, dtype, kv_dtype).seconds if steps else 0)
