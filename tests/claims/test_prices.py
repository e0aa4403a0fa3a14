"""C10 from one shape at several batch sizes."""

import pytest

from shapelab.claims.evidence import Evidence, cost_ratio
from shapelab.claims.prices import physics_sets_the_price
from shapelab.claims.registry import findings
from shapelab.errors import NotEnoughMeasured
from shapelab.record.run import Run
from tests.runs import HERE, LIKE_A_TALK, batches, make_run


def evidence(**tpots):
    return Evidence(Run(HERE, batches(**tpots)))


def test_the_cost_ratio_is_shared_by_the_batch():
    one, four = evidence(b1=0.04, b4=0.06).points
    assert cost_ratio(one).value == pytest.approx(0.04 * 256 / 0.25)
    assert cost_ratio(four).value == pytest.approx((0.06 / 4) / (1.0 / (4 * 256)))
    assert cost_ratio(four).interval == pytest.approx((15.36, 15.36))


@pytest.mark.parametrize("median,verdict", [(40.9, "holds"), (41.0, "does_not_hold")])
def test_at_batch_1(median, verdict):
    decision = physics_sets_the_price(evidence(b1=0.04, b16=0.1), median)
    assert decision.verdict == verdict and decision.value == pytest.approx(40.96)
    assert "41.0 at batch 1" in decision.measured and "6.4 at batch 16" in decision.measured
    assert f"{median:.1f}" in decision.measured
    assert ("From batch 16 on" in decision.why) == (verdict == "holds")


def test_a_run_is_held_against_the_price_list():
    (finding,) = findings(evidence(b1=0.04, b16=0.1).run, ["C10"])
    assert finding.id == "C10" and finding.verdict == "holds" and finding.value == pytest.approx(40.96)


def test_it_needs_batch_1_and_another():
    with pytest.raises(NotEnoughMeasured):
        physics_sets_the_price(evidence(b4=0.05))
    with pytest.raises(NotEnoughMeasured):
        physics_sets_the_price(evidence(b1=0.05))
    (alone,) = findings(make_run(LIKE_A_TALK), ["C10"])
    assert alone.verdict == "not_measured" and "otebook 07" in alone.why


def test_a_clock_that_stood_still_is_left_out():
    decision = physics_sets_the_price(evidence(b1=0.04, b4=0.0, b16=0.1), 4.0)
    assert decision.verdict == "holds" and "batch 4" not in decision.measured
    with pytest.raises(NotEnoughMeasured):
        physics_sets_the_price(evidence(b1=0.0, b4=0.05), 4.0)
