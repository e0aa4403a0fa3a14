"""Run notebooks from top to bottom and keep their outputs: `python scripts/execute_notebooks.py [NOTEBOOK ...]`.

Widget state is not kept (GitHub cannot show it), and neither is anything that differs at every run without teaching.
"""

import os
import re
import sys
import tempfile
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).resolve().parent.parent / "notebooks"


def execute(path: Path):
    notebook = nbformat.read(path, as_version=4)
    start = time.perf_counter()
    NotebookClient(notebook, timeout=900, kernel_name="python3", resources={"metadata": {"path": str(path.parent)}}).execute()
    notebook.metadata.pop("widgets", None)
    notebook.metadata.language_info = {"name": "python"}
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if not is_noise(output)]
    nbformat.validate(notebook)
    nbformat.write(notebook, path)
    print(f"{path.name}: {time.perf_counter() - start:.0f} s")


def is_noise(output) -> bool:
    """Progress bars and other notes on stderr."""
    return output.get("name") == "stderr" or bool(re.search(r"\?\w+/s\]", str(output.get("data", {}).get("text/plain", ""))))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as empty:  # no earlier predictions in the committed outputs
        os.environ.setdefault("SHAPELAB_PREDICTIONS", str(Path(empty) / "predictions.json"))
        for given in [Path(name).resolve() for name in sys.argv[1:]] or sorted(FOLDER.glob("*.ipynb")):
            execute(given)
