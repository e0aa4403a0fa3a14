"""Panels to explore with: sliders over plain functions.

Each `*_view` function takes numbers and returns a View: what to draw, a sentence, a table. Each `*_explorer` function puts
sliders in front of one. No slider runs a model: all times are predicted (from a recorded or measured run) or computed.
"""

import base64
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

import ipywidgets as widgets
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from shapelab.classroom.figures.colours import DECODE, OVERHEAD, PREFILL
from shapelab.classroom.html import escape, live_or_still, short
from shapelab.classroom.table import Table
from shapelab.cost.machine_hours import machine_cost
from shapelab.cost.price_list import load_prices, price, request_usd
from shapelab.errors import ShapelabError
from shapelab.predict.latency import LatencyModel
from shapelab.predict.roofline_machine import RooflineMachine
from shapelab.record.recorded import recorded, recorded_runs
from shapelab.record.run import Run
from shapelab.request.shape import RequestShape
from shapelab.theory import arithmetic, kv_plan
from shapelab.theory.hardware import gpu, known_gpus
from shapelab.theory.model_spec import ModelSpec, known_models

ASSUMED_OVERHEAD_S = 0.005  # of a pass on a GPU nobody measured; said wherever it enters
DAYS_A_MONTH = 30
TOKENS = (1, 4, 16, 25, 64, 128, 256, 512, 1024, 1205, 2048, 4096, 8192)
BATCHES = (1, 2, 4, 8, 16, 32, 64, 128)
HEIGHT_PX = 320
BARS = 8  # a picture has so many rows at most, drawn once and then moved


@dataclass(frozen=True)
class View:
    """One state of a panel.

    bars     rows to draw: (label, [(length, colour), ...]); lengths share the unit of `axis`
    text     the same in words, with exact values
    marks    a word at the end of a row, by its label
    """

    title: str
    axis: str
    bars: tuple[tuple[str, tuple[tuple[float, str], ...]], ...]
    caption: str
    text: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...] = ()
    marks: dict[str, str] = field(default_factory=dict)


@cache
def machine(name: str, model: str = "tinyllama"):
    """A machine by its name: a recorded run's (predicted), or a GPU's with a model (computed: floor plus overhead)."""
    if name in recorded_runs():
        return LatencyModel.fit(recorded(name))
    return RooflineMachine(gpu(name), ModelSpec.from_config(model), model, "float16", ASSUMED_OVERHEAD_S)


def about(machine) -> str:
    """Whose numbers these are: a caption's words."""
    if isinstance(machine, LatencyModel):
        return f"predicted: {machine.environment.label}"
    return f"computed: {machine.label}: floor plus {machine.overhead_s * 1e3:g} ms a pass (assumed)"


def request_view(machine, input_tokens: int, output_tokens: int, cached_tokens: int = 0, batch_size: int = 1) -> View:
    """A request as a timeline, and the same number of tokens arranged in three other ways."""
    shape = RequestShape(input_tokens, output_tokens, batch_size, cached_tokens)
    _refuse_what_does_not_fit(machine, shape)
    total = input_tokens + output_tokens
    arranged = [replace(shape, input_tokens=n, output_tokens=total - n) for n in _splits(total)]
    bars, rows = [], []
    for each in (shape, *arranged):
        p = machine.predict(each)
        label = "this request" if each is shape else f"{each.input_tokens:,} + {each.output_tokens:,}"
        bars.append((label, ((p.ttft_s, PREFILL), (p.total_s - p.ttft_s, DECODE))))
        tpot = "-" if p.tpot_s is None else short(p.tpot_s * 1e3)
        star = " *" if p.extrapolates else ""
        waits = [v.regime for v in machine.verdicts(each).values()]
        rows.append(
            (
                label + star,
                str(each),
                short(p.ttft_s),
                tpot,
                short(p.total_s),
                f"{p.ttft_s / p.total_s:.0%}",
                ", ".join(waits) or "-",
            )
        )
    asked = machine.predict(shape)
    starred = " Rows with * are extrapolated, too." if any(row[0].endswith("*") for row in rows[1:]) else ""
    low, high = asked.total_interval_s
    between = f", 90 % interval {short(low)} to {short(high)} s" if high > low else ""
    beyond = f" Extrapolated: {'; '.join(asked.extrapolates)}." if asked.extrapolates else ""
    words = (
        f"{shape}: first token after {short(asked.ttft_s)} s, all after {short(asked.total_s)} s{between}; "
        f"{asked.ttft_s / asked.total_s:.0%} of it prefill. {_waits_for(machine, shape)}{beyond}{starred} ({about(machine)}.)"
    )
    headings = ("", "shape", "TTFT s", "TPOT ms", "total s", "prefill share", "waits for")
    return View(f"{shape}, and its {total:,} tokens rearranged", "seconds: first prefill (blue), then decode (orange)", tuple(bars), about(machine), words, headings, tuple(rows))  # fmt: skip


def _waits_for(machine, shape: RequestShape) -> str:
    """The regimes of a request's phases in a sentence."""
    found = machine.verdicts(shape)
    if not found:
        return "What its passes wait for is not known: the limits of this machine were not kept with the run."
    said = [
        f"{phase} waits most for {v.regime} ({v.shares[v.regime]:.0%} of its time{'' if v.clear else ', not clearly'})"
        for phase, v in found.items()
    ]
    basis = (
        ""
        if isinstance(machine, LatencyModel)
        else f"By the data sheet and {machine.overhead_s * 1e3:g} ms a pass that are assumed, "
    )
    text = "; ".join(said)
    return f"{basis}{text if basis else text.capitalize()}."


FREE = 1.25  # a doubling counts as free while a reader waits at most a quarter longer for it


def batch_view(machine, input_tokens: int, output_tokens: int, usd_per_hour: float = 0.35) -> View:
    """Throughput, a reader's wait, memory and USD as the batch grows, up to where the machine was seen or its memory ends."""
    bars, rows, tpots, ends = [], [], {}, ""
    for batch in BATCHES:
        shape = RequestShape(input_tokens, max(2, output_tokens), batch)
        p = machine.predict(shape)
        if p.extrapolates and batch > 1:
            break
        if p.extrapolates:
            ends += f" Extrapolated: {'; '.join(p.extrapolates)}."
        kv_bytes, left_bytes = memory(machine, shape)
        if left_bytes is not None and left_bytes < 0:
            if batch == 1:
                _refuse_what_does_not_fit(machine, shape)
            ends += f" Batch {batch} does not fit in memory."
            break
        tpots[batch] = p.tpot_s
        rate = batch / p.tpot_s
        usd = usd_per_hour / 3600 / rate * 1e6
        bars.append((f"batch {batch}", ((rate, DECODE),)))
        rows.append(
            (
                str(batch),
                f"{rate:,.0f}",
                short(p.tpot_s * 1e3),
                short(p.ttft_s),
                _gb(kv_bytes),
                _gb(left_bytes),
                short(usd),
            )
        )
    doublings = {batch: tpots[2 * batch] / tpots[batch] for batch in tpots if 2 * batch in tpots}
    dear = next((batch for batch, ratio in doublings.items() if ratio > FREE), None)
    last = max(tpots)
    if not doublings:
        marks, verdict = {}, "No doubling of this shape is known."
    elif dear is None:
        marks, verdict = {}, "Every doubling shown is nearly free: at most a quarter more wait for a reader."
    else:
        marks = {f"batch {dear}": f"doubling from here: {doublings[dear] - 1:.0%} more wait"}
        verdict = f"Doubling stops being nearly free at batch {dear}: from there to {2 * dear} a reader waits {doublings[dear] - 1:.0%} longer."
    words = f"At batch {last} a reader waits {tpots[last] / tpots[1]:.2f} times as long a token as alone, and the machine writes {last * tpots[1] / tpots[last]:.1f} times as many. {verdict}{ends} ({about(machine)}.)"
    headings = (
        "batch",
        "tokens/s, all together",
        "TPOT ms",
        "TTFT s",
        "KV cache GB",
        "memory left GB",
        "USD a million output tokens",
    )
    return View("What the machine writes", "decode tokens a second, all together", tuple(bars[-BARS:]), about(machine), words, headings, tuple(rows), marks)  # fmt: skip


def memory(machine, shape: RequestShape) -> tuple[float | None, float | None]:
    """Bytes of a batch's KV cache at its end, and what is left beside weights and activations; None where that is not known."""
    if isinstance(machine, LatencyModel):
        spec, dtype = machine.environment.spec, machine.environment.compute_dtype
    else:
        spec, dtype = machine.spec, machine.dtype
    if spec is None:
        return None, None
    kv_bytes = arithmetic.kv_bytes_per_token(spec, dtype) * (shape.total_tokens - 1) * shape.batch_size
    if isinstance(machine, LatencyModel):
        return kv_bytes, None  # a run does not say how much memory its machine has
    activations = arithmetic.activation_bytes(spec, shape.prompt_tokens, shape.batch_size, dtype)
    return kv_bytes, machine.gpu.usable_bytes - arithmetic.weight_bytes(spec, dtype) - activations - kv_bytes


def _refuse_what_does_not_fit(machine, shape: RequestShape):
    left_bytes = memory(machine, shape)[1]
    if left_bytes is not None and left_bytes < 0:
        raise ShapelabError(
            f"{machine.model} and a request of {shape} do not fit in the memory of {machine.gpu.full_name}. Choose a smaller "
            "model, a shorter request or another GPU."
        )


def _gb(count: float | None) -> str:
    return "-" if count is None else short(count / 1e9)


def kv_view(model: str, gpu_name: str, prompt_tokens: int, output_tokens: int, kv_dtype: str = "float16") -> View:
    """How many requests fit with MHA, GQA and MQA, contiguous and paged."""
    spec, where = ModelSpec.from_config(model), gpu(gpu_name)
    shape = RequestShape(prompt_tokens, output_tokens)
    if shape.total_tokens > spec.max_position_embeddings:
        raise ShapelabError(
            f"{model} has a context of {spec.max_position_embeddings:,} tokens, and this request needs {shape.total_tokens:,}."
        )
    own = spec.num_key_value_heads
    kinds = {
        "MHA": spec.num_attention_heads,
        "GQA": own if own not in (1, spec.num_attention_heads) else max(1, spec.num_attention_heads // 4),
        "MQA": 1,
    }
    bars, rows = [], []
    for kind, heads in kinds.items():
        if spec.num_attention_heads % heads:
            continue
        mine = " (this model's)" if heads == own else ""
        for plan in kv_plan.plan_kv(kv_plan.with_kv_heads(spec, heads), shape, where.usable_bytes, kv_dtype=kv_dtype).values():
            bars.append((f"{kind} {plan.allocation}", ((plan.requests, PREFILL if plan.allocation == "paged" else OVERHEAD),)))
            rows.append(
                (
                    f"{kind}{mine}",
                    str(heads),
                    plan.allocation,
                    f"{plan.kv_bytes_per_token:,.0f}",
                    f"{plan.requests:,}",
                    f"{plan.used:.0%}",
                )
            )
    best = max(rows, key=lambda row: int(row[4].replace(",", "")))
    words = (
        f"{model} in 16 bits on {where.full_name}, {where.usable_bytes / 2**30:.1f} GiB usable, KV cache in {kv_dtype}: requests of "
        f"{prompt_tokens:,} + {output_tokens:,} tokens. Most fit with {best[0]}, {best[2]}: {best[4]}."
    )
    headings = ("heads", "KV heads", "allocation", "KV bytes a token", "requests that fit", "reserved and used")
    return View("Requests that fit at once", "requests: paged blue, contiguous grey", tuple(bars), f"computed: {model}, {where.full_name}", words, headings, tuple(rows))  # fmt: skip


def cost_view(
    price_name: str, machine, usd_per_hour: float, input_tokens: int, output_tokens: int, cached_share: float = 0.0,
    requests_a_day: int = 10_000, batch_size: int = 1,
) -> View:  # fmt: skip
    """USD a month at public prices and on a machine, and which of four changes saves most on each."""
    if not 0 <= cached_share < 1:
        raise ShapelabError(f"The cached share is from 0 to below 1, not {cached_share}: the last token is always read.")
    listed, month = price(price_name), requests_a_day * DAYS_A_MONTH

    guessed = False

    def both(inputs: int, outputs: int, share: float, batch: int) -> tuple[float, float]:
        nonlocal guessed
        cached = min(round(inputs * share), inputs - 1)
        shape = RequestShape(inputs - cached, outputs, batch, cached)
        guessed = guessed or bool(machine.predict(shape).extrapolates)
        at_prices = request_usd(listed, inputs - cached, outputs, cached)
        return at_prices * month, machine_cost(machine, shape, usd_per_hour).usd_per_request * month

    _refuse_what_does_not_fit(machine, RequestShape(input_tokens, output_tokens, batch_size))
    now = both(input_tokens, output_tokens, cached_share, batch_size)
    changes = {
        "half the prompt": both(max(1, input_tokens // 2), output_tokens, cached_share, batch_size),
        "half the answer": both(input_tokens, max(1, output_tokens // 2), cached_share, batch_size),
        "90 % cached": both(input_tokens, output_tokens, max(cached_share, 0.9), batch_size),
    }
    larger = RequestShape(input_tokens, output_tokens, 4 * batch_size)
    if (memory(machine, larger)[1] or 0) >= 0:
        changes["four times the batch"] = both(input_tokens, output_tokens, cached_share, 4 * batch_size)
    entries = {"now": now, **changes}
    rows = tuple(
        (name, f"{a:,.2f}", f"{1 - a / now[0]:+.0%}" if now[0] else "-", f"{b:,.2f}", f"{1 - b / now[1]:+.0%}" if now[1] else "-")
        for name, (a, b) in entries.items()
    )
    best = [min(changes, key=lambda name, side=side: changes[name][side]) for side in (0, 1)]
    words = (
        f"{requests_a_day:,} requests a day of {input_tokens:,} + {output_tokens:,} tokens: {now[0]:,.2f} USD a month at {price_name}'s "
        f"prices (as of {listed.as_of}; check them), {now[1]:,.2f} USD of machine time. Saves most at prices: {best[0]}; on the machine: {best[1]}."
        f"{' Some of the machine times are extrapolated.' if guessed else ''}"
        f"{'' if 'four times the batch' in changes else ' Four times the batch does not fit in memory.'} ({about(machine)}.)"
    )
    bars = tuple((name, ((b, DECODE),)) for name, (_, b) in entries.items())
    headings = ("", "at prices, USD a month", "saved", "machine time, USD a month", "saved")
    return View(
        "Machine time a month", "USD a month, as long as the machine is busy", bars, about(machine), words, headings, rows
    )


def _splits(total: int) -> list[int]:
    """Input tokens of 95, 50 and 5 per cent of a total, at least one token on each side."""
    return sorted({min(max(1, round(total * share)), total - 1) for share in (0.95, 0.5, 0.05)}, reverse=True)


@dataclass
class Picture:
    """Horizontal bars, drawn once; a new View moves them. Two pieces a bar, BARS bars."""

    figure: Figure = field(default_factory=lambda: Figure(figsize=(7.6, 3.4), dpi=88))

    def __post_init__(self):
        FigureCanvasAgg(self.figure)
        self.axis = self.figure.add_axes([0.2, 0.22, 0.76, 0.64])
        self.pieces = [[self.axis.barh(row, 0, height=0.62)[0] for _ in range(2)] for row in range(BARS)]
        self.labels = [self.axis.text(0, row, "", va="center", fontsize=9, parse_math=False) for row in range(BARS)]
        self.names = [
            self.axis.text(
                -0.01, row, "", transform=self.axis.get_yaxis_transform(), ha="right", va="center", fontsize=9, parse_math=False
            )
            for row in range(BARS)
        ]
        self.axis.set_ylim(BARS - 0.4, -0.6)
        self.axis.set_yticks([])
        self.axis.spines[["top", "right"]].set_visible(False)
        self.axis.tick_params(labelsize=9)
        self.title = self.figure.text(0.02, 0.93, "", fontsize=11, parse_math=False)
        self.about = self.figure.text(0.02, 0.02, "", fontsize=7.5, parse_math=False)

    def png(self, view: View) -> bytes:
        longest = max((sum(length for length, _ in parts) for _, parts in view.bars), default=0) or 1
        for row in range(BARS):
            label, parts = view.bars[row] if row < len(view.bars) else ("", ())
            left = 0.0
            for piece, (length, color) in zip(self.pieces[row], (*parts, (0, "white"), (0, "white")), strict=False):
                piece.set(x=left, width=length, color=color)
                left += length
            self.names[row].set_text(label)
            mark = f"  {view.marks[label]}" if label in view.marks else ""
            self.labels[row].set(text=f"{short(left)}{mark}" if parts else "", x=left + longest * 0.01)
        self.axis.set_xlim(0, longest * (1.4 if view.marks else 1.12))
        self.axis.set_xlabel(view.axis, fontsize=9)
        self.title.set_text(view.title)
        self.about.set_text(view.caption)
        with io.BytesIO() as file:
            self.figure.savefig(file, format="png")
            return file.getvalue()


class Panel:
    """Controls in front of a view function. The picture, the text and the table follow; an impossible input is said.

    Without a kernel (GitHub, nbviewer) the picture and the table of its first state stand there instead.
    """

    def __init__(self, view: Callable[..., View], controls: dict[str, widgets.Widget], heading: str):
        self.view, self.controls, self.picture = view, controls, Picture()
        self.image = widgets.Image(format="png", layout={"height": f"{HEIGHT_PX}px", "width": "auto"})
        self.text, self.table, self.error = widgets.HTML(), widgets.HTML(), widgets.HTML()
        self.error.add_class("shapelab-error")
        self.text.add_class("shapelab-text")
        rows = [widgets.HTML(f"<b>{escape(heading)}</b>"), *controls.values()]
        self.box = widgets.VBox([*rows, self.error, self.image, self.text, self.table])
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
            self.error.value = f'<span role="alert" style="color:#b30000">{escape(str(error))}</span>'
            return
        self.error.value = ""
        self.shown = view
        self.image.value = self.picture.png(view)
        self.text.value = escape(view.text)
        self.table.value = Table(view.headings, view.rows).to_html()

    def __repr__(self) -> str:
        return f"{self.shown.title}. {self.shown.text}"

    def _repr_mimebundle_(self, **_) -> dict:
        still = base64.b64encode(self.image.value).decode()
        page = f'<img alt="{escape(self.shown.text)}" src="data:image/png;base64,{still}"><p>{escape(self.shown.text)}</p>{self.table.value}'
        return live_or_still(self.box, repr(self), page)


def request_explorer(run: Run | None = None) -> Panel:
    """Sliders for the four numbers, menus for machine and model. `run`: a run of your own to choose as well."""
    machines, choose = _machines(run)

    def view(machine_name, model, **numbers):
        return request_view(choose(machine_name, model), **numbers)

    controls = {
        "machine_name": _menu("machine", machines),
        "model": _menu("model (GPUs only)", known_models(), "tinyllama"),
        "input_tokens": _steps("input tokens", TOKENS, 1205),
        "output_tokens": _steps("output tokens", TOKENS[:-1], 25),
        "cached_tokens": _steps("cached tokens", (0, *TOKENS), 0),
        "batch_size": _steps("batch size", BATCHES, 1),
    }
    return Panel(view, _for_gpus_only(controls), "Request explorer")


def batch_explorer(run: Run | None = None) -> Panel:
    """The batch from 1 upwards: throughput, a reader's wait, USD."""
    machines, choose = _machines(run)

    def view(machine_name, model, **numbers):
        return batch_view(choose(machine_name, model), **numbers)

    controls = {
        "machine_name": _menu("machine", machines),
        "model": _menu("model (GPUs only)", known_models(), "tinyllama"),
        "input_tokens": _steps("input tokens", TOKENS, 64),
        "output_tokens": _steps("output tokens", TOKENS[1:-1], 64),
        "usd_per_hour": _steps("USD an hour", (0.0, 0.05, 0.1, 0.35, 1.0, 2.5, 5.0), 0.35),
    }
    return Panel(view, _for_gpus_only(controls), "Batch explorer")


def kv_explorer() -> Panel:
    """Requests that fit, by heads, allocation, context and cache dtype."""
    controls = {
        "model": _menu("model", known_models(), "llama-3-8b"),
        "gpu_name": _menu("GPU", list(known_gpus()), "A100-80"),
        "prompt_tokens": _steps("prompt tokens", TOKENS, 1205),
        "output_tokens": _steps("output tokens", TOKENS[:-1], 256),
        "kv_dtype": _menu("KV cache in", ["float16", "int8"]),
    }
    return Panel(kv_view, controls, "KV explorer")


def cost_explorer(run: Run | None = None) -> Panel:
    """Public prices and machine time side by side."""
    machines, choose = _machines(run)

    def view(machine_name, model, **numbers):
        return cost_view(machine=choose(machine_name, model), **numbers)

    controls = {
        "price_name": _menu("prices of", list(load_prices()), "claude-haiku-4.5"),
        "machine_name": _menu("machine", machines),
        "model": _menu("model (GPUs only)", known_models(), "tinyllama"),
        "usd_per_hour": _steps("USD an hour", (0.0, 0.05, 0.1, 0.35, 1.0, 2.5, 5.0), 0.1),
        "input_tokens": _steps("prompt tokens", TOKENS, 1024),
        "output_tokens": _steps("output tokens", TOKENS[:-1], 128),
        "cached_share": _steps("cached share", (0.0, 0.25, 0.5, 0.75, 0.9), 0.0),
        "requests_a_day": _steps("requests a day", (100, 1_000, 10_000, 100_000), 10_000),
        "batch_size": _steps("batch size", BATCHES[:5], 1),
    }
    return Panel(view, _for_gpus_only(controls), "Cost explorer")


def _for_gpus_only(controls: dict[str, widgets.Widget]) -> dict[str, widgets.Widget]:
    """The model menu is asleep while the machine is a run: that has its own model."""

    def follow(_=None):
        controls["model"].disabled = controls["machine_name"].value not in known_gpus()

    controls["machine_name"].observe(follow, names="value")
    follow()
    return controls


def _machines(run: Run | None):
    """Names for the menu, and how to get the machine of a name."""
    own = {} if run is None else {"this run": LatencyModel.fit(run)}
    names = [*own, *recorded_runs(), *known_gpus()]
    return names, lambda name, model: own.get(name) or machine(name, model)


def _steps(label: str, values: Sequence, start) -> widgets.SelectionSlider:
    return widgets.SelectionSlider(
        options=[(f"{value:,}", value) for value in values], value=start, description=label, continuous_update=False,
        style={"description_width": "9em"}, layout={"width": "34em"},
    )  # fmt: skip


def _menu(label: str, names: Sequence[str], start: str | None = None) -> widgets.Dropdown:
    return widgets.Dropdown(
        options=list(names),
        value=start or next(iter(names)),
        description=label,
        style={"description_width": "9em"},
        layout={"width": "34em"},
    )
