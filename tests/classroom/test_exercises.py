"""Right answers pass, and each usual slip is recognised: at least five planted wrong answers for every check."""

import ast
import inspect
import re
import subprocess
import sys
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import torch

from shapelab.classroom import exercises
from shapelab.classroom.exercises.check import CHECKS, Feedback, Slip, check_number
from shapelab.measure import loop
from shapelab.record import metrics
from shapelab.request.shape import RAG, RequestShape
from shapelab.theory.hardware import gpu
from tests import planted
from tests.notebooks import NOTEBOOKS, exercises_of, read, solved
from tests.planted import PLANTED
from tests.runs import measured
from tests.toys import random_ids, toy_lab

STUCK = re.compile(r" Stuck\? (exercises\.hint\(exercises\.\w+\))$")
every_check = pytest.mark.parametrize("name", sorted(CHECKS))


def numbers(text: str) -> list[float]:
    return [float(word.replace(",", "")) for word in re.findall(r"\d[\d,]*(?:\.\d+)?", text)]


def gives_away(text: str, right) -> bool:
    """Whether a sentence holds the right answer. The choices of an exercise stand in it as a list, and do not count."""
    text = re.sub(r"(?:\w+, ){2,}\w+", "", text)
    if isinstance(right, int | float):
        return any(number == pytest.approx(right, rel=5e-3) for number in numbers(text))
    return ", ".join(map(str, right)) in text if isinstance(right, list) else str(right).strip().lower() in text.lower()


def pasted(call: str):
    """What the call printed in a message returns in a notebook."""
    return eval(call, {"exercises": exercises})


@pytest.mark.parametrize("name,right", [(name, right) for name in PLANTED for right in PLANTED[name].right])
def test_right_answers_pass(name, right):
    feedback = PLANTED[name].check(right)
    assert feedback.right is True and feedback.slip == "" and not STUCK.search(feedback.text)


@pytest.mark.parametrize("name,slip,wrong", [(name, *row) for name in PLANTED for row in PLANTED[name].slips])
def test_slips_are_recognised_and_explained(name, slip, wrong):
    feedback = PLANTED[name].check(wrong)
    assert feedback.right is False and feedback.slip == slip
    assert not STUCK.search(feedback.text), "it has a reason to give"
    assert slip == "text" or not any(gives_away(feedback.text, right) for right in PLANTED[name].right), feedback.text


@pytest.mark.parametrize("name,wrong", [(name, wrong) for name in PLANTED for wrong in PLANTED[name].unknown])
def test_a_mistake_nobody_knows_leads_to_the_hints(name, wrong):
    feedback = PLANTED[name].check(wrong)
    assert feedback.right is False and feedback.slip == ""
    assert pasted(STUCK.search(feedback.text)[1]) == exercises.hint(CHECKS[name])
    assert not any(gives_away(feedback.text, right) for right in PLANTED[name].right), feedback.text


@every_check
def test_who_has_not_tried_is_told_of_the_hints(name):
    feedback = PLANTED[name].check(...)
    assert feedback.right is None and repr(feedback).startswith("Your turn: ")
    assert pasted(STUCK.search(feedback.text)[1]) == exercises.hint(CHECKS[name])


@every_check
def test_five_planted_answers_each_with_a_reason_of_its_own_and_no_slip_is_left_out(name):
    feedbacks = [PLANTED[name].check(wrong) for _, wrong in PLANTED[name].slips]
    assert len({feedback.text for feedback in feedbacks}) >= 5
    ids = re.findall(r'Slip\(\s*"(\w+)"', inspect.getsource(CHECKS[name]))
    assert len(set(ids)) == len(ids) and set(ids) <= {slip for slip, _ in PLANTED[name].slips}


def test_the_checks_are_those_of_the_files_and_all_are_planted():
    assert set(PLANTED) == set(CHECKS) and all(getattr(exercises, name) is check for name, check in CHECKS.items())
    assert set(CHECKS) <= set(exercises.__all__)


# What a number may be


@pytest.mark.parametrize(
    "twenty",
    [20, 20.0, np.float64(20), np.float32(20), np.int64(20), np.uint8(20), np.array(20), torch.tensor(20.0), Fraction(20), Decimal(20),
     pd.Series([10, 20]).max()],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_numbers_of_every_kind_are_taken(twenty):
    assert check_number(twenty, 20, "why").right is True
    assert check_number(twenty, 40, "why", [Slip("half", 20, "half")]).slip == "half"


@pytest.mark.parametrize("text", ["20", "20.0", "20 ms", "1,024", "twenty", "", np.str_("20")])
def test_text_is_told_to_lose_its_quotes(text):
    feedback = check_number(text, 20, "why")
    assert feedback.right is False and feedback.slip == "text"


@pytest.mark.parametrize(
    "answer",
    [True, False, np.bool_(True), None, [20], np.array([20]), 20j, float("nan"), float("inf"), np.float64("nan"), 10**400,
     Decimal("sNaN"), print, {}, b"20", np.datetime64("2025-01-01")],
    ids=repr,
)  # fmt: skip
def test_what_is_no_finite_number_is_refused(answer):
    feedback = check_number(answer, 1, "why")
    assert feedback.right is False and feedback.slip == "no_number"


def test_the_nearest_slip_gives_the_reason():
    slips = [Slip("far", 10.01, "far"), Slip("near", 10, "near")]
    assert check_number(10.001, 5, "why", slips).slip == "near" and check_number(10.009, 5, "why", slips).slip == "far"


@pytest.mark.parametrize("answer", [-3, 5e-324, 1e308, 10**300, 0.97, 1.4, 60])
def test_an_unknown_number_gets_a_sentence_even_where_nothing_can_be_divided(answer):
    for right in (1, 0, -2.5):
        feedback = check_number(answer, right, "why")
        assert feedback.right is False and feedback.slip == "" and len(feedback.text) < 100


# Checks that do more than compare a number


def test_the_difference_of_the_totals_is_as_good():
    rag = measured(RAG, (1.2, 0.04), (1.4, 0.036), (1.3, 0.05), per_pass=True)  # the medians come from different repeats
    by_steps, by_subtraction = 1.3 + 11 * 0.04, 2.228 - 12 * 0.04
    assert by_steps != pytest.approx(by_subtraction, rel=3e-3)
    assert exercises.check_shorter_answer(by_steps, rag).right is True
    assert exercises.check_shorter_answer(by_subtraction, rag).right is True


def test_a_lab_that_was_loaded_is_understood():
    lab, one = toy_lab(), 2 * 2 * 2 * 16 * 8  # keys and values, 2 layers, 2 heads, 16 numbers, float64
    assert exercises.check_kv_bytes(one * 1228, lab, RAG).right is True
    assert exercises.check_kv_bytes(one * 1228 * 2, lab, RAG).slip == "query_heads"  # 4 heads over 2


def test_an_order_of_more_requests_gets_the_rule():
    feedback = exercises.check_order(["3x3", "5x1", "2x4", "4x2"], ["5x1", "4x2", "3x3", "2x4"])
    assert feedback.right is False and feedback.slip == "" and STUCK.search(feedback.text)


def test_a_small_batch_that_breaks_the_promise_is_not_said_to_keep_it():
    tpots = {1: 0.04, 2: 0.09, 4: 0.07, 8: 0.1}
    line = [measured(RequestShape(32, 16, size), (0.1, tpot), per_pass=True) for size, tpot in tpots.items()]
    assert exercises.check_largest_batch(4, line).right is True
    assert exercises.check_largest_batch(2, line).slip == "too_slow"


def test_positional_calls_are_fine():
    def by_hand(model, ids, count):
        named = "cache" if "cache" in inspect.signature(type(model).forward).parameters else "past_key_values"
        cache, written = {named: loop.new_cache(model, 200)}, []
        while len(written) < count:
            written.append(model(written[-1] if written else ids, **cache).logits[:, -1:].argmax(-1))
        return torch.cat(written, dim=1)

    assert exercises.check_generate(by_hand, toy_lab(), random_ids(1, 9), 8).right is True


def test_an_unfinished_function_leads_to_the_hints_and_leaves_no_hook():
    def stub(*_):
        raise NotImplementedError

    lab = toy_lab()
    feedback = exercises.check_generate(stub, lab, random_ids(1, 9), 8)
    assert feedback.right is None and pasted(STUCK.search(feedback.text)[1]) == exercises.hint(exercises.check_generate)
    assert not lab.model._forward_pre_hooks


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_notebooks_solutions_pass_their_checks(path):
    """With the runs of tests/planted.py in place of measured ones; test_colab measures."""
    given = {
        "chat": planted.THREE["chat"], "rag": planted.THREE["rag"], "base": planted.BASE, "longer_answer": planted.LONGER,
        "full": planted.FULL, "hit": planted.HIT, "tpot": {size: times[1] for size, times in planted.TIMES.items()},
        "sizes": list(planted.TIMES), "run": {"01": planted.THREE, "03": planted.READ, "05": planted.BATCHES}.get(path.name[:2]),
        "lab": toy_lab(), "ids": random_ids(1, 9), "loop": loop, "torch": torch, "metrics": metrics, "gpu": gpu, "RAG": RAG,
        "RequestShape": RequestShape, "exercises": exercises,
    }  # fmt: skip
    notebook = read(path)
    for number, solution in exercises_of(notebook):
        tree = ast.parse(solved(notebook.cells[number].source, solution))
        *before, last = tree.body
        exec(compile(ast.Module(before, []), path.name, "exec"), given)
        assert eval(compile(ast.Expression(last.value), path.name, "eval"), given).right is True, ast.unparse(last)


# Hints


@every_check
def test_hints_come_in_steps(name):
    check, hints = CHECKS[name], CHECKS[name].hints
    assert 2 <= len(hints) <= 3 and len(set(hints)) == len(hints) and all(text.strip() for text in hints)
    for step in range(1, len(hints) + 1):
        shown = exercises.hint(check, step)
        assert shown.right is None and repr(shown).startswith("Hint: 1. ")
        assert [text in shown.text for text in hints] == [number <= step for number in range(1, len(hints) + 1)]
        more = re.search(r"^(exercises\.hint\(exercises\.\w+, \d\))", shown.text, re.MULTILINE)
        assert pasted(more[1]) == exercises.hint(check, step + 1) if step < len(hints) else more is None
    assert exercises.hint(check) == exercises.hint(check, 1) == exercises.hint(check, np.int64(1))


@every_check
def test_only_the_last_hint_may_give_the_answer(name):
    for text in CHECKS[name].hints[:-1]:
        assert not any(gives_away(text, right) for right in PLANTED[name].right if not isinstance(right, dict))


@pytest.mark.parametrize("step", [0, -1, 4, 1.5, 2.0, True, "2", None, ..., float("nan")])
def test_a_step_that_is_none_gets_one_sentence(step):
    feedback = exercises.hint(exercises.check_tpot, step)
    assert isinstance(feedback, Feedback) and feedback.right is None and "\n" not in feedback.text
    assert not any(text in feedback.text for text in exercises.check_tpot.hints)


@pytest.mark.parametrize("check", [check_number, print, len, None, 7, "tpot", exercises.check_tpot(0.02), np.zeros(3)])
def test_hints_for_something_else_name_a_call_that_works(check):
    feedback = exercises.hint(check)
    assert pasted(re.search(r"exercises\.hint\(.*\)", feedback.text)[0]) == exercises.hint(exercises.check_tpot)


# What people see


def test_feedback_is_escaped_and_hints_show_as_lines():
    assert "<script>" not in exercises.check_tpot("<script>")._repr_html_()
    shown = exercises.hint(exercises.check_largest_batch, 3)._repr_html_()
    assert shown.count("<br>") == 3 and "tpot[B] &lt;= 2" in shown


def test_exercises_work_where_no_torch_is_installed():
    code = """
import sys
sys.modules.update(torch=None, transformers=None)
from shapelab.classroom import exercises
print(exercises.check_tpot(0.02).right, exercises.hint(exercises.check_generate).right)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["True", "None"], done.stderr
