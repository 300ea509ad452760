# make demo   simulate an ICU, fit, sample, and show the result
# make test   lint, types and tests
# make lint   ruff (lint and format) and mypy --strict
# make bench  throughput and memory as JSON
PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python

.PHONY: demo test lint bench

demo: $(VENV)/.installed
	$(VENV)/bin/timediff demo

test: lint
	OMP_NUM_THREADS=1 $(PY) -m pytest -n 2 --dist loadfile

lint: $(VENV)/.installed-dev
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy

bench: $(VENV)/.installed
	$(PY) benchmarks/throughput.py

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit("TimeDiff needs Python 3.11 or newer; set PYTHON=python3.x") if sys.version_info < (3, 11) else 0'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: $(VENV)/bin/python pyproject.toml constraints.txt
	$(PY) -m pip install --constraint constraints.txt --editable '.[evaluate]'
	touch $@

$(VENV)/.installed-dev: $(VENV)/bin/python pyproject.toml constraints.txt
	$(PY) -m pip install --constraint constraints.txt --editable '.[dev]'
	touch $@ $(VENV)/.installed
