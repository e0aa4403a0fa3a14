"""Memory of the device that a model runs on: how much is left, how much a run needs, and how a backend says that there was too little."""

import ctypes
import errno
import gc
import re
from contextlib import suppress

import torch

from shapelab.computer import memory_left
from shapelab.errors import DoesNotFit
from shapelab.request.shape import RequestShape
from shapelab.theory.arithmetic import activation_bytes, kv_bytes_per_token

# Only CUDA has a class for it. What MPS, CPU allocators, cuBLAS and HIP say instead:
_OUT_OF_MEMORY = re.compile(
    r"out[ _]?of[ _]?memory|not enough memory|can(no|')t allocate memory|(unable|failed) to allocate|alloc(ation)?_failed"
    r"|memoryallocation|bad_?alloc|bad allocation|invalid buffer size|could not create a memory",
    re.IGNORECASE,
)


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


def memory_needed_bytes(lab, shape: RequestShape) -> int:
    """Bytes a run takes on top of the weights: the KV cache, and an upper estimate of what one prefill layer holds at once.

    With cached tokens a mask of S x (cached + S) comes on top. A margin of 30 % and 64 MB is added: measured peaks
    (smollm2-135m, float32, CPU, 1,000 to 7,000 tokens) were up to 1.3 times the plain sum, and 60 MB above it for short
    prompts.
    """
    size, rows = lab.dtype.itemsize, shape.batch_size
    cache = kv_bytes_per_token(lab.spec, size) * rows * shape.total_tokens
    activations = activation_bytes(lab.spec, max(shape.input_tokens, shape.cached_tokens), rows, size)
    mask = shape.input_tokens * shape.prompt_tokens * size if shape.cached_tokens else 0
    return int(1.3 * (cache + activations + mask) + 64e6)


def refuse_what_memory_cannot_hold(lab, shape: RequestShape):
    """Raises DoesNotFit: on a CPU, running out of memory would kill the process."""
    needed, available = memory_needed_bytes(lab, shape), memory_available(lab.device)
    if needed > available:
        raise DoesNotFit(
            f"{too_large(lab, shape)} It needs about {needed / 1e9:.2f} GB and {available / 1e9:.2f} GB are left. Ask for a "
            "smaller batch or fewer tokens, or leave it out."
        )


def too_large(lab, shape: RequestShape) -> str:
    return f"The shape {shape} does not fit in the memory of this {lab.device.type} with {lab.name} in {lab.dtype_name}."


def is_out_of_memory(error: BaseException) -> bool:
    """By its class where there is one; most backends raise a plain RuntimeError, and there only its text tells."""
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    return isinstance(error, RuntimeError) and bool(_OUT_OF_MEMORY.search(str(error)))


def recover_memory(device: torch.device):
    """After running out, and once the error and its traceback are gone: they hold the tensors of the failed pass."""
    give_back_memory()
    if device.type == "cuda":
        with torch.cuda.device(device):  # or it would open a context on the first GPU
            torch.cuda.empty_cache()
    elif device.type == "mps":
        torch.mps.empty_cache()


class PeakMemory:
    """The most that a CUDA device held inside the block, in bytes; None on other devices, which do not say."""

    def __init__(self, device: torch.device):
        self.device, self.peak_bytes = device, None

    def __enter__(self):
        if self.device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(self.device)  # else the loader's peak would be reported
        return self

    def __exit__(self, *_):
        if self.device.type == "cuda":
            self.peak_bytes = torch.cuda.max_memory_allocated(self.device)
