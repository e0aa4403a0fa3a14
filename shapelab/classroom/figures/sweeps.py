"""What changes as one number grows: prompts, answers, contexts, batches."""

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import cycle

import pandas as pd
import seaborn as sns

from shapelab.classroom.figures.colours import DECODE, INK, OTHERS, OVERHEAD, PREFILL
from shapelab.classroom.figures.drawn import (
    Drawn,
    canvas,
    captioned,
    in_words,
    label,
    not_empty,
    plain_logarithm,
    ratio,
    verbatim,
)  # fmt: skip
from shapelab.classroom.html import brief, short
from shapelab.record import metrics
from shapelab.record.measurement import Measurement
from shapelab.record.run import Run

_NUMBERS = {
    "input_tokens": "input tokens",
    "output_tokens": "output tokens",
    "cached_tokens": "cached tokens",
    "batch_size": "batch size",
}
_METRICS = {
    "ttft_s": ("TTFT in seconds", 1, PREFILL),
    "tpot_s": ("TPOT in milliseconds", 1e3, DECODE),
    "total_s": ("total in seconds", 1, INK),
    "prefill_tokens_per_s": ("prefill tokens a second", 1, PREFILL),
}


@verbatim
def along(run: Run, number: str, shown: Sequence[str] = ("ttft_s", "tpot_s"), model=None) -> Drawn:
    """One of the four numbers changed alone: a panel for each metric in `shown`, from zero on both axes.

    Points are medians, bars their intervals; a shape measured once has no interval.
    model  a Machine; its prediction is drawn as a dashed line.
    """
    sweep = not_empty(run.along(number))
    varied = [getattr(m, number) for m in sweep]
    held = [f"{getattr(sweep[0], other):,} {name}" for other, name in _NUMBERS.items() if other not in (number, "batch_size")]
    held += [f"batch {sweep[0].batch_size}"] if number != "batch_size" else []
    title = f"Varied: {_NUMBERS[number]}. Fixed: {', '.join(held)}"
    figure, axes = canvas(3.6, columns=len(shown))
    figure.suptitle(title, x=0.01, ha="left", fontsize=12)
    words = [f"{title}."]
    for axis, metric in zip(axes, shown, strict=True):
        up, factor, color = _METRICS[metric]
        medians = _medians(axis, sweep, number, metric, linestyle="-" if model is None else "")
        words += [label(axis, "", _NUMBERS[number], up), f"{medians}."]
        if model is not None:
            shapes = {x: replace(sweep[0].shape, **{number: x}) for x in _between(varied)}
            seconds = {x: getattr(model.predict(shape), metric) for x, shape in shapes.items()}
            points = {x: y * factor for x, y in seconds.items() if y is not None}
            axis.plot(list(points), list(points.values()), color=color, linestyle="--", linewidth=1.2, label="predicted")
            axis.legend(frameon=False, fontsize=9)
            words.append(f"Predicted: {in_words([(x, points[x]) for x in varied if x in points])}.")
        axis.set_ylim(0, axis.get_ylim()[1] * 1.08)
        axis.set_xlim(left=-0.02 * max(varied))  # a point at 0 is drawn whole
    kind = "measured" if model is None else "measured and predicted"
    return captioned(figure, " ".join(words), kind, run.environment.label)


@verbatim
def starving(run: Run) -> Drawn:
    """Prefill throughput over the length of the prompt, the length on a logarithmic axis."""
    rate = metrics.prefill_tokens_per_s
    sweep = not_empty([m for m in run.along("input_tokens") if m.median(rate)])  # none where a coarse clock saw no time pass
    figure, (axis,) = canvas(3.4)
    words = _medians(axis, sweep, "input_tokens", "prefill_tokens_per_s", linestyle="-")
    axis.set_xscale("log")
    axis.set_xticks([m.input_tokens for m in sweep], [f"{m.input_tokens:,}" for m in sweep])
    axis.minorticks_off()
    axis.set_ylim(0, axis.get_ylim()[1] * 1.08)
    rates = [m.median(rate) for m in sweep]
    title = f"A prompt of {sweep[0].input_tokens:,} tokens reaches {rates[0] / max(rates):.0%} of the best prefill throughput"
    opening = label(axis, title, "input tokens", "prefill tokens a second")
    return captioned(figure, f"{opening} {words}.", "measured", run.environment.label)


@verbatim
def trade_off(points: Sequence[tuple[int, float, float]], about: str, kind: str = "measured") -> Drawn:
    """Throughput against latency: (batch size, TPOT in seconds, decode tokens/s of the whole batch), each batch size written on."""
    points = [(batch, tpot * 1e3, rate) for batch, tpot, rate in not_empty(points)]
    figure, (axis,) = canvas(4)
    axis.plot([wait for _, wait, _ in points], [rate for _, _, rate in points], marker="o", color=DECODE)
    for batch, wait, rate in points:
        axis.annotate(f"batch {batch}", (wait, rate), xytext=(7, -11), textcoords="offset points", fontsize=9, color=INK)
    axis.set_xlim(0, max(wait for _, wait, _ in points) * 1.15)
    axis.set_ylim(0, max(rate for _, _, rate in points) * 1.12)
    (first, wait, rate), (last, longer, more) = min(points), max(points)
    title = f"Batch {last} writes {ratio(more, rate)} times as fast as batch {first}, and each reader waits {ratio(longer, wait)} times as long"
    across, up = "TPOT in milliseconds: how long each reader waits for a token", "decode tokens a second, all together"
    opening = label(axis, title, across, up, grid="both")
    words = ", ".join(f"batch {batch}: {short(rate)} at {short(wait)}" for batch, wait, rate in points)
    return captioned(figure, f"{opening} {words}.", kind, about)


@verbatim
def lines(
    series: dict[str, Sequence[tuple[float, float]]], xlabel: str, ylabel: str, title: str, about: str, kind: str = "measured"
) -> Drawn:
    """Several lines over one number, from zero, each with its own marker and its name at the end."""
    figure, (axis,) = canvas(3.6)
    for (name, points), marker, color in zip(not_empty(series).items(), cycle("osD^vPX"), cycle(OTHERS), strict=False):
        axis.plot(*zip(*not_empty(points), strict=True), marker=marker, color=color, label=name)
        axis.annotate(brief(name), points[-1], xytext=(8, 0), textcoords="offset points", va="center", fontsize=9)
    axis.set_xlim(left=0, right=axis.get_xlim()[1] * 1.12)
    axis.set_ylim(0, axis.get_ylim()[1] * 1.05)
    opening = label(axis, title, xlabel, ylabel)
    words = " ".join(f"{name}: {in_words(points)}." for name, points in series.items())
    return captioned(figure, f"{opening} {words}", kind, about)


@verbatim
def cost_per_row(rows: Sequence[int], seconds: Sequence[float], about: str) -> Drawn:
    """Time of the same matrix products, divided by the tokens (rows) that shared them; both axes logarithmic."""
    points = [(n, s / n * 1e6) for n, s in zip(not_empty(rows), seconds, strict=True)]
    figure, (axis,) = canvas(3.4)
    axis.loglog(*zip(*points, strict=True), marker="o", color=PREFILL)
    axis.plot(*points[0], marker="o", markersize=9, color=DECODE)
    axis.annotate("one token: decode", points[0], xytext=(12, 0), textcoords="offset points", va="center")
    axis.set_xticks(list(rows), [f"{n:,}" for n in rows])
    plain_logarithm(axis)
    (_, alone), (together, shared) = points[0], points[-1]
    title = f"A token alone takes {ratio(alone, shared)} times as long as one of {together:,} that share a pass"
    opening = label(axis, title, "tokens that share the pass", "microseconds a token")
    return captioned(figure, f"{opening} {in_words(points)}.", "measured", about)


@verbatim
def cost_ratio(points: Sequence[tuple[int, float]], price_ratio: float, about: str, kind: str = "measured") -> Drawn:
    """Machine time of an output token in input tokens, over the batch size, beside the median public price ratio."""
    figure, (axis,) = canvas(3.6)
    axis.plot(*zip(*not_empty(points), strict=True), marker="o", color=DECODE, label="this machine's time")
    prices = f"median of public prices: {price_ratio:.1f}"
    axis.axhline(price_ratio, color=OVERHEAD, linestyle="--", label=prices)
    axis.set_xscale("log", base=2)
    axis.set_xticks([batch for batch, _ in points], [str(batch) for batch, _ in points])
    axis.minorticks_off()
    axis.set_ylim(0, max(price_ratio, *(each for _, each in points)) * 1.1)
    axis.legend(frameon=False, fontsize=9)
    (first, larger), (last, smaller) = points[0], points[-1]
    title = (
        f"An output token takes the time of {short(larger)} input tokens at batch {first}, of {short(smaller)} at batch {last}"
    )
    opening = label(axis, title, "batch size", "input tokens for one output token")
    return captioned(figure, f"{opening} this machine's time {in_words(points)}; {prices}.", kind, about)


def _medians(axis, sweep: Sequence[Measurement], number: str, metric: str, linestyle: str) -> str:
    """Draw medians and intervals over the repeats. Returns them in words."""
    _, factor, color = _METRICS[metric]
    repeats = {getattr(m, number): [y * factor for y in m.values(getattr(metrics, metric)) if y is not None] for m in sweep}
    frame = pd.DataFrame([(x, y) for x, values in repeats.items() for y in values], columns=["x", "y"])
    sns.lineplot(
        frame, x="x", y="y", estimator="median", errorbar=_interval, err_style="bars", err_kws={"capsize": 3},
        marker="o", markeredgewidth=0, linestyle=linestyle, linewidth=1, color=color, label="measured", legend=False, ax=axis,
    )  # fmt: skip
    words = []
    for x, values in repeats.items():
        low, high = _interval(values)
        spread = "" if math.isnan(low) else f" ({short(low)} to {short(high)})"
        words += [f"{short(metrics.median(values))}{spread} at {short(x)}"] if values else []
    return ", ".join(words)


def _interval(values) -> tuple[float, float]:
    """The interval of a median as seaborn asks for it; one repeat has none, and no bar."""
    return metrics.interval(list(values)) or (math.nan, math.nan)


def _between(values: Sequence[int], steps: int = 60) -> list[int]:
    """Whole numbers from the first to the last value, all the given ones among them."""
    low, high = min(values), max(values)
    return sorted({*values, *(round(low + (high - low) * step / steps) for step in range(steps + 1))})
