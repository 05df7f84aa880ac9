# `make demo` and `make test` work on a fresh machine with Python >= 3.11 and make; uv is used where it is present.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
UV := $(shell command -v uv 2>/dev/null)
STAMP := $(VENV)/.installed

.PHONY: demo test check format docs docs-site bench bench-quick bench-report clean
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
	$(BIN)/python docs/generate --check

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(STAMP)
	$(BIN)/python docs/generate

$(VENV)/.docs: $(STAMP)
ifneq ($(UV),)
	$(UV) pip install --quiet --python $(BIN)/python -e ".[docs]"
else
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[docs]"
endif
	touch $@

docs-site: $(VENV)/.docs
	rm -rf build/site
	$(BIN)/python -m sphinx -q -W --keep-going -b html docs build/site

bench: $(VENV)/.local
	$(BIN)/python -m benchmarks full
	$(BIN)/python docs/generate

bench-quick: $(STAMP)
	$(BIN)/python -m benchmarks quick

bench-report: $(STAMP)
	$(BIN)/python -m benchmarks report
	$(BIN)/python docs/generate

clean:
	rm -rf $(VENV) build .venv-openreward-* benchmarks/.cache .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
