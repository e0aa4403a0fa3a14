"""What a check is made of: Feedback, slips that have an id, and hints that come one at a time.

A check takes the learner's answer and returns Feedback; it never raises. An answer of `...` means "not tried yet", so a
notebook runs from top to bottom before anything is filled in.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import wraps
from numbers import Integral, Real
from reprlib import repr as short_repr
from typing import NamedTuple

from shapelab.classroom.html import escape
from shapelab.record import metrics
from shapelab.record.measurement import Measurement
from shapelab.text import VERBATIM, visible

CHECKS: dict[str, Callable[..., "Feedback"]] = {}


@dataclass(frozen=True)
class Feedback:
    """right: None while nothing was tried. slip: the id of the mistake in a wrong answer, "" if the check does not know it.

    title stands in front of the text instead of the usual "Right", "Not yet" or "Your turn".
    """

    right: bool | None
    text: str
    slip: str = ""
    title: str = ""

    def __repr__(self) -> str:
        return visible(f"{self._title}: {self.text}", lines=True)

    def _repr_html_(self) -> str:
        color = {True: "#029e73", False: "#d55e00", None: "#949494"}[self.right]
        text = escape(self.text).replace("\n", "<br>")
        return (
            f'<div class="{VERBATIM}" style="border-left:4px solid {color};padding:4px 12px"><b>{self._title}.</b> {text}</div>'
        )

    @property
    def _title(self) -> str:
        return self.title or {True: "Right", False: "Not yet", None: "Your turn"}[self.right]


class Slip(NamedTuple):
    """A mistake that people make. made: the number it leads to or, where the answer is no number, whether it was made."""

    id: str
    made: float | bool
    reason: str


def exercise(*hints: str) -> Callable:
    """Turn a function of an answer into a check. Each hint says more than the one before; only the last may give the formula.

    Where the check has no reason to give (nothing tried yet, or a mistake it does not know) it points to the hints.
    """

    def decorate(check: Callable[..., Feedback]) -> Callable[..., Feedback]:
        @wraps(check)
        def checked(answer, *given, **named) -> Feedback:
            untried = Feedback(None, "Replace ... with your answer and run the cell again.")
            feedback = untried if answer is ... else check(answer, *given, **named)
            if feedback.right or feedback.slip:
                return feedback
            return replace(feedback, text=f"{feedback.text} Stuck? exercises.hint(exercises.{check.__name__})")

        checked.hints = hints
        CHECKS[check.__name__] = checked
        return checked

    return decorate


def hint(check: Callable, step: int = 1) -> Feedback:
    """A check's hints up to a step: exercises.hint(exercises.check_tpot), then exercises.hint(exercises.check_tpot, 2)."""
    name = str(getattr(check, "__name__", ""))
    if name not in CHECKS or CHECKS[name] is not check:
        return _hint("Name the check without calling it: exercises.hint(exercises.check_tpot).")
    hints = check.hints
    if not isinstance(step, Integral) or isinstance(step, bool) or step < 1:
        return _hint(f"The step is a whole number from 1 to {len(hints)}.")
    if step > len(hints):
        return _hint(f"There are only {len(hints)} hints; the solution is folded below the cell.")
    lines = [f"{number}. {text}" for number, text in enumerate(hints[:step], start=1)]
    if step < len(hints):
        lines.append(f"exercises.hint(exercises.{name}, {step + 1}) shows the next of {len(hints)}.")
    else:
        lines.append("That was the last hint. The solution is folded below the cell.")
    return _hint("\n".join(lines))


def _hint(text: str) -> Feedback:
    return Feedback(None, text, title="Hint")


def check_number(
    answer, right: float, why: str, slips: Sequence[Slip] = (),
    *, unit: str = "", also_right: Sequence[float] = (), tolerance: float = 2e-3,
) -> Feedback:  # fmt: skip
    """Compare a number with the right one and with those that the slips lead to; the nearest slip gives the reason.

    unit: what the exercise asks for, such as "milliseconds per token"; a wrong power of 1,000 and an upside-down fraction
    are recognised in every exercise. tolerance is relative.
    """
    number = read_number(answer)
    if isinstance(number, Feedback):
        return number
    if any(close(number, value, tolerance) for value in (right, *also_right)):
        return Feedback(True, why)
    asks = f"the exercise asks for {unit}." if unit else "check the units."
    common = [
        Slip("1000_times_too_large", right * 1e3, f"Your number is 1,000 times too large: {asks}"),
        Slip("1000_times_too_small", right / 1e3, f"Your number is 1,000 times too small: {asks}"),
        *(Slip("upside_down", per / right, f"Your fraction is upside down: {asks}") for per in (1, 1e3) if right),
    ]
    for known in (slips, common):
        made = [slip for slip in known if close(number, slip.made, tolerance)]
        if made:
            nearest = min(made, key=lambda slip: abs(number - slip.made))
            return Feedback(False, nearest.reason, nearest.id)
    if close(number, right, 0.03):
        return Feedback(False, "You are within 3% of it. Calculate with unrounded numbers, and check each count.")
    if number * right <= 0:
        return Feedback(False, "Your number is zero or has the wrong sign.")
    factor, side = max(number / right, right / number), "large" if number / right > 1 else "small"
    roughly = "a little" if factor < 1.5 else f"about {float(f'{factor:.1g}'):.0f} times" if factor < 1000 else "far"
    return Feedback(False, f"Your number is {roughly} too {side}.")


def read_number(answer) -> float | Feedback:
    """The answer as a float, or what is wrong with it. Single numbers of numpy, pandas and torch count as numbers."""
    if getattr(answer, "ndim", None) == 0:
        answer = answer.item()
    if isinstance(answer, str):
        return Feedback(False, f"{short_repr(answer)} is text. Write the number without quotes and without a unit.", "text")
    if isinstance(answer, bool) or not isinstance(answer, Real | Decimal):
        return Feedback(False, f"Answer with a number, not {short_repr(answer)}.", "no_number")
    try:
        number = float(answer)
    except (OverflowError, ValueError):
        number = math.inf
    return number if math.isfinite(number) else Feedback(False, f"{short_repr(answer)} is not a finite number.", "no_number")


def first_slip(slips: Iterable[Slip], otherwise: Feedback) -> Feedback:
    """For answers that are no numbers: the first slip that was made."""
    return next((Feedback(False, slip.reason, slip.id) for slip in slips if slip.made), otherwise)


def close(a: float, b: float, tolerance: float) -> bool:
    return math.isclose(a, b, rel_tol=tolerance)


def seconds(run: Measurement) -> tuple[float, float, float]:
    """Median TTFT, TPOT and total time of a measured request."""
    return run.median(metrics.ttft_s), run.median(metrics.tpot_s), run.median(metrics.total_s)
