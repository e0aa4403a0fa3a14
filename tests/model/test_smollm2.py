"""The embedded model itself: it writes what transformers writes, its tokenizer is SmolLM2's, and nothing complains."""

import os
import subprocess
import sys

import pytest
import torch

from shapelab.measure.experiment import run_once
from shapelab.model.load import load
from shapelab.request.prompts import KINDS, chat_ids, prompt_ids
from shapelab.request.shape import RequestShape

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def lab():
    return load("smollm2-135m", "cpu")


@pytest.mark.parametrize("kind", KINDS)
def test_ids_equal_generate(lab, kind):
    shape = RequestShape(100, 64)
    prompts = prompt_ids(lab.tokenizer, shape, kind=kind)
    found = run_once(lab, shape, prompts).ids
    ids = torch.tensor(prompts)
    expected = lab.model.generate(
        ids, attention_mask=torch.ones_like(ids), do_sample=False, eos_token_id=None, max_new_tokens=64
    )[:, 100:]
    assert found.tolist() == expected.tolist()
    assert found.shape == (1, 64) and len(set(found[0].tolist())) >= 16, "a model that repeats itself proves nothing"


def test_it_answers_in_words(lab):
    ids = chat_ids(lab.tokenizer, "What is the capital of France? Answer with one word.")
    answer = run_once(lab, RequestShape(len(ids), 12), [ids]).ids[0]
    assert "Paris" in lab.tokenizer.decode(answer)


def test_what_it_is(lab):
    assert lab.parameter_count == 134_515_008 and lab.weight_bytes == 4 * 134_515_008
    assert (lab.weights, lab.dtype_name) == ("dequantised from 4-bit", "float32")
    assert "dequantised from 4-bit weights" in lab.label
    assert lab.model.lm_head.weight is lab.model.model.embed_tokens.weight, "tied"
    assert (lab.spec.num_hidden_layers, lab.spec.num_key_value_heads, lab.spec.head_dim) == (30, 3, 64)


def test_rope_theta_is_in_effect(lab):
    expected = 1 / 100_000 ** (torch.arange(0, 64, 2) / 64)
    torch.testing.assert_close(lab.model.model.rotary_emb.inv_freq, expected)


def test_digits_one_by_one(lab):
    ids = lab.tokenizer("20241130")["input_ids"]
    assert [lab.tokenizer.decode([number]) for number in ids] == list("20241130")


@pytest.mark.parametrize("text", ["a", "Hello there", " leading", "<|im_start|>user"])
def test_nothing_is_put_before_or_after_a_text(lab, text):
    ids = lab.tokenizer(text)["input_ids"]
    assert ids == lab.tokenizer(text, add_special_tokens=False)["input_ids"]
    assert lab.tokenizer.decode(ids) == text


def test_marks_are_one_token_each(lab):
    assert lab.tokenizer("<|im_start|><|im_end|><|endoftext|>")["input_ids"] == [1, 2, 0]
    assert lab.tokenizer.eos_token_id == 2 == lab.model.config.eos_token_id


def test_text_comes_back(lab):
    text = "Zeile 1\n\n  Größe: 3,14 €\tänderbar , isn't it ?\r\n👩🏽‍🚀🎉 日本語 no. 2024\n"
    assert lab.tokenizer.decode(lab.tokenizer(text)["input_ids"]) == text


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("length", [1, 2, 63, 64, 65, 1205])
def test_prompts_have_exactly_so_many_tokens(lab, length, kind):
    (row,) = prompt_ids(lab.tokenizer, RequestShape(length, 1), kind=kind)
    assert len(row) == length and all(0 <= number < lab.spec.vocab_size for number in row)
    assert not {0, 1, 2} & set(row), "no mark stands in a prompt of plain text"


def test_prompt_is_readable_text(lab):
    (row,) = prompt_ids(lab.tokenizer, RequestShape(1205, 1))
    assert lab.tokenizer.decode(row).endswith("?\nAnswer:")


QUIET = """
import warnings
import shapelab, torch, transformers, tqdm.auto
from shapelab.measure.experiment import run_once
from shapelab.request.prompts import prompt_ids
from shapelab.model import load as _  # other people's imports may warn; what follows may not
warnings.simplefilter("error")
lab = shapelab.load("smollm2-135m", "cpu")
for shape in ("9x3", "40+9x3@2", "64x1"):
    run_once(lab, shapelab.RequestShape.parse(shape))
prompt_ids(lab.tokenizer, shapelab.RequestShape(7000, 1))  # from a text that is longer than the context
print("done", transformers.utils.logging.get_verbosity())
"""


def test_nobody_is_warned_of_anything():
    """A fresh process, for some warnings are given once only; transformers' logger writes to stderr."""
    environment = {name: value for name, value in os.environ.items() if name != "TRANSFORMERS_VERBOSITY"}
    done = subprocess.run([sys.executable, "-c", QUIET], capture_output=True, text=True, env=environment, check=False)
    assert (done.stdout, done.stderr, done.returncode) == ("done 30\n", "", 0)
