"""Messages of the classroom, as people read them. Everywhere else tests hold ids, classes and fields."""

import pytest

from shapelab.classroom import exercises, guess
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


SAYS = [
    (lambda: exercises.check_tpot(...), "Your turn: Replace ... with your answer and run the cell again."),
    (lambda: exercises.check_tpot("20 ms"), "'20 ms' is text. Write the number without quotes and without a unit."),
    (lambda: exercises.check_tpot([1]), "Answer with a number. [1] is none."),
    (lambda: exercises.check_tpot(20), "Your number is 1,000 times too large: the exercise asks for seconds per token."),
    (lambda: exercises.check_passes(0.024), "Your number is 1,000 times too small: check the units."),
    (lambda: exercises.check_tpot(50), "Your fraction is upside down: the exercise asks for seconds per token."),
    (lambda: exercises.check_tpot(0.027), "Your number is a little too large."),
    (lambda: exercises.check_tpot(0.0051), "Your number is about 4 times too small."),
    (lambda: exercises.check_tpot(0.0204), "You are within 3% of it. Calculate with unrounded numbers, and check each count."),
    (lambda: exercises.check_tpot(1.98), "Divide it by the number of gaps between the tokens."),
    (lambda: exercises.check_order(7, ["5x2", "2x5"]), "Answer with a list of these, fastest first: 5x2, 2x5."),
    (lambda: exercises.check_cached_bill(0.167478125), "The output tokens are missing: few, but expensive."),
    (lambda: exercises.check_regime("slow"), "Answer with one of compute, memory, overhead, as text."),
    (lambda: exercises.hint(print), "Name the check without calling it: exercises.hint(exercises.check_tpot)."),
    (lambda: exercises.hint(exercises.check_tpot, 4), "There are only 3 hints; the solution is folded below the cell."),
    (lambda: exercises.hint(exercises.check_tpot, 0), "The step is a whole number from 1 to 3."),
    (lambda: exercises.hint(exercises.check_tpot, 3), "That was the last hint."),
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
]


@pytest.mark.parametrize("what,text", SAYS)
def test_what_is_called_reads_like_this(what, text):
    assert text in str(what())
