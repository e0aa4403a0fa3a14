"""Small configs and models of every family that shapelab counts and this transformers can build."""

import warnings

import torch
from transformers import AutoModelForCausalLM
from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

from shapelab.theory.families import FAMILIES

SIZES = {
    "num_hidden_layers": 4, "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 96,
    "vocab_size": 300, "max_position_embeddings": 128,
}  # fmt: skip
EXPERTS = {
    "num_experts": 6, "num_local_experts": 6, "n_routed_experts": 6, "num_experts_per_tok": 2, "moe_intermediate_size": 32,
    "shared_expert_intermediate_size": 40, "shared_intermediate_size": 24, "n_shared_experts": 2, "first_k_dense_replace": 1,
}  # fmt: skip
OWN = {
    "gpt_neo": {"attention_types": [[["global", "local"], 2]]},
    "opt": {"word_embed_proj_dim": 64},
    "gptj": {"rotary_dim": 8},
    "codegen": {"rotary_dim": 8},
    "ministral": {"head_dim": 16},  # transformers' config leaves it open and its rotary angles need it
    "hunyuan_v1_dense": {"head_dim": 16},
}
SWITCHES = (
    "attention_bias", "mlp_bias", "use_bias", "bias", "use_qkv_bias", "qkv_bias", "attention_out_bias", "lm_head_bias", "enable_bias",
    "use_qk_norm", "qk_layernorm", "multi_query", "parallel_attn", "use_parallel_residual",
)  # fmt: skip
CHANGES = {
    "as it is": {},
    "tied": {"tie_word_embeddings": True},
    "untied": {"tie_word_embeddings": False},
    "all switches on": dict.fromkeys(SWITCHES, True),
    "all switches off": dict.fromkeys(SWITCHES, False),
    "wide heads": {"head_dim": 32},
    "a KV head for each": {"num_key_value_heads": 4, "num_kv_heads": 4},
    "every second layer with experts": {"decoder_sparse_step": 2},
    "listed layers without experts": {"mlp_only_layers": [0, 2]},
    "all layers with experts": {"first_k_dense_replace": 0, "n_shared_experts": 0},
    "one expert a token": {"num_experts_per_tok": 1},
}
CANNOT_BE = {("falcon", "wide heads"), ("phi", "all switches on"), ("olmoe", "wide heads")}  # nor does transformers run them
HERE = [family for family in FAMILIES if family in CONFIG_MAPPING_NAMES]  # of this release of transformers


def fields_of(family: str, change: str = "as it is") -> dict:
    """A small config.json of a family, in its own spelling; without fields that only other families have."""
    names, rules = FAMILIES[family].names, FAMILIES[family]
    sizes = {names.get(name, name): value for name, value in SIZES.items()}
    changes = (
        CHANGES[change]
        if rules.experts or not set(CHANGES[change]) <= {*EXPERTS, "decoder_sparse_step", "mlp_only_layers"}
        else {}
    )
    experts = EXPERTS if rules.experts else {}
    return {"model_type": family, **sizes, "pad_token_id": 0, **experts, **OWN.get(family, {}), **changes}


def real_model(config, device="meta"):
    with warnings.catch_warnings(), torch.device(device):
        warnings.simplefilter("ignore")
        return AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
