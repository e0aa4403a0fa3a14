"""GPUs by name: the peaks their data sheets promise, from `data/gpus.csv`."""

import csv
from dataclasses import dataclass

from shapelab.errors import BadArgument, BadFile, UnknownName
from shapelab.files import data_path
from shapelab.theory.roofline import Device

_PEAKS = {
    "float32": "float32_tflops",
    "float16": "float16_tflops",
    "bfloat16": "bfloat16_tflops",
    "float8": "float8_tflops",
    "int8": "int8_tops",
}


@dataclass(frozen=True)
class GPU:
    """What a data sheet says of one GPU. Peaks are dense: where a sheet gives them "with sparsity", half of that.

    flops_per_s   FLOP/s (int8: operations/s) by dtype, tensor cores for all but float32; no entry for a dtype that the
                  sheet gives no peak for
    bytes_per_s   memory bandwidth; 1 GB/s is 10^9 bytes/s
    memory_bytes  capacity as sold, in GB of 10^9 bytes. The makers' GB are often nearer to GiB, so usable_bytes can be more
    usable_bytes  what a program can fill: the total that CUDA reports (PyTorch's "total capacity", which leaves out what
                  error correction and the driver keep) less about 0.25 GiB for the CUDA context. For "does it fit"
    compute_capability  as text, "7.5"
    """

    name: str
    full_name: str
    flops_per_s: dict[str, float]
    bytes_per_s: float
    memory_bytes: float
    usable_bytes: float
    compute_capability: str
    source: str

    def device(self, dtype: str) -> Device:
        """The GPU as a roofline sees it when it computes in a dtype, which must be native to it."""
        if dtype == "int4":
            raise BadArgument(
                "dtype int4 is how weights are stored; name the one they are computed in, such as float16.", "dtype"
            )
        if dtype not in _PEAKS:
            raise BadArgument(f"No GPU here computes in dtype {dtype!r}. Use one of {', '.join(self.flops_per_s)}.", "dtype")
        if dtype not in self.flops_per_s:
            raise BadArgument(
                f"{self.full_name} (compute capability {self.compute_capability}) has no native {dtype}: its tensor cores "
                f"do not do it. Use float16; its dtypes are {', '.join(self.flops_per_s)}.",
                "dtype",
            )
        return Device(f"{self.full_name}, {dtype}", self.flops_per_s[dtype], self.bytes_per_s)


def known_gpus() -> dict[str, GPU]:
    """The GPUs of `data/gpus.csv` by name, in the file's order."""
    gpus = {}
    with data_path("gpus.csv").open(newline="", encoding="utf-8") as lines:
        reader = csv.DictReader(lines)
        for row in reader:
            try:
                gpu = _gpu(row)
            except (KeyError, TypeError, ValueError) as error:
                line = reader.line_num
                raise BadFile(f"gpus.csv, line {line}: the row of {row.get('name')!r} has no readable {error}.", line) from None
            if gpu.name in gpus:
                raise BadFile(f"gpus.csv, line {reader.line_num}: {gpu.name} is there twice.", reader.line_num)
            gpus[gpu.name] = gpu
    return gpus


def gpu(name: str) -> GPU:
    """The GPU of that name, such as T4 or h100-sxm; capitals do not matter."""
    gpus = known_gpus()
    for known in gpus.values():
        if known.name.casefold() == str(name).casefold():
            return known
    raise UnknownName(f"No GPU is called {name!r} here. Known are {', '.join(gpus)}.", "name")


def _gpu(row: dict[str, str]) -> GPU:
    """One row in base units. KeyError, TypeError or ValueError name the column."""
    for column in ("name", "full_name", "float16_tflops", "compute_capability", "source"):
        if not row[column]:
            raise ValueError(column)
    return GPU(
        name=row["name"],
        full_name=row["full_name"],
        flops_per_s={dtype: _number(row, column) * 1e12 for dtype, column in _PEAKS.items() if row[column]},
        bytes_per_s=_number(row, "memory_gb_per_s") * 1e9,
        memory_bytes=_number(row, "memory_gb") * 1e9,
        usable_bytes=_number(row, "usable_gib") * 2**30,
        compute_capability=row["compute_capability"],
        source=row["source"],
    )


def _number(row: dict[str, str], column: str) -> float:
    try:
        value = float(row[column])
    except (TypeError, ValueError):
        value = 0.0
    if not 0 < value < 1e6:  # also false for nan
        raise ValueError(column)
    return value
