#!/usr/bin/env bash
# Checks shapelab on a CUDA machine: the GPU tests, then one measured run, whose record lands in OUTDIR.
# Usage: scripts/gpu_check.sh OUTDIR      PYTHON=... chooses the interpreter (default: python)
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

"$python" -m pytest -q -m gpu tests
"$python" -m shapelab.cli run --model tinyllama:random --device cuda --repeats 6 --out "$out" --json >"$out/gpu.json"
record=$("$python" -c 'import json, sys; print(json.load(open(sys.argv[1]))["run_file"])' "$out/gpu.json")
echo "Record: $record"
echo "Summary: $out/gpu.json"
