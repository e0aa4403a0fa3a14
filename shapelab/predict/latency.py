"""A fitted machine: TTFT, TPOT and total of any request shape, each with an interval, from a run of some shapes."""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from shapelab.errors import BadFile, NotEnoughMeasured
from shapelab.files import user_path, write_text_atomically
from shapelab.predict.fit import (
    LEAST_POINTS,
    DecodeTerms,
    NotNegative,
    PrefillTerms,
    check_points,
    fit_decode,
    fit_prefill,
)
from shapelab.predict.machine import Prediction
from shapelab.record import metrics
from shapelab.record.environment import Environment
from shapelab.record.machine_ceilings import Limits
from shapelab.record.measurement import Measurement
from shapelab.record.run import Run
from shapelab.request.shape import RequestShape
from shapelab.theory import roofline
from shapelab.theory.model_spec import ModelSpec

SCHEMA_VERSION = 2
CONFIDENCE = 0.9
LARGEST_FILE = 1_000_000  # characters; a model takes some thousand
_ERROR_LIMIT = 10.0  # as a logarithm: a factor of 22,000, which is to say that nothing is known


class LatencyModel(BaseModel):
    """Terms fitted to a run, the range they were fitted in, and how far such fits were off on points they had not seen.

    It is a Machine (see predict.machine): the one that the run was measured on.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    schema_version: Literal[1, 2] = SCHEMA_VERSION
    kind: Literal["measured", "recorded"] = "measured"
    environment: Environment
    points: Annotated[int, Field(ge=LEAST_POINTS, le=10**6)]
    prefill: PrefillTerms
    decode: DecodeTerms
    measured: dict[Annotated[str, Field(max_length=40)], tuple[NotNegative, NotNegative]]
    ttft_error: Annotated[float, Field(ge=0, le=_ERROR_LIMIT)]  # relative, as a logarithm
    tpot_error: Annotated[float, Field(ge=0, le=_ERROR_LIMIT)]
    limits: Limits | None = None

    @field_validator("measured")
    @classmethod
    def _ranges_are_whole(cls, ranges):
        if ranges.keys() != _extent(RequestShape(1, 1)).keys():
            raise ValueError(f"ranges are needed for {', '.join(_extent(RequestShape(1, 1)))}")
        if (
            any(low > high for low, high in ranges.values())
            or ranges["batch size"][0] < 1
            or ranges["tokens in the prefill"][0] < 1
        ):
            raise ValueError("a range runs from its low end to its high end, and there is no batch or prompt below 1")
        return ranges

    @classmethod
    def fit(cls, run: Run, kind: Literal["measured", "recorded"] = "measured") -> "LatencyModel":
        """Fit to every measured shape of a run. `kind`: recorded for a run that somebody else measured.

        Raises NotEnoughMeasured when there are too few shapes, or they are too much alike.
        """
        points = run.measurements
        check_points(points)
        ttft_error, tpot_error = _errors_on_unseen_points(points)
        return cls(
            kind=kind,
            environment=run.environment,
            points=len(points),
            prefill=fit_prefill(points),
            decode=fit_decode(points),
            measured=_ranges([m.shape for m in points]),
            ttft_error=ttft_error,
            tpot_error=tpot_error,
            limits=run.limits,
        )

    def predict(self, shape: RequestShape) -> Prediction:
        """TTFT, TPOT (its mean over this request's decode) and total of a shape.

        Raises NotEnoughMeasured for a batch size when the run had only another one: nothing measured says what a batch does.
        """
        ttft, steps = self.prefill_s(shape), shape.decode_steps
        tpot = self.step_s(shape.mean_decode_context, shape.batch_size) if steps else None
        beyond, widen = _beyond(self.measured, shape)
        ttft_ends = _ends(ttft, self.ttft_error * widen)
        tpot_ends = _ends(tpot, self.tpot_error * widen) if steps else None
        return Prediction(
            shape, ttft, tpot, ttft + steps * (tpot or 0), ttft_ends, tpot_ends,
            tuple(a + steps * b for a, b in zip(ttft_ends, tpot_ends or (0, 0), strict=True)), beyond,
        )  # fmt: skip

    def prefill_s(self, shape: RequestShape) -> float:
        """Seconds of a shape's prefill."""
        self._refuse_unknown_batch(shape.batch_size)
        return self.prefill.seconds(shape)

    def step_s(self, context_tokens: float, batch_size: int = 1) -> float:
        """Seconds of one decode step at a context (the new token included): TPOT as a function of context."""
        self._refuse_unknown_batch(batch_size)
        return self.decode.seconds(context_tokens, batch_size)

    def verdicts(self, shape: RequestShape) -> dict[str, roofline.Verdict]:
        """What the predicted passes wait for; empty unless the run kept the machine's limits and the model's numbers."""
        if self.spec is None or self.limits is None:
            return {}
        p, limits = self.predict(shape), self.limits
        return roofline.verdicts(self.spec, shape, p.ttft_s, p.tpot_s, limits.device, self.dtype, limits.overhead_s)

    @property
    def label(self) -> str:
        return self.environment.label

    @property
    def spec(self) -> ModelSpec | None:
        return self.environment.spec

    @property
    def dtype(self) -> str | None:
        return self.environment.weight_dtype

    @property
    def usable_bytes(self) -> None:
        """A run does not say how much memory its machine has."""
        return None

    @property
    def assumption(self) -> str:
        """Nothing is assumed: every term was fitted to measured points."""
        return ""

    def against(self, run: Run):
        """A pandas frame, one row a shape of a run: predicted beside measured, and the error as a share of the measured."""
        import pandas as pd

        rows = []
        for m in run.measurements:
            predicted = self.predict(m.shape)
            row = {"shape": str(m.shape)}
            for metric in (metrics.ttft_s, metrics.tpot_s, metrics.total_s):
                name, value = metric.__name__, m.median(metric)
                expected = getattr(predicted, name)
                row |= {f"measured_{name}": value, f"predicted_{name}": expected}
                row |= {f"{name.removesuffix('_s')}_error": expected / value - 1 if value else None}
            low, high = predicted.total_interval_s
            row |= {"total_low_s": low, "total_high_s": high, "inside": low <= row["measured_total_s"] <= high}
            rows.append({**row, "extrapolates": ", ".join(predicted.extrapolates)})
        return pd.DataFrame(rows)

    def to_frame(self):
        """The terms as a pandas frame: phase, term, from where on it counts, seconds, and for each what."""
        import pandas as pd

        p, d = self.prefill, self.decode
        rows = [("prefill", "fixed cost of a pass", None, p.fixed_s, "pass")]
        rows += [("prefill", "a token read", start, slope, "token") for start, slope in _pieces(p.read_s_per_token)]
        rows += [
            ("prefill", "attention", None, p.attention_s_per_pair, "pair of tokens"),
            ("prefill", "a cached token", None, p.cached_s_per_token, "token"),
            ("prefill", "one more sequence", None, p.sequence_s, "sequence"),
            ("decode", "a step", None, d.step_s, "step"),
        ]
        rows += [("decode", "one more sequence", start, slope, "sequence") for start, slope in _pieces(d.batch_s_per_sequence)]
        rows += [
            ("decode", "context", None, d.context_s_per_token, "token of context"),
            ("decode", "context, each sequence", None, d.context_s_per_sequence_token, "token and sequence"),
        ]
        return pd.DataFrame(rows, columns=["phase", "term", "from", "seconds", "each"])

    def __repr__(self) -> str:
        return (
            f"<LatencyModel from {self.points} shapes: {self.environment.label}; unseen points were off by up to "
            f"{math.expm1(self.ttft_error):.0%} (TTFT) and {math.expm1(self.tpot_error):.0%} (TPOT)>"
        )

    __str__ = __repr__

    def save(self, path: str | Path) -> Path:
        """Write the model as JSON. Raises CannotWrite."""
        return write_text_atomically(path, json.dumps(self.model_dump(), indent=2, allow_nan=False) + "\n")

    @classmethod
    def load(cls, path: str | Path) -> "LatencyModel":
        """Read and check a model. Raises BadFile naming the file and what is wrong with it."""
        path = user_path(path)
        try:
            with path.open(encoding="utf-8") as file:
                text = file.read(LARGEST_FILE + 1)
        except (OSError, UnicodeDecodeError) as error:
            raise BadFile(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}.") from error
        if len(text) > LARGEST_FILE:
            raise BadFile(f"{path} is longer than {LARGEST_FILE:,} characters. This is not a latency model.")
        try:
            return cls.model_validate_json(text)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"]))[:80] or "the file"
            raise BadFile(f"{path} is not a latency model: {where}: {first['msg'][:120]}.") from None

    def _refuse_unknown_batch(self, batch_size: int):
        low, high = self.measured["batch size"]
        if low == high != batch_size:
            raise NotEnoughMeasured(
                f"This run measured batch size {low:.0f} only, so it says nothing about {batch_size}. Measure at least two batch "
                "sizes: `shapelab sweep --batch 1,4,16`."
            )


def _errors_on_unseen_points(points: Sequence[Measurement]) -> tuple[float, float]:
    """For TTFT and TPOT: the |log(measured / predicted)| that 90 % of points stay below when fitted without themselves.

    Each point is left out once (jackknife; the quantile with the finite-sample correction of conformal prediction, Vovk et
    al. 2005). A point that the others would have to extrapolate to does not count: such predictions are widened anyway.
    """
    ttft, tpot = [], []
    for place, point in enumerate(points):
        others = [*points[:place], *points[place + 1 :]]
        if _beyond(_ranges([m.shape for m in others]), point.shape)[0]:
            continue
        ttft.append(_apart(point.median(metrics.ttft_s), fit_prefill(others).seconds(point.shape)))
        if measured := point.median(metrics.tpot_s):
            predicted = fit_decode(others).seconds(point.shape.mean_decode_context, point.batch_size)
            tpot.append(_apart(measured, predicted))
    return _quantile(ttft), _quantile(tpot)


def _apart(measured: float, predicted: float) -> float:
    return abs(math.log(measured / predicted)) if predicted > 0 else _ERROR_LIMIT


def _quantile(errors: list[float]) -> float:
    if len(errors) < 3:
        raise NotEnoughMeasured(
            "Too few shapes lie between others to test how well the fit predicts. Measure more shapes between the "
            "smallest and the largest: `shapelab sweep --plan quick --out FILE`."
        )
    return min(_ERROR_LIMIT, sorted(errors)[min(len(errors), math.ceil(CONFIDENCE * (len(errors) + 1))) - 1])


def _extent(shape: RequestShape) -> dict[str, float]:
    """The quantities of a shape that must lie inside the measured ranges."""
    context = shape.total_tokens
    return {
        "batch size": shape.batch_size,
        "tokens in the prefill": shape.prefill_tokens,
        "pairs of tokens in attention": shape.attention_pairs,
        "tokens of context": context,
        "tokens in the KV cache": shape.batch_size * context,
        "cached tokens": shape.cached_tokens,
    }


def _ranges(shapes: Sequence[RequestShape]) -> dict[str, tuple[float, float]]:
    extents = [_extent(shape) for shape in shapes]
    return {name: (min(e[name] for e in extents), max(e[name] for e in extents)) for name in extents[0]}


def _beyond(ranges: dict[str, tuple[float, float]], shape: RequestShape) -> tuple[tuple[str, ...], float]:
    """In what a shape lies beyond the measured ranges, and by how much to widen: 1, and 1 more for every doubling.

    Fewer tokens of context than measured are no extrapolation to speak of: those terms are straight lines.
    """
    beyond, widen = [], 1.0
    for name, value in _extent(shape).items():
        low, high = ranges[name]
        if value > high:
            beyond.append(f"{value:,.0f} {name}, measured up to {high:,.0f}")
            widen = max(widen, 1 + math.log2(value / high) if high else 2.0)
        elif value < low and name in ("batch size", "tokens in the prefill"):
            beyond.append(f"{value:,.0f} {name}, measured from {low:,.0f}")
            widen = max(widen, 1 + math.log2(low / value))
    return tuple(beyond), widen


def _ends(seconds: float, error: float) -> tuple[float, float]:
    error = min(error, _ERROR_LIMIT)
    return seconds * math.exp(-error), seconds * math.exp(error)


def _pieces(pieces) -> list[tuple[float, float]]:
    return list(zip(pieces.start, pieces.slope, strict=True))
