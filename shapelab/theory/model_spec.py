"""The numbers of an architecture that set what a token costs. Names are those of Hugging Face configs."""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shapelab.errors import ShapelabError
from shapelab.files import data_path

# How GPT-2-like configs spell the same fields.
_OTHER_NAMES = {
    "num_hidden_layers": "n_layer",
    "hidden_size": "n_embd",
    "num_attention_heads": "n_head",
    "max_position_embeddings": "n_positions",
    "intermediate_size": "n_inner",
}
_TIED_UNLESS_SAID = ("gemma", "gemma2", "gemma3_text", "gpt2")  # what transformers takes where config.json is silent
_GATED = ("llama", "mistral", "mixtral", "qwen2", "qwen3", "gemma", "gemma2", "gemma3_text")
_LARGEST = 10**9


@dataclass(frozen=True)
class ModelSpec:
    """Architecture of a decoder-only model.

    mlp_matrices  matrices of an MLP: 3 when gated (gate, up, down), 2 in GPT-2
    num_experts   MLPs a layer holds, of which each token uses num_experts_per_tok; 1 and 1 in a dense model
    extra_parameters_per_layer, extra_parameters  norms and biases of a layer; final norm and learned positions: numbers
                  that are stored and read, and too few to count as FLOPs
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

    @classmethod
    def from_config(cls, source: Any) -> "ModelSpec":
        """From a config in any of its forms.

        source  a mapping or an object with the fields as attributes (a transformers config); a loaded model; a
                config.json or a folder that holds one; a name in `data/models/`; a hub id.

        An explicit head_dim wins over hidden_size / num_attention_heads; without num_key_value_heads every head has
        its own keys and values. Families whose small terms are known: Llama, Mistral, Qwen2 and Qwen3, Gemma 1 to 3
        (text), GPT-2, Mixtral; another one is counted as if it were Llama. Raises ShapelabError when a field is
        missing or is not a positive whole number.
        """
        fields = _fields(source)

        def number(name: str, default: int | None = None) -> int:
            value = fields.get(name)
            if value is None:
                value = fields.get(_OTHER_NAMES.get(name, ""))
            if value is None:
                value = default
            if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= _LARGEST:
                raise ShapelabError(f"This config's {name} is {value!r}; a positive whole number is needed.")
            return value

        family = fields.get("model_type") or ("gpt2" if "n_embd" in fields else "llama")
        gpt2 = family == "gpt2"
        hidden, heads = number("hidden_size"), number("num_attention_heads")
        experts = number("num_local_experts", 1)
        tied = fields.get("tie_word_embeddings")
        spec = {
            "num_hidden_layers": number("num_hidden_layers"),
            "hidden_size": hidden,
            "num_attention_heads": heads,
            "num_key_value_heads": number("num_key_value_heads", heads),
            "head_dim": number("head_dim", hidden // heads),
            "intermediate_size": number("intermediate_size", None if family in _GATED else 4 * hidden),
            "vocab_size": number("vocab_size"),
            "max_position_embeddings": number("max_position_embeddings"),
            "tie_word_embeddings": family in _TIED_UNLESS_SAID if tied is None else bool(tied),
            "mlp_matrices": 2 if gpt2 else 3,
            "num_experts": experts,
            "num_experts_per_tok": number("num_experts_per_tok") if experts > 1 else 1,
        }
        if spec["num_experts_per_tok"] > experts:
            raise ShapelabError(f"This config uses {spec['num_experts_per_tok']} experts a token and has {experts}.")
        return cls(
            **spec,
            extra_parameters_per_layer=_small_terms(family, fields, spec),
            extra_parameters=hidden * (2 + spec["max_position_embeddings"] if gpt2 else 1),
        )


def _small_terms(family: str, fields, spec: dict[str, Any]) -> int:
    """Norms and biases of one layer, by family (transformers' modelling files of each; checked on real toy models)."""
    hidden, inner, d = spec["hidden_size"], spec["intermediate_size"], spec["head_dim"]
    queries, keys = spec["num_attention_heads"] * d, spec["num_key_value_heads"] * d
    if family == "gpt2":  # two LayerNorms with biases, a bias on each of its four matrices
        return 4 * hidden + (queries + 2 * keys) + hidden + inner + hidden
    norms = 4 * hidden if family in ("gemma2", "gemma3_text") else 2 * hidden
    if family in ("qwen3", "gemma3_text"):
        norms += 2 * d  # queries and keys are normalised, a head at a time
    biases = queries + 2 * keys if family == "qwen2" or fields.get("attention_bias") else 0
    if fields.get("attention_bias"):
        biases += hidden  # the output has one as well
    return norms + biases + (2 * inner + hidden if fields.get("mlp_bias") else 0)


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


def _fields(source: Any) -> dict[str, Any]:
    if isinstance(source, dict):
        return source
    if isinstance(source, str | Path):
        return _read(source)
    config = getattr(source, "config", source)
    return {"model_type": getattr(config, "model_type", None), **vars(config)}  # transformers keeps the type in the class


def _read(source: str | Path) -> dict[str, Any]:
    if str(source) in _known_files():
        return known_config(str(source))
    path = Path(source)
    path = path / "config.json" if path.is_dir() else path
    if not path.is_file():
        path = _from_hub(str(source))
    try:
        fields = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ShapelabError(f"{source} is not a readable config.json ({type(error).__name__}).") from None
    if not isinstance(fields, dict):
        raise ShapelabError(f"{source} is not a model's config: a JSON object was expected.")
    return fields


def _from_hub(model: str) -> Path:
    from huggingface_hub import hf_hub_download  # only where a hub id was given

    try:
        return Path(hf_hub_download(model, "config.json"))
    except Exception as error:  # offline, no such model, a gated one: the library has a class for each
        raise ShapelabError(
            f"{model!r} is neither a config.json, nor one of {', '.join(known_models())}, nor a model whose config the hub "
            f"gave out ({type(error).__name__}{', offline mode' if os.environ.get('HF_HUB_OFFLINE') else ''})."
        ) from None
