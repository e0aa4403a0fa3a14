import subprocess
import sys

import pytest

from shapelab.cli.app import app
from tests.cli.command import sentence, shapelab

HELP = {
    "run": "--shapes",
    "sweep": "--plan",
    "fit": "--out",
    "predict": "RUN|MODEL.json",
    "cost": "--prices",
    "claims": "--json",
    "report": "--out",
    "doctor": "--json",
    "models": "--clear",
}


@pytest.mark.parametrize("command", HELP)
def test_every_command_has_help(command):
    result = shapelab(command, "--help")
    assert result.exit_code == 0 and HELP[command] in result.stdout and command in shapelab("--help").stdout


def test_no_command_is_without_a_test_of_its_help():
    assert [command.callback.__name__ for command in app.registered_commands] == list(HELP)


def test_help_imports_nothing_heavy():
    script = "import sys; sys.argv[1:] = ['--help']; import atexit; atexit.register(lambda: print(*sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", f"{script}\nfrom shapelab.cli.app import app; app()"], capture_output=True, text=True, check=True
    )
    heavy = {"torch", "transformers", "numpy", "pandas", "scipy", "matplotlib", "pydantic"}
    assert "Measure how the shape of an LLM request" in done.stdout and not heavy & set(done.stdout.split())


def test_the_package_runs_as_a_module():
    done = subprocess.run([sys.executable, "-m", "shapelab.cli", "cost", "5y5"], capture_output=True, text=True)
    assert done.returncode == 1 and done.stdout == "" and done.stderr.startswith("shapelab: SHAPE: '5y5' is not a shape")


MISSING = [
    (["fit", "no.jsonl", "-o", "m.json"], "`shapelab sweep`"),
    (["predict", "no.jsonl", "5x5"], "`shapelab sweep`"),
    (["predict", "no.json", "5x5"], "`shapelab fit RUN --out no.json`"),
    (["cost", "5x5", "--usd-per-hour", "1", "--run", "no.jsonl"], "`shapelab sweep`"),
    (["claims", "no.jsonl"], "`shapelab run`"),
    (["report", "no.jsonl"], "xeon-2cpu-smollm2-135m-float32"),
]


@pytest.mark.parametrize("arguments,next_step", MISSING)
def test_a_missing_file_names_the_next_step(tmp_path, monkeypatch, arguments, next_step):
    monkeypatch.chdir(tmp_path)
    line = sentence(shapelab(*arguments))
    assert "no.json" in line and next_step in line


HOME = [
    ["run", "--shapes", "5x2", "--repeats", "1", "--no-limits", "--out", "~/x"],
    ["sweep", "--input", "5", "--output", "2", "--repeats", "1", "--out", "~/x/s.jsonl"],
    ["fit", "~/quick.jsonl", "-o", "~/x/m.json"],
    ["fit", "~/quick.jsonl", "--out=~/x/m.json"],
    ["predict", "~/quick.jsonl", "5x5"],
    ["cost", "5x5", "--usd-per-hour", "1", "--run", "~/quick.jsonl"],
    ["claims", "~/quick.jsonl"],
    ["report", "~/quick.jsonl", "--out", "~/x/card.html"],
]


@pytest.mark.parametrize("arguments", HOME, ids=lambda arguments: arguments[0])
def test_a_tilde_is_the_home_folder(toy, plan_file, tmp_path, monkeypatch, arguments):
    home, here = tmp_path / "home", tmp_path / "here"
    for folder in (home, here):
        folder.mkdir()
    (home / "quick.jsonl").write_text(plan_file.read_text())
    monkeypatch.chdir(here)
    result = shapelab(*arguments, HOME=str(home), SHAPELAB_PREDICTIONS=str(tmp_path / "p.json"))
    assert result.exit_code == 0, result.output
    assert list(here.iterdir()) == []
    if "~/x" in " ".join(arguments):
        assert any((home / "x").iterdir())


def test_a_tilde_in_a_models_folder_is_the_home_folder(no_load, tmp_path):
    line = sentence(shapelab("run", "--model=~/no-model", "--out", tmp_path, HOME=str(tmp_path)))
    assert str(tmp_path / "no-model") in line
