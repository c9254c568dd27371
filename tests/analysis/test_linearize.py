"""The linear system of a robot or a scenario: against differences, and against what small perturbations of a motion do."""
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import liedyn as ld
import zoo
from liedyn.analysis.linearize import differences, linearize, linearize_scenario
from liedyn.analysis.operating_point import instant, prepare, state_at, with_fixed_inputs
from liedyn.analysis.tangent_system import linear_system
from liedyn.dynamics.manifold import coordinate_gradient, tangent_gradient
from liedyn.errors import ComputationError, ConfigurationError, ModelError, ShapeError, UsageError
from liedyn.integrators.problem import InitialValueProblem, Options
from liedyn.integrators.solve import solve
from liedyn.kernels.simulation.signals import ACCELERATION, TORQUE, InputSchedule, Signals
from liedyn.simulation.control.law_derivatives import signal_gradient
from liedyn.simulation.name_binding import v_to_q_indices

ROOT = Path(__file__).parents[2]
FIXED = """
links:
  upper: {mass: 1.0, com: [0, 0, -0.25], inertia: [0.02, 0.02, 0.001]}
  lower: {mass: 0.8, com: [0, 0.02, -0.2], inertia: [0.01, 0.01, 0.001]}
  hand: {mass: 0.2, com: [0, 0.01, -0.05], inertia: [0.001, 0.002, 0.0015]}
joints:
  shoulder: {type: revolute, parent: world, child: upper, axis: [0, 1, 0], damping: 0.2, limits: {lower: -9, upper: 9}}
  elbow: {type: revolute, parent: upper, child: lower, origin: {xyz: [0, 0, -0.5]}, axis: [0.6, 0.8, 0],
          limits: {lower: -9, upper: 9}}
  wrist: {type: ball, parent: lower, child: hand, origin: {xyz: [0, 0, -0.4]}, damping: 0.01}
"""
FLOATING = """
base: floating
links:
  body: {mass: 2, com: [0.01, 0, 0], inertia: [0.03, 0.02, 0.05]}
  arm: {mass: 0.5, com: [0, 0, -0.2], inertia: [0.01, 0.01, 0.002]}
  hand: {mass: 0.2, com: [0, 0.02, -0.05], inertia: [0.001, 0.002, 0.0015]}
joints:
  swing: {type: revolute, parent: body, child: arm, axis: [0, 1, 0], origin: {xyz: [0.1, 0, -0.1]}, stiffness: 2,
          limits: {lower: -9, upper: 9}}
  twist: {type: ball, parent: arm, child: hand, origin: {xyz: [0, 0, -0.4]}}
actuators:
  jet: {link: body, position: [0.1, 0.05, 0], axis: [0.1, 0, 1], torque_ratio: 0.02}
"""
# name: robot, scenario, states that no perturbation may touch (prescribed at position or velocity level)
SCENARIOS = {
    "fixed, free motion": (FIXED, "initial: {q: {shoulder: 0.5, elbow: -0.8}, v: {elbow: 2, wrist: [1, -3, 5]}}\n", ()),
    "floating, free motion": (FLOATING, "initial: {v: {base: [1, 2, -3, 0.5, 0, 2], swing: 2, twist: [3, -1, 4]}}\n"
                              "gravity: [1, 0, -9]\n", ()),
    "hybrid, every law": (FIXED, """initial: {q: {elbow: 0.4}, v: {elbow: 1.0, wrist: [1, -2, 0.5]}}
joints:
  shoulder: {prescribe: {acceleration: "2*sin(5*t)"}}
  elbow: {torque: {pd: {kp: 5, kd: 0.5, target: "0.2*t", feedforward: "0.5*q*q(shoulder) + sin(v)"}}}
  wrist: {torque: ["-0.02*v", "0.05*q(wrist.qz)*cos(2*t)", "0.01*t - 0.03*v(elbow)"]}
external_forces:
  - {link: hand, frame: local_world_aligned, wrench: [0.02, 0, 0.03, 0.4, "0.5*sin(q(elbow))", 0.3], point: [0, 0.1, -0.1]}
  - {link: lower, frame: local, wrench: [0, 0, 0, "0.3*v(shoulder)", 0, 0], point: [0, 0, -0.3]}
""", ()),
    "floating, hybrid": (FLOATING, """initial: {v: {base: [0.5, 1, -1, 0.3, 0, 1], twist: [2, -1, 3]}}
joints:
  swing: {prescribe: {acceleration: "3*cos(4*t)"}}
  twist: {torque: ["0.01*q(swing)", 0, "-0.01*v"]}
external_forces:
  - {link: body, frame: local_world_aligned, wrench: [0, 0, 0, "-3*q(base.px)", "0.2*v(base.wy)", "25 + 0.5*q(base.qx)"]}
actuators: {jet: "1 + 0.5*q(base.qy) - 0.2*v(swing)"}
""", ()),
    "prescribed at every level": (FLOATING, """initial: {v: {base: [0.5, 1, -1, 0.3, 0, 1]}}
joints:
  swing: {prescribe: {position: "0.4*sin(3*t)"}}
  twist: {prescribe: {velocity: ["sin(t)", 0.5, "cos(2*t)"]}}
""", ("q.swing", "v.swing", "v.twist.wx", "v.twist.wy", "v.twist.wz")),
}


@pytest.fixture
def write(tmp_path):
    def file(robot: str, scenario: str, head: str = "duration: 1\n") -> Path:
        (tmp_path / "robot.yaml").write_text(robot)
        (tmp_path / "s.yaml").write_text("robot: robot.yaml\n" + head + scenario)
        return tmp_path / "s.yaml"
    return file


# --- against perturbed motions ----------------------------------------------------------------------------------------

T, NODES = 0.4, 40
TIGHT = Options("dopri5", rtol=1e-13, atol=1e-14)


def motion(setup, times, dx=None):
    """q, v at times, from the initial state or one deviated by dx = [dq; dv]."""
    nv, problem = setup.model.nv, setup.problem
    if dx is not None:
        problem = replace(problem, q=ld.integrate(setup.model, problem.q, dx[:nv]), v=problem.v + dx[nv:])
    record, _ = solve(problem, times, TIGHT)
    return record.q, record.v


def transition(setup, inputs=None):
    """Phi(T) of dx/dt = A(t) x along the motion and, for constant u, its response, by the classical Runge-Kutta method."""
    times = np.linspace(0, T, 2 * NODES + 1)
    q, v = motion(setup, times)
    systems = []
    for k, t in enumerate(times):
        rest = with_fixed_inputs(setup.problem, instant(setup.problem, t, q[k], v[k]))
        systems.append(linear_system(setup, rest, instant(rest, t, q[k], v[k])))
    n, h = 2 * setup.model.nv, T / NODES
    x = np.hstack([np.eye(n), np.zeros((n, systems[0].B.shape[1]))])

    def rate(s, x):
        return s.A @ x + np.hstack([np.zeros((n, n)), s.B])

    for first, middle, last in zip(systems[:-2:2], systems[1::2], systems[2::2], strict=True):
        a = rate(first, x)
        b = rate(middle, x + h / 2 * a)
        c = rate(middle, x + h / 2 * b)
        x = x + h / 6 * (a + 2 * b + 2 * c + rate(last, x + h * c))
    return x[:, :n], x[:, n:], systems[0]


@pytest.mark.parametrize("name", SCENARIOS)
def test_predicts_a_perturbed_motion_to_second_order(name, write, worst):
    """Halving the perturbation quarters the error of the prediction."""
    robot, scenario, untouched = SCENARIOS[name]
    setup = prepare(write(robot, scenario))
    phi, _, system = transition(setup)
    dx = np.random.default_rng(5).standard_normal(len(phi)) * np.isin(system.states, untouched, invert=True)
    ends = np.array([0.0, T])
    q0, v0 = motion(setup, ends)
    errors = []
    for size in (0.02, 0.01, 0.005):
        q, v = motion(setup, ends, size * dx)
        moved = np.concatenate([ld.difference(setup.model, q0[-1], q[-1]), v[-1] - v0[-1]])
        errors.append(np.linalg.norm(moved - size * phi @ dx))
        assert np.linalg.norm(moved) > 0.5 * size
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    worst("linearization: |order of the prediction's error - 2|", np.abs(orders - 2).max(), name)
    assert (orders > 1.9).all() and (orders < 2.15).all(), (orders, errors)


def test_predicts_perturbed_inputs_to_second_order(write, worst):
    """Prescribed acceleration, force and thrust changed by a constant."""
    scenario = """initial: {{v: {{base: [0.5, 1, -1, 0.3, 0, 1], twist: [2, -1, 3]}}}}
joints:
  swing: {{prescribe: {{acceleration: "3*cos(4*t) + {0}"}}}}
  twist: {{torque: ["0.02*{0}", 0, "-0.01*v"]}}
actuators: {{jet: "20 + {0}"}}
"""
    setup = prepare(write(FLOATING, scenario.format(0)))
    _, response, system = transition(setup)
    u = np.isin(system.inputs, ("a.swing", "thrust.jet")) + 0.02 * np.isin(system.inputs, ("tau.twist.mx",))
    assert np.count_nonzero(u) == 3
    ends = np.array([0.0, T])
    q0, v0 = motion(setup, ends)
    errors = []
    for size in (0.1, 0.05):
        q, v = motion(prepare(write(FLOATING, scenario.format(size))), ends)
        moved = np.concatenate([ld.difference(setup.model, q0[-1], q[-1]), v[-1] - v0[-1]])
        errors.append(np.linalg.norm(moved - size * response @ u))
    order = np.log2(errors[0] / errors[1])
    worst("linearization: |order of the prediction's error - 2|", abs(order - 2), "inputs")
    assert 1.9 < order < 2.15


def test_the_discretization_is_a_step_of_the_simulation(worst):
    """From rest, under held inputs, to second order; on a manifold and with a prescribed trolley."""
    base = ["duration=0.5", "output_step=0.5", "joints.trolley.prescribe.acceleration={0}", "joints.hook.torque=[{1}, {2}, 0]",
            "integrator={{method: dopri5, rtol: 1e-13, atol: 1e-14}}"]
    path, errors = ROOT / "configs/crane.yaml", []
    result = linearize_scenario(path, overrides=[text.format(0, 0, 0) for text in base])
    u = np.array([1.0, 800, -500, 0])
    for size in (0.2, 0.1):
        run = ld.run_scenario(path, [text.format(*size * u) for text in base])
        moved = np.concatenate([ld.difference(run.model, run.q[0], run.q[-1]), run.v[-1] - run.v[0]])
        errors.append(np.linalg.norm(moved - size * result.Bd @ u))
        assert np.linalg.norm(moved) > 0.1 * size
    assert 3.7 < errors[0] / errors[1] < 8.3, errors                 # second order, or third where symmetry cancels it
    worst("linearization: error of a discrete step, relative", errors[1] / np.linalg.norm(0.1 * result.Bd @ u))


# --- against differences ------------------------------------------------------------------------------------------------

def problem_of(model, q, v, a, tau, prescribed, passive=True) -> InitialValueProblem:
    """A problem of constant accelerations and forces."""
    nv = model.nv
    constants = Signals(np.zeros(nv, dtype=np.int64), np.arange(nv), np.ones(nv, dtype=np.int64), np.empty(0), np.empty(0),
                        np.empty(0, dtype=np.int64), np.where(prescribed, a, tau))
    none = np.empty(0, dtype=np.int64)
    schedule = InputSchedule(np.where(prescribed, ACCELERATION, TORQUE), np.arange(nv), np.full(nv, -1), np.zeros(nv),
                             np.zeros(nv),
                        v_to_q_indices(model), none, none, np.empty(0), np.empty(0), none, *np.empty((4, 0)))
    return InitialValueProblem(model=model, schedule=schedule, signals=constants, q=q, v=v, stack_size=3, passive=passive)


@pytest.mark.parametrize("name", zoo.ROBOTS)
def test_agrees_with_differences_on_every_joint_kind(name, worst):
    """1e-8: extrapolated differences of steps of 0.02 and less, with rounding of 1e-16 / 3e-4 against entries of any size."""
    model = zoo.model_of(name)
    for seed, share in ((0, 0.0), (1, 0.4), (2, 1.0)):
        q, v, a, tau = zoo.state(model, seed)
        prescribed = np.random.default_rng(seed).random(model.nv) < share
        system = linearize(model, q, v, tau, a=a, prescribed=prescribed, outputs=["q.*", "v.*", "a.*", "tau.*", "p.*"])
        problem = problem_of(model, q, v, a, tau, prescribed)
        found = differences(problem, instant(problem, 0.0, q, v), None, system)
        assert max(one.off for one in found.values()) < 1e-8, found
        worst("linearization against differences, relative", max(one.off for one in found.values()), name)


@pytest.mark.parametrize("name", SCENARIOS)
@pytest.mark.parametrize("open_loop", [False, True])
def test_agrees_with_differences_of_every_law(name, open_loop, write, worst):
    robot, scenario, _ = SCENARIOS[name]
    result = linearize_scenario(write(robot, scenario), at=0.3, verify=True, open_loop=open_loop,
                                outputs=["q.*", "v.*", "a.*", "tau.*", "p.*"])
    assert max(one.off for one in result.differences.values()) < 1e-8, result.differences
    worst("linearization against differences, relative", max(one.off for one in result.differences.values()), name)


def test_open_loop_leaves_the_laws_out(write):
    path = write(FIXED, SCENARIOS["hybrid, every law"][1])
    closed, opened = (linearize_scenario(path, at=0.3, open_loop=way).system for way in (False, True))
    assert np.abs(closed.A - opened.A).max() > 1 and np.array_equal(closed.B, opened.B)
    pd = linearize_scenario(write(FIXED, "joints: {elbow: {torque: {pd: {kp: 5, kd: 0.5, target: 0}}}}\n")).system
    bare = linearize_scenario(write(FIXED, "")).system
    B = bare.B[:, list(bare.inputs).index("tau.elbow")]
    gains = 5 * np.array([n == "q.elbow" for n in bare.states]) + 0.5 * np.array([n == "v.elbow" for n in bare.states])
    np.testing.assert_allclose(pd.A, bare.A - np.outer(B, gains), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("config, at", [("panda_hybrid", 2.1), ("hexarotor_circle", 4.2), ("showcase", 5.5),
                                        ("humanoid_dive", 0.5), ("ur5_track", 1.0)])
def test_agrees_with_differences_on_the_scenarios(config, at, worst):
    result = linearize_scenario(ROOT / f"configs/{config}.yaml", at=at, verify=True)
    assert max(one.off for one in result.differences.values()) < 1e-7, result.differences        # the humanoid is stiff
    worst("linearization against differences, relative", max(one.off for one in result.differences.values()), config)


# --- closed forms ---------------------------------------------------------------------------------------------------------

def test_cart_pole_is_the_textbooks():
    model = ld.load(ROOT / "robots/cart_pole.yaml")
    s = linearize(model, np.zeros(2), np.zeros(2), np.zeros(2), inputs=["tau.cart"], outputs=["p.tip.x", "q.pole"])
    M, m, l, g = 1.0, 0.1, 0.5, 9.81
    J = m * (3 * 0.005**2 + 1) / 12 + m * l**2                     # about the joint
    d = (M + m) * J - (m * l)**2
    A = np.zeros((4, 4))
    A[:2, 2:], A[2, 1], A[3, 1] = np.eye(2), -(m * l)**2 * g / d, (M + m) * m * g * l / d
    np.testing.assert_allclose(s.A, A, atol=1e-11)
    np.testing.assert_allclose(s.B[:, 0], [0, 0, J / d, -m * l / d], atol=1e-12)
    np.testing.assert_allclose(s.C, [[0, 1, 0, 0], [1, 1, 0, 0]], atol=1e-12)      # the tip is 1 m above the joint
    assert s.controllable == 4 and s.observable == 4 and s.stability == "unstable"
    assert s.modes[0].eigenvalue == pytest.approx(np.sqrt(A[3, 1]), rel=1e-9)
    assert s.modes[1].count == 2 and s.modes[1].eigenvalue == 0 and s.modes[1].participation["cart"] > 0.999


def test_a_crane_with_a_prescribed_trolley_is_a_pendulum():
    s = linearize_scenario(ROOT / "configs/crane.yaml", outputs=["tau.trolley", "p.load.x"]).system
    assert s.inputs[0] == "a.trolley" and s.outputs == ("tau.trolley", "p.load.x")
    period = 1 / s.modes[1].frequency
    assert period == pytest.approx(4.113, abs=5e-4)                 # what the comments of the scenario say
    k = list(s.states).index("v.hook.wy")
    assert s.B[k, 0] * 4.2 == pytest.approx(1, rel=0.05)            # thrown back by the trolley: a point mass would have 1 / l
    assert s.D[0, 0] == pytest.approx(81.7, abs=0.1)                # it moves the trolley and little else
    assert not s.moving[[0, 4]].any() and s.moving.sum() == 6


def test_the_cart_poles_gains_are_the_regulator_of_its_linear_system():
    """What the comments of the scenario promise."""
    from scipy.linalg import solve_continuous_are

    path = ROOT / "configs/cart_pole.yaml"
    opened, closed = (linearize_scenario(path, equilibrium=True, open_loop=x, inputs="tau.cart").system for x in (True, False))
    gains = opened.B.T @ solve_continuous_are(opened.A, opened.B, np.diag([4.0, 10, 1, 1]), [[0.2]]) / 0.2
    np.testing.assert_allclose(-gains, [[4.47, 48.5, 6.28, 12.5]], rtol=2e-3)
    assert opened.modes[0].eigenvalue == pytest.approx(3.97, abs=5e-3)
    assert closed.stability == "stable" and closed.modes[0].time_constant == pytest.approx(0.65, abs=0.01)
    end = ld.run_scenario(ROOT / "configs/cart_pole.yaml")
    assert np.abs(end.q[-1]).max() < 1e-3 and np.abs(end.q).max() > 0.3


def test_the_cranes_load_stands_still_at_the_end():
    run = ld.run_scenario(ROOT / "configs/crane.yaml")
    swing = 2 * np.abs(np.arcsin(run.q[:, 2]))
    assert run.q[-1, 0] == pytest.approx(4, abs=0.01)
    assert np.rad2deg(swing.max()) == pytest.approx(1.4, abs=0.05) and np.rad2deg(swing[run.t > 12.7].max()) < 1.5e-3


def test_a_spinning_body_carries_its_deviations():
    """Free of gravity and forces: dq/dt = dv - ad_V dq, and a body that turns about an axis has dw/dt of Euler's equation."""
    model = ld.load(ROOT / "robots/asymmetric_body.yaml", gravity=(0, 0, 0))
    V = np.array([0.3, -2.0, 0.5, 0.1, 0.2, -0.4])
    s = linearize(model, model.neutral(), V, np.zeros(6))
    w, v = (np.array([[0, -c, b], [c, 0, -a], [-b, a, 0]]) for a, b, c in (V[:3], V[3:]))
    np.testing.assert_allclose(s.A[:6, :6], -np.block([[w, np.zeros((3, 3))], [v, w]]), atol=1e-14)
    M = ld.mass_matrix(model, model.neutral())
    inertia = M[:3, :3]
    c = np.array([M[4, 2], -M[3, 2], M[3, 1]]) / M[3, 3]
    if np.abs(c).max() < 1e-12:
        h = inertia @ V[:3]
        H = np.array([[0, -h[2], h[1]], [h[2], 0, -h[0]], [-h[1], h[0], 0]])
        np.testing.assert_allclose(s.A[6:9, 6:9], np.linalg.solve(inertia, H - w @ inertia), atol=1e-12)


# --- derivatives of signals -----------------------------------------------------------------------------------------------

@pytest.mark.parametrize("law", [
    "q*v(shoulder)", "sin(3*q)*t + q(wrist.qy)**2", "exp(-v)*cos(q(shoulder)) - 2*t*q", "abs(v) + min(q, 3*v)",
    "sqrt(1 + q*q)/(2 + v(wrist.wx))", "atan2(q, 1 + v) + tanh(q(shoulder))", "t**2", "3"])
def test_signal_gradients_agree_with_differences(write, law):
    setup = prepare(write(FIXED, f"joints: {{elbow: {{torque: '{law}'}}}}\n"))
    problem, model = setup.problem, setup.model
    q, v, _, _ = zoo.state(model, 3)
    v[1] = 0.7
    k, h = int(problem.schedule.signal[1]), 1e-5

    def value(dx):
        return instant(problem, 0.3, ld.integrate(model, q, dx[:5]), v + dx[5:]).tau[1]

    expected = [(value(h * e) - value(-h * e)) / (2 * h) for e in np.eye(10)]
    np.testing.assert_allclose(signal_gradient(problem, k, 0.3, q, v), expected, atol=1e-8)


@pytest.mark.parametrize("law", ["-2*q*min(since(kick), 5)", "-q*t_phase + 0.1*v"])
def test_a_law_that_reads_the_state_and_a_clock(law):
    """Its derivative was that of the clock, too, as if time ran with the coordinate."""
    laws = {"elbow": {"torque": law}}
    scenario = {"robot": str(ROOT / "robots/double_pendulum.yaml"), "duration": 1, "output_step": 0.1, "joints": laws,
                "phases": {"first": {}}, "events": {"kick": {"at": 0.2, "do": "record"}}, "initial": {"q": {"shoulder": 0.4}}}
    differences = linearize_scenario(scenario, at=0.5, verify=True).differences
    assert all(x.off < 1e-9 and x.sound for x in differences.values())


def test_a_law_without_a_derivative_says_so(write):
    path = write(FIXED, "joints: {elbow: {torque: 'sqrt(q)'}}\n")
    with pytest.raises(ComputationError, match=r"s\.yaml:3: .*: the torque of elbow has no derivative with respect to q"):
        linearize_scenario(path)


def test_the_tangent_map_of_the_raw_coordinates():
    model = zoo.model_of("every kind, floating")
    q = zoo.state(model, 1)[0]
    h = 1e-6
    slopes = [(ld.integrate(model, q, h * e) - ld.integrate(model, q, -h * e)) / (2 * h) for e in np.eye(model.nv)]
    each = np.tile(q, (model.nq, 1))
    np.testing.assert_allclose(tangent_gradient(model, each, np.eye(model.nq)), np.transpose(slopes), atol=1e-9)
    w = np.eye(model.nv)
    back = tangent_gradient(model, each[:model.nv], coordinate_gradient(model, each[:model.nv], w))
    np.testing.assert_allclose(back, w, atol=1e-14)


# --- inputs and outputs, times --------------------------------------------------------------------------------------------

def test_names_and_units(write):
    s = linearize_scenario(write(FLOATING, SCENARIOS["floating, hybrid"][1]), outputs=["*"]).system
    assert s.states[:7] == ("q.base.wx", "q.base.wy", "q.base.wz", "q.base.vx", "q.base.vy", "q.base.vz", "q.swing")
    assert s.state_units[:7] == ("rad", "rad", "rad", "m", "m", "m", "rad") and s.state_units[13] == "m/s"
    assert s.inputs[6:] == ("a.swing", "tau.twist.mx", "tau.twist.my", "tau.twist.mz", "thrust.jet")
    assert s.input_units[5:] == ("N", "rad/s^2", "N m", "N m", "N m", "N") and s.input_units[0] == "N m"
    assert s.outputs[-1] == "p.hand.z" and s.output_units[-1] == "m" and len(s.outputs) == 4 * 10 + 9
    assert s.D.shape == (49, 11) and s.C.shape == (49, 20)


def test_default_outputs_and_patterns(write):
    path = write(FIXED, SCENARIOS["hybrid, every law"][1])
    s = linearize_scenario(path).system
    assert s.outputs == ("q.shoulder", "q.elbow", "q.wrist.wx", "q.wrist.wy", "q.wrist.wz", "tau.shoulder") and s.D[-1, 0] > 0
    s = linearize_scenario(path, inputs=["tau.e*", "a.*"], outputs=["p.hand.?", "v.elbow"]).system
    assert s.inputs == ("a.shoulder", "tau.elbow") and s.outputs == ("v.elbow", "p.hand.x", "p.hand.y", "p.hand.z")
    assert s.B.shape == (10, 2) and s.D.shape == (4, 2)
    for what in ("inputs", "outputs"):
        with pytest.raises(UsageError, match=f"no {what[:-1]} matches 'tau.knee'; (there are |did you mean )"):
            linearize_scenario(path, **{what: ["tau.knee"]})


def test_the_time_must_lie_within_the_run(write):
    path = write(FIXED, "")
    for at in (-0.1, 1.01, float("nan")):
        with pytest.raises(UsageError, match="at must be from 0 to 1 s, got "):
            linearize_scenario(path, at=at)
    assert linearize_scenario(path, at=1.0).here.t == pytest.approx(1.0)


def test_a_force_counts_from_the_instant_at_which_it_begins(write):
    """From the right, as everywhere; but at the very end of the run what came before."""
    path = write(FIXED, "external_forces:\n  - {link: hand, wrench: [0, 0, 0, 0, 9, 0], from: 0.5}\n")
    forces = [linearize_scenario(path, at=at).here.f_ext for at in (0.49, 0.5, 1.0)]
    assert [np.abs(f).max() > 1 for f in forces] == [False, True, True]


def test_the_state_is_that_of_the_simulation(write):
    path = write(FIXED, SCENARIOS["hybrid, every law"][1], "duration: 1\noutput_step: 0.1\n")
    run = ld.run_scenario(path)
    here = linearize_scenario(path, at=0.6).here
    for x, y in ((here.q, run.q), (here.v, run.v), (here.a, run.a), (here.tau, run.tau)):
        np.testing.assert_allclose(x, y[6], atol=1e-9)
    _, t, q, v = state_at(prepare(path), 0.0)
    assert t == 0.0 and np.array_equal(q, run.q[0]) and np.array_equal(v, run.v[0])


def test_friction_at_rest_is_told(write):
    robot = FIXED.replace("damping: 0.2", "friction: 0.2")
    result = linearize_scenario(write(robot, ""))
    told = "shoulder: Coulomb friction at low speed acts as a damper"
    assert any(one.message.startswith(told) for one in result.warnings)
    assert not linearize_scenario(write(robot, "passive: false\n")).warnings
    assert not linearize_scenario(write(robot, "initial: {v: {shoulder: 1}}\n")).warnings


@pytest.mark.parametrize("change, error, words", [
    ({"q": np.zeros(3)}, ShapeError, "q has the wrong shape"),
    ({"v": np.zeros((2, 2))}, ShapeError, r"v has the wrong shape: expected \(2,\), got \(2, 2\)"),
    ({"tau": [0, np.nan]}, ConfigurationError, "tau"),
    ({"prescribed": [True, False]}, ShapeError, "a is missing"),
    ({"prescribed": [1, 0], "a": [0, 0]}, ShapeError, "prescribed is a mask over v"),
])
def test_bad_arguments(change, error, words):
    model = ld.load(ROOT / "robots/cart_pole.yaml")
    given = {"q": np.zeros(2), "v": np.zeros(2), "tau": np.zeros(2)} | change
    with pytest.raises(error, match=words):
        linearize(model, given.pop("q"), given.pop("v"), given.pop("tau"), **given)


def test_a_robot_without_joints(write):
    with pytest.raises(ModelError, match="the robot robot has no moving joint: there is nothing to linearize"):
        linearize_scenario(write("links: {a: {mass: 1, inertia: [1, 1, 1]}}\n", ""))


def test_one_pattern_may_stand_alone():
    model = ld.load(ROOT / "robots/cart_pole.yaml")
    s = linearize(model, np.zeros(2), np.zeros(2), np.zeros(2), inputs="tau.cart", outputs="p.tip.?")
    assert s.inputs == ("tau.cart",) and s.outputs == ("p.tip.x", "p.tip.y", "p.tip.z")


EVENTFUL = """
initial: {q: {shoulder: 0.5, elbow: -0.8}, v: {elbow: 2, wrist: [1, -3, 5]}}
phases:
  free: {joints: {shoulder: {torque: "-2*q - 0.3*v"}}}
  driven: {joints: {shoulder: {torque: "-5*sin(q) - 0.1*v + q(elbow)"}}}
events:
  take: {at: 0.2, do: {attach: {link: hand, mass: 0.7, com: [0.1, 0.05, -0.02], inertia: [0.002, 0.003, 0.004]}}}
  latch: {at: 0.3, do: {lock: elbow}}
  go: {at: 0.4, do: {phase: driven}}
  let: {at: 0.7, do: [{unlock: elbow}, {detach: hand}]}
"""


def test_after_events_it_is_the_system_of_that_time(write):
    """Against the same robot and laws without events: with the body, with the elbow prescribed, in the phase that holds then."""
    path = write(FIXED, EVENTFUL, "duration: 1\noutput_step: 0.1\n")
    run = ld.run_scenario(path)
    result = linearize_scenario(path, at=0.5, verify=True)
    here = result.here
    np.testing.assert_allclose(np.r_[here.q, here.v], np.r_[run.q[run.t == 0.5][0], run.v[run.t == 0.5][0]], atol=1e-9)
    assert result.system.inputs[:2] == ("tau.shoulder", "a.elbow") and "tau.elbow" in result.system.outputs
    assert any("phase driven; elbow locked; a body attached to hand" in note for note in map(str, result.warnings))
    assert max(one.off for one in result.differences.values()) < 1e-8
    late, at_once, loaded = linearize_scenario(path, at=0.8), linearize_scenario(path, at=0.3), result.model
    assert late.system.inputs[:2] == ("tau.shoulder", "tau.elbow") and late.model.description == run.model.description
    assert at_once.system.inputs[1] == "a.elbow"              # after what happens at that time
    setup = prepare(write(FIXED, "joints: {shoulder: {torque: -5*sin(q) - 0.1*v + q(elbow)}, "
                                 "elbow: {prescribe: {acceleration: 0}}}\n"))
    setup = replace(setup, model=loaded, problem=replace(setup.problem, model=loaded))
    rest = with_fixed_inputs(setup.problem, instant(setup.problem, 0.0, here.q, here.v))
    system = linear_system(setup, rest, instant(rest, 0.0, here.q, here.v))
    np.testing.assert_allclose(result.system.A, system.A, rtol=0, atol=1e-12 * np.abs(system.A).max())
    np.testing.assert_allclose(result.system.B, system.B, rtol=0, atol=1e-12 * np.abs(system.B).max())
    assert np.abs(ld.mass_matrix(loaded, here.q) - ld.mass_matrix(run.model, here.q)).max() > 1e-3         # the body is felt


def test_what_has_no_linear_system_after_events_is_refused_by_name(write):
    stopped = write(FIXED, "events: {end: {at: 0.4, do: stop}}\n")
    with pytest.raises(UsageError, match=r"the run ends at t = 0\.4 s, by the event end, before at = 0\.5 s"):
        linearize_scenario(stopped, at=0.5)
    pressed = write(FIXED.replace("lower: -9, upper: 9", "lower: -0.1, upper: 0.1", 1),
                    "limits: hard\njoints: {shoulder: {torque: 20}}\n")
    with pytest.raises(UsageError, match=r"shoulder rests at its hard stop at t = 0\.9 s.*use compliant stops, limits: stop"):
        linearize_scenario(pressed, at=0.9)
