"""The machines that a panel's menus offer: runs that were measured, and GPUs by their data sheets."""

from collections.abc import Callable
from functools import cache

import ipywidgets as widgets

from shapelab.classroom.explorers.panel import Panel, View, menu
from shapelab.classroom.html import short
from shapelab.errors import DoesNotFit
from shapelab.predict.latency import LatencyModel
from shapelab.predict.machine import Machine
from shapelab.predict.roofline_machine import ASSUMED_OVERHEAD_S, RooflineMachine
from shapelab.record.recorded import recorded, recorded_runs
from shapelab.record.run import Run
from shapelab.request.shape import RequestShape
from shapelab.theory import arithmetic
from shapelab.theory.hardware import gpu, known_gpus
from shapelab.theory.model_spec import ModelSpec, known_models


@cache
def machine(name: str, model: str = "tinyllama") -> Machine:
    """A machine by its name: a recorded run's, or a GPU's with a model on it."""
    if name in recorded_runs():
        return LatencyModel.fit(recorded(name), "recorded")
    return RooflineMachine(gpu(name), ModelSpec.from_config(model), model, "float16", ASSUMED_OVERHEAD_S)


def about(machine: Machine) -> str:
    """Whose numbers these are, for a caption: predicted from a run, or computed from a data sheet."""
    kind = "computed" if machine.kind == "roofline" else "predicted"
    return f"{kind}: {machine.label}{machine.assumption and f'; {machine.assumption}'}"


def memory(machine: Machine, shape: RequestShape) -> tuple[float | None, float | None]:
    """Bytes of a batch's KV cache at its end, and bytes left beside weights and activations; None where that is not known."""
    spec, dtype = machine.spec, machine.dtype
    if spec is None or dtype is None:
        return None, None
    kv_bytes = arithmetic.kv_bytes_per_token(spec, dtype) * shape.final_kv_tokens * shape.batch_size
    if machine.usable_bytes is None:
        return kv_bytes, None
    activations = arithmetic.activation_bytes(spec, shape.prompt_tokens, shape.batch_size, dtype)
    return kv_bytes, machine.usable_bytes - arithmetic.weight_bytes(spec, dtype) - activations - kv_bytes


def fits(machine: Machine, shape: RequestShape) -> bool:
    """False where memory is known to be too small."""
    left_bytes = memory(machine, shape)[1]
    return left_bytes is None or left_bytes >= 0


def refuse_what_does_not_fit(machine: Machine, shape: RequestShape):
    if not fits(machine, shape):
        raise DoesNotFit(
            f"A request of {shape} does not fit in memory beside the weights ({machine.label}). Choose a smaller model, a shorter "
            "request or another GPU."
        )


def gigabytes(count: float | None) -> str | None:
    return None if count is None else short(count / 1e9)


def machine_panel(heading: str, view: Callable[..., View], run: Run | None, controls: dict[str, widgets.Widget]) -> Panel:
    """A panel whose first two menus choose the view's `machine`. `run`: one of your own, to choose as well."""
    own = {} if run is None else {"this run": LatencyModel.fit(run)}
    machines = menu("machine", [*own, *recorded_runs(), *known_gpus()])
    models = menu("model (GPUs only)", known_models(), "tinyllama")

    def follow(_=None):
        """Disable the model menu for runs; their model is fixed."""
        models.disabled = machines.value not in known_gpus()

    def view_of_choice(machine_name: str, model: str, **numbers) -> View:
        return view(machine=own.get(machine_name) or machine(machine_name, model), **numbers)

    machines.observe(follow, names="value")
    follow()
    return Panel(heading, view_of_choice, {"machine_name": machines, "model": models, **controls})
