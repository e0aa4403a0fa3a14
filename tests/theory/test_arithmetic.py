"""Published sizes, and real models counted number by number."""

import pytest
import torch

from shapelab.measure.loop import new_cache, prefill
from shapelab.theory.arithmetic import kv_bytes_per_token, llama_parameter_count
from shapelab.theory.model_spec import ModelSpec, known_config
from tests.theory.test_model_spec import LLAMA_2_7B
from tests.toys import random_ids, toy_model

# Parameters and KV bytes a token in 16 bits: the models' cards, and 2 x L x K x d x 2 by hand.
GOLDEN = [
    (known_config("tinyllama"), 1_100_048_384, 22_528),
    (LLAMA_2_7B, 6_738_415_616, 524_288),
    (known_config("smollm2-135m"), 134_515_008, 23_040),
]
NAMES = ["tinyllama", "llama-2-7b", "smollm2-135m"]


@pytest.mark.parametrize("config,parameters,kv_bytes", GOLDEN, ids=NAMES)
def test_golden_values(config, parameters, kv_bytes):
    assert llama_parameter_count(config) == parameters
    assert kv_bytes_per_token(ModelSpec.from_config(config)) == kv_bytes


def test_a_quarter_of_the_key_value_heads_is_a_quarter_of_the_cache():
    grouped = ModelSpec.from_config({**LLAMA_2_7B, "num_key_value_heads": 8})
    assert kv_bytes_per_token(grouped) == 524_288 / 4


def test_bytes_per_number():
    spec = ModelSpec.from_config(known_config("smollm2-135m"))
    assert [kv_bytes_per_token(spec, size) for size in (4, 1, 0.5)] == [46_080, 11_520, 5_760]


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("changes", [{}, {"head_dim": 32}, {"num_key_value_heads": 4}, {"num_hidden_layers": 3}])
@pytest.mark.parametrize("family", ["llama", "mistral"])
def test_parameters_of_real_models(family, changes, tied):
    model = toy_model(family, tie_word_embeddings=tied, **changes)
    config = {**model.config.to_dict(), "head_dim": changes.get("head_dim", 16), "tie_word_embeddings": tied}
    assert llama_parameter_count(config) == sum(parameter.numel() for parameter in model.parameters())


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize(
    "family,changes", [("llama", {}), ("llama", {"head_dim": 32}), ("llama", {"num_key_value_heads": 1}), ("qwen2", {}), ("mistral", {}), ("gpt2", {})]
)  # fmt: skip
def test_cache_bytes_of_real_models(family, changes, dtype):
    model, batch, length = toy_model(family, dtype, **changes), 3, 11
    cache = new_cache(model, length)
    with torch.inference_mode():
        prefill(model, random_ids(batch, length), cache)
    held = sum(tensor.numel() * tensor.element_size() for layer in cache.layers for tensor in (layer.keys, layer.values))
    assert held == batch * length * kv_bytes_per_token(ModelSpec.from_config(model.config), dtype.itemsize)
