"""How well the latency model predicts shapes it has not seen: fit on the quick plan, measure 12 others, compare.

Beside it a pure roofline on the same shapes (ceilings measured here), and the noise floor: how far repeats of one and the
same shape lie apart.
"""

import math
import random
import tempfile
import time
from pathlib import Path

import shapelab
from shapelab.measure.ceilings import measure_ceilings
from shapelab.measure.experiment import measure_shapes
from shapelab.measure.sweep import sweep
from shapelab.predict.latency import LatencyModel
from shapelab.record import metrics
from shapelab.record.plans import plan_shapes
from shapelab.request.shape import RequestShape
from shapelab.theory.roofline import total_floor_s

SEED, SHAPES, REPEATS = 20261130, 12, 3


def unseen_shapes(seed: int = SEED, count: int = SHAPES) -> list[RequestShape]:
    """Log-uniform: batch 1 to 16, input 16 to 3,000, output 8 to 128, batch x input at most 8,192."""
    rng = random.Random(seed)
    found = []
    while len(found) < count:
        shape = RequestShape(_draw(rng, 16, 3000), _draw(rng, 8, 128), _draw(rng, 1, 16))
        if shape.batch_size * shape.input_tokens <= 8192:
            found.append(shape)
    return found


def _draw(rng: random.Random, low: int, high: int) -> int:
    """From low to high, each doubling as likely as the next."""
    return min(high, int(math.exp(rng.uniform(math.log(low), math.log(high + 1)))))


def main():
    lab = shapelab.load()
    shapes, repeats = plan_shapes("quick", lab.spec.max_position_embeddings)
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        plan = sweep(lab, shapes, Path(folder) / "quick.jsonl", repeats=repeats)
    print(f"machine: {plan.environment.label}, torch {plan.environment.torch} with {plan.environment.threads} threads")
    print(f"quick plan: {len(plan.measurements)} shapes, {time.perf_counter() - start:.0f} s")
    model = LatencyModel.fit(plan)
    print(model.to_frame().to_string(index=False))

    unseen = measure_shapes(lab, {str(shape): shape for shape in unseen_shapes()}, repeats=REPEATS)
    frame = model.against(unseen)
    totals = [m.values(metrics.total_s) for m in unseen.measurements]
    noise = [(max(values) - min(values)) / 2 / metrics.median(values) for values in totals]
    ceilings = measure_ceilings(lab.device, (lab.dtype,))
    device = ceilings.device(lab.dtype_name)
    floors = [total_floor_s(lab.spec, m.shape, device, lab.dtype_name) for m in unseen.measurements]
    frame["roofline_error"] = [floor / total - 1 for floor, total in zip(floors, frame.measured_total_s, strict=True)]
    frame["repeats_apart"] = noise
    columns = ["shape", "measured_total_s", "predicted_total_s", "ttft_error", "tpot_error", "total_error", "inside",
               "roofline_error", "repeats_apart"]  # fmt: skip
    print(frame[columns].round(3).to_string(index=False))

    for name in ("ttft_error", "tpot_error", "total_error", "roofline_error", "repeats_apart"):
        middle, most = frame[name].abs().quantile([0.5, 0.9]) * 100
        print(f"{name}: median {middle:.1f} %, 90th percentile {most:.1f} %")
    width = ((frame.total_high_s - frame.total_low_s) / 2 / frame.predicted_total_s).median() * 100
    print(
        f"90 % intervals: {frame.inside.mean():.0%} hold the measured total (goal 80 to 100), median width +-{width:.1f} % (goal <= 15)"
    )
    most = frame.total_error.abs().quantile(0.9) * 100
    print(f"total error, 90th percentile: {most:.1f} % (goal <= 10)")
    print(f"prediction_error: {frame.total_error.abs().median() * 100:.2f} % (goal <= 5 %)")


if __name__ == "__main__":
    main()
