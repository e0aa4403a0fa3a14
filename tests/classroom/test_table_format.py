"""One table in text, in a terminal and in HTML: whatever a name holds is shown as it is."""

import html
import io

import pandas as pd
import pytest
from rich.console import Console

from shapelab.classroom.table_format import Table, cell

NAMES = ("rag [long]", "w [/x]", "[bold red]", ":smile:", "<b>x</b>", "&amp;", "$x$", "a*b_c_", r"back\slash", "日本 [1]")


def printed(table: Table, width: int = 80) -> str:
    text = io.StringIO()
    Console(file=text, width=width, force_terminal=False, color_system=None).print(table.to_rich())
    return text.getvalue()


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_shown_as_it_is_wherever_it_stands(name):
    table = Table((name, "n"), [(name, 1)], name, name)
    for text in (repr(table), printed(table)):
        assert text.count(name) == 4
    assert table._repr_html_().count(f">{html.escape(name)}<") == 4


def test_jupyter_sets_no_formula_in_a_name():
    """MathJax reads what an output holds between dollar signs, unless its classes are told not to."""
    for part in Table(("a",), [("$x$",)], note="$y$")._repr_html_().split("$")[0:3:2]:
        assert 'class="tex2jax_ignore mathjax_ignore"' in part


@pytest.mark.parametrize(
    "value,shown",
    [("a\nb", r"a\nb"), ("\x1b[2J", r"\x1b[2J"), ("\x9b0m", r"\x9b0m"), ("\t", r"\t"), ("\ud800", r"\ud800"), ("é\u00a0日", "é\u00a0日")],
)  # fmt: skip
def test_a_terminal_obeys_no_cell(value, shown):
    table = Table((value,), [(value,)], value, value)
    for text in (repr(table), printed(table), table._repr_html_()):
        assert text.count(shown) == 4 and text.encode()
    assert "\x1b" not in repr(table) + printed(table)


@pytest.mark.parametrize("missing", [None, float("nan"), pd.NA, pd.NaT])
def test_what_is_missing_is_a_dash(missing):
    assert cell(missing) == "-" and "-" in repr(Table(("a", "b"), [("x", missing)])).split()
    assert cell("nan") == "nan", "a name is no number"


def test_numbers_stand_to_the_right():
    rows = [("a", "1,205", "5 %", "1.5", "-"), ("b", "3", "-12%", "2 x 3", "-")]
    table = Table(("name", "tokens", "share", "pieces", "none"), rows)
    assert table.numbers == {1, 2}
    assert "a      1,205    5 %" in repr(table) and "b          3   -12%" in repr(table)
    assert table.to_html().count("text-align:right") == 6
    assert Table(("a", "b"), [("1", "2")], numbers={0}).numbers == {0}


def test_no_headings_no_line_under_them():
    table = Table(("", ""), [("a", "b")])
    assert "─" not in repr(table) and "<thead>" not in table.to_html() and "<th" not in table.to_html()


def test_without_rows():
    table = Table(("a", "b"), note="Nothing was measured.")
    assert (
        repr(table).split()[:2] == ["a", "b"] and repr(table).endswith("Nothing was measured.") and "<td" not in table.to_html()
    )


def test_narrow_terminals_fold_words_and_no_number():
    table = Table(("a long heading", "words"), [("123,456", "one two three four five")], numbers={0})
    assert "123,456" in printed(table, 16).split() and "five" in printed(table, 16).split()


def test_a_row_has_as_many_cells_as_there_are_headings():
    with pytest.raises(ValueError):
        Table(("a", "b"), [("1",)])
