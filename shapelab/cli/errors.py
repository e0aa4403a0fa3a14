"""Errors as a person meets them: one sentence on stderr that names the option, an exit code, and no traceback."""

import logging
import re
import sys

import typer
from rich.text import Text
from typer.core import TyperCommand

from shapelab.cli.output import console, notice
from shapelab.errors import CannotWrite, OtherSettings, ShapelabError
from shapelab.text import visible

# The library's name of an argument, and the commands' names of it, where the two differ.
_CALLED = (("name", "model"), ("name", "prices"), ("path", "out"), ("text", "shapes"), ("text", "shape"))


class Command(TyperCommand):
    """A command that ends with exit code 1 on what a person can put right, and with 130 on Ctrl-C."""

    def invoke(self, ctx):
        for stream in (sys.stdout, sys.stderr):
            stream.reconfigure(errors="backslashreplace")  # a name with letters that this terminal lacks is no reason to stop
        logging.getLogger("matplotlib").setLevel(logging.ERROR)
        try:
            return super().invoke(ctx)
        except ShapelabError as error:
            argument = getattr(error, "argument", "out" if isinstance(error, CannotWrite | OtherSettings) else "")
            text = in_options(str(error), argument, option_names(self))
            console(stderr=True).print(Text.assemble(("shapelab:", "red"), f" {visible(text)}"), soft_wrap=True)
            raise typer.Exit(1) from None
        except KeyboardInterrupt as stop:
            notice(str(stop) or "Stopped.", style="")
            raise typer.Exit(130) from None


def option_names(command: TyperCommand) -> dict[str, str]:
    """For each Python argument, what a person types: the option, or an argument's placeholder in the help."""
    names = {p.name: p.opts[0] if p.param_type_name == "option" else p.metavar or p.name.upper() for p in command.params}
    called = {argument: names[parameter] for argument, parameter in _CALLED if parameter in names}
    return called | names


def in_options(text: str, argument: str, options: dict[str, str]) -> str:
    """The library's sentence about an argument, about the option: in place of the argument's name, else in front."""
    option = options.get(argument)
    if option is None:
        return text
    pattern = rf"`{argument}`|\b{argument}\b" if "_" in argument else rf"`{argument}`|^{argument}\b"
    named, count = re.subn(pattern, option.replace("\\", r"\\"), text)
    return named if count else f"{option}: {text}"
