"""A folder of runs: what they are called, and which of them can be read."""

import os
from datetime import UTC, datetime
from pathlib import Path

from shapelab.errors import BadFile
from shapelab.files import user_path
from shapelab.record.fields import utc
from shapelab.record.run import Run


def new_run_name() -> str:
    """A name for a run's file that no other process takes: this second in UTC, and the process. The caller adds the ending."""
    return f"run-{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{os.getpid()}"


def runs_in(folder: str | Path) -> tuple[list[Run], list[str]]:
    """The runs in a folder's .jsonl files, newest first, and a sentence for each file that is none.

    Newest by the moment when its measuring began, whatever its name and wherever it was measured.
    """
    runs, problems = [], []
    for path in sorted(user_path(folder).glob("*.jsonl"), reverse=True):
        try:
            if path.exists() and not path.is_file():  # a folder, or a pipe that nobody writes to
                raise BadFile(f"{path} is not a file.")
            runs.append(Run.load(path))
        except BadFile as error:
            problems.append(str(error))
    return sorted(runs, key=lambda run: utc(run.environment.measured_at), reverse=True), problems
