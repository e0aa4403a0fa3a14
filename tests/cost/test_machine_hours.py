"""Machine-hours to USD: by hand, additive, and independent of the price where it must be."""

import pytest

from shapelab.cost.machine_hours import machine_cost
from shapelab.errors import BadArgument
from shapelab.request.shape import RAG, RequestShape
from tests.runs import MODEL


@pytest.mark.parametrize("batch", [1, 4, 16])
def test_by_hand(batch):
    shape = RequestShape(256, 17, batch)
    expected, found = MODEL.predict(shape), machine_cost(MODEL, shape, 3.60, 0.5)
    per_s = 0.001 / 0.5
    assert found.usd_per_request == pytest.approx(expected.total_s * per_s / batch)
    assert found.usd_per_million_input_tokens == pytest.approx(expected.ttft_s * per_s / (batch * 256) * 1e6)
    assert found.usd_per_million_output_tokens == pytest.approx(expected.tpot_s * per_s / batch * 1e6)
    parts = 256 * found.usd_per_million_input_tokens + 16 * found.usd_per_million_output_tokens
    assert parts / 1e6 == pytest.approx(found.usd_per_request), "input and output add up to the request"


def test_the_ratio_is_time_alone_and_falls_with_the_batch():
    one, expensive = machine_cost(MODEL, RAG, 0.1), machine_cost(MODEL, RAG, 90, 0.3)
    assert one.output_to_input_ratio == pytest.approx(expensive.output_to_input_ratio)
    assert one.output_to_input_ratio == pytest.approx(MODEL.predict(RAG).tpot_s * 1205 / MODEL.predict(RAG).ttft_s)
    batch = machine_cost(MODEL, RequestShape(256, 24, 16), 1)
    assert batch.output_to_input_ratio < machine_cost(MODEL, RequestShape(256, 24), 1).output_to_input_ratio


def test_half_the_hours_idle_is_twice_the_cost():
    assert machine_cost(MODEL, RAG, 1, 0.5).usd_per_request == pytest.approx(2 * machine_cost(MODEL, RAG, 1).usd_per_request)


def test_one_output_token_has_no_output_price():
    found = machine_cost(MODEL, RequestShape(100, 1), 1)
    assert found.usd_per_million_output_tokens is None and found.output_to_input_ratio is None
    assert found.usd_per_request > 0


@pytest.mark.parametrize("hour,used,word", [(-1, 1, "usd_per_hour"), (float("nan"), 1, "usd_per_hour"), (1, 0, "utilisation"), (1, 1.1, "utilisation"), (1, float("nan"), "utilisation")])  # fmt: skip
def test_absurd_prices_are_refused(hour, used, word):
    with pytest.raises(BadArgument) as caught:
        machine_cost(MODEL, RAG, hour, used)
    assert caught.value.argument == word


def test_a_machine_that_costs_nothing_has_a_ratio():
    free, paid = machine_cost(MODEL, RAG, 0), machine_cost(MODEL, RAG, 2)
    assert free.usd_per_request == 0 and free.output_to_input_ratio == paid.output_to_input_ratio


@pytest.mark.parametrize("value", ["1", None, True, float("nan")])
@pytest.mark.parametrize("argument", ["usd_per_hour", "utilisation"])
def test_what_is_no_number_is_refused(argument, value):
    with pytest.raises(BadArgument) as caught:
        machine_cost(MODEL, RAG, **{"usd_per_hour": 1, argument: value})
    assert caught.value.argument == argument
