import pytest

from tests.cli.command import parsed, sentence, shapelab

GRID = ["--input", "5,9", "--output", "2", "--batch", "1,2", "--cached", "0,4", "--repeats", "1"]


def test_sweep_measures_the_grid_and_goes_on(toy, tmp_path):
    out = tmp_path / "new" / "s.jsonl"
    first = parsed(shapelab("sweep", *GRID, "--out", out, "--json").stdout)
    assert first.keys() == {"environment", "run_file", "shapes", "skipped"} and first["skipped"] == []
    assert len(first["shapes"]) == 8 and first["shapes"]["4+9x2@2"]["cached_tokens"] == 4
    before = out.read_text()
    assert parsed(shapelab("sweep", *GRID, "--out", out, "--json").stdout)["shapes"] == first["shapes"]
    assert out.read_text() == before


def test_a_sweep_with_other_repeats_into_the_same_file_is_refused(toy, tmp_path):
    sweep = ["sweep", "--input", "5", "--output", "2", "--out", tmp_path / "s.jsonl", "--repeats"]
    assert shapelab(*sweep, "1").exit_code == 0
    result = shapelab(*sweep, "2")
    *_, line = result.stderr.splitlines()
    assert result.exit_code == 1 and result.stdout == "" and line.startswith("shapelab: --out: ") and "s.jsonl" in line


def test_sweep_names_what_it_skipped(toy, tmp_path, monkeypatch):
    monkeypatch.setattr("shapelab.model.memory.memory_available", lambda _: 0)
    result = shapelab("sweep", "--input", "5", "--output", "2", "--out", tmp_path / "s.jsonl")
    assert result.exit_code == 0 and "5x2: " in result.stdout.replace("\n", " ")


@pytest.mark.parametrize("option,value", [("--input", "a"), ("--output", "0"), ("--batch", "1.5"), ("--cached", "-1")])
def test_sweep_refuses_bad_numbers_first(no_load, tmp_path, option, value):
    line = sentence(shapelab("sweep", option, value, "--out", tmp_path / "s.jsonl"))
    assert option in line and value in line and "_tokens" not in line and "batch_size" not in line
    assert list(tmp_path.iterdir()) == []


def test_a_stopped_sweep_names_its_file(toy, tmp_path, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("shapelab.measure.sweep.sweep", stop)
    result = shapelab("sweep", "--out", tmp_path / "s.jsonl")
    assert result.exit_code == 130 and result.stdout == "" and "Traceback" not in result.stderr
    assert str(tmp_path / "s.jsonl") in result.stderr


def test_a_plan_brings_its_shapes_and_repeats(toy, monkeypatch, tmp_path):
    monkeypatch.setattr("shapelab.record.plans.PLANS", {"quick": ("5x2 9x3@2", 2)})
    printed = parsed(shapelab("sweep", "--plan", "quick", "--out", tmp_path / "s.jsonl", "--json").stdout)
    assert printed["shapes"].keys() == {"5x2", "9x3@2"} and printed["shapes"]["5x2"]["repeats"] == 2


@pytest.mark.parametrize("arguments", [["--plan", "long"], ["--plan", "quick", "--batch", "2"]])
def test_a_plan_is_refused_first(no_load, tmp_path, arguments):
    assert "--plan" in sentence(shapelab("sweep", *arguments, "--out", tmp_path / "s.jsonl"))


@pytest.mark.parametrize("target", ["there.jsonl", "new/folder/there.jsonl"])
def test_a_link_is_written_through(toy, tmp_path, target):
    link = tmp_path / "link.jsonl"
    link.symlink_to(tmp_path / target)
    arguments = ["sweep", "--input", "5", "--output", "2", "--repeats", "1", "--out", link]
    assert shapelab(*arguments).exit_code == 0 and shapelab(*arguments).exit_code == 0
    assert link.is_symlink() and "5x2" in (tmp_path / target).read_text()


def test_a_link_in_a_circle_is_no_traceback(toy, tmp_path):
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    result = shapelab("sweep", "--input", "5", "--output", "2", "--repeats", "1", "--out", tmp_path / "loop")
    assert isinstance(result.exception, SystemExit | None), result.exception
