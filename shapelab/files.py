"""Where the data that travels with the package lies, and where downloads are kept."""

import os
from pathlib import Path

from platformdirs import user_cache_path

from shapelab.errors import CannotWrite

_PACKAGE = Path(__file__).resolve().parent


def data_path(*parts: str) -> Path:
    """A file of `data/`: inside the installed package, or beside it in a clone."""
    inside = _PACKAGE / "data"
    return (inside if inside.is_dir() else _PACKAGE.parent / "data").joinpath(*parts)


def cache_dir() -> Path:
    """The folder for converted models: `SHAPELAB_CACHE`, or the system's cache folder for this user."""
    return Path(os.environ.get("SHAPELAB_CACHE") or user_cache_path("shapelab", appauthor=False))


def user_path(path: str | Path) -> Path:
    """A path as a user writes it: `~` is their home folder."""
    return Path(path).expanduser()


def write_text_atomically(path: Path, text: str) -> None:
    """Write a file whole or leave it as it was; through a symlink. Raises CannotWrite."""
    target = path.resolve()
    half = target.with_name(target.name + ".part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        half.write_text(text, encoding="utf-8")
        os.replace(half, target)
    except OSError as error:
        raise CannotWrite(f"{path} cannot be written ({error.strerror}). Choose another file.") from error
