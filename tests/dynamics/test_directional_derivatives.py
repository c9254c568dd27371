"""Arguments of the directional derivatives: errors and their texts."""
import numpy as np
import pytest

import liedyn as ld
from bridge import relative
from zoo import model_of, state

NAME = "every kind"


@pytest.fixture
def case():
    model = model_of(NAME)
    return model, *state(model, 1)


def call(case, function="inverse", **given):
    model, q, v, a, tau = case
    if function == "hybrid":
        return ld.hybrid_dynamics_directional(model, q, v, a, tau, np.arange(model.nv) % 2 == 0, **given)
    return getattr(ld, f"{function}_dynamics_directional")(model, q, v, a if function == "inverse" else tau, **given)


@pytest.mark.parametrize(("given", "error", "message"), [
    ({"dq": [1.0]}, ld.ShapeError, r"dq has the wrong shape: expected \(…, 28\), got \(1,\)"),
    ({"dv": "1"}, ld.ShapeError, "dv is not an array of numbers: got str"),
    ({"df_ext": np.zeros((2, 6))}, ld.ShapeError, r"df_ext has the wrong shape: expected \(…, \d+, 6\), got \(2, 6\)"),
    ({"df_ext": {"link1": [1.0]}}, ld.ShapeError, r"df_ext\['link1'\] has the wrong shape: expected \(…, 6\), got \(1,\)"),
    ({"df_ext": {"lonk1": np.zeros(6)}}, ValueError, "no link 'lonk1'; did you mean 'link1'"),
    ({"df_ext": {"link1": np.full(6, np.nan)}}, ld.ConfigurationError, r"df_ext\[\d+, 0\] is not finite: got nan"),
    ({"parameters": ["mass.link1"]}, ld.ShapeError, "parameters must be a mapping from names to rates, got list"),
    ({"parameters": {"mass.link1": "1"}}, ld.ShapeError, r"parameters\['mass.link1'\] is not an array of numbers: got str"),
    ({"parameters": {"mass.link1": np.inf}}, ld.ConfigurationError, r"parameters\['mass.link1'\] is not finite: got inf"),
    ({"parameters": {"mass.lonk1": 1.0}}, ValueError, r"no parameter 'mass.lonk1'; did you mean 'mass.link1'\?"),
], ids=str)
@pytest.mark.parametrize("function", ["inverse", "forward", "hybrid"])
def test_wrong_directions_are_refused(case, function, given, error, message):
    model = case[0]
    with pytest.raises(error, match=message.replace("28", str(model.nv))):
        call(case, function, **given)


def test_a_number_that_is_not_finite_is_named(case):
    model = case[0]
    dq = np.zeros((3, model.nv))
    dq[1, 4] = np.nan
    with pytest.raises(ld.ConfigurationError, match=rf"dq\[4\] \({model.v_names[4]}\) of state 1 is not finite: got nan"):
        call(case, dq=dq)
    model, q, v, a, tau = case
    with pytest.raises(ld.ConfigurationError, match=r"v\[0\] \(.*\) is not finite: got inf"):
        ld.inverse_dynamics_directional(model, q, np.r_[np.inf, v[1:]], a, dq=dq[0])
    with pytest.raises(ld.ConfigurationError, match=r"tau\[2\] \(.*\) is not finite: got nan"):
        ld.forward_dynamics_directional(model, q, v, np.where(np.arange(model.nv) == 2, np.nan, tau), dq=dq[0])
    with pytest.raises(ld.ConfigurationError, match="f_ext contains NaN or infinite values"):
        ld.inverse_dynamics_directional(model, q, v, a, f_ext={"link1": np.full(6, np.nan)})
    for more in ({}, {"dv": np.zeros((2, model.nv))}):
        with pytest.raises(ld.ConfigurationError, match="is not of unit norm"):
            ld.inverse_dynamics_directional(model, 1.1 * q, v, a, **more)


def test_axes_that_do_not_fit_are_named(case):
    model, *_ = case
    with pytest.raises(ld.ShapeError, match=rf"leading axes do not match: dq \(2, {model.nv}\), dv \(3, {model.nv}\)"):
        call(case, dq=np.zeros((2, model.nv)), dv=np.zeros((3, model.nv)))
    with pytest.raises(ld.ShapeError, match=r"leading axes do not match: parameters\['gravity.x'\] \(2,\)"):
        call(case, parameters={"gravity.x": np.zeros(2), "gravity.y": np.zeros(3)})


@pytest.mark.parametrize("mask", [[1, 0], np.zeros(3, bool), np.zeros(28)], ids=str)
def test_a_wrong_mask_is_refused(case, mask):
    model, q, v, a, tau = case
    with pytest.raises(ld.ShapeError, match="prescribed is a mask over v: expected"):
        ld.hybrid_dynamics_directional(model, q, v, a, tau, mask)
    with pytest.raises(ld.ShapeError, match="prescribed is a mask over v: expected"):
        ld.parameter_derivatives(model, q, v, a, ["mass.link1"], of="hybrid", prescribed=mask)


def test_values_are_those_of_the_dynamics_themselves(case):
    """And they are whole, where a part was not to be read."""
    model, q, v, a, tau = case
    mask = np.arange(model.nv) % 2 == 0
    assert relative(call(case)[0], ld.inverse_dynamics(model, q, v, a)) < 1e-14
    assert relative(call(case, "forward")[0], ld.forward_dynamics(model, q, v, tau)) < 1e-11
    for x, y in zip(call(case, "hybrid")[:2], ld.hybrid_dynamics(model, q, v, a, tau, mask), strict=True):
        assert relative(x, y) < 1e-11
    a_before, tau_before = a.copy(), tau.copy()
    call(case, "hybrid", dtau=np.ones(model.nv))
    np.testing.assert_array_equal(a, a_before)
    np.testing.assert_array_equal(tau, tau_before)


def test_shapes_of_values_and_derivatives(case):
    """One state, many directions: the value has no leading axes."""
    model, q, v, a, tau = case
    dq = np.zeros((2, 4, model.nv))
    assert [x.shape for x in call(case, dq=dq)] == [(model.nv,), (2, 4, model.nv)]
    assert [x.shape for x in call(case, "hybrid", dq=dq)] == [(model.nv,), (model.nv,), (2, 4, model.nv), (2, 4, model.nv)]
    q2 = np.array([q, q])[:, None]
    assert [x.shape for x in ld.forward_dynamics_directional(model, q2, v, tau, dq=dq)] == [(2, 4, model.nv)] * 2
    assert [x.shape for x in ld.inverse_dynamics_directional(model, list(q), list(v), list(a))] == [(model.nv,)] * 2


def test_damping_that_a_model_does_not_have_still_has_a_rate():
    """A model without passive forces passes them over, but not their figures' rates; passive=False passes over both."""
    model = model_of("no passive forces, floating")
    assert not model.has_passive_forces
    q, v, a, _ = state(model, 2)
    name = model.v_names[-1]
    _, dtau = ld.inverse_dynamics_directional(model, q, v, a, parameters={f"damping.{name}": 2.0})
    np.testing.assert_allclose(dtau, 2.0 * v * (np.arange(model.nv) == model.nv - 1), rtol=1e-15)
    _, dtau = ld.inverse_dynamics_directional(model, q, v, a, parameters={f"damping.{name}": 2.0}, passive=False)
    assert not dtau.any()


def test_a_vanishing_inertia_is_told():
    """Gimbal lock of a massless-gimbal joint: its acceleration has no derivative, either."""
    from liedyn.model.description import Joint, Robot
    from liedyn.model.links import Link
    robot = Robot("r", (Link("a", 1.0, (0, 0, 0), (1, 0, 0, 1, 0, 1)), Link("b", 1.0, (0, 0, 0), (1, 0, 0, 1, 0, 1))),
                  (Joint("j", "euler", "a", "b", sequence="zyx"),))
    model = ld.build(robot)
    q = np.array([0.3, np.pi / 2, 0.1])
    for lead in ((), (9,)):
        with pytest.raises(ld.ComputationError, match="articulated inertia vanishes"):
            ld.forward_dynamics_directional(model, q, np.zeros((*lead, 3)), np.ones(3), dq=np.ones(3))
        ld.inverse_dynamics_directional(model, q, np.zeros((*lead, 3)), np.ones(3), dq=np.ones(3))


def test_a_result_that_overflows_is_told(case):
    model, q, v, a, _ = case
    for dv in (np.full(model.nv, 1e308), np.full((3, model.nv), 1e308)):
        with pytest.raises(ld.ComputationError, match="the result is not finite"):
            ld.inverse_dynamics_directional(model, q, 1e10 * v, a, dv=dv)


def test_a_robot_without_joints():
    from liedyn.model.description import Robot
    from liedyn.model.links import Link
    model = ld.build(Robot("r", (Link("a", 1.0),), ()))
    rates = {"mass.a": [1.0, 2.0]}
    assert [x.shape for x in ld.inverse_dynamics_directional(model, [], [], [], parameters=rates)] == [(0,), (2, 0)]
    assert [x.shape for x in ld.forward_dynamics_directional(model, [], np.zeros((9, 0)), [], dq=[])] == [(9, 0), (9, 0)]
    assert ld.parameter_derivatives(model, [], [], []).shape == (0, len(ld.parameter_names(model)))
