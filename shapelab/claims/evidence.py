"""What deciders look at: shapes with their times, measured or predicted alike, and how sure each time is."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from shapelab.errors import NotEnoughMeasured
from shapelab.predict.machine import Machine, Prediction
from shapelab.record import metrics
from shapelab.record.measurement import Measurement
from shapelab.record.run import Run
from shapelab.request.shape import RequestShape
from shapelab.theory import roofline
from shapelab.theory.arithmetic import kv_bytes_per_token

Quantity = Literal["ttft_s", "tpot_s", "total_s"]


@dataclass(frozen=True)
class Estimate:
    """A number and the interval it most likely lies in; None after one repeat, which shows no spread.

    kind     what the interval is: range or bootstrap (see metrics.interval), that of a prediction, or "one repeat"
    samples  the repeats, where there are any
    """

    value: float
    interval: tuple[float, float] | None
    kind: str
    samples: tuple[float, ...] = ()

    @property
    def positive(self) -> bool:
        """False where a repeat took no time (a clock that stood still) or the interval reaches 0."""
        return min((self.value, *self.samples, *(self.interval or ()))) > 0

    def above(self, other: "Estimate | float") -> bool:
        """Whether this interval lies wholly above another, or above a number; False where one of them has no interval."""
        top = other.interval and other.interval[1] if isinstance(other, Estimate) else other
        return self.interval is not None and top is not None and self.interval[0] > top

    def apart(self, other: "Estimate") -> bool:
        """Whether the two intervals share nothing."""
        return self.above(other) or other.above(self)

    def per(self, count: float) -> "Estimate":
        """The same for each of `count` things."""
        ends = self.interval and (self.interval[0] / count, self.interval[1] / count)
        return Estimate(self.value / count, ends, self.kind, tuple(sample / count for sample in self.samples))

    def spread(self, form: str = ".2f", factor: float = 1.0) -> str:
        """The interval in words, such as "range 0.10 to 0.20"."""
        return f"{self.kind} {' to '.join(format(end * factor, form) for end in self.interval or ())}".strip()


def estimate(values: Iterable[float | None]) -> Estimate | None:
    """The median of repeats with its interval. None where no repeat has a value."""
    samples = tuple(value for value in values if value is not None)
    if not samples:
        return None
    return Estimate(metrics.median(samples), metrics.interval(samples), metrics.interval_kind(len(samples)), samples)


def difference(a: Estimate, b: Estimate) -> Estimate:
    """How much a is above b."""
    return _combined(lambda x, y: x - y, a, b)


def ratio(a: Estimate, b: Estimate) -> Estimate:
    """How many times b is in a. Raises NotEnoughMeasured where b may be 0."""
    if not b.positive:
        raise NotEnoughMeasured("The clock measured 0 s, so there is nothing to divide by. Measure a longer shape.")
    return _combined(lambda x, y: x / y, a, b)


def _combined(f: Callable[[float, float], float], a: Estimate, b: Estimate) -> Estimate:
    """f rises with its first number and falls with its second. By bootstrap where both have repeats enough, else end against end."""
    kind = a.kind if a.kind == b.kind else "range"
    if a.interval is None or b.interval is None:
        return Estimate(f(a.value, b.value), None, metrics.ONE_REPEAT)
    if kind == metrics.BOOTSTRAP and a.samples and b.samples:
        ends = metrics.bootstrap_interval([a.samples, b.samples], lambda x, y: f(metrics.median(x), metrics.median(y)))
    else:
        ends = f(a.interval[0], b.interval[1]), f(a.interval[1], b.interval[0])
    return Estimate(f(a.value, b.value), ends, kind)


@dataclass(frozen=True)
class Point:
    """A shape and its times: `estimate("tpot_s")` and so on; None for the TPOT of one output token, where nothing was decoded.

    Deciders see nothing else, so they cannot tell a measured point from a predicted one.
    """

    name: str
    shape: RequestShape
    estimate: Callable[[Quantity], Estimate | None]


@dataclass(frozen=True)
class Evidence:
    """The shapes of a run: as they were measured, or, with a machine, as that predicts them."""

    run: Run
    machine: Machine | None = None

    def __getitem__(self, name: str) -> Point:
        return self._point(self.run[name])

    @property
    def points(self) -> list[Point]:
        return [self._point(m) for m in self.run.measurements]

    def along(self, number: str) -> list[Point]:
        """The shapes that differ in one of the four numbers only, in its order (see Run.along)."""
        return [self._point(m) for m in self.run.along(number)]

    def _point(self, m: Measurement) -> Point:
        if self.machine is None:
            return Point(m.name, m.shape, lambda quantity: estimate(m.values(getattr(metrics, quantity))))
        prediction = self.machine.predict(m.shape)
        return Point(m.name, m.shape, lambda quantity: _predicted(prediction, quantity))

    @property
    def drifted(self) -> list[str]:
        """The shapes whose repeats were not alike over time; a prediction has no repeats."""
        return [] if self.machine else [str(m.shape) for m in self.run.measurements if m.drift]

    def verdicts(self, name: str) -> dict[str, roofline.Verdict]:
        """What the passes of a shape wait for; empty unless the machine's limits and the model's numbers are known."""
        point, limits, where = self[name], self.run.limits, self.run.environment
        if self.machine:
            return self.machine.verdicts(point.shape)
        if limits is None or where.spec is None or where.weight_dtype is None:
            return {}
        ttft_s, tpot_s = (point.estimate(quantity).value for quantity in ("ttft_s", "tpot_s"))
        return roofline.verdicts(where.spec, point.shape, ttft_s, tpot_s, limits.device, where.weight_dtype, limits.overhead_s)

    def kv_bytes_per_token(self) -> tuple[set[float], float | None]:
        """Bytes of KV cache for each token: those the caches held (one value where all repeats agree), and the formula's.

        The set is empty where no repeat kept them; the formula is None where the model's numbers are unknown.
        """
        spec, dtype = self.run.environment.spec, self.run.environment.compute_dtype
        if self.machine:
            spec, dtype = self.machine.spec, self.machine.dtype
        formula = kv_bytes_per_token(spec, dtype) if spec and dtype else None
        if self.machine:
            return {formula} - {None}, formula
        repeats = [pair for m in self.run.measurements for pair in zip(m.timelines(), m.repeats, strict=True)]
        held = [(r.kv_cache_bytes, t.shape.batch_size * t.shape.final_kv_tokens) for t, r in repeats]
        return {held_bytes / tokens for held_bytes, tokens in held if held_bytes is not None}, formula


def _predicted(prediction: Prediction, quantity: Quantity) -> Estimate | None:
    value = getattr(prediction, quantity)
    ends = getattr(prediction, f"{quantity.removesuffix('_s')}_interval_s")
    return None if value is None else Estimate(value, ends, "90 % interval")


def write_to_read_ratio(point: Point) -> Estimate:
    """A decode step in tokens read: TPOT over the prefill's time for each token of the batch."""
    return ratio(point.estimate("tpot_s"), point.estimate("ttft_s").per(point.shape.prefill_tokens))


def cost_ratio(point: Point) -> Estimate:
    """Machine time of an output token in input tokens: (TPOT / B) / (TTFT / (B S)) = TPOT x S / TTFT. A batch shares its step."""
    return write_to_read_ratio(point).per(point.shape.batch_size)
