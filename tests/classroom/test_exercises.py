"""Right answers pass, and each usual slip is called by its name."""

import pytest
import torch

from shapelab.classroom import exercises
from shapelab.measure import loop, metrics
from shapelab.measure.record import Measurement, Repeat
from shapelab.request.shape import RAG, RequestShape
from tests.toys import random_ids, toy_lab


def measurement(inputs, outputs, ttft_s, tpot_s, batch=1):
    stamps = tuple(round(1e9 * (ttft_s + tpot_s * n)) for n in range(outputs))
    return Measurement(
        name="m",
        input_tokens=inputs,
        output_tokens=outputs,
        batch_size=batch,
        repeats=(Repeat(index=1, order=0, host_ns=(0, *stamps), output_tokens=outputs),),
    )


RAG_RUN = measurement(1205, 24, 1.2, 0.04)
SHORT, LONG = measurement(256, 8, 0.25, 0.04), measurement(256, 40, 0.25, 0.04)


READ_FEW, READ_MANY = measurement(64, 12, 0.1, 0.04), measurement(1064, 12, 1.1, 0.05)
BATCHES = [measurement(32, 11, 0.1 * b, tpot, b) for b, tpot in ((1, 0.04), (2, 0.041), (4, 0.05), (8, 0.08), (16, 0.0801))]


def regime(answer):
    return exercises.check_regime(answer, "overhead", "Both floors explain a twentieth.")


def kv(answer):
    return exercises.check_kv_bytes(answer, toy_lab(), RAG)


PER_TOKEN = 2 * 2 * 2 * 16 * 8  # keys and values, 2 layers, 2 heads, 16 numbers, float64


@pytest.mark.parametrize(
    "check,right",
    [
        (exercises.check_tpot, 0.02),
        (exercises.check_passes, 24),
        (exercises.check_shape, "512+64x32@4"),
        (exercises.check_shape, RequestShape(64, 32, 4, 512)),
        (lambda a: exercises.check_read_cost(a, RAG_RUN), 1200 / 1205),
        (lambda a: exercises.check_shorter_answer(a, RAG_RUN), 1.2 + 11 * 0.04),
        (lambda a: exercises.check_shorter_answer(a, RAG_RUN), 2.12 - 12 * 0.04),
        (lambda a: exercises.check_order(a, ["5x1", "3x3", "4x2"]), ["5x1", "4x2", "3x3"]),
        (kv, PER_TOKEN * 1228),
        (lambda a: exercises.check_marginal_write(a, SHORT, LONG), 40.0),
        (lambda a: exercises.check_marginal_read(a, READ_FEW, READ_MANY), 1.0),
        (exercises.check_total_from_terms, 1.05 + 100 * (0.04 + 5e-6 * 1050.5)),
        (exercises.check_context_that_doubles, 8000),
        (lambda a: exercises.check_batch_throughput(a, BATCHES[2]), 4 / 0.05),
        (lambda a: exercises.check_largest_batch(a, BATCHES), 8),
        (lambda a: exercises.check_cheaper_token(a, BATCHES[0], BATCHES[3]), 0.04 / (0.08 / 8)),
        (exercises.check_talk_floor, (1_100_048_384 - 32_000 * 2_048) * 2 / 320e9 * 1e3),
        (regime, "overhead"),
        (regime, "Overhead-bound"),
        (exercises.check_critical_batch, 989e12 / 3350e9),
        (exercises.check_llama_kv, 131_072),
        (exercises.check_requests_that_fit, 27),
        (lambda a: exercises.check_prefix_saving(a, READ_MANY, READ_FEW), 1 - 0.1 / 1.1),
        (exercises.check_cached_bill, 0.184918125),
        (exercises.check_machine_request, 2.4 / 8 * 0.35 / 3600 / 0.5),
        (exercises.check_break_even, 1145 / 56),
    ],
)
def test_right_and_untried(check, right):
    assert check(right).right is True
    assert check(...).right is None


@pytest.mark.parametrize(
    "check,wrong,word",
    [
        (exercises.check_talk_floor, 1_100_048_384 * 2 / 320e9 * 1e3, "looked up"),
        (exercises.check_talk_floor, 0.006465, "milliseconds are wanted"),
        (exercises.check_talk_floor, 12.93, "32-bit"),
        (regime, "memory", "each floor"),
        (regime, "latency", "One of compute, memory, overhead"),
        (regime, 7, "One of compute"),
        (exercises.check_critical_batch, 590.4, "2 FLOPs"),
        (exercises.check_critical_batch, 147.6, "2 bytes"),
        (exercises.check_llama_kv, 524_288, "query heads"),
        (exercises.check_llama_kv, 65_536, "twos is missing"),
        (exercises.check_llama_kv, 4_096, "one layer"),
        (exercises.check_requests_that_fit, 87, "weights take their place"),
        (exercises.check_requests_that_fit, 28, "round down"),
        (exercises.check_requests_that_fit, 29, "24 GB is what is sold"),
        (exercises.check_requests_that_fit, 6, "32 KV heads"),
        (lambda a: exercises.check_prefix_saving(a, READ_MANY, READ_FEW), 0.1 / 1.1, "share that is left"),
        (lambda a: exercises.check_prefix_saving(a, READ_MANY, READ_FEW), 11.0, "times faster"),
        (lambda a: exercises.check_prefix_saving(a, READ_MANY, READ_FEW), 1 - 64 / 1064, "share of tokens"),
        (exercises.check_cached_bill, 0.507365, "twice"),
        (exercises.check_cached_bill, 0.34614, "lower price"),
        (exercises.check_cached_bill, 0.02369625, "not free"),
        (exercises.check_machine_request, 0.000466667, "share the machine"),
        (exercises.check_machine_request, 2.91667e-5, "Idle hours"),
        (exercises.check_break_even, 56 / 1145, "Turn it over"),
        (exercises.check_break_even, 14.3125, "80 - 24"),
        (lambda a: exercises.check_marginal_read(a, READ_FEW, READ_MANY), 0.001, "seconds"),
        (lambda a: exercises.check_marginal_read(a, READ_FEW, READ_MANY), 1100 / 1064, "fixed cost"),
        (lambda a: exercises.check_marginal_read(a, READ_FEW, READ_MANY), 1000 / 1064, "differ by 1,000"),
        (lambda a: exercises.check_marginal_read(a, READ_FEW, READ_MANY), 1000, "Divide by them"),
        (lambda a: exercises.check_marginal_read(a, READ_FEW, READ_MANY), 1.11, "use TTFT"),
        (exercises.check_total_from_terms, 1.05 + 101 * (0.04 + 5e-6 * 1050.5), "100 steps"),
        (exercises.check_total_from_terms, 1.05 + 100 * 0.04, "reads its context"),
        (exercises.check_total_from_terms, 1.05 + 100 * (0.04 + 5e-6 * 1000), "average"),
        (exercises.check_total_from_terms, 100 * (0.04 + 5e-6 * 1050.5), "prefill is missing"),
        (exercises.check_total_from_terms, 1.0 + 100 * (0.04 + 5e-6 * 1050.5), "fixed cost"),
        (exercises.check_total_from_terms, 1.05 + 100 * (0.04 + 5e-6 * 50.5), "the prompt too"),
        (exercises.check_context_that_doubles, 16000, "40 are left"),
        (exercises.check_context_that_doubles, 8, "unit"),
        (lambda a: exercises.check_batch_throughput(a, BATCHES[2]), 20, "one reader"),
        (lambda a: exercises.check_batch_throughput(a, BATCHES[2]), 44 / 0.9, "prefill is in"),
        (lambda a: exercises.check_batch_throughput(a, BATCHES[2]), 0.0125, "turn it over"),
        (lambda a: exercises.check_batch_throughput(a, BATCHES[2]), 320, "twice"),
        (lambda a: exercises.check_largest_batch(a, BATCHES), 4, "a larger one does too"),
        (lambda a: exercises.check_largest_batch(a, BATCHES), 16, "the promise is 80 ms"),
        (lambda a: exercises.check_largest_batch(a, BATCHES), 3, "1, 2, 4, 8, 16"),
        (lambda a: exercises.check_cheaper_token(a, BATCHES[0], BATCHES[3]), 0.25, "Turn it over"),
        (lambda a: exercises.check_cheaper_token(a, BATCHES[0], BATCHES[3]), 2, "divide by it first"),
        (lambda a: exercises.check_cheaper_token(a, BATCHES[0], BATCHES[3]), 0.5, "divide it by the batch"),
        (lambda a: exercises.check_cheaper_token(a, BATCHES[0], BATCHES[3]), 8, "took no longer"),
        (exercises.check_tpot, 1.98 / 100, "N - 1"),
        (exercises.check_tpot, 2.43 / 100, "TPOT starts when"),
        (exercises.check_tpot, 2.43 / 99, "still in the time"),
        (exercises.check_tpot, 20, "unit"),
        (exercises.check_tpot, 50, "turn it over"),
        (exercises.check_tpot, "20 ms", "A number is wanted"),
        (exercises.check_tpot, float("nan"), "A number is wanted"),
        (exercises.check_tpot, -1, "sign"),
        (exercises.check_passes, 25, "prefill already writes"),
        (exercises.check_passes, 23, "prefill is a pass too"),
        (exercises.check_passes, 1229, "one pass"),
        (exercises.check_passes, 2, "once for every token"),
        (exercises.check_passes, 7, "below"),
        (exercises.check_shape, "576x32@4", "on top"),
        (exercises.check_shape, "64+512x32@4", "swapped"),
        (exercises.check_shape, "64x32@4", "missing"),
        (exercises.check_shape, "512+64x128", "one sequence"),
        (exercises.check_shape, "512+64x32", "batch of 4"),
        (exercises.check_shape, "512/64", "not a shape"),
        (exercises.check_shape, 12, "is wanted"),
        (lambda a: exercises.check_read_cost(a, RAG_RUN), 1.2 / 1205, "seconds"),
        (lambda a: exercises.check_read_cost(a, RAG_RUN), 2120 / 1205, "includes the decode"),
        (lambda a: exercises.check_read_cost(a, RAG_RUN), 1200 / 24, "output tokens"),
        (lambda a: exercises.check_read_cost(a, RAG_RUN), 1205 / 1.2, "rate"),
        (lambda a: exercises.check_read_cost(a, RAG_RUN), 1200.0, "whole prefill"),
        (lambda a: exercises.check_shorter_answer(a, RAG_RUN), 2.12 / 2, "Half the answer"),
        (lambda a: exercises.check_shorter_answer(a, RAG_RUN), 1.2 + 12 * 0.04, "11 steps"),
        (lambda a: exercises.check_shorter_answer(a, RAG_RUN), 11 * 0.04, "add TTFT"),
        (lambda a: exercises.check_shorter_answer(a, RAG_RUN), "1.6", "A number is wanted"),
        (lambda a: exercises.check_order(a, ["5x1", "3x3", "4x2"]), ["3x3", "4x2", "5x1"], "other way round"),
        (lambda a: exercises.check_order(a, ["5x1", "3x3", "4x2"]), ["4x2", "5x1", "3x3"], "pass of its own"),
        (lambda a: exercises.check_order(a, ["5x1", "3x3", "4x2"]), "5x1", "is wanted"),
        (kv, PER_TOKEN * 1229, "one token less"),
        (kv, PER_TOKEN * 1205, "prompt alone"),
        (kv, PER_TOKEN * 614, "keys and values both"),
        (kv, PER_TOKEN * 1228 * 2, "query heads"),
        (exercises.check_tpot, 0.0203, "Close"),
        (kv, PER_TOKEN, "one token"),
        (lambda a: exercises.check_marginal_write(a, SHORT, LONG), 0.04, "seconds"),
        (lambda a: exercises.check_marginal_write(a, SHORT, LONG), 1810 / 40, "spreads the prefill"),
        (lambda a: exercises.check_marginal_write(a, SHORT, LONG), 1280 / 40, "differ by 32"),
        (lambda a: exercises.check_marginal_write(a, SHORT, LONG), 1810 / 32, "difference of the totals"),
    ],
)
def test_slips_are_named(check, wrong, word):
    feedback = check(wrong)
    assert feedback.right is False and word in feedback.text


def test_the_measurements_above_say_what_they_should():
    assert RAG_RUN.median(metrics.ttft_s) == 1.2 and RAG_RUN.median(metrics.total_s) == pytest.approx(2.12)


def generate(model, ids, count, *, first=True, fresh=False, extra=0, text=False, prompt=False, one_by_one=False, cut=0):
    cache = loop.new_cache(model, 200)
    if one_by_one:
        written = [[loop.decode_step(model, ids[:, n : n + 1], cache) for n in range(ids.shape[1])][-1]]
    else:
        written = [loop.prefill(model, ids, cache)]
    while len(written) < count + extra + cut:
        if fresh:
            whole = torch.cat([ids, *written], dim=1)
            written.append(loop.prefill(model, whole, loop.new_cache(model, 200)))
        else:
            written.append(loop.decode_step(model, written[0 if not first else -1], cache))
    if text:
        return "text"
    return torch.cat([ids, *written] if prompt else written[: count + extra], dim=1)


@pytest.mark.parametrize(
    "slip,word",
    [
        ({"first": False}, "newest id"),
        ({"fresh": True}, "Read it once"),
        ({"extra": 1}, "writes the first token"),
        ({"extra": -2}, "wanted and"),
        ({"text": True}, "one tensor"),
        ({"prompt": True}, "prompt is in your answer"),
        ({"one_by_one": True}, "in one pass"),
        ({"cut": 1}, "9 passes for 8 tokens"),
    ],
)
def test_a_generate_of_ones_own(slip, word):
    lab, ids = toy_lab(), random_ids(1, 9)
    assert exercises.check_generate(generate, lab, ids, 8).right is True
    feedback = exercises.check_generate(lambda *a: generate(*a, **slip), lab, ids, 8)
    assert feedback.right is False and word in feedback.text


def test_positional_calls_are_fine():
    def by_hand(model, ids, count):
        cache, written = loop.new_cache(model, 200), []
        while len(written) < count:
            named = {loop.cache_argument(type(model)): cache}
            written.append(model(written[-1] if written else ids, **named).logits[:, -1:].argmax(-1))
        return torch.cat(written, dim=1)

    assert exercises.check_generate(by_hand, toy_lab(), random_ids(1, 9), 8).right is True


def test_code_that_breaks_gets_a_sentence():
    def stub(*_):
        raise NotImplementedError

    def broken(*_):
        return 1 / 0

    lab, ids = toy_lab(), random_ids(1, 9)
    assert exercises.check_generate(stub, lab, ids, 8).right is None
    assert "ZeroDivisionError" in exercises.check_generate(broken, lab, ids, 8).text
    assert exercises.check_generate(..., lab, ids, 8).right is None


def test_feedback_is_escaped():
    assert "<script>" not in exercises.check_tpot("<script>")._repr_html_()
