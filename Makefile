# Everything a fresh machine needs: Python 3.11 or newer and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: app fit test check reproduce bench screenshots clean

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
	$(BIN)/streamlit run app.py

# The main job without a dashboard: fit the embedded sample by the paper's recipe.
fit: $(VENV)/ready
	$(BIN)/gmc fit --data sample --protocol weak

# All tests, browser included, in two processes; installs what they need.
test: $(VENV)/ready-dev
	$(BIN)/python -m tests.browser.install
	$(BIN)/python -m pytest -q -n 2

# Style, types and known vulnerabilities.
check: $(VENV)/ready-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	-$(BIN)/pip-audit --requirement requirements.txt --progress-spinner off

# The paper's Table 2; needs MovieLens 1M: make reproduce DATA=path/to/ml-1m.zip
reproduce: $(VENV)/ready
	$(BIN)/gmc reproduce --table 2 $(if $(DATA),--data $(DATA))

bench: $(VENV)/ready
	$(BIN)/python -m benchmarks $(if $(DATA),--ml1m $(DATA))

# The README's three pictures, of the embedded sample.
screenshots: $(VENV)/ready-dev
	$(BIN)/python -m tests.tools.screenshots docs/images --readme

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
