"""Tables of runs, models, findings and frames: the digits that matter, and whose numbers they are."""

import pandas as pd

from shapelab.claims.registry import findings
from shapelab.classroom.tables import claims_table, facts, frame_table, regimes_table, shapes_table, terms_table
from shapelab.record.run import Run
from shapelab.request.shape import RequestShape
from shapelab.theory.roofline import Floor, verdict
from tests.runs import HERE, LIKE_A_TALK, MODEL, make_run


def test_shapes_table():
    shapes = {"rag [long]": RequestShape(1000, 5, 8), "7x1": RequestShape(7, 1), "w [/x]": RequestShape(25, 2)}
    table = shapes_table(make_run({name: [(0.5, 0.1)] * 2 for name in shapes}, **shapes))
    assert table.rows == (
        ("rag [long] (1000x5@8)", "1,000", "5", "0.500", "100.0", "0.90", "16,000", "80.0", "56%"),
        ("7x1", "7", "1", "0.500", "-", "0.50", "14", "-", "100%"),
        ("w [/x]", "25", "2", "0.500", "100.0", "0.60", "50", "10.0", "83%"),
    )
    assert table.numbers == set(range(1, 9)) and HERE.label in table.title and "2 repeats" in table.note


def test_a_run_without_shapes():
    assert shapes_table(Run(HERE, [])).rows == ()


def test_claims_table():
    found = findings(make_run(LIKE_A_TALK))
    table = claims_table(found)
    assert "predicted" not in table.headings, "nothing was predicted"
    assert [row[0][:3] for row in table.rows] == [f"{f.id}." for f in found]
    assert "predicted" in claims_table(findings(make_run(LIKE_A_TALK), machine=MODEL)).headings
    assert claims_table([]).rows == ()


def test_frame_table():
    frame = pd.DataFrame({"name": ["<b>", "nan"], "a value": [1.2345, None], "whole": [True, False], "name 2": [7, 8]})
    table = frame_table(frame, "a <note>", {"a value": ".2f", "name": ">8", "name 2": ",.1f"})
    assert table.headings == ("name", "a value", "whole", "name 2") and table.note == "a <note>"
    assert table.rows == (("<b>", "1.23", "True", "7.0"), ("nan", "-", "False", "8.0"))
    twice = pd.DataFrame([[1.25, 2.5]], columns=["same", "same"])
    assert frame_table(twice, "").rows == (("1.25", "2.5"),), "columns of one name are still two"


def test_terms_table():
    table = terms_table(MODEL)
    frame = MODEL.to_frame()
    assert len(table.rows) == len(frame) and [row[1] for row in table.rows] == list(frame["term"])
    assert [row[2] == "-" for row in table.rows] == list(frame["from"].isna()) and table.numbers == {2, 3}
    assert float(table.rows[0][3].replace(",", "")) == round(MODEL.prefill.fixed_s * 1e6)
    assert MODEL.environment.label in table.title


def test_regimes_table():
    table = regimes_table(
        {"step": verdict("decode", 0.04, Floor(0.001, 0.02), 0.008), "few": verdict("prefill", 0.07, Floor(0.01, 0.015), 0.001)},
        "toy",
    )
    assert table.rows[0] == ("step", "40.0", "1.0 (2%)", "20.0 (50%)", "8.0 (20%)", "30%", "memory-bound")
    assert table.rows[1][-1] == "memory-bound, not clearly" and "toy" in table.title
    assert "memory-bound" in table.note and "overhead-bound" not in table.note, "help for what was found, and for nothing else"


def test_facts():
    table = facts(
        {"a_name": 1234.5678, "none": None, "not a number": float("nan"), "text": "<b>", "more": {"x_y": 0.5, "n": None}}
    )
    assert table.rows == (
        ("a name", "1,235"), ("none", "-"), ("not a number", "-"), ("text", "<b>"), ("more", "x_y 0.5, n -"),
    )  # fmt: skip
