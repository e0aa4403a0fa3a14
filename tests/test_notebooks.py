"""The notebooks as files: executed in order, compared where they say so, clean, consistent, and solvable."""

import ast
import re
import subprocess
import sys
from statistics import median

import nbformat

from tests.notebooks import FOLDER, NOTEBOOKS, code_cells, every_notebook, exercises_of, read, solved

MARKER = "# NBVAL_CHECK_OUTPUT"


def prose(notebook):
    return "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")


def test_there_are_notebooks_and_they_start_alike():
    assert len(NOTEBOOKS) >= 3
    assert len({code_cells(read(path))[0].source for path in NOTEBOOKS}) == 1


@every_notebook
def test_the_file_is_valid_and_clean(path):
    notebook = read(path)
    nbformat.validate(notebook)
    assert "widgets" not in notebook.metadata, "GitHub cannot show a notebook with widget state"
    for cell in code_cells(notebook):
        for output in cell.outputs:
            assert output.output_type != "error" and output.get("name") != "stderr"
    assert not re.search(r"/(?:tmp|root|work|home)/", path.read_text(encoding="utf-8"))


@every_notebook
def test_cells_ran_in_order(path):
    counts = [cell.execution_count for cell in code_cells(read(path))]
    assert counts == list(range(1, len(counts) + 1))


@every_notebook
def test_marked_cells_are_really_compared(path):
    marked = [cell for cell in code_cells(read(path)) if "NBVAL" in cell.source]
    assert marked
    for cell in marked:
        assert cell.source.splitlines()[0] == MARKER, "a marker counts only as a whole line"
        assert cell.outputs and cell.execution_count, "without an output nothing is compared"


def test_a_changed_output_is_noticed(tmp_path):
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(f"{MARKER}\nprint(6 * 7)", execution_count=1)])
    for said, passes in (("42\n", True), ("43\n", False)):
        notebook.cells[0].outputs = [nbformat.v4.new_output("stream", name="stdout", text=said)]
        nbformat.write(notebook, tmp_path / "one.ipynb")
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--nbval-lax", str(tmp_path / "one.ipynb")]
        assert (subprocess.run(command, capture_output=True, cwd=tmp_path, check=False).returncode == 0) is passes


@every_notebook
def test_cells_are_short_and_pages_have_their_parts(path):
    notebook = read(path)
    assert all(len(line) <= 110 for cell in code_cells(notebook) for line in cell.source.splitlines())
    assert median(len(cell.source.splitlines()) for cell in code_cells(notebook)) <= 7
    assert 25 <= len(notebook.cells) <= 55
    headings = re.findall(r"^(#+) (.+)$", prose(notebook), re.MULTILINE)
    assert [level for level, _ in headings].count("#") == 1 and headings[0][0] == "#"
    titles = {title for _, title in headings}
    assert {"Exercises", "Takeaway"} <= titles
    assert "Minutes needed" in prose(notebook) and "**Next:**" in prose(notebook)


@every_notebook
def test_a_cell_that_draws_ends_with_the_drawing(path):
    """Then the notebook shows the picture with its description; anything after it, or a semicolon, would hide both."""
    for cell in code_cells(read(path)):
        if "figures." in cell.source:
            *_, last = ast.parse(cell.source).body
            assert isinstance(last, ast.Expr) and ast.unparse(last).startswith("figures.") and not cell.source.endswith(";")


@every_notebook
def test_links_lead_somewhere(path):
    for link in re.findall(r"\]\(([^)#]+)", prose(read(path))):
        assert link.startswith("https://") or (FOLDER / link).is_file(), link


@every_notebook
def test_measured_shapes_fit_the_smallest_default_context(path):
    """TinyLlama, the default on a GPU, has a context of 2,048 tokens; cells that only compute may go beyond."""
    for cell in code_cells(read(path)):
        if "RequestShape(" in cell.source and MARKER not in cell.source:
            numbers = [int(number) for number in re.findall(r"(?<![\w.])\d{3,}(?![\w.])", cell.source)]
            assert max(numbers, default=0) <= 1960, f"with what is read and written besides, this may be too long: {cell.source}"


@every_notebook
def test_three_exercises_at_least_each_with_a_stub(path):
    notebook = read(path)
    found = list(exercises_of(notebook))
    assert len(found) >= 3
    for number, solution in found:
        before = notebook.cells[number].source
        assert solved(before, solution) != before
        said = notebook.cells[number].outputs[-1]["data"]["text/plain"]
        assert said.startswith("Your turn"), "the committed notebook is the learner's, not solved"
