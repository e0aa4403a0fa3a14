"""What findings say in the cases where a reader must know what to do next."""

import pytest

from shapelab.claims.registry import findings
from shapelab.claims.three_shapes import leader
from shapelab.record import metrics
from shapelab.request.shape import RequestShape
from tests.runs import LIKE_A_TALK, make_run

ONCE = {name: times[:1] for name, times in LIKE_A_TALK.items()}


@pytest.mark.parametrize(
    "number,run,text",
    [
        ("C1", make_run({}), "This run has no chat shape (60x80). `shapelab run` measures it."),
        ("C3", make_run(LIKE_A_TALK, rag=RequestShape(800, 24)), "The rag of this run is 800x24; the claim is about 1205x24."),
        (
            "C3",
            make_run({"rag": [(0.0, 0.1)]}),
            "This claim needs at least two output tokens and a clock that advanced between them.",
        ),
        ("C4", make_run(ONCE), "One repeat shows no spread, so it decides nothing: measure each shape 3 times or more."),
        (
            "C5",
            make_run(LIKE_A_TALK),
            "no two shapes that differ in input tokens only, by 250 or more. `shapelab sweep --plan full",
        ),
        (
            "C7",
            make_run(LIKE_A_TALK),
            "This run does not record the machine's limits or the model's architecture. `shapelab run`",
        ),
        ("C8", make_run(LIKE_A_TALK), "This run has no two shapes that differ in input tokens only."),
        ("C9", make_run(LIKE_A_TALK), "This run has no two shapes that differ in their context only."),
        ("C11", make_run(LIKE_A_TALK), "`shapelab run --shapes 1088x8,1024+64x8` measures it"),
        ("C12", make_run(LIKE_A_TALK), "It needs a log of real requests, and is not in this course yet."),
    ],
)
def test_why(number, run, text):
    assert text in findings(run, [number])[0].why


def test_a_leader_that_does_not_lead():
    close = make_run({"rag": [(1.0, 0.03), (1.2, 0.03)], "creative": [(0.9, 0.03), (1.1, 0.03)]})
    assert (
        leader(close, metrics.ttft_s, "Because.")[1]
        == "But it is too close to call: the range of creative overlaps. Measure again."
    )
    assert leader(make_run(ONCE), metrics.ttft_s, "Because.")[1].startswith("But one repeat shows no spread")
