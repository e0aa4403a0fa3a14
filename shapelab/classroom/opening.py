"""The first cell of every notebook: what runs here, in a few lines to copy into a question or a bug report."""

from importlib.metadata import version

from shapelab.classroom.html import Card, escape
from shapelab.computer import thread_problem
from shapelab.hosted import how_to_get_a_gpu
from shapelab.measure.this_machine import device_name, environment
from shapelab.model.load import choose_device, choose_dtype, choose_model


def greet() -> Card:
    """The machine, the model `shapelab.load()` would choose and why, versions, and a warning if too many threads would run."""
    here, device = environment(), choose_device()
    machine = device_name(device)
    if device.type == "cpu":
        machine += f" (no GPU; everything here runs without one. {how_to_get_a_gpu()}".rstrip() + ")"
    model, reason = choose_model(device)
    dtype = str(choose_dtype(device)).removeprefix("torch.")
    packages = ("shapelab", "torch", "transformers", "ipywidgets")
    lines = {
        "machine": machine,
        "model": f"{model} in {dtype}. {reason}",
        "versions": ", ".join(f"{name} {getattr(here, name, None) or version(name)}" for name in packages),
        "careful": thread_problem(here.threads, here.cpus_usable),
    }
    lines = {label: value for label, value in lines.items() if value}
    text = "\n".join(f"{label}: {value}" for label, value in lines.items())
    return Card(text, "<br>".join(f"<b>{label}:</b> {escape(value)}" for label, value in lines.items()))
