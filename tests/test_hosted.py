"""On Colab and Kaggle what is missing is installed and nothing else changes; at home nothing is installed at all."""

import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

from shapelab import hosted
from tests.test_notebooks import NOTEBOOKS, code_cells, read

WITHOUT_SHAPELAB = """
import sys
class Nothing:
    def find_spec(self, name, *_):
        if name.split(".")[0] == "shapelab":
            raise ModuleNotFoundError(f"No module named {name!r}")
sys.meta_path.insert(0, Nothing())
"""


@pytest.fixture(autouse=True)
def at_home(monkeypatch):
    for name in ("COLAB_RELEASE_TAG", "KAGGLE_KERNEL_RUN_TYPE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def without_gguf(monkeypatch):
    def found(name):
        if name == "gguf":
            raise PackageNotFoundError(name)
        return version(name)

    monkeypatch.setattr(hosted, "version", found)


@pytest.fixture
def pip(monkeypatch):
    """Commands that would have run, each with the versions that it was told to hold."""
    commands = []

    def run(command, check):
        held = Path(command[command.index("--constraint") + 1]).read_text(encoding="utf-8").splitlines()
        commands.append((command, held, check))

    monkeypatch.setattr(hosted.subprocess, "run", run)
    return commands


def test_which_host(monkeypatch):
    assert hosted.host() == "" and hosted.how_to_get_a_gpu() == ""
    monkeypatch.setenv("KAGGLE_KERNEL_RUN_TYPE", "Interactive")
    assert hosted.host() == "Kaggle" and "Accelerator" in hosted.how_to_get_a_gpu()
    monkeypatch.setenv("COLAB_RELEASE_TAG", "release-colab")
    assert hosted.host() == "Colab" and "T4 GPU" in hosted.how_to_get_a_gpu()
    monkeypatch.delenv("COLAB_RELEASE_TAG")
    monkeypatch.setitem(sys.modules, "google.colab", object())
    assert hosted.host() == "Colab"


def test_what_is_missing(without_gguf):
    assert hosted.missing() == ["gguf>=0.10"], "and nothing of the extras"


def test_at_home_nothing_is_installed(without_gguf, pip):
    assert hosted.install_missing() == [] and pip == []


def test_on_a_host_only_what_is_missing_and_all_else_is_held(without_gguf, pip, monkeypatch):
    monkeypatch.setenv("COLAB_RELEASE_TAG", "release-colab")
    assert hosted.install_missing() == ["gguf>=0.10"]
    ((command, held, check),) = pip
    assert command[-1] == "gguf>=0.10" and command[0] == sys.executable and check
    assert not {"--upgrade", "-U", "--force-reinstall"} & set(command)
    assert {f"{name}=={version(name)}" for name in ("torch", "transformers", "numpy", "ipywidgets")} <= set(held)
    assert not [line for line in held if line.startswith("shapelab==")], "it may have come from a file"


def test_on_a_host_with_everything_pip_is_left_alone(pip, monkeypatch):
    monkeypatch.setenv("COLAB_RELEASE_TAG", "release-colab")
    assert hosted.missing() == [] and hosted.install_missing() == [] and pip == []


@pytest.mark.parametrize("variables,way", [({}, "make lab"), ({"COLAB_RELEASE_TAG": "x"}, "Upload shapelab-*.whl")])
def test_the_first_cell_says_what_to_do_where_the_course_cannot_be_had(tmp_path, variables, way):
    cell = code_cells(read(NOTEBOOKS[0]))[0].source
    done = subprocess.run(
        [sys.executable, "-c", f"{WITHOUT_SHAPELAB}\n{cell}"],
        cwd=tmp_path,
        env=variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1 and done.stderr.splitlines()[-1].startswith("ModuleNotFoundError: shapelab is not installed")
    assert way in done.stderr
