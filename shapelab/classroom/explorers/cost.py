"""Cost explorer: a month's requests at public prices and on a machine, and which change saves most on each."""

from dataclasses import replace
from typing import NamedTuple

from shapelab.classroom.explorers.machines import about, fits, machine_panel, refuse_what_does_not_fit
from shapelab.classroom.explorers.panel import BATCHES, TOKENS, USD_PER_HOUR, Bar, Panel, View, menu, steps
from shapelab.classroom.figures.colours import DECODE
from shapelab.classroom.table_format import Table
from shapelab.cost.machine_hours import machine_cost
from shapelab.cost.price_list import Price, load_prices, price, request_usd
from shapelab.errors import BadArgument, NotEnoughMeasured
from shapelab.predict.machine import Machine
from shapelab.record.run import Run
from shapelab.request.shape import RequestShape, whole

DAYS_A_MONTH = 30
LARGER = "four times the batch"


class Usage(NamedTuple):
    """What is asked of a model: equal requests, a share of whose prompt is cached."""

    input_tokens: int
    output_tokens: int
    cached_share: float = 0.0
    batch_size: int = 1

    @property
    def shape(self) -> RequestShape:
        """At least one token of the prompt is read."""
        cached = min(round(self.input_tokens * self.cached_share), self.input_tokens - 1)
        return RequestShape(self.input_tokens - cached, self.output_tokens, self.batch_size, cached)


class CostRow(NamedTuple):
    """USD of one request at public prices, and of its share of the machine's time."""

    change: str
    at_prices_usd: float
    on_machine_usd: float
    extrapolates: bool


def cost_rows(listed: Price, machine: Machine, usd_per_hour: float, usage: Usage) -> list[CostRow]:
    """The usage as it is, then with each change made; four times the batch only where the memory holds it and the machine knows it."""
    if not 0 <= usage.cached_share < 1:
        raise BadArgument(
            f"cached_share must be at least 0 and below 1, not {usage.cached_share}: the model always reads the last token of a prompt.",
            "cached_share",
        )
    uncached = RequestShape(usage.input_tokens, usage.output_tokens, usage.batch_size)
    refuse_what_does_not_fit(machine, uncached)
    changes = {
        "now": usage,
        "half the prompt": usage._replace(input_tokens=max(1, usage.input_tokens // 2)),
        "half the answer": usage._replace(output_tokens=max(1, usage.output_tokens // 2)),
        "90 % cached": usage._replace(cached_share=max(usage.cached_share, 0.9)),
        LARGER: usage._replace(batch_size=4 * usage.batch_size),
    }
    if not fits(machine, replace(uncached, batch_size=4 * usage.batch_size)):
        del changes[LARGER]
    rows = []
    for change, each in changes.items():
        shape = each.shape
        at_prices = request_usd(listed, shape.input_tokens, shape.output_tokens, shape.cached_tokens)
        try:
            on_machine = machine_cost(machine, shape, usd_per_hour).usd_per_request
        except NotEnoughMeasured:
            if change == LARGER:
                continue  # a run of one batch size says nothing about others
            raise
        rows.append(CostRow(change, at_prices, on_machine, bool(machine.predict(shape).extrapolates)))
    return rows


def cost_view(
    price_name: str, machine: Machine, usd_per_hour: float, input_tokens: int, output_tokens: int, cached_share: float = 0.0,
    requests_a_day: int = 10_000, batch_size: int = 1,
) -> View:  # fmt: skip
    """USD a month at public prices and on a machine, and which of four changes saves most on each."""
    listed, month = price(price_name), whole("requests_a_day", requests_a_day, 1) * DAYS_A_MONTH
    rows = cost_rows(listed, machine, usd_per_hour, Usage(input_tokens, output_tokens, cached_share, batch_size))
    now, *changes = rows
    cheapest = [min(changes, key=lambda row: row.at_prices_usd), min(changes, key=lambda row: row.on_machine_usd)]
    words = [
        f"{requests_a_day:,} requests a day of {input_tokens:,} + {output_tokens:,} tokens: {now.at_prices_usd * month:,.2f} USD a month "
        f"at {price_name}'s prices (as of {listed.as_of}; check them), {now.on_machine_usd * month:,.2f} USD of machine time.",
        f"Saves most at prices: {cheapest[0].change}; on the machine: {cheapest[1].change}.",
    ]
    if any(row.extrapolates for row in rows):
        words.append("Some of the machine times are extrapolated.")
    if all(row.change != LARGER for row in rows):
        words.append("Four times the batch does not fit in memory, or this run says nothing about it.")
    table = Table(
        ("", "at prices, USD a month", "saved", "machine time, USD a month", "saved"),
        [
            (
                row.change, f"{row.at_prices_usd * month:,.2f}", _saved(now.at_prices_usd, row.at_prices_usd),
                f"{row.on_machine_usd * month:,.2f}", _saved(now.on_machine_usd, row.on_machine_usd),
            )
            for row in rows
        ],
    )  # fmt: skip
    bars = tuple(Bar(row.change, ((row.on_machine_usd * month, DECODE),)) for row in rows)
    axis = "USD a month, as long as the machine is busy"
    return View("Machine time a month", axis, bars, about(machine), f"{' '.join(words)} ({about(machine)}.)", table)


def _saved(before: float, after: float) -> str | None:
    return f"{1 - after / before:+.0%}" if before else None


def cost_explorer(run: Run | None = None) -> Panel:
    """Public prices and machine time side by side. `run`: a run of your own to choose as well."""
    controls = {
        "price_name": menu("prices of", list(load_prices()), "claude-haiku-4.5"),
        "usd_per_hour": steps("USD an hour", USD_PER_HOUR, 0.1),
        "input_tokens": steps("prompt tokens", TOKENS, 1024),
        "output_tokens": steps("output tokens", TOKENS[:-1], 128),
        "cached_share": steps("cached share", (0.0, 0.25, 0.5, 0.75, 0.9), 0.0),
        "requests_a_day": steps("requests a day", (100, 1_000, 10_000, 100_000), 10_000),
        "batch_size": steps("batch size", BATCHES[:5], 1),
    }
    return machine_panel("Cost explorer", cost_view, run, controls)
