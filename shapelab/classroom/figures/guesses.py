"""What a learner predicted beside what was measured."""

from collections.abc import Sequence

from shapelab.classroom.figures.colours import DECODE, OVERHEAD
from shapelab.classroom.figures.drawn import Drawn, canvas, captioned, in_words, label, not_empty, plain_logarithm, verbatim
from shapelab.classroom.html import brief, short

_HIGHEST = 1e4  # a guess further off than this is drawn there, or the others would be one flat line


@verbatim
def guessed(predicted: float, measured: float, unit: str, about: str, kind: str = "measured") -> Drawn:
    """A predicted number beside the measured one."""
    figure, (axis,) = canvas(2, 7.6)
    values = {"your prediction": predicted, kind: measured}
    bars = axis.barh(list(values), list(values.values()), color=[OVERHEAD, DECODE], height=0.6)
    axis.bar_label(bars, [short(value) for value in values.values()], padding=4)
    axis.invert_yaxis()
    axis.set_xlim(0, max(values.values()) * 1.15)
    opening = label(axis, "", unit, grid="x")
    return captioned(figure, f"{opening} {', '.join(f'{name} {short(v)}' for name, v in values.items())}.", kind, about)


@verbatim
def sketched(
    predicted: Sequence[tuple[float, float]] | None, measured: Sequence[tuple[float, float]] | None,
    xlabel: str, unit: str, about: str, kind: str = "measured", highest: float | None = None,
) -> Drawn:  # fmt: skip
    """A sketched curve and the measured one, from zero. Either may be missing. highest: an axis that stands still."""
    figure, (axis,) = canvas(3, 7.6)
    words = []
    for name, points, style, color in (("your prediction", predicted, "o--", OVERHEAD), (kind, measured, "s-", DECODE)):
        if points:
            axis.plot(*zip(*points, strict=True), style, color=color, label=name)
            words.append(f"{name} {in_words(points)}")
    axis.set_xticks([x for x, _ in not_empty(measured or predicted)])
    axis.set_ylim(0, highest or axis.get_ylim()[1] * 1.05)
    axis.legend(frameon=False, fontsize=9)
    opening = label(axis, "", xlabel, unit)
    return captioned(figure, f"{opening} {'; '.join(words)}.", kind if measured else "predicted", about)


@verbatim
def factors_off(factors: Sequence[tuple[str, float]], close: float) -> Drawn:
    """How many times too large or too small each prediction was, in the order of the course; 1 is exact."""
    figure, (axis,) = canvas(2.8, 7.6)
    heights = [min(factor, _HIGHEST) for _, factor in not_empty(factors)]
    axis.plot([brief(name) for name, _ in factors], heights, "o-", color=DECODE)
    axis.axhline(close, color=OVERHEAD, linestyle="--", label=f"close: within a factor of {close}")
    axis.set_yscale("log")
    plain_logarithm(axis)
    axis.set_ylim(0.9, max(10, *heights) * 1.3)
    axis.legend(frameon=False, fontsize=9)
    opening = label(axis, "", "prediction", "times too large or too small")
    words = ", ".join(f"{name} {short(factor)}" for name, factor in factors)
    about = "numbers and curves, in the order of the course"
    return captioned(figure, f"{opening} {words}; close is within a factor of {close}.", "your predictions", about)
