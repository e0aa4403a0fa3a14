"""A hollow twin has the same operations and next to no weights; a twin with other KV heads shares every other weight."""

import numpy as np
import pytest
import torch
from torch.overrides import TorchFunctionMode
from transformers import AutoConfig

from shapelab.errors import ShapelabError, UnsupportedModel
from shapelab.measure.clock import HostClock
from shapelab.measure.loop import timed
from shapelab.model.load import ByteTokenizer, Lab
from shapelab.model.twins import hollow_twin, with_kv_heads
from shapelab.theory.arithmetic import kv_bytes_per_token, parameter_count
from shapelab.theory.families import FAMILIES
from shapelab.theory.model_spec import ModelSpec
from tests.families import HERE, fields_of, real_model
from tests.toys import random_ids, toy_lab

COURSE = ["llama", "qwen2", "qwen3", "mistral", "gpt2", "gemma"]


class Calls(TorchFunctionMode):
    """Counts what is called on tensors."""

    def __init__(self):
        super().__init__()
        self.count = 0

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.count += 1
        return func(*args, **(kwargs or {}))


def calls(lab, ids):
    with Calls() as counter:
        timed(lab.model, ids, 3, HostClock())
    return counter.count


@pytest.mark.parametrize("family", COURSE)
def test_the_twin_does_as_many_operations_with_next_to_no_weights(family):
    lab = toy_lab(family)
    twin = hollow_twin(lab)
    assert twin.spec.num_hidden_layers == lab.spec.num_hidden_layers
    assert twin.spec.num_attention_heads == lab.spec.num_attention_heads
    assert twin.spec.num_key_value_heads == lab.spec.num_key_value_heads
    assert twin.spec.hidden_size == 8 * lab.spec.num_attention_heads and twin.spec.vocab_size == 256
    assert twin.parameter_count == parameter_count(twin.spec) < lab.parameter_count
    ids = random_ids(1, 9) % 250
    assert calls(twin, ids) == calls(lab, ids)
    assert type(twin.model) is type(lab.model) and twin.dtype == lab.dtype
    assert lab.spec.hidden_size == 64 == lab.model.config.hidden_size if family != "gpt2" else True, "the real one is untouched"


@pytest.mark.parametrize("heads", [1, 2, 4])
def test_kv_heads_change_the_cache_and_nothing_else(heads):
    lab = toy_lab()
    twin = with_kv_heads(lab, heads)
    assert twin.spec.num_key_value_heads == heads and lab.spec.num_key_value_heads == 2
    assert timed(twin.model, random_ids(1, 8), 4, HostClock()).kv_cache_bytes == 11 * kv_bytes_per_token(twin.spec, 8)
    assert "KV heads" in twin.name and twin.weights == "random"


def test_kv_heads_that_cannot_be():
    with pytest.raises(ShapelabError):
        with_kv_heads(toy_lab(), 3)
    with pytest.raises(UnsupportedModel):
        with_kv_heads(toy_lab("gpt2"), 2)


@pytest.mark.parametrize("family", ["llama", "qwen2", "qwen3", "mistral", "gemma"])
def test_a_twin_with_other_kv_heads_shares_every_other_weight(family):
    lab = toy_lab(family)
    twin = with_kv_heads(lab, 1)
    mine, theirs = dict(lab.model.named_parameters()), dict(twin.model.named_parameters())
    assert mine.keys() == theirs.keys(), "tied where the lab's are tied"
    own = {name for name in mine if mine[name].data_ptr() != theirs[name].data_ptr()}
    assert own and all(".k_proj." in name or ".v_proj." in name for name in own)
    assert {tensor.device.type for tensor in (*theirs.values(), *twin.model.buffers())} == {"cpu"}
    assert {tensor.dtype for tensor in theirs.values()} == {lab.dtype}
    assert all(abs(float(theirs[name].std()) / lab.model.config.initializer_range - 1) < 0.3 for name in own if "weight" in name)
    ids = random_ids(1, 9) % 250
    same = with_kv_heads(lab, lab.spec.num_key_value_heads)
    assert torch.equal(same.model(ids).logits, lab.model(ids).logits), "with as many heads as before it is the lab's model"
    before = lab.model(ids).logits.clone()
    twin.model(ids)
    assert torch.equal(lab.model(ids).logits, before)


@pytest.mark.parametrize("family", HERE)
def test_twins_of_every_family(family):
    """Each family spells its widths its own way; what stays wide would be taken for overhead."""
    model = real_model(AutoConfig.for_model(**fields_of(family)), "cpu")
    lab = Lab(model, ByteTokenizer(), family, "random", torch.device("cpu"), torch.float32, ModelSpec.from_config(model))
    twin = hollow_twin(lab)
    for name in ("num_hidden_layers", "num_attention_heads", "num_key_value_heads", "num_experts", "num_dense_layers"):
        assert getattr(twin.spec, name) == getattr(lab.spec, name)
    inner = 4 * 32 if FAMILIES[family].inner == "always" else 16
    assert (twin.spec.hidden_size, twin.spec.head_dim, twin.spec.intermediate_size, twin.spec.vocab_size) == (32, 8, inner, 256)
    assert max(twin.spec.moe_intermediate_size, twin.spec.shared_expert_intermediate_size) <= 2 * 16
    timed(twin.model, random_ids(1, 5) % 250, 2, HostClock())
    if FAMILIES[family].kv_heads != "num_key_value_heads":
        with pytest.raises(UnsupportedModel):
            with_kv_heads(lab, 1)
        return
    for heads in (np.int64(1), 4):
        other = with_kv_heads(lab, heads)
        written = timed(other.model, random_ids(1, 5), 2, HostClock())
        assert other.spec.num_key_value_heads == heads
        assert written.kv_cache_bytes == 6 * kv_bytes_per_token(other.spec, "float32")
