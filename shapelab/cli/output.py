"""How a command prints. Names come from files and users: brackets are no markup here, :cat: is no picture, nothing is coloured."""

import json
import sys
from typing import Any

from rich.console import Console

from shapelab.text import visible


def console(stderr: bool = False) -> Console:
    return Console(stderr=stderr, markup=False, highlight=False, emoji=False)


def say(text: str, style: str | None = None, whole: bool = False):
    """On stdout. whole: in one line however long it is, for paths that somebody copies."""
    console().print(visible(text), style=style, soft_wrap=whole)


def notice(text: str, style: str = "yellow"):
    """On stderr: what should be known about a result and is no part of it."""
    console(stderr=True).print(visible(text), style=style, soft_wrap=True)


def print_table(table):
    """A classroom Table on stdout."""
    console().print(table.to_rich())


def print_json(value: Any):
    """One JSON object on stdout, readable by any parser (no NaN)."""
    sys.stdout.write(json.dumps(value, indent=2, allow_nan=False) + "\n")
