"""The talk's claims, decided by the learner's own run: reported, measured here, verdict, and why.

The reported figures come from a talk that ran TinyLlama 1.1B on one NVIDIA T4. Nobody here measured them.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Literal

from shapelab.cost.price_list import load_prices, median_output_to_input_ratio
from shapelab.predict.latency import LatencyModel
from shapelab.record import metrics
from shapelab.record.measurement import Measurement, Repeat
from shapelab.record.recorded import reported
from shapelab.record.run import Run
from shapelab.request.shape import PRESETS
from shapelab.theory import roofline
from shapelab.theory.arithmetic import kv_bytes_per_token

Verdict = Literal["holds", "does_not_hold", "not_measured"]
_REPORTED = reported()["claims"]
_FOUR = {
    "input_tokens": "input tokens",
    "output_tokens": "output tokens",
    "cached_tokens": "cached tokens",
    "batch_size": "batch size",
}
# What each number is expected to move, the plainest first. Output tokens cannot move TTFT: two ranges that lie apart there
# would be chance.
_MOVES = {
    "input_tokens": (metrics.ttft_s, metrics.total_s),
    "output_tokens": (metrics.total_s,),
    "cached_tokens": (metrics.tpot_s, metrics.ttft_s),
    "batch_size": (metrics.tpot_s, metrics.ttft_s),
}
_TIMES = {metrics.ttft_s: "TTFT", metrics.tpot_s: "TPOT", metrics.total_s: "total"}


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
    predicted: str = "-"


class _NotMeasured(Exception):
    """What a run lacks to decide a claim."""


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


def writing_costs_more_than_reading(run: Run) -> Finding:
    read, read_ends, (short, long) = _marginal(run, "input_tokens", 1000)
    write, write_ends, (few, many) = _marginal(run, "output_tokens", 200)
    if write <= 0:
        raise _NotMeasured(f"{many.name} took no longer than {few.name}: measure again, on a quieter machine.")
    return _decided(
        "C5", read < 0.25 * write, read / write,
        f"+1,000 input tokens {read:.2f} s ({short.interval_kind} {read_ends[0]:.2f} to {read_ends[1]:.2f}), +200 output tokens "
        f"{write:.2f} s ({few.interval_kind} {write_ends[0]:.2f} to {write_ends[1]:.2f})",
        f"Reading the thousand takes {read / write:.0%} of writing the two hundred; less than 25 % is needed. From the totals of "
        f"{short.name} and {long.name}, and of {few.name} and {many.name}.",
    )  # fmt: skip


def four_numbers(run: Run) -> Finding:
    said, moved = [], 0
    for number, words in _FOUR.items():
        low, high = _ends_of_line(run, number)
        found = [metric for metric in _MOVES[number] if _apart(low, high, metric)]
        if found:
            moved += 1
            shown = found[0]
            said.append(
                f"{words} {getattr(low, number):,} to {getattr(high, number):,}: {_TIMES[shown]} {low.median(shown):.3g} to "
                f"{high.median(shown):.3g} s"
            )
        else:
            said.append(f"{words} {getattr(low, number):,} to {getattr(high, number):,}: nothing moved beyond its interval")
    return _decided(
        "C8", moved == 4, moved, "; ".join(said),
        f"{moved} of the four numbers, each changed alone, moved TTFT, TPOT or total so far that the intervals lie apart.",
    )  # fmt: skip


def decode_slows_with_context(run: Run) -> Finding:
    slope, (low, high), (a, b) = tpot_slope(run)
    held, formula = _kv_bytes(run)
    return _decided(
        "C9", low > 0 and held == formula, slope,
        f"each 1,000 tokens of context add {slope * 1e6:.3g} ms to TPOT ({a.interval_kind} {low * 1e6:.3g} to {high * 1e6:.3g}); "
        f"{held:,.0f} bytes of KV cache a token",
        f"From {a.name} and {b.name}. The slope's interval must lie above 0, and the cache must hold what the formula says: "
        f"{formula:,.0f} bytes a token.",
    )  # fmt: skip


def tpot_slope(run: Run) -> tuple[float, tuple[float, float], tuple[Measurement, Measurement]]:
    """Seconds that each token of context adds to TPOT, its range, and the two shapes it comes from: the ends of a line.

    Taken along the cached tokens, where nothing but the context differs; else along the input tokens.
    """
    lines = [run.along(number) for number in ("cached_tokens", "input_tokens")]
    line = next((line for line in lines if len(line) > 1 and all(m.output_tokens > 1 for m in line)), None)
    if not line:
        raise _NotMeasured("This run has no two shapes that differ in their context only.")
    a, b = line[0], line[-1]
    more = b.shape.prompt_tokens - a.shape.prompt_tokens
    return *difference(a, b, metrics.tpot_s, 1 / more), (a, b)


def compute_and_memory(prefill: roofline.Verdict, decode: roofline.Verdict) -> Finding:
    """C7, from the verdicts on a long prefill and on a decode step."""

    def said(v: roofline.Verdict) -> str:
        return f"{v.phase}: {', '.join(f'{name} {share:.0%}' for name, share in v.shares.items())} of {v.measured_s * 1e3:.1f} ms"

    notes = " ".join((*prefill.notes, *decode.notes))
    return _decided(
        "C7", prefill.regime == "compute" and decode.regime == "memory", decode.shares["memory"],
        f"{said(prefill)}; {said(decode)}",
        f"Prefill is {prefill.regime}-bound and decode {decode.regime}-bound here, by the largest share of the measured time; "
        f"{prefill.unexplained:.0%} and {decode.unexplained:.0%} are explained by none. {notes}".strip(),
    )  # fmt: skip


def _regimes_of_a_run(run: Run) -> Finding:
    spec, limits, rag = run.environment.spec, run.limits, run["rag"]
    if limits is None or spec is None:
        raise _NotMeasured(_WHERE["C7"])
    found = roofline.verdicts(
        spec, rag.shape, rag.median(metrics.ttft_s), rag.median(metrics.tpot_s), limits.device, run.environment.weight_dtype, limits.overhead_s
    )  # fmt: skip
    finding = compute_and_memory(found["prefill"], found["decode"])
    return replace(finding, why=f"{finding.why} By shares only; notebook 04 adds the experiments.")


def prefix_caching(run: Run) -> Finding:
    """C11 for prefix caching: the same prompt with a part of it cached and without, as far apart as the run has them."""
    pairs = [
        (off, on) for off in run.measurements for on in run.measurements
        if not off.cached_tokens and on.cached_tokens and off.shape.prompt_tokens == on.shape.prompt_tokens
        and (off.output_tokens, off.batch_size) == (on.output_tokens, on.batch_size)
    ]  # fmt: skip
    if not pairs:
        raise _NotMeasured(_WHERE["C11"])
    off, on = max(pairs, key=lambda pair: pair[1].cached_tokens)
    ends = [(m.median(metrics.ttft_s), *m.interval(metrics.ttft_s)) for m in (off, on)]
    return technique(f"prefix caching, TTFT of {off.shape} and {on.shape}", *ends)


def physics_sets_the_price(measured: Sequence[Measurement], median_price_ratio: float) -> Finding:
    """C10, from one shape measured at several batch sizes, and the median public ratio of output to input price."""
    usable = [m for m in measured if all(m.values(metrics.tpot_s)) and all(m.values(metrics.ttft_s))]  # no clock that stood still
    ratios = {m.batch_size: cost_ratio(m) for m in usable}
    kinds = {m.batch_size: m.interval_kind for m in usable}
    if 1 not in ratios or len(ratios) < 2:
        claim = next(claim for claim in _ELSEWHERE if claim.id == "C10")
        return _finding(claim, "-", "not_measured", "It is decided at batch 1, by a shape of 2 output tokens or more.")
    shown = ", ".join(
        f"{ratio:.1f} at batch {batch} ({kinds[batch]} {low:.1f} to {high:.1f})"
        for batch, (ratio, (low, high)) in sorted(ratios.items())
    )
    alone = ratios[1][0]
    below = [batch for batch, (ratio, _) in sorted(ratios.items()) if ratio < median_price_ratio]
    fell = f"From batch {below[0]} on it is below the price ratio here. " if below and below[0] > 1 else ""
    return _decided(
        "C10", alone >= median_price_ratio, alone,
        f"with {usable[0].input_tokens:,} input tokens, an output token takes the machine time of so many of them: {shown}; median public price ratio {median_price_ratio:.1f}",
        f"At batch 1 the machine's ratio must reach the price ratio. {fell}A batch shares decode's weight reads, so what physics "
        "explains of a price depends on the batch that a provider runs, and on the length of the prompts. Where a step waits for "
        "overhead, the ratio is software's and not physics'.",
    )  # fmt: skip


def technique(name: str, off: Sequence[float], on: Sequence[float], unit: str = "ms", factor: float = 1e3) -> Finding:
    """C11 for one technique: seconds in the phase it names, (median, low, high) with it off and on; they must not overlap."""
    claim = next(claim for claim in _ELSEWHERE if claim.id == "C11")
    shown = [f"{middle * factor:.1f} {unit} ({low * factor:.1f} to {high * factor:.1f})" for middle, low, high in (off, on)]
    holds = on[2] < off[1]
    return replace(
        _finding(claim, f"{name}: off {shown[0]}, on {shown[1]}", "holds" if holds else "does_not_hold",
                 f"Switched on, it must be faster beyond the intervals; they {'lie apart' if holds else 'do not lie apart that way'}. "
                 "The other techniques of this claim are not decided here.", off[0] / on[0] if on[0] else None),
        claim=f"{claim.claim} Here: {name}.",
    )  # fmt: skip


def cost_ratio(m: Measurement) -> tuple[float, tuple[float, float]]:
    """Machine time of an output token in input tokens, and its interval: (TPOT / B) / (TTFT / (B S)) = TPOT x S / TTFT."""
    ratio, (low, high) = write_to_read_ratio(m)  # takes the whole step for a token: a batch shares it
    return ratio / m.batch_size, (low / m.batch_size, high / m.batch_size)


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
    """needs: presets that must be measured. by_input: of those, only what is read counts, not what is written."""

    id: str
    claim: str
    reported: str
    needs: tuple[str, ...]
    decide: Callable[[Run], Finding] | None = None
    by_input: bool = False


_CLAIMS = (
    _Claim("C1", "Shape alone moves total latency by an order of magnitude.",
           _REPORTED["C1"], ("chat", "rag", "creative"), one_order_of_magnitude),
    _Claim("C2", "The RAG shape has the highest TTFT, the creative shape the highest total latency.",
           _REPORTED["C2"], ("chat", "rag", "creative"), highest_ttft_and_highest_total),
    _Claim("C3", "Reading is cheap.", _REPORTED["C3"], ("rag",), reading_is_cheap),
    _Claim("C4", "Writing is dear.", _REPORTED["C4"], ("rag",), writing_is_dear),
    _Claim("C5", "1,000 more input tokens cost far less than 200 more output tokens.",
           _REPORTED["C5"], (), writing_costs_more_than_reading),
    _Claim("C6", "A small request starves the hardware.",
           _REPORTED["C6"], ("rag", "creative"), small_requests_starve_the_hardware, by_input=True),
    _Claim("C7", "Prefill is compute-bound, decode is memory-bandwidth-bound.", _REPORTED["C7"], ("rag",), _regimes_of_a_run),
    _Claim("C8", "A request is four numbers: input tokens, output tokens, context length, batch size.",
           _REPORTED["C8"], (), four_numbers),
    _Claim("C9", "The KV cache grows with every token, and decode slows with it.",
           _REPORTED["C9"], (), decode_slows_with_context),
)  # fmt: skip
_ELSEWHERE = (
    _Claim("C10", "Output tokens are priced above input tokens because of the physics.", _REPORTED["C10"], ()),
    _Claim("C11", "Each serving technique attacks one part of the shape.", _REPORTED["C11"], ()),
    _Claim("C12", "Five questions profile an application.", _REPORTED["C12"], ()),
)  # decided by more than a run, or by a line or pair in it: see physics_sets_the_price, technique
_WHERE = {
    "C7": "It needs the rag shape and the machine's limits: `shapelab run` measures both, notebook 04 takes them apart.",
    "C10": "It needs one shape at batch 1 and at larger batches; notebook 07 measures it.",
    "C11": "It needs one prompt with a part of it cached and without: `shapelab run --shapes 1088x8,1024+64x8`. Notebook 06 "
    "decides it for grouped-query attention, too; the other techniques are not in this course yet.",
    "C12": "It needs a log of real requests, and is not in this course yet.",
}
THREE_SHAPES = ("C1", "C2", "C3", "C4", "C6")
FOUR_NUMBERS = ("C5", "C6", "C8", "C9")


def findings(run: Run, ids: Sequence[str] = THREE_SHAPES, model: LatencyModel | None = None) -> list[Finding]:
    """The named claims, decided by a run, in order. A claim whose shapes were not measured says so.

    model  fitted to other measurements: what it would have said for the same shapes stands as `predicted`.
    """
    chosen = [claim for claim in _CLAIMS if claim.id in ids]
    found = [_find(claim, run) for claim in chosen]
    if model is None:
        return found
    guessed = [_find(claim, _predicted_run(model, run)) for claim in chosen]
    return [replace(a, predicted=b.measured) for a, b in zip(found, guessed, strict=True)]


def all_findings(runs: Sequence[Run]) -> list[Finding]:
    """C1 to C12 from any number of runs: each claim by the first run that can decide it, else not measured and why."""
    decided = {claim.id: [_find(claim, run) for run in runs] for claim in _CLAIMS}
    decided["C10"] = [_price_of_a_batch(run) for run in runs]
    decided["C11"] = [finding for run in runs for finding in _prefix_caching(run)]
    found = []
    for claim in sorted((*_CLAIMS, *_ELSEWHERE), key=lambda claim: int(claim.id[1:])):
        tries = decided.get(claim.id, [])
        first = next((finding for finding in tries if finding.verdict != "not_measured"), tries[-1] if tries else None)
        if first is None or (first.verdict == "not_measured" and claim.id in _WHERE):
            first = _finding(claim, "-", "not_measured", _WHERE.get(claim.id, "There is no run yet: `shapelab run` makes one."))
        found.append(first)
    return found


def _prefix_caching(run: Run) -> list[Finding]:
    try:
        return [prefix_caching(run)]
    except _NotMeasured:
        return []


def _price_of_a_batch(run: Run) -> Finding:
    return physics_sets_the_price(run.along("batch_size"), median_output_to_input_ratio(load_prices()))


def as_records(found: list[Finding]) -> list[dict]:
    """The findings as plain dictionaries, for JSON."""
    return [asdict(finding) for finding in found]


def _find(claim: _Claim, run: Run) -> Finding:
    try:
        needed = [_preset(claim, run, name) for name in claim.needs]
        used = replace(run, measurements=needed) if needed else run
        finding = claim.decide(used)
    except _NotMeasured as missing:
        return _finding(claim, "-", "not_measured", str(missing))
    unsteady = [str(m.shape) for m in used.measurements if m.drift]
    if not unsteady:
        return finding
    note = f" Careful: {', '.join(unsteady)} drifted while it was measured; measure again before you believe this."
    return replace(finding, why=finding.why + note)


def _preset(claim: _Claim, run: Run, name: str) -> Measurement:
    """The measurement of a preset's shape, under the preset's name, whatever the run calls it."""
    preset = PRESETS[name]

    def reads_alike(m: Measurement) -> bool:
        return (m.input_tokens, m.batch_size, m.cached_tokens) == (preset.input_tokens, 1, 0)

    fitting = [m for m in run.measurements if m.shape == preset or (claim.by_input and reads_alike(m))]
    found = next((m for m in fitting if m.name == name), fitting[0] if fitting else None)
    if found is None and name in run:
        raise _NotMeasured(f"The {name} of this run is {run[name].shape}; the claim is about {preset}.")
    if found is None:
        raise _NotMeasured(f"This run has no {name} shape ({preset}).")
    needed = found.values(_read_s) + ([] if claim.by_input else found.values(metrics.tpot_s))
    if not all(needed):
        raise _NotMeasured("A shape with one output token, or a clock that stood still, cannot decide it.")
    return found.model_copy(update={"name": name})


def _predicted_run(model: LatencyModel, run: Run) -> Run:
    """The run's shapes as the model predicts them, to be decided like measured ones."""
    return Run(model.environment, [_predicted(model, m) for m in run.measurements], limits=model.limits)


def _predicted(model: LatencyModel, m: Measurement) -> Measurement:
    """As if measured three times: at the low end, in the middle and at the high end of the predicted interval."""
    expected = model.predict(m.shape)
    ends = [expected.tpot_interval_s or (0, 0), expected.ttft_interval_s]
    tpots, ttfts = [
        (low, middle or 0, high) for (low, high), middle in zip(ends, (expected.tpot_s, expected.ttft_s), strict=True)
    ]
    repeats = []
    for place, (ttft, tpot) in enumerate(zip(ttfts, tpots, strict=True)):
        stamps = (0, round(ttft * 1e9), round((ttft + (m.output_tokens - 1) * tpot) * 1e9))
        repeats.append(
            Repeat(index=place + 1, order=place, host_ns=stamps if m.output_tokens > 1 else stamps[:2],
                   output_tokens=m.output_tokens, kv_cache_bytes=m.repeats[0].kv_cache_bytes)
        )  # fmt: skip
    return m.model_copy(update={"repeats": tuple(repeats)})


def _marginal(run: Run, number: str, more: int):
    """Seconds that `more` tokens add to the total, their range, and the two shapes they come from."""
    line = run.along(number)
    pairs = [(a, b) for a in line for b in line if getattr(b, number) - getattr(a, number) >= more / 4]
    if not pairs:
        raise _NotMeasured(f"This run has no two shapes that differ in {_FOUR[number]} only, by {more // 4:,} or more.")
    a, b = min(pairs, key=lambda pair: abs(getattr(pair[1], number) - getattr(pair[0], number) - more))
    return *difference(a, b, metrics.total_s, more / (getattr(b, number) - getattr(a, number))), (a, b)


def difference(a: Measurement, b: Measurement, metric, factor: float = 1.0) -> tuple[float, tuple[float, float]]:
    """How much more b takes than a, times a factor, and the range of that: ends against opposite ends."""
    (a_low, a_high), (b_low, b_high) = a.interval(metric), b.interval(metric)
    return factor * (b.median(metric) - a.median(metric)), (factor * (b_low - a_high), factor * (b_high - a_low))


def _ends_of_line(run: Run, number: str) -> tuple[Measurement, Measurement]:
    line = run.along(number)
    if len(line) < 2:
        raise _NotMeasured(f"This run has no two shapes that differ in {_FOUR[number]} only.")
    return line[0], line[-1]


def _apart(a: Measurement, b: Measurement, metric) -> bool:
    one, other = a.interval(metric), b.interval(metric)
    return bool(one and other) and (one[1] < other[0] or other[1] < one[0])


def _kv_bytes(run: Run) -> tuple[float, float]:
    """KV bytes a token: held by the caches of this run, and by the formula."""
    spec, dtype = run.environment.spec, run.environment.compute_dtype
    tokens = [(m, m.batch_size * (m.shape.prompt_tokens + r.output_tokens - 1), r) for m in run.measurements for r in m.repeats]
    held = {r.kv_cache_bytes / count for _, count, r in tokens if r.kv_cache_bytes is not None}
    if not held or spec is None or dtype is None:
        raise _NotMeasured("The bytes of the KV cache were not kept in this run.")
    formula = kv_bytes_per_token(spec, dtype)
    return next((value for value in held if value != formula), formula), formula


def _finding(claim: _Claim, measured: str, verdict: Verdict, why: str, value: float | None = None) -> Finding:
    return Finding(claim.id, claim.claim, claim.reported, measured, verdict, why, value)


def _decided(number: str, holds: bool, value: float, measured: str, why: str) -> Finding:
    claim = next(claim for claim in (*_CLAIMS, *_ELSEWHERE) if claim.id == number)
    return _finding(claim, measured, "holds" if holds else "does_not_hold", why, value)


def _read_s(timeline: metrics.Timeline) -> float:
    """Prefill time for each token read."""
    return metrics.ttft_s(timeline) / timeline.shape.prefill_tokens


def _lead(run: Run, name: str, metric) -> float:
    """Low end of one shape's interval over the highest end of the other two's: above 1, they do not overlap."""
    others = [run[other].interval(metric)[1] for other in ("chat", "rag", "creative") if other != name]
    return run[name].interval(metric)[0] / max(others)
