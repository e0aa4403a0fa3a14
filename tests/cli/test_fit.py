from shapelab.predict.latency import LatencyModel
from shapelab.record.recorded import recorded, recorded_runs
from tests.cli.command import parsed, sentence, shapelab


def test_fit_as_json(no_load, plan_file, tmp_path):
    model_file = tmp_path / "new" / "model.json"
    fitted = parsed(shapelab("fit", plan_file, "-o", model_file, "--json").stdout)
    assert fitted["model_file"] == str(model_file) and fitted["points"] == 26 and model_file.is_file()


def test_fit_as_text(plan_file, tmp_path):
    result = shapelab("fit", plan_file, "-o", tmp_path / "m.json")
    text = " ".join(result.stdout.split())
    assert result.exit_code == 0 and "fixed cost of a pass" in text and "unseen points" in text


def test_only_json_files_hold_models(plan_file, tmp_path):
    assert sentence(shapelab("fit", plan_file, "-o", tmp_path / "m.txt")).startswith("shapelab: --out: ")


def test_a_link_is_written_through(plan_file, tmp_path):
    (tmp_path / "link.json").symlink_to(tmp_path / "m.json")
    assert shapelab("fit", plan_file, "-o", tmp_path / "link.json").exit_code == 0
    assert (tmp_path / "link.json").is_symlink() and (tmp_path / "m.json").is_file()


def test_a_recorded_machine_is_not_passed_off_as_measured(tmp_path):
    name = recorded_runs()[0]
    run_file = recorded(name).save(tmp_path / "mine.jsonl")
    for source, kind in ((name, "recorded"), (str(run_file), "measured")):
        assert parsed(shapelab("fit", source, "--out", str(tmp_path / "m.json"), "--json").stdout)["kind"] == kind
        assert LatencyModel.load(tmp_path / "m.json").kind == kind
