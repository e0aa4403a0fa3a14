"""A race to watch: each shape in a lane of its own, text streaming as it is written.

The lanes run one after another, each from its own start, because requests that run at once slow each other. The race is to
watch, not to measure: reading the ids to show them makes the host wait for the device.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass

import torch

from shapelab.classroom.figures.colours import DECODE, PREFILL
from shapelab.classroom.html import bar, escape
from shapelab.measure.clock import clock_for
from shapelab.measure.experiment import ready, warm_up
from shapelab.measure.loop import generate
from shapelab.model.load import Lab
from shapelab.request.prompts import prompt_ids
from shapelab.request.shape import RequestShape
from shapelab.text import VERBATIM, visible

SECONDS_BETWEEN_PICTURES = 0.15
SHOWN_CHARACTERS = 400


@dataclass
class Lane:
    """One request on its way: what it has written and how long it took so far."""

    name: str
    shape: RequestShape
    state: str = "waiting"
    prefill_s: float = 0.0
    decode_s: float = 0.0
    written: int = 0
    text: str = ""

    @property
    def total_s(self) -> float:
        return self.prefill_s + self.decode_s


@dataclass
class Race:
    """Lanes as they stand; shows itself as HTML, or as one line a lane."""

    lanes: list[Lane]
    about: str

    def __repr__(self) -> str:
        rows = (
            f"{lane.name} {lane.shape}: first token after {lane.prefill_s:.2f} s, {lane.written} tokens after {lane.total_s:.2f} s"
            for lane in self.lanes
        )
        return visible("\n".join(rows), lines=True)

    def _repr_html_(self) -> str:
        longest = max((lane.total_s for lane in self.lanes), default=0) or 1
        lanes = "".join(_lane_html(lane, longest) for lane in self.lanes)
        legend = f'<span style="color:{PREFILL}">&#9632;</span> prefill <span style="color:{DECODE}">&#9632;</span> decode'
        return f'<div class="{VERBATIM}" style="max-width:60em">{lanes}<small>{legend}; {escape(self.about)}; watched, so a little slower than measured</small></div>'


def race(lab: Lab, shapes: Mapping[str, RequestShape], seed: int = 0) -> Race:
    """Run each shape once and show it live in a notebook. Returns the finished race."""
    from IPython.display import display

    standing = Race([Lane(name, shape) for name, shape in shapes.items()], lab.label)
    for shape in shapes.values():
        lab.check(shape)
    handle = display(standing, display_id=True)
    for lane in standing.lanes:
        run_lane(lab, lane, seed, lambda: handle and handle.update(standing))
    return standing


@torch.inference_mode()
def run_lane(lab: Lab, lane: Lane, seed: int, show):
    """Run one shape, fill its lane as the tokens come, and call show() now and then and at the end."""
    warm_up(lab, lane.shape, seed)
    ids, cache = ready(lab, lane.shape, prompt_ids(lab.tokenizer, lane.shape, seed=seed, repeat=1))
    lane.state = f"reading {lane.shape.input_tokens:,} tokens"
    show()
    tokens, start, shown = [], time.perf_counter(), 0.0
    for token in generate(lab.model, ids, lane.shape.output_tokens, cache, clock_for(lab.device)):
        tokens.append(token)
        if len(tokens) == 1 or time.perf_counter() - shown >= SECONDS_BETWEEN_PICTURES:
            _fill(lab, lane, tokens, start)
            show()
            shown = time.perf_counter()
    _fill(lab, lane, tokens, start)
    lane.state = "done"
    show()


def _fill(lab: Lab, lane: Lane, tokens: list[torch.Tensor], start: float):
    ids = [int(token[0, 0]) for token in tokens]  # reading them waits for the device, so the clock is read after
    elapsed = time.perf_counter() - start
    lane.written, lane.state = len(ids), "writing"
    lane.text = lab.tokenizer.decode(ids, skip_special_tokens=True)
    if len(ids) == 1:
        lane.prefill_s = elapsed
    else:
        lane.decode_s = elapsed - lane.prefill_s


def _lane_html(lane: Lane, longest: float) -> str:
    shares = [(85 * lane.prefill_s / longest, PREFILL), (85 * lane.decode_s / longest, DECODE)]
    text = lane.text
    if len(text) > SHOWN_CHARACTERS:  # the newest words while it writes, the first ones when it is done
        done = lane.state == "done"
        text = text[:SHOWN_CHARACTERS] + "..." if done else "..." + text[-SHOWN_CHARACTERS:]
    return (
        f'<div style="margin:6px 0"><b>{escape(lane.name)}</b> {lane.shape.input_tokens:,} in, {lane.shape.output_tokens:,} out: '
        f"{escape(lane.state)}, first token after {lane.prefill_s:.2f} s, {lane.written} written, {lane.total_s:.2f} s{bar(shares)}"
        f'<div style="min-height:3.2em;white-space:pre-wrap;font-size:90%">{escape(text)}</div></div>'
    )
