"""For every exercise its right answers, and wrong ones with the slip that they come from.

They are worked out by hand from the exercise's numbers, not by the check's formulas.
"""

from types import SimpleNamespace
from typing import Any, NamedTuple

import torch

from shapelab.classroom import exercises
from shapelab.measure import loop
from shapelab.record.run import Run
from shapelab.request.shape import CHAT, RAG, RequestShape
from shapelab.theory.model_spec import ModelSpec
from tests.runs import HERE, measured
from tests.toys import random_ids, toy_lab


def timed(name: str, shape: str | RequestShape, ttft_s: float, tpot_s: float):
    shape = RequestShape.parse(shape) if isinstance(shape, str) else shape
    return measured(shape, (ttft_s, tpot_s), name=name, per_pass=True)


# The notebooks' runs, with times like those in their committed outputs.
THREE = Run(HERE, [timed("chat", CHAT, 0.092, 0.0331), timed("rag", RAG, 1.2, 0.04)])  # 2.7069 and 2.12 s in all
BASE, LONGER = timed("base", "256x8", 0.25, 0.036), timed("longer", "256x40", 0.25, 0.04)  # 0.502 and 1.81 s
READ = Run(HERE, [timed("240x12", "240x12", 0.24, 0.034), timed("1205x12", "1205x12", 1.15, 0.0374)])  # 0.614, 1.5614 s
FULL, HIT = timed("full", "1088x8", 1.016, 0.0392), timed("hit", "1024+64x8", 0.137, 0.0402)  # 1.2904 and 0.4184 s
TIMES = {1: (0.081, 0.0377), 2: (0.121, 0.0415), 4: (0.173, 0.0594), 8: (0.312, 0.0745), 16: (0.555, 0.0813), 32: (1.08, 0.102)}
BATCHES = Run(HERE, [timed(f"batch {size}", f"32x16@{size}", *times) for size, times in TIMES.items()])
SMOLLM2 = SimpleNamespace(spec=ModelSpec.from_config("smollm2-135m"), dtype=torch.float32)  # what the check reads of a lab
PER_TOKEN = 2 * 30 * 3 * 64 * 4  # keys and values, 30 layers, 3 heads, 64 numbers, float32
ORDER = ["500x20", "260x260", "440x80"]


def generate(model, ids, count, *, first=True, fresh=False, extra=0, form=lambda ids: ids, prompt=False, pieces=False, cut=0):
    cache = loop.new_cache(model, 200)
    if pieces:
        written = [[loop.decode_step(model, ids[:, n : n + 1], cache) for n in range(ids.shape[1])][-1]]
    else:
        written = [loop.prefill(model, ids, cache)]
    while len(written) < count + extra + cut:
        if fresh:
            whole = torch.cat([ids, *written], dim=1)
            written.append(loop.prefill(model, whole, loop.new_cache(model, 200)))
        else:
            written.append(loop.decode_step(model, written[-1 if first else 0], cache))
    return form(torch.cat([ids, *written] if prompt else written[: count + extra], dim=1))


def invented(_model, _ids, count):
    return torch.zeros(1, count, dtype=torch.long)


def broken(*_):
    return 1 / 0


def checked_generate(answer):
    """check_generate of the function above, with a slip of its own, or of a function."""
    function = answer if answer is ... or callable(answer) else lambda *given: generate(*given, **answer)
    return exercises.check_generate(function, toy_lab(), random_ids(1, 9), 8)


class Planted(NamedTuple):
    """check: the check with the notebook's data. slips: (slip, wrong answer). unknown: wrong for no reason that is known."""

    check: Any
    right: list
    slips: list[tuple[str, Any]]
    unknown: list = []


# fmt: off
PLANTED = {
    "check_tpot": Planted(
        exercises.check_tpot,
        [0.02],
        [
            ("tokens_for_gaps", 1.98 / 100), ("ttft_included", 2.43 / 99), ("ttft_included_tokens_for_gaps", 2.43 / 100),
            ("not_divided", 1.98), ("input_counted", 0.00243), ("1000_times_too_large", 20), ("1000_times_too_small", 2e-5),
            ("upside_down", 50),
        ],
        [-1, 0, 0.0203, 7, 1e300],
    ),
    "check_passes": Planted(
        exercises.check_passes,
        [24],
        [
            ("prefill_writes_nothing", 25), ("prefill_forgotten", 23), ("pass_per_token", 1229), ("pass_per_input_token", 1228),
            ("input_tokens", 1205), ("prefill_only", 1), ("phases", 2), ("1000_times_too_large", 24_000),
        ],
        [7],
    ),
    "check_shape": Planted(
        exercises.check_shape,
        ["512+64x32@4", RequestShape(64, 32, 4, 512)],
        [
            ("input_holds_cached", "576x32@4"), ("cached_holds_input", "576+64x32@4"), ("swapped", "64+512x32@4"),
            ("no_cached", "64x32@4"), ("counted_for_all_users", "512+256x32@4"), ("counted_for_all_users", "2048+64x32@4"),
            ("counted_for_all_users", "512+64x128"), ("no_batch", "512+64x32"), ("no_shape", "512/64"), ("no_shape", 12),
        ],
        ["512+64x31@4"],
    ),
    "check_read_cost": Planted(
        lambda a: exercises.check_read_cost(a, THREE["chat"]),
        [92 / 60],
        [
            ("total_for_ttft", 2706.9 / 60), ("reading_and_writing", 2706.9 / 140), ("output_for_input", 92 / 80),
            ("not_divided", 92.0), ("tpot", 33.1), ("1000_times_too_small", 0.092 / 60), ("upside_down", 60 / 0.092),
            ("upside_down", 60 / 92),
        ],
    ),
    "check_shorter_answer": Planted(
        lambda a: exercises.check_shorter_answer(a, THREE["rag"]),
        [1.2 + 11 * 0.04],
        [
            ("half_the_total", 2.12 / 2), ("tokens_for_steps", 1.2 + 12 * 0.04), ("no_ttft", 11 * 0.04),
            ("no_ttft_tokens_for_steps", 12 * 0.04), ("half_the_ttft", 0.6 + 11 * 0.04), ("unchanged", 2.12), ("text", "1.64"),
        ],
    ),
    "check_order": Planted(
        lambda a: exercises.check_order(a, ORDER),
        [["500x20", "440x80", "260x260"], [RequestShape(500, 20), RequestShape(440, 80), RequestShape(260, 260)]],
        [
            ("sorted_by_reading", ["260x260", "440x80", "500x20"]), ("only_the_fastest", ["500x20", "260x260", "440x80"]),
            ("only_the_slowest", ["440x80", "500x20", "260x260"]), ("slowest_first", ["260x260", "500x20", "440x80"]),
            ("fastest_last", ["440x80", "260x260", "500x20"]), ("other_requests", "500x20"),
            ("other_requests", ["500x20", "440x80"]), ("other_requests", 7),
        ],
    ),
    "check_generate": Planted(
        checked_generate,
        [{}],
        [
            ("other_ids", {"first": False}), ("prompt_read_again", {"fresh": True}), ("one_too_many", {"extra": 1}),
            ("other_count", {"extra": -2}), ("no_tensor", {"form": torch.Tensor.tolist}),
            ("other_form", {"form": lambda ids: ids[0]}), ("prompt_returned", {"prompt": True}),
            ("prompt_in_pieces", {"pieces": True}), ("prompt_in_pieces", invented), ("too_many_passes", {"cut": 1}),
            ("stopped", broken), ("stopped", 7),
        ],
    ),
    "check_kv_bytes": Planted(
        lambda a: exercises.check_kv_bytes(a, SMOLLM2, RAG),
        [PER_TOKEN * 1228],
        [
            ("last_token_counted", PER_TOKEN * 1229), ("prompt_only", PER_TOKEN * 1205), ("half", PER_TOKEN * 614),
            ("twice", PER_TOKEN * 1228 * 2), ("query_heads", PER_TOKEN * 1228 * 3), ("one_layer", 2 * 3 * 64 * 4 * 1228),
            ("one_token", PER_TOKEN),
        ],
    ),
    "check_marginal_write": Planted(
        lambda a: exercises.check_marginal_write(a, BASE, LONGER),
        [1308 / 32],
        [
            ("no_difference", 1810 / 40), ("tpot", 40.0), ("all_tokens", 1308 / 40), ("total_over_more", 1810 / 32),
            ("not_divided", 1308), ("one_step_less", 1308 / 31), ("1000_times_too_small", 1.308 / 32),
        ],
    ),
    "check_marginal_read": Planted(
        lambda a: exercises.check_marginal_read(a, READ["240x12"], READ["1205x12"]),
        [910 / 965],
        [
            ("long_alone", 1150 / 1205), ("short_alone", 240 / 240), ("all_tokens", 910 / 1205), ("not_divided", 910),
            ("totals", 947.4 / 965), ("1000_times_too_small", 0.910 / 965), ("upside_down", 965 / 0.910),
        ],
    ),
    "check_total_from_terms": Planted(
        exercises.check_total_from_terms,
        [1.05 + 100 * (0.04 + 5e-6 * 1050.5)],
        [
            ("tokens_for_steps", 1.05 + 101 * (0.04 + 5e-6 * 1050.5)), ("no_context", 1.05 + 100 * 0.04),
            ("context_of_the_prompt", 1.05 + 100 * (0.04 + 5e-6 * 1000)),
            ("context_at_the_end", 1.05 + 100 * (0.04 + 5e-6 * 1100)),
            ("context_of_the_answer", 1.05 + 100 * (0.04 + 5e-6 * 50.5)), ("context_once", 1.05 + 100 * 0.04 + 5e-6 * 1050.5),
            ("no_prefill", 100 * (0.04 + 5e-6 * 1050.5)), ("no_fixed_cost", 1.0 + 100 * (0.04 + 5e-6 * 1050.5)),
            ("milliseconds_for_microseconds", 1.05 + 100 * (0.04 + 0.005 * 1050.5)),
        ],
    ),
    "check_context_that_doubles": Planted(
        exercises.check_context_that_doubles,
        [8000],
        [
            ("whole_step", 16000), ("whole_step_and_unit", 16), ("mixed_units", 8_000_000), ("price_of_reading", 40),
            ("prompt_subtracted", 7000), ("1000_times_too_small", 8), ("upside_down", 0.000125),
        ],
    ),
    "check_batch_throughput": Planted(
        lambda a: exercises.check_batch_throughput(a, BATCHES["batch 8"]),
        [8 / 0.0745],
        [
            ("one_reader", 1 / 0.0745), ("milliseconds", 8 / 74.5), ("prefill_included", 128 / 1.4295),
            ("batch_twice", 64 / 0.0745), ("tokens_for_steps", 128 / (15 * 0.0745)), ("upside_down", 0.0745 / 8),
        ],
    ),
    "check_largest_batch": Planted(
        lambda a: exercises.check_largest_batch(a, BATCHES.measurements),
        [8],
        [
            ("alone", 1), ("twice_the_batch", 2), ("larger_one_fits", 4), ("too_slow", 16), ("largest_measured", 32),
            ("a_wait", 75.4), ("a_wait", 0.0745), ("not_measured", 3), ("text", "8"),
        ],
    ),
    "check_cheaper_token": Planted(
        lambda a: exercises.check_cheaper_token(a, BATCHES["batch 1"], BATCHES["batch 16"]),
        [37.7 * 16 / 81.3],
        [
            ("wait_of_a_reader", 81.3 / 37.7), ("not_shared", 37.7 / 81.3), ("batch_size", 16),
            ("multiplied", 81.3 * 16 / 37.7), ("share_saved", 1 - 81.3 / 16 / 37.7), ("totals", 0.6465 / (1.7745 / 16)),
            ("upside_down", 81.3 / 16 / 37.7),
        ],
    ),
    "check_talk_floor": Planted(
        exercises.check_talk_floor,
        [(1_100_048_384 - 32_000 * 2_048) * 2 / 320e9 * 1e3],
        [
            ("embedding_read", 1_100_048_384 * 2 / 320e9 * 1e3), ("one_byte", 3.2329), ("four_bytes", 12.93),
            ("gib", 1.926929 / 320 * 1e3), ("flops", 0.03183), ("1000_times_too_small", 0.006465), ("upside_down", 154.66),
        ],
    ),
    "check_regime": Planted(
        exercises.check_regime,
        ["overhead", "Overhead-bound", " overhead bound"],
        [
            ("compute", "compute"), ("memory", "memory"), ("ceiling", "bandwidth-bound"), ("work", "FLOPs"),
            ("time", "latency"), ("phase", "decode"), ("phase", "prefill"),
        ],
        [7, "slow"],
    ),
    "check_critical_batch": Planted(
        exercises.check_critical_batch,
        [989e12 / 3350e9],
        [
            ("one_flop", 590.4), ("one_byte", 147.6), ("bits_for_bytes", 2361.8), ("units", 0.29522), ("peak_alone", 989),
            ("bandwidth_alone", 3350), ("upside_down", 0.0033873),
        ],
    ),
    "check_llama_kv": Planted(
        exercises.check_llama_kv,
        [131_072],
        [
            ("query_heads", 524_288), ("one_two", 65_536), ("no_twos", 32_768), ("four_bytes", 262_144), ("one_layer", 4_096),
            ("one_head", 16_384), ("bits", 1_048_576),
        ],
    ),
    "check_requests_that_fit": Planted(
        exercises.check_requests_that_fit,
        [27],
        [
            ("not_rounded", (23_407_571_763.2 - 16_060_522_496) / 268_435_456), ("rounded_up", 28), ("no_weights", 87),
            ("sold_gb", 29), ("sold_gib", 36), ("one_byte", 57), ("tokens", 56_053), ("query_heads", 6),
        ],
    ),
    "check_prefix_saving": Planted(
        lambda a: exercises.check_prefix_saving(a, FULL, HIT),
        [1 - 0.137 / 1.016],
        [
            ("share_left", 0.137 / 1.016), ("times_faster", 1.016 / 0.137), ("seconds_saved", 0.879), ("per_cent", 86.516),
            ("share_of_tokens", 1024 / 1088), ("totals", 1 - 0.4184 / 1.2904),
        ],
    ),
    "check_cached_bill": Planted(
        exercises.check_cached_bill,
        [0.184918125],
        [
            ("cached_twice", 0.507361875), ("no_cached_price", 0.34614), ("cached_free", 0.02369625),
            ("per_token", 184_918.125), ("per_thousand", 184.918125), ("no_output", 0.167478125), ("swapped", 0.343011875),
        ],
    ),
    "check_machine_request": Planted(
        exercises.check_machine_request,
        [2.4 / 8 * 0.35 / 3600 / 0.5],
        [
            ("not_shared", 0.000466667), ("idle_free", 2.91667e-5), ("not_shared_idle_free", 0.000233333),
            ("hour_for_second", 0.21), ("minutes", 0.0035), ("multiplied", 0.00373333), ("utilisation_multiplied", 1.458333e-5),
        ],
    ),
    "check_break_even": Planted(
        exercises.check_break_even,
        [1145 / 56],
        [
            ("rag_alone", 50.208), ("rag_writes_nothing", 14.3125), ("chat_writes_nothing", 47.708),
            ("chat_reads_nothing", 21.518), ("signs", 12.163), ("upside_down", 56 / 1145),
        ],
    ),
}
# fmt: on
