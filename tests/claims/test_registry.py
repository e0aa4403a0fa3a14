"""One registry: every claim decided the same way, by one run or by many, by measurements or predictions."""

import json

import pytest

from shapelab.claims.registry import CLAIMS, THREE_SHAPES, all_findings, as_records, findings
from shapelab.classroom.tables import claims_table
from shapelab.predict.latency import LatencyModel
from shapelab.predict.machine import Prediction
from shapelab.predict.roofline_machine import RooflineMachine
from shapelab.record.recorded import recorded, reported
from shapelab.record.run import Run
from shapelab.request.shape import PRESETS, RequestShape
from shapelab.theory.hardware import gpu
from shapelab.theory.model_spec import ModelSpec
from tests.runs import HERE, LIKE_A_TALK, MODEL, RUN, batches, make_run, swept

ALL = [claim.id for claim in CLAIMS]
XEON = recorded("xeon-2cpu-smollm2-135m-float32")


def test_twelve_claims_in_order_each_with_a_way_to_measure_it():
    assert ALL == [f"C{number}" for number in range(1, 13)] == list(reported()["claims"])
    for claim in CLAIMS:
        assert claim.how and (claim.decide is None or "shapelab" in claim.how or "otebook" in claim.how)
        assert set(claim.needs) <= PRESETS.keys()


def test_one_run_and_many_go_the_same_way():
    assert findings(XEON, ALL) == all_findings([XEON])
    assert [f.id for f in findings(XEON, ("C9", "C2"))] == ["C2", "C9"], "in the registry's order"


def test_the_talks_own_figures():
    decided = {f.id: f for f in findings(make_run(LIKE_A_TALK))}
    assert {number: f.verdict for number, f in decided.items()} == dict.fromkeys(("C1", "C2", "C3", "C4", "C6"), "holds")
    assert decided["C4"].value == pytest.approx(318, abs=1) and decided["C4"].measured.startswith("318 times")
    assert "1,205 tokens in 530 ms: 0.44 ms a token" in decided["C3"].measured and "1/318" in decided["C3"].why
    assert decided["C6"].value == pytest.approx(1 / 16, abs=0.001)


def test_each_claim_by_the_first_run_that_can():
    decided = {f.id: f for f in all_findings([make_run({}), make_run(LIKE_A_TALK), XEON])}
    assert decided["C4"].value == pytest.approx(318, abs=1), "not the recorded run's"
    assert decided["C8"].verdict == "holds"


def test_a_later_run_that_decides_goes_before_one_that_cannot():
    once = make_run({name: times[:1] for name, times in LIKE_A_TALK.items()})
    assert {f.verdict for f in findings(once)} == {"undecided"}
    thrice = {f.id: f for f in all_findings([once, make_run(LIKE_A_TALK)])}
    assert thrice["C1"].verdict == "holds" and thrice["C1"].decided
    only = {f.id: f for f in all_findings([make_run({}), once, make_run({})])}
    assert only["C1"].verdict == "undecided" and not only["C1"].decided


def test_nothing_measured_at_all():
    for decided in (findings(make_run({}), ALL), all_findings([])):
        assert [f.verdict for f in decided] == ["not_measured"] * 12
        assert all(f.why and f.value is None for f in decided)


ONCE = {
    "64x11": [(0.1, 0.04)], "1064x11": [(1.1, 0.05)], "64x211": [(0.1, 0.04)], "1000+64x11": [(0.12, 0.05)],
    "64x11@4": [(0.3, 0.06)], "60x80": [(0.178, 0.14)], "1205x24": [(0.53, 0.14)], "25x300": [(0.175, 0.13)],
}  # fmt: skip


def with_repeats(times) -> Run:
    run = swept(times)
    kept = [
        m.model_copy(update={"repeats": tuple(
            r.model_copy(update={"kv_cache_bytes": m.batch_size * m.shape.final_kv_tokens * 46080}) for r in m.repeats
        )}) for m in run.measurements
    ]  # fmt: skip
    environment = HERE.model_copy(update={"spec": ModelSpec.from_config("smollm2-135m")})
    return Run(environment, kept, limits=XEON.limits)


@pytest.mark.parametrize("number", ALL[:-1])
def test_one_repeat_decides_no_claim(number):
    """A public report (metamask 11320): 100.1 against 100.0 ms, measured once each, was called a difference."""
    once, twice = (findings(with_repeats({name: n * times for name, times in ONCE.items()}), [number])[0] for n in (1, 2))
    assert twice.decided and once.verdict == "undecided" and not once.decided
    assert once.measured != "-" and "3 times" in once.why, "shows what was measured, and what would decide"
    assert number == "C8" or once.value == pytest.approx(twice.value), "C8 counts what moved beyond its interval: here nothing"
    assert "beyond its interval" not in once.measured, "there is none"


@pytest.mark.parametrize("name", ["chat", "rag", "creative"])
def test_one_shape_measured_once_is_enough_to_leave_it_open(name):
    points = {**LIKE_A_TALK, name: LIKE_A_TALK[name][:1]}
    verdicts = {f.id: f.verdict for f in findings(make_run(points))}
    assert verdicts["C1"] == verdicts["C2"] == "undecided"
    assert (verdicts["C3"] == "undecided") == (name == "rag") and (verdicts["C6"] == "undecided") == (name != "chat")


def test_predicted_stands_beside_measured():
    decided = findings(make_run(LIKE_A_TALK), machine=MODEL)
    rag = MODEL.predict(PRESETS["rag"])
    assert f"1,205 tokens in {rag.ttft_s * 1e3:.0f} ms" in decided[2].predicted and "530 ms" in decided[2].measured
    assert all(f.verdict == "holds" for f in decided), "the verdict is the measurement's alone"
    assert [f.measured for f in decided] == [f.measured for f in findings(make_run(LIKE_A_TALK))]


@pytest.mark.parametrize("number", ALL[:-1])
def test_every_claim_can_be_predicted(number):
    machine = RooflineMachine(gpu("T4"), ModelSpec.from_config("smollm2-135m"), "smollm2-135m", "float16", 0.005)
    (decided,) = findings(XEON, [number], machine)
    assert decided.predicted not in ("-", decided.measured)


def test_a_machine_that_cannot_say_predicts_nothing():
    alone = LatencyModel.fit(Run(RUN.environment, [m for m in RUN.measurements if m.batch_size == 1]))
    run = Run(HERE, batches(b1=0.04, b16=0.1))
    (decided,) = findings(run, ["C10"], alone)
    assert decided.verdict == "holds" and decided.predicted == "-"
    (lacking,) = findings(make_run({}), ["C3"], MODEL)
    assert lacking.predicted == "-"


def test_as_records_and_as_a_table():
    decided = findings(make_run({name: times for name, times in LIKE_A_TALK.items() if name != "chat"}))
    records = json.loads(json.dumps(as_records(decided), allow_nan=False))
    assert records[0].keys() == {"id", "claim", "reported", "predicted", "measured", "verdict", "why", "value"}
    table = claims_table(decided)
    page = table._repr_html_()
    for part in ("not measured", "about 300 times a read token", "318 times", "no chat shape"):
        assert part in page
    assert [row[3] for row in table.rows] == [f.verdict.replace("_", " ") for f in decided]
    assert "predicted" not in page and "predicted" in claims_table(findings(make_run(LIKE_A_TALK), machine=MODEL))._repr_html_()


def test_a_claim_is_about_its_own_shape():
    (decided,) = findings(make_run(LIKE_A_TALK, rag=RequestShape(800, 24)), ["C3"])
    assert decided.verdict == "not_measured" and "800x24" in decided.why and "1205x24" in decided.why


def test_an_unsteady_run_says_so():
    unsteady = make_run({**LIKE_A_TALK, "rag": [(0.5, 0.14), (0.6, 0.2), (0.8, 0.3)]})
    assert "1205x24 drifted" in findings(unsteady, ["C3"])[0].why
    assert "drifted" not in findings(make_run(LIKE_A_TALK), ["C3"])[0].why


def test_a_shape_decides_under_any_name():
    """A sweep calls its shapes by their numbers."""
    named = make_run(LIKE_A_TALK)
    numbers = Run(HERE, [m.model_copy(update={"name": str(m.shape)}) for m in named.measurements])
    assert findings(numbers) == findings(named)


class StandsStill:
    """A machine that predicts no time at all."""

    spec = dtype = None

    def predict(self, shape):
        return Prediction(shape, 0.0, 0.0, 0.0, (0.0, 0.0), (0.0, 0.0), (0.0, 0.0))

    def verdicts(self, shape):
        return {}


def test_a_prediction_of_no_time_decides_nothing_and_divides_by_nothing():
    predicted = {f.id: f.predicted for f in findings(make_run(LIKE_A_TALK), THREE_SHAPES, StandsStill())}
    assert predicted == dict.fromkeys(THREE_SHAPES, "-")
