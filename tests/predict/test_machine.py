"""Everything that predicts keeps one promise, whatever it was made from."""

import typing
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shapelab.cost.machine_hours import machine_cost
from shapelab.errors import DoesNotFit
from shapelab.predict.latency import LatencyModel
from shapelab.predict.machine import Machine
from shapelab.predict.roofline_machine import RooflineMachine
from shapelab.record.machine_ceilings import Limits
from shapelab.request.shape import RAG, RequestShape
from shapelab.theory.hardware import gpu
from shapelab.theory.model_spec import ModelSpec
from tests.runs import MODEL, RUN

SPEC = ModelSpec.from_config("smollm2-135m")
LIMITS = Limits(memory_read_bytes_per_s=30e9, flops_per_s=4e11, overhead_s=0.006, measured_at="2026-11-30")
MACHINES: dict[str, Machine] = {
    "measured": MODEL,
    "with limits": MODEL.model_copy(
        update={"limits": LIMITS, "environment": MODEL.environment.model_copy(update={"spec": SPEC})}
    ),
    "recorded": LatencyModel.fit(RUN, kind="recorded"),
    "roofline": RooflineMachine(gpu("T4"), SPEC, "smollm2-135m", "float16", 0.005),
}
every_machine = pytest.mark.parametrize("name", MACHINES)
shapes = st.builds(RequestShape, st.integers(1, 1500), st.integers(1, 500), st.integers(1, 16), st.integers(0, 1500))


@every_machine
@given(shape=shapes)
@settings(max_examples=30, deadline=None)
def test_a_request_is_one_prefill_and_its_steps(name, shape):
    machine = MACHINES[name]
    p, ttft = machine.predict(shape), machine.prefill_s(shape)
    step = machine.step_s(shape.mean_decode_context, shape.batch_size)
    assert p.shape == shape and p.ttft_s == ttft > 0
    assert p.tpot_s == (step if shape.decode_steps else None)
    assert p.total_s == pytest.approx(ttft + shape.decode_steps * step)
    for value, ends in ((p.ttft_s, p.ttft_interval_s), (p.tpot_s, p.tpot_interval_s), (p.total_s, p.total_interval_s)):
        assert (value is None and ends is None) or 0 < ends[0] <= value <= ends[1]


@every_machine
@given(shape=shapes, number=st.sampled_from(["input_tokens", "output_tokens", "batch_size", "cached_tokens"]))
@settings(max_examples=30, deadline=None)
def test_more_never_takes_less(name, shape, number):
    machine = MACHINES[name]
    more = replace(shape, **{number: getattr(shape, number) + 64})
    assert machine.predict(more).total_s >= machine.predict(shape).total_s
    assert machine.prefill_s(more) >= machine.prefill_s(shape) * (1 - 1e-12)
    assert machine.step_s(1000, 2) >= machine.step_s(10, 2) >= machine.step_s(10, 1)


@every_machine
def test_what_a_caption_needs(name):
    machine = MACHINES[name]
    promised = {name for name, value in vars(Machine).items() if isinstance(value, property)}
    assert promised == {"label", "kind", "spec", "dtype", "usable_bytes", "assumption"}
    assert machine.kind in typing.get_args(typing.get_type_hints(Machine.kind.fget)["return"])
    assert machine.label and machine.dtype in machine.label
    assert isinstance(machine.assumption, str) and bool(machine.assumption) == (machine.kind == "roofline")
    assert machine.spec is None or isinstance(machine.spec, ModelSpec)
    assert machine.usable_bytes is None or machine.usable_bytes > 1e9


@every_machine
def test_what_its_passes_wait_for(name):
    machine = MACHINES[name]
    if name in ("measured", "recorded"):  # these runs kept no limits
        assert machine.verdicts(RAG) == {}
        return
    assert list(machine.verdicts(RAG)) == ["prefill", "decode"]
    assert list(machine.verdicts(RequestShape(100, 1))) == ["prefill"]
    assert machine.verdicts(RAG)["decode"].measured_s == machine.predict(RAG).tpot_s


@every_machine
def test_a_machine_hour_buys_requests(name):
    cost = machine_cost(MACHINES[name], RAG, 3.6)
    assert cost.usd_per_request == pytest.approx(MACHINES[name].predict(RAG).total_s / 1000)


def test_a_fitted_machine_says_whose_it_is():
    assert MODEL.kind == "measured" and MACHINES["recorded"].kind == "recorded"
    assert MACHINES["recorded"].predict(RAG) == MODEL.predict(RAG)


def test_a_data_sheet_knows_memory_and_context():
    machine = MACHINES["roofline"]
    assert machine.usable_bytes == gpu("T4").usable_bytes and "5 ms" in machine.assumption
    for call in (machine.prefill_s, machine.predict, machine.verdicts):
        with pytest.raises(DoesNotFit):
            call(RequestShape(8190, 3))
