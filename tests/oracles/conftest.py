"""Which robots run generated code: those of BY_LINES of a module, by the names of their files or the seeds of random trees, as
"panda", or as "panda, fixed" for one base. The others run the generic kernels: generated code of all takes minutes to compile,
and tests/codegen compares it with the generic kernels for every kind of joint."""
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def code_of_robot(request, monkeypatch):
    chosen, parameters = getattr(request.module, "BY_LINES", None), getattr(request.node, "callspec", None)
    if chosen is None or parameters is None:
        return
    robots = [parameters.params[key] for key in ("path", "name", "seed") if key in parameters.params]
    if not robots:
        return
    name, base = Path(str(robots[0])).stem, parameters.params.get("base")
    if name not in chosen and f"{name}, {base}" not in chosen:
        monkeypatch.setenv("LIEDYN_CODE", "generic")
