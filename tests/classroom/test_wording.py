"""Messages of the classroom, as people read them. Everywhere else tests hold ids, classes and fields."""

import pytest

from shapelab.classroom import exercises

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
]


@pytest.mark.parametrize("what,text", SAYS)
def test_what_is_called_reads_like_this(what, text):
    assert text in repr(what())
