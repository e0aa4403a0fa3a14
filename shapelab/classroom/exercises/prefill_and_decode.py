"""Exercises of notebook 02. The first one runs a model."""

from collections.abc import Callable

from shapelab.classroom.exercises.check import Feedback, Slip, check_number, exercise, first_slip, seconds
from shapelab.record.measurement import Measurement
from shapelab.request.shape import RequestShape
from shapelab.theory.arithmetic import kv_bytes_per_token


@exercise(
    "Two functions do all the work. Which of them do you call once, and which again and again?",
    "prefill reads the prompt and returns the first id. Each decode_step takes the newest id, and all share one cache.",
    "written = [loop.prefill(model, input_ids, cache)], then append loop.decode_step(model, written[-1], cache) until "
    "there are enough; torch.cat(written, dim=1) makes one tensor of them.",
)
def check_generate(answer: Callable, lab, input_ids, count: int) -> Feedback:
    """The learner's own generate, built from prefill and decode_step, run on lab's model. input_ids: (B, S)."""
    import torch

    from shapelab.measure.clock import HostClock
    from shapelab.measure.loop import timed

    passes = []  # tokens that each pass reads

    def note(_model, positional, named):
        passes.append((positional[0] if positional else named["input_ids"]).shape[1])

    hook = lab.model.register_forward_pre_hook(note, with_kwargs=True)
    try:
        with torch.inference_mode():
            written = answer(lab.model, input_ids, count)
    except NotImplementedError:
        return Feedback(None, "Fill in the function and run the cell again.")
    except Exception as error:  # the learner's code may do anything; a sentence must come all the same
        return Feedback(False, f"Your function stopped with {type(error).__name__}: {error}", "stopped")
    finally:
        hook.remove()
    if not isinstance(written, torch.Tensor):
        return Feedback(
            False, f"Return the ids as one tensor (torch.cat joins them along dim=1), not {type(written).__name__}.", "no_tensor"
        )
    batch, prompt = input_ids.shape
    if written.dim() != 2 or written.shape[0] != batch:
        return Feedback(
            False, f"Return ids of shape ({batch}, {count}); yours have the shape {tuple(written.shape)}.", "other_form"
        )
    ids = timed(lab.model, input_ids, count, HostClock()).ids
    length, readings = written.shape[1], sum(tokens > 1 for tokens in passes)
    slips = [
        Slip("prompt_returned", length == prompt + count, "Your answer starts with the prompt. Return only the tokens that the model writes."),
        Slip("one_too_many", length == count + 1, f"You return {length} tokens instead of {count}. The prefill writes the first token."),
        Slip("other_count", length != count, f"You return {length} tokens instead of {count}."),
        Slip("prompt_read_again", readings > 1, f"Your function reads the prompt {readings} times. Read it once; the cache remembers it."),
        Slip("prompt_in_pieces", passes[:1] != [prompt], f"Your first pass reads {sum(passes[:1])} token(s). Prefill reads all {prompt} tokens of the prompt in one pass."),
        Slip("too_many_passes", len(passes) != count, f"Your function runs {len(passes)} passes for {count} tokens. One prefill and {count - 1} decode steps are enough."),
        Slip("other_ids", written.tolist() != ids.tolist(), "You return as many ids as you should, but not the right ones. Does each step get the newest id, and do all share one cache?"),
    ]  # fmt: skip
    return first_slip(slips, Feedback(True, f"One prefill and {count - 1} decode steps: that is all there is to generation."))


@exercise(
    "These are two questions: what does one token leave behind, and how many tokens are in the cache at the end?",
    "A token leaves a key and a value in each layer for each key-value head. And did the model ever read the last token it wrote?",
    "2 * num_hidden_layers * num_key_value_heads * head_dim * itemsize for a token, times input + output - 1 tokens.",
)
def check_kv_bytes(answer, lab, shape: RequestShape) -> Feedback:
    """Bytes in the KV cache at the end of a request."""
    spec, size, held = lab.spec, lab.dtype.itemsize, shape.final_kv_tokens
    one = int(kv_bytes_per_token(spec, size))
    return check_number(
        answer, one * held,
        f"{held:,} tokens of {one:,} bytes. The model never read the last token it wrote, so the cache does not hold it.",
        [
            Slip("last_token_counted", one * (held + 1), "The model wrote the last token but never read it: the cache holds one token less."),
            Slip("prompt_only", one * shape.prompt_tokens, "That is the prompt alone. The cache also holds the written tokens, all but the last."),
            Slip("query_heads", one * held * spec.num_attention_heads / spec.num_key_value_heads, "You counted query heads. The cache holds key-value heads only: num_key_value_heads."),
            Slip("half", one * held / 2, f"That is half of it. Keys and values both count, and a number takes {size} bytes."),
            Slip("twice", one * held * 2, f"That is twice too much: a number takes {size} bytes in this dtype."),
            Slip("one_layer", one * held / spec.num_hidden_layers, "That is one layer. Every layer has a cache of its own."),
            Slip("one_token", one, "That is one token. How many tokens does the cache hold at the end?"),
        ], unit="bytes", tolerance=1e-9,
    )  # fmt: skip


@exercise(
    "The two requests differ in one thing only. What they share cancels out when you subtract.",
    "Subtract the totals. How many more tokens did the longer answer write in that time?",
    "(total of longer_answer - total of base) / (40 - 8) is in seconds per token. The exercise asks for milliseconds.",
)
def check_marginal_write(answer, short: Measurement, long: Measurement) -> Feedback:
    """Milliseconds for one more output token, from two requests that differ only in the length of their answers."""
    more = long.output_tokens - short.output_tokens
    (_, tpot, total), extra = seconds(long), seconds(long)[2] - seconds(short)[2]
    return check_number(
        answer, extra / more * 1e3,
        "What the requests share cancels out: the prompt, the first token, everything they pay once.",
        [
            Slip("no_difference", total / long.output_tokens * 1e3, "Total over tokens spreads the prefill over the answer. Take the difference of two runs instead."),
            Slip("tpot", tpot * 1e3, "That is the TPOT of one run. Here take the difference of the two totals."),
            Slip("all_tokens", extra / long.output_tokens * 1e3, f"The two answers differ by {more} tokens; divide by those."),
            Slip("total_over_more", total / more * 1e3, "Take the difference of the totals first, then divide."),
            Slip("not_divided", extra * 1e3, f"That is for {more} tokens. Divide it by them."),
            Slip("one_step_less", extra / (more - 1) * 1e3, f"Both first tokens come from a prefill, so they cancel: {more} steps remain."),
        ], unit="milliseconds per output token",
    )  # fmt: skip
