"""Prompts of an exact number of tokens, from real text, different every time.

A shape run needs exactly S ids. Text cannot promise that (decoding ids and encoding the text again may give another
number), so prompts are cut as *ids* and stay ids.
"""

import random
from functools import cache

from shapelab.errors import BadArgument
from shapelab.files import data_path
from shapelab.request.shape import CREATIVE, RAG, RequestShape

KINDS = ("chat", "rag", "creative")
_SHORTEST_NUMBERED = 16  # below this the number in front would be most of the prompt


def kind_of(shape: RequestShape) -> str:
    """The text that suits a shape: stories for writing much after little, the handbook for reading much."""
    if shape.output_tokens >= 4 * shape.prompt_tokens or shape == CREATIVE:
        return "creative"
    return "rag" if shape.prompt_tokens >= RAG.input_tokens // 4 else "chat"


def prompt_ids(tokenizer, shape: RequestShape, *, kind: str = "", seed: int = 0, repeat: int = 0) -> list[list[int]]:
    """Token ids of B prompts: a list of B lists of cached_tokens + input_tokens ids each.

    Every (repeat, row) starts with a number of its own, so that no prefix cache can answer for an earlier prompt.
    The end of the text (the question, the unfinished sentence) is kept, the start is cut. A token that the tokenizer
    puts before every text (BOS) comes first and is counted.
    """
    kind = kind or kind_of(shape)
    if kind not in KINDS:
        raise BadArgument(f"kind {kind!r} is no text of ours; choose one of {', '.join(KINDS)}.", "kind")
    first = shape.batch_size * repeat
    return [_one(tokenizer, shape.prompt_tokens, kind, seed, first + row) for row in range(shape.batch_size)]


def chat_ids(tokenizer, question: str) -> list[int]:
    """Ids of a question in the model's own chat template. The template's tokens are tokens: they count."""
    if not getattr(tokenizer, "chat_template", None):
        raise BadArgument("tokenizer has no chat template; use prompt_ids, which needs none.", "tokenizer")
    text = tokenizer.apply_chat_template([{"role": "user", "content": question}], tokenize=False, add_generation_prompt=True)
    return tokenizer(text, add_special_tokens=False)["input_ids"]


def _one(tokenizer, length: int, kind: str, seed: int, index: int) -> list[int]:
    bos = _ids_before_text(tokenizer)[: length - 1]
    room = length - len(bos)
    rng = random.Random(f"{kind}/{seed}/{index}")
    if length < _SHORTEST_NUMBERED:  # no number in front: start somewhere else each time instead
        ids = _text_ids(tokenizer, kind, rng, room)
        start = rng.randrange(len(ids) - room + 1)
        return bos + ids[start : start + room]
    number = _encode(tokenizer, f"{1000 + (7919 * index + 613 * seed) % 9000}. ")
    return bos + number + _text_ids(tokenizer, kind, rng, room - len(number))[len(number) - room :]


def _text_ids(tokenizer, kind: str, rng: random.Random, least: int) -> list[int]:
    """Ids of as many texts as it takes for at least so many, the last of them drawn."""
    texts: list[str] = []
    ids: list[int] = []
    while len(ids) < least:
        texts = [*_texts(kind, rng, answered=not texts), *texts]
        ids = _encode(tokenizer, "\n\n".join(texts))
        if not ids:
            raise BadArgument("tokenizer makes no ids of English text.", "tokenizer")
    return ids


def _texts(kind: str, rng: random.Random, *, answered: bool) -> list[str]:
    """One shuffled edition of the texts of a kind; `answered`: the last one ends with a question to be answered."""
    if kind == "creative":
        stories = list(_split("stories.md"))
        rng.shuffle(stories)
        return stories[:1] if answered else stories
    if kind == "chat":
        chats = list(_split("chat.md"))
        rng.shuffle(chats)
        return [chats[0] + "\nAssistant:"] if answered else chats
    sections = list(_sections())
    rng.shuffle(sections)
    edition = f"# Harbour & Pine handbook, edition {rng.randrange(100, 1000)}"
    texts = [edition, *(body for body, _ in sections)]
    return [*texts, f"Question: {sections[-1][1]}\nAnswer:"] if answered else texts


@cache
def _split(name: str) -> tuple[str, ...]:
    parts = data_path("prompts", name).read_text(encoding="utf-8").split("\n---\n")
    return tuple(part.strip() for part in parts if part.strip())


@cache
def _sections() -> tuple[tuple[str, str], ...]:
    """The handbook's (section, question) pairs."""
    text = data_path("prompts", "handbook.md").read_text(encoding="utf-8")
    pairs = (part.split("\nQuestion: ") for part in ("\n" + text).split("\n## ")[1:])
    return tuple(("## " + body.strip(), question.strip()) for body, question in pairs)


def _encode(tokenizer, text: str) -> list[int]:
    # verbose=False: a text longer than the context is no mistake here, it is cut afterwards
    return list(tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"])


def _ids_before_text(tokenizer) -> list[int]:
    with_special = list(tokenizer("a")["input_ids"])
    plain = _encode(tokenizer, "a")
    for start in range(len(with_special) - len(plain) + 1):
        if with_special[start : start + len(plain)] == plain:
            return with_special[:start]
    return []
