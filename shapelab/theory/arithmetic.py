"""What a token costs, by arithmetic alone."""

from shapelab.theory.model_spec import ModelSpec


def kv_bytes_per_token(spec: ModelSpec, bytes_per_number: float = 2) -> float:
    """Bytes of KV cache a token takes: 2 (a key and a value) x L layers x K key-value heads x d numbers each.

    The heads that count are the key-value heads, not the query heads: Llama-2-7B (32 of 32) takes 524,288 B in 16 bits,
    TinyLlama (4 of 32) 22,528 B.
    """
    return 2 * spec.num_hidden_layers * spec.num_key_value_heads * spec.head_dim * bytes_per_number


def llama_parameter_count(config: dict) -> int:
    """Numbers in a Llama-like model without biases: L(2hHd + 2hKd + 3hf + 2h) + Vh (twice when untied) + h.

    config: a mapping with Hugging Face's names.
    """
    h, d, f = config["hidden_size"], config["head_dim"], config["intermediate_size"]
    attention = 2 * h * d * (config["num_attention_heads"] + config["num_key_value_heads"])
    embeddings = config["vocab_size"] * h * (1 if config["tie_word_embeddings"] else 2)
    return config["num_hidden_layers"] * (attention + 3 * h * f + 2 * h) + embeddings + h
