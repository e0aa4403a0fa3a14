"""Where a measurement was made: machine, model, versions, and what the GPU was doing."""

from typing import Literal

from shapelab.record.fields import Count, Finite, NotNegative, Strict, Text
from shapelab.theory.model_spec import ModelSpec


class GpuState(Strict):
    """A GPU's sensors at one moment; None where it has no such sensor."""

    sm_clock_mhz: NotNegative | None = None
    temperature_c: Finite | None = None
    power_w: NotNegative | None = None
    energy_j: NotNegative | None = None


class Environment(Strict):
    """The machine, the model and the versions a run belongs to."""

    device: Text
    device_kind: Literal["cpu", "cuda", "mps"]
    model: Text | None = None
    weights: Text | None = None
    dtype: Text | None = None
    attention: Text | None = None
    threads: Count
    cpus_usable: NotNegative | None = None
    compute_capability: Text | None = None
    cuda: Text | None = None
    torch: Text
    transformers: Text
    python: Text
    shapelab: Text
    system: Text
    measured_at: Text
    spec: ModelSpec | None = None

    @property
    def label(self) -> str:
        """One line for captions: model, dtype, machine."""
        weights = "" if self.weights in (None, "original") else f" ({self.weights} weights)"
        return f"{self.model}{weights}, {self.dtype}, {self.device}"
