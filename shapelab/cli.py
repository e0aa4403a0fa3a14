"""The `shapelab` command. Tables go to stdout; with --json one object goes there and everything else to stderr."""

import json
import logging
import os
import shutil
import sys
import tempfile
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Column, Table

from shapelab.errors import ShapelabError
from shapelab.files import cache_dir

app = typer.Typer(
    no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="rich",
    help="Measure what an LLM request costs on this machine, by its shape: input tokens, output tokens, context, batch.",
)  # fmt: skip

ModelOption = Annotated[str, typer.Option(help="auto, a name from `shapelab models`, NAME:random, a hub id or a local folder.")]
DeviceOption = Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1 or mps.")]
DtypeOption = Annotated[str, typer.Option(help="auto, float32, bfloat16 or float16.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout, everything else on stderr.")]

_GRID = ("64,256,1024", "32", "1", "0")  # of a sweep: input, output, batch, cached


@app.command()
def run(
    model: ModelOption = "auto",
    device: DeviceOption = "auto",
    dtype: DtypeOption = "auto",
    shapes: Annotated[
        str, typer.Option(help="Presets (chat, rag, creative, llm_perf) and shapes such as 512+64x32@4, with commas between.")
    ] = "chat,rag,creative",
    repeats: Annotated[int, typer.Option(min=1, max=1000, help="Measured runs of each shape.")] = 3,
    seed: Annotated[int, typer.Option(min=0, help="Draws the prompts and the order.")] = 0,
    limits: Annotated[bool, typer.Option(help="Measure what the machine does at best as well (C7 needs it).")] = True,
    out: Annotated[Path, typer.Option(help="Folder for the run and the picture.")] = Path("shapelab-runs"),
    as_json: JsonOption = False,
):
    """Measure request shapes: a table, a picture, a saved run, and the talk's claims decided on this machine."""
    with sentences(stopped="Stopped before every shape was measured once; nothing was kept."):
        from shapelab.request.shape import parse_shapes

        wanted = parse_shapes(shapes)
        _refuse_unwritable(out)

        from shapelab.measure.experiment import measure_shapes

        lab = _load(model, device, dtype)
        result = measure_shapes(lab, wanted, repeats=repeats, seed=seed)
        run_file, figure_file = _keep(result, out, Console(stderr=True))
        if limits:
            _add_limits(result, lab, run_file)
        _report_run(result, run_file, figure_file, as_json)


@app.command()
def sweep(
    out: Annotated[Path, typer.Option(help="The run's file. Where it exists, the sweep goes on from what it holds.")],
    inputs: Annotated[str, typer.Option("--input", help="Input tokens, with commas between.")] = _GRID[0],
    outputs: Annotated[str, typer.Option("--output", help="Output tokens.")] = _GRID[1],
    batches: Annotated[str, typer.Option("--batch", help="Batch sizes.")] = _GRID[2],
    cached: Annotated[str, typer.Option("--cached", help="Cached tokens, on top of the input tokens.")] = _GRID[3],
    plan: Annotated[
        str, typer.Option(help="quick or full: shapes that a latency model can be fitted to, in place of the numbers above.")
    ] = "",
    model: ModelOption = "auto",
    device: DeviceOption = "auto",
    dtype: DtypeOption = "auto",
    repeats: Annotated[int | None, typer.Option(min=1, max=1000, help="Measured runs of each shape; 3, or the plan's.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Draws the prompts and the order.")] = 0,
    as_json: JsonOption = False,
):
    """Measure every combination of the numbers given. Each shape is saved as it is measured; stopped, it goes on later."""
    with sentences(stopped="Stopped. Every finished shape is kept; the same command goes on from there."):
        from shapelab.record.plans import check_plan, plan_shapes
        from shapelab.request.shape import grid

        if plan:
            check_plan(plan)
            if (inputs, outputs, batches, cached) != _GRID:
                raise ShapelabError("--plan brings its own shapes; leave out --input, --output, --batch and --cached.")
        wanted = grid(inputs, outputs, batches, cached)
        _refuse_unwritable(out.parent)

        from shapelab.measure import experiment

        lab = _load(model, device, dtype)
        if plan:
            wanted, planned = plan_shapes(plan, lab.spec.max_position_embeddings)
        result = experiment.sweep(lab, wanted, out, repeats=repeats or (planned if plan else 3), seed=seed)
        if plan and result.limits is None:
            _add_limits(result, lab, out)
        if as_json:
            print_json({**_as_json(result, str(out)), "skipped": [entry.model_dump() for entry in result.skipped]})
            return
        console = Console()
        if result.measurements:
            console.print(_shapes_table(result))
        for entry in result.skipped:
            console.print(f"{entry.name}: {entry.reason}", style="yellow", highlight=False, markup=False)
        console.print(f"Run: {out}", highlight=False, soft_wrap=True, markup=False)


@app.command()
def fit(
    run: Annotated[str, typer.Argument(help="A run's file (`shapelab sweep --plan quick` makes one), or a recorded run's name.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The model's file, ending in .json.")],
    as_json: JsonOption = False,
):
    """Fit a latency model to a run: terms that can be read, and TTFT, TPOT and total of any shape."""
    with sentences():
        from shapelab.classroom.tables import TERMS, microseconds
        from shapelab.predict.latency import LatencyModel

        if out.suffix != ".json":
            raise ShapelabError(f"A latency model's file ends in .json; {out.name} does not.")
        model = LatencyModel.fit(_run_of(run))
        model.save(out)
        if as_json:
            print_json({"model_file": str(out), **model.model_dump()})
            return
        table = Table(title=escape(f"Fitted: {model.environment.label}"), title_justify="left", box=box.SIMPLE)
        for heading in TERMS:
            table.add_column(heading, justify="right" if heading in ("from", "microseconds") else "left")
        for row in model.to_frame().itertuples(index=False):
            start = "" if row[2] != row[2] else f"{row[2]:,.0f}"  # NaN where a term counts from nothing on
            table.add_row(row[0], row[1], start, microseconds(row[3]), row[4])
        console = Console()
        console.print(table)
        console.print(escape(str(model)), highlight=False)
        console.print(f"Model: {out}", highlight=False, soft_wrap=True, markup=False)


@app.command()
def predict(
    source: Annotated[
        str, typer.Argument(metavar="RUN|MODEL.json", help="A run's file, a recorded run's name, or a fitted model.")
    ],
    shapes: Annotated[list[str], typer.Argument(help="Shapes such as 1205x24 or 512+64x32@4, or presets such as rag.")],
    as_json: JsonOption = False,
):
    """What shapes should take on the machine of a run, with 90 % intervals; extrapolation is said."""
    with sentences():
        from shapelab.request.shape import RequestShape

        wanted = [RequestShape.parse(text) for text in shapes]
        model = _model_of(source)
        found = [model.predict(shape) for shape in wanted]
        if as_json:
            print_json([_prediction_as_json(prediction) for prediction in found])
            return
        table = Table(title=escape(f"Predicted: {model.environment.label}"), title_justify="left", box=box.SIMPLE)
        for heading in ("shape", "TTFT s", "TPOT ms", "total s", "90 % interval s"):
            table.add_column(heading, justify="left" if heading == "shape" else "right")
        for p in found:
            low, high = p.total_interval_s
            tpot = "-" if p.tpot_s is None else f"{p.tpot_s * 1e3:.1f}"
            mark = " *" if p.extrapolates else ""
            table.add_row(f"{p.shape}{mark}", f"{p.ttft_s:.3f}", tpot, f"{p.total_s:.2f}", f"{low:.2f} to {high:.2f}")
        console = Console()
        console.print(table)
        for p in found:
            if p.extrapolates:
                console.print(f"* {p.shape} extrapolates: {'; '.join(p.extrapolates)}.", style="yellow", highlight=False)


@app.command()
def cost(
    shape: Annotated[str, typer.Argument(help="A shape such as 1205x24 or 512+64x32@4, or a preset such as rag.")],
    prices: Annotated[str, typer.Option(help="A model of the public price list; `list` shows the names.")] = "",
    usd_per_hour: Annotated[float | None, typer.Option(min=0, help="What a machine costs an hour, with --run.")] = None,
    run: Annotated[str, typer.Option(help="That machine: a run's file, a recorded run's name, or a fitted model.")] = "",
    utilisation: Annotated[float, typer.Option(help="Share of the paid hours in which the machine works, up to 1.")] = 1.0,
    as_json: JsonOption = False,
):
    """What a request costs: at public prices (--prices), or on a machine paid by the hour (--usd-per-hour and --run)."""
    with sentences():
        from shapelab.request.shape import RequestShape

        wanted = RequestShape.parse(shape)
        if bool(prices) == (usd_per_hour is not None or bool(run)):
            raise ShapelabError("Give either --prices NAME, or --usd-per-hour and --run together.")
        if not prices and not (usd_per_hour is not None and run):
            raise ShapelabError("A machine's cost needs both --usd-per-hour and --run.")
        found = _cost_at_prices(wanted, prices) if prices else _cost_on_machine(wanted, usd_per_hour, run, utilisation)
        if as_json:
            print_json(found)
            return
        table = Table("", "", title=escape(f"Cost of {wanted}"), title_justify="left", show_header=False, box=box.SIMPLE)
        for key, value in found.items():
            table.add_row(key.replace("_", " "), escape(f"{value:,.6g}" if isinstance(value, float) else str(value)))
        console = Console()
        console.print(table)
        console.print(
            "Prices change: check them before you rely on them." if prices else "Computed from the machine's predicted time."
        )


def _cost_at_prices(shape, name: str) -> dict[str, Any]:
    from shapelab.cost import price_list

    if name == "list":
        raise ShapelabError(f"Prices are known for {', '.join(price_list.load_prices())}.")
    price = price_list.price(name)
    one = price_list.request_usd(price, shape.input_tokens, shape.output_tokens, shape.cached_tokens)
    usd_input, _, _, usd_output = price_list.usd_per_million(price, shape.prompt_tokens)
    return {
        "shape": str(shape),
        "prices": price.name,
        "usd_per_request": one,
        "usd_per_million_input_tokens": float(usd_input),
        "usd_per_million_output_tokens": float(usd_output),
        "as_of": price.as_of,
        "source": price.source,
    }


def _cost_on_machine(shape, usd_per_hour: float, run: str, utilisation: float) -> dict[str, Any]:
    from shapelab.cost.machine_hours import machine_cost

    model = _model_of(run)
    found = machine_cost(model, shape, usd_per_hour, utilisation)
    return {
        "shape": str(shape),
        "machine": model.environment.label,
        "usd_per_hour": usd_per_hour,
        "utilisation": utilisation,
        "usd_per_request": found.usd_per_request,
        "usd_per_million_input_tokens": found.usd_per_million_input_tokens,
        "usd_per_million_output_tokens": found.usd_per_million_output_tokens,
        "as_of": model.environment.measured_at[:10],
    }


def _model_of(source: str):
    """A latency model: from its own file (.json), or fitted to a run."""
    from shapelab.predict.latency import LatencyModel

    return LatencyModel.load(source) if source.endswith(".json") else LatencyModel.fit(_run_of(source))


def _prediction_as_json(p) -> dict[str, Any]:
    return {
        "shape": str(p.shape),
        "ttft_s": p.ttft_s,
        "tpot_s": p.tpot_s,
        "total_s": p.total_s,
        "interval_s": list(p.total_interval_s),
        "extrapolates": bool(p.extrapolates),
    }


def _run_of(source: str):
    """A run from its file, or a recorded one by its name."""
    from shapelab.record.recorded import recorded, recorded_runs
    from shapelab.record.run import Run

    return recorded(source) if source in recorded_runs() else Run.load(source)


def _load(model: str, device: str, dtype: str):
    """The Lab, with what should be known about it said on stderr."""
    import torch

    from shapelab.measure.environment import cpus_usable, thread_problem
    from shapelab.model.load import load

    notice = Console(stderr=True)
    with notice.status("Loading the model"):
        lab = load(model, device, dtype)
    for note in lab.notes:
        notice.print(note, style="dim", highlight=False, markup=False)
    if problem := thread_problem(torch.get_num_threads(), cpus_usable()):
        notice.print(problem, style="yellow", highlight=False)
    return lab


def _add_limits(result, lab, run_file: str | Path):
    """Measured last, when the shapes are safe in their file; whatever happens here leaves them so."""
    from shapelab.measure.overhead import measure_limits

    notice = Console(stderr=True)
    try:
        with notice.status("What this machine does at best"):
            result.add(measure_limits(lab), run_file)
    except (Exception, KeyboardInterrupt) as error:  # a model too unusual for a hollow twin, no memory, no patience
        reason = str(error) or type(error).__name__
        notice.print(f"The limits of this machine were not measured ({reason}); C7 stays open.", style="yellow", markup=False)


def _as_json(result, run_file: str) -> dict[str, Any]:
    return {
        "environment": result.environment.model_dump(),
        "run_file": run_file,
        "shapes": {m.name: m.summary() for m in result.measurements},
    }


def _report_run(result, run_file: str, figure_file: str | None, as_json: bool):
    from shapelab.claims import registry as claims

    found = claims.findings(result, (*claims.THREE_SHAPES, "C7"))
    if as_json:
        limits = result.limits and result.limits.model_dump()
        print_json(
            {**_as_json(result, run_file), "limits": limits, "figure_file": figure_file, "claims": claims.as_records(found)}
        )
        return
    console = Console()
    console.print(_shapes_table(result))
    _print_claims(console, found)
    console.print()
    for measurement in result.measurements:
        if measurement.drift:
            console.print(f"[yellow]Drift in {measurement.name}:[/] {measurement.drift} Close other programs and measure again.")
    picture = figure_file or "not written"
    console.print(f"Run:     {run_file}\nPicture: {picture}", highlight=False, markup=False, soft_wrap=True)


def _refuse_unwritable(out: Path):
    """Find out now, not after minutes of measuring."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=out):
            pass
    except OSError as error:
        raise ShapelabError(f"Nothing can be written to {out} ({error.strerror}). Choose another folder with --out.") from error


def _keep(result, out: Path, notice: Console) -> tuple[str, str | None]:
    """Save run and picture; if the folder fails now, in a temporary one, for what is measured must not be lost."""
    from shapelab.classroom.figures import timelines

    stem = f"run-{datetime.now():%Y%m%d-%H%M%S}-{os.getpid()}"
    try:
        run_file = result.save(out / f"{stem}.jsonl")
    except ShapelabError as error:
        run_file = result.save(Path(tempfile.mkdtemp(prefix="shapelab-")) / f"{stem}.jsonl")
        notice.print(f"{error} It was kept in {run_file} instead.", style="yellow", highlight=False, markup=False, soft_wrap=True)
    picture = run_file.with_suffix(".png")
    try:
        import matplotlib

        matplotlib.use("Agg")
        timelines(result).savefig(picture, dpi=150)
    except OSError as error:
        notice.print(f"The picture could not be written ({error.strerror}).", style="yellow")
        return str(run_file), None
    return str(run_file), str(picture)


def _shapes_table(result) -> Table:
    from shapelab.classroom import tables

    table = Table(
        title=escape(f"Measured: {result.environment.label}"),
        title_justify="left",
        caption=tables.caption(result),
        caption_justify="left",
        box=box.SIMPLE,
        pad_edge=False,
        collapse_padding=True,  # or 80 columns are too few, and numbers lose their last digits
    )
    for heading in tables.HEADINGS:
        first = heading == "shape"
        table.add_column(
            heading, justify="left" if first else "right", no_wrap=first, min_width=8 if first else 4, overflow="fold"
        )
    for row in tables.rows(result):
        table.add_row(*row)
    return table


def _print_claims(console: Console, found):
    """One short paragraph a claim: readable in the narrowest terminal."""
    console.print("\n[bold]The talk's claims[/] (reported: TinyLlama 1.1B on an NVIDIA T4)")
    colors = {"holds": "green", "does_not_hold": "yellow", "not_measured": "dim"}
    for f in found:
        verdict = f"[{colors.get(f.verdict, 'yellow')}]{f.verdict.replace('_', ' ')}[/]"
        console.print(f"\n[bold]{f.id}[/] {f.claim} {verdict}", highlight=False)
        for label, text in (("reported", f.reported), ("measured here", f.measured), ("why", f.why)):
            console.print(Padding(f"[dim]{label}:[/] {text}", (0, 0, 0, 3)), highlight=False)


@app.command(name="claims")
def claims_command(
    runs: Annotated[
        list[str] | None, typer.Argument(help="Run files or recorded runs' names; without any, those in shapelab-runs.")
    ] = None,
    as_json: JsonOption = False,
):
    """The talk's claims C1 to C12, decided by runs: reported, measured, verdict and why."""
    with sentences():
        from shapelab.claims import registry as claims

        found = claims.all_findings(_runs_of(runs))
        if as_json:
            print_json(claims.as_records(found))
            return
        _print_claims(Console(), found)


@app.command()
def report(
    runs: Annotated[
        list[str] | None, typer.Argument(help="Run files or recorded runs' names; without any, those in shapelab-runs.")
    ] = None,
    out: Annotated[Path, typer.Option(help="The page's file.")] = Path("report.html"),
):
    """A report card to hand in: one HTML file with the claims, the measurements and the predictions."""
    with sentences():
        import matplotlib

        from shapelab.classroom.report import write_report

        matplotlib.use("Agg")
        path = write_report(_runs_of(runs), out)
        Console().print(f"Report: {path}", highlight=False, soft_wrap=True, markup=False)


def _runs_of(names: list[str] | None):
    """Runs by file or recorded name; without any name, those in the default folder, newest first."""
    return [_run_of(name) for name in names or sorted(map(str, Path("shapelab-runs").glob("*.jsonl")), reverse=True)]


@app.command()
def doctor(as_json: JsonOption = False):
    """What this machine is, what is missing, which model it would take and why, and what it can do at best."""
    with sentences():
        from shapelab.classroom.tables import facts
        from shapelab.measure.doctor import examine

        with Console(stderr=True).status("Measuring what this machine can do at best"):
            report = examine()
        if as_json:
            print_json(report)
            return
        console = Console()
        for title in ("environment", "ceilings", "choice"):
            table = Table("", Column(overflow="fold"), title=title, title_justify="left", show_header=False, box=box.SIMPLE)
            for line in facts(report[title]).text.splitlines():
                table.add_row(*map(escape, line.split(": ", 1)))
            console.print(table)
        if report["problems"]:
            for problem in report["problems"]:
                console.print(f"[yellow]Problem:[/] {escape(problem)}", highlight=False)
        else:
            console.print("[green]Nothing is missing: this machine is ready.[/]")


@app.command()
def models(
    clear: Annotated[bool, typer.Option("--clear", help="Empty shapelab's cache of converted models.")] = False,
    as_json: JsonOption = False,
):
    """The models known by name: size, memory needed, where each comes from, and what is already here."""
    with sentences():
        if clear:
            _clear_cache()
            return
        from shapelab.model.catalogue import catalogue

        entries = catalogue()
        if as_json:
            print_json(entries)
            return
        table = Table(title="Models by name", title_justify="left", box=box.SIMPLE)
        for heading in ("name", "parameters", "fp32", "16 bits", "here"):
            table.add_column(heading, no_wrap=True)
        for e in entries:
            table.add_row(
                e["name"],
                f"{e['parameters'] / 1e6:,.0f} M",
                f"{e['weight_bytes_fp32'] / 1e9:.2f} GB",
                f"{e['weight_bytes_16_bit'] / 1e9:.2f} GB",
                "yes" if e["cached"] else "no",
            )
        console = Console()
        console.print(table)
        for e in entries:
            about = f"{e['about']}; {e['source']}" if e["about"] else e["source"]
            console.print(f"{e['name']}: {about}", highlight=False, soft_wrap=True, markup=False)
        console.print("\nMemory needed: the weights, in the dtype loaded, and about 1 GB for everything else.")
        console.print("Any hub id or local folder of a decoder-only model works too, and NAME:random with random weights.")
        console.print(f"Cache: {cache_dir()}", highlight=False, markup=False, soft_wrap=True)


def _clear_cache():
    """Remove what shapelab made, and nothing else: the folder may have been chosen by the user."""
    from shapelab.model import embedded

    ours = [
        path
        for pattern in (f"{embedded.NAME}-{'[0-9a-f]' * 8}-r*", ".making-*")
        for path in cache_dir().glob(pattern)
        if path.is_dir()
    ]
    freed = sum(file.stat().st_size for path in ours for file in path.rglob("*") if file.is_file())
    for path in ours:
        shutil.rmtree(path)
    Console().print(f"Removed {freed / 1e9:.2f} GB from {cache_dir()}.", highlight=False, markup=False, soft_wrap=True)


def print_json(value: Any):
    """One JSON object on stdout, readable by any parser (no NaN)."""
    sys.stdout.write(json.dumps(value, indent=2, allow_nan=False) + "\n")


@contextmanager
def sentences(stopped: str = "Stopped."):
    """Turn what a person can put right into one sentence on stderr and exit code 1, without a traceback."""
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    try:
        yield
    except ShapelabError as error:
        Console(stderr=True).print(f"[red]shapelab:[/] {escape(str(error))}", highlight=False, soft_wrap=True)
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        Console(stderr=True).print(stopped, highlight=False)
        raise typer.Exit(130) from None


if __name__ == "__main__":
    app()
