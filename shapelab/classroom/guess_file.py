"""The learner's predictions: one small JSON file, in the user cache or where SHAPELAB_PREDICTIONS says.

Several notebooks may be open at once, so each change reads the file, changes it and writes it back under a lock.
"""

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from numbers import Real
from pathlib import Path
from statistics import geometric_mean

from pydantic import BaseModel, FiniteFloat, TypeAdapter, ValidationError

from shapelab.errors import BadArgument, BadFile, CannotWrite
from shapelab.files import cache_dir, locked, user_path, write_text_atomically
from shapelab.record.fields import now

CLOSE = 1.5  # a number or a curve within this factor counts as close
Points = list[tuple[FiniteFloat, FiniteFloat]]
Answer = str | FiniteFloat | Points


class Prediction(BaseModel):
    """What the file holds for one key. `measured` is None until the answer is revealed."""

    answer: Answer
    at: str = ""
    question: str = ""
    unit: str = ""
    measured: Answer | None = None

    @property
    def factor(self) -> float | None:
        """How many times too large or too small a number is; for a curve the geometric mean over its points. None for a choice."""
        if isinstance(self.answer, float) and isinstance(self.measured, float):
            return factor(self.answer, self.measured)
        if isinstance(self.answer, list) and isinstance(self.measured, list):
            heights = dict(self.measured)
            factors = [factor(y, heights[x]) for x, y in self.answer if x in heights]
            return geometric_mean(factors) if factors else None
        return None

    @property
    def right(self) -> bool | None:
        """Whether the choice is right, the number or curve close. None until the answer is revealed."""
        if isinstance(self.answer, str) and isinstance(self.measured, str):
            return self.answer == self.measured
        return None if self.factor is None else self.factor <= CLOSE


def factor(a: float, b: float) -> float:
    """How many times the larger is as large as the smaller: 1 when they are equal, infinite when one is 0 or below."""
    return max(a / b, b / a) if a > 0 and b > 0 else math.inf


def commit(key: str, answer: Answer, question: str = "", unit: str = ""):
    """Keep a prediction. It replaces an earlier one for the same key, unless the answer is revealed already.

    Raises BadArgument for that key or for an answer that is no prediction, CannotWrite, and BadFile when the file is damaged.
    """
    try:
        plain = answer.item() if getattr(answer, "ndim", None) == 0 else answer  # numpy's numbers
        if isinstance(plain, bool | bytes) or not (isinstance(plain, Real) or len(plain)):
            raise ValueError
        entry = Prediction(answer=plain, at=now(), question=question, unit=unit)
    except (TypeError, ValueError):  # pydantic's ValidationError is a ValueError
        raise BadArgument(f"A prediction must be text, a number or a list of points, not {answer!r}.", "answer") from None
    with _changes() as predictions:
        if key in predictions and predictions[key].measured is not None:
            raise BadArgument(
                f'You have seen the answer, so your prediction stands. guess.forget("{key}") makes room for a new one.', "key"
            )
        predictions[key] = entry


def forget(key: str):
    """Drop a prediction, so that you can commit another."""
    with _changes() as predictions:
        predictions.pop(key, None)


def committed(key: str) -> Answer | None:
    """The answer committed for a key, or None."""
    entry = read().get(key)
    return None if entry is None else entry.answer


def settle(key: str, measured: Answer, kind: type) -> Answer | None:
    """Keep what was measured beside the prediction for a key. Returns the prediction, or None if there is none of this kind."""
    entry = read().get(key)
    if entry is None or not isinstance(entry.answer, kind):
        return None
    with suppress(CannotWrite, ValidationError):  # the learner sees the answer all the same; only `journey` misses it
        settled = Prediction.model_validate({**entry.model_dump(), "measured": measured})
        with _changes() as predictions:
            predictions[key] = settled
    return entry.answer


def read() -> dict[str, Prediction]:
    """All predictions by key; none when there is no file. Raises BadFile when the file holds something else."""
    path = _path()
    try:
        return _FILE.validate_json(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, ValidationError) as error:
        reason = f" ({error.strerror})" if isinstance(error, OSError) else ", because it does not hold predictions"
        raise BadFile(
            f"Your predictions in {path} cannot be read{reason}. Rename or delete that file, or set SHAPELAB_PREDICTIONS to another."
        ) from None


_FILE = TypeAdapter(dict[str, Prediction])


def _path() -> Path:
    return user_path(os.environ.get("SHAPELAB_PREDICTIONS") or cache_dir() / "predictions.json")


@contextmanager
def _changes() -> Iterator[dict[str, Prediction]]:
    """The predictions, to change inside the block. At its end they are written; until then no other process changes them."""
    path = _path()
    try:
        with locked(path):
            predictions = read()
            yield predictions
            write_text_atomically(path, _FILE.dump_json(predictions, indent=2).decode())
    except CannotWrite as error:
        raise CannotWrite(f"{error} SHAPELAB_PREDICTIONS says which file holds your predictions.") from error
