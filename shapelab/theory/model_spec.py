"""The numbers of an architecture that set what a token costs. Names are those of Hugging Face configs."""

import json
from dataclasses import dataclass
from typing import Any

from shapelab.errors import ShapelabError
from shapelab.files import data_path

# How GPT-2-like configs spell the same fields.
_OTHER_NAMES = {
    "num_hidden_layers": "n_layer",
    "hidden_size": "n_embd",
    "num_attention_heads": "n_head",
    "max_position_embeddings": "n_positions",
}


@dataclass(frozen=True)
class ModelSpec:
    """Architecture of a decoder-only model."""

    num_hidden_layers: int
    hidden_size: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    vocab_size: int
    max_position_embeddings: int

    @classmethod
    def from_config(cls, config: Any) -> "ModelSpec":
        """From a config as a mapping or an object with the fields as attributes (a transformers config).

        An explicit head_dim wins over hidden_size / num_attention_heads; without num_key_value_heads every head has
        its own keys and values. Raises ShapelabError when a field is missing or is not a positive whole number.
        """
        fields = config if isinstance(config, dict) else vars(config)

        def number(name: str, default: int | None = None) -> int:
            value = fields.get(name)
            if value is None:
                value = fields.get(_OTHER_NAMES.get(name, ""), default)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ShapelabError(f"This config's {name} is {value!r}; a positive whole number is needed.")
            return value

        hidden, heads = number("hidden_size"), number("num_attention_heads")
        return cls(
            num_hidden_layers=number("num_hidden_layers"),
            hidden_size=hidden,
            num_attention_heads=heads,
            num_key_value_heads=number("num_key_value_heads", heads),
            head_dim=number("head_dim", hidden // heads),
            vocab_size=number("vocab_size"),
            max_position_embeddings=number("max_position_embeddings"),
        )


def known_config(name: str) -> dict[str, Any]:
    """The config in `data/models/` for a name such as tinyllama; KeyError when there is none."""
    known = {path.stem: path for path in data_path("models").glob("*.json")}
    return json.loads(known[name].read_text(encoding="utf-8"))["config"]
