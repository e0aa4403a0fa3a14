"""Exercises of notebook 06."""

import math

from shapelab.classroom.exercises.check import Feedback, Slip, check_number, exercise, seconds
from shapelab.record.measurement import Measurement
from shapelab.theory.arithmetic import kv_bytes_per_token, weight_bytes
from shapelab.theory.hardware import gpu
from shapelab.theory.model_spec import ModelSpec


@exercise(
    "Query heads ask, key-value heads are asked. Which of the two does the cache hold?",
    "Count the numbers first: a key and a value, in each layer, for each KV head. Then turn them into bytes.",
    "2 * 32 layers * 8 KV heads * 128 numbers * 2 bytes.",
)
def check_llama_kv(answer) -> Feedback:
    """Bytes of KV cache a token in Llama 3 8B, in 16 bits."""
    right = kv_bytes_per_token(ModelSpec.from_config("llama-3-8b"))
    return check_number(
        answer, right,
        "2 x 32 layers x 8 KV heads x 128 numbers x 2 bytes. With 32 KV heads it would be four times as much.",
        [
            Slip("query_heads", right * 4, "You counted query heads (32). The cache holds KV heads: 8."),
            Slip("one_two", right / 2, "A token leaves a key and a value, and a number takes 2 bytes. One of the twos is missing."),
            Slip("no_twos", right / 4, "A token leaves a key and a value, and a number takes 2 bytes. Both twos are missing."),
            Slip("four_bytes", right * 2, "A number of 16 bits takes 2 bytes."),
            Slip("one_layer", right / 32, "That is one layer. Each of the 32 layers has a cache of its own."),
            Slip("one_head", right / 8, "That is one KV head. There are 8 of them, each with keys and values of its own."),
            Slip("bits", right * 8, "That is in bits. A byte has 8 of them."),
        ], unit="bytes", tolerance=1e-9,
    )  # fmt: skip


@exercise(
    "Two kinds of things share that memory. One of them is there before the first request comes.",
    "Subtract the weights, 2 bytes each. A request takes the bytes of 2,048 tokens; exercise 1 gave those of one.",
    "(usable_bytes - 8,030,261,248 * 2) / (2,048 * 131,072), and only whole requests count.",
)
def check_requests_that_fit(answer) -> Feedback:
    """Requests of 2,048 tokens beside Llama 3 8B in 16 bits on an A10G, activations left out."""
    spec, usable = ModelSpec.from_config("llama-3-8b"), gpu("A10G").usable_bytes
    weights, token = weight_bytes(spec), kv_bytes_per_token(spec)
    room, one = usable - weights, 2048 * token
    return check_number(
        answer, room // one,
        f"{room / 1e9:.2f} GB are left beside the weights, and a request takes {one / 1e9:.3f} GB.",
        [
            Slip("not_rounded", room / one, "A request fits or it does not: round down."),
            Slip("rounded_up", math.ceil(room / one), "The last request does not fit whole: round down."),
            Slip("no_weights", usable // one, "The weights take memory too. Subtract them first."),
            Slip("sold_gb", (24e9 - weights) // one, "24 GB is what the shop says. Use usable_bytes: a program cannot have all of it."),
            Slip("sold_gib", (24 * 2**30 - weights) // one, "You took 24 GiB. The card has 24 GB; use usable_bytes."),
            Slip("one_byte", (usable - weights / 2) // one, "You took one byte a weight. A weight of 16 bits takes two."),
            Slip("tokens", room // token, "That is how many tokens fit. A request takes 2,048 of them."),
            Slip("query_heads", room // (one * 4), "You counted 32 KV heads; Llama 3 8B has 8."),
        ], tolerance=1e-9,
    )  # fmt: skip


@exercise(
    "The model does not read a cached prefix again. During which of a request's times does it read?",
    "Which share of full's TTFT does hit still take? The rest is what the cache saves.",
    "1 - hit.median(metrics.ttft_s) / full.median(metrics.ttft_s)",
)
def check_prefix_saving(answer, full: Measurement, hit: Measurement) -> Feedback:
    """The share of TTFT that a cached prefix saves."""
    (a, _, total_a), (b, _, total_b) = seconds(full), seconds(hit)
    return check_number(
        answer, 1 - b / a,
        "The model reads only the new tokens. They look back at the cached ones.",
        [
            Slip("share_left", b / a, "That is the share that is left. The cache saves the rest."),
            Slip("times_faster", a / b, "That is how many times faster it is. The share saved is 1 - hit / full."),
            Slip("seconds_saved", a - b, "That is in seconds. For a share, divide by the time that the full prompt takes."),
            Slip("per_cent", (1 - b / a) * 100, "That is in per cent. Answer with a share between 0 and 1."),
            Slip("share_of_tokens", 1 - hit.input_tokens / full.input_tokens, "That is the share of the tokens. The time shrinks less, because no cache saves the fixed cost of a pass."),
            Slip("totals", 1 - total_b / total_a, "The totals include the decode, which takes as long as before. Use TTFT."),
        ], tolerance=5e-3,
    )  # fmt: skip
