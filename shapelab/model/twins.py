"""Twins of a model, to measure what one thing does: fewer KV heads, or next to no weights. Their text is noise."""

import copy
import dataclasses

import torch
from accelerate import init_empty_weights
from transformers import AutoModelForCausalLM

from shapelab.errors import UnsupportedModel
from shapelab.model.load import ByteTokenizer, Lab
from shapelab.theory import kv_plan
from shapelab.theory.families import FAMILIES
from shapelab.theory.model_spec import ModelSpec

_HOLLOW_HEAD_DIM = 8
_WIDTHS = ("intermediate_size", "moe_intermediate_size", "shared_expert_intermediate_size", "shared_intermediate_size")


def with_kv_heads(lab: Lab, num_key_value_heads: int) -> Lab:
    """A twin with other KV heads: as many as query heads (MHA), one (MQA) or between (GQA).

    Only the keys' and values' matrices are its own, with random numbers. It shares all others with the lab's model, so it
    costs next to no memory.

    Raises BadArgument where the query heads cannot share them evenly, UnsupportedModel where the family has no such number (GPT-2).
    """
    if FAMILIES[lab.model.config.model_type].kv_heads != "num_key_value_heads":
        raise UnsupportedModel(f"The family of {lab.name} has no number of KV heads that could be changed.")
    num_key_value_heads = kv_plan.with_kv_heads(lab.spec, num_key_value_heads).num_key_value_heads  # refuses what cannot be
    config = copy.deepcopy(lab.model.config)
    config.num_key_value_heads = num_key_value_heads
    with init_empty_weights():
        model = AutoModelForCausalLM.from_config(config, dtype=lab.dtype)
    draw = torch.Generator(lab.device).manual_seed(0)
    weights = lab.model.state_dict()
    for key, placeholder in model.state_dict().items():
        if weights[key].shape != placeholder.shape:
            own = torch.empty(placeholder.shape, dtype=lab.dtype, device=lab.device)
            weights[key] = own.normal_(std=config.initializer_range, generator=draw)
    model.load_state_dict(weights, assign=True)
    model.tie_weights()  # assigning unties
    model.to(lab.device).eval().requires_grad_(False)  # to: the buffers that no state holds
    name = f"{lab.name}, {num_key_value_heads} KV heads"
    return dataclasses.replace(lab, model=model, name=name, weights="random", spec=ModelSpec.from_config(model))


def hollow_twin(lab: Lab) -> Lab:
    """A twin with the same layers, heads and operations, and matrices so small that their arithmetic takes no time.

    What remains of a pass is Python, launching operations and waiting: the overhead of the real one.
    """
    config = copy.deepcopy(lab.model.config)
    family, hidden = FAMILIES[config.model_type], lab.spec.num_attention_heads * _HOLLOW_HEAD_DIM
    narrow = {**dict.fromkeys(_WIDTHS, 16), "vocab_size": 256, "hidden_size": hidden, "word_embed_proj_dim": hidden}
    for name, value in narrow.items():
        spellings = {name, family.names.get(name)}  # most configs keep one of them, and not always the file's
        for field in spellings & vars(config).keys():
            setattr(config, field, value)
    if family.own_head_dim:  # some classes set it and then heed it, others derive it
        config.head_dim = _HOLLOW_HEAD_DIM
    config.bos_token_id = config.eos_token_id = 0  # the model's own may lie beyond the small vocabulary
    config.pad_token_id = None  # with one, transformers looks for it in every pass
    with torch.device(lab.device):
        model = AutoModelForCausalLM.from_config(config, dtype=lab.dtype).eval().requires_grad_(False)
    spec = ModelSpec.from_config(model)
    return dataclasses.replace(
        lab, model=model, tokenizer=ByteTokenizer(), name=f"hollow {lab.name}", weights="random", spec=spec
    )
