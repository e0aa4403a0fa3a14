import pytest

from shapelab.measure.ceilings import Ceilings
from tests.cli.command import noted_lab
from tests.runs import RUN


@pytest.fixture
def toy(monkeypatch):
    monkeypatch.setattr("shapelab.model.load.load", noted_lab)


@pytest.fixture
def no_load(monkeypatch):
    """No model is built, neither from files nor with random weights."""
    for way in ("from_pretrained", "from_config"):
        monkeypatch.setattr(f"transformers.AutoModelForCausalLM.{way}", lambda *_, **__: pytest.fail("the model was loaded"))


@pytest.fixture(scope="session")
def plan_file(tmp_path_factory):
    """A run of the quick plan on a planted machine."""
    return RUN.save(tmp_path_factory.mktemp("plan") / "quick.jsonl")


@pytest.fixture
def bench(monkeypatch, tmp_path):
    """A machine whose ceilings are known at once and whose cache is an empty folder with a name in brackets."""
    monkeypatch.setattr("shapelab.measure.doctor.measure_ceilings", lambda *_: Ceilings(12.5, {"float32": 1e11}))
    monkeypatch.setenv("SHAPELAB_CACHE", str(tmp_path / "[cache]"))
    return tmp_path / "[cache]"
