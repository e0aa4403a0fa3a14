"""Exercises of notebook 07."""

from shapelab.classroom.exercises.check import Feedback, Slip, check_number, exercise


@exercise(
    "There are three prices. Sort the tokens first: how many pay each price?",
    "The cached tokens are among the prompt tokens. The rest of the prompt pays the full input price.",
    "((262,960 - 257,955) * 1.25 + 257,955 * 0.625 + 1,744 * 10) / 1,000,000",
)
def check_cached_bill(answer) -> Feedback:
    """Input 1.25, cached 0.625, output 10 USD a million: 262,960 prompt tokens, 257,955 of them cached, 1,744 out."""
    prompt, cached, out = 262_960, 257_955, 1_744
    right = ((prompt - cached) * 1.25 + cached * 0.625 + out * 10) / 1e6
    return check_number(
        answer, right,
        "Cached tokens are part of the prompt: you pay for each once, at the cached price.",
        [
            Slip("cached_twice", (prompt * 1.25 + cached * 0.625 + out * 10) / 1e6, "You count the cached tokens twice. They are part of the prompt: subtract them first."),
            Slip("no_cached_price", (prompt * 1.25 + out * 10) / 1e6, "The cached tokens have a lower price of their own."),
            Slip("cached_free", ((prompt - cached) * 1.25 + out * 10) / 1e6, "Cached tokens are cheap, not free."),
            Slip("per_token", right * 1e6, "Prices are per million tokens: divide."),
            Slip("per_thousand", right * 1e3, "Prices are per million tokens, not per thousand."),
            Slip("no_output", ((prompt - cached) * 1.25 + cached * 0.625) / 1e6, "The output tokens are missing: few, but expensive."),
            Slip("swapped", (cached * 1.25 + (prompt - cached) * 0.625 + out * 10) / 1e6, "You swapped the prices of cached and new input."),
        ], unit="USD", tolerance=1e-5,
    )  # fmt: skip


@exercise(
    "Go in steps: what does a second of the machine cost, how many seconds does the batch need, and who shares them?",
    "An hour has 3,600 seconds. The machine works in half of its hours, so every busy second pays for an idle one as well.",
    "2.4 * 0.35 / 3600 / 0.5 is the batch's price. Its 8 requests share it.",
)
def check_machine_request(answer) -> Feedback:
    """USD of a request of 2.4 s in a batch of 8, on a machine of 0.35 USD an hour that works half of its hours."""
    right = 2.4 * 0.35 / 3600 / 0.5 / 8
    return check_number(
        answer, right,
        "The 8 requests of the batch share its seconds, and you pay for the idle half of the hours as well.",
        [
            Slip("not_shared", right * 8, "The 8 requests of the batch share the machine's time."),
            Slip("idle_free", right / 2, "You pay for idle hours, too. At half utilisation each busy second costs twice."),
            Slip("not_shared_idle_free", right * 8 / 2, "The 8 requests share the time, and you pay for idle hours, too."),
            Slip("hour_for_second", right * 3600, "The price is for an hour of 3,600 seconds."),
            Slip("minutes", right * 60, "An hour has 60 minutes, but 3,600 seconds."),
            Slip("multiplied", right * 8 * 8, "A batch makes a request cheaper: divide by 8, do not multiply."),
            Slip("utilisation_multiplied", right / 4, "Idle hours make a request more expensive: divide by the utilisation."),
        ], unit="USD", tolerance=1e-3,
    )  # fmt: skip


@exercise(
    "Let an input token cost 1 and an output token r. What does each of the two requests cost?",
    "Rag costs 1205 + 24 r, chat 60 + 80 r. At the ratio that the exercise asks for, they cost the same.",
    "Set them equal and bring r to one side: (1205 - 60) / (80 - 24).",
)
def check_break_even(answer) -> Feedback:
    """The output:input price ratio from which on rag (1,205 in, 24 out) is cheaper than chat (60 in, 80 out)."""
    return check_number(
        answer, (1205 - 60) / (80 - 24),
        "1205 + 24 r = 60 + 80 r. Public ratios lie below it, so at list prices rag costs more.",
        [
            Slip("rag_alone", 1205 / 24, "Both requests have both kinds of tokens. Set the two bills equal and solve for the ratio."),
            Slip("rag_writes_nothing", (1205 - 60) / 80, "Rag writes 24 tokens, too: divide by the difference."),
            Slip("chat_writes_nothing", (1205 - 60) / 24, "Chat writes 80 tokens. Divide by how many more it writes than rag."),
            Slip("chat_reads_nothing", 1205 / (80 - 24), "Chat reads 60 tokens, too: divide the difference."),
            Slip("signs", (1205 + 60) / (80 + 24), "Check the signs: a term that changes sides changes its sign."),
        ], unit="output price over input price", tolerance=0.01,
    )  # fmt: skip
