"""Orders, invariants, output, breaks and failures of the integrators."""
from dataclasses import replace

import numpy as np
import pytest

import liedyn as ld
from integrators.problems import floating_robot, free_motion, torque_free_body, turning_state
from liedyn.errors import ComputationError
from liedyn.integrators.diagnosis import failure
from liedyn.integrators.problem import Options, SegmentStart
from liedyn.integrators.run_state import T_NOW
from liedyn.integrators.runge_kutta import SAFETY
from liedyn.integrators.solve import SCIPY_METHODS, _stepper_class, solve
from liedyn.kernels.simulation.right_hand_side import BAD_SIGNAL, NOT_FINITE, SINGULAR

EXACT = Options("dopri5", rtol=1e-13, atol=1e-14)


@pytest.fixture(autouse=True, params=["auto", "generic"])
def code(request, monkeypatch):
    """Use generated code, then generic kernels."""
    monkeypatch.setenv("LIEDYN_CODE", request.param)


def end_error(model, record, reference):
    dq = ld.difference(model, reference.q[-1], record.q[-1])
    return max(np.abs(dq).max(), np.abs(record.v[-1] - reference.v[-1]).max())


@pytest.fixture(scope="module")
def robot():
    return floating_robot()


def test_rk4_has_order_four_on_a_floating_robot(robot):
    """Half the step divides the error by 16. Adding to quaternions would reduce the order."""
    problem, times = free_motion(robot, *turning_state(robot)), np.array([0.0, 1.0])
    reference = solve(problem, times, EXACT)[0]
    errors = [end_error(robot, solve(problem, times, Options("rk4", step=h))[0], reference) for h in (0.04, 0.02, 0.01, 0.005)]
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert np.all(np.abs(orders[1:] - 4) < 0.25), orders


def test_dopri5_has_order_five_on_a_floating_robot(robot):
    """The step is fixed by max_step and large tolerances."""
    problem, times = free_motion(robot, *turning_state(robot)), np.array([0.0, 1.0])
    reference = solve(problem, times, EXACT)[0]
    errors = [end_error(robot, solve(problem, times, Options("dopri5", rtol=1.0, atol=1.0, max_step=h))[0], reference)
              for h in (1 / 16, 1 / 32, 1 / 64)]
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert np.all(np.abs(orders - 5) < 0.3), orders


def test_dop853_has_order_eight_and_its_dense_output_order_seven(robot):
    """On SE(3) and SO(3). Dense output of order seven has a local error of the eighth power of the step."""
    problem, times = free_motion(robot, *turning_state(robot)), np.linspace(0, 1, 42)
    reference = solve(problem, times, Options("dop853", rtol=1e-14, atol=1e-15))[0]
    assert end_error(robot, solve(problem, times, EXACT)[0], reference) < 1e-12
    steps = 1 / np.array([8, 12, 16])
    records = [solve(problem, times, Options("dop853", rtol=1.0, atol=1.0, max_step=h))[0] for h in steps]
    at_end = [end_error(robot, record, reference) for record in records]
    inside = [np.abs(record.v - reference.v).max() for record in records]
    assert np.all(np.abs(np.diff(np.log(at_end)) / np.diff(np.log(steps)) - 8) < 0.5), at_end
    assert np.log(inside[0] / inside[-1]) / np.log(steps[0] / steps[-1]) > 7, inside


@pytest.mark.parametrize("rtol", [1e-6, 1e-9, 1e-12])
def test_dop853_error_follows_its_tolerance_in_few_steps(robot, rtol):
    problem, times = free_motion(robot, *turning_state(robot)), np.linspace(0, 1, 11)
    reference = solve(problem, times, Options("dop853", rtol=1e-14, atol=1e-15))[0]
    record, statistics = solve(problem, times, Options("dop853", rtol=rtol, atol=rtol))
    assert np.abs(record.v - reference.v).max() < 100 * rtol
    theirs = solve(problem, times, Options("DOP853", rtol=rtol, atol=rtol))[1]
    assert statistics.steps <= 0.9 / SAFETY * theirs.steps + 3 # SciPy's: the same control of steps, which it rejects more often


@pytest.mark.parametrize("rtol", [1e-5, 1e-7, 1e-9])
def test_dopri5_error_follows_its_tolerance(robot, rtol):
    problem, times = free_motion(robot, *turning_state(robot)), np.linspace(0, 1, 11)
    reference = solve(problem, times, EXACT)[0]
    record = solve(problem, times, Options("dopri5", rtol=rtol, atol=rtol))[0]
    assert end_error(robot, record, reference) < 100 * rtol
    inside = max(np.abs(ld.difference(robot, reference.q[k], record.q[k])).max() for k in range(11))
    assert inside < 100 * rtol                                # dense output is as good as the steps


@pytest.mark.parametrize("method", SCIPY_METHODS)
def test_scipy_and_ours_agree_to_their_tolerances(robot, method):
    problem, times = free_motion(robot, *turning_state(robot)), np.linspace(0, 1, 6)
    reference = solve(problem, times, EXACT)[0]
    record = solve(problem, times, Options(method, rtol=1e-8, atol=1e-10))[0]
    assert end_error(robot, record, reference) < 2e-5         # global error of multistep methods; RK: see next line
    if method in ("RK45", "DOP853", "Radau"):
        assert end_error(robot, record, reference) < 1e-6
    norms = np.linalg.norm(record.q[:, 3:7], axis=1)
    assert np.abs(norms - 1).max() < 1e-14


def test_charts_are_renewed_when_a_body_turns_many_times(robot):
    """A fast top makes ten turns with SciPy's solver; one chart ends within one turn."""
    body = torque_free_body()
    v = np.array([0.1, 0.0, 12.0, 0.0, 0.0, 0.0])
    times = np.linspace(0, 6, 7)
    ours = solve(free_motion(body, body.neutral(), v), times, Options("dopri5", rtol=1e-11, atol=1e-12))[0]
    theirs = solve(free_motion(body, body.neutral(), v), times, Options("DOP853", rtol=1e-11, atol=1e-12))[0]
    assert np.abs(ld.difference(body, ours.q, theirs.q)).max() < 1e-7


def test_torque_free_body_keeps_its_momentum_and_quaternion():
    """The body tumbles for 60 s about the unstable axis, with rk4 and 1 ms."""
    body = torque_free_body()
    q, v = body.neutral(), np.array([0.01, 2.0, 0.02, 0.1, 0.2, -0.1])
    record = solve(free_motion(body, q, v), np.linspace(0, 60, 121), Options("rk4", step=1e-3))[0]
    h = ld.momentum(body, record.q, record.v)
    assert np.abs(h[:, 3:] - h[0, 3:]).max() < 1e-10 * np.abs(h[0]).max()
    assert np.abs(h[:, :3] - h[0, :3]).max() < 1e-10 * np.abs(h[0]).max()
    assert np.abs(np.linalg.norm(record.q[:, 3:7], axis=1) - 1).max() < 1e-14
    assert np.abs(record.v[:, :3]).min(axis=0)[1] < 0.5       # it did flip


def test_momentum_of_a_floating_robot_without_gravity():
    robot = floating_robot(gravity=(0.0, 0.0, 0.0))
    record = solve(free_motion(robot, *turning_state(robot)), np.linspace(0, 5, 51), Options("rk4", step=1e-3))[0]
    h = ld.momentum(robot, record.q, record.v)
    assert np.abs(h - h[0]).max() < 1e-9 * np.abs(h[0]).max()


def test_outputs_fall_on_their_times_whatever_the_step(robot):
    """Steps of 3 ms and outputs every 10 ms: steps between outputs are equal."""
    problem, times = free_motion(robot, *turning_state(robot)), np.linspace(0, 0.5, 51)
    fine = solve(problem, times, EXACT)[0]
    coarse = solve(problem, times, Options("rk4", step=3e-3))[0]
    assert np.abs(ld.difference(robot, fine.q, coarse.q)).max() < 1e-7
    np.testing.assert_array_equal(coarse.t, times)


def test_recorded_accelerations_and_forces_belong_to_the_state(robot):
    for options in (Options("rk4", step=1e-2), Options("dopri5"), Options("Radau")):
        record = solve(free_motion(robot, *turning_state(robot)), np.linspace(0, 1, 8), options)[0]
        tau = ld.inverse_dynamics(robot, record.q, record.v, record.a)
        assert np.abs(tau - record.tau).max() < 1e-12         # torques are zero; rounding of forces of about 30


def test_an_impossible_tolerance_names_the_coordinate(robot):
    with pytest.raises(ComputationError, match=r"step size became too small at t = .* fastest coordinate was"):
        solve(free_motion(robot, *turning_state(robot)), np.array([0.0, 1.0]), Options("dopri5", rtol=1e-30, atol=1e-300))


def test_a_motion_that_overflows_names_the_coordinate(robot):
    q, v = turning_state(robot)
    with pytest.raises(ComputationError, match=r"no longer finite soon after t = .*fastest coordinate was wrist") as caught:
        solve(free_motion(robot, q, 1e6 * v), np.array([0.0, 10.0]), Options("rk4", step=0.1))
    assert caught.value.depends_on_method and "integrator" not in str(caught.value)          # nothing has been tried


@pytest.mark.parametrize("method", ["rk4", "dopri5", "rodas5p", "Radau", "variational"])
@pytest.mark.parametrize("end, is_lost", [(9.0, False), (12.0, True)])
def test_a_motion_beyond_1e12_is_an_error_with_the_time(method, end, is_lost):
    """A free body at 1e11 m/s passes 1e12 m at 10 s."""
    body, v = torque_free_body(), np.array([0.0, 0.0, 0.0, 1e11, 0.0, 0.0])
    problem, times, options = free_motion(body, body.neutral(), v), np.arange(0.0, end + 0.5), Options(method, step=0.5)
    if is_lost:
        with pytest.raises(ComputationError, match=r"beyond 1e12 \(rad or m\) at t = 1[01] s"):
            solve(problem, times, options)
    else:
        assert solve(problem, times, options)[0].q[-1, 0] == pytest.approx(9e11, rel=1e-9)


@pytest.mark.parametrize("code", [BAD_SIGNAL, SINGULAR, NOT_FINITE])
def test_a_motion_that_is_lost_names_the_joint_of_the_largest_force(robot, code):
    """A gain of 1e300 on one joint was attributed to another, since velocities and then other forces are NaN everywhere."""
    problem = free_motion(robot, *turning_state(robot))
    work, worst = problem.workspace(), len(robot.v_names) - 2
    work.v[:], work.tau[:], work.tau[worst] = np.nan, np.nan, -np.inf
    text = str(failure(problem, code, 0.5, work))
    assert f"no longer finite soon after t = 0.5 s; the maximum force was at {robot.v_names[worst]}; see" in text
    work.v[:], work.v[0], work.tau[:], work.tau[worst] = 1.0, 1e20, 1.0, 1e30
    text = str(failure(problem, code, 0.5, work))
    assert f"maximum force was at {robot.v_names[worst]}; the fastest coordinate was {robot.v_names[0]}; see" in text


def test_a_run_continues_the_same_over_chunks(robot, monkeypatch):
    """The loop returns regularly for progress, which must have no effect."""
    problem, times = free_motion(robot, *turning_state(robot)), np.linspace(0, 1, 21)
    whole = solve(problem, times, Options("dopri5"))[0]
    monkeypatch.setattr("liedyn.integrators.solve._FIRST_CHUNK", 1)
    monkeypatch.setattr("liedyn.integrators.solve._CHUNK_SECONDS", 1e-9)
    heard = []
    parts = solve(problem, times, Options("dopri5"), heard.append)[0]
    assert len(heard) > 10 and heard[-1] == 1.0
    assert np.array_equal(whole.q, parts.q) and np.array_equal(whole.supplied_energy, parts.supplied_energy)


def test_the_loop_makes_no_difference_between_a_start_now_and_later(robot):
    """With autonomous dynamics, a run of 1 s equals a run of 0.4 s and one of 0.6 s."""
    problem = free_motion(robot, *turning_state(robot))
    whole = solve(problem, np.array([0.0, 0.4, 1.0]), EXACT)[0]
    later = replace(problem, q=whole.q[1].copy(), v=whole.v[1].copy())
    rest = solve(later, np.array([0.0, 0.6]), EXACT)[0]
    assert np.abs(ld.difference(robot, whole.q[2], rest.q[1])).max() < 1e-11


@pytest.mark.parametrize("method", ["dopri5", "dop853", "rodas5p", "RK45", "Radau", "BDF"])
def test_the_first_step_is_the_same_at_any_time(method):
    """With autonomous dynamics, it depends on the state and on the remaining time."""
    body, v = torque_free_body(), np.array([10.0, 20.0, 30.0, 0.0, 0.0, 0.0])
    problem, steps = free_motion(body, body.neutral(), v), []
    for t in (0.0, 2.0**20):
        stepper = _stepper_class(method)(problem, SegmentStart(t, problem.q, problem.v), t + np.array([0.0, 1.0]),
                                         Options(method, rtol=1e-8, atol=1e-10), None)
        stepper.take_steps(1)
        steps.append(stepper.state.clock[T_NOW] - t)
    assert 0.0 < steps[0] < 0.1 and steps[1] == pytest.approx(steps[0], rel=1e-4)          # rounding of 2^20 s is 2e-10 s
