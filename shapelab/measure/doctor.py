"""Is this machine ready, and for what? The same report answers a learner and a bug form."""

import shutil
from dataclasses import asdict
from pathlib import Path

import torch
from packaging.version import Version

from shapelab.computer import thread_problem
from shapelab.errors import CannotLoad
from shapelab.files import cache_dir
from shapelab.measure.ceilings import measure_ceilings
from shapelab.measure.this_machine import device_name, environment
from shapelab.model import embedded
from shapelab.model.load import choose_device, choose_dtype, choose_model
from shapelab.model.memory import memory_available


def examine() -> dict:
    """environment, ceilings, choice and problems, all plain values."""
    device = choose_device()
    dtype = choose_dtype(device)
    name, reason = choose_model(device)
    here = environment()
    seen = {key: value for key, value in here.model_dump().items() if value is not None}
    seen |= {
        "device": device_name(device),
        "device_kind": device.type,
        "memory_available_gb": memory_available(device) / 1e9,
    }
    precisions = {torch.float32, dtype} | ({torch.bfloat16} if device.type == "cpu" else set())
    return {
        "environment": seen,
        "ceilings": asdict(measure_ceilings(device, tuple(sorted(precisions, key=str)))),
        "choice": {
            "model": name,
            "device": device.type,
            "dtype": str(dtype).removeprefix("torch."),
            "why": reason,
            "model_is_here": embedded.is_cached() if name == embedded.NAME else None,
        },
        "problems": problems(here.threads, here.cpus_usable, device),
    }


def problems(threads: int, usable: float, device: torch.device) -> list[str]:
    """One sentence for everything that would get in the way, with the way out."""
    sentences = [thread_problem(threads, usable), _memory_problem(device), *_model_problems(), *_version_problems()]
    return [sentence for sentence in sentences if sentence]


def _memory_problem(device: torch.device) -> str | None:
    needed, free = 1.2e9, memory_available(device)  # the embedded model in fp32 (0.54 GB), torch itself, a prompt of 1,205 tokens
    if free >= needed:
        return None
    return f"Only {free / 1e9:.1f} GB of memory are free; the smallest model needs about {needed / 1e9:.1f} GB."


def _model_problems() -> list[str | None]:
    if embedded.is_cached():
        return []
    parent = next((path for path in (cache_dir(), *cache_dir().parents) if path.is_dir()), Path("/"))
    free = shutil.disk_usage(parent).free
    return [
        f"The model {embedded.NAME} is not here yet and this environment has no pip to fetch it: run `uv pip install pip` "
        "or `python -m ensurepip`." if not embedded.has_pip() else None,
        f"Only {free / 1e9:.1f} GB of disk are free at {parent}; making {embedded.NAME} takes {embedded.BYTES_NEEDED / 1e9:.1f} GB. "
        "Set SHAPELAB_CACHE to a folder on another disk." if free < embedded.BYTES_NEEDED else None,
    ]  # fmt: skip


def _version_problems() -> list[str | None]:
    try:
        import transformers
    except ImportError as error:
        raise CannotLoad("transformers is not installed; run `pip install 'transformers>=4.57,<6'`.") from error
    old = Version(transformers.__version__) < Version("4.57") or Version(transformers.__version__).major > 5
    return [f"transformers {transformers.__version__} is outside 4.57 to 5.x, with which this was tested." if old else None]
