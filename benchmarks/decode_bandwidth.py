"""How close a decode step comes to the speed of reading memory, which is what bounds it at batch size 1.

A step must read every weight once and the keys and values of all tokens so far. Those bytes over the measured time per
output token (TPOT) are the achieved rate; its share of the rate at which this machine reads plain memory is the result.
"""

import statistics

import torch

import shapelab
from shapelab import RequestShape
from shapelab.measure.ceilings import memory_read_gb_per_s
from shapelab.measure.experiment import run_once, warm_up
from shapelab.measure.this_machine import device_name
from shapelab.record import metrics
from shapelab.request.prompts import prompt_ids
from shapelab.theory.arithmetic import kv_bytes_per_token

SHAPE, REPEATS, GOAL = RequestShape(64, 64), 7, 0.65


def weight_bytes_a_step(lab) -> int:
    """All weights; of an embedding that is not tied to the output head only one row is read, so it does not count."""
    embedding, head = lab.model.get_input_embeddings().weight, lab.model.get_output_embeddings().weight
    tied = embedding.data_ptr() == head.data_ptr()
    return lab.weight_bytes - (0 if tied else embedding.numel() * embedding.element_size())


def kv_bytes_a_step(lab) -> float:
    """Step k of N - 1 looks at S + k tokens, so S + N / 2 in the mean."""
    return kv_bytes_per_token(lab.spec, lab.dtype.itemsize) * (SHAPE.prompt_tokens + SHAPE.output_tokens / 2)


def main():
    lab = shapelab.load("smollm2-135m", device="auto")
    weights, kv = weight_bytes_a_step(lab), kv_bytes_a_step(lab)
    warm_up(lab, SHAPE)
    ceilings, tpots = [], []
    for repeat in range(1, REPEATS + 1):  # the ceiling beside each run: a machine that slows down slows both
        ceilings.append(memory_read_gb_per_s(lab.device))
        tpots.append(metrics.tpot_s(run_once(lab, SHAPE, prompt_ids(lab.tokenizer, SHAPE, repeat=repeat)).timeline))
    achieved = [(weights + kv) / tpot / 1e9 for tpot in tpots]
    shares = [rate / ceiling for rate, ceiling in zip(achieved, ceilings, strict=True)]
    print(f"machine: {device_name(lab.device)}, torch {torch.__version__} with {torch.get_num_threads()} threads")
    print(f"model: {lab.label}; one request, {SHAPE} tokens, {REPEATS} repeats")
    print(
        f"bytes a step: {(weights + kv) / 1e6:.1f} MB (weights {weights / 1e6:.1f} MB, KV {kv / 1e6:.2f} MB at the mean context)"
    )
    for name, values, unit in (
        ("TPOT", [tpot * 1e3 for tpot in tpots], "ms"),
        ("achieved", achieved, "GB/s"),
        ("ceiling (torch.sum over 512 MiB, best of 5)", ceilings, "GB/s"),
    ):
        print(f"{name}: median {statistics.median(values):.2f} {unit} ({min(values):.2f} to {max(values):.2f})")
    print(f"shares: {min(shares):.3f} to {max(shares):.3f}")
    print(f"decode_bandwidth: {statistics.median(shares):.3f} of read bandwidth (goal >= {GOAL} on CPU)")


if __name__ == "__main__":
    main()
