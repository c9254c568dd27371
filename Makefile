# Each target does all its set-up on a fresh machine with Python 3.11 or newer.
NEW := -c 'import sys; sys.exit(sys.version_info < (3, 11))'
# the first that runs and is new enough: a name on the path may be a shim that does not run
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11 python; do $$p $(NEW) 2>/dev/null && echo $$p && break; done)
BIN := .venv/bin

.PHONY: simulate test test-avx2 bench lint clean

simulate: .venv/installed          ## run the README's example and name what to look at
	$(BIN)/liedyn simulate configs/panda_hybrid.yaml --force
	@echo
	@echo "Look at runs/panda_hybrid/plots/replay.png, positions.png and torques.png; the numbers are in runs/panda_hybrid/trajectory.csv"

test: .venv/installed-test         ## everything that keeps the project true
	$(BIN)/python -m pytest -n auto --maxprocesses 4 --dist loadfile

test-avx2: .venv/installed-test    ## the same, compiled for a processor with AVX2 and without AVX-512
	NUMBA_CPU_NAME=x86-64-v3 NUMBA_CPU_FEATURES= $(BIN)/python -m pytest -n auto --maxprocesses 4 --dist loadfile

bench: .venv/installed-test        ## the figures of the README, side by side with Pinocchio and MuJoCo
	$(BIN)/python tests/benchmarks/run.py

lint: .venv/installed-test
	$(BIN)/ruff check .

clean:
	rm -rf .venv runs build dist src/*.egg-info .pytest_cache .ruff_cache .hypothesis

.venv/installed: pyproject.toml
	@$(or $(PYTHON),false) $(NEW) || { echo "liedyn needs Python 3.11 or newer, and found none. Name one: make PYTHON=/path/to/python3.12 …"; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

.venv/installed-test: .venv/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[test]'
	@touch $@
