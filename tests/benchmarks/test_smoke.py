"""Every benchmark runs, computes the same as its peer (asserted inside), and has a figure."""
from dataclasses import replace

import numpy as np
import pytest

from benchmarks import (
    batches,
    chains,
    derivatives,
    device_estimates,
    dynamics,
    events,
    higher_order,
    identification,
    identification_coverage,
    inverse_kinematics,
    live_pages,
    long_runs,
    memory,
    mimic,
    rollouts,
    single_precision,
    state_blocks,
    work_precision,
)
from benchmarks.peer_motions import MujocoMotion, PinocchioMotion


@pytest.mark.parametrize("name", dynamics.ROBOTS)
def test_dynamics_cases_agree_with_pinocchio(name):
    case = dynamics.Case(name, 16)
    pair = case.one_by_one(dynamics.ld.forward_dynamics, case.pin.aba, 1)
    assert pair.ours > 0 and pair.theirs > 0 and pair.ratio > 0


def test_robots_with_mimic_joints_are_compared():
    rows = list(mimic.against_open_trees(states=16, repeats=1))
    assert len(rows) == 12 and all(pair.ratio > 0 for *_, pair in rows)


def test_inverse_kinematics_reaches_what_the_loop_of_pinocchio_does():
    rows = list(inverse_kinematics.figures(targets=20, compared=2, rows=5, repeats=1))
    assert len(rows) == 3 and all(row.ours > 0 and row.reached >= row.theirs_reached for row in rows)


def test_identification_has_figures():
    rows = list(identification.figures(rows=300, starts=1, repeats=1, seeds=0))
    assert len(rows) == 6 and all(row.value > 0 for row in rows)
    model = identification.ld.load("robots/double_pendulum.yaml")
    motion = identification.recording(model, 300)
    errors = identification.mass_errors(model, *(motion[key] for key in ("t", "q", "v", "a")), seeds=2)
    assert errors.shape == (2, 2) and 0.0 < errors.max() < 0.1


def test_intervals_of_an_identification_cover_the_truth():
    """20 seeds of a robot with 8 base parameters; and the wrong model is not reliable."""
    right, wrong = identification_coverage.figures(
        identification_coverage.runs(("double_pendulum",), ("", "drift"), seeds=20, rows=200))
    assert 0.88 < right.coverage < 1.0 and right.alarms == 0.0 and wrong.alarms == 1.0


def test_chain_is_mujocos_chain():
    ours, theirs, _ = chains.rk4_step(3, steps=20, repeats=1)
    assert ours > 0 and theirs > 0


def test_cost_per_body_is_told():
    rows = chains.microseconds_per_body((10, 20), repeats=1)
    assert [row[0] for row in rows["Lanes"]] == [10, 20] and all(row[1] > 0 for kind in rows for row in rows[kind])
    assert rows["Lanes"][0][2] == rows["float64"][0][2] == 1.0


@pytest.mark.parametrize("name", derivatives.ROBOTS)
def test_derivative_cases_agree_with_pinocchio(name):
    case = derivatives.Case(name, 8)
    for what in ("inverse", "forward"):
        assert case.one_by_one(what, 1).ratio > 0 and case.batch(what, 1).ratio > 0


def test_large_batches_are_told():
    rows = derivatives.large_batches(100_000, repeats=1)
    assert [row[0] for row in rows[::2]] == list(derivatives.ROBOTS) and all(row[3] > 0 and row[4] > 0 for row in rows)


def test_live_pages_have_figures():
    if live_pages.chromium() is None:
        pytest.skip("no Chromium or Chrome on the path: `apt install chromium` on Debian")
    figures = live_pages.share("cart_pole", "pole", intervals=1, seconds=0.05)
    assert figures.share > 0.0 and figures.step == 1e-3 and 100 < figures.size < 1000


def test_memory_of_results_is_told():
    rows = memory.measured((16,), repeats=1)
    assert len(rows) == 3 and all(x > 0 for row in rows for x in row[1:])


def test_single_precision_is_told(monkeypatch):
    monkeypatch.setenv("LIEDYN_CODE", "auto")
    rows = list(single_precision.batches(("double_pendulum",), 300, repeats=1))
    assert [row[1] for row in rows] == list(single_precision.FUNCTIONS)
    rows += single_precision.rollouts(("double_pendulum",), 8, 2, repeats=1)
    assert len(rows) == 5 and all(row[4] < 1e-4 and row[5].ratio > 0 for row in rows)


def test_blocks_of_states_are_compared_with_rows(monkeypatch):
    monkeypatch.setenv("LIEDYN_CODE", "auto")
    rows = list(state_blocks.batches(("double_pendulum",), 300, repeats=1))
    assert len(rows) == 2 * len(state_blocks.FUNCTIONS) and all(row[5].ratio > 0 for row in rows)


def test_second_derivatives_agree_with_differences_of_pinocchios():
    rows = derivatives.second(repeats=1, states=8)
    assert [row[0] for row in rows[::2]] == list(derivatives.ROBOTS) and all(row[3] > 0 and row[4].ratio > 0 for row in rows)


def test_hybrid_derivatives_are_told():
    assert [row[0] for row in derivatives.hybrid_chains(1)] == [7, 30]


def test_higher_orders_agree_with_the_reference_and_pinocchio():
    case = higher_order.Case(3, 8, branches=2, bodies=3)
    case.check()
    case.rnea()()
    for what in higher_order.AUTHORS:
        assert (higher_order.in_turn([case.one_by_one(what, 3), case.batch(what, 3)], 1) > 0).all()


def test_growth_of_higher_orders_is_told():
    """Checks: AGF Figure 4, Table 4."""
    by_order = higher_order.by_order("one", (0, 2), 8, repeats=1, bodies=2)
    by_bodies = higher_order.by_bodies("batch", (1, 2), states=8, repeats=1)
    assert all((by[what] > 0).all() for by in (by_order, by_bodies) for what in higher_order.AUTHORS)
    assert higher_order.exponent([1, 2, 4], [3, 12, 48]) == pytest.approx(2)


@pytest.mark.parametrize("what", higher_order.AUTHORS)
def test_casadi_agrees_and_elimination_saves_operations(what):
    rows = list(higher_order.against_casadi(what, (0, 2), states=8, repeats=1, bodies=2))
    assert [(row.eliminate, row.order) for row in rows] == [(False, 0), (False, 2), (True, 0), (True, 2)]
    assert rows[3].operations < rows[1].operations and all(row.ratio > 0 for row in rows)


def test_report_of_higher_orders_has_a_line_for_every_claim():
    lines = []
    higher_order.report(lambda holds, text: lines.append((holds, text)), quick=True)
    assert len(lines) == 2 * 6 * 2 + 2 * 2 * 2 + 2 * 2
    assert all("asked" in text for _, text in lines)


def test_batches_are_told(monkeypatch):
    monkeypatch.setenv("LIEDYN_CODE", "auto")
    rows = list(batches.batches(dict.fromkeys(batches.SWEEPS, 70)))
    assert [row[0] for row in rows] == list(batches.SWEEPS) and all(row[2] > 0 and row[3] > 0 for row in rows)
    assert all(x > 0 for x in batches.masses_with_contacts(3, 0.02))


def test_steppers_and_variants_are_told(monkeypatch):
    monkeypatch.setenv("LIEDYN_CODE", "auto")
    rows = list(rollouts.steppers(repeats=1, calls=2))
    assert [row[1] for row in rows] == [1, 64] * 3 and all(row[2] > 0 and row[4] > 0 for row in rows)
    assert all(abs(row[3]) < float("inf") for row in rows)          # a difference of times: negative under load
    assert all(x > 0 for x in rollouts.variants_by_name(robots=30, repeats=1))


def test_cost_of_events_is_told(monkeypatch):
    monkeypatch.setenv("LIEDYN_CODE", "auto")
    rows = list(events.cost(("double_pendulum",), 200, repeats=1))
    assert [row[1] for row in rows] == list(events.METHODS) and all(row[2] > 0 and set(row[3]) == {1, 3} for row in rows)


def test_a_long_run_is_told(monkeypatch):
    monkeypatch.setenv("LIEDYN_CODE", "auto")
    assert all(x > 0 for x in long_runs.run("rk4", 200))


@pytest.mark.parametrize("name", ["humanoid", "spinning top", "quadruped on its feet"])
def test_motions_are_those_of_the_peers(name, monkeypatch):
    """For 5 ms, in which MuJoCo has no contacts."""
    monkeypatch.setenv("LIEDYN_CODE", "auto")
    motion = next(motion for motion in work_precision.motions() if motion.name == name)
    motion = replace(motion, scenario=motion.scenario | {"duration": 0.005})
    theirs = PinocchioMotion(motion.problem).solve(motion.duration, "DOP853", 1e-12)
    assert motion.error(theirs) < 1e-9
    assert not motion.mujoco or motion.error(MujocoMotion(motion.problem).solve(motion.duration, 1e-4)) < 1e-7


def test_times_at_an_error_are_those_of_the_fastest_points():
    def point(method, error, time):
        return work_precision.Point("ours", method, None, error, [time])
    found = [point("a", 1e-2, 5.0), point("a", 1e-4, 1.0), point("a", 1e-8, 100.0), point("b", 1e-6, 20.0)]
    assert work_precision.time_at(1e-2, found, "ours") == (1.0, "a")               # the first point is slower and farther
    assert work_precision.time_at(1e-6, found, "ours") == (pytest.approx(10.0), "a")
    assert work_precision.time_at(1e-9, found, "ours")[0] == np.inf == work_precision.time_at(1e-2, found, "theirs")[0]


def test_estimates_for_devices(capsys):
    model = dynamics.ld.load("robots/double_pendulum.yaml")
    device_estimates.estimate_function(model, "forward_dynamics", "float32")
    device_estimates.estimate_step(model, "float64")
    function, step = (line.split() for line in capsys.readouterr().out.splitlines())
    assert function[:3] == ["double_pendulum", "forward_dynamics", "float32"] and float(function[-1]) > float(step[-1]) > 1e9
