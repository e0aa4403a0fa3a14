"""Machine-hours to USD a token: what a request costs on a machine that is rented by the hour and kept busy with its like."""

from dataclasses import dataclass

from shapelab.errors import BadArgument
from shapelab.predict.machine import Machine
from shapelab.request.shape import RequestShape, real


@dataclass(frozen=True)
class MachineCost:
    """USD of one request in a batch of equal ones, split as the machine's time is split: prefill and decode.

    usd_per_million_output_tokens  of the tokens that decode steps write, N - 1 for each request; None at N = 1
    output_to_input_ratio          how many input tokens' machine time an output token takes: TPOT x S / TTFT. No price enters
    """

    shape: RequestShape
    usd_per_hour: float
    utilisation: float
    usd_per_request: float
    usd_per_million_input_tokens: float
    usd_per_million_output_tokens: float | None
    output_to_input_ratio: float | None


def machine_cost(machine: Machine, shape: RequestShape, usd_per_hour: float, utilisation: float = 1.0) -> MachineCost:
    """USD from time: the batch's seconds, shared by its B requests, at a price an hour.

    usd_per_hour  of the whole machine
    utilisation   share of the paid hours in which it works, above 0 to 1: the requests pay for the idle hours, too

    The batch is static: equal requests start and end together. Engines that mix prefill and decode share a little more.
    Raises BadArgument, and whatever the machine says of a shape that it cannot predict.
    """
    usd_per_hour, utilisation = real("usd_per_hour", usd_per_hour), real("utilisation", utilisation, above=True)
    if utilisation > 1:
        raise BadArgument(f"utilisation is a share of the hours, above 0 and up to 1, not {utilisation}.", "utilisation")
    expected = machine.predict(shape)
    usd_per_s = usd_per_hour / 3600 / utilisation
    prefill, decode = expected.ttft_s * usd_per_s, (expected.total_s - expected.ttft_s) * usd_per_s
    return MachineCost(
        shape, usd_per_hour, utilisation, (prefill + decode) / shape.batch_size,
        prefill / shape.prefill_tokens * 1e6, decode / shape.decode_tokens * 1e6 if shape.decode_steps else None,
        expected.tpot_s * shape.input_tokens / expected.ttft_s if shape.decode_steps and expected.ttft_s else None,
    )  # fmt: skip
