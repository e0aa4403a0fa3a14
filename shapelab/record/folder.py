"""The runs in a folder."""

from datetime import UTC, datetime
from pathlib import Path

from shapelab.errors import ShapelabError
from shapelab.record.run import Run


def runs_in(folder: str | Path) -> tuple[list[Run], list[str]]:
    """The runs of a folder's .jsonl files, the newest first, and a sentence for each file that could not be read."""
    runs, problems = [], []
    for path in sorted(Path(folder).glob("*.jsonl")):
        try:
            runs.append(Run.load(path))
        except ShapelabError as error:
            problems.append(str(error))
    return sorted(runs, key=_measured_at, reverse=True), problems


def _measured_at(run: Run) -> datetime:
    try:
        moment = datetime.fromisoformat(run.environment.measured_at)
    except ValueError:
        return datetime.min.replace(tzinfo=UTC)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
