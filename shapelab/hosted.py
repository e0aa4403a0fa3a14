"""Machines that others keep for us (Colab, Kaggle): what is missing is installed there, and nothing that is there changes.

Only the standard library is imported here: this runs before anything else is known to be installed.
"""

import importlib
import os
import re
import subprocess
import sys
import tempfile
from importlib.metadata import PackageNotFoundError, distributions, requires, version
from pathlib import Path

_GPU = {
    "Colab": "In the menu Runtime, choose Change runtime type, then T4 GPU, and run all cells again.",
    "Kaggle": "In the menu Settings, choose Accelerator, then a GPU, and run all cells again.",
}


def host() -> str:
    """Colab, Kaggle, or nothing for any other machine."""
    if "google.colab" in sys.modules or "COLAB_RELEASE_TAG" in os.environ:
        return "Colab"
    return "Kaggle" if "KAGGLE_KERNEL_RUN_TYPE" in os.environ else ""


def how_to_get_a_gpu() -> str:
    """A sentence where there is a way, else nothing."""
    return _GPU.get(host(), "")


def missing() -> list[str]:
    """What shapelab needs and is not installed, as pip would be asked for it, such as "gguf>=0.10"."""
    needed = [line for line in requires("shapelab") or () if "extra ==" not in line]
    return [line for line in needed if not _is_installed(re.match(r"[\w.-]+", line).group())]


def install_missing() -> list[str]:
    """On a host, install what is missing, with every version that is there held where it is; on any other machine, nothing.

    Returns what was installed. A package that is here already is never replaced: pip gives up rather than that, and its
    reason is shown.
    """
    wanted = missing() if host() else []
    if wanted:
        with tempfile.TemporaryDirectory() as folder:
            held = Path(folder, "held.txt")
            held.write_text("".join(f"{d.name}=={d.version}\n" for d in distributions() if _plain(d)), encoding="utf-8")
            command = [sys.executable, "-m", "pip", "install", "--quiet", "--constraint", str(held), *wanted]
            subprocess.run(command, check=True)
        importlib.invalidate_caches()
    return wanted


def _is_installed(name: str) -> bool:
    try:
        version(name)
    except PackageNotFoundError:
        return False
    return True


def _plain(distribution) -> bool:
    """Whether pip can be told to hold it: a broken installation has no name or no version, shapelab itself may be a local file."""
    return bool(distribution.name and distribution.version) and distribution.name != "shapelab"
