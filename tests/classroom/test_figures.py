"""What a figure shows is what was measured: lengths, colours, units and whose numbers they are, in the picture and in words."""

import math
import re

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.text import Text

from shapelab.classroom import figures
from shapelab.classroom.figures import Drawn
from shapelab.classroom.figures.colours import DECODE, OVERHEAD, PREFILL
from shapelab.errors import BadArgument, CannotWrite, NotEnoughMeasured
from shapelab.record import metrics
from shapelab.record.run import Run
from shapelab.request.shape import RequestShape
from shapelab.theory.roofline import Floor, verdict
from tests.runs import HERE, MODEL, make_run, swept

POINTS = {
    "chat": [(0.2, 0.01), (0.4, 0.03), (0.3, 0.02)],
    "rag": [(2.0, 0.05), (1.0, 0.01), (1.5, 0.02)],
    "creative": [(0.1, 0.02)] * 3,
}
LINE = {"64x11": [(0.1, 0.04), (0.2, 0.05), (0.15, 0.045)], "1064x11": [(1.1, 0.05)] * 3, "64x11@4": [(0.3, 0.06)] * 3}
VERDICTS = {
    "prefill": verdict("prefill", 1.0, Floor(0.6, 0.1), 0.1),
    "step": verdict("decode", 0.04, Floor(0.001, 0.02), 0.008),
    "too fast": verdict("decode", 0.01, Floor(0.001, 0.02), 0.0),
}
CURVE = [(1, 1.0), (2, 2.0)]
DRAW = {
    "timelines": lambda about="toy": figures.timelines(about_run(about)),
    "step_times": lambda about="toy": figures.step_times([0.1, 0.03, 0.035], about),
    "read_and_write": lambda about="toy": figures.read_and_write(1.25, 34.0, about),
    "cost_per_row": lambda about="toy": figures.cost_per_row([1, 64], [1e-6, 2e-6], about),
    "along": lambda about="toy": figures.along(about_run(about), "input_tokens"),
    "starving": lambda about="toy": figures.starving(about_run(about)),
    "trade_off": lambda about="toy": figures.trade_off([(1, 0.03, 33.0), (2, 0.04, 50.0)], about),
    "lines": lambda about="toy": figures.lines({"GQA": [(0, 1.0), (1000, 2.5)], about: CURVE}, about, about, about, about),
    "regimes": lambda about="toy": figures.regimes({about: VERDICTS["step"]}, about),
    "cost_ratio": lambda about="toy": figures.cost_ratio([(1, 30.0), (4, 12.5)], 4.0, about),
    "guessed": lambda about="toy": figures.guessed(8.0, 5.2, about, about, about),
    "sketched": lambda about="toy": figures.sketched(CURVE, [(1, 1.0), (2, 1.5)], about, about, about, about),
    "factors_off": lambda about="toy": figures.factors_off([(about, 3.0), ("b", 1.1)], 1.5),
}


def about_run(text: str) -> Run:
    """A run whose model and shapes have this in their names."""
    run = make_run(
        {"64x11": LINE["64x11"], text: LINE["1064x11"]}, **{"64x11": RequestShape(64, 11), text: RequestShape(1064, 11)}
    )
    return Run(run.environment.model_copy(update={"model": text}), run.measurements)


def bars(drawn):
    """(left, width, colour) of every bar, from the top."""
    return [(bar.get_x(), bar.get_width(), to_hex(bar.get_facecolor())) for bar in drawn.figure.axes[0].patches]


def texts(drawn):
    """Everything written in the picture, as it was written into the file."""
    drawn.png()
    return [text.get_text() for text in drawn.figure.findobj(Text)]


def ticks(drawn):
    return [label.get_text() for label in drawn.figure.axes[0].get_yticklabels()]


def test_the_phases_have_their_colours():
    assert len({PREFILL, DECODE, OVERHEAD}) == 3
    for color, (strongest, weakest) in {PREFILL: (2, 0), DECODE: (0, 2)}.items():
        rgb = [int(color[place : place + 2], 16) for place in (1, 3, 5)]
        assert rgb[strongest] == max(rgb) and rgb[weakest] == min(rgb), "prefill is blue and decode orange"
    assert len({OVERHEAD[place : place + 2] for place in (1, 3, 5)}) == 1, "overhead is grey"


@pytest.mark.parametrize("name", DRAW)
def test_every_figure_is_a_picture_and_its_words(name):
    drawn = DRAW[name]()
    assert isinstance(drawn, Drawn) and drawn.png().startswith(b"\x89PNG") and repr(drawn) == drawn.words
    assert len(re.findall(r"\d", drawn.words)) >= 2 and drawn.words.endswith(".")
    caption = drawn.figure.get_supxlabel()
    assert ": " in caption and f"{caption[:1].upper()}{caption[1:]}." in drawn.words, "both say whose numbers these are"
    for axis in drawn.figure.axes:
        assert axis.get_xlabel() and axis.get_xlabel() in drawn.words and axis.get_ylabel() in drawn.words, "units in both"
        assert axis.get_title(loc="left") in drawn.words


def test_every_function_of_the_package_is_tried_here():
    assert set(DRAW) | {"Drawn"} == set(figures.__all__)


@pytest.mark.parametrize("name", DRAW)
def test_names_are_shown_verbatim(name):
    text = r"$x$ $\bad$ a_b <b> [red] [/x] 5 % &amp; {x}"
    drawn = DRAW[name](text)
    drawn.png()  # texts of the axes are made while it is drawn
    shown = [label for label in drawn.figure.findobj(Text) if text in label.get_text()]
    assert shown and not any(label.get_parse_math() or label.get_usetex() for label in shown)
    assert text in drawn.words
    for page in (drawn.html(), drawn._repr_mimebundle_()["text/html"]):
        assert (
            "<b>" not in page
            and (page.startswith("<img") or "mathjax_ignore" in page)
            and "&lt;b&gt;" in page
            and "&amp;amp;" in page
        )


def test_a_notebook_shows_picture_and_words_once(tmp_path):
    drawn = figures.guessed(8.0, 5.2, 'times "as long"', "toy")
    shown = drawn._repr_mimebundle_()
    assert shown["image/png"] == drawn.png() and shown["text/plain"] == drawn.words
    assert shown["text/html"].count("<img") == 1 and 'alt="times &quot;as long&quot;: your prediction 8' in shown["text/html"]
    assert plt.get_fignums() == [], "pyplot would show it a second time, and keep it in memory"


def test_a_picture_is_saved(tmp_path):
    drawn = figures.guessed(8.0, 5.2, "times", "toy")
    small, large = drawn.save(tmp_path / "small.png"), drawn.save(str(tmp_path / "large.png"), dpi=300)
    assert 1000 < small.stat().st_size < large.stat().st_size
    assert drawn.save(tmp_path / "page.svg").read_text().startswith("<?xml") and drawn.save(tmp_path / "no suffix").is_file()
    (tmp_path / "file").write_text("")
    with pytest.raises(CannotWrite):
        drawn.save(tmp_path / "file" / "x.png")
    with pytest.raises(BadArgument) as caught:
        drawn.save(tmp_path / "x.xyz")
    assert caught.value.argument == "path" and not (tmp_path / "x.xyz").exists()


def test_a_home_folder_is_found(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    assert figures.guessed(8.0, 5.2, "times", "toy").save("~/x.png") == tmp_path / "x.png"


def test_a_name_without_letters_in_the_font_is_no_warning(recwarn):
    drawn = figures.guessed(8.0, 5.2, "回", "日本")
    assert drawn.png() and "日本" in drawn.words and not [w for w in recwarn if "Glyph" in str(w.message)]


def test_bars_are_the_medians():
    found = bars(figures.timelines(make_run(POINTS)))
    expected = [(0, 0.3, PREFILL), (0.3, 79 * 0.02, DECODE), (0, 1.5, PREFILL), (1.5, 23 * 0.02, DECODE),
                (0, 0.1, PREFILL), (0.1, 299 * 0.02, DECODE)]  # fmt: skip
    assert [color for _, _, color in found] == [color for _, _, color in expected]
    for (left, width, _), (expected_left, expected_width, _) in zip(found, expected, strict=True):
        assert (left, width) == pytest.approx((expected_left, expected_width))


def test_timelines_say_whose_numbers_they_are():
    drawn = figures.timelines(make_run(POINTS, chat=RequestShape(60, 80, 4)))
    assert "measured: toy (random weights), float32, a machine" in texts(drawn) and "6.08 s" in texts(drawn)
    assert ticks(drawn) == ["chat\n60 in, 80 out, batch 4", "rag\n1,205 in, 24 out", "creative\n25 in, 300 out"]
    legend = drawn.figure.axes[0].get_legend()
    names = [(text.get_text().split(":")[0], to_hex(bar.get_facecolor())) for text, bar in zip(legend.texts, legend.get_patches(), strict=True)]  # fmt: skip
    assert names == [("prefill", PREFILL), ("decode", DECODE)]
    assert "chat (60x80@4): first token after 0.3 s" in drawn.words and "creative (25x300)" in drawn.words
    assert "rag (1205x24): first token after 1.5 s, all after 1.96 s" in drawn.words


@pytest.mark.parametrize(
    "points,shapes,label",
    [
        ({"rag": [(0.5, 0.01)]}, {}, "rag\n1,205 in, 24 out"),
        ({"batch": [(0.5, 0.01)]}, {"batch": RequestShape(64, 8, 4)}, "batch\n64 in, 8 out, batch 4"),
        ({"warm": [(0.5, 0.01)]}, {"warm": RequestShape(64, 8, 1, 2048)}, "warm\n2,048 cached + 64 in, 8 out"),
        ({"one": [(0.5, 0)]}, {"one": RequestShape(64, 1)}, "one\n64 in, 1 out"),
    ],
    ids=["one shape", "batch", "cached", "one token"],
)
def test_any_run_can_be_drawn(points, shapes, label):
    run = make_run(points, **shapes)
    drawn = figures.timelines(run)
    assert ticks(drawn) == [label]
    assert [width for _, width, _ in bars(drawn)] == pytest.approx([0.5, run.measurements[0].median(metrics.decode_s)])


@pytest.mark.parametrize("draw", [figures.timelines, figures.starving, lambda run: figures.along(run, "batch_size")])
def test_a_run_without_measurements_is_no_picture(draw):
    with pytest.raises(NotEnoughMeasured):
        draw(Run(HERE, []))


@pytest.mark.parametrize("kind", ["measured", "predicted"])
def test_step_times(kind):
    drawn = figures.step_times([0.1, 0.01, 0.02], "toy, a machine", kind=kind)
    (axis,) = drawn.figure.axes
    found = [(bar.get_x() + bar.get_width() / 2, bar.get_height(), to_hex(bar.get_facecolor())) for bar in axis.patches]
    assert [color for _, _, color in found] == [PREFILL, DECODE, DECODE]
    assert [height for _, height, _ in found] == pytest.approx([100, 10, 20])
    assert [place for place, _, _ in found] == pytest.approx([1, 2, 3])
    assert "milliseconds" in axis.get_ylabel() and f"{kind}: toy, a machine" in texts(drawn)
    assert "prefill 100 ms. 2 decode steps, 10 to 20 ms." in drawn.words and "6.67 times" in axis.get_title(loc="left")


def test_one_token_has_no_decode_step():
    drawn = figures.step_times([0.1], "one token")
    assert "prefill 100 ms." in drawn.words and "decode step," not in drawn.words and drawn.png()


def test_read_and_write():
    drawn = figures.read_and_write(0.44, 140, "toy, a machine")
    assert [(width, color) for _, width, color in bars(drawn)] == [(0.44, PREFILL), (140, DECODE)]
    assert {"0.44 ms", "140 ms", "measured: toy, a machine"} <= set(texts(drawn))
    assert (
        drawn.words.startswith("A token written takes 318 times as long")
        and "a token read 0.44, a token written 140." in drawn.words
    )
    assert figures.read_and_write(-0.2, 140, "toy", "Mine").words.startswith("Mine (milliseconds): a token read -0.2")
    assert figures.read_and_write(0, 140, "a clock too coarse").png()


def test_along_shows_medians_intervals_and_what_is_held():
    drawn = figures.along(swept(LINE), "input_tokens")
    first, second = drawn.figure.axes
    assert list(first.lines[0].get_xdata()) == [64, 1064] and list(first.lines[0].get_ydata()) == pytest.approx([0.15, 1.1])
    assert list(second.lines[0].get_ydata()) == pytest.approx([45, 50])
    segments = first.collections[0].get_segments()
    assert segments[0][:, 1].tolist() == pytest.approx([0.1, 0.2]) and segments[1][:, 1].tolist() == pytest.approx([1.1, 1.1])
    assert to_hex(first.lines[0].get_color()) == PREFILL and to_hex(second.lines[0].get_color()) == DECODE
    assert first.get_ylim()[0] == 0 and -50 < first.get_xlim()[0] <= 0, "from zero, or a small change looks large"
    assert (first.get_ylabel(), second.get_ylabel()) == ("TTFT in seconds", "TPOT in milliseconds")
    assert "Varied: input tokens. Fixed: 11 output tokens, 0 cached tokens, batch 1" in texts(drawn)
    assert "0.15 (0.1 to 0.2) at 64, 1.1 (1.1 to 1.1) at 1,064." in drawn.words


def test_the_interval_is_the_records_own():
    run = swept({"64x11": [(0.1 + 0.01 * n**2, 0.04) for n in range(8)], "128x11": [(0.2, 0.04)] * 8})
    drawn = figures.along(run, "input_tokens", ("ttft_s",))
    low, high = drawn.figure.axes[0].collections[0].get_segments()[0][:, 1]
    assert (low, high) == pytest.approx(run["64x11"].interval(metrics.ttft_s)) and low < high


def test_one_repeat_has_no_interval():
    drawn = figures.along(swept({"64x11": [(0.1, 0.04)], "128x11": [(0.2, 0.04)]}), "input_tokens", ("ttft_s",))
    (axis,) = drawn.figure.axes
    assert list(axis.lines[0].get_ydata()) == pytest.approx([0.1, 0.2])
    drawn_bars = [
        bar for collection in axis.collections for bar in collection.get_segments() if len(bar) and not np.isnan(bar).any()
    ]
    assert drawn_bars == [] and "0.1 at 64, 0.2 at 128." in drawn.words


def test_a_metric_that_some_shapes_have_not():
    drawn = figures.along(swept({"64x1": [(0.1, 0)] * 2, "64x3": [(0.1, 0.04)] * 2}), "output_tokens", ("tpot_s",))
    assert list(drawn.figure.axes[0].lines[0].get_xdata()) == [3] and "40 (40 to 40) at 3." in drawn.words


def test_along_with_a_model_draws_what_it_predicts():
    drawn = figures.along(swept(LINE), "batch_size", ("total_s",), MODEL)
    (axis,) = drawn.figure.axes
    dashed = next(line for line in axis.lines if line.get_linestyle() == "--")
    assert list(dashed.get_xdata()) == [1, 2, 3, 4]
    assert list(dashed.get_ydata()) == pytest.approx([MODEL.predict(RequestShape(64, 11, b)).total_s for b in (1, 2, 3, 4)])
    assert {text.get_text() for text in axis.get_legend().texts} == {"measured", "predicted"}
    assert "Fixed: 64 input tokens, 11 output tokens, 0 cached tokens." in drawn.words
    assert re.search(r"Predicted: \S+ at 1, \S+ at 4\. Measured and predicted: toy", drawn.words)


def test_trade_off_writes_the_batch_sizes_on():
    drawn = figures.trade_off([(1, 0.04, 25.0), (8, 0.08, 100.0)], "toy, a machine")
    (axis,) = drawn.figure.axes
    assert list(axis.lines[0].get_xdata()) == pytest.approx([40, 80]) and list(axis.lines[0].get_ydata()) == [25, 100]
    assert {"batch 1", "batch 8", "measured: toy, a machine"} <= set(texts(drawn))
    assert "milliseconds" in axis.get_xlabel() and "tokens a second" in axis.get_ylabel()
    assert "batch 1: 25 at 40, batch 8: 100 at 80." in drawn.words
    assert "4 times as fast" in drawn.words and "waits 2 times as long" in drawn.words


def test_starving():
    drawn = figures.starving(swept({"25x2": [(0.1, 0.01), (0.2, 0.01)], "1000x2": [(1.0, 0.01)] * 2}))
    (axis,) = drawn.figure.axes
    assert list(axis.lines[0].get_xdata()) == [25, 1000] and list(axis.lines[0].get_ydata()) == pytest.approx([187.5, 1000])
    assert axis.get_ylim()[0] == 0 and axis.get_xscale() == "log" and "1,000" in texts(drawn)
    assert "188 (125 to 250) at 25, 1,000 (1,000 to 1,000) at 1,000." in drawn.words and "reaches 19%" in drawn.words


def test_cost_per_row():
    drawn = figures.cost_per_row([1, 64], [1e-6, 2e-6], "x")
    assert "1 at 1, 0.0312 at 64." in drawn.words and "32 times as long" in drawn.words and "one token: decode" in texts(drawn)


def test_regimes_stack_to_100_per_cent():
    drawn = figures.regimes(VERDICTS, "toy, a machine")
    found = bars(drawn)
    assert [round(width) for _, width, _ in found[:3]] == [10, 60, 30] and found[1][2] == PREFILL
    assert [round(width) for _, width, _ in found[3:6]] == [20, 50, 30] and found[4][2] == DECODE and found[3][2] == OVERHEAD
    assert round(found[7][1]) == 200 and drawn.figure.axes[0].get_xlim()[1] >= 200, "above its floor a bar is drawn whole"
    assert {"arithmetic 60%", "bytes 50%", "measured: toy, a machine"} <= set(texts(drawn))
    assert "overhead 10%" not in texts(drawn), "a text wider than its piece lies over the next one"
    assert "prefill, 1,000.0 ms: overhead 10%, arithmetic 60%, explained by none 30%; step, 40.0 ms: " in drawn.words


def test_cost_ratio():
    drawn = figures.cost_ratio([(1, 40.0), (16, 5.0)], 4.0, "toy")
    line, prices = drawn.figure.axes[0].lines
    assert list(line.get_xdata()) == [1, 16] and list(line.get_ydata()) == [40, 5] and set(prices.get_ydata()) == {4.0}
    assert "median of public prices: 4.0" in texts(drawn)
    assert "this machine's time 40 at 1, 5 at 16; median of public prices: 4.0." in drawn.words


def test_lines_are_told_apart_without_colour():
    series = {f"line {n}": [(64, 30.0 + n), (1500, 50.0)] for n in range(7)}
    drawn = figures.lines(series, "tokens", "ms", "T", "toy", "computed")
    (axis,) = drawn.figure.axes
    assert len({line.get_marker() for line in axis.lines}) == 7 and list(axis.lines[0].get_ydata()) == [30, 50]
    assert {"line 0", "line 6", "T", "computed: toy", "tokens", "ms"} <= set(texts(drawn))
    assert drawn.words.startswith("T (ms, over tokens): line 0: 30 at 64, 50 at 1,500.") and "line 6: 36 at 64" in drawn.words


def test_guesses_in_words():
    assert "your prediction 8, measured 5.2." in figures.guessed(8.0, 5.2, "times", "x").words
    assert "your prediction 1 at 1, 2 at 2; measured 1 at 1, 1.5 at 2." in DRAW["sketched"]("measured").words
    alone = figures.sketched(CURVE, None, "batch", "times", "x", highest=8)
    assert "your prediction 1 at 1, 2 at 2." in alone.words and "Predicted: x." in alone.words
    assert alone.figure.axes[0].get_ylim() == (0, 8)


def test_a_guess_far_off_stays_in_the_picture():
    drawn = figures.factors_off([("a", math.inf), ("b", 1.2)], 1.5)
    assert max(drawn.figure.axes[0].lines[0].get_ydata()) < drawn.figure.axes[0].get_ylim()[1] < math.inf
    assert "a inf, b 1.2" in drawn.words
