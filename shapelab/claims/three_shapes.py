"""C1 to C4 and C6: what chat, rag and creative take beside each other."""

from collections.abc import Callable

from shapelab.claims.evidence import Evidence, Point, Quantity, estimate, ratio, write_to_read_ratio
from shapelab.claims.finding import Decision, decide
from shapelab.errors import NotEnoughMeasured
from shapelab.record.run import Run


def one_order_of_magnitude(evidence: Evidence) -> Decision:
    totals = {name: evidence[name].estimate("total_s") for name in ("chat", "rag", "creative")}
    fast, slow = (pick(totals, key=lambda name: totals[name].value) for pick in (min, max))
    times = ratio(totals[slow], totals[fast])
    return decide(
        times.value >= 10, times.value,
        f"{slow} {totals[slow].value:.2f} s, {fast} {totals[fast].value:.2f} s: {times.value:.1f} times",
        f"The slowest shape must take at least 10 times as long as the fastest; here it is {times.value:.1f} times. "
        "Creative runs 300 passes, chat 80, rag 24: passes alone give 12.5 at most, less where reading takes its share.",
        totals.values(),
    )  # fmt: skip


def highest_ttft_and_highest_total(evidence: Evidence) -> Decision:
    chat, rag, creative = (evidence[name] for name in ("chat", "rag", "creative"))
    reads, ttft_lead = _lead("ttft_s", rag, chat, creative)
    writes, total_lead = _lead("total_s", creative, chat, rag)
    ttft, total = rag.estimate("ttft_s"), creative.estimate("total_s")
    return decide(
        reads and writes, min(ttft_lead, total_lead),
        f"TTFT: rag {ttft.value:.3f} s; total: creative {total.value:.2f} s",
        f"RAG's shortest TTFT is {ttft_lead:.2f} times the longest of the others and creative's shortest total "
        f"{total_lead:.2f} times ({ttft.kind} of the repeats); both must be above 1.",
        [point.estimate(quantity) for point in (chat, rag, creative) for quantity in ("ttft_s", "total_s")],
    )  # fmt: skip


def _lead(quantity: Quantity, first: Point, *others: Point) -> tuple[bool, float]:
    """Whether the first lies above all others, and the low end of its interval over the highest end of theirs."""
    leader, rest = first.estimate(quantity), [other.estimate(quantity) for other in others]
    low = (leader.interval or (leader.value,))[0]
    return all(leader.above(other) for other in rest), low / max((e.interval or (e.value,))[-1] for e in rest)


def reading_is_cheap(evidence: Evidence) -> Decision:
    rag = evidence["rag"]
    ttft, write = rag.estimate("ttft_s"), rag.estimate("tpot_s")
    read_s, write_s = ttft.per(rag.shape.prefill_tokens).value, write.value
    return decide(
        read_s <= write_s / 10, read_s / write_s,
        f"{rag.shape.input_tokens:,} tokens in {ttft.value * 1e3:.0f} ms: {read_s * 1e3:.2f} ms a token",
        f"A token read costs 1/{write_s / read_s:.0f} of a token written ({write_s * 1e3:.1f} ms); the claim allows at most 1/10.",
        (ttft, write),
    )  # fmt: skip


def writing_is_expensive(evidence: Evidence) -> Decision:
    times = write_to_read_ratio(evidence["rag"])
    return decide(
        times.value >= 10 and times.above(1), times.value,
        f"{times.value:.0f} times a read token, {times.spread('.0f')}",
        f"A token written costs {times.value:.0f} tokens read here; the talk reported about 300. The claim needs at least 10, "
        "with the interval above 1. A pass with a high fixed cost and a fast prefill makes the ratio large.",
        [times],
    )  # fmt: skip


def small_requests_starve_the_hardware(evidence: Evidence) -> Decision:
    short, long = evidence["creative"], evidence["rag"]
    times = [point.estimate("ttft_s") for point in (short, long)]
    slow, fast = (point.shape.prefill_tokens / ttft.value for point, ttft in zip((short, long), times, strict=True))
    share, few, many = slow / fast, short.shape.input_tokens, long.shape.input_tokens
    return decide(
        share <= 1 / 4, share,
        f"{slow:,.0f} tok/s at {few} tokens, {fast:,.0f} at {many:,}: a share of {share:.2f}",
        f"A prompt of {few} tokens reaches {share:.2f} of the long prompt's prefill throughput; the "
        "claim allows at most 0.25. The larger the fixed cost of a pass beside its work, the more a short prompt loses.",
        times,
    )  # fmt: skip


def leader(run: Run, metric: Callable, lesson: str) -> tuple[str, str]:
    """The shape with the highest median of a metric, and the lesson; a warning in its place where another's interval overlaps.

    Raises NotEnoughMeasured where fewer than two shapes have a value.
    """
    values = {m.name: estimate(m.values(metric)) for m in run.measurements}
    estimates = {name: value for name, value in values.items() if value}
    if len(estimates) < 2:
        raise NotEnoughMeasured("A comparison needs at least two shapes that have a time.")
    first, second = sorted(estimates, key=lambda name: estimates[name].value, reverse=True)[:2]
    if estimates[first].above(estimates[second]):
        return first, lesson
    if estimates[first].interval is None or estimates[second].interval is None:
        return first, "But one repeat shows no spread: measure 3 times or more before you believe it."
    return first, f"But it is too close to call: the {estimates[first].kind} of {second} overlaps. Measure again."
