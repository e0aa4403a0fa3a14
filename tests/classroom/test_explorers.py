"""Panels: view functions at every end of every control, one picture whatever is moved, sentences for what cannot be."""

import html
import io
import itertools

import pytest
from PIL import Image

from shapelab.classroom.explorers import batch_explorer, cost_explorer, kv_explorer, request_explorer
from shapelab.classroom.explorers.batch import FREE, batch_rows, batch_view
from shapelab.classroom.explorers.cost import LARGER, Usage, cost_rows, cost_view
from shapelab.classroom.explorers.kv import kv_rows, kv_view
from shapelab.classroom.explorers.machines import about, machine, memory
from shapelab.classroom.explorers.panel import BARS, BATCHES, TOKENS
from shapelab.classroom.explorers.request import request_rows, request_view
from shapelab.classroom.figures.colours import DECODE, PREFILL
from shapelab.cost.machine_hours import machine_cost
from shapelab.cost.price_list import price, request_usd
from shapelab.errors import BadArgument, DoesNotFit
from shapelab.record.run import Run
from shapelab.request.shape import RequestShape
from shapelab.theory.hardware import gpu
from shapelab.theory.model_spec import ModelSpec, known_models
from tests.runs import MODEL, RUN, swept

XEON = "xeon-2cpu-smollm2-135m-float32"
GPT = price("gpt-4.1")
PANELS = {"request": request_explorer, "batch": batch_explorer, "kv": kv_explorer, "cost": cost_explorer}
every_panel = pytest.mark.parametrize("make", PANELS.values(), ids=PANELS)


@pytest.fixture
def t4():
    return machine("T4", "tinyllama")


def test_a_request_and_its_tokens_rearranged():
    rows = request_rows(MODEL, RequestShape(1900, 100))
    assert [str(row.prediction.shape) for row in rows] == ["1900x100", "1900x100", "1000x1000", "100x1900"]
    assert [row.prediction for row in rows] == [MODEL.predict(row.prediction.shape) for row in rows]
    totals = [row.prediction.total_s for row in rows]
    assert totals[0] == totals[1] < totals[2] < totals[3], "the same tokens, and more of them written"


def test_a_request_is_drawn_as_it_is_computed():
    view, rows = request_view(MODEL, 1900, 100), request_rows(MODEL, RequestShape(1900, 100))
    assert [bar.label for bar in view.bars] == ["this request", "1,900 + 100", "1,000 + 1,000", "100 + 1,900"]
    for (_, ((prefill, blue), (decode, orange)), _), row in zip(view.bars, rows, strict=True):
        p = row.prediction
        assert (prefill, prefill + decode) == pytest.approx((p.ttft_s, p.total_s)) and (blue, orange) == (PREFILL, DECODE)


@pytest.mark.parametrize("inputs,outputs", list(itertools.product((1, 2, 8192), (1, 2, 4096))))
def test_a_request_at_the_ends(inputs, outputs):
    view = request_view(MODEL, inputs, outputs, 8192, 128)
    assert all(length >= 0 for bar in view.bars for length, _ in bar.pieces)
    rows = request_rows(MODEL, RequestShape(inputs, outputs, 128, 8192))
    assert all(row.prediction.shape.total_tokens == inputs + outputs + 8192 for row in rows)


@pytest.mark.parametrize("name", ["T4", "H200", XEON])
def test_machines(name):
    found = machine(name)
    assert found.predict(RequestShape(64, 12)).total_s > 0
    assert about(found).startswith("predicted: " if name == XEON else "computed: ") and found.label in about(found)
    assert ("5 ms a pass" in about(found)) == (name != XEON)


def test_a_gpu_is_its_floor_and_the_assumed_overhead(t4):
    assert t4.predict(RequestShape(25, 2)).tpot_s == pytest.approx(0.0065 + 0.005, abs=0.0003)
    with pytest.raises(DoesNotFit):
        request_view(t4, 2048, 2)


def test_the_batch_grows_as_far_as_it_was_measured():
    rows = batch_rows(MODEL, RequestShape(64, 32), usd_per_hour=3.6)
    assert [row.batch_size for row in rows] == [1, 2, 4, 8, 16], "the plan ends at 16"
    tpot = MODEL.predict(RequestShape(64, 32, 16)).tpot_s
    assert (rows[-1].tpot_s, rows[-1].tokens_per_s) == pytest.approx((tpot, 16 / tpot))
    assert rows[-1].usd_per_million_output_tokens == pytest.approx(1e6 * 0.001 * tpot / 16)
    view = batch_view(MODEL, 64, 32, usd_per_hour=3.6)
    assert [bar.pieces[0][0] for bar in view.bars] == [row.tokens_per_s for row in rows]


@pytest.mark.parametrize("inputs,outputs,usd", list(itertools.product((1, 8192), (1, 4096), (0.0, 5.0))))
def test_the_batch_at_the_ends(inputs, outputs, usd):
    assert batch_view(MODEL, inputs, outputs, usd).table.rows


def test_kv():
    spec, shape = ModelSpec.from_config("llama-3-8b"), RequestShape(1205, 301)
    rows = {(row.kind, row.plan.allocation): row for row in kv_rows(spec, gpu("A100-80"), shape)}
    assert rows["GQA", "paged"].plan.kv_bytes_per_token == 131_072 and rows["GQA", "paged"].plan.requests == 343
    assert rows["MHA", "contiguous"].plan.requests == 15 and len(rows) == 6
    assert {kind for (kind, _), row in rows.items() if row.own} == {"GQA"}
    assert kv_rows(spec, gpu("A100-80"), shape, "int8")[3].plan.requests >= 2 * 343


def test_most_requests_fit_where_most_were_computed():
    """The largest number, not the largest text: 1,203 sorts before 343."""
    text = kv_view("llama-3-8b", "A100-80", 1205, 301).text
    assert "Most fit with MQA, paged: 2,7" in text and "int8" in kv_view("llama-3-8b", "A100-80", 1205, 301, "int8").text


@pytest.mark.parametrize("model", known_models())
@pytest.mark.parametrize("gpu_name", ["T4", "B200"])
def test_kv_of_every_model(model, gpu_name):
    try:
        assert 2 <= len(kv_view(model, gpu_name, 1, 1).bars) <= BARS
    except DoesNotFit:
        assert ModelSpec.from_config(model).num_hidden_layers >= 28, "only large models do not fit"


def test_kv_above_the_context():
    with pytest.raises(DoesNotFit):
        kv_view("tinyllama", "A100-80", 2048, 2)


def test_cost():
    rows = cost_rows(GPT, MODEL, 3.6, Usage(1000, 100, 0.5, 2))
    assert rows[0].at_prices_usd == request_usd(GPT, 500, 100, 500)
    assert rows[0].on_machine_usd == machine_cost(MODEL, RequestShape(500, 100, 2, 500), 3.6).usd_per_request
    assert [row.change for row in rows] == ["now", "half the prompt", "half the answer", "90 % cached", LARGER]
    assert rows[4].at_prices_usd == rows[0].at_prices_usd, "a batch changes no price list"


def test_cost_a_month():
    view, row = cost_view("gpt-4.1", MODEL, 3.6, 1000, 100, 0.5, 1000, 2), cost_rows(GPT, MODEL, 3.6, Usage(1000, 100, 0.5, 2))[0]
    assert (view.table.rows[0][1], view.table.rows[0][3]) == (
        f"{row.at_prices_usd * 30_000:,.2f}",
        f"{row.on_machine_usd * 30_000:,.2f}",
    )
    assert view.table.rows[4][2] == "+0%" and GPT.as_of in view.text
    assert view.bars[0].pieces[0][0] == pytest.approx(row.on_machine_usd * 30_000)


def test_what_saves_most_is_chosen_by_number():
    rows = cost_rows(GPT, MODEL, 3.6, Usage(8192, 25))[1:]
    at_prices, on_machine = (min(rows, key=lambda row, side=side: row[side]).change for side in (1, 2))
    assert f"Saves most at prices: {at_prices}; on the machine: {on_machine}." in cost_view("gpt-4.1", MODEL, 3.6, 8192, 25).text


@pytest.mark.parametrize("share", [-0.1, 1.0, float("nan")])
def test_cost_of_an_impossible_share(share):
    with pytest.raises(BadArgument) as caught:
        cost_view("gpt-4.1", MODEL, 1, 10, 10, share)
    assert caught.value.argument == "cached_share"


@pytest.mark.parametrize("usd,inputs,outputs,share,a_day,batch", [(0.0, 1, 1, 0.0, 100, 1), (5.0, 8192, 4096, 0.9, 100_000, 16)])
def test_cost_at_the_ends(usd, inputs, outputs, share, a_day, batch):
    assert len(cost_view("gpt-4.1", MODEL, usd, inputs, outputs, share, a_day, batch).table.rows) == 5


def is_picture(value: bytes) -> bool:
    return Image.open(io.BytesIO(value)).size[0] > 500


@every_panel
def test_every_control_at_both_ends(make):
    panel = make()
    for control in panel.controls.values():
        values = [value for _, value in control.options] if isinstance(control.options[0], tuple) else list(control.options)
        for value in (values[0], values[-1], values[len(values) // 2]):
            control.value = value
            assert panel.error.value or panel.text.value
    assert is_picture(panel.image.value)


@every_panel
def test_ten_moves_leave_one_picture_and_change_it(make):
    panel = make()
    before, children = panel.image.value, panel.box.children
    slider = next(control for control in panel.controls.values() if type(control).__name__ == "SelectionSlider")
    for value in [value for _, value in reversed(slider.options)][:10]:
        slider.value = value
    assert panel.box.children == children and sum(type(child).__name__ == "Image" for child in children) == 1
    assert panel.image.value != before and is_picture(panel.image.value)


@every_panel
def test_sliders_wait_for_the_hand_and_have_names(make):
    for control in make().controls.values():
        assert control.description
        assert getattr(control, "continuous_update", False) is False


def test_an_impossible_input_is_said_and_the_rest_stays():
    panel = request_explorer()
    panel.controls["machine_name"].value = "T4"
    picture = panel.image.value
    panel.controls["input_tokens"].value = 8192
    assert 'role="alert"' in panel.error.value and "tinyllama" in panel.error.value
    assert panel.image.value == picture
    panel.controls["input_tokens"].value = 64
    assert panel.error.value == "" and panel.image.value != picture


def test_a_panel_whose_first_state_cannot_be_says_why():
    """A run at batch 4 alone says nothing about the batch of 1 that the sliders begin with."""
    shapes = [(64, 12), (64, 40), (128, 12), (256, 12), (256, 64), (512, 12), (512, 32), (1024, 12), (1024, 64)]
    run = swept({f"{i}x{o}@4": [(i * 1e-3 + 0.01, 0.04 + i * 1e-6 + o * 1e-6)] * 3 for i, o in shapes})
    panel = request_explorer(run)
    page = panel._repr_mimebundle_()
    assert 'role="alert"' in page["text/html"] and "<img" not in page["text/html"] and page["text/plain"]
    panel.controls["batch_size"].value = 4
    assert panel.error.value == "" and is_picture(panel.image.value)


def test_a_menu_there_and_back_keeps_every_number():
    panel = request_explorer(RUN)
    panel.controls["input_tokens"].value, panel.controls["batch_size"].value = 256, 4
    panel.controls["machine_name"].value = "H200"
    assert panel.controls["machine_name"].options[0] == "this run"
    panel.controls["machine_name"].value = "this run"
    assert (panel.values["input_tokens"], panel.values["batch_size"]) == (256, 4) and "256x25@4" in panel.text.value


@every_panel
def test_without_a_kernel_a_picture_and_a_table_stand_there(make):
    panel = make()
    page = panel._repr_mimebundle_()
    assert page["application/vnd.jupyter.widget-view+json"]["model_id"] == panel.box.model_id
    assert "data:image/png;base64," in page["text/html"] and "<table" in page["text/html"] and 'alt="' in page["text/html"]
    assert page["text/plain"] == repr(panel) and panel.shown.text in page["text/plain"]


@pytest.mark.parametrize("name", ["<script>x</script>", "a [/b] $x$ &amp;", "a\nb\x1b[2J", "$\\frac"])
def test_strangers_words_are_shown_as_they_are(name):
    run = Run(RUN.environment.model_copy(update={"model": name}), RUN.measurements)
    panel = request_explorer(run)
    page = panel._repr_mimebundle_()["text/html"]
    assert html.escape(name.replace("\x1b", "\\x1b")) in page and "<script>" not in page and is_picture(panel.image.value)
    assert 'class="tex2jax_ignore mathjax_ignore"' in panel.text.value and name in panel.shown.text


def test_log_steps():
    assert list(TOKENS) == sorted(TOKENS) and list(BATCHES) == [2**n for n in range(8)]


def test_what_is_extrapolated_is_said():
    assert "xtrapolated" not in request_view(MODEL, 1000, 100).text + batch_view(MODEL, 64, 32).text
    far = request_view(MODEL, 1900, 1900)
    assert "Extrapolated: " in far.text and all(row[0].endswith("*") for row in far.table.rows)
    near = request_view(MODEL, 2900, 90)  # itself inside; half read and half written as well, but not as one long answer
    assert [row[0].endswith("*") for row in near.table.rows] == [
        bool(row.prediction.extrapolates) for row in request_rows(MODEL, RequestShape(2900, 90))
    ]
    assert "Extrapolated: " in batch_view(MODEL, 8192, 32).text
    beyond = cost_rows(GPT, MODEL, 1, Usage(64, 32, batch_size=16))
    assert [row.change for row in beyond if row.extrapolates] == [LARGER], "four times the batch of 16 was not measured"
    assert "extrapolated" in cost_view("gpt-4.1", MODEL, 1, 64, 32, batch_size=16).text
    assert "extrapolated" not in cost_view("gpt-4.1", MODEL, 1, 64, 32).text


def test_where_doubling_stops_being_free_is_marked():
    rows = batch_rows(machine("H200"), RequestShape(64, 64), 1)
    assert all(b.tpot_s <= FREE * a.tpot_s for a, b in itertools.pairwise(rows))
    assert not any(bar.mark for bar in batch_view(machine("H200"), 64, 64).bars)
    tpot = {batch: MODEL.predict(RequestShape(64, 32, batch)).tpot_s for batch in (1, 2, 4, 8, 16)}
    first = next(batch for batch in (1, 2, 4, 8) if tpot[2 * batch] > FREE * tpot[batch])
    view = batch_view(MODEL, 64, 32)
    assert [bar.label for bar in view.bars if bar.mark] == [f"batch {first}"] and f"at batch {first}:" in view.text


def test_memory_left(t4):
    kv_bytes, left = memory(t4, RequestShape(1000, 25, 4))
    assert kv_bytes == 22_528 * 1024 * 4 and 0 < left < t4.gpu.usable_bytes - 2.2e9 - kv_bytes
    row = batch_rows(t4, RequestShape(1000, 25), 1)[2]
    assert (row.kv_bytes, row.left_bytes) == (kv_bytes, left)
    assert batch_view(t4, 1000, 25).table.rows[2][4:6] == (f"{kv_bytes / 1e9:,.3g}", f"{left / 1e9:,.3g}")
    assert memory(MODEL, RequestShape(10, 10)) == (None, None), "a run without the model's numbers"
    kv_bytes, left = memory(machine(XEON), RequestShape(10, 10))
    assert kv_bytes == 46_080 * 19 and left is None


def test_a_batch_that_does_not_fit(t4):
    view, rows = batch_view(t4, 1900, 100), batch_rows(t4, RequestShape(1900, 100), 1)
    following = 2 * rows[-1].batch_size
    assert following <= 128 and f"Batch {following} does not fit in memory" in view.text and all(r.left_bytes >= 0 for r in rows)
    assert "not fit" not in batch_view(t4, 16, 16).text + batch_view(MODEL, 64, 32).text
    too_small = machine("T4", "llama-3-8b")
    for refused in (
        lambda: batch_view(too_small, 64, 64), lambda: request_view(too_small, 64, 64), lambda: cost_view("gpt-4.1", too_small, 1, 64, 64)
    ):  # fmt: skip
        with pytest.raises(DoesNotFit):
            refused()


def test_four_times_a_batch_that_does_not_fit(t4):
    assert [row.change for row in cost_rows(GPT, t4, 1, Usage(1900, 100, batch_size=64))][-1] != LARGER
    assert "Four times the batch does not fit" in cost_view("gpt-4.1", t4, 1, 1900, 100, batch_size=64).text
    assert [row.change for row in cost_rows(GPT, t4, 1, Usage(1900, 100, batch_size=4))][-1] == LARGER


def test_whose_numbers_is_said_in_words_too(t4):
    for make in (
        lambda m: request_view(m, 64, 12),
        lambda m: batch_view(m, 64, 12),
        lambda m: cost_view("gpt-4.1", m, 1, 64, 12),
    ):
        for each in (MODEL, t4):
            assert f"({about(each)}.)" in make(each).text and make(each).caption == about(each)


def test_any_machine_will_do(t4):
    """A panel asks a Machine's questions and no others, so that a server's run can be put before it."""

    class Server:
        label, kind, assumption, spec, dtype, usable_bytes = "a server", "measured", "", None, None, None

        def __getattr__(self, name):
            if name in ("prefill_s", "step_s", "predict", "verdicts"):
                return getattr(MODEL, name)
            raise AssertionError(f"{name} is no question for a Machine")

    for view in (request_view(Server(), 64, 12), batch_view(Server(), 64, 12), cost_view("gpt-4.1", Server(), 1, 64, 12)):
        assert "predicted: a server" in view.caption and view.table.rows


def test_what_the_passes_wait_for(t4):
    def waits(machine, *numbers):
        return [v.regime for v in request_rows(machine, RequestShape(*numbers))[0].verdicts.values()]

    assert waits(t4, 1024, 64) == ["compute", "memory"]
    assert waits(machine("H200"), 1024, 64)[1] == "overhead", "the assumed 5 ms"
    assert waits(machine("H200", "llama-3-8b"), 4096, 1) == ["compute"]
    assert waits(MODEL, 64, 12) == [], "nobody knows"
    view = request_view(t4, 1024, 64)
    assert "prefill waits most for compute" in view.text and "decode waits most for memory" in view.text
    assert t4.assumption in view.text and view.table.rows[0][-1] == "compute, memory"
    assert request_view(MODEL, 64, 12).table.rows[0][-1] == "-"


@pytest.mark.parametrize("make", [request_explorer, batch_explorer, cost_explorer])
def test_the_model_menu_is_disabled_for_runs(make):
    menus = make().controls
    menus["machine_name"].value = XEON
    assert menus["model"].disabled
    menus["machine_name"].value = "T4"
    assert not menus["model"].disabled
