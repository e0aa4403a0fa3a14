"""What a request costs at a public price list. Prices are USD per million tokens, everywhere, and say so in their names."""

import csv
import difflib
import statistics
import warnings
from dataclasses import dataclass, fields
from pathlib import Path

from shapelab.errors import BadArgument, BadFile, UnknownName
from shapelab.files import data_path, user_path
from shapelab.request.shape import real, whole

_IMPROBABLE_USD = 1000  # per million tokens: above it, a price was most likely meant for another unit


@dataclass(frozen=True)
class Price:
    """A model's list price. The fields are the columns of data/prices.csv; None where nothing is published.

    tier_above_prompt_tokens  a request whose prompt is longer than this pays the tier's prices for all its tokens
    as_of, source             when the price was read (YYYY-MM or YYYY-MM-DD), and where

    Raises BadArgument, naming the column, for a value that no price has.
    """

    name: str
    provider: str
    usd_per_million_input_tokens: float
    usd_per_million_cached_input_tokens: float | None
    usd_per_million_cache_write_tokens: float | None
    usd_per_million_output_tokens: float
    tier_above_prompt_tokens: int | None
    tier_usd_per_million_input_tokens: float | None
    tier_usd_per_million_cached_input_tokens: float | None
    tier_usd_per_million_output_tokens: float | None
    as_of: str
    source: str

    def __post_init__(self):
        if not isinstance(self.name, str) or self.name.split() != [self.name]:
            raise BadArgument(f"name must be a text without spaces, not {self.name!r}.", "name")
        for column in ("as_of", "source"):
            if not getattr(self, column):
                raise BadArgument(f"{self.name} needs {column}: when and where the price was read.", column)
        for column in _USD_COLUMNS:
            self._check_usd(column)
        tier = (self.tier_above_prompt_tokens, self.tier_usd_per_million_input_tokens, self.tier_usd_per_million_output_tokens)
        if None in tier and (tier != (None,) * 3 or self.tier_usd_per_million_cached_input_tokens is not None):
            raise BadArgument(
                f"{self.name} has half a tier: its threshold, input price and output price belong together.",
                "tier_above_prompt_tokens",
            )
        if None not in tier:
            whole("tier_above_prompt_tokens", self.tier_above_prompt_tokens, 1)

    def _check_usd(self, column: str) -> None:
        usd = getattr(self, column)
        if usd is None and column not in _NEEDED_COLUMNS:
            return
        if real(column, usd) > _IMPROBABLE_USD:
            warnings.warn(
                f"{self.name}: {column} is {usd:,.0f}; that is USD per million tokens, so was another unit converted twice?",
                stacklevel=4,  # whoever makes the Price
            )


_COLUMNS = [field.name for field in fields(Price)]
_USD_COLUMNS = [column for column in _COLUMNS if "usd_per_million" in column]
_NEEDED_COLUMNS = ("usd_per_million_input_tokens", "usd_per_million_output_tokens")


def load_prices(path: str | Path | None = None) -> dict[str, Price]:
    """The prices of a CSV file by name: of data/prices.csv, a dated snapshot, or of your own with the same columns.

    An empty cell is a price that is not published. Raises BadFile, naming the line, where a row makes no sense.
    """
    path = user_path(path or data_path("prices.csv"))
    prices: dict[str, Price] = {}
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:  # -sig: spreadsheets write a mark at the start
            rows = csv.DictReader(file, strict=True)
            # A misspelt column would be a price not published, so no other columns are taken.
            if sorted(rows.fieldnames or []) != sorted(_COLUMNS):
                raise BadFile(f"{path.name} must have these columns and no others: {', '.join(_COLUMNS)}.")
            for row in rows:
                price = _from_row(row, path.name, rows.line_num)
                if price.name in prices:
                    raise BadFile(f"{path.name}, line {rows.line_num}: {price.name} is there twice.", rows.line_num)
                prices[price.name] = price
    except (OSError, UnicodeError, csv.Error) as error:
        raise BadFile(f"{path} is not a readable CSV file ({type(error).__name__}).") from None
    return prices


def _from_row(row: dict[str, str], file: str, line: int) -> Price:
    where = f"{file}, line {line}"
    if None in row or None in row.values():
        raise BadFile(f"{where}: a row has {len(_COLUMNS)} cells, one for each column.", line)
    cells = {column: cell.strip() for column, cell in row.items()}
    values = dict(cells)
    try:
        for column in _USD_COLUMNS:
            values[column] = float(cells[column]) if cells[column] else None
        values["tier_above_prompt_tokens"] = int(cells["tier_above_prompt_tokens"] or 0) or None
        return Price(**values)
    except ValueError as error:
        raise BadFile(f"{where} ({cells['name']}): {error}.", line) from None
    except BadArgument as error:
        raise BadFile(f"{where}: {error}", line) from None


def price(name: str) -> Price:
    """The price of a model in data/prices.csv. Raises UnknownName, with the names that are close."""
    prices = load_prices()
    if name not in prices:
        close = difflib.get_close_matches(str(name).lower(), prices, n=5, cutoff=0.2) or sorted(prices)
        raise UnknownName(
            f"There is no price for {name!r}. Use {', '.join(close)}, or load_prices with a file of your own.", "name"
        )
    return prices[name]


def request_usd(
    price: Price, input_tokens: int, output_tokens: int, cached_tokens: int = 0, cache_write_tokens: int = 0, requests: int = 1
) -> float:
    """USD of `requests` equal requests, counted as a RequestShape counts: cached_tokens come on top of input_tokens.

    input_tokens are those processed now. cache_write_tokens, which a provider bills for storing them, come on top as well.
    """
    input_tokens, cached = whole("input_tokens", input_tokens, 0), whole("cached_tokens", cached_tokens, 0)
    one = billed_usd(price, input_tokens + cached, output_tokens, cached, cache_write_tokens)
    return whole("requests", requests, 0) * one


def billed_usd(
    price: Price, prompt_tokens: int, output_tokens: int, cached_prompt_tokens: int = 0, cache_write_tokens: int = 0
) -> float:
    """USD of one request, counted as a bill counts: cached_prompt_tokens are among prompt_tokens, and billed once.

    OpenAI reports usage like this (prompt_tokens, and cached_tokens within). Anthropic reports cache writes and cache reads
    beside input_tokens: pass its writes as cache_write_tokens, and add its reads to prompt_tokens. Input, cached and written
    tokens together are the prompt that a tier's threshold applies to.

    A cached or written token whose price is not published costs what an input token does, never 0.
    Raises BadArgument for counts that cannot be.
    """
    prompt, output = whole("prompt_tokens", prompt_tokens, 0), whole("output_tokens", output_tokens, 0)
    cached, written = whole("cached_prompt_tokens", cached_prompt_tokens, 0), whole("cache_write_tokens", cache_write_tokens, 0)
    if cached > prompt:
        raise BadArgument(
            f"cached_prompt_tokens ({cached:,}) cannot be more than prompt_tokens ({prompt:,}); request_usd adds them on top.",
            "cached_prompt_tokens",
        )
    usd_input, usd_cached, usd_written, usd_output = usd_per_million(price, prompt + written)
    return ((prompt - cached) * usd_input + cached * usd_cached + written * usd_written + output * usd_output) / 1e6


def usd_per_million(price: Price, prompt_tokens: int) -> tuple[float, float, float, float]:
    """USD per million input, cached, written and output tokens, for a prompt of this length: exactly at the threshold is still base."""
    base, written = price.usd_per_million_input_tokens, price.usd_per_million_cache_write_tokens
    written = base if written is None else written
    usd, cached, output = base, price.usd_per_million_cached_input_tokens, price.usd_per_million_output_tokens
    if price.tier_above_prompt_tokens is not None and prompt_tokens > price.tier_above_prompt_tokens:
        usd, cached = price.tier_usd_per_million_input_tokens, price.tier_usd_per_million_cached_input_tokens
        output = price.tier_usd_per_million_output_tokens
        # The table has no column for it: where a tier's write price is published, it is as many times the input price.
        written = written * usd / base if base else usd
    return usd, usd if cached is None else cached, written, output


def output_to_input_ratio(price: Price) -> float:
    """How many input tokens an output token costs, at the base price."""
    if not price.usd_per_million_input_tokens:
        raise BadArgument(f"Input tokens of {price.name} are free, so there is no ratio.", "price")
    return price.usd_per_million_output_tokens / price.usd_per_million_input_tokens


def median_output_to_input_ratio(prices: dict[str, Price]) -> float:
    """The middle of the ratios of these prices. Each row counts once, so a model that two providers offer counts twice."""
    if not prices:
        raise BadArgument("prices must hold one price or more: an empty list has no median.", "prices")
    return statistics.median(output_to_input_ratio(one) for one in prices.values())
