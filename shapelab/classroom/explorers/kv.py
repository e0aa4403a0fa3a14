"""KV explorer: how many requests a GPU's memory holds at once."""

from typing import NamedTuple

from shapelab.classroom.explorers.panel import TOKENS, Bar, Panel, View, menu, steps
from shapelab.classroom.figures.colours import OVERHEAD, PREFILL
from shapelab.classroom.table_format import Table
from shapelab.errors import DoesNotFit
from shapelab.request.shape import RequestShape
from shapelab.theory import kv_plan
from shapelab.theory.hardware import GPU, gpu, known_gpus
from shapelab.theory.model_spec import ModelSpec, known_models


class KVRow(NamedTuple):
    """A plan of the cache for one number of KV heads. kind: MHA, GQA or MQA; own: the model comes with that number."""

    kind: str
    own: bool
    kv_heads: int
    plan: kv_plan.KVPlan

    @property
    def label(self) -> str:
        return f"{self.kind} (this model's)" if self.own else self.kind


def kv_rows(spec: ModelSpec, device: GPU, shape: RequestShape, kv_dtype: str = "float16") -> list[KVRow]:
    """MHA, GQA and MQA, each contiguous and paged, weights in 16 bits. Raises DoesNotFit above the model's context."""
    if shape.total_tokens > spec.max_position_embeddings:
        raise DoesNotFit(
            f"The model has a context of {spec.max_position_embeddings:,} tokens, and this request needs {shape.total_tokens:,}."
        )
    query, own = spec.num_attention_heads, spec.num_key_value_heads
    kinds = {"MHA": query, "GQA": own if own not in (1, query) else max(1, query // 4), "MQA": 1}
    return [
        KVRow(kind, heads == own, heads, plan)
        for kind, heads in kinds.items()
        if query % heads == 0
        for plan in kv_plan.plan_kv(kv_plan.with_kv_heads(spec, heads), shape, device.usable_bytes, kv_dtype=kv_dtype).values()
    ]


def kv_view(model: str, gpu_name: str, prompt_tokens: int, output_tokens: int, kv_dtype: str = "float16") -> View:
    """How many requests fit with MHA, GQA and MQA, contiguous and paged."""
    device = gpu(gpu_name)
    rows = kv_rows(ModelSpec.from_config(model), device, RequestShape(prompt_tokens, output_tokens), kv_dtype)
    most = max(rows, key=lambda row: row.plan.requests)
    text = (
        f"{model} in 16 bits on {device.full_name}, {device.usable_bytes / 2**30:.1f} GiB usable, KV cache in {kv_dtype}: requests "
        f"of {prompt_tokens:,} + {output_tokens:,} tokens. Most fit with {most.label}, {most.plan.allocation}: {most.plan.requests:,}."
    )
    colors = {"paged": PREFILL, "contiguous": OVERHEAD}
    bars = tuple(Bar(f"{row.kind} {row.plan.allocation}", ((row.plan.requests, colors[row.plan.allocation]),)) for row in rows)
    table = Table(
        ("heads", "KV heads", "allocation", "KV bytes a token", "requests that fit", "reserved and used"),
        [
            (
                row.label, str(row.kv_heads), row.plan.allocation, f"{row.plan.kv_bytes_per_token:,.0f}",
                f"{row.plan.requests:,}", f"{row.plan.used:.0%}",
            )
            for row in rows
        ],
    )  # fmt: skip
    caption = f"computed: {model}, {device.full_name}"
    return View("Requests that fit at once", "requests: paged blue, contiguous grey", bars, caption, text, table)


def kv_explorer() -> Panel:
    """Requests that fit, by heads, allocation, context and cache dtype."""
    controls = {
        "model": menu("model", known_models(), "llama-3-8b"),
        "gpu_name": menu("GPU", list(known_gpus()), "A100-80"),
        "prompt_tokens": steps("prompt tokens", TOKENS, 1205),
        "output_tokens": steps("output tokens", TOKENS[:-1], 256),
        "kv_dtype": menu("KV cache in", ["float16", "int8"]),
    }
    return Panel("KV explorer", kv_view, controls)
