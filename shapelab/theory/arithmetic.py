"""What a pass must do, by arithmetic alone: numbers stored, bytes moved, floating-point operations.

Symbols as in the formulas everywhere: L layers, h hidden size, H query heads, K key-value heads, d head_dim, f intermediate
size, V vocabulary, S input tokens, B batch size. A multiply and an add are 2 FLOPs. Counted are the matrix products and
attention; norms, activations and the embedding look-up are left out (well under 1 %).
"""

from numbers import Real

from shapelab.errors import BadArgument
from shapelab.request.shape import real, whole
from shapelab.theory.model_spec import ModelSpec

BYTES_PER_NUMBER = {"float64": 8, "float32": 4, "bfloat16": 2, "float16": 2, "float8": 1, "int8": 1, "int4": 0.5}


def bytes_per_number(dtype: str | float) -> float:
    """Bytes of one number: of a dtype by its name, or a positive number of bytes as it is."""
    size = BYTES_PER_NUMBER.get(dtype) if isinstance(dtype, str) else dtype
    if isinstance(size, bool) or not isinstance(size, Real) or not 0 < size <= 16:
        raise BadArgument(
            f"dtype {dtype!r} does not name a number format. Use one of {', '.join(BYTES_PER_NUMBER)}, or bytes such as 0.5.",
            "dtype",
        )
    return size


def parameter_count(spec: ModelSpec) -> int:
    """Numbers a model holds, all experts counted: L(2hHd + 2hKd + 3hf E + small terms) + Vh (twice when untied) + the rest.

    3 is 2 where the MLP is not gated. Llama-2-7B: 6,738,415,616.
    """
    small = spec.num_hidden_layers * spec.extra_parameters_per_layer + spec.extra_parameters
    return _layer_weights(spec, spec.num_experts) + small + _embedding(spec) * (1 if spec.tie_word_embeddings else 2)


def weight_bytes(spec: ModelSpec, dtype: str | float = "float16") -> float:
    """Bytes the weights take. Llama-2-7B in float16: 13.477 GB (10^9 bytes) = 12.551 GiB (2^30 bytes)."""
    return parameter_count(spec) * bytes_per_number(dtype)


def kv_bytes_per_token(spec: ModelSpec, dtype: str | float = "float16") -> float:
    """Bytes of KV cache a token takes: 2 (a key and a value) x L layers x K key-value heads x d numbers each.

    The heads that count are the key-value heads, not the query heads: Llama-2-7B (32 of 32) takes 524,288 B in 16 bits,
    TinyLlama (4 of 32) 22,528 B. A sliding window, which bounds how many tokens are kept, is not looked at.
    """
    return 2 * spec.num_hidden_layers * spec.num_key_value_heads * spec.head_dim * bytes_per_number(dtype)


def prefill_flops(spec: ModelSpec, input_tokens: int, cached_tokens: int = 0) -> float:
    """FLOPs to read S tokens of one sequence on top of a cache: 2 S W + 4 L H d (S cached + S(S+1)/2) + 2hV.

    W are the weights of the layers that a token meets (of the experts, the chosen ones). The causal half of attention is
    counted, and the head for the last position only, so chunks sum to the whole after taking off each extra chunk's 2hV.
    """
    s, cached = whole("input_tokens", input_tokens, 1), whole("cached_tokens", cached_tokens, 0)
    return (
        2 * s * _layer_weights(spec, spec.num_experts_per_tok) + _attention(spec) * (s * cached + s * (s + 1) / 2) + _head(spec)
    )


def decode_flops(spec: ModelSpec, context_tokens: float) -> float:
    """FLOPs of one decode step of one sequence: 2 W + 4 L H d x context + 2hV. The context includes the new token."""
    context = real("context_tokens", context_tokens, 1, 1e10)  # a mean context need not be whole
    return 2 * _layer_weights(spec, spec.num_experts_per_tok) + _attention(spec) * context + _head(spec)


def prefill_bytes(
    spec: ModelSpec, input_tokens: int, cached_tokens: int = 0, batch_size: int = 1,
    dtype: str | float = "float16", kv_dtype: str | float | None = None,
) -> float:  # fmt: skip
    """Bytes a prefill moves: weights read once, the cache of the cached tokens read, that of the new ones written.

    Activations are left out. kv_dtype: the cache's, where it is not the weights'.
    """
    s, cached = whole("input_tokens", input_tokens, 1), whole("cached_tokens", cached_tokens, 0)
    rows = whole("batch_size", batch_size, 1)
    return weights_read(spec, rows * s) * bytes_per_number(dtype) + rows * (cached + s) * kv_bytes_per_token(
        spec, dtype if kv_dtype is None else kv_dtype
    )


def decode_bytes(
    spec: ModelSpec,
    context_tokens: float,
    batch_size: int = 1,
    dtype: str | float = "float16",
    kv_dtype: str | float | None = None,
) -> float:
    """Bytes a decode step moves: weights read once for the whole batch, and every sequence's own context."""
    context, rows = real("context_tokens", context_tokens, 1, 1e10), whole("batch_size", batch_size, 1)
    kv = kv_bytes_per_token(spec, dtype if kv_dtype is None else kv_dtype)
    return weights_read(spec, rows) * bytes_per_number(dtype) + rows * context * kv


def active_parameter_count(spec: ModelSpec) -> int:
    """Numbers that one token meets: all, less the experts it does not choose. Qwen3-30B-A3B: 3.35e9 of 30.5e9."""
    return parameter_count(spec) - (spec.num_experts - spec.num_experts_per_tok) * _expert_copies(spec)


def weights_read(spec: ModelSpec, tokens: int = 1) -> float:
    """Numbers a pass over so many tokens reads: all, less an input embedding of its own (a look-up) and experts nobody chose.

    With k of E experts a token, chosen alike, about E(1 - ((E - k)/E)^tokens) of them are read.
    """
    experts, chosen = spec.num_experts, spec.num_experts_per_tok
    asleep = experts * ((experts - chosen) / experts) ** tokens
    return parameter_count(spec) - (0 if spec.tie_word_embeddings else _embedding(spec)) - asleep * _expert_copies(spec)


def activation_bytes(spec: ModelSpec, tokens: int, batch_size: int = 1, dtype: str | float = "float16") -> float:
    """An estimate of what one layer of a pass holds at once, besides weights and cache; other layers reuse it.

    For each token: hidden states (about 6 h numbers), queries, keys and values, the MLP's two intermediates and their
    product (3 f, those of every expert that it chooses); and the logits of the last position. Add 30 % for what the allocator wastes (see model.memory).
    """
    numbers = 6 * spec.hidden_size + (spec.num_attention_heads + 2 * spec.num_key_value_heads) * spec.head_dim
    width = (
        spec.moe_intermediate_size or spec.intermediate_size
    ) * spec.num_experts_per_tok + spec.shared_expert_intermediate_size
    numbers += 3 * max(width, spec.intermediate_size if spec.num_dense_layers else 0)
    rows = whole("batch_size", batch_size, 1)
    return rows * (whole("tokens", tokens, 1) * numbers + 2 * spec.vocab_size) * bytes_per_number(dtype)


def _layer_weights(spec: ModelSpec, experts: int) -> int:
    """Of all layers: queries and output 2hHd, keys and values 2hKd, and MLPs, with so many experts of each layer counted."""
    attention = 2 * spec.hidden_size * spec.head_dim * (spec.num_attention_heads + spec.num_key_value_heads)
    if spec.num_experts == 1:
        return spec.num_hidden_layers * (attention + _mlp(spec, spec.intermediate_size))
    shared = _mlp(spec, spec.shared_expert_intermediate_size) + spec.hidden_size * spec.num_experts  # and the router that chooses
    with_experts = spec.num_hidden_layers - spec.num_dense_layers
    dense = spec.num_dense_layers * _mlp(spec, spec.intermediate_size)
    return spec.num_hidden_layers * attention + dense + with_experts * shared + experts * _expert_copies(spec)


def _expert_copies(spec: ModelSpec) -> int:
    """Numbers of one expert in every layer that has experts."""
    width = spec.moe_intermediate_size or spec.intermediate_size
    return (spec.num_hidden_layers - spec.num_dense_layers) * _mlp(spec, width)


def _mlp(spec: ModelSpec, width: int) -> int:
    return spec.mlp_matrices * spec.hidden_size * width


def _attention(spec: ModelSpec) -> int:
    """FLOPs for each pair of a query and a token it looks at: two products, all heads and layers."""
    return 4 * spec.num_hidden_layers * spec.num_attention_heads * spec.head_dim


def _embedding(spec: ModelSpec) -> int:
    return spec.vocab_size * spec.hidden_size


def _head(spec: ModelSpec) -> int:
    return 2 * _embedding(spec)
