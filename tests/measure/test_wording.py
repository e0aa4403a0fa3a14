"""What measuring says when it refuses: one sentence, with what would work. Nothing else tests its words."""

import pytest

from shapelab.errors import ShapelabError
from shapelab.measure.experiment import measure_shapes, run_once
from shapelab.measure.sweep import sweep
from shapelab.request.shape import RequestShape
from tests.toys import toy_lab

LAB, SHAPE = toy_lab(), RequestShape(5, 2)


def no_memory(monkeypatch, _):
    monkeypatch.setattr("shapelab.model.memory.memory_available", lambda _: 1e7)
    measure_shapes(LAB, {"a": SHAPE}, progress=False)


def other_settings(_, folder):
    sweep(LAB, [SHAPE], folder / "s.jsonl", repeats=1, seed=4, progress=False)
    sweep(LAB, [SHAPE], folder / "s.jsonl", repeats=2, seed=5, progress=False)


def another_machine(_, folder):
    sweep(LAB, [SHAPE], folder / "s.jsonl", repeats=1, progress=False)
    path = folder / "s.jsonl"
    path.write_text(path.read_text().replace('"weights": "random"', '"weights": "original"'))
    sweep(LAB, [SHAPE], path, repeats=1, progress=False)


@pytest.mark.parametrize(
    "call,text",
    [
        (
            no_memory,
            "The shape 5x2 does not fit in the memory of this cpu with toy-llama in float64. It needs about 0.06 GB and 0.01 GB are left. "
            "Ask for a smaller batch or fewer tokens, or leave it out.",
        ),
        (lambda *_: run_once(LAB, RequestShape(5, 2, 2), [[1] * 5, [1] * 4]), "The prompts have [5, 4] tokens and the shape 5x2@2 needs 2 x 5."),
        (lambda *_: measure_shapes(LAB, {"a": RequestShape(500, 13)}), "Shorten it by 1 token"),
        (lambda *_: measure_shapes(LAB, {"a" * 9_999: SHAPE}), "A name in shapes must be text of up to 5,000 characters, not 'aaa"),
        (
            other_settings,
            "s.jsonl was begun with other settings: repeats was 1 and is 2; seed was 4 and is 5. Ask for the old ones, or choose another file.",
        ),
        (another_machine, "s.jsonl belongs to another environment: weights was original and is random. Choose another file."),
    ],
)  # fmt: skip
def test_a_sentence(call, text, monkeypatch, tmp_path):
    with pytest.raises(ShapelabError) as caught:
        call(monkeypatch, tmp_path)
    assert text in str(caught.value) and "--" not in str(caught.value)
