"""One exception for everything a person can put right: its text is a sentence that says how."""


class ShapelabError(Exception):
    """What was wrong, and what would work. The command line prints it without a traceback."""
