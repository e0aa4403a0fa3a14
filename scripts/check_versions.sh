#!/usr/bin/env bash
# Runs the quick tests with other versions of the packages that move most: the oldest that pyproject.toml allows, those of
# Colab, those of constraints.txt, and the newest there are. Each set gets an environment of its own, cloned by hard links;
# PyTorch stays as it is. One table at the end; the exit status is 1 when any set failed.
# Usage: scripts/check_versions.sh      PYTHON=... names an interpreter with the test tools (default: python)
set -euo pipefail

stop() {
    echo "check_versions: $1" >&2
    exit 1
}

python=${PYTHON:-python}
case $python in
/*) ;;
*/*) python=$PWD/$python ;; # a relative path, and the folder is about to change
esac
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
"$python" -c 'import pip, pytest, torch' 2>/dev/null || stop "$python lacks pip, pytest or torch. Set PYTHON to an interpreter with the test tools."

work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
torch=$("$python" -c 'from importlib.metadata import version; print("torch==" + version("torch"))')
clone='import sys, pathlib; from tests.environments import clone_environment; print(clone_environment(pathlib.Path(sys.argv[1])))'
versions='from importlib.metadata import version; print(*map(version, ("transformers", "ipywidgets", "numpy")))'
row='%-8s %-13s %-11s %-8s %7s %7s %8s %8s\n'
# shellcheck disable=SC2059
table=$(printf "$row" set transformers ipywidgets numpy passed failed skipped seconds)
status=0

# NAME, then what pip is to install beside the course
check() {
    local name=$1 log=$work/$1.log here installed result=0 start
    shift
    echo "== $name: $*" >&2
    here=$("$python" -c "$clone" "$work/$name")
    if ! "$here" -m pip install --quiet --editable ".[course,test]" "$torch" "$@" >"$log" 2>&1; then
        cat "$log" >&2
        table+=$'\n'"$name: pip could not install $*"
        status=1
        return
    fi
    installed=$("$here" -c "$versions")
    start=$SECONDS
    "$here" -m pytest -q -p no:cacheprovider -m "not slow" tests >"$log" 2>&1 || result=$?
    # shellcheck disable=SC2059,SC2086
    table+=$'\n'$(printf "$row" "$name" $installed "$(counted passed)" "$(counted 'failed|errors?')" "$(counted skipped)" $((SECONDS - start)))
    if [ "$result" -ne 0 ]; then
        cat "$log" >&2
        status=1
    fi
    rm -rf -- "${work:?}/$name"
}

# How many tests the last line of the log says passed, failed (or could not start), or were skipped
counted() {
    tail -n 1 "$log" | grep -oE "[0-9]+ ($1)\b" | awk '{ sum += $1 } END { print sum + 0 }'
}

check oldest transformers==4.57.6 ipywidgets==7.7.1
check colab transformers==5.15.0 ipywidgets==7.7.1
check tested --constraint constraints.txt
check newest --upgrade --upgrade-strategy eager
echo "$table"
exit "$status"
