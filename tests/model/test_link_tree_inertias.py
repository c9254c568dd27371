"""Inertias in which a body has only what its joint can tell from the parent: to coordinates the robot is the same."""
import numpy as np
import pytest

import liedyn as ld
from bridge import relative
from liedyn.joints.joint_model import tree_views
from liedyn.model.link_tree import reduced_inertias
from liedyn.model.spatial import pose_from_array
from zoo import ROBOTS, model_of, state

LEFT = {"revolute": 7, "continuous": 7, "helical": 9, "prismatic": 4}      # numbers of a body at the end of a chain: not 0


def tree_and_inertias(model):
    tree = tree_views.py_func(model.index, model.constants)
    n = tree.parent.size
    return tree, lambda I: reduced_inertias(tree.parent, tree.kind, tree.S.reshape(n, 2), pose_from_array(tree.T0.reshape(n, 12)),
                                            I)


def with_all_inertias(model):
    """Return the robot whose J are its I."""
    constants = model.constants.copy()
    tree = tree_views.py_func(model.index, constants)
    tree.J[:] = tree.I
    return model._copy(constants=constants)


@pytest.mark.parametrize("name", [*LEFT])
def test_what_a_joint_cannot_tell_is_zero(name):
    J = tree_views.py_func(model_of(name).index, model_of(name).constants).J.reshape(-1, 10)
    assert np.count_nonzero(J[-1]) == LEFT[name]


def test_a_ball_leaves_no_mass_and_a_free_joint_all():
    for name, moved in (("ball", True), ("free", False)):
        tree, _ = tree_and_inertias(model_of(name))
        I, J = (x.reshape(-1, 10)[-1] for x in (tree.I, tree.J))
        assert J[0] == (0.0 if moved else I[0])
        assert np.array_equal(I[1:], J[1:])


def test_a_mass_moves_to_the_ground_along_a_chain_of_revolute_joints():
    tree, _ = tree_and_inertias(ld.load("robots/ur5.yaml"))
    assert not tree.J.reshape(-1, 10)[1:, 0].any()
    assert tree.J[0] == pytest.approx(tree.I.reshape(-1, 10)[:, 0].sum(), rel=1e-14)


@pytest.mark.parametrize("name", ["every kind", "every kind, floating"])
def test_they_are_linear_in_the_inertias(name):
    tree, minimal = tree_and_inertias(model_of(name))
    A, B = np.random.default_rng(0).standard_normal((2, tree.parent.size, 10))
    assert relative(minimal(2.0 * A - B), 2.0 * minimal(A) - minimal(B)) < 1e-13


@pytest.mark.parametrize("name", ROBOTS)
def test_dynamics_are_those_of_all_inertias(name, worst):
    model = model_of(name)
    q, v, a, tau = state(model, 5, (3,))
    for function, given, bound in ((ld.inverse_dynamics, (q, v, a), 1e-13), (ld.mass_matrix, (q,), 1e-13),
                                   (ld.forward_dynamics, (q, v, tau), 1e-10)):
        found, expected = (np.asarray(function(one, *given)) for one in (model, with_all_inertias(model)))
        assert worst(f"minimal inertias: {function.__name__}", relative(found, expected), name) < bound


def test_wrenches_at_joints_are_those_of_the_links():
    """Not of what has moved to the parent: a lamp hangs by its weight."""
    model = ld.load("robots/double_pendulum.yaml")
    wrench = ld.joint_wrenches(model, model.neutral(), np.zeros(2), np.zeros(2), frame="world")
    masses = {link.name: link.mass for link in model.description.links}
    assert wrench[1, 5] == pytest.approx(9.81 * (masses["lower"] + masses["tip"]), rel=1e-14)
