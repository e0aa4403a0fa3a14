"""Several shapes, several times, fairly: warmed up, interleaved, with fresh prompts and fresh caches."""

import dataclasses
import random
from collections.abc import Iterator, Mapping, Sequence

import torch
from tqdm.auto import tqdm

from shapelab.errors import BadArgument, DoesNotFit, UnsupportedModel
from shapelab.files import keep_from_interrupts
from shapelab.measure.clock import clock_for
from shapelab.measure.loop import Generation, prefill, timed
from shapelab.measure.this_machine import GpuWatch, environment
from shapelab.model.kv_cache import new_cache
from shapelab.model.load import Lab
from shapelab.model.memory import PeakMemory, give_back_memory, is_out_of_memory, refuse_what_memory_cannot_hold, too_large
from shapelab.record.fields import LONGEST_TEXT
from shapelab.record.measurement import Measurement, Repeat
from shapelab.record.run import Run, Settings, check_that_it_can_be_saved
from shapelab.request.prompts import prompt_ids
from shapelab.request.shape import RequestShape
from shapelab.text import visible

WARM_UP_OUTPUT_TOKENS = 4  # at least 2, or the decode step would first run inside the measurement


def run_once(lab: Lab, shape: RequestShape, prompts: Sequence[Sequence[int]] | None = None, *, clock=None) -> Generation:
    """Run a shape once: read exactly S tokens and write exactly N in each row, in a fresh cache.

    prompts  B rows of cached + input ids; None takes real text. Raises DoesNotFit or BadArgument before anything runs,
    UnsupportedModel where the model ignored its cache.
    """
    ids, cache = ready(lab, shape, prompts)
    generation = timed(lab.model, ids, shape.output_tokens, clock or clock_for(lab.device), cache)
    length = cache.get_seq_length()
    if length != shape.final_kv_tokens:
        raise UnsupportedModel(
            f"The KV cache holds {length} tokens after the run and should hold {shape.final_kv_tokens}: this transformers did not "
            "use the cache it was given, so the timing means nothing. Try transformers 4.57 to 5.x."
        )
    return generation


@torch.inference_mode()
def ready(lab: Lab, shape: RequestShape, prompts: Sequence[Sequence[int]] | None = None):
    """The input ids (B, S) on the device, and a KV cache with the cached tokens in it and room for the rest."""
    lab.check(shape)
    rows = prompt_ids(lab.tokenizer, shape) if prompts is None else prompts
    lengths = [len(row) for row in rows]
    if lengths != [shape.prompt_tokens] * shape.batch_size:
        raise BadArgument(
            f"The prompts have {lengths} tokens and the shape {shape} needs {shape.batch_size} x {shape.prompt_tokens}.",
            "prompts",
        )
    lab.check_ids(rows)
    ids = torch.tensor(rows, device=lab.device)
    cache = new_cache(lab.model, shape.final_kv_tokens)
    if shape.cached_tokens:  # an earlier request left them; this request does not pay for them
        prefill(lab.model, ids[:, : shape.cached_tokens], cache)
    return ids[:, shape.cached_tokens :], cache


def measure_shapes(
    lab: Lab, shapes: Mapping[str, RequestShape], *, repeats: int = 3, seed: int = 0, clock=None, progress: bool = True
) -> Run:
    """Measure named shapes and return a Run.

    Each shape is warmed up at its own size, then every round runs each shape once, in an order drawn by the seed, so
    that a machine that slows down slows all shapes alike. Prompts differ at every repeat. All shapes are checked and
    warmed up before the first one is measured, so one that does not fit is found out while nothing can be lost.
    Stopped by Ctrl-C or by a lack of memory, it returns the repeats it has, if every shape has one. A caller that then
    saves the run puts both calls into `files.keep_from_interrupts`, so that a second Ctrl-C cannot come between them.
    """
    settings = Settings.of(repeats, seed)
    give_back_memory()
    for name, shape in shapes.items():
        _refuse_name(name)
        lab.check(shape)
        check_that_it_can_be_saved(shape, settings.repeats)
        refuse_what_memory_cannot_hold(lab, shape)
    where, watch = environment(lab), GpuWatch(lab.device)
    taken: dict[str, list[Repeat]] = {name: [] for name in shapes}
    with (
        keep_from_interrupts() as interrupts,
        tqdm(total=len(shapes) * (settings.repeats + 1), desc="warming up", unit="run", disable=not progress) as bar,
    ):
        shape = None
        try:
            with interrupts.let_through():
                for shape in shapes.values():
                    warm_up(lab, shape, seed)
                    bar.update()
                for order, (repeat, name) in enumerate(_rounds(shapes, settings)):
                    shape = shapes[name]
                    bar.set_description(visible(f"{name} {shape}"))
                    taken[name].append(one_repeat(lab, shape, seed, repeat, order, clock, watch))
                    bar.update()
        except KeyboardInterrupt:
            if not all(taken.values()):
                raise
        except Exception as error:
            if not is_out_of_memory(error):
                raise
            if not all(taken.values()):
                raise DoesNotFit(f"{too_large(lab, shape)} Ask for a smaller batch or fewer tokens, or leave it out.") from error
        measurements = [
            Measurement(name=name, **dataclasses.asdict(shape), repeats=tuple(taken[name])) for name, shape in shapes.items()
        ]
        give_back_memory()
    return Run(where, measurements, settings=settings)


def warm_up(lab: Lab, shape: RequestShape, seed: int = 0):
    """Run the shape's own prefill and a few of its decode steps, unmeasured, on a prompt no repeat uses (repeat 0)."""
    short = dataclasses.replace(shape, output_tokens=min(shape.output_tokens, WARM_UP_OUTPUT_TOKENS))
    if short.output_tokens < 2 and shape.total_tokens < lab.spec.max_position_embeddings:
        short = dataclasses.replace(shape, output_tokens=2)
    run_once(lab, short, prompt_ids(lab.tokenizer, shape, seed=seed, repeat=0))


def one_repeat(lab: Lab, shape: RequestShape, seed: int, repeat: int, order: int, clock, watch: GpuWatch) -> Repeat:
    """Run a shape once on this repeat's prompts, and keep what was seen. order: its place among all runs."""
    prompts = prompt_ids(lab.tokenizer, shape, seed=seed, repeat=repeat)
    with PeakMemory(lab.device) as memory:
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
        peak_memory_bytes=memory.peak_bytes,
        gpu_before=before,
        gpu_after=watch.state(),
    )


def _refuse_name(name: str):
    """Before anything runs: what no file can hold, such as half a character, must not cost the measurements."""
    if not isinstance(name, str) or len(name) > LONGEST_TEXT or name != name.encode(errors="replace").decode():
        raise BadArgument(
            f"A name in shapes must be text of up to {LONGEST_TEXT:,} characters, not {ascii(name)[:40]}.", "shapes"
        )


def _rounds(shapes: Mapping[str, RequestShape], settings: Settings) -> Iterator[tuple[int, str]]:
    """Each repeat's number with the names in the order drawn for it."""
    for repeat in range(1, settings.repeats + 1):
        names = list(shapes)
        random.Random(f"{settings.seed}/{repeat}").shuffle(names)
        yield from ((repeat, name) for name in names)
