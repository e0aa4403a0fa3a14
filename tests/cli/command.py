"""The command as a person or a script meets it: run in this process, its output strictly read."""

import dataclasses
import json

import pytest
from typer.testing import CliRunner

from shapelab.cli.app import app
from tests.toys import toy_lab

PLAIN = {"COLUMNS": "80", "NO_COLOR": "1", "FORCE_COLOR": None, "TERM": "dumb"}


def shapelab(*arguments, **environment):
    return CliRunner().invoke(app, [str(argument) for argument in arguments], env=PLAIN | environment)


def parsed(text):
    """Strict JSON: NaN and Infinity, which Python would let pass, are errors."""
    return json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))


def sentence(result) -> str:
    """The one line on stderr of a command that ended with exit code 1 and nothing on stdout."""
    assert result.exit_code == 1 and isinstance(result.exception, SystemExit), result.output
    assert result.stdout == "" and "Traceback" not in result.stderr
    (line,) = result.stderr.strip().splitlines()
    return line


def noted_lab(*_):
    """A toy that takes 1,205 tokens, with a note that a careless printer would read as markup."""
    return dataclasses.replace(toy_lab(max_position_embeddings=2048, num_hidden_layers=1), notes=("A note [/x].",))
