"""One style for every figure: prefill blue, decode orange, overhead grey, and a caption that says whose numbers these are."""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import seaborn as sns
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator

from shapelab.measure import metrics
from shapelab.measure.record import Measurement, Run

_PALETTE = sns.color_palette("colorblind").as_hex()
PREFILL, DECODE, OVERHEAD = _PALETTE[0], _PALETTE[1], _PALETTE[7]
_INK, _FAINT = "#333333", "#d9d9d9"


def caption(figure: Figure, kind: str, about: str):
    """Write "measured: model, dtype, machine" (or predicted, reported) under a figure."""
    figure.supxlabel(f"{kind}: {about}", fontsize=8, x=0.01, ha="left", color=_INK, parse_math=False)


def timelines(run: Run) -> Figure:
    """Each shape as a bar over time, prefill then decode; medians over the repeats."""
    shown = run.measurements
    figure, axis = plt.subplots(figsize=(9, 1.6 + 0.62 * len(shown)), layout="none")
    figure.subplots_adjust(left=0.2, right=0.97, top=1 - 0.5 / figure.get_figheight(), bottom=0.85 / figure.get_figheight())
    longest = max(m.median(metrics.total_s) for m in shown)
    for row, measurement in enumerate(shown):
        _timeline(axis, row, measurement, longest)
    axis.set_yticks(range(len(shown)), [_row_label(m) for m in shown], parse_math=False)
    axis.invert_yaxis()
    axis.set_xlim(0, longest * 1.14)
    axis.set_xlabel("seconds since the prompt was on the device")
    axis.set_title("Where a request spends its time", loc="left", fontsize=12)
    bars = [plt.Rectangle((0, 0), 1, 1, color=color) for color in (PREFILL, DECODE)]
    figure.legend(
        bars,
        ["prefill: until the first token", "decode: one token a pass"],
        frameon=False,
        fontsize=9,
        ncols=2,
        loc="upper right",
    )
    _clean(axis)
    caption(figure, "measured", run.environment.label)
    return figure


def alt_text(run: Run) -> str:
    """What the timelines figure shows, in words."""
    parts = [
        f"{m.name} ({m.shape}): first token after {m.median(metrics.ttft_s):.3g} s, all after {m.median(metrics.total_s):.3g} s"
        for m in run.measurements
    ]
    return "Timelines, prefill then decode. " + "; ".join(parts) + "."


def step_times(seconds: Sequence[float], about: str, *, kind: str = "measured") -> Figure:
    """Time of each pass of one run, in the order they ran: the prefill first, then the decode steps."""
    figure, axis = plt.subplots(figsize=(9, 3.4), layout="constrained")
    milliseconds = [value * 1e3 for value in seconds]
    axis.bar([1], milliseconds[:1], color=PREFILL, label="prefill")
    axis.bar(range(2, len(milliseconds) + 1), milliseconds[1:], color=DECODE, label="decode step")
    axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    axis.set_xlim(0.3, len(milliseconds) + 0.7)
    axis.set_xlabel("output token")
    axis.set_ylabel("milliseconds for the pass")
    axis.set_title("Time until each output token, counted from the one before", loc="left", fontsize=12)
    axis.legend(frameon=False)
    _clean(axis)
    caption(figure, kind, about)
    return figure


def read_and_write(
    read_ms: float, write_ms: float, about: str, title: str = "A token read and a token written, on average"
) -> Figure:
    """A token read beside a token written, in milliseconds."""
    figure, axis = plt.subplots(figsize=(9, 2.2), layout="constrained")
    bars = axis.barh(["a token read", "a token written"], [read_ms, write_ms], color=[PREFILL, DECODE])
    axis.bar_label(bars, [f"{read_ms:.3g} ms", f"{write_ms:.3g} ms"], padding=4)
    axis.invert_yaxis()
    axis.set_xlim(min(0, read_ms), max(read_ms, write_ms) * 1.15)
    axis.set_xlabel("milliseconds")
    axis.set_title(title, loc="left", fontsize=12)
    _clean(axis)
    caption(figure, "measured", about)
    return figure


def cost_per_row(rows: Sequence[int], seconds: Sequence[float], about: str) -> Figure:
    """Time of the same matrix products, divided by the tokens (rows) that shared them; both axes logarithmic."""
    figure, axis = plt.subplots(figsize=(9, 3.4), layout="constrained")
    axis.loglog(rows, [s / n * 1e6 for s, n in zip(seconds, rows, strict=True)], marker="o", color=PREFILL)
    axis.plot(rows[:1], [seconds[0] / rows[0] * 1e6], marker="o", markersize=9, color=DECODE, linestyle="")
    axis.annotate(
        "one token: decode", (rows[0], seconds[0] / rows[0] * 1e6), xytext=(12, 0), textcoords="offset points", va="center"
    )
    axis.set_xticks(list(rows), [f"{n:,}" for n in rows])
    axis.minorticks_off()
    axis.set_xlabel("tokens that share the pass")
    axis.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.yaxis.set_major_formatter("{x:,g}")
    axis.set_ylabel("microseconds a token")
    axis.set_title("Time a token when so many tokens share the pass", loc="left", fontsize=12)
    _clean(axis)
    caption(figure, "measured", about)
    return figure


def _timeline(axis, row: int, measurement: Measurement, longest: float):
    ttft, total = measurement.median(metrics.ttft_s), measurement.median(metrics.total_s)
    axis.barh(row, ttft, color=PREFILL, height=0.6)
    axis.barh(row, total - ttft, left=ttft, color=DECODE, height=0.6)
    axis.text(total + longest * 0.01, row, f"{total:.2f} s", va="center", fontsize=9, color=_INK)


def _row_label(measurement: Measurement) -> str:
    batch = f", batch {measurement.batch_size}" if measurement.batch_size > 1 else ""
    cached = f"{measurement.cached_tokens:,} cached + " if measurement.cached_tokens else ""
    return f"{measurement.name}\n{cached}{measurement.input_tokens:,} in, {measurement.output_tokens:,} out{batch}"


def _clean(axis):
    axis.spines[["top", "right"]].set_visible(False)
    axis.grid(axis="x" if axis.get_xlabel().startswith(("seconds", "milli")) else "y", color=_FAINT, linewidth=0.6)
    axis.set_axisbelow(True)
