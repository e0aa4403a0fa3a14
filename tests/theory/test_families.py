"""Every family of decoder-only models that transformers can build is counted to the last number, or refused by name."""

import inspect

import pytest
import torch
from transformers import AutoConfig, DynamicCache
from transformers.models.auto.configuration_auto import CONFIG_MAPPING, CONFIG_MAPPING_NAMES
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

from shapelab.errors import UnsupportedModel
from shapelab.theory.arithmetic import active_parameter_count, kv_bytes_per_token, parameter_count
from shapelab.theory.families import FAMILIES
from shapelab.theory.model_spec import ModelSpec
from tests.families import CANNOT_BE, CHANGES, EXPERTS, HERE, OWN, SIZES, fields_of, real_model


@pytest.mark.parametrize("family", HERE)
def test_parameters_of_real_models(family):
    for change in CHANGES:
        if (family, change) in CANNOT_BE:
            continue
        fields = fields_of(family, change)
        config = AutoConfig.for_model(**fields)
        model = real_model(config)
        real = sum(parameter.numel() for parameter in model.parameters())
        for form, source in {"json": fields, "config": config, "saved": config.to_diff_dict(), "model": model}.items():
            assert parameter_count(ModelSpec.from_config(source)) == real, (change, form)


@pytest.mark.parametrize("change", ["as it is", "all switches off", "a KV head for each"])
@pytest.mark.parametrize("family", HERE)
def test_keys_and_values_that_a_real_cache_holds(family, change):
    config, rows, length = AutoConfig.for_model(**fields_of(family, change)), 3, 11
    model, cache = real_model(config, "cpu"), DynamicCache(config=config)
    with torch.inference_mode():
        named_cache = {"cache" if "cache" in inspect.signature(type(model).forward).parameters else "past_key_values": cache}
        model(input_ids=torch.ones(rows, length, dtype=torch.long), use_cache=True, **named_cache)
    held = sum(layer.keys.nbytes + layer.values.nbytes for layer in cache.layers)
    assert held == rows * length * kv_bytes_per_token(ModelSpec.from_config(config), "float32")


@pytest.mark.parametrize("change", ["as it is", "listed layers without experts", "one expert a token"])
@pytest.mark.parametrize("family", [family for family in HERE if FAMILIES[family].experts])
def test_parameters_that_a_token_meets(family, change):
    model = real_model(AutoConfig.for_model(**fields_of(family, change)))
    sizes = {name: parameter.numel() for name, parameter in model.named_parameters()}
    of_experts = sum(size for name, size in sizes.items() if ".experts." in name)
    chosen = 1 if change == "one expert a token" else 2
    assert (
        of_experts
        and active_parameter_count(ModelSpec.from_config(model)) == sum(sizes.values()) - of_experts * (6 - chosen) // 6
    )


@pytest.mark.parametrize("family", sorted(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES))
def test_no_family_is_counted_by_guesswork(family):
    """All that transformers can load as a causal language model: in the table, where the tests above count it, or refused."""
    if family not in FAMILIES:
        with pytest.raises(UnsupportedModel, match=family):
            ModelSpec.from_config({"model_type": family, **SIZES, **EXPERTS})
    if CONFIG_MAPPING[family].model_type not in FAMILIES and family != "gemma4_assistant":  # which has no default config
        with pytest.raises(UnsupportedModel):
            ModelSpec.from_config(CONFIG_MAPPING[family]())


@pytest.mark.parametrize(
    "family", ["vit", "bert", "t5", "whisper", "llava", "clip", "gemma3", "qwen2_5_vl", "wav2vec2", "newcomer"]
)
def test_what_is_no_decoder_only_text_model_is_refused(family):
    for fields in ({}, SIZES, {"text_config": {"model_type": "llama", **SIZES}}):
        with pytest.raises(UnsupportedModel, match=family):
            ModelSpec.from_config({"model_type": family, **fields})
    if family in CONFIG_MAPPING_NAMES:
        with pytest.raises(UnsupportedModel):
            ModelSpec.from_config(CONFIG_MAPPING[family]())


@pytest.mark.parametrize(
    "family,changes",
    [
        ("falcon", {"new_decoder_architecture": True}),
        ("opt", {"word_embed_proj_dim": 32}),
        ("opt", {"do_layer_norm_before": False}),
        ("phi", {"qk_layernorm": True}),
        ("gpt2", {"add_cross_attention": True}),
        ("gpt_bigcode", {"add_cross_attention": True}),
        ("llama", {"is_encoder_decoder": True}),
        ("qwen3", {"layer_types": ["linear_attention", "full_attention"]}),
        ("mixtral", {"num_experts_per_tok": 7}),
        ("llama", {"layer_types": 5}),
        ("llama", {"layer_types": [["full_attention"]]}),
        ("qwen3_moe", {"mlp_only_layers": 5}),
        ("qwen3_moe", {"mlp_only_layers": "0"}),
        ("llama", {"num_key_value_heads": 3}),
        ("llama", {"num_key_value_heads": 8}),
        ("gpt2", {"n_embd": 66}),
        ("gpt2", {"n_embd": 2}),
    ],
)
def test_layers_that_do_not_follow_their_family_are_refused(family, changes):
    assert ModelSpec.from_config(fields_of(family))
    with pytest.raises(UnsupportedModel):
        ModelSpec.from_config(fields_of(family) | changes)


@pytest.mark.parametrize(
    "family,field",
    [("qwen3_moe", "moe_intermediate_size"), ("qwen3_moe", "num_experts_per_tok"), ("mixtral", "num_local_experts")],
)
def test_a_model_with_experts_needs_its_numbers(family, field):
    fields = {name: value for name, value in fields_of(family).items() if name not in (field, "num_experts", "n_routed_experts")}
    with pytest.raises(UnsupportedModel):
        ModelSpec.from_config(fields)


@pytest.mark.parametrize("family", HERE)
def test_what_a_config_leaves_out_is_its_classs_default(family):
    """A config.json from an older release lacks fields; transformers fills them in, and so does the table."""
    sizes = {"hidden_size": 2048, "num_attention_heads": 32}
    names = FAMILIES[family].names
    fields = fields_of(family) | {names.get(name, name): value for name, value in sizes.items()} | {"word_embed_proj_dim": 2048}
    fields = {name: value for name, value in fields.items() if name not in ("num_key_value_heads", "head_dim")}
    needed = {"nemotron": {"num_key_value_heads": 8}, **OWN}.get(family, {})  # these classes have no default that runs
    config = AutoConfig.for_model(**{**fields, **needed, "word_embed_proj_dim": 2048})
    real = sum(parameter.numel() for parameter in real_model(config).parameters())
    assert parameter_count(ModelSpec.from_config({**fields, **needed, "word_embed_proj_dim": 2048})) == real


def like_llama(family, layers, hidden, heads, kv_heads, inner, vocabulary, **more):
    sizes = zip(SIZES, (layers, hidden, heads, kv_heads, inner, vocabulary), strict=False)
    return {"model_type": family, **dict(sizes), "max_position_embeddings": 4096, **more}


# Parameters as the models' pages on the hub give them (a tied head once), KV bytes a token in 16 bits by hand: 4 L K d.
PUBLISHED = {
    "Qwen3-30B-A3B": (
        like_llama("qwen3_moe", 48, 2048, 32, 4, 6144, 151936, head_dim=128, moe_intermediate_size=768, num_experts=128,
                   num_experts_per_tok=8, decoder_sparse_step=1, mlp_only_layers=[]),
        30_532_122_624, 98_304,
    ),
    "Qwen1.5-MoE-A2.7B": (
        like_llama("qwen2_moe", 24, 2048, 16, 16, 5632, 151936, moe_intermediate_size=1408, shared_expert_intermediate_size=5632,
                   num_experts=60, num_experts_per_tok=4, decoder_sparse_step=1),
        14_315_784_192, 196_608,
    ),
    "OLMoE-1B-7B": (like_llama("olmoe", 16, 2048, 16, 16, 1024, 50304, num_experts=64, num_experts_per_tok=8), 6_919_161_856, 131_072),
    "falcon-7b": (
        {"model_type": "falcon", "multi_query": True, "new_decoder_architecture": False, "parallel_attn": True, "bias": False,
         "hidden_size": 4544, "num_attention_heads": 71, "num_hidden_layers": 32, "vocab_size": 65024},
        6_921_720_704, 8_192,
    ),
    "gpt2": ({"n_layer": 12, "n_embd": 768, "n_head": 12, "n_positions": 1024, "vocab_size": 50257}, 124_439_808, 36_864),
    "opt-125m": (
        {"model_type": "opt", "num_hidden_layers": 12, "hidden_size": 768, "num_attention_heads": 12, "ffn_dim": 3072,
         "vocab_size": 50272, "max_position_embeddings": 2048, "word_embed_proj_dim": 768, "do_layer_norm_before": True},
        125_239_296, 36_864,
    ),
    "bloom-560m": ({"model_type": "bloom", "n_layer": 24, "num_attention_heads": 16, "n_embed": 1024, "vocab_size": 250880}, 559_214_592, 98_304),
    "gpt-j-6b": (
        {"model_type": "gptj", "n_layer": 28, "n_head": 16, "n_embd": 4096, "n_positions": 2048, "vocab_size": 50400, "n_inner": None},
        6_050_882_784, 458_752,
    ),
    "mpt-7b": ({"model_type": "mpt", "n_layers": 32, "d_model": 4096, "n_heads": 32, "vocab_size": 50432, "max_seq_len": 2048}, 6_649_286_656, 524_288),
    "gpt-neo-125m": (
        {"model_type": "gpt_neo", "num_layers": 12, "hidden_size": 768, "num_heads": 12, "vocab_size": 50257, "max_position_embeddings": 2048},
        125_198_592, 36_864,
    ),
    "pythia-70m": (like_llama("gpt_neox", 6, 512, 8, 8, 2048, 50304), 70_426_624, 12_288),
    "phi-2": (like_llama("phi", 32, 2560, 32, 32, 10240, 51200), 2_779_683_840, 327_680),
    "Phi-3-mini": (like_llama("phi3", 32, 3072, 32, 32, 8192, 32064), 3_821_079_552, 393_216),
    "gemma-2b": (like_llama("gemma", 18, 2048, 8, 1, 16384, 256000, head_dim=256), 2_506_172_416, 18_432),
    "gemma-2-2b": (like_llama("gemma2", 26, 2304, 8, 4, 9216, 256000, head_dim=256), 2_614_341_888, 106_496),
    "gemma-3-1b": (like_llama("gemma3_text", 26, 1152, 4, 1, 6912, 262144, head_dim=256), 999_885_952, 26_624),
    "Qwen3-0.6B": (like_llama("qwen3", 28, 1024, 16, 8, 3072, 151936, head_dim=128, tie_word_embeddings=True), 596_049_920, 114_688),
    "OLMo-1B": (like_llama("olmo", 16, 2048, 16, 16, 8192, 50304, tie_word_embeddings=True), 1_176_764_416, 131_072),
    "starcoder2-3b": (like_llama("starcoder2", 30, 3072, 24, 2, 12288, 49152), 3_030_371_328, 30_720),
    "stablelm-2-1.6b": (like_llama("stablelm", 24, 2048, 32, 32, 5632, 100352, use_qkv_bias=True), 1_644_515_328, 196_608),
    "command-r": (like_llama("cohere", 40, 8192, 64, 64, 22528, 256000), 34_980_831_232, 1_310_720),
    "SmolLM3-3B": (like_llama("smollm3", 36, 2048, 16, 4, 11008, 128256), 3_075_098_624, 73_728),
    "GLM-4-9B": (like_llama("glm4", 40, 4096, 32, 2, 13696, 151552), 9_400_279_040, 40_960),
}  # fmt: skip


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_models(name):
    fields, parameters, kv_bytes = PUBLISHED[name]
    spec = ModelSpec.from_config(fields)
    assert (parameter_count(spec), kv_bytes_per_token(spec, "float16")) == (parameters, kv_bytes)


@pytest.mark.parametrize("name,active", [("Qwen3-30B-A3B", 3.35e9), ("Qwen1.5-MoE-A2.7B", 2.69e9), ("OLMoE-1B-7B", 1.28e9)])
def test_published_active_parameters(name, active):
    assert active_parameter_count(ModelSpec.from_config(PUBLISHED[name][0])) == pytest.approx(active, rel=2e-3)
