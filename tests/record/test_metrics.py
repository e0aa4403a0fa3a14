"""Definitions with a scripted clock: what is counted where, and what happens at the edges."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shapelab.record import metrics
from shapelab.record.metrics import drift, interval, interval_kind
from shapelab.record.timeline import Timeline
from shapelab.request.shape import RequestShape

MS = 1_000_000


def timeline(*milliseconds, **options):
    """Host stamps at these milliseconds; S = 50 unless said."""
    stamps = tuple(round(m * MS) for m in milliseconds)
    return Timeline(RequestShape(options.pop("input_tokens", 50), len(stamps) - 1), stamps, **options)


def test_ttft_is_not_in_tpot():
    t = timeline(0, 100, 110, 120, 130, 140)
    assert metrics.ttft_s(t) == 0.1
    assert metrics.tpot_s(t) == pytest.approx(0.010, abs=1e-15)
    assert metrics.itl_s(t) == pytest.approx([0.010] * 4)
    assert metrics.decode_s(t) == pytest.approx(0.040)
    assert metrics.total_s(t) == pytest.approx(0.140)


def test_published_request():
    """710 in, 190 out, 4409.816 ms in all of which 3751.546 ms of generation: 43.09 and 50.379 tok/s (TensorRT-LLM
    issue 1410, which counts 190 tokens against 189 steps)."""
    t = Timeline(RequestShape(710, 190), (0, round(658.270 * MS), round(4409.816 * MS)))
    assert metrics.total_s(t) == pytest.approx(4.409816)
    assert 190 / metrics.total_s(t) == pytest.approx(43.09, abs=0.01)
    assert metrics.decode_tokens_per_s(t) == pytest.approx(50.379, abs=0.001)


def test_one_output_token_has_no_tpot_and_loses_nothing():
    t = timeline(0, 100)
    assert metrics.tpot_s(t) is None and metrics.decode_tokens_per_s(t) is None
    assert metrics.itl_s(t) == []
    assert metrics.ttft_s(t) == metrics.total_s(t) == 0.1
    assert metrics.prefill_share(t) == 1


def test_a_clock_that_stands_still_gives_no_rate():
    t = timeline(5, 5, 5, 5)
    assert metrics.prefill_tokens_per_s(t) is None
    assert metrics.decode_tokens_per_s(t) is None
    assert metrics.prefill_share(t) is None
    assert metrics.tpot_s(t) == 0


def test_prefill_rate_counts_every_prompt_token_of_the_batch():
    t = Timeline(RequestShape(100, 2, 2), (0, 100 * MS, 200 * MS))
    assert metrics.prefill_tokens_per_s(t) == 2000


def test_cached_tokens_are_not_read_again():
    t = Timeline(RequestShape(100, 2, cached_tokens=900), (0, 100 * MS, 200 * MS))
    assert metrics.prefill_tokens_per_s(t) == 1000


def test_batch_counts_once():
    t = Timeline(RequestShape(10, 101, 4), (0, 100 * MS, 1100 * MS))
    assert metrics.decode_tokens_per_s(t) == pytest.approx(400)
    assert metrics.decode_tokens_per_s_per_sequence(t) == pytest.approx(100)


def test_prompt_tokens_are_not_output_tokens():
    t = timeline(0, 100, 110, 120, 130, 140, input_tokens=50)
    assert t.shape.output_tokens == 5
    assert metrics.decode_tokens_per_s(t) == pytest.approx(100)


def test_ids_after_eos_do_not_count():
    t = Timeline(RequestShape(10, 11, 2), (0, 100 * MS, 1100 * MS), row_output_tokens=(11, 3))
    assert metrics.decode_tokens_per_s(t) == pytest.approx(12)


def test_events_give_the_steps_and_the_host_the_rest():
    t = Timeline(RequestShape(50, 4), (0, 104 * MS, 150 * MS), event_s=(0.100, 0.110, 0.120, 0.130))
    assert metrics.ttft_s(t) == 0.104
    assert metrics.itl_s(t) == pytest.approx([0.010] * 3)
    assert metrics.host_overhead_s(t) == pytest.approx(0.020)
    assert metrics.host_overhead_s(timeline(0, 1, 2)) is None


def test_three_stamps_for_many_steps_have_no_itl():
    assert metrics.itl_s(Timeline(RequestShape(10, 20), (0, 100 * MS, 200 * MS))) is None


@pytest.mark.parametrize("stamps,count", [((0,), 1), ((0, 1, 2, 3), 2), ((0, 1), 4)])
def test_stamps_must_fit(stamps, count):
    with pytest.raises(ValueError, match="do not fit"):
        Timeline(RequestShape(10, count), stamps)


@given(st.lists(st.floats(0.001, 1000), min_size=3, max_size=60))
def test_parts_sum_to_the_whole(gaps):
    stamps, now = [0], 0
    for gap in gaps:
        now += round(gap * MS)
        stamps.append(now)
    t = Timeline(RequestShape(7, len(gaps)), tuple(stamps))
    assert metrics.ttft_s(t) + metrics.decode_s(t) == pytest.approx(metrics.total_s(t))
    assert sum(metrics.itl_s(t)) == pytest.approx(metrics.decode_s(t))
    assert metrics.tpot_s(t) * (len(gaps) - 1) == pytest.approx(metrics.decode_s(t))


def test_few_values_give_their_range():
    assert interval([3.0, 1.0, 2.0]) == (1.0, 3.0)
    assert (interval_kind(2), interval_kind(5), interval_kind(6)) == ("range", "range", "bootstrap 90 %")
    assert interval([None, None]) is None
    assert interval([2.0] * 8) == (2.0, 2.0)


def test_one_value_has_no_interval():
    assert interval([2.0]) is interval([2.0, None]) is interval([]) is None
    assert interval_kind(1) == "one repeat"


def test_a_request_that_waited():
    """Due at 40 ms, begun at 100 ms, first token at 130 ms: its reader waited 90 ms, the prefill took 30 ms."""
    t = timeline(100, 130, 140, arrival_ns=40 * MS)
    assert metrics.queue_s(t) == pytest.approx(0.060) and metrics.ttft_from_arrival_s(t) == pytest.approx(0.090)
    assert metrics.ttft_s(t) == pytest.approx(0.030) and metrics.total_s(t) == pytest.approx(0.040)
    alone = timeline(100, 130, 140)
    assert metrics.queue_s(alone) is None and metrics.ttft_from_arrival_s(alone) is None


def test_many_values_give_a_bootstrap_interval_of_the_median():
    values = [10.0, 10.1, 10.2, 9.9, 9.8, 10.0, 50.0]
    low, high = interval(values)
    assert 9.8 <= low <= 10.0 <= high < 50
    assert interval(values) == (low, high)


@pytest.mark.parametrize(
    "values,word",
    [
        ([1.5, 1.4, 1.0, 1.01, 1.0, 1.0], "Early"),
        ([1.0, 1.1, 1.2, 1.3, 1.4], "slower"),
        ([1.4, 1.2, 1.0], "faster"),
        ([1.0, 1.0, 1.0, 1.3, 1.35, 1.3], "Late"),
    ],
)
def test_drift_is_flagged(values, word):
    assert word in drift(values)


@pytest.mark.parametrize(
    "values", [[1.0], [1.0, 2.0], [1.0, 1.03, 0.98, 1.02], [1.0, 1.01, 1.02], [1.0, 1.07, 1.15], [0.0] * 4, [1.3, 1.0, 1.25, 1.0]]
)
def test_noise_is_not_drift(values):
    assert drift(values) is None


@pytest.mark.parametrize("kind", [np.array, pd.Series, tuple])
def test_values_of_any_sequence(kind):
    values = [1.0, 2.0, 3.0]
    assert metrics.drift(kind(values)) == metrics.drift(values) is not None
    assert metrics.interval(kind(values)) == (1, 3) and metrics.median(kind(values)) == 2
