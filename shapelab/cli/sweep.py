"""shapelab sweep: measure every combination of some numbers, or a plan's shapes."""

import os.path
from pathlib import Path
from typing import Annotated

import typer

from shapelab.cli import options
from shapelab.cli.measuring import add_limits, as_json, load_lab, refuse_unwritable
from shapelab.cli.output import print_json, print_table, say
from shapelab.errors import BadArgument

_GRID = ("64,256,1024", "32", "1", "0")  # input, output, batch, cached


def sweep(
    out: Annotated[Path, options.path_option(help="The run's file. If it exists, the sweep continues it.")],
    input_tokens: Annotated[str, typer.Option("--input", help="Input tokens, with commas between.")] = _GRID[0],
    output_tokens: Annotated[str, typer.Option("--output", help="Output tokens.")] = _GRID[1],
    batch_size: Annotated[str, typer.Option("--batch", help="Batch sizes.")] = _GRID[2],
    cached_tokens: Annotated[str, typer.Option("--cached", help="Cached tokens, on top of the input tokens.")] = _GRID[3],
    plan: Annotated[
        str, typer.Option(help="quick or full: shapes that a latency model can be fitted to, in place of the numbers above.")
    ] = "",
    model: options.Model = "auto",
    device: options.Device = "auto",
    dtype: options.Dtype = "auto",
    repeats: Annotated[
        int | None, typer.Option(min=1, max=1000, help="How often each shape is measured; 3, or as the plan says.")
    ] = None,
    seed: options.Seed = 0,
    json: options.Json = False,
):
    """Measure every combination of some numbers. Each shape is saved at once; run the same command again to continue."""
    from shapelab.record.plans import check_plan, plan_shapes
    from shapelab.request.shape import grid

    numbers = (input_tokens, output_tokens, batch_size, cached_tokens)
    if plan:
        check_plan(plan)
        if numbers != _GRID:
            raise BadArgument("It brings its own shapes; leave out --input, --output, --batch and --cached.", "plan")
    shapes = grid(*numbers)
    refuse_unwritable(Path(os.path.realpath(out)).parent)  # of the file that a link leads to

    from shapelab.classroom import tables
    from shapelab.measure import sweep as measure

    lab = load_lab(model, device, dtype)
    planned_repeats = 3
    if plan:
        shapes, planned_repeats = plan_shapes(plan, lab.spec.max_position_embeddings)
    try:
        result = measure.sweep(lab, shapes, out, repeats=repeats or planned_repeats, seed=seed)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"Stopped. Every shape measured so far is in {out}; the same command continues it.") from None
    if plan and result.limits is None:
        add_limits(result, lab, out)
    if json:
        print_json({**as_json(result, out), "skipped": [entry.model_dump() for entry in result.skipped]})
        return
    if result.measurements:
        print_table(tables.shapes_table(result))
    for entry in result.skipped:
        say(str(entry), style="yellow")
    say(f"Run: {out}", whole=True)
