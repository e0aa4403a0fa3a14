"""One table, shown as text, in a terminal and as HTML."""

from dataclasses import dataclass, field

from rich import box
from rich.table import Table as RichTable
from rich.text import Text


@dataclass(frozen=True)
class Table:
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    title: str = ""
    note: str = ""
    numbers: frozenset[int] = field(default_factory=frozenset)

    def to_rich(self) -> RichTable:
        table = RichTable(
            title=Text(self.title) if self.title else None, title_justify="left", caption=Text(self.note) if self.note else None,
            caption_justify="left", box=box.SIMPLE, pad_edge=False, collapse_padding=True, show_header=any(self.headings),
        )  # fmt: skip
        for place, heading in enumerate(self.headings):
            table.add_column(Text(heading), justify="right" if place else "left", min_width=4 if place else 8, overflow="fold")
        for row in self.rows:
            table.add_row(*(Text(cell) for cell in row))
        return table
