"""Functions of CasADi: values and derivatives are those of the package, and the example finds a motion within its limits."""
import sys

import numpy as np
import pytest

import liedyn as ld
from command_line import script_of
from liedyn.interop.traced_functions import FUNCTIONS
from traced_cases import expected_of, function_options, inputs_of, robot_of
from zoo import model_of, state

casadi = pytest.importorskip("casadi")
ROBOTS = {"hand": "robots/hand.yaml", "double_pendulum": "robots/double_pendulum.yaml"}
# all functions of a robot with quaternions, and some of a floating robot and of a hand with mimic joints
CASES = [*(("ball", name) for name in FUNCTIONS),
         *((name, function) for name in ("free", "hand") for function in ("inverse_dynamics", "hybrid_dynamics", "mass_matrix"))]


def robot(name):
    return ld.load(ROBOTS[name]) if name in ROBOTS else model_of(name)


@pytest.mark.parametrize(("name", "function"), CASES)
def test_values_are_those_of_the_package(name, function, worst):
    model, traced = robot(name) if name in ROBOTS else robot_of(function, name), FUNCTIONS[function]
    inputs, options = inputs_of(model, function), function_options(model, function)
    f = ld.casadi_function(model, function, **options)
    assert f.name_in() == [*traced.inputs] and f.name_out() == [result.name for result in traced.results]
    expected = expected_of(model, function, inputs, options)
    for found, x in zip(f.call([casadi.DM(x) for x in inputs.values()]), expected, strict=True):
        x = np.asarray(x)
        shape = (len(x), x.size // len(x)) if x.ndim else (1, 1)
        assert found.shape == shape
        assert worst("CasADi", np.abs(found.full() - x.reshape(shape)).max() / max(np.abs(x).max(), 1.0), function) < 1e-12


def test_derivatives_by_casadi_are_those_of_the_package(worst):
    """Of a robot whose configuration is its own chart."""
    model = model_of("universal")
    q, v, _, tau = (x[0] for x in state(model, 2, (1,)))
    f = ld.casadi_function(model, "forward_dynamics")
    x = [casadi.SX.sym(name, model.nv) for name in ("q", "v", "tau")]
    jacobians = casadi.Function("d", x, [casadi.jacobian(f(*x), y) for y in x])(q, v, tau)
    derivatives = ld.forward_dynamics_derivatives(model, q, v, tau)
    for name, found, expected in zip(("q", "v", "tau"), jacobians, derivatives, strict=True):
        assert worst("derivatives by CasADi", np.abs(found.full() - expected).max() / np.abs(expected).max(), name) < 1e-12


@pytest.mark.parametrize(("function", "options", "error", "words"), [
    ("forward_dynamic", {}, ld.LiedynError, "did you mean 'forward_dynamics'"),
    ("energy", {"link": "lower"}, ld.UsageError, "energy has no option link"),
    ("jacobian", {}, ld.UsageError, "jacobian needs the name of a link"),
    ("jacobian", {"link": "lowr"}, ld.LiedynError, "did you mean 'lower'"),
    ("hybrid_dynamics", {}, ld.UsageError, "hybrid_dynamics needs prescribed"),
    ("hybrid_dynamics", {"prescribed": [True]}, ld.LiedynError, "prescribed")])
def test_unknown_functions_and_options_are_errors(function, options, error, words):
    with pytest.raises(error, match=words):
        ld.casadi_function(robot("double_pendulum"), function, **options)


@pytest.mark.parametrize("name", ["ur5_track", "quadruped_stands"])
def test_right_hand_sides_are_those_of_a_run(name, worst):
    """Curves, external forces, a law and contacts."""
    run = ld.run_scenario(f"configs/{name}.yaml", {"duration": 0.02, "output_step": 0.02})
    f = ld.casadi_right_hand_side(f"configs/{name}.yaml")
    a, tau, rate = f(run.t[-1], run.q[-1], run.v[-1], [], [])
    assert rate.shape == (0, 1)
    for found, expected in ((a, run.a[-1]), (tau, run.tau[-1])):
        error = np.abs(found.full().ravel() - expected).max() / max(np.abs(expected).max(), 1.0)
        assert worst("right-hand sides by CasADi", error, name) < 1e-12


def test_numbers_of_a_scenario_are_inputs():
    scenario = {"robot": "robots/double_pendulum.yaml", "duration": 1, "joints": {"elbow": {"torque": 0.4}}}
    f = ld.casadi_right_hand_side(scenario, inputs=["torque of elbow"])
    model = ld.load("robots/double_pendulum.yaml")
    expected = ld.forward_dynamics(model, [0.3, -0.2], [1.0, 0.5], [0.0, 0.7])
    np.testing.assert_allclose(f(0, [0.3, -0.2], [1.0, 0.5], [], 0.7)[0].full().ravel(), expected, rtol=1e-13)
    with pytest.raises(ld.LiedynError, match="no number 'torque of elbw'; did you mean 'torque of elbow'"):
        ld.casadi_right_hand_side(scenario, inputs=["torque of elbw"])


@pytest.mark.parametrize(("name", "part"), [("four_bar", "constraints"), ("ur5_sampled", "a sampled controller"),
                                            ("panda_task_space", "switches of the state: limit of the force of panda_joint1"),
                                            ("ur5_motors", "switches of the state: motor of shoulder_pan_joint")])
def test_what_a_right_hand_side_cannot_contain_is_an_error(name, part):
    with pytest.raises(ld.ScenarioError, match=f"a function of CasADi cannot contain {part}") as caught:
        ld.casadi_right_hand_side(f"configs/{name}.yaml")
    key = {"panda_task_space": "saturate:", "ur5_motors": "motors.shoulder_*:"}.get(name, "")
    assert key in str(caught.value)


def test_without_casadi_the_error_names_the_command(monkeypatch):
    monkeypatch.setitem(sys.modules, "casadi", None)
    monkeypatch.setattr("liedyn.interop.casadi.find_spec", lambda name: None)
    with pytest.raises(ld.UsageError, match=r"pip install 'liedyn\[casadi\]'"):
        ld.casadi_function(robot("double_pendulum"), "mass_matrix")


def test_a_motion_with_minimum_torques_is_within_its_limits(tmp_path, capsys):
    """Torques are those of the motion, and smaller than those along a straight line in the same time."""
    script, file = script_of("panda_minimum_torque"), tmp_path / "motion.csv"
    assert script.main(["-o", str(file), "--nodes", "6"]) == 0 and "at most" in capsys.readouterr().out
    model, motion = ld.load(script.ROBOT), ld.read_trajectory(file)
    recorded = ld.motion_of(model, motion)
    q, v, a = recorded.q, recorded.v, recorded.a
    tau = ld.inverse_dynamics(model, q, v, a)
    assert np.abs(q[[0, -1]] - [script.FIRST, script.LAST]).max() < 1e-6 and np.abs(v[[0, -1]]).max() < 1e-6
    for x, bound in ((v, model.velocity_limit), (a, model.acceleration_limit), (tau, model.effort_limit)):
        assert (np.abs(x) <= bound + 1e-6).all()
    s = np.linspace(0, 1, 6)[:, None]
    step = np.subtract(script.LAST, script.FIRST)
    line = ld.inverse_dynamics(model, script.FIRST + step * (3 * s**2 - 2 * s**3), step * 6 * s * (1 - s) / 1.5,
                               step * (6 - 12 * s) / 1.5**2)
    assert (tau**2).sum() < 0.95 * (line**2).sum()
    assert script.main(["-o", str(file)]) == 2 and "exists" in capsys.readouterr().err


@pytest.mark.parametrize("prescribed", [[True, True], [False, False]])
def test_uniform_masks_of_hybrid_dynamics(prescribed):
    model = ld.load("robots/double_pendulum.yaml")
    q, v, a, tau = np.random.default_rng(0).standard_normal((4, 2))
    f = ld.casadi_function(model, "hybrid_dynamics", prescribed=prescribed)
    for result, expected in zip(f(q, v, a, tau), ld.hybrid_dynamics(model, q, v, a, tau, prescribed), strict=True):
        np.testing.assert_allclose(result.full().ravel(), expected, rtol=1e-13)


def test_a_scenario_with_rigid_friction_is_an_error():
    scenario = {"robot": "robots/double_pendulum.yaml", "duration": 1, "friction": {"elbow": {"model": "rigid", "level": 0.5}}}
    with pytest.raises(ld.ScenarioError, match="cannot contain rigid friction"):
        ld.casadi_right_hand_side(scenario)


def test_warnings_of_a_scenario_are_issued():
    push = {"link": "tip", "wrench": [0, 0, 0, 0, 0, 1], "from": 2, "until": 3}
    with pytest.warns(ld.LiedynWarning, match="after the end of the run"):
        ld.casadi_right_hand_side({"robot": "robots/double_pendulum.yaml", "duration": 1, "external_forces": [push]})
