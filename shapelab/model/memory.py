"""Memory of the device that a model runs on: how much can still be had, and giving some back."""

import ctypes
import gc
from contextlib import suppress

import torch

from shapelab.computer import memory_left


def memory_available(device: torch.device) -> int:
    """Bytes that can still be had on the device. Apple's GPU shares the computer's memory."""
    if device.type != "cuda":
        return memory_left()
    unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)  # torch's own, to be used again
    return torch.cuda.mem_get_info(device)[0] + unused


def give_back_memory():
    """Hand freed memory back to the system, which glibc otherwise keeps: 0.1 to 0.4 GB after a prompt of 1,205 to
    1,920 tokens (measured, smollm2-135m in float32 on a CPU).

    Between measurements only: the next run must fetch it again, which its warm-up does.
    """
    gc.collect()  # a model is full of cycles
    with suppress(OSError, AttributeError, TypeError):  # another C library has no such call, and keeps less
        ctypes.CDLL(None).malloc_trim(0)
