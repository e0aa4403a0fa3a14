"""Ragged rows served together write what each of them writes alone; ids after a stop do not count."""

import numpy as np
import pytest
import torch

from shapelab.errors import BadArgument, ShapelabError
from shapelab.measure.clock import HostClock
from shapelab.measure.loop import timed
from shapelab.model.kv_cache import new_cache
from shapelab.record import metrics
from shapelab.serving.static_batch import generate_padded, grown, left_pad, serve
from tests.toys import ScriptedModel, ScriptedTime, random_ids, scripted_lab, toy_lab, toy_model

FAMILIES = ("llama", "qwen2", "gpt2", "mistral")
ROWS = [random_ids(1, length, seed)[0].tolist() for seed, length in enumerate((5, 12, 9))]


def alone(model, row, count=24):
    return timed(model, torch.tensor([row]), count, HostClock()).ids[0].tolist()


def together(model, mask=None, positions=None, count=24):
    """ROWS as one padded batch, with their own mask and positions or others."""
    ids, padding = left_pad(ROWS, "cpu")
    own_mask, own_positions = grown(padding, count)
    steps = generate_padded(
        model, ids, count, new_cache(model, 12 + count - 1), HostClock(),
        own_mask if mask is None else mask, own_positions if positions is None else positions,
    )  # fmt: skip
    return torch.cat(list(steps), dim=1).tolist()


@pytest.mark.parametrize("family", FAMILIES)
def test_ragged_rows_answer_as_alone(family):
    lab = toy_lab(family)
    expected = [alone(lab.model, row) for row in ROWS]
    assert all(len(set(row)) >= 8 for row in expected), "a model that repeats itself proves nothing"
    assert serve(lab, ROWS, 24).ids.tolist() == expected == together(lab.model)


@pytest.mark.parametrize("family", ("llama", "gpt2"))
def test_the_mask_is_needed(family):
    model = toy_model(family)
    assert together(model, mask=torch.ones(3, 12 + 24, dtype=torch.long)) != [alone(model, row) for row in ROWS]


def test_the_positions_are_needed():
    # Rotary positions are relative, so a left-padded Llama forgives; learned positions do not.
    model = toy_model("gpt2")
    assert together(model, positions=torch.arange(12 + 24).expand(3, -1)) != [alone(model, row) for row in ROWS]


def test_a_rows_first_real_token_is_at_position_0():
    ids, mask = left_pad([[5, 6, 7], [8]], "cpu", pad_id=9)
    assert ids.tolist() == [[5, 6, 7], [9, 9, 8]] and mask.tolist() == [[1, 1, 1], [0, 0, 1]]
    longer, positions = grown(mask, 2)
    assert longer.tolist() == [[1, 1, 1, 1, 1], [0, 0, 1, 1, 1]]
    assert positions.tolist() == [[0, 1, 2, 3, 4], [0, 0, 0, 1, 2]]


def test_equal_rows_need_no_mask():
    ids, mask = left_pad([[1, 2], [3, 4]], "cpu")
    assert mask is None and ids.tolist() == [[1, 2], [3, 4]]


def test_the_timeline_says_when_the_host_waited():
    lab = toy_lab()
    assert serve(lab, [[5, 6, 7], [8, 9]], 3).timeline.per_step_sync, "transformers reads the mask at every pass"
    assert serve(lab, [[5, 6], [8, 9]], 3, stop_ids=[299]).timeline.per_step_sync, "the batch reads the ids"
    assert not serve(lab, [[5, 6], [8, 9]], 3).timeline.per_step_sync


def test_a_batch_that_may_stop_counts_what_it_wrote():
    time = ScriptedTime()
    lab = scripted_lab(ScriptedModel(time, ids=(5, 6, 2, 7), step_ms=10))
    result = serve(lab, [[1] * 10], 10, stop_ids=(2, 3), clock=HostClock(now=time))
    assert result.ids.tolist() == [[5, 6, 2]]
    assert (result.requested_output_tokens, result.timeline.shape.output_tokens) == (10, 3)
    assert metrics.decode_tokens_per_s(result.timeline) == pytest.approx(100)


@pytest.mark.parametrize("stop_ids", [(), (2,)])
def test_no_stop_is_the_whole_length(stop_ids):
    lab = scripted_lab(ScriptedModel(ScriptedTime(), ids=(5,)))
    result = serve(lab, [[1] * 4, [1] * 4], 6, stop_ids=stop_ids)
    assert result.ids.tolist() == [[5] * 6] * 2
    assert result.timeline.row_output_tokens == ((6, 6) if stop_ids else None)


def test_a_row_that_stops_early_waits_for_the_last_one():
    """Each row's first stop is where it writes that id alone; the batch ends with the latest of them."""
    lab = toy_lab()
    expected = [alone(lab.model, row) for row in ROWS]
    stop_ids = [expected[0][2], expected[1][7], expected[2][4]]
    ends = [min(row.index(token) for token in stop_ids if token in row) + 1 for row in expected]
    assert len(set(ends)) == 3, "rows that stop together prove nothing"
    result = serve(lab, ROWS, 24, stop_ids=stop_ids)
    assert result.timeline.row_output_tokens == tuple(ends)
    assert result.timeline.shape.output_tokens == max(ends) == result.ids.shape[1]


@pytest.mark.parametrize("rows", [[], [[1, 2], []]])
def test_an_empty_row_is_refused(rows):
    with pytest.raises(BadArgument) as caught:
        serve(toy_lab(), rows, 4)
    assert caught.value.argument == "rows"


def test_a_batch_longer_than_the_context_is_refused_before_anything_runs():
    with pytest.raises(ShapelabError):
        serve(toy_lab(), [[1], [1] * 510], 4)


@pytest.mark.parametrize("row", [[5, 300], [-1, 5]])
def test_ids_that_the_model_does_not_know(row):
    with pytest.raises(BadArgument):
        serve(toy_lab(), [[5, 6, 7], row], 3)


@pytest.mark.parametrize("make", [np.array, torch.tensor])
def test_rows_and_stop_ids_that_are_arrays(make):
    lab, rows = toy_lab(), [[5, 6, 7], [8, 9, 10]]
    expected = serve(lab, rows, 4, stop_ids=[1, 2])
    written = serve(lab, make(rows), np.int64(4), stop_ids=make([1, 2]))
    assert written.ids.tolist() == expected.ids.tolist()
    assert type(written.requested_output_tokens) is int
