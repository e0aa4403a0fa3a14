"""C7: what the passes of a request wait for."""

from dataclasses import replace

from shapelab.claims.evidence import Evidence
from shapelab.claims.finding import Decision, decide
from shapelab.errors import NotEnoughMeasured
from shapelab.theory import roofline


def regimes_of_a_run(evidence: Evidence) -> Decision:
    verdicts = evidence.verdicts("rag")
    if not verdicts:
        raise NotEnoughMeasured("This run does not record the machine's limits or the model's architecture.")
    times = [evidence["rag"].estimate(quantity) for quantity in ("ttft_s", "tpot_s")]
    decision = compute_and_memory(verdicts["prefill"], verdicts["decode"], times)
    return replace(
        decision, why=f"{decision.why} This verdict rests on shares of the time alone; notebook 04 tests it by experiment."
    )


def compute_and_memory(prefill: roofline.Verdict, decode: roofline.Verdict, rests_on=()) -> Decision:
    """C7 from the verdicts on a long prefill and on a decode step, whose experiments may have left notes."""

    def shares(v: roofline.Verdict) -> str:
        return f"{v.phase}: {', '.join(f'{name} {share:.0%}' for name, share in v.shares.items())} of {v.measured_s * 1e3:.1f} ms"

    notes = " ".join((*prefill.notes, *decode.notes))
    return decide(
        prefill.regime == "compute" and decode.regime == "memory", decode.shares["memory"],
        f"{shares(prefill)}; {shares(decode)}",
        f"Prefill is {prefill.regime}-bound and decode {decode.regime}-bound here, by the largest share of the measured time; "
        f"nothing here explains the remaining {prefill.unexplained:.0%} and {decode.unexplained:.0%}. {notes}".strip(),
        rests_on,
    )  # fmt: skip
