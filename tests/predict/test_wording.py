"""What the fit and the machines say when they refuse: one sentence each, which says what would work."""

import pytest
from pydantic import ValidationError

from shapelab.errors import ShapelabError
from shapelab.predict.fit import Pieces, check_points
from shapelab.predict.latency import LatencyModel
from shapelab.predict.roofline_machine import RooflineMachine
from shapelab.record.run import Run
from shapelab.request.shape import RequestShape
from shapelab.theory.hardware import gpu
from shapelab.theory.model_spec import ModelSpec
from tests.runs import HERE, RUN, measured


def points(texts: str, ttft_s: float = 0.1):
    return [measured(RequestShape.parse(text), (ttft_s, 0.02)) for text in texts.split()]


def fit(texts: str):
    return LatencyModel.fit(Run(HERE, points(texts)))


def batch_of_2_where_one_was_measured():
    LatencyModel.fit(Run(HERE, [m for m in RUN.measurements if m.batch_size == 1])).step_s(100, 2)


def too_long():
    RooflineMachine(gpu("T4"), ModelSpec.from_config("smollm2-135m"), "smollm2-135m").predict(RequestShape(9000, 2))


@pytest.mark.parametrize(
    "call,text",
    [
        (lambda: fit("60x80 1205x24 25x300"), "3 shapes .* are too few .* at least 6 different ones.*--plan quick"),
        (lambda: fit("100x8 110x8 120x8 130x8 140x8 150x8"), "input lengths are too much alike.*--plan quick"),
        (lambda: fit("16x600 64x550 128x500 32x580 24x590 200x450"), "contexts .* are too much alike.*--plan quick"),
        (lambda: fit("16x8 4000x8 16x4000 16x8@64 2000+16x8 400x8@16"), "Too few shapes lie between others.*--plan quick"),
        (lambda: check_points(points("16x8 64x8 256x8 512x8 1024x8 2048x8", ttft_s=0)), "clock stood still"),
        (batch_of_2_where_one_was_measured, "batch size 1 only, so it says nothing about 2.*--batch 1,4,16"),
        (too_long, "needs 9,002 tokens of context and smollm2-135m has 8,192. Choose fewer tokens"),
        (lambda: LatencyModel.load("nowhere.json"), "nowhere.json cannot be read: No such file"),
    ],
)
def test_a_sentence(call, text):
    with pytest.raises(ShapelabError, match=text):
        call()


def test_pieces_name_their_fields():
    with pytest.raises(ValidationError, match="`start` and `slope` need equal length; `start` must increase"):
        Pieces(start=(2, 1), slope=(1, 1))
