# Everything works from a bare clone: each target makes .venv and installs what it needs.
PYTHON ?= python3
NEWEST ?= $(shell for v in 3.15 3.14 3.13 3.12; do command -v python$$v >/dev/null 2>&1 && python$$v -c '' 2>/dev/null && { echo python$$v; break; }; done)
BIN := .venv/bin
PIP := $(BIN)/pip install --quiet --disable-pip-version-check --constraint tools/constraints.txt

.PHONY: demo test test-fast test-newest lint sync bench clean

demo: .venv/.local  ## the whole story on a sample history
	@$(BIN)/memstore demo

test: .venv/.test  ## every test; those of one file stay together, as they share what is costly to make
	$(BIN)/python -m pytest -q -m "not slow" -n auto --maxprocesses 4 --dist loadfile
	$(BIN)/python -m pytest -q -m slow

test-fast: .venv/.test  ## the tests that need neither the encoder nor patience
	$(BIN)/python -m pytest -q -m "not slow and not encoder"

test-newest:  ## the tests that need no encoder, on the newest Python at hand and without the extra `local`
	$(if $(NEWEST),,$(error no Python newer than the default is at hand))
	$(NEWEST) -m venv .venv-newest
	.venv-newest/bin/pip install --quiet --disable-pip-version-check -e ".[test]"
	.venv-newest/bin/python -m pytest -q -m "not encoder and not slow"

lint: .venv/.lint  ## ruff, mypy --strict, the layers, the twins
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tools/unasync.py --check
	$(BIN)/python tools/style_numbers.py . --max-module 450 --max-function 60 --no-cycles --exclude /_sync/ --src memstore --tests tests

sync: .venv/.lint  ## write the blocking twins
	$(BIN)/python tools/unasync.py

bench: .venv/.test  ## speed, side by side with what it stands on
	$(BIN)/python benchmarks/speed.py

clean:
	rm -rf .venv .venv-newest .mypy_cache .ruff_cache .pytest_cache .hypothesis

.venv/.made:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "memstore needs Python 3.11 or newer; give make PYTHON=python3.11")'
	$(PYTHON) -m venv .venv
	@touch $@

.venv/.local: .venv/.made pyproject.toml
	$(PIP) -e ".[local]"
	@touch $@

.venv/.test: .venv/.local
	$(PIP) -e ".[local,test]"
	@touch $@

.venv/.lint: .venv/.made pyproject.toml
	$(PIP) -e ".[lint,server]"
	@touch $@
