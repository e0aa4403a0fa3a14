"""Names from files and users stand in the terminal as they are, whatever rich would read in them."""

import pytest

from shapelab.record.measurement import Skipped
from shapelab.record.run import Run
from tests.cli.command import shapelab
from tests.runs import HERE, RUN, make_run

NAMES = ("rag [long]", "w [/x]", "[red]x", ":cat: [bold]", "a\\[b]")
MACHINE = "a [/machine] :cat:"


@pytest.fixture(params=NAMES)
def name(request):
    return request.param


@pytest.fixture
def named(name):
    """The quick plan's run; its machine and its first shapes have names that look like markup."""
    here = HERE.model_copy(update={"device": MACHINE, "model": name})
    first = RUN.measurements[0].model_copy(update={"name": name})
    return Run(
        here,
        [first, *RUN.measurements[1:]],
        [Skipped(name=name, outcome="does_not_fit", reason="too [/large]", input_tokens=1, output_tokens=1)],
    )


@pytest.fixture
def run_file(named, tmp_path):
    """In a folder whose name looks like markup, too."""
    folder = tmp_path / "[red]f [x] :cat:"
    named.skipped.clear()
    return named.save(folder / "run.jsonl")


def flat(result) -> str:
    assert result.exit_code == 0, result.output
    assert "Traceback" not in result.output
    return " ".join(result.stdout.split())


def test_fit(run_file, name):
    shown = flat(shapelab("fit", run_file, "-o", run_file.parent / "m.json"))
    assert name in shown and MACHINE in shown and f"Model: {run_file.parent / 'm.json'}" in shown


def test_predict(run_file, name):
    shown = flat(shapelab("predict", run_file, "60x80", "32x8@64"))
    assert name in shown and MACHINE in shown


def test_cost(run_file, name):
    shown = flat(shapelab("cost", "60x80", "--usd-per-hour", "1", "--run", run_file))
    assert name in shown and MACHINE in shown


def test_claims(tmp_path, name):
    """Shapes that differ in one number decide C5 and C8, and are named there."""
    from shapelab.request.shape import RequestShape

    points = {name: RequestShape(100, 10), "more": RequestShape(1100, 10), "many": RequestShape(100, 210)}
    run = make_run({"chat": [(0.1, 0.1)] * 2} | {key: [(0.1, 0.1)] * 2 for key in points}, **points)
    assert name in flat(shapelab("claims", run.save(tmp_path / "run.jsonl")))


def test_report(run_file, tmp_path, monkeypatch):
    monkeypatch.setenv("SHAPELAB_PREDICTIONS", str(tmp_path / "p.json"))
    card = run_file.parent / "card.html"
    assert f"Report: {card}" in flat(shapelab("report", run_file, "--out", card)) and card.is_file()


def test_run(toy, named, name, monkeypatch, tmp_path):
    monkeypatch.setattr("shapelab.measure.experiment.measure_shapes", lambda *_, **__: named)
    shown = flat(shapelab("run", "--no-limits", "--out", tmp_path / "[/o]"))
    assert shown.count(name) >= 2 and MACHINE in shown and f"Run: {tmp_path / '[/o]'}" in shown


def test_drift(toy, name, monkeypatch, tmp_path):
    slower = make_run({name: [(0.1, 0.1 * 2**n) for n in range(6)]}, **{name: RUN.measurements[0].shape})
    monkeypatch.setattr("shapelab.measure.experiment.measure_shapes", lambda *_, **__: slower)
    assert slower.measurements[0].drift
    assert f"Drift in {name}:" in flat(shapelab("run", "--no-limits", "--out", tmp_path))


def test_sweep(toy, named, name, monkeypatch, tmp_path):
    monkeypatch.setattr("shapelab.measure.sweep.sweep", lambda *_, **__: named)
    shown = flat(shapelab("sweep", "--out", tmp_path / "[/o].jsonl"))
    assert name in shown and f"{name}: too [/large]" in shown and "[/o].jsonl" in shown


def test_doctor(bench, name, monkeypatch):
    report = {"environment": {"device": name}, "ceilings": {"x": 1.0}, "choice": {"why": name}, "problems": [f"Bad: {name}"]}
    monkeypatch.setattr("shapelab.measure.doctor.examine", lambda: report)
    assert flat(shapelab("doctor")).count(name) == 3


def test_models(name, monkeypatch):
    entry = {"name": name, "parameters": 1, "weight_bytes_fp32": 1, "weight_bytes_16_bit": 1, "cached": True}
    monkeypatch.setattr("shapelab.model.catalogue.catalogue", lambda: [{**entry, "about": "", "source": name}])
    assert flat(shapelab("models")).count(name) == 3


@pytest.mark.parametrize(
    "command", [["claims", "{}"], ["report", "{}"], ["predict", "{}", "5x5"], ["fit", "{}", "-o", "m.json"], ["cost", "{}"]]
)
def test_errors(name, command):
    result = shapelab(*(word.format(name) for word in command))
    assert result.exit_code == 1 and name.replace("\\", "\\\\") in result.stderr.replace(name, name.replace("\\", "\\\\"))


def test_errors_of_usage(name):
    result = shapelab(name)
    assert result.exit_code == 2 and repr(name) in result.stderr


def test_control_characters_are_written_out(toy, monkeypatch, tmp_path):
    name = "a\x1b[31mb\x07"
    run = make_run({name: [(0.1, 0.1 * 2**n) for n in range(6)]}, **{name: RUN.measurements[0].shape})
    monkeypatch.setattr("shapelab.measure.experiment.measure_shapes", lambda *_, **__: run)
    result = shapelab("run", "--no-limits", "--out", tmp_path)
    assert result.exit_code == 0 and "\x1b" not in result.output and "Drift in a\\x1b[31mb\\x07:" in result.stdout
