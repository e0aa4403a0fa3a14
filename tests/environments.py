"""Environments to try things in, made from the running one in seconds: its files are linked, nothing is downloaded."""

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

JUPYTER = (("share", "jupyter"), ("etc", "jupyter"))  # where JupyterLab's pages and settings lie, outside site-packages


def clone_environment(folder: Path) -> Path:
    """A virtual environment in `folder` with what the running one has installed; returns its interpreter.

    Files are hard links (copies where the file system has none), so a clone takes a second or two and no room. pip may
    do what it likes in it: it replaces files and never writes into one. Commands are not linked, because the first line
    of each names the old interpreter: use `python -m`.
    """
    venv.EnvBuilder(symlinks=os.name != "nt").create(folder)
    there = sysconfig.get_paths("venv", vars={"base": str(folder), "platbase": str(folder)})
    for kind in ("purelib", "platlib"):
        _link_tree(Path(sysconfig.get_path(kind)), Path(there[kind]))
    for parts in JUPYTER:
        _link_tree(Path(sys.prefix, *parts), folder.joinpath(*parts))
    return Path(there["scripts"], "python.exe" if os.name == "nt" else "python")


def _link_tree(source: Path, target: Path):
    if source.is_dir():
        shutil.copytree(source, target, copy_function=_link, symlinks=True, dirs_exist_ok=True)


def _link(source: str, target: str):
    if os.path.exists(target):  # purelib and platlib are often one folder
        return
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def run(command: list, **named) -> str:
    """What a command prints, both streams; AssertionError with all of it when the command fails."""
    words = [str(word) for word in command]
    both = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, "encoding": "utf-8"}
    done = subprocess.run(words, check=False, **both, **named)
    assert done.returncode == 0, f"{' '.join(words)}\n{done.stdout}"
    return done.stdout
