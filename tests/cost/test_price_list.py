"""Bills with a known right answer, the faults of other calculators, and files that make no sense."""

import inspect
import re
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shapelab.cost.price_list import (
    Price,
    billed_usd,
    load_prices,
    median_output_to_input_ratio,
    output_to_input_ratio,
    price,
    request_usd,
)
from shapelab.errors import BadArgument, BadFile, UnknownName

PLAIN = Price("plain", "nobody", 1.25, 0.625, None, 10, None, None, None, None, "2026-01", "none")
WRITES = replace(PLAIN, usd_per_million_input_tokens=3, usd_per_million_cache_write_tokens=3.75, usd_per_million_output_tokens=15)
TIERED = replace(PLAIN, tier_above_prompt_tokens=200_000, tier_usd_per_million_input_tokens=2.5,
                 tier_usd_per_million_cached_input_tokens=1.25, tier_usd_per_million_output_tokens=15)  # fmt: skip
TOKENS = st.integers(0, 10**6)
CHOICES = st.sampled_from([PLAIN, WRITES, TIERED, *load_prices().values()])


def test_cached_tokens_are_part_of_a_billed_prompt_and_on_top_of_a_shape():
    """A public report (litellm 14849): adding the cached tokens to the prompt would bill them twice."""
    assert f"{billed_usd(PLAIN, 262_960, 1_744, 257_955):.6f}" == "0.184918"
    assert f"{request_usd(PLAIN, 262_960 - 257_955, 1_744, 257_955):.6f}" == "0.184918"


def test_cache_writes_come_on_top():
    assert f"{billed_usd(WRITES, 3, 550, cache_write_tokens=12_304):.6f}" == "0.054399"
    assert request_usd(WRITES, 3, 550, cache_write_tokens=12_304) == billed_usd(WRITES, 3, 550, cache_write_tokens=12_304)


@pytest.mark.parametrize("tiered", [TIERED, price("gemini-2.5-pro")], ids=["made up", "of the table"])
def test_a_tier_takes_all_tokens_of_a_longer_prompt(tiered):
    assert f"{billed_usd(tiered, 250_000, 1_000):.3f}" == "0.640"
    assert billed_usd(tiered, 200_000, 1_000) == pytest.approx(0.26), "exactly at the threshold is base"
    assert billed_usd(tiered, 200_001, 0) == pytest.approx(200_001 * 2.5e-6)


def test_cached_and_written_tokens_count_for_the_threshold():
    assert request_usd(TIERED, 1, 0, cached_tokens=200_000) == pytest.approx((2.5 + 200_000 * 1.25) / 1e6)
    sol = price("gpt-6-sol")  # its published write price above 272k tokens is 5.00
    assert billed_usd(sol, 0, 0, cache_write_tokens=272_000) == pytest.approx(272_000 * 2.5e-6)
    assert billed_usd(sol, 1, 0, cache_write_tokens=272_000) == pytest.approx((4 + 272_000 * 5) / 1e6)


def test_a_price_that_is_not_published_is_the_input_price_never_0():
    bare = replace(TIERED, usd_per_million_cached_input_tokens=None, tier_usd_per_million_cached_input_tokens=None)
    for prompt in (1_000, 300_000):
        plain = pytest.approx(prompt * (2.5 if prompt > 200_000 else 1.25) / 1e6)
        assert billed_usd(bare, prompt, 0) == billed_usd(bare, prompt, 0, cached_prompt_tokens=prompt) == plain
        assert billed_usd(bare, 0, 0, cache_write_tokens=prompt) == plain
    free = replace(TIERED, usd_per_million_input_tokens=0, usd_per_million_cache_write_tokens=1)
    assert billed_usd(free, 0, 0, cache_write_tokens=300_000) == pytest.approx(0.75), "no input price to scale by"


@pytest.mark.parametrize("counts", [(-1, 1), (1, -1), (1, 1, -1), (1, 1, 0, -1), (1, 1, 0, 0, -1), (1.5, 1), (True, 1), ("1", 1)])
def test_counts_that_are_no_counts_are_refused(counts):
    with pytest.raises(BadArgument) as caught:
        request_usd(PLAIN, *counts)
    assert caught.value.argument in inspect.signature(request_usd).parameters


def test_more_cached_than_prompt_is_refused():
    with pytest.raises(BadArgument) as caught:
        billed_usd(PLAIN, 10, 1, 11)
    assert caught.value.argument == "cached_prompt_tokens"


@given(CHOICES, TOKENS, TOKENS, TOKENS, TOKENS, st.integers(0, 1000))
def test_requests_add_up(one, inputs, outputs, cached, written, requests):
    usd = request_usd(one, inputs, outputs, cached, written)
    assert usd >= 0
    assert request_usd(one, inputs, outputs, cached, written, requests) == pytest.approx(requests * usd)


@given(st.tuples(TOKENS, TOKENS, TOKENS, TOKENS), st.tuples(TOKENS, TOKENS, TOKENS, TOKENS))
def test_without_a_tier_tokens_add_up(some, others):
    both = [one + other for one, other in zip(some, others, strict=True)]
    assert request_usd(WRITES, *both) == pytest.approx(request_usd(WRITES, *some) + request_usd(WRITES, *others))


@given(CHOICES, st.lists(TOKENS, min_size=4, max_size=4), st.integers(0, 3), TOKENS)
def test_more_tokens_never_cost_less(one, counts, which, more):
    grown = [count + more * (index == which) for index, count in enumerate(counts)]
    assert request_usd(one, *grown) >= request_usd(one, *counts) - 1e-9


def test_ratios():
    assert output_to_input_ratio(PLAIN) == 8
    prices = {str(usd): replace(PLAIN, usd_per_million_input_tokens=usd) for usd in (10, 5, 1)}
    assert median_output_to_input_ratio(prices) == 2
    with pytest.raises(BadArgument):
        output_to_input_ratio(replace(PLAIN, usd_per_million_input_tokens=0))
    with pytest.raises(BadArgument):
        median_output_to_input_ratio({})


def test_the_table(recwarn):
    prices = load_prices()
    assert len(prices) >= 20 and len({one.provider for one in prices.values()}) >= 6
    for one in prices.values():
        assert re.fullmatch(r"20\d\d-\d\d(-\d\d)?", one.as_of) and one.source.startswith("https://")
        assert 0.005 < one.usd_per_million_input_tokens <= one.usd_per_million_output_tokens < 200, "USD a million tokens"
        assert (one.usd_per_million_cached_input_tokens or 0) < one.usd_per_million_input_tokens
    assert 1 < median_output_to_input_ratio(prices) < 10
    assert not recwarn


def test_an_unknown_name_is_answered_with_close_ones():
    for name, close in (("Claude-Opus", "claude-opus-5.5"), ("~", "gpt-4.1")):
        with pytest.raises(UnknownName, match=re.escape(close)) as caught:
            price(name)
        assert caught.value.argument == "name"


HEADER = ",".join(Price.__dataclass_fields__)
GOOD = "a,x,1,,,2,,,,,2026-01,here"


@pytest.mark.parametrize(
    "row,line",
    [
        ("a,x,-1,,,2,,,,,2026-01,here", 2),
        ("a,x,1,nan,,2,,,,,2026-01,here", 2),
        ("a,x,1,,inf,2,,,,,2026-01,here", 2),
        ("a,x,1,,,,,,,,2026-01,here", 2),
        ("a,x,one,,,2,,,,,2026-01,here", 2),
        ("a,x,1,,,2,1e5,1,,1,2026-01,here", 2),
        ("a,x,1,,,2,-5,1,,1,2026-01,here", 2),
        ("a,x,1,,,2,200000,,,,2026-01,here", 2),
        ("a,x,1,,,2,,,0.5,,2026-01,here", 2),
        (",x,1,,,2,,,,,2026-01,here", 2),
        ("a b,x,1,,,2,,,,,2026-01,here", 2),
        ("a,x,1,,,2,,,,,,here", 2),
        ("a,x,1,,,2,,,,,2026-01,", 2),
        ("a,x,1,,,2,,,,,2026-01", 2),
        ("a,x,1,,,2,,,,,2026-01,here,there", 2),
        (f"{GOOD}\n{GOOD}", 3),
        (f"{GOOD}\nb,x,1,,,-2,,,,,2026-01,here", 3),
        ('a,x,1,,,2,,,,,2026-01,"he"re', None),
    ],
)
def test_a_bad_row_is_refused_by_its_line(tmp_path, row, line):
    file = tmp_path / "mine.csv"
    file.write_text(f"{HEADER}\n{row}\n", encoding="utf-8")
    with pytest.raises(BadFile, match="mine.csv") as caught:
        load_prices(file)
    assert caught.value.line == line


@pytest.mark.parametrize(
    "change,column",
    [
        ({"name": ""}, "name"),
        ({"name": "a b"}, "name"),
        ({"as_of": ""}, "as_of"),
        ({"source": ""}, "source"),
        ({"usd_per_million_output_tokens": -1}, "usd_per_million_output_tokens"),
        ({"usd_per_million_cached_input_tokens": float("nan")}, "usd_per_million_cached_input_tokens"),
        ({"tier_above_prompt_tokens": 5}, "tier_above_prompt_tokens"),
    ],
)
def test_a_price_names_the_column_that_makes_no_sense(change, column):
    with pytest.raises(BadArgument) as caught:
        replace(PLAIN, **change)
    assert caught.value.argument == column


def test_files_that_are_no_tables_of_prices(tmp_path):
    for text in ("", "name,input_cost_per_token\na,1", HEADER.replace("cached_input", "cached")):
        (tmp_path / "mine.csv").write_text(text, encoding="utf-8")
        with pytest.raises(BadFile):
            load_prices(tmp_path / "mine.csv")
    (tmp_path / "mine.csv").write_bytes(b"\xff\xfe\x00a")
    for path in (tmp_path / "mine.csv", tmp_path / "none.csv", tmp_path):
        with pytest.raises(BadFile):
            load_prices(path)


def test_a_file_in_the_home_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    (tmp_path / "mine.csv").write_text(f"{HEADER}\n{GOOD}\n", encoding="utf-8")
    assert list(load_prices("~/mine.csv")) == ["a"]


def test_a_file_of_your_own_with_a_spreadsheet_mark(tmp_path):
    (tmp_path / "mine.csv").write_text(f"\ufeff{HEADER}\n{GOOD}\n", encoding="utf-8")
    assert load_prices(tmp_path / "mine.csv")["a"].usd_per_million_output_tokens == 2


def test_a_price_in_another_unit_warns(tmp_path):
    """A public report (litellm 38167): USD a million tokens in a field per token costs a million times too much."""
    (tmp_path / "mine.csv").write_text(f"{HEADER}\n{GOOD.replace(',2,', ',2000000,')}\n", encoding="utf-8")
    with pytest.warns(UserWarning, match=r"a: usd_per_million_output_tokens is 2,000,000; that is USD per million tokens"):
        load_prices(tmp_path / "mine.csv")


@pytest.mark.parametrize("number", [np.int64, np.float32, np.float64, Fraction])
def test_numbers_of_any_kind(number):
    ours = Price("ours", "us", number(2), None, None, number(4), None, None, None, None, "2026-01", "here")
    assert billed_usd(ours, np.int64(10**6), np.int64(10**6)) == 6


@pytest.mark.parametrize(
    "field,value", [("name", 5), ("tier_above_prompt_tokens", 0), ("usd_per_million_input_tokens", "1"), ("name", "")]
)
def test_a_bad_field_is_named(field, value):
    tier = {"tier_above_prompt_tokens": 10, "tier_usd_per_million_input_tokens": 1, "tier_usd_per_million_output_tokens": 1}
    good = Price("ours", "us", 2, None, None, 4, None, None, None, None, "2026-01", "here")
    with pytest.raises(BadArgument) as caught:
        replace(good, **{**tier, field: value})
    assert caught.value.argument == field
