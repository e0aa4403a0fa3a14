"""Where the data that travels with the package lies, and where downloads are kept."""

import os
from pathlib import Path

from platformdirs import user_cache_path

_PACKAGE = Path(__file__).resolve().parent


def data_path(*parts: str) -> Path:
    """A file of `data/`: inside the installed package, or beside it in a clone."""
    inside = _PACKAGE / "data"
    return (inside if inside.is_dir() else _PACKAGE.parent / "data").joinpath(*parts)


def cache_dir() -> Path:
    """The folder for converted models: `SHAPELAB_CACHE`, or the system's cache folder for this user."""
    return user_path(os.environ.get("SHAPELAB_CACHE") or user_cache_path("shapelab", appauthor=False))


def user_path(path: str | Path) -> Path:
    """A path as a person writes it, with ~ for the home folder."""
    return Path(path).expanduser()
