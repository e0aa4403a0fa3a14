"""The numbers of an architecture, read from configs as they come, or refused by name."""

import json
from types import SimpleNamespace

import pytest
from transformers import AutoConfig

from shapelab.errors import ShapelabError
from shapelab.theory.model_spec import ModelSpec, known_config
from tests.toys import toy_model

LLAMA_2_7B = {
    "num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32, "num_key_value_heads": 32, "head_dim": 128,
    "intermediate_size": 11008, "vocab_size": 32000, "max_position_embeddings": 4096, "tie_word_embeddings": False,
}  # fmt: skip


def without(*names, **changes):
    return {name: value for name, value in {**LLAMA_2_7B, **changes}.items() if name not in names}


def test_every_number_is_read():
    expected = ModelSpec(32, 4096, 32, 32, 128, 11008, 32000, 4096, extra_parameters_per_layer=8192, extra_parameters=4096)
    assert ModelSpec.from_config(LLAMA_2_7B) == expected
    assert ModelSpec.from_config(SimpleNamespace(**LLAMA_2_7B)) == expected


@pytest.mark.parametrize("family,heads", [("llama", 2), ("qwen2", 2), ("mistral", 2), ("gpt2", 4)])
def test_real_configs(family, heads):
    spec = ModelSpec.from_config(toy_model(family).config)
    assert spec == ModelSpec.from_config(toy_model(family)), "a loaded model will do as well"
    assert (spec.num_hidden_layers, spec.hidden_size, spec.num_attention_heads, spec.num_key_value_heads) == (2, 64, 4, heads)
    assert (spec.head_dim, spec.vocab_size, spec.max_position_embeddings) == (16, 300, 512)


def test_a_real_config_and_its_dictionary_agree():
    config = AutoConfig.for_model(**known_config("smollm2-135m"))
    assert ModelSpec.from_config(config) == ModelSpec.from_config(config.to_dict())
    assert ModelSpec.from_config(config) == ModelSpec.from_config("smollm2-135m")
    assert ModelSpec.from_config(config) == ModelSpec(
        30, 576, 9, 3, 64, 1536, 49152, 8192, True, extra_parameters_per_layer=1152, extra_parameters=576
    )


def test_an_explicit_head_dim_wins():
    assert ModelSpec.from_config(without(head_dim=256)).head_dim == 256
    assert ModelSpec.from_config(without("head_dim")).head_dim == 128
    assert ModelSpec.from_config(without(head_dim=None)).head_dim == 128
    assert ModelSpec.from_config(toy_model(head_dim=32).config).head_dim == 32


def test_without_key_value_heads_every_head_has_its_own():
    assert ModelSpec.from_config(without("num_key_value_heads")).num_key_value_heads == 32
    assert ModelSpec.from_config(without(num_key_value_heads=8)).num_key_value_heads == 8


def test_gpt2s_names():
    config = {"n_layer": 12, "n_embd": 768, "n_head": 12, "n_positions": 1024, "vocab_size": 50257}
    spec = ModelSpec.from_config(config)
    assert (spec.intermediate_size, spec.mlp_matrices, spec.tie_word_embeddings) == (3072, 2, True)
    assert (spec.num_key_value_heads, spec.head_dim, spec.max_position_embeddings) == (12, 64, 1024)


@pytest.mark.parametrize(
    "name",
    ["num_hidden_layers", "hidden_size", "num_attention_heads", "intermediate_size", "vocab_size", "max_position_embeddings"],
)
def test_a_missing_field_is_refused_by_name(name):
    with pytest.raises(ShapelabError, match=f"{name} is None"):
        ModelSpec.from_config(without(name))


@pytest.mark.parametrize("value", [0, -1, 2.0, "64", True, [64]])
@pytest.mark.parametrize("name", sorted(LLAMA_2_7B.keys() - {"tie_word_embeddings"}))
def test_a_bad_field_is_refused_by_name(name, value):
    with pytest.raises(ShapelabError, match=f"{name} is .*positive whole number"):
        ModelSpec.from_config(without(**{name: value}))


@pytest.mark.parametrize("name,layers", [("tinyllama", 22), ("smollm2-135m", 30)])
def test_known_configs(name, layers):
    assert known_config(name)["num_hidden_layers"] == layers


@pytest.mark.parametrize(
    "name",
    [
        "",
        "nobody",
        "tinyllama.json",
        "../models/tinyllama",
        "./tinyllama",
        "..\\models\\tinyllama",
        "/etc/passwd",
        "*",
        "x" * 300,
    ],
)
def test_a_name_that_is_not_known_or_a_path(name):
    with pytest.raises(KeyError):
        known_config(name)


@pytest.mark.parametrize(
    "family,tied", [("gemma", True), ("gemma2", True), ("gemma3_text", True), ("llama", False), ("qwen2", False)]
)
def test_a_config_that_is_silent_about_tying(family, tied):
    """config.json leaves out what is its class's default."""
    assert ModelSpec.from_config(without("tie_word_embeddings", model_type=family)).tie_word_embeddings is tied


def test_an_unknown_family_counts_as_llama_and_may_lack_an_inner_size():
    assert ModelSpec.from_config(without("intermediate_size", model_type="newcomer")).intermediate_size == 4 * 4096
    assert ModelSpec.from_config(without(model_type="newcomer")) == ModelSpec.from_config(LLAMA_2_7B)


def test_more_experts_a_token_than_there_are():
    with pytest.raises(ShapelabError, match="3 experts a token and has 2"):
        ModelSpec.from_config(without(num_local_experts=2, num_experts_per_tok=3))
    with pytest.raises(ShapelabError, match="num_experts_per_tok is None"):
        ModelSpec.from_config(without(num_local_experts=2))


def test_from_a_file_and_a_folder(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(LLAMA_2_7B))
    expected = ModelSpec.from_config(LLAMA_2_7B)
    assert ModelSpec.from_config(tmp_path) == ModelSpec.from_config(str(tmp_path / "config.json")) == expected


@pytest.mark.parametrize("text", ["not json", "[1, 2]", "\x80"])
def test_a_file_that_is_no_config(tmp_path, text):
    (tmp_path / "config.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(ShapelabError, match=r"config.json"):
        ModelSpec.from_config(tmp_path / "config.json")


def test_a_name_that_nobody_knows():
    with pytest.raises(ShapelabError, match="'nobody/nothing' is neither a config.json, nor one of .*tinyllama.*offline mode"):
        ModelSpec.from_config("nobody/nothing")
