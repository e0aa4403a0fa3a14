"""shapelab predict: what shapes should take on a measured machine."""

from typing import Annotated

import typer

from shapelab.cli import options
from shapelab.cli.output import print_json, print_table, say
from shapelab.cli.sources import model_of


def predict(
    source: Annotated[
        str, typer.Argument(metavar="RUN|MODEL.json", help="A run's file, a recorded run's name, or a fitted model.")
    ],
    shapes: Annotated[list[str], typer.Argument(help="Shapes such as 1205x24 or 512+64x32@4, or presets such as rag.")],
    json: options.Json = False,
):
    """What shapes should take on the machine of a run, with 90 % intervals; a * marks those beyond what was measured."""
    from shapelab.classroom.table_format import Table
    from shapelab.request.shape import RequestShape

    parsed = [RequestShape.parse(text) for text in shapes]
    model = model_of(source)
    predictions = [model.predict(shape) for shape in parsed]
    if json:
        print_json([_as_json(prediction) for prediction in predictions])
        return
    headings = ("shape", "TTFT s", "TPOT ms", "total s", "90 % interval s")
    print_table(Table(headings, tuple(map(_row, predictions)), title=f"Predicted: {model.environment.label}"))
    for p in predictions:
        if p.extrapolates:
            say(f"* {p.shape} extrapolates: {'; '.join(p.extrapolates)}.", style="yellow")


def _row(p) -> tuple[str, ...]:
    low, high = p.total_interval_s
    tpot = "-" if p.tpot_s is None else f"{p.tpot_s * 1e3:.1f}"
    return (
        f"{p.shape}{' *' if p.extrapolates else ''}", f"{p.ttft_s:.3f}", tpot, f"{p.total_s:.2f}", f"{low:.2f} to {high:.2f}"
    )  # fmt: skip


def _as_json(p) -> dict:
    return {
        "shape": str(p.shape), "ttft_s": p.ttft_s, "tpot_s": p.tpot_s, "total_s": p.total_s,
        "interval_s": p.total_interval_s, "extrapolates": bool(p.extrapolates),
    }  # fmt: skip
