"""Predictions by choice, number and curve are kept, revealed once, and looked back on."""

import json

import pytest

from shapelab.classroom import guess
from shapelab.errors import ShapelabError

MEASURED = [(1, 1), (2, 1.1), (4, 1.3), (8, 2.0)]


@pytest.fixture(autouse=True)
def own_file(tmp_path, monkeypatch):
    path = tmp_path / "folder" / "predictions.json"
    monkeypatch.setenv("SHAPELAB_PREDICTIONS", str(path))
    return path


def press(box) -> str:
    """Click "Commit"; what is said beside it."""
    button, status = box.box.children[-1].children
    button.click()
    return status.value


def batch_sketch():
    return guess.sketch("s", "The wait?", "batch size", (1, 2, 4, 8), "times", highest=8)


def test_commit_a_choice_by_clicking():
    box = guess.choose("k", "Which?", ["a", "b"])
    assert "Choose an answer" in press(box) and guess.committed("k") is None
    box.box.children[1].value = "b"
    assert press(box) == "Committed: b" and guess.committed("k") == "b"
    assert guess.choose("k", "Which?", ["a", "b"]).box.children[1].value == "b"
    assert guess.choose("k", "Other options", ["x"]).box.children[1].value is None


@pytest.mark.parametrize("wrong", [0, -3, float("inf"), float("nan")])
def test_commit_a_number_by_clicking(wrong):
    box = guess.number("n", "How many?", "times as long")
    box.box.children[1].value = wrong
    assert "above 0" in press(box) and guess.committed("n") is None
    box.box.children[1].value = 8
    assert press(box) == "Committed: 8 times as long" and guess.committed("n") == 8.0
    assert guess.number("n", "How many?", "times as long").box.children[1].value == 8


def test_sketch_a_curve_with_sliders():
    box = batch_sketch()
    *sliders, picture, text = box.box.children[1:-1]
    assert [s.description for s in sliders] == ["batch size 2", "batch size 4", "batch size 8"]
    assert not any(s.continuous_update for s in sliders)
    before = picture.value
    sliders[2].value = 4
    assert picture.value != before and bytes(picture.value).startswith(b"\x89PNG")
    assert text.value == "1 at 1, 1 at 2, 1 at 4, 4 at 8 (times)"
    press(box)
    assert guess.committed("s") == [(1, 1), (2, 1), (4, 1), (8, 4)]
    assert batch_sketch().box.children[3].value == 4


def test_a_kept_sketch_from_elsewhere_stays_on_the_sliders():
    guess.commit("s", [(2, 99.0)])
    assert batch_sketch().box.children[1].value == 8


def test_a_later_answer_takes_the_place_and_others_stay():
    for key, answer in (("k", "a"), ("other", "z"), ("k", "b")):
        guess.commit(key, answer)
    assert (guess.committed("k"), guess.committed("other")) == ("b", "z")


def test_once_revealed_a_prediction_stands():
    guess.commit("k", "rag")
    guess.reveal("k", "creative", "Because.")
    box = guess.choose("k", "Which?", ["rag", "creative"])
    box.box.children[1].value = "creative"
    assert "your prediction stands" in press(box) and guess.committed("k") == "rag"
    guess.forget("k")
    assert guess.committed("k") is None
    assert press(box) == "Committed: creative"


def test_reveal_a_choice():
    assert "no prediction" in repr(guess.reveal("k", "rag", "Because."))
    guess.commit("k", "rag")
    assert "rag it is" in repr(guess.reveal("k", "rag", "Because."))
    assert "predicted rag; measured here: creative" in repr(guess.reveal("k", "creative", "Because."))


@pytest.mark.parametrize(
    "guessed,words",
    [
        (64, "You predicted 64, too high by a factor of 8. Measured: 8 times as long. It shares. Lesson."),
        (2, "You predicted 2, too low by a factor of 4. Measured: 8 times as long. It works more. Lesson."),
        (12, "You predicted 12: close. Measured: 8 times as long. Lesson."),
        (7, "You predicted 7: close."),
    ],
)
def test_reveal_a_number(guessed, words):
    guess.commit("n", float(guessed))
    card = guess.reveal_number("n", 8, "times as long", "a machine", "Lesson.", "It works more.", "It shares.")
    assert words in repr(card) and card.html.count("<img") == 1 and 'alt="You predicted' in card.html


def test_reveal_without_a_prediction_of_that_kind():
    guess.commit("n", "a choice")
    card = guess.reveal_number("n", 8, "times", "a machine", "Lesson.")
    assert "no prediction" in repr(card) and "Measured: 8 times" in repr(card) and "<img" not in card.html
    card = guess.reveal_curve("n", MEASURED, "batch size", "times", "a machine", "Lesson.")
    assert "no prediction" in repr(card) and "2 at 8" in repr(card) and card.html.count("<img") == 1


def test_reveal_a_curve():
    guess.commit("s", [(x, float(x)) for x, _ in MEASURED])
    card = guess.reveal_curve("s", MEASURED, "batch size", "times", "a machine", "Lesson.")
    assert "parts most at batch size 8, where it is too high by a factor of 4." in repr(card)
    guess.forget("s")
    guess.commit("s", [(1, 1.0), (2, 1.5), (4, 1.5), (8, 1.5), (16, 99.0)])
    assert "within a factor of 1.5" in repr(guess.reveal_curve("s", MEASURED, "batch size", "times", "x", "y"))
    guess.forget("s")
    guess.commit("s", [(8, 0.0)])
    assert "too low by a factor of inf" in repr(guess.reveal_curve("s", MEASURED, "batch size", "times", "x", "y"))


def test_looking_back():
    assert "No prediction" in repr(guess.journey())
    for key, answer in {
        "01-a": "x",
        "02-b": 64.0,
        "03-c": "open",
        "05-d": [(2, 2.0), (4, 4.0)],
        "07-e": 20.0,
        "04-f": "y",
    }.items():
        guess.commit(key, answer, question=f"Question {key}?")
    assert "Revealed: 0" in repr(guess.journey())
    guess.reveal("01-a", "z", "")
    guess.reveal("04-f", "y", "")
    guess.reveal_number("02-b", 8, "times", "m", "")
    guess.reveal_curve("05-d", [(2, 1.0), (4, 1.0)], "batch", "times", "m", "")
    guess.reveal_number("07-e", 25, "times", "m", "")
    card = guess.journey()
    assert "committed: 6. Revealed: 5, of which right or close: 2." in repr(card)
    assert "In the first half 0 of 2, in the second 2 of 3." in repr(card)
    assert "off by a factor of 8, later by 2 (medians)" in repr(card)  # 8; then sqrt(2 x 4) = 2.83 and 1.25
    assert card.html.index("Question 01-a?") < card.html.index("Question 07-e?") and "not revealed yet" in card.html
    assert card.html.count("<img") == 1


def test_a_damaged_file_is_forgiven(own_file):
    own_file.parent.mkdir()
    for text in ("{", "[1]", '{"k": 3}', '{"k": {"answer": {}}}', '{"k": {"answer": [[1]]}}', '{"k": {"answer": NaN}}'):
        own_file.write_text(text)
        assert guess.committed("k") is None
    own_file.write_text(json.dumps({"k": {"answer": "kept", "at": "2026-11-30"}, "bad": 1}))
    assert guess.committed("k") == "kept"
    guess.commit("k", "a")
    assert guess.committed("k") == "a"


def test_a_place_that_cannot_be_written(own_file):
    own_file.parent.write_text("a file, not a folder")
    with pytest.raises(ShapelabError, match="SHAPELAB_PREDICTIONS"):
        guess.commit("k", "a")
    box = guess.number("n", "How many?", "times")
    box.box.children[1].value = 3
    assert "SHAPELAB_PREDICTIONS" in press(box), "an error in a callback is not seen: it is said"


def test_a_reveal_needs_no_place_to_write(own_file, monkeypatch):
    guess.commit("k", "a")
    monkeypatch.setattr(guess.os, "replace", lambda *_: (_ for _ in ()).throw(OSError(30, "read-only")))
    assert "a it is" in repr(guess.reveal("k", "a", "Because."))


def test_text_is_escaped():
    guess.commit("k", "<b>", question="<u>")
    box = guess.choose("k", "<script>?", ["<b>"])
    assert "<script>" not in box.box.children[0].value and "<b>" not in box.box.children[2].children[1].value
    assert "<b>" not in guess.reveal("k", "x", "<i>")._repr_html_()
    page = guess.journey()._repr_html_()
    assert "<b>" not in page and "<u>" not in page and "&lt;u&gt;" in page


def test_without_a_kernel_the_question_stands_there():
    for asked, words in (
        (guess.choose("k", "Which <one>?", ["a", "b"]), "one of: a, b"),
        (guess.number("n", "How <many>?", "times"), "a number, times"),
        (batch_sketch(), "a curve: times, over batch size 1, 2, 4, 8"),
    ):
        shown = asked._repr_mimebundle_()
        assert shown["application/vnd.jupyter.widget-view+json"]["model_id"] == asked.box.model_id
        assert words in shown["text/html"] and words in repr(asked) and "<one>" not in shown["text/html"]
