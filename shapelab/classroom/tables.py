"""Runs, fitted models, findings and frames as tables to read: rounded, with units, the few columns that matter."""

from collections.abc import Sequence

from shapelab.claims.finding import Finding
from shapelab.classroom.html import short
from shapelab.classroom.table_format import Table, cell
from shapelab.predict.latency import LatencyModel
from shapelab.record.measurement import Measurement
from shapelab.record.run import Run
from shapelab.theory.roofline import HELPS, Verdict

_SUMMARY = (  # heading, name in a measurement's summary, how it is written, units in one of the summary's
    ("TTFT s", "ttft_s", ".3f", 1),
    ("TPOT ms", "tpot_s", ".1f", 1e3),
    ("total s", "total_s", ".2f", 1),
    ("prefill tok/s", "prefill_tokens_per_s", ",.0f", 1),
    ("decode tok/s", "decode_tokens_per_s", ",.1f", 1),
    ("prefill share", "prefill_share", ".0%", 1),
)


def shapes_table(run: Run) -> Table:
    """One row a measured shape: TTFT, TPOT, total and rates."""
    rows = [(_name(m), f"{m.input_tokens:,}", f"{m.output_tokens:,}", *_summary(m)) for m in run.measurements]
    headings = ("shape", "in", "out", *(heading for heading, *_ in _SUMMARY))
    fewest = min((len(m.repeats) for m in run.measurements), default=0)
    counted = "One repeat" if fewest == 1 else f"Medians of {fewest} repeats"
    note = f"{counted}. TTFT: time to first token. TPOT: time per output token after it. Rates over the whole batch."
    return Table(headings, rows, f"Measured: {run.environment.label}", note if rows else "Nothing was measured.")


def _summary(measurement: Measurement) -> list[str | None]:
    values = measurement.summary()
    return [None if values[name] is None else format(values[name] * factor, form) for _, name, form, factor in _SUMMARY]


def _name(measurement: Measurement) -> str:
    """A measurement's name, with its shape where the two columns of tokens do not tell it."""
    plain = measurement.batch_size == 1 and not measurement.cached_tokens
    same = measurement.name == str(measurement.shape)
    return measurement.name if plain or same else f"{measurement.name} ({measurement.shape})"


def terms_table(model: LatencyModel) -> Table:
    """A fitted machine as a price list: what each pass, token and sequence costs, in microseconds."""
    rows = [
        (phase, term, None if start != start else f"{start:,.0f}", short(seconds * 1e6), each)  # NaN: the term counts from 0 on
        for phase, term, start, seconds, each in model.to_frame().itertuples(index=False)
    ]
    return Table(
        ("phase", "term", "from", "microseconds", "for each"), rows, f"Fitted to {model.points} shapes: {model.environment.label}",
        "From: the price applies to tokens or sequences beyond this number.",
    )  # fmt: skip


def regimes_table(verdicts: dict[str, Verdict], about: str) -> Table:
    """Measured time, the two floors, the overhead, and which of them explains most; in milliseconds and per cent."""
    rows = []
    for name, v in verdicts.items():
        parts = zip((v.compute_s, v.memory_s, v.overhead_s), v.shares.values(), strict=True)
        explained = [f"{seconds * 1e3:,.1f} ({share:.0%})" for seconds, share in parts]
        regime = f"{v.regime}-bound{'' if v.clear else ', not clearly'}"
        rows.append((name, f"{v.measured_s * 1e3:,.1f}", *explained, f"{v.unexplained:.0%}", regime))
    notes = [
        "Arithmetic and bytes: the time each would take alone at this machine's ceilings. Not clearly: the verdict explains less than stays unexplained."
    ]
    notes += [f"{name}: {note}" for name, v in verdicts.items() for note in v.notes]
    notes += [f"If {regime}-bound, what helps: {HELPS[regime]}" for regime in sorted({v.regime for v in verdicts.values()})]
    headings = ("pass", "measured ms", "arithmetic ms", "bytes ms", "overhead ms", "unexplained", "verdict")
    return Table(headings, rows, f"Measured: {about}", " ".join(notes), frozenset(range(1, 6)))


def claims_table(findings: Sequence[Finding]) -> Table:
    """What was reported, what was predicted and measured here, the verdict, and why."""
    columns = {
        "claim": [f"{f.id}. {f.claim}" for f in findings],
        "reported (TinyLlama 1.1B, T4)": [f.reported for f in findings],
        "predicted": [f.predicted for f in findings],
        "measured here": [f.measured for f in findings],
        "verdict": [f.verdict.replace("_", " ") for f in findings],
        "why": [f.why for f in findings],
    }
    if all(f.predicted == "-" for f in findings):
        del columns["predicted"]
    return Table(tuple(columns), tuple(zip(*columns.values(), strict=True)), numbers=frozenset())


def frame_table(frame, note: str, formats: dict[str, str] | None = None) -> Table:
    """A pandas frame as a table to read, with a sentence under it. formats: how to write a column, as for format()."""
    forms = [(formats or {}).get(name, "") for name in frame.columns]
    rows = [[_written(value, form) for value, form in zip(row, forms, strict=True)] for row in frame.itertuples(index=False)]
    return Table(frame.columns, rows, note=note)


def _written(value, form: str) -> str:
    text = cell(value)
    return text if not form or isinstance(value, str) or text == "-" else format(value, form)


def facts(values: dict) -> Table:
    """Named values, one a line; numbers with the digits that matter."""
    return Table(("", ""), [(name.replace("_", " "), _fact(value)) for name, value in values.items()], numbers=frozenset())


def _fact(value) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_fact(inner)}" for name, inner in value.items())
    return f"{value:,.4g}" if isinstance(value, float) and value == value else cell(value)
