#!/usr/bin/env bash
# Merges modules, from the project's root on a clean branch, with the project's ruff on the path. To be removed with that work.
set -euo pipefail
python tests/restructure/move.py --write
find src tests docs configs -name "*.py" -not -path "tests/restructure/*" -print0 | xargs -0 ruff check --fix -q --select I,F401,F811 || true
git apply tests/restructure/after.patch
python tests/restructure/rewrap.py
python tests/restructure/finish.py
python docs/make_papers.py
ruff check .
