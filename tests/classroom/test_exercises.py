"""Right answers pass, and each usual slip is called by its name: at least five planted wrong answers for every check."""

import inspect
import re
from itertools import combinations
from types import SimpleNamespace
from typing import NamedTuple

import pytest
import torch

from shapelab.classroom import exercises
from shapelab.classroom.hints import HINTS
from shapelab.measure import loop
from shapelab.model.forward import cache_argument
from shapelab.record import metrics
from shapelab.record.measurement import Measurement, Repeat
from shapelab.request.shape import RAG, RequestShape
from shapelab.theory.model_spec import ModelSpec
from tests.toys import random_ids, toy_lab


def measurement(inputs, outputs, ttft_s, tpot_s, batch=1):
    stamps = tuple(round(1e9 * (ttft_s + tpot_s * n)) for n in range(outputs))
    return Measurement(
        name="m",
        input_tokens=inputs,
        output_tokens=outputs,
        batch_size=batch,
        repeats=(Repeat(index=1, order=0, host_ns=(0, *stamps), output_tokens=outputs),),
    )


# The shapes of the notebooks, with times like those in their committed outputs.
CHAT_RUN = measurement(60, 80, 0.092, 0.0331)  # 2.7069 s in all
RAG_RUN = measurement(1205, 24, 1.2, 0.04)  # 2.12 s
SHORT, LONG = measurement(256, 8, 0.25, 0.036), measurement(256, 40, 0.25, 0.04)  # 0.502 and 1.81 s
READ_FEW, READ_MANY = measurement(240, 12, 0.24, 0.034), measurement(1205, 12, 1.15, 0.0374)  # 0.614 and 1.5614 s
FULL, HIT = measurement(1088, 8, 1.016, 0.0392), measurement(64, 8, 0.137, 0.0402)  # 1.2904 and 0.4184 s
BATCH_TIMES = {
    1: (0.081, 0.0377),
    2: (0.121, 0.0415),
    4: (0.173, 0.0594),
    8: (0.312, 0.0745),
    16: (0.555, 0.0813),
    32: (1.08, 0.102),
}
BATCHES = {size: measurement(32, 16, *times, size) for size, times in BATCH_TIMES.items()}
SMOLLM2 = SimpleNamespace(spec=ModelSpec.from_config("smollm2-135m"), dtype=torch.float32)  # what a lab is asked for here
PER_TOKEN = 2 * 30 * 3 * 64 * 4  # keys and values, 30 layers, 3 heads, 64 numbers, float32
ORDER = ["500x20", "260x260", "440x80"]


def regime(answer):
    return exercises.check_regime(answer, "overhead", "Both floors explain a twentieth.")


def generate(model, ids, count, *, first=True, fresh=False, extra=0, text=False, prompt=False, one_by_one=False, cut=0):
    cache = loop.new_cache(model, 200)
    if one_by_one:
        written = [[loop.decode_step(model, ids[:, n : n + 1], cache) for n in range(ids.shape[1])][-1]]
    else:
        written = [loop.prefill(model, ids, cache)]
    while len(written) < count + extra + cut:
        if fresh:
            whole = torch.cat([ids, *written], dim=1)
            written.append(loop.prefill(model, whole, loop.new_cache(model, 200)))
        else:
            written.append(loop.decode_step(model, written[0 if not first else -1], cache))
    if text:
        return "text"
    return torch.cat([ids, *written] if prompt else written[: count + extra], dim=1)


def generated(slip):
    """check_generate of the function above, with a slip of its own."""
    answer = slip if slip is ... else lambda *given: generate(*given, **slip)
    return exercises.check_generate(answer, toy_lab(), random_ids(1, 9), 8)


class Planted(NamedTuple):
    """call: the check with the notebook's data. slips: (wrong answer, a word of its own reason). others: no such reason."""

    call: object
    right: list
    slips: list
    others: list = []


# Wrong answers are worked out by hand here, from the exercise's numbers and not by the check's formulas.
PLANTED = {
    "check_tpot": Planted(
        exercises.check_tpot,
        [0.02],
        [
            (1.98 / 100, "N - 1"),
            (2.43 / 100, "TPOT starts when"),
            (2.43 / 99, "still in the time"),
            (1.98, "whole decode time"),
            (20, "unit"),
            (0.00243, "Input tokens are not written"),
            (50, "turn it over"),
        ],
        [("20 ms", "A number is wanted"), (float("nan"), "A number is wanted"), (-1, "sign"), (0.0203, "Close")],
    ),
    "check_passes": Planted(
        exercises.check_passes,
        [24],
        [
            (25, "prefill already writes"),
            (23, "prefill is a pass too"),
            (1229, "one pass, all 1,205"),
            (1228, "23 steps are right"),
            (1205, "the written ones"),
            (1, "have to be written"),
            (2, "once for every token"),
        ],
        [(7, "below"), (24_000, "1,000 times too large")],
    ),
    "check_shape": Planted(
        exercises.check_shape,
        ["512+64x32@4", RequestShape(64, 32, 4, 512)],
        [
            ("576x32@4", "on top"),
            ("576+64x32@4", "shared prefix only"),
            ("64+512x32@4", "swapped"),
            ("64x32@4", "missing"),
            ("512+256x32@4", "not for all 4 users"),
            ("2048+64x32@4", "not for all 4 users"),
            ("512+64x128", "one sequence"),
            ("512+64x32", "batch of 4"),
        ],
        [("512/64", "not a shape"), (12, "is wanted"), ("512+64x31@4", "number by number")],
    ),
    "check_read_cost": Planted(
        lambda a: exercises.check_read_cost(a, CHAT_RUN),
        [92 / 60],
        [
            (0.092 / 60, "seconds"),
            (2706.9 / 60, "includes the decode"),
            (2706.9 / 140, "mixed"),
            (92 / 80, "output tokens"),
            (60 / 0.092, "rate"),
            (92.0, "whole prefill"),
            (33.1, "TPOT"),
        ],
    ),
    "check_shorter_answer": Planted(
        lambda a: exercises.check_shorter_answer(a, RAG_RUN),
        [1.2 + 11 * 0.04, 2.12 - 12 * 0.04],
        [
            (2.12 / 2, "Half the answer"),
            (1.2 + 12 * 0.04, "11 steps"),
            (11 * 0.04, "add TTFT"),
            (12 * 0.04, "missing, and 12 tokens"),
            (0.6 + 11 * 0.04, "as long as before"),
            (2.12, "as it was"),
        ],
        [("1.6", "A number is wanted")],
    ),
    "check_order": Planted(
        lambda a: exercises.check_order(a, ORDER),
        [["500x20", "440x80", "260x260"], [RequestShape(500, 20), RequestShape(440, 80), RequestShape(260, 260)]],
        [
            (["260x260", "440x80", "500x20"], "other way round"),
            (["500x20", "260x260", "440x80"], "500x20 is the fastest"),
            (["440x80", "500x20", "260x260"], "pass of its own"),
            (["260x260", "500x20", "440x80"], "260 passes"),
            (["440x80", "260x260", "500x20"], "cannot be the slowest"),
        ],
        [("500x20", "is wanted"), (["500x20", "440x80"], "is wanted"), (7, "is wanted")],
    ),
    "check_generate": Planted(
        generated,
        [{}],
        [
            ({"first": False}, "newest id"),
            ({"fresh": True}, "Read it once"),
            ({"extra": 1}, "writes the first token"),
            ({"extra": -2}, "wanted and"),
            ({"text": True}, "one tensor"),
            ({"prompt": True}, "prompt is in your answer"),
            ({"one_by_one": True}, "in one pass"),
            ({"cut": 1}, "9 passes for 8 tokens"),
        ],
    ),
    "check_kv_bytes": Planted(
        lambda a: exercises.check_kv_bytes(a, SMOLLM2, RAG),
        [PER_TOKEN * 1228],
        [
            (PER_TOKEN * 1229, "one token less"),
            (PER_TOKEN * 1205, "prompt alone"),
            (PER_TOKEN * 614, "keys and values both"),
            (PER_TOKEN * 1228 * 3, "query heads"),
            (2 * 3 * 64 * 4 * 1228, "one layer"),
            (PER_TOKEN, "one token"),
            (PER_TOKEN * 1228 * 2, "Twice too much"),
        ],
    ),
    "check_marginal_write": Planted(
        lambda a: exercises.check_marginal_write(a, SHORT, LONG),
        [1308 / 32],
        [
            (1.308 / 32, "seconds"),
            (1810 / 40, "spreads the prefill"),
            (40.0, "TPOT of one run"),
            (1308 / 40, "differ by 32"),
            (1810 / 32, "difference of the totals"),
            (1308, "Share it"),
            (1308 / 31, "32 steps remain"),
        ],
    ),
    "check_marginal_read": Planted(
        lambda a: exercises.check_marginal_read(a, READ_FEW, READ_MANY),
        [910 / 965],
        [
            (0.910 / 965, "seconds"),
            (1150 / 1205, "fixed cost"),
            (240 / 240, "fixed cost"),
            (910 / 1205, "differ by 965"),
            (910, "Divide by them"),
            (965 / 0.910, "Turn it over"),
            (947.4 / 965, "use TTFT"),
        ],
    ),
    "check_total_from_terms": Planted(
        exercises.check_total_from_terms,
        [1.05 + 100 * (0.04 + 5e-6 * 1050.5)],
        [
            (1.05 + 101 * (0.04 + 5e-6 * 1050.5), "100 steps"),
            (1.05 + 100 * 0.04, "reads its context"),
            (1.05 + 100 * (0.04 + 5e-6 * 1000), "average"),
            (100 * (0.04 + 5e-6 * 1050.5), "prefill is missing"),
            (1.0 + 100 * (0.04 + 5e-6 * 1050.5), "fixed cost"),
            (1.05 + 100 * (0.04 + 5e-6 * 50.5), "the prompt too"),
            (1.05 + 100 * (0.04 + 5e-6 * 1100), "Only the last step"),
            (1.05 + 100 * 0.04 + 5e-6 * 1050.5, "not once"),
            (1.05 + 100 * (0.04 + 0.005 * 1050.5), "not 5 ms"),
        ],
    ),
    "check_context_that_doubles": Planted(
        exercises.check_context_that_doubles,
        [8000],
        [
            (16000, "40 are left"),
            (8, "unit"),
            (16, "40 of the 80 ms"),
            (8_000_000, "mixed"),
            (40, "read in the prefill"),
            (0.000125, "Turn it over"),
            (7000, "Nothing is taken off"),
        ],
    ),
    "check_batch_throughput": Planted(
        lambda a: exercises.check_batch_throughput(a, BATCHES[8]),
        [8 / 0.0745],
        [
            (1 / 0.0745, "one reader"),
            (8 / 74.5, "in seconds here already"),
            (128 / 1.4295, "prefill is in"),
            (0.0745 / 8, "turn it over"),
            (64 / 0.0745, "twice"),
            (128 / (15 * 0.0745), "N - 1"),
        ],
    ),
    "check_largest_batch": Planted(
        lambda a: exercises.check_largest_batch(a, list(BATCHES.values())),
        [8],
        [
            (1, "alone"),
            (2, "not twice the batch"),
            (4, "a larger one does too"),
            (16, "81 ms; the promise is 75 ms"),
            (32, "largest measured"),
            (75.4, "a wait"),
            (0.0745, "a wait"),
            (3, "not measured"),
        ],
        [("8", "1, 2, 4, 8, 16"), (3, "1, 2, 4, 8, 16")],
    ),
    "check_cheaper_token": Planted(
        lambda a: exercises.check_cheaper_token(a, BATCHES[1], BATCHES[16]),
        [37.7 * 16 / 81.3],
        [
            (81.3 / 16 / 37.7, "Turn it over"),
            (81.3 / 37.7, "divide by it first"),
            (37.7 / 81.3, "divide it by the batch"),
            (16, "took no longer"),
            (81.3 * 16 / 37.7, "not multiplied"),
            (1 - 81.3 / 16 / 37.7, "share that is saved"),
            (0.6465 / (1.7745 / 16), "use TPOT"),
        ],
    ),
    "check_talk_floor": Planted(
        exercises.check_talk_floor,
        [(1_100_048_384 - 32_000 * 2_048) * 2 / 320e9 * 1e3],
        [
            (1_100_048_384 * 2 / 320e9 * 1e3, "looked up"),
            (0.006465, "milliseconds are wanted"),
            (3.2329, "2 bytes in 16 bits"),
            (12.93, "32-bit"),
            (0.03183, "arithmetic's time"),
            (1.926929 / 320 * 1e3, "GiB"),
            (154.66, "Turn it over"),
        ],
    ),
    "check_regime": Planted(
        regime,
        ["overhead", "Overhead-bound"],
        [
            ("memory", "each floor"),
            ("compute", "over more tokens"),
            ("bandwidth-bound", "a ceiling"),
            ("FLOPs", "are the work"),
            ("latency", "the time itself. The regime says what the time is spent on. One of compute, memory, overhead"),
            ("decode", "Decode is a phase"),
            ("prefill", "Prefill is a phase"),
        ],
        [(7, "One of compute"), ("slow", "One of compute, memory, overhead")],
    ),
    "check_critical_batch": Planted(
        exercises.check_critical_batch,
        [989e12 / 3350e9],
        [
            (590.4, "2 FLOPs"),
            (147.6, "2 bytes"),
            (989, "peak alone"),
            (0.29522, "units"),
            (0.0033873, "Turn it over"),
            (2361.8, "not 16"),
            (3350, "bandwidth alone"),
        ],
    ),
    "check_llama_kv": Planted(
        exercises.check_llama_kv,
        [131_072],
        [
            (524_288, "query heads"),
            (65_536, "twos is missing"),
            (32_768, "both twos"),
            (4_096, "one layer"),
            (16_384, "one KV head"),
            (1_048_576, "in bits"),
            (262_144, "2 bytes in 16 bits"),
        ],
    ),
    "check_requests_that_fit": Planted(
        exercises.check_requests_that_fit,
        [27],
        [
            (87, "weights take their place"),
            ((23_407_571_763.2 - 16_060_522_496) / 268_435_456, "or it does not"),
            (28, "last one does not fit"),
            (29, "24 GB is what is sold"),
            (36, "24 GiB"),
            (57, "one byte a weight"),
            (56_053, "tokens fit"),
            (6, "32 KV heads"),
        ],
    ),
    "check_prefix_saving": Planted(
        lambda a: exercises.check_prefix_saving(a, FULL, HIT),
        [1 - 0.137 / 1.016],
        [
            (0.137 / 1.016, "share that is left"),
            (1.016 / 0.137, "times faster"),
            (86.516, "per cent"),
            (0.879, "seconds saved"),
            (1024 / 1088, "share of tokens"),
            (1 - 0.4184 / 1.2904, "the total"),
        ],
    ),
    "check_cached_bill": Planted(
        exercises.check_cached_bill,
        [0.184918125],
        [
            (0.507361875, "twice"),
            (0.34614, "lower price"),
            (0.02369625, "not free"),
            (184_918.125, "divide"),
            (184.918125, "per thousand"),
            (0.167478125, "output tokens are missing"),
            (0.343011875, "swapped"),
        ],
    ),
    "check_machine_request": Planted(
        exercises.check_machine_request,
        [2.4 / 8 * 0.35 / 3600 / 0.5],
        [
            (0.000466667, "share the machine"),
            (2.91667e-5, "Idle hours"),
            (0.000233333, "and idle hours"),
            (0.21, "hour of 3,600"),
            (0.00373333, "do not multiply"),
            (0.0035, "are its minutes"),
            (1.458333e-5, "not cheaper"),
        ],
    ),
    "check_break_even": Planted(
        exercises.check_break_even,
        [1145 / 56],
        [
            (56 / 1145, "Turn it over"),
            (50.208, "both kinds of tokens"),
            (14.3125, "80 - 24"),
            (47.708, "Chat writes"),
            (21.518, "Chat reads"),
            (12.163, "signs"),
        ],
    ),
}
CHECKS = [name for name, _ in inspect.getmembers(exercises, inspect.isfunction) if name.startswith("check_")]
CHECKS.remove("check_number")  # what most others are made of
ALL_SLIPS = [(name, *row) for name, planted in PLANTED.items() for row in (*planted.slips, *planted.others)]


@pytest.mark.parametrize("name,right", [(name, right) for name, planted in PLANTED.items() for right in planted.right])
def test_right_and_untried(name, right):
    check = PLANTED[name].call
    assert check(right).right is True
    assert check(...).right is None


@pytest.mark.parametrize("name,wrong,word", ALL_SLIPS)
def test_slips_are_named(name, wrong, word):
    feedback = PLANTED[name].call(wrong)
    assert feedback.right is False and word in feedback.text


@pytest.mark.parametrize("name", CHECKS)
def test_every_check_refuses_five_planted_answers_each_for_its_own_reason(name):
    planted = PLANTED[name]
    answers = [planted.call(wrong) for wrong, _ in planted.slips]
    assert len({feedback.text for feedback in answers}) >= 5
    for feedback in answers:
        assert not feedback.unknown and not feedback.text.startswith(("A number is wanted", "Your number is"))


def test_nothing_is_planted_for_a_check_that_is_gone():
    assert set(PLANTED) == set(CHECKS)


@pytest.mark.parametrize("name", CHECKS)
def test_no_slip_hides_behind_another_and_all_are_planted(name, monkeypatch):
    seen = {}
    check_number = exercises.check_number

    def spy(answer, right, why, slips=(), tolerance=2e-3):
        seen.update(right=right, slips=slips, tolerance=tolerance)
        return check_number(answer, right, why, slips, tolerance)

    monkeypatch.setattr(exercises, "check_number", spy)
    texts = {PLANTED[name].call(wrong).text for wrong, _ in PLANTED[name].slips}
    if seen:  # the others compare no numbers
        values = [seen["right"], *(value for value, _ in seen["slips"])]
        for one, other in combinations(values, 2):
            assert one != pytest.approx(other, rel=seen["tolerance"]), (one, other)
        assert {reason for _, reason in seen["slips"]} <= texts


def test_the_measurements_above_say_what_they_should():
    assert RAG_RUN.median(metrics.ttft_s) == 1.2 and RAG_RUN.median(metrics.tpot_s) == pytest.approx(0.04)
    totals = {CHAT_RUN: 2.7069, RAG_RUN: 2.12, LONG: 1.81, READ_MANY: 1.5614, FULL: 1.2904, HIT: 0.4184, BATCHES[16]: 1.7745}
    for run, total_s in totals.items():
        assert run.median(metrics.total_s) == pytest.approx(total_s)


def test_a_lab_that_was_loaded_is_understood():
    lab, one = toy_lab(), 2 * 2 * 2 * 16 * 8  # keys and values, 2 layers, 2 heads, 16 numbers, float64
    assert exercises.check_kv_bytes(one * 1228, lab, RAG).right is True
    assert "query heads" in exercises.check_kv_bytes(one * 1228 * 2, lab, RAG).text


def test_an_order_of_more_requests_gets_the_rule():
    feedback = exercises.check_order(["3x3", "5x1", "2x4", "4x2"], ["5x1", "4x2", "3x3", "2x4"])
    assert feedback.right is False and feedback.text.startswith("Sort by")


def test_a_small_batch_that_breaks_the_promise_is_not_said_to_keep_it():
    line = [measurement(32, 16, 0.1, tpot, size) for size, tpot in ((1, 0.04), (2, 0.09), (4, 0.07), (8, 0.1))]
    assert exercises.check_largest_batch(4, line).right is True
    assert exercises.check_largest_batch(2, line).text == "At batch 2 a token takes 90 ms; the promise is 80 ms."


def test_overhead_is_refused_where_a_floor_explains_the_time():
    feedback = exercises.check_regime("overhead", "memory", "why")
    assert feedback.right is False and "which?" in feedback.text


def test_positional_calls_are_fine():
    def by_hand(model, ids, count):
        cache, written = loop.new_cache(model, 200), []
        while len(written) < count:
            named = {cache_argument(type(model)): cache}
            written.append(model(written[-1] if written else ids, **named).logits[:, -1:].argmax(-1))
        return torch.cat(written, dim=1)

    assert exercises.check_generate(by_hand, toy_lab(), random_ids(1, 9), 8).right is True


def test_code_that_breaks_gets_a_sentence():
    def stub(*_):
        raise NotImplementedError

    def broken(*_):
        return 1 / 0

    lab, ids = toy_lab(), random_ids(1, 9)
    assert exercises.check_generate(stub, lab, ids, 8).right is None
    assert "ZeroDivisionError" in exercises.check_generate(broken, lab, ids, 8).text
    assert exercises.check_generate(..., lab, ids, 8).right is None


def test_feedback_is_escaped():
    assert "<script>" not in exercises.check_tpot("<script>")._repr_html_()


@pytest.mark.parametrize("name", CHECKS)
def test_hints_come_in_steps(name):
    check, hints = getattr(exercises, name), HINTS[name]
    assert 2 <= len(hints) <= 3 and len(set(hints)) == len(hints) and all(text.strip() for text in hints)
    for step in range(1, len(hints) + 1):
        shown = exercises.hint(check, step)
        assert shown.right is None and repr(shown).startswith("Hint: 1. ")
        assert [text in shown.text for text in hints] == [number <= step for number in range(1, len(hints) + 1)]
        following = f"exercises.hint(exercises.{name}, {step + 1}) shows the next of {len(hints)}"
        assert (following if step < len(hints) else "folded below") in shown.text
    assert exercises.hint(check) == exercises.hint(check, 1)


def test_hints_are_for_checks_that_exist():
    assert set(HINTS) == set(CHECKS)


@pytest.mark.parametrize("name", CHECKS)
def test_only_the_last_hint_may_give_the_answer(name):
    for text in HINTS[name][:-1]:
        numbers = [float(word.replace(",", "")) for word in re.findall(r"\d[\d,]*(?:\.\d+)?", text)]
        for right in PLANTED[name].right:
            if isinstance(right, int | float):
                assert not any(number == pytest.approx(right, rel=5e-3) for number in numbers)
            elif isinstance(right, str):
                assert right.lower() not in text.lower()


@pytest.mark.parametrize("step", [0, -1, 4, 1.5, 2.0, True, "2", None, ..., float("nan")])
def test_a_step_that_is_none_gets_a_sentence(step):
    said = exercises.hint(exercises.check_tpot, step)
    assert isinstance(said, exercises.Feedback) and said.right is None
    wanted = "There are 3 hints and no more; the solution is folded" if step == 4 else "a whole number from 1 to 3"
    assert wanted in said.text and said.text.count(".") == 1 and "\n" not in said.text


@pytest.mark.parametrize("check", [exercises.check_number, print, len, None, 7, "tpot", exercises.check_tpot(0.02)])
def test_hints_for_something_else_get_a_sentence(check):
    said = exercises.hint(check)
    assert isinstance(said, exercises.Feedback) and said.right is None and "named without calling it" in said.text


@pytest.mark.parametrize("name", CHECKS)
def test_who_has_not_tried_is_told_of_the_hints_and_who_was_told_a_reason_is_not(name):
    stuck = f" Stuck? exercises.hint(exercises.{name})"
    untried = PLANTED[name].call(...)
    assert repr(untried).startswith("Your turn: ") and untried.text.endswith(stuck)
    assert not any("Stuck?" in PLANTED[name].call(wrong).text for wrong, _ in PLANTED[name].slips)
    assert "Stuck?" not in PLANTED[name].call(PLANTED[name].right[0]).text


@pytest.mark.parametrize(
    "name,wrong",
    [("check_tpot", 7), ("check_tpot", 0.0203), ("check_shape", "512+64x31@4"), ("check_regime", "slow")],
)
def test_a_mistake_nobody_knows_leads_to_the_hints(name, wrong):
    assert PLANTED[name].call(wrong).text.endswith(f" Stuck? exercises.hint(exercises.{name})")


def test_an_unfinished_function_leads_to_the_hints():
    def stub(*_):
        raise NotImplementedError

    assert exercises.check_generate(stub, toy_lab(), random_ids(1, 9), 8).text.endswith(
        "exercises.hint(exercises.check_generate)"
    )


def test_hints_show_as_lines():
    assert exercises.hint(exercises.check_largest_batch, 3)._repr_html_().count("<br>") == 3
    assert "tpot[B] &lt;= 2" in exercises.hint(exercises.check_largest_batch, 3)._repr_html_()
