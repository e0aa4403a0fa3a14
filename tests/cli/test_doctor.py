from tests.cli.command import parsed, shapelab


def test_doctor_as_json(bench):
    result = shapelab("doctor", "--json")
    assert result.exit_code == 0
    report = parsed(result.stdout)
    assert report.keys() == {"environment", "ceilings", "choice", "problems"}
    assert report["ceilings"] == {"memory_read_gb_per_s": 12.5, "matmul_flops_per_s": {"float32": 1e11}}
    assert report["choice"]["model"] in ("smollm2-135m", "tinyllama") and report["choice"]["why"].endswith(".")
    assert report["environment"]["threads"] >= 1 and report["environment"]["memory_available_gb"] > 0


def test_doctor_as_text(bench, monkeypatch):
    monkeypatch.setattr("shapelab.measure.doctor.problems", lambda *_: [])
    assert "this machine is ready" in shapelab("doctor").stdout
    monkeypatch.setattr("shapelab.measure.doctor.problems", lambda *_: ["The folder [/x] is full."])
    text = shapelab("doctor").stdout
    assert "The folder [/x] is full." in text and "ready" not in text
    for word in ("Environment", "Ceilings", "Choice", "12.5"):
        assert word in "".join(text.split())


def test_doctor_names_what_is_wrong(bench, monkeypatch):
    monkeypatch.setattr("torch.get_num_threads", lambda: 64)
    monkeypatch.setattr("shapelab.computer.cpus_usable", lambda *_: 2)
    monkeypatch.setattr("shapelab.measure.doctor.memory_available", lambda _: 5e8)
    monkeypatch.setattr("shapelab.measure.doctor.shutil.disk_usage", lambda _: type("D", (), {"free": 1e8})())
    monkeypatch.setattr("shapelab.model.embedded.has_pip", lambda: False)
    monkeypatch.setattr("transformers.__version__", "4.40.0")
    problems = parsed(shapelab("doctor", "--json").stdout)["problems"]
    for word in ("OMP_NUM_THREADS=2", "0.5 GB of memory", "uv pip install pip", "0.1 GB of disk", "transformers 4.40.0"):
        assert sum(word in problem for problem in problems) == 1
    assert len(problems) == 5
