"""How long a person waits for the first table: `shapelab run` as it comes, with the model already in the cache."""

import json
import subprocess
import sys
import tempfile
import time

GOAL_S = 75
FETCH = "import shapelab; shapelab.load()"


def main():
    subprocess.run([sys.executable, "-c", FETCH], check=True, stdout=subprocess.DEVNULL)
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "shapelab.cli", "run", "--json", "--out", folder]
        start = time.perf_counter()
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        seconds = time.perf_counter() - start
    result = json.loads(done.stdout)
    where = result["environment"]
    print(f"machine: {where['device']}, torch {where['torch']} with {where['threads']} threads")
    print(f"model: {where['model']} ({where['weights']} weights), {where['dtype']}, {where['device_kind']}")
    for name, shape in result["shapes"].items():
        print(
            f"{name}: {shape['input_tokens']}x{shape['output_tokens']}, {shape['repeats']} repeats, medians: "
            f"TTFT {shape['ttft_s']:.3f} s, TPOT {shape['tpot_s'] * 1e3:.1f} ms, total {shape['total_s']:.2f} s"
        )
    runs = sum(shape["total_s"] * shape["repeats"] for shape in result["shapes"].values())
    print(f"measured runs: about {runs:.1f} s; the rest is starting Python, loading, warming up, the picture")
    print(f"first_table: {seconds:.1f} s (goal <= {GOAL_S} s on 2 cores)")


if __name__ == "__main__":
    main()
