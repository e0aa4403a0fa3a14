"""The checks of the notebooks' exercises, one file a notebook: `exercises.check_tpot(answer)`, `exercises.hint(exercises.check_tpot)`."""

from importlib import import_module
from pkgutil import iter_modules

from shapelab.classroom.exercises.check import CHECKS, Feedback, hint

for _file in iter_modules(__path__):
    import_module(f"{__name__}.{_file.name}")
globals().update(CHECKS)  # so that a new check is there as soon as it is written

__all__ = ["Feedback", "hint", *CHECKS]
