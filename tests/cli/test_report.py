import pytest

from tests.cli.command import sentence, shapelab
from tests.runs import LIKE_A_TALK, make_run


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SHAPELAB_PREDICTIONS", str(tmp_path / "p.json"))


def test_report(no_load, tmp_path):
    assert "Report: card.html" in shapelab("report", "xeon-2cpu-smollm2-135m-float32", "--out", "card.html").stdout
    assert "C12" in (tmp_path / "card.html").read_text()


def test_without_a_run_there_is_no_report(tmp_path):
    sentence(shapelab("report"))
    assert not (tmp_path / "report.html").exists()


def test_a_broken_file_in_the_folder_is_named_and_left_out(tmp_path):
    make_run(LIKE_A_TALK).save(tmp_path / "shapelab-runs" / "good.jsonl")
    (tmp_path / "shapelab-runs" / "empty.jsonl").write_text("")
    result = shapelab("report")
    assert result.exit_code == 0 and "empty.jsonl" in result.stderr and "creative" in (tmp_path / "report.html").read_text()


def test_a_link_is_written_through(tmp_path):
    (tmp_path / "link.html").symlink_to(tmp_path / "card.html")
    assert shapelab("report", "xeon-2cpu-smollm2-135m-float32", "--out", "link.html").exit_code == 0
    assert (tmp_path / "link.html").is_symlink() and "C12" in (tmp_path / "card.html").read_text()
