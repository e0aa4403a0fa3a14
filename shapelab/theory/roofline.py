"""The least time physics allows: all FLOPs at the device's peak, or all bytes at its bandwidth, whichever is longer."""

from dataclasses import dataclass, replace

from shapelab.request.shape import RequestShape, real
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
        for argument in ("flops_per_s", "bytes_per_s"):
            real(argument, getattr(self, argument), above=True)


def prefill_floor(
    spec: ModelSpec, shape: RequestShape, device: Device, dtype: str | float = "float16", kv_dtype: str | float | None = None
) -> Floor:
    """Floor of the prefill of a shape, over the whole batch."""
    flops = shape.batch_size * arithmetic.prefill_flops(spec, shape.input_tokens, shape.cached_tokens)
    moved = arithmetic.prefill_bytes(spec, shape.input_tokens, shape.cached_tokens, shape.batch_size, dtype, kv_dtype)
    return Floor(flops / device.flops_per_s, moved / device.bytes_per_s)


def decode_floor(
    spec: ModelSpec, context_tokens: float, batch_size: int, device: Device,
    dtype: str | float = "float16", kv_dtype: str | float | None = None,
) -> Floor:  # fmt: skip
    """Floor of one decode step of a batch at a context (the new token included)."""
    moved = arithmetic.decode_bytes(spec, context_tokens, batch_size, dtype, kv_dtype)
    flops = batch_size * arithmetic.decode_flops(spec, context_tokens)
    return Floor(flops / device.flops_per_s, moved / device.bytes_per_s)


def total_floor_s(
    spec: ModelSpec, shape: RequestShape, device: Device, dtype: str | float = "float16", kv_dtype: str | float | None = None
) -> float:
    """Floor of a whole request: its prefill and N - 1 steps at their mean context."""
    steps = shape.decode_steps
    prefill = prefill_floor(spec, shape, device, dtype, kv_dtype).seconds
    return prefill + (
        steps * decode_floor(spec, shape.mean_decode_context, shape.batch_size, device, dtype, kv_dtype).seconds if steps else 0
    )


def ridge_point(device: Device) -> float:
    """FLOPs a byte at which arithmetic and memory take equally long. Work with less intensity than that waits for memory."""
    return device.flops_per_s / device.bytes_per_s


def decode_intensity(
    spec: ModelSpec, context_tokens: float, batch_size: int, dtype: str | float = "float16", kv_dtype: str | float | None = None
) -> float:
    """FLOPs for each byte that a decode step moves."""
    moved = arithmetic.decode_bytes(spec, context_tokens, batch_size, dtype, kv_dtype)
    return batch_size * arithmetic.decode_flops(spec, context_tokens) / moved


def prefill_intensity(spec: ModelSpec, shape: RequestShape, dtype: str | float = "float16") -> float:
    """FLOPs for each byte that a prefill moves."""
    flops = shape.batch_size * arithmetic.prefill_flops(spec, shape.input_tokens, shape.cached_tokens)
    return flops / arithmetic.prefill_bytes(spec, shape.input_tokens, shape.cached_tokens, shape.batch_size, dtype)


LARGEST_BATCH = 65_536


def critical_batch(
    spec: ModelSpec, context_tokens: float, device: Device, dtype: str | float = "float16", kv_dtype: str | float | None = None
) -> int | None:
    """The smallest batch at which a decode step's arithmetic takes as long as its bytes.

    None where there is none up to LARGEST_BATCH: with a long context each sequence brings more bytes of its own cache than
    arithmetic, and no batch makes decode compute-bound.
    """

    def is_compute_bound(batch: int) -> bool:
        floor = decode_floor(spec, context_tokens, batch, device, dtype, kv_dtype)
        return floor.compute_s >= floor.memory_s

    if not is_compute_bound(LARGEST_BATCH):
        return None
    low, high = 0, LARGEST_BATCH  # arithmetic gains on bytes with every sequence, so the batch can be bisected
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_compute_bound(middle) else (middle, high)
    return high


HELPS = {
    "compute": "Less arithmetic: a shorter or cached prompt, a dtype with a higher peak, a faster device. A larger batch does not help.",
    "memory": "Fewer bytes, or more use of each: quantised weights, fewer KV heads, a shorter context, a larger batch.",
    "overhead": "Fewer and larger operations: compiling, CUDA graphs, a faster host, a larger batch. A faster device does not help.",
}


@dataclass(frozen=True)
class Verdict:
    """What a measured pass spent its time on.

    compute_s, memory_s  what its arithmetic and its bytes would take alone, at this device's ceilings
    overhead_s           what a pass costs before any of that, measured apart
    regime               compute, memory or overhead: the one with the largest share
    notes                what speaks against it
    """

    phase: str
    measured_s: float
    compute_s: float
    memory_s: float
    overhead_s: float
    notes: tuple[str, ...] = ()

    @property
    def shares(self) -> dict[str, float]:
        """Of the measured time. They need not sum to 1: arithmetic and bytes overlap, and no kernel reaches its ceiling."""
        parts = {"compute": self.compute_s, "memory": self.memory_s, "overhead": self.overhead_s}
        return {name: seconds / self.measured_s for name, seconds in parts.items()}

    @property
    def unexplained(self) -> float:
        """Share that neither the floor nor the overhead explains: kernels below the ceilings. Not below 0."""
        return max(0.0, 1 - (max(self.compute_s, self.memory_s) + self.overhead_s) / self.measured_s)

    @property
    def regime(self) -> str:
        return max(self.shares, key=self.shares.get)

    @property
    def clear(self) -> bool:
        """Whether the regime explains at least as much as is left unexplained."""
        return max(self.shares.values()) >= self.unexplained

    @property
    def helps(self) -> str:
        return HELPS[self.regime]

    def __repr__(self) -> str:
        shares = ", ".join(f"{name} {share:.0%}" for name, share in self.shares.items())
        notes = "".join(f" Note: {note}" for note in self.notes)
        return f"<{self.phase} {self.measured_s * 1e3:.1f} ms: {shares}, unexplained {self.unexplained:.0%}: {self.regime}-bound{'' if self.clear else ', not clearly'}>{notes}"


def verdict(
    phase: str, measured_s: float, floor: Floor, overhead_s: float, doubling: float | None = None, halving: float | None = None
) -> Verdict:
    """Decide between three regimes from measurements.

    measured_s  seconds of the pass
    floor       its Floor, on ceilings measured on (or promised for) the device
    overhead_s  seconds that a pass takes before any arithmetic: of a hollow twin (measure.overhead), or `overhead_from_fit`
    doubling    how many times as long the pass took with twice the tokens (or sequences); it must agree, or a note says so
    halving     how many times as long it took with half the bytes, in 16 bits instead of 32; likewise
    """
    measured_s, overhead_s = real("measured_s", measured_s, above=True), real("overhead_s", overhead_s)
    plain = Verdict(phase, measured_s, floor.compute_s, floor.memory_s, overhead_s)
    notes = []
    if floor.seconds > measured_s:
        notes.append(
            f"Faster than its floor by {floor.seconds / measured_s:.2f} times: a ceiling, a count or a clock is wrong here."
        )
    if doubling is not None:
        if plain.regime == "compute" and doubling < 1.5:
            notes.append(f"Twice the work took only {doubling:.2f} times as long, which does not look compute-bound.")
        if plain.regime != "compute" and doubling > 1.8:
            notes.append(f"Twice the work took {doubling:.2f} times as long, which looks compute-bound.")
    if halving is not None and plain.regime == "memory" and halving > 0.9:
        notes.append(f"With half the bytes it took {halving:.2f} times as long, which memory alone does not explain.")
    return replace(plain, notes=tuple(notes))


def verdicts(
    spec: ModelSpec, shape: RequestShape, ttft_s: float, tpot_s: float | None, device: Device, dtype: str, overhead_s: float
) -> dict[str, Verdict]:
    """A shape's prefill and, where it has one, its decode step at the middle of the answer; no experiment beside them."""
    both = {"prefill": verdict("prefill", ttft_s, prefill_floor(spec, shape, device, dtype), overhead_s)}
    if tpot_s:
        floor = decode_floor(spec, shape.mean_decode_context, shape.batch_size, device, dtype)
        both["decode"] = verdict("decode", tpot_s, floor, overhead_s)
    return both


def overhead_from_fit(fixed_s: float, smallest: Floor) -> float:
    """Overhead of a pass from a fit: its fixed cost, less the floor of the smallest pass, which must read the weights too.

    An upper bound: reading below the memory's ceiling is in it as well.
    """
    return max(0.0, fixed_s - smallest.seconds)
