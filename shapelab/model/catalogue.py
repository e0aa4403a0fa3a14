"""The models that have a short name."""

from shapelab.model import embedded, hub
from shapelab.theory.arithmetic import parameter_count, weight_bytes
from shapelab.theory.model_spec import ModelSpec, hub_id, known_models

_ABOUT = {
    embedded.NAME: "the default without a large GPU; dequantised from 4-bit",
    "tinyllama": "the talk's model; the default on a CUDA GPU with 6 GB or more",
}
_NEED_A_LICENCE = ("llama-2-7b", "llama-3-8b", "llama-3-70b")


def catalogue() -> list[dict]:
    """One entry a name: name, parameters, weight bytes, source, whether it is cached here, and what it is for.

    The course's own two come first, each with its twin of random weights.
    """
    others = [name for name in known_models() if name not in _ABOUT]
    return [entry for name in (*_ABOUT, *others) for entry in _entries(name)]


def _entries(name: str) -> list[dict]:
    spec = ModelSpec.from_config(name)
    sizes = {
        "parameters": parameter_count(spec),
        "weight_bytes_fp32": weight_bytes(spec, "float32"),
        "weight_bytes_16_bit": weight_bytes(spec, "float16"),
    }
    source, cached = _origin(name)
    about = _ABOUT.get(name, "its licence must be accepted on the hub first" if name in _NEED_A_LICENCE else "")
    entries = [{"name": name, **sizes, "source": source, "cached": cached, "about": about}]
    if name in _ABOUT:
        twin = {"source": "made here", "cached": True, "about": "same architecture and timings, text is noise"}
        entries.append({"name": f"{name}:random", **sizes, **twin})
    return entries


def _origin(name: str) -> tuple[str, bool]:
    if name == embedded.NAME:
        return f"Python package {embedded.PACKAGE}", embedded.is_cached()
    return f"hub: {hub_id(name)}", hub.is_here(name)
