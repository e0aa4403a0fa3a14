"""C11, one technique at a time: on against off."""

import pytest

from shapelab.claims.evidence import Estimate, Evidence
from shapelab.claims.registry import finding
from shapelab.claims.techniques import prefix_caching, technique
from shapelab.errors import NotEnoughMeasured
from shapelab.request.shape import RequestShape
from tests.runs import make_run


def cached(hit_ttft_s, repeats=2, **changes):
    shapes = {"full": RequestShape(1088, 8), "hit": RequestShape(64, 8, cached_tokens=1024), **changes}
    times = {"full": [(1.0, 0.04), (1.1, 0.04)][:repeats], "hit": [(hit_ttft_s, 0.04)] * repeats}
    return prefix_caching(Evidence(make_run(times, **shapes)))


def test_prefix_caching_from_a_run():
    decision = cached(0.1)
    assert decision.verdict == "holds" and decision.value == pytest.approx(10.5) and "1024+64x8" in decision.about
    assert decision.about in finding("C11", decision).claim, "the claim says which technique was tried"
    assert cached(1.05).verdict == "does_not_hold"


@pytest.mark.parametrize("hit_s", [0.1, 0.9999, 1.1])
def test_one_repeat_shows_no_difference(hit_s):
    assert cached(hit_s, repeats=1).verdict == "undecided"


@pytest.mark.parametrize(
    "changes", [{"hit": RequestShape(64, 8, cached_tokens=1000)}, {"hit": RequestShape(64, 9, cached_tokens=1024)},
                {"full": RequestShape(1088, 8, 2)}, {"hit": RequestShape(1088, 8)}],
)  # fmt: skip
def test_the_same_prompt_with_and_without_is_needed(changes):
    with pytest.raises(NotEnoughMeasured):
        cached(0.1, **changes)


def seconds(value, low, high):
    return Estimate(value, (low, high), "range")


def test_on_must_be_faster_beyond_the_intervals():
    off, on = seconds(0.009, 0.008, 0.010), seconds(0.005, 0.004, 0.006)
    decision = technique("grouped-query attention", off, on)
    assert decision.verdict == "holds" and decision.value == pytest.approx(1.8)
    assert "off 9.0 ms (range 8.0 to 10.0), on 5.0 ms" in decision.measured and decision.about == "grouped-query attention"
    assert technique("x", off, seconds(0.005, 0.004, 0.008)).verdict == "does_not_hold", "touching is not apart"
    assert technique("x", on, off).verdict == "does_not_hold", "slower is not faster"
    assert technique("x", off, seconds(0, 0, 0)).value is None
