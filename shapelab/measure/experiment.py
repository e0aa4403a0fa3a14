"""Several shapes, several times, fairly: warmed up, interleaved, with fresh prompts and fresh caches."""

import dataclasses
import gc
import random
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import torch
from tqdm.auto import tqdm

from shapelab.errors import ShapelabError
from shapelab.measure.clock import clock_for
from shapelab.measure.environment import GpuWatch, environment
from shapelab.measure.loop import Generation, generate, held_bytes, new_cache, prefill
from shapelab.model.load import Lab
from shapelab.model.memory import give_back_memory, memory_available
from shapelab.record.environment import Environment
from shapelab.record.measurement import Measurement, Repeat, Skipped
from shapelab.record.run import Run
from shapelab.request.prompts import prompt_ids
from shapelab.request.shape import RequestShape
from shapelab.theory.arithmetic import activation_bytes, kv_bytes_per_token

WARM_UP_OUTPUT_TOKENS = 4  # at least 2, or the decode step would first run inside the measurement


def run_once(
    lab: Lab, shape: RequestShape, prompts: Sequence[Sequence[int]] | None = None, *, clock=None, on_token=None
) -> Generation:
    """Run a shape once: exactly S tokens read and N written by each row, in a fresh cache.

    prompts  B rows of cached + input ids; None takes real text. Raises ShapelabError before anything runs when the
    shape does not fit the model.
    """
    lab.check(shape)
    rows = prompt_ids(lab.tokenizer, shape) if prompts is None else prompts
    lengths = [len(row) for row in rows]
    if lengths != [shape.prompt_tokens] * shape.batch_size:
        raise ShapelabError(
            f"The prompts have {lengths} tokens and the shape {shape} needs {shape.batch_size} x {shape.prompt_tokens}."
        )
    lab.check_ids(rows)
    ids = torch.tensor(rows, device=lab.device)
    cache = new_cache(lab.model, shape.final_kv_tokens)
    if shape.cached_tokens:  # what an earlier request left in the cache; its time is not this request's
        with torch.inference_mode():
            prefill(lab.model, ids[:, : shape.cached_tokens], cache)
    generation = generate(
        lab.model, ids[:, shape.cached_tokens :], shape.output_tokens, cache, clock or clock_for(lab.device), on_token=on_token
    )
    held, expected = cache.get_seq_length(), shape.final_kv_tokens
    if held != expected:
        raise ShapelabError(
            f"The cache holds {held} tokens after the run and should hold {expected}: this transformers did not use "
            "the cache it was given, so the timing means nothing. Try transformers 4.57 to 5.x."
        )
    timeline = dataclasses.replace(generation.timeline, shape=shape)
    return dataclasses.replace(generation, timeline=timeline, kv_cache_bytes=held_bytes(cache))


def measure_shapes(
    lab: Lab, shapes: Mapping[str, RequestShape], *, repeats: int = 3, seed: int = 0, clock=None, progress: bool = True
) -> Run:
    """Measure named shapes and return a Run.

    Each shape is warmed up at its own size, then every round runs each shape once, in an order drawn by the seed, so
    that a machine that slows down slows all shapes alike. Prompts differ at every repeat. All shapes are checked and
    warmed up before the first one is measured, so one that does not fit is found out while nothing can be lost.
    Interrupted (Ctrl-C), it returns the repeats it has, if every shape has one.
    """
    if repeats < 1:
        raise ShapelabError(f"repeats must be at least 1, not {repeats}.")
    give_back_memory()
    for shape in shapes.values():
        lab.check(shape)
        _refuse_what_memory_cannot_hold(lab, shape)
    where, watch = environment(lab), GpuWatch(lab.device)
    found: dict[str, list[Repeat]] = {name: [] for name in shapes}
    order = 0
    with tqdm(total=len(shapes) * (repeats + 1), desc="warming up", unit="run", disable=not progress) as bar:
        for shape in shapes.values():
            try:
                warm_up(lab, shape, seed)
            except torch.OutOfMemoryError as error:
                raise ShapelabError(
                    f"{_too_large(lab, shape)} Ask for a smaller batch or fewer tokens, or leave it out."
                ) from error
            bar.update()
        try:
            for repeat in range(1, repeats + 1):
                for name in _shuffled(shapes, seed, repeat):
                    bar.set_description(f"{name} {shapes[name]}")
                    found[name].append(_repeat(lab, shapes[name], seed, repeat, order, clock, watch))
                    order += 1
                    bar.update()
        except KeyboardInterrupt:
            if not all(found.values()):
                raise
    measurements = [
        Measurement(name=name, **dataclasses.asdict(shape), repeats=tuple(found[name])) for name, shape in shapes.items()
    ]
    give_back_memory()
    return Run(where, measurements)


def warm_up(lab: Lab, shape: RequestShape, seed: int = 0):
    """Run the shape's own prefill and a few of its decode steps, unmeasured, on a prompt no repeat uses (repeat 0)."""
    short = dataclasses.replace(shape, output_tokens=min(shape.output_tokens, WARM_UP_OUTPUT_TOKENS))
    if short.output_tokens < 2 and shape.total_tokens < lab.spec.max_position_embeddings:
        short = dataclasses.replace(shape, output_tokens=2)
    run_once(lab, short, prompt_ids(lab.tokenizer, shape, seed=seed, repeat=0))


def sweep(
    lab: Lab,
    shapes: Iterable[RequestShape],
    out: str | Path,
    *,
    repeats: int = 3,
    seed: int = 0,
    clock=None,
    progress: bool = True,
) -> Run:
    """Measure many shapes, one saved line a shape, in an order drawn by the seed so that drift does not look like a trend.

    out  the run's file. Where it exists, shapes that are in it are not run again and the sweep goes on; a file from
         another environment is refused, the difference named. Killed at any moment, it loses at most the shape in flight.

    A shape that memory cannot hold is predicted and skipped with the reason (on a CPU, running out would kill the
    process); one that runs out all the same, on CUDA, is recorded as out_of_memory and the sweep goes on.
    """
    if repeats < 1:
        raise ShapelabError(f"repeats must be at least 1, not {repeats}.")
    wanted = list(dict.fromkeys(shapes))
    for shape in wanted:
        lab.check(shape)
    run = _start_or_resume(Path(out), environment(lab))
    there = {*run.names, *(entry.name for entry in run.skipped)}
    waiting = [shape for shape in wanted if str(shape) not in there]
    random.Random(seed).shuffle(waiting)
    watch = GpuWatch(lab.device)
    with tqdm(total=len(waiting), unit="shape", disable=not progress) as bar:
        for shape in waiting:
            bar.set_description(str(shape))
            run.add(_point(lab, shape, repeats, seed, clock, watch), out)
            bar.update()
    return run


def memory_needed_bytes(lab: Lab, shape: RequestShape) -> int:
    """Bytes a run takes on top of the weights: the KV cache, and an upper estimate of what one prefill layer holds at once.

    With cached tokens a mask of S x (cached + S) comes on top. A margin of 30 % and 64 MB is added: measured peaks
    (smollm2-135m, float32, CPU, 1,000 to 7,000 tokens) were up to 1.3 times the plain sum, and 60 MB above it for short
    prompts.
    """
    size, rows = lab.dtype.itemsize, shape.batch_size
    cache = kv_bytes_per_token(lab.spec, size) * rows * (shape.prompt_tokens + shape.output_tokens)
    activations = activation_bytes(lab.spec, max(shape.input_tokens, shape.cached_tokens), rows, size)
    mask = shape.input_tokens * shape.prompt_tokens * size if shape.cached_tokens else 0
    return int(1.3 * (cache + activations + mask) + 64e6)


def _refuse_what_memory_cannot_hold(lab: Lab, shape: RequestShape):
    needed, available = memory_needed_bytes(lab, shape), memory_available(lab.device)
    if needed > available:
        raise ShapelabError(
            f"{_too_large(lab, shape)} It needs about {needed / 1e9:.2f} GB and {available / 1e9:.2f} GB are left. Ask for a "
            "smaller batch or fewer tokens, or leave it out."
        )


def _point(lab, shape, repeats, seed, clock, watch) -> Measurement | Skipped:
    named = {"name": str(shape), **dataclasses.asdict(shape)}
    try:
        _refuse_what_memory_cannot_hold(lab, shape)
    except ShapelabError as reason:
        return Skipped(outcome="does_not_fit", reason=str(reason), **named)
    try:
        warm_up(lab, shape, seed)
        found = [_repeat(lab, shape, seed, repeat, repeat - 1, clock, watch) for repeat in range(1, repeats + 1)]
        return Measurement(repeats=tuple(found), **named)
    except torch.OutOfMemoryError:
        skipped = Skipped(outcome="out_of_memory", reason=_too_large(lab, shape), **named)
    gc.collect()  # outside the except block: the error's traceback holds the tensors of the failed pass
    if lab.device.type == "cuda":
        torch.cuda.empty_cache()
    return skipped


def _start_or_resume(path: Path, here: Environment) -> Run:
    if not path.exists():
        run = Run(here)
        run.save(path)
        return run
    run = Run.load(path, unfinished=True)
    now, then = (e.model_dump(exclude={"measured_at"}) for e in (here, run.environment))
    changed = [f"{key} was {then[key]} and is {now[key]}" for key in now if now[key] != then[key]]
    if changed:
        raise ShapelabError(f"{path} belongs to another environment: {'; '.join(changed)}. Choose another --out.")
    run.save(path)  # without a last line that was cut off
    return run


def _too_large(lab: Lab, shape: RequestShape) -> str:
    return f"The shape {shape} does not fit in the memory of this {lab.device.type} with {lab.name} in {lab.dtype_name}."


def _repeat(lab, shape, seed, repeat, order, clock, watch) -> Repeat:
    prompts = prompt_ids(lab.tokenizer, shape, seed=seed, repeat=repeat)
    on_cuda = lab.device.type == "cuda"
    if on_cuda:
        torch.cuda.reset_peak_memory_stats(lab.device)  # else the loader's peak would be reported
    before = watch.state()
    generation = run_once(lab, shape, prompts, clock=clock)
    timeline = generation.timeline
    return Repeat(
        index=repeat,
        order=order,
        host_ns=timeline.host_ns,
        event_s=timeline.event_s,
        per_step_sync=timeline.per_step_sync,
        output_tokens=timeline.shape.output_tokens,
        kv_cache_bytes=generation.kv_cache_bytes,
        peak_memory_bytes=torch.cuda.max_memory_allocated(lab.device) if on_cuda else None,
        gpu_before=before,
        gpu_after=watch.state(),
    )


def _shuffled(shapes: Mapping[str, RequestShape], seed: int, repeat: int) -> list[str]:
    names = list(shapes)
    random.Random(f"{seed}/{repeat}").shuffle(names)
    return names
