# genm: `make demo` shows it at work, `make test` checks it. Both set up .venv themselves.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check
JOBS   ?= 2
ifndef SEED
SEED   := $(shell date +%s)
endif

# Dozens of processes are started, and each would compile the modules it loads for itself. Bytecode stays beside its
# source, in folders that git ignores and `make clean` removes.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test checks lint types contract kernels unit disguises disguised bench clean

help:  ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(VENV)/.made:
	@echo ">> making the environment in $(VENV)"
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "genm needs Python 3.11 or newer; found " + sys.version.split()[0] + ". Set PYTHON=/path/to/python3.11.")'
	@$(PYTHON) -m venv $(VENV) || { echo "python's venv module is missing; on Debian: apt-get install python3-venv"; exit 1; }
	@$(PIP) install -q --upgrade pip -c constraints.txt
	@touch $@

# --no-compile: Python compiles a module to bytecode when it is first imported, and most modules never are.
$(VENV)/.ready: pyproject.toml constraints.txt | $(VENV)/.made
	@echo ">> installing genm and what it needs (versions: constraints.txt)"
	@$(PIP) install -q --no-compile -c constraints.txt -e '.[rankers,plots]'
	@touch $@

# Where PYTHONDONTWRITEBYTECODE is set, every command would compile the same modules again; here they are compiled once.
$(VENV)/.bytecode: $(VENV)/.ready $(shell find src tools/bytecode.py -name '*.py')
	@if [ -n "$$PYTHONDONTWRITEBYTECODE" ]; then \
	  echo ">> compiling what genm imports: PYTHONDONTWRITEBYTECODE is set"; \
	  env -u PYTHONDONTWRITEBYTECODE $(BIN)/python tools/bytecode.py rankers plots; fi
	@touch $@

$(VENV)/.tested: pyproject.toml constraints.txt $(VENV)/.ready
	@echo ">> installing the test tools"
	@$(PIP) install -q --no-compile -c constraints.txt -e '.[rankers,pandas,plots,pyterrier,sklearn]' --group dev
	@touch $@

demo: $(VENV)/.bytecode  ## set up, then run the main job on an embedded example
	@echo ">> running the demo"
	@$(BIN)/python examples/demo.py

test: $(VENV)/.tested $(VENV)/.bytecode  ## set up, then lint, types, import contract and every test
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
	@echo ">> pytest, tests in random order: make unit SEED=$(SEED) runs them in this order again"
	@$(BIN)/python -m pytest -q -n $(JOBS) --dist worksteal --randomly-seed=$(SEED)

disguises: $(VENV)/.tested  ## run the tests in environments that must make no difference (ONLY=name,name)
	@$(BIN)/python tools/disguises.py --jobs $(JOBS) $(if $(ONLY),--only $(ONLY))

disguised: $(VENV)/.tested  ## run the tests that hold numbers with kernels for an older processor
	@echo ">> the tests that hold numbers, kernels compiled for an older processor"
	@$(BIN)/python tools/disguises.py --jobs 1 --only generic -- -m numbers --randomly-seed=$(SEED)

bench: $(VENV)/.tested  ## run the benchmarks beside their peers
	@$(PIP) install -q -c constraints.txt --group bench
	@$(BIN)/python -m benchmarks

clean:  ## remove the environment and everything built
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis .disguises demo-out
	find . -name __pycache__ -prune -exec rm -rf {} +
