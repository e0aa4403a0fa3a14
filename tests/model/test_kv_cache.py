"""Whatever is done to the cache that grows in place, the model answers as with a cache to which it never happened."""

import copy

import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM, DynamicCache, StaticCache

from shapelab.errors import BadArgument, DoesNotFit, UnsupportedModel
from shapelab.model.forward import forward
from shapelab.model.kv_cache import PreallocatedLayer, held_bytes, new_cache
from shapelab.theory.model_spec import ModelSpec
from tests.toys import random_ids, toy_model

FAMILIES = ("llama", "gpt2", "gemma2")
PROMPT, REJECTED, MORE = random_ids(2, 9), random_ids(2, 3, seed=1), random_ids(2, 2, seed=2)


def filled(model, *parts, capacity=20):
    """A cache into which each part was read in a pass of its own."""
    cache = new_cache(model, capacity)
    for ids in parts:
        forward(model, ids, cache)
    return cache


def same(model, cache, other, ids=MORE):
    """The next passes, one of two tokens and one of a single token, give the same logits from both caches."""
    passes = (ids, ids[:, :1])
    mine, theirs = ([forward(model, tokens, each, tokens.shape[1]) for tokens in passes] for each in (cache, other))
    assert cache.get_seq_length() == other.get_seq_length()
    return all(torch.allclose(a, b, rtol=0, atol=1e-9) for a, b in zip(mine, theirs, strict=True))


def test_a_pass_holds_what_a_growing_cache_holds():
    model = toy_model()
    mine, theirs = filled(model, PROMPT, MORE, capacity=16), DynamicCache(config=model.config)
    for ids in (PROMPT, MORE):
        forward(model, ids, theirs)
    for a, b in zip(mine.layers, theirs.layers, strict=True):
        assert a.keys.shape == (2, 2, 11, 16)
        assert torch.equal(a.keys, b.keys) and torch.equal(a.values, b.values)


def test_a_step_writes_in_place():
    model = toy_model()
    cache = filled(model, PROMPT)
    before = [layer.keys.data_ptr() for layer in cache.layers]
    forward(model, MORE, cache)
    assert [layer.keys.data_ptr() for layer in cache.layers] == before


@pytest.mark.parametrize("family", FAMILIES)
def test_rejected_tokens_are_never_attended(family):
    model = toy_model(family)
    cache = filled(model, PROMPT, REJECTED)
    cache.crop(-3)
    assert cache.get_seq_length() == 9
    assert same(model, cache, filled(model, PROMPT))


def test_rejected_again_and_again():
    model = toy_model()
    cache = filled(model, PROMPT)
    for seed in range(3):
        forward(model, random_ids(2, 4, seed), cache)
        cache.crop(-4)
    assert same(model, cache, filled(model, PROMPT))


def test_cropping_keeps_the_buffers():
    """A rejected draft costs no copy of what is kept."""
    model = toy_model()
    cache = filled(model, PROMPT, REJECTED)
    before = cache.layers[0].keys.data_ptr()
    cache.crop(-3)
    forward(model, MORE, cache)
    assert cache.layers[0].keys.data_ptr() == before


@pytest.mark.parametrize("remove", [-12, -13, -100])
def test_cropped_to_nothing(remove):
    model = toy_model()
    cache = filled(model, PROMPT, REJECTED)
    cache.crop(remove)
    assert cache.get_seq_length() == 0
    assert same(model, cache, new_cache(model, 20))


def test_cropping_by_nothing_and_before_the_first_pass():
    model = toy_model()
    cache, empty = filled(model, PROMPT), new_cache(model, 20)
    cache.crop(0)
    empty.crop(-1)
    assert same(model, cache, filled(model, PROMPT)) and same(model, empty, new_cache(model, 20))


@pytest.mark.parametrize("rows", [2, 1, 5])
def test_after_a_reset_another_batch(rows):
    model, ids = toy_model(), random_ids(rows, 7, seed=3)
    cache = filled(model, PROMPT, REJECTED)
    cache.reset()
    assert cache.get_seq_length() == 0 and held_bytes(cache) == 0
    forward(model, ids, cache)
    assert same(model, cache, filled(model, ids), random_ids(rows, 2, seed=4))


def test_a_reset_before_the_first_pass():
    model = toy_model()
    cache = new_cache(model, 20)
    cache.reset()
    assert same(model, cache, new_cache(model, 20))


CHANGES = {
    "one row kept": (lambda cache: cache.batch_select_indices(torch.tensor([1])), [1]),
    "rows chosen by a mask": (lambda cache: cache.batch_select_indices(torch.tensor([False, True])), [1]),
    "rows in another order": (lambda cache: cache.reorder_cache(torch.tensor([1, 0])), [1, 0]),
    "a beam that won": (lambda cache: cache.reorder_cache(torch.tensor([1, 1])), [1, 1]),
    "rows repeated": (lambda cache: cache.batch_repeat_interleave(3), [0, 0, 0, 1, 1, 1]),
    "cropped, then chosen": (lambda cache: (cache.crop(-3), cache.batch_select_indices(torch.tensor([1]))), [1]),
    "chosen, then cropped": (lambda cache: (cache.batch_select_indices(torch.tensor([1])), cache.crop(-3)), [1]),
}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("change", CHANGES)
def test_rows_are_chosen(change, family):
    model = toy_model(family)
    alter, rows = CHANGES[change]
    parts = (PROMPT,) if "cropped" in change else (PROMPT, REJECTED)
    cache, expected = filled(model, PROMPT, REJECTED), filled(model, *(part[rows] for part in parts))
    alter(cache)
    assert same(model, cache, expected, MORE[rows])


def test_chosen_rows_grow_in_place_and_leave_the_others_alone():
    model = toy_model()
    cache = filled(model, PROMPT)
    other = copy.deepcopy(cache)
    cache.batch_select_indices(torch.tensor([1]))
    forward(model, MORE[1:], cache)
    before = cache.layers[0].keys.data_ptr()
    forward(model, MORE[1:], cache)
    assert cache.layers[0].keys.data_ptr() == before
    assert same(model, other, filled(model, PROMPT))


def test_moved_to_the_host_and_back():
    model = toy_model()
    cache = filled(model, PROMPT)
    for layer in cache.layers:
        layer.offload()
        layer.prefetch()
    assert same(model, cache, filled(model, PROMPT))


@pytest.mark.parametrize("first", [True, False])
def test_filled_in_inference_mode_and_used_outside_or_the_reverse(first):
    """torch refuses to write in place into a tensor that was made in inference mode."""
    model = toy_model()
    with torch.inference_mode(first):
        cache = filled(model, PROMPT)
    with torch.inference_mode(not first):
        assert same(model, cache, filled(model, PROMPT))
        cache.reset()
    assert same(model, cache, new_cache(model, 20))


def test_more_tokens_than_there_is_room_for():
    model = toy_model()
    cache = filled(model, PROMPT, capacity=10)
    with pytest.raises(DoesNotFit):
        forward(model, REJECTED, cache)
    with pytest.raises(DoesNotFit):
        forward(model, PROMPT, new_cache(model, 8))
    assert cache.get_seq_length() == 9, "nothing was written"
    forward(model, MORE[:, :1], cache)
    assert cache.get_seq_length() == 10


@pytest.mark.parametrize("rows", [1, 3])
def test_another_number_of_rows_is_refused(rows):
    """One row would be written into both, by torch's broadcasting, without a word."""
    layer, (states, others) = PreallocatedLayer(4), (torch.zeros(count, 2, 1, 8) for count in (2, rows))
    layer.update(states, states)
    with pytest.raises(BadArgument):
        layer.update(others, others)


def hybrid(kind="lfm2", **changes):
    """A toy of a family that mixes layers with and without keys; skips where this transformers has no such layers of its own."""
    fields = {"num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 300,
              "intermediate_size": 96, "max_position_embeddings": 512, "pad_token_id": 0, "layer_types": ["conv", "full_attention"]}  # fmt: skip
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model(kind, **{**fields, **changes}), dtype=torch.float64)
    return model.eval().requires_grad_(False)


def test_layers_without_keys_are_counted_by_what_they_hold():
    model = hybrid()
    kinds = {type(layer).__name__ for layer in new_cache(model, 20).layers}
    if kinds == {"PreallocatedLayer"}:
        pytest.skip("this transformers keeps the convolution's state in a cache class of the family's own")
    cache = filled(model, PROMPT)
    attention = 2 * 2 * 9 * 2 * 16 * 8  # keys and values, 2 rows of 9 tokens, 2 KV heads of 16 numbers of 8 bytes
    convolution = 2 * 64 * model.config.conv_L_cache * 8  # a window of the last inputs, 2 rows of 64 numbers
    assert held_bytes(cache) == attention + convolution


def test_every_layer_counts_as_often_as_it_exists():
    model = toy_model("gemma2", sliding_window=4, layer_types=["sliding_attention", "full_attention"])
    cache = filled(model, PROMPT)
    assert {type(layer).__name__ for layer in cache.layers} == {"DynamicSlidingWindowLayer", "PreallocatedLayer"}
    assert held_bytes(cache) == sum(2 * 2 * layer.keys.shape[2] * 2 * layer.keys.shape[3] * 8 for layer in cache.layers)
    assert held_bytes(new_cache(model, 20)) == 0, "nothing was read yet"
    fixed = StaticCache(config=toy_model().config, max_cache_len=16)
    forward(toy_model(), PROMPT, fixed)
    assert held_bytes(fixed) == 2 * 2 * (2 * 2 * 16 * 16) * 8, "it is as large when it is empty"


UNKNOWN = {
    "convolutions": {"model_type": "lfm2", "num_hidden_layers": 2, "layer_types": ["conv", "full_attention"]},
    "linear attention": {"model_type": "qwen3_next"},
    "a state-space model": {"model_type": "mamba"},
    "mixed by another field's name": {"model_type": "jamba"},
    "keys shared between layers": {"model_type": "gemma3n_text"},
}


@pytest.mark.parametrize("case", UNKNOWN)
def test_a_cache_that_is_not_keys_and_values_of_each_layer_is_refused_by_its_config(case):
    with pytest.raises(UnsupportedModel):
        ModelSpec.from_config(AutoConfig.for_model(**UNKNOWN[case]))
