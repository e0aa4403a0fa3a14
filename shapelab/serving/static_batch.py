"""A static batch: requests of unequal length, padded to one length and served together until the last of them has stopped."""

import operator
from collections.abc import Collection, Iterator, Sequence

import torch

from shapelab.errors import BadArgument
from shapelab.measure.clock import clock_for
from shapelab.measure.loop import Generation, garbage_collector_paused, generate
from shapelab.model.forward import forward, greedy
from shapelab.model.kv_cache import held_bytes, new_cache
from shapelab.model.load import Lab
from shapelab.record.timeline import Timeline
from shapelab.request.shape import RequestShape


@torch.inference_mode()
def serve(
    lab: Lab, rows: Sequence[Sequence[int]], output_tokens: int, *, stop_ids: Collection[int] = (), clock=None
) -> Generation:
    """Write at most N tokens to each row of ids; ids after a row's first stop id do not count.

    stop_ids  the batch ends when every row has written one of these. Reading the ids makes the host wait at every step, and
              so does a mask inside transformers; the timeline says so.

    The shape of the timeline counts padding: its input tokens are the longest row's. Raises BadArgument for an empty row.
    """
    rows = [[operator.index(token) for token in row] for row in rows]  # numpy's and torch's rows, too
    stop_ids = {operator.index(token) for token in stop_ids}
    if not rows or not all(rows):
        raise BadArgument("`rows` needs at least one row, and every row at least one id.", "rows")
    shape = RequestShape(max(map(len, rows)), output_tokens, len(rows))
    lab.check(shape)
    lab.check_ids(rows)
    output_tokens = shape.output_tokens
    input_ids, mask = left_pad(rows, lab.device)
    clock = clock or clock_for(lab.device)
    cache = new_cache(lab.model, input_ids.shape[1] + output_tokens - 1)
    if mask is None:
        steps = generate(lab.model, input_ids, output_tokens, cache, clock)
    else:
        mask, positions = grown(mask, output_tokens)
        steps = generate_padded(lab.model, input_ids, output_tokens, cache, clock, mask, positions)
    tokens = []
    running = torch.ones(len(rows), 1, dtype=torch.bool, device=lab.device)
    stops = torch.tensor(list(stop_ids), device=lab.device)
    with garbage_collector_paused():
        for token in steps:
            tokens.append(token)
            if stop_ids:
                running &= ~torch.isin(token, stops)
                if not running.any():
                    break
        host_ns, event_s = clock.finish()
    ids = torch.cat(tokens, dim=1)
    timeline = Timeline(
        RequestShape(input_ids.shape[1], len(tokens), len(rows)), host_ns, event_s,
        per_step_sync=clock.per_step_sync or mask is not None or bool(stop_ids),
        row_output_tokens=tuple(_until_stop(row, stop_ids) for row in ids.tolist()) if stop_ids else None,
    )  # fmt: skip
    return Generation(ids, timeline, output_tokens, held_bytes(cache))


def generate_padded(model, input_ids, output_tokens, cache, clock, mask, positions) -> Iterator[torch.Tensor]:
    """`generate` for padded rows: every pass gets the mask of all tokens so far and the positions of the new ones.

    mask (B, S + N), 0 where a row is padded; positions (B, S + N)  ->  N times the next ids (B, 1)
    """

    def read(ids, end):
        start = end - ids.shape[1]
        return greedy(forward(model, ids, cache, attention_mask=mask[:, :end], position_ids=positions[:, start:end]))

    end = input_ids.shape[1]
    clock.start()
    token = read(input_ids, end)
    clock.prefill_done()
    yield token
    for written in range(1, output_tokens):
        token = read(token, end + written)
        clock.step_done()
        yield token


def left_pad(rows: Sequence[Sequence[int]], device, pad_id: int = 0) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Rows of ids -> input_ids (B, S) padded on the left, mask (B, S), or None where no row needs padding."""
    longest = max(map(len, rows))
    ids = [[pad_id] * (longest - len(row)) + list(row) for row in rows]
    mask = [[0] * (longest - len(row)) + [1] * len(row) for row in rows]
    ragged = any(len(row) != longest for row in rows)
    return torch.tensor(ids, device=device), torch.tensor(mask, device=device) if ragged else None


def grown(mask: torch.Tensor, output_tokens: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The mask with room for N written tokens, and each token's position: a row's first real token is at 0. Both (B, S + N)"""
    mask = torch.cat([mask, mask.new_ones(mask.shape[0], output_tokens)], dim=1)
    return mask, (mask.cumsum(dim=1) - 1).clamp(min=0)


def _until_stop(row: list[int], stop_ids: Collection[int]) -> int:
    """How many ids a row wrote up to and with its first stop id."""
    return next((count for count, token in enumerate(row, 1) if token in stop_ids), len(row))
