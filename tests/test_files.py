"""Files of a person: where they lie, and that nothing which goes wrong while one is written costs what it held."""

import builtins
import errno
import io
import os
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from shapelab.errors import BadArgument, CannotWrite
from shapelab.files import cache_dir, keep_from_interrupts, locked, user_path, write_text_atomically

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize("path", ["~/c", Path("~/c")], ids=["text", "path"])
def test_a_tilde_is_the_home_folder(tmp_path, monkeypatch, path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SHAPELAB_CACHE", str(path))
    assert user_path(path) == cache_dir() == tmp_path / "c"
    assert write_text_atomically(path, "x") == tmp_path / "c" and (tmp_path / "c").read_text() == "x"
    assert user_path("a~b") == Path("a~b")


def test_a_home_that_nobody_has():
    with pytest.raises(BadArgument):
        user_path("~nobody-of-this-name/c")


def test_a_whole_file_and_nothing_beside_it(tmp_path):
    path = tmp_path / "new" / "folder" / "a.txt"
    for text in ("first\n", "sécond\n"):
        assert write_text_atomically(path, text) == path
        assert path.read_bytes() == text.encode()
    assert [p.name for p in path.parent.iterdir()] == ["a.txt"]


@pytest.mark.parametrize("broken", ["write", "fsync", "replace"])
@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()], ids=["full", "ctrl-c"])
def test_what_fails_leaves_the_earlier_file(tmp_path, monkeypatch, broken, error):
    path = write_text_atomically(tmp_path / "a.txt", "before")

    def fail(*_):
        raise error

    if broken == "write":

        class Full(io.TextIOWrapper):
            write = fail

        monkeypatch.setattr(Path, "open", lambda self, mode, **named: Full(builtins.open(self, mode + "b")))  # noqa: SIM115
    else:
        monkeypatch.setattr(os, broken, fail)
    with pytest.raises((CannotWrite, KeyboardInterrupt)) as caught:
        write_text_atomically(path, "after")
    monkeypatch.undo()
    assert path.read_text() == "before" and [p.name for p in tmp_path.iterdir()] == ["a.txt"]
    assert not isinstance(caught.value, CannotWrite) or "No space left" in str(caught.value)


def test_a_symlink_stays_and_its_target_is_replaced(tmp_path):
    target, link, chain = tmp_path / "elsewhere" / "a.txt", tmp_path / "link", tmp_path / "chain"
    link.symlink_to(Path("elsewhere") / "a.txt")
    chain.symlink_to(link)
    for path, text in ((link, "1"), (chain, "2"), (target, "3")):  # the first time there is no target
        write_text_atomically(path, text)
        assert link.is_symlink() and chain.is_symlink() and not target.is_symlink() and target.read_text() == text


def test_who_may_read_it_stays(tmp_path):
    path = tmp_path / "a.txt"
    fresh = tmp_path / "b.txt"
    fresh.touch()
    write_text_atomically(path, "1")
    assert path.stat().st_mode == fresh.stat().st_mode, "as any new file here"
    path.chmod(0o640)
    write_text_atomically(path, "2")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_what_is_no_file_is_not_replaced_by_one(tmp_path):
    with pytest.raises(CannotWrite):
        write_text_atomically(tmp_path, "x")
    (tmp_path / "file").touch()
    with pytest.raises(CannotWrite):
        write_text_atomically(tmp_path / "file" / "a.txt", "x")
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    write_text_atomically(tmp_path / "pipe", "x")
    assert os.read(reader, 9) == b"x" and stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
    os.close(reader)


def test_a_lock_is_for_one_thread_at_a_time_by_any_name_of_the_file(tmp_path):
    path, link, refused = tmp_path / "new" / "a.txt", tmp_path / "link", []
    link.symlink_to(path)

    def other():
        try:
            with locked(link, wait_s=0):
                pass
        except CannotWrite:
            refused.append(1)

    with locked(path, wait_s=0), locked(link, wait_s=0):  # the same thread may ask again
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert refused == [1]
    other()
    assert refused == [1], "given back"


def test_a_lock_where_nothing_can_be_written(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(CannotWrite), locked(tmp_path / "file" / "a.txt"):
        pass


WRITES = """
import sys
from shapelab.files import write_text_atomically
for number in range(200):
    write_text_atomically(sys.argv[1], sys.argv[2] * 50_000)
"""


def test_two_processes_write_one_file(tmp_path):
    path = write_text_atomically(tmp_path / "a.txt", "a" * 50_000)
    both = [subprocess.Popen([sys.executable, "-c", WRITES, str(path), letter], cwd=ROOT) for letter in "ab"]
    while any(process.poll() is None for process in both):
        assert path.read_text() in ("a" * 50_000, "b" * 50_000)
    assert [process.returncode for process in both] == [0, 0] and [p.name for p in tmp_path.iterdir()] == ["a.txt"]


def interrupt():
    signal.raise_signal(signal.SIGINT)


def test_ctrl_c_is_held_back_and_reported():
    with keep_from_interrupts() as interrupts:
        assert not interrupts.held
        interrupt()
        interrupt()
        assert interrupts.held
    with pytest.raises(KeyboardInterrupt):
        interrupt()


def test_ctrl_c_stops_what_is_let_through_once():
    done = []
    with keep_from_interrupts() as interrupts:
        with pytest.raises(KeyboardInterrupt), interrupts.let_through():
            try:
                interrupt()
            finally:
                interrupt()  # a second one does not stop what tidies up
                done.append("tidied up")
        assert done and interrupts.held
        with pytest.raises(KeyboardInterrupt), interrupts.let_through():
            done.append("never")
        with interrupts.let_through():
            done.append("held no longer")
    assert done == ["tidied up", "held no longer"]


def test_a_block_in_a_block():
    with keep_from_interrupts() as outer:
        with keep_from_interrupts() as inner, pytest.raises(KeyboardInterrupt), inner.let_through():
            interrupt()
        interrupt()
        assert outer.held and not inner.held


def test_another_thread_is_left_alone():
    seen = []

    def work():
        with keep_from_interrupts() as interrupts, interrupts.let_through():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [signal.default_int_handler]


def test_where_ctrl_c_is_ignored_it_stays_so():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with keep_from_interrupts() as interrupts, interrupts.let_through():
            interrupt()
        assert not interrupts.held and signal.getsignal(signal.SIGINT) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
