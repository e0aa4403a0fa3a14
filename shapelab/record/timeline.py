"""The stamps of one run, or of one request among others. What people quote is computed from them (see metrics)."""

import itertools
from dataclasses import dataclass

from shapelab.request.shape import RequestShape


@dataclass(frozen=True)
class Timeline:
    """What was run, and when.

    shape     as it ran: its output tokens are those that were written, fewer than asked for where a run stopped at EOS
    host_ns   host clock, each read after a synchronise: start, end of the prefill and of every step (N + 1 stamps), or three:
              start, end of the prefill, end of the decode (two where N = 1)
    event_s   seconds since the first event at the end of the prefill and of every step, by the device's own events
              (CUDA); None elsewhere
    per_step_sync  the host waited for the device at every step (MPS, a ragged batch, or a run that stops at EOS): slower than need be
    row_output_tokens  tokens of each row up to its EOS, where the run was allowed to stop; None: all N in every row
    arrival_ns  by the same clock, when the request came; None: it was served at once

    Raises ValueError where the stamps do not fit the shape or run backwards.
    """

    shape: RequestShape
    host_ns: tuple[int, ...]
    event_s: tuple[float, ...] | None = None
    per_step_sync: bool = False
    row_output_tokens: tuple[int, ...] | None = None
    arrival_ns: int | None = None

    def __post_init__(self):
        written = self.shape.output_tokens
        if len(self.host_ns) not in (3, written + 1):
            raise ValueError(f"{len(self.host_ns)} host stamps do not fit {written} output tokens")
        if self.event_s is not None and len(self.event_s) != written:
            raise ValueError(f"{len(self.event_s)} events do not fit {written} output tokens")
        if any(later < earlier for earlier, later in itertools.pairwise(self.host_ns)):
            raise ValueError("host stamps run backwards")
        if any(later < earlier for earlier, later in itertools.pairwise(self.event_s or ())):
            raise ValueError("events run backwards")
        if self.arrival_ns is not None and self.arrival_ns > self.host_ns[0]:
            raise ValueError("a request cannot start before it arrives")
