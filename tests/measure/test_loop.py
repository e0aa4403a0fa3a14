"""The loop writes what generate() writes, row by row, and touches nothing it should not."""

import pytest
import torch

from shapelab.measure import loop
from shapelab.measure.clock import HostClock
from shapelab.measure.experiment import run_once
from shapelab.measure.loop import Rows, generate, left_pad, new_cache
from shapelab.request.shape import RequestShape
from tests.toys import random_ids, toy_lab, toy_model

FAMILIES = ("llama", "qwen2", "gpt2", "mistral")


def write(model, ids, count, mask=None, **options):
    cache = new_cache(model, ids.shape[1] + count)
    return generate(model, ids, count, cache, HostClock(), mask=mask, **options), cache


def reference(model, ids, count):
    """transformers' own greedy answer, EOS written like any other token."""
    model.generation_config.pad_token_id = 0
    full = model.generate(ids, attention_mask=torch.ones_like(ids), do_sample=False, eos_token_id=None, max_new_tokens=count)
    return full[:, ids.shape[1] :]


@pytest.mark.parametrize("family", FAMILIES)
def test_ids_equal_generate(family):
    model, ids = toy_model(family), random_ids(1, 9)
    found, cache = write(model, ids, 40)
    expected = reference(model, ids, 40)
    assert found.ids.tolist() == expected.tolist()
    assert len(set(expected[0].tolist())) >= 8, "a model that repeats itself proves nothing"
    assert cache.get_seq_length() == 9 + 40 - 1


@pytest.mark.parametrize("family", FAMILIES)
def test_equal_rows_answer_as_alone(family):
    model, ids = toy_model(family), random_ids(3, 12)
    together, _ = write(model, ids, 24)
    for row in range(3):
        alone, _ = write(model, ids[row : row + 1], 24)
        assert together.ids[row].tolist() == alone.ids[0].tolist()
        assert len(set(alone.ids[0].tolist())) >= 8


def ragged(model, drop=""):
    """A batch of rows of 5, 12 and 9 tokens, and each row alone; `drop` breaks the batch on purpose."""
    rows = [random_ids(1, length, seed)[0].tolist() for seed, length in enumerate((5, 12, 9))]
    ids, mask = left_pad(rows, 0, "cpu")
    patch = pytest.MonkeyPatch()
    if drop:
        whole = Rows._until
        patch.setattr(Rows, "_until", lambda self, end, new: {k: v for k, v in whole(self, end, new).items() if k != drop})
    try:
        together, _ = write(model, ids, 24, mask)
    finally:
        patch.undo()
    alone = [write(model, torch.tensor([row]), 24)[0].ids[0].tolist() for row in rows]
    return together.ids.tolist(), alone


@pytest.mark.parametrize("family", FAMILIES)
def test_ragged_rows_answer_as_alone(family):
    together, alone = ragged(toy_model(family))
    assert together == alone
    assert all(len(set(row)) >= 8 for row in alone)


@pytest.mark.parametrize("family", ("llama", "gpt2"))
def test_the_mask_is_needed(family):
    together, alone = ragged(toy_model(family), drop="attention_mask")
    assert together != alone


def test_the_positions_are_needed():
    # Rotary positions are relative, so a left-padded Llama forgives; learned positions do not.
    together, alone = ragged(toy_model("gpt2"), drop="position_ids")
    assert together != alone


def test_equal_rows_need_no_mask():
    ids, mask = left_pad([[1, 2], [3, 4]], 0, "cpu")
    assert mask is None and ids.tolist() == [[1, 2], [3, 4]]


def test_a_hub_generation_config_never_leaks_in():
    model, ids = toy_model(), random_ids(1, 9)
    expected, _ = write(model, ids, 20)
    model.generation_config.do_sample, model.generation_config.top_k, model.generation_config.temperature = True, 50, 3.0
    assert write(model, ids, 20)[0].ids.tolist() == expected.ids.tolist()


def test_eos_is_written_and_the_run_goes_on():
    model, ids = toy_model(), random_ids(1, 9)
    plain, _ = write(model, ids, 20)
    for eos in (plain.ids[0, 0].item(), plain.ids[0, :3].tolist()):  # one id, and a list of them
        model.config.eos_token_id = model.generation_config.eos_token_id = eos
        assert write(model, ids, 20)[0].ids.tolist() == plain.ids.tolist()


def test_only_the_last_position_gets_logits():
    lab, seen = toy_lab(), []
    hook = lab.model.lm_head.register_forward_hook(lambda _m, inputs, output: seen.append(tuple(output.shape)))
    run_once(lab, RequestShape(50, 3, 2))
    hook.remove()
    assert seen == [(2, 1, 300)] * 3


def test_a_run_leaves_no_trace_for_the_next():
    lab = toy_lab()
    prompts = [random_ids(1, 30)[0].tolist()]
    first = run_once(lab, RequestShape(30, 5), prompts)
    second = run_once(lab, RequestShape(30, 5), prompts)
    assert first.ids.tolist() == second.ids.tolist()


def test_an_ignored_cache_is_found_out(monkeypatch):
    """transformers 4.57 takes `cache=` without a word and runs without a cache."""
    monkeypatch.setattr(loop, "cache_argument", lambda _class: "no_such_argument")
    lab = toy_lab()
    swallow = type(lab.model).forward
    monkeypatch.setattr(type(lab.model), "forward", lambda self, *a, no_such_argument=None, **k: swallow(self, *a, **k))
    with pytest.raises(Exception, match="did not use the cache"):
        run_once(lab, RequestShape(8, 3))


def test_cached_tokens_then_input_equals_one_prompt():
    lab = toy_lab()
    prompts = [random_ids(1, 40)[0].tolist()]
    whole = run_once(lab, RequestShape(40, 12), prompts)
    split = run_once(lab, RequestShape(15, 12, cached_tokens=25), prompts)
    assert split.ids.tolist() == whole.ids.tolist()
    assert (split.timeline.shape.input_tokens, split.timeline.shape.cached_tokens) == (15, 25)


def test_the_callback_gets_each_steps_tensor():
    lab, seen = toy_lab(), []
    result = run_once(lab, RequestShape(8, 6, 2), on_token=seen.append)
    assert all(isinstance(token, torch.Tensor) and token.shape == (2, 1) for token in seen)
    assert torch.cat(seen, dim=1).tolist() == result.ids.tolist()


def test_the_cache_layer_holds_what_a_growing_one_holds():
    from transformers import DynamicCache

    model, ids = toy_model(), random_ids(2, 11)
    mine, theirs = new_cache(model, 16), DynamicCache(config=model.config)
    with torch.inference_mode():
        for cache in (mine, theirs):
            loop.prefill(model, ids, cache)
            loop.decode_step(model, ids[:, :1], cache)
    for a, b in zip(mine.layers, theirs.layers, strict=True):
        assert a.keys.shape == (2, 2, 12, 16)
        assert torch.equal(a.keys, b.keys) and torch.equal(a.values, b.values)


def test_a_ragged_run_says_that_the_host_waited():
    model = toy_model()
    ids, mask = left_pad([[5, 6, 7], [8, 9]], 0, "cpu")
    assert write(model, ids, 3, mask)[0].timeline.per_step_sync
    assert not write(model, ids, 3)[0].timeline.per_step_sync
