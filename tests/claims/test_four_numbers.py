"""C5, C8 and C9 from sweeps made of stamps."""

import pytest

from shapelab.claims.evidence import Evidence
from shapelab.claims.four_numbers import tpot_slope
from shapelab.claims.registry import findings
from shapelab.errors import NotEnoughMeasured
from shapelab.record.run import Run
from shapelab.theory.model_spec import ModelSpec
from tests.runs import HERE, swept


def decide(number, times, run=None):
    return findings(run or swept(times), [number])[0]


LINES = {
    "64x11": [(0.1, 0.04)] * 2,
    "1064x11": [(1.1, 0.05)] * 2,  # +1,000 tokens: 1.1 s of total
    "64x111": [(0.1, 0.04)] * 2,  # +100 tokens: 4 s
    "1000+64x11": [(0.12, 0.05)] * 2,
    "64x11@4": [(0.3, 0.06)] * 2,
}


def test_c5_a_thousand_read_against_two_hundred_written():
    finding = decide("C5", LINES)
    assert finding.verdict == "holds" and finding.value == pytest.approx(1.1 / 8.0)
    assert "+1,000 input tokens 1.10 s" in finding.measured and "+200 output tokens 8.00 s" in finding.measured


@pytest.mark.parametrize("ttft,verdict", [(2.099, "holds"), (2.101, "does_not_hold")])
def test_c5_a_quarter(ttft, verdict):
    assert decide("C5", {**LINES, "1064x11": [(ttft, 0.04)] * 2}).verdict == verdict


def test_c5_shapes_too_near_each_other_decide_nothing():
    finding = decide("C5", {"64x11": [(0.1, 0.04)], "264x11": [(0.3, 0.04)], "64x12": [(0.1, 0.04)]})
    assert finding.verdict == "not_measured" and "by 250 or more" in finding.why


def test_c5_writing_that_took_no_time_is_noise():
    assert decide("C5", {**LINES, "64x111": [(0.05, 0.004)] * 2}).verdict == "not_measured"


def test_c8_all_four_must_move():
    finding = decide("C8", LINES)
    assert finding.verdict == "holds" and finding.value == 4
    for still in ("1064x11", "1000+64x11", "64x11@4"):
        less = decide("C8", {**LINES, still: [(0.1, 0.04)] * 2})
        assert less.verdict == "does_not_hold" and less.value == 3


def test_c8_overlapping_intervals_are_no_move():
    finding = decide("C8", {**LINES, "64x11@4": [(0.3, 0.06), (0.1, 0.04)]})
    assert finding.verdict == "does_not_hold" and finding.value == 3


def test_c8_a_chance_difference_in_ttft_is_not_what_output_tokens_move():
    chance = {**LINES, "64x111": [(0.2, 0.0018)] * 2, "64x11": [(0.1, 0.0298)] * 2}
    assert "output tokens 11 to 111: nothing moved" in decide("C8", chance).measured


def test_c8_shapes_that_decode_nothing_still_show_their_ttft():
    run = {"64x1": [(0.1, 0)], "1064x1": [(1.1, 0)], "64x111": [(0.1, 0.04)], "1000+64x1": [(0.12, 0)], "64x1@4": [(0.3, 0)]}
    once = decide("C8", run)
    assert once.verdict == "undecided" and "batch size 1 to 4: TTFT 0.1 to 0.3 s" in once.measured
    assert decide("C8", {name: 2 * times for name, times in run.items()}).value == 4


def test_c8_a_missing_line():
    finding = decide("C8", {name: times for name, times in LINES.items() if "@" not in name})
    assert finding.verdict == "not_measured" and "batch size" in finding.why


SPEC = ModelSpec(2, 64, 4, 2, 16, 96, 300, 512)
PER_TOKEN = 2 * 2 * 2 * 16 * 4


def with_cache(times, per_token=PER_TOKEN, spec=SPEC) -> Run:
    run = swept(times)
    kept = [
        m.model_copy(update={"repeats": tuple(
            r.model_copy(update={"kv_cache_bytes": m.batch_size * (m.shape.prompt_tokens + m.output_tokens - 1) * per_token}) for r in m.repeats
        )}) for m in run.measurements
    ]  # fmt: skip
    return Run(HERE.model_copy(update={"spec": spec}), kept)


def test_c9_slope_and_bytes():
    finding = decide("C9", None, with_cache(LINES))
    assert finding.verdict == "holds" and finding.value == pytest.approx(0.01 / 1000)
    assert "10 ms to TPOT" in finding.measured and f"{PER_TOKEN} bytes of KV cache a token" in finding.measured


@pytest.mark.parametrize(
    "times,per_token,verdict",
    [
        ([(0.1, 0.05), (0.1, 0.041)], PER_TOKEN, "holds"),
        ([(0.1, 0.05), (0.1, 0.039)], PER_TOKEN, "does_not_hold"),
        ([(0.1, 0.03)] * 2, PER_TOKEN, "does_not_hold"),
        ([(0.1, 0.05)] * 2, 2 * PER_TOKEN, "does_not_hold"),
        ([(0.1, 0.05)] * 2, PER_TOKEN - 1, "does_not_hold"),
    ],
)
def test_c9_both_are_needed(times, per_token, verdict):
    assert decide("C9", None, with_cache({**LINES, "1000+64x11": times}, per_token)).verdict == verdict


def test_c9_without_bytes_or_context():
    assert decide("C9", LINES).verdict == "not_measured"
    assert decide("C9", None, with_cache(LINES, spec=None)).verdict == "not_measured"
    with pytest.raises(NotEnoughMeasured):
        tpot_slope(Evidence(swept({"64x11": [(0.1, 0.04)]})))


def test_the_slope_along_the_input_where_nothing_is_cached():
    run = swept({"64x11": [(0.1, 0.04), (0.1, 0.042)], "1064x11": [(1, 0.05), (1, 0.056)]})
    slope, (a, b) = tpot_slope(Evidence(run))
    assert (slope.value, *slope.interval) == pytest.approx((12e-6, 8e-6, 16e-6)) and (a.name, b.name) == ("64x11", "1064x11")
