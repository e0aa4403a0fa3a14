"""Asks this machine what a record must say about it: hardware, versions, threads, and the GPU's sensors."""

import platform
from importlib.metadata import PackageNotFoundError, version

import torch

from shapelab import __version__
from shapelab.computer import cpu_name, cpus_usable
from shapelab.model.load import Lab
from shapelab.record.environment import GpuState, LocalMachine
from shapelab.record.fields import now


def environment(lab: Lab | None = None) -> LocalMachine:
    """This machine, these versions and, when a Lab is given, its model, device and dtype."""
    device = lab.device if lab else torch.device("cpu")
    return LocalMachine(
        device=device_name(device),
        device_kind=device.type,
        **(_of_lab(lab) if lab else {}),
        threads=torch.get_num_threads(),
        cpus_usable=cpus_usable(),
        compute_capability=_capability(device),
        cuda=torch.version.cuda if device.type == "cuda" else None,
        torch=torch.__version__,
        transformers=_version("transformers"),
        python=platform.python_version(),
        shapelab=__version__,
        system=f"{platform.system()} {platform.machine()}",
        measured_at=now(),
    )


def _of_lab(lab: Lab) -> dict:
    return {
        "model": lab.name, "weights": lab.weights, "weight_dtype": lab.dtype_name, "compute_dtype": lab.dtype_name,
        "attention": getattr(lab.model.config, "_attn_implementation", None), "spec": lab.spec,
    }  # fmt: skip


def device_name(device: torch.device) -> str:
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    if device.type == "mps":
        return f"Apple GPU of {cpu_name()}"
    return f"{cpu_name()}, {cpus_usable():g} CPUs"


class GpuWatch:
    """Clock, temperature, power and energy through NVML, where the driver has it; None everywhere else."""

    def __init__(self, device: torch.device, nvml=None):
        self.nvml = self.handle = None
        if device.type != "cuda":
            return
        try:
            if nvml is None:
                import pynvml as nvml
            nvml.nvmlInit()
            uuid = str(torch.cuda.get_device_properties(device).uuid)
            self.handle = nvml.nvmlDeviceGetHandleByUUID(uuid if uuid.startswith("GPU-") else f"GPU-{uuid}")
            self.nvml = nvml
        except Exception:  # no driver library, no permission, a MIG slice: measured without it
            self.nvml = None

    def state(self) -> GpuState | None:
        if self.nvml is None:
            return None
        nvml, handle = self.nvml, self.handle
        return GpuState(
            sm_clock_mhz=_ask(nvml.nvmlDeviceGetClockInfo, handle, nvml.NVML_CLOCK_SM),
            temperature_c=_ask(nvml.nvmlDeviceGetTemperature, handle, nvml.NVML_TEMPERATURE_GPU),
            power_w=_scaled(_ask(nvml.nvmlDeviceGetPowerUsage, handle), 1e-3),
            energy_j=_scaled(_ask(nvml.nvmlDeviceGetTotalEnergyConsumption, handle), 1e-3),
        )


def _ask(call, *arguments):
    try:
        return call(*arguments)
    except Exception:  # one sensor missing must not lose the others
        return None


def _scaled(value, factor):
    return None if value is None else value * factor


def _capability(device: torch.device) -> str | None:
    return ".".join(map(str, torch.cuda.get_device_capability(device))) if device.type == "cuda" else None


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"
