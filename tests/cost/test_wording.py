"""What the price list and machine-hours say when they refuse: one sentence each."""

from dataclasses import replace

import pytest

from shapelab.cost.machine_hours import machine_cost
from shapelab.cost.price_list import Price, billed_usd, load_prices, median_output_to_input_ratio, output_to_input_ratio, price
from shapelab.errors import ShapelabError
from shapelab.request.shape import RAG
from tests.runs import MODEL

PLAIN = Price("plain", "nobody", 1.25, 0.625, None, 10, None, None, None, None, "2026-01", "none")
HEADER = ",".join(Price.__dataclass_fields__)


@pytest.mark.parametrize(
    "call,text",
    [
        (
            lambda: price("Claude-Opus"),
            r"no price for 'Claude-Opus'\. Use .*claude-opus-5\.5.*load_prices with a file of your own",
        ),
        (lambda: billed_usd(PLAIN, 10, 1, 11), r"cached_prompt_tokens \(11\) cannot be more than prompt_tokens \(10\)"),
        (lambda: billed_usd(PLAIN, -1, 1), "prompt_tokens must be a whole number of at least 0"),
        (lambda: output_to_input_ratio(replace(PLAIN, usd_per_million_input_tokens=0)), "Input tokens of plain are free"),
        (lambda: median_output_to_input_ratio({}), "prices must hold one price or more"),
        (lambda: machine_cost(MODEL, RAG, -1), "usd_per_hour must be a number of at least 0, not -1"),
        (lambda: machine_cost(MODEL, RAG, 1, 1.1), "utilisation is a share of the hours, above 0 and up to 1, not 1.1"),
    ],
)
def test_a_sentence(call, text):
    with pytest.raises(ShapelabError, match=text):
        call()


@pytest.mark.parametrize(
    "row,text",
    [
        (
            "a,x,-1,,,2,,,,,2026-01,here",
            "mine.csv, line 2: usd_per_million_input_tokens must be a number of at least 0, not -1",
        ),
        ("a,x,one,,,2,,,,,2026-01,here", r"mine.csv, line 2 \(a\): could not convert"),
        ("a,x,1,,,2,200000,,,,2026-01,here", "half a tier"),
        ("a b,x,1,,,2,,,,,2026-01,here", "name must be a text without spaces, not 'a b'"),
        ("a,x,1,,,2,,,,,,here", "a needs as_of: when and where the price was read"),
        ("a,x,1,,,2,,,,,2026-01", "a row has 12 cells"),
        ("a,x,1,,,2,,,,,2026-01,here\na,x,1,,,2,,,,,2026-01,here", "line 3: a is there twice"),
        ('a,x,1,,,2,,,,,2026-01,"he"re', "not a readable CSV"),
    ],
)
def test_a_row(tmp_path, row, text):
    (tmp_path / "mine.csv").write_text(f"{HEADER}\n{row}\n", encoding="utf-8")
    with pytest.raises(ShapelabError, match=text):
        load_prices(tmp_path / "mine.csv")
