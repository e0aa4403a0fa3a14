"""Recorded machines: whole, described, enough to fit a latency model; reported figures: labelled so."""

import pytest

from shapelab.claims.registry import FOUR_NUMBERS, THREE_SHAPES, findings
from shapelab.errors import UnknownName
from shapelab.predict.latency import LatencyModel
from shapelab.record.recorded import menu, recorded, recorded_runs, reported
from shapelab.request.shape import RAG


def test_there_are_recorded_runs_and_a_menu_of_them():
    assert [entry["name"] for entry in menu()] == recorded_runs() != []
    for entry in menu():
        assert all(entry.values()) and entry["shapes"] >= 6


@pytest.mark.parametrize("name", recorded_runs())
def test_a_recorded_run_says_whose_it_is_and_can_be_fitted(name):
    run = recorded(name)
    where = run.environment
    assert where.model and where.weight_dtype and where.spec and where.threads and where.measured_at.startswith("20")
    low, high = LatencyModel.fit(run).predict(RAG).total_interval_s
    assert 0 < low < high < 2 * low


def test_the_recorded_cpu_decides_the_claims_of_shapes_and_sweeps():
    found = findings(recorded("xeon-2cpu-smollm2-135m-float32"), (*THREE_SHAPES, *FOUR_NUMBERS))
    assert all(f.verdict != "not_measured" for f in found)
    assert {f.id: f.verdict for f in found}["C8"] == "holds"


def test_an_unknown_name():
    with pytest.raises(UnknownName) as caught:
        recorded("nobody")
    assert caught.value.argument == "name"


def test_the_talks_figures_are_reported_and_agree_with_each_other():
    talk = reported()
    figures = talk["figures"]
    assert talk["kind"] == "reported" and "nobody here measured" in talk["source"]
    assert figures["rag_ttft_s"] / figures["rag_input_tokens"] == pytest.approx(figures["prefill_s_per_token"], rel=0.01)
    middle = (figures["tpot_low_s"] + figures["tpot_high_s"]) / 2
    assert middle / figures["prefill_s_per_token"] == pytest.approx(figures["write_to_read_ratio"], rel=0.1)
    assert set(talk["claims"]) == {f"C{n}" for n in range(1, 13)}
