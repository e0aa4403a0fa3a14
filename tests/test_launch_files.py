"""The files that other people's machines start from: pip, conda, Binder and the workflows ask for the same packages."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from tests.environments import clone_environment, run

ROOT = Path(__file__).resolve().parents[1]
PYTHONS = ["3.11", "3.12", "3.13"]  # those that the workflows try
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
CONDA_NAMES = {  # conda-forge's names where they differ; the -base packages leave Qt and statsmodels out
    "torch": "pytorch",
    "huggingface-hub": "huggingface_hub",
    "matplotlib": "matplotlib-base",
    "seaborn": "seaborn-base",
}
CONDA_FILES = {"environment.yml": {}, "binder/environment.yml": {"torch": "pytorch-cpu"}}


def wanted(*groups: list[str]) -> dict[str, SpecifierSet]:
    """The range of each package that pyproject.toml names in these lists."""
    requirements = [Requirement(line) for group in groups for line in group]
    return {canonicalize_name(one.name): one.specifier for one in requirements}


def pins() -> dict[str, Version]:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pairs = [line.split("==") for line in lines if not line.startswith("#")]
    return {canonicalize_name(name): Version(version) for name, version in pairs}


def conda(file: str) -> tuple[dict[str, str], list[str]]:
    """(range of each conda package, lines of the pip section) of an environment file."""
    entries = yaml.safe_load((ROOT / file).read_text(encoding="utf-8"))["dependencies"]
    pip = [line for entry in entries if isinstance(entry, dict) for line in entry["pip"]]
    names = [re.fullmatch(r"([\w.-]+)(.*)", entry).groups() for entry in entries if isinstance(entry, str)]
    assert len(names) == len({name for name, _ in names}), "a package is named twice"
    return dict(names), pip


@pytest.mark.parametrize("file", CONDA_FILES)
def test_conda_asks_for_what_pip_asks_for(file):
    names = CONDA_NAMES | CONDA_FILES[file]
    packages, _ = conda(file)
    asked = {name: SpecifierSet(range_) for name, range_ in packages.items() if name not in ("python", "pip")}
    assert asked == {names.get(name, name): range_ for name, range_ in wanted(PROJECT["dependencies"], EXTRAS["course"]).items()}


def test_conda_installs_with_pip_nothing_but_the_course_and_binder_leaves_that_to_its_script():
    assert conda("environment.yml")[1] == ["--editable ."]
    assert conda("binder/environment.yml")[1] == []
    for file in CONDA_FILES:
        assert "pip" in conda(file)[0], "the embedded model is fetched with it"
        assert yaml.safe_load((ROOT / file).read_text(encoding="utf-8"))["channels"] == ["conda-forge", "nodefaults"]


def test_every_python_named_is_one_that_the_package_takes():
    supported = SpecifierSet(PROJECT["requires-python"])
    laptop = SpecifierSet(conda("environment.yml")[0]["python"])
    assert [version for version in (f"3.{minor}" for minor in range(8, 20)) if version in laptop] == PYTHONS
    assert all(version in supported for version in PYTHONS) and "3.10" not in supported
    assert conda("binder/environment.yml")[0]["python"].removeprefix("=") in PYTHONS, "Binder takes one, and no range"


def test_the_tested_version_of_every_direct_dependency_is_within_its_range():
    tested = pins()
    for name, range_ in wanted(PROJECT["dependencies"], *EXTRAS.values()).items():
        assert name in tested, f"{name} has no tested version in constraints.txt"
        assert range_.contains(tested[name], prereleases=True), f"{name} {tested[name]} is not {range_}"


def test_constraints_are_sorted_and_name_each_package_once():
    names = [line.split("==")[0].lower() for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()[1:]]
    assert names == sorted(names) and len(names) == len(pins())


def test_what_a_browser_test_pulls_in_is_pinned_too():
    assert {"playwright", "greenlet", "pyee"} <= set(pins())


@pytest.mark.skipif(importlib.util.find_spec("repo2docker") is None, reason="jupyter-repo2docker is not here (Windows has none)")
def test_binder_builds_from_its_own_folder():
    """repo2docker prints its Dockerfile; no Docker is needed for that."""
    printed = run([sys.executable, "-m", "repo2docker", "--no-build", "--debug", "."], cwd=ROOT)
    assert f"Building conda environment for python{conda('binder/environment.yml')[0]['python']}\n" in printed
    lines = [line.strip() for line in printed.splitlines()]
    (update,) = [line for line in lines if "env update" in line]
    assert '--file "binder/environment.yml"' in update
    assert "environment.yml" not in printed.replace("binder/environment.yml", ""), "the one for laptops must not be used"
    assert lines.index("COPY --chown=0:0 src/ ${REPO_DIR}/") < lines.index("RUN ./binder/postBuild")


def test_the_binder_script_stops_at_the_first_error_and_installs_a_copy():
    script = ROOT / "binder" / "postBuild"
    lines = script.read_text(encoding="utf-8").splitlines()
    assert lines[:2] == ["#!/usr/bin/env bash", "set -e"]
    assert [line for line in lines if "pip install" in line] == ["python -m pip install --no-deps ."]
    assert os.name == "nt" or os.access(script, os.X_OK)


def workflow() -> dict:
    return yaml.safe_load((ROOT / ".github" / "workflows" / "test.yml").read_text(encoding="utf-8"))


def steps(job: str) -> str:
    """The commands of a job, in order."""
    return "\n".join(step["run"] for step in workflow()["jobs"][job]["steps"] if "run" in step)


@pytest.mark.parametrize("job", ["quick", "newest"])
def test_the_quick_tests_run_on_every_system_and_python(job):
    matrix = workflow()["jobs"][job]["strategy"]["matrix"]
    assert matrix == {"os": ["ubuntu-latest", "macos-latest", "windows-latest"], "python": PYTHONS}
    assert 'python -m pytest -m "not slow" tests' in steps(job)
    assert ("--constraint constraints.txt" in steps(job)) is (job == "quick"), "the weekly run takes the newest of everything"


def test_the_workflow_runs_at_every_push_and_every_week_and_may_only_read():
    triggers = workflow()[True]  # YAML takes the key `on` for a truth value
    assert "push" in triggers and len(triggers["schedule"]) == 1
    assert workflow()["permissions"] == {"contents": "read"}
    assert workflow()["jobs"]["quick"]["if"] == "github.event_name != 'schedule'"
    assert workflow()["jobs"]["newest"]["if"] == "github.event_name != 'push' && github.event_name != 'pull_request'"
    for job in workflow()["jobs"].values():
        assert "permissions" not in job and job["timeout-minutes"] <= 90
        assert all(re.fullmatch(r"actions/[\w-]+@v\d+", step["uses"]) for step in job["steps"] if "uses" in step)


def test_one_job_takes_the_oldest_versions_and_one_runs_the_gate():
    ranges = wanted(PROJECT["dependencies"])
    for name, version in (("transformers", "4.57"), ("ipywidgets", "7.7")):
        assert min(one.version for one in ranges[name] if one.operator == ">=") == version
        assert re.search(rf'"{name}=={re.escape(version)}\.[\d*]+"', steps("oldest"))
    assert steps("gate") == ".ci/run"
    assert workflow()["env"]["PIP_EXTRA_INDEX_URL"] == "https://download.pytorch.org/whl/cpu", "no CUDA where there is no GPU"


def committed_copy(folder: Path) -> Path:
    """The files that git keeps, or would, and nothing that a build left lying about."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"not a git checkout ({error})")
    for name in filter(None, listed.decode().split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    return folder


USE = """
import sys
from pathlib import Path

import shapelab
from shapelab.files import data_path
from shapelab.record.recorded import recorded_runs, reported
from shapelab.model import embedded
from shapelab.request.prompts import prompt_ids
from shapelab.theory.hardware import known_gpus
from shapelab.theory.model_spec import known_config, known_models
from shapelab.cost.price_list import load_prices

source = Path(sys.argv[1])
assert Path(shapelab.__file__).is_relative_to(sys.prefix), shapelab.__file__
files = [path.relative_to(source) for path in source.rglob("*") if path.is_file()]
assert files and all(data_path(*path.parts).is_relative_to(sys.prefix) for path in files)
assert all(data_path(*path.parts).read_bytes() == (source / path).read_bytes() for path in files)
assert all(shapelab.recorded(name).measurements for name in recorded_runs()) and recorded_runs() and reported()
assert load_prices() and known_gpus() and all(known_config(name) for name in known_models()) and known_models()
assert embedded.is_cached() and embedded.folder() == Path(sys.argv[2]), "postBuild did not fetch the model"
lab = shapelab.load(embedded.NAME)
assert len(prompt_ids(lab.tokenizer, shapelab.CHAT)[0]) == shapelab.CHAT.input_tokens
print("all here")
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="Binder runs on Linux")
def test_what_binder_installs_works_away_from_the_clone(tmp_path):
    """postBuild in an environment of its own, then a session in an empty folder. The model is fetched if it is not here."""
    python = clone_environment(tmp_path / "env")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    environment["PATH"] = f"{python.parent}{os.pathsep}{environment['PATH']}"
    clone, elsewhere = committed_copy(tmp_path / "clone"), tmp_path / "elsewhere"
    elsewhere.mkdir()
    try:
        run([python, "-m", "pip", "uninstall", "--yes", "shapelab"], env=environment)
        find = "from importlib.util import find_spec; print(getattr(find_spec('shapelab'), 'origin', None))"
        assert run([python, "-c", find], cwd=elsewhere, env=environment).strip() == "None", "postBuild would have nothing to do"
        said = run(["./binder/postBuild"], cwd=clone, env=environment).splitlines()
        assert run([python, "-c", USE, clone / "data", said[-1]], cwd=elsewhere, env=environment).splitlines()[-1] == "all here"
    finally:
        shutil.rmtree(tmp_path / "env")
