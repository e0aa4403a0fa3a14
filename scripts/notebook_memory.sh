#!/usr/bin/env bash
# Memory and time of every notebook under nbval, under a cap of 2 GB on all its processes together: a table, and a failure
# where one goes past the cap. Usage: scripts/notebook_memory.sh [NOTEBOOK...]    PYTHON=... chooses the interpreter
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
python=${PYTHON:-python}
[ $# -gt 0 ] || set -- notebooks/*.ipynb
log=$(mktemp)
trap 'rm -f "$log"' EXIT
export SHAPELAB_PREDICTIONS="$log.predictions"
failed=0
printf '%-28s %8s %8s\n' notebook 'peak GB' seconds
for notebook in "$@"; do
    if "$python" scripts/watch_memory.py --cap-gb 2 -- \
        "$python" -m pytest -q -p no:cacheprovider --nbval-lax --nbval-cell-timeout=900 "$notebook" >"$log" 2>&1; then
        note=''
    else
        note='FAILED'
        failed=1
        cat "$log" >&2
    fi
    IFS=$'\t' read -r peak seconds _ < <(tail -n 1 "$log")
    printf '%-28s %8s %8s %s\n' "$(basename "$notebook" .ipynb)" "$peak" "$seconds" "$note"
done
exit "$failed"
