"""A model's files, from a folder, a .gguf file or the hub: config, weights and tokenizer. No code of a model's own is ever run."""

import os
from pathlib import Path

import torch

from shapelab.errors import CannotLoad, DoesNotFit
from shapelab.files import user_path
from shapelab.model import embedded, hub
from shapelab.theory.model_spec import ModelSpec, known_config, known_models, read_config

_WORKS = "A folder with config.json, .safetensors and a tokenizer, or a .gguf file, works."


def read_model_config(source: str):
    """transformers' config of a known name, a path or a hub id.

    Raises UnsupportedModel by the file's fields alone, before transformers chooses a class by them.
    """
    from transformers import AutoConfig

    if source in known_models():
        return AutoConfig.for_model(**known_config(source))
    path = user_path(source)
    if not os.path.exists(path):
        ModelSpec.from_config(hub.fetch_config(source))
    elif os.path.isfile(path / "config.json") and path != embedded.folder():
        ModelSpec.from_config(read_config(path))
    return _from_pretrained(AutoConfig, source, "config")


def read_weights(source: str, dtype: torch.dtype):
    """The model with all of its weights: transformers would draw missing ones at random. Pickled weights are never read."""
    from transformers import AutoModelForCausalLM

    options = {} if _is_gguf(user_path(source)) else {"use_safetensors": True}
    model, report = _from_pretrained(AutoModelForCausalLM, source, "weights", dtype=dtype, output_loading_info=True, **options)
    if missing := sorted(report["missing_keys"]):
        raise CannotLoad(f"The weights of {source} are incomplete: {len(missing)} tensors are missing, such as {missing[0]}.")
    return model


def read_tokenizer(source: str):
    from transformers import AutoTokenizer

    return _from_pretrained(AutoTokenizer, source, "tokenizer")


def _is_gguf(path: Path) -> bool:
    return path.suffix == ".gguf" and os.path.isfile(path)


def _from_pretrained(auto, source: str, what: str, **options):
    """transformers' from_pretrained; whatever it raises becomes a sentence, because the files are a stranger's."""
    path = user_path(source)
    here = os.path.exists(path)
    if _is_gguf(path):
        path, options["gguf_file"] = path.parent, path.name
    try:
        return auto.from_pretrained(str(path) if here else source, trust_remote_code=False, **options)
    except (torch.OutOfMemoryError, MemoryError) as error:
        raise DoesNotFit(f"Memory ran out while loading the {what} of {source}. Choose a smaller model or dtype.") from error
    except Exception as error:
        if not here:
            raise hub.failure(source, error) from error
        reason = hub.first_line(error)
        if path == embedded.folder():
            raise CannotLoad(
                f"The cached {embedded.NAME} cannot be read: {reason} Run `shapelab models --clear` and try again."
            ) from error
        raise CannotLoad(f"The {what} in {source} cannot be loaded: {reason} {_WORKS}") from error
