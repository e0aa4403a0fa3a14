"""Run a command under a memory cap: `python scripts/watch_memory.py --cap-gb 2 -- COMMAND...`.

Every 100 ms the proportional set sizes (PSS: a page that several processes share counts once) of the command and all its
children are added up; past the cap all of them are killed. A limit on address space would not do: torch reserves far more
than it uses. The last line is `peak GB, seconds, exit code`, with tabs between. Linux only, where the kernel knows the PSS.
"""

import argparse
import contextlib
import subprocess
import sys
import time

import psutil

KILLED = 137  # what a shell reports for a process that was killed


def tree_bytes(process: psutil.Process) -> int:
    """PSS of a process and all below it; one that ends while it is looked at counts nothing."""
    total = 0
    with contextlib.suppress(psutil.NoSuchProcess):
        for one in (process, *process.children(recursive=True)):
            with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                total += one.memory_full_info().pss
    return total


def kill_tree(process: psutil.Process):
    with contextlib.suppress(psutil.NoSuchProcess):
        for one in (*process.children(recursive=True), process):
            with contextlib.suppress(psutil.NoSuchProcess):
                one.kill()


def watch(command: list[str], cap_bytes: float, interval_s: float = 0.1) -> tuple[int, float, int]:
    """(peak bytes, seconds, exit code) of a command; KILLED as its code when it went past the cap."""
    start, peak = time.monotonic(), 0
    with subprocess.Popen(command) as child:
        process = psutil.Process(child.pid)
        while child.poll() is None:
            peak = max(peak, tree_bytes(process))
            if peak > cap_bytes:
                kill_tree(process)
                child.wait()
                return peak, time.monotonic() - start, KILLED
            time.sleep(interval_s)
    return peak, time.monotonic() - start, child.returncode


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cap-gb", type=float, default=2.0, help="10^9 bytes that the whole tree may take")
    parser.add_argument("command", nargs="+")
    given = parser.parse_args()
    peak, seconds, code = watch(given.command, given.cap_gb * 1e9)
    if code == KILLED:
        print(f"killed: past {given.cap_gb:g} GB", file=sys.stderr)
    print(f"{peak / 1e9:.2f}\t{seconds:.0f}\t{code}")
    sys.exit(code)


if __name__ == "__main__":
    main()
