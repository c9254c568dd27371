"""Kim's tables of a model, to the letter, against what the library computes. `tests/identities/test_directional.py` has them with
all that a derivative by p can touch."""
import numpy as np
import pytest

import liedyn as ld
from bridge import relative
from zoo import ROBOTS, model_of, state

# Both sides are exact to rounding; forward and hybrid: times the condition of M, 1e4 at most here.
INVERSE, HYBRID = 2e-14, 2e-11
EVERY = pytest.mark.parametrize("name", ROBOTS)


def case(name):
    """A state, a direction of it, and wrenches on links."""
    model, rng = model_of(name), np.random.default_rng(11)
    moving = dict(zip(("dq", "dv"), rng.standard_normal((2, model.nv)), strict=True))
    moving |= dict(zip(("f_ext", "df_ext"), rng.standard_normal((2, len(model.link_names), 6)), strict=True))
    q, v, a, tau = state(model, 9)
    return model, q, v, a, tau, rng.standard_normal((2, model.nv)), moving, ld.kim_tables(model, q, v, **moving)


def masks(model):
    """Joints prescribed as a whole: every other one, the others, all, none."""
    odd = np.zeros(model.nv, bool)
    for joint in model.joints[::2]:
        odd[joint.v] = True
    return odd, ~odd, odd | True, odd & False


@EVERY
def test_tables_2_to_4_are_the_dynamics(name, worst):
    """Checks: K1 Tables 2-4."""
    model, q, v, a, tau, _, moving, tables = case(name)
    more = {"f_ext": moving["f_ext"], "passive": False}
    assert worst("Table 2", relative(ld.inverse_dynamics(model, q, v, a, **more), tables.table_2(a)), name) < INVERSE
    assert worst("Table 3", relative(ld.forward_dynamics(model, q, v, tau, **more), tables.table_3(tau)), name) < HYBRID
    for mask in masks(model):
        for x, y in zip(ld.hybrid_dynamics(model, q, v, a, tau, mask, **more), tables.table_4(a, tau, mask), strict=True):
            assert worst("Table 4", relative(x, y), name) < HYBRID


@EVERY
def test_tables_5_to_7_are_its_derivatives(name, worst):
    """Checks: K1 Tables 5-7."""
    model, q, v, a, tau, (da, dtau), moving, tables = case(name)
    more = moving | {"passive": False}
    for x, y in zip(ld.inverse_dynamics_directional(model, q, v, a, da=da, **more), tables.table_5(a, da), strict=True):
        assert worst("Table 5 of a model", relative(x, y), name) < INVERSE
    for x, y in zip(ld.forward_dynamics_directional(model, q, v, tau, dtau=dtau, **more), tables.table_6(tau, dtau), strict=True):
        assert worst("Table 6 of a model", relative(x, y), name) < HYBRID
    for mask in masks(model):
        ours = ld.hybrid_dynamics_directional(model, q, v, a, tau, mask, da=da, dtau=dtau, **more)
        for x, y in zip(ours, tables.table_7(a, tau, mask, da, dtau), strict=True):
            assert worst("Table 7 of a model", relative(x, y), name) < HYBRID


def test_what_the_tables_do_not_take_is_refused():
    model = model_of("every kind")
    q, v, a, tau = state(model, 1)
    with pytest.raises(ld.ShapeError, match="the tables are computed for one state: leading axes are not supported"):
        ld.kim_tables(model, q[None], v)
    with pytest.raises(ld.ShapeError, match="dq has the wrong shape"):
        ld.kim_tables(model, q, v, dq=np.zeros(model.nv + 1))
    ball = next(joint for joint in model.joints if joint.v.stop - joint.v.start > 1)
    part = np.arange(model.nv) == ball.v.start
    with pytest.raises(ld.ShapeError, match="all coordinates of a joint must be prescribed, or none"):
        ld.kim_tables(model, q, v).table_4(a, tau, part)


def test_the_tables_by_hand():
    """A pendulum of mass 2 at (0, 0, -0.5), turning about y: M = m l^2, gravity m g l sin q."""
    from liedyn.model.description import Joint, Robot
    from liedyn.model.links import Link
    rod = Link("rod", 2.0, (0.0, 0.0, -0.5), (0.0,) * 6)
    joint = Joint("hinge", "revolute", "world", "rod", axes=((0.0, 1.0, 0.0),))
    tables = ld.kim_tables(ld.build(Robot("pendulum", (rod,), (joint,))), [0.3], [0.7], dq=[1.0])
    tau, p_tau = tables.table_5(np.array([1.5]), np.zeros(1))
    np.testing.assert_allclose(tau, 0.5 * 1.5 + 2.0 * 9.81 * 0.5 * np.sin(0.3), rtol=1e-14)
    np.testing.assert_allclose(p_tau, 2.0 * 9.81 * 0.5 * np.cos(0.3), rtol=1e-14)
