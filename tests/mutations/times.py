"""A plugin of pytest: writes each test that it begins and its seconds to the file that MUTATION_TIMES names."""
import os


def pytest_runtest_logstart(nodeid):
    _write(f"{nodeid} 0")


def pytest_runtest_logreport(report):
    _write(f"{report.nodeid} {report.duration}")


def _write(line: str) -> None:
    with open(os.environ["MUTATION_TIMES"], "a", encoding="utf-8") as file:
        file.write(line + "\n")
