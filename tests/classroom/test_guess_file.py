"""The file of predictions: changed by several notebooks at once, never lost, never silently replaced."""

import json
import math
import os
import subprocess
import sys

import numpy as np
import pytest

from shapelab.classroom import guess_file
from shapelab.classroom.guess_file import commit, committed, forget, settle
from shapelab.errors import BadArgument, BadFile, CannotWrite

DAMAGED = {
    "half": b"{", "list": b"[1]", "no entry": b'{"k": 3}', "no answer": b'{"k": {"answer": {}}}', "no point": b'{"k": {"answer": [[1]]}}',
    "not a number": b'{"k": {"answer": NaN}}', "not text": b"\xff\xfe", "empty": b"", "one of two": b'{"k": {"answer": "a"}, "bad": 1}',
}  # fmt: skip


@pytest.fixture(autouse=True)
def own_file(tmp_path, monkeypatch):
    path = tmp_path / "folder" / "predictions.json"
    monkeypatch.setenv("SHAPELAB_PREDICTIONS", str(path))
    return path


@pytest.mark.parametrize("answer", ["a", 8.0, [(1.0, 2.0), (2.0, 3.0)]])
def test_what_is_committed_comes_back(answer):
    assert committed("k") is None
    commit("k", answer, "Which?", "times")
    assert committed("k") == answer and guess_file.read()["k"].question == "Which?"
    forget("k")
    forget("k")
    assert committed("k") is None


def test_a_later_answer_takes_the_place_and_others_stay():
    for key, answer in (("k", "a"), ("other", "z"), ("k", "b")):
        commit(key, answer)
    assert (committed("k"), committed("other")) == ("b", "z")


def test_once_revealed_a_prediction_stands():
    commit("k", "rag")
    assert settle("k", "creative", str) == "rag" and guess_file.read()["k"].right is False
    with pytest.raises(BadArgument) as caught:
        commit("k", "creative")
    assert caught.value.argument == "key" and committed("k") == "rag"


def test_only_a_prediction_of_this_kind_is_settled():
    commit("k", "rag")
    assert settle("k", 8.0, float) is None and settle("other", "rag", str) is None
    assert guess_file.read()["k"].measured is None


@pytest.mark.parametrize("count", [8, np.int64(8), np.float32(8)])
def test_any_number_is_an_answer(count):
    commit("n", count)
    assert committed("n") == 8.0 and isinstance(committed("n"), float)


@pytest.mark.parametrize("answer", [math.nan, math.inf, None, {}, [(1, math.nan)], [(1, 2, 3)]])
def test_what_is_no_prediction_is_refused(answer):
    with pytest.raises(BadArgument) as caught:
        commit("k", answer)
    assert caught.value.argument == "answer" and committed("k") is None


@pytest.mark.parametrize("measured", [math.nan, math.inf])
def test_a_measurement_that_is_no_number_damages_nothing(measured):
    commit("n", 8.0)
    commit("s", [(1, 1.0)])
    assert settle("n", measured, float) == 8.0 and settle("s", [(1.0, measured)], list) == [(1.0, 1.0)]
    assert {entry.measured for entry in guess_file.read().values()} == {None}


@pytest.mark.parametrize("damage", DAMAGED)
def test_a_damaged_file_is_named_and_left_as_it_is(own_file, damage):
    own_file.parent.mkdir()
    own_file.write_bytes(DAMAGED[damage])
    for use in (
        guess_file.read,
        lambda: committed("k"),
        lambda: commit("k", "a"),
        lambda: forget("k"),
        lambda: settle("k", "a", str),
    ):
        with pytest.raises(BadFile) as caught:
            use()
        assert str(own_file) in str(caught.value)
    assert own_file.read_bytes() == DAMAGED[damage]


def test_a_place_that_cannot_be_written(own_file):
    own_file.parent.write_text("a file, not a folder")
    assert committed("k") is None
    with pytest.raises(CannotWrite):
        commit("k", "a")


def test_a_reveal_needs_no_place_to_write(own_file, monkeypatch):
    commit("k", "a")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    assert settle("k", "a", str) == "a" and guess_file.read()["k"].measured is None


def test_a_home_folder_is_found(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    monkeypatch.setenv("SHAPELAB_PREDICTIONS", "~/mine.json")
    commit("k", "a")
    assert json.loads((tmp_path / "mine.json").read_text())["k"]["answer"] == "a"


def test_a_link_stays_a_link(own_file, tmp_path):
    own_file.parent.mkdir()
    own_file.symlink_to(tmp_path / "elsewhere.json")
    commit("k", "a")
    assert own_file.is_symlink() and json.loads((tmp_path / "elsewhere.json").read_text())["k"]["answer"] == "a"


def test_two_processes_at_once_lose_nothing():
    script = "import sys; from shapelab.classroom.guess_file import commit\nfor n in range(25): commit(f'{sys.argv[1]}-{n}', 'a')"
    writers = [subprocess.Popen([sys.executable, "-c", script, name]) for name in ("one", "two")]
    assert [writer.wait(120) for writer in writers] == [0, 0]
    assert len(guess_file.read()) == 50
