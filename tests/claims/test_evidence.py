"""Estimates, and what can be said of two of them; measured and predicted points answer alike."""

import random
from dataclasses import replace

import pytest

from shapelab.claims.evidence import Estimate, Evidence, cost_ratio, difference, estimate, ratio, write_to_read_ratio
from shapelab.errors import NotEnoughMeasured
from shapelab.predict.roofline_machine import RooflineMachine
from shapelab.request.shape import RequestShape
from shapelab.theory.hardware import gpu
from shapelab.theory.model_spec import ModelSpec
from tests.runs import LIKE_A_TALK, MODEL, make_run, swept

SPEC = ModelSpec.from_config("smollm2-135m")
T4 = RooflineMachine(gpu("T4"), SPEC, "smollm2-135m", "float16", 0.005)


def spread(low, value, high, kind="range"):
    return Estimate(value, (low, high), kind)


def test_from_repeats():
    assert estimate([]) is None and estimate([None, None]) is None
    once = estimate([0.5, None])
    assert (once.value, once.interval, once.kind) == (0.5, None, "one repeat")
    assert estimate([3.0, 1.0, 2.0]) == Estimate(2.0, (1.0, 3.0), "range", (3.0, 1.0, 2.0))
    many = estimate([1.0] * 8 + [100.0])
    assert many.kind.startswith("bootstrap") and many.interval[1] < 100


def test_above_and_apart():
    low, high, between = spread(1, 2, 3), spread(3.1, 4, 5), spread(2, 3, 4)
    assert high.above(low) and not low.above(high) and low.apart(high) and high.apart(low)
    assert not between.above(low) and not between.apart(low) and not spread(3, 4, 5).above(low), "touching is not above"
    assert low.above(0.9) and not low.above(1)


@pytest.mark.parametrize("other", [spread(1, 2, 3), 0.0, estimate([5.0])])
def test_one_repeat_is_above_nothing(other):
    once = estimate([1e9])
    assert not once.above(other)
    if isinstance(other, Estimate):
        assert not other.above(once) and not once.apart(other) and not other.apart(once)


def test_ends_against_opposite_ends():
    a, b = spread(8, 10, 12), spread(1, 2, 4)
    assert difference(a, b) == Estimate(8, (4, 11), "range")
    assert ratio(a, b) == Estimate(5, (2, 12), "range")
    assert a.per(4) == Estimate(2.5, (2, 3), "range")


def test_by_bootstrap_where_both_have_repeats_enough():
    rng = random.Random(1)
    a, b = (estimate([rng.gauss(middle, 0.1) for _ in range(12)]) for middle in (4, 2))
    for combined, value in ((difference(a, b), 2), (ratio(a, b), 2)):
        assert combined.kind == a.kind and combined.interval[0] < combined.value < combined.interval[1]
        assert combined.value == pytest.approx(value, rel=0.1)
    ends = a.interval[0] - b.interval[1], a.interval[1] - b.interval[0]
    assert ends[0] < difference(a, b).interval[0] and difference(a, b).interval[1] < ends[1], "narrower than ends against ends"
    few = estimate([1.0, 1.2, 1.1])
    assert difference(a, few).kind == ratio(few, a).kind == "range"


@pytest.mark.parametrize("combine", [difference, ratio])
def test_one_repeat_in_either_leaves_no_interval(combine):
    one, three = estimate([1.0]), estimate([2.0, 2.1, 2.2])
    for combined in (combine(one, three), combine(three, one), combine(one, one), combine(three, one).per(2)):
        assert combined.interval is None and combined.kind == "one repeat"


@pytest.mark.parametrize("still", [estimate([0.0, 1.0, 1.0]), spread(-1, 1, 2), spread(0, 0, 0), estimate([0.0])])
def test_no_ratio_to_a_clock_that_stood_still(still):
    assert not still.positive
    with pytest.raises(NotEnoughMeasured):
        ratio(spread(1, 2, 3), still)


def test_a_spread_in_words():
    assert spread(0.1, 0.15, 0.2).spread() == "range 0.10 to 0.20"
    assert spread(0.1, 0.15, 0.2, "90 % interval").spread(".0f", 1e3) == "90 % interval 100 to 200"
    assert estimate([1.0]).spread() == "one repeat"


@pytest.mark.parametrize("machine", [None, MODEL, T4], ids=["measured", "fitted", "roofline"])
def test_measured_and_predicted_points_answer_alike(machine):
    """The protocol: the same questions, the same kinds of answers."""
    run = (
        make_run(LIKE_A_TALK, one=RequestShape(50, 1))
        if machine
        else make_run({**LIKE_A_TALK, "one": [(0.1, 0)] * 3}, one=RequestShape(50, 1))
    )
    evidence = Evidence(run, machine)
    for point in evidence.points:
        assert run[point.name].shape == point.shape == evidence[point.name].shape
        ttft, tpot, total = (point.estimate(quantity) for quantity in ("ttft_s", "tpot_s", "total_s"))
        assert (tpot is None) == (point.shape.output_tokens == 1)
        for each in filter(None, (ttft, tpot, total)):
            assert each.positive and each.interval[0] <= each.value <= each.interval[1] and each.kind
        assert total.value == pytest.approx(ttft.value + point.shape.decode_steps * (tpot.value if tpot else 0))
    rag = evidence["rag"]
    assert write_to_read_ratio(rag).value == pytest.approx(rag.estimate("tpot_s").value * 1205 / rag.estimate("ttft_s").value)
    assert cost_ratio(rag) == write_to_read_ratio(rag), "at batch 1"
    assert [point.name for point in evidence.along("input_tokens")] == [m.name for m in run.along("input_tokens")]


def test_predictions_come_from_the_machine_alone():
    run = swept({"64x11": [(9.0, 9.0)] * 3})
    (point,) = Evidence(run, MODEL).points
    prediction = MODEL.predict(point.shape)
    assert point.estimate("ttft_s") == Estimate(prediction.ttft_s, prediction.ttft_interval_s, "90 % interval")
    assert point.estimate("total_s").interval == prediction.total_interval_s


def test_what_a_run_kept_and_what_a_machine_knows():
    run = make_run(LIKE_A_TALK)
    assert Evidence(run).verdicts("rag") == {} and Evidence(run).kv_bytes_per_token() == (set(), None)
    on_a_t4 = Evidence(run, T4)
    assert set(on_a_t4.verdicts("rag")) == {"prefill", "decode"}
    assert on_a_t4.kv_bytes_per_token() == ({23040}, 23040) and on_a_t4.drifted == []
    assert Evidence(run, MODEL).kv_bytes_per_token() == (set(), None), "its run did not keep the model's numbers"


def test_the_cache_is_counted_in_the_dtype_of_the_arithmetic():
    """Weights of 8 bits leave keys and values in 16."""
    run = make_run(LIKE_A_TALK)
    quantized = run.environment.model_copy(update={"spec": SPEC, "weight_dtype": "int8", "compute_dtype": "float16"})
    assert Evidence(replace(run, environment=quantized)).kv_bytes_per_token()[1] == 23040
