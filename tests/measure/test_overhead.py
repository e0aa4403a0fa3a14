"""A hollow twin has the same operations and no weight; a compiled model writes the same ids."""

import pytest
import torch
from torch.overrides import TorchFunctionMode

from shapelab.errors import ShapelabError
from shapelab.measure.clock import HostClock
from shapelab.measure.loop import generate, held_bytes, new_cache
from shapelab.measure.overhead import compiled, hollow_twin, overhead_s, static_cache
from shapelab.model.twins import with_kv_heads
from shapelab.theory.arithmetic import kv_bytes_per_token, parameter_count
from tests.toys import ScriptedTime, random_ids, toy_lab

FAMILIES = ["llama", "qwen2", "qwen3", "mistral", "gpt2", "gemma"]


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
        generate(lab.model, ids, 3, new_cache(lab.model, ids.shape[1] + 3), HostClock())
    return counter.count


@pytest.mark.parametrize("family", FAMILIES)
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


def test_overhead_is_the_twins_tpot(monkeypatch):
    time = ScriptedTime()

    def passes(*_, **__):
        time.advance(7)

    real = hollow_twin(toy_lab())
    real.model.register_forward_pre_hook(passes)
    monkeypatch.setattr("shapelab.measure.overhead.hollow_twin", lambda _: real)
    assert overhead_s(toy_lab(), repeats=2, clock=HostClock(now=time)) == pytest.approx(0.007)


@pytest.mark.parametrize("heads", [1, 2, 4])
def test_kv_heads_change_the_cache_and_nothing_else(heads):
    lab = toy_lab()
    twin = with_kv_heads(lab, heads)
    assert twin.spec.num_key_value_heads == heads and lab.spec.num_key_value_heads == 2
    cache = new_cache(twin.model, 12)
    generate(twin.model, random_ids(1, 8), 4, cache, HostClock())
    assert held_bytes(cache) == 11 * kv_bytes_per_token(twin.spec, 8)
    assert "KV heads" in twin.name and twin.weights == "random"


def test_kv_heads_that_cannot_be():
    with pytest.raises(ShapelabError, match="4 query heads cannot share"):
        with_kv_heads(toy_lab(), 3)
    with pytest.raises(ShapelabError, match="knows no other way"):
        with_kv_heads(toy_lab("gpt2"), 2)


def test_a_static_cache_gives_the_same_ids():
    lab, ids = toy_lab(), random_ids(2, 9)
    cache = static_cache(lab, 40, 2)
    assert all(layer.keys.shape == (2, 2, 40, 16) for layer in cache.layers), "made before the first pass"
    found = generate(lab.model, ids, 8, cache, HostClock()).ids
    assert found.tolist() == generate(lab.model, ids, 8, new_cache(lab.model, 17), HostClock()).ids.tolist()


@pytest.mark.slow
def test_compiled_writes_the_same_ids_and_leaves_no_trace():
    lab, ids = toy_lab(), random_ids(1, 9)
    expected = generate(lab.model, ids, 6, new_cache(lab.model, 15), HostClock()).ids.tolist()
    plain = lab.model.forward
    with compiled(lab):
        assert lab.model.forward != plain
        assert generate(lab.model, ids, 6, static_cache(lab, 16), HostClock()).ids.tolist() == expected
    assert lab.model.forward == plain and "forward" not in vars(lab.model)
    assert torch.equal(generate(lab.model, ids, 6, new_cache(lab.model, 15), HostClock()).ids, torch.tensor(expected))


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
