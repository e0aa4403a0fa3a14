"""When did it happen? Three clocks, one rule: wait for the device, then read the host's clock.

A GPU works behind the host's back: launching work returns at once. A host stamp without a synchronise measures the
launching. Events are stamps that the device itself sets when it gets there, so they cost no waiting.

Every clock has the same four calls, in this order: start, prefill_done, step_done (once a decode step), finish. All waits
and events name their device, because the default would be the first GPU, whichever one runs the model.
"""

import time

import torch

from shapelab.errors import BadArgument


class HostClock:
    """CPU: every operation has finished when it returns, so a host stamp after each pass is exact and free."""

    per_step_sync = False

    def __init__(self, now=time.perf_counter_ns, synchronize=lambda: None):
        self.now, self.synchronize = now, synchronize
        self.stamps: list[int] = []

    def start(self):
        self.stamps = []
        self.step_done()

    def step_done(self):
        self.synchronize()
        self.stamps.append(self.now())

    prefill_done = step_done

    def finish(self):
        """-> (host_ns, event_s) for a Timeline."""
        return tuple(self.stamps), None


class MpsClock(HostClock):
    """Apple GPU: the host waits after every pass. Each step is exact, and a little slower for the waiting."""

    per_step_sync = True

    def __init__(self, now=time.perf_counter_ns):
        super().__init__(now, torch.mps.synchronize)


class CudaClock:
    """NVIDIA: an event at every pass, and the host's clock at the ends of the two phases, after a synchronise.

    Events include the time in which the device waited for the host to launch, so they alone cannot show a slow host;
    the host stamps are what a user feels.
    """

    per_step_sync = False

    def __init__(self, device: torch.device, now=time.perf_counter_ns, cuda=torch.cuda):
        self.device, self.now, self.cuda = device, now, cuda
        self.stamps: list[int] = []
        self.events: list = []

    def start(self):
        self.stamps, self.events = [], []
        self.stream = self.cuda.current_stream(self.device)
        self._stamp()
        self._record()

    def prefill_done(self):
        self._record()
        self._stamp()

    def step_done(self):
        self._record()

    def finish(self):
        """-> (host_ns, event_s) for a Timeline; event_s are seconds since the first event."""
        if len(self.events) > 2:
            self._stamp()
        first, *rest = self.events
        return tuple(self.stamps), tuple(first.elapsed_time(event) / 1e3 for event in rest)

    def _record(self):
        event = self.cuda.Event(enable_timing=True)
        event.record(self.stream)
        self.events.append(event)

    def _stamp(self):
        self.cuda.synchronize(self.device)
        self.stamps.append(self.now())


_CLOCKS = {"cpu": lambda _: HostClock(), "cuda": CudaClock, "mps": lambda _: MpsClock()}


def clock_for(device: torch.device):
    """The clock that tells the truth on this device."""
    if device.type not in _CLOCKS:
        raise BadArgument(f"There is no clock for the device {device.type!r}; use one of {', '.join(_CLOCKS)}.", "device")
    return _CLOCKS[device.type](device)


def synchronize(device: torch.device):
    """Wait until the device has done all that was launched on it. On a CPU there is nothing to wait for."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type == "mps":
        torch.mps.synchronize()
