"""Several shapes, several times, fairly: warmed up, interleaved, with fresh prompts and fresh caches."""

import dataclasses
import random
from collections.abc import Mapping, Sequence

import torch
from tqdm.auto import tqdm

from shapelab.errors import ShapelabError
from shapelab.measure.clock import clock_for
from shapelab.measure.environment import GpuWatch, environment
from shapelab.measure.loop import Generation, generate, new_cache, prefill
from shapelab.measure.record import Measurement, Repeat, Run
from shapelab.model.load import Lab
from shapelab.request.prompts import prompt_ids
from shapelab.request.shape import RequestShape

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
    ids = torch.tensor(rows, device=lab.device)
    cache = new_cache(lab.model, shape.prompt_tokens + shape.output_tokens - 1)
    if shape.cached_tokens:  # what an earlier request left in the cache; its time is not this request's
        with torch.inference_mode():
            prefill(lab.model, ids[:, : shape.cached_tokens], cache)
    generation = generate(
        lab.model, ids[:, shape.cached_tokens :], shape.output_tokens, cache, clock or clock_for(lab.device), on_token=on_token
    )
    held, expected = cache.get_seq_length(), shape.prompt_tokens + shape.output_tokens - 1
    if held != expected:
        raise ShapelabError(
            f"The cache holds {held} tokens after the run and should hold {expected}: this transformers did not use "
            "the cache it was given, so the timing means nothing. Try transformers 4.57 to 5.x."
        )
    timeline = dataclasses.replace(generation.timeline, cached_tokens=shape.cached_tokens)
    return dataclasses.replace(generation, timeline=timeline)


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
    for shape in shapes.values():
        lab.check(shape)
    where, watch = environment(lab), GpuWatch(lab.device)
    found: dict[str, list[Repeat]] = {name: [] for name in shapes}
    order = 0
    with tqdm(total=len(shapes) * (repeats + 1), desc="warming up", unit="run", disable=not progress) as bar:
        for shape in shapes.values():
            warm_up(lab, shape, seed)
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
    return Run(where, measurements)


def warm_up(lab: Lab, shape: RequestShape, seed: int = 0):
    """Run the shape's own prefill and a few of its decode steps, unmeasured, on a prompt no repeat uses (repeat 0)."""
    short = dataclasses.replace(shape, output_tokens=min(shape.output_tokens, WARM_UP_OUTPUT_TOKENS))
    if short.output_tokens < 2 and shape.total_tokens < lab.spec.max_position_embeddings:
        short = dataclasses.replace(shape, output_tokens=2)
    try:
        run_once(lab, short, prompt_ids(lab.tokenizer, shape, seed=seed, repeat=0))
    except torch.OutOfMemoryError as error:
        raise ShapelabError(
            f"The shape {shape} does not fit in the memory of this {lab.device.type} with {lab.name} in "
            f"{lab.dtype_name}. Ask for a smaller batch or fewer tokens, or leave the shape out."
        ) from error


def _repeat(lab, shape, seed, repeat, order, clock, watch) -> Repeat:
    prompts = prompt_ids(lab.tokenizer, shape, seed=seed, repeat=repeat)
    on_cuda = lab.device.type == "cuda"
    if on_cuda:
        torch.cuda.reset_peak_memory_stats(lab.device)  # else the loader's peak would be reported
    before = watch.state()
    timeline = run_once(lab, shape, prompts, clock=clock).timeline
    return Repeat(
        index=repeat,
        order=order,
        host_ns=timeline.host_ns,
        event_s=timeline.event_s,
        per_step_sync=timeline.per_step_sync,
        output_tokens=timeline.output_tokens,
        peak_memory_bytes=torch.cuda.max_memory_allocated(lab.device) if on_cuda else None,
        gpu_before=before,
        gpu_after=watch.state(),
    )


def _shuffled(shapes: Mapping[str, RequestShape], seed: int, repeat: int) -> list[str]:
    names = list(shapes)
    random.Random(f"{seed}/{repeat}").shuffle(names)
    return names
