# genm: `make demo` shows it at work, `make test` checks it. Both set up .venv themselves.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check
JOBS   ?= 2

.DEFAULT_GOAL := help
.PHONY: help demo test lint types contract unit bench clean

help:  ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(VENV)/.made:
	@echo ">> making the environment in $(VENV)"
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "genm needs Python 3.11 or newer; found " + sys.version.split()[0] + ". Set PYTHON=/path/to/python3.11.")'
	@$(PYTHON) -m venv $(VENV) || { echo "python's venv module is missing; on Debian: apt-get install python3-venv"; exit 1; }
	@$(PIP) install -q --upgrade pip -c constraints.txt
	@touch $@

$(VENV)/.ready: pyproject.toml constraints.txt | $(VENV)/.made
	@echo ">> installing genm and what it needs (versions: constraints.txt)"
	@$(PIP) install -q -c constraints.txt -e '.[rankers,plots]'
	@touch $@

$(VENV)/.tested: pyproject.toml constraints.txt $(VENV)/.ready
	@echo ">> installing the test tools"
	@$(PIP) install -q -c constraints.txt -e '.[rankers,pandas,plots,pyterrier,sklearn]' --group dev
	@touch $@

demo: $(VENV)/.ready  ## set up, then run the main job on an embedded example
	@echo ">> running the demo"
	@$(BIN)/python examples/demo.py

test: $(VENV)/.tested lint types contract unit  ## set up, then lint, types, import contract and every test

lint: $(VENV)/.tested
	@echo ">> ruff"
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: $(VENV)/.tested
	@echo ">> mypy"
	@$(BIN)/mypy

contract: $(VENV)/.tested
	@echo ">> import contract"
	@$(BIN)/lint-imports

unit: $(VENV)/.tested
	@echo ">> pytest"
	@$(BIN)/python -m pytest -q -n $(JOBS)

bench: $(VENV)/.tested  ## run the benchmarks beside their peers
	@$(PIP) install -q -c constraints.txt --group bench
	@$(BIN)/python -m benchmarks

clean:  ## remove the environment and everything built
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis demo-out
	find . -name __pycache__ -prune -exec rm -rf {} +
