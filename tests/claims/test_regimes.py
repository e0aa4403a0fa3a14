"""C7 from verdicts, and from a run with its machine's limits."""

import pytest

from shapelab.claims.regimes import compute_and_memory
from shapelab.claims.registry import finding, findings
from shapelab.record.machine_ceilings import Limits
from shapelab.record.run import Run
from shapelab.theory import roofline
from shapelab.theory.model_spec import ModelSpec
from tests.runs import make_run


def passes(prefill_s, prefill_floor, decode_s, decode_floor, overhead_s=0.005, doubling=(None, None)):
    return (
        roofline.verdict("prefill", prefill_s, prefill_floor, overhead_s, doubling[0]),
        roofline.verdict("decode", decode_s, decode_floor, overhead_s, doubling[1]),
    )


PREFILL, DECODE = roofline.Floor(0.8, 0.02), roofline.Floor(0.001, 0.018)


@pytest.mark.parametrize(
    "prefill,decode,overhead,verdict,regimes",
    [
        (PREFILL, DECODE, 0.005, "holds", ("compute", "memory")),
        (PREFILL, DECODE, 0.030, "does_not_hold", ("compute", "overhead")),
        (roofline.Floor(0.02, 0.3), DECODE, 0.005, "does_not_hold", ("memory", "memory")),
        (PREFILL, roofline.Floor(0.03, 0.018), 0.005, "does_not_hold", ("compute", "compute")),
    ],
)
def test_by_the_largest_shares(prefill, decode, overhead, verdict, regimes):
    decision = compute_and_memory(*passes(1.2, prefill, 0.036, decode, overhead))
    assert decision.verdict == verdict
    assert f"Prefill is {regimes[0]}-bound and decode {regimes[1]}-bound" in decision.why
    assert "of 1200.0 ms" in decision.measured and "of 36.0 ms" in decision.measured


def test_what_speaks_against_it_is_in_the_reason():
    prefill, decode = passes(1.2, PREFILL, 0.036, DECODE, doubling=(1.1, 1.0))
    assert prefill.notes and all(note in compute_and_memory(prefill, decode).why for note in prefill.notes)


def test_a_notebooks_own_decision_stands_under_its_claim():
    decided = finding("C7", compute_and_memory(*passes(1.2, PREFILL, 0.036, DECODE)))
    assert (decided.id, decided.verdict) == ("C7", "holds") and "compute-bound" in decided.claim and decided.reported == "stated"


SMOL = ModelSpec.from_config("smollm2-135m")
LIMITS = Limits(memory_read_bytes_per_s=30e9, flops_per_s=4e11, overhead_s=0.006, measured_at="2026-11-30")


def c7(ttft_s, tpot_s, limits=LIMITS, spec=SMOL):
    run = make_run({"rag": [(ttft_s, tpot_s)] * 3})
    run = Run(run.environment.model_copy(update={"spec": spec}), run.measurements, limits=limits)
    return findings(run, ["C7"])[0]


def test_from_a_run_with_its_machines_limits():
    decided = c7(1.0, 0.035)
    assert decided.verdict == "holds" and "compute" in decided.measured and "shares" in decided.why
    floor = roofline.decode_floor(SMOL, 1205 + 12, 1, LIMITS.device, "float32")
    assert decided.value == pytest.approx(floor.memory_s / 0.035)


def test_overhead_everywhere_does_not_hold():
    slow = LIMITS.model_copy(update={"overhead_s": 0.5})
    assert c7(1.0, 0.6, limits=slow).verdict == "does_not_hold"


@pytest.mark.parametrize("missing", [{"limits": None}, {"spec": None}])
def test_without_what_it_needs(missing):
    decided = c7(1.0, 0.035, **missing)
    assert decided.verdict == "not_measured" and "shapelab run" in decided.why
