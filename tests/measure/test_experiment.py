"""One request, measured: every known way to get it wrong, with a clock and a model that do as they are told."""

import gc
import signal

import numpy as np
import pytest
import torch

from shapelab.errors import BadArgument, DoesNotFit, ShapelabError
from shapelab.files import keep_from_interrupts
from shapelab.measure.clock import HostClock
from shapelab.measure.experiment import measure_shapes, run_once, warm_up
from shapelab.model.memory import PeakMemory
from shapelab.record import metrics
from shapelab.record.run import Run, Settings
from shapelab.request.shape import RequestShape
from tests.toys import EVERY_OUT_OF_MEMORY, OUT_OF_MEMORY, ScriptedModel, ScriptedTime, scripted_lab


def scripted(**options):
    time = ScriptedTime()
    model = ScriptedModel(time, **options)
    return scripted_lab(model), model, HostClock(now=time)


def test_a_request_is_one_prefill_and_n_minus_1_steps():
    lab, model, clock = scripted(prefill_ms=100, step_ms=10)
    result = run_once(lab, RequestShape(50, 5), clock=clock)
    assert metrics.ttft_s(result.timeline) == 0.1
    assert metrics.tpot_s(result.timeline) == pytest.approx(0.010, abs=1e-15)
    assert [length for _, length, _ in model.passes] == [50, 1, 1, 1, 1]
    assert {kept for _, _, kept in model.passes} == {1}
    assert result.ids.shape == (1, 5)


def test_one_output_token():
    lab, _, clock = scripted()
    m = measure_shapes(lab, {"one": RequestShape(50, 1)}, clock=clock, progress=False)["one"]
    assert m.median(metrics.ttft_s) == 0.1
    assert m.summary()["tpot_s"] is None and m.summary()["tpot_interval_s"] is None


def test_a_shape_run_goes_on_past_eos():
    lab, _, clock = scripted(ids=(2,))
    assert run_once(lab, RequestShape(10, 10), clock=clock).ids.tolist() == [[2] * 10]


@pytest.mark.parametrize("length", [1, 2, 63, 64, 65, 256])
def test_the_model_sees_exactly_s_tokens(length):
    lab, model, clock = scripted()
    run_once(lab, RequestShape(length, 2, 3), clock=clock)
    assert model.passes[0][:2] == (3, length)


def test_prompts_of_the_wrong_length_are_refused():
    lab, model, _ = scripted()
    with pytest.raises(BadArgument):
        run_once(lab, RequestShape(10, 2, 2), [[1] * 10, [1] * 9])
    assert model.passes == []


def test_too_long_is_refused_before_anything_runs():
    lab, model, _ = scripted()
    with pytest.raises(ShapelabError):
        measure_shapes(lab, {"ok": RequestShape(5, 2), "long": RequestShape(400, 13, cached_tokens=100)}, progress=False)
    assert model.passes == []
    lab.check(RequestShape(400, 12, cached_tokens=100))


def test_warm_up_runs_the_shape_itself_with_at_least_two_tokens():
    lab, model, _ = scripted()
    for shape in (RequestShape(50, 1, 3), RequestShape(50, 300, 3)):
        model.passes.clear()
        warm_up(lab, shape)
        assert model.passes[0][:2] == (3, 50)
        assert model.passes[1][:2] == (3, 1)


def test_no_prompt_is_used_twice_not_even_by_the_warm_up():
    lab, model, clock = scripted()
    used, real = [], model.forward

    def spy(input_ids, **options):
        if input_ids.shape[1] > 1:
            used.extend(tuple(row) for row in input_ids.tolist())
        return real(input_ids, **options)

    model.forward = spy
    measure_shapes(lab, {"a": RequestShape(60, 2, 2), "b": RequestShape(200, 2)}, repeats=4, clock=clock, progress=False)
    assert len(used) == len(set(used)) == 5 * 3


def test_shapes_are_interleaved_and_each_repeat_is_kept():
    lab, _, clock = scripted()
    run = measure_shapes(lab, {"a": RequestShape(5, 2), "b": RequestShape(6, 2)}, repeats=8, clock=clock, progress=False)
    orders = {name: [r.order for r in run[name].repeats] for name in "ab"}
    assert sorted(orders["a"] + orders["b"]) == list(range(16))
    assert all({a, b} == {2 * i, 2 * i + 1} for i, (a, b) in enumerate(zip(orders["a"], orders["b"], strict=True)))
    assert orders["a"] != sorted(set(range(0, 16, 2))), "the order within a round is drawn, not fixed"
    assert [r.index for r in run["a"].repeats] == list(range(1, 9))


def test_drift_reaches_the_record():
    time = ScriptedTime()
    model = ScriptedModel(time)
    lab, clock = scripted_lab(model), HostClock(now=time)
    real = model.forward

    def slower(*args, **options):
        model.prefill_ms *= 1.05
        return real(*args, **options)

    model.forward = slower
    assert "slower" in measure_shapes(lab, {"a": RequestShape(5, 3)}, repeats=4, clock=clock, progress=False)["a"].drift


PASSES = 2  # of a shape with two output tokens


def stopped(stop_at: int, error, signals=()):
    """A scripted model that raises in the prefill of the run given (warm-ups count), and what it measures with."""
    lab, model, clock = scripted()
    real = model.forward

    def forward(*args, **options):
        if len(model.passes) == PASSES * (stop_at - 1):
            for number in signals:
                signal.raise_signal(number)
            raise error
        return real(*args, **options)

    model.forward = forward
    shapes = {"a": RequestShape(5, 2), "b": RequestShape(6, 2)}
    return lambda: measure_shapes(lab, shapes, repeats=5, clock=clock, progress=False)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), *OUT_OF_MEMORY[:3]], ids=["ctrl-c", "cuda", "python", "mps"])
def test_stopped_it_keeps_what_every_shape_has(error):
    run = stopped(2 + 4, error)()
    assert sorted(len(m.repeats) for m in run.measurements) == [1, 2]
    with pytest.raises((KeyboardInterrupt, DoesNotFit)):
        stopped(2 + 2, error)()


def test_a_second_ctrl_c_loses_nothing(tmp_path, monkeypatch):
    """The first stops the measuring, the second comes while it tidies up, a third between measuring and saving."""
    measure, real, calls = stopped(2 + 4, AssertionError("the signal came first"), [signal.SIGINT]), gc.collect, []

    def interrupted(*args):
        calls.append(1)
        if len(calls) == 2:
            signal.raise_signal(signal.SIGINT)
        return real(*args)

    monkeypatch.setattr(gc, "collect", interrupted)
    with keep_from_interrupts() as interrupts:
        run = measure()
        signal.raise_signal(signal.SIGINT)
        run.save(tmp_path / "r.jsonl")
    assert len(calls) >= 2 and interrupts.held
    assert sorted(len(m.repeats) for m in Run.load(tmp_path / "r.jsonl").measurements) == [1, 2]
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


@EVERY_OUT_OF_MEMORY
def test_out_of_memory_while_warming_up_is_a_sentence(error):
    with pytest.raises(DoesNotFit):
        stopped(2, error)()


def test_another_error_is_not_taken_for_a_lack_of_memory():
    for error in (RuntimeError("expected scalar type Half"), ValueError("out of memory of what was said")):
        with pytest.raises(type(error), match=str(error)):
            stopped(4, error)()


@pytest.mark.parametrize(
    "wrong", [{"repeats": 0}, {"repeats": 2.5}, {"repeats": 10**9}, {"seed": -1}, {"seed": 10**20}, {"seed": "a"}]
)
def test_repeats_and_seed_are_whole_numbers(wrong):
    lab, model, _ = scripted()
    with pytest.raises(BadArgument) as caught:
        measure_shapes(lab, {"a": RequestShape(5, 3)}, **wrong)
    assert caught.value.argument in wrong and model.passes == []


def test_numpys_numbers_are_numbers():
    lab, _, clock = scripted()
    run = measure_shapes(lab, {"a": RequestShape(5, 3)}, repeats=np.int64(2), seed=np.int32(7), clock=clock, progress=False)
    assert run.settings == Settings(repeats=2, seed=7) and len(run["a"].repeats) == 2


def test_what_no_file_can_hold_is_refused_before_it_is_measured():
    lab, model, _ = scripted()
    for shapes, repeats, argument in (
        ({"x" * 6_000: RequestShape(5, 3)}, 3, "shapes"),
        ({"a": RequestShape(5, 400)}, 10_000, "repeats"),
    ):
        with pytest.raises(BadArgument) as caught:
            measure_shapes(lab, shapes, repeats=repeats, progress=False)
        assert caught.value.argument == argument and model.passes == []


def test_peak_memory_is_the_runs_and_not_the_loaders(monkeypatch):
    log = []
    monkeypatch.setattr(torch.cuda, "reset_peak_memory_stats", log.append)
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda device: log.append(device) or 123)
    second = torch.device("cuda:1")
    with PeakMemory(second) as memory:
        log.append("run")
    assert log == [second, "run", second] and memory.peak_bytes == 123
    with PeakMemory(torch.device("cpu")) as memory:
        pass
    assert memory.peak_bytes is None and len(log) == 3


def test_memory_is_given_back_before_and_after_but_not_between(monkeypatch):
    lab, model, clock = scripted()
    given_back, real = [], gc.collect
    monkeypatch.setattr(gc, "collect", lambda *args: given_back.append(len(model.passes)) or real(*args))
    measure_shapes(lab, {"a": RequestShape(5, 3), "b": RequestShape(4, 2)}, repeats=2, clock=clock, progress=False)
    assert given_back == [0, len(model.passes)], "in between it would slow the next run"


@pytest.mark.parametrize("name", ["\ud800", 5, None, "x" * 5_001])
def test_a_name_that_no_file_can_hold_is_refused_before_anything_runs(name):
    lab, model, clock = scripted()
    with pytest.raises(BadArgument) as caught:
        measure_shapes(lab, {name: RequestShape(5, 3)}, clock=clock, progress=False)
    assert caught.value.argument == "shapes" and model.passes == []


def test_progress_obeys_no_name(capfd):
    lab, _, clock = scripted()
    measure_shapes(lab, {"a\x1b[31m\nb": RequestShape(5, 3)}, repeats=1, clock=clock)
    assert "\x1b[31m" not in capfd.readouterr().err
