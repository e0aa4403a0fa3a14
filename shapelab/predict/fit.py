"""Measured points -> terms that can be read, by non-negative least squares on relative errors.

    TTFT       = fixed + read(B S) + attention x B (S cached + S(S+1)/2) + cached x B cached + sequence x (B - 1)
    TPOT(ctx)  = step + batch(B) + context x ctx + sequence_context x B ctx

`read` and `batch` are lines in pieces: what one more token, or one more sequence, adds within a range. A GPU's are flat
and then rise; a CPU's rise in steps. Nothing else about their form is assumed. No term can be negative, so no prediction
is, and none falls when tokens are added.
"""

import itertools
from collections.abc import Sequence
from typing import Annotated

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, model_validator
from scipy.optimize import nnls

from shapelab.errors import NotEnoughMeasured
from shapelab.record import metrics
from shapelab.record.measurement import Measurement
from shapelab.request.shape import RequestShape

LEAST_POINTS = 6
WIDEST_RATIO = 4  # from one piece of `read` to the next: 4 times the tokens
OUTLIER = 0.05  # a relative error well above this counts less (soft L1): one hiccup must not bend the fit

NotNegative = Annotated[float, Field(ge=0, le=1e15, allow_inf_nan=False)]


class Pieces(BaseModel):
    """A line in pieces that never falls: `slope[k]` seconds for each unit from `start[k]` to the next start, the last without end.

    Up to the first start it is 0.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    start: tuple[NotNegative, ...] = ()
    slope: tuple[NotNegative, ...] = ()

    @model_validator(mode="after")
    def _in_order(self):
        if len(self.start) != len(self.slope) or any(b <= a for a, b in zip(self.start, self.start[1:], strict=False)):
            raise ValueError("`start` and `slope` need equal length; `start` must increase")
        return self

    def __call__(self, x: float) -> float:
        return sum(s * max(0.0, min(x, end) - a) for (a, end), s in zip(_spans(self.start), self.slope, strict=True))


class PrefillTerms(BaseModel):
    """Seconds of a prefill. A term is 0 when no measured point could reveal it."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    fixed_s: NotNegative  # a pass, however few tokens it reads
    read_s_per_token: Pieces  # over the tokens of the pass, B x S
    attention_s_per_pair: NotNegative  # a new token looking at one token before it: the quadratic term
    cached_s_per_token: NotNegative  # a token already in the cache
    sequence_s: NotNegative  # one more sequence in the batch

    def seconds(self, shape: RequestShape) -> float:
        return (
            self.fixed_s
            + self.read_s_per_token(shape.prefill_tokens)
            + self.attention_s_per_pair * shape.attention_pairs
            + self.cached_s_per_token * shape.batch_size * shape.cached_tokens
            + self.sequence_s * (shape.batch_size - 1)
        )


class DecodeTerms(BaseModel):
    """Seconds of a decode step."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    step_s: NotNegative  # a step of the smallest batch, before any context
    batch_s_per_sequence: Pieces  # one more sequence in the batch
    context_s_per_token: NotNegative  # a token of context, however many sequences
    context_s_per_sequence_token: NotNegative  # a token of context, for each sequence

    def seconds(self, context_tokens: float, batch_size: int) -> float:
        context = self.context_s_per_token * context_tokens + self.context_s_per_sequence_token * batch_size * context_tokens
        return self.step_s + self.batch_s_per_sequence(batch_size) + context


def fit_prefill(measurements: Sequence[Measurement]) -> PrefillTerms:
    shapes, seconds = _known(measurements, metrics.ttft_s)
    tokens = [shape.prefill_tokens for shape in shapes]
    starts = _starts_by_ratio(tokens)
    columns = {
        "fixed_s": [1.0] * len(shapes),
        **_piece_columns(tokens, starts),
        "attention_s_per_pair": [shape.attention_pairs for shape in shapes],
        "cached_s_per_token": [shape.batch_size * shape.cached_tokens for shape in shapes],
        "sequence_s": [shape.batch_size - 1 for shape in shapes],
    }
    terms = relative_nnls(columns, seconds)
    slopes = tuple(terms.pop(start) for start in starts)
    return PrefillTerms(read_s_per_token=Pieces(start=starts, slope=slopes), **terms)


def fit_decode(measurements: Sequence[Measurement]) -> DecodeTerms:
    shapes, seconds = _known(measurements, metrics.tpot_s)
    batches = [shape.batch_size for shape in shapes]
    starts = tuple(float(batch) for batch in sorted(set(batches))[:-1])
    columns = {
        "step_s": [1.0] * len(shapes),
        **_piece_columns(batches, starts),
        "context_s_per_token": [shape.mean_decode_context for shape in shapes],
        "context_s_per_sequence_token": [shape.batch_size * shape.mean_decode_context for shape in shapes],
    }
    terms = relative_nnls(columns, seconds)
    slopes = tuple(terms.pop(start) for start in starts)
    return DecodeTerms(batch_s_per_sequence=Pieces(start=starts, slope=slopes), **terms)


def relative_nnls(columns: dict, seconds: Sequence[float]) -> dict:
    """Terms of at least 0, one a column, that make the sum of (predicted / measured - 1)^2 small; far points count less.

    A point of 10 s and one of 50 ms weigh the same, since each error is taken as a share of its own time.
    """
    matrix = np.array(list(columns.values()), dtype=float).T / np.array(seconds)[:, None]
    scale = np.abs(matrix).max(axis=0)
    scale[scale == 0] = 1.0  # a term that no point shows stays 0
    weight = np.ones(len(seconds))
    for _ in range(10):
        solution, _ = nnls(matrix / scale * weight[:, None], weight)
        error = matrix / scale @ solution - 1
        weight = (1 + (error / OUTLIER) ** 2) ** -0.25  # squared, it is soft L1's weight
    return {name: float(value) for name, value in zip(columns, solution / scale, strict=True)}


def check_points(measurements: Sequence[Measurement]):
    """Raise NotEnoughMeasured when these points cannot tell the terms apart."""
    decoded = [m.shape for m in measurements if m.median(metrics.tpot_s)]
    advice = "`shapelab sweep --plan quick --out FILE` measures enough."
    if len(decoded) < LEAST_POINTS:
        raise NotEnoughMeasured(
            f"{len(decoded)} shapes with 2 or more output tokens are too few to fit a latency model; it takes at least "
            f"{LEAST_POINTS} different ones. {advice}"
        )
    if any(not m.median(metrics.ttft_s) for m in measurements):
        raise NotEnoughMeasured("One shape has a TTFT of 0 s: the clock stood still. Leave that shape out, or measure it again.")
    tokens = {shape.prefill_tokens for shape in decoded}
    if len(tokens) < 3 or max(tokens) < 4 * min(tokens):
        raise NotEnoughMeasured(
            "The input lengths are too much alike to tell the fixed cost of a pass from the cost of a token. Measure at least "
            f"3 lengths, the longest at least 4 times the shortest. {advice}"
        )
    contexts = [shape.mean_decode_context for shape in decoded]
    if max(contexts) < 2 * min(contexts):
        raise NotEnoughMeasured(
            f"The contexts (prompt and answer) are too much alike, {min(contexts):.0f} to {max(contexts):.0f} tokens, to tell the "
            f"cost of a step from the cost of context. {advice}"
        )


def _known(measurements, metric) -> tuple[list[RequestShape], list[float]]:
    pairs = [(m.shape, value) for m in measurements if (value := m.median(metric))]
    return [shape for shape, _ in pairs], [value for _, value in pairs]


def _starts_by_ratio(values: Sequence[float]) -> tuple[float, ...]:
    """Where pieces start: measured values WIDEST_RATIO apart, the last piece at least half as wide."""
    ordered = sorted(set(values))
    starts = [ordered[0]]
    for value in ordered[1:]:
        if value >= WIDEST_RATIO * starts[-1] and 2 * value <= ordered[-1]:
            starts.append(value)
    return tuple(float(start) for start in starts)


def _piece_columns(values: Sequence[float], starts: tuple[float, ...]) -> dict[float, list[float]]:
    return {a: [max(0.0, min(value, end) - a) for value in values] for a, end in _spans(starts)}


def _spans(starts: tuple[float, ...]) -> list[tuple[float, float]]:
    """From where to where each piece counts; the last one without end."""
    return list(itertools.pairwise((*starts, float("inf"))))
