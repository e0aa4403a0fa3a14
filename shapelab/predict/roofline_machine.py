"""A GPU that nobody measured, by its data sheet: the floor of every pass, and an overhead that is assumed."""

from dataclasses import dataclass
from typing import Literal

from shapelab.errors import DoesNotFit
from shapelab.predict.machine import Prediction
from shapelab.request.shape import RequestShape
from shapelab.theory import roofline
from shapelab.theory.hardware import GPU
from shapelab.theory.model_spec import ModelSpec

ASSUMED_OVERHEAD_S = 0.005  # of a pass on a GPU that nobody measured; every caption says so


@dataclass(frozen=True)
class RooflineMachine:
    """Predicts as a LatencyModel does: the floor (the longer of arithmetic and bytes) plus `overhead_s` for each pass.

    No kernel reaches its ceiling, so real times are longer; the interval is the single computed value.
    """

    gpu: GPU
    spec: ModelSpec
    model: str
    dtype: str = "float16"
    overhead_s: float = 0.0
    kind: Literal["roofline"] = "roofline"

    @property
    def label(self) -> str:
        return f"{self.model}, {self.dtype}, {self.gpu.full_name}"

    @property
    def assumption(self) -> str:
        return f"{self.overhead_s * 1e3:g} ms a pass assumed"

    @property
    def usable_bytes(self) -> float:
        return self.gpu.usable_bytes

    def prefill_s(self, shape: RequestShape) -> float:
        """Raises DoesNotFit where the shape is longer than the model's context, and ShapelabError where the GPU lacks the dtype."""
        if shape.total_tokens > self.spec.max_position_embeddings:
            raise DoesNotFit(
                f"The shape {shape} needs {shape.total_tokens:,} tokens of context and {self.model} has "
                f"{self.spec.max_position_embeddings:,}. Choose fewer tokens or another model."
            )
        floor = roofline.prefill_floor(self.spec, shape, self.gpu.device(self.dtype), self.dtype)
        return floor.seconds + self.overhead_s

    def step_s(self, context_tokens: float, batch_size: int = 1) -> float:
        device = self.gpu.device(self.dtype)
        floor = roofline.decode_floor(self.spec, context_tokens, batch_size, device, self.dtype)
        return floor.seconds + self.overhead_s

    def predict(self, shape: RequestShape) -> Prediction:
        ttft, steps = self.prefill_s(shape), shape.decode_steps
        tpot = self.step_s(shape.mean_decode_context, shape.batch_size) if steps else None
        total = ttft + steps * (tpot or 0)
        return Prediction(shape, ttft, tpot, total, (ttft, ttft), (tpot, tpot) if steps else None, (total, total))

    def verdicts(self, shape: RequestShape) -> dict[str, roofline.Verdict]:
        p, device = self.predict(shape), self.gpu.device(self.dtype)
        return roofline.verdicts(self.spec, shape, p.ttft_s, p.tpot_s, device, self.dtype, self.overhead_s)
