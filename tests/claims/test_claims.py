"""Every claim decided both ways, at and around its threshold, from runs made of stamps."""

import json

import pytest

from shapelab.claims.registry import (
    FOUR_NUMBERS,
    as_records,
    compute_and_memory,
    cost_ratio,
    findings,
    leader,
    physics_sets_the_price,
    prefix_caching,
    technique,
    tpot_slope,
    write_to_read_ratio,
)
from shapelab.classroom.tables import claims_table
from shapelab.record import metrics
from shapelab.record.machine_ceilings import Limits
from shapelab.record.run import Run
from shapelab.request.shape import PRESETS, RequestShape
from shapelab.theory import roofline
from shapelab.theory.model_spec import ModelSpec
from tests.runs import HERE, LIKE_A_TALK, MODEL, batches, make_run, swept


def decide(number, points, **shapes):
    return next(finding for finding in findings(make_run(points, **shapes)) if finding.id == number)


@pytest.mark.parametrize(
    "creative_ttft,verdict", [(1.03, "holds"), (1.04, "holds"), (1.0299, "does_not_hold"), (0.1, "does_not_hold")]
)
def test_c1_ten_times_between_slowest_and_fastest(creative_ttft, verdict):
    """chat takes 1 s, creative 8.97 s after its first token."""
    found = decide("C1", {"chat": [(0.21, 0.01)], "rag": [(1, 0.1)], "creative": [(creative_ttft, 0.03)]})
    assert found.verdict == verdict
    assert found.value == pytest.approx(creative_ttft + 8.97)
    assert "chat 1.00 s" in found.measured and "creative" in found.measured


def test_c1_the_slowest_may_be_any_shape():
    found = decide("C1", {"chat": [(0.21, 0.01)], "rag": [(20, 0.1)], "creative": [(0.1, 0.01)]})
    assert found.verdict == "holds" and "rag 22.30 s" in found.measured


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
    found = decide("C2", {**ORDERED, name: times})
    assert found.verdict == verdict
    assert (found.value > 1) == (verdict == "holds")
    assert "range" in found.why


def test_c2_with_many_repeats_one_outlier_decides_nothing():
    many = {name: [times[0]] * 9 for name, times in ORDERED.items()} | {"rag": [(1.2, 0.01)] * 8 + [(0.2, 0.01)]}
    found = decide("C2", many)
    assert found.verdict == "holds" and "bootstrap" in found.why


@pytest.mark.parametrize("ttft,verdict", [(1.2049, "holds"), (1.205, "holds"), (1.2051, "does_not_hold")])
def test_c3_a_read_token_costs_at_most_a_tenth(ttft, verdict):
    found = decide("C3", {"rag": [(ttft, 0.01)]})
    assert found.verdict == verdict
    assert found.value == pytest.approx(ttft / 12.05)


@pytest.mark.parametrize("tpot,verdict", [(0.0101, "holds"), (0.01, "holds"), (0.0099, "does_not_hold")])
def test_c4_a_written_token_costs_at_least_ten_read_ones(tpot, verdict):
    found = decide("C4", {"rag": [(1.205, tpot)]})
    assert found.verdict == verdict
    assert found.value == pytest.approx(tpot / 0.001)
    assert "about 300" in found.why, "the reported ratio is always shown beside the measured one"


@pytest.mark.parametrize(
    "times,kind",
    [([(1.205, 0.02)] * 3 + [(48.2, 0.02)] * 2, "range"), ([(1.205, 0.02)] * 5 + [(48.2, 0.02)] * 3, "bootstrap 90 %")],
)
def test_c4_an_interval_that_reaches_below_1_decides_against(times, kind):
    found = decide("C4", {"rag": times})
    assert found.value == pytest.approx(20) and kind in found.measured
    assert found.verdict == "does_not_hold"


def test_c4_the_range_takes_the_extremes_of_both():
    run = make_run({"rag": [(1.205, 0.03), (2.41, 0.02), (1.205, 0.02)]})
    ratio, (low, high) = write_to_read_ratio(run["rag"])
    assert (ratio, low, high) == pytest.approx((20, 10, 30))


def test_c4_the_bootstrap_interval_lies_inside_the_extremes_and_holds_the_ratio():
    times = [(1.205 * (1 + n / 100), 0.02 * (1 - n / 100)) for n in range(10)]
    ratio, (low, high) = write_to_read_ratio(make_run({"rag": times})["rag"])
    assert 20 * 0.91 / 1.09 < low < ratio < high < 20
    assert write_to_read_ratio(make_run({"rag": [(1.205, 0.02)] * 8})["rag"])[1] == pytest.approx((20, 20))


@pytest.mark.parametrize("ttft,verdict", [(0.99, "does_not_hold"), (1.0, "holds"), (1.01, "holds")])
def test_c6_a_quarter_of_the_throughput(ttft, verdict):
    """1,205 tokens in 12.05 s against 25 tokens in about 1 s."""
    found = decide("C6", {"rag": [(12.05, 0.01)], "creative": [(ttft, 0.01)]})
    assert found.verdict == verdict
    assert found.value == pytest.approx(0.25 / ttft)


NEEDS = {
    "C1": ("chat", "rag", "creative"),
    "C2": ("chat", "rag", "creative"),
    "C3": ("rag",),
    "C4": ("rag",),
    "C6": ("rag", "creative"),
}


@pytest.mark.parametrize("missing", ["chat", "rag", "creative"])
def test_a_missing_shape_is_not_measured(missing):
    found = findings(make_run({name: times for name, times in LIKE_A_TALK.items() if name != missing}))
    for finding in found:
        assert (finding.verdict == "not_measured") == (missing in NEEDS[finding.id])
        if missing in NEEDS[finding.id]:
            assert f"no {missing} shape" in finding.why and finding.value is None and finding.predicted == "-"


@pytest.mark.parametrize("name", ["chat", "rag", "creative"])
def test_one_output_token_is_not_measured(name):
    one = RequestShape(PRESETS[name].input_tokens, 1)
    found = findings(make_run(LIKE_A_TALK, **{name: one}))
    undecided = {number for number, needs in NEEDS.items() if name in needs} - {"C6"}
    assert {f.id for f in found if f.verdict == "not_measured"} == undecided, "C6 is about reading alone"


@pytest.mark.parametrize("broken", [(0, 0.14), (0.53, 0)])
@pytest.mark.parametrize("good", [0, 2, 9])
def test_a_clock_that_stood_still_is_not_measured(broken, good):
    found = decide("C4", {"rag": [(0.53, 0.14)] * good + [broken]})
    assert found.verdict == "not_measured" and "stood still" in found.why


def test_nothing_measured_at_all():
    assert [f.verdict for f in findings(make_run({}))] == ["not_measured"] * 5


def test_the_talks_own_figures():
    found = {f.id: f for f in findings(make_run(LIKE_A_TALK))}
    assert list(found) == ["C1", "C2", "C3", "C4", "C6"]
    assert found["C4"].value == pytest.approx(318, abs=1) and found["C4"].measured.startswith("318 times")
    assert "1,205 tokens in 530 ms: 0.44 ms a token" in found["C3"].measured and "1/318" in found["C3"].why
    assert found["C6"].value == pytest.approx(1 / 16, abs=0.001)
    assert {number: f.verdict for number, f in found.items()} == {
        "C1": "holds", "C2": "holds", "C3": "holds", "C4": "holds", "C6": "holds"
    }  # fmt: skip


def test_as_records_and_as_a_table():
    found = findings(make_run({name: times for name, times in LIKE_A_TALK.items() if name != "chat"}))
    records = json.loads(json.dumps(as_records(found), allow_nan=False))
    assert records[0].keys() == {"id", "claim", "reported", "predicted", "measured", "verdict", "why", "value"}
    table = claims_table(found)
    for part in ("not measured", "about 300 times a read token", "318 times", "no chat shape"):
        assert part in table._repr_html_()
    assert [row[3] for row in table.rows] == [f.verdict.replace("_", " ") for f in found]


def test_a_claim_is_about_its_own_shape():
    found = decide("C3", LIKE_A_TALK, rag=RequestShape(800, 24))
    assert found.verdict == "not_measured" and "800x24" in found.why and "1205x24" in found.why


def test_an_unsteady_run_says_so():
    steady = decide("C3", LIKE_A_TALK)
    unsteady = decide("C3", {**LIKE_A_TALK, "rag": [(0.5, 0.14), (0.6, 0.2), (0.8, 0.3)]})
    assert "Careful" not in steady.why and "Careful: 1205x24 drifted" in unsteady.why


def test_a_leader_must_lead():
    clear = make_run({"chat": [(0.1, 0.03)] * 2, "rag": [(1.0, 0.03), (1.1, 0.03)], "creative": [(0.1, 0.03)] * 2})
    assert leader(clear, metrics.ttft_s, "Because.") == ("rag", "Because.")
    close = make_run({"chat": [(0.1, 0.03)] * 2, "rag": [(1.0, 0.03), (1.2, 0.03)], "creative": [(0.9, 0.03), (1.1, 0.03)]})
    name, lesson = leader(close, metrics.ttft_s, "Because.")
    assert name == "rag" and "too close to call" in lesson and "creative" in lesson


def test_a_shape_decides_under_any_name():
    """A sweep calls its shapes by their numbers."""
    named = make_run(LIKE_A_TALK)
    numbers = Run(HERE, [m.model_copy(update={"name": str(m.shape)}) for m in named.measurements])
    assert findings(numbers) == findings(named)


def test_c6_looks_at_what_is_read_only():
    times = {"25x8": [(1.0, 0.01)], "1205x8": [(12.05, 0.01)]}
    found = decide("C6", times, **{text: RequestShape.parse(text) for text in times})
    assert found.verdict == "holds" and found.value == pytest.approx(0.25)
    batch = {"25x8@2": [(1.0, 0.01)], "1205x8": [(12.05, 0.01)]}
    assert decide("C6", batch, **{text: RequestShape.parse(text) for text in batch}).verdict == "not_measured"


def decide_sweep(number, times, run=None):
    return next(f for f in findings(run or swept(times), FOUR_NUMBERS) if f.id == number)


LINES = {
    "64x11": [(0.1, 0.04)] * 2,
    "1064x11": [(1.1, 0.05)] * 2,  # +1,000 tokens: 1.1 s of total
    "64x111": [(0.1, 0.04)] * 2,  # +100 tokens: 4 s
    "1000+64x11": [(0.12, 0.05)] * 2,
    "64x11@4": [(0.3, 0.06)] * 2,
}


def test_c5_a_thousand_read_against_two_hundred_written():
    found = decide_sweep("C5", LINES)
    assert found.verdict == "holds" and found.value == pytest.approx(1.1 / 8.0)
    assert "+1,000 input tokens 1.10 s" in found.measured and "+200 output tokens 8.00 s" in found.measured


@pytest.mark.parametrize("ttft,verdict", [(2.099, "holds"), (2.101, "does_not_hold")])
def test_c5_a_quarter(ttft, verdict):
    assert decide_sweep("C5", {**LINES, "1064x11": [(ttft, 0.04)]}).verdict == verdict


def test_c5_shapes_too_near_each_other_decide_nothing():
    found = decide_sweep("C5", {"64x11": [(0.1, 0.04)], "264x11": [(0.3, 0.04)], "64x12": [(0.1, 0.04)]})
    assert found.verdict == "not_measured" and "by 250 or more" in found.why


def test_c8_all_four_must_move():
    found = decide_sweep("C8", LINES)
    assert found.verdict == "holds" and found.value == 4
    for still in ("1064x11", "1000+64x11", "64x11@4"):
        less = decide_sweep("C8", {**LINES, still: [(0.1, 0.04)] * 2})
        assert less.verdict == "does_not_hold" and less.value == 3 and "nothing moved" in less.measured


def test_c8_overlapping_intervals_are_no_move():
    found = decide_sweep("C8", {**LINES, "64x11@4": [(0.3, 0.06), (0.1, 0.04)]})
    assert found.verdict == "does_not_hold" and found.value == 3


def test_c8_a_missing_line():
    found = decide_sweep("C8", {name: times for name, times in LINES.items() if "@" not in name})
    assert found.verdict == "not_measured" and "differ in batch size only" in found.why


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
    found = decide_sweep("C9", None, with_cache(LINES))
    assert found.verdict == "holds" and found.value == pytest.approx(0.01 / 1000)
    assert "10 ms to TPOT" in found.measured and f"{PER_TOKEN} bytes of KV cache a token" in found.measured


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
    assert decide_sweep("C9", None, with_cache({**LINES, "1000+64x11": times}, per_token)).verdict == verdict


def test_c9_without_bytes_or_context():
    assert "bytes of the KV cache were not kept" in decide_sweep("C9", LINES).why
    assert decide_sweep("C9", None, with_cache(LINES, spec=None)).verdict == "not_measured"
    assert "differ in their context only" in decide_sweep("C9", None, with_cache({"64x11": [(0.1, 0.04)]})).why


def test_the_slope_along_the_input_where_nothing_is_cached():
    slope, (low, high), (a, b) = tpot_slope(swept({"64x11": [(0.1, 0.04), (0.1, 0.042)], "1064x11": [(1, 0.05), (1, 0.056)]}))
    assert (slope, low, high) == pytest.approx((12e-6, 8e-6, 16e-6)) and (a.name, b.name) == ("64x11", "1064x11")


def test_predicted_stands_beside_measured():
    found = findings(make_run(LIKE_A_TALK), model=MODEL)
    rag = MODEL.predict(PRESETS["rag"])
    assert f"1,205 tokens in {rag.ttft_s * 1e3:.0f} ms" in found[2].predicted and "530 ms" in found[2].measured
    assert all(f.verdict == "holds" for f in found), "the verdict is the measurement's alone"
    assert (
        "predicted" in claims_table(found)._repr_html_() and "predicted" not in claims_table(findings(make_run({})))._repr_html_()
    )


def passes(prefill_s, prefill_floor, decode_s, decode_floor, overhead_s=0.005, doubling=(None, None)):
    return (
        roofline.verdict("prefill", prefill_s, prefill_floor, overhead_s, doubling[0]),
        roofline.verdict("decode", decode_s, decode_floor, overhead_s, doubling[1]),
    )


@pytest.mark.parametrize(
    "prefill,decode,overhead,verdict,word",
    [
        (
            roofline.Floor(0.8, 0.02),
            roofline.Floor(0.001, 0.018),
            0.005,
            "holds",
            "Prefill is compute-bound and decode memory-bound",
        ),
        (roofline.Floor(0.8, 0.02), roofline.Floor(0.001, 0.018), 0.030, "does_not_hold", "decode overhead-bound"),
        (roofline.Floor(0.02, 0.3), roofline.Floor(0.001, 0.018), 0.005, "does_not_hold", "Prefill is memory-bound"),
        (roofline.Floor(0.8, 0.02), roofline.Floor(0.03, 0.018), 0.005, "does_not_hold", "decode compute-bound"),
    ],
)
def test_c7_by_the_largest_shares(prefill, decode, overhead, verdict, word):
    found = compute_and_memory(*passes(1.2, prefill, 0.036, decode, overhead))
    assert found.id == "C7" and found.verdict == verdict and word in found.why
    assert "of 1200.0 ms" in found.measured and "of 36.0 ms" in found.measured


def test_c7_says_what_speaks_against_it():
    floors = roofline.Floor(0.8, 0.02), roofline.Floor(0.001, 0.018)
    found = compute_and_memory(*passes(1.2, floors[0], 0.036, floors[1], doubling=(1.1, 1.0)))
    assert "does not look compute-bound" in found.why


def test_the_cost_ratio_is_shared_by_the_batch():
    one, four = batches(b1=0.04, b4=0.06)
    assert cost_ratio(one)[0] == pytest.approx(0.04 * 256 / 0.25)
    assert cost_ratio(four)[0] == pytest.approx((0.06 / 4) / (1.0 / (4 * 256)))
    assert cost_ratio(four)[1] == pytest.approx((15.36, 15.36))


@pytest.mark.parametrize("median,verdict", [(40.9, "holds"), (41.0, "does_not_hold")])
def test_c10_at_batch_1(median, verdict):
    found = physics_sets_the_price(batches(b1=0.04, b16=0.1), median)
    assert found.id == "C10" and found.verdict == verdict and found.value == pytest.approx(40.96)
    assert "41.0 at batch 1" in found.measured and "6.4 at batch 16" in found.measured and f"{median:.1f}" in found.measured
    assert ("From batch 16 on it is below" in found.why) == (verdict == "holds")


def test_c10_needs_batch_1():
    assert physics_sets_the_price(batches(b4=0.05), 4.0).verdict == "not_measured"


SMOL = ModelSpec.from_config("smollm2-135m")
LIMITS = Limits(memory_read_bytes_per_s=30e9, flops_per_s=4e11, overhead_s=0.006, measured_at="2026-11-30")


def c7(ttft_s, tpot_s, limits=LIMITS, spec=SMOL):
    run = make_run({"rag": [(ttft_s, tpot_s)]})
    run = Run(run.environment.model_copy(update={"spec": spec}), run.measurements, limits=limits)
    return findings(run, ["C7"])[0]


def test_c7_from_a_run_with_its_machines_limits():
    found = c7(1.0, 0.035)
    assert found.verdict == "holds" and "compute" in found.measured and "By shares only" in found.why
    floor = roofline.decode_floor(SMOL, 1205 + 12, 1, LIMITS.device, "float32")
    assert found.value == pytest.approx(floor.memory_s / 0.035)


def test_c7_overhead_everywhere_does_not_hold():
    slow = LIMITS.model_copy(update={"overhead_s": 0.5})
    assert c7(1.0, 0.6, limits=slow).verdict == "does_not_hold"


@pytest.mark.parametrize("missing", [{"limits": None}, {"spec": None}])
def test_c7_without_what_it_needs(missing):
    found = c7(1.0, 0.035, **missing)
    assert found.verdict == "not_measured" and "shapelab run" in found.why


def cached(hit_ttft_s, **changes):
    shapes = {"full": RequestShape(1088, 8), "hit": RequestShape(64, 8, cached_tokens=1024), **changes}
    return prefix_caching(make_run({"full": [(1.0, 0.04), (1.1, 0.04)], "hit": [(hit_ttft_s, 0.04)]}, **shapes))


def test_c11_prefix_caching_from_a_run():
    found = cached(0.1)
    assert found.verdict == "holds" and found.value == pytest.approx(10.5) and "1024+64x8" in found.claim
    assert cached(1.05).verdict == "does_not_hold"


@pytest.mark.parametrize(
    "changes", [{"hit": RequestShape(64, 8, cached_tokens=1000)}, {"hit": RequestShape(64, 9, cached_tokens=1024)},
                {"full": RequestShape(1088, 8, 2)}, {"hit": RequestShape(1088, 8)}],
)  # fmt: skip
def test_c11_needs_the_same_prompt_with_and_without(changes):
    with pytest.raises(Exception, match="a part of it cached"):
        cached(0.1, **changes)


def test_one_shape_alone_decides_no_price():
    assert findings(make_run(LIKE_A_TALK), ["C10"]) == [], "it is not among the claims that one shape a claim decides"


def test_c11_for_one_technique():
    found = technique("grouped-query attention", (0.009, 0.008, 0.010), (0.005, 0.004, 0.006))
    assert found.id == "C11" and found.verdict == "holds" and found.value == pytest.approx(1.8)
    assert "off 9.0 ms (8.0 to 10.0), on 5.0 ms" in found.measured and "grouped-query attention" in found.claim
    assert technique("x", (0.009, 0.008, 0.010), (0.005, 0.004, 0.008)).verdict == "does_not_hold"
    assert technique("x", (0.005, 0.004, 0.006), (0.009, 0.008, 0.010)).verdict == "does_not_hold", "slower is not faster"


def test_c8_a_chance_difference_in_ttft_is_not_what_output_tokens_move():
    chance = {**LINES, "64x111": [(0.2, 0.0018)] * 2}
    found = decide_sweep("C8", {**chance, "64x11": [(0.1, 0.0298)] * 2})
    assert "output tokens 11 to 111: nothing moved" in found.measured


def test_c10_leaves_out_a_clock_that_stood_still():
    still = batches(b1=0.04, b4=0.0, b16=0.1)
    found = physics_sets_the_price(still, 4.0)
    assert found.verdict == "holds" and "batch 4" not in found.measured
    assert physics_sets_the_price(batches(b1=0.0, b4=0.05), 4.0).verdict == "not_measured"
