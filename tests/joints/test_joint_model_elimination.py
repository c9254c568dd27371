"""Joints without an inertia to act on: compound joints in a singular position, and masks that make it harmless."""
import numpy as np
import pytest

import liedyn as ld
from bridge import relative
from liedyn.model.description import Coordinate, Joint, Robot
from liedyn.model.links import Link
from zoo import random_link, random_pose, state

VANISHES = "a joint's articulated inertia vanishes in this configuration: its acceleration is not defined"
SINGULAR = {
    "euler, proper": ({"type": "euler", "sequence": "zxz"}, [0.4, 0.0, -0.7]),
    "euler, gimbal lock": ({"type": "euler", "sequence": "zyx"}, [0.4, np.pi / 2, -0.7]),
    "screws, folded": ({"type": "screws", "screws": ((0, 0, 1, 0, 0, 0), (1, 0, 0, 0, 0, 0), (0, 0, 1, 0, 0, 0))},
                       [0.2, np.pi, 0.1]),
    "same screw twice": ({"type": "screws", "screws": ((0, 0, 1, 0.1, 0, 0), (0, 0, 1, 0.1, 0, 0))}, [0.2, 0.3]),
}


def robot_with(joint: dict, armature: float = 0.0):
    """Return a compound joint between two simple ones."""
    rng = np.random.default_rng(1)
    links = tuple(random_link(rng, name) for name in ("root", "first", "second", "third"))
    count = len(joint.get("screws", "abc"))
    joints = (Joint("before", "revolute", "root", "first", random_pose(rng), axes=((0.0, 0.0, 1.0),)),
              Joint("joint", parent="first", child="second", origin=random_pose(rng),
                    coordinates=(Coordinate(armature=armature),) * count, **joint),
              Joint("after", "revolute", "second", "third", random_pose(rng), axes=((0.0, 1.0, 0.0),)))
    return Robot("singular", links, joints)


def at(model, x, size=()):
    q, v, a, tau = state(model, 1, size)
    q[..., model.q_index("joint")] = x
    return q, v, a, tau


def regular(model):
    """Return a configuration that is not singular for any sequence of angles."""
    return at(model, 0.7 + 0.2 * np.arange(model.nv - 2))


@pytest.mark.parametrize("name", [name for name in SINGULAR if name != "same screw twice"])
@pytest.mark.parametrize("size", [(), (11,)])
def test_a_compound_joint_in_a_singular_position_has_no_acceleration(name, size):
    joint, x = SINGULAR[name]
    model = ld.build(robot_with(joint))
    q, v, a, tau = at(model, x, size)
    assert np.linalg.matrix_rank(ld.mass_matrix(model, q).reshape(-1, model.nv, model.nv)[0]) == model.nv - 1
    for function in (lambda: ld.forward_dynamics(model, q, v, tau), lambda: ld.inverse_mass_matrix(model, q),
                     lambda: ld.hybrid_dynamics(model, q, v, a, tau, np.arange(model.nv) == 0)):
        with pytest.raises(ld.ComputationError) as caught:
            function()
        assert str(caught.value).startswith(VANISHES)
    assert np.isfinite(ld.inverse_dynamics(model, q, v, a)).all()                  # what it takes is defined
    if size:
        q[1:] = regular(model)[0]                                                  # one bad state among good ones is seen
        with pytest.raises(ld.ComputationError):
            ld.forward_dynamics(model, q, v, tau)
        assert np.isfinite(ld.forward_dynamics(model, q[1:], v[1:], tau[1:])).all()


@pytest.mark.parametrize("name", [name for name in SINGULAR if name != "same screw twice"])
def test_prescribing_one_of_the_dependent_coordinates_makes_it_regular(name):
    joint, x = SINGULAR[name]
    model = ld.build(robot_with(joint))
    q, v, a, tau = at(model, x)
    mask = np.zeros(model.nv, dtype=bool)
    for k in (1, 3):                                                               # first or last of the joint's
        mask[:] = False
        mask[k] = True
        a1, tau1 = ld.hybrid_dynamics(model, q, v, a, tau, mask)
        assert relative(ld.inverse_dynamics(model, q, v, a1), tau1) < 1e-13


@pytest.mark.parametrize("name", [name for name in SINGULAR if name != "same screw twice"])
def test_rotors_make_it_regular(name):
    joint, x = SINGULAR[name]
    model = ld.build(robot_with(joint, armature=0.01))
    q, v, _, tau = at(model, x)
    a = ld.forward_dynamics(model, q, v, tau)
    assert relative(ld.inverse_dynamics(model, q, v, a), tau) < 1e-12


@pytest.mark.parametrize("name", ["euler, proper", "euler, gimbal lock"])
def test_close_to_a_singular_position_the_answer_is_still_right(name):
    """At 1e-3 rad, cond(M) is 1e7 and the residual is rounding of the large accelerations."""
    joint, x = SINGULAR[name]
    model = ld.build(robot_with(joint))
    q, v, _, tau = at(model, np.add(x, [0, 1e-3, 0]))
    a = ld.forward_dynamics(model, q, v, tau)
    M = ld.mass_matrix(model, q)
    residual = np.abs(ld.inverse_dynamics(model, q, v, a) - tau).max()
    assert residual < 1e-13 * np.abs(M).max() * np.abs(a).max()
    reference = np.linalg.solve(M, tau - ld.bias_force(model, q, v))
    assert relative(a, reference) < 1e-8


def test_a_joint_that_is_singular_everywhere_has_a_warning():
    warning = next(x for x in ld.build(robot_with(SINGULAR["same screw twice"][0])).warnings if x.code == "no-inertia")
    assert str(warning).startswith('joint: the joint moves link "second", which has no inertia')


def test_singularity_is_judged_against_the_size_of_the_inertias():
    """A microscopic and an astronomic robot are as regular as others: what vanishes is relative."""
    rng = np.random.default_rng(2)
    link = random_link(rng, "child")
    for scale in (1e-18, 1e-9, 1e9, 1e18):
        body = Link("child", link.mass * scale, link.com, tuple(x * scale for x in link.inertia))
        for joint in (Joint("joint", "ball", "root", "child"), Joint("joint", "free", "root", "child"),
                      Joint("joint", "revolute", "root", "child", axes=((0.0, 1.0, 0.0),)),
                      Joint("joint", "euler", "root", "child", sequence="zyx")):
            model = ld.build(Robot("scaled", (random_link(rng, "root"), body), (joint,)))
            q, v, _, tau = state(model)
            a = ld.forward_dynamics(model, q, v, tau * scale)
            assert relative(ld.inverse_dynamics(model, q, v, a), tau * scale) < 1e-13
