"""How the classroom words what it shows; elsewhere tests hold classes, fields and numbers, so that a sentence can be improved here."""

import pytest

from shapelab.classroom import guess
from shapelab.errors import ShapelabError


@pytest.fixture(autouse=True)
def own_file(tmp_path, monkeypatch):
    monkeypatch.setenv("SHAPELAB_PREDICTIONS", str(tmp_path / "predictions.json"))


def committed(answer, call):
    guess.commit("k", answer)
    return call()


def number():
    return repr(guess.reveal_number("k", 8, "times as long", "m", "Lesson.", "It works more.", "It shares."))


def pressed(asked) -> str:
    button, status = asked.box.children[-1].children
    button.click()
    return status.value


def refused() -> str:
    guess.commit("k", "a")
    guess.reveal("k", "a", "")
    with pytest.raises(ShapelabError) as caught:
        guess.commit("k", "b")
    return str(caught.value)


@pytest.mark.parametrize(
    "call,text",
    [
        (lambda: pressed(guess.choose("k", "Which?", ["a"])), "Choose an answer first."),
        (lambda: pressed(guess.number("k", "How many?", "times")), "Enter a number above 0."),
        (refused, 'You have seen the answer, so your prediction stands. guess.forget("k") makes room for a new one.'),
        (lambda: repr(guess.reveal("k", "rag", "Because.")), "Measured here: rag. Because."),
        (lambda: committed("rag", lambda: repr(guess.reveal("k", "rag", "So."))), "You predicted rag, and rag it is. So."),
        (
            lambda: committed("chat", lambda: repr(guess.reveal("k", "rag", "So.", "Computed"))),
            "You predicted chat; computed: rag. So.",
        ),
        (number, "Measured: 8 times as long. Lesson."),
        (lambda: committed(12.0, number), "You predicted 12: close. Measured: 8 times as long. Lesson."),
        (
            lambda: committed(64.0, number),
            "You predicted 64, too high by a factor of 8. Measured: 8 times as long. It shares. Lesson.",
        ),
        (
            lambda: committed([(2, 9.0)], lambda: repr(guess.reveal_curve("k", [(1, 1), (2, 3)], "batch", "times", "m", "So."))),
            "Your sketch is furthest off at batch 2: too high by a factor of 3. Measured: 1 at 1, 3 at 2 (times). So.",
        ),
        (
            lambda: repr(guess.journey()),
            "You have no predictions yet. Each notebook asks for some before it measures: answer, run the notebook, and come back.",
        ),
    ],
)  # fmt: skip
def test_wording(call, text):
    assert call() == text
