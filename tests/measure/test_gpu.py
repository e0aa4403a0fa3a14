"""On a CUDA GPU: the clocks agree, nothing waits between the passes, and what does not fit leaves no trace."""

import pytest
import torch

import shapelab
from shapelab.errors import ShapelabError
from shapelab.measure.ceilings import measure_ceilings
from shapelab.measure.clock import clock_for
from shapelab.measure.experiment import measure_shapes, run_once, warm_up
from shapelab.measure.loop import generate
from shapelab.measure.this_machine import GpuWatch, environment
from shapelab.model.kv_cache import new_cache
from shapelab.model.load import ByteTokenizer, Lab, choose_dtype
from shapelab.record import metrics
from shapelab.request.shape import RequestShape
from shapelab.theory.model_spec import ModelSpec
from tests.toys import random_ids, toy_model

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU that this torch can use"),
    pytest.mark.filterwarnings("ignore:Synchronization debug mode"),
]
GIB = 2**30


@pytest.fixture(scope="module")
def lab():
    return shapelab.load("tinyllama:random", "cuda")


@pytest.fixture(scope="module")
def toy():
    model = toy_model(dtype=torch.float32).to("cuda")
    spec = ModelSpec.from_config(model.config)
    return Lab(model, ByteTokenizer(), "toy-llama", "random", torch.device("cuda"), torch.float32, spec)


def test_events_and_host_stamps_agree(lab):
    shape = RequestShape(256, 32)
    warm_up(lab, shape)
    timeline = run_once(lab, shape).timeline
    host, events = metrics.total_s(timeline), timeline.event_s[-1]
    assert len(timeline.host_ns) == 3 and len(timeline.event_s) == 32
    assert list(timeline.event_s) == sorted(timeline.event_s) and timeline.event_s[0] > 0
    assert events <= host <= 1.2 * events
    assert metrics.host_overhead_s(timeline) == host - events


def test_ids_equal_generate(toy):
    ids = random_ids(1, 9)
    written = run_once(toy, RequestShape(9, 32), ids.tolist()).ids
    ids = ids.to("cuda")
    toy.model.generation_config.pad_token_id = 0
    full = toy.model.generate(ids, attention_mask=torch.ones_like(ids), do_sample=False, eos_token_id=None, max_new_tokens=32)
    assert written.is_cuda and written.tolist() == full[:, 9:].tolist()
    assert len(set(written[0].tolist())) >= 8, "a model that repeats itself proves nothing"


@pytest.fixture
def alarm_off():
    """Whatever a test does, the next one can wait for the device again."""
    yield
    torch.cuda.set_sync_debug_mode("default")


@torch.inference_mode()
def decode_under_alarm(lab, then=lambda token: None):
    """Generate, and raise at whatever makes the host wait for the device between the first token and the last."""
    count, ids = 12, random_ids(2, 20).to("cuda")
    warm_up(lab, RequestShape(20, count, 2))
    steps = generate(lab.model, ids, count, new_cache(lab.model, 20 + count - 1), clock_for(lab.device))
    for seen, token in enumerate(steps, 1):
        if seen == 1:
            torch.cuda.set_sync_debug_mode("error")
        elif seen == count:
            torch.cuda.set_sync_debug_mode("default")  # the clock waits next, and is meant to
        then(token)
    return seen


def test_nothing_waits_between_the_passes(lab, alarm_off):
    assert decode_under_alarm(lab) == 12


def test_the_alarm_sounds_when_a_value_is_read(lab, alarm_off):
    with pytest.raises(RuntimeError, match="synchronizing"):
        decode_under_alarm(lab, then=lambda token: token[0, 0].item())


def test_a_repeats_peak_memory_is_its_own(lab):
    """A loader, or a larger run before, may have needed more: that peak is not this run's."""
    torch.empty(2 * GIB, dtype=torch.uint8, device="cuda")  # stands for the loader's peak; gone at once
    before = torch.cuda.max_memory_allocated()
    assert before >= lab.weight_bytes + 2 * GIB
    peaks = [r.peak_memory_bytes for r in measure_shapes(lab, {"a": RequestShape(64, 4)}, repeats=2, progress=False)["a"].repeats]
    assert all(lab.weight_bytes < peak < before - GIB for peak in peaks)


def test_auto_dtype_follows_the_compute_capability(lab):
    expected = torch.bfloat16 if torch.cuda.get_device_capability() >= (8, 0) else torch.float16
    assert choose_dtype(torch.device("cuda")) == expected == lab.dtype
    assert {parameter.dtype for parameter in lab.model.parameters()} == {expected}
    assert {parameter.device.type for parameter in lab.model.parameters()} == {"cuda"}


def test_the_environment_names_the_gpu(lab):
    where = environment(lab)
    assert (where.device, where.device_kind) == (torch.cuda.get_device_name(), "cuda")
    assert where.compute_capability == ".".join(map(str, torch.cuda.get_device_capability()))


def test_ceilings_are_positive(lab):
    found = measure_ceilings(lab.device, (torch.float32, lab.dtype))
    assert found.memory_read_gb_per_s > 10, "even an old GPU reads faster"
    assert set(found.matmul_flops_per_s) == {"float32", lab.dtype_name}
    assert all(rate > 1e11 for rate in found.matmul_flops_per_s.values())


@pytest.fixture
def little_memory(lab):
    """The GPU as if it had room for the weights and about 1 GiB more: the rest is left to others, and full is full."""
    torch.cuda.empty_cache()
    total = torch.cuda.get_device_properties(lab.device).total_memory
    torch.cuda.set_per_process_memory_fraction(min(1.0, (torch.cuda.memory_allocated() + GIB) / total))
    yield
    torch.cuda.set_per_process_memory_fraction(1.0)


def test_too_large_a_batch_is_a_sentence_and_leaves_no_trace(lab, little_memory):
    held = torch.cuda.memory_allocated()
    with pytest.raises(ShapelabError, match=r"1024x4@64 does not fit in the memory of this cuda .* smaller batch"):
        measure_shapes(lab, {"large": RequestShape(1024, 4, 64)}, progress=False)  # its KV cache alone takes 1.4 GiB
    assert torch.cuda.memory_allocated() < held + GIB // 4, "the failed pass still holds memory"
    assert measure_shapes(lab, {"small": RequestShape(64, 4)}, repeats=1, progress=False)["small"].shape == RequestShape(64, 4)


def test_the_watch_has_values_or_none(lab):
    state = GpuWatch(lab.device).state()
    if state is None:
        pytest.skip("NVML does not answer for this GPU")
    reasonable = {"sm_clock_mhz": (1, 10_000), "temperature_c": (1, 120), "power_w": (1, 2_000), "energy_j": (0, 1e12)}
    for name, value in state.model_dump().items():
        low, high = reasonable[name]
        assert value is None or low <= value <= high, f"{name} is {value}"
