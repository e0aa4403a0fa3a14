"""Exercises of notebook 01."""

from collections.abc import Iterable, Sequence

from shapelab.classroom.exercises.check import Feedback, Slip, check_number, exercise, first_slip, seconds
from shapelab.record.measurement import Measurement
from shapelab.request.shape import RequestShape


@exercise(
    "Which of a run's times ends at the moment the model has read the prompt?",
    "That is TTFT. All input tokens share it, because the model reads them in one pass.",
    "chat.median(metrics.ttft_s) / chat.input_tokens is in seconds. One more factor makes it milliseconds.",
)
def check_read_cost(answer, run: Measurement) -> Feedback:
    """Milliseconds for each prompt token of a request."""
    ttft, tpot, total = seconds(run)
    read, written = run.input_tokens, run.output_tokens
    return check_number(
        answer, ttft / read * 1e3,
        "All prompt tokens share one pass, so each costs a small part of it.",
        [
            Slip("total_for_ttft", total / read * 1e3, "Your time includes the decode. Reading ends at the first token: use TTFT."),
            Slip("reading_and_writing", total / (read + written) * 1e3, "You mix reading and writing. Divide TTFT alone by the input tokens alone."),
            Slip("output_for_input", ttft / written * 1e3, "The prefill reads the input tokens. Divide by those, not by the output tokens."),
            Slip("not_divided", ttft * 1e3, "That is the whole prefill. Divide it by the number of tokens it reads."),
            Slip("tpot", tpot * 1e3, "That is TPOT, the price of a token written. The model reads during TTFT."),
        ], unit="milliseconds per input token",
    )  # fmt: skip


@exercise(
    "The total has a part for reading and a part for writing. Which of them does a shorter answer change?",
    "Reading stays. The prefill writes the first of the 12 tokens: how many steps are left?",
    "TTFT + (N - 1) * TPOT with N = 12, from rag.median(metrics.ttft_s) and rag.median(metrics.tpot_s).",
)
def check_shorter_answer(answer, rag: Measurement) -> Feedback:
    """The total in seconds if the RAG request wrote 12 tokens instead of 24."""
    ttft, tpot, total = seconds(rag)
    return check_number(
        answer, ttft + 11 * tpot,
        "TTFT stays, and 11 steps remain. (This counts all steps alike; each is a little slower than the one before, as the context grows.)",
        [
            Slip("half_the_total", total / 2, "Half the answer does not halve the total: TTFT stays whole. And 12 tokens need 11 steps."),
            Slip("tokens_for_steps", ttft + 12 * tpot, "12 tokens need 11 steps: the prefill writes the first one."),
            Slip("no_ttft", 11 * tpot, "The wait for the first token is missing: add TTFT."),
            Slip("no_ttft_tokens_for_steps", 12 * tpot, "The wait for the first token is missing, and 12 tokens need 11 steps."),
            Slip("half_the_ttft", ttft / 2 + 11 * tpot, "The prompt is as long as before, so TTFT stays whole."),
            Slip("unchanged", total, "That is the request as it was, with 24 tokens. The model no longer writes 12 of them."),
        ],
        unit="seconds",
        also_right=[total - 12 * tpot],  # as good; medians of different repeats make it a slightly different number
    )  # fmt: skip


@exercise(
    "All three have the same number of tokens, so the sum decides nothing. Count passes instead: how many does each run?",
    "The whole prompt takes one pass, however long. Each written token after the first takes another.",
    "So the number after the x decides. Sort by it, the smallest first.",
)
def check_order(answer, shapes: Sequence[str]) -> Feedback:
    """Put requests of equally many tokens in order, fastest first: the tokens written decide."""
    written = {text: RequestShape.parse(text).output_tokens for text in shapes}
    right = sorted(shapes, key=written.get)
    order = [str(shape) for shape in answer] if isinstance(answer, Iterable) else []
    if sorted(order) != sorted(shapes):
        return Feedback(False, f"Answer with a list of these, fastest first: {', '.join(shapes)}.", "other_requests")
    if order == right:
        return Feedback(True, "All have the same number of tokens. Those that write fewer of them run fewer passes.")
    fastest, slowest = right[0], right[-1]
    slips = [
        Slip("sorted_by_reading", order == right[::-1], "You start with the request that reads least. Which takes longer, reading a token or writing one?"),
        Slip("only_the_fastest", order[0] == fastest, f"{fastest} is the fastest. For the others, too, look at what they write and not at what they read."),
        Slip("only_the_slowest", order[-1] == slowest, f"{slowest} is the slowest. Compare the others in the same way: each written token needs a pass of its own."),
        Slip("slowest_first", order[0] == slowest, f"{slowest} reads the least, but it runs {written[slowest]} passes. It cannot be the fastest."),
        Slip("fastest_last", order[-1] == fastest, f"{fastest} reads the most, but in the first of only {written[fastest]} passes. It cannot be the slowest."),
    ]  # fmt: skip
    return first_slip(slips, Feedback(False, "Sort by the tokens that the model writes: each of them needs a pass of its own."))
