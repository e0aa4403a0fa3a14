"""A report card to hand in: one HTML file with everything in it, pictures too."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from shapelab.claims import registry as claims
from shapelab.classroom import figures, guess, tables
from shapelab.classroom.html import escape
from shapelab.errors import ShapelabError
from shapelab.files import write_text_atomically
from shapelab.record.run import Run

_STYLE = """body{font:16px/1.5 system-ui,sans-serif;max-width:62em;margin:2em auto;padding:0 1em;color:#222}
table{border-collapse:collapse;margin:1em 0;font-size:90%}td,th{border-bottom:1px solid #ddd;padding:4px 10px 4px 0;vertical-align:top;text-align:left}
img{max-width:100%}small{color:#555}"""


def report(runs: Sequence[Run]) -> str:
    """The page as text: machine, measured shapes with a picture, the claims, and how the predictions went."""
    if not any(run.measurements for run in runs):
        raise ShapelabError("There is nothing to report yet. `shapelab run` measures three shapes.")
    found = claims.all_findings(runs)
    decided = [f for f in found if f.decided]
    held = sum(f.verdict == "holds" for f in decided)
    parts = [
        f"<p>{len(decided)} of {len(found)} claims decided: {held} hold in these runs, {len(decided) - held} do not. "
        "A claim that does not hold is a result; its reason says why.</p>",
        "<h2>Claims</h2>", tables.claims_table(found).to_html(), "<h2>Measured</h2>",
    ]  # fmt: skip
    for run in runs:
        if run.measurements:
            shown = Run(run.environment, run.measurements[:SHOWN])
            parts += [
                figures.timelines(shown).html(),
                tables.shapes_table(run)._repr_html_(),
                f"<p><small>{escape(_versions(run))}</small></p>",
            ]
    parts += ["<h2>Predictions</h2>", guess.journey().html]
    date = datetime.now(UTC).date().isoformat()
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>shapelab report</title><style>{_STYLE}</style></head>'
        f"<body><h1>Report card</h1><p>Made on {date} with shapelab.</p>{''.join(parts)}</body></html>\n"
    )


SHOWN = 12  # bars in a picture; the table has every shape


def write_report(runs: Sequence[Run], out: str | Path) -> Path:
    """Write the page. Raises CannotWrite."""
    return write_text_atomically(out, report(runs))


def _versions(run: Run) -> str:
    return f"{run.environment.versions}; measured {run.environment.measured_at}"
