"""How many requests fit: by hand, side by side, and never more bytes than there are."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shapelab.errors import BadArgument, DoesNotFit
from shapelab.request.shape import RequestShape
from shapelab.theory.arithmetic import kv_bytes_per_token, parameter_count, weight_bytes
from shapelab.theory.hardware import gpu
from shapelab.theory.kv_plan import BLOCK_TOKENS, plan_kv, with_kv_heads
from shapelab.theory.model_spec import ModelSpec

LLAMA3 = ModelSpec.from_config("llama-3-8b")
A100 = gpu("A100-80").usable_bytes


def test_by_hand():
    plans = plan_kv(LLAMA3, RequestShape(1205, 300), A100)
    room = A100 - 8_030_261_248 * 2 - plans["paged"].activation_bytes
    assert plans["contiguous"].reserved_tokens == 8192 and plans["paged"].reserved_tokens == 1504
    assert plans["contiguous"].requests == int(room // (8192 * 131_072)) == 63
    assert plans["paged"].requests == int(room // (1504 * 131_072)) == 347
    assert plans["contiguous"].used == pytest.approx(1504 / 8192) and plans["paged"].used == 1504 / 1504


def test_a_quarter_of_the_kv_heads_is_four_times_the_requests():
    mha, gqa, mqa = (plan_kv(with_kv_heads(LLAMA3, heads), RequestShape(1000, 25), A100)["paged"] for heads in (32, 8, 1))
    assert (mha.kv_bytes_per_token, gqa.kv_bytes_per_token) == (524_288, 131_072)
    assert 4 <= gqa.requests / mha.requests < 4.5 and mqa.requests > 7 * gqa.requests
    assert parameter_count(with_kv_heads(LLAMA3, 8)) == parameter_count(LLAMA3)


def test_eight_bit_cache_doubles_what_fits():
    full, half = (plan_kv(LLAMA3, RequestShape(1000, 25), A100, kv_dtype=dtype)["paged"] for dtype in (None, "int8"))
    assert half.requests in (2 * full.requests, 2 * full.requests + 1)


@given(st.integers(1, 4000), st.integers(1, 2000), st.sampled_from([1, 2, 8, 32]), st.floats(20e9, 200e9))
@settings(max_examples=80, deadline=None)
def test_what_is_planned_fits_and_one_more_would_not(inputs, outputs, heads, usable):
    spec, shape = with_kv_heads(LLAMA3, heads), RequestShape(inputs, outputs)
    for plan in plan_kv(spec, shape, usable).values():
        one = plan.reserved_tokens * kv_bytes_per_token(spec)
        fixed = weight_bytes(spec) + plan.activation_bytes
        assert fixed + plan.requests * one <= usable < fixed + (plan.requests + 1) * one
        assert 0 < plan.used <= 1 and plan.used_tokens == inputs + outputs - 1
    paged = plan_kv(spec, shape, usable)["paged"]
    assert paged.reserved_tokens == math.ceil(paged.used_tokens / BLOCK_TOKENS) * BLOCK_TOKENS


def test_what_cannot_be():
    with pytest.raises(DoesNotFit):
        plan_kv(LLAMA3, RequestShape(100, 10), gpu("T4").usable_bytes)
    for argument, call in [
        ("longest_tokens", lambda: plan_kv(LLAMA3, RequestShape(100, 10), A100, longest_tokens=100)),
        ("num_key_value_heads", lambda: with_kv_heads(LLAMA3, 5)),
        ("num_key_value_heads", lambda: with_kv_heads(LLAMA3, 0)),
    ]:
        with pytest.raises(BadArgument) as caught:
            call()
        assert caught.value.argument == argument


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1, "16", None, True])
def test_usable_bytes_are_a_number(value):
    with pytest.raises(BadArgument) as caught:
        plan_kv(ModelSpec.from_config("tinyllama"), RequestShape(60, 80), value)
    assert caught.value.argument == "usable_bytes"


@pytest.mark.parametrize("value", [0, -1, 1.5])
def test_tokens_of_a_pass_are_a_count(value):
    with pytest.raises(BadArgument) as caught:
        plan_kv(ModelSpec.from_config("tinyllama"), RequestShape(60, 80), 16e9, prefill_tokens=value)
    assert caught.value.argument == "prefill_tokens"
