"""Options and arguments that several commands take."""

from os.path import expanduser
from pathlib import Path
from typing import Annotated

import typer

from shapelab.errors import BadArgument
from shapelab.files import user_path
from shapelab.text import visible

Model = Annotated[
    str,
    typer.Option(
        parser=expanduser, metavar="TEXT", help="auto, a name from `shapelab models`, NAME:random, a hub id or a local folder."
    ),
]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1 or mps.")]
Dtype = Annotated[str, typer.Option(help="auto, float32, bfloat16 or float16.")]
Seed = Annotated[int, typer.Option(min=0, max=2**63 - 1, help="Draws the prompts and the order.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout, everything else on stderr.")]
Runs = Annotated[
    list[str] | None, typer.Argument(help="Run files or names of recorded runs; without any, the runs in shapelab-runs.")
]


def path_option(*flags: str, help: str):
    """An option that takes a path: `~` in it is the home folder."""
    return typer.Option(*flags, parser=_path, metavar="PATH", help=help)


def _path(text: str) -> Path:
    try:
        return user_path(text)
    except BadArgument as error:  # options are read before a command can translate the library's errors
        raise typer.BadParameter(visible(str(error))) from None


RUNS_FOLDER = Path("shapelab-runs")  # where `run` writes and `claims` and `report` read
