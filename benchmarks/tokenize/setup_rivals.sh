#!/bin/sh
# Makes the rivals' own environment in .rivals beside this file; nothing of it goes into the project's.
# Usage: benchmarks/tokenize/setup_rivals.sh [PYTHON]; with `tokenizers` of the version that PYTHON has.
set -eu
cd "$(dirname "$0")"
python=${1:-../../.venv/bin/python}
version=$("$python" -c 'import tokenizers; print(tokenizers.__version__)')
test -x .rivals/bin/python || "$python" -m venv .rivals
.rivals/bin/python -m pip install --quiet --disable-pip-version-check \
	'datatrove[io,processing]' "tokenizers==$version" orjson tiktoken pyarrow numpy
.rivals/bin/python -m pip list --disable-pip-version-check 2>/dev/null \
	| grep -E '^(datatrove|tiktoken|tokenizers|pyarrow) '
