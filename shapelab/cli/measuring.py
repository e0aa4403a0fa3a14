"""What `run` and `sweep` share: a folder that can be written, the model, the machine's limits."""

import os.path
import tempfile
from pathlib import Path

from shapelab.cli.output import console, notice
from shapelab.errors import CannotWrite


def refuse_unwritable(folder: Path):
    """Find out now, not after minutes of measuring. A link is followed, even where nothing is there yet."""
    real = Path(os.path.realpath(folder))
    try:
        real.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=real):
            pass
    except OSError as error:
        raise CannotWrite(f"Nothing can be written to {folder} ({error.strerror}). Choose another place.") from error


def load_lab(model: str, device: str, dtype: str):
    """The Lab, with what should be known about it on stderr."""
    import torch

    from shapelab.computer import cpus_usable, thread_problem
    from shapelab.model import load

    with console(stderr=True).status("Loading the model"):
        lab = load.load(model, device, dtype)
    for note in lab.notes:
        notice(note, style="dim")
    if problem := thread_problem(torch.get_num_threads(), cpus_usable()):
        notice(problem)
    return lab


def add_limits(run, lab, run_file: Path):
    """Measured last, when the shapes are safe in their file; whatever happens here leaves them so."""
    from shapelab.measure.overhead import measure_limits

    try:
        with console(stderr=True).status("What this machine does at best"):
            run.add(measure_limits(lab), run_file)
    except (Exception, KeyboardInterrupt) as error:  # a model too unusual for a hollow twin, no memory, no patience
        reason = str(error) or type(error).__name__
        notice(f"shapelab could not measure this machine's limits ({reason}), so C7 stays undecided.")


def as_json(run, run_file: Path) -> dict:
    return {
        "environment": run.environment.model_dump(),
        "run_file": str(run_file),
        "shapes": {m.name: m.summary() for m in run.measurements},
    }
