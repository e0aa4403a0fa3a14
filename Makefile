# Two commands: `make run` measures your machine, `make test` checks everything. `make lab` opens the course.
#   PYTHON     the interpreter to start from (3.11 or newer)
#   PIP_ARGS   passed on to pip, such as PIP_ARGS="--extra-index-url https://download.pytorch.org/whl/cpu"
PYTHON ?= python3
VENV ?= .venv
PIP_ARGS ?=
BIN = $(VENV)/bin
PIP_INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt $(PIP_ARGS)

.PHONY: run lab test unit notebooks-test browser-test lint bench notebooks clean

run: $(VENV)/.run
	$(BIN)/shapelab run
	@echo
	@echo "Open the course with: make lab"

lab: $(VENV)/.lab
	$(BIN)/jupyter lab notebooks/00_start_here.ipynb

test: lint unit browser-test notebooks-test

# Two workers of one thread each: a test waits more than it computes, and none asserts a time.
unit: $(VENV)/.test
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses=2 --maxschedchunk=1 --ignore=tests/browser tests

browser-test: $(VENV)/.test
	$(BIN)/python -m pytest tests/browser

notebooks-test: $(VENV)/.test
	SHAPELAB_PREDICTIONS="$(CURDIR)/$(VENV)/predictions.json" $(BIN)/python -m pytest --nbval-lax --nbval-cell-timeout=900 notebooks

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

bench: $(VENV)/.test
	@for script in benchmarks/*.py; do echo "== $$script"; $(BIN)/python $$script || exit 1; done

# Run every notebook again and keep its outputs.
notebooks: $(VENV)/.test
	$(BIN)/python scripts/execute_notebooks.py

clean:
	rm -rf $(VENV)

$(VENV)/.venv:
	@$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11))" || \
		{ echo "shapelab needs Python 3.11 or newer; name one with: make PYTHON=python3.12 run"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.run: $(VENV)/.venv pyproject.toml constraints.txt
	$(PIP_INSTALL) --editable .
	@touch $@

$(VENV)/.lab: $(VENV)/.run
	$(PIP_INSTALL) --editable ".[course]"
	@touch $@

$(VENV)/.test: $(VENV)/.run
	$(PIP_INSTALL) --editable ".[course,test,browser]"
	@touch $@
