"""A spy GPU: the host's clock is read only after waiting, and events enclose every step."""

import pytest
import torch

from shapelab.errors import ShapelabError
from shapelab.measure.clock import CudaClock, HostClock, MpsClock, clock_for
from shapelab.measure.loop import generate, new_cache
from shapelab.record import metrics
from tests.toys import random_ids, toy_model


class SpyGpu:
    """Writes down, in order, what is asked of it. Its events lie 1, 2, 3... ms after its first."""

    def __init__(self):
        self.log, self.ns = [], 0

    def Event(self, enable_timing):
        assert enable_timing
        return SpyEvent(self)

    def synchronize(self):
        self.log.append("synchronize")

    def now(self):
        self.log.append("host clock")
        self.ns += 10_000_000
        return self.ns


class SpyEvent:
    def __init__(self, gpu):
        self.gpu = gpu

    def record(self):
        self.number = sum(entry == "event" for entry in self.gpu.log)
        self.gpu.log.append("event")

    def elapsed_time(self, other):
        self.gpu.log.append("elapsed")
        return float(other.number - self.number)


def run_on_spy(count):
    gpu, model = SpyGpu(), toy_model()
    hook = model.register_forward_hook(lambda *_: gpu.log.append("pass"))
    cache = new_cache(model, 8 + count)
    result = generate(model, random_ids(1, 8), count, cache, CudaClock(now=gpu.now, cuda=gpu))
    hook.remove()
    return gpu.log, result.timeline


@pytest.mark.parametrize("count", [1, 2, 6])
def test_every_host_read_follows_a_synchronise(count):
    log, _ = run_on_spy(count)
    reads = [place for place, entry in enumerate(log) if entry == "host clock"]
    assert len(reads) == (3 if count > 1 else 2)
    assert all(log[place - 1] == "synchronize" for place in reads)


@pytest.mark.parametrize("count", [1, 2, 6])
def test_events_enclose_every_pass(count):
    log, timeline = run_on_spy(count)
    order = [entry for entry in log if entry in ("event", "pass")]
    assert order == ["event"] + ["pass", "event"] * count
    assert timeline.event_s == pytest.approx([0.001 * n for n in range(1, count + 1)])


def test_nothing_waits_while_decoding():
    log, _ = run_on_spy(6)
    decoding = log[log.index("pass") :]
    passes = [place for place, entry in enumerate(decoding) if entry == "pass"]
    assert "synchronize" not in decoding[passes[1] : passes[-1]]
    assert log.index("elapsed") > max(place for place, entry in enumerate(log) if entry == "synchronize")


def test_the_difference_between_host_and_events_is_reported():
    _, timeline = run_on_spy(6)
    assert metrics.total_s(timeline) == pytest.approx(0.020)
    assert metrics.host_overhead_s(timeline) == pytest.approx(0.020 - 0.006)
    assert metrics.itl_s(timeline) == pytest.approx([0.001] * 5)


def test_apple_gpu_waits_before_every_stamp(monkeypatch):
    log = []
    monkeypatch.setattr(torch.mps, "synchronize", lambda: log.append("synchronize"))
    model = toy_model()
    clock = MpsClock(now=lambda: log.append("host clock") or len(log))
    timeline = generate(model, random_ids(1, 8), 3, new_cache(model, 11), clock).timeline
    assert log == ["synchronize", "host clock"] * 4
    assert timeline.per_step_sync


def test_cpu_stamps_every_pass():
    ticks = iter(range(100))
    model = toy_model()
    timeline = generate(model, random_ids(1, 8), 3, new_cache(model, 11), HostClock(now=lambda: next(ticks))).timeline
    assert timeline.host_ns == (0, 1, 2, 3) and not timeline.per_step_sync


def test_an_unknown_device_is_refused():
    with pytest.raises(ShapelabError, match="No clock"):
        clock_for(torch.device("meta"))
