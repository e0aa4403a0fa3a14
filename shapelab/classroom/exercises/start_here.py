"""Exercises of notebook 00."""

from shapelab.classroom.exercises.check import Feedback, Slip, check_number, exercise, first_slip
from shapelab.errors import ShapelabError
from shapelab.request.shape import RequestShape


@exercise(
    "Draw the output tokens as dots on a time line. TPOT is the mean gap between neighbours. How many gaps are there?",
    "The first dot stands at 0.45 s and the last at 2.43 s. The time before the first dot belongs to TTFT.",
    "(last - first) / (output tokens - 1), both times in seconds.",
)
def check_tpot(answer) -> Feedback:
    """900 tokens in, 100 out; the first token came after 0.45 s, the last after 2.43 s."""
    return check_number(
        answer, (2.43 - 0.45) / 99,
        "100 tokens have 99 gaps between them. The wait for the first token belongs to TTFT.",
        [
            Slip("tokens_for_gaps", (2.43 - 0.45) / 100, "100 tokens have 99 gaps between them: the first token comes from the prefill. Divide by N - 1."),
            Slip("ttft_included", 2.43 / 99, "You count the gaps correctly, but your time still includes TTFT. Subtract it first."),
            Slip("ttft_included_tokens_for_gaps", 2.43 / 100, "Your time includes the wait for the first token. TPOT starts when the first token is there."),
            Slip("not_divided", 2.43 - 0.45, "That is the whole decode time. Divide it by the number of gaps between the tokens."),
            Slip("input_counted", 2.43 / 1000, "The model does not write the input tokens. Count the output tokens only, and only the time after the first."),
        ], unit="seconds per token",
    )  # fmt: skip


@exercise(
    "Reading and writing use passes differently. How many tokens can go into one pass, and how many come out?",
    "The whole prompt goes into one pass, and that pass already writes the first token of the answer.",
    "One prefill, and a decode step for each output token after the first: 1 + (N - 1).",
)
def check_passes(answer) -> Feedback:
    """How often the model runs for 1205x24."""
    return check_number(
        answer, 24,
        "One prefill writes the first token, and 23 decode steps write the others.",
        [
            Slip("prefill_writes_nothing", 25, "The prefill already writes the first token, so one step fewer is left for the others."),
            Slip("prefill_forgotten", 23, "Those are the decode steps. The prefill is a pass too."),
            Slip("pass_per_token", 1229, "The model reads the prompt in one pass, all 1,205 tokens together."),
            Slip("pass_per_input_token", 1228, "You count the steps correctly, but the model reads the prompt in one pass, not in 1,205."),
            Slip("input_tokens", 1205, "The model reads 1,205 tokens, but all in one pass. Only the tokens that it writes take a pass each."),
            Slip("prefill_only", 1, "One pass is the prefill: it reads the prompt and writes one token. The model still has to write the others."),
            Slip("phases", 2, "Prefill and decode are two phases, but decode runs the model once for every token it writes."),
        ], tolerance=1e-9,
    )  # fmt: skip


@exercise(
    "A shape describes one user's tokens; the batch says how many users there are. Which numbers belong to one user?",
    "Cached tokens come on top of the input tokens. So the shared prefix is one number, and the new tokens are another.",
    "As text a shape is CACHED+INPUTxOUTPUT@BATCH. The exercise names all four numbers.",
)
def check_shape(answer) -> Feedback:
    """512 tokens of a shared prefix are cached, each of 4 users sends 64 new ones and gets 32."""
    try:
        shape = RequestShape.parse(answer) if isinstance(answer, str) else answer
    except ShapelabError:  # its sentence shows another shape as an example: this one
        shape = None
    if not isinstance(shape, RequestShape):
        return Feedback(False, "That is no shape. Answer with a RequestShape, or with text such as '1205x24'.", "no_shape")
    if shape == RequestShape(64, 32, 4, 512):
        return Feedback(True, "Cached tokens come on top of the input tokens: each user's request reads 64 and attends to 576.")
    cached, new, written = shape.cached_tokens, shape.input_tokens, shape.output_tokens
    slips = [
        Slip("input_holds_cached", new == 576, "Input tokens are those that the model reads now. The cached ones come on top, in cached_tokens."),
        Slip("cached_holds_input", cached == 576, "Cached tokens are the shared prefix only. The new ones are input tokens."),
        Slip("swapped", (cached, new) == (64, 512), "You swapped cached and input tokens: the cached ones come first, before the +."),
        Slip("no_cached", cached == 0, "The cached tokens are missing: write them in front, before a +."),
        Slip("counted_for_all_users", new == 256 or cached == 2048 or written == 128, "Count the tokens of one user, not of all four. The batch says how many users there are."),
        Slip("no_batch", shape.batch_size == 1, "Four users who ask at once are a batch of 4: add @4."),
    ]  # fmt: skip
    return first_slip(slips, Feedback(False, f"{shape} is another request. Compare it with the exercise, number by number."))
