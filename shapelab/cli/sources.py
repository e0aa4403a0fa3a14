"""Runs and latency models that a person names on the command line."""

import os.path

from shapelab.cli.options import RUNS_FOLDER
from shapelab.cli.output import notice
from shapelab.errors import BadFile
from shapelab.files import user_path


def run_of(source: str):
    """A run from its file, or a recorded one by its name."""
    from shapelab.record.recorded import recorded, recorded_runs
    from shapelab.record.run import Run

    names = recorded_runs()
    if source in names:
        return recorded(source)
    _refuse_missing(source, f"`shapelab run` and `shapelab sweep` write runs; recorded ones: {', '.join(names)}.")
    return Run.load(user_path(source))


def runs_of(sources: list[str] | None) -> list:
    """The runs named; without any, those in the default folder, newest first, less the files that cannot be read."""
    from shapelab.record.folder import runs_in

    if sources:
        return [run_of(source) for source in sources]
    runs, problems = runs_in(RUNS_FOLDER)
    for problem in problems:
        notice(f"{problem} It is left out.")
    return runs


def fitted(source: str):
    """A latency model fitted to a run. It says whether the run was measured by a user or travels with the course."""
    from shapelab.predict.latency import LatencyModel
    from shapelab.record.recorded import recorded_runs

    return LatencyModel.fit(run_of(source), "recorded" if source in recorded_runs() else "measured")


def model_of(source: str):
    """A latency model: from its own file (.json), or fitted to a run."""
    from shapelab.predict.latency import LatencyModel

    if not source.endswith(".json"):
        return fitted(source)
    _refuse_missing(source, f"`shapelab fit RUN --out {source}` writes a latency model.")
    return LatencyModel.load(user_path(source))


def _refuse_missing(source: str, next_step: str):
    if not os.path.exists(user_path(source)):  # False, not an error, for a name that is too long
        raise BadFile(f"There is no file {source}. {next_step}")
