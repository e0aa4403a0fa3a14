import pytest

from shapelab.errors import BadArgument
from shapelab.model.load import ByteTokenizer
from shapelab.request.prompts import KINDS, chat_ids, kind_of, prompt_ids
from shapelab.request.shape import CHAT, CREATIVE, RAG, RequestShape


class WithBos(ByteTokenizer):
    """Puts one token before every text, as Llama's tokenizers do."""

    def __call__(self, text, add_special_tokens=True, **_):
        return {"input_ids": [999] * add_special_tokens + list(text.encode())}


@pytest.mark.parametrize("tokenizer", [ByteTokenizer(), WithBos()])
@pytest.mark.parametrize("length", [1, 2, 15, 16, 17, 63, 64, 65, 1205, 8000])
@pytest.mark.parametrize("kind", KINDS)
def test_exactly_so_many_tokens(tokenizer, length, kind):
    rows = prompt_ids(tokenizer, RequestShape(length, 1, 2), kind=kind)
    assert [len(row) for row in rows] == [length, length]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("length", [25, 60, 1205])
def test_every_repeat_and_row_starts_differently(kind, length):
    shape = RequestShape(length, 1, 4)
    starts = [tuple(row[:16]) for repeat in range(25) for row in prompt_ids(ByteTokenizer(), shape, kind=kind, repeat=repeat)]
    assert len(set(starts)) == 100


def test_the_same_seed_gives_the_same_prompts():
    assert prompt_ids(ByteTokenizer(), RAG, seed=3, repeat=2) == prompt_ids(ByteTokenizer(), RAG, seed=3, repeat=2)
    assert prompt_ids(ByteTokenizer(), RAG, seed=3) != prompt_ids(ByteTokenizer(), RAG, seed=4)


def test_bos_comes_first_and_counts():
    (row,) = prompt_ids(WithBos(), CHAT)
    assert row[0] == 999 and 999 not in row[1:] and len(row) == 60


def test_the_question_is_kept():
    tokenizer = ByteTokenizer()
    (row,) = prompt_ids(tokenizer, RequestShape(3000, 24))
    text = tokenizer.decode(row)
    assert text.endswith("?\nAnswer:") and "\nQuestion: " in text and "## " in text


def test_texts_suit_the_shape():
    assert [kind_of(shape) for shape in (CHAT, RAG, CREATIVE)] == ["chat", "rag", "creative"]
    with pytest.raises(BadArgument) as caught:
        prompt_ids(ByteTokenizer(), CHAT, kind="poem")
    assert caught.value.argument == "kind"


def test_template_tokens_count():
    class Templated(ByteTokenizer):
        chat_template = "yes"

        def apply_chat_template(self, messages, tokenize, add_generation_prompt):
            assert not tokenize and add_generation_prompt
            return f"<user>{messages[0]['content']}<assistant>"

    assert len(chat_ids(Templated(), "abc")) == 3 + len("<user><assistant>")
    with pytest.raises(BadArgument) as caught:
        chat_ids(ByteTokenizer(), "abc")
    assert caught.value.argument == "tokenizer"


@pytest.mark.parametrize("vocabulary", [2, 65, 256, 300])
@pytest.mark.parametrize("kind", KINDS)
def test_ids_fit_a_small_vocabulary(vocabulary, kind):
    rows = prompt_ids(ByteTokenizer(vocabulary), RequestShape(1205, 1, 2), kind=kind)
    assert all(len(row) == 1205 and 0 <= min(row) <= max(row) < vocabulary for row in rows)


@pytest.mark.parametrize("length", [16, 17, 20, 25])
def test_the_end_of_the_text_is_kept_in_short_prompts_too(length):
    (row,) = prompt_ids(ByteTokenizer(), RequestShape(length, 1), kind="chat")
    assert ByteTokenizer().decode(row).endswith("Assistant:"[6 - length :])


def test_a_tokenizer_that_knows_no_letter_is_refused():
    with pytest.raises(BadArgument) as caught:
        prompt_ids(lambda text, **_: {"input_ids": []}, RequestShape(60, 80))
    assert caught.value.argument == "tokenizer"
