# Each target does all its set-up on a fresh machine with Python 3.11 or newer.
PYTHON ?= $(shell command -v python3.13 || command -v python3.12 || command -v python3.11 || command -v python3)
BIN := .venv/bin

.PHONY: simulate test bench lint clean

simulate: .venv/installed          ## run the README's example and name what to look at
	$(BIN)/liedyn simulate configs/panda_hybrid.yaml --force
	@echo
	@echo "Look at runs/panda_hybrid/plots/replay.png, positions.png and torques.png; the numbers are in runs/panda_hybrid/trajectory.csv"

test: .venv/installed-test         ## everything that keeps the project true
	$(BIN)/python -m pytest

bench: .venv/installed-test        ## the figures of the README, side by side with Pinocchio and MuJoCo
	$(BIN)/python tests/benchmarks/run.py

lint: .venv/installed-test
	$(BIN)/ruff check .

clean:
	rm -rf .venv runs build dist src/*.egg-info .pytest_cache .ruff_cache .hypothesis

.venv/installed: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "liedyn needs Python 3.11 or newer; found $$($(PYTHON) --version). Name one: make PYTHON=python3.12 …"; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

.venv/installed-test: .venv/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[test]'
	@touch $@
