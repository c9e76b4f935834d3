# dpquery: `make` lists the targets. Each one makes the virtual environment it needs from requirements.lock.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
RUNS := $(VENV)/.runs
SHARED := -n 2 --dist worksteal  # each process runs neighbours in one go: what a module makes once is made by one of the two
MEMORY := $(shell test "$$(df -Pk /dev/shm 2>/dev/null | awk 'NR == 2 { print $$4 }')" -gt 4000000 2>/dev/null && echo -p /dev/shm)
IN_MEMORY := there=$$(mktemp -d $(MEMORY)) && trap 'rm -rf "$$there"' EXIT && TMPDIR="$$there"  # ledgers wait for the disk; tests of durability still do
LAYERS := tests/audit tests/mechanisms tests/privacy/test_mutants.py tests/statements/test_statement_mutants.py  # short, in make audit too

.DEFAULT_GOAL := help
.PHONY: help install demo test test-all coverage mutants audit fuzz lint format types imports docs tpc fingerprints bench bench-peers bench-parts clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: $(READY)  ## make the virtual environment, with dpquery and all that develops it

$(RUNS): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo 'dpquery needs Python 3.11 or later: make PYTHON=python3.11'; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { echo 'Python lacks venv: install it first (Debian: apt install python3-venv)'; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@echo 'installing dpquery and the libraries that it runs on into $(VENV)'
	@$(BIN)/python -m pip install --quiet --constraint requirements.lock hatchling editables
	@$(BIN)/python -m pip install --quiet --constraint requirements.lock --no-build-isolation --editable '.[fast,postgresql]'
	@$(BIN)/python -m compileall -q dpquery
	@touch $@

$(READY): $(RUNS)
	@echo 'installing what dpquery is tested and developed with, which takes longer'
	@$(BIN)/python -m pip install --quiet --requirement requirements.lock
	@touch $@

demo: $(RUNS)  ## make the sample shop in demo/ anew, ask three questions, show EXPLAIN and the budget
	rm -rf demo
	PATH="$(CURDIR)/$(BIN):$$PATH" sh examples/00_demo.sh

test: $(READY)  ## run the tests
	@$(IN_MEMORY) $(BIN)/python -m pytest $(SHARED) -m 'not slow and not audit'

test-all: $(READY)  ## run the tests, the slow ones too
	@$(IN_MEMORY) $(BIN)/python -m pytest $(SHARED) -m 'not audit'

fuzz: $(READY)  ## put made-up statements to the engine for FUZZ_SECONDS (3600), in two processes
	$(BIN)/python tests/fuzz/campaign.py

audit: $(READY)  ## attack the product at length, for up to an hour, and write build/audit.md
	@mkdir -p build && rm -f build/audit*.xml
	@$(IN_MEMORY) && export TMPDIR; $(BIN)/python -m pytest -n 2 -m audit --junitxml=build/audit.xml; long=$$?; \
	$(BIN)/python -m pytest -n 2 -m 'not audit and not slow' --junitxml=build/audit-short.xml $(LAYERS); short=$$?; \
	$(BIN)/python tests/audit/report.py build/audit.xml build/audit-short.xml > build/audit.md && cat build/audit.md && exit $$((long + short))

coverage: $(READY)  ## run the tests and check that they take every branch of the rooms that privacy rests on
	@$(IN_MEMORY) $(BIN)/python -m pytest $(SHARED) -m 'not slow and not audit' --cov --cov-report=term-missing

mutants: $(READY)  ## change the argument and the accounting in every small way; a change that no test notices must be listed with a reason
	rm -rf mutants  # what is kept of an earlier run knows nothing of changed tests
	$(BIN)/python tests/mutation/run.py --processes 2
	$(BIN)/python tests/mutation/survivors.py

lint: $(READY)  ## check style and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(READY)  ## write the format
	$(BIN)/ruff format .

types: $(READY)  ## check types
	$(BIN)/mypy

imports: $(READY)  ## check that rooms only look down
	$(BIN)/lint-imports

docs: $(READY)  ## write the generated pages of docs/ and the README of the argument
	$(BIN)/python -c "from dpquery.plan.functions import reference; print(reference(), end='')" > docs/functions.md
	cd tests/sql && ../../$(BIN)/python conformance.py
	$(BIN)/python tests/refusals/refusals.py
	$(BIN)/python tests/pitfalls/table.py
	$(BIN)/python tests/privacy/argument.py

tpc: $(READY)  ## ask the questions of TPC-H and TPC-DS at epsilon 1, for minutes, and write docs/tpc.md
	$(BIN)/python tests/tpc/report.py

fingerprints: $(READY)  ## write the fingerprints of the lemmas, after their proofs were read again
	$(BIN)/python tests/privacy/fingerprints.py

bench: $(READY)  ## measure against plain DuckDB and against peers, for an hour or more, and write benchmarks/results/ (BENCH="--quick": minutes)
	@$(BIN)/python -c 'import matplotlib' 2>/dev/null || $(BIN)/python -m pip install --quiet 'matplotlib>=3.9'
	$(BIN)/python benchmarks/run.py $(BENCH)

bench-peers: $(READY)  ## install the peers into build/bench/peers/, which make bench does otherwise
	$(BIN)/python benchmarks/run.py --install

bench-parts: $(READY)  ## measure single parts: the ledger, noise, quantiles, what a statement costs before it runs
	@for file in benchmarks/core.py benchmarks/ledger.py benchmarks/quantiles.py benchmarks/sampler.py; do \
	  echo "== $$file"; $(BIN)/python $$file || exit 1; done

clean:  ## remove the demo and all caches; keeps the virtual environment
	rm -rf demo .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
