"""The notebooks as files, and the exercises in them."""

import re
from pathlib import Path

import nbformat
import pytest

FOLDER = Path(__file__).resolve().parent.parent / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
SOLUTION = re.compile(r"<details><summary>Solution</summary>.*?```python\n(.*?)```", re.DOTALL)

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
