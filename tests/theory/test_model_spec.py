"""The numbers of an architecture, read from configs as they come, or refused by name."""

import json
from types import SimpleNamespace

import numpy
import pytest
from transformers import AutoConfig

from shapelab.errors import BadArgument, BadFile, UnknownName, UnsupportedModel
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
    with pytest.raises(UnsupportedModel, match=name):
        ModelSpec.from_config(without(name))


@pytest.mark.parametrize("value", [0, -1, 2.0, "64", True, [64]])
@pytest.mark.parametrize("name", sorted(LLAMA_2_7B.keys() - {"tie_word_embeddings"}))
def test_a_bad_field_is_refused_by_name(name, value):
    with pytest.raises(UnsupportedModel, match=name):
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


@pytest.mark.parametrize("kind", ["newcomer", "../llama", ["llama"], {"llama": 1}, 7, True])
def test_an_unknown_family_is_never_counted_as_another(kind):
    with pytest.raises(UnsupportedModel):
        ModelSpec.from_config(without(model_type=kind))


def test_fields_without_a_family():
    """Llama's, GPT-2's and Mixtral's are known by their names; with another family's experts nobody can tell."""
    assert ModelSpec.from_config(without(num_local_experts=4, num_experts_per_tok=2)).num_experts == 4
    for name in ("num_experts", "n_routed_experts", "moe_intermediate_size"):
        with pytest.raises(UnsupportedModel):
            ModelSpec.from_config(without(num_experts_per_tok=2, **{name: 4}))


@pytest.mark.parametrize("experts", [{"num_local_experts": 2, "num_experts_per_tok": 3}, {"num_local_experts": 2}])
def test_more_experts_a_token_than_there_are(experts):
    with pytest.raises(UnsupportedModel):
        ModelSpec.from_config(without(**experts))


@pytest.mark.parametrize("source", [None, 7, [LLAMA_2_7B], 2.5, object()])
def test_what_is_no_config_at_all(source):
    with pytest.raises(BadArgument) as caught:
        ModelSpec.from_config(source)
    assert caught.value.argument == "source"


def test_numpys_whole_numbers_are_whole_numbers():
    fields = {name: numpy.int64(value) if name != "tie_word_embeddings" else value for name, value in LLAMA_2_7B.items()}
    assert ModelSpec.from_config(fields) == ModelSpec.from_config(LLAMA_2_7B)
    assert type(ModelSpec.from_config(fields).hidden_size) is int


def test_from_a_file_and_a_folder(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(LLAMA_2_7B))
    expected = ModelSpec.from_config(LLAMA_2_7B)
    assert ModelSpec.from_config(tmp_path) == ModelSpec.from_config(str(tmp_path / "config.json")) == expected


@pytest.mark.parametrize("name", ["~/models/x", "~/models/x/config.json"])
def test_from_the_home_folder(tmp_path, monkeypatch, name):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    (tmp_path / "models" / "x").mkdir(parents=True)
    (tmp_path / "models" / "x" / "config.json").write_text(json.dumps(LLAMA_2_7B))
    assert ModelSpec.from_config(name) == ModelSpec.from_config(LLAMA_2_7B)


@pytest.mark.parametrize("text", ["not json", "[1, 2]", "\x80", "[" * 100_000, ""])
def test_a_file_that_is_no_config(tmp_path, text):
    (tmp_path / "config.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(BadFile):
        ModelSpec.from_config(tmp_path / "config.json")


@pytest.mark.parametrize("name", ["nobody/nothing", "x" * 300, "", "no/such/folder"])
def test_a_name_that_leads_nowhere_and_no_network_is_asked(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("socket.socket", lambda *_, **__: pytest.fail("the network was asked"))
    with pytest.raises(UnknownName) as caught:
        ModelSpec.from_config(name)
    assert caught.value.argument == "source"


def test_a_name_that_no_path_can_have():
    with pytest.raises(BadArgument):
        ModelSpec.from_config("a\0b")
