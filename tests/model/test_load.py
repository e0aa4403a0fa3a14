"""Choosing and loading: every refusal is a sentence with a way out, and comes before anything expensive."""

import contextlib
import dataclasses
import json
import platform

import psutil
import pytest
import torch
from safetensors.torch import load_file, save_file

from shapelab.errors import BadArgument, CannotLoad, DoesNotFit, ShapelabError, UnknownName, UnsupportedModel
from shapelab.measure.experiment import measure_shapes, run_once
from shapelab.model import embedded, load
from shapelab.model.load import ByteTokenizer, choose_device, choose_dtype, choose_model
from shapelab.model.memory import give_back_memory, memory_available
from shapelab.request.shape import RequestShape
from tests.toys import CONFIGS, toy_lab, toy_model

CPU, CUDA, MPS = torch.device("cpu"), torch.device("cuda"), torch.device("mps")


@contextlib.contextmanager
def refused(argument):
    with pytest.raises(BadArgument) as caught:
        yield
    assert caught.value.argument == argument


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
    with refused("dtype"):
        choose_dtype(CUDA, "bf16", (7, 5))


@pytest.mark.parametrize("device,dtype", [(CPU, "fp16"), (CPU, "int8"), (MPS, "float64")])
def test_impossible_dtypes_are_refused(device, dtype):
    with refused("dtype"):
        choose_dtype(device, dtype)


def test_devices(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    assert choose_device() == CPU == choose_device("cpu")
    for absent in ("cuda", "mps", "tpu", "meta"):
        with refused("device"):
            choose_device(absent)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    assert choose_device() == CUDA
    with refused("device"):
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
    with pytest.raises(DoesNotFit):
        load.load("tinyllama:random", "cpu")


def test_a_name_that_is_nearly_right():
    with pytest.raises(UnknownName) as caught:
        load.load("x:randomly", "cpu")
    assert caught.value.argument == "name"


def test_a_model_that_the_hub_does_not_give(monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(CannotLoad):
        load.load("no/such-model-anywhere", "cpu")


@pytest.mark.parametrize("name", ["~/no/such/folder", "/no/such/folder", "./nothing", "no/such/model.gguf", "a b", ""])
def test_paths_that_lead_nowhere(monkeypatch, tmp_path, name):
    monkeypatch.chdir(tmp_path)
    with pytest.raises((UnknownName, CannotLoad)):
        load.load(name, "cpu")


def test_bad_weights_word():
    with refused("weights"):
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


@pytest.fixture
def nothing_loaded(monkeypatch):
    """Neither weights nor a model of random ones."""
    for way in ("from_pretrained", "from_config"):
        monkeypatch.setattr(f"transformers.AutoModelForCausalLM.{way}", lambda *_, **__: pytest.fail("a model was loaded"))


def change_config(folder, **changes):
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | changes))


def test_a_local_folder(folder):
    lab = load.load(str(folder), "cpu")
    assert lab.weights == "original" and lab.spec.num_hidden_layers == 2 and not lab.model.training


def test_a_folder_in_the_home_folder(folder, monkeypatch):
    monkeypatch.setenv("HOME", str(folder.parent))
    monkeypatch.setenv("USERPROFILE", str(folder.parent))
    assert load.load(f"~/{folder.name}", "cpu").spec.num_hidden_layers == 2
    assert load.load(f"~/{folder.name}:random", "cpu").spec.num_hidden_layers == 2
    (folder / "half.gguf").write_bytes(b"GGUF")
    with pytest.raises(CannotLoad):
        load.load(f"~/{folder.name}/half.gguf", "cpu")


def test_pickled_weights_are_never_read(folder):
    torch.save({}, folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    with pytest.raises(CannotLoad):
        load.load(str(folder), "cpu")


@pytest.mark.parametrize("random", ["", ":random"])
@pytest.mark.parametrize(
    "changes",
    [
        {"model_type": "vit"},
        {"model_type": "bert"},
        {"model_type": "t5", "is_encoder_decoder": True},
        {"model_type": "whisper"},
        {"model_type": "llava", "text_config": {"model_type": "llama"}},
        {"model_type": "lfm2", "layer_types": ["conv", "full_attention"]},
        {"model_type": "mamba"},
        {"model_type": "deepseek_v3"},
        {"model_type": "newcomer"},
        {"num_attention_heads": "four"},
    ],
    ids=lambda changes: next(iter(changes.values())),
)
def test_what_cannot_be_counted_is_refused_before_anything_is_loaded(folder, nothing_loaded, changes, random):
    change_config(folder, **changes)
    (folder / "model.safetensors").write_text("nobody looks in here")
    with pytest.raises(UnsupportedModel):
        load.load(f"{folder}{random}", "cpu")


def test_an_uncountable_model_on_the_hub_costs_only_its_config(folder, nothing_loaded, monkeypatch):
    change_config(folder, model_type="mamba")
    fetched = []
    monkeypatch.setattr("huggingface_hub.hf_hub_download", lambda *name: fetched.append(name) or str(folder / "config.json"))
    with pytest.raises(UnsupportedModel):
        load.load("somebody/something", "cpu")
    assert fetched == [("somebody/something", "config.json")]


def test_a_models_own_code_is_never_run(folder, nothing_loaded):
    change_config(folder, model_type="evil", auto_map={"AutoConfig": "evil.Config", "AutoModelForCausalLM": "evil.Model"})
    (folder / "evil.py").write_text("raise SystemExit('this ran')")
    with pytest.raises(UnsupportedModel):
        load.load(str(folder), "cpu")


def test_a_known_family_that_brings_code_is_loaded_without_it(folder):
    change_config(folder, auto_map={"AutoConfig": "evil.Config", "AutoModelForCausalLM": "evil.Model"})
    (folder / "evil.py").write_text("raise SystemExit('this ran')")
    assert type(load.load(str(folder), "cpu").model).__name__ == "LlamaForCausalLM"


def test_a_count_that_transformers_does_not_share_is_refused(folder, monkeypatch):
    monkeypatch.setattr(load, "parameter_count", lambda _: 1)
    with pytest.raises(UnsupportedModel):
        load.load(str(folder), "cpu")


def split_in_shards(folder):
    toy_model(dtype=torch.float32).save_pretrained(folder, max_shard_size="100KB")
    (folder / "model.safetensors").unlink(missing_ok=True)
    shards = sorted(folder.glob("model-*.safetensors"))
    assert len(shards) > 1
    return shards


def cut_weights(folder):
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])


def lose_a_matrix(folder):
    """Transformers would draw it at random and go on."""
    weights = load_file(folder / "model.safetensors")
    del weights["model.layers.0.mlp.up_proj.weight"]
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


DAMAGES = {
    "no weights": lambda folder: (folder / "model.safetensors").unlink(),
    "cut weights": cut_weights,
    "empty weights": lambda folder: (folder / "model.safetensors").write_bytes(b""),
    "a matrix is missing": lose_a_matrix,
    "another size": lambda folder: change_config(folder, intermediate_size=48),
    "a shard is missing": lambda folder: split_in_shards(folder)[0].unlink(),
    "no shard": lambda folder: [shard.unlink() for shard in split_in_shards(folder)],
    "no config": lambda folder: (folder / "config.json").unlink(),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_half_a_model_is_a_sentence(folder, damage):
    DAMAGES[damage](folder)
    with pytest.raises(CannotLoad):
        load.load(str(folder), "cpu")


def test_shards_are_read(folder):
    split_in_shards(folder)
    assert load.load(str(folder), "cpu").spec.num_hidden_layers == 2


@pytest.mark.parametrize("content", [b"", b"GGUF", b"GGUF\x03\0\0\0" + b"\1" * 40, b"not at all"])
def test_a_gguf_file_that_is_partly_there(tmp_path, content):
    (tmp_path / "model.gguf").write_bytes(content)
    with pytest.raises(CannotLoad):
        load.load(str(tmp_path / "model.gguf"), "cpu")


def test_memory_of_a_cpu_is_the_computers(monkeypatch):
    monkeypatch.setattr("shapelab.model.memory.memory_left", lambda: 12345)
    assert memory_available(CPU) == memory_available(MPS) == 12345


def test_auto_falls_back_to_the_embedded_model(folder, monkeypatch):
    monkeypatch.setattr(load, "choose_model", lambda _: ("somebody/something", "It fits."))
    monkeypatch.setattr("huggingface_hub.hf_hub_download", lambda *_: (_ for _ in ()).throw(ConnectionError("No hub.")))
    monkeypatch.setattr(embedded, "ensure", lambda: folder)
    lab = load.load(device="cpu")
    assert (lab.name, lab.weights) == ("smollm2-135m", "dequantised from 4-bit")
    assert lab.notes[0] == "It fits." and "No hub." in lab.notes[1]


def test_auto_has_nothing_behind_the_embedded_model(monkeypatch):
    monkeypatch.setattr(embedded, "ensure", lambda: (_ for _ in ()).throw(CannotLoad("Full.")))
    with pytest.raises(CannotLoad, match="Full"):
        load.load(device="cpu")


def test_a_small_vocabulary():
    """A byte has 256 values; a toy may have 65 tokens."""
    lab = toy_lab(vocab_size=65)
    assert max(ByteTokenizer(65)("zebra €")["input_ids"]) < 65 and ByteTokenizer()("é")["input_ids"] == [195, 169]
    assert run_once(lab, RequestShape(30, 4)).ids.shape == (1, 4)


@pytest.mark.parametrize("row", [[300], [-1], [5, 299, 300]])
def test_ids_of_another_vocabulary_are_refused_before_anything_runs(row, monkeypatch):
    lab = toy_lab()
    monkeypatch.setattr(type(lab.model), "forward", lambda *_, **__: pytest.fail("it ran"))
    with refused("prompts"):
        run_once(lab, RequestShape(len(row), 2), [row])
    beyond = dataclasses.replace(lab, tokenizer=ByteTokenizer(), spec=dataclasses.replace(lab.spec, vocab_size=65))
    with refused("prompts"):
        measure_shapes(beyond, {"small": RequestShape(30, 2)}, progress=False)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries keep less and cannot be asked")
def test_freed_memory_goes_back_to_the_system():
    held = [torch.ones(16_000) for _ in range(4_000)]  # 64 kB each: below what glibc maps apart
    last = torch.ones(16_000)  # keeps the heap from shrinking at its end
    del held
    before = psutil.Process().memory_info().rss
    give_back_memory()
    assert before - psutil.Process().memory_info().rss > 200e6 and last.sum() == 16_000


@pytest.mark.parametrize(
    "changes",
    [
        {"hidden_act": "nonsense"},
        {"rope_scaling": {"rope_type": "nonsense"}},
        {"attn_implementation": "nonsense"},
        {"pad_token_id": 999},
        {"hidden_size": 66, "head_dim": 15},
    ],
    ids=str,
)
@pytest.mark.parametrize("suffix", ["", ":random"])
def test_a_config_that_transformers_cannot_build_ends_in_a_sentence(tmp_path, changes, suffix):
    (tmp_path / "config.json").write_text(json.dumps({**CONFIGS["llama"], **changes}))
    with pytest.raises(ShapelabError):
        load.load(f"{tmp_path}{suffix}", "cpu")
