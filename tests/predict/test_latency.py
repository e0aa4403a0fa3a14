"""A fitted model predicts sensibly everywhere, says when it does not know, and survives as a file."""

import json
import math
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shapelab.errors import BadFile, CannotWrite, NotEnoughMeasured
from shapelab.predict.latency import LatencyModel
from shapelab.record import metrics
from shapelab.record.run import Run
from shapelab.request.shape import CREATIVE, RAG, RequestShape
from tests.runs import DECODE, MODEL, PREFILL, RUN, measured, planted, quick

shapes = st.builds(
    RequestShape, st.integers(1, 6000), st.integers(1, 2000), st.integers(1, 64), st.integers(0, 6000)
)  # some of them far beyond what was measured


@given(shapes)
@settings(deadline=None)
def test_never_negative_and_the_interval_is_around(shape):
    p = MODEL.predict(shape)
    assert p.ttft_s > 0 and p.total_s >= p.ttft_s
    for value, (low, high) in [(p.ttft_s, p.ttft_interval_s), (p.total_s, p.total_interval_s)]:
        assert 0 < low <= value <= high < math.inf
    if shape.output_tokens == 1:
        assert p.tpot_s is p.tpot_interval_s is None and p.total_s == p.ttft_s
    else:
        assert p.tpot_interval_s[0] <= p.tpot_s <= p.tpot_interval_s[1]
        assert p.total_s == pytest.approx(p.ttft_s + p.tpot_s * (shape.output_tokens - 1))


@given(shapes, st.sampled_from(["input_tokens", "output_tokens", "batch_size", "cached_tokens"]), st.integers(1, 500))
@settings(deadline=None)
def test_never_falls_with_more(shape, number, more):
    from dataclasses import replace

    less, bigger = MODEL.predict(shape), MODEL.predict(replace(shape, **{number: getattr(shape, number) + more}))
    assert bigger.total_s >= less.total_s and bigger.ttft_s >= less.ttft_s
    if less.tpot_s and bigger.tpot_s:
        assert bigger.tpot_s >= less.tpot_s


def test_tpot_is_the_mean_of_its_steps():
    shape = RequestShape(700, 41, 3, 200)
    steps = [MODEL.step_s(900 + step, 3) for step in range(1, 41)]
    assert MODEL.predict(shape).tpot_s == pytest.approx(sum(steps) / 40, rel=1e-12)
    assert steps == sorted(steps) and steps[0] < steps[-1]


def test_inside_the_plan_it_is_close_and_does_not_extrapolate():
    for text in ("1205x24", "60x80", "25x300", "300x50@5", "64x30@16", "512+64x30", "100x30@7"):
        shape = RequestShape.parse(text)
        p = MODEL.predict(shape)
        assert p.extrapolates == ()
        assert p.ttft_s == pytest.approx(PREFILL.seconds(shape), rel=0.1)
        low, high = p.total_interval_s
        assert high / low < 1.35, "an interval that is of use"


@pytest.mark.parametrize(
    "text,word",
    [
        ("16x12@32", "32 batch size, measured up to 16"),
        ("6000x8", "pairs of tokens in attention"),
        ("16x4000", "4,016 tokens of context, measured up to"),
        ("4000+16x8", "4,000 cached tokens, measured up to 1,536"),
        ("900x8@16", "14,400 tokens in the prefill, measured up to 8,192"),
    ],
)
def test_beyond_the_plan_it_says_so_and_widens(text, word):
    p = MODEL.predict(RequestShape.parse(text))
    assert any(word in said for said in p.extrapolates), p.extrapolates
    inside = MODEL.predict(RAG)

    def width(prediction):
        return prediction.total_interval_s[1] / prediction.total_interval_s[0]

    assert width(p) > width(inside)
    assert "extrapolates" in repr(p) and "extrapolates" not in repr(inside)


def test_further_out_is_wider():
    widths = [
        high / low for low, high in (MODEL.predict(RequestShape(16, 12, batch)).total_interval_s for batch in (16, 32, 64, 128))
    ]
    assert widths == sorted(widths) and len(set(widths)) == 4


def test_below_the_smallest_prefill_is_beyond_too():
    few = LatencyModel.fit(Run(RUN.environment, [m for m in RUN.measurements if m.input_tokens >= 32]))
    assert "measured from 32" in few.predict(RequestShape(4, 8)).extrapolates[0]


def test_another_batch_than_the_only_one_measured_is_refused():
    alone = LatencyModel.fit(Run(RUN.environment, [m for m in RUN.measurements if m.batch_size == 1]))
    assert alone.predict(RAG).total_s == pytest.approx(MODEL.predict(RAG).total_s, rel=0.1)
    for call in (lambda: alone.predict(RequestShape(16, 8, 2)), lambda: alone.step_s(100, 2)):
        with pytest.raises(NotEnoughMeasured):
            call()


def test_nothing_cached_was_measured():
    plain = LatencyModel.fit(Run(RUN.environment, [m for m in RUN.measurements if not m.cached_tokens]))
    assert "512 cached tokens, measured up to 0" in plain.predict(RequestShape(64, 8, 1, 512)).extrapolates


@pytest.mark.parametrize("noise", [0.02, 0.05])
def test_intervals_hold_about_what_they_promise(noise):
    """90 % intervals on shapes and noise that the fit has not seen, over many plans."""
    import random

    inside, count = 0, 0
    for seed in range(30):
        model = LatencyModel.fit(planted(PREFILL, DECODE, quick(), noise, seed))
        rng = random.Random(f"unseen {seed}")
        unseen = [RequestShape(rng.randint(16, 500), rng.randint(8, 128), rng.randint(1, 16)) for _ in range(12)]
        frame = model.against(planted(PREFILL, DECODE, unseen, noise, 1000 + seed))
        inside, count = inside + frame.inside.sum(), count + len(frame)
    assert 0.8 <= inside / count <= 1.0


def test_saved_and_loaded_it_predicts_the_same(tmp_path):
    path = MODEL.save(tmp_path / "new" / "model.json")
    back = LatencyModel.load(path)
    assert back == MODEL and back.predict(CREATIVE) == MODEL.predict(CREATIVE)
    assert back.environment == RUN.environment, "a model says whose it is"


def test_a_model_of_schema_1_is_still_read(tmp_path):
    old = json.loads(MODEL.model_dump_json()) | {"schema_version": 1}
    where = old["environment"]
    where["dtype"] = where.pop("weight_dtype")
    del where["kind"], where["compute_dtype"]
    (tmp_path / "old.json").write_text(json.dumps(old))
    assert LatencyModel.load(tmp_path / "old.json").environment == MODEL.environment


@pytest.mark.parametrize(
    "change,word",
    [
        (lambda d: d.update(schema_version=3), "schema_version"),
        (lambda d: d.pop("decode"), "decode"),
        (lambda d: d.update(surprise=1), "surprise"),
        (lambda d: d["prefill"].update(fixed_s=-1), "prefill.fixed_s"),
        (lambda d: d["decode"].update(step_s=float("nan")), "decode.step_s"),
        (lambda d: d["decode"]["batch_s_per_sequence"].update(start=[3, 2, 1], slope=[1, 1, 1]), "batch_s_per_sequence"),
        (lambda d: d.update(ttft_error=-0.1), "ttft_error"),
        (lambda d: d.update(points=1), "points"),
        (lambda d: d["measured"].pop("batch size"), "measured"),
        (lambda d: d["measured"].update({"batch size": [0, 4]}), "measured"),
        (lambda d: d["measured"].update({"batch size": [4, 1]}), "measured"),
    ],
)
def test_a_strangers_model_is_checked(tmp_path, change, word):
    data = json.loads(MODEL.model_dump_json())
    change(data)
    path = tmp_path / "model.json"
    path.write_text(json.dumps(data))
    with pytest.raises(BadFile, match=f"model.json.*{re.escape(word)}"):
        LatencyModel.load(path)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\x80\x81", b"null"])
def test_a_file_that_is_no_model(tmp_path, content):
    (tmp_path / "model.json").write_bytes(content)
    with pytest.raises(BadFile, match=r"model\.json"):
        LatencyModel.load(tmp_path / "model.json")
    with pytest.raises(BadFile):
        LatencyModel.load(tmp_path / "none.json")


def test_a_file_of_any_length_is_no_model(tmp_path):
    (tmp_path / "model.json").write_text(" " * 1_000_001)
    with pytest.raises(BadFile):
        LatencyModel.load(tmp_path / "model.json")


def test_it_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CannotWrite):
        MODEL.save(tmp_path / "file" / "model.json")


def test_the_home_folder_by_its_short_name(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert MODEL.save("~/models/mine.json") == tmp_path / "models" / "mine.json"
    assert LatencyModel.load("~/models/mine.json") == MODEL
    assert not (tmp_path / "~").exists()


def test_a_link_is_written_through(tmp_path):
    target, link = tmp_path / "target.json", tmp_path / "link.json"
    link.symlink_to(target)
    for _ in range(2):  # a link to nothing yet, then to a file
        MODEL.save(link)
        assert link.is_symlink() and LatencyModel.load(target) == MODEL


def test_against_a_run():
    frame = MODEL.against(Run(RUN.environment, [measured(RAG, (2.0, 0.1)), measured(RequestShape(9, 1), (0.1, 0))]))
    rag, one = frame.iloc[0], frame.iloc[1]
    predicted = MODEL.predict(RAG)
    assert rag.total_error == pytest.approx(predicted.total_s / 4.3 - 1) and not rag.inside
    assert rag.ttft_error == pytest.approx(predicted.ttft_s / 2 - 1) and rag.measured_tpot_s == pytest.approx(0.1)
    assert math.isnan(one.tpot_error) and one.measured_total_s == pytest.approx(0.1)


def test_the_terms_can_be_read():
    frame = MODEL.to_frame()
    assert list(frame.columns) == ["phase", "term", "from", "seconds", "each"]
    assert {"fixed cost of a pass", "a token read", "attention", "a step", "context", "one more sequence"} <= set(frame.term)
    assert (frame.seconds >= 0).all()
    assert "26 shapes" in repr(MODEL) and "off by up to" in str(MODEL)


def test_metrics_named_alike():
    """A prediction's fields carry the names of the measured metrics."""
    for metric in (metrics.ttft_s, metrics.tpot_s, metrics.total_s):
        assert hasattr(MODEL.predict(RAG), metric.__name__)


def test_far_beyond_what_was_measured_an_interval_stays_a_number():
    """A model file may say that it knows nothing, and a shape may be of any size."""
    unsure = MODEL.model_copy(update={"ttft_error": 10.0, "tpot_error": 10.0})
    ends = unsure.predict(RequestShape(10**10, 10**10, 10**10)).total_interval_s
    assert 0 < ends[0] < ends[1] < float("inf")
