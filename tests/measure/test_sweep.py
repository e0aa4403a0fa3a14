"""A sweep survives: memory running out, a full disk, Ctrl-C, kill -9, a half-written line; and it goes on from there."""

import errno
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from shapelab.errors import BadArgument, BadFile, CannotWrite, OtherSettings, ShapelabError
from shapelab.files import locked
from shapelab.measure.clock import HostClock
from shapelab.measure.sweep import sweep
from shapelab.model.memory import memory_needed_bytes
from shapelab.record import metrics
from shapelab.record.fields import utc
from shapelab.record.run import Run, Settings
from shapelab.request.shape import RequestShape, grid
from tests.toys import EVERY_OUT_OF_MEMORY, ScriptedModel, ScriptedTime, scripted_lab, toy_lab

ROOT = Path(__file__).resolve().parents[2]
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


def raise_in(model, error, prefill):
    """Instead of the prefill that `prefill` picks, by its number and its length; from then on the model works again."""
    real, prefills = type(model).forward, []

    def forward(input_ids, **options):
        if input_ids.shape[1] > 1:
            prefills.append(input_ids.shape[1])
            if prefill(len(prefills), input_ids.shape[1]):
                raise error
        return real(model, input_ids, **options)

    model.forward = forward


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


def test_a_stopped_sweep_goes_on(scripted, tmp_path):
    _, model, _ = scripted
    out = tmp_path / "s.jsonl"
    raise_in(model, KeyboardInterrupt(), lambda number, _: number == 2 * 4 + 3)  # a warm-up and three repeats for each shape
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


@pytest.mark.parametrize("now", [{"repeats": 5}, {"repeats": 1}, {"seed": 1}], ids=str)
@pytest.mark.parametrize("shapes", [SHAPES, SHAPES[:1]], ids=["unfinished", "finished"])
def test_other_settings_are_refused(scripted, tmp_path, now, shapes):
    _, model, _ = scripted
    out, before = tmp_path / "s.jsonl", {"repeats": 3, "seed": 0}
    run_sweep(scripted, out, SHAPES[:1])
    text, passes = out.read_text(), len(model.passes)
    with pytest.raises(OtherSettings) as caught:
        run_sweep(scripted, out, shapes, **now)
    ((name, value),) = now.items()
    assert all(word in str(caught.value) for word in (name, str(value), str(before[name])))
    assert out.read_text() == text and len(model.passes) == passes
    assert Run.load(out).settings == Settings(**before)


def test_a_file_without_settings_is_not_continued(scripted, tmp_path):
    """As schema 1 wrote it: nobody knows by which seed its prompts were drawn."""
    out = tmp_path / "s.jsonl"
    run_sweep(scripted, out, SHAPES[:1])
    header, line = out.read_text().splitlines()
    old = json.loads(header) | {"schema_version": 1}
    del old["settings"]
    out.write_text(f"{json.dumps(old)}\n{line}\n")
    with pytest.raises(OtherSettings):
        run_sweep(scripted, out)


def test_an_empty_file_is_begun(scripted, tmp_path):
    (tmp_path / "s.jsonl").touch()
    assert run_sweep(scripted, tmp_path / "s.jsonl", SHAPES[:1]).names == Run.load(tmp_path / "s.jsonl").names == ["5x3"]


def test_somebody_elses_file_is_left_alone(scripted, tmp_path):
    (tmp_path / "s.jsonl").write_text("my notes\n")
    with pytest.raises(BadFile):
        run_sweep(scripted, tmp_path / "s.jsonl")
    assert (tmp_path / "s.jsonl").read_text() == "my notes\n"


def test_a_file_removed_on_the_way_is_written_again(scripted, tmp_path):
    _, model, _ = scripted
    out, real, removed = tmp_path / "s.jsonl", model.forward, []

    def forward(*args, **options):
        if len(model.passes) == 20 and not removed:
            removed.append(out.unlink())
        return real(*args, **options)

    model.forward = forward
    assert len(run_sweep(scripted, out).names) == len(Run.load(out).names) == 4 and removed


def test_a_symlink_is_written_through(scripted, tmp_path):
    real, link = tmp_path / "elsewhere" / "s.jsonl", tmp_path / "s.jsonl"
    link.symlink_to(real)
    run_sweep(scripted, link, SHAPES[:1])
    run_sweep(scripted, link)
    assert link.is_symlink() and len(Run.load(real).names) == 4


def test_a_home_folder(scripted, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    run_sweep(scripted, "~/s.jsonl", SHAPES[:1])
    assert Run.load(tmp_path / "s.jsonl").names == Run.load("~/s.jsonl").names and not Path("~").exists()


def test_another_environment_is_refused_by_name(scripted, tmp_path):
    out = tmp_path / "s.jsonl"
    run_sweep(scripted, out, SHAPES[:1])
    out.write_text(out.read_text().replace('"threads": ', '"threads": 9'))
    with pytest.raises(OtherSettings) as caught:
        run_sweep(scripted, out)
    assert re.search(r"threads was 9\d+ and is \d+[.;]", str(caught.value)), "the difference is named, with both values"


def test_a_half_written_last_line_is_measured_again(scripted, tmp_path):
    out = tmp_path / "s.jsonl"
    names = run_sweep(scripted, out).names
    text = out.read_text()
    out.write_text(text[:-40])
    assert Run.load(out).names == names[:3]
    assert run_sweep(scripted, out).names == names
    assert Run.load(out).names == names, "the cut line is gone, not continued"
    out.write_text(text[:-40] + "\n")  # a whole line that is not JSON is no accident of a kill
    with pytest.raises(BadFile) as caught:
        Run.load(out)
    assert caught.value.line == 5


def test_a_full_disk_keeps_what_is_written(scripted, tmp_path, monkeypatch):
    out = tmp_path / "s.jsonl"
    real, calls = os.fsync, []

    def full(number):
        calls.append(1)
        if len(calls) == 3:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(number)

    monkeypatch.setattr("shapelab.record.run.os.fsync", full)
    with pytest.raises(CannotWrite, match="No space left"):
        run_sweep(scripted, out)
    assert out.read_text().endswith("\n"), "no half line stays, which the next one would continue"
    assert len(Run.load(out).names) == 1
    assert len(run_sweep(scripted, out).names) == 4


@EVERY_OUT_OF_MEMORY
@pytest.mark.parametrize("number", [1, 2], ids=["warming up", "measuring"])
def test_memory_running_out_is_recorded_and_the_rest_follows(scripted, tmp_path, error, number):
    _, model, _ = scripted
    out, seen = tmp_path / "s.jsonl", []
    raise_in(model, error, lambda _, length: length == 17 and not seen.append(1) and len(seen) == number)
    run = run_sweep(scripted, out)
    assert sorted(run.names) == ["33x3", "5x3", "9x3"]
    (skipped,) = Run.load(out).skipped
    assert (skipped.name, skipped.outcome) == ("17x3", "out_of_memory")
    assert utc(skipped.decided_at) >= utc(run.environment.measured_at) and skipped.decided_at in str(skipped)


def test_another_error_ends_the_sweep(scripted, tmp_path):
    _, model, _ = scripted
    raise_in(model, RuntimeError("expected scalar type Half"), lambda number, _: number == 6)
    with pytest.raises(RuntimeError, match="Half"):
        run_sweep(scripted, tmp_path / "s.jsonl")
    assert len(Run.load(tmp_path / "s.jsonl").names) == 1


def test_a_skipped_shape_is_tried_again(scripted, tmp_path, monkeypatch):
    lab, model, _ = scripted
    out, left = tmp_path / "s.jsonl", [0]
    monkeypatch.setattr("shapelab.model.memory.memory_available", lambda _: left[0])
    for left[0] in (0, memory_needed_bytes(lab, SHAPES[2]), memory_needed_bytes(lab, SHAPES[2])):
        run = run_sweep(scripted, out)
        assert Run.load(out, unfinished=True) == run, "what was tried again stands once, with its last outcome"
    assert sorted(run.names) == ["17x3", "5x3", "9x3"] and [s.name for s in run.skipped] == ["33x3"]
    model.passes.clear()
    left[0] = 10**12
    run = run_sweep(scripted, out)
    assert set(prompts_seen(model)) == {33} and len(run.names) == 4 and run.skipped == []
    assert Run.load(out) == run


def test_what_cannot_fit_is_not_even_tried(scripted, tmp_path, monkeypatch):
    lab, model, _ = scripted
    monkeypatch.setattr("shapelab.model.memory.memory_available", lambda _: memory_needed_bytes(lab, SHAPES[2]))
    run = run_sweep(scripted, tmp_path / "s.jsonl")
    (skipped,) = run.skipped
    assert (skipped.name, skipped.outcome) == ("33x3", "does_not_fit") and "GB are left" in skipped.reason
    assert 33 not in prompts_seen(model)


def test_a_model_of_a_long_path_can_be_skipped(scripted, tmp_path, monkeypatch):
    lab, model, clock = scripted
    object.__setattr__(lab, "name", "/models" * 700)
    monkeypatch.setattr("shapelab.model.memory.memory_available", lambda _: 0)
    assert (
        len(run_sweep(scripted, tmp_path / "s.jsonl").skipped)
        == len(Run.load(tmp_path / "s.jsonl", unfinished=True).skipped)
        == 4
    )


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
    with pytest.raises(ShapelabError):
        run_sweep(scripted, tmp_path / "s.jsonl", [*SHAPES, RequestShape(600, 3)])
    for repeats in (0, 900_000):
        with pytest.raises(BadArgument) as caught:
            run_sweep(scripted, tmp_path / "s.jsonl", repeats=repeats)
        assert caught.value.argument == "repeats"
    assert model.passes == [] and not (tmp_path / "s.jsonl").exists()


KILLED = """
import os, signal, sys
from tests.toys import toy_lab
from shapelab.measure.sweep import sweep
from shapelab.request.shape import RequestShape
lab, prefills = toy_lab(), []
real = lab.model.forward
def forward(input_ids, *args, **options):
    prefills.append(1) if input_ids.shape[1] > 1 else None
    if len(prefills) == 4 * 3:  # the last repeat of the third shape
        os.kill(os.getpid(), signal.SIGKILL)
    return real(input_ids, *args, **options)
lab.model.forward = forward
sweep(lab, [RequestShape(s, 3) for s in (5, 9, 17, 33)], sys.argv[1], progress=False)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no SIGKILL")
def test_kill_loses_the_shape_in_flight_and_no_other(tmp_path):
    out = tmp_path / "s.jsonl"
    done = subprocess.run([sys.executable, "-c", KILLED, str(out)], cwd=ROOT, check=False, capture_output=True)
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()
    kept = Run.load(out).names
    assert len(kept) == 2
    assert sorted(sweep(toy_lab(), SHAPES, out, progress=False).names) == sorted(map(str, SHAPES)), "a dead process holds no lock"
    assert Run.load(out).names[:2] == kept


SWEPT = """
import sys
from tests.toys import toy_lab
from shapelab.errors import CannotWrite
from shapelab.measure.sweep import sweep
from shapelab.request.shape import RequestShape
try:
    sweep(toy_lab(), [RequestShape(s, 3) for s in (5, 9, 17, 33)], sys.argv[1], progress=False)
except CannotWrite as error:
    sys.exit(f"REFUSED {error}")
"""


def test_two_sweeps_into_one_file(tmp_path):
    out = tmp_path / "s.jsonl"
    both = [
        subprocess.Popen([sys.executable, "-c", SWEPT, str(out)], cwd=ROOT, stderr=subprocess.PIPE, text=True) for _ in range(2)
    ]
    errors = [process.communicate()[1] for process in both]
    assert all(not error or error.startswith("REFUSED") for error in errors), errors
    assert [process.returncode for process in both] != [1, 1]
    assert sorted(Run.load(out).names) == sorted(map(str, SHAPES))


def test_a_sweep_into_a_file_that_another_process_writes(scripted, tmp_path):
    out, link = tmp_path / "s.jsonl", tmp_path / "link.jsonl"
    link.symlink_to(out)
    holds = "import sys; from shapelab.files import locked\nwith locked(sys.argv[1]): print('held', flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", holds, str(out)], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout.readline() == "held\n"
        for path in (out, link):
            with pytest.raises(CannotWrite):
                run_sweep(scripted, path)
        other.stdin.close()
    assert len(run_sweep(scripted, out).names) == 4
    with locked(out):  # by this thread: it may go on
        assert len(run_sweep(scripted, out).names) == 4


def test_grids():
    assert grid("64,256", "32", "1,2", "0,512")[:3] == [RequestShape(64, 32), RequestShape(64, 32, 2), RequestShape(256, 32)]
    assert len(grid("64,256", "32", "1,2", "0,512")) == 8
    for bad in (("64,", "32"), ("a", "32"), ("64", "3.5")):
        with pytest.raises(BadArgument):
            grid(*bad)
    with pytest.raises(BadArgument):
        grid("0", "32")


@pytest.mark.parametrize("kind", [np.int8, np.uint64, lambda number: pd.Series([number]).max()])
def test_repeats_and_seed_of_any_whole_kind(tmp_path, scripted, kind):
    run = run_sweep(scripted, tmp_path / "s.jsonl", repeats=kind(2), seed=kind(3))
    again = run_sweep(scripted, tmp_path / "s.jsonl", repeats=2, seed=3)
    assert len(run.measurements) == 4 and again == run
