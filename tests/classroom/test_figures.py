"""What a figure shows is what was measured: lengths, colours, units and whose numbers they are."""

import io

import matplotlib.pyplot as plt
import pytest
from matplotlib.colors import to_hex
from matplotlib.text import Text

from shapelab.classroom import figures
from shapelab.classroom.figures import DECODE, OVERHEAD, PREFILL, alt_text, read_and_write, step_times, timelines
from shapelab.record import metrics
from shapelab.request.shape import RequestShape
from shapelab.theory.roofline import Floor, verdict
from tests.runs import make_run

POINTS = {
    "chat": [(0.2, 0.01), (0.4, 0.03), (0.3, 0.02)],
    "rag": [(2.0, 0.05), (1.0, 0.01), (1.5, 0.02)],
    "creative": [(0.1, 0.02)] * 3,
}


@pytest.fixture(autouse=True)
def close():
    yield
    plt.close("all")


def bars(figure):
    """(left, width, color) of every bar, from the top."""
    return [(bar.get_x(), bar.get_width(), to_hex(bar.get_facecolor())) for bar in figure.axes[0].patches]


def words(figure):
    return "\n".join(text.get_text() for text in figure.findobj(Text))


def drawn(figure):
    with io.BytesIO() as file:
        figure.savefig(file, format="png")
        return file.tell()


def test_the_phases_have_their_colours():
    assert len({PREFILL, DECODE, OVERHEAD}) == 3
    for color, (strongest, weakest) in {PREFILL: (2, 0), DECODE: (0, 2)}.items():
        rgb = [int(color[place : place + 2], 16) for place in (1, 3, 5)]
        assert rgb[strongest] == max(rgb) and rgb[weakest] == min(rgb), "prefill is blue and decode orange"
    assert len({OVERHEAD[place : place + 2] for place in (1, 3, 5)}) == 1, "overhead is grey"


def test_bars_are_the_medians():
    found = bars(timelines(make_run(POINTS)))
    expected = [(0, 0.3, PREFILL), (0.3, 79 * 0.02, DECODE), (0, 1.5, PREFILL), (1.5, 23 * 0.02, DECODE),
                (0, 0.1, PREFILL), (0.1, 299 * 0.02, DECODE)]  # fmt: skip
    assert [color for _, _, color in found] == [color for _, _, color in expected]
    for (left, width, _), (expected_left, expected_width, _) in zip(found, expected, strict=True):
        assert (left, width) == pytest.approx((expected_left, expected_width))


def test_timelines_say_whose_numbers_they_are():
    figure = timelines(make_run(POINTS))
    assert "measured: toy (random weights), float32, a machine" in words(figure)
    assert "seconds" in figure.axes[0].get_xlabel()
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == [
        "chat\n60 in, 80 out", "rag\n1,205 in, 24 out", "creative\n25 in, 300 out"
    ]  # fmt: skip
    (legend,) = figure.legends
    names = [(text.get_text().split(":")[0], to_hex(bar.get_facecolor())) for text, bar in zip(legend.texts, legend.get_patches(), strict=True)]  # fmt: skip
    assert names == [("prefill", PREFILL), ("decode", DECODE)]
    assert "6.08 s" in words(figure)


@pytest.mark.parametrize(
    "points,shapes,label",
    [
        ({"rag": [(0.5, 0.01)]}, {}, "rag\n1,205 in, 24 out"),
        ({"batch": [(0.5, 0.01)]}, {"batch": RequestShape(64, 8, 4)}, "batch\n64 in, 8 out, batch 4"),
        ({"warm": [(0.5, 0.01)]}, {"warm": RequestShape(64, 8, 1, 2048)}, "warm\n2,048 cached + 64 in, 8 out"),
        ({"one": [(0.5, 0)]}, {"one": RequestShape(64, 1)}, "one\n64 in, 1 out"),
        ({"in $\\bad$": [(0.5, 0.1)]}, {"in $\\bad$": RequestShape(64, 2)}, "in $\\bad$\n64 in, 2 out"),
    ],
    ids=["one shape", "batch", "cached", "one token", "no formula"],
)
def test_any_run_can_be_drawn(points, shapes, label):
    run = make_run(points, **shapes)
    figure = timelines(run)
    assert figure.axes[0].get_yticklabels()[0].get_text() == label
    assert [width for _, width, _ in bars(figure)] == pytest.approx([0.5, run.measurements[0].median(metrics.decode_s)])
    assert drawn(figure) > 1000


def test_a_model_name_is_no_formula_either():
    run = make_run(POINTS)
    run.environment = run.environment.model_copy(update={"model": "$\\bad$"})
    figure = timelines(run)
    assert "measured: $\\bad$" in words(figure) and drawn(figure) > 1000


def test_the_picture_in_words():
    text = alt_text(make_run(POINTS, chat=RequestShape(60, 80, 4)))
    assert "chat (60x80@4): first token after 0.3 s" in text and "creative (25x300)" in text
    assert "rag (1205x24): first token after 1.5 s, all after 1.96 s" in text


@pytest.mark.parametrize("kind", ["measured", "predicted"])
def test_step_times(kind):
    figure = step_times([0.1, 0.01, 0.02], "toy, a machine", kind=kind)
    found = [(bar.get_x() + bar.get_width() / 2, bar.get_height(), to_hex(bar.get_facecolor())) for bar in figure.axes[0].patches]
    assert [color for _, _, color in found] == [PREFILL, DECODE, DECODE]
    assert [height for _, height, _ in found] == pytest.approx([100, 10, 20])
    assert [place for place, _, _ in found] == pytest.approx([1, 2, 3])
    assert "milliseconds" in figure.axes[0].get_ylabel() and f"{kind}: toy, a machine" in words(figure)
    assert drawn(step_times([0.1], "one token")) > 1000


def test_read_and_write():
    figure = read_and_write(0.44, 140, "toy, a machine")
    assert [(width, color) for _, width, color in bars(figure)] == [(0.44, PREFILL), (140, DECODE)]
    assert figure.axes[0].get_xlabel() == "milliseconds"
    for part in ("0.44 ms", "140 ms", "measured: toy, a machine"):
        assert part in words(figure)


def test_a_caption_says_what_kind_of_numbers():
    figure = plt.figure()
    figures.caption(figure, "reported", "the talk")
    assert words(figure) == "reported: the talk"


LINE = {"64x11": [(0.1, 0.04), (0.2, 0.05), (0.15, 0.045)], "1064x11": [(1.1, 0.05)] * 3, "64x11@4": [(0.3, 0.06)] * 3}


def swept():
    return make_run(LINE, **{text: RequestShape.parse(text) for text in LINE})


def test_along_shows_medians_intervals_and_what_is_held():
    figure = figures.along(swept(), "input_tokens")
    first, second = figure.axes
    ((points, _, bars_of_error),) = [container.lines for container in first.containers]
    assert list(points.get_xdata()) == [64, 1064] and list(points.get_ydata()) == pytest.approx([0.15, 1.1])
    assert bars_of_error[0].get_segments()[0][:, 1].tolist() == pytest.approx([0.1, 0.2])
    ((milliseconds, _, _),) = [container.lines for container in second.containers]
    assert list(milliseconds.get_ydata()) == pytest.approx([45, 50])
    assert first.get_ylim()[0] == 0 and -50 < first.get_xlim()[0] <= 0, "from zero, or a small change looks large"
    assert (first.get_ylabel(), second.get_ylabel()) == ("TTFT in seconds", "TPOT in milliseconds")
    assert "held: 11 output tokens, 0 cached tokens, batch 1" in words(figure) and "measured: toy" in words(figure)
    assert drawn(figure) > 1000


def test_along_with_a_model_draws_what_it_predicts():
    from tests.runs import MODEL

    figure = figures.along(swept(), "batch_size", ("total_s",), MODEL)
    (axis,) = figure.axes
    dashed = next(line for line in axis.lines if line.get_linestyle() == "--")
    assert list(dashed.get_xdata()) == [1, 2, 3, 4]
    assert list(dashed.get_ydata()) == pytest.approx([MODEL.predict(RequestShape(64, 11, b)).total_s for b in (1, 2, 3, 4)])
    assert "measured and predicted" in words(figure) and "held: 64 input tokens, 11 output tokens, 0 cached tokens" in words(
        figure
    )


def test_along_in_words():
    text = figures.line_alt_text(swept(), "batch_size")
    assert text == "Along the batch size. 1: TTFT 0.15 s, TPOT 45 ms, total 0.6 s; 4: TTFT 0.3 s, TPOT 60 ms, total 0.9 s."


def test_trade_off_writes_the_batch_sizes_on():
    figure = figures.trade_off([(1, 0.04, 25.0), (8, 0.08, 100.0)], "toy, a machine")
    (axis,) = figure.axes
    assert list(axis.lines[0].get_xdata()) == pytest.approx([40, 80]) and list(axis.lines[0].get_ydata()) == [25, 100]
    assert {"batch 1", "batch 8", "measured: toy, a machine"} <= set(words(figure).splitlines())
    assert "milliseconds" in axis.get_xlabel() and "tokens a second" in axis.get_ylabel()


def test_starving():
    figure = figures.starving([(25, 300.0), (1205, 1000.0)], "toy", "predicted")
    (axis,) = figure.axes
    assert list(axis.lines[0].get_xdata()) == [25, 1205] and axis.get_ylim()[0] == 0
    assert "1,205" in words(figure) and "predicted: toy" in words(figure)


def test_regimes_stack_to_100_per_cent():
    verdicts = {
        "prefill": verdict("prefill", 1.0, Floor(0.6, 0.1), 0.1),
        "step": verdict("decode", 0.04, Floor(0.001, 0.02), 0.008),
        "too fast": verdict("decode", 0.01, Floor(0.001, 0.02), 0.0),
    }
    figure = figures.regimes(verdicts, "toy, a machine")
    found = bars(figure)
    assert [round(width) for _, width, _ in found[:3]] == [10, 60, 30] and found[1][2] == PREFILL
    assert [round(width) for _, width, _ in found[3:6]] == [20, 50, 30] and found[4][2] == DECODE and found[3][2] == OVERHEAD
    assert round(found[7][1]) == 200 and figure.axes[0].get_xlim()[1] >= 200, "above its floor a bar is drawn whole"
    assert "arithmetic 60%" in words(figure) and "bytes 50%" in words(figure) and "measured: toy, a machine" in words(figure)


def test_cost_ratio():
    figure = figures.cost_ratio([(1, 40.0), (16, 5.0)], 4.0, "toy")
    line, prices = figure.axes[0].lines
    assert list(line.get_xdata()) == [1, 16] and list(line.get_ydata()) == [40, 5] and set(prices.get_ydata()) == {4.0}
    assert "median of public prices: 4.0" in words(figure) and "measured: toy" in words(figure)


def test_lines_are_told_apart_without_colour():
    figure = figures.lines(
        {"MHA": [(64, 30.0), (1500, 50.0)], "$x$": [(64, 29.0), (1500, 40.0)]}, "tokens", "ms", "T", "toy", "computed"
    )
    (axis,) = figure.axes
    assert len({line.get_marker() for line in axis.lines}) == 2 and list(axis.lines[0].get_ydata()) == [30, 50]
    assert {"MHA", "$x$", "T", "computed: toy", "tokens", "ms"} <= set(words(figure).splitlines()) and drawn(figure) > 1000


def test_every_figure_in_words():
    said = {
        "lines": figures.words(
            figures.lines({"GQA": [(0, 1.0), (1000, 2.5)], "MQA": [(0, 0.5), (1000, 0.75)]}, "tokens", "ms", "Title", "x")
        ),
        "trade_off": figures.words(figures.trade_off([(1, 0.03, 33.0), (2, 0.04, 50.0)], "x")),
        "cost_ratio": figures.words(figures.cost_ratio([(1, 30.0), (4, 12.5)], 4.0, "x")),
        "cost_per_row": figures.words(figures.cost_per_row([1, 64], [1e-6, 2e-6], "x")),
        "read_and_write": figures.words(figures.read_and_write(1.25, 34.0, "x")),
        "step_times": figures.words(figures.step_times([0.1, 0.03, 0.035], "x")),
        "starving": figures.words(figures.starving([(25, 100.0), (1000, 900.0)], "x")),
        "sketched": figures.words(figures.sketched([(1, 1.0), (2, 2.0)], [(1, 1.0), (2, 1.5)], "batch", "times", "x")),
        "guessed": figures.words(figures.guessed(8.0, 5.2, "times", "x")),
    }
    assert said["lines"] == "Title (ms, over tokens): GQA: 1 at 0, 2.5 at 1,000. MQA: 0.5 at 0, 0.75 at 1,000."
    assert "33 at 30, 50 at 40" in said["trade_off"]
    assert "this machine's time: 30 at 1, 12.5 at 4." in said["cost_ratio"] and "median" not in said["cost_ratio"]
    assert said["cost_per_row"].endswith("1 at 1, 0.0312 at 64.")
    assert said["read_and_write"].endswith("(milliseconds): a token read 1.25, a token written 34.")
    assert "prefill: 100. decode step: 30 to 35, 2 of them." in said["step_times"]
    assert "100 at 25, 900 at 1,000" in said["starving"]
    assert "your prediction: 1 at 1, 2 at 2. measured: 1 at 1, 1.5 at 2." in said["sketched"]
    assert "your prediction 8, measured 5.2" in said["guessed"]
