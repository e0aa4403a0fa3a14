"""A report card to hand in: one HTML file with everything in it, pictures too."""

from collections.abc import Sequence
from pathlib import Path

from shapelab.claims import registry as claims
from shapelab.classroom import figures, guess, tables
from shapelab.classroom.html import escape
from shapelab.errors import NotEnoughMeasured
from shapelab.files import write_text_atomically
from shapelab.record.fields import now
from shapelab.record.run import Run

_STYLE = """body{font:16px/1.5 system-ui,sans-serif;max-width:62em;margin:2em auto;padding:0 1em;color:#222}
table{border-collapse:collapse;margin:1em 0;font-size:90%}td,th{border-bottom:1px solid #ddd;padding:4px 10px 4px 0;vertical-align:top}
img{max-width:100%}small{color:#555}"""


SHOWN = 12  # bars in a picture; the table has every shape


def report(runs: Sequence[Run]) -> str:
    """The page: the claims, each run's shapes with a picture, and how the predictions went. Raises NotEnoughMeasured."""
    runs = [run for run in runs if run.measurements]
    if not runs:
        raise NotEnoughMeasured("There is nothing to report yet. `shapelab run` measures three shapes.")
    findings = claims.all_findings(runs)
    decided = [f for f in findings if f.decided]
    held = sum(f.verdict == "holds" for f in decided)
    parts = [
        f"<p>{len(decided)} of {len(findings)} claims decided: {held} hold in these runs, {len(decided) - held} do not. "
        "A claim that does not hold is a result; its reason says why.</p>",
        "<h2>Claims</h2>", tables.claims_table(findings)._repr_html_(), "<h2>Measured</h2>",
    ]  # fmt: skip
    for run in runs:
        here = run.environment
        parts += [
            figures.timelines(Run(here, run.measurements[:SHOWN])).html(),
            tables.shapes_table(run)._repr_html_(),
            f"<p><small>{escape(f'{here.versions}; measured {here.measured_at}')}</small></p>",
        ]
    parts += ["<h2>Predictions</h2>", guess.journey().html]
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>shapelab report</title><style>{_STYLE}</style></head>'
        f"<body><h1>Report card</h1><p>Made on {now()[:10]} with shapelab.</p>{''.join(parts)}</body></html>\n"
    )


def write_report(runs: Sequence[Run], path: str | Path) -> Path:
    """Write the page. Raises NotEnoughMeasured and CannotWrite."""
    return write_text_atomically(path, report(runs))
