"""The race shows what the loop writes, and shows it safely."""

import pytest

from shapelab.classroom import race as race_module
from shapelab.classroom.race import Lane, Race, race, run_lane
from shapelab.errors import ShapelabError
from shapelab.measure.experiment import run_once
from shapelab.request.prompts import prompt_ids
from shapelab.request.shape import RequestShape
from tests.toys import toy_lab


def test_a_lane_fills_as_tokens_arrive(monkeypatch):
    monkeypatch.setattr(race_module, "SECONDS_BETWEEN_PICTURES", 0)
    lab, shape, seen = toy_lab(), RequestShape(12, 5), []
    lane = Lane("x", shape)
    run_lane(lab, lane, 0, lambda: seen.append((lane.state, lane.written)))
    assert seen[0] == ("reading 12 tokens", 0)
    assert [written for state, written in seen if state == "writing"] == [1, 2, 3, 4, 5]
    assert seen[-1] == ("done", 5)
    expected = run_once(lab, shape, prompt_ids(lab.tokenizer, shape, repeat=1)).ids[0].tolist()
    assert lane.text == lab.tokenizer.decode(expected)
    assert lane.total_s == pytest.approx(lane.prefill_s + lane.decode_s) and lane.prefill_s > 0


def test_one_token_is_all_prefill():
    lane = Lane("x", RequestShape(12, 1))
    run_lane(toy_lab(), lane, 0, lambda: None)
    assert (lane.written, lane.state, lane.decode_s) == (1, "done", 0)


def test_pictures_are_rationed(monkeypatch):
    monkeypatch.setattr(race_module, "SECONDS_BETWEEN_PICTURES", 1e9)
    seen = []
    run_lane(toy_lab(), Lane("x", RequestShape(12, 20)), 0, lambda: seen.append(1))
    assert len(seen) == 3, "the start, the first token, the end"


def test_hostile_text_shows_as_text():
    lane = Lane("<b>", RequestShape(1, 1), text="<script>alert(1)</script><img src=x onerror=alert(1)>")
    html = Race([lane], "<i>")._repr_html_()
    assert "<script>" not in html and "<img" not in html and "<i>" not in html and "&lt;script&gt;" in html


def test_a_shape_too_long_is_refused_before_the_start():
    with pytest.raises(ShapelabError, match="Shorten it"):
        race(toy_lab(), {"ok": RequestShape(5, 2), "long": RequestShape(600, 2)})


def test_the_race_returns_its_lanes():
    finished = race(toy_lab(), {"a": RequestShape(5, 2), "b": RequestShape(6, 3)})
    assert [lane.written for lane in finished.lanes] == [2, 3]
    assert "b 6x3: first token after" in repr(finished)
