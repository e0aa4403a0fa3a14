"""Ctrl-C at any moment: no traceback, and what was measured is on the disk."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from shapelab.measure import experiment
from shapelab.record.run import Run
from tests.cli.command import shapelab

RUN = ["run", "--repeats", 2, "--shapes", "9x2,5x3", "--no-limits"]


def ctrl_c():
    os.kill(os.getpid(), signal.SIGINT)


@pytest.fixture
def stopped(toy, monkeypatch):
    """Ctrl-C stops the measuring when every shape has been measured once."""

    def one_repeat(*arguments):
        calls.append(arguments)
        if len(calls) == 3:  # both shapes have been measured once
            ctrl_c()
        return real(*arguments)

    calls, real = [], experiment.one_repeat
    monkeypatch.setattr(experiment, "one_repeat", one_repeat)


def test_the_first_shows_what_was_measured(stopped, tmp_path):
    result = shapelab(*RUN, "--out", tmp_path)
    assert result.exit_code == 0 and "9x2" in result.stdout


def test_before_anything_was_measured_nothing_is_kept(toy, monkeypatch, tmp_path):
    monkeypatch.setattr(experiment, "one_repeat", lambda *_: ctrl_c())
    result = shapelab(*RUN, "--out", tmp_path)
    assert result.exit_code == 130 and result.stdout == "" and "Traceback" not in result.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("times", [1, 2])
def test_a_second_while_the_file_is_written_waits(stopped, monkeypatch, tmp_path, times):
    real = Run.save

    def save(self, path):
        for _ in range(times):
            ctrl_c()
        return real(self, path)

    monkeypatch.setattr(Run, "save", save)
    result = shapelab(*RUN, "--out", tmp_path)
    (run_file,) = tmp_path.iterdir()
    assert result.exit_code == 130 and Run.load(run_file).names == ["9x2", "5x3"]
    assert str(run_file) in result.stderr and "Traceback" not in result.stderr


def test_one_while_the_picture_is_drawn_leaves_the_file(stopped, monkeypatch, tmp_path):
    monkeypatch.setattr("matplotlib.figure.Figure.savefig", lambda *_, **__: ctrl_c())
    result = shapelab(*RUN, "--out", tmp_path)
    (run_file,) = tmp_path.iterdir()
    assert result.exit_code == 130 and Run.load(run_file).names and str(run_file) in result.stderr


def test_afterwards_ctrl_c_is_what_it_was(stopped, tmp_path):
    before = signal.getsignal(signal.SIGINT)
    shapelab(*RUN, "--out", tmp_path)
    assert signal.getsignal(signal.SIGINT) is before


TWO_SIGNALS = """
import os, signal, sys
from shapelab.cli.app import app
from shapelab.measure import experiment
from tests.cli.command import noted_lab

def once(*arguments):
    calls.append(arguments)
    if len(calls) == 3:
        os.kill(os.getpid(), signal.SIGINT)
    return one_repeat(*arguments)

def measure_and_interrupt(*arguments, **options):
    result = measure_shapes(*arguments, **options)
    assert len(calls) == 3
    os.kill(os.getpid(), signal.SIGINT)
    late = {name for name in ("matplotlib", "shapelab.classroom.figures", "shapelab.record.run") if name not in sys.modules}
    assert not late, f"imported between measuring and saving: {late}"
    return result

import shapelab.model.load
shapelab.model.load.load = noted_lab
calls, one_repeat, measure_shapes = [], experiment.one_repeat, experiment.measure_shapes
experiment.one_repeat, experiment.measure_shapes = once, measure_and_interrupt
app()
"""


def test_two_signals_lose_nothing(tmp_path):
    """In a process of its own, where nothing has been imported before."""
    command = [sys.executable, "-c", TWO_SIGNALS, *map(str, RUN), "--out", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[2])
    (run_file,) = tmp_path.glob("*.jsonl")
    assert done.returncode == 130 and Run.load(run_file).names == ["9x2", "5x3"] and str(run_file) in done.stderr
    assert "Traceback" not in done.stderr and done.stdout == ""
