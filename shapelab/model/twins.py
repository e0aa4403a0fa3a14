"""Twins of a model that differ in one number of their architecture, with random weights, to measure what that number does."""

import copy
import dataclasses

import torch
from accelerate import init_empty_weights
from transformers import AutoModelForCausalLM

from shapelab.errors import ShapelabError
from shapelab.model.load import Lab
from shapelab.theory import kv_plan
from shapelab.theory.model_spec import ModelSpec


def with_kv_heads(lab: Lab, num_key_value_heads: int) -> Lab:
    """A twin with other KV heads: as many as query heads (MHA), one (MQA) or between (GQA). Its text is noise.

    Only the keys' and values' matrices are its own, with random numbers; all others are the lab's, so that a twin costs next
    to no memory.

    Raises ShapelabError where the query heads cannot be shared evenly, or where the family has no such number (GPT-2).
    """
    if not hasattr(lab.model.config, "num_key_value_heads"):
        raise ShapelabError(f"{lab.name} has a KV head for every query head, and its config knows no other way.")
    kv_plan.with_kv_heads(lab.spec, num_key_value_heads)  # refuses what cannot be
    config = copy.deepcopy(lab.model.config)
    config.num_key_value_heads = num_key_value_heads
    with init_empty_weights():
        model = AutoModelForCausalLM.from_config(config, dtype=lab.dtype)
    draw = torch.Generator(lab.device).manual_seed(0)
    weights = lab.model.state_dict()
    for key, wanted in model.state_dict().items():
        if weights[key].shape != wanted.shape:
            own = torch.empty(wanted.shape, dtype=lab.dtype, device=lab.device)
            weights[key] = own.normal_(std=config.initializer_range, generator=draw)
    model.load_state_dict(weights, assign=True)
    model.tie_weights()  # assigning unties
    model.to(lab.device).eval().requires_grad_(False)  # to: the buffers that no state holds
    name = f"{lab.name}, {num_key_value_heads} KV heads"
    return dataclasses.replace(lab, model=model, name=name, weights="random", spec=ModelSpec.from_config(model))
