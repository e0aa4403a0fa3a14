"""From the stamps of one run to the numbers people quote. Pure functions; seconds in, seconds and rates out.

With S input tokens, N output tokens and batch size B: one prefill and N - 1 decode steps. TTFT runs from the prompt's
ids being on the device to the first output id being selected, decode time from the first to the last selected id.
Tokenising and turning ids back into text lie outside.
"""

import itertools
import math
import statistics
from collections.abc import Sequence

from shapelab.record.timeline import Timeline


def ttft_s(timeline: Timeline) -> float:
    """Time to first token: the prefill, and nothing of the decode."""
    return (timeline.host_ns[1] - timeline.host_ns[0]) / 1e9


def decode_s(timeline: Timeline) -> float:
    """From the first to the last selected token; 0 when there is one token only."""
    return (timeline.host_ns[-1] - timeline.host_ns[1]) / 1e9


def total_s(timeline: Timeline) -> float:
    """End to end: TTFT and decode time."""
    return (timeline.host_ns[-1] - timeline.host_ns[0]) / 1e9


def tpot_s(timeline: Timeline) -> float | None:
    """Time per output token after the first: decode time / (N - 1). None at N = 1, where nothing was decoded."""
    return decode_s(timeline) / timeline.shape.decode_steps if timeline.shape.decode_steps else None


def itl_s(timeline: Timeline) -> list[float] | None:
    """Inter-token latencies, N - 1 of them: by device events where there are any, else by host stamps.

    None where the host looked at the clock only at the ends of the phases.
    """
    if timeline.event_s is not None:
        return [b - a for a, b in itertools.pairwise(timeline.event_s)]
    stamps = timeline.host_ns[1:]
    if len(stamps) != timeline.shape.output_tokens:
        return None
    return [(b - a) / 1e9 for a, b in itertools.pairwise(stamps)]


def host_overhead_s(timeline: Timeline) -> float | None:
    """What the host clock saw beyond the device's events over the whole run; None without events.

    Events may themselves enclose time in which the device waited for the host, so this is a lower bound.
    """
    return total_s(timeline) - timeline.event_s[-1] if timeline.event_s else None


def queue_s(timeline: Timeline) -> float | None:
    """From a request's arrival to its start; None where nobody kept the arrival."""
    return None if timeline.arrival_ns is None else (timeline.host_ns[0] - timeline.arrival_ns) / 1e9


def ttft_from_arrival_s(timeline: Timeline) -> float | None:
    """Time to first token as its reader sees it: the time in the queue, and the prefill."""
    return None if timeline.arrival_ns is None else (timeline.host_ns[1] - timeline.arrival_ns) / 1e9


def rate(count: float, seconds: float) -> float | None:
    """count / seconds; None where no time passed (a clock too coarse), never an error and never infinity."""
    return count / seconds if seconds > 0 else None


def prefill_tokens_per_s(timeline: Timeline) -> float | None:
    """B x S / TTFT, over the whole batch. Cached tokens are not processed, so they do not count."""
    return rate(timeline.shape.prefill_tokens, ttft_s(timeline))


def decode_tokens_per_s(timeline: Timeline) -> float | None:
    """B x (N - 1) / decode time, over the whole batch, ids after a row's EOS not counted; None at N = 1."""
    rows = timeline.row_output_tokens
    written = timeline.shape.decode_tokens if rows is None else sum(rows) - timeline.shape.batch_size
    return rate(written, decode_s(timeline))


def decode_tokens_per_s_per_sequence(timeline: Timeline) -> float | None:
    """(N - 1) / decode time: the speed one reader sees; None at N = 1."""
    return rate(timeline.shape.decode_steps, decode_s(timeline))


def prefill_share(timeline: Timeline) -> float | None:
    """Share of the total spent before the first token, 0 to 1."""
    return rate(ttft_s(timeline), total_s(timeline))


def median(values: Sequence[float | None]) -> float | None:
    """Median of the values there are; None when there is none."""
    present = [value for value in values if value is not None]
    return statistics.median(present) if present else None


def interval(values: Sequence[float | None], confidence: float = 0.9) -> tuple[float, float] | None:
    """A bootstrap interval of the median; below 6 values the plain range (`interval_kind` says which).

    None below 2 values: one value says nothing about how far the next would lie from it.
    """
    present = [value for value in values if value is not None]
    if len(present) < 2:
        return None
    if len(present) < _ENOUGH_FOR_BOOTSTRAP:
        return min(present), max(present)
    return bootstrap_interval([present], statistics.median, confidence)


_ENOUGH_FOR_BOOTSTRAP = 6
ONE_REPEAT, BOOTSTRAP = "one repeat", "bootstrap 90 %"


def interval_kind(repeats: int) -> str:
    """What `interval` returns for so many repeats, as it is labelled in tables."""
    if repeats < 2:
        return ONE_REPEAT
    return "range" if repeats < _ENOUGH_FOR_BOOTSTRAP else BOOTSTRAP


def bootstrap_interval(samples, statistic, confidence: float = 0.9) -> tuple[float, float]:
    """Percentile bootstrap of statistic(*samples), the samples drawn again independently; seeded, so repeatable."""
    import numpy as np  # here and not above: this module is imported where only a figure is wanted
    from scipy.stats import bootstrap

    if all(len(set(sample)) == 1 for sample in samples):
        value = statistic(*samples)
        return value, value
    result = bootstrap(
        samples, statistic, confidence_level=confidence, n_resamples=2000, vectorized=False,
        method="percentile", rng=np.random.default_rng(0),
    )  # fmt: skip
    return float(result.confidence_interval.low), float(result.confidence_interval.high)


def drift(values: Sequence[float]) -> str | None:
    """A sentence when repeats of one thing are not alike over time, else None. `values` in the order measured.

    Two patterns: slow runs at the start (a warm-up that was too short), and a steady climb or fall (throttling, or
    another program). Both must exceed 10 % of the median, or 20 % with fewer than 5 values: three noisy values stand in
    order by chance once in three times, and noise must not be called drift.
    """
    values = list(values)
    if len(values) < 3:
        return None
    tolerance = 0.10 if len(values) >= 5 else 0.20
    middle = statistics.median(values)
    if middle <= 0 or any(not math.isfinite(value) for value in values):
        return None
    rising = all(b >= a for a, b in itertools.pairwise(values))
    falling = all(b <= a for a, b in itertools.pairwise(values))
    change = (values[-1] - values[0]) / middle
    if (rising or falling) and abs(change) > tolerance:
        return f"Each repeat was {'slower' if rising else 'faster'} than the one before, {abs(change):.0%} in all."
    apart = 1 + tolerance / 2  # even the nearest two of the groups must differ, or one outlier would make a group
    for cut in range(1, len(values)):
        early, late = values[:cut], values[cut:]
        slower = statistics.median(early) / statistics.median(late)
        if min(early) > max(late) * apart and slower > 1 + tolerance:
            return f"Early repeats ({cut} of {len(values)}) were {slower - 1:.0%} slower than the rest."
        if max(early) * apart < min(late) and 1 / slower > 1 + tolerance:
            return f"Late repeats ({len(late)} of {len(values)}) were {1 / slower - 1:.0%} slower than the rest."
    return None
