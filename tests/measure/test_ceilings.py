"""Ceilings with a scripted clock: what is counted, and in which units."""

from types import SimpleNamespace

import pytest
import torch

from shapelab.measure import ceilings
from shapelab.measure.ceilings import Ceilings, best_s, matmul_flops_per_s, measure_ceilings, memory_read_gb_per_s

CPU = torch.device("cpu")


class ScriptedWork:
    """Takes so many seconds at each call."""

    def __init__(self, monkeypatch, *seconds):
        self.now, self.left, self.log = 0.0, list(seconds), []
        monkeypatch.setattr(ceilings, "time", SimpleNamespace(perf_counter=self.read))

    def __call__(self):
        self.log.append("work")
        self.now += self.left.pop(0)

    def read(self):
        self.log.append("clock")
        return self.now


def test_the_best_of_several_after_one_that_does_not_count(monkeypatch):
    work = ScriptedWork(monkeypatch, 1, 7, 4, 9, 5, 6)
    assert best_s(work, CPU) == 4
    assert work.left == [] and work.log.count("work") == 1 + 5


def test_times_is_how_often(monkeypatch):
    work = ScriptedWork(monkeypatch, 1, 7, 6)
    assert best_s(work, CPU, times=2) == 6 and work.left == []


def test_a_gpu_is_waited_for_before_the_clock_is_read(monkeypatch):
    work = ScriptedWork(monkeypatch, 1, 1, 1)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda device=None: work.log.append(device))
    second = torch.device("cuda:1")
    best_s(work, second, times=2)
    assert work.log == ["work"] + [second, "clock", "work", second, "clock"] * 2


@pytest.fixture
def half_a_second(monkeypatch):
    """Every work takes 0.5 s; what the works gave is kept."""
    results = []

    def instead(work, device):
        results.append(work())
        return 0.5

    monkeypatch.setattr(ceilings, "best_s", instead)
    monkeypatch.setattr(ceilings, "MIB", 4)
    return results


@pytest.mark.parametrize("available,size", [(4096 * 4 + 1, 512 * 4), (4096 * 4, 256 * 4)])
def test_memory_is_counted_in_10_9_bytes(half_a_second, monkeypatch, available, size):
    monkeypatch.setattr(ceilings, "memory_available", lambda _: available)
    assert memory_read_gb_per_s(CPU) == pytest.approx(size / 0.5 / 1e9)
    (total,) = half_a_second
    assert 4 * total.item() == size, "every byte was read"


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_product_of_two_matrices_is_2_n3_operations(half_a_second, dtype):
    assert matmul_flops_per_s(CPU, dtype) == 2 * 1024**3 / 0.5
    (product,) = half_a_second
    assert product.shape == (1024, 1024) and product.dtype == dtype


def test_both_by_dtype(half_a_second, monkeypatch):
    monkeypatch.setattr(ceilings, "memory_available", lambda _: 10**9)
    found = measure_ceilings(CPU)
    assert found.memory_read_gb_per_s == pytest.approx(2048 / 0.5 / 1e9)
    assert found.matmul_flops_per_s == {"float32": 2 * 1024**3 / 0.5, "bfloat16": 2 * 1024**3 / 0.5}


def test_this_machine_as_a_device():
    device = Ceilings(30.0, {"float32": 4e11}).device("float32")
    assert (device.name, device.flops_per_s, device.bytes_per_s) == ("this machine", 4e11, 30e9)
