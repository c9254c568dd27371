"""The curvature of the mass matrix: machines of known curvature, flat ones, the symmetries, differences, and one robot in two
sets of coordinates."""
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

import liedyn as ld
from bridge import relative
from differences import by_q
from liedyn.dynamics.closed_form import closed_form
from liedyn.dynamics.coriolis import christoffel_derivative, field_brackets
from liedyn.model.description import WORLD, Coordinate, Joint, Robot
from liedyn.model.links import Link, Pose
from zoo import MOVING, SIMPLE, model_of, random_link, random_robot, state

X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
RNG = np.random.default_rng(0)
STEP = 0.005                      # M^-1 varies fast near singular positions
exploring = settings(max_examples=12, deadline=None, derandomize=True, database=None)
small = st.builds(random_robot, st.integers(0, 2**32 - 1), st.integers(1, 5), base=st.sampled_from(["fixed", "floating"]),
                  chain=st.booleans())


def body(name, mass=0.0, com=(0.0, 0.0, 0.0), inertia=(0.0, 0.0, 0.0)):
    return Link(name, mass, com, (inertia[0], 0.0, 0.0, inertia[1], 0.0, inertia[2]))


def joint(name, kind, parent, child, axis=None, at=(0.0, 0.0, 0.0), armature=None, **given):
    count = 3 if kind == "ball" else 1
    coordinates = () if armature is None else (Coordinate(armature=armature),) * count
    return Joint(name, kind, parent, child, Pose(translation=at), axes=(axis,) if axis else (), coordinates=coordinates, **given)


def two_revolutes(m1, m2, l1, c1, c2, I1, I2):
    links = body("upper", m1, (c1, 0.0, 0.0), (0.0, I1, I1)), body("lower", m2, (c2, 0.0, 0.0), (0.0, I2, I2))
    return ld.build(Robot("2R", links, (joint("shoulder", "revolute", WORLD, "upper", Z),
                                        joint("elbow", "revolute", "upper", "lower", Z, (l1, 0.0, 0.0)))))


@pytest.mark.parametrize("q", RNG.uniform(-3, 3, (4, 2)))
def test_the_planar_arm_of_two_joints(q, worst):
    """M = [[a + 2b cos, c + b cos], [., c]] of q2 alone. For a metric with a cyclic coordinate, D = det M,
    K = -(M_11'/(2 sqrt D))'/sqrt D = b cos q2 (ac - c^2 - b^2)/D^2, and R_1212 = K D."""
    m1, m2, l1, c1, c2, I1, I2 = 1.1, 0.7, 0.5, 0.3, 0.25, 0.02, 0.01
    model = two_revolutes(m1, m2, l1, c1, c2, I1, I2)
    a, b, c = I1 + I2 + m1 * c1**2 + m2 * (l1**2 + c2**2), m2 * l1 * c2, I2 + m2 * c2**2
    D = a * c - c * c - (b * np.cos(q[1]))**2
    K = b * np.cos(q[1]) * (a * c - c * c - b * b) / D**2
    R = ld.curvature_tensor(model, q)
    scale = abs(b) / D                                                 # where the cosine vanishes, so does K
    assert worst("curvature of the 2R arm", abs(R[0, 1, 0, 1] / D - K) / scale) < 1e-12
    assert abs(ld.sectional_curvature(model, q, [1, 0], [0.3, 1]) - K) < 1e-12 * scale
    assert abs(ld.scalar_curvature(model, q) - 2 * K) < 1e-12 * scale


def test_a_mass_on_a_turning_slide():
    """M = diag(J + m r^2, m): K = -J/(J + m r^2)^2. Without J it is a point mass in polar coordinates: flat, M not constant."""
    m = 1.7
    for J in (0.0, 0.3):
        links = body("arm", 0.0 if J == 0 else 1.0, inertia=(J, J, J)), body("slider", m)
        model = ld.build(Robot("polar", links, (joint("turn", "revolute", WORLD, "arm", Z),
                                                joint("slide", "prismatic", "arm", "slider", X, (0.5, 0.0, 0.0)))))
        q = np.array([0.4, 0.2])
        E = J + m * (q[1] + 0.5)**2
        assert relative(ld.mass_matrix(model, q), np.diag([E, m])) < 1e-14
        assert abs(ld.sectional_curvature(model, q, [1, 0], [0, 1]) + J / E**2) < 1e-13


def test_a_point_mass_on_two_massless_links_is_flat():
    """The same with two revolute joints: a strongly varying M of a free mass in the plane."""
    model = two_revolutes(0.0, 0.9, 0.5, 0.0, 0.4, 0.0, 0.0)
    q = np.array([0.3, 1.2])
    assert np.abs(ld.christoffel_symbols(model, q)).max() > 0.1
    assert np.abs(ld.curvature_tensor(model, q)).max() < 1e-14


def test_decoupled_robots_are_flat():
    """A gantry, a skew chain of slides, and turning tables that stand next to each other: M is constant."""
    gantry = ld.build(Robot("gantry", tuple(random_link(RNG, name) for name in "abc"), (
        joint("x", "prismatic", WORLD, "a", X), joint("y", "prismatic", "a", "b", Y), joint("z", "prismatic", "b", "c", Z))))
    tables = ld.build(Robot("tables", tuple(random_link(RNG, name) for name in "abc"), tuple(
        joint(name, "revolute", WORLD, name, axis, armature=0.1) for name, axis in zip("abc", (X, Y, Z), strict=True))))
    for model in (gantry, tables, model_of("prismatic")):
        R = ld.curvature_tensor(model, state(model, 1)[0])
        assert R.shape == (3, 3, 3, 3) and np.abs(R).max() < 1e-15
        assert abs(ld.scalar_curvature(model, state(model, 1)[0])) < 1e-15


@pytest.mark.parametrize("rotor", [0.0, 0.2])
def test_a_ball_turning_about_its_centre_is_a_sphere(rotor):
    """Isotropic inertia: SO(3) with a bi-invariant metric, K = 1/(4 inertia) of every plane. The rotors count like inertia."""
    link = body("ball", 2.0, inertia=(0.6, 0.6, 0.6))
    model = ld.build(Robot("ball", (link,), (joint("j", "ball", WORLD, "ball", armature=rotor),)))
    q = state(model, 2)[0]
    for u, w in RNG.standard_normal((3, 2, 3)):
        assert abs(ld.sectional_curvature(model, q, u, w) - 0.25 / (0.6 + rotor)) < 1e-13
    assert abs(ld.scalar_curvature(model, q) - 6 * 0.25 / (0.6 + rotor)) < 1e-13


def test_a_free_body():
    """SO(3) times a flat space, wherever the frame is; for principal inertias on SO(3) by Milnor 1976, theorem 4.3."""
    I = np.array([0.3, 0.5, 0.6])
    for com in ((0.0, 0.0, 0.0), (0.4, -0.3, 0.2)):
        model = ld.build(Robot("body", (body("body", 2.0, com, I),), (), base="floating"))
        q = state(model, 3)[0]
        # unit vectors along the axes: [e1, e2] = l3 e3, …, l3 = sqrt(I3/(I1 I2)); m = (l1 + l2 + l3)/2 - l
        l = I / np.sqrt(I.prod())
        m = l.sum() / 2 - l
        ricci = 2 * np.array([m[1] * m[2], m[0] * m[2], m[0] * m[1]])
        assert abs(ld.scalar_curvature(model, q) - ricci.sum()) < 1e-12
        v = np.r_[0, 0, 0, 1, 2, 3]
        assert abs(ld.sectional_curvature(model, q, v, np.r_[1, 0, 2, np.cross(com, [1, 0, 2])])) < 1e-13


def check_symmetries(model, q):
    """R_ijkl = -R_jikl = -R_ijlk = R_klij and R_ijkl + R_iklj + R_iljk = 0, to the rounding of Gamma M^-1 Gamma."""
    R, M, Gamma = ld.curvature_tensor(model, q), ld.mass_matrix(model, q), ld.christoffel_symbols(model, q)
    scale = np.abs(R).max() + np.abs(M).max() + np.abs(Gamma).max()**2 * np.linalg.norm(np.linalg.inv(M), 2)
    for other in (-R.swapaxes(0, 1), -R.swapaxes(2, 3), R.transpose(2, 3, 0, 1)):
        assert np.abs(R - other).max() < 1e-12 * scale
    assert np.abs(R + R.transpose(0, 2, 3, 1) + R.transpose(0, 3, 1, 2)).max() < 1e-12 * scale


@pytest.mark.parametrize("name", [*MOVING, "every kind", "every kind, floating"])
def test_symmetries(name):
    """They hold for the connection without torsion that keeps M constant, and for no other."""
    model = model_of(name)
    check_symmetries(model, state(model, 4)[0])


@given(small, st.integers(0, 1000))
@exploring
def test_symmetries_on_any_tree(robot, seed):
    model = ld.build(robot)
    check_symmetries(model, state(model, seed)[0])


@pytest.mark.parametrize("name", [*MOVING, "every kind, floating"])
def test_derivatives_of_christoffel_symbols(name, worst):
    model = model_of(name)
    q = state(model, 5)[0]
    expected = by_q(lambda q: ld.christoffel_symbols(model, q), model, q, STEP)
    ours = christoffel_derivative(closed_form(model, q))
    size = np.abs(ld.mass_matrix(model, q)).max()
    assert worst("dGamma/dq", np.abs(ours - expected).max() / size, name) < 1e-10


@pytest.mark.parametrize("types", [SIMPLE, ("ball",), ("free",), ("ball", "revolute", "helical")])
def test_curvature_against_differences(types, worst):
    """(66), and for body-fixed fields <nabla_k nabla_l Xj - nabla_l nabla_k Xj - nabla_[k,l] Xj, Xi>: vectors differentiated as
    such, by differences of Gamma_lj^r.
    Checks: PBP (66)."""
    model = ld.build(random_robot(21, 3, types=types, springs=False))
    q = state(model, 6)[0]
    M, Gamma = ld.mass_matrix(model, q), ld.christoffel_symbols(model, q)
    raise_ = lambda q: ld.christoffel_symbols(model, q) @ np.linalg.inv(ld.mass_matrix(model, q))    # noqa: E731
    up, d_up = raise_(q), by_q(raise_, model, q, STEP)                       # [l, j, r], [l, j, r, k]
    c = field_brackets(closed_form(model, q))
    one = np.einsum("ljrk,ri->ijkl", d_up, M) + np.einsum("ljr,kri->ijkl", up, Gamma)
    expected = one - one.swapaxes(2, 3) - np.einsum("klm,mji->ijkl", c, Gamma)
    R = ld.curvature_tensor(model, q)
    assert worst("curvature against differences", relative(R, expected, np.abs(M).max()), str(types)) < 1e-10


def test_coordinates_do_not_matter():
    """A ball joint, or three angles: the same scalar curvature, one in body-fixed fields, the other in coordinates."""
    links = random_link(RNG, "a"), random_link(RNG, "b")
    tip = joint("tip", "revolute", "a", "b", (0.6, 0.0, 0.8), (0.3, 0.1, -0.2))
    ball = ld.build(Robot("ball", links, (joint("root", "ball", WORLD, "a"), tip)))
    euler = ld.build(Robot("euler", links, (joint("root", "euler", WORLD, "a", sequence="zyx"), tip)))
    angles = np.array([0.3, -0.4, 1.1])
    quaternion = Rotation.from_euler("ZYX", angles).as_quat()
    one, other = ld.scalar_curvature(ball, np.r_[quaternion, 0.7]), ld.scalar_curvature(euler, np.r_[angles, 0.7])
    np.testing.assert_allclose(ld.link_poses(ball, np.r_[quaternion, 0.7]), ld.link_poses(euler, np.r_[angles, 0.7]), atol=1e-14)
    assert abs(one) > 0.1 and abs(one - other) < 1e-12 * abs(one)


def test_a_robot_without_joints_is_flat():
    """Ended in NumPy's error about a shape."""
    model = ld.build(Robot("block", (random_link(RNG, "block"),), ()))
    assert ld.curvature_tensor(model, []).shape == (0, 0, 0, 0) and ld.scalar_curvature(model, []) == 0.0
    with pytest.raises(ld.ComputationError, match="u and w do not span a plane"):
        ld.sectional_curvature(model, [], [], [])


def test_errors():
    model = model_of("universal")
    q, v = state(model, 7)[:2]
    with pytest.raises(ld.ShapeError, match="the closed form is computed for one state"):
        ld.curvature_tensor(model, np.stack([q, q]))
    with pytest.raises(ld.ShapeError, match=r"u has the wrong shape: expected \(6,\), got \(2, 6\) \(the curvature is"):
        ld.sectional_curvature(model, q, np.stack([v, v]), v)
    with pytest.raises(ld.ShapeError, match="u has the wrong shape"):
        ld.sectional_curvature(model, q, v[:2], v)
    with pytest.raises(ld.ComputationError, match="u and w do not span a plane: they are parallel, zero or not finite"):
        ld.sectional_curvature(model, q, v, 2 * v)
    stretched = two_revolutes(0.0, 0.9, 0.5, 0.0, 0.4, 0.0, 0.0)
    for function in (ld.curvature_tensor, ld.scalar_curvature, lambda m, q: ld.sectional_curvature(m, q, [1, 0], [0, 1])):
        with pytest.raises(ld.ComputationError, match="the mass matrix is singular in this configuration"):
            function(stretched, [0.3, 0.0])


def test_the_curvature_does_not_depend_on_the_place_in_the_world():
    """Nine thousand kilometres away, Christoffel symbols about the world's origin had no digit left."""
    robot = random_robot(5, 5, chain=True, types=SIMPLE)
    first = replace(robot.joints[0], origin=replace(robot.joints[0].origin, translation=(9e6, -3e6, 2e6)))
    far = ld.build(replace(robot, joints=(first, *robot.joints[1:])))
    q = state(far)[0]
    assert relative(ld.curvature_tensor(far, q), ld.curvature_tensor(ld.build(robot), q)) < 1e-12
    assert relative(ld.closed_form(far, q).christoffel_symbols, ld.christoffel_symbols(far, q)) < 1e-10
