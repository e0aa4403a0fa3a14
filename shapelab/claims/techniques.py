"""C11: each serving technique attacks one part of the shape. One technique at a time, on against off."""

from shapelab.claims.evidence import Estimate, Evidence
from shapelab.claims.finding import Decision, decide
from shapelab.errors import NotEnoughMeasured


def technique(name: str, off: Estimate, on: Estimate) -> Decision:
    """Seconds in the phase that the technique names, with it off and on; the intervals must not overlap."""
    shown = [f"{each.value * 1e3:.1f} ms ({each.spread('.1f', 1e3)})" for each in (off, on)]
    holds = off.above(on)
    return decide(
        holds, off.value / on.value if on.value else None,
        f"{name}: off {shown[0]}, on {shown[1]}",
        f"It must be faster by more than the intervals; here {'it is' if holds else 'they overlap or point the other way'}. "
        "This says nothing about the other techniques of the claim.",
        (off, on), about=name,
    )  # fmt: skip


def prefix_caching(evidence: Evidence) -> Decision:
    """The same prompt with a part of it cached and without, as much of it cached as the run has."""
    pairs = [
        (off, on) for off in evidence.points for on in evidence.points
        if not off.shape.cached_tokens and on.shape.cached_tokens and off.shape.prompt_tokens == on.shape.prompt_tokens
        and (off.shape.output_tokens, off.shape.batch_size) == (on.shape.output_tokens, on.shape.batch_size)
    ]  # fmt: skip
    if not pairs:
        raise NotEnoughMeasured("This run has no prompt measured both with and without a cached part.")
    off, on = max(pairs, key=lambda pair: pair[1].shape.cached_tokens)
    name = f"prefix caching, TTFT of {off.shape} and {on.shape}"
    return technique(name, off.estimate("ttft_s"), on.estimate("ttft_s"))
