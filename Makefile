# Every target sets up what it needs in .venv; only Python 3.11 or newer and make are required.
# `make PYTHON=/path/to/python3.12 test` uses another Python, `make test TESTS=tests/unit ARGS=-x` runs some of the tests.

.DEFAULT_GOAL := help
.PHONY: help demo test test-all check coverage torture lint format bench docs-check lock clean setup

export PYTHON

VENV := .venv
BIN := $(VENV)/bin
# The name contains the folder and the chosen Python: a checkout that was moved, or uses another Python, is set up again.
HERE := $(shell printf '%s' "$(CURDIR) $(PYTHON)" | cksum | cut -d ' ' -f 1)
READY := $(VENV)/.ready-$(HERE)
BENCH_READY := $(VENV)/.ready-bench-$(HERE)
TESTS ?= tests
# One more than cores: tests wait for processes, servers and clocks for a quarter of their time.
WORKERS ?= 3
WITHOUT_SPARK := not spark and not connect and not cluster and not slow and not nightly
# If tests are selected explicitly, nightly ones are included.
DAILY := $(if $(filter-out tests,$(TESTS)),,-m "not nightly")
ARGS ?=

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' Makefile

demo: $(READY) ## run the demo
	@$(BIN)/emberflow demo

test: $(READY) ## run the tests (Spark included, without nightly ones)
	@$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal $(DAILY) $(TESTS) $(ARGS)

test-all: $(READY) ## run all tests, nightly ones included
	@$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal $(TESTS) $(ARGS)

check: lint ## lint, and run the quick tests that need no Spark
	@$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -q -m "$(WITHOUT_SPARK)" $(TESTS) $(ARGS)

# Installing the tracer may fail in a thread that starts at the same time as another; that is unrelated to the code.
coverage: $(READY) ## coverage of src by the tests without Spark
	@$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -q -m "$(WITHOUT_SPARK)" --cov --cov-report=term -W ignore::pytest.PytestUnraisableExceptionWarning $(TESTS) $(ARGS)

torture: $(READY) ## inject faults into jobs and compare with undisturbed runs (N=200 SEED=1)
	@$(BIN)/python -m tests.recovery.torture --runs $(or $(N),20) --seed $(or $(SEED),1) $(ARGS)

lint: $(READY) ## check style, format and types
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/basedpyright --pythonpath $(BIN)/python --warnings

format: $(READY) ## fix style and format
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

bench: $(BENCH_READY) ## run the benchmarks, also of the systems compared
	@$(BIN)/python -m benchmarks $(ARGS)

docs-check: $(READY) ## run every snippet of the documentation
	@$(BIN)/python -m pytest tests/docs $(ARGS)

setup: $(READY) ## create .venv only

lock: ## pin the newest versions in requirements/ (needs uv)
	@command -v uv >/dev/null || { echo "make lock needs uv: pip install uv" >&2; exit 1; }
	@scripts/lock.sh

clean: ## remove .venv, caches and builds
	rm -rf $(VENV) dist build .pytest_cache .ruff_cache .hypothesis .coverage .coverage.* htmlcov spark-warehouse metastore_db artifacts derby.log
	find src tests examples benchmarks docs -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

$(READY): pyproject.toml requirements/dev.txt requirements/java.txt requirements/models.txt scripts/setup-venv.sh
	@scripts/setup-venv.sh dev
	@touch $@

$(BENCH_READY): $(READY) requirements/bench.txt
	@scripts/setup-venv.sh bench
	@touch $@
