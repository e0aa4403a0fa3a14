"""Many shapes into one file that grows: whatever stops it, the same command continues it."""

import random
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

from tqdm.auto import tqdm

from shapelab.errors import DoesNotFit, OtherSettings
from shapelab.files import keep_from_interrupts, locked, user_path
from shapelab.measure.experiment import one_repeat, warm_up
from shapelab.measure.this_machine import GpuWatch, environment
from shapelab.model.load import Lab
from shapelab.model.memory import is_out_of_memory, recover_memory, refuse_what_memory_cannot_hold, too_large
from shapelab.record.fields import LONGEST_TEXT, now
from shapelab.record.measurement import Measurement, Skipped
from shapelab.record.run import Run, Settings, check_that_it_can_be_saved
from shapelab.request.shape import RequestShape


def sweep(
    lab: Lab,
    shapes: Iterable[RequestShape],
    out: str | Path,
    *,
    repeats: int = 3,
    seed: int = 0,
    clock=None,
    progress: bool = True,
) -> Run:
    """Measure many shapes, one saved line a shape, in an order drawn by the seed so that drift does not look like a trend.

    out  the run's file. Where it exists, the sweep continues it: shapes that were measured are not run again, shapes that
         memory could not hold are tried again. Killed at any moment, it loses at most the shape in flight.

    A shape that memory cannot hold is predicted and skipped with the reason (on a CPU, running out would kill the process);
    one that runs out all the same is recorded as out_of_memory, and the sweep goes on.

    Raises OtherSettings where the file belongs to another environment, another number of repeats or another seed, and
    CannotWrite where another process is writing it.
    """
    settings, out = Settings.of(repeats, seed), user_path(out)
    asked = list(dict.fromkeys(shapes))
    for shape in asked:
        lab.check(shape)
        check_that_it_can_be_saved(shape, settings.repeats)
    with locked(out, wait_s=0), keep_from_interrupts() as interrupts:
        run = _start_or_resume(Run(environment(lab), settings=settings), out)
        waiting = [shape for shape in asked if str(shape) not in run]
        random.Random(settings.seed).shuffle(waiting)
        watch = GpuWatch(lab.device)
        with tqdm(total=len(waiting), unit="shape", disable=not progress) as bar:
            for shape in waiting:
                bar.set_description(str(shape))
                with interrupts.let_through():
                    entry = _measured_or_skipped(lab, shape, settings, clock, watch)
                run.add(entry, out)
                bar.update()
    return run


def _measured_or_skipped(lab, shape, settings, clock, watch) -> Measurement | Skipped:
    named = {"name": str(shape), **asdict(shape)}
    try:
        refuse_what_memory_cannot_hold(lab, shape)
    except DoesNotFit as reason:
        return Skipped(outcome="does_not_fit", reason=str(reason)[:LONGEST_TEXT], decided_at=now(), **named)
    try:
        warm_up(lab, shape, settings.seed)
        repeats = [one_repeat(lab, shape, settings.seed, n, n - 1, clock, watch) for n in range(1, settings.repeats + 1)]
        return Measurement(repeats=tuple(repeats), **named)
    except Exception as error:
        if not is_out_of_memory(error):
            raise
    recover_memory(lab.device)
    return Skipped(outcome="out_of_memory", reason=too_large(lab, shape)[:LONGEST_TEXT], decided_at=now(), **named)


def _start_or_resume(new: Run, path: Path) -> Run:
    """The run in the file, or a new one. Raises OtherSettings where its environment or settings differ."""
    if path.exists() and path.stat().st_size:
        old = Run.load(path, unfinished=True)
        changed = _changed(old.environment.model_dump(), new.environment.model_dump())
        if changed:
            raise OtherSettings(f"{path} belongs to another environment: {changed}. Choose another file.")
        if old.settings is None:
            raise OtherSettings(f"{path} does not say with which repeats and seed it was measured. Choose another file.")
        changed = _changed(old.settings.model_dump(), new.settings.model_dump())
        if changed:
            raise OtherSettings(f"{path} was begun with other settings: {changed}. Ask for the old ones, or choose another file.")
        new = old
    new.save(path)  # of an old file: without a last line that was cut off
    return new


def _changed(then: dict, today: dict) -> str:
    """What differs, apart from the time, with both values."""
    names = [name for name in {**then, **today} if name != "measured_at" and then.get(name) != today.get(name)]
    return "; ".join(f"{name} was {then.get(name)} and is {today.get(name)}" for name in names)
