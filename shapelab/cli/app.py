"""The commands together. A new one: a file beside this one with a function of its name, and that name here.

Tables go to stdout; with --json one object goes there, and everything else to stderr.
"""

import typer

from shapelab.cli.claims import claims
from shapelab.cli.cost import cost
from shapelab.cli.doctor import doctor
from shapelab.cli.errors import Command
from shapelab.cli.fit import fit
from shapelab.cli.models import models
from shapelab.cli.predict import predict
from shapelab.cli.report import report
from shapelab.cli.run import run
from shapelab.cli.sweep import sweep

app = typer.Typer(
    no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="rich",
    help="Measure how the shape of an LLM request (input tokens, output tokens, context, batch) sets its latency and cost on this machine.",
)  # fmt: skip
for command in (run, sweep, fit, predict, cost, claims, report, doctor, models):
    app.command(cls=Command)(command)
