"""What a pass costs before any arithmetic, measured on a hollow twin."""

from shapelab.measure.ceilings import measure_ceilings
from shapelab.measure.experiment import measure_shapes
from shapelab.model.load import Lab
from shapelab.model.twins import hollow_twin
from shapelab.record import metrics
from shapelab.record.fields import now
from shapelab.record.machine_ceilings import Limits
from shapelab.request.shape import RequestShape


def overhead_s(lab: Lab, *, repeats: int = 5, clock=None) -> float:
    """Seconds of a pass of the hollow twin: the median TPOT of 32 tokens after a prompt of 16."""
    run = measure_shapes(hollow_twin(lab), {"hollow": RequestShape(16, 32)}, repeats=repeats, clock=clock, progress=False)
    return run["hollow"].median(metrics.tpot_s)


def measure_limits(lab: Lab) -> Limits:
    """Ceilings of the lab's device in its dtype, and the overhead of its model's pass. Some seconds on a CPU."""
    device = measure_ceilings(lab.device, (lab.dtype,)).device(lab.dtype_name)
    return Limits(
        memory_read_bytes_per_s=device.bytes_per_s,
        flops_per_s=device.flops_per_s,
        overhead_s=overhead_s(lab),
        measured_at=now(),
    )
