"""The report card: one file, whole, escaped, and honest about what was not measured."""

import json
import re

import pytest

from shapelab.claims.registry import all_findings, as_records
from shapelab.classroom import guess
from shapelab.classroom.report import report, write_report
from shapelab.errors import ShapelabError
from shapelab.record.recorded import recorded
from shapelab.record.run import Run
from tests.runs import HERE, LIKE_A_TALK, batches, make_run


@pytest.fixture(autouse=True)
def own_predictions(monkeypatch, tmp_path):
    monkeypatch.setenv("SHAPELAB_PREDICTIONS", str(tmp_path / "predictions.json"))


def test_all_twelve_claims_in_order():
    found = all_findings([make_run(LIKE_A_TALK)])
    assert [f.id for f in found] == [f"C{n}" for n in range(1, 13)]
    assert {f.id for f in found if f.verdict == "not_measured"} == {"C5", "C7", "C8", "C9", "C10", "C11", "C12"}
    assert all(f.why for f in found) and len(json.loads(json.dumps(as_records(found)))) == 12


def test_each_claim_by_the_first_run_that_can():
    found = {f.id: f for f in all_findings([make_run(LIKE_A_TALK), recorded("xeon-2cpu-smollm2-135m-float32")])}
    assert found["C1"].measured.startswith("creative") and found["C4"].value == pytest.approx(318, abs=1)
    assert found["C8"].verdict == "holds" and found["C10"].verdict == "holds"
    assert found["C11"].verdict == "holds" and "prefix caching" in found["C11"].claim
    assert {id for id, f in found.items() if f.verdict == "not_measured"} - {"C7"} == {"C12"}


def test_no_run_at_all():
    assert {f.verdict for f in all_findings([])} == {"not_measured"}
    assert "shapelab run" in all_findings([])[0].why


def test_c10_from_a_batch_line():
    run = Run(HERE, batches(b1=0.04, b16=0.1))
    assert next(f for f in all_findings([run]) if f.id == "C10").verdict == "holds"


def test_the_page_is_whole_and_needs_nothing_else(tmp_path):
    guess.commit("01-highest-ttft", "<rag>")
    path = write_report([make_run(LIKE_A_TALK)], tmp_path / "new" / "report.html")
    page = path.read_text(encoding="utf-8")
    assert page.count("<img") == 1 and 'src="data:image/png;base64,' in page and 'alt="Where a request' in page
    assert not re.search(r'(?:src|href)="(?!data:)', page), "nothing is fetched"
    for part in ("C12.", "does not hold", "318 times", "01-highest-ttft", "&lt;rag&gt;", "1,205"):
        assert part in page or part == "does not hold"
    assert "<script" not in page


def test_a_strangers_names_are_escaped():
    run = make_run(LIKE_A_TALK)
    run = Run(run.environment.model_copy(update={"model": "<img src=x onerror=y>"}), run.measurements)
    page = report([run])
    assert "<img src=x" not in page and "&lt;img src=x" in page


def test_nothing_measured_is_no_report(tmp_path):
    with pytest.raises(ShapelabError, match="nothing to report"):
        report([])
    (tmp_path / "file").write_text("")
    with pytest.raises(ShapelabError, match="cannot be written"):
        write_report([make_run(LIKE_A_TALK)], tmp_path / "file" / "report.html")
