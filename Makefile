# Every target sets up .venv by itself when it is missing or out of date.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
TOOLS := .venv/.tools
EXTRAS := .venv/.extras
# Images of containers often set this: every process would then compile all Python code it imports, two seconds each.
unexport PYTHONDONTWRITEBYTECODE
# What is locked is complete, and Python compiles what is imported: to do either here takes half a minute more.
INSTALL := $(BIN)/python -m pip install -q -q --disable-pip-version-check --no-deps --no-compile

.PHONY: help setup paper test test-all check bench bench-long docs extras lock clean

help:  ## List the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 12

setup: $(READY)  ## Set up .venv with what running and testing need, pinned and hash-checked, and compile the kernels

# The hashed lock refuses `-e .`, so the package itself goes in second, without dependencies.
$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "actmeasure needs Python 3.11 or newer; run: make $(MAKECMDGOALS) PYTHON=/path/to/python3.11"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@echo "Installing the pinned dependencies into .venv (about half a minute) ..."
	@$(INSTALL) --require-hashes -r requirements.lock
	@$(INSTALL) --no-build-isolation -e .
	@echo "Compiling the kernels ..."
	@$(BIN)/python -m actmeasure.warm
	@touch $@

paper: $(READY)  ## Run the paper's experiments and write results/paper/report.html: 20 minutes on two cores
	@$(BIN)/actmeasure paper --out results/paper

# Linters and types, and the documentation.
$(TOOLS): $(READY) requirements-tools.lock
	@echo "Installing the pinned tools into .venv ..."
	@$(INSTALL) --require-hashes -r requirements-tools.lock
	@touch $@

# torch comes last, neither hashed nor without dependencies: which build an index has, and which CUDA libraries this build needs,
# differs from machine to machine. Everything else that it needs is pinned and there already.
$(EXTRAS): $(TOOLS) requirements-extras.lock requirements-sb3.lock
	@echo "Installing Ray, Playwright, Stable-Baselines3 and PyTorch into .venv (with CUDA some 5 GB) ..."
	@$(INSTALL) --require-hashes -r requirements-extras.lock
	@$(INSTALL) --require-hashes -r requirements-sb3.lock
	@$(filter-out --no-deps,$(INSTALL)) torch==2.13.0
	@for package in ray playwright tensorboard torch stable_baselines3 sb3_contrib; do $(BIN)/python -c "import $$package" || \
	  { echo "$$package was installed but cannot be imported, for the reason above; run: rm -r .venv && make extras"; exit 1; }; done
	@touch $@

test: $(READY)  ## Run the tests that need minutes and nothing else installed
	@$(BIN)/python -m pytest -n auto --dist worksteal -m "not slow and not extras"

test-all: $(READY)  ## Run all tests, slow ones and those of extras where installed, with all examples of property tests
	@$(BIN)/python -m pytest -n auto --dist worksteal --hypothesis-profile=all

extras: $(EXTRAS)  ## Install what tests of Ray, Stable-Baselines3 and pages need (for these also: chromium, from your system)

check: $(TOOLS)  ## Lint, format, types, direction of imports
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache

bench: $(READY)  ## Measure the speed and size goals
	@$(BIN)/python -m benchmarks

bench-long: $(READY)  ## Measure how far planning scales: up to half an hour
	@ACTMEASURE_BENCH_SECONDS=600 $(BIN)/python -m benchmarks.planning_scale

# The pages of the worked cases, of some 45 seconds each, again whenever what they show or how they look has changed.
CASES := $(patsubst %,docs/cases/%.html,sewer deck crack pumps screening)
docs/cases/%.html: examples/cases.py $(wildcard src/actmeasure/inspection/templates/*) | $(READY)
	@$(BIN)/python examples/cases.py $* --out docs/cases > /dev/null

docs: $(TOOLS) $(CASES)  ## Build the documentation site into site/, with pages of worked cases: four minutes at first
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "Open site/index.html"

lock:  ## Refresh the lock files (requirements-sb3.lock is kept by hand)
	@$(PYTHON) -m venv .venv/lock
	@.venv/lock/bin/python -m pip install -q -q pip-tools
	@.venv/lock/bin/python .ci/lock.py

clean:  ## Remove .venv, caches, built files and results
	@rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache site build dist results
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
