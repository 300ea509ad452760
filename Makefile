# make demo     simulate an ICU, fit, sample, and show the result
# make test     lint, types and tests
# make lint     ruff (lint and format) and mypy --strict
# make matrix   make test by each of Python 3.11 to 3.13 that is found, in .venv-3.11 to .venv-3.13
# make dist     wheel and sdist in dist/, checked by twine
# make bench    throughput and memory as JSON
#
# PYTHON=python3.12 is the interpreter to make the environment of, VENV=FOLDER its place (.venv), and
# PYTHONS="python3.12 python3.13" are those of the matrix.
PYTHON ?= python3
PYTHONS ?= python3.11 python3.12 python3.13
VENV := .venv
PY := $(VENV)/bin/python

.PHONY: demo test lint matrix dist bench

demo: $(VENV)/.installed
	$(VENV)/bin/timediff demo

test: lint
	OMP_NUM_THREADS=1 $(PY) -m pytest -n 2 --dist loadfile

lint: $(VENV)/.installed-dev
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy

matrix:
	@passed=; failed=; \
	for python in $(PYTHONS); do \
	  version=$$($$python -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null) \
	    || { echo "$$python is not here: left out"; continue; }; \
	  if $(MAKE) test PYTHON=$$python VENV=.venv-$$version; \
	    then passed="$$passed $$version"; else failed="$$failed $$version"; fi; \
	done; \
	echo "passed:$${passed:- none}; failed:$${failed:- none}"; \
	test -n "$$passed" && test -z "$$failed"

dist: $(VENV)/.installed-dist
	@stray=$$(git ls-files --others --exclude-standard -- .ci benchmarks docs src tests 2>/dev/null); \
	test -z "$$stray" || { echo "git does not track these, and they would be packed:"; echo "$$stray"; exit 1; }
	rm -rf dist
	$(PY) -m build --no-isolation
	$(PY) -m twine check --strict dist/*

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

$(VENV)/.installed-dist: $(VENV)/bin/python constraints.txt
	$(PY) -m pip install --constraint constraints.txt build hatchling twine
	touch $@
