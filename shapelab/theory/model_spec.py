"""The numbers of an architecture that set what a token costs. Names are those of Hugging Face configs."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral
from pathlib import Path
from typing import Any

from shapelab.errors import BadArgument, BadFile, UnknownName, UnsupportedModel
from shapelab.files import data_path, user_path
from shapelab.theory.families import FAMILIES, Family

_LARGEST = 10**9
_EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts")  # the families' own words for one number
_CACHED_WHOLE = {"full_attention", "sliding_attention"}  # kinds of layers whose cache holds keys and values


@dataclass(frozen=True)
class ModelSpec:
    """Architecture of a decoder-only model.

    mlp_matrices  matrices of an MLP: 3 when gated (gate, up, down), 2 in GPT-2
    num_experts   MLPs that a layer holds, of which each token uses num_experts_per_tok; 1 and 1 in a dense model
    moe_intermediate_size  width of an expert; 0: the intermediate_size
    shared_expert_intermediate_size  width of an MLP that every token uses beside its experts
    num_dense_layers  layers of a model with experts that have one MLP of intermediate_size instead
    extra_parameters_per_layer, extra_parameters  norms and biases of a layer; final norm, learned positions and the like:
                  numbers that are stored and read, and too few to count as FLOPs
    """

    num_hidden_layers: int
    hidden_size: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    intermediate_size: int
    vocab_size: int
    max_position_embeddings: int
    tie_word_embeddings: bool = False
    mlp_matrices: int = 3
    num_experts: int = 1
    num_experts_per_tok: int = 1
    extra_parameters_per_layer: int = 0
    extra_parameters: int = 0
    moe_intermediate_size: int = 0
    shared_expert_intermediate_size: int = 0
    num_dense_layers: int = 0

    @classmethod
    def from_config(cls, source: Any) -> "ModelSpec":
        """From a config in any of its forms.

        source  a mapping or an object with the fields as attributes (a transformers config); a loaded model; a
                config.json or a folder that holds one; a name in `data/models/`. For a model on the hub use
                `shapelab.model.hub.spec_of`; nothing is fetched here.

        An explicit head_dim wins over hidden_size / num_attention_heads; without num_key_value_heads every head has its
        own keys and values. Fields without a model_type are taken for Llama's, or for GPT-2's or Mixtral's where they
        have those families' names.

        Raises UnsupportedModel for a family that `families.FAMILIES` does not list, and where a field is missing or is
        not a positive whole number; UnknownName and BadFile where `source` leads to no config.
        """
        fields = _fields(source)
        return _count(_Reader(fields, _family(fields)))


@dataclass(frozen=True)
class _Reader:
    """The fields of a config, by the names and defaults of its family."""

    fields: Mapping[str, Any]
    family: Family

    def get(self, name: str, default: Any = None) -> Any:
        spellings = [key for key in (name, self.family.names.get(name)) if key in self.fields]
        given = next((self.fields[key] for key in spellings if self.fields[key] is not None), None)
        return given if given is not None else default if spellings else self.family.defaults.get(name, default)

    def flag(self, rule: str | bool) -> bool:
        return bool(self.get(rule)) if isinstance(rule, str) else rule

    def number(self, name: str, default: int | None = None, least: int = 1) -> int:
        value = self.get(name, default)
        if isinstance(value, bool) or not isinstance(value, Integral) or not least <= value <= _LARGEST:
            raise UnsupportedModel(f"This config's {name} is {value!r}; a positive whole number is needed.")
        return int(value)


def _family(fields: Mapping[str, Any]) -> Family:
    """The rules of a config's family; UnsupportedModel where there are none, or where this config's layers do not follow them."""
    kind = fields.get("model_type")
    if kind is None and not {"moe_intermediate_size", *_EXPERTS} & fields.keys() - {"num_local_experts"}:
        kind = "gpt2" if "n_embd" in fields else "mixtral" if "num_local_experts" in fields else "llama"
    family = FAMILIES.get(kind) if isinstance(kind, str) else None
    if family is None:
        reason = (
            f"it counts decoder-only text models of {len(FAMILIES)} families, such as llama, qwen3, gemma2, mixtral and gpt_neox"
        )
        if fields.get("is_encoder_decoder"):
            reason = "it has an encoder, and this course is about decoder-only models"
        elif "text_config" in fields or "vision_config" in fields:
            reason = "it reads more than text, and this course is about models of text alone"
        elif fields.get("auto_map"):
            reason = "it needs code of its own, and shapelab never runs a model's code"
        raise UnsupportedModel(f"shapelab cannot count a model of type {kind!r}: {reason}.")
    for name, needed in {**family.only_if, "add_cross_attention": False, "is_encoder_decoder": False}.items():
        value, needed = fields.get(name), fields.get(needed) if isinstance(needed, str) else needed
        if value is not None and value != needed:
            raise UnsupportedModel(
                f"shapelab cannot count a {kind} model whose {name} is {value!r}, only one where it is {needed!r}."
            )
    if other := {str(layer) for layer in _listed(fields, "layer_types")} - _CACHED_WHOLE:
        raise UnsupportedModel(f"shapelab cannot count a {kind} model with layers of {', '.join(sorted(other))}.")
    return family


def _listed(fields: Mapping[str, Any], name: str) -> list | tuple:
    value = fields.get(name)
    if value is not None and not isinstance(value, list | tuple):
        raise UnsupportedModel(f"This config's {name} is {value!r}; a list with an entry for each layer is needed.")
    return value or ()


def _count(config: _Reader) -> ModelSpec:
    family, number = config.family, config.number
    layers, hidden, heads = (number(name) for name in ("num_hidden_layers", "hidden_size", "num_attention_heads"))
    kv_heads = 1 if config.flag(family.one_kv_head_if) else number(family.kv_heads, heads) if family.kv_heads else heads
    if heads % kv_heads or (not family.own_head_dim and hidden % heads):
        raise UnsupportedModel(
            f"This config's {heads} query heads cannot share {kv_heads} KV heads and a hidden size of {hidden} evenly."
        )
    inner = 4 * hidden if family.inner == "always" else number("intermediate_size", 4 * hidden if family.inner else None)
    context, tied = number("max_position_embeddings"), config.get("tie_word_embeddings")
    spec = {
        "num_hidden_layers": layers,
        "hidden_size": hidden,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "head_dim": number("head_dim", hidden // heads) if family.own_head_dim else hidden // heads,
        "intermediate_size": inner,
        "vocab_size": number("vocab_size"),
        "max_position_embeddings": context,
        "tie_word_embeddings": family.tied if tied is None else bool(tied),
        "mlp_matrices": family.mlp_matrices,
        **(_experts(config, layers) if family.experts else {}),
    }
    more = family.norm_vectors * family.more_norms * hidden
    more += hidden * (context + family.positions) if family.positions is not None else 0
    more += spec["vocab_size"] if config.flag(family.head_bias) else 0
    more += hidden * (layers - spec["num_dense_layers"]) if family.shared_gate else 0
    return ModelSpec(**spec, extra_parameters_per_layer=_small_terms(config, spec), extra_parameters=more)


def _experts(config: _Reader, layers: int) -> dict[str, int]:
    """Experts, their widths, and how many layers have none: the first ones, listed ones, or all but every n-th."""
    family, number = config.family, config.number
    experts = number(next((name for name in _EXPERTS if config.fields.get(name) is not None), _EXPERTS[0]))
    chosen, width = number("num_experts_per_tok"), number(family.experts)
    if chosen > experts:
        raise UnsupportedModel(f"This config uses {chosen} experts a token and has {experts}.")
    shared = number(family.shared, 0, 0) * (width if family.shared == "n_shared_experts" else 1) if family.shared else 0
    dense = 0
    if family.dense == "first_k_dense_replace":
        dense = min(layers, number(family.dense, 0, 0))
    elif family.dense:
        listed, every = _listed(config.fields, family.dense), number("decoder_sparse_step", 1)
        dense = sum(layer in listed or (layer + 1) % every > 0 for layer in range(layers))
    return {
        "num_experts": experts,
        "num_experts_per_tok": chosen,
        "moe_intermediate_size": width if family.experts == "moe_intermediate_size" else 0,
        "shared_expert_intermediate_size": shared,
        "num_dense_layers": dense,
    }


def _small_terms(config: _Reader, spec: dict[str, Any]) -> int:
    """Norms and biases of one layer."""
    family, hidden, inner, d = config.family, spec["hidden_size"], spec["intermediate_size"], spec["head_dim"]
    queries, keys = spec["num_attention_heads"] * d, spec["num_key_value_heads"] * d
    norms = 1 if config.flag(family.one_norm_if) else family.norms
    total = family.norm_vectors * norms * hidden + family.learned
    if family.qk_norm and config.flag(family.qk_norm_if):
        total += 2 * d if family.qk_norm == "head" else queries + keys
    total += queries + 2 * keys if config.flag(family.qkv_bias) else 0
    total += hidden if config.flag(family.out_bias) else 0
    return total + ((family.mlp_matrices - 1) * inner + hidden if config.flag(family.mlp_bias) else 0)


def known_config(name: str) -> dict[str, Any]:
    """The config in `data/models/` for a name such as tinyllama; KeyError when there is none."""
    return json.loads(_known_files()[name].read_text(encoding="utf-8"))["config"]


def hub_id(name: str) -> str:
    """The hub id behind a name in `data/models/`; a name that is not there is taken for a hub id already."""
    known = _known_files().get(name)
    return json.loads(known.read_text(encoding="utf-8"))["hub_id"] if known else name


def known_models() -> list[str]:
    """The names in `data/models/`."""
    return sorted(_known_files())


def _known_files() -> dict[str, Path]:
    return {path.stem: path for path in data_path("models").glob("*.json")}


def _fields(source: Any) -> Mapping[str, Any]:
    if isinstance(source, Mapping):
        return source
    if isinstance(source, str | Path):
        return known_config(str(source)) if str(source) in _known_files() else read_config(source)
    config = getattr(source, "config", source)
    if not hasattr(config, "__dict__"):
        raise BadArgument(f"source must be a config, a model, a path or a model's name, not {source!r}.", "source")
    return {"model_type": getattr(config, "model_type", None), **vars(config)}  # transformers keeps the type in the class


def read_config(source: str | Path) -> dict[str, Any]:
    """The fields of a config.json, or of the one in a folder."""
    path = user_path(source)
    path = path / "config.json" if os.path.isdir(path) else path
    if not os.path.isfile(path):
        raise UnknownName(
            f"source {str(source)!r} is neither a config.json, nor a folder with one, nor one of {', '.join(known_models())}. "
            "For a model on the hub use shapelab.model.hub.spec_of.",
            "source",
        )
    try:
        fields = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise BadFile(f"{source} is not a readable config.json ({type(error).__name__}).") from None
    if not isinstance(fields, dict):
        raise BadFile(f"{source} is not a model's config: a JSON object was expected.")
    return fields
