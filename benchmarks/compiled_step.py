"""What compiling takes off a decode step: fused operations, and on CUDA one replayed graph in place of hundreds of launches.

Both write into transformers' static cache, so that nothing but compiling differs. On a CPU it needs a C++ compiler.
"""

import argparse
import statistics

import torch

import shapelab
from shapelab import RequestShape
from shapelab.measure.clock import clock_for
from shapelab.measure.loop import timed
from shapelab.measure.overhead import measure_limits
from shapelab.measure.this_machine import environment
from shapelab.model.forward import compiled
from shapelab.model.kv_cache import static_cache
from shapelab.record import metrics
from shapelab.request.prompts import prompt_ids
from shapelab.theory.roofline import decode_floor

SHAPE, REPEATS, GOAL = RequestShape(64, 64), 7, 1.0


def steps_s(lab, repeats: int) -> tuple[list[float], list[int]]:
    """TPOT of each repeat, and the ids that the last one wrote."""
    cache = static_cache(lab.model, SHAPE.total_tokens)
    seconds = []
    for _ in range(repeats):
        cache.reset()
        ids = torch.tensor(prompt_ids(lab.tokenizer, SHAPE), device=lab.device)
        written = timed(lab.model, ids, SHAPE.output_tokens, clock_for(lab.device), cache)
        seconds.append(metrics.tpot_s(written.timeline))
    return seconds, written.ids.tolist()


@torch.inference_mode()
def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="auto")
    lab = shapelab.load(parser.parse_args().model)
    eager, ids = steps_s(lab, REPEATS + 1)
    with compiled(lab.model):
        fast, compiled_ids = steps_s(lab, REPEATS + 4)  # the first ones compile
    limits = measure_limits(lab)
    floor = decode_floor(lab.spec, SHAPE.mean_decode_context, 1, limits.device, lab.dtype_name).seconds
    before, after = statistics.median(eager[-REPEATS:]), statistics.median(fast[-REPEATS:])
    print(f"machine and model: {environment(lab).label}; one request of {SHAPE} tokens, {REPEATS} repeats, static cache")
    print(f"overhead of a pass (hollow twin): {limits.overhead_s * 1e3:.2f} ms; floor of a step: {floor * 1e3:.2f} ms")
    for name, values in (("eager", eager), ("compiled", fast)):
        kept = [seconds * 1e3 for seconds in values[-REPEATS:]]
        print(f"{name}: median {statistics.median(kept):.2f} ms a step ({min(kept):.2f} to {max(kept):.2f})")
    print(f"the same ids: {'yes' if ids == compiled_ids else 'no (sums in another order may tip a near tie)'}")
    print(f"compiled_step: {after / before:.2f} of eager (goal <= {GOAL:g})")


if __name__ == "__main__":
    main()
