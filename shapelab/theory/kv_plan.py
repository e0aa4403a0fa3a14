"""How many requests of a shape a GPU holds: weights, activations of a prefill, and KV cache for the rest."""

import math
from dataclasses import dataclass, replace

from shapelab.errors import BadArgument, DoesNotFit
from shapelab.request.shape import RequestShape, real, whole
from shapelab.theory import arithmetic
from shapelab.theory.model_spec import ModelSpec

BLOCK_TOKENS = 16  # what vLLM's paged cache uses by default (Kwon et al. 2023)


@dataclass(frozen=True)
class KVPlan:
    """Bytes on a device, and the requests that fit. `used` is the share of the reserved cache that holds tokens at the end."""

    allocation: str
    requests: int
    kv_bytes_per_token: float
    reserved_tokens: int
    used_tokens: int
    weight_bytes: float
    activation_bytes: float
    room_bytes: float

    @property
    def used(self) -> float:
        return self.used_tokens / self.reserved_tokens


def plan_kv(
    spec: ModelSpec,
    shape: RequestShape,
    usable_bytes: float,
    *,
    longest_tokens: int | None = None,
    dtype: str | float = "float16",
    kv_dtype: str | float | None = None,
    prefill_tokens: int | None = None,
) -> dict[str, KVPlan]:
    """Contiguous and paged allocation side by side: how many sequences of a shape fit at once.

    usable_bytes    of the device (`hardware.GPU.usable_bytes`)
    longest_tokens  contiguous allocation must reserve for the longest sequence that may come, since nobody knows where an
                    answer will end; None: the model's context. Paged allocation takes blocks of 16 tokens as they are needed.
    prefill_tokens  tokens that one pass processes at most, for the activations; None: the shape's prompt

    The shape's batch size plays no part: how many fit is the question. Raises DoesNotFit when not even the weights fit.
    """
    tokens = shape.final_kv_tokens
    longest = spec.max_position_embeddings if longest_tokens is None else whole("longest_tokens", longest_tokens, 1)
    if longest < tokens:
        raise BadArgument(
            f"longest_tokens must be at least {tokens:,}, what the shape {shape} leaves in the cache, not {longest:,}.",
            "longest_tokens",
        )
    weights = arithmetic.weight_bytes(spec, dtype)
    tokens_a_pass = shape.prompt_tokens if prefill_tokens is None else whole("prefill_tokens", prefill_tokens, 1)
    activations = arithmetic.activation_bytes(spec, tokens_a_pass, 1, dtype)
    room = real("usable_bytes", usable_bytes) - weights - activations
    if room < 0:
        raise DoesNotFit(
            f"{weights / 1e9:.1f} GB of weights and {activations / 1e9:.2f} GB of activations do not fit in "
            f"{usable_bytes / 1e9:.1f} GB. Use a larger device, several of them, or weights of fewer bits."
        )
    per_token = arithmetic.kv_bytes_per_token(spec, dtype if kv_dtype is None else kv_dtype)
    reserved = {"contiguous": longest, "paged": BLOCK_TOKENS * math.ceil(tokens / BLOCK_TOKENS)}
    return {
        name: KVPlan(name, int(room // (count * per_token)), per_token, count, tokens, weights, activations, room)
        for name, count in reserved.items()
    }


def with_kv_heads(spec: ModelSpec, num_key_value_heads: int) -> ModelSpec:
    """The same model with other KV heads: as many as query heads is MHA, one is MQA, between is GQA (Ainslie et al. 2023)."""
    heads = whole("num_key_value_heads", num_key_value_heads, 1)
    if spec.num_attention_heads % heads:
        raise BadArgument(
            f"num_key_value_heads is {heads}, which {spec.num_attention_heads} query heads cannot share evenly.",
            "num_key_value_heads",
        )
    return replace(spec, num_key_value_heads=heads)
