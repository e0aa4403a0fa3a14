"""One table for the terminal, the notebook and the page. Every string in it is shown as it is, whatever it holds."""

import io
import re
from dataclasses import dataclass, replace

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from shapelab.classroom.html import escape, verbatim
from shapelab.text import VERBATIM, visible

_NUMBER = re.compile(r"[-+]?(\d[\d,]*(\.\d+)?(e[-+]?\d+)?|inf)( ?%| [A-Za-z]{1,3})?")  # with its unit: 5 %, 1.1 GB
_NAME = 24  # columns of a first cell that is not wrapped
_WIDEST = 160  # columns of the text; wider tables wrap inside their cells


@dataclass(frozen=True)
class Table:
    """Headings over rows of cells, a title above and a note below.

    A cell may be any value: None and NaN become "-", all else its `str`. `numbers`: the columns (0, 1, ...) that are aligned
    to the right; by default those that hold nothing but numbers. Headings that are all empty are not drawn.
    """

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...] = ()
    title: str = ""
    note: str = ""
    numbers: frozenset[int] | None = None

    def __post_init__(self):
        headings = tuple(map(cell, self.headings))
        rows = tuple(tuple(map(cell, row)) for row in self.rows)
        if any(len(row) != len(headings) for row in rows):
            raise ValueError(f"Every row needs {len(headings)} cells, one for each heading.")
        numbers = self.numbers
        if numbers is None:
            numbers = {place for place, column in enumerate(zip(*rows, strict=True)) if _are_numbers(column)}
        for name, value in {
            "headings": headings, "rows": rows, "title": visible(self.title), "note": visible(self.note), "numbers": frozenset(numbers),
        }.items():  # fmt: skip
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        text = io.StringIO()
        grid = replace(self, title="", note="").to_rich()
        Console(file=text, width=_WIDEST, color_system=None, force_terminal=False, force_jupyter=False).print(grid)
        lines = [line.rstrip() for line in text.getvalue().splitlines()]
        return "\n".join(filter(None, (self.title, *lines, self.note)))

    def to_rich(self) -> RichTable:
        """For a terminal. Cells are Text objects, in which nothing is read as markup."""
        table = RichTable(
            title=Text(self.title) if self.title else None, title_justify="left",
            caption=Text(self.note) if self.note else None, caption_justify="left",
            show_header=any(self.headings), box=box.SIMPLE, pad_edge=False, collapse_padding=True,
        )  # fmt: skip
        for place, heading in enumerate(self.headings):
            right = place in self.numbers
            longest = max((cell_len(row[place]) for row in self.rows), default=0)
            whole = right or (place == 0 and longest <= _NAME)  # its cells stay in one line: what is wide elsewhere wraps first
            width = max(longest, 1, *map(cell_len, heading.split())) if whole else None
            table.add_column(Text(heading), justify="right" if right else "left", overflow="fold", width=width)
        for row in self.rows:
            table.add_row(*map(Text, row))
        return table

    def to_html(self) -> str:
        """A bare <table>, every cell escaped; the title is its caption. The note is not in it."""
        title = f'<caption style="text-align:left">{escape(self.title)}</caption>' if self.title else ""
        head = f"<thead>{self._line('th', self.headings)}</thead>" if any(self.headings) else ""
        body = "".join(self._line("td", row) for row in self.rows)
        return f'<table class="{VERBATIM}">{title}{head}<tbody>{body}</tbody></table>'

    def _line(self, tag: str, cells: tuple[str, ...]) -> str:
        sides = ["right" if place in self.numbers else "left" for place in range(len(cells))]
        tags = [f'<{tag} style="text-align:{side};vertical-align:top">' for side in sides]
        return f"<tr>{''.join(f'{start}{escape(text)}</{tag}>' for start, text in zip(tags, cells, strict=True))}</tr>"

    def _repr_html_(self) -> str:
        note = f"<small>{verbatim(self.note)}</small>" if self.note else ""
        return f"<div>{self.to_html()}{note}</div>"


def cell(value) -> str:
    """A value as a table shows it."""
    if not isinstance(value, str) and (value is None or str(value) in ("nan", "<NA>", "NaT")):  # pandas' words for missing
        return "-"
    return visible(str(value))


def _are_numbers(column: tuple[str, ...]) -> bool:
    return any(text != "-" for text in column) and all(text == "-" or _NUMBER.fullmatch(text) for text in column)
