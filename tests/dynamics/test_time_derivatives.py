"""Arguments of the dynamics of any order: what is accepted, errors and their texts, what is left alone."""
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import liedyn as ld
from bridge import relative
from rounding import assert_same
from zoo import model_of, state

NAME = "every kind, floating"          # nq 35, nv 32
ORDER = 2
FUNCTIONS = pytest.mark.parametrize("function", ["inverse", "forward", "hybrid"])
SIZES = pytest.mark.parametrize("size", [(), (1,), (11,)], ids=["one", "batch of one", "batch"])
ARGUMENTS = {"inverse": ("q", "v_derivatives"), "forward": ("q", "v", "tau_derivatives"),
             "hybrid": ("q", "v", "a_derivatives", "tau_derivatives")}
MASK = np.arange(32) % 2 == 0


def arrays(size=(), order=ORDER, seed=1):
    """Every argument by its name."""
    model, rng = model_of(NAME), np.random.default_rng(seed)
    q = state(model, seed, size)[0]
    v, a, tau = (rng.standard_normal((*size, rows, model.nv)) for rows in (order + 2, order + 1, order + 1))
    return {"q": q, "v_derivatives": v, "v": v[..., 0, :].copy(), "a_derivatives": a, "tau_derivatives": tau}


def call(function, given, mask=MASK, model=None, **options):
    """Results as a list."""
    before = [given[name] for name in ARGUMENTS[function]] + ([mask] if function == "hybrid" else [])
    result = getattr(ld, f"higher_order_{function}_dynamics")(model or model_of(NAME), *before, **options)
    return list(result) if function == "hybrid" else [result]


def refused(error, function, given, **options) -> str:
    with pytest.raises(error) as caught:
        call(function, given, **options)
    assert isinstance(caught.value, ld.LiedynError) and "\n" not in str(caught.value)
    return str(caught.value)


# shapes -----------------------------------------------------------------------------------------------------------
@FUNCTIONS
@pytest.mark.parametrize("order", range(4))
@pytest.mark.parametrize("size", [(), (1,), (2, 3), (0,), (2, 0)], ids=str)
def test_shapes(function, order, size):
    for result in call(function, arrays(size, order)):
        assert result.shape == (*size, order + 1, 32) and result.dtype == float


@FUNCTIONS
@pytest.mark.parametrize("base", ["local", "world"])
def test_leading_axes(function, base):
    """(2, 3) is six states."""
    given, mask = arrays((2, 3)), MASK.copy()
    mask[:6] = True
    flat = call(function, {name: x.reshape(6, *x.shape[2:]) for name, x in given.items()}, mask, base_frame=base)
    for x, y in zip(call(function, given, mask, base_frame=base), flat, strict=True):
        assert_same(x, y.reshape(2, 3, *y.shape[1:]))


@FUNCTIONS
@pytest.mark.parametrize("base", ["local", "world"])
@pytest.mark.parametrize("order", [0, 2])
def test_axes_are_spread_over_each_other(function, base, order):
    """q of many states with one motion, and the other way round; wrenches of many with one state."""
    given, one, mask = arrays((4, 3), order), arrays((), order), MASK.copy()
    mask[:6] = False
    F = np.random.default_rng(0).standard_normal((4, 3, order + 1, len(model_of(NAME).link_names), 6))
    cases = [(name, None, None) for name in ARGUMENTS[function]] + [(name, F[0, 0], F[0, 0]) for name in ARGUMENTS[function]]
    for name, f_of_all, f_of_one in [*cases, ("f_ext", F, F[3, 1])]:
        mixed = {x: given[x] if x == name else one[x] for x in one}
        alone = {x: given[x][3, 1] if x == name else one[x] for x in one}
        got = call(function, mixed, mask, base_frame=base, f_ext_derivatives=f_of_all)
        for x, y in zip(got, call(function, alone, mask, base_frame=base, f_ext_derivatives=f_of_one), strict=True):
            assert x.shape == (4, 3, order + 1, 32)
            assert relative(x[3, 1], y) < 1e-8               # Lanes against float64; inverses divide by small inertias


@FUNCTIONS
@pytest.mark.parametrize("size", [(), (11,), (2, 3)], ids=str)
@pytest.mark.parametrize("frame", ["local", "local_world_aligned", "world"])
@pytest.mark.parametrize("order", [0, 2])
def test_wrenches_by_name_and_by_array(function, size, frame, order):
    model, rng = model_of(NAME), np.random.default_rng(1)
    given = arrays(size, order)
    by_name = {name: rng.standard_normal((*size, order + 1, 6)) for name in ("link3", "root", model.link_names[-1])}
    F = np.zeros((*size, order + 1, len(model.link_names), 6))
    for name, wrench in by_name.items():
        F[..., model.link_index(name), :] = wrench
    constant = rng.integers(-3, 4, (order + 1, 6)).tolist()          # one for all states; lists of integers are fine
    spread = np.broadcast_to(constant, (*size, order + 1, 6))
    for x, y in ((by_name, F), ({"link3": constant}, {"link3": spread}), ({}, 0 * F)):
        for a, b in zip(*(call(function, given, f_ext_derivatives=f, f_ext_frame=frame) for f in (x, y)), strict=True):
            assert_same(a, b)
    some = call(function, given, f_ext_derivatives=by_name, f_ext_frame=frame)
    for a, b, c in zip(some, call(function, given, f_ext_derivatives={}, f_ext_frame=frame), call(function, given), strict=True):
        assert relative(a, b) > 1e-3                                 # it acts
        assert relative(b, c) < 1e-8


def test_wrenches_of_one_order_less_than_motion_at_order_0():
    """v, a and one row of wrenches: inverse dynamics."""
    model, given = model_of(NAME), arrays((), 0)
    F = np.random.default_rng(2).standard_normal((1, len(model.link_names), 6))
    tau, = call("inverse", given, f_ext_derivatives=F)
    v, a = given["v_derivatives"]
    assert relative(tau[0], ld.inverse_dynamics(model, given["q"], v, a, f_ext=F[0])) < 1e-14


@FUNCTIONS
def test_calls_from_many_threads_at_once(function):
    """Single calls share a model's scratch of an order but hold the interpreter's lock; batches have separate scratch."""
    sizes = [((), 2), ((40,), 2), ((), 3), ((), 1), ((9,), 3)] * 3
    cases = [arrays(size, order, seed) for seed, (size, order) in enumerate(sizes)]
    expected = [call(function, given) for given in cases]
    with ThreadPoolExecutor(8) as pool:
        for rounds, truth in zip(pool.map(lambda given: [call(function, given) for _ in range(5)], cases), expected, strict=True):
            for got in rounds:
                for x, y in zip(got, truth, strict=True):
                    assert_same(x, y)


# arguments --------------------------------------------------------------------------------------------------------
@FUNCTIONS
@SIZES
@pytest.mark.parametrize("order", [0, 3])
@pytest.mark.parametrize("base", ["local", "world"])
def test_arguments_are_left_alone_and_results_are_new(function, size, order, base):
    model, given, mask = model_of(NAME), arrays(size, order), MASK.copy()
    mask[:6] = True
    F = np.random.default_rng(3).standard_normal((*size, order + 1, len(model.link_names), 6))
    for f in (None, F):
        everything = [*given.values(), mask, model.constants, model.index, F]
        before = [x.copy() for x in everything]
        for _ in range(2):                                           # the second call may go another way
            results = call(function, given, mask, base_frame=base, f_ext_derivatives=f)
            assert not any(np.shares_memory(x, y) for x in results for y in everything)
        kept = [x.copy() for x in results]
        call(function, arrays(size, order, seed=2), mask, base_frame=base, f_ext_derivatives=f)
        for x, y in zip((*everything, *results), (*before, *kept), strict=True):
            np.testing.assert_array_equal(x, y)


@FUNCTIONS
@SIZES
@pytest.mark.parametrize("order", [0, 2])
def test_lists_and_other_arrays_are_accepted(function, size, order):
    """Read-only, strided, Fortran-ordered, of another byte order; lists, integers."""
    given = arrays(size, order)
    expected = call(function, given)

    def read_only(x):
        x = x.copy()
        x.flags.writeable = False
        return x
    for change in (read_only, np.asfortranarray, lambda x: np.repeat(x, 3, axis=-1)[..., ::3], lambda x: x.astype(">f8"),
                   lambda x: x.tolist()):
        for x, y in zip(call(function, {name: change(z) for name, z in given.items()}), expected, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-11)
    whole = {name: x if name == "q" else np.rint(3 * x) for name, x in given.items()}
    integers = {name: x if name == "q" else x.astype(int) for name, x in whole.items()}
    for x, y in zip(call(function, integers), call(function, whole), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-11)


@SIZES
@pytest.mark.parametrize("base", ["local", "world"])
@pytest.mark.parametrize("order", [0, 3])
def test_hybrid_reads_only_what_it_should_and_gives_it_back(size, base, order):
    for first in (True, False):
        given, mask = arrays(size, order), MASK.copy()
        mask[:6] = first
        given["a_derivatives"][..., ~mask], given["tau_derivatives"][..., mask] = np.nan, np.inf
        a, tau = call("hybrid", given, mask, base_frame=base)
        assert np.isfinite(a).all() and np.isfinite(tau).all()
        np.testing.assert_array_equal(a[..., mask], given["a_derivatives"][..., mask])
        np.testing.assert_array_equal(tau[..., ~mask], given["tau_derivatives"][..., ~mask])


def test_masks_may_be_lists_read_only_or_strided():
    given = arrays()
    expected = call("hybrid", given)
    frozen = MASK.copy()
    frozen.flags.writeable = False
    for mask in (MASK.tolist(), frozen, np.repeat(MASK, 2)[::2]):
        for x, y in zip(call("hybrid", given, mask), expected, strict=True):
            assert_same(x, y)


# errors -----------------------------------------------------------------------------------------------------------
LEAST = {"v_derivatives": 2, "a_derivatives": 1, "tau_derivatives": 1}


@FUNCTIONS
@SIZES
@pytest.mark.parametrize("order", [0, 2])
def test_wrong_shapes_are_refused_by_name(function, size, order):
    for name in ARGUMENTS[function]:
        given = arrays(size, order)
        good = given[name]
        wrong = [good[..., :-1], np.zeros((*good.shape[:-1], good.shape[-1] + 1)), np.zeros(()), 1.0]
        if name in LEAST:
            wrong += [good[..., :LEAST[name] - 1, :], np.zeros(32)]
        for x in wrong:
            given[name] = x
            text = refused(ld.ShapeError, function, given)
            assert text.startswith(f"{name} has the wrong shape: expected (…, ")


@FUNCTIONS
def test_what_is_no_array_of_numbers_is_refused(function):
    for order in (0, 2):
        for name in ARGUMENTS[function]:
            given = arrays((), order)
            kinds = [(given[name].astype(complex), "ndarray of complex128"), (given[name].astype(str), "ndarray of <U32")]
            for wrong, kind in kinds:
                given[name] = wrong
                text = refused(ld.ShapeError, function, given)
                assert text == f"{name} is not an array of numbers: got {kind}"
            given[name] = "abc"
            assert refused(ld.ShapeError, function, given).startswith(name)


def test_orders_that_differ_are_refused():
    given = arrays()
    given["tau_derivatives"] = given["tau_derivatives"][:2]
    assert refused(ld.ShapeError, "hybrid", given) == "a_derivatives has 3 rows and tau_derivatives 2: expected the same number"


@FUNCTIONS
@pytest.mark.parametrize("base", ["local", "world"])
def test_leading_axes_that_do_not_fit_are_refused(function, base):
    mask = MASK.copy()
    mask[:6] = True
    for order in (0, 2):
        for name in ARGUMENTS[function][1:]:
            given = arrays((3,), order)
            given[name] = given[name][:2]
            text = refused(ld.ShapeError, function, given, mask=mask, base_frame=base)
            assert text.startswith("leading axes do not match: ")


@FUNCTIONS
@SIZES
@pytest.mark.parametrize("base", ["local", "world"])
@pytest.mark.parametrize("order", [0, 2])
@pytest.mark.parametrize("bad", [np.nan, -np.inf])
def test_what_is_not_finite_is_refused_by_name(function, size, base, order, bad):
    model, mask = model_of(NAME), MASK.copy()
    mask[:6] = True
    for name in ARGUMENTS[function]:
        names = model.q_names if name == "q" else model.v_names
        read = {"a_derivatives": mask, "tau_derivatives": ~mask if function == "hybrid" else np.ones(32, bool)}
        for c in (0, 9, 20, len(names) - 1):
            if not read.get(name, np.ones(35, bool))[c]:
                continue
            given = arrays(size, order)
            row = (-1,) if name in LEAST else ()
            given[name][((7,) if size == (11,) else (0,) * len(size)) + row + (c,)] = bad
            text = refused(ld.ConfigurationError, function, given, mask=mask, base_frame=base)
            assert text.startswith(name) and f"({names[c]})" in text and text.endswith(f"is not finite: got {bad}"), text
            assert ("of state 7" in text) == (size == (11,)), text


@FUNCTIONS
@SIZES
@pytest.mark.parametrize("order", [0, 2])
def test_wrenches_that_are_refused(function, size, order):
    n, given = len(model_of(NAME).link_names), arrays(size, order)
    of = lambda f, **more: refused(ValueError, function, given, f_ext_derivatives=f, **more)      # noqa: E731
    for wrong in (np.zeros((order + 1, n - 1, 6)), np.zeros((order + 2, n, 6)), np.zeros((n, 6))):
        assert of(wrong) == f"f_ext_derivatives has the wrong shape: expected (…, {order + 1}, {n}, 6), got {wrong.shape}"
    assert of({"root": np.zeros((order + 2, 6))}) == (
        f"f_ext_derivatives['root'] has the wrong shape: expected (…, {order + 1}, 6), got ({order + 2}, 6)")
    assert of({"rot": np.zeros((order + 1, 6))}) == "f_ext_derivatives: no link 'rot'; did you mean 'root'?"
    assert of({"root": np.zeros((2, order + 1, 6)), "link1": np.zeros((3, order + 1, 6))}).startswith(
        "leading axes do not match: f_ext_derivatives['root'] (2")
    assert of(np.zeros((5, order + 1, n, 6))).startswith("leading axes do not match: ") if size == (11,) else True
    F = np.zeros((*size, order + 1, n, 6))
    F[..., order, 2, 2] = np.nan
    for frame in ("local", "local_world_aligned", "world"):
        assert of(F, f_ext_frame=frame) == "f_ext_derivatives contains NaN or infinite values"


@FUNCTIONS
@SIZES
@pytest.mark.parametrize("base", ["local", "world"])
@pytest.mark.parametrize("order", [0, 2])
def test_quaternions_must_be_of_unit_norm(function, size, base, order):
    model, mask = model_of(NAME), np.zeros(32, bool)
    for joint in model.joints:
        if joint.type in ("ball", "free"):
            given = arrays(size, order)
            given["q"][..., joint.q.stop - 4:joint.q.stop] *= 1.001
            text = refused(ld.ConfigurationError, function, given, mask=mask, base_frame=base)
            assert text.startswith(f"the quaternion of joint {joint.name!r}")
            assert "is not of unit norm: expected |q| = 1 within 5e-10, got 1.001 (normalize it first)" in text


@pytest.mark.parametrize(("mask", "found"), [
    (np.zeros(31, dtype=bool), "bool of shape (31,)"), (np.zeros((2, 32), dtype=bool), "bool of shape (2, 32)"),
    (np.zeros(32), "float64 of shape (32,)"), ([0] * 32, "int64 of shape (32,)")])
@pytest.mark.parametrize("order", [0, 2])
def test_masks_of_the_wrong_kind_are_refused(mask, found, order):
    assert refused(ld.ShapeError, "hybrid", arrays((), order), mask=mask) == (
        f"prescribed is a mask over v: expected bool (32,), got {found}")


@FUNCTIONS
@pytest.mark.parametrize("order", [0, 2])
def test_frames_and_bases_that_are_not_known_are_refused(function, order):
    given = arrays((), order)
    for f in (None, {"root": np.zeros((order + 1, 6))}):
        assert refused(ld.ShapeError, function, given, f_ext_frame="link", f_ext_derivatives=f) == (
            'f_ext_frame must be one of local, local_world_aligned, world, got \'link\' (called "local" here)')
        assert refused(ld.ShapeError, function, given, base_frame="spatial", f_ext_derivatives=f) == (
            'base_frame must be one of local, world, got \'spatial\' (called "world" here)')
        assert refused(ld.ShapeError, function, given, base_frame="local_world_aligned", f_ext_derivatives=f) == (
            "base_frame must be one of local, world, got 'local_world_aligned'")


@FUNCTIONS
def test_frame_world_of_wrenches_cannot_change_its_meaning_in_silence(function):
    """The keyword was called `frame`, and its "world" meant world axes about the link's origin."""
    with pytest.raises(TypeError, match="has no argument 'frame'"):
        call(function, arrays(), f_ext_derivatives={"root": np.zeros((ORDER + 1, 6))}, frame="world")


@FUNCTIONS
def test_a_fixed_base_is_never_spatial(function):
    model = model_of("ball")
    q, v, a, tau = state(model, 1)
    given = {"q": q, "v": v, "v_derivatives": [v, a], "a_derivatives": [a], "tau_derivatives": [tau]}
    text = refused(ld.ShapeError, function, given, mask=np.zeros(model.nv, bool), model=model, base_frame="world")
    assert text == f'base_frame="world" requires a floating base; the base of {model.name} is fixed'


@pytest.mark.parametrize("order", [0, 2])
def test_half_a_spatial_base_cannot_be_prescribed(order):
    """Its twist's components are mixed by the change of frame; in body coordinates any mask will do."""
    given, mask = arrays((), order), MASK.copy()
    assert refused(ld.ShapeError, "hybrid", given, mask=mask, base_frame="world") == (
        'with base_frame="world" all six coordinates of the base must be prescribed, or none, got 3 of them')
    call("hybrid", given, mask, base_frame="local")
    for six in (True, False):
        mask[:6] = six
        call("hybrid", given, mask, base_frame="world")


@pytest.mark.parametrize("function", ["forward", "hybrid"])
@pytest.mark.parametrize("size", [(), (9,)])
@pytest.mark.parametrize("order", [0, 2])
def test_a_vanishing_inertia_is_told(function, size, order):
    """Gimbal lock. Inverse dynamics does not mind."""
    from liedyn.model.description import Joint, Robot
    from liedyn.model.links import Link
    J = (1.0, 0.0, 0.0, 1.0, 0.0, 1.0)
    model = ld.build(Robot("r", (Link("a", 1.0, (0, 0, 0), J), Link("b", 1.0, (0.1, 0.2, 0.3), J)),
                           (Joint("j", "euler", "a", "b", sequence="zyx"),)))
    given = {"q": np.broadcast_to([0.3, np.pi / 2, 0.1], (*size, 3)), "v": np.zeros(3), "a_derivatives": np.zeros((order + 1, 3)),
             "tau_derivatives": np.ones((order + 1, 3)), "v_derivatives": np.zeros((order + 2, 3))}
    assert "articulated inertia vanishes" in refused(ld.ComputationError, function, given, mask=np.zeros(3, bool), model=model)
    tau, = call("inverse", given, model=model)
    assert np.abs(tau[..., 0, :]).max() > 0.1 and np.abs(tau[..., 1:, :]).max(initial=0) < 1e-12      # it is at rest


@FUNCTIONS
@SIZES
def test_overflow_is_an_error_and_never_nan(function, size):
    for name in ARGUMENTS[function][1:]:
        given = arrays(size)
        given[name] = given[name] * 1e200
        try:
            results = call(function, given)
        except ld.ComputationError as error:
            assert str(error) == "the result is not finite: the state is too large for double precision"
        else:
            assert all(np.isfinite(x).all() for x in results)


def test_a_robot_without_joints():
    from liedyn.model.description import Robot
    from liedyn.model.links import Link
    model = ld.build(Robot("r", (Link("a", 1.0),), ()))
    for lead in ((), (9,)):
        for order in (0, 3):
            given = {"q": np.zeros((*lead, 0)), "v": np.zeros((*lead, 0)), "v_derivatives": np.zeros((*lead, order + 2, 0)),
                     "a_derivatives": np.zeros((*lead, order + 1, 0)), "tau_derivatives": np.zeros((*lead, order + 1, 0))}
            for function in ARGUMENTS:
                for result in call(function, given, np.zeros(0, bool), model):
                    assert result.shape == (*lead, order + 1, 0)


@FUNCTIONS
def test_a_batch_leaves_no_scratch_with_the_model(function):
    """Scratch is kept for each order that single calls ask for; the length of a batch is no order."""
    model = ld.build(model_of(NAME).description)
    call(function, arrays((200,)), model=model)
    assert not [key for key in model.single_calls if 200 in key]
    forgotten = {name: x[:, 0] if x.ndim == 3 else x for name, x in arrays((200,)).items()}          # axis of rows
    with pytest.raises(ld.ShapeError):
        call(function, forgotten, model=model)
    assert not [key for key in model.single_calls if {199, 200, 201} & {*key}]


def test_orders_end_where_factorials_do():
    model = model_of("revolute")
    q, v = np.zeros(model.nq), np.zeros(model.nv)
    assert np.isfinite(ld.higher_order_inverse_dynamics(model, q, np.zeros((172, model.nv)))).all()
    with pytest.raises(ld.ShapeError, match="v_derivatives goes to order 171; the highest order is 170"):
        ld.higher_order_inverse_dynamics(model, q, np.zeros((173, model.nv)))
    with pytest.raises(ld.ShapeError, match="tau_derivatives goes to order 171"):
        ld.higher_order_forward_dynamics(model, q, v, np.zeros((172, model.nv)))


def test_ragged_lists_and_odd_frames_are_named():
    model = model_of("revolute")
    with pytest.raises(ld.ShapeError, match="v_derivatives is not an array of numbers: got list"):
        ld.higher_order_inverse_dynamics(model, np.zeros(model.nq), [[1.0, 2.0], [1.0]])
    given = arrays(())
    assert "f_ext_frame must be one of" in refused(ld.ShapeError, "inverse", given, f_ext_frame=["local"])
    given = arrays((3,)) | {"v_derivatives": arrays((2,))["v_derivatives"]}
    assert "q (3,), v_derivatives (2,)" in refused(ld.ShapeError, "inverse", given, base_frame="world")
