"""An error of the library names a Python argument; a person sees the option."""

import os
import subprocess
import sys

import pytest
import typer.main

from shapelab.cli.app import app
from shapelab.cli.errors import in_options, option_names
from shapelab.errors import BadArgument
from tests.cli.command import sentence, shapelab

COMMANDS = typer.main.get_command(app).commands


@pytest.mark.parametrize(
    "text,argument,shown",
    [
        ("usd_per_hour must be a number, not 'x'.", "usd_per_hour", "--usd-per-hour must be a number, not 'x'."),
        ("The list of input_tokens is empty.", "input_tokens", "The list of --input is empty."),
        ("repeats must be at least 1.", "repeats", "--repeats must be at least 1."),
        ("'int8' is not a dtype.", "dtype", "--dtype: 'int8' is not a dtype."),
        ("Choose another `out`.", "out", "Choose another --out."),
        ("Leave it out.", "out", "--out: Leave it out."),
        ("weights must be 'auto' or 'random'.", "weights", "weights must be 'auto' or 'random'."),
        ("Something else.", "", "Something else."),
    ],
)
def test_an_argument_is_shown_as_its_option(text, argument, shown):
    options = {
        "usd_per_hour": "--usd-per-hour",
        "input_tokens": "--input",
        "repeats": "--repeats",
        "dtype": "--dtype",
        "out": "--out",
    }
    assert in_options(text, argument, options) == shown


@pytest.mark.parametrize(
    "command,argument,option",
    [
        ("sweep", "input_tokens", "--input"),
        ("sweep", "output_tokens", "--output"),
        ("sweep", "batch_size", "--batch"),
        ("sweep", "cached_tokens", "--cached"),
        ("sweep", "plan", "--plan"),
        ("run", "name", "--model"),
        ("sweep", "name", "--model"),
        ("cost", "name", "--prices"),
        ("cost", "usd_per_hour", "--usd-per-hour"),
        ("fit", "path", "--out"),
        ("report", "out", "--out"),
        ("predict", "source", "RUN|MODEL.json"),
        ("predict", "shapes", "SHAPES"),
    ],
)
def test_options_are_called_as_the_commands_define_them(command, argument, option):
    assert option_names(COMMANDS[command])[argument] == option


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_is_named_when_the_library_refuses_its_argument(command, monkeypatch):
    for parameter in COMMANDS[command].params:
        option = option_names(COMMANDS[command])[parameter.name]
        shown = in_options(f"{parameter.name} is wrong.", parameter.name, option_names(COMMANDS[command]))
        assert shown == f"{option} is wrong." and (option in parameter.opts or not option.startswith("-"))


@pytest.mark.parametrize(
    "arguments,option",
    [
        (["run", "--dtype", "int8"], "--dtype"),
        (["run", "--dtype", "fp16", "--device", "cpu"], "--dtype"),
        (["run", "--device", "tpu"], "--device"),
        (["run", "--device", "meta"], "--device"),
        (["run", "--model", "tinyllama:randomly"], "--model"),
        (["sweep", "--dtype", "int8"], "--dtype"),
        (["sweep", "--plan", "long"], "--plan"),
    ],
)
def test_the_options_of_loading_are_named(no_load, tmp_path, arguments, option):
    assert option in sentence(shapelab(*arguments, "--out", tmp_path / "x"))


def test_an_error_from_below_names_the_option(monkeypatch, tmp_path, toy):
    def refuse(*_, **__):
        raise BadArgument("seed must be a number of [/x], not 3.", "seed")

    monkeypatch.setattr("shapelab.measure.experiment.measure_shapes", refuse)
    *_, line = shapelab("run", "--out", tmp_path).stderr.splitlines()
    assert line == "shapelab: --seed must be a number of [/x], not 3."


REFUSED_PATHS = ["~nobody-here/x.json", "a\0b.json"]


@pytest.mark.parametrize("path", REFUSED_PATHS, ids=ascii)
@pytest.mark.parametrize(
    "command", [["fit", "xeon-2cpu-smollm2-135m-float32"], ["run"], ["sweep"], ["report", "xeon-2cpu-smollm2-135m-float32"]]
)
def test_a_path_that_cannot_be_is_an_error_of_usage(no_load, command, path):
    result = shapelab(*command, "--out", path)
    assert result.exit_code == 2 and result.stdout == "" and "--out" in result.stderr and "Traceback" not in result.stderr


@pytest.mark.parametrize(
    "name", ["a" * 6000, "a\0b", "a\nshapelab: b", "\udcff", "~nobody-here/x"], ids=lambda name: ascii(name)[:20]
)
@pytest.mark.parametrize("command", [["claims", "{}"], ["fit", "{}", "-o", "m.json"], ["predict", "{}.json", "5x5"]])
def test_a_name_of_no_file_is_one_line(tmp_path, monkeypatch, command, name):
    monkeypatch.chdir(tmp_path)
    assert "shapelab: " in sentence(shapelab(*(word.format(name) for word in command)))


def test_a_seed_that_no_file_can_hold_is_refused_before_loading(no_load, tmp_path):
    assert shapelab("run", "--seed", 2**63, "--out", tmp_path).exit_code == 2


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_a_terminal_without_the_letters_of_a_name(encoding, tmp_path):
    command = [sys.executable, "-m", "shapelab.cli", "claims", "naïve-☃.jsonl"]
    done = subprocess.run(command, capture_output=True, cwd=tmp_path, env={**os.environ, "PYTHONIOENCODING": encoding})
    assert done.returncode == 1 and b"\\u2603.jsonl" in done.stderr and b"Traceback" not in done.stderr


def test_a_shape_that_is_none_names_its_option():
    assert "--shapes: '12' is not a shape" in shapelab("run", "--shapes", "12").stderr
    assert "SHAPES: '12x' is not a shape" in shapelab("predict", "xeon-2cpu-smollm2-135m-float32", "12x").stderr
