# genm: `make demo` shows it at work, `make test` checks it. Both set up .venv themselves.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check
JOBS   ?= 2

# Dozens of processes are started, and each would compile the modules it loads for itself. Bytecode stays beside its
# source, in folders that git ignores and `make clean` removes.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test checks lint types contract kernels unit bench clean

help:  ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(VENV)/.made:
	@echo ">> making the environment in $(VENV)"
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "genm needs Python 3.11 or newer; found " + sys.version.split()[0] + ". Set PYTHON=/path/to/python3.11.")'
	@$(PYTHON) -m venv $(VENV) || { echo "python's venv module is missing; on Debian: apt-get install python3-venv"; exit 1; }
	@$(PIP) install -q --upgrade pip -c constraints.txt
	@touch $@

# --no-compile: Python compiles a module when it is first imported, and most modules never are.
$(VENV)/.ready: pyproject.toml constraints.txt | $(VENV)/.made
	@echo ">> installing genm and what it needs (versions: constraints.txt)"
	@$(PIP) install -q --no-compile -c constraints.txt -e '.[rankers,plots]'
	@touch $@

$(VENV)/.tested: pyproject.toml constraints.txt $(VENV)/.ready
	@echo ">> installing the test tools"
	@$(PIP) install -q --no-compile -c constraints.txt -e '.[rankers,pandas,plots,pyterrier,sklearn]' --group dev
	@touch $@

demo: $(VENV)/.ready  ## set up, then run the main job on an embedded example
	@echo ">> running the demo"
	@$(BIN)/python examples/demo.py

test: $(VENV)/.tested  ## set up, then lint, types, import contract and every test
	@$(MAKE) --no-print-directory -j 2 -O checks kernels
	@$(MAKE) --no-print-directory unit

checks: lint types contract

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

# Kernels are compiled while the checks run: otherwise each of pytest's processes would compile them for itself.
kernels: $(VENV)/.tested
	@$(BIN)/python -m genm.cli.ahead exact

unit: $(VENV)/.tested
	@echo ">> pytest"
	@$(BIN)/python -m pytest -q -n $(JOBS) --dist worksteal

bench: $(VENV)/.tested  ## run the benchmarks beside their peers
	@$(PIP) install -q -c constraints.txt --group bench
	@$(BIN)/python -m benchmarks

clean:  ## remove the environment and everything built
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis demo-out
	find . -name __pycache__ -prune -exec rm -rf {} +
