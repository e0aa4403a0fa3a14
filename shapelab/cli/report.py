"""shapelab report: a page to hand in."""

from pathlib import Path
from typing import Annotated

from shapelab.cli import options
from shapelab.cli.output import say
from shapelab.cli.sources import runs_of


def report(
    runs: options.Runs = None,
    out: Annotated[Path, options.path_option(help="The page's file.")] = Path("report.html"),
):
    """A report card to hand in: one HTML file with the claims, the measurements and the predictions."""
    from shapelab.classroom.report import write_report

    say(f"Report: {write_report(runs_of(runs), out)}", whole=True)
