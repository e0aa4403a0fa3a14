"""Predict, then look. You commit a prediction before the answer shows: a choice, a number, or a curve sketched with sliders.

`journey` shows at the end of the course how your predictions changed.
"""

import math
from collections.abc import Callable, Sequence
from statistics import median

import ipywidgets as widgets

from shapelab.classroom import figures, guess_file
from shapelab.classroom.figures.drawn import in_words
from shapelab.classroom.guess_file import CLOSE, Answer, Points, Prediction, commit, committed, factor, forget
from shapelab.classroom.html import Card, escape, live_or_still, short
from shapelab.classroom.table_format import Table
from shapelab.errors import BadFile, ShapelabError
from shapelab.text import VERBATIM

__all__ = [
    "choose", "commit", "committed", "forget", "journey", "number", "reveal", "reveal_curve", "reveal_number", "sketch",
]  # fmt: skip


class Asked:
    """A question with its controls and a button; where no kernel runs, the question and the possible answers."""

    def __init__(self, box: widgets.VBox, question: str, answers: str):
        self.box, self.text = box, f"{question} ({answers})"

    def __repr__(self) -> str:
        return self.text

    def _repr_mimebundle_(self, **_) -> dict:
        return live_or_still(self.box, self.text, f'<p class="{VERBATIM}">{escape(self.text)}</p>')


def choose(key: str, question: str, options: Sequence[str]) -> Asked:
    """A question with one answer to choose and a button to commit it. `reveal` finds the prediction by its key."""
    earlier = _earlier(key)
    choice = widgets.RadioButtons(
        options=list(options), value=earlier if earlier in options else None, layout={"width": "max-content"}
    )
    return _asked(key, question, "", [choice], lambda: choice.value, "one of: " + ", ".join(options))


def number(key: str, question: str, unit: str) -> Asked:
    """A question answered by a number above 0, and a button to commit it."""
    earlier = _earlier(key)
    box = widgets.FloatText(value=earlier if isinstance(earlier, float) else 0.0, description=unit, **_WIDE)

    def answer() -> float | None:
        return box.value if math.isfinite(box.value) and box.value > 0 else None

    return _asked(key, question, unit, [box], answer, f"a number, {unit}")


def sketch(key: str, question: str, xlabel: str, xs: Sequence[float], unit: str, highest: float, first: float = 1.0) -> Asked:
    """A curve to sketch: a slider for each x after the first, where the curve starts at `first`."""
    earlier = _earlier(key)
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
        picture.value = figures.sketched(points(), None, xlabel, unit, "your sketch so far", highest=highest).png()
        text.value = escape(_written(points(), unit))

    for slider in sliders:
        slider.observe(draw, names="value")
    draw()
    answers = f"a curve: {unit}, over {xlabel} {', '.join(map(str, xs))}"
    return _asked(key, question, unit, [*sliders, picture, text], points, answers)


def reveal(key: str, measured: str, lesson: str, how: str = "Measured here") -> Card:
    """A choice: the prediction, the answer that was measured (or computed: `how`), and what the difference teaches."""
    predicted, problem = _settled(key, measured, str)
    if predicted is None:
        first = f"{how}: {measured}."
    elif predicted == measured:
        first = f"You predicted {predicted}, and {predicted} it is."
    else:
        first = f"You predicted {predicted}; {how[:1].lower()}{how[1:]}: {measured}."
    return _card(problem, first, lesson)


def reveal_number(
    key: str, measured: float, unit: str, about: str, lesson: str, too_low: str = "", too_high: str = "", how: str = "measured"
) -> Card:
    """A number: predicted and measured in one picture. too_low, too_high: what a prediction far off on that side teaches."""
    measured = float(measured)
    predicted, problem = _settled(key, measured, float)
    first = taught = ""
    if predicted is not None and factor(predicted, measured) <= CLOSE:
        first = f"You predicted {short(predicted)}: close."
    elif predicted is not None:
        side, taught = ("low", too_low) if predicted < measured else ("high", too_high)
        first = f"You predicted {short(predicted)}, too {side} by a factor of {factor(predicted, measured):.2g}."
    drawn = None if predicted is None else figures.guessed(predicted, measured, unit, about, how)
    return _card(problem, first, f"{how.capitalize()}: {short(measured)} {unit}.", taught, lesson, drawn=drawn)


def reveal_curve(
    key: str, measured: Sequence[tuple[float, float]], xlabel: str, unit: str, about: str, lesson: str, how: str = "measured"
) -> Card:
    """A curve: the sketch and the measured points in one picture, and where they differ most."""
    points = [(float(x), float(y)) for x, y in measured]
    predicted, problem = _settled(key, points, list)
    first = ""
    if predicted is not None:
        heights = dict(points)
        off = {x: factor(y, heights[x]) for x, y in predicted if x in heights}
        worst = max(off, key=off.get, default=None)
        if worst is None or off[worst] <= CLOSE:
            first = f"Your sketch stays within a factor of {CLOSE} everywhere: close."
        else:
            side = "high" if dict(predicted)[worst] > heights[worst] else "low"
            first = f"Your sketch is furthest off at {xlabel} {worst:g}: too {side} by a factor of {off[worst]:.2g}."
    drawn = figures.sketched(predicted, points, xlabel, unit, about, how)
    return _card(problem, first, f"{how.capitalize()}: {_written(points, unit)}.", lesson, drawn=drawn)


def journey() -> Card:
    """Every prediction in the order of the course, the answer to it, and whether the later ones are better than the first ones."""
    try:
        entries = sorted(guess_file.read().items())
    except BadFile as error:
        return _card(str(error))
    if not entries:
        return _card(
            "You have no predictions yet. Each notebook asks for some before it measures: answer, run the notebook, and come back."
        )
    revealed = [(key, entry) for key, entry in entries if entry.right is not None]
    words = [f"Predictions: {len(entries)}. Revealed: {len(revealed)}. Right or close: {_hits(revealed)}."]
    half = len(revealed) // 2
    if half:
        early, late = revealed[:half], revealed[half:]
        words.append(
            f"Right or close in the first half: {_hits(early)} of {len(early)}; in the second half: {_hits(late)} of {len(late)}."
        )
        factors = [[e.factor for _, e in part if e.factor is not None] for part in (early, late)]
        if all(factors):
            first, later = map(median, factors)
            words.append(f"Numbers and curves were off by a factor of {first:.2g} at first and {later:.2g} later (medians).")
    numbers = [(key, e.factor) for key, e in revealed if e.factor is not None]
    table = Table(
        ("notebook", "question", "your prediction", "answer", "how close"),
        tuple(
            (key[:2], e.question or key, _written(e.answer, e.unit), _written(e.measured, e.unit), _closeness(e))
            for key, e in entries
        ),
        numbers=frozenset(),
    )
    drawn = figures.factors_off(numbers, CLOSE) if len(numbers) > 1 else None
    card = _card(*words, drawn=drawn)
    return Card(card.text, f"{card.html}{table.to_html()}")


_WIDE = {"style": {"description_width": "12em"}, "layout": {"width": "30em"}}


def _asked(key: str, question: str, unit: str, controls: list, answer: Callable, answers: str) -> Asked:
    """Controls under a question, and a button. Errors appear beside the button: nobody sees those of a callback."""
    button = widgets.Button(description="Commit", button_style="info")
    status = widgets.HTML("Not committed yet.")

    def report(action: Callable):
        try:
            action()
            given = committed(key)
            status.value = "Not committed yet." if given is None else f"Committed: {escape(_written(given, unit))}"
        except ShapelabError as error:
            status.value = escape(str(error))

    def on_click(_):
        given = answer()
        if given is None:
            status.value = "Enter a number above 0." if unit else "Choose an answer first."
        else:
            report(lambda: commit(key, given, question, unit))

    report(lambda: None)
    button.on_click(on_click)
    box = widgets.VBox([widgets.HTML(f"<b>{escape(question)}</b>"), *controls, widgets.HBox([button, status])])
    return Asked(box, question, answers)


def _earlier(key: str) -> Answer | None:
    """The answer committed before; None too when the file cannot be read, which the text beside the button says."""
    try:
        return committed(key)
    except BadFile:
        return None


def _settled(key: str, measured: Answer, kind: type) -> tuple[Answer | None, str]:
    """The prediction, and why there is none when the file cannot be read: the learner sees the answer in any case."""
    try:
        return guess_file.settle(key, measured, kind), ""
    except BadFile as error:
        return None, str(error)


def _card(*sentences: str, drawn: figures.Drawn | None = None) -> Card:
    text = " ".join(filter(None, sentences))
    return Card(text, f"{drawn.html() if drawn else ''}<p>{escape(text)}</p>")


def _written(answer: Answer | None, unit: str = "") -> str:
    if answer is None:
        return "not revealed yet"
    if isinstance(answer, list):
        return in_words(answer) + (f" ({unit})" if unit else "")
    return f"{short(answer)} {unit}".strip() if isinstance(answer, float) else answer


def _hits(entries: Sequence[tuple[str, Prediction]]) -> int:
    return sum(entry.right for _, entry in entries)


def _closeness(entry: Prediction) -> str:
    if entry.right is None:
        return "-"
    if entry.factor is None:
        return "right" if entry.right else "different"
    return f"{'close, ' if entry.right else ''}a factor of {entry.factor:.2g}"
