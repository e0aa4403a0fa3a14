"""What this room's errors say. Everywhere else tests hold the class and the argument."""

import pytest

from shapelab.errors import ShapelabError
from shapelab.model.load import ByteTokenizer
from shapelab.request.prompts import chat_ids, prompt_ids
from shapelab.request.shape import CHAT, RequestShape, grid, parse_shapes

SAYS = [
    (lambda: RequestShape(0, 1), "^input_tokens must be a whole number of at least 1, not 0"),
    (lambda: RequestShape(1, 1, cached_tokens=-1), "^cached_tokens must be a whole number of at least 0, not -1"),
    (lambda: RequestShape.parse("12x"), "'12x' is not a shape. Write .*1205x24 .*chat, rag"),
    (lambda: parse_shapes("rag,rag"), "The shape rag is given twice"),
    (lambda: parse_shapes(" , "), "No shapes were given. Try chat"),
    (lambda: grid("64", "a,b"), "output_tokens takes whole numbers .* 64,256"),
    (lambda: prompt_ids(ByteTokenizer(), CHAT, kind="poem"), "^kind 'poem' .* choose one of chat"),
    (lambda: chat_ids(ByteTokenizer(), "abc"), "^tokenizer has no chat template; use prompt_ids"),
]


@pytest.mark.parametrize("call,words", SAYS, ids=lambda value: value if isinstance(value, str) else "")
def test_a_sentence_says_what_is_wrong_and_what_would_work(call, words):
    with pytest.raises(ShapelabError, match=words) as caught:
        call()
    assert str(caught.value).endswith(".") and "\n" not in str(caught.value)
