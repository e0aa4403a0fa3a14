"""A picture and its description, made together from the same numbers; and what all pictures share: size, units, caption."""

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from warnings import catch_warnings, filterwarnings

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from shapelab.classroom.figures.colours import FAINT, INK
from shapelab.classroom.html import brief, escape, short
from shapelab.errors import BadArgument, CannotWrite, NotEnoughMeasured
from shapelab.files import user_path
from shapelab.text import VERBATIM, visible

# A decorator for what draws: a dollar sign in a name is a dollar sign, not the start of a formula.
verbatim = rc_context({"text.parse_math": False, "text.usetex": False})


@dataclass(frozen=True, repr=False, eq=False)
class Drawn:
    """A picture and what it shows in words: for readers who do not see it, and for reading its values exactly.

    pyplot does not know the figure, so a notebook shows it once, and nothing has to be closed.
    """

    figure: Figure
    words: str

    def __repr__(self) -> str:
        return self.words

    def save(self, path: str | Path, dpi: float = 110) -> Path:
        """Write the picture in the format that the file's name ends with. Raises BadArgument for an unknown format and CannotWrite."""
        path = user_path(path)
        form, forms = path.suffix[1:].lower() or "png", self.figure.canvas.get_supported_filetypes()
        if form not in forms:
            raise BadArgument(f"There is no picture format {path.suffix}. Choose one of {', '.join(sorted(forms))}.", "path")
        try:
            self._write(path, form, dpi)
        except OSError as error:
            raise CannotWrite(f"The picture could not be written to {path} ({error.strerror}).") from error
        return path

    def png(self, dpi: float = 110) -> bytes:
        file = io.BytesIO()
        self._write(file, "png", dpi)
        return file.getvalue()

    @verbatim  # some texts, such as those of ticks, are made only now
    def _write(self, file, form: str, dpi: float):
        with catch_warnings():
            filterwarnings("ignore", "Glyph .* missing")  # the name stands in the words
            self.figure.savefig(file, format=form, dpi=dpi)

    def html(self) -> str:
        """The picture for a page, with its description as the alternative text."""
        return _image(self.png(), self.words)

    def _repr_mimebundle_(self, **_) -> dict:
        png = self.png()
        more = f"<details><summary>In words</summary>{escape(self.words)}</details>"
        page = f'<div class="{VERBATIM}">{_image(png, self.words)}{more}</div>'
        return {"text/html": page, "image/png": png, "text/plain": self.words}


def canvas(height: float, width: float = 9, columns: int = 1) -> tuple[Figure, list[Axes]]:
    """An empty figure, in inches, with one set of axes for each column."""
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, list(figure.subplots(1, columns, squeeze=False)[0])


def label(axis: Axes, title: str, across: str, up: str = "", grid: str = "y") -> str:
    """Write title and units on the axes. Returns them as the opening of a description."""
    axis.set_title(brief(title, 120), loc="left", fontsize=12)
    axis.set_xlabel(brief(across, 120))
    axis.set_ylabel(brief(up))
    axis.spines[["top", "right"]].set_visible(False)
    axis.grid(axis=grid, color=FAINT, linewidth=0.6)
    axis.set_axisbelow(True)
    units = f"{up}, over {across}" if up else across
    return f"{title} ({units}):" if title else f"{units}:"


def plain_logarithm(axis: Axes):
    """Ticks at 1, 2, 5, 10 ... of a logarithmic axis upwards, as plain numbers."""
    axis.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.yaxis.set_major_formatter("{x:,g}")
    axis.minorticks_off()


def captioned(figure: Figure, words: str, kind: str, about: str) -> Drawn:
    """The finished picture; under it stands whose numbers these are, such as "measured: model, dtype, machine"."""
    figure.supxlabel(brief(f"{kind}: {about}", 160), fontsize=8, x=0.01, ha="left", color=INK)
    return Drawn(figure, visible(f"{words} {kind[:1].upper()}{kind[1:]}: {about}."))


def in_words(points: Sequence[tuple[float, float]]) -> str:
    """The points of a line: "1 at 64, 2.5 at 1,024"."""
    return ", ".join(f"{short(y)} at {short(x)}" for x, y in points)


def ratio(one: float, other: float) -> str:
    """one / other, written for a title; infinite when a coarse clock measured 0."""
    return short(one / other) if other else "∞"


def not_empty(things):
    """What a figure shows, measurements or points. Raises NotEnoughMeasured when there is none to draw."""
    if not things:
        raise NotEnoughMeasured("Nothing was measured that this figure shows, so there is nothing to draw.")
    return things


def _image(png: bytes, alt: str) -> str:
    return f'<img alt="{escape(alt)}" style="max-width:100%" src="data:image/png;base64,{base64.b64encode(png).decode()}">'
