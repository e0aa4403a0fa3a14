"""A shape, measured several times, or one request among others: raw stamps, and every summary computed from them."""

from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from shapelab.record import metrics
from shapelab.record.environment import GpuState
from shapelab.record.fields import Bytes, Count, Moment, Nanoseconds, Seconds, Strict, Text
from shapelab.record.timeline import Timeline
from shapelab.request.shape import RequestShape
from shapelab.text import visible


class Repeat(Strict):
    """One measured run of a shape: its raw stamps (see Timeline) and what the machine's sensors read."""

    index: Count
    order: Count
    host_ns: tuple[Nanoseconds, ...]
    event_s: tuple[Seconds, ...] | None = None
    per_step_sync: bool = False
    output_tokens: Annotated[int, Field(ge=1, le=10**7)]
    kv_cache_bytes: Bytes | None = None
    peak_memory_bytes: Bytes | None = None
    gpu_before: GpuState | None = None
    gpu_after: GpuState | None = None

    @property
    def energy_j(self) -> float | None:
        before, after = self.gpu_before, self.gpu_after
        if not before or not after or before.energy_j is None or after.energy_j is None:
            return None
        return after.energy_j - before.energy_j


class _Shape(Strict):
    input_tokens: Annotated[int, Field(ge=1, le=10**7)]
    output_tokens: Annotated[int, Field(ge=1, le=10**7)]
    batch_size: Annotated[int, Field(ge=1, le=10**6)] = 1
    cached_tokens: Annotated[int, Field(ge=0, le=10**7)] = 0

    @property
    def shape(self) -> RequestShape:
        return RequestShape(self.input_tokens, self.output_tokens, self.batch_size, self.cached_tokens)


class Measurement(_Shape):
    """A shape, measured several times. Every summary is computed from the raw stamps."""

    name: Text
    repeats: Annotated[tuple[Repeat, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _stamps_make_sense(self):
        for place, repeat in enumerate(self.repeats):
            try:
                self._timeline(repeat)
            except ValueError as error:
                raise ValueError(f"repeats.{place}: {error}") from None
        return self

    def _timeline(self, repeat: Repeat) -> Timeline:
        ran = replace(self.shape, output_tokens=repeat.output_tokens)
        return Timeline(ran, repeat.host_ns, repeat.event_s, repeat.per_step_sync)

    def timelines(self) -> list[Timeline]:
        return [self._timeline(repeat) for repeat in self.repeats]

    def values(self, metric) -> list[float | None]:
        """A metric (a function of a Timeline) for every repeat."""
        return [metric(timeline) for timeline in self.timelines()]

    def median(self, metric) -> float | None:
        return metrics.median(self.values(metric))

    def interval(self, metric) -> tuple[float, float] | None:
        return metrics.interval(self.values(metric))

    @property
    def interval_kind(self) -> str:
        return metrics.interval_kind(len(self.repeats))

    @property
    def drift(self) -> str | None:
        """A sentence when the totals were not alike over time (see metrics.drift)."""
        ordered = sorted(self.repeats, key=lambda repeat: repeat.order)
        return metrics.drift([(r.host_ns[-1] - r.host_ns[0]) / 1e9 for r in ordered])

    def summary(self) -> dict[str, Any]:
        """Medians and intervals under the names used everywhere, as plain values."""
        pair = self.interval
        return {
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "batch_size": self.batch_size,
            "cached_tokens": self.cached_tokens,
            **{metric.__name__: self.median(metric) for metric in _SUMMARISED},
            "ttft_interval_s": pair(metrics.ttft_s),
            "tpot_interval_s": pair(metrics.tpot_s),
            "total_interval_s": pair(metrics.total_s),
            "interval_kind": self.interval_kind,
            "repeats": len(self.repeats),
            "drift": self.drift,
            "peak_memory_bytes": max((r.peak_memory_bytes or 0 for r in self.repeats), default=0) or None,
            "energy_j": metrics.median([r.energy_j for r in self.repeats]),
        }

    def __repr__(self) -> str:
        ttft, total = self.median(metrics.ttft_s), self.median(metrics.total_s)
        return f"<{visible(self.name)} {self.shape}: TTFT {ttft:.3f} s, total {total:.3f} s, {len(self.repeats)} repeats>"


_SUMMARISED = (
    metrics.ttft_s, metrics.tpot_s, metrics.decode_s, metrics.total_s,
    metrics.prefill_tokens_per_s, metrics.decode_tokens_per_s, metrics.prefill_share, metrics.host_overhead_s,
)  # fmt: skip


class Skipped(_Shape):
    """A shape that a sweep did not measure, why, and when it decided so (None in files of schema 1)."""

    name: Text
    outcome: Literal["does_not_fit", "out_of_memory"]
    reason: Text
    decided_at: Moment | None = None

    def __str__(self) -> str:
        when = f" (decided {self.decided_at})" if self.decided_at else ""
        return f"{self.name}: {self.reason}{when}"


class Request(_Shape):
    """One request among others, on a server or in an engine that works on several at once.

    output_tokens   as the request asked for
    written_tokens  as it got
    arrival_ns      when it was due, by the clock of the stamps
    host_ns         start, first token and every later one, or start, first and last; none where it got no token
    """

    arrival_ns: Nanoseconds
    host_ns: tuple[Nanoseconds, ...] = ()
    written_tokens: Count = 0
    outcome: Literal["completed", "failed", "cancelled"] = "completed"
    reason: Text = ""

    @model_validator(mode="after")
    def _stamps_and_outcome_make_sense(self):
        if self.host_ns and not self.written_tokens:
            raise ValueError("a request without a token has no stamps")
        if self.written_tokens > self.output_tokens:
            raise ValueError("a request has more tokens than it asked for")
        if self.outcome == "completed" and not self.written_tokens:
            raise ValueError("a completed request has at least one token")
        if self.outcome != "completed" and not self.reason:
            raise ValueError("a request that was not completed needs a reason")
        _ = self.timeline
        return self

    @property
    def timeline(self) -> Timeline | None:
        """What metrics take; None where the request got no token."""
        if not self.written_tokens:
            return None
        return Timeline(replace(self.shape, output_tokens=self.written_tokens), self.host_ns, arrival_ns=self.arrival_ns)
