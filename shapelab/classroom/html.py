"""Small pieces of HTML for notebooks. Everything that is not ours is escaped, model text above all."""

import html
from dataclasses import dataclass

from shapelab.text import VERBATIM, visible


@dataclass(frozen=True)
class Card:
    """A few sentences that read well as text and as HTML. For rows and columns there is `table_format.Table`."""

    text: str
    html: str

    def __repr__(self) -> str:
        return visible(self.text, lines=True)

    def _repr_html_(self) -> str:
        return f'<div class="{VERBATIM}" style="border-left:4px solid #949494;padding:4px 12px;max-width:56em">{self.html}</div>'


def escape(text: str) -> str:
    """A text inside HTML: no tags, and nothing invisible; lines stay lines."""
    return html.escape(visible(text, lines=True))


def brief(text: str, longest: int = 48) -> str:
    """A name beside a bar or a line, where a long one would push the picture away. The description has the whole name."""
    text = visible(text)
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def verbatim(text: str) -> str:
    """A text inside a page, exactly as it is: neither tags nor formulas are read in it."""
    return f'<span class="{VERBATIM}">{escape(text)}</span>'


def live_or_still(box, text: str, page: str) -> dict:
    """What Jupyter shows of a box of widgets: the box itself, or this page where no kernel runs (GitHub, nbviewer)."""
    live = {"version_major": 2, "version_minor": 0, "model_id": box.model_id}
    return {"application/vnd.jupyter.widget-view+json": live, "text/html": page, "text/plain": text}


def bar(parts: list[tuple[float, str]], height_px: int = 16) -> str:
    """A row of coloured pieces; each part is (per cent of the full width, colour)."""
    pieces = "".join(
        f'<span style="display:inline-block;height:{height_px}px;width:{max(0.0, share):.2f}%;background:{color}"></span>'
        for share, color in parts
    )
    return f'<div style="width:100%;line-height:0;font-size:0;white-space:nowrap">{pieces}</div>'


def short(value: float) -> str:
    """A number for reading: three digits that matter, and from 1,000 to 10^15 all those before the point."""
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e15 else f"{value:.3g}"
