"""Where it was measured: what the record says about machine, threads and GPU, and what is missing without loss."""

import platform
from datetime import datetime, timedelta
from importlib.metadata import version
from types import SimpleNamespace

import pytest
import torch

import shapelab
from shapelab.computer import cpu_name, cpus_usable
from shapelab.measure.this_machine import GpuWatch, environment
from shapelab.record.environment import GpuState
from shapelab.record.measurement import Repeat
from tests.toys import toy_lab

CPU, CUDA = torch.device("cpu"), torch.device("cuda")


def test_a_labs_environment():
    here = environment(toy_lab())
    assert (here.model, here.weights, here.weight_dtype, here.device_kind) == ("toy-llama", "random", "float64", "cpu")
    assert here.attention in ("sdpa", "eager")
    assert (here.threads, here.cpus_usable) == (torch.get_num_threads(), cpus_usable())
    assert here.device == f"{cpu_name()}, {cpus_usable():g} CPUs" and len(cpu_name()) > 2
    assert (here.torch, here.transformers) == (torch.__version__, version("transformers"))
    assert (here.python, here.shapelab) == (platform.python_version(), shapelab.__version__)
    assert here.system.startswith(platform.system())
    assert datetime.fromisoformat(here.measured_at).utcoffset() == timedelta(0)
    assert here.cuda is None and here.compute_capability is None


def test_without_a_lab_there_is_a_machine_and_no_model():
    here = environment()
    assert (here.model, here.weights, here.compute_dtype, here.attention) == (None, None, None, None)
    assert here.threads >= 1 and here.device_kind == "cpu"


class FakeNvml:
    """Answers like NVML, in milliwatts and millijoules; `broken` calls raise."""

    NVML_CLOCK_SM, NVML_TEMPERATURE_GPU = 1, 0

    def __init__(self, *broken):
        self.broken = broken

    def answer(self, name, value):
        if name in self.broken:
            raise RuntimeError(name)
        return value

    def nvmlInit(self):
        self.answer("init", None)

    def nvmlDeviceGetHandleByUUID(self, uuid):
        return self.answer("handle", {"GPU-1234": "handle"}[uuid])

    def nvmlDeviceGetClockInfo(self, handle, kind):
        return self.answer("clock", {("handle", 1): 1980}[handle, kind])

    def nvmlDeviceGetTemperature(self, handle, kind):
        return self.answer("temperature", {("handle", 0): 41}[handle, kind])

    def nvmlDeviceGetPowerUsage(self, handle):
        return self.answer("power", {"handle": 312_500}[handle])

    def nvmlDeviceGetTotalEnergyConsumption(self, handle):
        return self.answer("energy", {"handle": 2_000_250}[handle])


def watch(monkeypatch, nvml, uuid="1234", device=CUDA):
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: SimpleNamespace(uuid=uuid))
    return GpuWatch(device, nvml).state()


@pytest.mark.parametrize("uuid", ["1234", "GPU-1234"])
def test_sensors_are_read_in_watts_and_joules(monkeypatch, uuid):
    state = watch(monkeypatch, FakeNvml(), uuid)
    assert (state.sm_clock_mhz, state.temperature_c) == (1980, 41)
    assert (state.power_w, state.energy_j) == pytest.approx((312.5, 2000.25))


@pytest.mark.parametrize(
    "sensor,field", [("clock", "sm_clock_mhz"), ("temperature", "temperature_c"), ("power", "power_w"), ("energy", "energy_j")]
)
def test_one_broken_sensor_loses_only_itself(monkeypatch, sensor, field):
    state = watch(monkeypatch, FakeNvml(sensor)).model_dump()
    assert [name for name, value in state.items() if value is None] == [field]


@pytest.mark.parametrize("broken", ["init", "handle"])
def test_no_driver_means_no_sensors(monkeypatch, broken):
    assert watch(monkeypatch, FakeNvml(broken)) is None


def test_a_cpu_has_no_gpu_sensors(monkeypatch):
    assert watch(monkeypatch, FakeNvml(), device=CPU) is None


@pytest.mark.parametrize(
    "before,after,joules",
    [(10, 12.5, 2.5), (None, 12.5, None), (10, None, None)],
)
def test_energy_of_a_repeat(before, after, joules):
    state = {"gpu_before": GpuState(energy_j=before), "gpu_after": GpuState(energy_j=after)}
    assert Repeat(index=1, order=0, host_ns=(0, 1), output_tokens=1, **state).energy_j == joules
    assert Repeat(index=1, order=0, host_ns=(0, 1), output_tokens=1).energy_j is None
