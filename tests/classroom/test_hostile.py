"""Names that are not ours, numbers of numpy, nothing measured, a server: whatever comes in, a page, a picture or a sentence comes out."""

import warnings

import numpy as np
import pytest

from shapelab.claims import registry, three_shapes
from shapelab.classroom import exercises, figures, guess, report, tables
from shapelab.classroom.exercises.check import Feedback
from shapelab.classroom.explorers import batch, cost, request
from shapelab.classroom.html import Card, short
from shapelab.classroom.race import Lane, Race
from shapelab.errors import BadArgument, NotEnoughMeasured
from shapelab.predict.latency import LatencyModel
from shapelab.record import metrics
from shapelab.record.environment import Server
from shapelab.record.run import Run
from shapelab.request.shape import RequestShape
from tests.runs import HERE, MODEL, RUN, measured

ODD = 'rag [long] [/x] <script> $x$ a_b \x1b[31m"' + "z" * 300 + "\nnew"
SERVER = Server(url="http://host:8000", model=r"m$x$ <script>[long] a_b", measured_at="2025-01-01", shapelab="0.1")
PICTURES = {
    "step_times": lambda: figures.step_times([0.1, 0.2], ODD),
    "read_and_write": lambda: figures.read_and_write(1, 2, ODD, ODD),
    "lines": lambda: figures.lines({ODD: [(1, 2), (2, 3)]}, ODD, ODD, ODD, ODD),
    "trade_off": lambda: figures.trade_off([(1, 0.1, 10)], ODD),
    "cost_per_row": lambda: figures.cost_per_row([1], [1], ODD),
    "cost_ratio": lambda: figures.cost_ratio([(1, 2)], 3, ODD),
    "guessed": lambda: figures.guessed(1, 2, ODD, ODD),
    "sketched": lambda: figures.sketched([(1, 2)], [(1, 3)], ODD, ODD, ODD),
    "factors_off": lambda: figures.factors_off([(ODD, 2.0), ("b", 3.0)], 1.5),
    "timelines": lambda: figures.timelines(
        Run(SERVER, [measured(RequestShape(9, 9), (0.1, 0.1), name="w [/x] $x$ " + "z" * 150)])
    ),
}


@pytest.mark.parametrize("name", PICTURES)
def test_a_name_that_is_not_ours_leaves_the_picture_whole(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # matplotlib warns where a long name leaves no room for the axes
        drawn = PICTURES[name]()
        page = drawn.html()
    assert "\x1b" not in drawn.words + page and "\n" not in drawn.words
    assert "<script>" not in page


@pytest.mark.parametrize(
    "shown",
    [
        Card(ODD, "x"), Feedback(False, ODD), Race([Lane(ODD, RequestShape(1, 1), text=ODD)], ODD),
        exercises.check_passes(ODD),
    ],
    ids=lambda shown: type(shown).__name__,
)  # fmt: skip
def test_text_and_page_hold_no_character_that_a_terminal_obeys(shown):
    page = shown._repr_html_()
    assert "\x1b" not in repr(shown) + page
    assert "<script>" not in page
    assert "mathjax_ignore" in page


@pytest.mark.parametrize(
    "nothing",
    [
        lambda: figures.step_times([], ""), lambda: figures.lines({}, "", "", "", ""), lambda: figures.lines({"a": []}, "", "", "", ""),
        lambda: figures.trade_off([], ""), lambda: figures.cost_per_row([], [], ""), lambda: figures.cost_ratio([], 3, ""),
        lambda: figures.regimes({}, ""), lambda: figures.sketched([], [], "", "", ""), lambda: figures.factors_off([], 1.5),
    ],
)  # fmt: skip
def test_a_figure_of_nothing_is_refused_by_its_class(nothing):
    with pytest.raises(NotEnoughMeasured):
        nothing()


@pytest.mark.parametrize("metric", [metrics.ttft_s, metrics.tpot_s])
@pytest.mark.parametrize("shapes", [[], [RequestShape(9, 1)], [RequestShape(9, 9)]])
def test_there_is_no_leader_of_fewer_than_two(shapes, metric):
    with pytest.raises(NotEnoughMeasured):
        three_shapes.leader(Run(HERE, [measured(shape, (0.1, 0.1)) for shape in shapes]), metric, "lesson")


def test_a_server_run_is_shown_and_decided_like_any_other():
    run = Run(SERVER, RUN.measurements)
    page = report.report([run])
    assert "<script>" not in page and SERVER.url in page
    assert len(registry.all_findings([run])) == 12
    assert SERVER.url in repr(tables.shapes_table(run))
    assert SERVER.url in batch.batch_view(LatencyModel.fit(run), 64, 64).caption


def test_a_machine_that_knows_one_batch_size_still_fills_its_panels():
    alone = LatencyModel.fit(Run(HERE, [m for m in RUN.measurements if m.batch_size == 1]))
    assert [row.batch_size for row in batch.batch_rows(alone, RequestShape(64, 64), 0.3)] == [1]
    view = cost.cost_view("gpt-4.1", alone, 0.3, 64, 5)
    assert cost.LARGER not in [row[0] for row in view.table.rows]
    assert request.request_view(alone, 64, 64).bars


def test_panels_take_numpy_numbers():
    shape = RequestShape(np.int64(64), np.int32(64))
    assert batch.batch_rows(MODEL, shape, np.float64(0.3)) == batch.batch_rows(MODEL, RequestShape(64, 64), 0.3)
    usage = cost.Usage(np.int64(64), np.int32(5), np.float64(0.5), np.int64(1))
    listed = cost.price("gpt-4.1")
    assert cost.cost_rows(listed, MODEL, 0.3, usage) == cost.cost_rows(listed, MODEL, 0.3, cost.Usage(64, 5, 0.5, 1))


@pytest.mark.parametrize("requests", [-5, 0, float("nan"), 2.5, True])
def test_requests_a_day_are_a_whole_number(requests):
    with pytest.raises(BadArgument) as caught:
        cost.cost_view("gpt-4.1", MODEL, 0.3, 10, 5, requests_a_day=requests)
    assert caught.value.argument == "requests_a_day"


@pytest.mark.parametrize("answer", [True, np.True_, b"x", "", [], np.array([]), None, np.array("")], ids=repr)
def test_what_is_no_prediction_is_refused(answer, monkeypatch, tmp_path):
    monkeypatch.setenv("SHAPELAB_PREDICTIONS", str(tmp_path / "p.json"))
    with pytest.raises(BadArgument) as caught:
        guess.commit("00_key", answer)
    assert caught.value.argument == "answer"


@pytest.mark.parametrize(
    ("answer", "kept"),
    [(np.int64(3), 3.0), (np.float32(2.5), 2.5), (np.array(3), 3.0), (np.str_("a"), "a"), (np.array([[1, 2]]), [(1.0, 2.0)])],
    ids=repr,
)
def test_a_number_of_numpy_is_a_prediction(answer, kept, monkeypatch, tmp_path):
    monkeypatch.setenv("SHAPELAB_PREDICTIONS", str(tmp_path / "p.json"))
    guess.commit("00_key", answer)
    assert guess.committed("00_key") == kept


class _Silent:
    def __str__(self):
        raise ValueError

    __repr__ = __str__


@pytest.mark.parametrize("check", [exercises.check_passes, exercises.check_regime, exercises.check_shape])
def test_a_check_never_raises(check):
    assert check(_Silent()).right is False


def test_an_order_may_be_an_array():
    assert exercises.check_order(np.array(["90x10", "10x90"]), ["10x90", "90x10"]).right


def test_a_huge_number_stays_short():
    assert len(short(1e300)) < 10
    assert short(123_456_789) == "123,456,789"
