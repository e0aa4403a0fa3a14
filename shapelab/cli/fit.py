"""shapelab fit: a latency model from a run."""

from pathlib import Path
from typing import Annotated

import typer

from shapelab.cli import options
from shapelab.cli.output import print_json, print_table, say
from shapelab.cli.sources import fitted
from shapelab.errors import BadArgument


def fit(
    run: Annotated[str, typer.Argument(help="A run's file (`shapelab sweep --plan quick` makes one), or a recorded run's name.")],
    out: Annotated[Path, options.path_option("--out", "-o", help="The model's file, ending in .json.")],
    json: options.Json = False,
):
    """Fit a latency model to a run: a price list of the machine, and TTFT, TPOT and total of any shape."""
    from shapelab.classroom.tables import terms_table

    if out.suffix != ".json":
        raise BadArgument(f"A latency model's file ends in .json; {out.name} does not.", "out")
    model = fitted(run)
    model.save(out)
    if json:
        print_json({"model_file": str(out), **model.model_dump()})
        return
    print_table(terms_table(model))
    say(str(model))
    say(f"Model: {out}", whole=True)
