"""C10: whether the machine's time explains why an output token costs more than an input token."""

from shapelab.claims.evidence import Evidence, cost_ratio
from shapelab.claims.finding import Decision, decide
from shapelab.cost.price_list import load_prices, median_output_to_input_ratio
from shapelab.errors import NotEnoughMeasured


def physics_sets_the_price(evidence: Evidence, median_price_ratio: float | None = None) -> Decision:
    """From one shape at several batch sizes. median_price_ratio: output over input price, by default that of the price list."""
    if median_price_ratio is None:
        median_price_ratio = median_output_to_input_ratio(load_prices())
    ratios, prompt = {}, 0
    for point in evidence.along("batch_size"):
        times = [point.estimate(quantity) for quantity in ("ttft_s", "tpot_s")]
        if all(time and time.positive for time in times):  # else nothing was decoded, or a clock stood still
            ratios[point.shape.batch_size], prompt = cost_ratio(point), point.shape.input_tokens
    if 1 not in ratios or len(ratios) < 2:
        raise NotEnoughMeasured("This run has no shape of 2 output tokens or more at batch 1 and at a larger batch.")
    alone = ratios[1]
    below = [batch for batch, ratio in ratios.items() if ratio.value < median_price_ratio]
    fell = f"From batch {below[0]} on it is below the price ratio here. " if below and below[0] > 1 else ""
    shown = ", ".join(f"{ratio.value:.1f} at batch {batch} ({ratio.spread('.1f')})" for batch, ratio in ratios.items())
    return decide(
        alone.value >= median_price_ratio, alone.value,
        f"at prompts of {prompt:,} tokens, an output token takes as much machine time as this many input tokens: {shown}; median public price ratio {median_price_ratio:.1f}",
        f"At batch 1 the machine's ratio must reach the price ratio. {fell}All requests of a batch share one read of the weights, so what "
        "physics explains of a price depends on the batch that a provider runs and on the length of the prompts. Where a step "
        "waits for overhead, the ratio comes from software.",
        [alone],
    )  # fmt: skip
