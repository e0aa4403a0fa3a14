"""A machine like Colab, built here: its ipywidgets and transformers, no JupyterLab, and neither shapelab nor what it brings along.

There every notebook runs from a folder that holds the notebook and the wheel, with its exercises solved.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from tests.environments import clone_environment, run
from tests.notebooks import MEASURE_ONCE, code_cells, every_notebook, exercises_of, read, solved

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[1]
COLAB = ("ipywidgets==7.7.1", "transformers==5.15.0")  # of its image of August 2026
NOT_THERE = ("shapelab", "gguf", "jupyterlab")


@pytest.fixture(scope="module")
def colab(tmp_path_factory) -> Path:
    """Its interpreter. The cloned files are links: nothing but the packages above is fetched."""
    python = clone_environment(tmp_path_factory.mktemp("colab"))
    run([python, "-m", "pip", "install", "--quiet", *COLAB])
    return python


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    run([sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, ROOT])
    return next(folder.glob("*.whl"))


def installed(python: Path) -> set[str]:
    return set(run([python, "-m", "pip", "list", "--format=freeze"]).split())


@every_notebook
def test_every_notebook_installs_what_is_missing_runs_and_can_be_solved(path, colab, wheel, tmp_path, monkeypatch):
    run([colab, "-m", "pip", "uninstall", "--quiet", "--yes", *NOT_THERE])
    before = installed(colab)
    folder, kernels = tmp_path / "empty", tmp_path / "jupyter" / "kernels" / "colab"
    folder.mkdir()
    kernels.mkdir(parents=True)
    (folder / wheel.name).hardlink_to(wheel)
    start = [str(colab), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    here = {"COLAB_RELEASE_TAG": "a test", "SHAPELAB_PREDICTIONS": str(tmp_path / "predictions.json"), "PYTHONPATH": ""}
    (kernels / "kernel.json").write_text(json.dumps({"argv": start, "display_name": "colab", "language": "python", "env": here}))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "jupyter"))

    notebook = read(path)
    places = []
    for number, solution in exercises_of(notebook):
        notebook.cells[number].source = solved(notebook.cells[number].source, solution)
        places.append(number)
    first = code_cells(notebook)[0]
    first.source = first.source.replace("\ngreet()", f"\n{MEASURE_ONCE}\ngreet()")
    assert MEASURE_ONCE in first.source
    nbformat.write(notebook, folder / path.name)
    NotebookClient(notebook, timeout=900, kernel_name="colab", resources={"metadata": {"path": str(folder)}}).execute()

    said = [notebook.cells[number].outputs[-1]["data"]["text/plain"] for number in places]
    assert [answer.split(":")[0] for answer in said] == ["Right"] * len(places), said
    assert "ipywidgets 7.7.1" in first.outputs[-1]["data"]["text/plain"] and "T4 GPU" in first.outputs[-1]["data"]["text/plain"]
    new = {line.split("==")[0].split("@")[0].strip() for line in installed(colab) - before}
    assert new - {"@", "file"} <= {"shapelab", "gguf"} and "gguf" in new, f"a package of Colab's own was changed: {new}"


def test_what_people_see_works_with_the_old_widgets(colab):
    """From the clone, so that these are the same tests as with the new ones."""
    command = [colab, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not slow", "tests/classroom"]
    version = [colab, "-c", "import ipywidgets; print(ipywidgets.__version__)"]
    assert run(version).strip() == "7.7.1"
    said = subprocess.run(
        [str(word) for word in command], cwd=ROOT, capture_output=True, text=True, env=dict(os.environ), check=False
    )
    assert said.returncode == 0, said.stdout[-3000:] + said.stderr[-3000:]
    assert " passed" in said.stdout
