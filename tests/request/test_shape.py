import pytest
from hypothesis import given
from hypothesis import strategies as st

from shapelab.errors import ShapelabError
from shapelab.request.shape import CHAT, CREATIVE, LLM_PERF, RAG, RequestShape, parse_shapes

COUNT = st.integers(1, 10**6)


def test_presets():
    assert [str(shape) for shape in (CHAT, RAG, CREATIVE, LLM_PERF)] == ["60x80", "1205x24", "25x300", "256x64"]
    assert RequestShape.parse(" RAG ") == RAG


def test_written_form():
    shape = RequestShape.parse("512+64x32@4")
    assert (shape.cached_tokens, shape.input_tokens, shape.output_tokens, shape.batch_size) == (512, 64, 32, 4)
    assert (shape.prompt_tokens, shape.total_tokens) == (576, 608)


@given(COUNT, COUNT, st.integers(1, 512), st.integers(0, 10**6))
def test_every_shape_reads_back(inputs, outputs, batch, cached):
    shape = RequestShape(inputs, outputs, batch, cached)
    assert RequestShape.parse(str(shape)) == shape


@pytest.mark.parametrize("numbers", [(0, 1), (1, 0), (1, 1, 0), (1, 1, 1, -1), (-5, 3), (1.5, 2), (True, 2), ("3", 2)])
def test_bad_numbers_are_refused_by_name(numbers):
    with pytest.raises(ShapelabError, match="must be"):
        RequestShape(*numbers)


@pytest.mark.parametrize("text", ["", "x", "12", "12x", "x12", "12x-3", "a+1x2", "1x2@", "1 x 2", "1.5x2", "rags"])
def test_bad_text_is_refused_with_an_example(text):
    with pytest.raises(ShapelabError, match="1205x24"):
        RequestShape.parse(text)


def test_lists():
    assert list(parse_shapes("chat, rag,512+64x32@4")) == ["chat", "rag", "512+64x32@4"]
    with pytest.raises(ShapelabError, match="twice"):
        parse_shapes("rag,rag")
    with pytest.raises(ShapelabError, match="No shapes"):
        parse_shapes(" , ")
