"""Linear systems of mechanisms in independent coordinates, and their equilibria."""
from pathlib import Path

import numpy as np
import pytest

import liedyn as ld
import loop_zoo
from liedyn.analysis.configurations import find_equilibrium
from liedyn.analysis.linearize import linearize, linearize_scenario
from liedyn.analysis.operating_point import partition_coordinates, prepare
from liedyn.errors import ComputationError, UsageError

ROBOTS = Path(__file__).parents[2] / "robots"
BODY = "mass: 1.3, com: [0.02, -0.01, -0.4], inertia: [0.06, 0.05, 0.02]"


@pytest.fixture
def load(tmp_path):
    def of(text: str):
        (tmp_path / "robot.yaml").write_text(text)
        return ld.load(tmp_path / "robot.yaml")
    return of


def pendulums(load):
    """The same body on a ball joint, and free on a ball closure."""
    joint = load(f"links: {{body: {{{BODY}}}}}\njoints: {{pivot: {{type: ball, parent: world, child: body, damping: 0.1}}}}\n")
    free = load(f"base: floating\nlinks: {{body: {{{BODY}}}}}\nloops: {{pivot: {{type: ball, a: world, b: body}}}}\n")
    return joint, free


def test_a_pendulum_on_a_closure_is_one_on_a_joint(load, worst):
    """Spinning, too: with the body's turns for coordinates both systems have the same matrices."""
    joint, free = pendulums(load)
    rng = np.random.default_rng(0)
    u = rng.standard_normal(4)
    u, w, tau = u / np.linalg.norm(u), rng.standard_normal(3), rng.standard_normal(3)
    alone = linearize(joint, u, w, tau, passive=False)
    tied = linearize(free, np.r_[0, 0, 0, u], np.r_[w, 0, 0, 0], np.r_[tau, 0, 0, 0], independent="*.w?", passive=False)
    assert worst("pendulum on a closure, A", np.abs(alone.A - tied.A).max()) < 1e-10
    assert np.abs(alone.B - tied.B[:, :3]).max() < 1e-10
    assert tied.states == ("q.base.wx", "q.base.wy", "q.base.wz", "v.base.wx", "v.base.wy", "v.base.wz")
    chosen = linearize(free, np.r_[0, 0, 0, u], np.r_[w, 0, 0, 0], np.r_[tau, 0, 0, 0], passive=False)
    assert len(chosen.states) == 6 and chosen.outputs == tuple(f"q.{name}" for name in free.v_names)


def test_hanging_pendulum_has_the_same_eigenvalues(load, worst):
    joint, free = pendulums(load)
    u = np.array([0.1, 0.05, 0, np.sqrt(1 - 0.0125)])
    tied = find_equilibrium(free, np.r_[0, 0, 0, u]).system
    # the free body has no damping
    alone = linearize(joint, find_equilibrium(joint, u).q, np.zeros(3), np.zeros(3), passive=False)
    ours, theirs = (np.sort_complex(np.round(x.eigenvalues**2, 12)) for x in (tied, alone))
    assert worst("hanging pendulum, eigenvalues", np.abs(ours - theirs).max()) < 1e-10


def four_bar():
    model = ld.load(ROBOTS / "four_bar.yaml")
    q = ld.project_configuration(model, np.array([0.4, -1.4, -1.8]), prescribed=np.array([True, False, False]))
    return model, q


def test_a_perturbed_motion_of_a_four_bar(worst):
    """dx/dt = A(t) x along the motion says where a perturbed one goes, up to second order."""
    from scipy.integrate import solve_ivp

    model, q0 = four_bar()
    v0 = ld.project_velocity(model, q0, np.array([3.0, 0, 0]), prescribed=np.array([True, False, False]))
    times = np.linspace(0.0, 0.3, 61)

    def motion(q, v):
        def rate(t, y):
            return np.r_[y[3:], ld.constrained_forward_dynamics(model, y[:3], y[3:], np.zeros(3)).a]
        return solve_ivp(rate, (0, 0.3), np.r_[q, v], method="DOP853", rtol=1e-12, atol=1e-13, t_eval=times).y.T

    base, phi = motion(q0, v0), np.eye(2)
    A = [linearize(model, y[:3], y[3:], np.zeros(3), independent="crank").A for y in base]
    h = 2 * (times[1] - times[0])
    for k in range(0, 60, 2):
        k1 = A[k] @ phi
        k2 = A[k + 1] @ (phi + h / 2 * k1)
        k3 = A[k + 1] @ (phi + h / 2 * k2)
        phi = phi + h / 6 * (k1 + 2 * k2 + 2 * k3 + A[k + 2] @ (phi + h * k3))
    errors, dx = [], np.array([0.3, -1.0])
    only = np.array([True, False, False])
    for size in (0.02, 0.01):
        q = ld.project_configuration(model, q0 + size * dx[0] * only, prescribed=only)
        v = ld.project_velocity(model, q, v0 + size * dx[1] * only, prescribed=only)
        off = (motion(q, v)[-1] - base[-1])[[0, 3]] / size - phi @ dx
        errors.append(np.abs(off).max() / np.abs(phi @ dx).max())
    assert worst("four-bar, perturbed motion", errors[1]) < 0.05
    assert 1.7 < errors[0] / errors[1] < 2.3


def test_two_inputs_of_a_five_bar():
    model = ld.load(ROBOTS / "five_bar.yaml")
    found = find_equilibrium(model, ld.project_configuration(model, [-2.2, 1.3, -0.9, -1.3]))
    system = linearize(model, found.q, np.zeros(4), np.zeros(4), inputs=["tau.left", "tau.right"], independent=["left", "right"],
                       outputs=["q.*", "p.tool.x", "p.tool.z"])
    assert system.states == ("q.left", "q.right", "v.left", "v.right")
    s = np.linalg.svd(system.B, compute_uv=False)
    assert len(s) == 2 and s[1] > 1e-2 * s[0] and system.controllable == 4
    # outputs move as the mechanism does
    for k in range(2):
        held, d = np.array([True, False, True, False]), np.zeros(4)
        d[2 * k] = 1e-5
        there = [ld.project_configuration(model, found.q + s * d, prescribed=held) for s in (1, -1)]
        moved = ld.link_pose(model, there[0], "tool") - ld.link_pose(model, there[1], "tool")
        np.testing.assert_allclose(system.C[4:, k], moved[[0, 2], 3] / 2e-5, atol=1e-8)


SCENARIOS = {
    "free five-bar": ("five_bar", """initial: {q: {left: -2.2, left_elbow: 1.3, right: -0.9, right_elbow: -1.3}, v: {left: 1.0}}
""", 0.05),
    "servos": ("five_bar", """initial: {q: {left: -2.2, left_elbow: 1.3, right: -0.9, right_elbow: -1.3}}
joints:
  left: {torque: {pd: {kp: 2, kd: 0.1, target: "-2.2 + 0.2*sin(3*t)"}}}
  right: {prescribe: {acceleration: "0.5*cos(2*t)"}}
external_forces: [{link: tool, frame: local_world_aligned, wrench: [0, 0, 0, 0.3, 0, "0.2*q(left)"]}]
""", 0.1),
    "overconstrained": ("bennett", "initial: {q: {pin_1: 1.0, pin_2: 2.3, pin_3: -1.0}, v: {pin_1: 0.5}}\n", 0.05),
    "platform": ("stewart", "", 0.0),
}


@pytest.fixture
def write(tmp_path):
    def file(robot: str, scenario: str) -> Path:
        path = tmp_path / "scenario.yaml"
        path.write_text(f"robot: {ROBOTS / robot}.yaml\nduration: 1\noutput_step: 0.01\n{scenario}")
        return path
    return file


@pytest.mark.parametrize("name", SCENARIOS)
def test_against_differences_of_the_scenario(write, worst, name):
    robot, scenario, at = SCENARIOS[name]
    result = linearize_scenario(write(robot, scenario), at=at, outputs=["q.*", "a.*", "tau.*"], verify=True)
    for matrix, compared in result.differences.items():
        worst(f"constrained linearization, {matrix}", compared.excess, name)
        assert compared.sound, f"{matrix}: {compared}"


def test_equilibrium_on_the_constraints(write):
    path = write("five_bar", SCENARIOS["free five-bar"][1])
    result = linearize_scenario(path, equilibrium=True, verify=True)
    q, model = result.here.q, result.model
    assert np.abs(ld.constraint_residual(model, q)).max() < 1e-10
    assert np.abs(ld.constrained_forward_dynamics(model, q, np.zeros(4), np.zeros(4)).a).max() < 1e-6
    assert all(compared.sound for compared in result.differences.values())
    squares = result.system.eigenvalues**2               # nothing damps it: they come in pairs of opposite sign
    assert np.abs(squares.imag).max() < 1e-8 * np.abs(squares).max()
    held = linearize_scenario(path, equilibrium=True, hold=["left", "right"])
    np.testing.assert_allclose(held.here.q, prepare(path).problem.q, atol=1e-9)        # as the scenario closed it
    assert set(held.offset) == {"tau.left", "tau.right"}
    tau = np.zeros(4)
    tau[[0, 2]] = held.offset["tau.left"], held.offset["tau.right"]
    assert np.abs(ld.constrained_forward_dynamics(held.model, held.here.q, np.zeros(4), tau).a).max() < 1e-6


def test_charts():
    case = loop_zoo.looped_of("closed twice, floating")
    model, constraint_motion = case.model, case.constraint_motion
    q, v, _, _ = loop_zoo.motion(case)
    none = np.zeros(model.nv, dtype=bool)
    found = partition_coordinates(model, q, v, none, constraint_motion)
    A = ld.constraint_jacobian(model, q, constraint_motion=constraint_motion)
    assert len(found.index) == model.nv - np.linalg.matrix_rank(A, tol=1e-8)
    np.testing.assert_allclose(A @ found.Z, 0.0, atol=1e-10 * np.abs(found.Z).max())
    np.testing.assert_array_equal(found.Z[found.index], np.eye(len(found.index)))
    np.testing.assert_array_equal(found.G[found.index], 0.0)
    assert np.abs(found.Z).max() < 20                     # none of the chosen ones hardly moves


def test_errors(load):
    model, q = four_bar()
    zero = np.zeros(3)
    with pytest.raises(ComputationError, match=r"q violates the constraints: the residual of pin\.v. is 0"):
        linearize(model, q + 0.1, zero, zero)
    with pytest.raises(ComputationError, match=r"v violates the constraints: the residual of pin\..* .project_velocity corrects "
                                               r"it"):
        linearize(model, q, zero + 1.0, zero)
    with pytest.raises(UsageError, match="no independent coordinate matches 'elbow'; the names are crank"):
        linearize(model, q, zero, zero, independent="elbow")
    with pytest.raises(UsageError, match="knee cannot be independent, since other coordinates determine it; the mechanism has 1"):
        linearize(model, q, zero, zero, independent=["crank", "knee"])
    with pytest.raises(ComputationError, match="other prescribed coordinates determine the motion of knee; the mech"):
        linearize(model, q, zero, zero, a=zero, prescribed=np.array([True, True, False]))
    with pytest.raises(UsageError, match="independent coordinates require a robot with constraints; this robot has none"):
        linearize(ld.load(ROBOTS / "double_pendulum.yaml"), zero[:2], zero[:2], zero[:2], independent="*")
    stuck = load("links: {a: {mass: 1, inertia: [1, 1, 1]}}\n"
                 "joints: {j: {type: continuous, parent: world, child: a, axis: [0, 0, 1]}}\n"
                 "loops: {glue: {type: weld, a: world, b: a}}\n")
    with pytest.raises(ComputationError, match="has no degree of freedom in this configuration: there is nothing"):
        linearize(stuck, zero[:1], zero[:1], zero[:1])
