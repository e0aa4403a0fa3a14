"""Predictions by choice, number and curve: asked, revealed, and looked back on. The file that holds them is in test_guess_file."""

import pytest

from shapelab.classroom import guess
from shapelab.classroom.guess import committed

MEASURED = [(1, 1), (2, 1.1), (4, 1.3), (8, 2.0)]


@pytest.fixture(autouse=True)
def own_file(tmp_path, monkeypatch):
    path = tmp_path / "folder" / "predictions.json"
    monkeypatch.setenv("SHAPELAB_PREDICTIONS", str(path))
    return path


def status(asked) -> str:
    """What stands beside the button."""
    return asked.box.children[-1].children[1].value


def press(asked) -> str:
    """Click "Commit"; what stands beside it then."""
    asked.box.children[-1].children[0].click()
    return status(asked)


def batch_sketch():
    return guess.sketch("s", "The wait?", "batch size", (1, 2, 4, 8), "times", highest=8)


def asked_three_ways():
    return guess.choose("k", "Which?", ["a", "b"]), guess.number("n", "How many?", "times"), batch_sketch()


def test_commit_a_choice_by_clicking():
    asked = guess.choose("k", "Which?", ["a", "b"])
    before = status(asked)
    assert press(asked) != before and committed("k") is None
    asked.box.children[1].value = "b"
    assert press(asked) == "Committed: b" and committed("k") == "b"
    again = guess.choose("k", "Which?", ["a", "b"])
    assert again.box.children[1].value == "b" and status(again) == "Committed: b"
    assert guess.choose("k", "Other options", ["x"]).box.children[1].value is None


@pytest.mark.parametrize("wrong", [0, -3, float("inf"), float("nan")])
def test_commit_a_number_by_clicking(wrong):
    asked = guess.number("n", "How many?", "times as long")
    asked.box.children[1].value = wrong
    press(asked)
    assert committed("n") is None
    asked.box.children[1].value = 8
    assert press(asked) == "Committed: 8 times as long" and committed("n") == 8.0
    assert guess.number("n", "How many?", "times as long").box.children[1].value == 8


def test_sketch_a_curve_with_sliders():
    asked = batch_sketch()
    *sliders, picture, text = asked.box.children[1:-1]
    assert [s.description for s in sliders] == ["batch size 2", "batch size 4", "batch size 8"]
    assert not any(s.continuous_update for s in sliders)
    before = picture.value
    sliders[2].value = 4
    assert picture.value != before and bytes(picture.value).startswith(b"\x89PNG")
    assert text.value == "1 at 1, 1 at 2, 1 at 4, 4 at 8 (times)"
    press(asked)
    assert committed("s") == [(1, 1), (2, 1), (4, 1), (8, 4)]
    assert batch_sketch().box.children[3].value == 4


def test_a_sketch_from_elsewhere_stays_on_the_sliders():
    guess.commit("s", [(2, 99.0)])
    assert batch_sketch().box.children[1].value == 8


def test_once_revealed_a_prediction_stands():
    guess.commit("k", "rag")
    guess.reveal("k", "creative", "Because.")
    asked = guess.choose("k", "Which?", ["rag", "creative"])
    asked.box.children[1].value = "creative"
    assert 'guess.forget("k")' in press(asked).replace("&quot;", '"') and committed("k") == "rag"
    guess.forget("k")
    assert committed("k") is None
    assert press(asked) == "Committed: creative"


def test_reveal_a_choice():
    guess.commit("k", "rag")
    right, wrong = guess.reveal("k", "rag", "Because."), guess.reveal("k", "creative", "Because.")
    assert "creative" not in repr(right) and "rag" in repr(wrong) and "measured here: creative. Because." in repr(wrong)


@pytest.mark.parametrize(
    "prediction,shown,not_shown",
    [
        (64.0, ["64", "too high by a factor of 8", "It shares."], ["It works more."]),
        (2.0, ["2", "too low by a factor of 4", "It works more."], ["It shares."]),
        (12.0, ["12", "close"], ["It shares.", "It works more.", "factor"]),
        (7.0, ["7", "close"], ["It shares.", "It works more.", "factor"]),
    ],
)
def test_reveal_a_number(prediction, shown, not_shown):
    guess.commit("n", prediction)
    card = guess.reveal_number("n", 8, "times as long", "a machine", "Lesson.", "It works more.", "It shares.")
    assert all(part in repr(card) for part in (*shown, "Measured: 8 times as long.", "Lesson."))
    assert not any(part in repr(card) for part in not_shown) and "  " not in repr(card)
    assert card.html.count("<img") == 1 and f"your prediction {prediction:g}, measured 8." in card.html


def test_who_committed_nothing_is_shown_the_answer_alone():
    guess.commit("n", "a choice, not a number")
    assert repr(guess.reveal("k", "rag", "Because.")) == "Measured here: rag. Because."
    card = guess.reveal_number("n", 8, "times", "a machine", "Lesson.", "It works more.", "It shares.")
    assert repr(card) == "Measured: 8 times. Lesson." and "<img" not in card.html
    card = guess.reveal_curve("n", MEASURED, "batch size", "times", "a machine", "Lesson.")
    assert repr(card) == "Measured: 1 at 1, 1.1 at 2, 1.3 at 4, 2 at 8 (times). Lesson." and card.html.count("<img") == 1


@pytest.mark.parametrize(
    "points,shown",
    [
        ([(x, float(x)) for x, _ in MEASURED], ["batch size 8", "too high by a factor of 4"]),
        ([(1, 1.0), (2, 1.5), (4, 1.5), (8, 1.5), (16, 99.0)], ["within a factor of 1.5"]),
        ([(16, 99.0)], ["within a factor of 1.5"]),
        ([(8, 0.0)], ["too low by a factor of inf"]),
    ],
    ids=["apart", "close", "nothing to compare", "zero"],
)
def test_reveal_a_curve(points, shown):
    guess.commit("s", points)
    card = guess.reveal_curve("s", MEASURED, "batch size", "times", "a machine", "Lesson.")
    assert all(part in repr(card) for part in (*shown, "2 at 8 (times).", "Lesson.")) and card.html.count("<img") == 1


def test_looking_back():
    assert "<table" not in guess.journey().html
    for key, answer in {
        "01-a": "x",
        "02-b": 64.0,
        "03-c": "open",
        "05-d": [(2, 2.0), (4, 4.0)],
        "07-e": 20.0,
        "04-f": "y",
    }.items():
        guess.commit(key, answer, question=f"Question {key}?")
    assert "Revealed: 0." in repr(guess.journey())
    guess.reveal("01-a", "z", "")
    guess.reveal("04-f", "y", "")
    guess.reveal_number("02-b", 8, "times", "m", "")
    guess.reveal_curve("05-d", [(2, 1.0), (4, 1.0)], "batch", "times", "m", "")
    guess.reveal_number("07-e", 25, "times", "m", "")
    card = guess.journey()
    assert "Predictions: 6. Revealed: 5. Right or close: 2." in repr(card)
    assert "0 of 2" in repr(card) and "2 of 3" in repr(card)
    assert "a factor of 8 at first and 2 later" in repr(card)  # 8; then sqrt(2 x 4) = 2.83 and 1.25
    assert card.html.index("Question 01-a?") < card.html.index("Question 07-e?") and "not revealed yet" in card.html
    assert card.html.count("<img") == 1


def test_a_damaged_file_stops_no_lesson_and_is_not_overwritten(own_file):
    own_file.parent.mkdir()
    own_file.write_text('{"01-a": {"answer"')
    choice, number, curve = asked_three_ways()
    choice.box.children[1].value, number.box.children[1].value = "a", 3
    for asked in (choice, number, curve):
        assert str(own_file) in status(asked) and str(own_file) in press(asked)
    for card in (
        guess.reveal("k", "rag", "Lesson."),
        guess.reveal_number("n", 8, "times", "m", "Lesson."),
        guess.reveal_curve("s", MEASURED, "x", "times", "m", "Lesson."),
    ):
        assert str(own_file) in repr(card) and "Lesson." in repr(card)
    assert str(own_file) in repr(guess.journey())
    assert own_file.read_text() == '{"01-a": {"answer"'


def test_a_place_that_cannot_be_written_is_named_beside_the_button(own_file):
    own_file.parent.write_text("a file, not a folder")
    asked = guess.number("n", "How many?", "times")
    asked.box.children[1].value = 3
    assert "SHAPELAB_PREDICTIONS" in press(asked) and str(own_file) in status(asked)


def test_names_are_shown_verbatim():
    guess.commit("k", "<b>$x$ [red]", question="<u>$x$ [red]")
    asked = guess.choose("k", "<script>?", ["<b>$x$ [red]"])
    assert "<script>" not in asked.box.children[0].value and status(asked) == "Committed: &lt;b&gt;$x$ [red]"
    card = guess.reveal("k", "$y$ [/x]", "<i>")
    assert "$y$ [/x]" in repr(card) and "<b>" not in card._repr_html_() and "<i>" not in card._repr_html_()
    page = guess.journey()._repr_html_()
    assert "<b>" not in page and "&lt;u&gt;$x$ [red]" in page and "$y$ [/x]" in page
    assert page.startswith('<div class="tex2jax_ignore mathjax_ignore"')


def test_without_a_kernel_the_question_stands_there():
    for asked, answers in zip(
        asked_three_ways(), ("one of: a, b", "a number, times", "a curve: times, over batch size 1, 2, 4, 8"), strict=True
    ):
        shown = asked._repr_mimebundle_()
        assert shown["application/vnd.jupyter.widget-view+json"]["model_id"] == asked.box.model_id
        assert answers in shown["text/html"] and answers in repr(asked)
    assert "<one>" not in guess.choose("k", "Which <one>?", ["a"])._repr_mimebundle_()["text/html"]
