# `make demo` and `make test` work on a fresh machine with Python >= 3.11 and make; uv is used where it is present.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
UV := $(shell command -v uv 2>/dev/null)
STAMP := $(VENV)/.installed

.PHONY: demo test check format docs bench clean
.DEFAULT_GOAL := test

$(STAMP): pyproject.toml
ifneq ($(UV),)
	[ -x $(BIN)/python ] || $(UV) venv --quiet --python $(PYTHON) $(VENV)
	$(UV) pip install --quiet --python $(BIN)/python -e ".[dev]"
else
	[ -x $(BIN)/python ] || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[dev]"
endif
	touch $@

$(VENV)/.local: $(STAMP)
	$(BIN)/pollux-like local setup
	touch $@

demo: $(VENV)/.local
	$(BIN)/pollux-like demo

test: $(VENV)/.local
	$(BIN)/python -m pytest

check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/mypy
	$(BIN)/pyright --warnings
	$(BIN)/python docs/generate.py --check

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(STAMP)
	$(BIN)/python docs/generate.py

bench: $(STAMP)
	$(BIN)/python benchmarks/run.py
	$(BIN)/python benchmarks/store.py

clean:
	rm -rf $(VENV) .venv-openreward-* benchmarks/.peers .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
