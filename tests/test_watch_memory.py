"""The watchdog counts a command with its children, kills all of them past the cap, and hands on an exit code."""

import subprocess
import sys
from pathlib import Path

import psutil
import pytest

SCRIPT = Path(__file__).resolve().parents[1] / "scripts" / "watch_memory.py"
HOLD = "import sys, time; held = bytearray(int(sys.argv[1]) * 10**6); held[::4096] = b'x' * len(held[::4096]); time.sleep(float(sys.argv[2]))"
CHILD = f"import subprocess, sys; sys.exit(subprocess.run([sys.executable, '-c', {HOLD!r}, *sys.argv[1:]]).returncode)"

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux knows the PSS of a process")


def watch(cap_gb: float, code: str, *arguments) -> tuple[float, int]:
    """(peak GB, exit code) as printed."""
    command = [sys.executable, SCRIPT, "--cap-gb", cap_gb, "--", sys.executable, "-c", code, *arguments]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    peak, _, said = done.stdout.splitlines()[-1].split("\t")
    assert int(said) == done.returncode and ("killed: past" in done.stderr) == (done.returncode == 137)
    return float(peak), done.returncode


@pytest.mark.parametrize("code", [HOLD, CHILD], ids=["itself", "a child"])
def test_memory_is_counted_over_the_whole_tree(code):
    peak, exit_code = watch(2, code, 200, 0.6)
    assert exit_code == 0 and 0.2 <= peak < 0.3


def test_past_the_cap_all_of_them_are_killed():
    peak, exit_code = watch(0.15, CHILD, 250, 61.25)
    assert exit_code == 137 and peak >= 0.15  # printed with two digits
    assert not [p for p in psutil.process_iter(["cmdline"]) if "61.25" in (p.info["cmdline"] or [])]


def test_an_exit_code_is_handed_on():
    assert watch(2, "raise SystemExit(3)")[1] == 3
