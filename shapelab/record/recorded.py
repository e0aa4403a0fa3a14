"""Runs of machines that are not here, recorded with shapelab, and the figures that others reported."""

import json
from pathlib import Path

from shapelab.errors import UnknownName
from shapelab.files import data_path
from shapelab.record.run import Run


def recorded_runs() -> list[str]:
    """The names of the runs in `data/runs/`."""
    return sorted(_files())


def recorded(name: str) -> Run:
    """A recorded run by its name. Raises UnknownName."""
    if name not in _files():
        raise UnknownName(f"There is no recorded run {name!r}; choose one of {', '.join(recorded_runs())}.", "name")
    return Run.load(_files()[name])


def menu() -> list[dict]:
    """One entry a recorded run: its name, machine, model, dtype, shapes and date."""
    entries = []
    for name in recorded_runs():
        run = recorded(name)
        where = run.environment
        entries.append(
            {
                "name": name,
                "machine": where.device,
                "model": where.model_label,
                "dtype": where.dtype_label,
                "shapes": len(run.measurements),
                "measured": where.measured_at[:10],
            }
        )
    return entries


def reported(name: str = "talk-tinyllama-t4") -> dict:
    """Figures that others reported, from `data/reported/`: nobody here measured them."""
    return json.loads(data_path("reported", f"{name}.json").read_text(encoding="utf-8"))


def _files() -> dict[str, Path]:
    return {path.stem: path for path in data_path("runs").glob("*.jsonl")}
