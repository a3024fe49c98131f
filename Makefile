# Bare `make` lists the targets. Targets that need the environment create it first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
ARGS ?=

.PHONY: help setup demo dist test test-integrations fuzz streams-long hostile matrix soak lint format bench bench-smoke docs lock clean

help:
	@echo "setup   create $(VENV) with everything for development (and Java, if none is installed)"
	@echo "demo    run a short tour on an embedded lake"
	@echo "test    run all tests"
	@echo "test-integrations  run what needs environments of its own: the page in Chromium, notebooks, dbt, the docs' site"
	@echo "fuzz    run 10,000 random histories of row-level changes; ARGS=\"--format delta --seed 7\" (see tools/fuzz.py)"
	@echo "streams-long  replay 2,500 histories, 1,000 orders of events, kill streams 100 times, follow 100,000 changes"
	@echo "hostile mutate table files 1,000 times and read them; ARGS=\"--cases 1000 --seed 7\" (see tools/hostile.py)"
	@echo "matrix  run every statement beside everything that can land meanwhile (20 minutes; see tools/matrix.py)"
	@echo "soak    six writer processes and streaming upserts beside maintenance, ten minutes each; SECONDS=600"
	@echo "lint    ruff, mypy and import-linter"
	@echo "format  format and fix with ruff"
	@echo "bench   compare with other engines; ARGS=\"...\" selects cases (see bench/)"
	@echo "bench-smoke  compare counts of files, bytes, jobs and shuffles with bench/expected.json"
	@echo "docs    regenerate the pages of docs/ that come from the code, build the site in build/site"
	@echo "dist    build a wheel in dist/"
	@echo "lock    update the pinned dependencies in requirements/dev.lock"
	@echo "clean   remove everything the targets created"

setup: $(STAMP)

$(STAMP): pyproject.toml requirements/dev.lock tools/setup_env.py
	$(PYTHON) tools/setup_env.py $(VENV)
	@touch $(STAMP)

demo: $(STAMP)
	@$(BIN)/rowlake demo $(ARGS)

test: $(STAMP)
	@$(BIN)/python tools/run_tests.py $(ARGS)

test-integrations: $(STAMP)
	@$(BIN)/python tools/browser_tests.py $(ARGS)
	@$(BIN)/python tools/notebook_tests.py
	@$(BIN)/python tools/dbt_tests.py
	@$(BIN)/python tools/docs_site.py

fuzz: $(STAMP)
	@$(BIN)/python tools/fuzz.py $(ARGS)

streams-long: $(STAMP)
	@$(BIN)/python tools/fuzz.py --changes --histories 2000 $(ARGS)
	@$(BIN)/python tools/fuzz.py --changes --format delta --histories 500 $(ARGS)
	@ROWLAKE_SCD_ORDERS=1000 $(BIN)/python tools/run_tests.py tests/unit/stream/test_scd.py
	@ROWLAKE_STREAM_KILLS=5 ROWLAKE_CDC_CHANGES=100000 ROWLAKE_MEDALLION_KILLS=5 $(BIN)/python tools/run_tests.py \
	  tests/faults/test_killed_streams.py tests/interop/test_cdc_long.py tests/interop/test_medallion.py

hostile: $(STAMP)
	@$(BIN)/python tools/hostile.py $(ARGS)

matrix: $(STAMP)
	@$(BIN)/python tools/matrix.py $(ARGS)

SECONDS ?= 600
soak: $(STAMP)
	@ROWLAKE_SOAK=$(SECONDS) $(BIN)/python tools/run_tests.py tests/faults/test_soak.py tests/faults/test_six_writers.py -s $(ARGS)

lint: $(STAMP)
	$(BIN)/ruff format --check src tests bench tools
	$(BIN)/ruff check src tests bench tools
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(STAMP)
	$(BIN)/ruff format src tests bench tools
	$(BIN)/ruff check --fix src tests bench tools

bench: $(STAMP)
	@$(BIN)/python -m bench $(ARGS)

bench-smoke: $(STAMP)
	@$(BIN)/python -m bench.smoke $(ARGS)

docs: $(STAMP)
	$(BIN)/python tools/spec_map.py
	$(BIN)/python tools/matrix.py --page
	$(BIN)/python tools/reference_pages.py
	$(BIN)/python tools/docs_site.py

dist: $(STAMP)
	$(BIN)/uv build -q --wheel --no-build-isolation --python $(BIN)/python -o dist .
	@ls dist

lock: $(STAMP)
	$(BIN)/uv pip compile pyproject.toml --extra postgres --extra connect --extra polars --group dev --universal --python-version 3.10 \
	  --generate-hashes --no-emit-index-url --no-header --no-annotate -q -o requirements/dev.lock

clean:
	rm -rf $(VENV) .cache build dist bench/.cache
