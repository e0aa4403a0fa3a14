"""A saved run comes back whole, and a stranger's file is believed in nothing: file and line are named."""

import dataclasses
import json
import subprocess
import sys
from pathlib import Path

import pytest

from shapelab.errors import BadArgument, BadFile, CannotWrite
from shapelab.record import metrics
from shapelab.record import run as record
from shapelab.record.environment import GpuState, LocalMachine
from shapelab.record.machine_ceilings import Limits
from shapelab.record.measurement import Measurement, Repeat, Request, Skipped
from shapelab.record.run import Run, Settings, check_that_it_can_be_saved
from shapelab.request.shape import RequestShape

MS = 1_000_000
HERE = LocalMachine(
    device="a CPU", device_kind="cpu", model="toy", weights="random", weight_dtype="float32", compute_dtype="float32", threads=2, cpus_usable=1.5,
    torch="2", transformers="5", python="3.11", shapelab="0.1.0", system="Linux x86_64", measured_at="2025-01-01T00:00:00+00:00",
)  # fmt: skip
GPU = GpuState(sm_clock_mhz=1980, temperature_c=41, power_w=312.5, energy_j=1000.25)


def a_run(name="rag") -> Run:
    """One shape on a CPU with a stamp a pass, one with events, one with one output token."""
    passes = [Repeat(index=n, order=n, host_ns=(0, 100 * MS, 110 * MS, (120 + n) * MS), output_tokens=3) for n in (1, 2, 3)]
    events = Repeat(
        index=1, order=4, host_ns=(7, 104 * MS, 150 * MS), event_s=(0.1, 0.11, 0.12, 0.13), output_tokens=4,
        peak_memory_bytes=10**9, gpu_before=GPU, gpu_after=GPU.model_copy(update={"energy_j": 1012.75}),
    )  # fmt: skip
    one = Repeat(index=1, order=5, host_ns=(0, 50 * MS), output_tokens=1, per_step_sync=True)
    return Run(
        HERE,
        [
            Measurement(name=name, input_tokens=50, output_tokens=3, repeats=tuple(passes)),
            Measurement(name="events", input_tokens=9, output_tokens=4, batch_size=2, cached_tokens=5, repeats=(events,)),
            Measurement(name="one", input_tokens=9, output_tokens=1, repeats=(one,)),
        ],
    )


def written(tmp_path, change=lambda header, line: None):
    """A good file, changed: `change` gets the header and the first measurement as dictionaries."""
    path = a_run().save(tmp_path / "run.jsonl")
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    change(lines[0], lines[1])
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_a_run_comes_back_as_it_was_saved(tmp_path):
    run = a_run()
    back = Run.load(run.save(tmp_path / "new" / "folder" / "run.jsonl"))
    assert back == run
    assert back["events"].repeats[0].gpu_after.energy_j == 1012.75
    assert back.names == ["rag", "events", "one"] and "one" in back and "two" not in back
    with pytest.raises(KeyError, match="it holds rag, events, one"):
        back["two"]


LIMITS = Limits(memory_read_bytes_per_s=3e10, flops_per_s=4e11, overhead_s=0.006, measured_at="2026-11-30")


def test_the_machines_limits_come_back(tmp_path):
    run = a_run()
    run.limits = LIMITS
    assert Run.load(run.save(tmp_path / "r.jsonl")) == run
    later = a_run()
    later.add(LIMITS, later.save(tmp_path / "l.jsonl"))
    assert Run.load(tmp_path / "l.jsonl") == run and run.limits.device.bytes_per_s == 3e10


@pytest.mark.parametrize(
    "wrong", [{"flops_per_s": 0}, {"overhead_s": -1}, {"memory_read_bytes_per_s": float("inf")}, {"more": 1}]
)
def test_bad_limits(tmp_path, wrong):
    path = a_run().save(tmp_path / "r.jsonl")
    with path.open("a") as file:
        file.write(json.dumps({"limits": LIMITS.model_dump() | wrong}) + "\n")
    with pytest.raises(BadFile, match=rf"line 5: limits.{next(iter(wrong))}"):
        Run.load(path)


def test_frame():
    frame = a_run().to_frame().set_index("name")
    rag, events, one = (frame.loc[name] for name in ("rag", "events", "one"))
    assert (rag.ttft_s, rag.tpot_s, rag.total_s) == pytest.approx((0.1, 0.011, 0.122))
    assert rag.prefill_tokens_per_s == pytest.approx(500) and rag.decode_tokens_per_s == pytest.approx(2 / 0.022)
    assert rag.total_interval_s == pytest.approx((0.121, 0.123))
    assert (rag.interval_kind, rag.repeats) == ("range", 3)
    assert (events.batch_size, events.cached_tokens, events.peak_memory_bytes) == (2, 5, 10**9)
    assert events.energy_j == 12.5 and events.host_overhead_s == pytest.approx(0.020, abs=1e-6)
    assert one.isna()[["tpot_s", "decode_tokens_per_s", "tpot_interval_s", "energy_j"]].all() and one.ttft_s == 0.05


def test_interval_kind_and_drift_reach_the_frame():
    repeats = [Repeat(index=n, order=n, host_ns=(0, n * MS, n * MS), output_tokens=2) for n in (10, 11, 12, 13, 14, 15)]
    backwards = tuple(reversed(repeats))
    frame = Run(HERE, [Measurement(name="m", input_tokens=1, output_tokens=2, repeats=backwards)]).to_frame()
    assert frame.interval_kind[0] == "bootstrap 90 %"
    assert "slower" in frame.drift[0], "drift follows the order measured, not the order in the file"


def test_html_escapes_a_hostile_name():
    html = a_run(name="<script>alert(1)</script>")._repr_html_()
    assert "<script>" not in html and "&lt;script&gt;" in html
    assert "ttft_s" in html and "nan" not in html.lower()


def refused(path, *words, line=None):
    """The file is named, and the line, and what in it is wrong."""
    with pytest.raises(BadFile) as caught:
        Run.load(path)
    assert caught.value.line == line
    for word in (str(path), *words):
        assert word in str(caught.value)


def test_another_schema_version(tmp_path):
    refused(written(tmp_path, lambda header, _: header.update(schema_version=3)), "version 3", line=1)


def test_an_empty_file(tmp_path):
    (tmp_path / "run.jsonl").write_text("\n \n")
    refused(tmp_path / "run.jsonl", "is empty")


def test_a_header_and_no_more(tmp_path):
    path = written(tmp_path)
    path.write_text(path.read_text().partition("\n")[0])
    refused(path, "no measurement")


@pytest.mark.parametrize(
    "line", ["hello", '{"a": 1', "[" * 100_000, '{"a":' * 100_000, "1" * 5_000], ids=["text", "cut", "deep", "deeper", "digits"]
)
def test_not_json(tmp_path, line):
    path = written(tmp_path)
    path.write_text(path.read_text() + line + "\n")
    refused(path, "not JSON", line=5)


@pytest.mark.parametrize("line", ["[1, 2]", "1", "null", '"text"'])
def test_json_but_no_object(tmp_path, line):
    (tmp_path / "run.jsonl").write_text("\n" + line)
    refused(tmp_path / "run.jsonl", "object was expected", line=2)


def test_a_line_too_long(tmp_path, monkeypatch):
    monkeypatch.setattr(record, "LARGEST_LINE", 5000)
    path = written(tmp_path)
    path.write_text(path.read_text() + " " * 5001)
    refused(path, "longer than 5,000 characters", line=5)


@pytest.mark.parametrize("missing", ["schema_version", "environment", "device", "threads"])
def test_a_missing_field_of_the_header(tmp_path, missing):
    def change(header, _):
        header.pop(missing, None)
        header.get("environment", {}).pop(missing, None)

    refused(written(tmp_path, change), missing, line=1)


@pytest.mark.parametrize("missing", ["measurement", "input_tokens", "repeats", "host_ns"])
def test_a_missing_field_of_a_measurement(tmp_path, missing):
    def change(_, line):
        for place in (line, line["measurement"], line["measurement"]["repeats"][0]):
            place.pop(missing, None)

    refused(written(tmp_path, change), missing, line=2)


@pytest.mark.parametrize("place", ["header", "environment", "line", "measurement", "repeat"])
def test_an_unknown_field(tmp_path, place):
    def change(header, line):
        places = {
            "header": header,
            "environment": header["environment"],
            "line": line,
            "measurement": line["measurement"],
            "repeat": line["measurement"]["repeats"][0],
        }
        places[place]["code"] = "import os"

    refused(written(tmp_path, change), "code", line=1 if place in ("header", "environment") else 2)


NAN, INFINITY = float("nan"), float("inf")


@pytest.mark.parametrize(
    "field,value",
    [
        *[(name, value) for name in ("threads", "cpus_usable") for value in (-1, NAN, INFINITY)],
        ("device_kind", "tpu"),
        ("device", "x" * 5_001),
        ("device", 5),
    ],
)
def test_bad_values_of_the_environment(tmp_path, field, value):
    refused(written(tmp_path, lambda header, _: header["environment"].update({field: value})), field, line=1)


@pytest.mark.parametrize("value", [-1, 0, NAN, INFINITY, 1.5, 10**9, None, "many"])
@pytest.mark.parametrize("field", ["input_tokens", "output_tokens", "batch_size"])
def test_bad_counts(tmp_path, field, value):
    refused(written(tmp_path, lambda _, line: line["measurement"].update({field: value})), field, line=2)


def test_no_repeats(tmp_path):
    refused(written(tmp_path, lambda _, line: line["measurement"].update(repeats=[])), "repeats", line=2)


@pytest.mark.parametrize(
    "values,word",
    [
        ({"host_ns": [0, 3, 2, 4]}, "backwards"),
        ({"host_ns": [-5, 1, 2, 3]}, "host_ns.0"),
        ({"host_ns": [0, 1, 2, NAN]}, "host_ns.3"),
        ({"host_ns": [0, 1, 2, INFINITY]}, "host_ns.3"),
        ({"host_ns": [0, 1, 2, 10**400]}, "host_ns.3"),
        ({"host_ns": [0, 1, 2, 3, 4]}, "do not fit 3 output tokens"),
        ({"host_ns": []}, "do not fit"),
        ({"output_tokens": 7}, "do not fit 7 output tokens"),
        ({"output_tokens": 0}, "output_tokens"),
        ({"event_s": [0.1, 0.2]}, "2 events do not fit"),
        ({"event_s": [0.1, 0.3, 0.2]}, "backwards"),
        ({"event_s": [-0.1, 0.2, 0.3]}, "event_s.0"),
        ({"event_s": [0.1, NAN, 0.3]}, "event_s.1"),
        ({"event_s": [0.1, 0.2, INFINITY]}, "event_s.2"),
        ({"peak_memory_bytes": -1}, "peak_memory_bytes"),
        ({"gpu_before": {"power_w": NAN}}, "gpu_before.power_w"),
        ({"gpu_before": {"power_w": -1}}, "gpu_before.power_w"),
        ({"gpu_after": {"energy_j": -1}}, "gpu_after.energy_j"),
    ],
)
def test_bad_repeats(tmp_path, values, word):
    refused(written(tmp_path, lambda _, line: line["measurement"]["repeats"][1].update(values)), "repeats.1", word, line=2)


def test_binary_bytes(tmp_path):
    (tmp_path / "run.jsonl").write_bytes(bytes(range(256)))
    refused(tmp_path / "run.jsonl", "cannot be read")


def test_a_folder_and_nothing_at_all(tmp_path):
    refused(tmp_path, "cannot be read")
    refused(tmp_path / "nowhere.jsonl", "cannot be read", "No such file")


def test_a_path_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    for path in (tmp_path, tmp_path / "file" / "run.jsonl"):
        with pytest.raises(CannotWrite):
            a_run().save(path)


def test_a_measurement_says_what_it_is():
    assert repr(a_run()["rag"]) == "<rag 50x3: TTFT 0.100 s, total 0.122 s, 3 repeats>"
    assert a_run().environment.label == "toy (random weights), float32, a CPU"


def test_names_must_differ(tmp_path):
    run = a_run()
    run.measurements.append(run.measurements[0])
    refused(run.save(tmp_path / "run.jsonl"), "'rag'", line=5)


def test_a_strangers_words_are_cut_and_made_printable(tmp_path):
    path = written(tmp_path, lambda header, _: header["environment"].update({"\x1b[31m" + "x" * 1000: 1}))
    with pytest.raises(BadFile) as caught:
        Run.load(path)
    assert "\x1b" not in str(caught.value) and len(str(caught.value)) < 400 + len(str(path))


def test_a_run_is_a_few_lines():
    text = repr(a_run())
    assert text.startswith("<Run of 3 shapes: toy") and text.count("\n") == 3 and "host_ns" not in text


def test_along_one_number():
    shapes = ["64x8", "16x8", "256x8", "64x8@2", "64x8@4", "64x99", "512+64x8", "9x9", "9x9@2"]
    repeat = Repeat(index=1, order=0, host_ns=(0, MS, 2 * MS), output_tokens=8)
    many = Repeat(index=1, order=0, host_ns=(0, MS, 2 * MS), output_tokens=99)
    nine = Repeat(index=1, order=0, host_ns=(0, MS, 2 * MS), output_tokens=9)
    found = []
    for text in shapes:
        shape = RequestShape.parse(text)
        fitting = {8: repeat, 99: many, 9: nine}[shape.output_tokens]
        found.append(Measurement(name=text, **dataclasses.asdict(shape), repeats=(fitting,)))
    run = Run(HERE, found)
    assert [m.name for m in run.along("input_tokens")] == ["16x8", "64x8", "256x8"]
    assert [m.name for m in run.along("batch_size")] == ["64x8", "64x8@2", "64x8@4"]
    assert [m.name for m in run.along("cached_tokens")] == ["64x8", "512+64x8"]
    assert [m.name for m in run.along("output_tokens")] == ["64x8", "64x99"]
    assert Run(HERE).along("batch_size") == []


SKIPPED = Skipped(
    name="9x9", input_tokens=9, output_tokens=9, outcome="does_not_fit", reason="Too large.", decided_at="2025-01-01"
)
NINE = Measurement(
    name="9x9", input_tokens=9, output_tokens=9, repeats=(Repeat(index=1, order=0, host_ns=(0, 1, 2), output_tokens=9),)
)


def test_a_shape_that_was_skipped_and_then_measured_is_measured(tmp_path):
    run, path = Run(HERE), tmp_path / "r.jsonl"
    run.save(path)
    for entry in (SKIPPED, SKIPPED.model_copy(update={"reason": "Still."}), NINE):
        run.add(entry, path)
        assert Run.load(path, unfinished=True) == run
    assert len(path.read_text().splitlines()) == 4 and run.skipped == [] and run.names == ["9x9"]
    run.add(SKIPPED, path)
    refused(path, "9x9", line=5)


def test_settings_come_back(tmp_path):
    run = Run(HERE, a_run().measurements, settings=Settings(repeats=3, seed=2**62))
    assert Run.load(run.save(tmp_path / "r.jsonl")) == run
    for wrong in ({"repeats": 0}, {"seed": -1}, {"seed": 2**63}, {"more": 1}):
        path = written(tmp_path, lambda header, _, wrong=wrong: header.update(settings={"repeats": 1, "seed": 1} | wrong))
        refused(path, f"settings.{next(iter(wrong))}", line=1)


DONE = Request(input_tokens=100, output_tokens=50, arrival_ns=5, host_ns=(10, 20, 30, 45), written_tokens=3)
LOST = Request(input_tokens=7, output_tokens=9, cached_tokens=64, arrival_ns=6, outcome="failed", reason="503")
CUT = Request(
    input_tokens=7, output_tokens=9, arrival_ns=6, host_ns=(7, 8, 9), written_tokens=5, outcome="cancelled", reason="timeout"
)


def test_requests_of_different_shapes_stand_in_one_run(tmp_path):
    run, path = Run(HERE, requests=[DONE, LOST]), tmp_path / "r.jsonl"
    run.save(path)
    run.add(CUT, path)
    back = Run.load(path)
    assert back == run and back.requests == [DONE, LOST, CUT] and back.measurements == []
    assert [metrics.queue_s(r.timeline) for r in back.requests if r.timeline] == [5e-9, 1e-9]
    assert metrics.ttft_from_arrival_s(back.requests[0].timeline) == 15e-9 and metrics.ttft_s(back.requests[0].timeline) == 10e-9
    assert LOST.timeline is None and CUT.timeline.shape == RequestShape(7, 5)


@pytest.mark.parametrize(
    "wrong,word",
    [
        ({"host_ns": [10, 20, 30, 25]}, "backwards"),
        ({"host_ns": [10, 20, 30, 35, 40]}, "do not fit 3"),
        ({"arrival_ns": 11}, "arrives"),
        ({"arrival_ns": -1}, "arrival_ns"),
        ({"written_tokens": 0}, "no stamps"),
        ({"written_tokens": 0, "host_ns": []}, "at least one token"),
        ({"written_tokens": 51}, "more tokens than it asked for"),
        ({"outcome": "failed"}, "reason"),
        ({"outcome": "fine"}, "outcome"),
        ({"more": 1}, "more"),
        ({"input_tokens": 0}, "input_tokens"),
    ],
)
def test_bad_requests(tmp_path, wrong, word):
    path = a_run().save(tmp_path / "r.jsonl")
    with path.open("a") as file:
        file.write(json.dumps({"request": DONE.model_dump() | wrong}) + "\n")
    refused(path, word, line=5)


def test_a_line_holds_one_thing(tmp_path):
    path = a_run().save(tmp_path / "r.jsonl")
    for line in ({}, {"request": None}, {"request": DONE.model_dump(), "limits": LIMITS.model_dump()}):
        path.write_text(a_run().save(path).read_text() + json.dumps(line) + "\n")
        refused(path, "one", line=5)


LAST = 2**63 - 1


def worst(repeats: int, tokens: int) -> Run:
    """Stamps, events and sensors as long as they can be written."""
    gpu = GpuState(sm_clock_mhz=1 / 3e3, temperature_c=-1 / 3e3, power_w=1 / 3e3, energy_j=1e9 / 3)
    stamps = tuple(range(LAST - tokens, LAST + 1))
    events = tuple(1e-5 / 3 + i * 1e-7 / 7 for i in range(tokens))
    all_of_them = tuple(
        Repeat(
            index=n, order=10**9, host_ns=stamps, event_s=events, output_tokens=tokens, kv_cache_bytes=10**15,
            peak_memory_bytes=10**15, gpu_before=gpu, gpu_after=gpu,
        )
        for n in range(repeats)
    )  # fmt: skip
    return Run(HERE, [Measurement(name="w", input_tokens=1, output_tokens=tokens, repeats=all_of_them)])


@pytest.mark.parametrize("repeats,tokens", [(1, 1), (3, 300), (300, 1)])
def test_what_may_be_asked_for_can_be_read(tmp_path, monkeypatch, repeats, tokens):
    path = worst(repeats, tokens).save(tmp_path / "r.jsonl")
    line = path.read_text().splitlines()[1]
    monkeypatch.setattr(record, "LARGEST_LINE", len(line) - 1)
    refused(path, "longer", line=2)
    with pytest.raises(BadArgument):
        check_that_it_can_be_saved(RequestShape(1, tokens), repeats)


@pytest.mark.slow
@pytest.mark.parametrize("repeats,tokens", [(250, 1_000), (1_000, 1_000), (1, 100_000)])
def test_the_largest_run_that_is_asked_for(tmp_path, repeats, tokens):
    check_that_it_can_be_saved(RequestShape(1, tokens), repeats)
    run = worst(repeats, tokens)
    assert Run.load(run.save(tmp_path / "r.jsonl")) == run


def test_a_failed_write_leaves_no_half_line(tmp_path, monkeypatch):
    path, run = tmp_path / "r.jsonl", a_run()
    before = run.save(path).read_text()

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("shapelab.record.run.os.fsync", full)
    with pytest.raises(CannotWrite):
        run.add(NINE, path)
    assert path.read_text() == before


ADDED = """
import sys
from shapelab.record.run import Run
from tests.runs import measured
from shapelab.request.shape import RequestShape
run = Run.load(sys.argv[1])
for number in range(1, 21):
    run.add(measured(RequestShape(number, 600), (0.1, 0.01), name=f"{sys.argv[2]}{number}", per_pass=True), sys.argv[1])
"""


def test_two_processes_that_add_at_once_leave_a_readable_file(tmp_path):
    path = a_run().save(tmp_path / "r.jsonl")
    root = Path(__file__).resolve().parents[2]
    both = [subprocess.Popen([sys.executable, "-c", ADDED, str(path), name], cwd=root) for name in "ab"]
    assert [process.wait() for process in both] == [0, 0]
    assert len(Run.load(path).names) == 3 + 40


def test_names_are_shown_whole_and_none_is_obeyed():
    run = a_run("[x] $a$ <b>" + "y" * 200 + "\x1b[31m\n")
    for text in (repr(run), repr(run.measurements[0])):
        assert "[x] $a$ <b>" + "y" * 200 + "\\x1b[31m\\n" in text and "\x1b" not in text
    page = run._repr_html_()
    assert "[x] $a$ &lt;b&gt;" + "y" * 200 in page and "mathjax_ignore" in page
