"""Messages of the classroom, as people read them. Everywhere else tests hold ids, classes and fields."""

import pytest

from shapelab.classroom import exercises, guess, tables
from shapelab.classroom.explorers.batch import batch_view
from shapelab.classroom.explorers.cost import cost_view
from shapelab.classroom.explorers.kv import kv_view
from shapelab.classroom.explorers.machines import machine
from shapelab.classroom.explorers.request import request_view
from shapelab.classroom.report import report
from shapelab.errors import ShapelabError
from tests.runs import MODEL, RUN, make_run


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
    (lambda: exercises.check_tpot([1]), "Answer with a number, not [1]."),
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

PANELS_SAY = [  # of views and tables the words, of errors the sentence
    (lambda: request_view(MODEL, 64, 12), "64x12: first token after 0.113 s, all after 0.56 s, 90 % interval 0.518 to 0.605 s; 20% of it prefill."),
    (lambda: request_view(MODEL, 64, 12), "This run does not record the machine's limits, so the panel cannot say what its passes wait for."),
    (lambda: request_view(machine("T4"), 64, 12), "By the data sheet, with 5 ms a pass assumed, prefill waits most for "),
    (lambda: request_view(machine("T4"), 64, 12), "(computed: tinyllama, float16, NVIDIA T4; 5 ms a pass assumed.)"),
    (lambda: batch_view(MODEL, 64, 32), "Doubling stops being nearly free at batch "),
    (lambda: batch_view(machine("H200"), 64, 64), "Every doubling shown is nearly free: a reader waits at most a quarter longer."),
    (lambda: batch_view(MODEL, 8192, 32), "No doubling of this shape is known."),
    (lambda: batch_view(machine("T4"), 1900, 100), "does not fit in memory."),
    (lambda: batch_view(machine("T4", "llama-3-8b"), 64, 64), "A request of 64x64 does not fit in memory beside the weights (llama-3-8b, "),
    (lambda: kv_view("tinyllama", "T4", 2048, 1), "The model has a context of 2,048 tokens, and this request needs 2,049."),
    (lambda: cost_view("gpt-4.1", MODEL, 1, 64, 32), "10,000 requests a day of 64 + 32 tokens: "),
    (lambda: cost_view("gpt-4.1", MODEL, 1, 64, 32, 1.0), "cached_share must be at least 0 and below 1, not 1.0: the model always reads the last token of a prompt."),
    (lambda: report([]), "There is nothing to report yet. `shapelab run` measures three shapes."),
    (lambda: tables.shapes_table(RUN), "One repeat. TTFT: time to first token."),
    (lambda: tables.shapes_table(make_run({})), "Nothing was measured."),
    (lambda: tables.terms_table(MODEL), "From: the price applies to tokens or sequences beyond this number."),
]  # fmt: skip


@pytest.mark.parametrize("what,text", PANELS_SAY)
def test_panels_tables_and_the_report_say(what, text):
    try:
        shown = what()
        assert text in getattr(shown, "text", repr(shown))
    except ShapelabError as error:
        assert text in str(error)


@pytest.mark.parametrize("what,text", SAYS)
def test_what_is_called_reads_like_this(what, text):
    assert text in str(what())
