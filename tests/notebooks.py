"""The notebooks as files, and the exercises in them."""

import re
from pathlib import Path

import nbformat
import pytest

FOLDER = Path(__file__).resolve().parent.parent / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
SOLUTION = re.compile(r"<details><summary>Solution</summary>.*?```python\n(.*?)```", re.DOTALL)

# The answers are checked here, not the timings: one repeat and no warm-up are enough. It stands there twice, for one repeat has
# no interval. nbval runs the notebooks as they are.
MEASURE_ONCE = """
import functools
from shapelab.measure import experiment, sweep as sweeps

experiment.warm_up = lambda *_: None

def _once(measure):  # an underscore: no page may overwrite it
    @functools.wraps(measure)
    def measured_once(*given, **named):
        run = measure(*given, **{**named, "repeats": 1})
        for place, m in enumerate(run.measurements):
            again = m.repeats[0].model_copy(update={"index": 2, "order": m.repeats[0].order + 1})
            run.measurements[place] = m.model_copy(update={"repeats": (m.repeats[0], again)})
        return run
    return measured_once

experiment.measure_shapes = _once(experiment.measure_shapes)
sweeps.sweep = _once(sweeps.sweep)
"""

every_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def read(path):
    return nbformat.read(path, as_version=4)


def code_cells(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def exercises_of(notebook):
    """(position of the exercise's cell, solution) for every exercise."""
    cells = notebook.cells
    for number, cell in enumerate(cells):
        if cell.cell_type == "code" and "exercises.check_" in cell.source:
            solution = SOLUTION.search(cells[number + 1].source)
            assert solution, f"no folded solution after: {cell.source}"
            yield number, solution.group(1)


def solved(source: str, solution: str) -> str:
    """The exercise's cell with its stub replaced by the solution."""
    if "def my_" in source:
        rest = source[source.index("\n\n\n") :]
        return solution + rest
    return re.sub(r"^\w+ = \.\.\.$", lambda _: solution.rstrip(), source, count=1, flags=re.MULTILINE)
