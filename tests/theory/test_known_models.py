"""The configs in data/models: parameter counts to the last one, and where each comes from."""

import json

import pytest

from shapelab.files import data_path
from shapelab.theory.arithmetic import kv_bytes_per_token, parameter_count, weights_read
from shapelab.theory.model_spec import ModelSpec, known_models

PARAMETERS = {
    "llama-2-7b": 6_738_415_616,
    "llama-3-70b": 70_553_706_496,
    "llama-3-8b": 8_030_261_248,
    "mistral-7b": 7_241_732_096,
    "mixtral-8x7b": 46_702_792_704,
    "qwen2.5-0.5b": 494_032_768,
    "qwen2.5-7b": 7_615_616_512,
    "smollm2-135m": 134_515_008,
    "tinyllama": 1_100_048_384,
}


@pytest.mark.parametrize("name", PARAMETERS)
def test_parameter_counts(name):
    assert parameter_count(ModelSpec.from_config(name)) == PARAMETERS[name]


@pytest.mark.parametrize("name", known_models())
def test_every_file_says_where_it_comes_from(name):
    assert name in PARAMETERS
    file = json.loads(data_path("models", f"{name}.json").read_text(encoding="utf-8"))
    assert list(file) == ["source", "hub_id", "config"]
    assert file["source"].startswith(f"https://huggingface.co/{file['hub_id']} (config.json), ")
    config = file["config"]
    assert config["head_dim"] * config["num_attention_heads"] == config["hidden_size"]  # true of these nine


@pytest.mark.parametrize(
    "name,kv_bytes",
    [
        ("llama-2-7b", 524_288),
        ("llama-3-8b", 131_072),  # a quarter: 8 key-value heads of 32
        ("llama-3-70b", 327_680),
        ("mixtral-8x7b", 131_072),  # experts share the attention
        ("qwen2.5-0.5b", 12_288),
        ("qwen2.5-7b", 57_344),
        ("smollm2-135m", 23_040),
        ("tinyllama", 22_528),
    ],
)
def test_kv_bytes_a_token_in_16_bits(name, kv_bytes):
    assert kv_bytes_per_token(ModelSpec.from_config(name), "float16") == kv_bytes


def test_one_token_reads_two_of_mixtral_s_eight_experts():
    spec = ModelSpec.from_config("mixtral-8x7b")
    assert (spec.num_experts, spec.num_experts_per_tok) == (8, 2)
    read = 12_879_925_248 - 32_000 * 4096  # the 12.9 billion active ones, less the look-up of the input embedding
    assert weights_read(spec, 1) == read
