"""Which joints have an inertia to act on: massless links are harmless between, and have a warning at the end."""
from dataclasses import replace

import numpy as np
import pytest

import liedyn as ld
from code_kinds import generated_code
from liedyn.codegen.specialize import generic_kernels
from liedyn.model.description import WORLD, Coordinate, Coupling, Joint, Robot
from liedyn.model.links import Link, Pose

BALL = (0.1, 0.0, 0.0, 0.1, 0.0, 0.1)
X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
OFFSET = Pose(translation=(0.3, 0.1, 0.2))


def body(name, mass=1.0, inertia=BALL):
    return Link(name, mass, (0.0, 0.0, 0.0), inertia)


def chain(*joints, masses=None, **given):
    """Return a chain of joints on links l0, l1, …; masses are those of the links after the root."""
    masses = masses or (0,) * (len(joints) - 1) + (1,)
    links = [body("l0")] + [body(f"l{k + 1}") if mass else Link(f"l{k + 1}") for k, mass in enumerate(masses)]
    made = [Joint(f"j{k + 1}", parent=f"l{k}", child=f"l{k + 1}", origin=OFFSET, **joint) for k, joint in enumerate(joints)]
    return Robot("chain", tuple(links), tuple(made), **given)


def revolute(axis, **given):
    return {"type": "revolute", "axes": (axis,), **given}


def computes(robot):
    """Check that the model is built and that forward dynamics solves the equation of motion."""
    model = ld.build(robot)
    rng = np.random.default_rng(0)
    q, (v, tau) = ld.random_configuration(model, rng), rng.standard_normal((2, model.nv))
    a = ld.forward_dynamics(model, q, v, tau)
    np.testing.assert_allclose(ld.inverse_dynamics(model, q, v, a), tau, atol=1e-9)


def singular(robot, *joints, links=(), still=False):
    """Loads with a warning for each of these joints; forward dynamics names the first one in every configuration.

    links: those of the joints; still: of a link before masses that do not move with it."""
    model = ld.build(robot)
    found = [warning for warning in model.warnings if warning.code == "no-inertia"]
    if any(link.mass or any(link.inertia) for link in robot.links):
        assert [warning.place.key for warning in found] == list(joints)
        for warning, link in zip(found, links, strict=True):
            reason = (f'the joint can move link "{link}", which has no inertia, while the joints after it keep all masses at rest'
                      if still else f'the joint moves link "{link}", which has no inertia')
            assert warning.message == f"{reason}: its torque does not determine its acceleration"
    else:
        assert len(found) == 1
    assert not model.moves_inertia
    rng = np.random.default_rng(0)
    for generated in (generated_code(), generic_kernels()):
        with generated:
            for count in (None, 1, 20):
                q = np.array([ld.random_configuration(model, rng) for _ in range(count or 1)])
                v, tau = rng.standard_normal((2, len(q), model.nv))
                state = (q, v, tau) if count else (q[0], v[0], tau[0])
                with pytest.raises(ld.ComputationError, match=f"the acceleration of joint '{joints[0]}' is not defined"):
                    ld.forward_dynamics(model, *state)
                with pytest.raises(ld.ComputationError, match=f"the acceleration of joint '{joints[0]}' is not defined"):
                    ld.inverse_mass_matrix(model, state[0])
                _, forces = ld.hybrid_dynamics(model, *state[:2], state[2], np.nan * state[2], np.ones(model.nv, dtype=bool))
                expected = ld.inverse_dynamics(model, *state)
                np.testing.assert_allclose(forces, expected, atol=1e-14 * max(1.0, np.abs(expected).max()))   # rounding


@pytest.mark.parametrize("joints", [
    [revolute(X), revolute(Y)], [revolute(X), revolute(Y), revolute(Z)], [revolute(X), {"type": "prismatic", "axes": (X,)}],
    [{"type": "prismatic", "axes": (X,)}, {"type": "prismatic", "axes": (Y,)}, revolute(Z)],
    [revolute(X), {"type": "universal", "axes": (Y, Z)}], [{"type": "helical", "axes": (X,), "pitch": 0.1}, revolute(Y)],
    [{"type": "prismatic", "axes": (Z,)}, {"type": "ball"}], [{"type": "cylindrical", "axes": (Z,)}, revolute(X)]])
def test_massless_links_between_joints_are_harmless(joints):
    computes(chain(*joints))


def test_a_massless_link_at_the_end_has_a_warning():
    singular(chain(revolute(X), revolute(Y), masses=(1, 0)), "j2", links=["l2"])
    singular(chain(revolute(X), masses=(0,)), "j1", links=["l1"])
    singular(chain({"type": "ball"}, masses=(0,)), "j1", links=["l1"])
    singular(chain({"type": "free"}, masses=(0,)), "j1", links=["l1"])


def test_all_joints_without_inertia_are_named_the_outermost_first():
    singular(chain(revolute(X), revolute(Y), masses=(0, 0)), "j2", "j1", links=["l2", "l1"])


def test_joints_that_undo_each_other_leave_a_massless_link_without_inertia():
    """Two coaxial hinges with nothing between; two ball joints: the link may spin about the line between them; a free joint
    carries nothing back."""
    coaxial = chain(revolute(Z), revolute(Z))
    aligned = Robot("coaxial", coaxial.links, (coaxial.joints[0], Joint("j2", "revolute", "l1", "l2", axes=(Z,))))
    singular(aligned, "j1", links=["l1"], still=True)
    computes(coaxial)                                             # parallel, but apart
    singular(chain({"type": "ball"}, {"type": "ball"}), "j1", links=["l1"], still=True)
    singular(chain(revolute(X), {"type": "free"}), "j1", links=["l1"], still=True)
    singular(chain({"type": "prismatic", "axes": (X,)}, {"type": "prismatic", "axes": (X,)}), "j1", links=["l1"], still=True)


def test_more_slides_than_directions_are_singular():
    """Four slides in space: what the last of them leaves is rounding, and was taken for an inertia: accelerations of 1e16."""
    slide = [{"type": "prismatic", "axes": (axis,)} for axis in ((0.6, 0.0, 0.8), (0.0, 0.6, 0.8), X, Y)]
    singular(chain(*slide), "j1", links=["l1"], still=True)
    computes(chain(*slide[1:]))
    computes(chain(*slide, masses=(0, 1, 0, 1)))
    screws = tuple((0.0, 0.0, 0.0, *joint["axes"][0]) for joint in slide)
    singular(chain({"type": "screws", "screws": screws}), "j1", links=["l1"])
    computes(chain({"type": "screws", "screws": screws[:3]}))


POLAR = Robot("polar", (body("root"), Link("hub"), Link("arm"), body("hand")),
              (Joint("turn", "revolute", "root", "hub", axes=(Z,)), Joint("draw", "prismatic", "hub", "arm", axes=(X,)),
               Joint("wrist", "ball", "arm", "hand")))


def test_a_massless_arm_drawn_in_to_its_axis():
    """The model is regular. Where the mass is on the axis, the result is an error, for any rounding."""
    model = ld.build(POLAR)
    rng = np.random.default_rng(3)
    for _ in range(20):
        q, (v, tau) = ld.random_configuration(model, rng), rng.standard_normal((2, model.nv))
        a = ld.forward_dynamics(model, q, v, tau)
        np.testing.assert_allclose(ld.inverse_dynamics(model, q, v, a), tau, atol=1e-9 * np.abs(a).max())
        q[1] = 0
        with pytest.raises(ld.ComputationError, match="a joint's articulated inertia vanishes in this configuration"):
            ld.forward_dynamics(model, q, v, tau)


def test_projections_refuse_what_has_no_inertia():
    """The mass matrix is not a metric there, although the constraint moves another joint."""
    geared = (Joint("left", "revolute", "root", "a", axes=(X,)), Joint("right", "revolute", "root", "b", axes=(Y,)))
    model = ld.build(replace(POLAR, links=(*POLAR.links, body("a"), body("b")), joints=(*POLAR.joints, *geared),
                             couplings=(Coupling("gear", (("left", "", 1.0), ("right", "", -2.0))),)))
    q, v = model.neutral(), np.arange(1.0, model.nv + 1.0)
    draw, left, right = (model.q_names.index(name) for name in ("draw", "left", "right"))
    open_ = q.copy()
    open_[left] = 0.3
    vanishes = "a joint's articulated inertia vanishes in this configuration"
    with pytest.raises(ld.ComputationError, match=vanishes):
        ld.project_velocity(model, q, v)
    with pytest.raises(ld.ComputationError, match=vanishes):
        ld.project_configuration(model, open_)
    q[draw] = open_[draw] = 0.5
    assert np.abs(ld.constraint_velocity(model, q, ld.project_velocity(model, q, v))).max() < 1e-14
    closed = ld.project_configuration(model, open_)
    assert closed[left] == pytest.approx(2.0 * closed[right], abs=1e-14)


def test_a_point_mass_has_no_inertia_about_itself():
    """Two coordinates of a ball joint at a distance have inertia, rotation about the line to it has none; a hinge through it."""
    point = Link("l1", 1.0, (0.0, 0.0, 0.5))
    root = body("l0")
    singular(Robot("r", (root, point), (Joint("j1", "ball", "l0", "l1"),)), "j1", links=["l1"])
    singular(Robot("r", (root, point), (Joint("j1", "revolute", "l0", "l1", axes=(Z,)),)), "j1", links=["l1"])
    computes(Robot("r", (root, point), (Joint("j1", "revolute", "l0", "l1", axes=(X,)),)))
    computes(Robot("r", (root, point), (Joint("j1", "prismatic", "l0", "l1", axes=(Z,)),)))
    rod = Link("l1", 1.0, (0.0, 0.0, 0.5), (0.02, 0.0, 0.0, 0.02, 0.0, 0.0))                    # thin: none about z
    singular(Robot("r", (root, rod), (Joint("j1", "ball", "l0", "l1"),)), "j1", links=["l1"])


def test_an_armature_is_an_inertia():
    """It acts on one coordinate; a ball joint needs it on each coordinate without inertia."""
    rotor = (Coordinate(armature=0.01),)
    computes(chain(revolute(X), revolute(Y, coordinates=rotor), masses=(1, 0)))
    computes(chain(revolute(X, coordinates=rotor), masses=(0,)))
    computes(chain({"type": "ball", "coordinates": rotor * 3}, masses=(0,)))
    singular(chain({"type": "ball", "coordinates": (*rotor * 2, Coordinate())}, masses=(0,)), "j1", links=["l1"])


def test_a_weld_brings_inertia():
    """A massless link with a mass welded to it is not a massless body."""
    robot = chain(revolute(X), masses=(0,))
    welded = Robot("r", (*robot.links, body("tool")), (*robot.joints, Joint("weld", "fixed", "l1", "tool", OFFSET)))
    computes(welded)
    frame = Robot("r", (*robot.links, Link("frame")), (*robot.joints, Joint("weld", "fixed", "l1", "frame", OFFSET)))
    singular(frame, "j1", links=["l1"])


def test_a_massless_root_is_harmless_when_fixed_and_singular_when_floating():
    links = (Link("root"), body("arm"))
    joint = (Joint("j", "revolute", "root", "arm", axes=(Z,)),)
    computes(Robot("r", links, joint))
    singular(Robot("r", links, joint, base="floating"), "base", links=["root"], still=True)


def test_joints_on_the_ground():
    joints = (Joint("j", "ball", WORLD, "a"), Joint("k", "revolute", WORLD, "b", axes=(X,)))
    computes(Robot("r", (body("a"), body("b")), joints))
    singular(Robot("r", (body("a"), Link("b")), joints), "k", links=["b"])


@pytest.mark.parametrize("scale", [1e-15, 1e-6, 1e6, 1e15])
def test_the_size_of_a_robot_does_not_matter(scale):
    """Grams or megatons: an inertia vanishes relative to the others of its body."""
    robot = chain(revolute(X), revolute(Y))
    links = tuple(Link(x.name, x.mass * scale, x.com, tuple(value * scale for value in x.inertia)) for x in robot.links)
    model = ld.build(Robot("scaled", links, robot.joints))
    rng = np.random.default_rng(1)
    q, v, tau = ld.random_configuration(model, rng), np.zeros(2), scale * rng.standard_normal(2)
    a = ld.forward_dynamics(model, q, v, tau)
    np.testing.assert_allclose(ld.inverse_dynamics(model, q, v, a), tau, rtol=1e-10)


def test_long_chains_of_ball_joints_have_inertia():
    """Rounding in the block that a joint removes grew from joint to joint: 88 links were an error, 150 ended in a LinAlgError."""
    links = tuple(Link(f"l{k}", 1.0, (0.05, 0.0, 0.0), (0.001, 0.0, 0.0, 0.002, 0.0, 0.003)) for k in range(400))
    joints = tuple(Joint(f"j{k}", "ball", f"l{k - 1}" if k else WORLD, f"l{k}", Pose(translation=(0.1 if k else 0.0, 0.0, 0.0)))
                   for k in range(400))
    computes(Robot("rope", links[:150], joints[:150]))
    assert ld.build(Robot("rope", links, joints)).nv == 1200


@pytest.mark.parametrize("length", [1e-4, 1e4])
def test_a_free_joint_is_judged_alike_in_all_units_of_length(length):
    """Its moments of inertia are not compared with its mass: in units of length 1e-7 m, 1 kg was "no inertia" beside 1e12."""
    def free(mass, inertia):
        link = Link("l1", mass, (0.0, 0.0, 0.0), tuple(x * (1e3 * length)**2 for x in inertia))
        return Robot("r", (link,), (Joint("j1", "free", WORLD, "l1"),))
    assert ld.build(free(1.0, BALL)).nv == 6
    singular(free(1.0, (0.1, 0.0, 0.0, 0.1, 0.0, 0.0)), "j1", links=["l1"])
