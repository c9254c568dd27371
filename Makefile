# Each target does all its set-up on a fresh machine with Python 3.11 or newer.
NEW := -c 'import sys; sys.exit(sys.version_info < (3, 11))'
# the first that runs and is new enough: a name on the path may be a shim that does not run
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11 python; do $$p $(NEW) 2>/dev/null && echo $$p && break; done)
BIN := .venv/$(if $(filter Windows_NT,$(OS)),Scripts,bin)

# What `make test-oldest` runs: what depends on internals of other packages, and one of each kind of the rest.
CORE := $(addprefix tests/, numba_tools codegen/test_specialize.py codegen/test_plan.py io model lie/test_so3.py lie/test_simd.py \
	integrators/test_runge_kutta.py oracles/test_mujoco.py simulation/test_run.py report cli/test_cli.py)
# The versions that are the lower bounds of pyproject.toml.
OLDEST := -c 'import re, tomllib; \
	print(*(re.sub(">=([0-9.]+).*", r"==\1", x) for x in tomllib.load(open("pyproject.toml", "rb"))["project"]["dependencies"]))'
# These have no packages for newer Pythons.
OLD_PYTHON ?= $(shell for p in python3.11 python3.12; do $$p $(NEW) 2>/dev/null && echo $$p && break; done)
# Pythons for which Numba has packages, newest first.
NEWEST ?= python3.14 python3.13 python3.12

# Tests start many processes. Without stored bytecode, each of them compiles all modules, for more than a second.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: simulate test test-long test-avx2 test-oldest test-core test-torch test-newest test-wheel bench lint docs wheel dist release-check clean

simulate: .venv/installed          ## run the README's example and name what to look at
	$(BIN)/liedyn simulate configs/panda_hybrid.yaml --force
	@echo
	@echo "Open runs/panda_hybrid/replay.html in a browser, or look at plots/motion.png, positions.png and torques.png next to it;"
	@echo "the numbers are in runs/panda_hybrid/trajectory.csv"

test: .venv/installed-test         ## everything that keeps the project true
	$(BIN)/python -m pytest -n auto --maxprocesses 4 --dist worksteal

test-core: .venv/installed-test    ## the core tests of test-oldest with the newest packages, for systems that lack oracles
	$(BIN)/python -m pytest -n auto --maxprocesses 4 --dist worksteal $(CORE)

test-long: .venv/installed-test    ## metamorphic tests with new random seeds, for LIEDYN_MINUTES (default 60)
	@end=$$(( $$(date +%s) + 60 * $${LIEDYN_MINUTES:-60} )); \
	while [ $$(date +%s) -lt $$end ]; do \
		LIEDYN_SEED= $(BIN)/python -m pytest -n auto --maxprocesses 4 --dist worksteal tests/metamorphic || exit 1; \
	done

test-avx2: .venv/installed-test    ## the same, compiled for a processor with AVX2 and without AVX-512
	NUMBA_CPU_NAME=x86-64-v3 NUMBA_CPU_FEATURES= $(BIN)/python -m pytest -n auto --maxprocesses 4 --dist worksteal

test-oldest: .venv-oldest/installed    ## core tests with the oldest packages that pyproject.toml allows
	.venv-oldest/bin/python -m pytest -n auto --maxprocesses 4 --dist worksteal $(CORE)

test-torch: .venv/installed-test   ## rollouts under PyTorch, which is too large for the other tests
	@echo "Installing PyTorch in .venv, a few minutes"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[torch]'
	$(BIN)/python -m pytest tests/interop

test-newest: .venv-newest/installed    ## all tests with the newest Python that is here and that Numba supports
	.venv-newest/bin/python -m pytest -n auto --maxprocesses 4 --dist worksteal

bench: .venv/installed-test        ## the figures of the README, compared with Pinocchio and MuJoCo
	$(BIN)/python tests/benchmarks/run.py

lint: .venv/installed-test          ## style and types
	$(BIN)/ruff check .
	$(BIN)/mypy

docs: .venv/installed-docs         ## the site, in build/site; nothing is fetched but the packages
	$(BIN)/python -m sphinx -E -W --keep-going -q docs build/site
	@echo "Open build/site/index.html in a browser"

wheel: .venv/installed-test        ## as dist, with the compiled code of simulations for this Python and system
	$(BIN)/python packaging/prebuild.py
	@$(MAKE) --no-print-directory dist

dist: .venv/installed-test         ## sdist and wheel in dist/, with checked metadata
	rm -rf dist build/lib build/bdist.*
	$(BIN)/python -m build --no-isolation --sdist --wheel . >build.log 2>&1 || { cat build.log; exit 1; }
	@rm build.log
	$(BIN)/python -m twine check --strict dist/*

test-wheel: dist                   ## the README's commands from the wheel, installed into an empty environment
	$(BIN)/python packaging/try_wheel.py

release-check:                     ## what a person must still do before the version can be published; TAG=v… must name it
	@$(PYTHON) packaging/check_release.py $(TAG)

clean:
	rm -rf .venv .venv-oldest .venv-newest runs build dist src/liedyn/prebuilt src/*.egg-info .pytest_cache .ruff_cache .hypothesis

.venv/installed: pyproject.toml
	@$(or $(PYTHON),false) $(NEW) || { echo "liedyn needs Python 3.11 or newer, and found none. Name one: make PYTHON=/path/to/python3.12 …"; exit 1; }
	@echo "Installing packages in .venv, about a minute"
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

.venv/installed-test: .venv/installed
	@echo "Installing the packages of the tests in .venv, about a minute"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[test]'
	@touch $@

.venv/installed-docs: .venv/installed
	@echo "Installing the packages of the documentation in .venv, about a minute"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[docs]'
	@touch $@

.venv-oldest/installed: pyproject.toml
	@$(or $(OLD_PYTHON),false) $(NEW) || { echo "The oldest packages need Python 3.11 or 3.12. Name one: make test-oldest OLD_PYTHON=…"; exit 1; }
	@echo "Installing the oldest packages in .venv-oldest, a few minutes"
	$(OLD_PYTHON) -m venv .venv-oldest
	.venv-oldest/bin/python -m pip install --quiet --disable-pip-version-check -e '.[test]'
	@# afterwards: what the newest oracles ask of NumPy would send pip back to oldest oracles; they run with this one too, and
	@# pandas 3 does not
	.venv-oldest/bin/python -m pip install --quiet --disable-pip-version-check $$($(OLD_PYTHON) $(OLDEST)) 'pandas<3'
	@touch $@

.venv-newest/installed: pyproject.toml
	@for p in $(NEWEST); do \
		$$p $(NEW) 2>/dev/null || continue; \
		echo "Installing packages in .venv-newest, a few minutes"; \
		rm -rf .venv-newest && $$p -m venv .venv-newest || continue; \
		.venv-newest/bin/python -m pip install --quiet --disable-pip-version-check --only-binary numba,llvmlite -e '.[test]' \
			&& touch $@ && $$p --version && exit 0; \
		echo "$$p: Numba or another package cannot be installed for it"; \
	done; \
	echo "None of these Pythons is here and can be used: $(NEWEST). Name one: make test-newest NEWEST=/path/to/python3.13"; exit 1
