# Everything a fresh machine needs: Python 3.11 or newer and make.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
# Processes that run tests, with one thread each. Tests of a file stay together, so that they share what
# they are set up with; a process without work takes over tests of another.
JOBS   ?= 2
SPREAD := -n $(JOBS) --dist worksteal

.PHONY: setup run test test-all test-cuda test-lowest smoke lint bench fuzz mutants docs clean

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "gcsr needs Python 3.11 or newer; name one with PYTHON=..."; exit 2; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt torch setuptools
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation -c constraints.txt -e ".[dev]"
	@touch $(STAMP)

run: setup
	$(BIN)/gcsr demo

test: setup
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest $(SPREAD) -m "not slow"

test-all: setup
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest $(SPREAD) --timeout 3600

# Everything that needs a GPU, with an accuracy per engine; leaves a row in results/test-cuda.json.
test-cuda: setup
	$(BIN)/python -m pytest -m cuda --rows results/test-cuda.json

# The lowest versions that pyproject.toml allows. For old versions of torch the default package index has
# CUDA builds only (gigabytes); PIP_ARGS names another place to take them from.
LOWEST   := .venv-lowest
PIP_ARGS ?=
$(LOWEST)/.installed: pyproject.toml constraints-lowest.txt
	test -x $(LOWEST)/bin/python || $(PYTHON) -m venv $(LOWEST)
	$(LOWEST)/bin/python -m pip install --quiet --disable-pip-version-check $(PIP_ARGS) -c constraints-lowest.txt \
	  -e . hypothesis pytest pytest-timeout pytest-xdist
	@touch $@

test-lowest: $(LOWEST)/.installed
	OMP_NUM_THREADS=1 $(LOWEST)/bin/python -m pytest $(SPREAD) -m "not slow and not cuda" tests/equations tests/models \
	  tests/training tests/condense tests/experts tests/evaluate tests/graph tests/datasets tests/cli/test_cli_listing.py

# The wheel in a new environment with what it asks for, and nothing of this folder.
SMOKE := build/smoke
smoke: setup
	rm -rf $(SMOKE) build/lib build/bdist.*
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-build-isolation --no-deps -w $(SMOKE) .
	$(PYTHON) -m venv $(SMOKE)/venv
	$(SMOKE)/venv/bin/python -m pip install --quiet --disable-pip-version-check $(PIP_ARGS) -c constraints.txt $(SMOKE)/*.whl
	cd $(SMOKE) && venv/bin/gcsr --help >/dev/null
	cd $(SMOKE) && venv/bin/python -m gcsr --version
	cd $(SMOKE) && venv/bin/python -c "import gcsr; print(gcsr.load('digits'))"
	cd $(SMOKE) && venv/bin/gcsr condense digits --nodes 20 --method clusters --out small.safetensors
	cd $(SMOKE) && venv/bin/gcsr report small.safetensors --runs 1 --out small.html

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: setup
	$(BIN)/python -m benchmarks step --device cpu

# Every target for that long; what was counted is in results/fuzz.json and docs/fuzzing.md.
SECONDS ?= 600
fuzz: setup
	$(BIN)/python -m fuzz all --seconds $(SECONDS) --jobs $(JOBS) --out results/fuzz.json
	$(BIN)/python -m fuzz table

# Planted faults; which test catches each is in results/mutants.json and docs/mutants.md.
mutants: setup
	$(BIN)/python -m mutants --jobs $(JOBS); status=$$?; $(BIN)/python -m mutants table; exit $$status

# torch is there already and satisfies its constraint: it is never resolved again.
docs: setup
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation -c constraints.txt -e ".[docs]"
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet
	@echo "the site is in site/: open site/index.html, or with search: $(BIN)/python -m http.server -d site"

clean:
	rm -rf $(VENV) $(LOWEST) build dist site .mypy_cache .ruff_cache .pytest_cache
