# Bare `make` lists the targets. Targets that need the environment create it first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
ARGS ?=

.PHONY: help setup demo test fuzz hostile lint format bench bench-smoke docs lock clean

help:
	@echo "setup   create $(VENV) with everything for development (and Java, if none is installed)"
	@echo "demo    run a short tour on an embedded lake"
	@echo "test    run all tests"
	@echo "fuzz    run 10,000 random histories of row-level changes; ARGS=\"--seed 7 --steps 12\" (see tools/fuzz.py)"
	@echo "hostile mutate table files 1,000 times and read them; ARGS=\"--cases 1000 --seed 7\" (see tools/hostile.py)"
	@echo "lint    ruff, mypy and import-linter"
	@echo "format  format and fix with ruff"
	@echo "bench   compare with other engines; ARGS=\"...\" selects cases (see bench/)"
	@echo "bench-smoke  compare counts of files, bytes, jobs and shuffles with bench/expected.json"
	@echo "docs    regenerate docs/spec-map.md from the tests' spec markers"
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

fuzz: $(STAMP)
	@$(BIN)/python tools/fuzz.py $(ARGS)

hostile: $(STAMP)
	@$(BIN)/python tools/hostile.py $(ARGS)

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

lock: $(STAMP)
	$(BIN)/uv pip compile pyproject.toml --all-extras --group dev --universal --python-version 3.10 \
	  --generate-hashes --no-emit-index-url --no-header --no-annotate -q -o requirements/dev.lock

clean:
	rm -rf $(VENV) .cache build dist bench/.cache
