"""shapelab claims: the talk's claims, decided by runs."""

from rich.padding import Padding
from rich.text import Text

from shapelab.cli import options
from shapelab.cli.output import console, print_json
from shapelab.cli.sources import runs_of
from shapelab.text import visible

_COLORS = {"holds": "green", "does_not_hold": "yellow", "not_measured": "dim"}


def claims(runs: options.Runs = None, json: options.Json = False):
    """The talk's claims C1 to C12, decided by runs: reported, measured, verdict and why."""
    from shapelab.claims import registry

    findings = registry.all_findings(runs_of(runs))
    if json:
        print_json(registry.as_records(findings))
    else:
        print_claims(findings)


def print_claims(findings):
    """One short paragraph a claim: readable in the narrowest terminal."""
    screen = console()
    screen.print("\n", Text("The talk's claims", "bold"), " (reported: TinyLlama 1.1B on an NVIDIA T4)", sep="")
    for f in findings:
        verdict = Text(f.verdict.replace("_", " "), _COLORS.get(f.verdict, "yellow"))
        screen.print("\n", Text(f.id, "bold"), f" {f.claim} ", verdict, sep="")
        for label, text in (("reported", f.reported), ("measured here", f.measured), ("why", f.why)):
            screen.print(Padding(Text.assemble((f"{label}:", "dim"), f" {visible(text)}"), (0, 0, 0, 3)))
