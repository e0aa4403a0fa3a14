"""What the hub gives out, and what is here of it: every failure by the library's own class, no network asked."""

import json
from types import SimpleNamespace

import pytest
from huggingface_hub import errors

from shapelab.errors import BadFile, CannotLoad, UnknownName, UnsupportedModel
from shapelab.model.catalogue import catalogue
from shapelab.model.hub import failure, is_here, spec_of
from shapelab.theory.model_spec import ModelSpec, known_config
from tests.toys import WEIGHTS


def http(kind):
    """One of the hub's answers; its classes take another form in each release."""
    error = kind.__new__(kind)
    OSError.__init__(error, "401 gated? trust_remote_code? No: words decide nothing.")
    return error


def wrapped(error):
    """As transformers passes it on."""
    outer = OSError("You are trying to access a gated repo? Or not.")
    outer.__cause__ = error
    return outer


FAILURES = [
    (http(errors.GatedRepoError), CannotLoad),
    (http(errors.RepositoryNotFoundError), UnknownName),
    (errors.LocalEntryNotFoundError("no network"), CannotLoad),
    (errors.OfflineModeIsEnabled("offline"), CannotLoad),
    (errors.EntryNotFoundError("no config.json"), UnsupportedModel),
    (errors.HFValidationError("a b"), UnknownName),
    (http(errors.HfHubHTTPError), CannotLoad),
    (ConnectionError("cable"), CannotLoad),
    (ValueError("whatever"), CannotLoad),
]


@pytest.mark.parametrize("form", [lambda error: error, wrapped], ids=["itself", "wrapped"])
@pytest.mark.parametrize("error,kind", FAILURES, ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "")
def test_a_failure_is_told_by_its_class(error, kind, form):
    assert type(failure("somebody/something", form(error))) is kind


def test_a_gated_model_is_not_taken_for_one_that_is_not_there():
    gated, absent = (str(failure("a/b", http(kind))) for kind in (errors.GatedRepoError, errors.RepositoryNotFoundError))
    assert "terms" in gated and "terms" not in absent


@pytest.fixture
def download(monkeypatch, tmp_path):
    """Answers with a config.json of these fields, or raises."""
    calls = []

    def answer(fields):
        def hf_hub_download(model, file):
            calls.append((model, file))
            if isinstance(fields, Exception):
                raise fields
            (tmp_path / "config.json").write_text(fields if isinstance(fields, str) else json.dumps(fields))
            return str(tmp_path / "config.json")

        monkeypatch.setattr("huggingface_hub.hf_hub_download", hf_hub_download)
        return calls

    return answer


def test_a_spec_from_the_hub(download):
    calls = download(known_config("tinyllama"))
    assert spec_of("somebody/something") == ModelSpec.from_config("tinyllama")
    assert calls == [("somebody/something", "config.json")]


def test_what_is_known_is_not_fetched(download, tmp_path):
    calls = download(ConnectionError())
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "config.json").write_text(json.dumps(known_config("tinyllama")))
    assert spec_of("tinyllama") == spec_of(str(tmp_path / "own")) == ModelSpec.from_config("tinyllama") and not calls


@pytest.mark.parametrize(
    "answer,kind",
    [
        ({"model_type": "vit"}, UnsupportedModel),
        ("no json", BadFile),
        ("[]", BadFile),
        (errors.LocalEntryNotFoundError("x"), CannotLoad),
    ],
)
def test_a_spec_that_the_hub_does_not_give(download, answer, kind):
    download(answer)
    with pytest.raises(kind):
        spec_of("somebody/something")


WHOLE = {"config.json", "tokenizer.json", "model.safetensors"}
SPLIT = {"config.json", "tokenizer.json", "model.safetensors.index.json"}
SHARDS = {"model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"}
INDEX = {"weight_map": dict(zip("abc", sorted(SHARDS) * 2, strict=False))}


@pytest.fixture
def cache(monkeypatch, tmp_path):
    """The hub's cache on disk with these files of a model, as huggingface_hub lays them out."""

    def fill(files, index=INDEX, model="somebody/something", **cut):
        home = tmp_path / f"models--{model.replace('/', '--')}"
        snapshot = home / "snapshots" / "1234"
        snapshot.mkdir(parents=True)
        (home / "refs").mkdir()
        (home / "refs" / "main").write_text("1234")
        for file in files:
            content = WEIGHTS if file.endswith(".safetensors") else json.dumps(index).encode()
            (snapshot / file).write_bytes(content[: cut.get(file)])

    from huggingface_hub import file_download

    monkeypatch.setattr(file_download, "HF_HUB_CACHE", str(tmp_path), raising=False)
    monkeypatch.setattr(
        file_download, "constants", SimpleNamespace(**{**vars(file_download.constants), "HF_HUB_CACHE": str(tmp_path)})
    )
    return fill


@pytest.mark.parametrize("files", [WHOLE, SPLIT | SHARDS, WHOLE - {"tokenizer.json"} | {"tokenizer.model"}])
def test_a_whole_model_is_here(cache, files):
    cache(files)
    assert is_here("somebody/something")


@pytest.mark.parametrize(
    "files",
    [
        set(),
        {"config.json"},
        SPLIT,
        SPLIT | {min(SHARDS)},
        *(WHOLE - {file} for file in sorted(WHOLE)),
        SPLIT | SHARDS - {max(SHARDS)},
    ],
    ids=lambda files: ",".join(sorted(files)) or "nothing",
)
def test_half_a_model_is_not(cache, files):
    cache(files)
    assert not is_here("somebody/something")


@pytest.mark.parametrize("size", [0, 7, -1])
@pytest.mark.parametrize("files", [WHOLE, SPLIT | SHARDS])
def test_a_file_that_is_cut_off_is_not(cache, files, size):
    cache(files, **{max(file for file in files if file.endswith(".safetensors")): size})
    assert not is_here("somebody/something")


@pytest.mark.parametrize("index", [{"weight_map": {"a": 5}}, {}, [], {"weight_map": {}}, {"weight_map": None}, "x"])
def test_a_damaged_index_is_not(cache, index):
    cache(SPLIT | SHARDS, index)
    assert not is_here("somebody/something")


@pytest.mark.parametrize("files,here", [(WHOLE, True), (SPLIT, False)])
def test_the_catalogue_counts_what_can_be_loaded(cache, files, here):
    cache(files, model="TinyLlama/TinyLlama-1.1B-Chat-v1.0")
    assert {entry["name"]: entry["cached"] for entry in catalogue()}["tinyllama"] is here
