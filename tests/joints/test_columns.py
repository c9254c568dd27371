"""Columns of joints along axes other than the body's, against those of the body turned by hand; over all kinds of the kernels."""
import numpy as np
import pytest

import liedyn as ld
from compiled import probe
from liedyn.joints.columns import joint_twist, store_columns
from liedyn.joints.kinds import BALL, FREE, NV, SCREW
from liedyn.joints.motion import joint_column
from liedyn.joints.tree import tree_of
from liedyn.lie.rows import load9, store_twist
from matrices import random_rotations
from zoo import model_of, random_robot

MODELS = {name: model_of(name) for name in ("every kind, floating", "ball", "free", "helical", "screws")}
MODELS["cylindrical and prismatic"] = ld.build(random_robot(9, 6, types=("cylindrical", "prismatic", "revolute")))


@probe
def columns(index, constants, R, v, s, Sv, body):
    """Of all joints: columns along the axes, S v, and the columns in body frames."""
    tree = tree_of(index, constants)
    for i in range(1, tree.parent.size):
        A = load9(R, 9 * i)
        store_columns(tree, i, A, s)
        store_twist(Sv, i, joint_twist(tree, i, A, v))
        for c in range(NV[tree.kind[i]]):
            store_twist(body, tree.iv[i] + c, joint_column(tree, i, c, A[0] - A[0]))


def on(kind, x):
    """(n,) numbers, or eight of each in their lanes: rows of x (8, n)."""
    return np.ascontiguousarray(x.T) if kind == "Lanes" else np.ascontiguousarray(x[0])


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("kind", ["float64", "Lanes"])
def test_columns_are_those_of_the_body_turned(name, kind):
    """And S v is their sum; what lies beyond a joint's own columns stays."""
    model, rng = MODELS[name], np.random.default_rng(3)
    n, nv, width = model.n_bodies, model.nv, 8 if kind == "Lanes" else 1
    R = np.array([random_rotations(rng, n) for _ in range(8)])
    v = rng.standard_normal((8, nv))
    s, Sv, body = (on(kind, np.full((8, size), 7.0)) for size in (6 * nv, 6 * n, 6 * nv))
    columns(model.index, model.constants, on(kind, R.reshape(8, -1)), on(kind, v), s, Sv, body)
    s, Sv, body = (x.reshape(-1, width).T for x in (s, Sv, body))
    kinds, iv = model.index[8 + n:8 + 2 * n], model.index[8 + 3 * n:8 + 4 * n]
    assert set(kinds[1:]) <= {SCREW, BALL, FREE} and s.shape == (width, 6 * nv)
    for lane in range(width):
        for i in range(1, n):
            turned = []
            for k in range(iv[i], iv[i] + NV[kinds[i]]):
                S = body[lane, 6 * k:6 * k + 6]
                turned.append(np.r_[R[lane, i] @ S[:3], R[lane, i] @ S[3:]])
                np.testing.assert_allclose(s[lane, 6 * k:6 * k + 6], turned[-1], atol=1e-15, rtol=0)
            expected = np.transpose(turned) @ v[lane, iv[i]:iv[i] + NV[kinds[i]]]
            np.testing.assert_allclose(Sv[lane, 6 * i:6 * i + 6], expected, atol=5e-15, rtol=0)


def test_the_models_have_all_kinds():
    model = MODELS["every kind, floating"]
    n = model.n_bodies
    assert set(model.index[9 + n:8 + 2 * n]) == {SCREW, BALL, FREE}
