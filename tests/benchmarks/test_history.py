"""The history of the figures of `make bench`: rows with machine and commit, and the tables of the site."""
import csv
import importlib
import re

import pytest

import liedyn
from benchmarks import history, run
from benchmarks.history import COLUMNS, FILE, ROOT, History


@pytest.fixture
def page(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    return importlib.import_module("site_pages.history")


def rows_of(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_rows_are_appended_with_machine_and_commit(tmp_path):
    path = tmp_path / "new" / "history.csv"
    for us in (0.05, 0.04123456):
        figures = History()
        figures.add("forward dynamics, batch, ur5", us, 25.0)
        figures.append_to(path)
    first, second = rows_of(path)
    assert tuple(first) == COLUMNS and (first["us"], second["us"], second["ratio"]) == ("0.05", "0.04123", "25")
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", first["date"]) and first["version"] == liedyn.__version__
    assert all(first.values()) and b"\r" not in path.read_bytes()


def test_a_machine_that_compiles_for_another_processor_is_another_machine(monkeypatch):
    monkeypatch.setenv("NUMBA_CPU_NAME", "x86-64-v3")
    assert history.machine().endswith(", as x86-64-v3")


@pytest.mark.parametrize("quick", [True, False])
def test_whole_runs_are_recorded_and_quick_ones_are_not(monkeypatch, tmp_path, quick):
    """With three sections of one figure each, and none of the others."""
    class Pair:
        ours, theirs, ratio = 1e-6, 2e-5, 20.0

    def nothing(*_, **__):
        return iter(())
    monkeypatch.setattr(run, "pin_to_one_core", lambda: "not pinned")
    for name in ("large_batches", "second", "hybrid_against_forward", "hybrid_chains"):
        monkeypatch.setattr(run.derivatives, name, nothing)
    monkeypatch.setattr(run.dynamics, "single_calls", nothing)
    monkeypatch.setattr(run.memory, "against_out", nothing)
    monkeypatch.setattr(run.identification, "figures", nothing)
    monkeypatch.setattr(run.mimic, "against_open_trees", nothing)
    monkeypatch.setattr(run.dynamics, "batches", lambda **_: iter([("ur5", "forward", 6, 1.0, Pair)]))
    monkeypatch.setattr(run.derivatives, "against_pinocchio", lambda **_: iter([("ur5", "inverse", 6, "batch", 1.0, Pair)]))
    monkeypatch.setattr(run.constrained, "against_pinocchio", lambda **_: iter([("ring", 6, 3, "one", 1.0, Pair)]))
    monkeypatch.setattr(run.constrained, "microseconds_per_body", lambda **_: iter([(30, 1.0)]))
    monkeypatch.setattr(run.chains, "microseconds_per_body", lambda **_: {})
    monkeypatch.setattr(run.chains, "rk4_step", lambda n, **_: (1.0, 6.0, Pair))
    monkeypatch.setattr(run.inverse_kinematics, "figures", lambda **_: iter([]))
    for module in (run.events, run.work_precision, run.long_runs, run.rollouts, run.single_precision, run.batches,
                   run.higher_order, run.commands):
        monkeypatch.setattr(module, "report", nothing)
    path = tmp_path / "history.csv"
    assert run.main(quick=quick, history=path) == 0
    assert path.exists() != quick
    if not quick:
        assert [row["benchmark"] for row in rows_of(path)] == [
            "forward dynamics, batch, ur5", "rk4 step, chain of 7", "rk4 step, chain of 30",
            "derivatives of inverse dynamics, batch, ur5", "constrained forward dynamics, one, ring"]


def test_the_recorded_history_is_valid():
    for row in rows_of(FILE) if FILE.exists() else ():
        assert tuple(row) == COLUMNS and float(row["us"]) > 0 and float(row["ratio"]) > 0 and all(row.values())


def test_the_site_has_a_table_for_each_machine_with_a_curve(page, tmp_path):
    path = tmp_path / "history.csv"
    path.write_text(",".join(COLUMNS) + "\n" + "".join(
        f"2026-01-0{k},abc{k},0.2.0,CPU <{name}>,3.12,step,{us},{ratio}\n"
        for name, k, us, ratio in (("A", 1, 2.0, 5), ("A", 2, 1.0, 10), ("B", 1, 4.0, 3))), encoding="utf-8")
    text = page.history_page(path)
    first, second = re.split(r"^### ", text, flags=re.MULTILINE)[1:]
    assert first.startswith("CPU &lt;A&gt;") and "| step | 1.0 | 10.0 |" in first and "2026-01-02, `abc2`" in first
    assert 'points="3.0,3.0 157.0,14.0"' in first and 'points="3.0,3.0"' in second
    assert page.history_page(tmp_path / "none.csv") == "No figures have been recorded yet.\n"
