"""What this room's errors say: the thing that is wrong, by its name, and what would work. Everywhere else tests hold the class."""

import pytest

from shapelab.errors import ShapelabError
from shapelab.request.shape import RequestShape
from shapelab.theory.arithmetic import bytes_per_number, decode_flops
from shapelab.theory.hardware import gpu
from shapelab.theory.kv_plan import plan_kv, with_kv_heads
from shapelab.theory.model_spec import ModelSpec
from shapelab.theory.roofline import Device, Floor, verdict

LLAMA3 = ModelSpec.from_config("llama-3-8b")
SAYS = [
    (lambda: ModelSpec.from_config({"model_type": "vit"}), "cannot count a model of type 'vit': .* such as llama"),
    (lambda: ModelSpec.from_config({"model_type": "t5", "is_encoder_decoder": True}), "'t5': it has an encoder"),
    (lambda: ModelSpec.from_config({"model_type": "llava", "text_config": {}}), "'llava': it reads more than text"),
    (lambda: ModelSpec.from_config({"model_type": "evil", "auto_map": {"AutoConfig": "x"}}), "'evil': it needs code of its own"),
    (lambda: ModelSpec.from_config({"model_type": "falcon", "new_decoder_architecture": True}), "a falcon model whose new_decoder_architecture is True"),
    (lambda: ModelSpec.from_config({"model_type": "llama"}), "num_hidden_layers is None; a positive whole number is needed"),
    (lambda: ModelSpec.from_config("nobody/nothing"), "'nobody/nothing' is neither a config.json.*tinyllama.*hub.spec_of"),
    (lambda: bytes_per_number("fp33"), "'fp33' does not name a number format. Use one of .*bfloat16"),
    (lambda: decode_flops(LLAMA3, 0), "context_tokens must be a number of at least 1, not 0"),
    (lambda: gpu("H100"), "No GPU is called 'H100' here. Known are T4, L4, .*B200"),
    (lambda: gpu("T4").device("bfloat16"), r"compute capability 7\.5\) has no native bfloat16.* Use float16"),
    (lambda: gpu("T4").device("int4"), "computed in, such as float16"),
    (lambda: plan_kv(LLAMA3, RequestShape(100, 10), gpu("T4").usable_bytes), "16.1 GB of weights .* do not fit in 15.6 GB"),
    (lambda: plan_kv(LLAMA3, RequestShape(100, 10), 8e10, longest_tokens=100), "longest_tokens must be at least 109, .* not 100"),
    (lambda: with_kv_heads(LLAMA3, 5), "num_key_value_heads is 5, which 32 query heads cannot share evenly"),
    (lambda: Device("odd", 0, 1), "flops_per_s must be a number above 0, not 0"),
    (lambda: verdict("a pass", 0, Floor(1, 1), 0), "measured_s must be a number above 0, not 0"),
]  # fmt: skip


@pytest.mark.parametrize("call,words", SAYS, ids=lambda value: value if isinstance(value, str) else "")
def test_a_sentence_says_what_is_wrong_and_what_would_work(call, words):
    with pytest.raises(ShapelabError, match=words) as caught:
        call()
    assert str(caught.value).endswith(".") and "\n" not in str(caught.value)
