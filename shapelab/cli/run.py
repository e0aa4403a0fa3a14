"""shapelab run: measure request shapes."""

import tempfile
from pathlib import Path
from typing import Annotated

import typer

from shapelab.cli import options
from shapelab.cli.claims import print_claims
from shapelab.cli.measuring import add_limits, as_json, load_lab, refuse_unwritable
from shapelab.cli.output import notice, print_json, print_table, say
from shapelab.errors import CannotWrite
from shapelab.files import keep_from_interrupts


def run(
    model: options.Model = "auto",
    device: options.Device = "auto",
    dtype: options.Dtype = "auto",
    shapes: Annotated[
        str, typer.Option(help="Presets (chat, rag, creative, llm_perf) and shapes such as 512+64x32@4, with commas between.")
    ] = "chat,rag,creative",
    repeats: Annotated[int, typer.Option(min=1, max=1000, help="How often each shape is measured.")] = 3,
    seed: options.Seed = 0,
    limits: Annotated[
        bool, typer.Option(help="Also measure the fastest this machine can read memory and multiply (C7 needs it).")
    ] = True,
    out: Annotated[Path, options.path_option(help="Folder for the run and the picture.")] = options.RUNS_FOLDER,
    json: options.Json = False,
):
    """Measure request shapes: a table, a picture, a saved run, and the talk's claims decided on this machine."""
    from shapelab.request.shape import parse_shapes

    named = parse_shapes(shapes)
    refuse_unwritable(out)

    # All imports stand before the measuring: nothing slow may come between the last stamp and the file.
    from shapelab.claims import registry
    from shapelab.classroom import tables
    from shapelab.classroom.figures import timelines
    from shapelab.measure import experiment
    from shapelab.record.folder import new_run_name

    lab = load_lab(model, device, dtype)
    run_file = None
    try:
        with keep_from_interrupts() as interrupts:  # one stops the measuring, another one waits until the file is written
            result = experiment.measure_shapes(lab, named, repeats=repeats, seed=seed)
            run_file = _save(result, out / f"{new_run_name()}.jsonl")
        if interrupts.held:
            raise KeyboardInterrupt
        figure_file = _draw(timelines, result, run_file.with_suffix(".png"))
        if limits:
            add_limits(result, lab, run_file)
    except KeyboardInterrupt:
        if run_file is None:
            raise KeyboardInterrupt("Stopped before every shape had run once, so there is nothing to save.") from None
        raise KeyboardInterrupt(f"Stopped. What was measured is in {run_file}.") from None

    findings = registry.findings(result, (*registry.THREE_SHAPES, "C7"))
    if json:
        ceilings = result.limits and result.limits.model_dump()
        claims = registry.as_records(findings)
        print_json({**as_json(result, run_file), "limits": ceilings, "figure_file": figure_file, "claims": claims})
        return
    print_table(tables.shapes_table(result))
    print_claims(findings)
    say("")
    for measurement in result.measurements:
        if measurement.drift:
            say(f"Drift in {measurement.name}: {measurement.drift} Close other programs and measure again.", style="yellow")
    say(f"Run:     {run_file}", whole=True)
    say(f"Picture: {figure_file or 'not written'}", whole=True)


def _save(result, run_file: Path) -> Path:
    """Where it should be; if that fails now, in a temporary folder, for what is measured must not be lost."""
    try:
        return result.save(run_file)
    except CannotWrite as error:
        run_file = result.save(Path(tempfile.mkdtemp(prefix="shapelab-")) / run_file.name)
        notice(f"{error} The run is in {run_file} instead.")
        return run_file


def _draw(timelines, result, figure_file: Path) -> str | None:
    try:
        return str(timelines(result).save(figure_file, dpi=150))
    except CannotWrite as error:
        notice(str(error))
        return None
