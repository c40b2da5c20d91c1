# Everything runs in .venv, made on first use and remade when the pins change.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

# Modules are compiled once, not in each of the processes that the tests start.
unexport PYTHONDONTWRITEBYTECODE

# One test worker a core by default; `make test WORKERS=0` runs them in one process.
WORKERS ?= auto
PYTEST  := $(BIN)/python -m pytest -n $(WORKERS)

.DEFAULT_GOAL := help
.PHONY: help install demo docs test test-replication test-slow test-browser test-ray test-gpu test-data test-versions test-all lint format types fuzz faults soak audit mutate bench bench-0-1 bench-speed clean

help:  ## show this list
	@grep -E '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9-]+):.*## /\1|/' \
	  | while IFS='|' read -r name what; do printf '  make %-17s %s\n' "$$name" "$$what"; done

$(STAMP): pyproject.toml replication/pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[dev]' -e replication
	touch $@

install: $(STAMP)  ## make .venv and install the library and the replication with all extras

demo: $(STAMP)  ## impute a simulated trial with known truth; writes demo/
	$(BIN)/psmvae demo -o demo

docs: $(STAMP)  ## build the documentation site; writes docs/_build/html
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html

test: $(STAMP)  ## the tests of the library, except those below
	$(PYTEST)

test-replication: $(STAMP)  ## the tests of the paper's experiments
	cd replication && ../$(PYTEST)

test-slow: $(STAMP)  ## the tests that take long
	$(PYTEST) -m "slow and not gpu and not data and not browser and not ray"
	cd replication && ../$(PYTEST) -m "slow and not gpu and not data"

test-browser: $(STAMP)  ## the tests of the report's page; need Chromium (Debian: apt-get install chromium)
	@command -v chromium google-chrome >/dev/null || { echo "Chromium is not installed. Debian: apt-get install chromium"; exit 1; }
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[browser]'
	$(BIN)/python -m pytest -m browser tests/browser

test-ray: $(STAMP)  ## the tests of psmvae.ray, with a local Ray of several worker processes
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[ray]'
	$(BIN)/python -m pytest -m ray tests/cluster

test-gpu: $(STAMP)  ## the tests that need a CUDA device
	$(BIN)/python -m pytest -m gpu
	cd replication && ../$(BIN)/python -m pytest -m gpu

test-data: $(STAMP)  ## the tests that need the paper's data (PSMVAE_DATA_HOME)
	cd replication && ../$(PYTEST) -m "data and not gpu"

test-all: $(STAMP)  ## every test
	$(PYTEST) -m ""
	cd replication && ../$(PYTEST) -m ""

lint: $(STAMP)  ## ruff: style and banned constructs
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(STAMP)  ## apply ruff's fixes and formatting
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: $(STAMP)  ## mypy --strict on both packages
	$(BIN)/mypy
	cd replication && ../$(BIN)/mypy

fuzz: $(STAMP)  ## impute N odd tables (default 1,000) with every imputer; SEED=... N=1 repeats one case
	PYTHONPATH=tests $(BIN)/python -m fuzz --n $(or $(N),1000) --seed $(or $(SEED),0)

faults: $(STAMP)  ## run the command line N times (default 200) under signals, full disks, jumping clocks, two writers
	$(BIN)/python benchmarks/faults.py --n $(or $(N),200) --seed $(or $(SEED),0)

soak: $(STAMP)  ## memory, files and threads of N fits (default 200) in one process; DEVICE=cuda for a GPU
	$(BIN)/python benchmarks/soak.py --n $(or $(N),200) --device $(or $(DEVICE),cpu)

audit:  ## advisories about the pinned versions, by pip-audit in an environment of its own
	test -x .audit/bin/python || $(PYTHON) -m venv .audit
	.audit/bin/python -m pip install --quiet 'pip-audit>=2.7'
	.audit/bin/python benchmarks/audit.py

test-versions: $(STAMP)  ## the fast tests with the oldest and newest dependencies on each Python found; writes docs/versions.md
	$(BIN)/python benchmarks/versions.py run
	$(BIN)/python benchmarks/versions.py page

mutate: $(STAMP)  ## load N mutated model files (default 20,000) under limits of memory and time
	$(BIN)/python benchmarks/mutate.py --n $(or $(N),20000) --seed $(or $(SEED),0)

bench: $(STAMP)  ## the figures of the docs, to benchmarks/results/; the last two need PSMVAE_DATA_HOME
	$(BIN)/python benchmarks/breast.py
	$(BIN)/python benchmarks/memory.py
	$(BIN)/python benchmarks/open_once.py
	$(BIN)/python benchmarks/trial.py
	$(BIN)/python benchmarks/models.py
	$(BIN)/python benchmarks/coverage.py run
	$(BIN)/python benchmarks/coverage.py page
	$(BIN)/python benchmarks/self_masking.py run
	$(BIN)/python benchmarks/self_masking.py page
	$(BIN)/python benchmarks/draws_time.py
	$(BIN)/python benchmarks/cpu.py
	$(BIN)/python benchmarks/pace.py

bench-0-1: $(STAMP)  ## time and error against version 0.1; needs PSMVAE_DATA_HOME and the history of git
	mkdir -p build/0.1 && git archive b3e2cd2 src | tar x -C build/0.1
	$(BIN)/python benchmarks/since_0_1.py --old build/0.1/src

bench-speed: $(STAMP)  ## the command line, growing tables, and a CUDA device
	$(BIN)/python benchmarks/command.py
	$(BIN)/python benchmarks/scaling.py
	$(BIN)/python benchmarks/workers.py run
	$(BIN)/python benchmarks/workers.py page
	$(BIN)/python benchmarks/gpu.py

clean:  ## remove .venv and all generated files
	rm -rf $(VENV) .audit demo build dist docs/_build docs/generated docs/auto_examples .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
