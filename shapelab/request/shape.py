"""The shape of a request: four numbers, and everything this course says about latency follows from them."""

import itertools
import operator
import re
from dataclasses import dataclass
from numbers import Real

from shapelab.errors import BadArgument

_TEXT = re.compile(r"(?:(\d{1,18})\+)?(\d{1,18})x(\d{1,18})(?:@(\d{1,18}))?")


@dataclass(frozen=True)
class RequestShape:
    """How the tokens of a request (or of a batch of equal requests) are laid out.

    input_tokens   S, prompt tokens that are processed now (at least 1)
    output_tokens  N, tokens written: one by the prefill, N - 1 by decode steps (at least 1)
    batch_size     B, equal sequences processed together (at least 1)
    cached_tokens  prompt tokens already in the KV cache; they come on top of the input tokens

    Whole numbers of any kind are taken, numpy's and pandas' too. Raises BadArgument for anything else.
    The properties below are the only place where arithmetic on these numbers is done.
    """

    input_tokens: int
    output_tokens: int
    batch_size: int = 1
    cached_tokens: int = 0

    def __post_init__(self):
        for name, least in (("input_tokens", 1), ("output_tokens", 1), ("batch_size", 1), ("cached_tokens", 0)):
            object.__setattr__(self, name, whole(name, getattr(self, name), least))

    @property
    def prompt_tokens(self) -> int:
        """Cached and input tokens of one sequence."""
        return self.cached_tokens + self.input_tokens

    @property
    def total_tokens(self) -> int:
        """All tokens of one sequence: the number that token counting looks at, and shape looks behind."""
        return self.prompt_tokens + self.output_tokens

    @property
    def decode_steps(self) -> int:
        """N - 1: the prefill writes the first token, each step one more."""
        return self.output_tokens - 1

    @property
    def final_kv_tokens(self) -> int:
        """Tokens of one sequence in the KV cache at the end: all but the last one, which is written and never read."""
        return self.prompt_tokens + self.decode_steps

    @property
    def mean_decode_context(self) -> float:
        """Tokens attended by a decode step, on average: prompt + 1, prompt + 2 ... prompt + N - 1 give prompt + N / 2."""
        return self.prompt_tokens + self.output_tokens / 2

    @property
    def prefill_tokens(self) -> int:
        """B x S: tokens that the prefill pass processes."""
        return self.batch_size * self.input_tokens

    @property
    def decode_tokens(self) -> int:
        """B x (N - 1): tokens that the decode steps write."""
        return self.batch_size * self.decode_steps

    @property
    def attention_pairs(self) -> float:
        """Pairs of a new token and a token it attends to in the prefill: B (S cached + S(S + 1) / 2), the causal half."""
        s = self.input_tokens
        return self.batch_size * (s * self.cached_tokens + s * (s + 1) / 2)

    @classmethod
    def parse(cls, text: str) -> "RequestShape":
        """Read `[CACHED+]INxOUT[@BATCH]`, such as 1205x24 or 512+64x32@4, or a preset's name, such as rag."""
        word = text.strip().lower()
        if word in PRESETS:
            return PRESETS[word]
        match = _TEXT.fullmatch(word)
        if not match:
            raise BadArgument(
                f"{text!r} is not a shape. Write [CACHED+]INxOUT[@BATCH], such as 1205x24 or 512+64x32@4, "
                f"or one of {', '.join(PRESETS)}.",
                "text",
            )
        cached, inputs, outputs, batch = match.groups()
        return cls(int(inputs), int(outputs), int(batch or 1), int(cached or 0))

    def __str__(self) -> str:
        cached = f"{self.cached_tokens}+" if self.cached_tokens else ""
        batch = f"@{self.batch_size}" if self.batch_size > 1 else ""
        return f"{cached}{self.input_tokens}x{self.output_tokens}{batch}"


def whole(name: str, value, least: int, most: int = 10**10) -> int:
    """A whole number of any kind (int, numpy's) from `least` on, as an int. Raises BadArgument, naming it, for anything else."""
    try:
        number = operator.index(value)
    except TypeError:
        number = least - 1
    if isinstance(value, bool) or not least <= number <= most:
        limit = f" and at most {most:,}" if number > most else ""
        raise BadArgument(f"{name} must be a whole number of at least {least}{limit}, not {value!r}.", name)
    return number


def real(name: str, value, least: float = 0, most: float = 1e30, *, above: bool = False) -> float:
    """A finite number of any kind from `least` on, or above it, as a float. Raises BadArgument, naming it, for anything else."""
    if isinstance(value, bool) or not isinstance(value, Real) or not least <= value <= most or (above and value == least):
        raise BadArgument(f"{name} must be a number {'above' if above else 'of at least'} {least:g}, not {value!r}.", name)
    return float(value)


# 1,205 and 25 input tokens are the talk's; the other numbers are this course's own choice.
CHAT = RequestShape(60, 80)
RAG = RequestShape(1205, 24)
CREATIVE = RequestShape(25, 300)
LLM_PERF = RequestShape(256, 64)
PRESETS = {"chat": CHAT, "rag": RAG, "creative": CREATIVE, "llm_perf": LLM_PERF}


def parse_shapes(text: str) -> dict[str, RequestShape]:
    """Read a comma-separated list of shapes. The key is the preset's name, else the shape as it is written."""
    shapes = {}
    for word in filter(None, (part.strip() for part in text.split(","))):
        shape = RequestShape.parse(word)
        name = word.lower() if word.lower() in PRESETS else str(shape)
        if name in shapes:
            raise BadArgument(f"The shape {name} is given twice; name each shape once and use repeats instead.", "text")
        shapes[name] = shape
    if not shapes:
        raise BadArgument("No shapes were given. Try chat,rag,creative or 512+64x32@4.", "text")
    return shapes


def grid(inputs: str, outputs: str, batches: str = "1", cached: str = "0") -> list[RequestShape]:
    """Every combination of comma-separated numbers, as shapes."""
    columns = [_numbers(text, name) for text, name in zip((cached, inputs, outputs, batches), _GRID_NAMES, strict=True)]
    return [RequestShape(s, n, b, c) for c, s, n, b in itertools.product(*columns)]


_GRID_NAMES = ("cached_tokens", "input_tokens", "output_tokens", "batch_size")


def _numbers(text: str, name: str) -> list[int]:
    try:
        return [int(word) for word in text.split(",")]
    except ValueError:
        raise BadArgument(
            f"{name} takes whole numbers with commas between, such as 64,256; {text!r} is not that.", name
        ) from None
