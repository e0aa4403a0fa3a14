"""Panels: view functions at every end of every control, one picture whatever is moved, sentences for what cannot be."""

import io
import itertools

import pytest
from PIL import Image

from shapelab.classroom import explorers
from shapelab.classroom.explorers import (
    BATCHES,
    TOKENS,
    batch_explorer,
    batch_view,
    cost_explorer,
    cost_view,
    kv_explorer,
    kv_view,
    machine,
    request_explorer,
    request_view,
)
from shapelab.classroom.figures.colours import DECODE, PREFILL
from shapelab.cost.machine_hours import machine_cost
from shapelab.cost.price_list import price, request_usd
from shapelab.errors import ShapelabError
from shapelab.request.shape import RequestShape
from tests.runs import MODEL, RUN

XEON = "xeon-2cpu-smollm2-135m-float32"
PANELS = {"request": request_explorer, "batch": batch_explorer, "kv": kv_explorer, "cost": cost_explorer}
every_panel = pytest.mark.parametrize("make", PANELS.values(), ids=PANELS)


def test_a_request_and_its_tokens_rearranged():
    view = request_view(MODEL, 1900, 100)
    assert [label for label, _ in view.bars] == ["this request", "1,900 + 100", "1,000 + 1,000", "100 + 1,900"]
    for (_, ((prefill, blue), (decode, orange))), row in zip(view.bars, view.rows, strict=True):
        p = MODEL.predict(RequestShape.parse(row[1]))
        assert (prefill, prefill + decode) == pytest.approx((p.ttft_s, p.total_s)) and (blue, orange) == (PREFILL, DECODE)
    totals = [sum(length for length, _ in parts) for _, parts in view.bars]
    assert totals[0] == totals[1] < totals[2] < totals[3], "the same tokens, and more of them written"
    assert "first token after" in view.text and "predicted: toy" in view.caption


@pytest.mark.parametrize("inputs,outputs", list(itertools.product((1, 2, 8192), (1, 2, 4096))))
def test_a_request_at_the_ends(inputs, outputs):
    view = request_view(MODEL, inputs, outputs, 8192, 128)
    assert all(length >= 0 for _, parts in view.bars for length, _ in parts)
    assert all(RequestShape.parse(row[1]).total_tokens == inputs + outputs + 8192 for row in view.rows)


@pytest.mark.parametrize("name", ["T4", "H200", XEON])
def test_machines(name):
    found = machine(name)
    assert found.predict(RequestShape(64, 12)).total_s > 0
    caption = explorers.about(found)
    assert ("predicted" in caption) == (name == XEON) and ("floor plus 5 ms a pass" in caption) == (name != XEON)


def test_a_gpu_is_its_floor_and_the_assumed_overhead():
    t4 = machine("T4", "tinyllama")
    assert t4.predict(RequestShape(25, 2)).tpot_s == pytest.approx(0.0065 + 0.005, abs=0.0003)
    with pytest.raises(ShapelabError, match="tinyllama has 2,048"):
        t4.predict(RequestShape(2048, 2))


def test_the_batch_grows_as_far_as_it_was_measured():
    view = batch_view(MODEL, 64, 32, usd_per_hour=3.6)
    assert [row[0] for row in view.rows] == ["1", "2", "4", "8", "16"], "the plan ends at 16"
    tpot = MODEL.predict(RequestShape(64, 32, 16)).tpot_s
    assert float(view.rows[-1][-1]) == pytest.approx(1e6 * 0.001 * tpot / 16, rel=0.01)
    assert view.bars[-1][1][0][0] == pytest.approx(16 / tpot)
    assert "times as long a token as alone" in view.text and "USD a million output tokens" in view.headings


@pytest.mark.parametrize("inputs,outputs,usd", list(itertools.product((1, 8192), (1, 4096), (0.0, 5.0))))
def test_the_batch_at_the_ends(inputs, outputs, usd):
    assert batch_view(MODEL, inputs, outputs, usd).rows


def test_kv():
    view = kv_view("llama-3-8b", "A100-80", 1205, 301)
    rows = {(row[0].split()[0], row[2]): row for row in view.rows}
    assert rows["GQA", "paged"][3:5] == ("131,072", "343") and "(this model's)" in rows["GQA", "paged"][0]
    assert rows["MHA", "contiguous"][4] == "15" and len(view.bars) == 6
    half = kv_view("llama-3-8b", "A100-80", 1205, 301, "int8")
    assert int(half.rows[3][4]) >= 2 * 343 and "int8" in half.text


@pytest.mark.parametrize("model", explorers.known_models())
@pytest.mark.parametrize("gpu_name", ["T4", "B200"])
def test_kv_of_every_model(model, gpu_name):
    try:
        view = kv_view(model, gpu_name, 1, 1)
        assert len(view.bars) <= explorers.BARS
    except ShapelabError as error:
        assert "do not fit in" in str(error)


def test_cost():
    view = cost_view("gpt-4.1", MODEL, 3.6, 1000, 100, 0.5, 1000, 2)
    at_prices = request_usd(price("gpt-4.1"), 500, 100, 500) * 30_000
    on_machine = machine_cost(MODEL, RequestShape(500, 100, 2, 500), 3.6).usd_per_request * 30_000
    assert view.rows[0][1] == f"{at_prices:,.2f}" and view.rows[0][3] == f"{on_machine:,.2f}"
    assert len(view.rows) == 5 and "Saves most at prices" in view.text and "as of 2025" in view.text
    assert view.rows[4][2] == "+0%", "a batch changes no price list"


@pytest.mark.parametrize("share", [-0.1, 1.0])
def test_cost_of_an_impossible_share(share):
    with pytest.raises(ShapelabError, match="cached share"):
        cost_view("gpt-4.1", MODEL, 1, 10, 10, share)


@pytest.mark.parametrize("usd,inputs,outputs,share,a_day,batch", [(0.0, 1, 1, 0.0, 100, 1), (5.0, 8192, 4096, 0.9, 100_000, 16)])
def test_cost_at_the_ends(usd, inputs, outputs, share, a_day, batch):
    assert len(cost_view("gpt-4.1", MODEL, usd, inputs, outputs, share, a_day, batch).rows) == 5


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
    assert 'role="alert"' in panel.error.value and "tinyllama has 2,048" in panel.error.value
    assert panel.image.value == picture
    panel.controls["input_tokens"].value = 64
    assert panel.error.value == "" and panel.image.value != picture


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


def test_strangers_words_are_escaped():
    run = RUN.__class__(RUN.environment.model_copy(update={"model": "<script>x</script>"}), RUN.measurements)
    panel = request_explorer(run)
    assert "<script>" not in panel._repr_mimebundle_()["text/html"] and is_picture(panel.image.value)


def test_log_steps():
    assert list(TOKENS) == sorted(TOKENS) and list(BATCHES) == [2**n for n in range(8)]


def test_what_is_extrapolated_is_said():
    assert "xtrapolated" not in request_view(MODEL, 1000, 100).text + batch_view(MODEL, 64, 32).text
    far = request_view(MODEL, 1900, 1900)
    assert "Extrapolated: " in far.text and all(row[0].endswith("*") for row in far.rows)
    near = request_view(MODEL, 2900, 90)  # itself inside; half read and half written as well, but not as one long answer
    assert [row[0].endswith("*") for row in near.rows] == [
        bool(MODEL.predict(RequestShape.parse(row[1])).extrapolates) for row in near.rows
    ]
    assert "Extrapolated: " in batch_view(MODEL, 8192, 32).text
    assert "extrapolated" in cost_view("gpt-4.1", MODEL, 1, 64, 32, batch_size=16).text, (
        "four times the batch of 16 was not measured"
    )
    assert "extrapolated" not in cost_view("gpt-4.1", MODEL, 1, 64, 32).text


def test_where_doubling_stops_being_free_is_marked():
    view = batch_view(machine("H200"), 64, 64)
    tpot = [float(row[2]) for row in view.rows]
    dear = [int(row[0]) for row, a, b in zip(view.rows, tpot, tpot[1:], strict=False) if b > explorers.FREE * a]
    assert view.marks == {} and not dear and "Every doubling shown is nearly free" in view.text
    view = batch_view(MODEL, 64, 32)
    first = next(batch for batch in (1, 2, 4, 8) if step(2 * batch) > explorers.FREE * step(batch))
    assert list(view.marks) == [f"batch {first}"] and f"stops being nearly free at batch {first}:" in view.text


def step(batch):
    return MODEL.predict(RequestShape(64, 32, batch)).tpot_s


def test_memory_left():
    t4 = machine("T4", "tinyllama")
    kv_bytes, left = explorers.memory(t4, RequestShape(1000, 25, 4))
    assert kv_bytes == 22_528 * 1024 * 4 and 0 < left < t4.gpu.usable_bytes - 2.2e9 - kv_bytes
    row = batch_view(t4, 1000, 25).rows[2]
    assert row[4:6] == (f"{kv_bytes / 1e9:,.3g}", f"{left / 1e9:,.3g}")
    assert explorers.memory(MODEL, RequestShape(10, 10)) == (None, None), "a run without the model's numbers"
    kv_bytes, left = explorers.memory(machine(XEON), RequestShape(10, 10))
    assert kv_bytes == 46_080 * 19 and left is None


def test_a_batch_that_does_not_fit():
    view = batch_view(machine("T4", "tinyllama"), 1900, 100)
    assert "does not fit in memory" in view.text and all(float(row[5]) >= 0 for row in view.rows)
    for refused in (
        lambda m: batch_view(m, 64, 64), lambda m: request_view(m, 64, 64), lambda m: cost_view("gpt-4.1", m, 1, 64, 64)
    ):  # fmt: skip
        with pytest.raises(ShapelabError, match="llama-3-8b and a request of 64x64 do not fit in the memory of NVIDIA T4"):
            refused(machine("T4", "llama-3-8b"))


def test_four_times_a_batch_that_does_not_fit():
    view = cost_view("gpt-4.1", machine("T4", "tinyllama"), 1, 1900, 100, batch_size=64)
    assert len(view.rows) == 4 and "Four times the batch does not fit" in view.text
    assert len(cost_view("gpt-4.1", machine("T4", "tinyllama"), 1, 1900, 100, batch_size=4).rows) == 5


def test_whose_numbers_is_said_in_words_too():
    for view in (request_view(MODEL, 64, 12), batch_view(MODEL, 64, 12), cost_view("gpt-4.1", MODEL, 1, 64, 12)):
        assert "(predicted: toy" in view.text
    said = request_view(machine("T4"), 64, 12).text
    assert "By the data sheet and 5 ms a pass that are assumed, prefill waits" in said and "(computed: tinyllama" in said


def test_a_single_batch_says_that_no_doubling_is_known():
    assert "No doubling" in batch_view(MODEL, 8192, 32).text


def test_what_the_passes_wait_for():
    view = request_view(machine("T4", "tinyllama"), 1024, 64)
    assert "prefill waits most for compute" in view.text and "decode waits most for memory" in view.text
    assert view.rows[0][-1] == "compute, memory"
    assert request_view(machine("H200", "tinyllama"), 1024, 64).rows[0][-1].endswith("overhead"), "the assumed 5 ms"
    assert "not known" in request_view(MODEL, 64, 12).text and request_view(MODEL, 64, 12).rows[0][-1] == "-"
    assert request_view(machine("H200", "llama-3-8b"), 4096, 1).rows[0][-1] == "compute"


@pytest.mark.parametrize("make", [request_explorer, batch_explorer, cost_explorer])
def test_the_model_menu_sleeps_where_the_machine_brings_its_own(make):
    panel = make()
    menus = panel.controls
    menus["machine_name"].value = XEON
    assert menus["model"].disabled
    menus["machine_name"].value = "T4"
    assert not menus["model"].disabled
