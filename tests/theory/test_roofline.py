"""Floors: the longer of arithmetic and bytes."""

import pytest

from shapelab.errors import ShapelabError
from shapelab.request.shape import RAG, RequestShape
from shapelab.theory.arithmetic import decode_bytes, decode_flops, prefill_flops
from shapelab.theory.model_spec import ModelSpec
from shapelab.theory.roofline import Device, Floor, decode_floor, prefill_floor, total_floor_s

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
    step = decode_floor(TINYLLAMA, 105, 1, T4).seconds
    assert total_floor_s(TINYLLAMA, shape, T4) == pytest.approx(prefill_floor(TINYLLAMA, shape, T4).seconds + 10 * step)
    assert total_floor_s(TINYLLAMA, RequestShape(100, 1), T4) == prefill_floor(TINYLLAMA, shape, T4).seconds


def test_halving_the_bytes_halves_the_memory_floor_only():
    full, half = decode_floor(TINYLLAMA, 8, 1, T4), decode_floor(TINYLLAMA, 8, 1, T4, "int8")
    assert half.memory_s == pytest.approx(full.memory_s / 2) and half.compute_s == full.compute_s


@pytest.mark.parametrize("flops,rate", [(0, 1), (1, 0), (-1, 1), (float("nan"), 1)])
def test_a_device_that_does_nothing_is_refused(flops, rate):
    with pytest.raises(ShapelabError, match="must be positive"):
        Device("odd", flops, rate)
