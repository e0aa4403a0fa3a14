"""The fit finds what was planted, under noise, and refuses what cannot be told apart."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shapelab.errors import NotEnoughMeasured
from shapelab.predict import fit
from shapelab.predict.fit import DecodeTerms, Pieces, PrefillTerms
from shapelab.predict.latency import LatencyModel
from shapelab.record.run import Run
from shapelab.request.shape import RequestShape
from tests.runs import CPU_BATCH, HERE, measured, planted, quick, terms


def test_without_noise_the_terms_come_back():
    prefill, decode = terms()
    run = planted(prefill, decode, quick())
    found = fit.fit_prefill(run.measurements)
    assert (found.fixed_s, found.attention_s_per_pair) == pytest.approx((0.05, 3e-7), rel=1e-3)
    assert found.read_s_per_token.slope == pytest.approx([0.001] * len(found.read_s_per_token.slope), rel=1e-3)
    step = fit.fit_decode(run.measurements)
    assert (step.step_s, step.context_s_per_token, step.context_s_per_sequence_token) == pytest.approx(
        (0.04, 3e-6, 4e-6), rel=1e-3
    )
    for batch in (1, 2, 3, 4, 6, 8, 12, 16):
        assert step.batch_s_per_sequence(batch) == pytest.approx(CPU_BATCH(batch), abs=1e-6)


@given(
    fixed=st.floats(0.002, 0.2), read=st.floats(2e-5, 2e-3), pair=st.floats(0, 5e-7), step=st.floats(0.003, 0.15),
    slopes=st.lists(st.floats(0, 0.3), min_size=3, max_size=3), each=st.floats(0, 1e-5), seed=st.integers(0, 10**6),
)  # fmt: skip
@settings(max_examples=40, deadline=None, derandomize=True)  # noise is noise: one seed in thousands lies beyond any bound
def test_planted_parameters_come_back_under_5_percent_of_noise(fixed, read, pair, step, slopes, each, seed):
    """Terms that make up most of a time come back; a time itself comes back wherever the plan has been."""
    batch = Pieces(start=(1, 4, 8), slope=tuple(step * slope for slope in slopes))
    prefill, decode = terms(fixed, read, pair, step=step, batch=batch, context=0.0, each=each)
    model = LatencyModel.fit(planted(prefill, decode, quick(), 0.05, seed))
    for text in ("20x40", "300x80", "1205x24", "2500x8", "100x30@3", "40x60@10", "400x20@16", "700x16@2", "512+40x20"):
        shape = RequestShape.parse(text)
        expected = prefill.seconds(shape)
        assert model.predict(shape).ttft_s == pytest.approx(expected, rel=0.2), text  # 4 sigma: one point may decide a piece
        assert model.predict(shape).tpot_s == pytest.approx(
            decode.seconds(shape.mean_decode_context, shape.batch_size), rel=0.12
        ), text
    assert model.decode.seconds(40, 1) == pytest.approx(decode.seconds(40, 1), rel=0.08)
    if pair * RequestShape(3000, 8).attention_pairs > 0.5 * prefill.seconds(RequestShape(3000, 8)):
        assert model.prefill.attention_s_per_pair == pytest.approx(pair, rel=0.35)
    if each * 1600 * 2 > step:
        found = model.decode.context_s_per_sequence_token + model.decode.context_s_per_token
        assert found == pytest.approx(each, rel=0.35)


def test_an_overhead_bound_gpu_is_flat_and_then_rises():
    """Every pass 25 ms until 500 tokens fill the device; the form must hold there as well."""
    flat = PrefillTerms(
        fixed_s=0.025,
        read_s_per_token=Pieces(start=(512,), slope=(5e-5,)),
        attention_s_per_pair=0,
        cached_s_per_token=0,
        sequence_s=0,
    )
    decode = DecodeTerms(step_s=0.025, batch_s_per_sequence=Pieces(), context_s_per_token=0, context_s_per_sequence_token=1e-8)
    model = LatencyModel.fit(planted(flat, decode, quick(), 0.02))
    assert model.predict(RequestShape(25, 2)).ttft_s == pytest.approx(0.025, rel=0.05)
    assert model.predict(RequestShape(2500, 2)).ttft_s == pytest.approx(0.025 + 1988 * 5e-5, rel=0.08)
    assert model.predict(RequestShape(32, 33, 16)).tpot_s == pytest.approx(0.025, rel=0.05)


def test_the_batch_curve_of_two_cores_holds():
    """TPOT 35, 34, 52, 74, 88, 115 ms at batch 1, 2, 4, 8, 16, 32, as seen on 2 CPU cores: neither a line nor a power."""
    seen = {1: 0.035, 2: 0.034, 4: 0.052, 8: 0.074, 16: 0.088, 32: 0.115}
    points = [measured(RequestShape(32, 8, batch), (0.03 + 0.001 * 32 * batch, step)) for batch, step in seen.items()]
    points += [measured(RequestShape(n, 8), (0.03 + 0.001 * n, 0.035)) for n in (64, 256, 1024)]
    decode = fit.fit_decode(points)
    for batch, step in seen.items():
        assert decode.seconds(36, batch) == pytest.approx(step, rel=0.03), "34 after 35 ms: a step may not fall, so they meet"
    assert 0.052 < decode.seconds(36, 6) < 0.074 and decode.seconds(36, 40) > 0.115


def test_one_hiccup_does_not_bend_the_fit():
    prefill, decode = terms()
    run = planted(prefill, decode, quick())
    place = next(n for n, m in enumerate(run.measurements) if m.name == "512x12")
    run.measurements[place] = measured(RequestShape(512, 12), (3 * prefill.seconds(RequestShape(512, 12)), 0.12))
    model = LatencyModel.fit(run)
    for text in ("400x16", "700x40", "1205x24"):
        shape = RequestShape.parse(text)
        total = prefill.seconds(shape) + (shape.output_tokens - 1) * decode.seconds(shape.mean_decode_context, 1)
        assert model.predict(shape).total_s == pytest.approx(total, rel=0.06)


def test_pieces():
    pieces = Pieces(start=(2, 4), slope=(1.0, 0.5))
    assert [pieces(x) for x in (0, 2, 3, 4, 5, 10)] == [0, 0, 1, 2, 2.5, 5]
    assert Pieces()(5) == 0
    for wrong in (
        {"start": (2, 1), "slope": (1, 1)},
        {"start": (1,), "slope": ()},
        {"start": (1,), "slope": (-1,)},
        {"start": (1,), "slope": (math.nan,)},
    ):
        with pytest.raises(ValueError):
            Pieces(**wrong)


def points(*texts):
    return [measured(RequestShape.parse(text), (0.1, 0.02)) for text in texts]


@pytest.mark.parametrize(
    "texts",
    [
        [],
        ["60x80", "1205x24", "25x300"],
        ["16x1", "64x1", "256x1", "512x1", "1024x1", "2048x1"],
        ["100x8", "100x9", "100x10", "100x11", "100x12", "100x13"],
        ["100x8", "110x8", "120x8", "130x8", "140x8", "150x8"],
        ["16x600", "64x550", "128x500", "32x580", "24x590", "200x450"],
    ],
    ids=["nothing", "three shapes", "no step", "one input length", "alike input lengths", "alike contexts"],
)
def test_too_few_or_degenerate_points_are_refused(texts):
    with pytest.raises(NotEnoughMeasured):
        fit.check_points(points(*texts))
    with pytest.raises(NotEnoughMeasured):
        LatencyModel.fit(Run(HERE, points(*texts)))


def test_a_clock_that_stood_still_is_refused():
    good = points("16x8", "64x8", "256x8", "512x8", "1024x8", "2048x8")
    with pytest.raises(NotEnoughMeasured):
        LatencyModel.fit(Run(HERE, [*good, measured(RequestShape(99, 8), (0.0, 0.02))]))


def test_corners_only_leave_nothing_between():
    run = Run(HERE, points("16x8", "4000x8", "16x4000", "16x8@64", "2000+16x8", "400x8@16"))
    with pytest.raises(NotEnoughMeasured):
        LatencyModel.fit(run)


def test_what_the_terms_count_by_hand():
    shape = RequestShape(4, 5, 3, 10)  # each of 3 sequences: 4 new tokens look at 10 cached ones, and at 1 + 2 + 3 + 4
    assert shape.attention_pairs == 3 * (4 * 10 + 10) and shape.prefill_tokens == 12
    contexts = [10 + 4 + step for step in (1, 2, 3, 4)]  # of its 4 steps, the written token counted
    assert shape.mean_decode_context == sum(contexts) / 4
    assert PrefillTerms(
        fixed_s=1,
        read_s_per_token=Pieces(start=(2,), slope=(0.1,)),
        attention_s_per_pair=0.01,
        cached_s_per_token=0.001,
        sequence_s=0.2,
    ).seconds(shape) == pytest.approx(1 + 1.0 + 1.5 + 0.03 + 0.4)
    decode = DecodeTerms(step_s=1, batch_s_per_sequence=Pieces(start=(1,), slope=(0.1,)), context_s_per_token=0.01, context_s_per_sequence_token=0.001)  # fmt: skip
    assert decode.seconds(20, 3) == pytest.approx(1 + 0.2 + 0.2 + 0.06)
