"""Results in arrays of the caller's."""
import numpy as np
import pytest

import liedyn as ld
from zoo import model_of, state

MODEL = model_of("ball")                     # lines of a larger robot take half a minute to compile
NV = MODEL.nv
MASK = np.arange(NV) % 3 == 0
FUNCTIONS = {
    "inverse_dynamics": lambda q, v, x, y, **how: ld.inverse_dynamics(MODEL, q, v, x, **how),
    "forward_dynamics": lambda q, v, x, y, **how: ld.forward_dynamics(MODEL, q, v, x, **how),
    "hybrid_dynamics": lambda q, v, x, y, **how: ld.hybrid_dynamics(MODEL, q, v, x, y, MASK, **how),
    "mass_matrix": lambda q, v, x, y, **how: ld.mass_matrix(MODEL, q, **how),
    "inverse_mass_matrix": lambda q, v, x, y, **how: ld.inverse_mass_matrix(MODEL, q, **how),
    "inverse_dynamics_derivatives": lambda q, v, x, y, **how: ld.inverse_dynamics_derivatives(MODEL, q, v, x, **how),
    "forward_dynamics_derivatives": lambda q, v, x, y, **how: ld.forward_dynamics_derivatives(MODEL, q, v, x, **how),
    "hybrid_dynamics_derivatives": lambda q, v, x, y, **how: ld.hybrid_dynamics_derivatives(MODEL, q, v, x, y, MASK, **how),
}


def arrays(result):
    return [result] if isinstance(result, np.ndarray) else [x for x in result if x.dtype == float]


def empty_like(result):
    made = tuple(np.full(x.shape, np.nan) for x in arrays(result))
    return made[0] if isinstance(result, np.ndarray) else made


@pytest.fixture(params=["auto", "generic"])
def code(request, monkeypatch):
    monkeypatch.setenv("LIEDYN_CODE", request.param)
    MODEL.clear_cache()
    return request.param


@pytest.mark.parametrize("lead", [(), (9,), (2, 3)])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_results_are_written_to_out(name, lead, code):
    function, given = FUNCTIONS[name], state(MODEL, 1, lead)
    expected = function(*given)
    for _ in range(2):                                                  # the first call of one state takes another way
        out = empty_like(expected)
        found = function(*given, out=out)
        assert type(found) is type(expected)
        for x, y, z in zip(arrays(expected), arrays(found), arrays(out), strict=True):
            assert y is z and np.allclose(x, y, rtol=1e-12, atol=1e-10)


@pytest.mark.parametrize("lead", [(), (9,)])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_out_may_lie_anyhow(name, lead, code):
    """`out` is every second number of a larger array."""
    function, given = FUNCTIONS[name], state(MODEL, 1, lead)
    expected = function(*given)
    wide = [np.zeros((*x.shape[:-1], 2 * x.shape[-1]))[..., ::2] for x in arrays(expected)]
    found = function(*given, out=wide[0] if isinstance(expected, np.ndarray) else tuple(wide))
    for x, y, z in zip(arrays(expected), arrays(found), wide, strict=True):
        assert y is z and np.allclose(x, y, rtol=1e-12, atol=1e-10)


@pytest.mark.parametrize("lead", [(), (9,)])
@pytest.mark.parametrize("name", ["inverse_dynamics", "forward_dynamics"])
def test_out_may_be_an_argument(name, lead, code):
    function, given = FUNCTIONS[name], state(MODEL, 1, lead)
    expected = function(*given)
    for which in (1, 2):                                                # v, and a or tau
        for _ in range(2):
            q, v, x, y = (z.copy() for z in given)
            out = (q, v, x, y)[which]
            assert function(q, v, x, y, out=out) is out and np.allclose(out, expected, rtol=1e-12, atol=1e-10)


def test_out_may_overlap_arguments(code):
    q, v, a, _ = state(MODEL, 1, (9,))
    expected = ld.inverse_dynamics(MODEL, q, v, a)
    memory = np.zeros(9 * NV + NV)
    memory[NV:] = a.ravel()                                             # results of a state lie where the next one's a is
    found = ld.inverse_dynamics(MODEL, q, v, memory[NV:].reshape(9, NV), out=memory[:9 * NV].reshape(9, NV))
    assert np.allclose(found, expected, rtol=1e-12, atol=1e-10)


def test_hybrid_dynamics_in_place(code):
    q, v, a, tau = state(MODEL, 1, (9,))
    expected = ld.hybrid_dynamics(MODEL, q, v, a, tau, MASK)
    ld.hybrid_dynamics(MODEL, q, v, a, tau, MASK, out=(a, tau))
    assert np.allclose(a, expected[0]) and np.allclose(tau, expected[1])


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("lead", [(), (4,)])
def test_an_out_that_cannot_take_the_result_is_refused(name, lead, code):
    function, given = FUNCTIONS[name], state(MODEL, 1, lead)
    expected = function(*given)
    one = isinstance(expected, np.ndarray)

    def refused(make, text):
        out = tuple(make(x) for x in arrays(expected))
        with pytest.raises(ld.ShapeError, match=text):
            function(*given, out=out[0] if one else out)

    refused(lambda x: np.zeros((*x.shape[:-1], x.shape[-1] + 1)), "has the wrong shape")
    refused(lambda x: np.zeros(x.shape, np.float32), "not an array of float64: got ndarray of float32")
    refused(lambda x: x.tolist(), "not an array of float64: got list")
    refused(read_only, "read-only")
    if not one:
        with pytest.raises(ld.ShapeError, match=r"one array for each result: expected a tuple of [23] arrays, got 1"):
            function(*given, out=(np.zeros(arrays(expected)[0].shape),))


def read_only(x):
    x = x.copy()
    x.flags.writeable = False
    return x


@pytest.mark.parametrize("name", FUNCTIONS)
def test_out_with_states_that_fail(name, code):
    function = FUNCTIONS[name]
    q, v, x, y = state(MODEL, 1, (5,))
    q = q.copy()
    q[3] = np.nan
    out = empty_like(function(*state(MODEL, 1, (5,))))
    found = function(q, v, x, y, on_error="nan", out=out)
    for z, o in zip(arrays(found), arrays(out), strict=True):
        assert z is o and np.isnan(z[3]).all() and np.isfinite(np.delete(z, 3, 0)).all()
