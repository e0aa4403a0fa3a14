"""shapelab: the latency and cost of an LLM request come from its shape, and you can measure it.

Nothing heavy is imported here: torch and transformers load when a model does.
"""

from importlib import import_module

__version__ = "0.1.0"

_HOMES = {
    "RequestShape": "shapelab.request.shape",
    "CHAT": "shapelab.request.shape",
    "RAG": "shapelab.request.shape",
    "CREATIVE": "shapelab.request.shape",
    "LLM_PERF": "shapelab.request.shape",
    "PRESETS": "shapelab.request.shape",
    "load": "shapelab.model.load",
    "Lab": "shapelab.model.load",
    "measure_shapes": "shapelab.measure.experiment",
    "sweep": "shapelab.measure.sweep",
    "Run": "shapelab.record.run",
    "Measurement": "shapelab.record.measurement",
    "LatencyModel": "shapelab.predict.latency",
    "recorded": "shapelab.record.recorded",
}
__all__ = sorted(_HOMES)


def __getattr__(name: str):
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'shapelab' has no attribute {name!r}")


def __dir__():
    return sorted([*globals(), *_HOMES])
