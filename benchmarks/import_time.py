"""How long `import shapelab` takes in a fresh interpreter. torch must not come with it: it loads when a model does."""

import json
import platform
import statistics
import subprocess
import sys

from shapelab.computer import cpu_name, cpus_usable

INTERPRETERS, GOAL_S = 7, 0.2
CHILD = """
import json, sys, time
start = time.perf_counter()
import shapelab
seconds = time.perf_counter() - start
print(json.dumps({"seconds": seconds, "torch": "torch" in sys.modules, "modules": len(sys.modules)}))
"""


def in_a_fresh_interpreter() -> dict:
    done = subprocess.run([sys.executable, "-c", CHILD], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def main():
    in_a_fresh_interpreter()  # the first one compiles, and reads files that no later one has to wait for
    runs = [in_a_fresh_interpreter() for _ in range(INTERPRETERS)]
    times = [run["seconds"] for run in runs]
    with_torch = any(run["torch"] for run in runs)
    print(f"machine: {cpu_name()}, {cpus_usable():g} CPUs, Python {platform.python_version()}; no model, no dtype")
    print(f"{INTERPRETERS} fresh interpreters: {min(times) * 1e3:.2f} to {max(times) * 1e3:.2f} ms")
    print(f"torch imported: {'yes' if with_torch else 'no'}")
    if with_torch:
        raise RuntimeError("`import shapelab` imported torch; it must load when a model is loaded.")
    print(f"import_time: {statistics.median(times):.4f} s (goal <= {GOAL_S} s)")


if __name__ == "__main__":
    main()
