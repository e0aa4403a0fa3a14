"""Which shapes to measure so that a latency model can be fitted: one list for a short break, one for a long one."""

from dataclasses import replace

from shapelab.errors import UnknownName
from shapelab.request.shape import RequestShape, whole

# Along each number with the others small, then where two are large at once. Batches of 3 and 4 both: on CPUs a step
# often jumps between them (another matrix kernel takes over).
_QUICK = """
    1x12 16x12 32x12 64x12 128x12 256x12 512x12 1024x12 2048x8 3000x8
    32x12@2 32x12@3 32x12@4 32x12@6 32x12@8 32x12@12 32x12@16
    128x12@16 512x8@16 256x12@8 64x12@4 768x8@4 256x12@2 1536x8@2 512+64x12 1536+64x12
"""
# The talk's prompts and the presets are in it, so that a recorded run can decide the claims.
_FULL = """
    1x32 8x32 16x32 25x32 32x32 64x32 128x32 256x32 512x32 768x32 1024x32 1205x32 1536x32 2048x32 3000x32 4096x32
    60x80 1205x24 25x300 25x100
    32x32@2 32x32@3 32x32@4 32x32@5 32x32@6 32x32@8 32x32@10 32x32@12 32x32@14 32x32@16 32x32@24 32x32@32
    256x32@2 1024x32@2 2048x32@2 64x32@4 256x32@4 512x32@4 1024x32@4 2048x16@4 128x32@8 256x32@8 512x32@8 1024x16@8
    64x32@16 128x32@16 256x16@16 512x16@16 128x32@32 256x16@32
    256+64x32 512+64x32 1024+64x32 2048+64x32 3000+64x32 1024+1x32 1024+512x32 2048+16x32 512+32x32@4 1024+32x32@2 256+32x32@8
"""
PLANS = {"quick": (_QUICK, 2), "full": (_FULL, 3)}


def plan_shapes(plan: str, max_position_embeddings: int) -> tuple[list[RequestShape], int]:
    """The shapes of a plan, quick or full, cut to a model's context, and how often to repeat each.

    quick takes about 3 minutes on 2 CPU cores with the embedded model, full about 15.
    """
    check_plan(plan)
    limit = whole("max_position_embeddings", max_position_embeddings, 1)
    text, repeats = PLANS[plan]
    fitting = (_cut(RequestShape.parse(word), limit) for word in text.split())
    return list(dict.fromkeys(shape for shape in fitting if shape)), repeats


def check_plan(plan: str):
    """Raises UnknownName."""
    if plan not in PLANS:
        raise UnknownName(f"There is no plan {plan!r}; choose one of {', '.join(PLANS)}.", "plan")


def _cut(shape: RequestShape, limit: int) -> RequestShape | None:
    """The shape with as much input as the context has room for; None where there is no room for it."""
    room = limit - shape.cached_tokens - shape.output_tokens
    return replace(shape, input_tokens=min(shape.input_tokens, room)) if room >= 1 else None
