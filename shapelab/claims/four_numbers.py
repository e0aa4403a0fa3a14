"""C5, C8 and C9: what each of the four numbers moves when it changes alone."""

from shapelab.claims.evidence import Estimate, Evidence, Point, Quantity, difference
from shapelab.claims.finding import Decision, decide
from shapelab.errors import NotEnoughMeasured

_FOUR = {
    "input_tokens": "input tokens",
    "output_tokens": "output tokens",
    "cached_tokens": "cached tokens",
    "batch_size": "batch size",
}
# What each number is expected to move, the plainest first. Output tokens cannot move TTFT: two ranges that lie apart there
# would be chance.
_MOVES: dict[str, tuple[Quantity, ...]] = {
    "input_tokens": ("ttft_s", "total_s"),
    "output_tokens": ("total_s",),
    "cached_tokens": ("tpot_s", "ttft_s"),
    "batch_size": ("tpot_s", "ttft_s"),
}
_TIMES = {"ttft_s": "TTFT", "tpot_s": "TPOT", "total_s": "total"}


def writing_costs_more_than_reading(evidence: Evidence) -> Decision:
    read, (short, long) = _marginal(evidence, "input_tokens", 1000)
    write, (few, many) = _marginal(evidence, "output_tokens", 200)
    if write.value <= 0:
        raise NotEnoughMeasured(f"{many.name} took no longer than {few.name}: measure again, on a quieter machine.")
    share = read.value / write.value
    return decide(
        share < 0.25, share,
        f"+1,000 input tokens {read.value:.2f} s ({read.spread()}), +200 output tokens {write.value:.2f} s ({write.spread()})",
        f"Reading the 1,000 takes {share:.0%} of the time of writing the 200; the claim needs less than 25 %. From the totals of "
        f"{short.name} and {long.name}, and of {few.name} and {many.name}.",
        (read, write),
    )  # fmt: skip


def four_numbers(evidence: Evidence) -> Decision:
    sentences, moved, rests_on = [], 0, []
    for number, words in _FOUR.items():
        line = evidence.along(number)
        if len(line) < 2:
            raise NotEnoughMeasured(f"This run has no two shapes that differ in {words} only.")
        ends = line[0], line[-1]
        start, end = (getattr(point.shape, number) for point in ends)
        times = {quantity: [point.estimate(quantity) for point in ends] for quantity in _MOVES[number]}
        times = {quantity: pair for quantity, pair in times.items() if None not in pair}
        rests_on += [each for pair in times.values() for each in pair]
        apart = [quantity for quantity, (a, b) in times.items() if a.apart(b)]
        moved += bool(apart)
        once = [quantity for quantity, pair in times.items() if any(each.interval is None for each in pair)]
        change = "nothing moved beyond its interval"
        if shown := next(iter(apart or once), None):
            a, b = times[shown]
            change = f"{_TIMES[shown]} {a.value:.3g} to {b.value:.3g} s"
        sentences.append(f"{words} {start:,} to {end:,}: {change}")
    return decide(
        moved == 4, moved, "; ".join(sentences),
        f"Changed one at a time, {moved} of the four numbers moved TTFT, TPOT or the total by more than the intervals.",
        rests_on,
    )  # fmt: skip


def decode_slows_with_context(evidence: Evidence) -> Decision:
    slope, (a, b) = tpot_slope(evidence)
    held, formula = evidence.kv_bytes_per_token()
    if not held or formula is None:
        raise NotEnoughMeasured("This run does not record how large its KV cache was, or which architecture ran.")
    shown = next((value for value in held if value != formula), formula)
    return decide(
        slope.above(0) and held == {formula}, slope.value,
        f"each 1,000 tokens of context add {slope.value * 1e6:.3g} ms to TPOT ({slope.spread('.3g', 1e6)}); "
        f"{shown:,.0f} bytes of KV cache a token",
        f"From {a.name} and {b.name}. The slope's interval must lie above 0, and the cache must hold what the formula says: "
        f"{formula:,.0f} bytes a token.",
        [slope],
    )  # fmt: skip


def tpot_slope(evidence: Evidence) -> tuple[Estimate, tuple[Point, Point]]:
    """Seconds that each token of context adds to TPOT, and the two shapes it comes from: the ends of a line.

    Along the cached tokens, where nothing but the context differs; without such a line along the input tokens.
    """
    lines = [evidence.along(number) for number in ("cached_tokens", "input_tokens")]
    line = next((line for line in lines if len(line) > 1 and all(p.shape.decode_steps for p in line)), None)
    if not line:
        raise NotEnoughMeasured("This run has no two shapes that differ in their context only.")
    a, b = line[0], line[-1]
    more_s = difference(b.estimate("tpot_s"), a.estimate("tpot_s"))
    return more_s.per(b.shape.prompt_tokens - a.shape.prompt_tokens), (a, b)


def _marginal(evidence: Evidence, number: str, more: int) -> tuple[Estimate, tuple[Point, Point]]:
    """Seconds that `more` tokens add to the total, and the two shapes whose distance is nearest to `more`."""

    def distance(pair: tuple[Point, Point]) -> int:
        return getattr(pair[1].shape, number) - getattr(pair[0].shape, number)

    line = evidence.along(number)
    pairs = [pair for a in line for b in line if distance(pair := (a, b)) >= more / 4]
    if not pairs:
        raise NotEnoughMeasured(f"This run has no two shapes that differ in {_FOUR[number]} only, by {more // 4:,} or more.")
    a, b = best = min(pairs, key=lambda pair: abs(distance(pair) - more))
    return difference(b.estimate("total_s"), a.estimate("total_s")).per(distance(best) / more), best
