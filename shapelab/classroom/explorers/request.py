"""Request explorer: one request as a timeline, and its tokens rearranged."""

from dataclasses import replace
from typing import NamedTuple

from shapelab.classroom.explorers.machines import about, machine_panel, refuse_what_does_not_fit
from shapelab.classroom.explorers.panel import BATCHES, TOKENS, Bar, Panel, View, steps
from shapelab.classroom.figures.colours import DECODE, PREFILL
from shapelab.classroom.html import short
from shapelab.classroom.table_format import Table
from shapelab.predict.machine import Machine, Prediction
from shapelab.record.run import Run
from shapelab.request.shape import RequestShape
from shapelab.theory.roofline import Verdict


class RequestRow(NamedTuple):
    """A request on a machine. verdicts: what its prefill and decode wait for; empty where nobody knows."""

    prediction: Prediction
    verdicts: dict[str, Verdict]

    @property
    def prefill_share(self) -> float:
        return self.prediction.ttft_s / self.prediction.total_s


def request_rows(machine: Machine, shape: RequestShape) -> list[RequestRow]:
    """The request itself, then the same number of tokens with 95, 50 and 5 per cent of them as input."""
    refuse_what_does_not_fit(machine, shape)
    total = shape.input_tokens + shape.output_tokens
    inputs = {min(max(1, round(total * share)), total - 1) for share in (0.95, 0.5, 0.05)}  # at least one token on each side
    rearranged = [replace(shape, input_tokens=n, output_tokens=total - n) for n in sorted(inputs, reverse=True)]
    return [RequestRow(machine.predict(each), machine.verdicts(each)) for each in (shape, *rearranged)]


def request_view(machine: Machine, input_tokens: int, output_tokens: int, cached_tokens: int = 0, batch_size: int = 1) -> View:
    """Times of the request and of its rearranged tokens, and what its passes wait for."""
    shape = RequestShape(input_tokens, output_tokens, batch_size, cached_tokens)
    rows = request_rows(machine, shape)
    others = [f"{row.prediction.shape.input_tokens:,} + {row.prediction.shape.output_tokens:,}" for row in rows[1:]]
    labels = ["this request", *others]
    bars = [
        Bar(label, ((row.prediction.ttft_s, PREFILL), (row.prediction.total_s - row.prediction.ttft_s, DECODE)))
        for label, row in zip(labels, rows, strict=True)
    ]
    table = Table(
        ("", "shape", "TTFT s", "TPOT ms", "total s", "prefill share", "waits for"),
        [(label + (" *" if row.prediction.extrapolates else ""), *_cells(row)) for label, row in zip(labels, rows, strict=True)],
    )
    return View(
        f"{shape}, and its {input_tokens + output_tokens:,} tokens rearranged", "seconds: first prefill (blue), then decode (orange)",
        tuple(bars), about(machine), f"{_words(rows, machine.assumption)} ({about(machine)}.)", table,
    )  # fmt: skip


def _cells(row: RequestRow) -> tuple:
    p = row.prediction
    tpot_ms = None if p.tpot_s is None else short(p.tpot_s * 1e3)
    waits = ", ".join(v.regime for v in row.verdicts.values()) or None
    return str(p.shape), short(p.ttft_s), tpot_ms, short(p.total_s), f"{row.prefill_share:.0%}", waits


def _words(rows: list[RequestRow], assumption: str) -> str:
    p = rows[0].prediction
    low, high = p.total_interval_s
    interval = f", 90 % interval {short(low)} to {short(high)} s" if high > low else ""
    sentences = [
        f"{p.shape}: first token after {short(p.ttft_s)} s, all after {short(p.total_s)} s{interval}; "
        f"{rows[0].prefill_share:.0%} of it prefill.",
        _waits(rows[0].verdicts, assumption),
    ]
    if p.extrapolates:
        sentences.append(f"Extrapolated: {'; '.join(p.extrapolates)}.")
    if any(row.prediction.extrapolates for row in rows[1:]):
        sentences.append("Rows with * are extrapolated, too.")
    return " ".join(sentences)


def _waits(verdicts: dict[str, Verdict], assumption: str) -> str:
    """What each phase waits for, in a sentence."""
    if not verdicts:
        return "This run does not record the machine's limits, so the panel cannot say what its passes wait for."
    phases = "; ".join(
        f"{phase} waits most for {v.regime} ({v.shares[v.regime]:.0%} of its time{'' if v.clear else ', not clearly'})"
        for phase, v in verdicts.items()
    )
    return f"By the data sheet, with {assumption}, {phases}." if assumption else f"{phases.capitalize()}."


def request_explorer(run: Run | None = None) -> Panel:
    """Sliders for a request's four numbers. `run`: a run of your own to choose as well."""
    controls = {
        "input_tokens": steps("input tokens", TOKENS, 1205),
        "output_tokens": steps("output tokens", TOKENS[:-1], 25),
        "cached_tokens": steps("cached tokens", (0, *TOKENS), 0),
        "batch_size": steps("batch size", BATCHES, 1),
    }
    return machine_panel("Request explorer", request_view, run, controls)
