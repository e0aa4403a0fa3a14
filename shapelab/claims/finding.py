"""What a claim comes to: the verdict, the number that it rests on, and why."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from shapelab.claims.evidence import Estimate

# weaker_here (the direction holds, the size is under half of the reported one) has its place; no decider gives it yet.
# undecided is measured, and too thin to tell: one repeat has no interval. not_measured lacks the shapes.
Verdict = Literal["holds", "weaker_here", "does_not_hold", "undecided", "not_measured"]
ONE_REPEAT = "One repeat shows no spread, so it decides nothing: measure each shape 3 times or more."


@dataclass(frozen=True)
class Decision:
    """What a decider says of a run. `value` is the number that the verdict rests on; `about` narrows the claim to what was tried."""

    verdict: Verdict
    measured: str
    why: str
    value: float | None = None
    about: str = ""


@dataclass(frozen=True)
class Finding:
    """One claim, decided: reported by the talk, measured here, predicted where a machine was asked."""

    id: str
    claim: str
    reported: str
    measured: str
    verdict: Verdict
    why: str
    value: float | None = None
    predicted: str = "-"

    @property
    def decided(self) -> bool:
        return self.verdict not in ("undecided", "not_measured")


def decide(holds: bool, value: float | None, measured: str, why: str, rests_on: Iterable[Estimate] = (), about: str = "") -> Decision:  # fmt: skip
    """holds or does_not_hold; undecided where an estimate that the verdict rests on has no interval."""
    if any(estimate.interval is None for estimate in rests_on):
        return Decision("undecided", measured, f"{ONE_REPEAT} {why}", value, about)
    return Decision("holds" if holds else "does_not_hold", measured, why, value, about)
