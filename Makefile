# Everything runs in .venv, made on first use and remade when the pins change.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

# One test worker a core by default; `make test WORKERS=0` runs them in one process.
WORKERS ?= auto
PYTEST  := $(BIN)/python -m pytest -n $(WORKERS)

.DEFAULT_GOAL := help
.PHONY: help install demo test test-slow test-gpu test-data test-all lint format types bench bench-speed clean

help:  ## show this list
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1|/' \
	  | while IFS='|' read -r name what; do printf '  make %-12s %s\n' "$$name" "$$what"; done

$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[dev]'
	touch $@

install: $(STAMP)  ## make .venv and install the package with all it can use

demo: $(STAMP)  ## impute a simulated trial with known truth; files in demo/
	$(BIN)/psmvae demo -o demo

test: $(STAMP)  ## the tests, less those below
	$(PYTEST)

test-slow: $(STAMP)  ## the tests that take long
	$(PYTEST) -m "slow and not gpu and not data"

test-gpu: $(STAMP)  ## the tests that need a CUDA device
	$(BIN)/python -m pytest -m gpu

test-data: $(STAMP)  ## the tests that need data that does not ship
	$(PYTEST) -m "data and not gpu"

test-all: $(STAMP)  ## every test
	$(PYTEST) -m ""

lint: $(STAMP)  ## ruff: style, and what is banned
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(STAMP)  ## let ruff repair what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: $(STAMP)  ## mypy, strict, on src
	$(BIN)/mypy

bench: $(STAMP)  ## the numbers of the docs, to benchmarks/results/; the last two need PSMVAE_DATA_HOME
	$(BIN)/python benchmarks/breast.py
	$(BIN)/python benchmarks/memory.py
	$(BIN)/python benchmarks/trial.py
	$(BIN)/python benchmarks/models.py
	$(BIN)/python benchmarks/proper.py --page
	$(BIN)/python benchmarks/cpu.py
	$(BIN)/python benchmarks/race.py
	$(BIN)/python benchmarks/pace.py

bench-speed: $(STAMP)  ## the command line, growing tables, and a CUDA device
	$(BIN)/python benchmarks/command.py
	$(BIN)/python benchmarks/scaling.py
	$(BIN)/python benchmarks/gpu.py

clean:  ## remove .venv and everything that was made
	rm -rf $(VENV) demo build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
