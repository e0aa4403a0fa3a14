"""What each pass waits for: overhead, arithmetic or bytes."""

from matplotlib.patches import Patch

from shapelab.classroom.figures.colours import DECODE, EXPLAINED_BY_NONE, OVERHEAD, PREFILL
from shapelab.classroom.figures.drawn import Drawn, canvas, captioned, label, not_empty, verbatim
from shapelab.classroom.html import brief
from shapelab.theory.roofline import Verdict

_LOOKS = {
    "overhead": {"color": OVERHEAD},
    "arithmetic": {"color": PREFILL},
    "bytes": {"color": DECODE},
    "explained by none": EXPLAINED_BY_NONE,
}


@verbatim
def regimes(verdicts: dict[str, Verdict], about: str, kind: str = "measured") -> Drawn:
    """Each pass as a bar of 100 %: overhead, the longer of arithmetic and bytes, and what neither explains.

    A bar is longer than 100 % where the pass took less time than its floor.
    """
    parts = {name: _parts(verdict) for name, verdict in not_empty(verdicts).items()}
    widest = max(1.0, *(sum(shares.values()) for shares in parts.values()))
    figure, (axis,) = canvas(1.5 + 0.5 * len(verdicts))
    for row, shares in enumerate(parts.values()):
        left = 0.0
        for part, share in shares.items():
            axis.barh(row, share * 100, left=left * 100, height=0.6, **_LOOKS[part])
            if part != "explained by none" and share > 0.16 * widest:  # room for the text
                color = "white" if part == "arithmetic" else "black"
                axis.text((left + share / 2) * 100, row, f"{part} {share:.0%}", ha="center", va="center", fontsize=9, color=color)
            left += share
    times = [f"{verdict.measured_s * 1e3:,.1f} ms" for verdict in verdicts.values()]
    axis.set_yticks(range(len(verdicts)), [f"{brief(name)}\n{time}" for name, time in zip(verdicts, times, strict=True)])
    axis.invert_yaxis()
    axis.set_xlim(0, widest * 100)
    patches = [Patch(label=part, **look) for part, look in _LOOKS.items()]
    axis.legend(handles=patches, frameon=False, fontsize=8, ncols=4, loc="lower right", bbox_to_anchor=(1, 1))
    across = "per cent of the measured time that each part would take alone"
    opening = label(axis, "Where a pass spends its time", across, grid="x")
    words = [
        f"{name}, {time}: " + ", ".join(f"{part} {share:.0%}" for part, share in shares.items())
        for (name, shares), time in zip(parts.items(), times, strict=True)
    ]
    return captioned(figure, f"{opening} {'; '.join(words)}.", kind, about)


def _parts(verdict: Verdict) -> dict[str, float]:
    """The parts of a bar, as shares of the measured time. Arithmetic and bytes overlap, so only the longer one counts."""
    shares = verdict.shares
    longer = "arithmetic" if shares["compute"] >= shares["memory"] else "bytes"
    floor = max(shares["compute"], shares["memory"])
    return {"overhead": shares["overhead"], longer: floor, "explained by none": verdict.unexplained}
