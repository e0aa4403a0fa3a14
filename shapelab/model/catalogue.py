"""The models that have a short name."""

from shapelab.files import data_path
from shapelab.model import embedded
from shapelab.theory.arithmetic import llama_parameter_count
from shapelab.theory.model_spec import known_config


def catalogue() -> list[dict]:
    """One entry a name: name, parameters, weight bytes, source, whether it is cached here, and what it is for."""
    entries = []
    for path in sorted(data_path("models").glob("*.json")):
        entries += _entries(path.stem, known_config(path.stem))
    return entries


def _entries(name: str, config: dict) -> list[dict]:
    parameters = llama_parameter_count(config)
    sizes = {"parameters": parameters, "weight_bytes_fp32": 4 * parameters, "weight_bytes_16_bit": 2 * parameters}
    source, cached, about = _origin(name)
    return [
        {"name": name, **sizes, "source": source, "cached": cached, "about": about},
        {"name": f"{name}:random", **sizes, "source": "made here", "cached": True, "about": "same architecture and timings, text is noise"},
    ]  # fmt: skip


def _origin(name: str) -> tuple[str, bool, str]:
    if name == embedded.NAME:
        return (
            f"Python package {embedded.PACKAGE}",
            embedded.is_cached(),
            "the default without a large GPU; dequantised from 4-bit",
        )
    from huggingface_hub import try_to_load_from_cache

    from shapelab.model.load import TINYLLAMA_HUB_ID

    cached = isinstance(try_to_load_from_cache(TINYLLAMA_HUB_ID, "model.safetensors"), str)
    return f"hub: {TINYLLAMA_HUB_ID}", cached, "the talk's model; the default on a CUDA GPU with 6 GB or more"
