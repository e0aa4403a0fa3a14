"""Checks that say what is wrong and why. Each takes the learner's answer and returns Feedback; none raises.

An answer of `...` means "not tried yet", so a notebook runs from top to bottom before anything is filled in.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from numbers import Integral, Real

from shapelab.classroom.hints import HINTS
from shapelab.classroom.html import escape
from shapelab.errors import ShapelabError
from shapelab.record import metrics
from shapelab.record.measurement import Measurement
from shapelab.request.shape import RequestShape
from shapelab.theory.arithmetic import decode_flops, kv_bytes_per_token, parameter_count, weight_bytes, weights_read
from shapelab.theory.hardware import gpu
from shapelab.theory.model_spec import ModelSpec
from shapelab.theory.roofline import HELPS


@dataclass(frozen=True)
class Feedback:
    """right is None while nothing was tried. unknown: a wrong answer that no slip explains. label: instead of the usual word."""

    right: bool | None
    text: str
    unknown: bool = False
    label: str = ""

    def __repr__(self) -> str:
        return f"{self._word}: {self.text}"

    def _repr_html_(self) -> str:
        color = {True: "#029e73", False: "#d55e00", None: "#949494"}[self.right]
        text = escape(self.text).replace("\n", "<br>")
        return f'<div style="border-left:4px solid {color};padding:4px 12px"><b>{self._word}.</b> {text}</div>'

    @property
    def _word(self) -> str:
        return self.label or {True: "Right", False: "Not yet", None: "Your turn"}[self.right]


NOT_TRIED = Feedback(None, "Replace ... with your answer and run the cell again.")


def hint(check: Callable, step: int = 1) -> Feedback:
    """The hints of a check up to a step, each saying more than the one before: hint(check_tpot), then hint(check_tpot, 2)."""
    name = str(getattr(check, "__name__", ""))
    if name not in HINTS:
        return Feedback(None, "Hints go by check, named without calling it: exercises.hint(exercises.check_tpot).", label="Hint")
    hints = HINTS[name]
    if not isinstance(step, Integral) or isinstance(step, bool) or step < 1:
        return Feedback(None, f"The step is a whole number from 1 to {len(hints)}.", label="Hint")
    if step > len(hints):
        return Feedback(None, f"There are {len(hints)} hints and no more; the solution is folded below the cell.", label="Hint")
    lines = [f"{number}. {text}" for number, text in enumerate(hints[:step], start=1)]
    if step < len(hints):
        lines.append(f"exercises.hint(exercises.{name}, {step + 1}) shows the next of {len(hints)}.")
    else:
        lines.append("That was the last one. The solution is folded below the cell.")
    return Feedback(None, "\n".join(lines), label="Hint")


def _exercise(check: Callable[..., Feedback]) -> Callable[..., Feedback]:
    """A check that points to its hints where it has no reason to give: nothing tried yet, or a mistake it does not know."""

    @wraps(check)
    def checked(*given, **named) -> Feedback:
        feedback = check(*given, **named)
        if feedback.right is None or feedback.unknown:
            return replace(feedback, text=f"{feedback.text} Stuck? exercises.hint(exercises.{check.__name__})")
        return feedback

    return checked


def check_number(answer, right: float, why: str, slips: Sequence[tuple[float, str]] = (), tolerance: float = 2e-3) -> Feedback:
    """Compare a number. slips: (value, what went wrong) for the mistakes people make; the nearest fitting one is named."""
    if answer is ...:
        return NOT_TRIED
    if not _is_number(answer):
        return Feedback(False, f"A number is wanted here, not {answer!r}.")
    if _close(answer, right, tolerance):
        return Feedback(True, why)
    named = [(abs(answer - value), reason) for value, reason in slips if _close(answer, value, tolerance)]
    if named:
        return Feedback(False, min(named, key=lambda pair: pair[0])[1])
    for factor, unit in (
        (1e3, "1,000 times too large: check the unit (milliseconds for seconds?)."),
        (1e-3, "1,000 times too small: check the unit (seconds for milliseconds?)."),
    ):
        if _close(answer, right * factor, tolerance):
            return Feedback(False, f"Your number is {unit}")
    if _close(answer, right, 0.03):
        return Feedback(False, "Close, but not it. Use the unrounded numbers, and check each count.", unknown=True)
    side = "above" if answer > right else "below"
    return Feedback(False, f"Your number is {side} the right one, by a factor of {_factor(answer, right)}.", unknown=True)


@_exercise
def check_tpot(answer) -> Feedback:
    """Notebook 00: 900 tokens in, 100 out, first token after 0.45 s, last after 2.43 s."""
    return check_number(
        answer, (2.43 - 0.45) / 99,
        "99 gaps between 100 tokens, and the wait for the first is TTFT's, not theirs.",
        [
            ((2.43 - 0.45) / 100, "100 tokens have 99 gaps between them: the first token comes from the prefill. Divide by N - 1."),
            (2.43 / 100, "The time to first token is in your number. TPOT starts when the first token is there."),
            (2.43 / 99, "The gaps are counted right, but TTFT is still in the time. Take it out first."),
            (2.43 - 0.45, "That is the whole decode time. Share it among the gaps between the tokens."),
            ((2.43 - 0.45) / 99 * 1e3, "That is in milliseconds; seconds are asked. Check the unit."),
            (2.43 / 1000, "Input tokens are not written. Only the output tokens count, and only the time after the first."),
            (99 / (2.43 - 0.45), "That is tokens a second, the rate. TPOT is seconds a token: turn it over."),
        ],
    )  # fmt: skip


@_exercise
def check_passes(answer) -> Feedback:
    """Notebook 00: how often the model runs for 1205x24."""
    return check_number(
        answer, 24,
        "One prefill writes the first token, and 23 decode steps write the others.",
        [
            (25, "The prefill already writes the first token, so 24 tokens need one prefill and 23 steps."),
            (23, "Those are the decode steps. The prefill is a pass too."),
            (1229, "The prompt is read in one pass, all 1,205 tokens together. That is the whole point of prefill."),
            (1228, "The 23 steps are right, but the prompt is read in one pass, not in 1,205."),
            (1205, "So many tokens are read, but in one pass. It is the written ones that take a pass each."),
            (1, "One pass is the prefill: it reads the prompt and writes one token. The others have to be written, too."),
            (2, "Prefill and decode are two phases, but decode runs the model once for every token it writes."),
        ],
        tolerance=1e-9,
    )  # fmt: skip


@_exercise
def check_shape(answer) -> Feedback:
    """Notebook 00: 512 tokens of a shared prefix are cached, 64 are new, 32 are written, 4 users at once."""
    if answer is ...:
        return NOT_TRIED
    try:
        shape = RequestShape.parse(answer) if isinstance(answer, str) else answer
    except ShapelabError as error:
        return Feedback(False, str(error))
    if not isinstance(shape, RequestShape):
        return Feedback(False, "A RequestShape, or a shape as text such as '1205x24', is wanted here.")
    if shape == RequestShape(64, 32, 4, 512):
        return Feedback(True, "Cached tokens come on top of the input tokens: this request reads 64 and attends to 576.")
    slips = [
        (shape.input_tokens == 576, "Input tokens are those processed now. The 512 cached ones come on top, in cached_tokens."),
        (shape.cached_tokens == 576, "Cached tokens are the shared prefix only. The 64 new ones are input tokens."),
        (
            (shape.cached_tokens, shape.input_tokens) == (64, 512),
            "Cached and input tokens are swapped: the cached ones come first, before the +.",
        ),
        (shape.cached_tokens == 0, "The 512 cached tokens are missing: put them in front, as in 512+64x32."),
        (
            shape.input_tokens == 256 or shape.cached_tokens == 2048,
            "Tokens are counted for one sequence, not for all 4 users: each reads 64 behind a prefix of 512.",
        ),
        (shape.output_tokens == 128, "Output tokens are counted for one sequence: 32, and the 4 users are the batch."),
        (shape.batch_size == 1, "Four users at once are a batch of 4: add @4."),
    ]
    return _named_slip(slips, f"{shape} is not this request; compare number by number.")


@_exercise
def check_read_cost(answer, run: Measurement) -> Feedback:
    """Notebook 01: milliseconds for each prompt token of a request."""
    ttft, total = run.median(metrics.ttft_s), run.median(metrics.total_s)
    return check_number(
        answer, ttft / run.input_tokens * 1e3,
        "All prompt tokens share one pass, so each costs a small part of it.",
        [
            (ttft / run.input_tokens, "That is in seconds; milliseconds are wanted."),
            (total / run.input_tokens * 1e3, "Your time includes the decode. Reading ends at the first token: use TTFT."),
            (total / (run.input_tokens + run.output_tokens) * 1e3, "Reading and writing are mixed in your number. Only TTFT over only the input tokens."),
            (ttft / run.output_tokens * 1e3, "The prefill reads the input tokens; divide by those, not by the output tokens."),
            (run.input_tokens / ttft, "That is tokens a second, the rate. Turn it over, and in milliseconds."),
            (ttft * 1e3, "That is the whole prefill. Divide it by the tokens that were read."),
            (run.median(metrics.tpot_s) * 1e3, "That is TPOT, the price of a token written. Reading is what TTFT is spent on."),
        ],
    )  # fmt: skip


@_exercise
def check_shorter_answer(answer, rag: Measurement) -> Feedback:
    """Notebook 01: the total in seconds if the RAG request wrote 12 tokens instead of 24."""
    ttft, tpot, total = (rag.median(metric) for metric in (metrics.ttft_s, metrics.tpot_s, metrics.total_s))
    why = "TTFT stays, and 11 steps remain. (This takes every step as equal; decode slows a little as the context grows.)"
    slips = [
        (total / 2, "Half the answer is not half the total: TTFT stays whole. And 12 tokens need 11 steps."),
        (ttft + 12 * tpot, "12 tokens need 11 steps: the prefill writes the first one."),
        (11 * tpot, "The wait for the first token is missing: add TTFT."),
        (12 * tpot, "The wait for the first token is missing, and 12 tokens need 11 steps."),
        (ttft / 2 + 11 * tpot, "The prompt is as long as before, so TTFT stays whole."),
        (total, "That is the request as it was, with 24 tokens. 12 of them are not written any more."),
    ]
    by_subtraction = total - 12 * tpot  # medians of different repeats: not exactly the same number, and as good
    right = (
        by_subtraction if answer is not ... and _is_number(answer) and _close(answer, by_subtraction, 2e-3) else ttft + 11 * tpot
    )
    return check_number(answer, right, why, slips)


@_exercise
def check_order(answer, shapes: Sequence[str]) -> Feedback:
    """Notebook 01: requests of the same number of tokens, fastest first. Decided by the tokens written."""
    if answer is ...:
        return NOT_TRIED
    written = {text: RequestShape.parse(text).output_tokens for text in shapes}
    right = sorted(shapes, key=written.get)
    given = [str(shape) for shape in answer] if isinstance(answer, list | tuple) else []
    if sorted(given) != sorted(shapes):
        return Feedback(False, f"A list of these is wanted, fastest first: {', '.join(sorted(shapes))}.")
    if given == right:
        return Feedback(True, "The same tokens in all, and the fewer of them are written, the fewer passes it takes.")
    fastest, slowest = right[0], right[-1]
    slips = [
        (given == right[::-1], "Exactly the other way round. Which is dearer here, a token read or a token written?"),
        (given[0] == fastest, f"{fastest} is the fastest, yes. The others, too: look at what they write, not what they read."),
        (given[-1] == slowest, f"{slowest} is the slowest, yes. Before it, too: each written token needs a pass of its own."),
        (given[0] == slowest, f"{slowest} reads the least, but it runs {written[slowest]} passes. It cannot be the fastest."),
        (given[-1] == fastest, f"{fastest} reads the most, but in one pass of {written[fastest]}. It cannot be the slowest."),
    ]  # fmt: skip
    return _named_slip(slips, "Sort by the tokens that are written: each of those needs a pass of its own.")


@_exercise
def check_generate(answer: Callable, lab, input_ids, count: int) -> Feedback:
    """Notebook 02: a generate of the learner's own, built from prefill and decode_step."""
    if answer is ...:
        return NOT_TRIED
    import torch

    from shapelab.measure.clock import HostClock
    from shapelab.measure.loop import timed

    passes = []

    def note(_model, positional, named):
        passes.append((positional[0] if positional else named["input_ids"]).shape[1])

    hook = lab.model.register_forward_pre_hook(note, with_kwargs=True)
    try:
        with torch.inference_mode():
            mine = answer(lab.model, input_ids, count)
    except NotImplementedError:
        return Feedback(None, "Fill in the function and run the cell again.")
    except Exception as error:  # the learner's code may do anything; the sentence must come all the same
        return Feedback(False, f"Your function stopped with {type(error).__name__}: {error}")
    finally:
        hook.remove()
    if not isinstance(mine, torch.Tensor):
        return Feedback(False, f"Return the ids as one tensor (torch.cat them along dim=1), not {type(mine).__name__}.")
    if mine.shape[0] != input_ids.shape[0] or mine.dim() != 2:
        return Feedback(False, f"The ids should have the shape (batch, {count}); yours have {tuple(mine.shape)}.")
    if mine.shape[1] == input_ids.shape[1] + count:
        return Feedback(False, "The prompt is in your answer. Only what was written counts.")
    if mine.shape[1] != count:
        hint = " The prefill writes the first token." if mine.shape[1] == count + 1 else ""
        return Feedback(False, f"{count} tokens are wanted and {mine.shape[1]} came.{hint}")
    prompt = input_ids.shape[1]
    if sum(length > 1 for length in passes) > 1:
        return Feedback(
            False, f"The prompt was read {sum(length > 1 for length in passes)} times. Read it once; the cache remembers it."
        )
    if passes and passes[0] != prompt:
        return Feedback(
            False, f"The first pass read {passes[0]} token(s). Prefill reads all {prompt} tokens of the prompt in one pass."
        )
    if len(passes) != count:
        return Feedback(False, f"{len(passes)} passes for {count} tokens: one prefill and {count - 1} decode steps are enough.")
    theirs = timed(lab.model, input_ids, count, HostClock()).ids
    if mine.tolist() != theirs.tolist():
        return Feedback(False, "The number is right, the ids are not. Does every step get the newest id, and all the same cache?")
    return Feedback(
        True, f"{len(passes)} passes: one prefill and {len(passes) - 1} decode steps. That is all there is to generation."
    )


@_exercise
def check_kv_bytes(answer, lab, shape: RequestShape) -> Feedback:
    """Notebook 02: bytes in the KV cache at the end of a request."""
    spec, size = lab.spec, lab.dtype.itemsize
    held = shape.final_kv_tokens
    one = int(kv_bytes_per_token(spec, size))
    return check_number(
        answer, one * held,
        f"{held:,} tokens of {one:,} bytes. The last token written was never read, so it is not in the cache.",
        [
            (one * (held + 1), "The last token was written but never read: the cache holds one token less."),
            (one * shape.prompt_tokens, "That is the prompt alone. The written tokens, all but the last, are in the cache too."),
            (one * held / 2, "Half of it: keys and values both count, and this model holds them in "
                             f"{size} bytes a number."),
            (one * held * spec.num_attention_heads / spec.num_key_value_heads, "You counted query heads. The cache holds the key-value heads only: num_key_value_heads."),
            (one * held / spec.num_hidden_layers, "That is one layer. Every layer has a cache of its own."),
            (one, "That is for one token. How many tokens does the cache hold at the end?"),
            (one * held * 2, f"Twice too much: a number takes {size} bytes in this dtype."),
        ],
        tolerance=1e-9,
    )  # fmt: skip


@_exercise
def check_marginal_write(answer, short: Measurement, long: Measurement) -> Feedback:
    """Notebook 02: milliseconds for one more output token, from two requests that differ in the answer's length only."""
    more = long.output_tokens - short.output_tokens
    a, b = short.median(metrics.total_s), long.median(metrics.total_s)
    return check_number(
        answer, (b - a) / more * 1e3,
        "What did not change cancels out: the prompt, the first token, everything that is paid once.",
        [
            ((b - a) / more, "That is in seconds; milliseconds are wanted."),
            (b / long.output_tokens * 1e3, "Total over tokens spreads the prefill over the answer. Take the difference of two runs instead."),
            (long.median(metrics.tpot_s) * 1e3, "That is the TPOT of one run. Here take the difference of the two totals."),
            ((b - a) / long.output_tokens * 1e3, f"The two answers differ by {more} tokens; divide by those."),
            (b / more * 1e3, "Take the difference of the totals first, then divide."),
            ((b - a) * 1e3, f"That is for {more} tokens. Share it among them."),
            ((b - a) / (more - 1) * 1e3, f"Both first tokens come from a prefill, so they cancel: {more} steps remain."),
        ],
    )  # fmt: skip


@_exercise
def check_marginal_read(answer, short: Measurement, long: Measurement) -> Feedback:
    """Notebook 03: milliseconds for one more input token, from two shapes that differ in their input only."""
    more = long.input_tokens - short.input_tokens
    a, b = short.median(metrics.ttft_s), long.median(metrics.ttft_s)
    return check_number(
        answer, (b - a) / more * 1e3,
        "What a pass costs however few tokens it reads has cancelled out. This is the price of the token itself.",
        [
            ((b - a) / more, "That is in seconds; milliseconds are wanted."),
            (b / long.input_tokens * 1e3, "That spreads the fixed cost of the pass over the tokens. Take the difference of the two shapes."),
            (a / short.input_tokens * 1e3, "That spreads the fixed cost of the pass over the tokens. Take the difference of the two shapes."),
            ((b - a) / long.input_tokens * 1e3, f"The two prompts differ by {more:,} tokens; divide by those."),
            ((b - a) * 1e3, f"That is for {more:,} tokens. Divide by them."),
            (more / (b - a), "That is tokens a second, the rate. Turn it over, and in milliseconds."),
            ((long.median(metrics.total_s) - short.median(metrics.total_s)) / more * 1e3, "In the totals the slower decode steps are counted too. Reading ends at the first token: use TTFT."),
        ],
    )  # fmt: skip


@_exercise
def check_total_from_terms(answer) -> Feedback:
    """Notebook 03: 1000x101 where a pass costs 50 ms and 1 ms a token, a step 40 ms and 5 us a token of context."""
    ttft, step, context = 0.05 + 1000 * 0.001, 0.040, 5e-6
    return check_number(
        answer, ttft + 100 * (step + context * 1050.5),
        "One prefill, and 100 steps whose context grows from 1,001 to 1,100 tokens, 1,050.5 on average.",
        [
            (ttft + 101 * (step + context * 1050.5), "The prefill writes the first token: 100 steps are left."),
            (ttft + 100 * step, "Each step also reads its context, about 1,050 tokens of it, and that takes time."),
            (ttft + 100 * (step + context * 1000), "Close: the context grows with every step. Take its average over the steps."),
            (100 * (step + context * 1050.5), "The prefill is missing: 50 ms for the pass and 1 ms for each of 1,000 tokens."),
            (1.0 + 100 * (step + context * 1050.5), "The fixed cost of the prefill's pass is missing: 50 ms."),
            (ttft + 100 * (step + context * 50.5), "The steps look at the prompt too, not only at the written tokens."),
            (ttft + 100 * (step + context * 1100), "Only the last step sees 1,100 tokens. Take the average over the steps."),
            (ttft + 100 * step + context * 1050.5, "The context is looked at in every step, not once."),
            (ttft + 100 * (step + 5e-3 * 1050.5), "Check the unit: 5 us are 0.000005 s, not 5 ms."),
        ],
        tolerance=2e-4,
    )  # fmt: skip


@_exercise
def check_context_that_doubles(answer) -> Feedback:
    """Notebook 03: at which context a step of 40 ms and 5 us a token of context takes twice its 40 ms."""
    return check_number(
        answer, 8000,
        "Beyond that, most of a step is looking back. Models with fewer KV heads get there later.",
        [
            (16000, "Twice 40 ms is 80 ms, and 40 of them are the step itself: 40 are left for the context."),
            (8, "Check the unit: 5 microseconds are 0.005 ms."),
            (80 / 5, "Check the unit, and 40 of the 80 ms are the step itself."),
            (40 / 5e-6, "The units are mixed: 40 milliseconds over 5e-6 seconds. In seconds the step takes 0.040."),
            (40 / 1, "1 ms is what a token costs when it is read in the prefill. A step that looks back at it pays 5 us."),
            (5e-6 / 0.040, "Turn it over: how many times do 5 us go into the 40 ms?"),
            (8000 - 1000, "Nothing is taken off: the prompt's tokens are context like any others."),
        ],
        tolerance=1e-6,
    )  # fmt: skip


@_exercise
def check_batch_throughput(answer, m: Measurement) -> Feedback:
    """Notebook 05: decode tokens a second of the whole batch, from TPOT and batch size."""
    tpot, batch = m.median(metrics.tpot_s), m.batch_size
    return check_number(
        answer, batch / tpot,
        "Each step writes one token for every sequence of the batch.",
        [
            (1 / tpot, "That is what one reader sees. A step writes a token for every sequence."),
            (batch / tpot / 1e3, "TPOT is in seconds here already."),
            (batch * m.output_tokens / m.median(metrics.total_s), "The prefill is in your time. Decode throughput counts the steps only."),
            (tpot / batch, "That is seconds a token; turn it over."),
            (batch**2 / tpot, "The batch is in your number twice."),
            (batch * m.output_tokens / (m.output_tokens - 1) / tpot, "N - 1 tokens of each sequence fall into the decode time."),
        ],
        tolerance=5e-3,
    )  # fmt: skip


@_exercise
def check_largest_batch(answer, line: Sequence[Measurement]) -> Feedback:
    """Notebook 05: the largest measured batch whose TPOT is at most twice that of the smallest."""
    tpot = {m.batch_size: m.median(metrics.tpot_s) for m in line}
    alone, limit = line[0].batch_size, 2 * line[0].median(metrics.tpot_s)
    right = max(size for size, wait in tpot.items() if wait <= limit)
    if answer is ...:
        return NOT_TRIED
    sizes = ", ".join(map(str, tpot))
    if not _is_number(answer):
        return Feedback(False, f"One of the measured batch sizes is wanted: {sizes}.")
    if answer == right:
        return Feedback(
            True, f"Batch {right}: its readers wait at most {limit * 1e3:.0f} ms a token, and the machine writes the most."
        )
    if answer not in tpot:
        waits = [wait * unit for wait in (limit, *tpot.values()) for unit in (1, 1e3)]
        slip = "That is a wait." if any(_close(answer, wait, 5e-3) for wait in waits) else "That batch was not measured."
        return Feedback(False, f"{slip} Which of the sizes {sizes} is the largest that keeps the promise?")
    waited = f"a token takes {tpot[answer] * 1e3:.0f} ms; the promise is {limit * 1e3:.0f} ms."
    slips = [
        (tpot[answer] > limit and answer == max(tpot), f"That is the largest measured, but there {waited}"),
        (tpot[answer] > limit, f"At batch {answer} {waited}"),
        (answer == alone, "That is the reader who is alone. Others may wait up to twice as long, so there is room for more."),
        (answer == 2 * alone, "Twice the wait is allowed, not twice the batch. Look at each TPOT."),
    ]  # fmt: skip
    return _named_slip(slips, f"Batch {answer} keeps the promise, but a larger one does too.", unknown=False)


@_exercise
def check_cheaper_token(answer, one: Measurement, many: Measurement) -> Feedback:
    """Notebook 05: how many times less machine time an output token takes in a batch."""
    a, b, batch = one.median(metrics.tpot_s), many.median(metrics.tpot_s), many.batch_size
    return check_number(
        answer, a / (b / batch),
        "The machine's second costs the same; a batch shares it.",
        [
            (b / batch / a, "Turn it over: how many times *less* is asked."),
            (b / a, "That is how much longer each reader waits. The step's time is shared by the whole batch: divide by it first."),
            (a / b, "The step's time is shared by the whole batch: divide it by the batch size first."),
            (batch, "It would be the batch size if a larger batch took no longer. It does."),
            (b * batch / a, "The batch shares the step: its time is divided by the batch size, not multiplied."),
            (1 - b / batch / a, "That is the share that is saved. How many times less is asked: one time over the other."),
            (
                one.median(metrics.total_s) / many.median(metrics.total_s) * batch,
                "The totals hold the prefill. Decode only: use TPOT.",
            ),
        ],
        tolerance=5e-3,
    )  # fmt: skip


@_exercise
def check_talk_floor(answer) -> Feedback:
    """Notebook 04: milliseconds a decode step of TinyLlama in 16 bits needs on a T4, at least."""
    spec, t4 = ModelSpec.from_config("tinyllama"), gpu("T4").device("float16")
    right = weights_read(spec) * 2 / t4.bytes_per_s * 1e3
    return check_number(
        answer, right,
        f"{weights_read(spec) * 2 / 1e9:.2f} GB at 320 GB/s. The input embedding is a look-up: one row of it is read, not all.",
        [
            (parameter_count(spec) * 2 / t4.bytes_per_s * 1e3, "Almost: the input embedding is looked up, not read whole. Take its V x h numbers off (it is not tied)."),
            (right / 1e3, "That is in seconds; milliseconds are wanted."),
            (right / 2, "A number takes 2 bytes in 16 bits."),
            (right * 1e9 / 2**30, "You took GiB (2^30 bytes). The bandwidth is in GB/s: 10^9 bytes."),
            (1e3 / right, "That is steps a second. Turn it over: the time of one step is asked."),
            (right * 2, "That is for 32-bit numbers. In 16 bits a number takes 2 bytes."),
            (decode_flops(spec, 1) / t4.flops_per_s * 1e3, "That is the arithmetic's time. Bytes over bandwidth is asked, and it is the longer one."),
        ],
        tolerance=5e-3,
    )  # fmt: skip


_REGIME_SLIPS = {
    "compute": "If it were compute-bound, the time would be near the floor of its FLOPs, and a pass over more tokens far longer.",
    "memory": "If it were memory-bound, the time would be near the floor of its bytes. Put the measured time beside each floor.",
    "overhead": "If it were overhead-bound, neither floor would come near the time. Here one of them does: which?",
    "bandwidth": "Bandwidth is a ceiling. A pass that waits for it is called memory-bound: is this one near that floor?",
    "flops": "FLOPs are the work. A pass that waits for them is called compute-bound: is this one near that floor?",
    "latency": "Latency is the time itself. The regime says what the time is spent on.",
    "decode": "Decode is a phase, and a step can be in any regime.",
    "prefill": "Prefill is a phase, and it can be in any regime.",
}


@_exercise
def check_regime(answer, right: str, why: str) -> Feedback:
    """Notebook 04: one of compute, memory, overhead."""
    if answer is ...:
        return NOT_TRIED
    named = str(answer).strip().lower().removesuffix("-bound").removesuffix(" bound")
    if named == right:
        return Feedback(True, why)
    reason = _REGIME_SLIPS.get(named, "")
    wanted = "" if named in HELPS else f"One of {', '.join(HELPS)} is wanted, as text."
    return Feedback(False, f"{reason} {wanted}".strip(), unknown=not reason)


@_exercise
def check_critical_batch(answer) -> Feedback:
    """Notebook 04: from which batch on a decode step on an H100 SXM in 16 bits is compute-bound, weights only."""
    h100 = gpu("H100-SXM").device("float16")
    right = h100.flops_per_s / h100.bytes_per_s
    return check_number(
        answer, right,
        "2 FLOPs for each weight and sequence, 2 bytes for each weight: the twos cancel, and the ridge point is left.",
        [
            (right * 2, "Each weight is multiplied and added: 2 FLOPs for each sequence."),
            (right / 2, "A weight in 16 bits is 2 bytes."),
            (h100.flops_per_s / 1e12, "That is the peak alone. Divide by the bandwidth, both in base units."),
            (right / 1e3, "Check the units: TFLOP/s are 10^12, GB/s are 10^9."),
            (1 / right, "Turn it over: the arithmetic grows with the batch, so FLOP/s go over bytes/s."),
            (right * 8, "16 bits are 2 bytes, not 16."),
            (h100.bytes_per_s / 1e9, "That is the bandwidth alone. Divide the peak by it, both in base units."),
        ],
        tolerance=0.01,
    )  # fmt: skip


@_exercise
def check_llama_kv(answer) -> Feedback:
    """Notebook 06: bytes of KV cache a token in Llama 3 8B, in 16 bits."""
    spec = ModelSpec.from_config("llama-3-8b")
    right = kv_bytes_per_token(spec)
    return check_number(
        answer, right,
        "2 x 32 layers x 8 KV heads x 128 numbers x 2 bytes. With 32 KV heads it would be four times as much.",
        [
            (right * 4, "You counted query heads (32). The cache holds KV heads: 8."),
            (right / 2, "Both keys and values are kept, and a number takes 2 bytes. One of the twos is missing."),
            (right / 4, "Keys and values are two, and a number takes 2 bytes: both twos are missing."),
            (right / 32, "That is one layer. Each of the 32 layers keeps its own."),
            (right / 8, "That is one KV head. There are 8 of them, each with keys and values of its own."),
            (right * 8, "That is in bits. A byte has 8 of them."),
            (right * 2, "A number takes 2 bytes in 16 bits."),
        ],
        tolerance=1e-9,
    )  # fmt: skip


@_exercise
def check_requests_that_fit(answer) -> Feedback:
    """Notebook 06: requests of 2,048 tokens beside Llama 3 8B in 16 bits on an A10G, activations left out."""
    spec, usable = ModelSpec.from_config("llama-3-8b"), gpu("A10G").usable_bytes
    room, one = usable - weight_bytes(spec), 2048 * kv_bytes_per_token(spec)
    right = int(room // one)
    return check_number(
        answer, right,
        f"{room / 1e9:.2f} GB are left beside the weights, and a request takes {one / 1e9:.3f} GB.",
        [
            (room / one, "A request fits or it does not: round down."),
            (math.ceil(room / one), "The last one does not fit whole: round down."),
            (int(usable // one), "The weights take their place, too. Take them off first."),
            (int((24e9 - weight_bytes(spec)) // one), "24 GB is what is sold. Use usable_bytes: some of it is not yours."),
            (int((24 * 2**30 - weight_bytes(spec)) // one), "You took 24 GiB. It is sold as 24 GB; use usable_bytes."),
            (int((usable - weight_bytes(spec) / 2) // one), "You took one byte a weight. In 16 bits it is two."),
            (int(room // kv_bytes_per_token(spec)), "That is how many tokens fit. A request takes 2,048 of them."),
            (int(room // (one * 4)), "You counted 32 KV heads; Llama 3 8B has 8."),
        ],
        tolerance=1e-9,
    )  # fmt: skip


@_exercise
def check_prefix_saving(answer, full: Measurement, hit: Measurement) -> Feedback:
    """Notebook 06: the share of TTFT that a cached prefix saves."""
    a, b = full.median(metrics.ttft_s), hit.median(metrics.ttft_s)
    return check_number(
        answer, 1 - b / a,
        "The cached tokens are not read again; only the new ones are, and they look at the cached ones.",
        [
            (b / a, "That is the share that is left. What is saved is the rest."),
            (a / b, "That is how many times faster it is. The share saved is 1 - hit / full."),
            (a - b, "That is seconds saved. For a share, divide by what the full prompt takes."),
            ((1 - b / a) * 100, "As a share, between 0 and 1, not in per cent."),
            (1 - hit.input_tokens / full.input_tokens, "That is the share of tokens. Time is asked: a pass has a fixed cost that no cache saves."),
            (1 - hit.median(metrics.total_s) / full.median(metrics.total_s), "That is the total. Decode takes as long as before: use TTFT."),
        ],
        tolerance=5e-3,
    )  # fmt: skip


@_exercise
def check_cached_bill(answer) -> Feedback:
    """Notebook 07: input 1.25, cached 0.625, output 10 USD a million: 262,960 prompt tokens, 257,955 of them cached, 1,744 out."""
    prompt, cached, out = 262_960, 257_955, 1_744
    right = ((prompt - cached) * 1.25 + cached * 0.625 + out * 10) / 1e6
    return check_number(
        answer, right,
        "Cached tokens are part of the prompt: they are billed once, at their own price.",
        [
            ((prompt * 1.25 + cached * 0.625 + out * 10) / 1e6, "The cached tokens are in your sum twice. They are part of the prompt: take them off first."),
            ((prompt * 1.25 + out * 10) / 1e6, "The cached tokens have a lower price of their own."),
            (((prompt - cached) * 1.25 + out * 10) / 1e6, "Cached tokens are cheap, not free."),
            (right * 1e6, "Prices are per million tokens: divide."),
            (right * 1e3, "Prices are per million tokens, not per thousand."),
            (((prompt - cached) * 1.25 + cached * 0.625) / 1e6, "The output tokens are missing: few, but dear."),
            ((cached * 1.25 + (prompt - cached) * 0.625 + out * 10) / 1e6, "The prices of cached and new input are swapped."),
        ],
        tolerance=1e-5,
    )  # fmt: skip


@_exercise
def check_machine_request(answer) -> Feedback:
    """Notebook 07: USD of a request of 2.4 s in a batch of 8, on a machine of 0.35 USD an hour that works half of its hours."""
    right = 2.4 * 0.35 / 3600 / 0.5 / 8
    return check_number(
        answer, right,
        "The batch's seconds, shared by its 8 requests; the idle half of the hours is paid as well.",
        [
            (right * 8, "The 8 requests of the batch share the machine's time."),
            (right / 2, "Idle hours are paid, too. At half utilisation each busy second costs twice."),
            (right * 8 / 2, "The 8 requests share the time, and idle hours are paid, too."),
            (right * 3600, "The price is for an hour of 3,600 seconds."),
            (right * 8 * 8, "A batch makes a request cheaper: divide by 8, do not multiply."),
            (right * 60, "An hour has 3,600 seconds; 60 are its minutes."),
            (right / 4, "Utilisation makes it dearer, not cheaper: divide by it."),
        ],
        tolerance=1e-3,
    )  # fmt: skip


@_exercise
def check_break_even(answer) -> Feedback:
    """Notebook 07: the output:input price ratio from which on rag (1,205 in, 24 out) is cheaper than chat (60 in, 80 out)."""
    right = (1205 - 60) / (80 - 24)
    return check_number(
        answer, right,
        "1205 + 24 r = 60 + 80 r. Public ratios lie below it, so at list prices rag is the dearer one.",
        [
            (1 / right, "Turn it over: output price over input price."),
            (1205 / 24, "Both requests have both kinds of tokens. Set the two bills equal and solve for the ratio."),
            ((1205 - 60) / 80, "Rag writes 24 tokens, too: only 80 - 24 are the difference."),
            ((1205 - 60) / 24, "Chat writes 80 tokens. Divide by what it writes more than rag, not by what rag writes."),
            (1205 / (80 - 24), "Chat reads 60 tokens, too: only 1205 - 60 are the difference."),
            ((1205 + 60) / (80 + 24), "Check the signs: what changes its side of the equation is taken off, not added."),
        ],
        tolerance=0.01,
    )  # fmt: skip


def _named_slip(slips: Sequence[tuple[bool, str]], otherwise: str, unknown: bool = True) -> Feedback:
    """For answers that are no numbers: the first slip that was made, else a sentence for any other."""
    reason = next((reason for made, reason in slips if made), None)
    return Feedback(False, reason or otherwise, unknown=unknown and reason is None)


def _is_number(answer) -> bool:
    return isinstance(answer, Real) and not isinstance(answer, bool) and math.isfinite(answer)


def _close(a: float, b: float, tolerance: float) -> bool:
    return math.isclose(a, b, rel_tol=tolerance)


def _factor(answer: float, right: float) -> str:
    if not answer or not right or answer * right < 0:
        return "no sensible size (check its sign)"
    return f"{max(answer / right, right / answer):.3g}"
