"""Tables to read: the digits that matter, escaped, with a sentence that says whose numbers they are."""

import pandas as pd

from shapelab.classroom.tables import frame_table, microseconds, regimes_table, terms_table
from shapelab.theory.roofline import Floor, verdict
from tests.runs import MODEL


def test_frame_table():
    frame = pd.DataFrame({"name": ["<b>", "b"], "value": [1.2345, None], "whole": [True, False]})
    card = frame_table(frame, "a <note>", {"value": ".2f", "name": ">8"})
    assert "&lt;b&gt;" in card.html and "a &lt;note&gt;" in card.html and "<b>" not in card.html
    assert "1.23" in card.text and "-" in card.text.splitlines()[2] and "True" in card.text


def test_terms_table():
    card = terms_table(MODEL)
    assert "fixed cost of a pass" in card.text and "Fitted to 26 shapes: toy" in card.text
    assert "nan" not in card.text and card.html.count("<tr>") == len(MODEL.to_frame()) + 1


def test_microseconds():
    assert [microseconds(value) for value in (0.0379, 0.00034, 3.552e-7, 0)] == ["37,900", "340", "0.355", "0"]


def test_regimes_table():
    card = regimes_table(
        {"step": verdict("decode", 0.04, Floor(0.001, 0.02), 0.008), "few": verdict("prefill", 0.07, Floor(0.01, 0.015), 0.001)},
        "toy",
    )
    step, few = card.text.splitlines()[1:3]
    assert "40.0  1.0 (2%)  20.0 (50%)  8.0 (20%)  30%  memory-bound" in step and "not clearly" not in step
    assert few.endswith("memory-bound, not clearly") and "Measured: toy" in card.text
    assert "memory-bound: Fewer bytes" in card.text and "overhead-bound" not in card.text
