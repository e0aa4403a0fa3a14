"""One style for every figure: prefill blue, decode orange, overhead grey, and a caption that says whose numbers these are."""

import base64
import io
from collections.abc import Sequence
from dataclasses import replace

import matplotlib.pyplot as plt
import seaborn as sns
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator

from shapelab.classroom.html import escape, short
from shapelab.record import metrics
from shapelab.record.measurement import Measurement
from shapelab.record.run import Run
from shapelab.theory.roofline import Verdict

_PALETTE = sns.color_palette("colorblind").as_hex()
PREFILL, DECODE, OVERHEAD = _PALETTE[0], _PALETTE[1], _PALETTE[7]
_INK, _FAINT = "#333333", "#d9d9d9"


def caption(figure: Figure, kind: str, about: str):
    """Write "measured: model, dtype, machine" (or predicted, reported) under a figure."""
    figure.supxlabel(f"{kind}: {about}", fontsize=8, x=0.01, ha="left", color=_INK, parse_math=False)


def png(figure: Figure) -> bytes:
    """A figure as PNG; it is closed."""
    with io.BytesIO() as file:
        figure.savefig(file, format="png", dpi=110)
        plt.close(figure)
        return file.getvalue()


def picture(figure: Figure, alt: str) -> str:
    """A figure inside a page, with what it shows in words for those who do not see it."""
    return (
        f'<img alt="{escape(alt)}" style="max-width:100%" src="data:image/png;base64,{base64.b64encode(png(figure)).decode()}">'
    )


def words(figure: Figure) -> str:
    """What a figure of lines or bars shows, with its values: for those who do not see it, and for reading them exactly."""
    said = []
    for axis in figure.axes:
        across, up = axis.get_xlabel(), axis.get_ylabel()
        said.append(f"{axis.get_title(loc='left') or figure.get_suptitle()} ({f'{up}, over {across}' if up else across}):")
        for line in axis.lines:
            if len(set(line.get_ydata())) > 1 or len(line.get_ydata()) > 2:  # not a level drawn across, nor one point made larger
                name = "" if line.get_label().startswith("_") else f"{line.get_label()}: "
                said.append(name + ", ".join(f"{short(y)} at {short(x)}" for x, y in line.get_xydata()) + ".")
        names = [label.get_text() for label in axis.get_yticklabels()]
        for bars in axis.containers:
            lying = bars.orientation == "horizontal"
            values = [bar.get_width() if lying else bar.get_height() for bar in bars]
            label = "" if bars.get_label().startswith("_") else f"{bars.get_label()}: "
            if lying:
                said.append(", ".join(f"{name} {short(value)}" for name, value in zip(names, values, strict=False)) + ".")
            elif len(values) > 1:
                said.append(f"{label}{short(min(values))} to {short(max(values))}, {len(values)} of them.")
            else:
                said.append(f"{label}{short(values[0])}.")
    return " ".join(said)


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
        f"{m.name} ({m.shape}): first token after {short(m.median(metrics.ttft_s))} s, all after {short(m.median(metrics.total_s))} s"
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
    axis.bar_label(bars, [f"{short(read_ms)} ms", f"{short(write_ms)} ms"], padding=4)
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


_LINE_TITLES = {
    "input_tokens": "input tokens",
    "output_tokens": "output tokens",
    "cached_tokens": "cached tokens (context before the prompt)",
    "batch_size": "batch size",
}
_AXES = {
    "ttft_s": ("TTFT in seconds", 1, PREFILL),
    "tpot_s": ("TPOT in milliseconds", 1e3, DECODE),
    "total_s": ("total in seconds", 1, _INK),
}


def along(run: Run, number: str, shown: Sequence[str] = ("ttft_s", "tpot_s"), model=None) -> Figure:
    """One of the four numbers changed alone: a panel for each of `shown`, median and interval, from zero on both axes.

    model  a LatencyModel; its prediction is drawn as a dashed line.
    """
    line = run.along(number)
    figure, axes = plt.subplots(1, len(shown), figsize=(9, 3.6), layout="constrained", squeeze=False)
    values = [getattr(m, number) for m in line]
    for axis, name in zip(axes[0], shown, strict=True):
        label, factor, color = _AXES[name]
        metric = getattr(metrics, name)
        points = [(x, m.median(metric), m.interval(metric)) for x, m in zip(values, line, strict=True) if m.median(metric)]
        spread = [[(y - low) * factor for _, y, (low, _) in points], [(high - y) * factor for _, y, (_, high) in points]]
        axis.errorbar(
            [x for x, _, _ in points], [y * factor for _, y, _ in points], spread,
            fmt="o", color=color, capsize=3, label="measured", zorder=3,
        )  # fmt: skip
        if model is not None:
            steps = _between(values)
            shapes = [replace(line[0].shape, **{number: x}) for x in steps]
            predicted = [getattr(model.predict(shape), name) for shape in shapes]
            kept = [(x, y * factor) for x, y in zip(steps, predicted, strict=True) if y is not None]
            axis.plot(*zip(*kept, strict=True), color=color, linestyle="--", linewidth=1.2, label="predicted")
            axis.legend(frameon=False, fontsize=9)
        axis.set_ylim(0, axis.get_ylim()[1] * 1.08)
        axis.set_xlim(left=-0.02 * max(values))  # a point at 0 is drawn whole
        axis.set_xlabel(_LINE_TITLES[number])
        axis.set_ylabel(label)
        _clean(axis)
    held = [
        f"{getattr(line[0], other):,} {words.split(' (')[0]}"
        for other, words in _LINE_TITLES.items()
        if other not in (number, "batch_size")
    ]
    if number != "batch_size":
        held.append(f"batch {line[0].batch_size}")
    figure.suptitle(f"Along the {_LINE_TITLES[number].split(' (')[0]}; held: {', '.join(held)}", x=0.01, ha="left", fontsize=12)
    caption(figure, "measured" if model is None else "measured and predicted", run.environment.label)
    return figure


def line_alt_text(run: Run, number: str) -> str:
    """What `along` shows, in words."""
    parts = []
    for m in run.along(number):
        tpot = m.median(metrics.tpot_s)
        written = "" if tpot is None else f", TPOT {short(tpot * 1e3)} ms"
        parts.append(
            f"{getattr(m, number):,}: TTFT {short(m.median(metrics.ttft_s))} s{written}, total {short(m.median(metrics.total_s))} s"
        )
    return f"Along the {_LINE_TITLES[number].split(' (')[0]}. " + "; ".join(parts) + "."


def trade_off(points: Sequence[tuple[int, float, float]], about: str, kind: str = "measured") -> Figure:
    """Throughput against latency: (batch size, TPOT in seconds, decode tokens/s of the whole batch), each batch size written on."""
    figure, axis = plt.subplots(figsize=(9, 4), layout="constrained")
    waits, rates = [tpot * 1e3 for _, tpot, _ in points], [rate for _, _, rate in points]
    axis.plot(waits, rates, marker="o", color=DECODE)
    for (batch, _, _), x, y in zip(points, waits, rates, strict=True):
        axis.annotate(f"batch {batch}", (x, y), xytext=(7, -11), textcoords="offset points", fontsize=9, color=_INK)
    axis.set_xlim(0, max(waits) * 1.15)
    axis.set_ylim(0, max(rates) * 1.12)
    axis.set_xlabel("TPOT in milliseconds: how long each reader waits for a token")
    axis.set_ylabel("decode tokens a second, all together")
    axis.set_title("What the machine gains, and what each reader pays", loc="left", fontsize=12)
    _clean(axis)
    axis.grid(axis="both", color=_FAINT, linewidth=0.6)
    caption(figure, kind, about)
    return figure


def starving(points: Sequence[tuple[int, float]], about: str, kind: str = "measured") -> Figure:
    """Prefill throughput over input length: (input tokens, tokens/s), the length on a logarithmic axis."""
    figure, axis = plt.subplots(figsize=(9, 3.4), layout="constrained")
    axis.plot([n for n, _ in points], [rate for _, rate in points], marker="o", color=PREFILL)
    axis.set_xscale("log")
    axis.set_xticks([n for n, _ in points], [f"{n:,}" for n, _ in points])
    axis.minorticks_off()
    axis.set_ylim(0, max(rate for _, rate in points) * 1.12)
    axis.set_xlabel("input tokens")
    axis.set_ylabel("prefill tokens a second")
    axis.set_title("Prefill throughput over the length of the prompt", loc="left", fontsize=12)
    _clean(axis)
    caption(figure, kind, about)
    return figure


def lines(
    series: dict[str, Sequence[tuple[float, float]]], xlabel: str, ylabel: str, title: str, about: str, kind: str = "measured"
) -> Figure:
    """Several lines over one number, from zero, each with its own marker and its name at the end."""
    figure, axis = plt.subplots(figsize=(9, 3.6), layout="constrained")
    for (name, points), marker, color in zip(series.items(), "osD^v", sns.color_palette("colorblind")[2:], strict=False):
        axis.plot(*zip(*points, strict=True), marker=marker, color=color, label=name)
        axis.annotate(name, points[-1], xytext=(8, 0), textcoords="offset points", va="center", fontsize=9, parse_math=False)
    axis.set_xlim(left=0, right=axis.get_xlim()[1] * 1.12)
    axis.set_ylim(0, axis.get_ylim()[1] * 1.05)
    axis.set_xlabel(xlabel)
    axis.set_ylabel(ylabel)
    axis.set_title(title, loc="left", fontsize=12)
    _clean(axis)
    caption(figure, kind, about)
    return figure


def regimes(verdicts: dict[str, Verdict], about: str, kind: str = "measured") -> Figure:
    """Each pass as a bar of 100 %: overhead, the longer of arithmetic and bytes, and what neither explains."""
    figure, axis = plt.subplots(figsize=(9, 1.5 + 0.5 * len(verdicts)), layout="constrained")
    for row, verdict in enumerate(verdicts.values()):
        shares = verdict.shares
        compute = shares["compute"] >= shares["memory"]
        floor = max(shares["compute"], shares["memory"])
        parts = [(shares["overhead"], OVERHEAD, "overhead", ""), (floor, PREFILL if compute else DECODE, "arithmetic" if compute else "bytes", ""),
                 (verdict.unexplained, "white", "", "///")]  # fmt: skip
        left = 0.0
        for share, color, name, hatch in parts:
            axis.barh(row, share * 100, left=left, color=color, hatch=hatch, edgecolor=_FAINT if hatch else color, height=0.6)
            if name and share > 0.12:
                axis.text(
                    left + share * 50,
                    row,
                    f"{name} {share:.0%}",
                    ha="center",
                    va="center",
                    fontsize=9,
                    color="white" if color == PREFILL else "black",
                )
            left += share * 100
    axis.set_yticks(
        range(len(verdicts)), [f"{name}\n{v.measured_s * 1e3:,.1f} ms" for name, v in verdicts.items()], parse_math=False
    )
    axis.invert_yaxis()
    axis.set_xlim(0, max(100.0, axis.get_xlim()[1]))
    axis.set_xlabel("per cent of the measured time; each part as it would take alone")
    looks = [
        {"color": OVERHEAD},
        {"color": PREFILL},
        {"color": DECODE},
        {"facecolor": "white", "edgecolor": _FAINT, "hatch": "///"},
    ]
    names = ["overhead", "arithmetic", "bytes", "explained by none"]
    patches = [plt.Rectangle((0, 0), 1, 1, **look) for look in looks]
    axis.legend(patches, names, frameon=False, fontsize=8, ncols=4, loc="lower right", bbox_to_anchor=(1, 1))
    axis.set_title("Where a pass spends its time", loc="left", fontsize=12)
    _clean(axis)
    caption(figure, kind, about)
    return figure


def cost_ratio(points: Sequence[tuple[int, float]], price_ratio: float, about: str, kind: str = "measured") -> Figure:
    """Machine time of an output token in input tokens, over the batch size, beside the median public price ratio."""
    figure, axis = plt.subplots(figsize=(9, 3.6), layout="constrained")
    axis.plot(
        [batch for batch, _ in points], [ratio for _, ratio in points], marker="o", color=DECODE, label="this machine's time"
    )
    axis.axhline(price_ratio, color=OVERHEAD, linestyle="--", label=f"median of public prices: {price_ratio:.1f}")
    axis.set_xscale("log", base=2)
    axis.set_xticks([batch for batch, _ in points], [str(batch) for batch, _ in points])
    axis.minorticks_off()
    axis.set_ylim(0, max(price_ratio, *(ratio for _, ratio in points)) * 1.1)
    axis.set_xlabel("batch size")
    axis.set_ylabel("input tokens for one output token")
    axis.set_title("The machine time of an output token, in input tokens, as the batch grows", loc="left", fontsize=12)
    axis.legend(frameon=False, fontsize=9)
    _clean(axis)
    caption(figure, kind, about)
    return figure


def guessed(predicted: float, measured: float, unit: str, about: str, kind: str = "measured") -> Figure:
    """A predicted number beside the measured one."""
    figure, axis = plt.subplots(figsize=(7.6, 2), layout="constrained")
    values = [predicted, measured]
    bars = axis.barh(["your prediction", kind], values, color=[OVERHEAD, DECODE], height=0.6)
    axis.bar_label(bars, [short(value) for value in values], padding=4)
    axis.invert_yaxis()
    axis.set_xlim(0, max(values) * 1.15)
    axis.set_xlabel(unit)
    _clean(axis, along="x")
    caption(figure, kind, about)
    return figure


def sketched(
    predicted: Sequence[tuple[float, float]] | None, measured: Sequence[tuple[float, float]] | None,
    xlabel: str, unit: str, about: str, kind: str = "measured", highest: float | None = None,
) -> Figure:  # fmt: skip
    """A sketched curve and the measured one, from zero. Either may be missing. highest: an axis that stands still."""
    figure, axis = plt.subplots(figsize=(7.6, 3), layout="constrained")
    shown = [("your prediction", predicted, "o--", OVERHEAD), (kind, measured, "s-", DECODE)]
    for name, points, style, color in shown:
        if points:
            axis.plot(*zip(*points, strict=True), style, color=color, label=name)
    axis.set_xticks([x for x, _ in measured or predicted])
    axis.set_ylim(0, highest or axis.get_ylim()[1] * 1.05)
    axis.set_xlabel(xlabel)
    axis.set_ylabel(unit)
    axis.legend(frameon=False, fontsize=9)
    _clean(axis)
    caption(figure, kind if measured else "predicted", about)
    return figure


def factors_off(offs: Sequence[tuple[str, float]], close: float) -> Figure:
    """How many times each prediction was off, in the order of the course; 1 is exact."""
    figure, axis = plt.subplots(figsize=(7.6, 2.8), layout="constrained")
    axis.plot([name for name, _ in offs], [min(off, 1e4) for _, off in offs], "o-", color=DECODE)
    axis.axhline(close, color=OVERHEAD, linestyle="--", label=f"close: within a factor of {close}")
    axis.set_yscale("log")
    axis.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.yaxis.set_major_formatter("{x:,g}")
    axis.minorticks_off()
    axis.set_ylim(0.9, max(10, *(min(off, 1e4) * 1.3 for _, off in offs)))
    axis.set_ylabel("times too large or too small")
    axis.legend(frameon=False, fontsize=9)
    _clean(axis)
    caption(figure, "your predictions", "numbers and curves, in the order of the course")
    return figure


def _between(values: Sequence[int], steps: int = 60) -> list[int]:
    """Whole numbers from the first to the last value, all the given ones among them."""
    low, high = min(values), max(values)
    return sorted({*values, *(round(low + (high - low) * step / steps) for step in range(steps + 1))})


def _timeline(axis, row: int, measurement: Measurement, longest: float):
    ttft, total = measurement.median(metrics.ttft_s), measurement.median(metrics.total_s)
    axis.barh(row, ttft, color=PREFILL, height=0.6)
    axis.barh(row, total - ttft, left=ttft, color=DECODE, height=0.6)
    axis.text(total + longest * 0.01, row, f"{total:.2f} s", va="center", fontsize=9, color=_INK)


def _row_label(measurement: Measurement) -> str:
    batch = f", batch {measurement.batch_size}" if measurement.batch_size > 1 else ""
    cached = f"{measurement.cached_tokens:,} cached + " if measurement.cached_tokens else ""
    return f"{measurement.name}\n{cached}{measurement.input_tokens:,} in, {measurement.output_tokens:,} out{batch}"


def _clean(axis, along: str = ""):
    axis.spines[["top", "right"]].set_visible(False)
    axis.grid(axis=along or ("x" if axis.get_xlabel().startswith(("seconds", "milli")) else "y"), color=_FAINT, linewidth=0.6)
    axis.set_axisbelow(True)
