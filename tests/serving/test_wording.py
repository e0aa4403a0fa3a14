"""What the room says when something cannot be: the words, tested here and nowhere else."""

import pytest

from shapelab.errors import ShapelabError
from shapelab.serving.static_batch import serve
from tests.toys import toy_lab


@pytest.mark.parametrize(
    "rows,text",
    [
        ([[1], []], "`rows` needs at least one row, and every row at least one id."),
        ([[1], [1] * 510], "The shape 510x4@2 needs 514 tokens of context"),
    ],
)
def test_words(rows, text):
    with pytest.raises(ShapelabError) as caught:
        serve(toy_lab(), rows, 4)
    assert str(caught.value).startswith(text)
