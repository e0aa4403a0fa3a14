"""The command as a person or a script meets it: one JSON object on stdout, sentences on stderr, nothing lost."""

import dataclasses
import json
from pathlib import Path

import matplotlib.figure
import pytest
from typer.testing import CliRunner

from shapelab.cli import app
from shapelab.errors import ShapelabError
from shapelab.measure.ceilings import Ceilings
from shapelab.model import embedded
from shapelab.record.run import Run
from shapelab.request.shape import RequestShape
from shapelab.theory.model_spec import known_models
from tests.runs import make_run
from tests.toys import toy_lab

ENVIRONMENT = {
    "device",
    "device_kind",
    "weight_dtype",
    "compute_dtype",
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
PLAIN = {"COLUMNS": "80", "NO_COLOR": "1", "FORCE_COLOR": None, "TERM": "dumb"}


def shapelab(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments], env=PLAIN)


def parsed(text):
    """Strict JSON: NaN and Infinity, which Python would let pass, are errors."""
    return json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))


def sentence(result, *words):
    """The command ended with exit code 1, one line on stderr, and nothing on stdout."""
    assert result.exit_code == 1 and isinstance(result.exception, SystemExit)
    assert result.stdout == "" and "Traceback" not in result.stderr
    (line,) = result.stderr.strip().splitlines()
    for word in words:
        assert word in line


def noted_lab(*_):
    """A toy that takes 1,205 tokens, with a note that a careless printer would read as markup."""
    return dataclasses.replace(toy_lab(max_position_embeddings=2048, num_hidden_layers=1), notes=("A note [/x].",))


@pytest.fixture
def toy(monkeypatch):
    monkeypatch.setattr("shapelab.model.load.load", noted_lab)


@pytest.fixture
def no_load(monkeypatch):
    monkeypatch.setattr("shapelab.model.load._load", lambda *_: pytest.fail("the model was loaded first"))


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """`run --json` of the three presets, twice each."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("shapelab.model.load.load", noted_lab)
        return shapelab("run", "--json", "--repeats", 2, "--out", tmp_path_factory.mktemp("out") / "new")


def test_json_is_one_object_with_every_key(measured):
    assert measured.exit_code == 0
    found = parsed(measured.stdout)
    assert found.keys() >= {"environment", "run_file", "figure_file", "shapes", "claims"}
    assert found["environment"].keys() >= ENVIRONMENT
    assert list(found["shapes"]) == ["chat", "rag", "creative"]
    for shape in found["shapes"].values():
        assert shape.keys() >= SHAPE and None not in [shape[key] for key in SHAPE]
    assert found["limits"].keys() == {"memory_read_bytes_per_s", "flops_per_s", "overhead_s", "measured_at"}
    assert [claim["id"] for claim in found["claims"]] == ["C1", "C2", "C3", "C4", "C6", "C7"]
    for claim in found["claims"]:
        assert claim.keys() >= CLAIM and claim["verdict"] in ("holds", "does_not_hold")


def test_json_says_what_was_measured(measured):
    found = parsed(measured.stdout)
    here, rag = found["environment"], found["shapes"]["rag"]
    assert (here["model"], here["weights"], here["weight_dtype"], here["device_kind"]) == (
        "toy-llama",
        "random",
        "float64",
        "cpu",
    )
    assert (rag["input_tokens"], rag["output_tokens"], rag["batch_size"], rag["repeats"]) == (1205, 24, 1, 2)
    assert rag["interval_kind"] == "range"
    assert rag["ttft_interval_s"][0] <= rag["ttft_s"] <= rag["ttft_interval_s"][1]
    assert rag["ttft_s"] + rag["decode_s"] == pytest.approx(rag["total_s"])
    assert rag["prefill_share"] == pytest.approx(rag["ttft_s"] / rag["total_s"], rel=0.5)


def test_notes_and_progress_go_to_stderr(measured):
    assert "A note [/x]." in measured.stderr and "creative 25x300" in measured.stderr


def test_the_files_are_there(measured):
    found = parsed(measured.stdout)
    assert Run.load(found["run_file"])["rag"].summary()["ttft_s"] == found["shapes"]["rag"]["ttft_s"]
    assert Path(found["figure_file"]).read_bytes().startswith(b"\x89PNG")


def test_the_table_fits_80_columns(toy, monkeypatch, tmp_path):
    points = {"chat": [(0.1, 1.3007)], "rag": [(10.071, 1.3)], "creative": [(0.01, 1.31)]}
    others = {"512+64x32@4": [(0.0114, 0.00213)], "7x1": [(0.05, 0)]}
    run = make_run(points | others, **{name: RequestShape.parse(name) for name in others})
    run.environment = run.environment.model_copy(update={"model": "a [/model]"})
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
    assert "Measured: a [/model] (random weights), float32, a machine" in result.stdout
    assert Path(run_line.split()[-1]).is_file() and Path(picture_line.split()[-1]).is_file()


def test_a_claim_without_its_shape_is_not_measured(toy, tmp_path):
    found = parsed(shapelab("run", "--json", "--repeats", 1, "--shapes", "rag", "--out", tmp_path).stdout)
    verdicts = {claim["id"]: claim["verdict"] for claim in found["claims"]}
    assert verdicts["C1"] == verdicts["C2"] == verdicts["C6"] == "not_measured" != verdicts["C3"]


@pytest.mark.parametrize(
    "arguments,word",
    [
        (["--shapes", "12"], "[CACHED+]INxOUT[@BATCH]"),
        (["--shapes", "[/x]"], "'[/x]' is not a shape"),
        (["--shapes", "0x4"], "input_tokens must be a whole number of at least 1"),
        (["--shapes", "rag,rag"], "twice"),
        (["--shapes", ","], "No shapes"),
        (["--dtype", "int8"], "not a dtype"),
        (["--dtype", "fp16", "--device", "cpu"], "float32 or bfloat16"),
        (["--device", "tpu"], "not a device"),
        (["--device", "meta"], "no meta device"),
        (["--model", "tinyllama:randomly"], "write tinyllama:random"),
    ],
)
def test_what_cannot_be_run_is_refused_before_the_model_is_loaded(no_load, tmp_path, arguments, word):
    sentence(shapelab("run", *arguments, "--out", tmp_path), word)


@pytest.mark.parametrize("arguments", [["--repeats", 0], ["--repeats", "many"], ["--seed", -1]])
def test_bad_numbers_are_refused(no_load, tmp_path, arguments):
    result = shapelab("run", *arguments, "--out", tmp_path)
    assert result.exit_code == 2 and isinstance(result.exception, SystemExit) and result.stdout == ""
    assert "Invalid value" in result.stderr and arguments[0].strip("-") in result.stderr and "Traceback" not in result.stderr


@pytest.mark.parametrize("out", ["file", "file/below"])
def test_a_folder_that_cannot_be_written_is_refused_first(no_load, tmp_path, out):
    (tmp_path / "file").write_text("")
    sentence(shapelab("run", "--out", tmp_path / out), str(tmp_path / out), "--out")


@pytest.mark.parametrize("name", ["x" * 300, "x" * 300 + ":random", "no/such-model [/x]", ""])
def test_a_model_name_that_leads_nowhere_is_a_sentence(tmp_path, name):
    sentence(shapelab("run", "--model", name, "--out", tmp_path), name.removesuffix(":random"))


def test_a_shape_too_long_for_the_model_is_refused(toy, tmp_path):
    result = shapelab("run", "--shapes", "chat,2040x9", "--out", tmp_path)
    assert result.exit_code == 1 and "Shorten it by 1 token" in result.stderr and "Traceback" not in result.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def quick(toy, tmp_path):
    """The arguments of a run of one small shape, into a folder with a long name in brackets."""
    out = tmp_path / "[out]" / ("long-" * 20)
    return ["run", "--repeats", 1, "--shapes", "9x2", "--out", out], out


def test_paths_are_shown_whole(quick):
    arguments, out = quick
    assert f"Run:     {out}" in shapelab(*arguments).stdout


def test_what_is_measured_is_kept_elsewhere_when_saving_fails(quick, monkeypatch, tmp_path):
    arguments, out = quick
    elsewhere = tmp_path / ("elsewhere-" * 10)
    elsewhere.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(elsewhere))
    real = Run.save

    def full(self, path):
        if path.parent == out:
            raise ShapelabError(f"The run cannot be written to {path} (No space left on device).")
        return real(self, path)

    monkeypatch.setattr(Run, "save", full)
    result = shapelab(*arguments, "--json")
    assert result.exit_code == 0
    found = parsed(result.stdout)
    assert elsewhere in Path(found["run_file"]).parents and list(Run.load(found["run_file"]).names) == ["9x2"]
    assert f"It was kept in {found['run_file']} instead." in result.stderr and "No space left" in result.stderr


def test_a_picture_that_cannot_be_written_loses_only_itself(quick, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(matplotlib.figure.Figure, "savefig", full)
    result = shapelab(*quick[0], "--json")
    found = parsed(result.stdout)
    assert result.exit_code == 0 and found["figure_file"] is None and Run.load(found["run_file"])
    assert "picture could not be written" in result.stderr
    assert "None" not in shapelab(*quick[0]).stdout


def test_ctrl_c_is_no_traceback(quick, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("shapelab.measure.experiment.measure_shapes", stop)
    result = shapelab(*quick[0])
    assert result.exit_code == 130 and result.stdout == "" and "Traceback" not in result.stderr
    assert "nothing was kept" in result.stderr


@pytest.fixture
def bench(monkeypatch, tmp_path):
    """A machine whose ceilings are known at once and whose cache is an empty folder with a name in brackets."""
    monkeypatch.setattr("shapelab.measure.doctor.measure_ceilings", lambda *_: Ceilings(12.5, {"float32": 1e11}))
    monkeypatch.setenv("SHAPELAB_CACHE", str(tmp_path / "[cache]"))
    return tmp_path / "[cache]"


def test_doctor_as_json(bench):
    result = shapelab("doctor", "--json")
    assert result.exit_code == 0
    found = parsed(result.stdout)
    assert found.keys() == {"environment", "ceilings", "choice", "problems"}
    assert found["ceilings"] == {"memory_read_gb_per_s": 12.5, "matmul_flops_per_s": {"float32": 1e11}}
    assert found["choice"]["model"] in ("smollm2-135m", "tinyllama") and found["choice"]["why"].endswith(".")
    assert found["environment"]["threads"] >= 1 and found["environment"]["memory_available_gb"] > 0


def test_doctor_as_text(bench, monkeypatch):
    monkeypatch.setattr("shapelab.measure.doctor.problems", lambda *_: [])
    assert "this machine is ready" in shapelab("doctor").stdout
    monkeypatch.setattr("shapelab.measure.doctor.problems", lambda *_: ["The folder [/x] is full."])
    text = shapelab("doctor").stdout
    assert "The folder [/x] is full." in text and "ready" not in text
    for word in ("environment", "ceilings", "choice", "12.5"):
        assert word in "".join(text.split())


def test_doctor_names_what_is_wrong(bench, monkeypatch):
    monkeypatch.setattr("torch.get_num_threads", lambda: 64)
    monkeypatch.setattr("shapelab.measure.environment.cpus_usable", lambda *_: 2)
    monkeypatch.setattr("shapelab.measure.doctor.memory_available", lambda _: 5e8)
    monkeypatch.setattr("shapelab.measure.doctor.shutil.disk_usage", lambda _: type("D", (), {"free": 1e8})())
    monkeypatch.setattr("shapelab.measure.doctor.importlib.util.find_spec", lambda _: None)
    monkeypatch.setattr("transformers.__version__", "4.40.0")
    problems = parsed(shapelab("doctor", "--json").stdout)["problems"]
    for word in ("OMP_NUM_THREADS=2", "0.5 GB of memory", "uv pip install pip", "0.1 GB of disk", "transformers 4.40.0"):
        assert sum(word in problem for problem in problems) == 1
    assert len(problems) == 5


def test_models(bench):
    result = shapelab("models")
    assert result.exit_code == 0
    for word in ("smollm2-135m", "smollm2-135m:random", "tinyllama:random", "1,100 M", "135 M", "0.54 GB", "2.20 GB"):
        assert word in result.stdout
    assert f"Cache: {bench}\n" in result.stdout


def test_models_as_json(bench):
    found = {entry["name"]: entry for entry in parsed(shapelab("models", "--json").stdout)}
    assert list(found)[:4] == ["smollm2-135m", "smollm2-135m:random", "tinyllama", "tinyllama:random"]
    assert set(found) == {*known_models(), "smollm2-135m:random", "tinyllama:random"}
    assert found["llama-3-70b"]["source"] == "hub: meta-llama/Meta-Llama-3-70B" and "licence" in found["llama-3-70b"]["about"]
    assert (found["tinyllama"]["parameters"], found["tinyllama"]["weight_bytes_16_bit"]) == (1_100_048_384, 2_200_096_768)
    assert found["smollm2-135m"]["cached"] is False
    embedded.folder().mkdir(parents=True)
    assert parsed(shapelab("models", "--json").stdout)[0]["cached"] is True


def test_clearing_removes_what_is_ours_and_nothing_else(bench):
    ours = [embedded.folder(), bench / "smollm2-135m-01234567-r0", bench / ".making-abc"]
    theirs = [bench / "photos", bench / "smollm2-135m-my-results"]
    notes = [bench / "notes.txt", bench / "smollm2-135m-notes.txt"]
    for folder in (*ours, *theirs):
        folder.mkdir(parents=True)
        (folder / "file").write_text("x" * 10_000_000)
    for file in notes:
        file.write_text("mine")
    result = shapelab("models", "--clear")
    assert result.exit_code == 0 and f"Removed 0.03 GB from {bench}." in result.stdout
    assert not any(folder.exists() for folder in ours)
    assert set(bench.iterdir()) == {*theirs, *notes}
    assert all((folder / "file").is_file() for folder in theirs)


def test_clearing_an_empty_cache(bench):
    assert "Removed 0.00 GB" in shapelab("models", "--clear").stdout


@pytest.mark.parametrize(
    "command,word",
    [
        ([], "doctor"),
        (["run"], "--shapes"),
        (["doctor"], "--json"),
        (["models"], "--clear"),
        (["sweep"], "--plan"),
        (["fit"], "--out"),
        (["predict"], "RUN|MODEL.json"),
        (["cost"], "--prices"),
        (["claims"], "--json"),
        (["report"], "--out"),
    ],
)
def test_every_command_has_help(command, word):
    result = shapelab(*command, "--help")
    assert result.exit_code == 0 and word in result.stdout


def test_no_command_is_without_a_test_of_its_help():
    assert sorted(command.callback.__name__ for command in app.registered_commands) == [
        "claims_command",
        "cost",
        "doctor",
        "fit",
        "models",
        "predict",
        "report",
        "run",
        "sweep",
    ]


def test_too_many_threads_are_said(toy, tmp_path, monkeypatch):
    monkeypatch.setattr("torch.get_num_threads", lambda: 64)
    monkeypatch.setattr("shapelab.measure.environment.cpus_usable", lambda *_: 2)
    result = shapelab("run", "--shapes", "5x2", "--repeats", "1", "--out", str(tmp_path), "--json")
    assert "OMP_NUM_THREADS=2" in result.stderr and result.exit_code == 0


def test_sweep_measures_the_grid_and_goes_on(toy, tmp_path):
    out = tmp_path / "new" / "s.jsonl"
    numbers = (
        "sweep",
        "--input",
        "5,9",
        "--output",
        "2",
        "--batch",
        "1,2",
        "--cached",
        "0,4",
        "--repeats",
        "1",
        "--out",
        str(out),
    )
    found = parsed(shapelab(*numbers, "--json").stdout)
    assert found.keys() == {"environment", "run_file", "shapes", "skipped"} and found["skipped"] == []
    assert len(found["shapes"]) == 8 and found["shapes"]["4+9x2@2"]["cached_tokens"] == 4
    before = out.read_text()
    assert parsed(shapelab(*numbers, "--json").stdout)["shapes"] == found["shapes"]
    assert out.read_text() == before


def test_sweep_says_what_it_skipped(toy, tmp_path, monkeypatch):
    monkeypatch.setattr("shapelab.measure.memory.memory_available", lambda _: 0)
    result = shapelab("sweep", "--input", "5", "--output", "2", "--out", str(tmp_path / "s.jsonl"))
    assert result.exit_code == 0 and "5x2: The shape 5x2 does not fit" in result.stdout.replace("\n", " ")


@pytest.mark.parametrize(
    "arguments,word",
    [
        (["--input", "a"], "whole numbers"),
        (["--output", "0"], "at least 1"),
        (["--batch", "1.5"], "whole numbers"),
        (["--cached", "-1"], "at least 0"),
    ],
)
def test_sweep_refuses_bad_numbers_first(no_load, tmp_path, arguments, word):
    sentence(shapelab("sweep", *arguments, "--out", str(tmp_path / "s.jsonl")), word)


def test_a_stopped_sweep_says_that_it_goes_on(toy, tmp_path, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("shapelab.measure.sweep.sweep", stop)
    result = shapelab("sweep", "--out", str(tmp_path / "s.jsonl"))
    assert result.exit_code == 130 and "goes on from there" in result.stderr and "Traceback" not in result.stderr


@pytest.mark.parametrize("trouble", [KeyboardInterrupt(), RuntimeError("no memory")])
def test_trouble_with_the_limits_loses_nothing(toy, tmp_path, monkeypatch, trouble):
    def fail(_):
        raise trouble

    monkeypatch.setattr("shapelab.measure.overhead.measure_limits", fail)
    result = shapelab("run", "--shapes", "5x2", "--repeats", 1, "--out", tmp_path, "--json")
    assert result.exit_code == 0 and "C7 stays open" in result.stderr
    assert parsed(result.stdout)["limits"] is None and Run.load(parsed(result.stdout)["run_file"]).names == ["5x2"]


def test_limits_are_kept_with_the_run_and_may_be_left_out(toy, tmp_path):
    result = parsed(shapelab("run", "--shapes", "5x2", "--repeats", 1, "--out", tmp_path, "--json").stdout)
    assert Run.load(result["run_file"]).limits.model_dump() == result["limits"]
    result = parsed(shapelab("run", "--shapes", "5x2", "--repeats", 1, "--out", tmp_path, "--json", "--no-limits").stdout)
    assert result["limits"] is None


def test_a_plan_brings_the_limits_once(toy, tmp_path, monkeypatch):
    monkeypatch.setattr("shapelab.record.plans.PLANS", {"quick": ("5x2 9x3@2", 2)})
    for _ in range(2):
        assert shapelab("sweep", "--plan", "quick", "--out", tmp_path / "s.jsonl").exit_code == 0
    assert (tmp_path / "s.jsonl").read_text().count('"limits"') == 1 and Run.load(tmp_path / "s.jsonl").limits


def test_sweep_by_a_plan(toy, tmp_path, monkeypatch):
    monkeypatch.setattr("shapelab.record.plans.PLANS", {"quick": ("5x2 9x3@2", 2)})
    found = parsed(shapelab("sweep", "--plan", "quick", "--out", str(tmp_path / "s.jsonl"), "--json").stdout)
    assert found["shapes"].keys() == {"5x2", "9x3@2"} and found["shapes"]["5x2"]["repeats"] == 2


@pytest.mark.parametrize(
    "arguments,word",
    [(["--plan", "long"], "choose one of quick, full"), (["--plan", "quick", "--batch", "2"], "brings its own shapes")],
)
def test_a_plan_is_refused_first(no_load, tmp_path, arguments, word):
    sentence(shapelab("sweep", *arguments, "--out", str(tmp_path / "s.jsonl")), word)


@pytest.fixture(scope="module")
def plan_file(tmp_path_factory):
    """A run of the quick plan on a planted machine."""
    from tests.runs import RUN

    return str(RUN.save(tmp_path_factory.mktemp("plan") / "quick.jsonl"))


def test_fit_and_predict_from_the_run_and_from_the_model_agree(no_load, plan_file, tmp_path):
    model_file = str(tmp_path / "new" / "model.json")
    fitted = parsed(shapelab("fit", plan_file, "-o", model_file, "--json").stdout)
    assert fitted["model_file"] == model_file and fitted["points"] == 26
    wanted = ["1205x24", "25x300@4", "rag", "16x1"]
    from_run = parsed(shapelab("predict", plan_file, *wanted, "--json").stdout)
    assert from_run == parsed(shapelab("predict", model_file, *wanted, "--json").stdout)
    assert [set(entry) for entry in from_run] == [{"shape", "ttft_s", "tpot_s", "total_s", "interval_s", "extrapolates"}] * 4
    first, batch, _, one = from_run
    assert first["shape"] == "1205x24" and first["interval_s"][0] < first["total_s"] < first["interval_s"][1]
    assert first["extrapolates"] is False and batch["shape"] == "25x300@4"
    assert first["total_s"] == pytest.approx(first["ttft_s"] + 23 * first["tpot_s"]) and one["tpot_s"] is None


def test_fit_and_predict_as_text(plan_file, tmp_path):
    fitted = shapelab("fit", plan_file, "-o", str(tmp_path / "m.json"))
    assert fitted.exit_code == 0
    said = " ".join(fitted.stdout.split())
    assert "fixed cost of a pass" in said and "unseen points" in said
    shown = shapelab("predict", plan_file, "60x80", "32x8@64").stdout
    assert (
        "60x80" in shown and "32x8@64 *" in shown and "extrapolates: 64 batch size, measured up to 16" in shown.replace("\n", " ")
    )


@pytest.mark.parametrize(
    "arguments,word",
    [
        (["fit", "nothing.jsonl", "-o", "m.json"], "cannot be read"),
        (["fit", "nothing.jsonl", "-o", "m.txt"], "ends in .json"),
        (["predict", "nothing.jsonl", "5x5"], "cannot be read"),
        (["predict", "nothing.json", "5x5"], "cannot be read"),
        (["predict", "nothing.jsonl", "5by5"], "is not a shape"),
    ],
)
def test_fit_and_predict_refuse_with_a_sentence(no_load, tmp_path, monkeypatch, arguments, word):
    monkeypatch.chdir(tmp_path)
    sentence(shapelab(*arguments), word)


def test_three_shapes_are_too_few_to_predict_from(no_load, measured, tmp_path):
    from tests.runs import LIKE_A_TALK

    path = make_run(LIKE_A_TALK).save(tmp_path / "run.jsonl")
    sentence(shapelab("predict", str(path), "5x5"), "too few", "--plan quick")


def test_cost_at_public_prices(no_load):
    found = parsed(shapelab("cost", "1205x24", "--prices", "gpt-4.1", "--json").stdout)
    assert found["usd_per_request"] == pytest.approx((1205 * 2 + 24 * 8) / 1e6)
    assert (found["usd_per_million_input_tokens"], found["usd_per_million_output_tokens"]) == (2, 8)
    assert found["as_of"].startswith("2025") and found["source"].startswith("https://")
    cached = parsed(shapelab("cost", "1000+205x24", "--prices", "gpt-4.1", "--json").stdout)
    assert cached["usd_per_request"] == pytest.approx((205 * 2 + 1000 * 0.5 + 24 * 8) / 1e6)
    shown = shapelab("cost", "rag", "--prices", "gpt-4.1").stdout
    assert found["as_of"] in shown and "check them" in shown


def test_cost_above_a_tier_shows_the_tiers_prices(no_load):
    found = parsed(shapelab("cost", "300000x1000", "--prices", "gemini-2.5-pro", "--json").stdout)
    assert found["usd_per_request"] == pytest.approx((300_000 * 2.5 + 1000 * 15) / 1e6)
    assert (found["usd_per_million_input_tokens"], found["usd_per_million_output_tokens"]) == (2.5, 15)


def test_cost_on_a_machine(no_load, plan_file):
    arguments = ("cost", "256x17@4", "--usd-per-hour", "0.35", "--run", plan_file)
    found = parsed(shapelab(*arguments, "--json").stdout)
    total = parsed(shapelab("predict", plan_file, "256x17@4", "--json").stdout)[0]["total_s"]
    assert found["usd_per_request"] == pytest.approx(total * 0.35 / 3600 / 4)
    assert found["as_of"] == "2025-01-01" and found["usd_per_million_output_tokens"] > found["usd_per_million_input_tokens"]
    half = parsed(shapelab(*arguments, "--utilisation", "0.5", "--json").stdout)
    assert half["usd_per_request"] == pytest.approx(2 * found["usd_per_request"])
    assert "predicted time" in shapelab(*arguments).stdout


@pytest.mark.parametrize(
    "arguments,word",
    [
        ([], "Give either --prices"),
        (["--prices", "gpt-4.1", "--run", "x"], "Give either --prices"),
        (["--run", "x"], "needs both"),
        (["--usd-per-hour", "1"], "needs both"),
        (["--prices", "nobody"], "no price for 'nobody'"),
        (["--prices", "list"], "gpt-4.1"),
        (["--usd-per-hour", "1", "--run", "nothing.jsonl"], "cannot be read"),
        (["--usd-per-hour", "1", "--run", "xeon-2cpu-smollm2-135m-float32", "--utilisation", "2"], "utilisation is a share"),
    ],
)
def test_cost_refuses_with_a_sentence(no_load, arguments, word):
    sentence(shapelab("cost", "5x5", *arguments), word)


def test_claims_from_runs(no_load, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = parsed(shapelab("claims", "xeon-2cpu-smollm2-135m-float32", "--json").stdout)
    assert [entry["id"] for entry in found] == [f"C{n}" for n in range(1, 13)]
    assert found[7]["verdict"] == "holds" and found[11]["verdict"] == "not_measured"
    none = parsed(shapelab("claims", "--json").stdout)
    assert {entry["verdict"] for entry in none} == {"not_measured"}
    from tests.runs import LIKE_A_TALK

    make_run(LIKE_A_TALK).save(tmp_path / "shapelab-runs" / "run.jsonl")
    assert "318 times" in " ".join(shapelab("claims").stdout.split()), "the default folder's runs"


def test_report(no_load, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SHAPELAB_PREDICTIONS", str(tmp_path / "p.json"))
    sentence(shapelab("report"), "nothing to report")
    assert "Report: card.html" in shapelab("report", "xeon-2cpu-smollm2-135m-float32", "--out", "card.html").stdout
    assert "C12" in (tmp_path / "card.html").read_text()
    sentence(shapelab("report", "nothing.jsonl"), "cannot be read")
