"""What the command itself says, in one place, so that it can be improved here."""

import pytest

from tests.cli.command import sentence, shapelab

WORDS = [
    (["run", "--out", "file"], "shapelab: --out: Nothing can be written to file"),
    (["sweep", "--out", "s.jsonl", "--plan", "quick", "--batch", "2"], "--plan: It brings its own shapes"),
    (["fit", "no.jsonl", "-o", "m.txt"], "--out: A latency model's file ends in .json; m.txt does not."),
    (["cost", "5x5"], "Give either --prices NAME, or --usd-per-hour and --run together."),
    (["claims", "no.jsonl"], "There is no file no.jsonl. `shapelab run` and `shapelab sweep` write runs"),
    (
        ["cost", "5x5", "--usd-per-hour", "1", "--run", "m.json"],
        "There is no file m.json. `shapelab fit RUN --out m.json` writes",
    ),
]


@pytest.mark.parametrize("arguments,words", WORDS)
def test_words(no_load, tmp_path, monkeypatch, arguments, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    assert words in sentence(shapelab(*arguments))
