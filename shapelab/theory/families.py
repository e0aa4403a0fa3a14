"""How the families of decoder-only models differ from Llama, as data: a new family needs a new row and no new code.

Each row was read from transformers' modelling file of that family; tests count toy models of all of them number by number.
"""

from dataclasses import dataclass, field, replace
from typing import Any


@dataclass(frozen=True)
class Family:
    """What a layer of a family holds besides its matrices, and how its config spells the numbers. The defaults are Llama's.

    Where a value is a text, it names the config's field that decides, such as "attention_bias".

    mlp_matrices  3 when gated (gate, up, down), else 2
    norms         of a layer, over the hidden size; one_norm_if: the field under which attention and MLP share one
    norm_vectors  that a norm stores: 1 scale, 2 with a bias, 0 where it stores nothing
    qk_norm       "head": queries and keys are normalised a head at a time; "all": all heads together; qk_norm_if: the field
    qkv_bias, out_bias, mlp_bias, head_bias  on queries, keys and values; on attention's output; in the MLP; on the logits
    more_norms    norms outside the layers, the final one included
    learned       numbers of a layer that are none of these
    positions     learned positions beyond max_position_embeddings; None: no position is stored (rotary, ALiBi)
    own_head_dim  whether the family uses an explicit head_dim
    one_kv_head_if  the field under which all query heads share one key and value head
    kv_heads      the field of how many heads have keys and values; "": each query head has its own
    experts       the field of an expert's width, where layers hold experts; shared: that of the MLP which every token uses
                  beside them (or of how many experts wide it is), with shared_gate weighted by a gate of its own
    dense         the field of which layers have no experts: "first_k_dense_replace", or "mlp_only_layers", which comes with
                  decoder_sparse_step
    inner         "4h": the MLP is 4 times the hidden size where the config is silent; "always": whatever it says
    tied          whether the head is the embedding where the config is silent
    names         the config's own names; defaults: values of fields that configs leave out
    only_if       values that fields must have; with another one the family's layers are others, and are refused
    """

    mlp_matrices: int = 3
    norms: int = 2
    one_norm_if: str = ""
    norm_vectors: int = 1
    more_norms: int = 1
    qk_norm: str = ""
    qk_norm_if: str | bool = True
    qkv_bias: str | bool = False
    out_bias: str | bool = False
    mlp_bias: str | bool = False
    head_bias: str | bool = False
    learned: int = 0
    positions: int | None = None
    kv_heads: str = "num_key_value_heads"
    one_kv_head_if: str = ""
    own_head_dim: bool = True
    experts: str = ""
    shared: str = ""
    shared_gate: bool = False
    dense: str = ""
    inner: str = ""
    tied: bool = False
    names: dict[str, str] = field(default_factory=dict)
    defaults: dict[str, Any] = field(default_factory=dict)
    only_if: dict[str, Any] = field(default_factory=dict)


_GPT_NAMES = {
    "num_hidden_layers": "n_layer",
    "hidden_size": "n_embd",
    "num_attention_heads": "n_head",
    "max_position_embeddings": "n_positions",
    "intermediate_size": "n_inner",
}
_ATTENTION = {"qkv_bias": "attention_bias", "out_bias": "attention_bias"}
_ALL_BIASES = {"qkv_bias": True, "out_bias": True, "mlp_bias": True}
_USE_BIAS = dict.fromkeys(_ALL_BIASES, "use_bias")
_DEEP = {"experts": "moe_intermediate_size", "shared": "n_shared_experts", "dense": "first_k_dense_replace"}  # as DeepSeek's


def _kv(heads: int, **more) -> dict[str, Any]:
    """KV heads, and other numbers, where the config is silent."""
    return {"num_key_value_heads": heads, **more}


_LLAMA = Family(**_ATTENTION, mlp_bias="mlp_bias")
_ATTENTION_ONLY = Family(**_ATTENTION)
_MISTRAL = Family(defaults=_kv(8))
_GEMMA = Family(**_ATTENTION, tied=True, defaults=_kv(4, head_dim=256))
_GLM = Family(qkv_bias="attention_bias", defaults=_kv(2, attention_bias=True, head_dim=128))
_OLD = Family(
    mlp_matrices=2, norm_vectors=2, kv_heads="", own_head_dim=False, inner="4h"
)  # before grouped queries and gated MLPs
_GPT2 = replace(_OLD, **_ALL_BIASES, positions=0, tied=True, names=_GPT_NAMES)
_GPTJ = replace(_OLD, norms=1, mlp_bias=True, head_bias=True, names=_GPT_NAMES)
_OLMO2 = Family(**_ATTENTION, qk_norm="all")
_QWEN3 = Family(**_ATTENTION, qk_norm="head", defaults=_kv(32, head_dim=128))

FAMILIES = {
    "apertus": Family(mlp_matrices=2, **_ATTENTION, qk_norm="head", learned=2),
    "arcee": replace(_LLAMA, mlp_matrices=2),
    "bloom": replace(
        _OLD, **_ALL_BIASES, more_norms=2, inner="always", tied=True,
        names={"num_hidden_layers": "n_layer", "num_attention_heads": "n_head", "hidden_size": "n_embed",
               "max_position_embeddings": "seq_length"},
        defaults={"max_position_embeddings": 2048},  # ALiBi knows no end; this is what it was trained on
    ),
    "codegen": _GPTJ,
    "cohere": replace(_ATTENTION_ONLY, norms=1, qk_norm="all", qk_norm_if="use_qk_norm", tied=True),
    "cohere2": replace(_ATTENTION_ONLY, norms=1, tied=True),
    "cwm": Family(mlp_bias="mlp_bias", defaults=_kv(8, head_dim=128)),
    "dots1": Family(**_ATTENTION, qk_norm="head", **_DEEP, defaults=_kv(32)),
    "ernie4_5": Family(**_USE_BIAS, tied=True, defaults=_kv(2, head_dim=128)),
    "exaone4": Family(qk_norm="head", defaults=_kv(32)),
    "falcon": replace(
        _OLD, one_norm_if="parallel_attn", qkv_bias="bias", out_bias="bias", mlp_bias="bias", tied=True,
        kv_heads="num_kv_heads", one_kv_head_if="multi_query", names={"intermediate_size": "ffn_hidden_size"},
        defaults={"multi_query": True, "parallel_attn": True, "max_position_embeddings": 2048},
        only_if={"new_decoder_architecture": False},  # there transformers caches a copy for every query head
    ),
    "gemma": replace(_GEMMA, defaults=_kv(16, head_dim=256)),
    "gemma2": replace(_GEMMA, norms=4),
    "gemma3_text": replace(_GEMMA, norms=4, qk_norm="head"),
    "glm": _GLM,
    "glm4": replace(_GLM, norms=4),
    "glm4_moe": Family(
        qkv_bias="attention_bias", qk_norm="head", qk_norm_if="use_qk_norm", **_DEEP,
        defaults=_kv(8, n_shared_experts=1, first_k_dense_replace=1),
    ),
    "gpt2": _GPT2,
    "gpt_bigcode": replace(_GPT2, one_kv_head_if="multi_query", defaults={"multi_query": True}),
    "gpt_neo": replace(
        _OLD, out_bias=True, mlp_bias=True, positions=0, tied=True,
        names={"num_hidden_layers": "num_layers", "num_attention_heads": "num_heads"},
    ),
    "gpt_neox": replace(_OLD, **_ATTENTION, mlp_bias=True, inner="", defaults={"attention_bias": True}),
    "gptj": _GPTJ,
    "granite": _LLAMA,
    "granitemoe": replace(_ATTENTION_ONLY, experts="intermediate_size"),
    "granitemoeshared": replace(_ATTENTION_ONLY, experts="intermediate_size", shared="shared_intermediate_size"),
    "hunyuan_v1_dense": Family(**_ATTENTION, qk_norm="head"),
    "jais2": Family(
        mlp_matrices=2, norm_vectors=2, **_ATTENTION, mlp_bias="mlp_bias", defaults={"attention_bias": True, "mlp_bias": True}
    ),
    "llama": _LLAMA,
    "minimax_m2": Family(qk_norm="all", experts="intermediate_size", defaults=_kv(8, head_dim=128)),
    "ministral": _MISTRAL,
    "ministral3": replace(_MISTRAL, defaults=_kv(8, head_dim=128)),
    "mistral": _MISTRAL,
    "mixtral": replace(_MISTRAL, experts="intermediate_size"),
    "mpt": replace(
        _OLD, norm_vectors=1, inner="always", tied=True,
        names={"num_hidden_layers": "n_layers", "hidden_size": "d_model", "num_attention_heads": "n_heads",
               "max_position_embeddings": "max_seq_len"},
    ),
    "nemotron": Family(mlp_matrices=2, norm_vectors=2, **_ATTENTION, mlp_bias="mlp_bias"),
    "olmo": replace(_ATTENTION_ONLY, norm_vectors=0),
    "olmo2": _OLMO2,
    "olmo3": _OLMO2,
    "olmoe": replace(_OLMO2, experts="intermediate_size"),
    "opt": replace(
        _OLD, **dict.fromkeys(_ALL_BIASES, "enable_bias"), positions=2, inner="", tied=True,
        names={"intermediate_size": "ffn_dim"}, defaults={"enable_bias": True},
        only_if={"do_layer_norm_before": True, "layer_norm_elementwise_affine": True, "word_embed_proj_dim": "hidden_size"},
    ),
    "phi": Family(mlp_matrices=2, norms=1, norm_vectors=2, **_ALL_BIASES, head_bias=True, only_if={"qk_layernorm": False}),
    "phi3": Family(),
    "phimoe": Family(norm_vectors=2, **_ATTENTION, head_bias="lm_head_bias", experts="intermediate_size", defaults=_kv(8)),
    "qwen2": Family(qkv_bias=True, defaults=_kv(32)),
    "qwen2_moe": Family(
        qkv_bias="qkv_bias", experts="moe_intermediate_size", shared="shared_expert_intermediate_size", shared_gate=True,
        dense="mlp_only_layers", defaults=_kv(16, qkv_bias=True),
    ),
    "qwen3": _QWEN3,
    "qwen3_moe": replace(_QWEN3, experts="moe_intermediate_size", dense="mlp_only_layers", defaults=_kv(4)),
    "seed_oss": Family(
        qkv_bias="attention_bias", out_bias="attention_out_bias", mlp_bias="mlp_bias",
        defaults=_kv(8, attention_bias=True, head_dim=128),
    ),
    "smollm3": replace(_LLAMA, tied=True, defaults=_kv(4)),
    "stablelm": Family(
        one_norm_if="use_parallel_residual", norm_vectors=2, qkv_bias="use_qkv_bias", qk_norm="all", qk_norm_if="qk_layernorm",
        own_head_dim=False, defaults=_kv(32),
    ),
    "starcoder2": Family(mlp_matrices=2, norm_vectors=2, **_USE_BIAS, tied=True, defaults=_kv(2, use_bias=True)),
    "vaultgemma": _GEMMA,
}  # fmt: skip
