"""Joints that move no inertia: all that needs no M^-1 is exact, and everything else names them where a torque drives them."""
from dataclasses import replace

import numpy as np
import pytest

import liedyn as ld
from code_kinds import generated_code
from liedyn.codegen.specialize import generic_kernels
from liedyn.model.description import WORLD, Coordinate, Joint, Loop, Mimic, Robot
from liedyn.model.links import Link, Pose

LIMITS = (Coordinate(lower=-3.0, upper=3.0),)
GENERATED = pytest.mark.parametrize("code", [generated_code, generic_kernels], ids=["generated", "generic"])
RNG = np.random.default_rng()


@pytest.fixture(autouse=True)
def seed():
    """The same numbers in each order of tests."""
    RNG.bit_generator.state = np.random.default_rng(4).bit_generator.state


def arm(tool="revolute", armature=0.0, friction=0.0, scale=1.0, length=1.0):
    """A planar arm of two links whose centres of mass are off their axes, and a tool without inertia."""
    def link(name, mass):
        I = np.array([0.01, 0.0, 0.0, 0.02, 0.0, 0.025]) * mass * scale * length**2
        return Link(name, mass * scale, (0.2 * length, 0.02 * length, 0.0), tuple(I))
    hinge = {"axes": ((0.0, 1.0, 0.0),), "coordinates": LIMITS}
    axes = ((1.0, 0.0, 0.0),) if tool in ("revolute", "fixed", "prismatic") else ()
    coordinates = {"revolute": (replace(LIMITS[0], armature=armature, friction=friction),), "fixed": ()}.get(tool, ())
    joints = (Joint("j1", "revolute", "base", "l1", **hinge),
              Joint("j2", "revolute", "l1", "l2", Pose(translation=(0.4 * length, 0.0, 0.0)), **hinge),
              Joint("j3", tool, "l2", "tool", Pose(translation=(0.3 * length, 0.0, 0.0)), axes=axes if tool != "fixed" else (),
                    coordinates=coordinates))
    return Robot("arm", (Link("base"), link("l1", 1.0), link("l2", 0.6), Link("tool")), joints, gravity=(0.0, 0.0, -9.81))


TORQUE_DRIVEN = "the acceleration of joint 'j3' is not defined: the joint moves link \"tool\", which has no inertia; prescribe"


@GENERATED
@pytest.mark.parametrize("count", [None, 1, 20])
def test_inverse_dynamics_is_that_of_the_robot_with_the_link_welded(code, count):
    model, welded = ld.build(arm()), ld.build(arm("fixed"))
    q, v, a = RNG.standard_normal((3, count or 1, 3)) if count else RNG.standard_normal((3, 3))
    with code():
        tau = ld.inverse_dynamics(model, q, v, a)
        np.testing.assert_allclose(tau[..., :2], ld.inverse_dynamics(welded, q[..., :2], v[..., :2], a[..., :2]), atol=1e-14)
        assert not tau[..., 2].any()
        mask = np.array([False, False, True])
        found, forces = ld.hybrid_dynamics(model, q, v, a, tau + 0.3, mask)
        expected = ld.forward_dynamics(welded, q[..., :2], v[..., :2], tau[..., :2] + 0.3)
        np.testing.assert_allclose(found[..., :2], expected, rtol=1e-12)
        assert not forces[..., 2].any()
        d = ld.hybrid_dynamics_derivatives(model, q, v, a, tau, mask)
        e = ld.forward_dynamics_derivatives(welded, q[..., :2], v[..., :2], tau[..., :2])
        np.testing.assert_allclose(d[0][..., :2, :2], e.da_dq, rtol=1e-11, atol=1e-11)
        assert ld.inverse_dynamics_derivatives(model, q, v, a)[0].shape[-2:] == (3, 3)
        assert not ld.regressor(model, q, v, a)[..., 2, :20].any()


def test_friction_is_all_that_acts_at_a_joint_without_inertia():
    model = ld.build(arm(friction=0.2))
    assert ld.inverse_dynamics(model, [0.1, 0.2, 0.3], [0.0, 0.0, 5.0], [1.0, 2.0, 3.0])[2] == pytest.approx(0.2, rel=1e-4)


@GENERATED
def test_functions_that_need_the_inverse_of_the_mass_matrix_name_the_joint(code):
    model, states = ld.build(arm()), RNG.standard_normal((3, 20, 3))
    with code():
        for q, v, tau in (states, states[:, 0], states[:, :1]):
            calls = [(ld.forward_dynamics, (q, v, tau)), (ld.forward_dynamics_derivatives, (q, v, tau)),
                     (ld.hybrid_dynamics, (q, v, tau, tau, [True, False, False])), (ld.inverse_mass_matrix, (q,)),
                     (ld.hybrid_dynamics_derivatives, (q, v, tau, tau, [False, True, False])),
                     (ld.forward_dynamics_directional, (q, v, tau)),
                     (ld.higher_order_forward_dynamics, (q, v, tau[..., None, :]))]
            for function, arguments in calls:
                with pytest.raises(ld.ComputationError, match=TORQUE_DRIVEN):
                    function(model, *arguments)
        with pytest.raises(ld.ComputationError, match=TORQUE_DRIVEN):
            ld.rollout(model, states[0], states[1], dt=1e-3, steps=3)
        errors = []
        a = ld.forward_dynamics(model, *states, on_error=lambda k, error: errors.append(str(error)))
        assert np.isnan(a).all() and len(errors) == 20 and all(TORQUE_DRIVEN in error for error in errors)
        assert ld.forward_dynamics(model, states[0][:0], states[1][:0], states[2][:0]).shape == (0, 3)
    for function in (ld.linearize,):
        with pytest.raises(ld.ComputationError, match=TORQUE_DRIVEN):
            function(model, *states[:, 0])
    with pytest.raises(ld.ComputationError, match="singular"):
        ld.curvature_tensor(model, states[0, 0])


@GENERATED
def test_rollouts_with_the_joint_prescribed_are_those_of_the_welded_robot(code):
    model, welded = ld.build(arm()), ld.build(arm("fixed"))
    q, v = RNG.standard_normal((2, 5, 3))
    with code():
        runs = ld.rollout(model, q, v, dt=1e-3, steps=50, prescribed=[False, False, True])
        np.testing.assert_allclose(runs.q[..., :2], ld.rollout(welded, q[:, :2], v[:, :2], dt=1e-3, steps=50).q, atol=1e-12)
        np.testing.assert_allclose(runs.q[:, -1, 2], q[:, 2] + 0.05 * v[:, 2], atol=1e-14)


def test_an_armature_is_enough():
    model = ld.build(arm(armature=1e-9))
    assert model.moves_inertia
    assert ld.forward_dynamics(model, [0.1, 0.2, 0.3], np.zeros(3), [0.0, 0.0, 2e-9])[2] == pytest.approx(2.0)


def test_variants_may_differ_in_which_links_have_inertia():
    bare = ld.build(arm())
    heavy = bare.with_changes(mass={"tool": 0.1}, inertia={"tool": [1e-3, 1e-3, 1e-3]})
    q, v, tau = RNG.standard_normal((3, 2, 3))
    np.testing.assert_allclose(ld.Variants([heavy, heavy]).forward_dynamics(q, v, tau), ld.forward_dynamics(heavy, q, v, tau))
    for first in ((bare, heavy), (heavy, bare)):
        variants = ld.Variants(first)
        with pytest.raises(ld.ComputationError, match="articulated inertia vanishes"):
            variants.forward_dynamics(q, v, tau)
        np.testing.assert_allclose(variants.inverse_dynamics(q, v, tau)[first.index(heavy)],
                                   ld.inverse_dynamics(heavy, q[first.index(heavy)], v[first.index(heavy)],
                                                       tau[first.index(heavy)]))


def rotation():
    Q = np.linalg.qr(RNG.standard_normal((3, 3)))[0]
    return Q * np.linalg.det(Q)


def axis():
    x = RNG.standard_normal(3)
    return tuple(x / np.linalg.norm(x))


def point_mass_on_three_hinges(length, mass, angle):
    """Three hinges through a point turn a point mass, but not about the line to it. angle: of this line to the third axis."""
    frame, at = rotation(), np.array([1.0, angle, 0.7 * angle]) * 0.3 * length
    inertia = tuple(np.diag([1.0, 2.0, 2.5])[np.triu_indices(3)] * 0.01 * mass * length**2)
    links = (Link("l0", mass, (0.1 * length, 0.0, 0.0), inertia), Link("l1"), Link("l2"), Link("l3", mass, tuple(at)))
    joints = [Joint("j0", "revolute", WORLD, "l0", axes=(axis(),))]
    joints += [Joint(f"j{k}", "revolute", f"l{k - 1}", f"l{k}", axes=(tuple(frame[k - 1]),),
                     origin=Pose(translation=tuple(length * RNG.standard_normal(3)) if k == 1 else (0.0, 0.0, 0.0)))
               for k in (1, 2, 3)]
    return Robot("point", links, tuple(joints))


@pytest.mark.parametrize("length", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("mass", [1e-6, 1.0, 1e6])
def test_a_pivot_that_is_rounding_is_recognized_in_any_unit_and_frame(length, mass):
    """The third pivot is the rounding of cancelled inertias, amplified by that of the second: kernels returned 1e14."""
    for angle in (1.0, 1e-3, 1e-5, 1e-7):
        model = ld.build(point_mass_on_three_hinges(length, mass, angle))
        assert [warning.place.key for warning in model.warnings if warning.code == "no-inertia"] == ["j1"]
        q = np.array([ld.random_configuration(model, RNG) for _ in range(200)])
        v, tau = RNG.standard_normal((2, *q.shape))
        assert np.isnan(ld.forward_dynamics(model, q, v, tau, on_error="nan")).all()


@pytest.mark.parametrize("length", [1e-6, 1e-3, 1.0, 1e3, 1e6])
def test_slides_of_a_small_robot_are_regular(length):
    """Their random displacements were metres, so the limit of pivots was 1e12 times the inertia of a robot of micrometres."""
    slide = Joint("s", "prismatic", "l0", "l1", axes=((0.0, 1.0, 0.0),))
    links = tuple(Link(f"l{k}", 1.0, (0.1 * length, 0.0, 0.0), (1e-3 * length**2, 0.0, 0.0) * 2) for k in range(2))
    links = tuple(replace(x, inertia=tuple(np.diag([1.0, 2.0, 2.0])[np.triu_indices(3)] * 1e-3 * length**2)) for x in links)
    model = ld.build(Robot("slider", links, (Joint("t", "revolute", WORLD, "l0", axes=((0.0, 0.0, 1.0),)), slide)))
    tau = np.array([length**2, length])
    a = ld.forward_dynamics(model, [0.2, 0.1 * length], np.zeros(2), tau)
    np.testing.assert_allclose(ld.inverse_dynamics(model, [0.2, 0.1 * length], np.zeros(2), a), tau, rtol=1e-12)
    assert model.moves_inertia


# Mimic joints without inertia --------------------------------------------------------------------------------------------

def finger(follower=0.0, driver=1.0, prismatic=True):
    """A finger of two parallel slides, or of two links in a chain; masses of the follower and of the joint that it mimics."""
    inertia = np.array([0.02, 0.001, 0.0, 0.03, 0.0, 0.015])
    links = (Link("hand"), Link("p", 1.0, (0.1, 0.0, 0.0), tuple(inertia)),
             Link("d", driver, (0.2, 0.02, 0.01), tuple(inertia * driver)),
             Link("f", 0.4 * follower, (0.1, 0.03, 0.0), tuple(inertia * follower)))
    kind, at, parent = ("prismatic", (0.0, 0.0, 0.0), "p") if prismatic else ("revolute", (0.3, 0.1, 0.0), "d")
    joints = (Joint("j0", "revolute", "hand", "p", axes=((0.0, 1.0, 0.0),), coordinates=LIMITS),
              Joint("d", kind, "p", "d", Pose(translation=(0.3, 0.0, 0.0)), axes=((0.0, 1.0, 0.0),), coordinates=LIMITS),
              Joint("f", kind, parent, "f", Pose(translation=at), axes=((0.0, 0.6, 0.8),), mimic=Mimic("d", -1.5, 0.1),
                    coordinates=LIMITS))
    return Robot("finger", links, joints, gravity=(0.0, 0.0, -9.81))


@GENERATED
@pytest.mark.parametrize("prismatic", [True, False])
@pytest.mark.parametrize(("follower", "driver"), [(0.0, 1.0), (1.0, 0.0)])
def test_a_mimic_joint_without_inertia_is_regular_if_the_reduced_inertia_is(code, prismatic, follower, driver):
    model, light = (ld.build(finger(max(follower, least), max(driver, least), prismatic)) for least in (0.0, 1e-9))
    assert not any(warning.code == "no-inertia" for warning in model.warnings)
    q, v, a = ld.expand(model, *RNG.standard_normal((3, 5, 2)))
    tau = RNG.standard_normal((5, 3))
    N, tree = model.elimination().projection, model.spanning_tree()
    with code():
        found = ld.forward_dynamics(model, q, v, tau)
        assert np.abs((ld.inverse_dynamics(tree, q, v, found) - tau) @ N).max() < 1e-11
        motion, reference = (ld.constrained_forward_dynamics(x, q, v, tau) for x in (model, light))
        np.testing.assert_allclose(motion.a, found, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(motion.multipliers, reference.multipliers, atol=1e-6)
        force = ld.inverse_dynamics(tree, q, v, motion.a) - tau
        np.testing.assert_allclose(force, ld.constraint_forces(model, q, motion.multipliers), atol=1e-11)
        runs, others = (ld.rollout(x, q, v, dt=1e-3, steps=20) for x in (model, light))
        np.testing.assert_allclose(runs.q, others.q, atol=1e-7)
        for mask in ([0, 1, 0], [1, 1, 0], [0, 0, 1], [0, 1, 1], [1, 1, 1]):
            motion = ld.constrained_hybrid_dynamics(model, q, v, a, tau, np.array(mask, dtype=bool))
            assert np.abs((ld.inverse_dynamics(tree, q, v, motion.a) - motion.tau) @ N).max() < 1e-10


def test_a_mimic_joint_and_its_driver_without_inertia():
    model = ld.build(finger(0.0, 0.0))
    warning, = (warning for warning in model.warnings if warning.code == "no-inertia")
    assert warning.place.key == "d"
    q, v, a = ld.expand(model, *RNG.standard_normal((3, 5, 2)))
    with pytest.raises(ld.ComputationError, match="the acceleration of joint 'd' is not defined"):
        ld.forward_dynamics(model, q, v, a)
    found, tau = ld.hybrid_dynamics(model, q, v, a, np.zeros((5, 3)), [False, True, False])
    np.testing.assert_allclose(ld.inverse_dynamics(model, q, v, found), tau, atol=1e-12)
    runs = ld.rollout(model, q, v, dt=1e-3, steps=5, prescribed=[False, True, False])
    assert runs.complete.all()


# Loops ------------------------------------------------------------------------------------------------------------------

def four_bar(coupler=1.0, tool=True):
    hinge = {"axes": ((0.0, 1.0, 0.0),), "coordinates": LIMITS}

    def bar(name, mass=1.0):
        return Link(name, mass, (0.2, 0.0, 0.0), tuple(np.array([1e-3, 0.0, 0.0, 0.02, 0.0, 0.02]) * mass))
    joints = [Joint("a", "revolute", WORLD, "crank", **hinge),
              Joint("b", "revolute", "crank", "coupler", Pose(translation=(0.3, 0.0, 0.0)), **hinge),
              Joint("c", "revolute", WORLD, "rocker", Pose(translation=(0.6, 0.0, 0.0)), **hinge)]
    links = [bar("crank"), bar("coupler", coupler), bar("rocker")]
    if tool:
        joints.append(Joint("t", "revolute", "coupler", "tool", axes=((1.0, 0.0, 0.0),), coordinates=LIMITS))
        links.append(Link("tool"))
    loop = Loop("pin", "revolute", "coupler", "rocker", Pose(translation=(0.5, 0.0, 0.0)), Pose(translation=(0.4, 0.0, 0.0)),
                axes=((0.0, 1.0, 0.0),))
    return Robot("bars", tuple(links), tuple(joints), loops=(loop,), gravity=(0.0, 0.0, -9.81))


def test_a_tool_without_inertia_on_a_mechanism():
    """Its configuration closes, and it moves as the mechanism without the tool where that joint is prescribed."""
    model, plain = ld.build(four_bar()), ld.build(four_bar(tool=False))
    q = ld.assemble(plain, [-0.9, 0.8, -1.0]).q
    at = model.v_index("t").start
    with_tool = np.insert(q, at, 0.3)
    moved = with_tool + 0.01 * (1.0 - np.eye(4)[at])
    np.testing.assert_allclose(np.delete(ld.project_configuration(model, moved), at),
                               ld.project_configuration(plain, np.delete(moved, at)), atol=1e-10)
    assert ld.project_configuration(model, moved)[at] == 0.3
    v = np.zeros(4)
    mask = np.arange(4) == at
    motion = ld.constrained_hybrid_dynamics(model, with_tool, v, v, v, mask)
    np.testing.assert_allclose(np.delete(motion.a, at), ld.constrained_forward_dynamics(plain, q, np.zeros(3), np.zeros(3)).a,
                               rtol=1e-9)
    with pytest.raises(ld.ComputationError, match="the acceleration of joint 't' is not defined"):
        ld.constrained_forward_dynamics(model, with_tool, v, v)
    runs = ld.rollout(model, with_tool, v, dt=1e-3, steps=20, prescribed=mask)
    np.testing.assert_allclose(np.delete(runs.q, at, axis=-1), ld.rollout(plain, q, np.zeros(3), dt=1e-3, steps=20).q, atol=1e-9)
    with pytest.raises(ld.ComputationError, match="the acceleration of joint 't' is not defined"):
        ld.rollout(model, with_tool, v, dt=1e-3, steps=20)
