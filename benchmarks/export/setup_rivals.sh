#!/bin/sh
# Makes Megatron's own environment in .rivals beside this file; nothing of it goes into the project's.
# Usage: benchmarks/export/setup_rivals.sh [PYTHON]
set -eu
cd "$(dirname "$0")"
python=${1:-../../.venv/bin/python}
test -x .rivals/bin/python || "$python" -m venv .rivals
.rivals/bin/python -m pip install --quiet --disable-pip-version-check -c ../../constraints.txt torch megatron-core
.rivals/bin/python -m pip list --disable-pip-version-check 2>/dev/null | grep -E '^(megatron-core|torch|numpy) '
