"""Robots with nonlinear couplings: equations by hand, reduction with a hundred digits, differences, and special functions."""
from dataclasses import replace

import numpy as np
import pytest
from mpmath import mp, mpf

import liedyn as ld
from exact import exact
from exact_motion import ExactMotion
from liedyn.model.coupling_expression import CouplingFunction, read_expression
from liedyn.model.description import Coordinate, Coupling, Joint, Robot
from liedyn.model.links import Link, Pose
from loop_reference import function_value
from matrices import derivative

G = 9.81


def function(text):
    return read_expression(text, "cam", None)


def cam(lift, m=0.7, inertia=0.02, m_cam=1.0, arm=0.1):
    """A cam about y with its mass off the axis, which lifts a slider by `lift`(cam), with a pendulum on the slider or without."""
    links = (Link("cam", m_cam, (arm, 0.0, 0.0), (0.0, 0.0, 0.0, inertia, 0.0, 0.0)), Link("slider", m, (0.0, 0.03, 0.1)))
    joints = (Joint("cam", "continuous", "world", "cam", axes=((0, 1, 0),), coordinates=(Coordinate(damping=0.03),)),
              Joint("lift", "prismatic", "world", "slider", Pose(translation=(0.1, 0, 0)), axes=((0, 0, 1),),
                    coordinates=(Coordinate(stiffness=40.0, rest=-0.02),)))
    return Robot("cam", links, joints, couplings=(Coupling("valve", (("lift", "", 1.0), ("cam", "", 0.0)), function=lift),))


def arms(coupling, seed=0):
    """A tree of five moving bodies whose joint j3 is a function of j0, and j4 one of j3."""
    rng = np.random.default_rng(seed)
    links, joints = [], []
    for k, parent in enumerate(("world", "b0", "b1", "b0", "b3")):
        A = rng.uniform(-0.3, 0.3, (3, 3))
        S = A @ A.T
        inertia = np.trace(S) * np.eye(3) - S
        links.append(Link(f"b{k}", float(rng.uniform(0.3, 2)), tuple(rng.uniform(-0.2, 0.2, 3)),
                          tuple(inertia[np.triu_indices(3)].tolist())))
        origin = Pose.from_xyz_rpy(rng.uniform(-0.3, 0.3, 3), rng.uniform(-1, 1, 3))
        joints.append(Joint(f"j{k}", ("continuous", "prismatic")[k % 4 == 1], parent, f"b{k}", origin,
                            (tuple(rng.standard_normal(3)),)))
    couplings = (Coupling("first", (("j3", "", 1.0), ("j0", "", 0.0)), function=coupling),
                 Coupling("second", (("j4", "", 1.0), ("j3", "", 0.0)), function=function("0.3*q - 0.2*q**3")))
    return ld.build(Robot("arms", tuple(links), tuple(joints), couplings=couplings))


X = np.linspace(-4.0, 4.0, 21)
FUNCTIONS = {
    "elliptic gear": function("2*atan(0.6*tan(cam/2))"), "cam": function("0.1*(1 - cos(cam))"),
    "straight": function("1.5*cam + 0.1"),
    "constant": function("0.4"), "slope zero": function("0.05*cam**3"), "growing": function("exp(0.5*cam)/(2 + sin(cam))"),
    "table": CouplingFunction(points=tuple(zip(X.tolist(), np.sin(X).tolist(), strict=True)), interpolation="quintic")}
EVERY = pytest.mark.parametrize("name", FUNCTIONS)


def state(model, seed, size=()):
    rng, n = np.random.default_rng(seed), len(model.independent)
    return ld.expand(model, rng.uniform(-1, 1, (*size, n)), *rng.standard_normal((2, *size, n)))


def reduction(model, q):
    """(nv, ny) dv/dy by differences of `expand`."""
    y = ld.reduce(model, q)
    return np.column_stack([derivative(lambda h, k=k: ld.expand(model, y + h * np.eye(len(y))[k]), 1e-3) for k in range(len(y))])


# by hand --------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("angle", [0.7, 0.0, np.pi, 2.4])
def test_a_slider_on_a_cam_by_hand(angle):
    """(I + m l'^2) a + m l' l'' w^2 + (m g + c (l - r)) l' - m_c g x sin(angle) + d w = tau: x is the arm of the cam's mass."""
    e, m, inertia, m_cam, arm, w, tau = 0.05, 0.7, 0.02, 1.0, 0.1, 3.0, 0.4
    model = ld.build(cam(function(f"{e}*(1 - cos(cam))"), m, inertia, m_cam, arm))
    lift, dl, ddl = e * (1 - np.cos(angle)), e * np.sin(angle), e * np.cos(angle)
    gravity_torque = m_cam * G * arm * np.cos(angle)                    # height of the mass: -arm sin(angle)
    a = (tau + gravity_torque - 0.03 * w - m * dl * ddl * w**2 - (m * G + 40.0 * (lift + 0.02)) * dl) / (
        inertia + m_cam * arm**2 + m * dl**2)
    motion = ld.constrained_forward_dynamics(model, [angle, lift], [w, dl * w], [tau, 0.0])
    np.testing.assert_allclose(motion.a, [a, dl * a + ddl * w**2], rtol=1e-12, atol=1e-11)
    force = m * (dl * a + ddl * w**2 + G) + 40.0 * (lift + 0.02)        # on the slider
    np.testing.assert_allclose(motion.multipliers, [force], rtol=1e-12)
    back = ld.constrained_inverse_dynamics(model, [angle, lift], [w, dl * w], motion.a, ["cam"])
    np.testing.assert_allclose(back.tau, [tau, 0.0], rtol=0, atol=1e-11)


def test_elliptic_gears_by_hand():
    """Two wheels on fixed axes: tan(f/2) = k tan(q/2). (I1 + I2 f'^2) a + I2 f' f'' w^2 = tau."""
    k, I1, I2, q, w = 0.6, 0.03, 0.02, 1.1, 2.0
    links = (Link("one", 1.0, inertia=(0, 0, 0, 0, 0, I1)), Link("two", 1.0, inertia=(0, 0, 0, 0, 0, I2)))
    joints = tuple(Joint(name, "continuous", "world", name, axes=((0, 0, 1),)) for name in ("one", "two"))
    model = ld.build(Robot("gears", links, joints, couplings=(
        Coupling("gear", (("two", "", 1.0), ("one", "", 0.0)), function=function(f"2*atan({k}*tan(cam/2))")),)))
    with mp.workdps(40):
        f, df, ddf = (float(mp.diff(lambda x: 2 * mp.atan(mpf(k) * mp.tan(x / 2)), mpf(q), n)) for n in range(3))
    a = (0.5 - I2 * df * ddf * w**2) / (I1 + I2 * df**2)
    motion = ld.constrained_forward_dynamics(model, [q, f], [w, df * w], [0.5, 0.0])
    np.testing.assert_allclose(motion.a, [a, df * a + ddf * w**2], rtol=1e-12)


# with many digits -----------------------------------------------------------------------------------------------------

class FunctionMotion(ExactMotion):
    """A motion of `arms` whose independent coordinates are polynomials in time and whose followers are functions of them."""

    def __init__(self, model, seed, f):
        super().__init__(model, seed, 2)
        free, self.f = self.coordinates, f
        self.coordinates = lambda t: self._follow(free(t))
        self._bodies = {}

    def _follow(self, q):
        q = q.copy()
        q[3] = self.f(q[0])
        q[4] = mpf("0.3") * 0 + exact(np.array([0.3]))[0] * q[3] - exact(np.array([0.2]))[0] * q[3]**3
        return q


class _Names:
    def __getattr__(self, name):
        return getattr(mp, name)


@pytest.mark.parametrize("name", [name for name, f in FUNCTIONS.items() if not f.points])
def test_inverse_and_forward_dynamics_against_a_hundred_digits(name):
    """d'Alembert's principle for the whole tree at the exact motion, and forces of followers by the principle of virtual work."""
    model = arms(FUNCTIONS[name])
    with mp.workdps(100):
        def f(x): return function_value(FUNCTIONS[name], x, _Names()) + 0 * x
        motion = FunctionMotion(model, 3, f)
        q0 = motion.coordinates(mpf(0))
        df = mp.diff(f, q0[0])
        slope = exact(np.array([0.3]))[0] - 3 * exact(np.array([0.2]))[0] * q0[3]**2
        tau = motion.forces()
        reduced = [tau[0] + df * (tau[3] + slope * tau[4]), tau[1], tau[2]]
        reduced = np.array([float(x) for x in reduced])
        rates = [np.array([float(mp.diff(lambda t, k=k: motion.coordinates(t)[k], 0, n)) for k in range(5)]) for n in range(3)]
    q, v, a = rates
    np.testing.assert_allclose(ld.constraint_residual(model, q), 0.0, atol=1e-14)
    ours = ld.constrained_inverse_dynamics(model, q, v, a, ["j0", "j1", "j2"]).tau
    np.testing.assert_allclose(ours, [*reduced, 0.0, 0.0], rtol=0, atol=2e-12 * np.abs(reduced).max())
    back = ld.constrained_forward_dynamics(model, q, v, [*reduced, 0.0, 0.0]).a
    np.testing.assert_allclose(back, a, rtol=0, atol=1e-10 * np.abs(a).max())


# identities -----------------------------------------------------------------------------------------------------------

@EVERY
@pytest.mark.parametrize("size", [(), (13,)])
def test_dynamics_are_those_of_the_tree_times_the_reduction(name, size):
    model = arms(FUNCTIONS[name])
    q, v, a = state(model, 1, size)
    tau = np.random.default_rng(2).standard_normal((*size, 5))
    motion = ld.constrained_forward_dynamics(model, q, v, tau)
    for i in np.ndindex(size):
        N, M = reduction(model, q[i]), ld.mass_matrix(model, q[i])
        bias = ld.inverse_dynamics(model.spanning_tree(), q[i], v[i], a[i]) - M @ a[i]
        rate = a[i] - N @ a[i][[0, 1, 2]]                                   # of N, times v
        y = np.linalg.solve(N.T @ M @ N, N.T @ (tau[i] - bias - M @ rate))
        np.testing.assert_allclose(motion.a[i], N @ y + rate, rtol=0, atol=1e-8 * np.abs(motion.a).max())


@EVERY
def test_derivatives_against_differences_along_the_coupling(name):
    """Independent coordinates and their rates change; followers follow."""
    model = arms(FUNCTIONS[name])
    q, v, _ = state(model, 4)
    y, dy = ld.reduce(model, q, v)
    rng = np.random.default_rng(5)
    tau, e, de, dtau = rng.standard_normal(5), *rng.standard_normal((2, 3)), rng.standard_normal(5)
    rates = ld.constrained_forward_derivatives(model, q, v, tau)

    def motion(h):
        found = ld.constrained_forward_dynamics(model, *ld.expand(model, y + h * e, dy + h * de), tau + h * dtau)
        return np.concatenate([found.a, found.multipliers])
    dq, dv = (derivative(lambda h, k=k: ld.expand(model, y + h * e, dy + h * de)[k], 1e-3) for k in (0, 1))
    ours = [J @ x for J, x in zip((rates.da_dq, rates.da_dv, rates.da_dtau), (dq, dv, dtau), strict=True)]
    multipliers = [J @ x for J, x in zip((rates.dlambda_dq, rates.dlambda_dv, rates.dlambda_dtau), (dq, dv, dtau), strict=True)]
    expected = derivative(motion, 1e-3)
    found = np.concatenate([sum(ours), sum(multipliers)])
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-8 * np.abs(expected).max())


def test_a_straight_function_is_a_linear_coupling():
    """In every number of constrained dynamics and their derivatives."""
    one = arms(FUNCTIONS["straight"])
    robot = replace(one.description, couplings=(Coupling("first", (("j3", "", 1.0), ("j0", "", -1.5)), 0.1),
                                                one.description.couplings[1]))
    other = ld.build(robot)
    q, v, a = state(one, 6, (3,))
    tau = np.random.default_rng(7).standard_normal((3, 5))
    mask = np.array([True, False, False, False, False])
    def motion(found): return [found.a, found.multipliers, *([found.tau] if hasattr(found, "tau") else [])]
    for compute in (lambda m: [ld.constraint_residual(m, q), ld.constraint_jacobian(m, q), ld.constraint_bias(m, q, v)],
                    lambda m: motion(ld.constrained_forward_dynamics(m, q, v, tau)),
                    lambda m: motion(ld.constrained_hybrid_dynamics(m, q, v, a, tau, mask)),
                    lambda m: ld.constrained_forward_derivatives(m, q, v, tau)[:6],
                    lambda m: [ld.constrained_inverse_dynamics(m, q, v, a, ["j0", "j1", "j2"]).tau],
                    lambda m: ld.constrained_inverse_derivatives(m, q, v, a, ["j0", "j1", "j2"])[:3],
                    lambda m: [ld.project_velocity(m, q, v + 0.1), ld.project_configuration(m, q[0] + 0.01)],
                    lambda m: ld.expand(m, q[:, :3], v[:, :3], a[:, :3])):
        for x, y in zip(compute(one), compute(other), strict=True):
            np.testing.assert_allclose(x, y, rtol=0, atol=1e-12 * max(1.0, np.abs(y).max()))


@EVERY
def test_expand_and_reduce_are_inverse(name):
    model = arms(FUNCTIONS[name])
    assert model.independent == ("j0", "j1", "j2")
    q, v, a = state(model, 8, (4,))
    np.testing.assert_allclose(ld.constraint_residual(model, q), 0.0, atol=1e-14)
    np.testing.assert_allclose(ld.constraint_velocity(model, q, v), 0.0, atol=1e-13)
    A, gamma = ld.constraint_jacobian(model, q), ld.constraint_bias(model, q, v)
    np.testing.assert_allclose(np.einsum("nij,nj->ni", A, a) + gamma, 0.0, atol=1e-12)
    again = ld.expand(model, *ld.reduce(model, q, v, a))
    for x, y in zip(again, (q, v, a), strict=True):
        np.testing.assert_array_equal(x, y)
    r = ld.random_configuration(model, np.random.default_rng(9))
    np.testing.assert_allclose(ld.constraint_residual(model, r), 0.0, atol=1e-14)
    wrong = q[0] + np.array([0, 0, 0, 1e-3, 0])
    with pytest.raises(ld.ConfigurationError, match=r"q \(j[34]\) contradicts the couplings of robot arms"):
        ld.reduce(model, wrong)


@pytest.mark.parametrize("name", ["cam", "growing", "table"])
def test_an_assembled_configuration_has_its_followers(name):
    model = arms(FUNCTIONS[name])
    q = state(model, 10)[0]
    guess = q + np.array([0, 0, 0, 0.2, -0.1])
    np.testing.assert_allclose(ld.assemble(model, guess, fixed=["j0", "j1", "j2"]).q, q, atol=1e-11)
    assert ld.assemble(model, guess).mobility.degrees == 3


def test_functions_that_eliminate_couplings_name_the_coupling():
    model = arms(FUNCTIONS["cam"])
    for compute in (lambda: ld.inverse_dynamics(model, np.zeros(5), np.zeros(5), np.zeros(5)),
                    lambda: ld.forward_dynamics_derivatives(model, np.zeros(5), np.zeros(5), np.zeros(5))):
        with pytest.raises(ld.ModelError, match=r"does not account for the constraints of robot arms \(first, second\)"):
            compute()


# other units, order and place -------------------------------------------------------------------------------------------

def test_in_millimetres():
    """Lengths in mm, forces in mN: accelerations of angles are the same."""
    f = function("0.05*(1 - cos(cam)) + 0.01*cam**2")
    model, angle, w, tau = ld.build(cam(f)), 0.7, 3.0, 0.4
    mm = cam(function("50*(1 - cos(cam)) + 10*cam**2"))
    links = tuple(replace(link, com=tuple(1e3 * x for x in link.com), inertia=tuple(1e6 * x for x in link.inertia))
                  for link in mm.links)
    joints = (replace(mm.joints[0], coordinates=(Coordinate(damping=0.03e6),)),
              replace(mm.joints[1], origin=Pose(translation=(100, 0, 0)), coordinates=(Coordinate(stiffness=40.0, rest=-20.0),)))
    other = ld.build(replace(mm, links=links, joints=joints, gravity=(0, 0, -9810.0)))
    q, v = ld.expand(model, [angle], [w])
    scale = np.array([1.0, 1e3])
    one, two = (ld.constrained_forward_dynamics(m, x, y, t) for m, x, y, t in (
        (model, q, v, [tau, 0.0]), (other, q * scale, v * scale, [tau * 1e6, 0.0])))
    np.testing.assert_allclose(two.a, one.a * scale, rtol=1e-12)
    np.testing.assert_allclose(two.multipliers, one.multipliers * 1e3, rtol=1e-12)


def test_the_order_of_couplings_and_a_turned_world_change_nothing():
    model = arms(FUNCTIONS["elliptic gear"])
    robot = model.description
    R = Pose.from_xyz_rpy((0.3, -1.0, 2.0), (0.3, 1.1, -0.7))
    rotation = np.reshape(R.rotation, (3, 3))
    first = robot.joints[0]
    turned = Pose.from_matrix(np.block([[rotation, np.reshape(R.translation, (3, 1))], [np.zeros((1, 3)), np.ones((1, 1))]])
                              @ np.block([[np.reshape(first.origin.rotation, (3, 3)),
                                           np.reshape(first.origin.translation, (3, 1))], [np.zeros((1, 3)), np.ones((1, 1))]]))
    other = ld.build(replace(robot, couplings=robot.couplings[::-1], joints=(replace(first, origin=turned), *robot.joints[1:]),
                             gravity=tuple(rotation @ robot.gravity)))
    q, v, _ = state(model, 11)
    np.testing.assert_array_equal(ld.expand(other, q[:3]), q)
    tau = np.random.default_rng(12).standard_normal(5)
    one, two = (ld.constrained_forward_dynamics(m, q, v, tau) for m in (model, other))
    np.testing.assert_allclose(two.a, one.a, rtol=0, atol=1e-12 * np.abs(one.a).max())
    np.testing.assert_allclose(two.multipliers[::-1], one.multipliers, rtol=0, atol=1e-11 * np.abs(one.multipliers).max())


def test_outside_the_domain_errors_name_the_coupling_and_the_driver():
    model = ld.build(cam(function("sqrt(cam)")))
    text = r"the function of coupling valve.* is not finite at cam = -0\.3:"
    for rates in ((), ([1.0],), ([1.0], [1.0])):
        with pytest.raises(ld.ConfigurationError, match=text):
            ld.expand(model, [-0.3], *rates)
    with pytest.raises(ld.ConfigurationError, match="or its derivative, is not finite at cam = 0:"):
        ld.expand(model, [0.0], [1.0])                         # the root is zero, and its slope infinite
    for compute in (ld.constraint_residual, lambda model, q: ld.assemble(model, q, fixed=["cam"])):
        with pytest.raises(ld.ComputationError, match=text):
            compute(model, [-0.3, 0.0])
    np.testing.assert_allclose(ld.expand(model, [0.3], [1.0])[1], [1.0, 0.5 / np.sqrt(0.3)], rtol=1e-14)


def test_random_configurations_are_in_the_domain():
    model, rng = ld.build(cam(function("sqrt(cam)"))), np.random.default_rng(0)
    for q in (ld.random_configuration(model, rng, (20, 30)), ld.random_motion(model, rng, 500)[0]):
        np.testing.assert_allclose(q[..., 1]**2, q[..., 0], rtol=1e-13)
    assert ld.random_configuration(model, rng).shape == (2,)
    with pytest.raises(ld.ConfigurationError, match="the function of coupling valve is not finite at cam ="):
        ld.random_configuration(ld.build(cam(function("sqrt(-1 - cam**2)"))), rng, 3)
