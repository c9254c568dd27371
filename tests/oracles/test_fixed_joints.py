"""Robots with fixed joints against Pinocchio's buildReducedModel, at random configurations of all joints."""
import numpy as np
import pinocchio as pin
import pytest

import liedyn as ld
from bridge import PinocchioBridge, file_of, full, relative

EXACT = 1e-12               # relative to the largest entry; measured: 3e-15


@pytest.mark.parametrize("base", ["fixed", "floating"])
@pytest.mark.parametrize("name", ["ur5_robot", "talos_reduced", "tiago_no_hand"])
def test_a_reduced_robot(name, base):
    path = file_of(f"{name}.urdf")
    model = ld.load(path, base=base).spanning_tree()
    names = [joint.name for joint in model.joints if joint.type != "free"][::2]
    rng = np.random.default_rng(2)
    q = ld.random_configuration(model, rng)
    whole = PinocchioBridge(path, model)
    reduced = ld.fix_joints(model, {each: q[model.q_index(each)] for each in names})
    ids = [whole.pin.getJointId(each) for each in names]
    theirs = PinocchioBridge(pin.buildReducedModel(whole.pin, ids, whole.q(q)), reduced)
    q, v, a = ld.random_configuration(reduced, rng), *rng.standard_normal((2, reduced.nv))
    Q, S, dS = theirs.q(q), theirs.S(q), theirs.dS(q, v)
    M = S.T @ full(pin.crba(theirs.pin, theirs.data, Q)) @ S
    tau = S.T @ pin.rnea(theirs.pin, theirs.data, Q, S @ v, S @ a + dS @ v)
    assert relative(ld.mass_matrix(reduced, q), M) < EXACT
    assert relative(ld.inverse_dynamics(reduced, q, v, a, passive=False), tau) < EXACT
