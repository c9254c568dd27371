"""A plugin of pytest: writes a JSON line per test to the file that MUTATION_TIMES names, as it begins and as it ends."""
import json
import os


def pytest_runtest_logstart(nodeid):
    _write(test=nodeid, seconds=0.0, failed=False)


def pytest_runtest_logreport(report):
    _write(test=report.nodeid, seconds=report.duration, failed=report.failed)


def pytest_collectreport(report):
    if report.failed:
        _write(test=report.nodeid, seconds=0.0, failed=True)


def _write(**what) -> None:
    with open(os.environ["MUTATION_TIMES"], "a", encoding="utf-8") as file:
        file.write(json.dumps(what) + "\n")
