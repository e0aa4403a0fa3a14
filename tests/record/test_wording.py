"""What the rooms of files and records say when they refuse: one sentence, with what would work. Nothing else tests their words."""

import json

import pytest

from shapelab.errors import ShapelabError
from shapelab.files import locked, user_path, write_text_atomically
from shapelab.record.measurement import Skipped
from shapelab.record.plans import plan_shapes
from shapelab.record.recorded import recorded
from shapelab.record.run import Run, Settings, check_that_it_can_be_saved
from shapelab.request.shape import RequestShape
from tests.runs import HERE, measured

ONE = measured(RequestShape(5, 3), (0.1, 0.01), name="w")


def load(*lines):
    def call(folder):
        (folder / "r.jsonl").write_text("".join(line if isinstance(line, str) else json.dumps(line) + "\n" for line in lines))
        Run.load(folder / "r.jsonl")

    return call


HEADER = {"schema_version": 2, "environment": HERE.model_dump()}
LINE = {"measurement": ONE.model_dump()}


@pytest.mark.parametrize(
    "call,text",
    [
        (load(), "r.jsonl is empty. `shapelab run` writes a run."),
        (load(HEADER), "r.jsonl holds no measurement. If a sweep was stopped early, the same command continues it."),
        (load({"schema_version": 3}), "r.jsonl has schema version 3 and this shapelab reads up to 2. Update shapelab, or measure again."),
        (load({"schema_version": "\x1b" * 999}), "schema version '" + r"\x1b" * 29),
        (load(HEADER, "{]\n"), "r.jsonl, line 2: not JSON. Was the file cut off?"),
        (load(HEADER, LINE, LINE), "r.jsonl, line 3: 'w' was measured before. Delete one of the two lines."),
        (load(HEADER, {"limits": {"flops_per_s": 1}}), "r.jsonl, line 2: limits.memory_read_bytes_per_s: Field required."),
        (load(HEADER, {"measurement": LINE["measurement"] | {"batch_size": 0}}), "line 2: measurement.batch_size: Input should be greater"),
        (lambda _: Run.load("nowhere.jsonl"), "nowhere.jsonl cannot be read: No such file or directory."),
        (lambda folder: Run.load(folder), "cannot be read: Is a directory."),
        (lambda folder: write_text_atomically(folder, "x"), " cannot be written (Is a directory). Choose another file, or make room."),
        (lambda _: user_path("~nobody-of-this-name/c"), "There is no home folder for ~nobody-of-this-name/c. Write the path without ~."),
        (lambda _: Settings.of(0, 0), "repeats must be a whole number of at least 1, not 0."),
        (lambda _: Settings.of(1, -1), "seed must be a whole number of at least 0, not -1."),
        (
            lambda _: check_that_it_can_be_saved(RequestShape(5, 5000), 1000),
            "repeats=1,000 of 5x5000 make more time stamps than a run's file can hold. Ask for fewer repeats or tokens.",
        ),
        (lambda _: plan_shapes("long", 99), "There is no plan 'long'; choose one of quick, full."),
        (lambda _: recorded("nobody"), "There is no recorded run 'nobody'; choose one of xeon-2cpu"),
    ],
)  # fmt: skip
def test_a_sentence(call, text, tmp_path):
    with pytest.raises(ShapelabError) as caught:
        call(tmp_path)
    assert text in str(caught.value) and "--" not in str(caught.value)


def test_a_file_that_somebody_writes(tmp_path):
    from filelock import FileLock

    with FileLock(tmp_path / ".r.jsonl.lock"), pytest.raises(ShapelabError) as caught, locked(tmp_path / "r.jsonl", wait_s=0):
        pass
    assert str(caught.value) == f"Another process is writing {tmp_path / 'r.jsonl'}. Wait until it ends, or choose another file."


def test_a_skipped_shape():
    skipped = Skipped(name="9x9", input_tokens=9, output_tokens=9, outcome="does_not_fit", reason="Too large.")
    assert str(skipped) == "9x9: Too large."
    assert str(skipped.model_copy(update={"decided_at": "2025-01-01"})) == "9x9: Too large. (decided 2025-01-01)"
