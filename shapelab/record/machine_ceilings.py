"""What a machine can do at best, as it was measured (see measure.ceilings)."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from shapelab.record.fields import Moment, Seconds, Strict
from shapelab.theory.roofline import Device


@dataclass(frozen=True)
class Ceilings:
    """memory_read_gb_per_s in 10^9 bytes a second; matmul_flops_per_s by dtype, in floating-point operations a second."""

    memory_read_gb_per_s: float
    matmul_flops_per_s: dict[str, float]

    def device(self, dtype: str) -> Device:
        """This machine as a roofline sees it, in a dtype that was measured."""
        return Device("this machine", self.matmul_flops_per_s[dtype], self.memory_read_gb_per_s * 1e9)


class Limits(Strict):
    """What the machine of a run does at best in the run's dtype, and what a pass costs before any work. All measured."""

    memory_read_bytes_per_s: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    flops_per_s: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    overhead_s: Seconds
    measured_at: Moment

    @property
    def device(self) -> Device:
        """The machine as a roofline sees it."""
        return Device("the machine of this run", self.flops_per_s, self.memory_read_bytes_per_s)
