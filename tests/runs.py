"""Runs made of stamps: of named times, of planted terms, and the machine they pretend to be."""

import dataclasses
import math
import random

from shapelab.predict.fit import DecodeTerms, Pieces, PrefillTerms
from shapelab.predict.latency import LatencyModel
from shapelab.record.environment import LocalMachine
from shapelab.record.measurement import Measurement, Repeat
from shapelab.record.plans import plan_shapes
from shapelab.record.run import Run
from shapelab.request.shape import PRESETS, RequestShape

HERE = LocalMachine(
    device="a machine", device_kind="cpu", model="toy", weights="random", weight_dtype="float32", compute_dtype="float32", threads=2,
    torch="2", transformers="5", python="3.11", shapelab="0.1.0", system="Linux x86_64", measured_at="2025-01-01",
)  # fmt: skip
LIKE_A_TALK = {
    name: [(ttft_s, tpot_s), (1.004 * ttft_s, 1.004 * tpot_s), (0.997 * ttft_s, 0.997 * tpot_s)]
    for name, ttft_s, tpot_s in (("chat", 0.178, 0.14), ("rag", 0.530, 0.14), ("creative", 0.175, 0.13))
}  # one repeat would decide nothing


def measured(shape: RequestShape, *times: tuple[float, float], name: str = "", per_pass: bool = False) -> Measurement:
    """A shape measured once for each (ttft_s, tpot_s). per_pass: a stamp at every step, as a CPU's clock makes them."""
    repeats = []
    for index, (ttft_s, tpot_s) in enumerate(times):
        steps = range(shape.output_tokens) if per_pass else sorted({0, shape.decode_steps})
        stamps = (0, *(round((ttft_s + tpot_s * step) * 1e9) for step in steps))
        repeats.append(Repeat(index=index + 1, order=index, host_ns=stamps, output_tokens=shape.output_tokens))
    return Measurement(name=name or str(shape), **dataclasses.asdict(shape), repeats=tuple(repeats))


def make_run(points: dict[str, list[tuple[float, float]]], **shapes: RequestShape) -> Run:
    """A run from (ttft_s, tpot_s) per shape and repeat; a name that is no preset needs its shape."""
    return Run(HERE, [measured(shapes.get(name) or PRESETS[name], *times, name=name) for name, times in points.items()])


def swept(times: dict[str, list[tuple[float, float]]]) -> Run:
    return make_run(times, **{text: RequestShape.parse(text) for text in times})


def batches(**tpots):
    """256x16 at several batch sizes: a prefill of 0.25 s for each sequence, and the steps given."""
    shapes = {f"b{size}": RequestShape(256, 16, int(size)) for size in (name[1:] for name in tpots)}
    return make_run({f"b{name[1:]}": [(0.25 * int(name[1:]), tpot)] * 2 for name, tpot in tpots.items()}, **shapes).measurements


CPU_BATCH = Pieces(start=(1, 2, 3, 4, 8, 16), slope=(0.001, 0.002, 0.016, 0.0055, 0.0018, 0.0017))  # 35, 36, 38, 54, 76 ms ...


def planted(prefill: PrefillTerms, decode: DecodeTerms, shapes, noise: float = 0.0, seed: int = 0) -> Run:
    """A run that these terms made, each time off by a factor drawn around 1."""
    rng = random.Random(seed)
    return Run(
        HERE,
        [
            measured(
                shape,
                (
                    prefill.seconds(shape) * math.exp(rng.gauss(0, noise)),
                    decode.seconds(shape.mean_decode_context, shape.batch_size) * math.exp(rng.gauss(0, noise)),
                ),
            )
            for shape in shapes
        ],
    )


def quick():
    return plan_shapes("quick", 8192)[0]


def terms(fixed=0.05, read=0.001, pair=3e-7, cached=0.0, step=0.04, batch=CPU_BATCH, context=3e-6, each=4e-6):
    prefill = PrefillTerms(
        fixed_s=fixed, read_s_per_token=Pieces(start=(1,), slope=(read,)), attention_s_per_pair=pair, cached_s_per_token=cached, sequence_s=0,
    )  # fmt: skip
    return prefill, DecodeTerms(
        step_s=step, batch_s_per_sequence=batch, context_s_per_token=context, context_s_per_sequence_token=each
    )


PREFILL, DECODE = terms()
RUN = planted(PREFILL, DECODE, quick(), 0.03, seed=3)
MODEL = LatencyModel.fit(RUN)
