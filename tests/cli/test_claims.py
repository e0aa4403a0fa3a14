import pytest

from tests.cli.command import parsed, sentence, shapelab
from tests.runs import HERE, LIKE_A_TALK, make_run


def test_claims_from_a_recorded_run(no_load):
    claims = parsed(shapelab("claims", "xeon-2cpu-smollm2-135m-float32", "--json").stdout)
    assert [entry["id"] for entry in claims] == [f"C{n}" for n in range(1, 13)]
    assert claims[7]["verdict"] == "holds" and claims[11]["verdict"] == "not_measured"


def test_without_a_run_nothing_is_measured(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert {entry["verdict"] for entry in parsed(shapelab("claims", "--json").stdout)} == {"not_measured"}


def run_at(measured_at: str, chat_ttft_s: float, path):
    """A run in which writing a token of the rag shape takes 10 s more than reading one, times chat_ttft_s."""
    run = make_run({**LIKE_A_TALK, "rag": [(chat_ttft_s, 0.14)] * 2})
    run.environment = HERE.model_copy(update={"measured_at": measured_at})
    return run.save(path)


def test_the_default_folders_newest_run_decides(tmp_path, monkeypatch):
    """The older run has the later file name and the later local time."""
    monkeypatch.chdir(tmp_path)
    run_at("2025-01-01T12:00:00+09:00", 0.530, tmp_path / "shapelab-runs" / "run-z.jsonl")
    run_at("2025-01-01T04:00:00+00:00", 1.205, tmp_path / "shapelab-runs" / "run-a.jsonl")
    assert "140 times" in " ".join(shapelab("claims").stdout.split())


@pytest.mark.parametrize("text", ["", "not JSON [/x]\n", '{"schema_version": 99}\n', "\x00\xff"])
def test_a_broken_file_in_the_folder_is_named_and_left_out(tmp_path, monkeypatch, text):
    monkeypatch.chdir(tmp_path)
    run_at("2025-01-01T12:00:00+00:00", 1.205, tmp_path / "shapelab-runs" / "good.jsonl")
    (tmp_path / "shapelab-runs" / "bad [x].jsonl").write_text(text, encoding="latin-1")
    result = shapelab("claims", "--json")
    assert result.exit_code == 0 and {entry["id"]: entry["verdict"] for entry in parsed(result.stdout)}["C4"] == "holds"
    (line,) = result.stderr.strip().splitlines()
    assert "bad [x].jsonl" in line and "good" not in line


def test_a_broken_file_that_is_asked_for_is_an_error(tmp_path):
    (tmp_path / "bad.jsonl").write_text("")
    assert "bad.jsonl" in sentence(shapelab("claims", tmp_path / "bad.jsonl"))
