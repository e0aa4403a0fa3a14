"""What a person can put right. The text is a sentence that says what was wrong and what would work; the class says which kind it is.

Code and tests tell errors apart by their class and fields, never by their text, so that a sentence can be improved anywhere.
"""


class ShapelabError(Exception):
    """The command line prints it without a traceback."""


class BadArgument(ShapelabError):
    """A value that cannot be. `argument` is its Python name, and stands so in the text; the command line shows its option instead."""

    def __init__(self, text: str, argument: str = ""):
        super().__init__(text)
        self.argument = argument


class UnknownName(BadArgument):
    """There is no model, GPU, price, plan or recorded run of that name."""


class DoesNotFit(ShapelabError):
    """Longer than the model's context, or larger than the memory that is left."""


class UnsupportedModel(ShapelabError):
    """A model or config that cannot be counted, loaded or run here."""


class CannotLoad(ShapelabError):
    """A model that should work and could not be had: no network, a gated repository, damaged files."""


class BadFile(ShapelabError):
    """A file that cannot be read, or holds something else than it should. `line` is None where no line is to blame."""

    def __init__(self, text: str, line: int | None = None):
        super().__init__(text)
        self.line = line


class CannotWrite(ShapelabError):
    """A file that cannot be written; what was measured is not lost."""


class OtherSettings(ShapelabError):
    """A sweep's file belongs to other settings or to another environment."""


class NotEnoughMeasured(ShapelabError):
    """More shapes or repeats are needed before this can be said."""
