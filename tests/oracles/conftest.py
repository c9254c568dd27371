"""Which robots run lines: those of BY_LINES of a module, by the names of their files or the seeds of random trees. The others run
the loops: lines of all take many minutes to compile, and tests/codegen compares lines with loops for every kind of joint."""
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def code_of_robot(request, monkeypatch):
    chosen, parameters = getattr(request.module, "BY_LINES", None), getattr(request.node, "callspec", None)
    if chosen is None or parameters is None:
        return
    robots = [parameters.params[key] for key in ("path", "name", "seed") if key in parameters.params]
    if robots and Path(str(robots[0])).stem not in chosen:
        monkeypatch.setenv("LIEDYN_CODE", "generic")
