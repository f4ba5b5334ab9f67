# Every target sets up .venv by itself when it is missing or out of date.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

.PHONY: help setup paper test check bench bench-long docs lock clean

help:  ## List the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 12

setup: $(READY)  ## Set up .venv with pinned, hash-checked dependencies and compile the kernels

# The hashed lock refuses `-e .`, so the package itself goes in second, without dependencies.
$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "actmeasure needs Python 3.11 or newer; run: make $(MAKECMDGOALS) PYTHON=/path/to/python3.11"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@echo "Installing the pinned dependencies into .venv (a minute or two the first time) ..."
	@$(BIN)/python -m pip install -q -q --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install -q -q --no-deps --no-build-isolation -e .
	@echo "Compiling the kernels ..."
	@$(BIN)/python -m actmeasure.warm
	@touch $@

paper: $(READY)  ## Run the paper's experiments and write results/paper/report.html: 20 minutes on two cores
	@$(BIN)/actmeasure paper --out results/paper

test: $(READY)  ## Run all tests (those of Ray, Stable-Baselines3, Storm and the browser where these are installed)
	@$(BIN)/python -m pytest -n auto

check: $(READY)  ## Lint, format, types, direction of imports
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache

bench: $(READY)  ## Measure the speed and size goals
	@$(BIN)/python -m benchmarks

bench-long: $(READY)  ## Measure how far planning scales: up to half an hour
	@ACTMEASURE_BENCH_SECONDS=600 $(BIN)/python -m benchmarks.planning_scale

docs: $(READY)  ## Build the documentation site into site/
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "Open site/index.html"

lock:  ## Refresh requirements.lock
	@$(PYTHON) -m venv .venv/lock
	@.venv/lock/bin/python -m pip install -q -q pip-tools
	@.venv/lock/bin/pip-compile --quiet --upgrade --extra dev --generate-hashes --strip-extras --no-header --no-annotate \
	  --no-emit-index-url --no-emit-find-links --no-emit-trusted-host --output-file requirements.lock pyproject.toml
	@sed -i -E '/^(#|actmeasure @)/d' requirements.lock  # remarks of pip-compile, and this package itself
	@sed -i '1i # Pinned and hash-checked dependencies for development; refresh with `make lock`.' requirements.lock

clean:  ## Remove .venv, caches, built files and results
	@rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache site build dist results
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
