"""The report card: one file, whole, escaped, and honest about what was not measured."""

import html
import re

import pytest

from shapelab.classroom import guess
from shapelab.classroom.report import SHOWN, report, write_report
from shapelab.errors import CannotWrite, NotEnoughMeasured
from shapelab.record.environment import Server
from shapelab.record.run import Run
from shapelab.request.shape import RequestShape
from tests.runs import HERE, LIKE_A_TALK, make_run


@pytest.fixture(autouse=True)
def own_predictions(monkeypatch, tmp_path):
    monkeypatch.setenv("SHAPELAB_PREDICTIONS", str(tmp_path / "predictions.json"))


def test_the_page_is_whole_and_needs_nothing_else(tmp_path):
    guess.commit("01-highest-ttft", "<rag>")
    path = write_report([make_run(LIKE_A_TALK)], tmp_path / "new" / "report.html")
    page = path.read_text(encoding="utf-8")
    assert page.count("<img") == 1 and 'src="data:image/png;base64,' in page and 'alt="Where a request' in page
    assert not re.search(r'(?:src|href)="(?!data:)', page), "nothing is fetched"
    for part in ("C12.", "318 times", "01-highest-ttft", "&lt;rag&gt;", "1,205"):
        assert part in page
    assert "<script" not in page


@pytest.mark.parametrize("name", ["<img src=x onerror=y>", "rag [long] $x$ &amp;", "w [/x]"])
def test_a_strangers_names_are_shown_as_they_are(name):
    run = make_run({name: [(0.5, 0.1)] * 2}, **{name: RequestShape(1000, 5)})
    here = HERE.model_copy(update={field: f"{field} {name}" for field in ("model", "device", "torch", "python")})
    page = report([Run(here, run.measurements)])
    for text in (name, *(f"{field} {name}" for field in ("model", "device", "torch", "python"))):
        assert html.escape(text) in page
    assert "<img src=x" not in page


def test_an_empty_run_among_others_is_left_out():
    assert report([make_run({}), make_run(LIKE_A_TALK), make_run({})]).count("<img") == 1


def test_a_server_is_a_machine_too():
    here = Server(url="https://host:8000", model="toy", shapelab="0.1.0", measured_at=HERE.measured_at)
    page = report([Run(here, make_run(LIKE_A_TALK).measurements)])
    assert here.label in page and here.versions in page


def test_as_many_bars_as_can_be_read():
    """The picture stops at SHOWN shapes, the table does not."""
    names = [f"shape {number}" for number in range(SHOWN + 1)]
    run = make_run({name: [(0.5, 0.1)] for name in names}, **{name: RequestShape(1000, 5) for name in names})
    page = report([run])
    picture = page[page.index("<img") : page.index("src=")]
    assert names[-2] in picture and names[-1] not in picture and f">{names[-1]}<" in page


@pytest.mark.parametrize("runs", [[], [make_run({})]])
def test_nothing_measured_is_no_report(runs, tmp_path):
    with pytest.raises(NotEnoughMeasured):
        write_report(runs, tmp_path / "report.html")
    assert not list(tmp_path.iterdir())


def test_a_page_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CannotWrite):
        write_report([make_run(LIKE_A_TALK)], tmp_path / "file" / "report.html")


def test_a_link_is_written_through(tmp_path):
    (tmp_path / "link.html").symlink_to(tmp_path / "page.html")
    write_report([make_run(LIKE_A_TALK)], tmp_path / "link.html")
    assert (tmp_path / "link.html").is_symlink() and "C12." in (tmp_path / "page.html").read_text(encoding="utf-8")
