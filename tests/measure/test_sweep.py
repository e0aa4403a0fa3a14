"""A sweep survives: memory running out, a full disk, Ctrl-C, kill -9, a half-written line; and it goes on from there."""

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from shapelab.errors import ShapelabError
from shapelab.measure import experiment
from shapelab.measure.clock import HostClock
from shapelab.measure.experiment import memory_needed_bytes, sweep
from shapelab.record import metrics
from shapelab.record.run import Run
from shapelab.request.shape import RequestShape, grid
from tests.toys import ScriptedModel, ScriptedTime, scripted_lab, toy_lab

SHAPES = [RequestShape(s, 3) for s in (5, 9, 17, 33)]


@pytest.fixture
def scripted():
    time = ScriptedTime()
    model = ScriptedModel(time)
    return scripted_lab(model), model, HostClock(now=time)


def run_sweep(scripted, out, shapes=SHAPES, **options):
    lab, _, clock = scripted
    return sweep(lab, shapes, out, clock=clock, progress=False, **options)


def prompts_seen(model):
    return [length for _, length, _ in model.passes if length > 1]


def test_every_shape_is_on_the_disk_when_it_is_measured(scripted, tmp_path, monkeypatch):
    out, counts = tmp_path / "s.jsonl", []
    real = Run.add

    def spy(self, entry, path):
        real(self, entry, path)
        counts.append(len(Run.load(path).measurements))

    monkeypatch.setattr(Run, "add", spy)
    run = run_sweep(scripted, out)
    assert counts == [1, 2, 3, 4]
    assert sorted(run.names) == sorted(map(str, SHAPES)) == sorted(Run.load(out).names)
    assert run["17x3"].median(metrics.ttft_s) == 0.1 and len(run["17x3"].repeats) == 3


def test_the_order_is_drawn_by_the_seed(scripted, tmp_path):
    orders = [run_sweep(scripted, tmp_path / name, seed=seed).names for name, seed in (("a", 1), ("b", 1), ("c", 2))]
    assert orders[0] == orders[1] != orders[2]
    assert orders[0] != list(map(str, SHAPES))


def test_a_stopped_sweep_goes_on(scripted, tmp_path, monkeypatch):
    _, model, _ = scripted
    out, real, calls = tmp_path / "s.jsonl", experiment._point, []

    def stop_at_the_third(*arguments):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return real(*arguments)

    monkeypatch.setattr(experiment, "_point", stop_at_the_third)
    with pytest.raises(KeyboardInterrupt):
        run_sweep(scripted, out)
    kept = Run.load(out).names
    assert len(kept) == 2
    model.passes.clear()
    run = run_sweep(scripted, out)
    assert run.names[:2] == kept and len(run.names) == 4
    assert set(prompts_seen(model)) == {5, 9, 17, 33} - {int(name.split("x")[0]) for name in kept}
    model.passes.clear()
    assert run_sweep(scripted, out).names == run.names and model.passes == []


def test_another_environment_is_refused_by_name(scripted, tmp_path):
    out = tmp_path / "s.jsonl"
    run_sweep(scripted, out, SHAPES[:1])
    out.write_text(out.read_text().replace('"threads": ', '"threads": 9'))
    with pytest.raises(ShapelabError, match=r"another environment: threads was 9\d+ and is \d+"):
        run_sweep(scripted, out)


def test_a_half_written_last_line_is_measured_again(scripted, tmp_path):
    out = tmp_path / "s.jsonl"
    names = run_sweep(scripted, out).names
    text = out.read_text()
    out.write_text(text[:-40])
    assert Run.load(out).names == names[:3]
    assert run_sweep(scripted, out).names == names
    assert Run.load(out).names == names, "the cut line is gone, not continued"
    out.write_text(text[:-40] + "\n")  # a whole line that is not JSON is no accident of a kill
    with pytest.raises(ShapelabError, match="line 5: not JSON"):
        Run.load(out)


def test_a_full_disk_keeps_what_is_written(scripted, tmp_path, monkeypatch):
    out = tmp_path / "s.jsonl"
    real, calls = os.fsync, []

    def full(number):
        calls.append(1)
        if len(calls) == 3:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(number)

    monkeypatch.setattr("shapelab.record.run.os.fsync", full)
    with pytest.raises(ShapelabError, match="No space left.*goes on from there"):
        run_sweep(scripted, out)
    assert len(Run.load(out).names) >= 2
    assert len(run_sweep(scripted, out).names) == 4


def test_memory_running_out_is_recorded_and_the_rest_follows(scripted, tmp_path):
    _, model, _ = scripted
    out, real = tmp_path / "s.jsonl", model.forward

    def small_memory(input_ids, **options):
        if input_ids.shape[1] == 17:
            raise torch.OutOfMemoryError("no")
        return real(input_ids, **options)

    model.forward = small_memory
    run = run_sweep(scripted, out)
    assert sorted(run.names) == ["33x3", "5x3", "9x3"]
    (skipped,) = Run.load(out).skipped
    assert (skipped.name, skipped.outcome) == ("17x3", "out_of_memory") and "does not fit" in skipped.reason
    model.passes.clear()
    run_sweep(scripted, out)
    assert model.passes == [], "a skipped shape is not tried again"


def test_what_cannot_fit_is_not_even_tried(scripted, tmp_path, monkeypatch):
    lab, model, _ = scripted
    monkeypatch.setattr(experiment, "memory_available", lambda _: memory_needed_bytes(lab, SHAPES[2]))
    run = run_sweep(scripted, tmp_path / "s.jsonl")
    (skipped,) = run.skipped
    assert (skipped.name, skipped.outcome) == ("33x3", "does_not_fit") and "GB are left" in skipped.reason
    assert 33 not in prompts_seen(model)


def test_memory_grows_with_each_of_the_four_numbers():
    lab = toy_lab()
    base = memory_needed_bytes(lab, RequestShape(50, 10, 2, 20))
    for more in (
        RequestShape(51, 10, 2, 20),
        RequestShape(50, 11, 2, 20),
        RequestShape(50, 10, 3, 20),
        RequestShape(50, 10, 2, 60),
    ):
        assert memory_needed_bytes(lab, more) > base
    kv = 2 * 2 * 2 * 16 * 8
    assert base > 2 * 80 * kv


def test_too_long_and_too_few_are_refused_first(scripted, tmp_path):
    _, model, _ = scripted
    with pytest.raises(ShapelabError, match="Shorten it"):
        run_sweep(scripted, tmp_path / "s.jsonl", [*SHAPES, RequestShape(600, 3)])
    with pytest.raises(ShapelabError, match="repeats"):
        run_sweep(scripted, tmp_path / "s.jsonl", repeats=0)
    assert model.passes == [] and not (tmp_path / "s.jsonl").exists()


KILLED = """
import os, signal, sys
from tests.toys import toy_lab
from shapelab.measure import experiment
from shapelab.request.shape import RequestShape
real, calls = experiment._point, []
def kill_at_the_third(*arguments):
    calls.append(1)
    found = real(*arguments)
    if len(calls) == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return found
experiment._point = kill_at_the_third
experiment.sweep(toy_lab(), [RequestShape(s, 3) for s in (5, 9, 17, 33)], sys.argv[1], progress=False)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no SIGKILL")
def test_kill_loses_the_shape_in_flight_and_no_other(tmp_path):
    out = tmp_path / "s.jsonl"
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run([sys.executable, "-c", KILLED, str(out)], cwd=root, check=False, capture_output=True)
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()
    kept = Run.load(out).names
    assert len(kept) == 2
    assert sorted(sweep(toy_lab(), SHAPES, out, progress=False).names) == sorted(map(str, SHAPES))
    assert Run.load(out).names[:2] == kept


def test_grids():
    assert grid("64,256", "32", "1,2", "0,512")[:3] == [RequestShape(64, 32), RequestShape(64, 32, 2), RequestShape(256, 32)]
    assert len(grid("64,256", "32", "1,2", "0,512")) == 8
    for bad in (("64,", "32"), ("a", "32"), ("64", "3.5")):
        with pytest.raises(ShapelabError, match="whole numbers"):
            grid(*bad)
    with pytest.raises(ShapelabError, match="at least 1"):
        grid("0", "32")
