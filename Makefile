# Everything a fresh machine needs: Python 3.11 or newer and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
LOWEST := .venv-lowest
LOWEST_TESTS := tests/cli tests/doctor tests/protocol tests/data/test_readers_formats.py \
	tests/gaussian/test_map_em.py tests/gaussian/test_exact.py tests/model/test_model_file.py \
	tests/tables/test_imputer.py tests/dashboard/test_app_home.py

.PHONY: app fit wheel test test-lowest check docs reproduce bench screenshots clean

$(VENV)/ready: requirements.txt pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet -r requirements.txt
	$(BIN)/python -m pip install --quiet --no-deps --editable .
	touch $@

$(VENV)/ready-dev: $(VENV)/ready requirements-dev.txt
	$(BIN)/python -m pip install --quiet -r requirements-dev.txt
	touch $@

# The dashboard, in the local browser, on the embedded sample.
app: $(VENV)/ready
	$(BIN)/gmc app

# The main job without a dashboard: fit the embedded sample by the paper's MAP-EM.
fit: $(VENV)/ready
	$(BIN)/gmc fit --data sample --protocol weak

# The product as one file, with its source distribution, in dist/.
wheel: $(VENV)/ready-dev
	rm -rf dist
	$(BIN)/python -m hatchling build -d dist

# All tests, browser included; installs what they need. Three processes, since the one that
# drives the browser waits as well; all code is compiled before they all want it (bytecode too,
# for where the environment keeps Python from writing any).
test: $(VENV)/ready-dev
	$(BIN)/python -m tests.browser.install
	$(BIN)/python -m compileall -q gmc_core gmc_dashboard
	$(BIN)/python -m gmc_core.fitting.compiling
	$(BIN)/python -m pytest -q -n 3

# Core and command line on the lowest version of every package that pyproject.toml allows.
test-lowest:
	rm -rf $(LOWEST)
	$(PYTHON) -m venv $(LOWEST)
	$(LOWEST)/bin/python -m pip install --quiet --upgrade pip
	$(LOWEST)/bin/python -m tests.tools.lowest > $(LOWEST)/lowest.txt
	$(LOWEST)/bin/python -m pip install --quiet --editable ".[all]" -r $(LOWEST)/lowest.txt \
		"pytest>=8.3,<10" "pytest-timeout>=2.3,<3" "hypothesis>=6.112,<7"
	NUMBA_CACHE_DIR=$(CURDIR)/$(LOWEST)/numba $(LOWEST)/bin/python -m pytest -q \
		-p no:cacheprovider -m "not realdata" $(LOWEST_TESTS)

# Style, types and known vulnerabilities.
check: $(VENV)/ready-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	-$(BIN)/pip-audit --requirement requirements.txt --progress-spinner off

# The site, in build/docs: offline, and a warning is an error.
docs: $(VENV)/ready-dev
	$(BIN)/python -m sphinx --fail-on-warning --keep-going -q -b html docs build/docs
	@echo "build/docs/index.html"

# The paper's Table 2; needs MovieLens 1M: make reproduce DATA=path/to/ml-1m.zip
reproduce: $(VENV)/ready
	$(BIN)/gmc reproduce --table 2 $(if $(DATA),--data $(DATA))

bench: $(VENV)/ready
	$(BIN)/python -m benchmarks $(if $(DATA),--ml1m $(DATA))

# The three pictures of README and docs, of the embedded sample.
screenshots: $(VENV)/ready-dev
	$(BIN)/python -m tests.tools.screenshots docs/images --readme

clean:
	rm -rf $(VENV) $(LOWEST) dist build/docs .pytest_cache .mypy_cache .ruff_cache .hypothesis
