#!/bin/sh
# Makes the real tools' own environments beside this file; nothing of them goes into the project's.
# Usage: benchmarks/clean/setup_rivals.sh [PYTHON]
set -eu
cd "$(dirname "$0")"
python=${1:-../../.venv/bin/python}
test -x .rivals/bin/python || "$python" -m venv .rivals
.rivals/bin/python -m pip install --quiet --disable-pip-version-check \
	'datatrove[processing]==0.10.*' spacy zstandard
# dolma pins libraries that the taggers of Gopher and C4 don't need.
test -x .rivals-dolma/bin/python || "$python" -m venv .rivals-dolma
.rivals-dolma/bin/python -m pip install --quiet --disable-pip-version-check --no-deps 'dolma==1.2.*'
.rivals-dolma/bin/python -m pip install --quiet --disable-pip-version-check \
	uniseg nltk omegaconf smart_open necessary zstandard regex tokenizers msgspec 'numpy<2' \
	requests tqdm rich fsspec anyascii charset-normalizer platformdirs
.rivals/bin/python -m pip list --disable-pip-version-check 2>/dev/null | grep -E '^(datatrove|spacy|numpy) '
.rivals-dolma/bin/python -m pip list --disable-pip-version-check 2>/dev/null | grep -E '^(dolma|numpy) '
