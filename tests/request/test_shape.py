import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shapelab.errors import BadArgument
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
    with pytest.raises(BadArgument) as caught:
        RequestShape(*numbers)
    names = ("input_tokens", "output_tokens", "batch_size", "cached_tokens")
    wrong = next(n for n, value in enumerate(numbers) if type(value) is not int or value < (n < 3))
    assert caught.value.argument == names[wrong]


@pytest.mark.parametrize(
    "text", ["", "x", "12", "12x", "x12", "12x-3", "a+1x2", "1x2@", "1 x 2", "1.5x2", "rags", "9" * 5000 + "x2"]
)
def test_bad_text_is_refused_with_an_example(text):
    with pytest.raises(BadArgument):
        RequestShape.parse(text)


def test_lists():
    assert list(parse_shapes("chat, rag,512+64x32@4")) == ["chat", "rag", "512+64x32@4"]
    for text in ("rag,rag", " , "):
        with pytest.raises(BadArgument):
            parse_shapes(text)


@pytest.mark.parametrize("kind", [np.int64, np.uint8, np.int32])
def test_any_whole_number_is_a_count(kind):
    shape = RequestShape(kind(9), kind(3), kind(2), kind(4))
    assert shape == RequestShape(9, 3, 2, 4) and hash(shape) == hash(RequestShape(9, 3, 2, 4))
    assert type(shape.prompt_tokens) is int and str(shape) == "4+9x3@2"
    assert RequestShape(pd.Series([9, 7]).max(), 32).input_tokens == 9


@pytest.mark.parametrize("value", [1.0, np.float64(2), np.bool_(True), True, "8", None, 0, -3, np.int64(0)])
def test_what_is_no_count_is_refused(value):
    with pytest.raises(BadArgument) as caught:
        RequestShape(value, 2)
    assert caught.value.argument == "input_tokens"


@given(st.integers(1, 50), st.integers(1, 50), st.integers(1, 8), st.integers(0, 50))
def test_the_arithmetic_of_a_request_counted_one_by_one(inputs, outputs, batch, cached):
    shape = RequestShape(inputs, outputs, batch, cached)
    contexts = [cached + inputs + step for step in range(1, outputs)]  # each step attends to its own new token too
    pairs = [cached + position for position in range(1, inputs + 1)]
    assert shape.decode_steps == len(contexts) and shape.decode_tokens == batch * len(contexts)
    assert shape.final_kv_tokens == cached + inputs + len(contexts)
    assert shape.attention_pairs == batch * sum(pairs) and shape.prefill_tokens == batch * inputs
    if contexts:
        assert shape.mean_decode_context == pytest.approx(sum(contexts) / len(contexts))
