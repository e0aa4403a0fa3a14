"""The talk's claims, decided by the learner's own run: reported, measured here, verdict, and why.

The reported figures come from a talk that ran TinyLlama 1.1B on one NVIDIA T4. Nobody here measured them.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Literal

from shapelab.classroom.html import Card
from shapelab.classroom.tables import html_table
from shapelab.measure import metrics
from shapelab.measure.record import Measurement, Run
from shapelab.request.shape import PRESETS

Verdict = Literal["holds", "does_not_hold", "not_measured"]


@dataclass(frozen=True)
class Finding:
    """One claim, decided. `value` is the measured number that the verdict rests on; None where nothing was measured."""

    id: str
    claim: str
    reported: str
    measured: str
    verdict: Verdict
    why: str
    value: float | None = None


def one_order_of_magnitude(run: Run) -> Finding:
    totals = {m.name: m.median(metrics.total_s) for m in run.measurements if m.name in ("chat", "rag", "creative")}
    fast, slow = min(totals, key=totals.get), max(totals, key=totals.get)
    ratio = totals[slow] / totals[fast]
    return _decided(
        "C1", ratio >= 10, ratio,
        f"{slow} {totals[slow]:.2f} s, {fast} {totals[fast]:.2f} s: {ratio:.1f} times",
        f"The slowest shape must take at least 10 times as long as the fastest; here it is {ratio:.1f} times. "
        "Creative runs 300 passes, chat 80, rag 24: passes alone give 12.5 at most, less where reading takes its share.",
    )  # fmt: skip


def highest_ttft_and_highest_total(run: Run) -> Finding:
    ttft_lead = _lead(run, "rag", metrics.ttft_s)
    total_lead = _lead(run, "creative", metrics.total_s)
    kind = run["rag"].interval_kind
    return _decided(
        "C2", ttft_lead > 1 and total_lead > 1, min(ttft_lead, total_lead),
        f"TTFT: rag {run['rag'].median(metrics.ttft_s):.3f} s; total: creative {run['creative'].median(metrics.total_s):.2f} s",
        f"RAG's shortest TTFT is {ttft_lead:.2f} times the longest of the others and creative's shortest total "
        f"{total_lead:.2f} times ({kind} of the repeats); both must be above 1.",
    )  # fmt: skip


def reading_is_cheap(run: Run) -> Finding:
    rag = run["rag"]
    read_s, write_s = rag.median(_read_s), rag.median(metrics.tpot_s)
    return _decided(
        "C3", read_s <= write_s / 10, read_s / write_s,
        f"{rag.input_tokens:,} tokens in {rag.median(metrics.ttft_s) * 1e3:.0f} ms: {read_s * 1e3:.2f} ms a token",
        f"A token read costs 1/{write_s / read_s:.0f} of a token written ({write_s * 1e3:.1f} ms); at most 1/10 is needed.",
    )  # fmt: skip


def writing_is_dear(run: Run) -> Finding:
    ratio, (low, high) = write_to_read_ratio(run["rag"])
    return _decided(
        "C4", ratio >= 10 and low > 1, ratio,
        f"{ratio:.0f} times a read token, {run['rag'].interval_kind} {low:.0f} to {high:.0f}",
        f"A token written costs {ratio:.0f} tokens read here; the talk reported about 300. At least 10, with the "
        "interval above 1, is needed. A pass with a high fixed cost and a fast prefill makes the ratio large.",
    )  # fmt: skip


def small_requests_starve_the_hardware(run: Run) -> Finding:
    short, long = run["creative"], run["rag"]
    slow, fast = short.median(metrics.prefill_tokens_per_s), long.median(metrics.prefill_tokens_per_s)
    share = slow / fast
    return _decided(
        "C6", share <= 1 / 4, share,
        f"{slow:,.0f} tok/s at {short.input_tokens} tokens, {fast:,.0f} at {long.input_tokens:,}: a share of {share:.2f}",
        f"A prompt of {short.input_tokens} tokens reaches {share:.2f} of the long prompt's prefill throughput; at most "
        "0.25 is needed. The larger the fixed cost of a pass beside its work, the more a short prompt loses.",
    )  # fmt: skip


def leader(run: Run, metric, lesson: str) -> tuple[str, str]:
    """The shape with the highest median, and the lesson; or a warning instead, where another's interval overlaps."""
    order = sorted(run.measurements, key=lambda m: m.median(metric), reverse=True)
    first, second = order[0], order[1]
    if first.interval(metric)[0] > second.interval(metric)[1]:
        return first.name, lesson
    return first.name, f"But it is too close to call: the {first.interval_kind} of {second.name} overlaps. Measure again."


def write_to_read_ratio(measurement: Measurement) -> tuple[float, tuple[float, float]]:
    """TPOT over prefill time a token, and its interval: from the ranges below 6 repeats, else by bootstrap."""
    writes, reads = measurement.values(metrics.tpot_s), measurement.values(_read_s)

    def ratio(a, b):
        return metrics.median(a) / metrics.median(b)

    if measurement.interval_kind == "range":
        return ratio(writes, reads), (min(writes) / max(reads), max(writes) / min(reads))
    return ratio(writes, reads), metrics.bootstrap_interval([writes, reads], ratio)


@dataclass(frozen=True)
class _Claim:
    id: str
    claim: str
    reported: str
    needs: tuple[str, ...]
    decide: Callable[[Run], Finding]


_CLAIMS = (
    _Claim("C1", "Shape alone moves total latency by an order of magnitude.",
           "a little over 3 s against almost 40 s", ("chat", "rag", "creative"), one_order_of_magnitude),
    _Claim("C2", "The RAG shape has the highest TTFT, the creative shape the highest total latency.",
           "RAG reads over 1,000 tokens; creative takes about 39 s", ("chat", "rag", "creative"), highest_ttft_and_highest_total),
    _Claim("C3", "Reading is cheap.",
           "1,205 input tokens in about 530 ms, about 0.44 ms a token", ("rag",), reading_is_cheap),
    _Claim("C4", "Writing is dear.",
           "110-170 ms an output token, about 300 times a read token", ("rag",), writing_is_dear),
    _Claim("C6", "A small request starves the hardware.",
           "25 input tokens reach 1/16 of the prefill throughput of 1,000 and more", ("rag", "creative"), small_requests_starve_the_hardware),
)  # fmt: skip


def findings(run: Run) -> list[Finding]:
    """Every claim that three shapes can decide, in order. A claim whose shapes were not measured says so."""
    return [_find(claim, run) for claim in _CLAIMS]


def as_records(found: list[Finding]) -> list[dict]:
    """The findings as plain dictionaries, for JSON."""
    return [asdict(finding) for finding in found]


def claims_table(found: list[Finding]) -> Card:
    """The findings as a table for a notebook: reported, measured here, verdict, why."""
    headings = ("claim", "reported (TinyLlama 1.1B, T4)", "measured here", "verdict", "why")
    body = [(f"{f.id}. {f.claim}", f.reported, f.measured, f.verdict.replace("_", " "), f.why) for f in found]
    return Card("\n".join(f"{f.id} {f.verdict}: {f.measured}. {f.why}" for f in found), html_table(headings, body))


def _find(claim: _Claim, run: Run) -> Finding:
    missing = [name for name in claim.needs if name not in run]
    if missing:
        return _finding(claim, "-", "not_measured", f"This run has no {' and no '.join(missing)} shape.")
    for name in claim.needs:
        if run[name].shape != PRESETS[name]:
            why = f"The {name} of this run is {run[name].shape}; the claim is about {PRESETS[name]}."
            return _finding(claim, "-", "not_measured", why)
    needed = [value for name in claim.needs for metric in (_read_s, metrics.tpot_s) for value in run[name].values(metric)]
    if not all(needed):
        return _finding(
            claim, "-", "not_measured", "A shape with one output token, or a clock that stood still, cannot decide it."
        )
    finding = claim.decide(run)
    unsteady = [name for name in claim.needs if run[name].drift]
    if not unsteady:
        return finding
    note = f" Careful: {', '.join(unsteady)} drifted while it was measured; measure again before you believe this."
    return replace(finding, why=finding.why + note)


def _finding(claim: _Claim, measured: str, verdict: Verdict, why: str, value: float | None = None) -> Finding:
    return Finding(claim.id, claim.claim, claim.reported, measured, verdict, why, value)


def _decided(number: str, holds: bool, value: float, measured: str, why: str) -> Finding:
    claim = next(claim for claim in _CLAIMS if claim.id == number)
    return _finding(claim, measured, "holds" if holds else "does_not_hold", why, value)


def _read_s(timeline: metrics.Timeline) -> float:
    """Prefill time for each token read."""
    return metrics.ttft_s(timeline) / (timeline.batch_size * timeline.input_tokens)


def _lead(run: Run, name: str, metric) -> float:
    """Low end of one shape's interval over the highest end of the other two's: above 1, they do not overlap."""
    others = [run[other].interval(metric)[1] for other in ("chat", "rag", "creative") if other != name]
    return run[name].interval(metric)[0] / max(others)
