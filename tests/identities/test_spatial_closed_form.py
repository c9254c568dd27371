"""The closed form in spatial coordinates: against the recursions, the body form, the reference of any order, and differences."""
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import liedyn as ld
from bridge import relative
from liedyn.model.spatial import transform_inertia
from matrices import adjoint, derivative, inverse
from spatial_series import reference_inverse
from zoo import ROBOTS, model_of, robots, state

EVERY = pytest.mark.parametrize("name", ROBOTS)
FLOATING = pytest.mark.parametrize("name", [name for name, robot in ROBOTS.items() if robot.base == "floating"])
exploring = settings(max_examples=20, deadline=None, derandomize=True, database=None)
CLOSE = 1e-12        # everything about the world's origin, up to ten metres away: two digits less than the recursions


def motion(model, seed):
    q, v, a, jerk = state(model, seed)
    return q, v, a, jerk


def some_wrenches(model, seed):
    return np.random.default_rng([seed, 5]).standard_normal((2, len(model.link_names), 6))


@EVERY
def test_order_0(name, worst):
    """M, C v and g of Proposition 1, each against its own recursion; external wrenches too.
    Checks: AGF (10)-(13), Proposition 1."""
    model = model_of(name)
    q, v, a, _ = motion(model, 1)
    form, M = ld.spatial_closed_form(model, q), ld.mass_matrix(model, q)
    g = ld.gravity_force(model, q)
    Cv = ld.inverse_dynamics(model, q, v, 0 * v, passive=False) - g
    assert worst("spatial form: M", relative(form.mass_matrix, M)) < CLOSE
    assert worst("spatial form: g", relative(form.gravity_force, g)) < CLOSE
    assert worst("spatial form: C v", relative(form.coriolis_matrix(v) @ v, Cv, np.abs(g).max())) < CLOSE
    W = some_wrenches(model, 1)[0]
    expected = sum(ld.jacobian(model, q, link, frame="world").T @ W[k] for k, link in enumerate(model.link_names))
    assert worst("spatial form: J^T W", relative(form.external_force(W), expected)) < CLOSE
    tau = reference_inverse(model, q, np.stack([v, a]), W[None], "world", passive=False)[0]
    assert worst("spatial form: order 0", relative(form.inverse_dynamics(v, a, W), tau)) < CLOSE


@EVERY
def test_the_coriolis_matrix_is_admissible(name, worst):
    """Lemma 1: dM/dt - 2C is skew, dM/dt being that of the recursion. Checks: AGF (21), (32), Lemma 1."""
    model = model_of(name)
    q, v = motion(model, 2)[:2]
    form, dM = ld.spatial_closed_form(model, q), ld.mass_matrix_rate(model, q, v)
    scale = np.abs(form.mass_matrix).max()
    assert worst("spatial form: dM/dt", np.abs(form.mass_matrix_rate(v) - dM).max() / scale) < CLOSE
    N = dM - 2 * form.coriolis_matrix(v)
    assert worst("Lemma 1: skewness", np.abs(N + N.T).max() / scale) < CLOSE


@EVERY
@pytest.mark.parametrize("base", ["local", "world"])
def test_order_1(name, base, worst):
    """Proposition 1, with external wrenches, against the recursion of any order.
    Checks: AGF (14)-(19), Proposition 1."""
    model = model_of(name)
    if base == "world" and model.base != "floating":
        with pytest.raises(ld.ShapeError, match=r"base_frame=.world. requires a floating base; the base of this robot is fixed"):
            ld.spatial_closed_form(model, model.neutral(), base_frame=base)
        return
    q, *v = motion(model, 3)
    W = some_wrenches(model, 3)
    form = ld.spatial_closed_form(model, q, base_frame=base)
    tau = reference_inverse(model, q, np.stack(v), W, "world", passive=False, base=base)
    assert worst("spatial form: order 0", relative(form.inverse_dynamics(*v[:2], W[0]), tau[0])) < CLOSE
    assert worst("spatial form: order 1", relative(form.inverse_dynamics_rate(*v, *W), tau[1])) < CLOSE
    still = reference_inverse(model, q, np.stack(v), [W[0], 0 * W[0]], "world", passive=False, base=base)[1]
    assert relative(form.inverse_dynamics_rate(*v, W[0]), still) < CLOSE
    alone = reference_inverse(model, q, np.stack(v), passive=False, base=base)[1]
    assert relative(form.inverse_dynamics_rate(*v), alone) < CLOSE


@EVERY
def test_rates_of_the_factors(name, worst):
    """Along q (+) t v, v + t a: whatever depends on them has at t = 0 the rate that it says.
    Checks: AGF (15)-(18), (34)-(40), Table 2."""
    model = model_of(name)
    q, v, a, _ = motion(model, 4)
    form = ld.spatial_closed_form(model, q)
    rates = {"J": form.J_rate(v), "B": form.B_rate(v), "mass_matrix": form.mass_matrix_rate(v),
             "gravity_force": form.gravity_force_rate(v), "twists": form.twist_rates(v, a), "A": form.A_rate(v, a),
             "J_rate": form.J_second_rate(v, a), "coriolis_matrix": form.coriolis_matrix_rate(v, a)}

    def moved(what, t):
        value = getattr(ld.spatial_closed_form(model, ld.integrate(model, q, t * v)), what)
        return value(v + t * a) if callable(value) else value
    for what, rate in rates.items():
        slope = derivative(lambda t, what=what: moved(what, t), 0.02)
        # differences of eighth order and what they leave: the tip of the long chain turns at ten rad/s
        assert worst("spatial form: rates", relative(rate, slope, np.abs(moved(what, 0.0)).max()), f"{what}, {name}") < 1e-7


@EVERY
def test_bridge_to_the_body_form(name, worst):
    """Factors: X takes those of Ploen to these. Coriolis matrices: two admissible ones, apart by J^T X^-T D X^-1 J."""
    model = model_of(name)
    q, v = motion(model, 5)[:2]
    form, body = ld.spatial_closed_form(model, q), ld.closed_form(model, q)
    X, back = form.X, np.linalg.inv(form.X) if len(form.X) else form.X
    for one, other in ((form.S, X @ body.S), (form.L, X @ body.G @ back), (form.J, X @ body.G @ body.S),
                       (form.B, back.T @ body.J @ back), (form.P, X @ body.Gamma @ back),
                       (-form.G, X @ body.G @ body.P0 @ np.r_[0, 0, 0, -model.gravity])):
        assert worst("spatial form: bridge of factors", relative(one, other, 1e-3)) < CLOSE
    assert not np.linalg.matrix_power(form.P, len(form.parent)).any()
    np.testing.assert_array_equal(form.L @ (np.eye(len(X)) - form.P), np.eye(len(X)))
    C = ld.coriolis_matrix(model, q, v)
    scale = max(np.abs(C).max(), 1e-3)
    assert worst("spatial form: Ploen's C", np.abs(form.ploen_coriolis_matrix(v) - C).max() / scale) < CLOSE
    D = np.zeros_like(X)
    for i, (I, V) in enumerate(zip(body.rigid, (back @ form.twists(v)).reshape(-1, 6), strict=True)):
        Z = inverse(model.link_pose[model.link_index(body.links[i])]) if body.links[i] else np.eye(4)   # on the joint's axis
        own = adjoint(inverse(Z))
        I, V = transform_inertia(inverse(Z), I), own @ V
        h, w, u = (_skew(x) for x in (I[1:4], V[:3], V[3:]))
        D[6 * i:6 * i + 6, 6 * i:6 * i + 6] = own.T @ np.block(
            [[h @ u - u @ h, w @ h + I[0] * u], [I[0] * u - h @ w, I[0] * w]]) @ own
    np.testing.assert_allclose(D, -D.T, atol=1e-13 * max(np.abs(D).max(initial=0.0), 1.0))
    GS = body.G @ body.S
    assert worst("spatial form: Lemma 1 - Ploen", np.abs(form.coriolis_matrix(v) - C - GS.T @ D @ GS).max() / scale) < CLOSE
    assert np.abs((form.coriolis_matrix(v) - C) @ v).max() / scale < CLOSE


def _skew(x): return np.array([[0, -x[2], x[1]], [x[2], 0, -x[0]], [-x[1], x[0], 0.0]])


def test_the_two_coriolis_matrices_differ():
    """So that the test above does not compare a matrix with itself."""
    model = model_of("every kind twice, floating")
    q, v = motion(model, 6)[:2]
    assert relative(ld.spatial_closed_form(model, q).coriolis_matrix(v), ld.coriolis_matrix(model, q, v)) > 0.01


@FLOATING
def test_spatial_coordinates_of_the_base(name, worst):
    """Checks: AGF Remark 1. The converters take one form's motion and force to the other's; the mass matrix changes by Ad^-1."""
    model = model_of(name)
    q, *v = motion(model, 7)
    v, base = np.stack(v), q[model.joints[0].q]
    own, spatial = (ld.spatial_closed_form(model, q, base_frame=base) for base in ("local", "world"))
    u = v.copy()
    u[:, :6] = ld.spatial_twists(base, v[:, :6])
    tau = np.stack([own.inverse_dynamics(*v[:2]), own.inverse_dynamics_rate(*v)])
    tau[:, :6] = ld.spatial_wrenches(base, v[:, :6], tau[:, :6])
    found = spatial.inverse_dynamics(*u[:2]), spatial.inverse_dynamics_rate(*u)
    assert worst("spatial base: order 0", relative(found[0], tau[0])) < CLOSE
    assert worst("spatial base: order 1", relative(found[1], tau[1])) < CLOSE
    change = np.eye(model.nv)
    change[:6, :6] = np.linalg.inv(own.X[:6, :6])
    assert worst("spatial base: M", relative(spatial.mass_matrix, change.T @ own.mass_matrix @ change)) < CLOSE
    N = spatial.mass_matrix_rate(u[0]) - 2 * spatial.coriolis_matrix(u[0])
    assert worst("Lemma 1: skewness", relative(N, -N.T, 1e-3)) < CLOSE
    with pytest.raises(ld.ShapeError, match="Ploen's matrix requires body coordinates of the base, got base_frame='world'"):
        spatial.ploen_coriolis_matrix(u[0])


@given(robots, st.integers(0, 1000))
@exploring
def test_any_tree(robot, seed):
    model = ld.build(robot)
    q, *v = motion(model, seed)
    form, tau = ld.spatial_closed_form(model, q), reference_inverse(model, q, np.stack(v), passive=False)
    assert relative(form.inverse_dynamics(*v[:2]), tau[0], 1e-6) < CLOSE
    assert relative(form.inverse_dynamics_rate(*v), tau[1], 1e-6) < CLOSE


def test_errors():
    model = model_of("every kind, floating")
    q, v, a, jerk = motion(model, 8)
    with pytest.raises(ld.ShapeError, match=r"base_frame must be one of local, world, got 'body' .called .local. here."):
        ld.spatial_closed_form(model, q, base_frame="body")
    with pytest.raises(ld.ShapeError, match=r"q has the wrong shape: expected \(35,\), got \(2, 35\) \(the closed form is"):
        ld.spatial_closed_form(model, np.stack([q, q]))
    form = ld.spatial_closed_form(model, q)
    with pytest.raises(ld.ShapeError, match=r"v has the wrong shape: expected \(32,\), got \(2, 32\) \(the closed form is"):
        form.coriolis_matrix(np.stack([v, v]))
    with pytest.raises(ld.ShapeError, match=r"a has the wrong shape: expected \(32,\), got \(3,\)"):
        form.inverse_dynamics_rate(v, a[:3], jerk)
    with pytest.raises(ld.ConfigurationError, match=r"jerk\[0\] is not finite: got nan"):
        form.inverse_dynamics_rate(v, a, jerk * np.nan)
    with pytest.raises(ld.ShapeError, match=r"wrenches has the wrong shape: expected \(15, 6\), got \(6,\)"):
        form.inverse_dynamics(v, a, np.ones(6))
    with pytest.raises(ld.ConfigurationError, match=r"wrench_rates\[0, 0\] is not finite: got inf"):
        W = some_wrenches(model, 8)
        form.inverse_dynamics_rate(v, a, jerk, W[0], W[1] * np.inf)


def test_wrenches_that_begin_at_zero():
    """Their rates count where the wrenches are not given."""
    model = model_of("every kind, floating")
    q, v, a, jerk = motion(model, 3)
    form, rates = ld.spatial_closed_form(model, q), some_wrenches(model, 3)[1]
    none = np.zeros_like(rates)
    with_rates = form.inverse_dynamics_rate(v, a, jerk, None, rates)
    assert np.array_equal(with_rates, form.inverse_dynamics_rate(v, a, jerk, none, rates))
    assert not np.allclose(with_rates, form.inverse_dynamics_rate(v, a, jerk))
