"""Whose a run is: this machine or a server, both written and read, and no secret of either in the file."""

import json

import pytest
from pydantic import TypeAdapter, ValidationError

from shapelab.record.environment import Environment, LocalMachine, Server
from shapelab.record.fields import utc
from shapelab.record.run import Run
from shapelab.request.shape import RequestShape
from tests.runs import HERE, measured

SERVER = Server(
    url="https://anna:secret@llm.example:8000/v1?key=sk-123", software="vLLM 0.9", model="meta/llama", shapelab="0.1.0",
    measured_at="2025-01-01T10:00:00+02:00",
)  # fmt: skip
ANY = TypeAdapter(Environment)


def test_a_server_has_an_address_and_no_secrets():
    assert SERVER.url == "https://llm.example:8000"
    assert SERVER.device == SERVER.url and SERVER.url in SERVER.label and "meta/llama" in SERVER.label
    assert "None" not in SERVER.label and "vLLM 0.9" in SERVER.versions
    assert "secret" not in SERVER.model_dump_json() and "sk-123" not in SERVER.model_dump_json()


@pytest.mark.parametrize("url", ["", "llm.example", "ftp://llm.example", "https://", "http://h:port", "http://[::1", 5])
def test_what_is_no_address(url):
    with pytest.raises(ValidationError):
        Server(url=url, model="m", shapelab="0.1.0", measured_at="2025-01-01")


def test_an_ipv6_address_keeps_its_brackets():
    assert SERVER.model_copy(update={}).url.startswith("https")
    assert ANY.validate_python(SERVER.model_dump() | {"url": "http://[::1]:80/v1"}).url == "http://[::1]:80"


@pytest.mark.parametrize("where", [HERE, SERVER], ids=["local", "server"])
def test_a_run_says_which_kind_of_place_it_is_from(tmp_path, where):
    run = Run(where, [measured(RequestShape(5, 3), (0.1, 0.01))])
    back = Run.load(run.save(tmp_path / "r.jsonl"))
    assert back == run and type(back.environment) is type(where)


def test_a_server_has_no_threads():
    with pytest.raises(ValidationError, match="threads"):
        ANY.validate_python(SERVER.model_dump() | {"threads": 2})
    with pytest.raises(ValidationError, match="kind"):
        ANY.validate_python(SERVER.model_dump() | {"kind": "cloud"})


def test_two_dtypes():
    both = HERE.model_copy(update={"weight_dtype": "int8", "compute_dtype": "bfloat16"})
    assert "float32," in HERE.label
    assert "int8" in both.label and "bfloat16" in both.label


def test_a_run_of_schema_1_is_read_as_it_was(tmp_path):
    """One dtype then, for weights and arithmetic alike, and no word of which kind of place."""
    run = Run(HERE, [measured(RequestShape(5, 3), (0.1, 0.01))])
    header, *lines = run.save(tmp_path / "r.jsonl").read_text().splitlines()
    old = json.loads(header)["environment"]
    old["dtype"] = old.pop("weight_dtype")
    del old["kind"], old["compute_dtype"]
    first = json.dumps({"schema_version": 1, "environment": old})
    (tmp_path / "old.jsonl").write_text("\n".join([first, *lines]) + "\n")
    assert Run.load(tmp_path / "old.jsonl") == run
    assert isinstance(Run.load(tmp_path / "old.jsonl").environment, LocalMachine)


@pytest.mark.parametrize("text", ["yesterday", "", "2025-13-01", "0001-01-01T00:00:00+05:00", "x" * 50])
def test_what_is_no_moment(text):
    with pytest.raises(ValidationError, match="measured_at"):
        ANY.validate_python(HERE.model_dump() | {"measured_at": text})


def test_moments_compare_in_utc():
    assert utc("2025-01-01T10:00:00+02:00") < utc("2025-01-01T08:30:00") < utc("2025-01-01T08:00:00-01:00")
