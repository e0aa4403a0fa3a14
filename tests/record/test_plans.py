"""Plans hold what a fit needs, on models of any context."""

import numpy as np
import pandas as pd
import pytest

from shapelab.errors import UnknownName
from shapelab.record.plans import PLANS, plan_shapes
from shapelab.request.shape import PRESETS, RequestShape


@pytest.mark.parametrize("name", PLANS)
@pytest.mark.parametrize("limit", [64, 512, 1024, 2048, 4096, 8192])
def test_a_plan_fits_the_models_context(name, limit):
    shapes, repeats = plan_shapes(name, limit)
    assert repeats >= 2 and len(shapes) == len(set(shapes)) >= 10
    assert all(shape.total_tokens <= limit for shape in shapes)


def test_the_longest_prompt_is_cut_rather_than_left_out():
    assert max(shape.input_tokens for shape in plan_shapes("quick", 2048)[0]) == 2048 - 8


def test_the_quick_plan_walks_along_each_number():
    shapes, _ = plan_shapes("quick", 8192)
    assert {1, 2, 3, 4, 8, 16} <= {shape.batch_size for shape in shapes}
    assert len({shape.cached_tokens for shape in shapes}) >= 3
    assert min(s.input_tokens for s in shapes) == 1 and max(s.input_tokens for s in shapes) == 3000
    assert max(s.input_tokens * s.batch_size for s in shapes) == 8192


def test_the_full_plan_holds_the_presets():
    shapes, _ = plan_shapes("full", 8192)
    assert {PRESETS["chat"], PRESETS["rag"], PRESETS["creative"], RequestShape(25, 32)} <= set(shapes)


def test_an_unknown_plan():
    with pytest.raises(UnknownName) as caught:
        plan_shapes("long", 8192)
    assert caught.value.argument == "plan"


@pytest.mark.parametrize("limit", [np.uint8(200), np.int16(2048), np.uint64(20), pd.Series([2048]).max()])
def test_a_context_length_of_any_whole_kind(limit):
    assert plan_shapes("quick", limit) == plan_shapes("quick", int(limit))
