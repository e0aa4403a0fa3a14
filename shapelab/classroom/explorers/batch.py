"""Batch explorer: what a machine writes, and how long each reader waits, as the batch grows."""

from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

from shapelab.classroom.explorers.machines import about, fits, gigabytes, machine_panel, memory, refuse_what_does_not_fit
from shapelab.classroom.explorers.panel import BARS, BATCHES, TOKENS, USD_PER_HOUR, Bar, Panel, View, steps
from shapelab.classroom.figures.colours import DECODE
from shapelab.classroom.html import short
from shapelab.classroom.table_format import Table
from shapelab.cost.machine_hours import machine_cost
from shapelab.errors import NotEnoughMeasured
from shapelab.predict.machine import Machine
from shapelab.record.run import Run
from shapelab.request.shape import RequestShape

FREE = 1.25  # a doubling is nearly free while a reader waits at most a quarter longer for a token


class BatchRow(NamedTuple):
    """A batch on a machine. tokens_per_s: of decode, the whole batch together; bytes are None where nobody knows them."""

    batch_size: int
    tokens_per_s: float
    tpot_s: float
    ttft_s: float
    kv_bytes: float | None
    left_bytes: float | None
    usd_per_million_output_tokens: float
    extrapolates: tuple[str, ...]


def batch_rows(machine: Machine, shape: RequestShape, usd_per_hour: float) -> list[BatchRow]:
    """The shape (of 2 output tokens or more) at each of BATCHES, as far as the machine was measured and its memory reaches.

    A batch of 1 is always there, extrapolated if need be. Raises DoesNotFit where the memory does not hold even that.
    """
    rows = []
    for size in BATCHES:
        batch = replace(shape, batch_size=size)
        try:
            p = machine.predict(batch)
        except NotEnoughMeasured:
            if size == 1:
                raise
            break  # a run of one batch size says nothing about others
        if size == 1:
            refuse_what_does_not_fit(machine, batch)
        elif p.extrapolates or not fits(machine, batch):
            break
        usd = machine_cost(machine, batch, usd_per_hour).usd_per_million_output_tokens
        rows.append(BatchRow(size, size / p.tpot_s, p.tpot_s, p.ttft_s, *memory(machine, batch), usd, p.extrapolates))
    return rows


def batch_view(machine: Machine, input_tokens: int, output_tokens: int, usd_per_hour: float = 0.35) -> View:
    """Throughput, a reader's wait, memory and USD as the batch grows. A single output token needs no decode; two are taken then."""
    shape = RequestShape(input_tokens, max(2, output_tokens))
    rows = batch_rows(machine, shape, usd_per_hour)
    doublings = {row.batch_size: after.tpot_s / row.tpot_s for row, after in pairwise(rows)}
    costly = next((size for size, ratio in doublings.items() if ratio > FREE), None)
    bars = [
        Bar(
            f"batch {row.batch_size}", ((row.tokens_per_s, DECODE),),
            f"doubling from here: {doublings[costly] - 1:.0%} more wait" if row.batch_size == costly else "",
        )
        for row in rows
    ]  # fmt: skip
    headings = (
        "batch", "tokens/s, all together", "TPOT ms", "TTFT s", "KV cache GB", "memory left GB", "USD a million output tokens"
    )  # fmt: skip
    table = Table(headings, [_cells(row) for row in rows])
    words = [_ends(rows), _doubling(doublings, costly)]
    if rows[0].extrapolates:
        words.append(f"Extrapolated: {'; '.join(rows[0].extrapolates)}.")
    following = 2 * rows[-1].batch_size
    if following in BATCHES and not fits(machine, replace(shape, batch_size=following)):
        words.append(f"Batch {following} does not fit in memory.")
    text = f"{' '.join(words)} ({about(machine)}.)"
    axis = "decode tokens a second, all together"
    return View("What the machine writes", axis, tuple(bars[-BARS:]), about(machine), text, table)


def _cells(row: BatchRow) -> tuple:
    return (
        str(row.batch_size), f"{row.tokens_per_s:,.0f}", short(row.tpot_s * 1e3), short(row.ttft_s),
        gigabytes(row.kv_bytes), gigabytes(row.left_bytes), short(row.usd_per_million_output_tokens),
    )  # fmt: skip


def _ends(rows: list[BatchRow]) -> str:
    alone, last = rows[0], rows[-1]
    return (
        f"At batch {last.batch_size} each reader waits {last.tpot_s / alone.tpot_s:.2f} times as long for a token as a single one would, and the "
        f"machine writes {last.tokens_per_s / alone.tokens_per_s:.1f} times as many."
    )


def _doubling(doublings: dict[int, float], costly: int | None) -> str:
    if not doublings:
        return "No doubling of this shape is known."
    if costly is None:
        return "Every doubling shown is nearly free: a reader waits at most a quarter longer."
    return (
        f"Doubling stops being nearly free at batch {costly}: from there to {2 * costly} a reader waits "
        f"{doublings[costly] - 1:.0%} longer."
    )


def batch_explorer(run: Run | None = None) -> Panel:
    """The batch from 1 upwards: throughput, a reader's wait, memory, USD. `run`: a run of your own to choose as well."""
    controls = {
        "input_tokens": steps("input tokens", TOKENS, 64),
        "output_tokens": steps("output tokens", TOKENS[1:-1], 64),
        "usd_per_hour": steps("USD an hour", USD_PER_HOUR, 0.35),
    }
    return machine_panel("Batch explorer", batch_view, run, controls)
