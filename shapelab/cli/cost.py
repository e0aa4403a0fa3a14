"""shapelab cost: what a request costs."""

from dataclasses import asdict
from typing import Annotated

import typer

from shapelab.cli import options
from shapelab.cli.output import print_json, print_table, say
from shapelab.cli.sources import model_of
from shapelab.errors import BadArgument


def cost(
    shape: Annotated[str, typer.Argument(help="A shape such as 1205x24 or 512+64x32@4, or a preset such as rag.")],
    prices: Annotated[str, typer.Option(help="A model of the public price list; `list` shows the names.")] = "",
    usd_per_hour: Annotated[float | None, typer.Option(min=0, help="What a machine costs an hour, with --run.")] = None,
    run: Annotated[
        str, typer.Option(help="The machine paid by the hour: a run's file, a recorded run's name, or a fitted model.")
    ] = "",
    utilisation: Annotated[float, typer.Option(help="Share of the paid hours in which the machine works, up to 1.")] = 1.0,
    json: options.Json = False,
):
    """What a request costs: at public prices (--prices), or on a machine paid by the hour (--usd-per-hour and --run)."""
    from shapelab.classroom.table_format import Table
    from shapelab.request.shape import RequestShape

    parsed = RequestShape.parse(shape)
    if (bool(prices), usd_per_hour is not None, bool(run)) not in ((True, False, False), (False, True, True)):
        raise BadArgument("Give either --prices NAME, or --usd-per-hour and --run together.")
    bill = _at_prices(parsed, prices) if prices else _on_machine(parsed, usd_per_hour, run, utilisation)
    if json:
        print_json(bill)
        return
    lines = [(key.replace("_", " "), f"{value:,.6g}" if isinstance(value, float) else str(value)) for key, value in bill.items()]
    print_table(Table(("", ""), tuple(lines), title=f"Cost of {parsed}"))
    say("Prices change: check them before you rely on them." if prices else "Computed from the machine's predicted time.")


def _at_prices(shape, name: str) -> dict:
    from shapelab.cost import price_list

    if name == "list":
        raise BadArgument(f"Prices are known for {', '.join(price_list.load_prices())}.")
    price = price_list.price(name)
    usd_input, _, _, usd_output = price_list.usd_per_million(price, shape.prompt_tokens)
    return {
        "shape": str(shape),
        "prices": price.name,
        "usd_per_request": price_list.request_usd(price, shape.input_tokens, shape.output_tokens, shape.cached_tokens),
        "usd_per_million_input_tokens": float(usd_input),
        "usd_per_million_output_tokens": float(usd_output),
        "as_of": price.as_of,
        "source": price.source,
    }


def _on_machine(shape, usd_per_hour: float, run: str, utilisation: float) -> dict:
    from shapelab.cost.machine_hours import machine_cost

    model = model_of(run)
    bill = asdict(machine_cost(model, shape, usd_per_hour, utilisation))
    return {"machine": model.environment.label, **bill, "shape": str(shape), "as_of": model.environment.measured_at[:10]}
