"""What the energy balance of a run is measured against."""
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import liedyn as ld
from liedyn.simulation.run import run_scenario
from liedyn.simulation.run_checks import MAX_RELATIVE_BALANCE, rest_information

HOVER = Path(__file__).parents[2] / "configs/hexarotor_hover.yaml"
AT_REST = {"actuators": {"rotor*": 6.959722631992465}, "joints": {}}          # thrusts carry the weight


def said(result) -> bool:
    return any("error of the energy balance" in note for note in map(str, result.warnings))


@pytest.mark.parametrize("overrides", [{"duration": 0.1}, {"duration": 0.001, "output_step": 0.001}, AT_REST,
                                       AT_REST | {"initial.q.base": [0, 0, 0, 0, 0, 0, 1]}],
                         ids=["before the arms move", "one step", "hovering", "hovering at the origin"])
def test_energies_that_are_rounding_do_not_balance_to_one(overrides):
    """Weight and thrusts cancel: what is left of the energies is 1e-13 J of rounding or less, against 73 J. (It was a relative
    balance of 0.5 to 1, without a note.)"""
    r = run_scenario(HOVER, overrides)
    assert r.check["energy_balance"] < 1e-12
    assert r.check["energy_balance_relative"] < 1e-2 * MAX_RELATIVE_BALANCE and not said(r)


def test_residuals_that_a_run_removes_are_no_inaccuracy():
    """A five-bar is at rest under gravity across its plane: positions with 12 digits leave residuals of 1e-13 m."""
    scenario = {"robot": "robots/five_bar.yaml", "gravity": [-9.81, 0, 1], "duration": 0.1}
    model, rest = ld.load(scenario["robot"]), ld.find_equilibrium(scenario).q
    r = run_scenario(scenario | {"initial": {"q": dict(zip(model.q_names, rest.round(12).tolist(), strict=True))},
                                 "integrator": {"method": "generalized_alpha", "step": 1e-3}})
    assert 1e-14 < r.check["energy_balance"] < 1e-12
    # the work of the reactions is at most their sum times the maximum residual, for which the relative balance is the maximum
    assert r.check["energy_balance_relative"] < MAX_RELATIVE_BALANCE and not said(r)


def body(tmp_path, size: float):
    """Return a pendulum of `size` metres, whose energies are proportional to the fourth power of its size."""
    mass = 1e3 * size**3
    path = tmp_path / "pendulum.yaml"
    path.write_text(f"links: {{a: {{mass: {mass}, com: [0, 0, {-size}], inertia: [{mass * size**2}, {mass * size**2}, 0]}}}}\n"
                    "joints: {j: {type: revolute, parent: world, child: a, axis: [0, 1, 0]}}\n")
    return path


@pytest.mark.parametrize("size", [1.0, 1e-3, 1e-5], ids=["1 m", "1 mm", "10 um"])
def test_a_wrong_balance_is_said_however_small_the_energies(tmp_path, size):
    """Steps are a third of the period; the energy of the smallest pendulum is 5e-16 J."""
    period = 2 * 3.14159 * (2 * size / 9.81) ** 0.5
    given = {"robot": str(body(tmp_path, size)), "duration": 20 * period, "initial": {"q": {"j": 1.5}}}
    wrong = run_scenario(given, {"integrator.step": period / 3, "output_step": period})
    assert wrong.check["energy_balance_relative"] > 0.01 and said(wrong)
    right = run_scenario(given, {"integrator.step": period / 300, "output_step": period})
    assert right.check["energy_balance_relative"] < 1e-6 and not said(right)


@pytest.mark.parametrize("name", ["bouncing_arm", "cart_pole", "crane", "double_pendulum_dop853", "four_bar",
                                  "hexarotor_feedback", "panda_hybrid", "pendulum_latch", "pendulum_throw", "rolling_disc",
                                  "tennis_racket", "top_precession", "ur5_excite", "ur5_limp", "ur5_pick", "ur5_track"])
def test_scenarios_balance_at_tight_tolerances(name, worst):
    """Those that take little time; runs of the others show the same."""
    run = run_scenario(HOVER.parent / f"{name}.yaml", {"integrator": {"method": "dop853", "rtol": 1e-12, "atol": 1e-13}})
    assert worst("energy balance at tight tolerances", run.check["energy_balance_relative"], name) < 1e-9


@pytest.mark.parametrize("method", ["dopri5", "dop853", "rodas5p", "RK45", "DOP853", "Radau", "BDF", "LSODA"])
def test_the_work_of_a_motion_that_is_all_prescribed_is_controlled(method, tmp_path, worst):
    """The error estimate of a polynomial is zero for any step, so the work was wrong by a tenth."""
    joints = {"j": {"prescribe": {"position": {"quintic": [[0, 0], [2, 2.5], [5, 2.5], [6, -1]]}}}}
    run = run_scenario({"robot": str(body(tmp_path, 1.0)), "duration": 6, "joints": joints,
                        "integrator": {"method": method, "rtol": 1e-8, "atol": 1e-10}})
    assert worst("work of a prescribed motion", run.check["energy_balance_relative"], method) < 3e-6


def test_the_message_that_nothing_moves_names_keyframes():
    model = ld.load("robots/hopper.xml")
    for gravity, reason in (((0, 0, 0), "no force acts; gravity is zero"), ((0, 0, -9.81), "no force acts")):
        moved = ld.build(replace(model.description, gravity=gravity))
        message, = rest_information(moved, np.array([0.0, 1.0]), np.zeros((2, model.nv)), np.zeros((2, model.nv)))
        assert message.message.endswith(f"{reason} (set initial.keyframe (drop, crouched), initial.q or initial.v, or prescribe "
                                        "a motion or a torque)")
