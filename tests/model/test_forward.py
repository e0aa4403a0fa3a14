"""A pass gives the logits it is asked for; a compiled one, with the static cache it needs, writes the same ids."""

import pytest
import torch

from shapelab.measure.clock import HostClock
from shapelab.measure.loop import timed
from shapelab.model.forward import compiled, forward, greedy
from shapelab.model.kv_cache import new_cache, static_cache
from tests.toys import random_ids, toy_model


def test_a_static_cache_gives_the_same_ids():
    model, ids = toy_model(), random_ids(2, 9)
    cache = static_cache(model, 40, 2)
    assert all(layer.keys.shape == (2, 2, 40, 16) for layer in cache.layers), "made before the first pass"
    fixed = timed(model, ids, 8, HostClock(), cache)
    assert fixed.ids.tolist() == timed(model, ids, 8, HostClock()).ids.tolist()


@pytest.mark.slow
def test_compiled_writes_the_same_ids_and_leaves_no_trace():
    model, ids = toy_model(), random_ids(1, 9)
    expected = timed(model, ids, 6, HostClock()).ids.tolist()
    plain = model.forward
    with compiled(model):
        assert model.forward != plain
        assert timed(model, ids, 6, HostClock(), static_cache(model, 16)).ids.tolist() == expected
    assert model.forward == plain and "forward" not in vars(model)
    assert timed(model, ids, 6, HostClock()).ids.tolist() == expected


def test_logits_of_the_positions_that_are_asked_for():
    model, ids = toy_model(), random_ids(2, 9)
    whole = forward(model, ids, new_cache(model, 9), 9)
    for keep in (1, 4):
        assert torch.allclose(forward(model, ids, new_cache(model, 9), keep), whole[:, -keep:])
    chosen = torch.tensor([2, 5, 8])
    assert torch.allclose(forward(model, ids, new_cache(model, 9), chosen), whole[:, chosen])


def test_the_greedy_choice_is_made_at_every_position():
    logits = torch.tensor([[[0.0, 2.0, 1.0], [3.0, 0.0, 1.0]], [[0.0, 0.0, 1.0], [0.0, 5.0, 1.0]]])
    assert greedy(logits).tolist() == [[1, 0], [2, 1]]
