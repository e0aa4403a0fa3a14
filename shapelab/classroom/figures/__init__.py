"""The pictures of the course. Each function returns a `Drawn`: the picture and its description."""

from shapelab.classroom.figures.drawn import Drawn
from shapelab.classroom.figures.guesses import factors_off, guessed, sketched
from shapelab.classroom.figures.regimes import regimes
from shapelab.classroom.figures.shapes import read_and_write, step_times, timelines
from shapelab.classroom.figures.sweeps import along, cost_per_row, cost_ratio, lines, starving, trade_off

__all__ = [
    "Drawn", "along", "cost_per_row", "cost_ratio", "factors_off", "guessed", "lines", "read_and_write", "regimes", "sketched",
    "starving", "step_times", "timelines", "trade_off",
]  # fmt: skip
