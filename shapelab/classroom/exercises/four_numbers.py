"""Exercises of notebook 03."""

from shapelab.classroom.exercises.check import Feedback, Slip, check_number, exercise, seconds
from shapelab.record.measurement import Measurement


@exercise(
    "One more token is a difference. What do the two requests share, and in what do they differ?",
    "Reading ends at the first token, so subtract the two TTFTs. That removes the fixed cost of a pass.",
    "(TTFT of long - TTFT of short) / (1205 - 240) is in seconds per token. The exercise asks for milliseconds.",
)
def check_marginal_read(answer, short: Measurement, long: Measurement) -> Feedback:
    """Milliseconds for one more input token, from two shapes that differ only in their input."""
    (a, _, total_a), (b, _, total_b) = seconds(short), seconds(long)
    more = long.input_tokens - short.input_tokens
    spread = "That spreads the fixed cost of the pass over the tokens. Take the difference of the two shapes."
    return check_number(
        answer, (b - a) / more * 1e3,
        "What a pass costs however few tokens it reads cancels out. The price of the token itself is left.",
        [
            Slip("long_alone", b / long.input_tokens * 1e3, spread),
            Slip("short_alone", a / short.input_tokens * 1e3, spread),
            Slip("all_tokens", (b - a) / long.input_tokens * 1e3, f"The two prompts differ by {more:,} tokens; divide by those."),
            Slip("not_divided", (b - a) * 1e3, f"That is for {more:,} tokens. Divide by them."),
            Slip("totals", (total_b - total_a) / more * 1e3, "The totals also count the decode steps, which are slower here. Reading ends at the first token: use TTFT."),
        ], unit="milliseconds per input token",
    )  # fmt: skip


@exercise(
    "Take the request apart: one prefill, and then the steps. How many steps does an answer of 101 tokens need?",
    "A step pays for its context, and the context grows by one each time. Its average is all you need.",
    "0.050 + 1000 * 0.001 for the prefill; then 100 * (0.040 + 5e-6 * the average of 1,001 to 1,100).",
)
def check_total_from_terms(answer) -> Feedback:
    """1000x101 where a pass costs 50 ms and 1 ms a token, a step 40 ms and 5 us a token of context."""
    ttft, step, context = 0.05 + 1000 * 0.001, 0.040, 5e-6
    return check_number(
        answer, ttft + 100 * (step + context * 1050.5),
        "One prefill, and 100 steps whose context grows from 1,001 to 1,100 tokens, 1,050.5 on average.",
        [
            Slip("tokens_for_steps", ttft + 101 * (step + context * 1050.5), "The prefill writes the first token: 100 steps are left."),
            Slip("no_context", ttft + 100 * step, "Each step also reads its context, about 1,050 tokens, and that takes time."),
            Slip("context_of_the_prompt", ttft + 100 * (step + context * 1000), "You are close: the context grows with every step. Take its average over the steps."),
            Slip("context_at_the_end", ttft + 100 * (step + context * 1100), "Only the last step sees 1,100 tokens. Take the average over the steps."),
            Slip("context_of_the_answer", ttft + 100 * (step + context * 50.5), "The steps look back at the prompt too, not only at the written tokens."),
            Slip("context_once", ttft + 100 * step + context * 1050.5, "Every step looks back at its context. You count that once."),
            Slip("no_prefill", 100 * (step + context * 1050.5), "The prefill is missing: 50 ms for the pass and 1 ms for each of 1,000 tokens."),
            Slip("no_fixed_cost", 1.0 + 100 * (step + context * 1050.5), "The fixed cost of the prefill's pass is missing: 50 ms."),
            Slip("milliseconds_for_microseconds", ttft + 100 * (step + 5e-3 * 1050.5), "Check the unit: 5 us are 0.000005 s, not 5 ms."),
        ], unit="seconds", tolerance=2e-4,
    )  # fmt: skip


@exercise(
    "A step has a part that is always the same and a part that grows. How large is the second when it doubles the first?",
    "As large as the first: 40 ms. Each token of context adds 5 us to it. Bring both to the same unit.",
    "0.040 s / 0.000005 s.",
)
def check_context_that_doubles(answer) -> Feedback:
    """At which context a step of 40 ms and 5 us a token of context takes twice its 40 ms."""
    return check_number(
        answer, 8000,
        "Beyond that, a step spends most of its time looking back. Models with fewer KV heads get there later.",
        [
            Slip("whole_step", 16000, "Twice 40 ms is 80 ms, and the step itself takes 40 of them. The context gets the other 40."),
            Slip("whole_step_and_unit", 16, "Check the unit: 5 us are 0.005 ms. And the step itself takes 40 of the 80 ms."),
            Slip("mixed_units", 40 / 5e-6, "You mix units: 40 milliseconds over 5e-6 seconds. In seconds the step takes 0.040."),
            Slip("price_of_reading", 40 / 1, "1 ms is the price of reading a token in the prefill. A step that looks back at it pays 5 us."),
            Slip("prompt_subtracted", 8000 - 1000, "Subtract nothing: the prompt's tokens are context like any others."),
        ], unit="tokens", tolerance=1e-6,
    )  # fmt: skip
