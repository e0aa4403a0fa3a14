"""Published sizes, real models counted number by number, and torch's own count of their operations."""

from dataclasses import replace

import numpy
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.flop_counter import FlopCounterMode

from shapelab.errors import BadArgument
from shapelab.measure.loop import decode_step, prefill
from shapelab.model.kv_cache import held_bytes, new_cache
from shapelab.theory.arithmetic import (
    bytes_per_number,
    decode_bytes,
    decode_flops,
    kv_bytes_per_token,
    parameter_count,
    prefill_bytes,
    prefill_flops,
    weight_bytes,
    weights_read,
)
from shapelab.theory.model_spec import ModelSpec
from tests.theory.test_model_spec import LLAMA_2_7B
from tests.toys import random_ids, toy_model

LLAMA2 = ModelSpec.from_config(LLAMA_2_7B)
TINYLLAMA, SMOLLM2 = ModelSpec.from_config("tinyllama"), ModelSpec.from_config("smollm2-135m")
MIXTRAL_LIKE = ModelSpec(32, 4096, 32, 8, 128, 14336, 32000, 32768, num_experts=8, num_experts_per_tok=2, extra_parameters_per_layer=8192, extra_parameters=4096)  # fmt: skip

# Parameters, KV bytes a token in 16 bits, prefill FLOPs of 512 and 2,048 tokens, decode FLOPs at a context of 512 and
# 2,048: the models' cards for the sizes, the formulas by hand for the rest.
GOLDEN = [
    (TINYLLAMA, 1_100_048_384, 22_528, 1.0159e12, 4.3468e12, 2.1611e9, 2.4379e9),
    (LLAMA2, 6_738_415_616, 524_288, 6.7005e12, 2.7626e13, 1.3483e10, 1.4288e10),
    (SMOLLM2, 134_515_008, 23_040, 1.1785e11, 5.7995e11, 3.0435e8, 4.1052e8),
]


@pytest.mark.parametrize("spec,parameters,kv,read_512,read_2048,write_512,write_2048", GOLDEN, ids=["tinyllama", "llama-2-7b", "smollm2"])  # fmt: skip
def test_golden_values(spec, parameters, kv, read_512, read_2048, write_512, write_2048):
    assert (parameter_count(spec), kv_bytes_per_token(spec)) == (parameters, kv)
    assert [prefill_flops(spec, 512), prefill_flops(spec, 2048)] == pytest.approx([read_512, read_2048], rel=1e-4)
    assert [decode_flops(spec, 512), decode_flops(spec, 2048)] == pytest.approx([write_512, write_2048], rel=1e-4)


def test_gb_and_gib():
    assert weight_bytes(LLAMA2) / 1e9 == pytest.approx(13.477, abs=5e-4)
    assert weight_bytes(LLAMA2) / 2**30 == pytest.approx(12.551, abs=5e-4)


def test_70b_in_16_bits_is_near_141_gb():
    llama_3_70b = ModelSpec(80, 8192, 64, 8, 128, 28672, 128256, 8192, extra_parameters_per_layer=16384, extra_parameters=8192)
    assert weight_bytes(llama_3_70b) / 1e9 == pytest.approx(141, abs=0.5)


def test_tinyllama_reads_about_2_gb_a_step():
    assert decode_bytes(TINYLLAMA, 1) / 1e9 == pytest.approx(2.07, abs=0.005), "without the input embedding, a look-up"


def test_a_quarter_of_the_key_value_heads_is_a_quarter_of_the_cache():
    grouped = ModelSpec.from_config({**LLAMA_2_7B, "num_key_value_heads": 8})
    assert kv_bytes_per_token(grouped) == 524_288 / 4


def test_dtypes():
    assert [kv_bytes_per_token(SMOLLM2, size) for size in (4, "float32", 1, "int8", 0.5, "int4")] == [
        46_080, 46_080, 11_520, 11_520, 5_760, 5_760
    ]  # fmt: skip
    assert weight_bytes(LLAMA2, "int4") == weight_bytes(LLAMA2) / 4
    for wrong in ("fp33", 0, -1, True, float("nan"), None, 1000):
        with pytest.raises(BadArgument) as caught:
            bytes_per_number(wrong)
        assert caught.value.argument == "dtype"
    assert bytes_per_number(numpy.float32(0.5)) == 0.5 and bytes_per_number(numpy.int64(2)) == 2


FAMILIES = [
    ("llama", {}),
    ("llama", {"head_dim": 32}),
    ("llama", {"num_key_value_heads": 4}),
    ("llama", {"num_hidden_layers": 3}),
    ("llama", {"attention_bias": True, "mlp_bias": True}),
    ("mistral", {}),
    ("qwen2", {}),
    ("qwen3", {"head_dim": 32}),
    ("qwen3", {"attention_bias": True, "head_dim": 16}),
    ("gemma", {"head_dim": 32}),
    ("gemma2", {"head_dim": 32}),
    ("gemma3_text", {"head_dim": 32}),
    ("gpt2", {}),
    ("gpt2", {"n_inner": 96}),
    ("mixtral", {}),
    ("mixtral", {"num_local_experts": 3, "num_experts_per_tok": 1}),
]
every_family = pytest.mark.parametrize("family,changes", FAMILIES, ids=lambda value: str(value))


@pytest.mark.parametrize("tied", [True, False])
@every_family
def test_parameters_of_real_models(family, changes, tied):
    model = toy_model(family, torch.float32, tie_word_embeddings=tied, **changes)
    assert parameter_count(ModelSpec.from_config(model)) == sum(parameter.numel() for parameter in model.parameters())


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
@every_family
def test_cache_bytes_of_real_models(family, changes, dtype):
    model, batch, length = toy_model(family, dtype, **changes), 3, 11
    cache = new_cache(model, length)
    with torch.inference_mode():
        prefill(model, random_ids(batch, length), cache)
    assert held_bytes(cache) == batch * length * kv_bytes_per_token(ModelSpec.from_config(model.config), dtype.itemsize)


def counted(model, ids, cached=0):
    cache = new_cache(model, cached + ids.shape[1])
    with torch.inference_mode():
        if cached:
            prefill(model, random_ids(ids.shape[0], cached), cache)
        with FlopCounterMode(display=False) as counter:
            (decode_step if ids.shape[1] == 1 and cached else prefill)(model, ids, cache)
    return counter.get_total_flops()


FLOP_FAMILIES = [
    ("llama", {}), ("llama", {"head_dim": 32}), ("llama", {"num_key_value_heads": 4}), ("qwen2", {}), ("qwen3", {"head_dim": 32}),
    ("mistral", {"sliding_window": None}), ("gpt2", {}), ("gemma", {"head_dim": 32}),
]  # fmt: skip


@pytest.mark.parametrize("family,changes", FLOP_FAMILIES, ids=lambda value: str(value))
def test_flops_against_torchs_own_count(family, changes):
    """Eager attention computes the whole square, so S^2 stands for S(S+1)/2 in the prefill; rotary angles add a trifle."""
    model = toy_model(family, torch.float32, attn_implementation="eager", hidden_size=128, num_hidden_layers=1, **changes) \
        if family != "gpt2" else toy_model(family, torch.float32, attn_implementation="eager")  # fmt: skip
    spec = ModelSpec.from_config(model)
    length, context = 96, 65
    pairs = 4 * spec.num_hidden_layers * spec.num_attention_heads * spec.head_dim
    square = prefill_flops(spec, length) + pairs * (length**2 - length * (length + 1) / 2)
    assert counted(model, random_ids(1, length)) == pytest.approx(square, rel=1e-3)
    assert counted(model, random_ids(1, 1), cached=context - 1) == pytest.approx(decode_flops(spec, context), rel=1e-3)
    assert counted(model, random_ids(3, 1), cached=context - 1) == pytest.approx(3 * decode_flops(spec, context), rel=1e-3)


def test_torch_does_not_count_the_cpus_fused_attention():
    """Why the test above takes eager attention: sdpa on a CPU comes out too low by all of attention."""
    counts = {
        name: counted(toy_model(dtype=torch.float32, attn_implementation=name), random_ids(1, 96)) for name in ("sdpa", "eager")
    }
    spec = ModelSpec.from_config(toy_model())
    attention = 4 * spec.num_hidden_layers * spec.num_attention_heads * spec.head_dim * 96**2
    assert counts["eager"] - counts["sdpa"] == attention


# Properties

spec_strategy = st.builds(
    lambda layers, heads, groups, d, f, v, tied, experts, chosen: ModelSpec(
        layers, heads * groups * d, heads * groups, heads, d, f, v, 4096, tied, num_experts=experts, num_experts_per_tok=min(chosen, experts)
    ),
    st.integers(1, 80), st.integers(1, 16), st.integers(1, 8), st.sampled_from([32, 64, 128]), st.integers(64, 30_000),
    st.integers(256, 200_000), st.booleans(), st.integers(1, 16), st.integers(1, 4),
)  # fmt: skip
tokens, batches = st.integers(1, 20_000), st.integers(1, 512)


@given(spec_strategy, tokens, st.integers(0, 20_000), st.integers(1, 500), batches)
@settings(max_examples=60, deadline=None)
def test_more_never_costs_less(spec, n, cached, more, batch):
    assert prefill_flops(spec, n + more, cached) > prefill_flops(spec, n, cached)
    assert prefill_flops(spec, n, cached + more) > prefill_flops(spec, n, cached)
    assert decode_flops(spec, n + more) > decode_flops(spec, n)
    assert prefill_bytes(spec, n + more, cached, batch) > prefill_bytes(spec, n, cached, batch)
    assert prefill_bytes(spec, n, cached + more, batch) > prefill_bytes(spec, n, cached, batch)
    assert prefill_bytes(spec, n, cached, batch + more) > prefill_bytes(spec, n, cached, batch)
    assert decode_bytes(spec, n + more, batch) > decode_bytes(spec, n, batch)
    assert decode_bytes(spec, n, batch + more) > decode_bytes(spec, n, batch)
    assert decode_bytes(spec, n, batch, "int4", "int8") < decode_bytes(spec, n, batch, "int8") < decode_bytes(spec, n, batch)


@given(spec_strategy, st.lists(tokens, min_size=2, max_size=6))
@settings(max_examples=60, deadline=None)
def test_chunks_of_a_prefill_sum_to_the_whole(spec, chunks):
    apart = sum(prefill_flops(spec, chunk, sum(chunks[:place])) for place, chunk in enumerate(chunks))
    extra_heads = (len(chunks) - 1) * 2 * spec.hidden_size * spec.vocab_size
    assert apart - extra_heads == pytest.approx(prefill_flops(spec, sum(chunks)), rel=1e-12)


@given(spec_strategy, tokens)
@settings(max_examples=40, deadline=None)
def test_a_prefill_of_one_token_is_a_decode_step(spec, context):
    assert prefill_flops(spec, 1, context - 1) == pytest.approx(decode_flops(spec, context), rel=1e-12)


@given(spec_strategy, tokens)
@settings(max_examples=40, deadline=None)
def test_tying_changes_parameters_never_flops(spec, n):
    tied, untied = replace(spec, tie_word_embeddings=True), replace(spec, tie_word_embeddings=False)
    assert parameter_count(untied) - parameter_count(tied) == spec.vocab_size * spec.hidden_size
    assert weights_read(untied) == weights_read(tied)
    assert prefill_flops(tied, n) == prefill_flops(untied, n) and decode_flops(tied, n) == decode_flops(untied, n)


def test_experts():
    """Memory counts all, FLOPs the chosen ones, and a batch reads about E(1 - ((E - k)/E)^B) of them."""
    dense = ModelSpec(32, 4096, 32, 8, 128, 2 * 14336, 32000, 32768, extra_parameters_per_layer=8192, extra_parameters=4096)
    router = 32 * 4096 * 8
    assert decode_flops(MIXTRAL_LIKE, 512) - 2 * router == decode_flops(dense, 512), "two of eight experts work"
    assert parameter_count(MIXTRAL_LIKE) / 1e9 == pytest.approx(46.7, abs=0.05)
    one_expert = 32 * 3 * 4096 * 14336
    everything = parameter_count(MIXTRAL_LIKE) - 32000 * 4096
    for batch in (1, 2, 8):
        awake = 8 * (1 - (6 / 8) ** batch)
        assert weights_read(MIXTRAL_LIKE, batch) == pytest.approx(everything - (8 - awake) * one_expert, rel=1e-12)
    assert weights_read(MIXTRAL_LIKE, 10**6) == pytest.approx(everything)


@pytest.mark.parametrize("value", [0, -1, 1.5, "8", True, None, 10**11])
def test_absurd_counts_are_refused_by_name(value):
    for call, name in [
        (lambda: prefill_flops(SMOLLM2, value), "input_tokens"),
        (lambda: decode_bytes(SMOLLM2, 8, value), "batch_size"),
        (lambda: prefill_bytes(SMOLLM2, 8, 0, value), "batch_size"),
    ]:
        with pytest.raises(BadArgument) as caught:
            call()
        assert caught.value.argument == name
    if value != 1.5:  # a mean context need not be whole
        with pytest.raises(BadArgument) as caught:
            decode_flops(SMOLLM2, value)
        assert caught.value.argument == "context_tokens"
    if value != 0:
        with pytest.raises(BadArgument) as caught:
            prefill_flops(SMOLLM2, 8, value)
        assert caught.value.argument == "cached_tokens"
