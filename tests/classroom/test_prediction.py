"""Predictions are kept, revealed and forgiven."""

import pytest

from shapelab.classroom import prediction
from shapelab.errors import ShapelabError


@pytest.fixture(autouse=True)
def own_file(tmp_path, monkeypatch):
    path = tmp_path / "folder" / "predictions.json"
    monkeypatch.setenv("SHAPELAB_PREDICTIONS", str(path))
    return path


def test_commit_by_clicking():
    box = prediction.choose("k", "Which?", ["a", "b"])
    _, choice, (button, said) = box.children[0], box.children[1], box.children[2].children
    button.click()
    assert "Choose an answer" in said.value and prediction.committed("k") is None
    choice.value = "b"
    button.click()
    assert prediction.committed("k") == "b" and "Committed: b" in said.value
    again = prediction.choose("k", "Which?", ["a", "b"])
    assert again.children[1].value == "b"
    assert prediction.choose("k", "Other options", ["x"]).children[1].value is None


def test_a_later_answer_takes_the_place_and_others_stay():
    for key, answer in (("k", "a"), ("other", "z"), ("k", "b")):
        prediction.commit(key, answer)
    assert (prediction.committed("k"), prediction.committed("other")) == ("b", "z")


def test_reveal():
    assert "no prediction" in repr(prediction.reveal("k", "rag", "Because."))
    prediction.commit("k", "rag")
    assert "rag it is" in repr(prediction.reveal("k", "rag", "Because."))
    assert "predicted rag; measured here: creative" in repr(prediction.reveal("k", "creative", "Because."))


def test_a_damaged_file_is_forgiven(own_file):
    own_file.parent.mkdir()
    for text in ("{", "[1]", '{"k": 3}', '{"k": {"answer": 5}}'):
        own_file.write_text(text)
        assert prediction.committed("k") is None
    prediction.commit("k", "a")
    assert prediction.committed("k") == "a"


def test_a_place_that_cannot_be_written(own_file, monkeypatch):
    own_file.parent.write_text("a file, not a folder")
    with pytest.raises(ShapelabError, match="SHAPELAB_PREDICTIONS"):
        prediction.commit("k", "a")


def test_text_is_escaped():
    prediction.commit("k", "<b>")
    box = prediction.choose("k", "<script>?", ["<b>"])
    assert "<script>" not in box.children[0].value and "<b>" not in box.children[2].children[1].value
    assert "<b>" not in prediction.reveal("k", "x", "<i>")._repr_html_()
