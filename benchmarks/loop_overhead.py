"""How much host time the measured loop itself takes, beside transformers' own generate().

A toy model (2 layers, 64 wide) leaves almost no arithmetic, so what is timed is Python: the loop, the cache, and the
forward pass that both share. Both write the same ids, or this raises.
"""

import statistics
import time

import torch
from transformers import AutoConfig, AutoModelForCausalLM

from shapelab.computer import cpu_name, cpus_usable
from shapelab.measure.clock import clock_for
from shapelab.measure.loop import timed

INPUT_TOKENS, OUTPUT_TOKENS, PAIRS, GOAL = 16, 128, 8, 0.75
CPU = torch.device("cpu")


def toy_llama():
    torch.manual_seed(0)
    config = AutoConfig.for_model(
        "llama", num_hidden_layers=2, hidden_size=64, num_attention_heads=4, num_key_value_heads=2, intermediate_size=96,
        vocab_size=300, max_position_embeddings=512, initializer_range=0.3, pad_token_id=0,
    )  # fmt: skip
    return AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval().requires_grad_(False)


def ours(model, ids):
    return timed(model, ids, OUTPUT_TOKENS, clock_for(CPU)).ids


def theirs(model, ids):
    mask = torch.ones_like(ids)
    full = model.generate(ids, attention_mask=mask, eos_token_id=None, do_sample=False, max_new_tokens=OUTPUT_TOKENS)
    return full[:, INPUT_TOKENS:]


def timed_s(work, *arguments):
    start = time.perf_counter()
    ids = work(*arguments)
    return time.perf_counter() - start, ids


def main():
    model = toy_llama()
    ids = torch.randint(3, 300, (1, INPUT_TOKENS), generator=torch.Generator().manual_seed(0))
    for work in (ours, theirs):
        work(model, ids)
    times = {ours: [], theirs: []}
    for pair in range(PAIRS):
        written = {}
        for work in (ours, theirs) if pair % 2 == 0 else (theirs, ours):  # neither is always the first
            seconds, written[work] = timed_s(work, model, ids)
            times[work].append(seconds)
        if written[ours].tolist() != written[theirs].tolist():
            raise RuntimeError("The loop and generate() wrote different ids, so their times cannot be compared.")
    ratios = [a / b for a, b in zip(times[ours], times[theirs], strict=True)]
    print(f"machine: {cpu_name()}, {cpus_usable():g} CPUs, torch {torch.__version__} with {torch.get_num_threads()} threads")
    print(f"model: toy Llama, 2 layers, 64 wide, random weights, float32; {INPUT_TOKENS}x{OUTPUT_TOKENS} tokens, {PAIRS} pairs")
    print(f"ids: {OUTPUT_TOKENS} equal in every pair, {len(set(written[ours][0].tolist()))} of them different")
    for name, work in (("measured loop", ours), ("generate()", theirs)):
        middle = statistics.median(times[work])
        print(f"{name}: median {middle * 1e3:.1f} ms total, {middle / OUTPUT_TOKENS * 1e3:.3f} ms a token")
    print(f"ratios: {min(ratios):.3f} to {max(ratios):.3f}")
    print(f"loop_overhead: {statistics.median(ratios):.3f} of generate() (goal <= {GOAL})")


if __name__ == "__main__":
    main()
