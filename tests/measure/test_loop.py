"""The loop writes what transformers' own generate() writes, hands out each id as it comes, and touches nothing it should not."""

import gc
import inspect

import pytest
import torch

from shapelab.errors import BadArgument, UnsupportedModel
from shapelab.measure import loop
from shapelab.measure.clock import HostClock
from shapelab.measure.experiment import run_once
from shapelab.measure.loop import generate, timed
from shapelab.model import forward
from shapelab.model.kv_cache import new_cache
from shapelab.request.shape import RequestShape
from tests.toys import random_ids, toy_lab, toy_model

FAMILIES = ("llama", "qwen2", "gpt2", "mistral")


def write(model, ids, count):
    return timed(model, ids, count, HostClock())


def reference(model, ids, count):
    """transformers' own greedy answer, EOS written like any other token."""
    model.generation_config.pad_token_id = 0
    full = model.generate(ids, attention_mask=torch.ones_like(ids), do_sample=False, eos_token_id=None, max_new_tokens=count)
    return full[:, ids.shape[1] :]


@pytest.mark.parametrize("family", FAMILIES)
def test_ids_equal_generate(family):
    model, ids = toy_model(family), random_ids(1, 9)
    cache = new_cache(model, 48)
    written = timed(model, ids, 40, HostClock(), cache)
    expected = reference(model, ids, 40)
    assert written.ids.tolist() == expected.tolist()
    assert len(set(expected[0].tolist())) >= 8, "a model that repeats itself proves nothing"
    assert cache.get_seq_length() == 9 + 40 - 1


@pytest.mark.parametrize("family", FAMILIES)
def test_equal_rows_answer_as_alone(family):
    model, ids = toy_model(family), random_ids(3, 12)
    together = write(model, ids, 24)
    for row in range(3):
        alone = write(model, ids[row : row + 1], 24)
        assert together.ids[row].tolist() == alone.ids[0].tolist()
        assert len(set(alone.ids[0].tolist())) >= 8


def test_a_hub_generation_config_never_leaks_in():
    model, ids = toy_model(), random_ids(1, 9)
    expected = write(model, ids, 20)
    model.generation_config.do_sample, model.generation_config.top_k, model.generation_config.temperature = True, 50, 3.0
    assert write(model, ids, 20).ids.tolist() == expected.ids.tolist()


def test_eos_is_written_and_the_run_goes_on():
    model, ids = toy_model(), random_ids(1, 9)
    plain = write(model, ids, 20)
    for eos in (plain.ids[0, 0].item(), plain.ids[0, :3].tolist()):  # one id, and a list of them
        model.config.eos_token_id = model.generation_config.eos_token_id = eos
        assert write(model, ids, 20).ids.tolist() == plain.ids.tolist()


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


def test_an_ignored_cache_is_noticed(monkeypatch):
    """transformers 4.57 takes `cache=` without a word and runs without a cache."""
    monkeypatch.setattr(forward, "cache_argument", lambda _class: "no_such_argument")
    lab = toy_lab()
    swallow = type(lab.model).forward
    monkeypatch.setattr(type(lab.model), "forward", lambda self, *a, no_such_argument=None, **k: swallow(self, *a, **k))
    with pytest.raises(UnsupportedModel):
        run_once(lab, RequestShape(8, 3))


def test_cached_tokens_then_input_equals_one_prompt():
    lab = toy_lab()
    prompts = [random_ids(1, 40)[0].tolist()]
    whole = run_once(lab, RequestShape(40, 12), prompts)
    split = run_once(lab, RequestShape(15, 12, cached_tokens=25), prompts)
    assert split.ids.tolist() == whole.ids.tolist()
    assert (split.timeline.shape.input_tokens, split.timeline.shape.cached_tokens) == (15, 25)


def test_prompts_that_do_not_fit_the_shape_are_refused():
    with pytest.raises(BadArgument) as caught:
        run_once(toy_lab(), RequestShape(10, 2, 2), [[1] * 10, [1] * 9])
    assert caught.value.argument == "prompts"


def test_each_step_is_handed_out_before_the_next_one_runs():
    model, ids, passes = toy_model(), random_ids(2, 8), []
    hook = model.register_forward_pre_hook(lambda *_: passes.append(1))
    seen = []
    for token in generate(model, ids, 6, new_cache(model, 13), HostClock()):
        seen.append(token)
        assert isinstance(token, torch.Tensor) and token.shape == (2, 1)
        assert len(passes) == len(seen), "no pass runs ahead"
    hook.remove()
    assert torch.cat(seen, dim=1).tolist() == write(model, ids, 6).ids.tolist()


@pytest.mark.parametrize("stop_after", [1, 3])
def test_stopping_is_a_break(stop_after):
    model, clock = toy_model(), HostClock()
    cache = new_cache(model, 13)
    for count, _token in enumerate(generate(model, random_ids(1, 8), 6, cache, clock), 1):
        if count == stop_after:
            break
    assert len(clock.finish()[0]) == 1 + stop_after
    assert cache.get_seq_length() == 8 + stop_after - 1, "what was not asked for was not computed"


def test_nothing_runs_before_the_first_id_is_asked_for():
    model, clock = toy_model(), HostClock()
    cache = new_cache(model, 13)
    generate(model, random_ids(1, 8), 6, cache, clock)
    assert clock.stamps == [] and cache.get_seq_length() == 0


def test_the_reader_s_own_code_may_still_compute_gradients():
    """Neither a run, nor a loop over the steps, nor a break leaves torch in inference mode, in which learners' tensors have none."""
    model, ids = toy_model(), random_ids(1, 8)
    write(model, ids, 3)
    for _token in generate(model, ids, 3, new_cache(model, 10), HostClock()):
        assert not torch.is_inference_mode_enabled()
        assert (torch.ones(2, requires_grad=True) * 2).requires_grad
        break
    assert not torch.is_inference_mode_enabled() and torch.is_grad_enabled()


def test_the_garbage_collector_rests_during_a_run_and_works_after_it():
    model, on = toy_model(), []
    hook = model.register_forward_pre_hook(lambda *_: on.append(gc.isenabled()))
    write(model, random_ids(1, 8), 3)
    assert on == [False] * 3 and gc.isenabled()
    hook.remove()
    model.forward = None
    with pytest.raises(TypeError):
        write(model, random_ids(1, 8), 3)
    assert gc.isenabled(), "even after an error"


def test_the_timeline_has_the_shape_that_ran():
    model, ids = toy_model(), random_ids(2, 8)
    cache = new_cache(model, 30)
    timed(model, ids, 4, HostClock(), cache)
    again = timed(model, ids, 3, HostClock(), cache)
    assert again.timeline.shape == RequestShape(8, 3, 2, cached_tokens=11)
    assert again.kv_cache_bytes == 2 * 2 * 2 * (11 + 8 + 2) * 2 * 16 * 8


@pytest.mark.parametrize("read", [None, "item", "tolist", "__bool__"])
def test_the_loop_reads_no_value_on_the_way(monkeypatch, read):
    """No item(), tolist(), bool() or numpy() between the first and the last pass: each would make the host wait."""
    model, reads = toy_model(), []
    for name in ("item", "tolist", "__bool__", "__int__", "numpy", "cpu"):
        real = getattr(torch.Tensor, name)
        monkeypatch.setattr(torch.Tensor, name, lambda self, *a, _n=name, _r=real, **k: (reads.append(_n), _r(self, *a, **k))[1])
    for token in generate(model, torch.ones(1, 7, dtype=torch.long), 5, new_cache(model, 12), HostClock()):
        if read:
            getattr(token, read)()  # as a reader may; the spy notices
    assert reads == ([read] * 5 if read else [])


def test_what_the_notebook_prints_fits_on_one_screen():
    printed = "\n".join(inspect.getsource(each) for each in (loop.prefill, loop.decode_step, loop.generate))
    assert len(printed.splitlines()) <= 30
    assert not any(word in printed for word in ("mask", "stop_ids", "pad", "on_token"))
