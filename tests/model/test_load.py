"""Choosing and loading: every refusal is a sentence with a way out, and comes before anything expensive."""

import json
import platform

import psutil
import pytest
import torch

from shapelab.errors import ShapelabError
from shapelab.model import embedded, load
from shapelab.model.load import ByteTokenizer, choose_device, choose_dtype, choose_model, give_back_memory
from tests.toys import toy_model

CPU, CUDA, MPS = torch.device("cpu"), torch.device("cuda"), torch.device("mps")


@pytest.mark.parametrize(
    "device,capability,dtype",
    [
        (CPU, None, torch.float32),
        (CUDA, (7, 5), torch.float16),
        (CUDA, (8, 0), torch.bfloat16),
        (CUDA, (9, 0), torch.bfloat16),
        (MPS, None, torch.float16),
    ],
)
def test_auto_dtype(device, capability, dtype):
    assert choose_dtype(device, "auto", capability) == dtype


def test_a_t4_has_no_bf16_whatever_torch_says(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda *_: True)
    with pytest.raises(ShapelabError, match="7.5.*float16"):
        choose_dtype(CUDA, "bf16", (7, 5))


@pytest.mark.parametrize(
    "device,dtype,word", [(CPU, "fp16", "float32 or bfloat16"), (CPU, "int8", "not a dtype"), (MPS, "float64", "float32")]
)
def test_impossible_dtypes_are_refused(device, dtype, word):
    with pytest.raises(ShapelabError, match=word):
        choose_dtype(device, dtype)


def test_devices(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    assert choose_device() == CPU == choose_device("cpu")
    for wanted, word in (("cuda", "no cuda"), ("mps", "no mps"), ("tpu", "not a device"), ("meta", "no meta")):
        with pytest.raises(ShapelabError, match=word):
            choose_device(wanted)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    assert choose_device() == CUDA
    with pytest.raises(ShapelabError, match="no cuda:3"):
        choose_device("cuda:3")


@pytest.mark.parametrize("gigabytes,name", [(15.6, "tinyllama"), (4, "smollm2-135m")])
def test_the_default_model_fits(monkeypatch, gigabytes, name):
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: type("P", (), {"total_memory": gigabytes * 1e9})())
    assert choose_model(CUDA)[0] == name
    assert choose_model(CPU)[0] == "smollm2-135m"


def test_random_weights_need_no_download(monkeypatch):
    monkeypatch.setattr(embedded, "ensure", lambda: pytest.fail("a download was asked for"))
    lab = load.load("smollm2-135m:random", "cpu")
    assert (lab.name, lab.weights) == ("smollm2-135m:random", "random")
    assert lab.parameter_count == 134_515_008
    assert "random weights" in lab.label
    assert isinstance(lab.tokenizer, ByteTokenizer)
    assert lab.weight_bytes == 4 * 134_515_008


def test_a_model_too_large_is_refused_before_it_is_made(monkeypatch):
    monkeypatch.setattr(load, "memory_available", lambda _: 3e9)
    with pytest.raises(ShapelabError, match=r"4\.4 GB in float32 .* 3\.0 GB"):
        load.load("tinyllama:random", "cpu")


@pytest.mark.parametrize("name,word", [("x:randomly", "x:random"), ("no/such-model-anywhere", "cannot be had")])
def test_names_that_lead_nowhere(monkeypatch, name, word):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(ShapelabError, match=word):
        load.load(name, "cpu")


def test_bad_weights_word():
    with pytest.raises(ShapelabError, match="'auto' or 'random'"):
        load.load(weights="quantised")


@pytest.fixture
def folder(tmp_path):
    """A local model folder with a byte-level tokenizer."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    toy_model(dtype=torch.float32).save_pretrained(tmp_path)
    letters = {token: n for n, token in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    tokenizer = Tokenizer(models.BPE(letters, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "PreTrainedTokenizerFast"}))
    return tmp_path


def test_a_local_folder(folder):
    lab = load.load(str(folder), "cpu")
    assert lab.weights == "original" and lab.spec.num_hidden_layers == 2 and not lab.model.training


def test_pickled_weights_are_never_read(folder):
    weights = folder / "model.safetensors"
    torch.save({}, folder / "pytorch_model.bin")
    weights.unlink()
    with pytest.raises(ShapelabError, match="cannot be loaded"):
        load.load(str(folder), "cpu")


def test_a_models_own_code_is_never_run(folder):
    config = json.loads((folder / "config.json").read_text())
    config |= {"model_type": "evil", "auto_map": {"AutoConfig": "evil.Config", "AutoModelForCausalLM": "evil.Model"}}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "evil.py").write_text("raise SystemExit('this ran')")
    with pytest.raises(ShapelabError):
        load.load(str(folder), "cpu")


def test_truncated_weights_are_a_sentence(folder):
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    with pytest.raises(ShapelabError, match="cannot be loaded"):
        load.load(str(folder), "cpu")


def test_memory_left_in_a_container(monkeypatch):
    group = "/sys/fs/cgroup/memory."
    files = {f"{group}max": "2000000000\n", f"{group}current": "500000000\n", f"{group}stat": "anon 7\ninactive_file 0\n"}
    monkeypatch.setattr(load.Path, "read_text", lambda self, **_: files[str(self)])
    assert load.memory_available(CPU) <= 1_500_000_000
    files[f"{group}stat"] = "anon 7\ninactive_file 400000000\n"
    monkeypatch.setattr(load.psutil, "virtual_memory", lambda: type("Free", (), {"available": 10**12}))
    assert load.memory_available(CPU) == 1_900_000_000, "pages of files read before are given up when they are wanted"
    files[f"{group}max"] = "max\n"
    assert load.memory_available(CPU) > 0


def test_auto_falls_back_to_the_embedded_model(monkeypatch):
    tried = []

    def fake(name, *_):
        tried.append((name, _[-1]))
        if name == "tinyllama":
            raise ShapelabError("No hub.")
        return "lab"

    monkeypatch.setattr(load, "_load", fake)
    monkeypatch.setattr(load, "choose_model", lambda _: ("tinyllama", "It fits."))
    assert load.load(device="cpu") == "lab"
    assert [name for name, _ in tried] == ["tinyllama", "smollm2-135m"]
    assert "No hub." in tried[1][1][1]


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries keep less and cannot be asked")
def test_freed_memory_goes_back_to_the_system():
    held = [torch.ones(16_000) for _ in range(4_000)]  # 64 kB each: below what glibc maps apart
    last = torch.ones(16_000)  # keeps the heap from shrinking at its end
    del held
    before = psutil.Process().memory_info().rss
    give_back_memory()
    assert before - psutil.Process().memory_info().rss > 200e6 and last.sum() == 16_000
