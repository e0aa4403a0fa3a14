"""A run as a table to read: rounded, with units, the few columns that matter."""

from collections.abc import Sequence

from shapelab.claims.registry import Finding
from shapelab.classroom.html import Card, escape, short
from shapelab.predict.latency import LatencyModel
from shapelab.record.run import Run
from shapelab.theory.roofline import HELPS, Verdict

_COLUMNS = {
    "in": lambda v: f"{v['input_tokens']:,}",
    "out": lambda v: f"{v['output_tokens']:,}",
    "TTFT s": lambda v: _show(v["ttft_s"], ".3f"),
    "TPOT ms": lambda v: _show(v["tpot_s"], ".1f", 1e3),
    "total s": lambda v: _show(v["total_s"], ".2f"),
    "prefill tok/s": lambda v: _show(v["prefill_tokens_per_s"], ",.0f"),
    "decode tok/s": lambda v: _show(v["decode_tokens_per_s"], ",.1f"),
    "prefill share": lambda v: _show(v["prefill_share"], ".0%"),
}
HEADINGS = ("shape", *_COLUMNS)


def rows(run: Run) -> list[tuple[str, ...]]:
    """One row of text a shape, in the order of HEADINGS."""
    return [(_name(m), *(show(m.summary()) for show in _COLUMNS.values())) for m in run.measurements]


def caption(run: Run) -> str:
    fewest = min(len(m.repeats) for m in run.measurements)
    counted = "One repeat" if fewest == 1 else f"Medians of {fewest} repeats"
    return f"{counted}. TTFT: time to first token. TPOT: time per output token after it. Rates over the whole batch."


def shapes_table(run: Run) -> Card:
    """The table for a notebook."""
    text = "\n".join("  ".join(cell.rjust(13) for cell in row) for row in (HEADINGS, *rows(run)))
    note = f"Measured: {run.environment.label}. {caption(run)}"
    return Card(f"{text}\n{note}", f"{html_table(HEADINGS, rows(run))}<small>{escape(note)}</small>")


def terms_table(model: LatencyModel) -> Card:
    """A fitted machine as a price list."""
    body = [
        (phase, term, "-" if start != start else f"{start:,.0f}", microseconds(seconds), each)  # NaN: it counts from nothing on
        for phase, term, start, seconds, each in model.to_frame().itertuples(index=False)
    ]
    note = (
        f"Fitted to {model.points} shapes: {model.environment.label}. From: tokens or sequences from which on the price counts."
    )
    text = "\n".join("  ".join(row) for row in body)
    return Card(f"{text}\n{note}", f"{html_table(TERMS, body)}<small>{escape(note)}</small>")


TERMS = ("phase", "term", "from", "microseconds", "for each")


def microseconds(seconds: float) -> str:
    return short(seconds * 1e6)


def regimes_table(verdicts: dict[str, Verdict], about: str) -> Card:
    """Measured time, the two floors, the overhead, and which of them explains most; in milliseconds and per cent."""
    headings = ("pass", "measured ms", "arithmetic ms", "bytes ms", "overhead ms", "unexplained", "verdict")
    body = []
    for name, v in verdicts.items():
        times = [f"{seconds * 1e3:,.1f}" for seconds in (v.measured_s, v.compute_s, v.memory_s, v.overhead_s)]
        shares = v.shares
        body.append(
            (
                name,
                times[0],
                *(f"{t} ({shares[k]:.0%})" for t, k in zip(times[1:], shares, strict=True)),
                f"{v.unexplained:.0%}",
                f"{v.regime}-bound{'' if v.clear else ', not clearly'}",
            )
        )
    notes = [f"{name}: {note}" for name, v in verdicts.items() for note in v.notes]
    notes += [
        f"What helps where it is {regime}-bound: {HELPS[regime]}" for regime in sorted({v.regime for v in verdicts.values()})
    ]
    note = f"Measured: {about}. Arithmetic and bytes: alone, at this machine's ceilings. Not clearly: more is unexplained than the verdict explains. {' '.join(notes)}".strip()
    text = "\n".join("  ".join(row) for row in (headings, *body))
    return Card(f"{text}\n{note}", f"{html_table(headings, body)}<small>{escape(note)}</small>")


def claims_table(found: Sequence[Finding]) -> Card:
    """The findings as a table for a notebook: reported, measured here, verdict, why."""
    headings = ["claim", "reported (TinyLlama 1.1B, T4)", "predicted", "measured here", "verdict", "why"]
    body = [[f"{f.id}. {f.claim}", f.reported, f.predicted, f.measured, f.verdict.replace("_", " "), f.why] for f in found]
    if all(f.predicted == "-" for f in found):
        headings.remove("predicted")
        body = [row[:2] + row[3:] for row in body]
    return Card("\n".join(f"{f.id} {f.verdict}: {f.measured}. {f.why}" for f in found), html_table(headings, body))


def frame_table(frame, note: str, formats: dict[str, str] | None = None) -> Card:
    """A pandas frame as a table to read, with a sentence under it. formats: how to write a column, as for format()."""
    shown = [[_cell(value, (formats or {}).get(name, "")) for name, value in row.items()] for row in frame.to_dict("records")]
    text = "\n".join("  ".join(row) for row in [list(map(str, frame.columns)), *shown])
    return Card(f"{text}\n{note}", f"{html_table(frame.columns, shown)}<small>{escape(note)}</small>")


def _cell(value, form: str) -> str:
    if value is None or value != value:  # NaN
        return "-"
    return format(value, form) if form and not isinstance(value, str) else str(value)


def facts(values: dict) -> Card:
    """Named values, one a line; numbers with the digits that matter."""
    lines = [(key.replace("_", " "), _fact(value)) for key, value in values.items()]
    return Card("\n".join(f"{key}: {value}" for key, value in lines), html_table(("what", "value"), lines))


def _fact(value) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_fact(inner)}" for key, inner in value.items())
    return f"{value:,.4g}" if isinstance(value, float) else "-" if value is None else str(value)


def html_table(headings, body) -> str:
    """An HTML table, every cell escaped."""
    head = "".join(f'<th scope="col" style="text-align:left">{escape(str(cell))}</th>' for cell in headings)
    lines = ("".join(f'<td style="text-align:left;vertical-align:top">{escape(str(cell))}</td>' for cell in row) for row in body)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(f'<tr>{line}</tr>' for line in lines)}</tbody></table>"


def _name(measurement) -> str:
    plain = measurement.batch_size == 1 and not measurement.cached_tokens
    same = measurement.name == str(measurement.shape)
    return measurement.name if plain or same else f"{measurement.name} ({measurement.shape})"


def _show(value: float | None, form: str, factor: float = 1) -> str:
    return "-" if value is None else format(value * factor, form)
