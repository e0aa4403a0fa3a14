import pytest

from tests.cli.command import parsed, sentence, shapelab
from tests.runs import LIKE_A_TALK, make_run


def test_the_run_and_its_model_predict_alike(no_load, plan_file, tmp_path):
    model_file = tmp_path / "model.json"
    assert shapelab("fit", plan_file, "-o", model_file).exit_code == 0
    shapes = ["1205x24", "25x300@4", "rag", "16x1"]
    from_run = parsed(shapelab("predict", plan_file, *shapes, "--json").stdout)
    assert from_run == parsed(shapelab("predict", model_file, *shapes, "--json").stdout)
    assert [set(entry) for entry in from_run] == [{"shape", "ttft_s", "tpot_s", "total_s", "interval_s", "extrapolates"}] * 4
    first, batch, _, one = from_run
    assert first["shape"] == "1205x24" and first["interval_s"][0] < first["total_s"] < first["interval_s"][1]
    assert first["extrapolates"] is False and batch["shape"] == "25x300@4"
    assert first["total_s"] == pytest.approx(first["ttft_s"] + 23 * first["tpot_s"]) and one["tpot_s"] is None


def test_predict_as_text(plan_file):
    text = " ".join(shapelab("predict", plan_file, "60x80", "32x8@64").stdout.split())
    assert "60x80" in text and "32x8@64 *" in text and "64 batch size, measured up to 16" in text


def test_what_is_no_shape_is_refused_before_a_file_is_read(tmp_path):
    assert "5by5" in sentence(shapelab("predict", tmp_path / "nothing.jsonl", "5by5"))


def test_three_shapes_are_too_few_to_predict_from(no_load, tmp_path):
    run_file = make_run(LIKE_A_TALK).save(tmp_path / "run.jsonl")
    assert "--plan quick" in sentence(shapelab("predict", run_file, "5x5"))
