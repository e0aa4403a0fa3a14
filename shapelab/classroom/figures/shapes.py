"""Where a request spends its time: whole requests as bars, the passes of one, a token read beside a token written."""

from collections.abc import Sequence
from statistics import median

from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from shapelab.classroom.figures.colours import DECODE, INK, PREFILL
from shapelab.classroom.figures.drawn import Drawn, canvas, captioned, label, not_empty, ratio, verbatim
from shapelab.classroom.html import brief, short
from shapelab.record import metrics
from shapelab.record.measurement import Measurement
from shapelab.record.run import Run


@verbatim
def timelines(run: Run) -> Drawn:
    """Each shape as a bar over time, prefill then decode; medians over the repeats."""
    rows = [(m, m.median(metrics.ttft_s), m.median(metrics.total_s)) for m in not_empty(run.measurements)]
    longest = max(total for _, _, total in rows)
    figure, (axis,) = canvas(1.6 + 0.62 * len(rows))
    for row, (_, ttft, total) in enumerate(rows):
        axis.barh(row, ttft, color=PREFILL, height=0.6)
        axis.barh(row, total - ttft, left=ttft, color=DECODE, height=0.6)
        axis.text(total + longest * 0.01, row, f"{total:.2f} s", va="center", fontsize=9, color=INK)
    axis.set_yticks(range(len(rows)), [_row_label(m) for m, _, _ in rows])
    axis.invert_yaxis()
    axis.set_xlim(0, longest * 1.14)
    phases = {"prefill: until the first token": PREFILL, "decode: one token a pass": DECODE}
    patches = [Patch(color=color, label=name) for name, color in phases.items()]
    axis.legend(handles=patches, frameon=False, fontsize=9, ncols=2, loc="lower right", bbox_to_anchor=(1, 1))
    opening = label(axis, "Where a request spends its time", "seconds since the prompt reached the device", grid="x")
    parts = [f"{m.name} ({m.shape}): first token after {short(ttft)} s, all after {short(total)} s" for m, ttft, total in rows]
    return captioned(figure, f"{opening} {'; '.join(parts)}.", "measured", run.environment.label)


@verbatim
def step_times(seconds: Sequence[float], about: str, *, kind: str = "measured") -> Drawn:
    """Time of each pass of one run, in the order they ran: the prefill first, then the decode steps."""
    prefill, *steps = [value * 1e3 for value in not_empty(seconds)]
    figure, (axis,) = canvas(3.4)
    axis.bar([1], [prefill], color=PREFILL, label="prefill")
    axis.bar(range(2, len(steps) + 2), steps, color=DECODE, label="decode step")
    axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    axis.set_xlim(0.3, len(steps) + 1.7)
    axis.legend(frameon=False)
    title, words = "The prefill", f"prefill {short(prefill)} ms."
    if steps:
        title = f"The prefill takes {ratio(prefill, median(steps))} times as long as a decode step"
        words += f" {len(steps)} decode steps, {short(min(steps))} to {short(max(steps))} ms."
    opening = label(axis, title, "output token", "milliseconds for its pass")
    return captioned(figure, f"{opening} {words}", kind, about)


@verbatim
def read_and_write(read_ms: float, write_ms: float, about: str, title: str = "") -> Drawn:
    """A token read beside a token written, in milliseconds. The title, if none is given, says how many times longer one takes."""
    figure, (axis,) = canvas(2.2)
    values = {"a token read": read_ms, "a token written": write_ms}
    bars = axis.barh(list(values), list(values.values()), color=[PREFILL, DECODE])
    axis.bar_label(bars, [f"{short(value)} ms" for value in values.values()], padding=4)
    axis.invert_yaxis()
    axis.set_xlim(min(0, read_ms), max(read_ms, write_ms) * 1.15 or 1)
    if not title:
        title = f"A token written takes {ratio(write_ms, read_ms)} times as long as a token read, on average"
    opening = label(axis, title, "milliseconds", grid="x")
    return captioned(figure, f"{opening} {', '.join(f'{k} {short(v)}' for k, v in values.items())}.", "measured", about)


def _row_label(measurement: Measurement) -> str:
    batch = f", batch {measurement.batch_size}" if measurement.batch_size > 1 else ""
    cached = f"{measurement.cached_tokens:,} cached + " if measurement.cached_tokens else ""
    return f"{brief(measurement.name)}\n{cached}{measurement.input_tokens:,} in, {measurement.output_tokens:,} out{batch}"
