"""Time derivatives of any order of inverse, forward and hybrid dynamics, over every joint kind.

What errors are measured by:

- Inverse dynamics: of the largest number that a recursion in body frames sums at that order (`largest_terms`). What a joint feels
  of it may be smaller: with the order grows the part of a force that is a difference of larger ones. On robots of several joints
  that is a digit or two; a pendulum's force of order 6 is 10^4 times smaller than the rates of its momentum in a falling frame.
- What springs, damping and friction give to a coordinate is a scale for that coordinate only: friction changes within 0.01 rad/s,
  so its k-th derivative may be 100^k times larger than all else.
- Forward and hybrid dynamics: a^(k) = M^-1 (tau^(k) - …), where … holds all lower a^(j), so what rounding took is multiplied at
  each order, whatever the program. `unavoidable` is what changes in the long double solution when each argument and each number
  of the model changes by half its last digit, and each force by that of the largest number that is summed. Inverse dynamics of
  the result gives the forces back to rounding all the same.
"""
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import complex_time
import liedyn as ld
import zoo
from bridge import relative
from rounding import assert_same
from spatial_series import largest_terms, reference_hybrid, reference_inverse

ORDERS = 7                   # 0 … 6
FRAMES = ("local", "local_world_aligned", "world")
EVERY = pytest.mark.parametrize("name", zoo.ROBOTS)
FEW = pytest.mark.parametrize("name", ["every kind", "every kind, floating", "ball", "free", "screws"])
SEEDS = st.integers(0, 2**32 - 1)

HALF = np.finfo(float).eps / 2
INVERSE_BOUND = 1e-13        # measured 6e-15: the sum of some hundred roundings
FRICTION_BOUND = 1e-12       # of the coordinate's own: its recursion divides by what it summed
UNAVOIDABLE = 50             # times: measured 5; the largest of four draws may be small by chance where there is one joint
CAUCHY_BOUND = 1e-12         # of the largest force; measured 1e-14 at order 6: 1e-16 of the largest on the circle, times 6!/0.5^6


def case(model, seed=0, orders=ORDERS, size=()):
    """q, derivatives v, a, … (orders + 1) and of wrenches (orders) of a random motion."""
    rng = np.random.default_rng([seed, 5])
    return (ld.random_configuration(model, rng, size), rng.standard_normal((*size, orders + 1, model.nv)),
            rng.standard_normal((*size, orders, len(model.link_names), 6)))


def largest(x):
    """Of each order."""
    return np.abs(x).max(axis=-1, initial=0.0).astype(float)


def assert_orders(value, truth, scale, bound, worst, what, where):
    for k in range(len(truth)):
        error = np.abs(value[k] - truth[k]).max(initial=0.0) / scale[k]
        assert worst(f"{what}, order {k:2d}", error, where) < bound, f"order {k}: {error:.1e}"


def scale_of(model, q, v, tau, base="local"):
    """Of the rigid forces of each order."""
    return largest_terms(model, q, v, base) + largest(tau)


def assert_inverse(model, seed, worst, where, frame="local", wrenches=True, orders=ORDERS):
    q, v, F = case(model, seed, orders)
    F = F if wrenches else None
    rigid = reference_inverse(model, q, v, F, frame, passive=False, dtype=np.longdouble)
    scale = scale_of(model, q, v, rigid)
    got = ld.higher_order_inverse_dynamics(model, q, v, f_ext_derivatives=F, f_ext_frame=frame, passive=False)
    assert_orders(got, rigid, scale, INVERSE_BOUND, worst, "inverse of any order", where)
    both = reference_inverse(model, q, v, F, frame, dtype=np.longdouble)
    got = ld.higher_order_inverse_dynamics(model, q, v, f_ext_derivatives=F, f_ext_frame=frame)
    errors = np.abs(got - both) / (scale[:, None] + np.abs(both - rigid))
    for k in range(orders):
        note = worst(f"inverse of any order, passive forces, order {k:2d}", errors[k].max(initial=0.0), where)
        assert note < FRICTION_BOUND, f"order {k}: {note:.1e}"


# inverse ----------------------------------------------------------------------------------------------------------
@EVERY
def test_inverse_of_every_kind(name, worst):
    """Checks: AGF Algorithms 1-2."""
    assert_inverse(zoo.model_of(name), 1, worst, name, wrenches=False)


@FEW
@pytest.mark.parametrize("frame", FRAMES)
def test_inverse_with_wrenches(name, frame, worst):
    """Checks: AGF (67)-(70), Algorithm 2."""
    assert_inverse(zoo.model_of(name), 2, worst, f"{name}, {frame}", frame)


@settings(max_examples=15, deadline=None)
@given(zoo.robots, SEEDS, st.sampled_from(FRAMES), st.booleans())
def test_inverse_of_random_trees(worst, robot, seed, frame, wrenches):
    assert_inverse(ld.build(robot), seed, worst, f"{robot.name}, {seed}, {frame}", frame, wrenches)


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("name", ["every kind", "every kind, floating", "free", "every kind, a chain"])
def test_inverse_by_cauchy_s_integral(name, frame, worst):
    """Another program, from the description, that knows order 0 only; the reference of the other tests passes it, too."""
    model = zoo.model_of(name)
    q, v, F = case(model, 3)
    truth = complex_time.inverse_derivatives(model, q, v, ORDERS, F, frame)
    got = ld.higher_order_inverse_dynamics(model, q, v, f_ext_derivatives=F, f_ext_frame=frame, passive=False)
    assert_orders(got, truth, largest(truth), CAUCHY_BOUND, worst, "inverse of any order, Cauchy", name)
    reference = reference_inverse(model, q, v, F, frame, passive=False, dtype=np.longdouble)
    assert_orders(reference, truth, largest(truth), CAUCHY_BOUND, worst, "spatial reference, Cauchy", name)


@FEW
def test_order_0_is_inverse_dynamics(name):
    model = zoo.model_of(name)
    q, v, F = case(model, 4, 1)
    for f in (None, F):
        got = ld.higher_order_inverse_dynamics(model, q, v, f_ext_derivatives=f)
        assert got.shape == (1, model.nv)
        assert relative(got[0], ld.inverse_dynamics(model, q, *v, f_ext=None if f is None else f[0])) < 1e-14


@FEW
def test_lower_orders_do_not_know_of_higher_ones(name):
    """tau^(k) of a call to order r is that of a call to order k: rates that are not given matter to higher orders only."""
    model = zoo.model_of(name)
    q, v, F = case(model, 5)
    whole = ld.higher_order_inverse_dynamics(model, q, v, f_ext_derivatives=F)
    for orders in range(1, ORDERS):
        part = ld.higher_order_inverse_dynamics(model, q, v[:orders + 1], f_ext_derivatives=F[:orders])
        np.testing.assert_allclose(part, whole[:orders], rtol=1e-13, atol=1e-13 * np.abs(part).max())


def test_friction_at_rest_and_through_zero():
    """x / sqrt(x^2 + s^2) at x = 0 is odd: with x' = 1 its derivatives are 1/s, 0, -3/s^3, 0, 45/s^5."""
    from liedyn.model.description import Coordinate, Joint, Robot
    from liedyn.model.links import Link
    s = 0.02
    links = Link("a", 1.0), Link("b", 1.0, (0, 0, 0), (1, 0, 0, 1, 0, 1))
    model = ld.build(Robot("r", links, (Joint("j", "revolute", "a", "b", axes=((0.0, 0.0, 1.0),),
                                              coordinates=(Coordinate(friction=2.0, friction_speed=s),)),)))
    v = np.zeros((7, 1))
    assert not ld.higher_order_inverse_dynamics(model, [0.3], v).any()
    v[1] = 1.0
    tau = ld.higher_order_inverse_dynamics(model, [0.3], v)[:, 0]
    np.testing.assert_allclose(tau, [1.0, 2 / s, 0, -6 / s**3, 0, 90 / s**5], rtol=1e-13, atol=1e-8)


# batches ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("count", [1, 5, 8, 11])
@pytest.mark.parametrize("frame", FRAMES)
def test_a_batch_is_its_states(count, frame, worst):
    """Lanes and float64: other products may be fused, no more."""
    model = zoo.model_of("every kind, floating")
    q, v, F = case(model, 6, 4, (count,))
    mask = np.arange(model.nv) % 3 == 0
    with_ = {"f_ext_derivatives": F, "f_ext_frame": frame}
    alone = [{"f_ext_derivatives": f, "f_ext_frame": frame} for f in F]
    tau = ld.higher_order_inverse_dynamics(model, q, v, **with_)
    a = ld.higher_order_forward_dynamics(model, q, v[:, 0], tau, **with_)
    mixed = ld.higher_order_hybrid_dynamics(model, q, v[:, 0], v[:, 1:], tau, mask, **with_)
    one_tau = [ld.higher_order_inverse_dynamics(model, q[i], v[i], **alone[i]) for i in range(count)]
    one_a = [ld.higher_order_forward_dynamics(model, q[i], v[i, 0], tau[i], **alone[i]) for i in range(count)]
    one_mixed = [ld.higher_order_hybrid_dynamics(model, q[i], v[i, 0], v[i, 1:], tau[i], mask, **alone[i]) for i in range(count)]
    for k in range(4):
        assert worst(f"Lanes against float64, inverse of any order, order {k}",
                     relative(tau[:, k], np.array(one_tau)[:, k])) < 1e-12
        bound = 1e-9 * 100**k       # what forward dynamics makes of a last digit, with cond(M) = 1e4
        for got, expected in ((a, one_a), (mixed[0], [x for x, _ in one_mixed]), (mixed[1], [y for _, y in one_mixed])):
            assert worst(f"Lanes against float64, forward of any order, order {k}",
                         relative(got[:, k], np.array(expected)[:, k])) < bound


def test_places_in_a_batch_do_not_matter():
    """Bitwise, as each lane does the same."""
    model = zoo.model_of("every kind, floating")
    q, v, F = case(model, 7, 3, (11,))
    tau = ld.higher_order_inverse_dynamics(model, q, v, f_ext_derivatives=F)
    a = ld.higher_order_forward_dynamics(model, q, v[:, 0], tau, f_ext_derivatives=F)
    for part in (slice(0, 5), slice(3, 11), slice(4, 6)):
        again = ld.higher_order_inverse_dynamics(model, q[part], v[part], f_ext_derivatives=F[part])
        assert_same(again, tau[part])
        again = ld.higher_order_forward_dynamics(model, q[part], v[part, 0], tau[part], f_ext_derivatives=F[part])
        assert_same(again, a[part])


# forward and hybrid -----------------------------------------------------------------------------------------------
def unavoidable(model, q, v, tau, mask, F, frame="local", passive=False, base="local", draws=4):
    """Of a and of tau, (orders,) each."""
    rng, scale = np.random.default_rng(11), scale_of(model, q, v, tau, base)

    def changed(x, size=None):
        x = np.asarray(x).astype(np.longdouble)
        return x + (np.abs(x) if size is None else size) * HALF * rng.choice([-1.0, 1.0], x.shape)
    out = np.zeros((2, len(tau)))
    for _ in range(draws):
        near, y = model._copy(constants=changed(model.constants)), changed(v)
        a, force = reference_hybrid(near, changed(q), y[0], y[1:], changed(tau, scale[:, None]), mask,
                                    None if F is None else changed(F), frame, passive, base, np.longdouble)
        out = np.maximum(out, [largest(a - v[1:]), largest(force - tau)])
    least = HALF * largest(v[1:]), INVERSE_BOUND / UNAVOIDABLE * scale         # forces are sums of many terms in any case
    return np.maximum(out, least)


def assert_unavoidable(value, truth, least, worst, what, where):
    for k in range(len(truth)):
        note = worst(f"{what}: error by the unavoidable, order {k:2d}", np.abs(value[k] - truth[k]).max(initial=0.0) / least[k],
                     where)
        assert note < UNAVOIDABLE, f"order {k}: {note:.1f} times {least[k]:.1e}"


def assert_hybrid(model, seed, mask, worst, where, frame="local", wrenches=True, base="local"):
    """Solution and residual, for a motion whose forces are those of long double."""
    q, v, F = case(model, seed)
    F = F if wrenches else None
    tau = reference_inverse(model, q, v, F, frame, False, base, np.longdouble)
    given_a, given_tau = np.where(mask, v[1:], np.nan), np.where(mask, np.nan, tau.astype(float))
    a, force = ld.higher_order_hybrid_dynamics(model, q, v[0], given_a, given_tau, mask, f_ext_derivatives=F, f_ext_frame=frame,
                                               passive=False, base_frame=base)
    np.testing.assert_array_equal(a[:, mask], given_a[:, mask])
    np.testing.assert_array_equal(force[:, ~mask], given_tau[:, ~mask])
    least = unavoidable(model, q, v, tau, mask, F, frame, base=base)
    assert_unavoidable(a, v[1:], least[0], worst, "hybrid of any order, a", where)
    assert_unavoidable(force, tau, least[1], worst, "hybrid of any order, tau", where)
    motion = np.concatenate([v[:1], a])
    again = ld.higher_order_inverse_dynamics(model, q, motion, f_ext_derivatives=F, f_ext_frame=frame, passive=False,
                                             base_frame=base)
    scale = scale_of(model, q, motion, force, base)
    assert_orders(again, force, scale, INVERSE_BOUND, worst, "hybrid of any order: residual", where)


@EVERY
def test_forward_of_every_kind(name, worst):
    """Checks: AGF Algorithm 3, Lemma 2."""
    model = zoo.model_of(name)
    assert_hybrid(model, 8, np.zeros(model.nv, bool), worst, name, wrenches=False)


@EVERY
def test_hybrid_of_every_kind(name, worst):
    """Every second coordinate, also of a ball or free joint. Checks: AGF (24)-(26), Algorithm 4."""
    model = zoo.model_of(name)
    for first in (0, 1):
        assert_hybrid(model, 9, np.arange(model.nv) % 2 == first, worst, name, wrenches=False)


@settings(max_examples=15, deadline=None)
@given(zoo.robots, SEEDS, st.sampled_from(FRAMES), st.sampled_from([0.0, 0.3, 0.5, 0.9]))
def test_hybrid_of_random_trees(worst, robot, seed, frame, part):
    model = ld.build(robot)
    mask = np.random.default_rng(seed).random(model.nv) < part
    assert_hybrid(model, seed, mask, worst, f"{robot.name}, {seed}, {frame}", frame)


FLOATING = pytest.mark.parametrize("name", [name for name in zoo.ROBOTS if zoo.ROBOTS[name].base == "floating"])


@FLOATING
@pytest.mark.parametrize("frame", FRAMES)
def test_inverse_with_a_spatial_base(name, frame, worst):
    """Also with bodies on the base's limbs that are ball and free joints: only the base's own coordinates change."""
    model = zoo.model_of(name)
    q, v, F = case(model, 15)
    truth = reference_inverse(model, q, v, F, frame, False, "world", np.longdouble)
    got = ld.higher_order_inverse_dynamics(model, q, v, f_ext_derivatives=F, f_ext_frame=frame, passive=False, base_frame="world")
    assert_orders(got, truth, scale_of(model, q, v, truth, "world"), INVERSE_BOUND, worst, "inverse with a spatial base", name)


@FLOATING
@pytest.mark.parametrize("given", [True, False])
def test_hybrid_with_a_spatial_base(name, given, worst):
    """The base's motion given, or the wrench on it; of the joints every third moves as told."""
    model = zoo.model_of(name)
    mask = np.arange(model.nv) % 3 == 0
    mask[:6] = given
    assert_hybrid(model, 16, mask, worst, f"{name}, spatial base", "world", base="world")


@FEW
def test_every_joint_prescribed_is_inverse(name):
    model = zoo.model_of(name)
    q, v, F = case(model, 10)
    tau = ld.higher_order_inverse_dynamics(model, q, v, f_ext_derivatives=F)
    given_tau, mask = np.full((ORDERS, model.nv), np.nan), np.ones(model.nv, bool)
    a, force = ld.higher_order_hybrid_dynamics(model, q, v[0], v[1:], given_tau, mask, f_ext_derivatives=F)
    np.testing.assert_array_equal(a, v[1:])
    np.testing.assert_allclose(force, tau, rtol=1e-12, atol=1e-13 * np.abs(tau).max())


@FEW
def test_no_joint_prescribed_is_forward(name):
    model = zoo.model_of(name)
    q, v, F = case(model, 11)
    tau = ld.higher_order_inverse_dynamics(model, q, v, f_ext_derivatives=F)
    given_a = np.full((ORDERS, model.nv), np.nan)
    a, force = ld.higher_order_hybrid_dynamics(model, q, v[0], given_a, tau, np.zeros(model.nv, bool), f_ext_derivatives=F)
    np.testing.assert_array_equal(force, tau)
    assert_same(a, ld.higher_order_forward_dynamics(model, q, v[0], tau, f_ext_derivatives=F))


@FEW
def test_order_0_is_forward_and_hybrid_dynamics(name):
    model = zoo.model_of(name)
    q, v, F = case(model, 12, 1)
    tau, mask = np.random.default_rng(0).standard_normal((1, model.nv)), np.arange(model.nv) % 2 == 0
    a = ld.higher_order_forward_dynamics(model, q, v[0], tau, f_ext_derivatives=F)
    assert a.shape == (1, model.nv)
    assert relative(a[0], ld.forward_dynamics(model, q, v[0], tau[0], f_ext=F[0])) < 1e-12
    got = ld.higher_order_hybrid_dynamics(model, q, v[0], v[1:], tau, mask, f_ext_derivatives=F)
    for x, y in zip(got, ld.hybrid_dynamics(model, q, v[0], v[1], tau[0], mask, f_ext=F[0]), strict=True):
        assert relative(x[0], y) < 1e-12


@FEW
def test_passive_forces_act_on_motion(name, worst):
    """Springs, damping and friction in a forward solution to order 3, slow and fast joints alike."""
    model = zoo.model_of(name)
    q, v, F = case(model, 13, 4)
    v[0, ::2] *= 0.02
    none = np.zeros(model.nv, bool)
    tau = reference_inverse(model, q, v, F, dtype=np.longdouble)
    a = ld.higher_order_forward_dynamics(model, q, v[0], tau.astype(float), f_ext_derivatives=F)
    least = unavoidable(model, q, v, tau, none, F, passive=True)[0]
    assert_unavoidable(a, v[1:], least, worst, "forward of any order with passive forces", name)


# high orders ------------------------------------------------------------------------------------------------------
HIGH = 13


@pytest.mark.parametrize("name", ["every kind, floating", "one degree of freedom each", "a long chain"])
def test_digits_to_order_12(name, worst):
    """Inverse dynamics keeps its digits at every order; forward dynamics loses what is unavoidable and no more. The table at the
    end of a run is in decimal digits of the largest force or acceleration, of the 16 that a double has."""
    model = zoo.model_of(name)
    assert_inverse(model, 14, worst, name, wrenches=False, orders=HIGH)
    q, v, _ = case(model, 14, HIGH)
    tau = reference_inverse(model, q, v, passive=False, dtype=np.longdouble)
    none = np.zeros(model.nv, bool)
    inverse = ld.higher_order_inverse_dynamics(model, q, v, passive=False)
    a = ld.higher_order_forward_dynamics(model, q, v[0], tau.astype(float), passive=False)
    for what, x, truth in (("inverse", inverse, tau), ("forward", a, v[1:])):
        lost = np.log10(np.maximum(largest(x - truth) / largest(truth) / HALF, 1.0))
        for k in range(0, HIGH, 3):
            worst(f"decimal digits lost by {what} dynamics of {name!r}, order {k:2d}", lost[k])
    assert_unavoidable(a, v[1:], unavoidable(model, q, v, tau, none, None)[0], worst, "forward to order 12", name)
