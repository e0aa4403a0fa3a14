"""C1 to C4 and C6 decided both ways, at and around their thresholds, from runs made of stamps."""

import pytest

from shapelab.claims.evidence import Evidence, write_to_read_ratio
from shapelab.claims.registry import findings
from shapelab.claims.three_shapes import leader
from shapelab.record import metrics
from shapelab.request.shape import PRESETS, RequestShape
from tests.runs import LIKE_A_TALK, make_run


def decide(number, points, **shapes):
    return findings(make_run(points, **shapes), [number])[0]


def decide_thrice(number, points, **shapes):
    """Each shape three times alike: only thresholds matter."""
    return decide(number, {name: [times] * 3 for name, times in points.items()}, **shapes)


@pytest.mark.parametrize(
    "creative_ttft,verdict", [(1.03, "holds"), (1.04, "holds"), (1.0299, "does_not_hold"), (0.1, "does_not_hold")]
)
def test_c1_ten_times_between_slowest_and_fastest(creative_ttft, verdict):
    """chat takes 1 s, creative 8.97 s after its first token."""
    finding = decide_thrice("C1", {"chat": (0.21, 0.01), "rag": (1, 0.1), "creative": (creative_ttft, 0.03)})
    assert finding.verdict == verdict
    assert finding.value == pytest.approx(creative_ttft + 8.97)
    assert "chat" in finding.measured and "creative" in finding.measured


def test_c1_the_slowest_may_be_any_shape():
    finding = decide_thrice("C1", {"chat": (0.21, 0.01), "rag": (20, 0.1), "creative": (0.1, 0.01)})
    assert finding.verdict == "holds" and "rag" in finding.measured


ORDERED = {"chat": [(0.3, 0.01)] * 3, "rag": [(1.2, 0.01), (1.0, 0.01), (1.1, 0.01)], "creative": [(0.5, 0.01)] * 3}


@pytest.mark.parametrize(
    "name,times,verdict",
    [
        ("chat", [(0.3, 0.01), (0.99, 0.01), (0.3, 0.01)], "holds"),
        ("chat", [(0.3, 0.01), (1.0, 0.01), (0.3, 0.01)], "does_not_hold"),
        ("chat", [(0.3, 0.01), (1.05, 0.01), (0.3, 0.01)], "does_not_hold"),
        ("creative", [(2.0, 0.01)] * 3, "does_not_hold"),
        ("creative", [(0.5, 0.001)] * 3, "does_not_hold"),
        ("rag", [(1.2, 0.2), (1.0, 0.01), (1.1, 0.01)], "does_not_hold"),
    ],
    ids=["apart", "touching", "overlapping", "ttft order", "total order", "totals overlap"],
)
def test_c2_both_orders_and_no_overlap(name, times, verdict):
    assert decide("C2", ORDERED).verdict == "holds"
    finding = decide("C2", {**ORDERED, name: times})
    assert finding.verdict == verdict
    assert (finding.value > 1) == (verdict == "holds")
    assert "range" in finding.why


def test_c2_with_many_repeats_one_outlier_decides_nothing():
    many = {name: [times[0]] * 9 for name, times in ORDERED.items()} | {"rag": [(1.2, 0.01)] * 8 + [(0.2, 0.01)]}
    finding = decide("C2", many)
    assert finding.verdict == "holds" and "bootstrap" in finding.why


@pytest.mark.parametrize("ttft,verdict", [(1.2049, "holds"), (1.205, "holds"), (1.2051, "does_not_hold")])
def test_c3_a_read_token_costs_at_most_a_tenth(ttft, verdict):
    finding = decide_thrice("C3", {"rag": (ttft, 0.01)})
    assert finding.verdict == verdict
    assert finding.value == pytest.approx(ttft / 12.05)


@pytest.mark.parametrize("tpot,verdict", [(0.0101, "holds"), (0.01, "holds"), (0.0099, "does_not_hold")])
def test_c4_a_written_token_costs_at_least_ten_read_ones(tpot, verdict):
    finding = decide_thrice("C4", {"rag": (1.205, tpot)})
    assert finding.verdict == verdict
    assert finding.value == pytest.approx(tpot / 0.001)
    assert "about 300" in finding.why, "the reported ratio always stands beside the measured one"


@pytest.mark.parametrize(
    "times,kind",
    [([(1.205, 0.02)] * 3 + [(48.2, 0.02)] * 2, "range"), ([(1.205, 0.02)] * 5 + [(48.2, 0.02)] * 3, "bootstrap 90 %")],
)
def test_c4_an_interval_that_reaches_below_1_decides_against(times, kind):
    finding = decide("C4", {"rag": times})
    assert finding.value == pytest.approx(20) and kind in finding.measured
    assert finding.verdict == "does_not_hold"


def test_c4_the_range_takes_the_extremes_of_both():
    times = write_to_read_ratio(Evidence(make_run({"rag": [(1.205, 0.03), (2.41, 0.02), (1.205, 0.02)]}))["rag"])
    assert (times.value, *times.interval) == pytest.approx((20, 10, 30))


def test_c4_the_bootstrap_interval_lies_inside_the_extremes_and_holds_the_ratio():
    times = [(1.205 * (1 + n / 100), 0.02 * (1 - n / 100)) for n in range(10)]
    spread = write_to_read_ratio(Evidence(make_run({"rag": times}))["rag"])
    assert 20 * 0.91 / 1.09 < spread.interval[0] < spread.value < spread.interval[1] < 20
    alike = write_to_read_ratio(Evidence(make_run({"rag": [(1.205, 0.02)] * 8}))["rag"])
    assert alike.interval == pytest.approx((20, 20))


@pytest.mark.parametrize("ttft,verdict", [(0.99, "does_not_hold"), (1.0, "holds"), (1.01, "holds")])
def test_c6_a_quarter_of_the_throughput(ttft, verdict):
    """1,205 tokens in 12.05 s against 25 tokens in about 1 s."""
    finding = decide_thrice("C6", {"rag": (12.05, 0.01), "creative": (ttft, 0.01)})
    assert finding.verdict == verdict
    assert finding.value == pytest.approx(0.25 / ttft)


def test_c6_looks_at_what_is_read_only():
    times = {"25x8": (1.0, 0.01), "1205x8": (12.05, 0.01)}
    finding = decide_thrice("C6", times, **{text: RequestShape.parse(text) for text in times})
    assert finding.verdict == "holds" and finding.value == pytest.approx(0.25)
    batch = {"25x8@2": (1.0, 0.01), "1205x8": (12.05, 0.01)}
    assert decide_thrice("C6", batch, **{text: RequestShape.parse(text) for text in batch}).verdict == "not_measured"


NEEDS = {
    "C1": ("chat", "rag", "creative"),
    "C2": ("chat", "rag", "creative"),
    "C3": ("rag",),
    "C4": ("rag",),
    "C6": ("rag", "creative"),
}


@pytest.mark.parametrize("missing", ["chat", "rag", "creative"])
def test_a_missing_shape_is_not_measured(missing):
    for finding in findings(make_run({name: times for name, times in LIKE_A_TALK.items() if name != missing})):
        assert (finding.verdict == "not_measured") == (missing in NEEDS[finding.id])
        if missing in NEEDS[finding.id]:
            assert missing in finding.why and "shapelab run" in finding.why
            assert finding.value is None and finding.predicted == "-"


@pytest.mark.parametrize("name", ["chat", "rag", "creative"])
def test_one_output_token_is_not_measured(name):
    one = RequestShape(PRESETS[name].input_tokens, 1)
    lacking = {number for number, needs in NEEDS.items() if name in needs} - {"C6"}
    decided = findings(make_run(LIKE_A_TALK, **{name: one}))
    assert {f.id for f in decided if f.verdict == "not_measured"} == lacking, "C6 is about reading alone"


@pytest.mark.parametrize("broken", [(0, 0.14), (0.53, 0)])
@pytest.mark.parametrize("good", [0, 2, 9])
def test_a_clock_that_stood_still_is_not_measured(broken, good):
    finding = decide("C4", {"rag": [(0.53, 0.14)] * good + [broken]})
    assert finding.verdict == "not_measured" and finding.value is None


def test_a_leader_must_lead():
    clear = make_run({"chat": [(0.1, 0.03)] * 2, "rag": [(1.0, 0.03), (1.1, 0.03)], "creative": [(0.1, 0.03)] * 2})
    assert leader(clear, metrics.ttft_s, "Because.") == ("rag", "Because.")
    close = make_run({"chat": [(0.1, 0.03)] * 2, "rag": [(1.0, 0.03), (1.2, 0.03)], "creative": [(0.9, 0.03), (1.1, 0.03)]})
    name, lesson = leader(close, metrics.ttft_s, "Because.")
    assert name == "rag" and lesson != "Because." and "creative" in lesson


@pytest.mark.parametrize("alone", ["rag", "chat"])
def test_one_repeat_leads_nobody(alone):
    points = {"chat": [(0.1, 0.03)] * 3, "rag": [(1.0, 0.03)] * 3}
    name, lesson = leader(make_run({**points, alone: points[alone][:1]}), metrics.ttft_s, "Because.")
    assert name == "rag" and lesson != "Because."
