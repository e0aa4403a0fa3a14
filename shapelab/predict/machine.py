"""What predicts, whatever it is: a machine that was measured, one that was recorded, a GPU by its data sheet."""

from dataclasses import dataclass
from typing import Literal, Protocol

from shapelab.request.shape import RequestShape
from shapelab.theory.model_spec import ModelSpec
from shapelab.theory.roofline import Verdict


@dataclass(frozen=True)
class Prediction:
    """What a shape should take. `extrapolates` names each number that lies beyond the measured points; empty when none does.

    Intervals are meant to hold 90 % of measured values, on a machine as steady as it was while the run was measured.
    """

    shape: RequestShape
    ttft_s: float
    tpot_s: float | None
    total_s: float
    ttft_interval_s: tuple[float, float]
    tpot_interval_s: tuple[float, float] | None
    total_interval_s: tuple[float, float]
    extrapolates: tuple[str, ...] = ()

    def __repr__(self) -> str:
        low, high = self.total_interval_s
        tpot = "" if self.tpot_s is None else f", TPOT {self.tpot_s * 1e3:.1f} ms"
        beyond = f"; extrapolates: {', '.join(self.extrapolates)}" if self.extrapolates else ""
        return f"<predicted {self.shape}: TTFT {self.ttft_s:.3f} s{tpot}, total {self.total_s:.2f} s ({low:.2f} to {high:.2f}){beyond}>"


class Machine(Protocol):
    """A machine with a model on it. Panels, cost and claims take any of them and never ask which it is.

    label         for captions: model, dtype, machine
    kind          measured (by the learner), recorded (a run that travels with the course) or roofline (a data sheet)
    spec, dtype   of the model; the dtype is that of its weights and cache; None where a run did not keep them
    usable_bytes  memory that weights, cache and activations share; None where nobody knows
    assumption    what the numbers rest on beside measurements and data sheets, such as "5 ms a pass assumed"; "" for nothing
    """

    @property
    def label(self) -> str: ...
    @property
    def kind(self) -> Literal["measured", "recorded", "roofline"]: ...
    @property
    def spec(self) -> ModelSpec | None: ...
    @property
    def dtype(self) -> str | None: ...
    @property
    def usable_bytes(self) -> float | None: ...
    @property
    def assumption(self) -> str: ...

    def prefill_s(self, shape: RequestShape) -> float:
        """Seconds of a shape's prefill: its TTFT."""

    def step_s(self, context_tokens: float, batch_size: int = 1) -> float:
        """Seconds of one decode step at a context (the new token included)."""

    def predict(self, shape: RequestShape) -> Prediction:
        """One prefill and N - 1 steps at their mean context. Raises ShapelabError for a shape the machine says nothing about."""

    def verdicts(self, shape: RequestShape) -> dict[str, Verdict]:
        """What the prefill and, from 2 output tokens on, the decode step wait for; empty where too little is known."""
