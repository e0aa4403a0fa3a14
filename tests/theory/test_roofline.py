"""Floors: the longer of arithmetic and bytes."""

import pytest

from shapelab.errors import BadArgument
from shapelab.record.recorded import reported
from shapelab.request.shape import RAG, RequestShape
from shapelab.theory.arithmetic import decode_bytes, decode_flops, prefill_flops, weight_bytes
from shapelab.theory.hardware import gpu
from shapelab.theory.model_spec import ModelSpec
from shapelab.theory.roofline import (
    HELPS,
    Device,
    Floor,
    critical_batch,
    decode_floor,
    decode_intensity,
    overhead_from_fit,
    prefill_floor,
    prefill_intensity,
    ridge_point,
    total_floor_s,
    verdict,
)

TINYLLAMA = ModelSpec.from_config("tinyllama")
T4 = Device("NVIDIA T4", 65e12, 320e9)  # dense fp16 tensor peak and bandwidth, as in data sheets


def test_the_longer_one_counts():
    assert Floor(2.0, 3.0).seconds == Floor(3.0, 2.0).seconds == 3.0


def test_a_decode_step_on_a_t4_takes_at_least_6_5_ms():
    floor = decode_floor(TINYLLAMA, 1, 1, T4)
    assert floor.seconds == floor.memory_s == pytest.approx(6.5e-3, abs=0.05e-3)
    assert floor.compute_s == decode_flops(TINYLLAMA, 1) / 65e12


def test_a_long_prefill_is_bound_by_arithmetic_and_a_batch_shares_the_weights():
    floor = prefill_floor(TINYLLAMA, RAG, T4)
    assert floor.seconds == floor.compute_s == prefill_flops(TINYLLAMA, 1205) / 65e12 > floor.memory_s
    one, many = decode_floor(TINYLLAMA, 600, 1, T4), decode_floor(TINYLLAMA, 600, 32, T4)
    assert many.compute_s == pytest.approx(32 * one.compute_s)
    assert many.memory_s == decode_bytes(TINYLLAMA, 600, 32) / 320e9 < 2 * one.memory_s


def test_a_total_is_a_prefill_and_its_steps():
    shape = RequestShape(100, 11)
    step = decode_floor(TINYLLAMA, 105.5, 1, T4).seconds
    assert total_floor_s(TINYLLAMA, shape, T4) == pytest.approx(prefill_floor(TINYLLAMA, shape, T4).seconds + 10 * step)
    assert total_floor_s(TINYLLAMA, RequestShape(100, 1), T4) == prefill_floor(TINYLLAMA, shape, T4).seconds


def test_halving_the_bytes_halves_the_memory_floor_only():
    full, half = decode_floor(TINYLLAMA, 8, 1, T4), decode_floor(TINYLLAMA, 8, 1, T4, "int8")
    assert half.memory_s == pytest.approx(full.memory_s / 2) and half.compute_s == full.compute_s


@pytest.mark.parametrize("flops,rate", [(0, 1), (1, 0), (-1, 1), (float("nan"), 1)])
def test_a_device_that_does_nothing_is_refused(flops, rate):
    with pytest.raises(BadArgument) as caught:
        Device("odd", flops, rate)
    assert caught.value.argument == ("flops_per_s" if rate == 1 else "bytes_per_s")


LLAMA3, H100 = ModelSpec.from_config("llama-3-8b"), gpu("H100-SXM").device("float16")


def test_the_ridge_point_and_the_intensities():
    assert ridge_point(H100) == pytest.approx(989e12 / 3350e9)
    assert decode_intensity(TINYLLAMA, 1, 1) == pytest.approx(1, abs=0.02), "2 FLOPs for 2 bytes"
    assert decode_intensity(TINYLLAMA, 1, 1, "float32") == pytest.approx(0.5, abs=0.01)
    assert prefill_intensity(TINYLLAMA, RAG) > ridge_point(T4) > decode_intensity(TINYLLAMA, 100, 8)


@pytest.mark.parametrize("context", [1, 50, 200])
@pytest.mark.parametrize(
    "spec", [TINYLLAMA, LLAMA3, ModelSpec.from_config("mixtral-8x7b")], ids=["tinyllama", "llama3", "mixtral"]
)
def test_the_critical_batch_is_where_the_longer_one_changes(spec, context):
    batch = critical_batch(spec, context, H100)
    below, at = (decode_floor(spec, context, size, H100) for size in (batch - 1, batch))
    assert below.compute_s < below.memory_s and at.compute_s >= at.memory_s


def test_the_critical_batch_of_a_short_context_is_near_the_ridge_point():
    assert critical_batch(LLAMA3, 1, H100) == pytest.approx(ridge_point(H100), rel=0.05)


def test_a_long_context_is_never_compute_bound():
    assert critical_batch(ModelSpec.from_config("llama-2-7b"), 4000, H100) is None


@pytest.mark.parametrize(
    "measured,floor,overhead,regime",
    [
        (1.2, Floor(0.8, 0.02), 0.01, "compute"),
        (0.036, Floor(0.0007, 0.018), 0.006, "memory"),
        (0.140, Floor(0.00003, 0.0065), 0.13, "overhead"),  # the talk's T4
    ],
)
def test_three_regimes(measured, floor, overhead, regime):
    found = verdict("a pass", measured, floor, overhead)
    assert found.regime == regime and found.clear and not found.notes
    assert found.shares[regime] == pytest.approx(max(floor.compute_s, floor.memory_s, overhead) / measured)
    assert f"{regime}-bound" in repr(found) and found.helps == HELPS[regime]


def test_what_nothing_explains_is_named():
    found = verdict("a pass", 0.067, Floor(0.0138, 0.0168), 0.0058)
    assert found.unexplained == pytest.approx(1 - (0.0168 + 0.0058) / 0.067)
    assert not found.clear and "not clearly" in repr(found)


@pytest.mark.parametrize(
    "floor,overhead,doubling,word",
    [
        (Floor(0.8, 0.1), 0.0, 1.05, "does not look compute-bound"),
        (Floor(0.1, 0.8), 0.0, 1.95, "looks compute-bound"),
        (Floor(0.1, 1.3), 0.0, None, "Faster than its floor by 1.30 times"),
    ],
)
def test_what_speaks_against_a_verdict(floor, overhead, doubling, word):
    (note,) = verdict("a pass", 1.0, floor, overhead, doubling).notes
    assert word in note


@pytest.mark.parametrize("halving,regime_floor,noted", [(0.95, Floor(0.1, 0.7), True), (0.6, Floor(0.1, 0.7), False),
                                                        (0.95, Floor(0.7, 0.1), False), (None, Floor(0.1, 0.7), False)])  # fmt: skip
def test_half_the_bytes_should_shorten_what_waits_for_memory(halving, regime_floor, noted):
    notes = verdict("decode", 1.0, regime_floor, 0.0, halving=halving).notes
    assert (notes == ()) != noted and all("half the bytes it took 0.95" in note for note in notes)


@pytest.mark.parametrize("doubling", [None, 1.5, 2.4])
def test_a_doubling_that_agrees_adds_nothing(doubling):
    assert verdict("prefill", 1.0, Floor(0.8, 0.1), 0.0, doubling).notes == ()


@pytest.mark.parametrize("measured,overhead", [(0, 0), (-1, 0), (float("nan"), 0), (1, -0.1), (1, float("nan"))])
def test_no_verdict_without_a_time(measured, overhead):
    with pytest.raises(BadArgument) as caught:
        verdict("a pass", measured, Floor(1, 1), overhead)
    assert caught.value.argument == ("overhead_s" if measured == 1 else "measured_s")


def test_overhead_from_a_fit_leaves_out_what_the_smallest_pass_must_read():
    assert overhead_from_fit(0.04, Floor(0.001, 0.018)) == pytest.approx(0.022)
    assert overhead_from_fit(0.01, Floor(0.001, 0.018)) == 0


def test_the_talks_own_figures_are_overhead_bound():
    """110-170 ms a token against a floor of 6.5 ms, and 25 tokens in about 175 ms: a pass costs over 100 ms."""
    talk = reported()["figures"]
    few = 25 / (talk["rag_input_tokens"] / talk["rag_ttft_s"] * talk["small_prefill_throughput_share"])
    assert few == pytest.approx(0.176, abs=0.001)
    overhead = overhead_from_fit(talk["tpot_low_s"], decode_floor(TINYLLAMA, 1, 1, T4))
    assert overhead > 0.1
    for step in (talk["tpot_low_s"], talk["tpot_high_s"]):
        assert verdict("decode", step, decode_floor(TINYLLAMA, 325, 1, T4), overhead).regime == "overhead"
    assert verdict("prefill", few, prefill_floor(TINYLLAMA, RequestShape(25, 1), T4), overhead).regime == "overhead"


def test_a_llama_2_7b_on_an_a100_stays_above_its_floor():
    """gpt-fast's README: 104.9, 155.6 and 196.8 tokens/s in bf16, int8 and int4 on an A100 with 80 GB."""
    spec, a100 = ModelSpec.from_config("llama-2-7b"), gpu("A100-80").device("bfloat16")
    for dtype, rate in (("bfloat16", 104.9), ("int8", 155.6), ("int4", 196.8)):
        floor = decode_floor(spec, 1, 1, a100, dtype, "bfloat16").seconds
        assert 0.25 < floor * rate < 1
    assert 104.9 * weight_bytes(spec, "bfloat16") / 1e9 == pytest.approx(1397, rel=0.02), "the bandwidth they state"


@pytest.mark.parametrize("value", ["1", None, float("nan"), float("inf"), True, -1])
def test_seconds_and_ceilings_are_numbers(value):
    for call, argument in (
        (lambda: Device("odd", 1, value), "bytes_per_s"),
        (lambda: verdict("a pass", value, Floor(1, 1), 0), "measured_s"),
        (lambda: verdict("a pass", 1, Floor(1, 1), value), "overhead_s"),
    ):
        with pytest.raises(BadArgument) as caught:
            call()
        assert caught.value.argument == argument
