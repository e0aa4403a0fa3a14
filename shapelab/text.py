"""Strings from files and users, as they may be shown."""

import re

VERBATIM = "tex2jax_ignore mathjax_ignore"  # HTML classes: Jupyter must not set what stands between two dollar signs as a formula

_UNSHOWABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")  # control, direction, half a character


def visible(text: str, lines: bool = False) -> str:
    """Characters that a terminal or a picture would obey rather than show, written as Python writes them. lines: all but line ends."""
    return _UNSHOWABLE.sub(
        lambda match: match[0] if lines and match[0] == "\n" else match[0].encode("unicode_escape").decode(), text
    )
