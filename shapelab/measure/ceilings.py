"""What this machine can do at best: reading memory and multiplying matrices. Measured, not looked up."""

import time

import torch

from shapelab.measure.clock import synchronize
from shapelab.model.memory import memory_available
from shapelab.record.machine_ceilings import Ceilings

MIB = 2**20


def measure_ceilings(device: torch.device, dtypes: tuple[torch.dtype, ...] = (torch.float32, torch.bfloat16)) -> Ceilings:
    """Both ceilings of a device. Takes a few seconds on a CPU."""
    return Ceilings(
        memory_read_gb_per_s(device),
        {str(dtype).removeprefix("torch."): matmul_flops_per_s(device, dtype) for dtype in dtypes},
    )


def memory_read_gb_per_s(device: torch.device) -> float:
    """10^9 bytes a second, best of 5, read by a sum over 512 MiB of float32 (half where less than 4 GiB is free).

    Most caches hold less. On 2 CPUs of a Xeon whose host has 480 MiB of cache, 128 MiB to 2 GiB read equally fast (25 to 29).
    """
    size = 512 * MIB if memory_available(device) > 4096 * MIB else 256 * MIB
    numbers = torch.ones(size // 4, device=device)
    return size / best_s(numbers.sum, device) / 1e9


def matmul_flops_per_s(device: torch.device, dtype: torch.dtype) -> float:
    """2 n^3 operations over the best of 5 products of two n x n matrices; n is 1,024 on a CPU, 4,096 on a GPU."""
    n = 1024 if device.type == "cpu" else 4096
    a = torch.randn(n, n, device=device).to(dtype)
    return 2 * n**3 / best_s(lambda: a @ a, device)


def best_s(work, device: torch.device, times: int = 5) -> float:
    """Seconds of the fastest of several runs, after one that is not counted. The clock is read after a synchronise."""
    work()
    best = float("inf")
    for _ in range(times):
        synchronize(device)
        start = time.perf_counter()
        work()
        synchronize(device)
        best = min(best, time.perf_counter() - start)
    return best
