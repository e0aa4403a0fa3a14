from shapelab.model import embedded
from shapelab.theory.model_spec import known_models
from tests.cli.command import parsed, shapelab


def test_models(bench):
    result = shapelab("models")
    assert result.exit_code == 0
    for word in ("smollm2-135m", "smollm2-135m:random", "tinyllama:random", "1,100 M", "135 M", "0.54 GB", "2.20 GB"):
        assert word in result.stdout
    assert f"Cache: {bench}\n" in result.stdout


def test_models_as_json(bench):
    entries = {entry["name"]: entry for entry in parsed(shapelab("models", "--json").stdout)}
    assert list(entries)[:4] == ["smollm2-135m", "smollm2-135m:random", "tinyllama", "tinyllama:random"]
    assert set(entries) == {*known_models(), "smollm2-135m:random", "tinyllama:random"}
    assert entries["llama-3-70b"]["source"] == "hub: meta-llama/Meta-Llama-3-70B" and "licence" in entries["llama-3-70b"]["about"]
    tinyllama = entries["tinyllama"]
    assert (tinyllama["parameters"], tinyllama["weight_bytes_16_bit"]) == (1_100_048_384, 2_200_096_768)
    assert entries["smollm2-135m"]["cached"] is False


def test_clearing_removes_what_is_ours_and_nothing_else(bench):
    ours = [embedded.folder(), bench / "smollm2-135m-01234567-r0", bench / ".making-abc"]
    theirs = [bench / "photos", bench / "smollm2-135m-my-results"]
    notes = [bench / "notes.txt", bench / "smollm2-135m-notes.txt"]
    for folder in (*ours, *theirs):
        folder.mkdir(parents=True)
        (folder / "file").write_text("x" * 10_000_000)
    for file in notes:
        file.write_text("mine")
    result = shapelab("models", "--clear")
    assert result.exit_code == 0 and f"Removed 0.03 GB from {bench}." in result.stdout
    assert not any(folder.exists() for folder in ours)
    assert set(bench.iterdir()) == {*theirs, *notes}
    assert all((folder / "file").is_file() for folder in theirs)


def test_clearing_as_json_leaves_a_link_and_what_it_leads_to(bench, tmp_path):
    (tmp_path / "theirs").mkdir()
    embedded.folder().mkdir(parents=True)
    link = bench / "smollm2-135m-01234567-r0"
    link.symlink_to(tmp_path / "theirs")
    assert parsed(shapelab("models", "--clear", "--json").stdout) == {"cache": str(bench), "removed_bytes": 0}
    assert link.is_symlink() and (tmp_path / "theirs").is_dir() and not embedded.folder().exists()


def test_clearing_an_empty_cache(bench):
    assert "Removed 0.00 GB" in shapelab("models", "--clear").stdout
