"""A T4 as torch describes it: 16 bits that it can do, and sums that are right before anything is loaded or run."""

import dataclasses

import pytest
import torch

from shapelab.errors import DoesNotFit
from shapelab.measure.experiment import measure_shapes
from shapelab.model import load
from shapelab.model.memory import memory_available, memory_needed_bytes
from shapelab.request.shape import RequestShape
from shapelab.theory.arithmetic import weight_bytes
from shapelab.theory.kv_plan import plan_kv
from shapelab.theory.model_spec import ModelSpec
from tests.toys import toy_lab

CUDA = torch.device("cuda")
USABLE = int(14.5 * 2**30)
TINYLLAMA = ModelSpec.from_config("tinyllama")


class Properties:
    total_memory = 15_828_320_256
    name = "Tesla T4"


@pytest.fixture(autouse=True)
def t4(monkeypatch):
    """`held`: bytes that torch keeps for itself without using them."""
    state = {"free": USABLE, "held": 0}
    answers = {
        "is_available": lambda: True,
        "device_count": lambda: 1,
        "get_device_capability": lambda *_: (7, 5),
        "is_bf16_supported": lambda *_, **__: True,  # a T4 says so, and emulates it
        "get_device_properties": lambda *_: Properties,
        "mem_get_info": lambda *_: (state["free"], Properties.total_memory),
        "memory_reserved": lambda *_: state["held"],
        "memory_allocated": lambda *_: 0,
    }
    for name, answer in answers.items():
        monkeypatch.setattr(torch.cuda, name, answer)
    return state


def test_fp16_and_tinyllama_are_its_defaults():
    assert load.choose_dtype(CUDA) == torch.float16
    assert load.choose_model(CUDA)[0] == "tinyllama"


def test_what_fits_is_known_before_loading():
    with pytest.raises(DoesNotFit, match=r"16\.1 GB in float16 and this cuda has 15\.6 GB"):
        load.load("llama-3-8b:random", "cuda")


class AboutToBeMade(Exception):
    pass


def test_what_does_fit_is_made(monkeypatch):
    """As far as a machine without a GPU gets."""
    monkeypatch.setattr(torch, "manual_seed", lambda _: (_ for _ in ()).throw(AboutToBeMade))
    with pytest.raises(AboutToBeMade):
        load.load("tinyllama:random", "cuda")


def test_what_torch_keeps_for_itself_can_be_used_again(t4):
    t4["free"], t4["held"] = 2 * 2**30, 12 * 2**30
    assert memory_available(CUDA) == 14 * 2**30


def test_the_largest_batch_is_near_the_planners_and_not_above_it(t4):
    t4["free"] = USABLE - int(weight_bytes(TINYLLAMA, "float16"))
    lab = dataclasses.replace(toy_lab(), spec=TINYLLAMA, dtype=torch.float16, device=CUDA, name="tinyllama")
    planned = plan_kv(TINYLLAMA, RequestShape(1205, 25), USABLE)["paged"].requests
    fits = [b for b in range(1, planned + 50) if memory_needed_bytes(lab, RequestShape(1205, 25, b)) <= t4["free"]]
    assert 0.1 * planned < max(fits) <= planned, "one pass reads the whole batch here, an engine reads one prompt at a time"
    with pytest.raises(DoesNotFit, match=r"1205x25@\d+ does not fit in the memory of this cuda .* GB are left"):
        measure_shapes(lab, {"large": RequestShape(1205, 25, max(fits) + 1)}, progress=False)
