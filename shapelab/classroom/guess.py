"""Predict, then look. A prediction is committed before the answer shows and kept in a small file of the learner's.

Three kinds: a choice, a number, and a curve sketched with a few sliders. `journey` shows at the end how the guesses moved.
"""

import json
import math
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from statistics import geometric_mean, median

import ipywidgets as widgets
from pydantic import BaseModel, FiniteFloat, ValidationError

from shapelab.classroom import figures
from shapelab.classroom.html import Card, escape, live_or_still, short
from shapelab.classroom.table import Table
from shapelab.errors import CannotWrite, ShapelabError
from shapelab.files import cache_dir, locked, user_path, write_text_atomically
from shapelab.record.fields import now

CLOSE = 1.5  # a number or a curve within this factor counts as close
Points = list[tuple[FiniteFloat, FiniteFloat]]


class Prediction(BaseModel):
    """What is kept for one key. `measured` is None until it was revealed."""

    answer: str | FiniteFloat | Points
    at: str = ""
    question: str = ""
    unit: str = ""
    measured: str | FiniteFloat | Points | None = None

    @property
    def factor(self) -> float | None:
        """How many times too large or too small a number was; for a curve the typical one of its points. None for a choice."""
        if isinstance(self.answer, float) and isinstance(self.measured, float):
            return _factor(self.answer, self.measured)
        if isinstance(self.answer, list) and isinstance(self.measured, list):
            found = dict(self.measured)
            off = [_factor(y, found[x]) for x, y in self.answer if x in found]
            return geometric_mean(off) if off else None
        return None

    @property
    def right(self) -> bool | None:
        """Whether the choice was right, the number or curve close. None until it was revealed."""
        if isinstance(self.answer, str) and isinstance(self.measured, str):
            return self.answer == self.measured
        return None if self.factor is None else self.factor <= CLOSE


class Asked:
    """A question with its controls and a button; where no kernel runs, the question and what could be answered."""

    def __init__(self, box: widgets.VBox, question: str, answers: str):
        self.box, self.text = box, f"{question} ({answers})"

    def __repr__(self) -> str:
        return self.text

    def _repr_mimebundle_(self, **_) -> dict:
        return live_or_still(self.box, self.text, f"<p>{escape(self.text)}</p>")


def choose(key: str, question: str, options: Sequence[str]) -> Asked:
    """A question with one answer to choose and a button to commit it. The key names it when it is revealed."""
    earlier = committed(key)
    choice = widgets.RadioButtons(
        options=list(options), value=earlier if earlier in options else None, layout={"width": "max-content"}
    )
    return _asked(key, question, "", [choice], lambda: choice.value, "one of: " + ", ".join(options))


def number(key: str, question: str, unit: str) -> Asked:
    """A question answered by a number above 0, and a button to commit it."""
    earlier = committed(key)
    box = widgets.FloatText(value=earlier if isinstance(earlier, float) else 0.0, description=unit, **_WIDE)

    def answer() -> float | None:
        return box.value if math.isfinite(box.value) and box.value > 0 else None

    return _asked(key, question, unit, [box], answer, f"a number, {unit}")


def sketch(key: str, question: str, xlabel: str, xs: Sequence[float], unit: str, highest: float, first: float = 1.0) -> Asked:
    """A curve to sketch: a slider for each x after the first, where the curve starts at `first`."""
    earlier = committed(key)
    known = dict(earlier) if isinstance(earlier, list) else {}
    sliders = [
        widgets.FloatSlider(
            value=min(highest, known.get(x, first)), min=highest / 64, max=highest, step=highest / 64,
            description=f"{xlabel} {x:,}", continuous_update=False, readout_format=".3g", **_WIDE,
        )
        for x in xs[1:]
    ]  # fmt: skip
    picture, text = widgets.Image(format="png", layout={"height": "230px", "width": "max-content"}), widgets.HTML()

    def points() -> Points:
        return [(float(xs[0]), float(first)), *((float(x), s.value) for x, s in zip(xs[1:], sliders, strict=True))]

    def draw(_=None):
        picture.value = figures.png(figures.sketched(points(), None, xlabel, unit, "your sketch so far", highest=highest))
        text.value = escape(said(points(), unit))

    for slider in sliders:
        slider.observe(draw, names="value")
    draw()
    return _asked(
        key, question, unit, [*sliders, picture, text], points, f"a curve: {unit}, over {xlabel} {', '.join(map(str, xs))}"
    )


def commit(key: str, answer: str | float | Points, question: str = "", unit: str = ""):
    """Keep a prediction. A later one for the same key takes its place, until it was revealed."""
    with locked(_path()):  # two notebooks may be open
        kept = _read()
        if key in kept and kept[key].measured is not None:
            raise ShapelabError(
                f'This one was revealed already, and your prediction stands. guess.forget("{key}") makes room for a new one.'
            )
        _write({**kept, key: Prediction(answer=answer, at=now(), question=question, unit=unit)})


def forget(key: str):
    """Drop a prediction, so that another can be committed."""
    with locked(_path()):
        _write({other: entry for other, entry in _read().items() if other != key})


def committed(key: str) -> str | float | Points | None:
    """The answer committed for a key, or None."""
    entry = _read().get(key)
    return None if entry is None else entry.answer


def reveal(key: str, measured: str, lesson: str, how: str = "Measured here") -> Card:
    """A choice: what was predicted, what was measured (or computed: say `how`), and what the difference teaches."""
    predicted = _settled(key, measured, str)
    if predicted is None:
        first = NO_PREDICTION
    elif predicted == measured:
        first = f"You predicted {predicted}, and {predicted} it is."
    else:
        first = f"You predicted {predicted}; {how[:1].lower()}{how[1:]}: {measured}."
    text = f"{first} {how}: {measured}. {lesson}" if predicted in (None, measured) else f"{first} {lesson}"
    return Card(text, escape(text))


def reveal_number(
    key: str, measured: float, unit: str, about: str, lesson: str, too_low: str = "", too_high: str = "", how: str = "measured"
) -> Card:
    """A number: predicted and measured on one figure. too_low, too_high: what a guess far off on that side teaches."""
    predicted = _settled(key, float(measured), float)
    shown = f"{how.capitalize()}: {short(measured)} {unit}."
    if predicted is None:
        text = f"{NO_PREDICTION} {shown} {lesson}"
    elif _factor(predicted, measured) <= CLOSE:
        text = f"You predicted {short(predicted)}: close. {shown} {lesson}"
    else:
        side, taught = ("low", too_low) if predicted < measured else ("high", too_high)
        off = f"too {side} by a factor of {_factor(predicted, measured):.2g}"
        text = f"You predicted {short(predicted)}, {off}. {shown} {taught} {lesson}".replace("  ", " ")
    drawn = figures.picture(figures.guessed(predicted, float(measured), unit, about, how), text) if predicted else ""
    return Card(text, f"{drawn}<p>{escape(text)}</p>")


def reveal_curve(
    key: str, measured: Sequence[tuple[float, float]], xlabel: str, unit: str, about: str, lesson: str, how: str = "measured"
) -> Card:
    """A curve: the sketch and the measured points on one figure, and where they part."""
    points = [(float(x), float(y)) for x, y in measured]
    predicted = _settled(key, points, list)
    ends = f"{how.capitalize()}: " + ", ".join(f"{short(y)} at {x:g}" for x, y in points) + f" ({unit})."
    if predicted is None:
        first = NO_PREDICTION
    else:
        found = dict(points)
        off = {x: _factor(y, found[x]) for x, y in predicted if x in found}
        worst = max(off, key=off.get, default=None)
        if worst is None or off[worst] <= CLOSE:
            first = f"Your sketch stays within a factor of {CLOSE} everywhere: close."
        else:
            side = "high" if dict(predicted)[worst] > found[worst] else "low"
            first = f"Your sketch parts most at {xlabel} {worst:g}, where it is too {side} by a factor of {off[worst]:.2g}."
    text = f"{first} {ends} {lesson}"
    figure = figures.sketched(predicted, points, xlabel, unit, about, how)
    return Card(text, figures.picture(figure, text) + f"<p>{escape(text)}</p>")


def journey() -> Card:
    """Every prediction in the order of the course, what came out, and whether the later ones were better than the first ones."""
    kept = sorted(_read().items())
    seen = [(key, entry) for key, entry in kept if entry.right is not None]
    if not kept:
        text = "No prediction was committed yet. Each notebook begins with some: commit them, run on, and come back."
        return Card(text, escape(text))
    words = [f"Predictions committed: {len(kept)}. Revealed: {len(seen)}, of which right or close: {_hits(seen)}."]
    half = len(seen) // 2
    if half:
        early, late = seen[:half], seen[half:]
        words.append(f"In the first half {_hits(early)} of {len(early)}, in the second {_hits(late)} of {len(late)}.")
        offs = [[e.factor for _, e in part if e.factor is not None] for part in (early, late)]
        if all(offs):
            words.append(
                f"Numbers and curves were off by a factor of {median(offs[0]):.2g}, later by {median(offs[1]):.2g} (medians)."
            )
    text = " ".join(words)
    headings = ("", "question", "you said", "it was", "how close")
    rows = [(key[:2], e.question or key, said(e.answer, e.unit), said(e.measured, e.unit), _closeness(e)) for key, e in kept]
    numbers = [(key, e.factor) for key, e in seen if e.factor is not None]
    drawn = figures.picture(figures.factors_off(numbers, CLOSE), text) if len(numbers) > 1 else ""
    return Card(text, f"<p>{escape(text)}</p>{drawn}{Table(headings, rows).to_html()}")


def said(answer: str | float | Points | None, unit: str = "") -> str:
    """An answer in words."""
    if answer is None:
        return "not revealed yet"
    if isinstance(answer, list):
        return ", ".join(f"{short(y)} at {x:g}" for x, y in answer) + (f" ({unit})" if unit else "")
    return f"{short(answer)} {unit}".strip() if isinstance(answer, float) else str(answer)


NO_PREDICTION = "You committed no prediction. Next time do: a surprise needs an expectation."
_WIDE = {"style": {"description_width": "12em"}, "layout": {"width": "30em"}}


def _asked(key: str, question: str, unit: str, controls: list, answer: Callable, answers: str) -> Asked:
    """Controls under a question, with a button. What goes wrong is said beside the button: an error in a callback is not seen."""
    button = widgets.Button(description="Commit", button_style="info")
    earlier = committed(key)
    status = widgets.HTML("Not committed yet." if earlier is None else f"Committed: {escape(said(earlier, unit))}")

    def on_click(_):
        given = answer()
        if given is None:
            status.value = "Choose an answer first." if not unit else "A number above 0 is wanted."
            return
        try:
            commit(key, given, question, unit)
            status.value = f"Committed: {escape(said(given, unit))}"
        except ShapelabError as error:
            status.value = escape(str(error))

    button.on_click(on_click)
    box = widgets.VBox([widgets.HTML(f"<b>{escape(question)}</b>"), *controls, widgets.HBox([button, status])])
    return Asked(box, question, answers)


def _settled(key: str, measured, kind: type):
    """The prediction for a key if it is of this kind; what was measured is kept beside it."""
    entry = _read().get(key)
    if entry is None or not isinstance(entry.answer, kind):
        return None
    # Not writable: the learner still sees the answer, only the closing page misses it.
    with suppress(CannotWrite), locked(_path()):
        _write({**_read(), key: entry.model_copy(update={"measured": measured})})
    return entry.answer


def _factor(a: float, b: float) -> float:
    return max(a / b, b / a) if a > 0 and b > 0 else math.inf


def _hits(seen: list) -> int:
    return sum(entry.right for _, entry in seen)


def _closeness(entry: Prediction) -> str:
    if entry.right is None:
        return "-"
    if entry.factor is None:
        return "right" if entry.right else "not that one"
    return f"{'close, ' if entry.right else ''}a factor of {entry.factor:.2g}"


def _path() -> Path:
    return user_path(os.environ.get("SHAPELAB_PREDICTIONS") or cache_dir() / "predictions.json")


def _read() -> dict[str, Prediction]:
    """What is kept; entries that are not predictions are left out, a damaged file is as good as none."""
    try:
        kept = json.loads(_path().read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    entries = {}
    for key, entry in kept.items() if isinstance(kept, dict) else ():
        try:
            entries[key] = Prediction.model_validate(entry)
        except ValidationError:
            continue
    return entries


def _write(kept: dict[str, Prediction]):
    try:
        write_text_atomically(_path(), json.dumps({key: e.model_dump() for key, e in kept.items()}, indent=2))
    except CannotWrite as error:
        raise CannotWrite(f"{error} SHAPELAB_PREDICTIONS names the file.") from error
