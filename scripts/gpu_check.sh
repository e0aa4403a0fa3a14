#!/usr/bin/env bash
# Checks shapelab on a CUDA machine: the GPU tests, three shapes (with energy and peak memory), the quick sweep, and compiled
# against eager. The records land in OUTDIR; sweep.jsonl is what goes into data/runs/ as a machine of the notebooks' menus.
# Usage: scripts/gpu_check.sh OUTDIR      PYTHON=... chooses the interpreter (default: python)
#        MODEL=... the model to measure (default: tinyllama:random, the architecture without a download)
set -euo pipefail

stop() {
    echo "gpu_check: $1" >&2
    exit 1
}

[ -n "${1:-}" ] || stop "No folder was given for the record. Usage: $0 OUTDIR"
mkdir -p -- "$1" || stop "The folder $1 cannot be made. Choose another OUTDIR."
out=$(CDPATH='' cd -- "$1" && pwd)

python=${PYTHON:-python}
case $python in
/*) ;;
*/*) python=$PWD/$python ;; # a relative path, and the folder is about to change
esac
command -v -- "$python" >/dev/null || stop "There is no interpreter $python. Set PYTHON to one that has shapelab."
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."

"$python" -c 'import shapelab, torch' || stop "$python cannot import shapelab and torch. Set PYTHON to one that can."
"$python" -c 'import sys, torch; sys.exit(not torch.cuda.is_available())' ||
    stop "There is no CUDA GPU that this torch can use, so there is nothing to check here."
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader || stop "nvidia-smi does not answer."

model=${MODEL:-tinyllama:random}
"$python" -m pytest -q -m gpu tests
"$python" -m shapelab.cli run --model "$model" --device cuda --repeats 6 --out "$out" --json >"$out/gpu.json"
"$python" -m shapelab.cli sweep --plan quick --model "$model" --device cuda --out "$out/sweep.jsonl"
"$python" - "$out/gpu.json" <<'END'
import json, sys

for name, shape in json.load(open(sys.argv[1]))["shapes"].items():
    energy = shape["energy_j"] and shape["energy_j"] / (shape["batch_size"] * shape["output_tokens"])
    print(f"{name}: TTFT {shape['ttft_s'] * 1e3:.1f} ms, TPOT {shape['tpot_s'] * 1e3:.2f} ms, "
          f"energy {'not known' if energy is None else f'{energy:.3f} J'} an output token, prefill and all, "
          f"peak memory {shape['peak_memory_bytes'] / 1e9:.2f} GB")
END
"$python" benchmarks/compiled_step.py --model "$model"
record=$("$python" -c 'import json, sys; print(json.load(open(sys.argv[1]))["run_file"])' "$out/gpu.json")
echo "Record: $record"
echo "Summary: $out/gpu.json"
