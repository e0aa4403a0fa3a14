"""GPUs: the data sheets' dense peaks, in base units."""

import pytest

from shapelab.errors import BadArgument, BadFile, UnknownName
from shapelab.theory import hardware
from shapelab.theory.hardware import gpu, known_gpus
from shapelab.theory.roofline import Device


@pytest.mark.parametrize(
    "name,tflops,gb_per_s,gb",
    [
        ("T4", 65, 320, 16),
        ("L4", 121, 300, 24),
        ("A10G", 70, 600, 24),
        ("A100-80", 312, 2039, 80),
        ("H100-SXM", 989, 3350, 80),  # 1,979 in the sheet is with sparsity
        ("H200", 989, 4800, 141),
    ],
)
def test_golden_values_in_base_units(name, tflops, gb_per_s, gb):
    known = gpu(name)
    assert known.device("float16") == Device(f"{known.full_name}, float16", tflops * 1e12, gb_per_s * 1e9)
    assert known.memory_bytes == gb * 1e9


def test_narrower_is_never_slower_and_only_twice_as_fast():
    """Half the bits, twice the dense rate: a peak "with sparsity" would make it four times."""
    for known in known_gpus().values():
        peaks = known.flops_per_s
        assert peaks["float32"] < peaks["float16"] and known.source.startswith("https://")
        assert peaks.get("bfloat16", peaks["float16"]) == peaks["float16"]
        for dtype in {"float8", "int8"} & peaks.keys():
            assert peaks[dtype] == pytest.approx(2 * peaks["float16"], rel=0.01)


def test_usable_memory_is_in_gib_and_near_what_is_sold():
    assert gpu("T4").usable_bytes == 14.5 * 2**30  # 15.6 GB of the 16 sold
    for known in known_gpus().values():
        sold_gib = known.memory_bytes / 1e9  # makers say GB and mean about GiB
        assert 0.9 * sold_gib < known.usable_bytes / 2**30 < sold_gib


@pytest.mark.parametrize("name", ["T4", "V100-16"])
def test_no_bfloat16_before_compute_capability_8(name):
    assert float(gpu(name).compute_capability) < 8
    with pytest.raises(BadArgument) as caught:
        gpu(name).device("bfloat16")
    assert caught.value.argument == "dtype"


def test_bfloat16_from_8_and_float8_from_8_9_on():
    for known in known_gpus().values():
        capability = float(known.compute_capability)
        assert ("bfloat16" in known.flops_per_s) == (capability >= 8)
        assert ("float8" in known.flops_per_s) == (capability >= 8.9)


@pytest.mark.parametrize("dtype", ["int4", "float12", 2])
def test_a_dtype_that_nothing_computes_in_is_refused(dtype):
    with pytest.raises(BadArgument) as caught:
        gpu("T4").device(dtype)
    assert caught.value.argument == "dtype"


def test_names():
    assert list(known_gpus()) == ["T4", "L4", "A10G", "V100-16", "A100-40", "A100-80", "H100-SXM", "H100-PCIe", "H200", "B200"]
    assert gpu("h100-sxm") == gpu("H100-SXM") == known_gpus()["H100-SXM"]
    for unknown in ("H100", "", None):
        with pytest.raises(UnknownName):
            gpu(unknown)


HEADER = (
    "name,full_name,float32_tflops,float16_tflops,bfloat16_tflops,float8_tflops,int8_tops,"
    "memory_gb_per_s,memory_gb,usable_gib,compute_capability,source\n"
)
ROW = "X,An X,1,2,,,4,10,16,15,7.5,https://x\n"


@pytest.mark.parametrize(
    "text,words",
    [
        (HEADER + ROW.replace(",10,", ",fast,"), "memory_gb_per_s"),
        (HEADER + ROW.replace(",10,", ",,"), "memory_gb_per_s"),
        (HEADER + ROW.replace(",10,", ",nan,"), "memory_gb_per_s"),
        (HEADER + ROW.replace(",4,", ",-4,"), "int8_tops"),
        (HEADER + ROW.replace(",2,", ",,"), "float16_tflops"),
        (HEADER + "X,An X,1,2\n", "source|compute_capability"),
        (HEADER.replace("usable_gib", "usable") + ROW, "usable_gib"),
        (HEADER + ROW + ROW, "X"),
    ],
)
def test_a_bad_row_is_named(monkeypatch, tmp_path, text, words):
    path = tmp_path / "gpus.csv"
    path.write_text(text, encoding="utf-8")
    monkeypatch.setattr(hardware, "data_path", lambda _: path)
    with pytest.raises(BadFile, match=words) as caught:
        known_gpus()
    assert caught.value.line == len(text.splitlines())
