"""The Hugging Face hub: what a model's config there says, and whether all of a model is here already."""

import json
from pathlib import Path
from typing import Any

from shapelab.errors import CannotLoad, ShapelabError, UnknownName, UnsupportedModel
from shapelab.theory.model_spec import ModelSpec, hub_id, known_models, read_config


def spec_of(name: str) -> ModelSpec:
    """The architecture of a model on the hub, or of one that needs no network (`ModelSpec.from_config`); fetches a config at most.

    Raises UnsupportedModel for a family that cannot be counted, UnknownName and CannotLoad where the hub gives out no config.
    """
    try:
        return ModelSpec.from_config(name)
    except UnknownName:
        return ModelSpec.from_config(fetch_config(name))


def fetch_config(model: str) -> dict[str, Any]:
    """The config.json of a model on the hub, from the cache where it is there."""
    from huggingface_hub import hf_hub_download  # only where a hub id was given

    try:
        path = hf_hub_download(model, "config.json")
    except Exception as error:  # the library's own classes and those of whatever speaks HTTP for it
        raise failure(model, error) from error
    return read_config(path)


def failure(model: str, error: Exception) -> ShapelabError:
    """What a person can do where the hub, or transformers on its behalf, gave an error."""
    from huggingface_hub import errors

    cause: BaseException | None = error
    while cause and not isinstance(cause, errors.HfHubHTTPError | errors.EntryNotFoundError | errors.HFValidationError):
        cause = cause.__cause__
    offline = "no network, smollm2-135m, tinyllama:random and local folders work"
    match cause:
        case errors.HFValidationError():
            return UnknownName(f"name {model!r} is neither a file or folder here nor a possible name on the hub.", "name")
        case errors.GatedRepoError():
            return CannotLoad(f"{model} is gated on the hub. Accept its terms there and set HF_TOKEN, or choose an open model.")
        case errors.RepositoryNotFoundError():
            return UnknownName(
                f"name {model!r} is not on the hub, or private there, and not one of {', '.join(known_models())}. "
                "Check the spelling; for a private model set HF_TOKEN.",
                "name",
            )
        case errors.LocalEntryNotFoundError() | None:
            return CannotLoad(
                f"{model} cannot be had from the hub: {first_line(error)} Check the spelling and the network; with {offline}."
            )
        case errors.EntryNotFoundError():
            return UnsupportedModel(f"{model} on the hub lacks a file that transformers needs: {first_line(error)}")
        case _:
            return CannotLoad(f"The hub could not deliver {model}: {first_line(error)} Try again later; with {offline}.")


def first_line(error: Exception) -> str:
    line = (str(error).strip().splitlines() or [type(error).__name__])[0]
    return line if line.endswith(".") else line + "."


def is_whole(path: Path) -> bool:
    """Whether a file is there and not cut off. A safetensors file says how long it is; any other one must not be empty."""
    from safetensors import SafetensorError, safe_open

    if path.suffix != ".safetensors":
        return path.is_file() and path.stat().st_size > 0
    try:
        with safe_open(path, "numpy"):
            return True
    except (OSError, SafetensorError):
        return False


def is_here(name: str) -> bool:
    """Whether a model could be loaded without a network: its config, a tokenizer, and every file of its weights."""
    from huggingface_hub import try_to_load_from_cache

    def cached(file: str) -> bool:
        path = try_to_load_from_cache(hub_id(name), file)
        return isinstance(path, str) and is_whole(Path(path))

    if not cached("config.json") or not any(map(cached, ("tokenizer.json", "tokenizer.model", "vocab.json"))):
        return False
    if cached("model.safetensors"):
        return True
    index = try_to_load_from_cache(hub_id(name), "model.safetensors.index.json")
    try:
        shards = set(json.loads(Path(index).read_text(encoding="utf-8"))["weight_map"].values())
        return bool(shards) and all(map(cached, shards))
    except (OSError, ValueError, TypeError, KeyError, AttributeError):  # not here, or damaged
        return False
