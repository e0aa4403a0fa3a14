"""Exercises of notebook 05."""

from collections.abc import Sequence

from shapelab.classroom.exercises.check import Feedback, Slip, check_number, close, exercise, first_slip, read_number, seconds
from shapelab.record import metrics
from shapelab.record.measurement import Measurement


@exercise(
    "Look at one step of the batch. How many tokens does it write, and how long does it take?",
    "It writes one for each sequence and takes one TPOT. A rate is tokens over seconds.",
    "eight.batch_size / eight.median(metrics.tpot_s)",
)
def check_batch_throughput(answer, m: Measurement) -> Feedback:
    """Decode tokens a second of the whole batch, from TPOT and batch size."""
    (_, tpot, total), batch, tokens = seconds(m), m.batch_size, m.output_tokens
    return check_number(
        answer, batch / tpot,
        "Each step writes one token for every sequence of the batch.",
        [
            Slip("one_reader", 1 / tpot, "That is what one reader sees. A step writes a token for every sequence."),
            Slip("milliseconds", batch / tpot / 1e3, "TPOT is already in seconds here."),
            Slip("prefill_included", batch * tokens / total, "Your time includes the prefill. Decode throughput counts the steps only."),
            Slip("batch_twice", batch**2 / tpot, "You multiply by the batch twice."),
            Slip("tokens_for_steps", batch * tokens / (tokens - 1) / tpot, "The steps write N - 1 tokens of each sequence. The prefill writes the first."),
        ], unit="tokens per second", tolerance=5e-3,
    )  # fmt: skip


@exercise(
    "What exactly do you promise? Work out the longest wait you allow, from the reader who is alone.",
    "Compare each batch's TPOT with that wait, and keep those that stay within it. Then take the largest.",
    "max(B for B in sizes if tpot[B] <= 2 * tpot[1])",
)
def check_largest_batch(answer, line: Sequence[Measurement]) -> Feedback:
    """The largest measured batch whose TPOT is at most twice that of the smallest."""
    tpot = {m.batch_size: m.median(metrics.tpot_s) for m in line}
    alone, largest = min(tpot), max(tpot)
    limit = 2 * tpot[alone]
    choice = f"Answer with one of the measured batch sizes: {', '.join(map(str, tpot))}."
    size = read_number(answer)
    if isinstance(size, Feedback):
        return Feedback(False, f"{size.text} {choice}", size.slip)
    if size not in tpot:
        waits = [wait * unit for wait in (limit, *tpot.values()) for unit in (1, 1e3)]
        a_wait = Slip("a_wait", any(close(size, wait, 5e-3) for wait in waits), f"That is a wait. {choice}")
        return first_slip([a_wait], Feedback(False, f"That batch was not measured. {choice}", "not_measured"))
    if size == max(size for size, wait in tpot.items() if wait <= limit):
        return Feedback(
            True, f"The readers of batch {size:g} wait at most {limit * 1e3:.0f} ms a token, and the machine writes the most."
        )
    waits = f"a token takes {tpot[size] * 1e3:.0f} ms; you promise {limit * 1e3:.0f} ms."
    slips = [
        Slip("largest_measured", tpot[size] > limit and size == largest, f"That is the largest batch you measured, but there {waits}"),
        Slip("too_slow", tpot[size] > limit, f"At batch {size:g} {waits}"),
        Slip("alone", size == alone, "That is the reader who is alone. Others may wait up to twice as long, so there is room for more."),
        Slip("twice_the_batch", size == 2 * alone, "You allow twice the wait, not twice the batch. Look at each TPOT."),
    ]  # fmt: skip
    return first_slip(slips, Feedback(False, f"Batch {size:g} keeps the promise, but a larger one does too.", "larger_one_fits"))


@exercise(
    "A step costs the machine its time. How many tokens share it alone, and how many in the batch?",
    "A token's share is the step's time over the batch size. Work it out for both batches.",
    "The share alone over the share in the batch: tpot[1] / (tpot[16] / 16).",
)
def check_cheaper_token(answer, one: Measurement, many: Measurement) -> Feedback:
    """How many times less machine time an output token takes in a batch."""
    (_, a, total_a), (_, b, total_b), batch = seconds(one), seconds(many), many.batch_size
    return check_number(
        answer, a / (b / batch),
        "A second of the machine always costs the same; a batch shares it.",
        [
            Slip("wait_of_a_reader", b / a, "That is how much longer each reader waits. The whole batch shares the step's time: divide by the batch size first."),
            Slip("not_shared", a / b, "The whole batch shares the step's time: divide it by the batch size first."),
            Slip("batch_size", batch, "The batch size would be right if a step of a larger batch took no longer. It does."),
            Slip("multiplied", b * batch / a, "The batch shares the step: divide its time by the batch size, do not multiply."),
            Slip("share_saved", 1 - b / batch / a, "That is the share you save. Divide one time by the other to see how many times less it is."),
            Slip("totals", total_a / total_b * batch, "The totals include the prefill. Compare decode alone: use TPOT."),
        ], unit="the larger time over the smaller", tolerance=5e-3,
    )  # fmt: skip
