"""What computes in a test, lines or loops; and the table of worst figures: tests note how far they were from the truth, and the
end of the session shows it."""
import gc
import math
import os
import secrets

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")       # before NumPy: threads make small matrix products ten times slower

import pytest

# Most tests run the loops, over thousands of random robots: a line for each of their functions would be compiled. Those in these
# folders run what users run, lines where there are any; tests of lines choose for themselves.
_AS_USERS = ("batch", "cli", "codegen", "documents", "integrators", "interop", "oracles", "papers", "report", "rollouts",
             "scenarios", "simulation")
os.environ["BROWSER"] = "true"                             # the program: no test opens a page on the screen
os.environ["LIEDYN_CODE"] = "generic"                      # also while tests are collected
if not os.environ.get("LIEDYN_SEED"):                    # of metamorphic tests; worker processes inherit it
    os.environ["LIEDYN_SEED"] = str(secrets.randbits(31))

_FIGURES = pytest.StashKey[dict]()


def pytest_configure(config):
    config.stash[_FIGURES] = {}


def pytest_report_header():
    return f"metamorphic tests: LIEDYN_SEED={os.environ['LIEDYN_SEED']}"


def pytest_collection_finish():
    """Else every collection of garbage walks through thousands of tests; and compilation makes so many objects that one is due
    every few milliseconds."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000)


@pytest.fixture(autouse=True, scope="module")
def code_of_folder(request):
    """Select the kind of code of the folder, also for fixtures of the module."""
    folder = request.path.parent.relative_to(request.config.rootpath / "tests").parts[:1]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LIEDYN_CODE", "auto" if folder and folder[0] in _AS_USERS else "generic")
        yield


@pytest.fixture
def scenario(tmp_path):
    """Return scenario(robot, …): the keys of a scenario of one second for the text of a robot file, as a dict."""
    def given(robot: str, **more) -> dict:
        (tmp_path / "robot.yaml").write_text(robot)
        return {"robot": str(tmp_path / "robot.yaml"), "duration": 1, **more}
    return given


@pytest.fixture(scope="session")
def worst(pytestconfig):
    """Return worst(what, value, where), which stores the maximum of each kind. NaN counts as the maximum."""
    figures = pytestconfig.stash[_FIGURES]

    def note(what: str, value: float, where: str = "") -> float:
        _keep(figures, what, float(value), where)
        return float(value)
    return note


def _keep(figures, what, value, where):
    if what not in figures or value > figures[what][0] or math.isnan(value):
        figures[what] = value, where


def pytest_sessionfinish(session):
    if hasattr(session.config, "workeroutput"):              # one of several processes: its figures go to the first
        session.config.workeroutput["figures"] = session.config.stash[_FIGURES]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node, error):
    for what, (value, where) in getattr(node, "workeroutput", {}).get("figures", {}).items():
        _keep(node.config.stash[_FIGURES], what, value, where)


def pytest_terminal_summary(terminalreporter, config):
    figures = config.stash[_FIGURES]
    if figures:
        terminalreporter.section("worst figures")
        width = max(map(len, figures))
        for what, (value, where) in sorted(figures.items()):
            terminalreporter.write_line(f"{what:<{width}}  {value:8.1e}  {where}")
