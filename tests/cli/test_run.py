import datetime
from pathlib import Path

import matplotlib.figure
import pytest

from shapelab.errors import CannotWrite
from shapelab.record.run import Run
from shapelab.request.shape import RequestShape
from tests.cli.command import noted_lab, parsed, sentence, shapelab
from tests.runs import make_run

ENVIRONMENT = {
    "kind",
    "weight_dtype",
    "compute_dtype",
    "device",
    "device_kind",
    "model",
    "weights",
    "threads",
    "torch",
    "transformers",
    "python",
    "shapelab",
}
SHAPE = {
    "input_tokens", "output_tokens", "batch_size", "ttft_s", "tpot_s", "decode_s", "total_s", "prefill_tokens_per_s",
    "decode_tokens_per_s", "prefill_share", "ttft_interval_s", "tpot_interval_s", "total_interval_s", "interval_kind", "repeats",
}  # fmt: skip
CLAIM = {"id", "reported", "measured", "verdict", "why"}


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """`run --json` of the three presets, twice each."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("shapelab.model.load.load", noted_lab)
        return shapelab("run", "--json", "--repeats", 2, "--out", tmp_path_factory.mktemp("out") / "new")


def test_json_is_one_object_with_every_key(measured):
    assert measured.exit_code == 0
    result = parsed(measured.stdout)
    assert result.keys() >= {"environment", "run_file", "figure_file", "shapes", "claims"}
    assert result["environment"].keys() >= ENVIRONMENT
    assert list(result["shapes"]) == ["chat", "rag", "creative"]
    for shape in result["shapes"].values():
        assert shape.keys() >= SHAPE and None not in [shape[key] for key in SHAPE]
    assert result["limits"].keys() == {"memory_read_bytes_per_s", "flops_per_s", "overhead_s", "measured_at"}
    assert [claim["id"] for claim in result["claims"]] == ["C1", "C2", "C3", "C4", "C6", "C7"]
    for claim in result["claims"]:
        assert claim.keys() >= CLAIM and claim["verdict"] in ("holds", "does_not_hold")


def test_json_says_what_was_measured(measured):
    result = parsed(measured.stdout)
    here, rag = result["environment"], result["shapes"]["rag"]
    assert (here["model"], here["weights"], here["weight_dtype"]) == ("toy-llama", "random", "float64")
    assert (rag["input_tokens"], rag["output_tokens"], rag["batch_size"], rag["repeats"]) == (1205, 24, 1, 2)
    assert rag["interval_kind"] == "range"
    assert rag["ttft_interval_s"][0] <= rag["ttft_s"] <= rag["ttft_interval_s"][1]
    assert rag["ttft_s"] + rag["decode_s"] == pytest.approx(rag["total_s"])
    assert rag["prefill_share"] == pytest.approx(rag["ttft_s"] / rag["total_s"], rel=0.5)


def test_notes_and_progress_go_to_stderr(measured):
    assert "A note [/x]." in measured.stderr and "creative 25x300" in measured.stderr


def test_the_files_are_there(measured):
    result = parsed(measured.stdout)
    assert Run.load(result["run_file"])["rag"].summary()["ttft_s"] == result["shapes"]["rag"]["ttft_s"]
    assert Path(result["figure_file"]).read_bytes().startswith(b"\x89PNG")


def test_a_runs_file_is_named_by_the_hour_in_utc(measured):
    run_file = Path(parsed(measured.stdout)["run_file"])
    saved = datetime.datetime.strptime(run_file.name.split("-")[1], "%Y%m%dT%H%M%S%z")
    assert abs(datetime.datetime.fromtimestamp(run_file.stat().st_mtime, datetime.UTC) - saved) < datetime.timedelta(minutes=10)


def test_the_table_fits_80_columns(toy, monkeypatch, tmp_path):
    points = {"chat": [(0.1, 1.3007)], "rag": [(10.071, 1.3)], "creative": [(0.01, 1.31)]}
    others = {"512+64x32@4": [(0.0114, 0.00213)], "7x1": [(0.05, 0)]}
    run = make_run(points | others, **{name: RequestShape.parse(name) for name in others})
    monkeypatch.setattr("shapelab.measure.experiment.measure_shapes", lambda *_, **__: run)
    result = shapelab("run", "--out", tmp_path)
    assert result.exit_code == 0 and "…" not in result.stdout
    *lines, run_line, picture_line = result.stdout.rstrip().splitlines()
    assert max(map(len, lines)) <= 80
    rows = {line.split()[0]: line.split()[1:] for line in lines if line.split()[1:2]}
    assert rows["rag"] == ["1,205", "24", "10.071", "1300.0", "39.97", "120", "0.8", "25%"]
    assert rows["512+64x32@4"] == ["64", "32", "0.011", "2.1", "0.08", "22,456", "1,877.9", "15%"]
    assert rows["7x1"] == ["7", "1", "0.050", "-", "0.05", "140", "-", "100%"]
    assert {"chat", "creative", "C1", "C2", "C3", "C4", "C6", "reported:", "why:"} <= rows.keys()
    assert Path(run_line.split()[-1]).is_file() and Path(picture_line.split()[-1]).is_file()


def test_a_claim_without_its_shape_is_not_measured(toy, tmp_path):
    result = parsed(shapelab("run", "--json", "--repeats", 2, "--shapes", "rag", "--out", tmp_path).stdout)
    verdicts = {claim["id"]: claim["verdict"] for claim in result["claims"]}
    assert verdicts["C1"] == verdicts["C2"] == verdicts["C6"] == "not_measured" != verdicts["C3"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["--shapes", "12"],
        ["--shapes", "[/x]"],
        ["--shapes", "0x4"],
        ["--shapes", "rag,rag"],
        ["--shapes", ","],
        ["--dtype", "int8"],
        ["--dtype", "fp16", "--device", "cpu"],
        ["--device", "tpu"],
        ["--device", "meta"],
        ["--model", "tinyllama:randomly"],
    ],
)
def test_what_cannot_be_run_is_refused_before_the_model_is_loaded(no_load, tmp_path, arguments):
    assert arguments[1] in sentence(shapelab("run", "--model", "tinyllama:random", *arguments, "--out", tmp_path)) or (
        arguments[1] in ("0x4", ",", "fp16", "rag,rag")
    )


@pytest.mark.parametrize("arguments", [["--repeats", 0], ["--repeats", "many"], ["--seed", -1]])
def test_bad_numbers_are_refused(no_load, tmp_path, arguments):
    result = shapelab("run", *arguments, "--out", tmp_path)
    assert result.exit_code == 2 and isinstance(result.exception, SystemExit) and result.stdout == ""
    assert arguments[0].strip("-") in result.stderr and "Traceback" not in result.stderr


@pytest.mark.parametrize("out", ["file", "file/below"])
def test_a_folder_that_cannot_be_written_is_refused_first(no_load, tmp_path, out):
    (tmp_path / "file").write_text("")
    line = sentence(shapelab("run", "--out", tmp_path / out))
    assert str(tmp_path / out) in line and "--out" in line


@pytest.mark.parametrize("name", ["x" * 300, "x" * 300 + ":random", "no/such-model [/x]", ""])
def test_a_model_name_that_leads_nowhere_is_a_sentence(tmp_path, name):
    assert name.removesuffix(":random") in sentence(shapelab("run", "--model", name, "--out", tmp_path))


def test_a_shape_too_long_for_the_model_is_refused(toy, tmp_path):
    result = shapelab("run", "--shapes", "chat,2040x9", "--out", tmp_path)
    assert result.exit_code == 1 and "2040x9" in result.stderr and "Traceback" not in result.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def small(toy, tmp_path):
    """The arguments of a run of one small shape, into a folder with a long name in brackets."""
    out = tmp_path / "[out]" / ("long-" * 20)
    return ["run", "--repeats", 1, "--no-limits", "--shapes", "9x2", "--out", out], out


def test_paths_are_shown_whole(small):
    arguments, out = small
    assert f"Run:     {out}" in shapelab(*arguments).stdout


def test_what_is_measured_is_kept_elsewhere_when_saving_fails(small, monkeypatch, tmp_path):
    arguments, out = small
    elsewhere = tmp_path / ("elsewhere-" * 10)
    elsewhere.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(elsewhere))
    real = Run.save

    def full(self, path):
        if path.parent == out:
            raise CannotWrite(f"The run cannot be written to {path} (No space left on device).")
        return real(self, path)

    monkeypatch.setattr(Run, "save", full)
    result = shapelab(*arguments, "--json")
    assert result.exit_code == 0
    run_file = parsed(result.stdout)["run_file"]
    assert elsewhere in Path(run_file).parents and Run.load(run_file).names == ["9x2"]
    assert run_file in result.stderr and "No space left" in result.stderr


def test_a_picture_that_cannot_be_written_loses_only_itself(small, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(matplotlib.figure.Figure, "savefig", full)
    result = shapelab(*small[0], "--json")
    printed = parsed(result.stdout)
    assert result.exit_code == 0 and printed["figure_file"] is None and Run.load(printed["run_file"])
    assert "No space left" in result.stderr
    assert "None" not in shapelab(*small[0]).stdout


def test_too_many_threads_are_named(small, monkeypatch):
    monkeypatch.setattr("torch.get_num_threads", lambda: 64)
    monkeypatch.setattr("shapelab.computer.cpus_usable", lambda *_: 2)
    result = shapelab(*small[0], "--json")
    assert "OMP_NUM_THREADS=2" in result.stderr and result.exit_code == 0


def test_limits_that_cannot_be_measured_lose_only_themselves(small, monkeypatch):
    def fail(lab):
        raise RuntimeError("no [hollow] twin")

    monkeypatch.setattr("shapelab.measure.overhead.measure_limits", fail)
    result = shapelab(*(argument for argument in small[0] if argument != "--no-limits"), "--json")
    assert result.exit_code == 0 and parsed(result.stdout)["limits"] is None and "no [hollow] twin" in result.stderr


def test_a_folder_that_is_a_link_is_written_through(toy, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "not" / "yet")
    assert shapelab("run", "--shapes", "5x2", "--repeats", "1", "--no-limits", "--out", link).exit_code == 0
    assert link.is_symlink() and list((tmp_path / "not" / "yet").glob("run-*.jsonl"))
