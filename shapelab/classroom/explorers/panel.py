"""What all panels share: a View to show, the picture that draws it, and the controls that change it.

In each panel's file a `*_rows` function computes numbers, a `*_view` function puts them into words, bars and a table, and an
`*_explorer` function puts controls in front of that.
"""

import base64
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import ipywidgets as widgets
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from shapelab.classroom.html import escape, live_or_still, short, verbatim
from shapelab.classroom.table_format import Table
from shapelab.errors import ShapelabError
from shapelab.text import visible

TOKENS = (1, 4, 16, 25, 64, 128, 256, 512, 1024, 1205, 2048, 4096, 8192)
BATCHES = (1, 2, 4, 8, 16, 32, 64, 128)
USD_PER_HOUR = (0.0, 0.05, 0.1, 0.35, 1.0, 2.5, 5.0)
HEIGHT_PX = 320
BARS = 8  # most rows of a picture; they are drawn once and then moved


class Bar(NamedTuple):
    """One row of a picture: pieces of (length, colour) laid end to end, in the unit of the axis; `mark` stands behind them."""

    label: str
    pieces: tuple[tuple[float, str], ...]
    mark: str = ""


@dataclass(frozen=True)
class View:
    """One state of a panel: bars to draw, the same in words with exact values, and a table."""

    title: str
    axis: str
    bars: tuple[Bar, ...]
    caption: str
    text: str
    table: Table


class Picture:
    """Horizontal bars, drawn once; a new View moves them. Two pieces a bar, BARS bars."""

    def __init__(self):
        self.figure = Figure(figsize=(7.6, 3.4), dpi=88)
        FigureCanvasAgg(self.figure)
        self.axis = self.figure.add_axes([0.2, 0.22, 0.76, 0.64])
        beside = self.axis.get_yaxis_transform()
        words = {"va": "center", "fontsize": 9, "parse_math": False}
        self.pieces = [[self.axis.barh(row, 0, height=0.62)[0] for _ in range(2)] for row in range(BARS)]
        self.values = [self.axis.text(0, row, "", **words) for row in range(BARS)]
        self.labels = [self.axis.text(-0.01, row, "", transform=beside, ha="right", **words) for row in range(BARS)]
        self.axis.set_ylim(BARS - 0.4, -0.6)
        self.axis.set_yticks([])
        self.axis.spines[["top", "right"]].set_visible(False)
        self.axis.tick_params(labelsize=9)
        self.title = self.figure.text(0.02, 0.93, "", fontsize=11, parse_math=False)
        self.caption = self.figure.text(0.02, 0.02, "", fontsize=7.5, parse_math=False)

    def png(self, view: View) -> bytes:
        bars = view.bars + (Bar("", ()),) * (BARS - len(view.bars))
        longest = max(sum(length for length, _ in bar.pieces) for bar in bars) or 1
        for bar, pieces, value, label in zip(bars, self.pieces, self.values, self.labels, strict=True):
            left = 0.0
            for piece, (length, color) in zip(pieces, (*bar.pieces, (0, "white"), (0, "white")), strict=False):
                piece.set(x=left, width=length, color=color)
                left += length
            value.set(text=f"{short(left)}  {bar.mark}".rstrip() if bar.pieces else "", x=left + longest * 0.01)
            label.set_text(visible(bar.label))
        self.axis.set_xlim(0, longest * (1.4 if any(bar.mark for bar in bars) else 1.12))
        self.axis.set_xlabel(view.axis, fontsize=9)
        self.title.set_text(visible(view.title))
        self.caption.set_text(visible(view.caption))
        with io.BytesIO() as file:
            self.figure.savefig(file, format="png", pil_kwargs={"compress_level": 1})  # hardly larger, and sooner
            return file.getvalue()


class Panel:
    """Controls in front of a view function; picture, text and table follow them.

    A ShapelabError of the function is shown in place, and the last picture stays. Where no kernel runs (GitHub, nbviewer), the
    picture and the table of the current state are shown instead.
    """

    def __init__(self, heading: str, view: Callable[..., View], controls: dict[str, widgets.Widget]):
        self.heading, self.view, self.controls, self.picture = heading, view, controls, Picture()
        self.shown: View | None = None
        self.image = widgets.Image(format="png", layout={"height": f"{HEIGHT_PX}px", "width": "auto"})
        self.text, self.table, self.error = widgets.HTML(), widgets.HTML(), widgets.HTML()
        self.error.add_class("shapelab-error")
        self.text.add_class("shapelab-text")
        title = widgets.HTML(f"<b>{escape(heading)}</b>")
        self.box = widgets.VBox([title, *controls.values(), self.error, self.image, self.text, self.table])
        for control in controls.values():
            control.observe(lambda _: self.redraw(), names="value")
        self.redraw()

    @property
    def values(self) -> dict:
        return {name: control.value for name, control in self.controls.items()}

    def redraw(self):
        try:
            view = self.view(**self.values)
        except ShapelabError as error:
            self.error.value = f'<span role="alert" style="color:#b30000">{verbatim(str(error))}</span>'
            return
        self.shown = view
        self.error.value = ""
        self.image.value = self.picture.png(view)
        self.text.value = verbatim(view.text)
        self.table.value = view.table.to_html()

    def __repr__(self) -> str:
        return visible(f"{self.shown.title}. {self.shown.text}") if self.shown else self.heading

    def _repr_mimebundle_(self, **_) -> dict:
        page = self.error.value
        if self.shown:
            still = base64.b64encode(self.image.value).decode()
            page += f'<img alt="{escape(self.shown.text)}" src="data:image/png;base64,{still}">'
            page += f"<p>{self.text.value}</p>{self.table.value}"
        return live_or_still(self.box, repr(self), page)


_WIDE = {"style": {"description_width": "9em"}, "layout": {"width": "34em"}}


def steps(label: str, values: Sequence, start) -> widgets.SelectionSlider:
    """A slider over a few values, which answers when the hand lets go."""
    options = [(f"{value:,}", value) for value in values]
    return widgets.SelectionSlider(options=options, value=start, description=label, continuous_update=False, **_WIDE)


def menu(label: str, names: Sequence[str], start: str | None = None) -> widgets.Dropdown:
    return widgets.Dropdown(options=list(names), value=start or next(iter(names)), description=label, **_WIDE)
