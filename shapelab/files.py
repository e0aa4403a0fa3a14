"""Where the data that travels with the package lies, and where downloads are kept."""

import os
import signal
import threading
from contextlib import contextmanager
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
    """A path that a person wrote, in an option or an environment variable: `~` is the home folder."""
    return Path(path).expanduser()


@contextmanager
def keep_from_interrupts(after: int = 0):
    """Inside, Ctrl-C waits until the block is left, so that what is being saved is saved. The first `after` ones do not wait."""
    waiting = []

    def wait(signal_number, _):
        nonlocal after
        after -= 1
        if after >= 0:
            raise KeyboardInterrupt
        waiting.append(signal_number)

    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):  # no interrupt can come here
        yield
        return
    signal.signal(signal.SIGINT, wait)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if waiting:
        raise KeyboardInterrupt


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
