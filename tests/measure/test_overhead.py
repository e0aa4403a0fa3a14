"""The overhead of a pass is what a pass of the hollow twin takes."""

import pytest

from shapelab.measure.clock import HostClock
from shapelab.measure.overhead import overhead_s
from shapelab.model.twins import hollow_twin
from tests.toys import ScriptedTime, toy_lab


def test_overhead_is_the_twins_tpot(monkeypatch):
    time = ScriptedTime()

    def passes(*_, **__):
        time.advance(7)

    real = hollow_twin(toy_lab())
    real.model.register_forward_pre_hook(passes)
    monkeypatch.setattr("shapelab.measure.overhead.hollow_twin", lambda _: real)
    assert overhead_s(toy_lab(), repeats=2, clock=HostClock(now=time)) == pytest.approx(0.007)
