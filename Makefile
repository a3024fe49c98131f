# Bare `make` prints the targets. Every target that needs the environment makes it first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
ARGS ?=

.PHONY: help setup demo test fuzz hostile lint format bench bench-smoke lock clean

help:
	@echo "setup   make $(VENV) with everything for development (Java included, where there is none)"
	@echo "demo    run rowlake's main job on an embedded lake"
	@echo "test    run all tests"
	@echo "fuzz    10,000 random histories of row-level changes; ARGS=\"--seed 7 --steps 12\" (see tools/fuzz.py)"
	@echo "hostile 1,000 mutations of tables' files; ARGS=\"--cases 1000 --seed 7\" (see tools/hostile.py)"
	@echo "lint    ruff, mypy and import-linter"
	@echo "format  let ruff format and fix"
	@echo "bench   compare with the peers; ARGS=\"...\" picks cases (see bench/)"
	@echo "bench-smoke  count files, bytes, jobs and shuffles against bench/expected.json"
	@echo "lock    pin the dependencies anew in requirements/dev.lock"
	@echo "clean   remove what the targets made"

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

lock: $(STAMP)
	$(BIN)/uv pip compile pyproject.toml --all-extras --group dev --universal --python-version 3.10 \
	  --generate-hashes --no-emit-index-url --no-header --no-annotate -q -o requirements/dev.lock

clean:
	rm -rf $(VENV) .cache build dist bench/.cache
