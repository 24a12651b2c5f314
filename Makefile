# Development in a few words. Everything happens in .venv, made on first use and kept.

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/ready
OUT ?= demo-out
# The first interpreter that is new enough; `make PYTHON=python3.13 ...` chooses another.
PYTHON ?= $(shell for python in python3 python3.11 python3.12 python3.13 python3.14; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$python; break; }; done)

.PHONY: help demo test test-all lint types format check bench-order bench-build bench-load bench-repository bench-tokenize clean

help:
	@echo "make demo      environment (first time 1-3 minutes), then the main job on real input (about 1 minute)"
	@echo "make test      environment, then all default tests (about 8 minutes)"
	@echo "make test-all  the slow tests too"
	@echo "make check     lint, types, import rules, tests: what has to hold before a change lands"
	@echo "make format    sort imports and format"
	@echo "make bench-order, bench-build, bench-load, bench-tokenize, bench-repository   measurements; results go to benchmarks/results"
	@echo "make clean     remove the environment and caches"

demo: $(READY)
	@echo "== running 'datapipe demo --out $(OUT)': raw files to a training loop, about 1 minute"
	@test "$(OUT)" != demo-out || rm -rf demo-out
	@time -p $(BIN)/datapipe demo --out "$(OUT)"

test: $(READY)
	@echo "== running the tests, about 8 minutes; 'make test-all' adds the slow ones"
	$(BIN)/python -m pytest -m "not slow" -q -n auto --durations=5

test-all: $(READY)
	$(BIN)/python -m pytest -q

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: $(READY)
	$(BIN)/mypy
	$(BIN)/mypy tests

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

check: lint types test

# What they see of their throw-away datasets is nothing for the user's own memory of datasets.
bench-order bench-build bench-load bench-tokenize bench-repository: export XDG_STATE_HOME := $(abspath $(VENV))/state

bench-order: $(READY)
	$(BIN)/python benchmarks/order/bench.py

bench-build: $(READY)
	$(BIN)/python benchmarks/build/bench.py

bench-load: $(READY)
	$(BIN)/python benchmarks/loader/bench.py

bench-tokenize: $(READY)
	$(BIN)/python -m benchmarks.tokenize.bench

bench-repository: $(READY)
	$(BIN)/python benchmarks/repository/bench.py

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache demo-out

# pip is brought in from outside where the interpreter has no ensurepip (Debian without python3-venv).
$(READY): pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "no Python 3.11 or newer found; install one, or: make PYTHON=/path/to/python3 ..."; exit 1; }
	@echo "== making the environment in $(VENV) with $$($(PYTHON) --version): 1-3 minutes, once"
	@$(PYTHON) -m venv $(VENV) 2>/dev/null \
		|| { $(PYTHON) -m venv --clear --without-pip $(VENV) && $(PYTHON) -m pip --python $(BIN)/python install -qq pip; } \
		|| { rm -rf $(VENV); echo "$(PYTHON) can make no environment; on Debian or Ubuntu: apt install python3-venv"; exit 1; }
	@$(BIN)/python -m pip install -qq --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $(READY)
	@echo "== environment ready; it is used again next time"
