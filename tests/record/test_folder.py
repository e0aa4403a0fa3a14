"""A folder of runs: one that cannot be read is named and costs nothing, and the newest is the newest."""

import os
import time
from datetime import UTC, datetime

from shapelab.record.folder import new_run_name, runs_in
from shapelab.record.run import Run
from shapelab.request.shape import RequestShape
from tests.runs import HERE, measured


def a_run(measured_at: str) -> Run:
    return Run(HERE.model_copy(update={"measured_at": measured_at}), [measured(RequestShape(5, 3), (0.1, 0.01))])


def test_newest_first_by_the_moment_in_utc(tmp_path):
    moments = {"z": "2025-01-01T10:00:00+02:00", "a": "2025-01-01T09:30:00+00:00", "m": "2025-01-01T08:30:00+00:00"}
    for name, moment in moments.items():
        a_run(moment).save(tmp_path / f"{name}.jsonl")
    runs, problems = runs_in(str(tmp_path))
    assert [run.environment.measured_at for run in runs] == [moments[name] for name in "amz"] and problems == []


def test_what_cannot_be_read_is_named_and_left_out(tmp_path):
    good = a_run("2025-01-01T10:00:00+00:00")
    good.save(tmp_path / "good.jsonl")
    Run(HERE).save(tmp_path / "killed-before-its-first-shape.jsonl")
    (tmp_path / "empty.jsonl").touch()
    (tmp_path / "broken.jsonl").write_text("{")
    (tmp_path / "binary.jsonl").write_bytes(bytes(range(256)))
    (tmp_path / "folder.jsonl").mkdir()
    os.mkfifo(tmp_path / "pipe.jsonl")
    (tmp_path / "lost.jsonl").symlink_to(tmp_path / "nowhere")
    (tmp_path / "picture.png").touch()
    runs, problems = runs_in(tmp_path)
    assert runs == [good]
    names = {path.stem for path in tmp_path.glob("*.jsonl")} - {"good"}
    assert len(names) == len(problems) == 7 and all(any(f"{name}.jsonl" in text for text in problems) for name in names)


def test_an_empty_folder_and_none(tmp_path, monkeypatch):
    assert runs_in(tmp_path) == runs_in(tmp_path / "nowhere") == ([], [])
    monkeypatch.setenv("HOME", str(tmp_path))
    a_run("2025-01-01").save(tmp_path / "runs" / "a.jsonl")
    assert len(runs_in("~/runs")[0]) == 1


def test_names_tell_the_time_in_utc(monkeypatch):
    def now() -> str:
        return f"run-{datetime.now(UTC):%Y%m%dT%H%M%SZ}"

    monkeypatch.setenv("TZ", "Pacific/Kiritimati")  # 14 hours ahead
    time.tzset()
    try:
        before, name, after = now(), new_run_name(), now()
        assert before <= name.rpartition("-")[0] <= after
    finally:
        monkeypatch.undo()
        time.tzset()
