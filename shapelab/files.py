"""Where files lie, and how they are written so that a full disk, a second process or a Ctrl-C destroys nothing."""

import os
import secrets
import shutil
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from platformdirs import user_cache_path

from shapelab.errors import BadArgument, CannotWrite

_PACKAGE = Path(__file__).resolve().parent


def data_path(*parts: str) -> Path:
    """A file of `data/`: inside the installed package, or beside it in a clone."""
    inside = _PACKAGE / "data"
    return (inside if inside.is_dir() else _PACKAGE.parent / "data").joinpath(*parts)


def cache_dir() -> Path:
    """The folder for converted models: `SHAPELAB_CACHE`, or the system's cache folder for this user."""
    return user_path(os.environ.get("SHAPELAB_CACHE") or user_cache_path("shapelab", appauthor=False))


def user_path(path: str | Path) -> Path:
    """A path as a person gave it, in an argument or an environment variable; `~` is their home folder. Raises BadArgument."""
    if "\0" in str(path):
        raise BadArgument(f"{str(path)!r} holds a zero byte, which no path may.", "path")
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise BadArgument(f"There is no home folder for {path}. Write the path without ~.", "path") from None


def write_text_atomically(path: str | Path, text: str) -> Path:
    """Write a whole file or leave the earlier one whole, even if the disk fills up or the power fails.

    Makes the folders above. Follows a symlink: the link stays, and the file that it points to is replaced. Raises CannotWrite.
    """
    path = user_path(path)
    target = Path(os.path.realpath(path))
    part = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    try:
        if target.exists() and not target.is_file():  # a terminal or a pipe; a folder refuses
            target.write_text(text, encoding="utf-8")
            return path
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            with part.open("x", encoding="utf-8", errors="replace", newline="\n") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            if target.exists():
                shutil.copymode(target, part)
            os.replace(part, target)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise CannotWrite(f"{path} cannot be written ({error.strerror or error}). Choose another file, or make room.") from error
    return path


@contextmanager
def locked(path: str | Path, wait_s: float = 10.0) -> Iterator[None]:
    """Inside, no other process or thread that asks for this lock writes the file. Raises CannotWrite after waiting for so long.

    A thread that holds it may ask again. The lock is a hidden file beside it, which stays: if it were removed, two processes
    could hold two locks of one name.
    """
    from filelock import FileLock, Timeout  # here and not above: most of who imports this module locks nothing

    target = Path(os.path.realpath(user_path(path)))
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(target.with_name(f".{target.name}.lock"), is_singleton=True)
        lock.acquire(timeout=wait_s)
    except Timeout:
        raise CannotWrite(f"Another process is writing {path}. Wait until it ends, or choose another file.") from None
    except OSError as error:
        raise CannotWrite(f"{path} cannot be written ({error.strerror or error}). Choose another file.") from error
    try:
        yield
    finally:
        lock.release()


class Interrupts:
    """What happens to Ctrl-C in a `keep_from_interrupts` block. `held`: somebody pressed it, and it has stopped nothing yet."""

    def __init__(self):
        self.held = self._open = False

    def take(self, *_):
        if not self._open:
            self.held = True
            return
        self._open = False  # one is enough: a second must not stop what tidies up after the first
        raise KeyboardInterrupt

    @contextmanager
    def let_through(self) -> Iterator[None]:
        """Inside, Ctrl-C stops what runs, as usual: once. One that came before stops it at the start."""
        if self.held:
            self.held = False
            raise KeyboardInterrupt
        self._open = True
        try:
            yield
        finally:
            self._open = False


@contextmanager
def keep_from_interrupts() -> Iterator[Interrupts]:
    """Inside, Ctrl-C stops nothing but what `let_through` allows, so that what was measured is saved first.

    Blocks may lie in each other. Outside the main thread, where Python delivers no signals, this changes nothing.
    """
    interrupts, before = Interrupts(), signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):  # not callable: it is ignored
        yield interrupts
        return
    signal.signal(signal.SIGINT, interrupts.take)
    try:
        yield interrupts
    finally:
        signal.signal(signal.SIGINT, before)
