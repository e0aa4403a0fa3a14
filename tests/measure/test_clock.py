"""A spy GPU: the host's clock is read only after waiting, events enclose every step, and all of it happens on the lab's device."""

import ast
from pathlib import Path

import pytest
import torch

import shapelab
from shapelab.errors import BadArgument
from shapelab.measure.clock import CudaClock, HostClock, MpsClock, clock_for, synchronize
from shapelab.measure.loop import timed
from shapelab.record import metrics
from tests.toys import random_ids, toy_model

SECOND = torch.device("cuda:1")


class SpyGpu:
    """Writes down, in order, what is asked of its second GPU. Its events lie 1, 2, 3... ms after its first."""

    def __init__(self):
        self.log, self.ns = [], 0

    def Event(self, enable_timing):
        assert enable_timing
        return SpyEvent(self)

    def current_stream(self, device=None):
        assert device == SECOND
        return "a stream of cuda:1"

    def synchronize(self, device=None):
        assert device == SECOND
        self.log.append("synchronize")

    def now(self):
        self.log.append("host clock")
        self.ns += 10_000_000
        return self.ns


class SpyEvent:
    def __init__(self, gpu):
        self.gpu = gpu

    def record(self, stream=None):
        assert stream == "a stream of cuda:1"
        self.number = sum(entry == "event" for entry in self.gpu.log)
        self.gpu.log.append("event")

    def elapsed_time(self, other):
        self.gpu.log.append("elapsed")
        return float(other.number - self.number)


def run_on_spy(count):
    gpu, model = SpyGpu(), toy_model()
    hook = model.register_forward_hook(lambda *_: gpu.log.append("pass"))
    result = timed(model, random_ids(1, 8), count, CudaClock(SECOND, now=gpu.now, cuda=gpu))
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
    timeline = timed(model, random_ids(1, 8), 3, clock).timeline
    assert log == ["synchronize", "host clock"] * 4
    assert timeline.per_step_sync


def test_cpu_stamps_every_pass():
    ticks = iter(range(100))
    model = toy_model()
    timeline = timed(model, random_ids(1, 8), 3, HostClock(now=lambda: next(ticks))).timeline
    assert timeline.host_ns == (0, 1, 2, 3) and not timeline.per_step_sync


def test_an_unknown_device_is_refused():
    with pytest.raises(BadArgument) as caught:
        clock_for(torch.device("meta"))
    assert caught.value.argument == "device"


@pytest.mark.parametrize("name", ["cuda", "cuda:0", "cuda:1"])
def test_the_clock_is_the_labs_devices(name):
    clock = clock_for(torch.device(name))
    assert isinstance(clock, CudaClock) and clock.device == torch.device(name)


def test_waiting_names_the_device(monkeypatch):
    log = []
    monkeypatch.setattr(torch.cuda, "synchronize", lambda device=None: log.append(device))
    synchronize(SECOND)
    synchronize(torch.device("cpu"))
    assert log == [SECOND]


WITHOUT_A_DEVICE = {"is_available", "device_count", "Event", "OutOfMemoryError"}  # events are recorded on a stream, which has one


def defaults_to_the_first_gpu(source: str) -> list[str]:
    """Uses of torch.cuda that leave the device to torch, as line: text."""
    tree, mentions = ast.parse(source), []
    called = {id(node.func): node for node in ast.walk(tree) if isinstance(node, ast.Call)}
    chosen = [range(node.lineno, node.end_lineno + 1) for node in ast.walk(tree) if isinstance(node, ast.With)
              and any(ast.unparse(item.context_expr).startswith("torch.cuda.device(") for item in node.items)]  # fmt: skip
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "torch.cuda":
            mentions.append(node)
        if not isinstance(node, ast.Attribute) or any(node.lineno in lines for lines in chosen):
            continue
        call = called.get(id(node))
        on_cuda = ast.unparse(node.value).split(".")[-1] == "cuda" and node.attr not in WITHOUT_A_DEVICE
        named = call and (call.args or call.keywords)
        if (on_cuda or (node.attr == "record" and call)) and not named:
            mentions.append(node)
    return [f"{node.lineno}: {ast.unparse(node)}" for node in mentions]


PACKAGE = Path(shapelab.__file__).parent


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_nothing_is_asked_of_a_gpu_without_naming_it(path):
    assert defaults_to_the_first_gpu(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "source",
    [
        "torch.cuda.synchronize()",
        "wait = {'cuda': torch.cuda.synchronize}",
        "self.cuda.current_stream()",
        "torch.cuda.max_memory_allocated()",
        "torch.cuda.reset_peak_memory_stats()",
        "torch.cuda.empty_cache()",
        "torch.cuda.mem_get_info()",
        "event.record()",
        "from torch.cuda import synchronize",
    ],
)
def test_the_search_sees(source):
    assert defaults_to_the_first_gpu(source)


@pytest.mark.parametrize(
    "source",
    [
        "torch.cuda.synchronize(device)",
        "torch.mps.synchronize()",
        "event.record(stream)",
        "with torch.cuda.device(device):\n    torch.cuda.empty_cache()",
    ],
)
def test_the_search_lets_pass(source):
    assert not defaults_to_the_first_gpu(source)
