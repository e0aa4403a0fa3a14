"""The talk's claims, decided by the learner's own runs: reported, measured here, verdict, and why.

The reported figures come from a talk that ran TinyLlama 1.1B on one NVIDIA T4. Nobody here measured them.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace

from shapelab.claims import four_numbers, prices, regimes, techniques, three_shapes
from shapelab.claims.evidence import Evidence
from shapelab.claims.finding import Decision, Finding
from shapelab.errors import NotEnoughMeasured, ShapelabError
from shapelab.predict.machine import Machine
from shapelab.record.measurement import Measurement
from shapelab.record.recorded import reported
from shapelab.record.run import Run
from shapelab.request.shape import PRESETS

_REPORTED = reported()["claims"]


@dataclass(frozen=True)
class Claim:
    """What the talk said, and who decides it.

    decide    from the evidence of one run; raises NotEnoughMeasured. None: nothing here can
    how       the command that measures what it needs
    needs     presets that the run must hold; the decider sees these alone
    by_input  of those shapes only what they read counts, so any output length serves
    """

    id: str
    text: str
    decide: Callable[[Evidence], Decision] | None
    how: str
    needs: tuple[str, ...] = ()
    by_input: bool = False


_RUN = "`shapelab run` measures it."
_SWEEP = "`shapelab sweep --plan full --out FILE` measures it."
CLAIMS = (
    Claim("C1", "Shape alone moves total latency by an order of magnitude.",
          three_shapes.one_order_of_magnitude, _RUN, ("chat", "rag", "creative")),
    Claim("C2", "The RAG shape has the highest TTFT, the creative shape the highest total latency.",
          three_shapes.highest_ttft_and_highest_total, _RUN, ("chat", "rag", "creative")),
    Claim("C3", "Reading is cheap.", three_shapes.reading_is_cheap, _RUN, ("rag",)),
    Claim("C4", "Writing is expensive.", three_shapes.writing_is_expensive, _RUN, ("rag",)),
    Claim("C5", "1,000 more input tokens cost far less than 200 more output tokens.",
          four_numbers.writing_costs_more_than_reading, _SWEEP),
    Claim("C6", "A small request starves the hardware.",
          three_shapes.small_requests_starve_the_hardware, _RUN, ("rag", "creative"), by_input=True),
    Claim("C7", "Prefill is compute-bound, decode is memory-bandwidth-bound.", regimes.regimes_of_a_run,
          "`shapelab run` measures the rag shape and the machine's limits; notebook 04 takes them apart.", ("rag",)),
    Claim("C8", "A request is four numbers: input tokens, output tokens, context length, batch size.",
          four_numbers.four_numbers, _SWEEP),
    Claim("C9", "The KV cache grows with every token, and decode slows with it.",
          four_numbers.decode_slows_with_context, _SWEEP),
    Claim("C10", "Output tokens are priced above input tokens because of the physics.", prices.physics_sets_the_price,
          "Notebook 07 measures one shape alone and in batches; so does `shapelab run --shapes 128x16,128x16@4,128x16@16`."),
    Claim("C11", "Each serving technique attacks one part of the shape.", techniques.prefix_caching,
          "`shapelab run --shapes 1088x8,1024+64x8` measures it for prefix caching, notebook 06 for grouped-query attention; "
          "the other techniques are not in this course yet."),
    Claim("C12", "Five questions profile an application.", None,
          "It needs a log of real requests, and is not in this course yet."),
)  # fmt: skip
THREE_SHAPES = ("C1", "C2", "C3", "C4", "C6")
FOUR_NUMBERS = ("C5", "C6", "C8", "C9")


def findings(run: Run, ids: Sequence[str] = THREE_SHAPES, machine: Machine | None = None) -> list[Finding]:
    """The named claims, decided by a run, in the order of the registry. A claim whose shapes were not measured says so.

    machine  what it predicts for the same shapes stands as `predicted`; fit it to other measurements.
    """
    chosen = [claim for claim in CLAIMS if claim.id in ids]
    decided = [_by_the_first_that_can(claim, [run]) for claim in chosen]
    if machine is None:
        return decided
    return [replace(f, predicted=_predicted(claim, run, machine)) for f, claim in zip(decided, chosen, strict=True)]


def all_findings(runs: Sequence[Run]) -> list[Finding]:
    """C1 to C12 from any number of runs: each claim by the first run that can decide it, else not measured and why."""
    return [_by_the_first_that_can(claim, runs) for claim in CLAIMS]


def finding(id: str, decision: Decision) -> Finding:
    """A decision under its claim, for a claims table: notebooks decide some claims by their own experiments."""
    return _finding(next(claim for claim in CLAIMS if claim.id == id), decision)


def as_records(findings: Sequence[Finding]) -> list[dict]:
    """The findings as plain dictionaries, for JSON."""
    return [asdict(each) for each in findings]


def _by_the_first_that_can(claim: Claim, runs: Sequence[Run]) -> Finding:
    lacking, undecided = "There is no run yet.", None
    for run in runs:
        try:
            decision = _decide(claim, Evidence(run))
        except NotEnoughMeasured as error:
            lacking = str(error)
            continue
        if decision.verdict != "undecided":
            return _finding(claim, decision)
        undecided = undecided or decision
    return _finding(claim, undecided or Decision("not_measured", "-", f"{lacking} {claim.how}".strip()))


def _predicted(claim: Claim, run: Run, machine: Machine) -> str:
    try:
        return _decide(claim, Evidence(run, machine)).measured
    except ShapelabError:  # the claim's shapes are not in the run, or the machine says nothing about them
        return "-"


def _decide(claim: Claim, evidence: Evidence) -> Decision:
    if claim.decide is None:
        raise NotEnoughMeasured("")
    if claim.needs:
        needed = [_preset(claim, evidence.run, name) for name in claim.needs]
        evidence = replace(evidence, run=replace(evidence.run, measurements=needed))
        quantities = ("ttft_s",) if claim.by_input else ("ttft_s", "tpot_s")
        times = [evidence[name].estimate(quantity) for name in claim.needs for quantity in quantities]
        if not all(time and time.positive for time in times):
            raise NotEnoughMeasured("This claim needs at least two output tokens and a clock that advanced between them.")
    decision = claim.decide(evidence)
    if not evidence.drifted:
        return decision
    note = f"Careful: the times of {', '.join(evidence.drifted)} drifted during the measurement; measure again before you believe this."
    return replace(decision, why=f"{decision.why} {note}")


def _preset(claim: Claim, run: Run, name: str) -> Measurement:
    """The measurement of a preset's shape, under the preset's name, whatever the run calls it."""
    preset = PRESETS[name]

    def reads_alike(m: Measurement) -> bool:
        return (m.input_tokens, m.batch_size, m.cached_tokens) == (preset.input_tokens, 1, 0)

    fitting = [m for m in run.measurements if m.shape == preset or (claim.by_input and reads_alike(m))]
    chosen = next((m for m in fitting if m.name == name), fitting[0] if fitting else None)
    if chosen is None and name in run:
        raise NotEnoughMeasured(f"The {name} of this run is {run[name].shape}; the claim is about {preset}.")
    if chosen is None:
        raise NotEnoughMeasured(f"This run has no {name} shape ({preset}).")
    return chosen.model_copy(update={"name": name})


def _finding(claim: Claim, decision: Decision) -> Finding:
    text = f"{claim.text} Here: {decision.about}." if decision.about else claim.text
    return Finding(claim.id, text, _REPORTED[claim.id], decision.measured, decision.verdict, decision.why, decision.value)
