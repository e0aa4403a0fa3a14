"""The first cell of every notebook: what runs here, in a few lines that also belong into a question or a bug report."""

from importlib.metadata import version

from shapelab.classroom.html import Card, escape
from shapelab.computer import thread_problem
from shapelab.hosted import how_to_get_a_gpu
from shapelab.measure.environment import device_name, environment
from shapelab.model.load import choose_device, choose_dtype, choose_model


def greet() -> Card:
    """Machine, the model this machine would take and why, versions, and a warning where one is due."""
    here = environment()
    device = choose_device()
    no_gpu = f" (no GPU found; everything here runs without one. {how_to_get_a_gpu()}".rstrip() + ")"
    model, reason = choose_model(device)
    dtype = str(choose_dtype(device)).removeprefix("torch.")
    lines = [
        ("machine", device_name(device) + ("" if device.type != "cpu" else no_gpu)),
        ("model", f"{model} in {dtype}. {reason}"),
        (
            "versions",
            f"shapelab {here.shapelab}, torch {here.torch}, transformers {here.transformers}, ipywidgets {version('ipywidgets')}",
        ),
    ]
    problem = thread_problem(here.threads, here.cpus_usable)
    if problem:
        lines.append(("careful", problem))
    text = "\n".join(f"{label}: {value}" for label, value in lines)
    return Card(text, "<br>".join(f"<b>{escape(label)}:</b> {escape(value)}" for label, value in lines))
