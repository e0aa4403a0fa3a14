"""The package as a whole: light to import, honest about where its files are, free of anything dangerous or local."""

import ast
import os
import shutil
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

import shapelab
from shapelab import files
from shapelab.files import cache_dir, data_path

ROOT = Path(__file__).resolve().parents[1]
SOURCES = sorted((ROOT / "shapelab").rglob("*.py"))
PICKLES = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"}
DATA = sorted(path.relative_to(ROOT / "data") for path in (ROOT / "data").rglob("*") if path.is_file())


def python(code, *arguments):
    """Run code in a fresh interpreter; its stdout."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", code, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_importing_shapelab_imports_nothing_heavy():
    heavy = python("import sys, shapelab; shapelab.__version__, dir(shapelab); print(*sys.modules)").split()
    assert "shapelab" in heavy
    assert not {"torch", "transformers", "pandas", "scipy", "numpy", "matplotlib", "pydantic"} & set(heavy)


WITHOUT_TORCH = """
import sys

class NoTorch:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "transformers"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, NoTorch())
try:
    import torch
except ModuleNotFoundError:
    pass
else:
    raise SystemExit("torch could be imported")
"""
USE = {
    "request": """
from shapelab.request.prompts import prompt_ids
from shapelab.request.shape import parse_shapes
encode = lambda text, **_: {"input_ids": list(text.encode())}
(shape,) = parse_shapes("8+56x3@2").values()
print([len(row) for row in prompt_ids(encode, shape)])
""",
    "theory": """
from shapelab.theory.arithmetic import kv_bytes_per_token, parameter_count
from shapelab.theory.model_spec import ModelSpec
spec = ModelSpec.from_config("smollm2-135m")
print(parameter_count(spec), kv_bytes_per_token(spec))
""",
    "metrics": """
from shapelab.record import metrics
from shapelab.record.timeline import Timeline
from shapelab.request.shape import RequestShape
t = Timeline(RequestShape(50, 11), (0, 10**8, 2 * 10**8))
print(metrics.tpot_s(t), metrics.interval([1.0] * 3 + [2.0] * 4)[1], metrics.drift([1, 2, 3]) is not None)
""",
    "record": """
from shapelab.record.run import Run
run = Run.load(sys.argv[1])
print(Run.load(run.save(sys.argv[2])) == run, list(run.to_frame().name), "<table" in run._repr_html_())
""",
    "claims": """
from shapelab.claims.registry import as_records, findings
from shapelab.record.run import Run
print([record["verdict"] for record in as_records(findings(Run.load(sys.argv[1])))])
""",
    "figures": """
from shapelab.classroom.figures import timelines
from shapelab.record.run import Run
timelines(Run.load(sys.argv[1])).save(sys.argv[2])
print("drawn")
""",
}
SAYS = {
    "request": "[64, 64]",
    "theory": "134515008 23040",
    "metrics": "0.01 2.0 True",
    "record": "True ['chat', 'rag', 'creative'] True",
    "claims": "['holds', 'holds', 'holds', 'holds', 'holds']",
    "figures": "drawn",
}


@pytest.mark.parametrize("room", USE)
def test_these_work_where_no_torch_is_installed(room, tmp_path):
    from tests.runs import LIKE_A_TALK, make_run

    run = make_run(LIKE_A_TALK).save(tmp_path / "run.jsonl")
    target = tmp_path / ("figure.png" if room == "figures" else "again.jsonl")
    assert python(WITHOUT_TORCH + USE[room], run, target).strip() == SAYS[room]


@pytest.mark.parametrize("name", shapelab.__all__)
def test_every_public_name_resolves(name):
    assert getattr(shapelab, name) is getattr(import_module(shapelab._HOMES[name]), name)
    assert name in dir(shapelab)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="'shapelab' has no attribute 'nothing'"):
        shapelab.nothing  # noqa: B018


def test_one_version():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["version"] == shapelab.__version__
    module, _, name = project["scripts"]["shapelab"].partition(":")
    assert callable(getattr(import_module(module), name))


@pytest.mark.parametrize("path", DATA, ids=str)
def test_every_file_of_data_is_found(path):
    assert data_path(*path.parts).read_bytes() == (ROOT / "data" / path).read_bytes()


@pytest.mark.parametrize("installed", [True, False])
def test_data_lies_inside_an_installed_package_and_beside_a_clone(monkeypatch, tmp_path, installed):
    package = tmp_path / "shapelab"
    package.mkdir()
    data = package / "data" if installed else tmp_path / "data"
    shutil.copytree(ROOT / "data", data)
    monkeypatch.setattr(files, "_PACKAGE", package)
    assert data_path("models", "tinyllama.json") == data / "models" / "tinyllama.json"
    assert all(data_path(*path.parts).is_file() for path in DATA)


def test_the_cache_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("SHAPELAB_CACHE", str(tmp_path))
    assert cache_dir() == tmp_path
    monkeypatch.setenv("SHAPELAB_CACHE", "")
    assert cache_dir().name == "shapelab" and cache_dir().is_absolute()


def committed_texts():
    """(path, text) of every text file that git keeps."""
    try:
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"not a git checkout ({error})")
    for name in filter(None, listed.decode().split("\0")):
        path = ROOT / name
        if path.is_file() and b"\0" not in (content := path.read_bytes()):
            yield Path(name), content.decode("utf-8")


def test_nothing_committed_names_this_machine_or_a_package_host():
    places = ("tmp", "root", "work")
    hosts = ("pypi org", "files pythonhosted org", "registry npmjs org", "deb debian org")
    words = [f"/{place}/" for place in places] + [host.replace(" ", ".") for host in hosts]
    checked = [(path, text) for path, text in committed_texts() if path.parts[0] != "tests"]
    assert Path("pyproject.toml") in [path for path, _ in checked]
    assert [(str(path), word) for path, text in checked for word in words if word in text] == []


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_dangerous_in_the_source(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        imported = [name.name for name in node.names] if isinstance(node, ast.Import) else []
        imported += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        assert not PICKLES & {name.partition(".")[0] for name in imported}
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            assert called not in ("eval", "exec", "torch.load", "os.system"), f"{called} in line {node.lineno}"
            for keyword in node.keywords:
                trusted = ast.unparse(keyword.value) == "False"
                assert keyword.arg != "trust_remote_code" or trusted, f"line {node.lineno}"


def test_remote_code_is_refused_by_name_where_models_are_loaded():
    assert any("trust_remote_code=False" in path.read_text(encoding="utf-8") for path in SOURCES)


LONGEST_FILE = 300


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_file_of_the_package_grows_too_long_to_read(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= LONGEST_FILE


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_module_only_forwards(path):
    """A package's face may hand names on; a module has something of its own."""
    if path.name in ("__init__.py", "__main__.py"):
        return
    body = ast.parse(path.read_text(encoding="utf-8")).body
    own = [node for node in body if not isinstance(node, ast.Import | ast.ImportFrom | ast.Expr)]
    assert own, "nothing but imports stands here"
