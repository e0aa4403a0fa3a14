"""Exercises of notebook 04."""

from shapelab.classroom.exercises.check import Feedback, Slip, check_number, exercise, first_slip
from shapelab.theory.arithmetic import decode_flops, parameter_count, weights_read
from shapelab.theory.hardware import gpu
from shapelab.theory.model_spec import ModelSpec
from shapelab.theory.roofline import HELPS


@exercise(
    "A floor is what the device must move, over how fast it can move it. What must every step read?",
    "All weights but the input embedding, of which it looks up one row. How many bytes is a number of 16 bits?",
    "(parameters - 32,000 * 2,048) * 2 bytes / 320e9 bytes per second is in seconds. The exercise asks for milliseconds.",
)
def check_talk_floor(answer) -> Feedback:
    """Milliseconds that a decode step of TinyLlama in 16 bits needs on a T4, at least."""
    spec, t4 = ModelSpec.from_config("tinyllama"), gpu("T4").device("float16")
    right = weights_read(spec) * 2 / t4.bytes_per_s * 1e3
    return check_number(
        answer, right,
        f"{weights_read(spec) * 2 / 1e9:.2f} GB at 320 GB/s. A step looks up one row of the input embedding and does not read the rest.",
        [
            Slip("embedding_read", parameter_count(spec) * 2 / t4.bytes_per_s * 1e3, "A step looks up one row of the input embedding and does not read the rest. Subtract its V x h numbers (it is not tied)."),
            Slip("one_byte", right / 2, "A number of 16 bits takes 2 bytes. You counted one."),
            Slip("four_bytes", right * 2, "That is for 32-bit numbers. A number of 16 bits takes 2 bytes."),
            Slip("gib", right * 1e9 / 2**30, "You took GiB (2^30 bytes). The bandwidth is in GB/s: 10^9 bytes."),
            Slip("flops", decode_flops(spec, 1) / t4.flops_per_s * 1e3, "That is the time of the arithmetic. The exercise asks for bytes over bandwidth, which takes longer."),
        ], unit="milliseconds per step", tolerance=5e-3,
    )  # fmt: skip


@exercise(
    "Put the measured time beside each of the two floors. Is it near one of them?",
    "The longer floor is a twentieth of the step, and 25 tokens in a pass take little longer than one. What costs so much?",
    "Where no floor explains the time, what is left is the price of making a pass at all. The course has a name for it.",
)
def check_regime(answer) -> Feedback:
    """A step of 140 ms whose bytes take 6.5 ms and whose FLOPs take 0.03 ms; a pass over 25 tokens takes 176 ms."""
    word = (answer if isinstance(answer, str) else "").strip().lower().removesuffix("-bound").removesuffix(" bound")
    if word == "overhead":
        return Feedback(True, "Both floors together explain a twentieth of the step, and 25 tokens cost about as much as one.")
    choice = f"Answer with one of {', '.join(HELPS)}, as text."
    slips = [
        Slip("compute", word == "compute", "If the step were compute-bound, its time would be near the floor of its FLOPs, and a pass over 25 tokens would take far longer."),
        Slip("memory", word == "memory", "If the step were memory-bound, its time would be near the floor of its bytes. Put the measured time beside each floor."),
        Slip("ceiling", word == "bandwidth", f"Bandwidth is a ceiling. A pass that waits for it is memory-bound: is this one near that floor? {choice}"),
        Slip("work", word == "flops", f"FLOPs are the work. A pass that waits for them is compute-bound: is this one near that floor? {choice}"),
        Slip("time", word == "latency", f"Latency is the time itself. The regime says what the pass spends it on. {choice}"),
        Slip("phase", word in ("prefill", "decode"), f"Prefill and decode are phases, and a pass of either can be in any regime. {choice}"),
    ]  # fmt: skip
    return first_slip(slips, Feedback(False, choice))


@exercise(
    "Write down two times for a step of batch B: the arithmetic's, and that of reading the weights. Which grows with B?",
    "For each weight, a step does 2 FLOPs for each sequence and reads 2 bytes once. When do the two take equally long?",
    "B * 2 / 989e12 = 2 / 3350e9. Solve it for B.",
)
def check_critical_batch(answer) -> Feedback:
    """From which batch on a decode step on an H100 SXM in 16 bits is compute-bound, weights only."""
    h100 = gpu("H100-SXM").device("float16")
    right = h100.flops_per_s / h100.bytes_per_s
    return check_number(
        answer, right,
        "Each weight costs 2 FLOPs for each sequence, and 2 bytes once: the twos cancel, and the ridge point is left.",
        [
            Slip("one_flop", right * 2, "The device multiplies and adds each weight: 2 FLOPs for each sequence."),
            Slip("one_byte", right / 2, "A weight of 16 bits takes 2 bytes."),
            Slip("bits_for_bytes", right * 8, "A weight of 16 bits takes 2 bytes, not 16."),
            Slip("units", right / 1e3, "Check the units: TFLOP/s are 10^12, GB/s are 10^9."),
            Slip("peak_alone", h100.flops_per_s / 1e12, "That is the peak alone. Divide it by the bandwidth, both in base units."),
            Slip("bandwidth_alone", h100.bytes_per_s / 1e9, "That is the bandwidth alone. Divide the peak by it, both in base units."),
        ], unit="FLOP/s over bytes/s", tolerance=0.01,
    )  # fmt: skip
