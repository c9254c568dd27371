"""Arguments of the public functions: what is accepted, errors and their texts, what is left alone."""
import subprocess
import sys
from types import MappingProxyType

import numpy as np
import pytest

import liedyn as ld
from rounding import assert_same
from zoo import model_of, state

NAME = "every kind, floating"          # nq 35, nv 32
CALLS = {
    "inverse_dynamics": ((0, 1, 2), ld.inverse_dynamics),
    "forward_dynamics": ((0, 1, 3), ld.forward_dynamics),
    "hybrid_dynamics": ((0, 1, 2, 3), lambda m, q, v, a, tau: ld.hybrid_dynamics(m, q, v, a, tau, np.arange(m.nv) % 2 == 0)),
    "hybrid_dynamics, none prescribed": ((0, 1, 2, 3), lambda m, q, v, a, tau:
                                         ld.hybrid_dynamics(m, q, v, a, tau, np.zeros(m.nv, dtype=bool))),
    "bias_force": ((0, 1), ld.bias_force),
    "gravity_force": ((0,), ld.gravity_force),
    "joint_wrenches": ((0, 1, 2), ld.joint_wrenches),
    "mass_matrix": ((0,), ld.mass_matrix),
    "inverse_mass_matrix": ((0,), ld.inverse_mass_matrix),
    "link_pose": ((0,), lambda m, q: ld.link_pose(m, q, "root")),
    "link_poses": ((0,), ld.link_poses),
    "link_twist": ((0, 1), lambda m, q, v: ld.link_twist(m, q, v, "root")),
    "link_acceleration": ((0, 1, 2), lambda m, q, v, a: ld.link_acceleration(m, q, v, a, "root")),
    "jacobian": ((0,), lambda m, q: ld.jacobian(m, q, "link3")),
    "jacobian_derivative": ((0, 1), lambda m, q, v: ld.jacobian_derivative(m, q, v, "link3")),
    "energy": ((0, 1), ld.energy),
    "momentum": ((0, 1), ld.momentum),
    "centre_of_mass": ((0,), ld.centre_of_mass),
    "integrate": ((0, 1), ld.integrate),
    "difference": ((0, 0), ld.difference),
}
EVERY = pytest.mark.parametrize(("which", "function"), CALLS.values(), ids=CALLS)
SIZES = pytest.mark.parametrize("size", [(), (1,), (11,)], ids=["one", "batch of one", "batch"])


def arrays(which, size=(), seed=1):
    states = state(model_of(NAME), seed, size)
    return [states[k].copy() for k in which]


def results(value):
    return [np.asarray(x) for x in (value if isinstance(value, tuple) else (value,))]


def same(function, model, given, expected):
    for x, y in zip(results(function(model, *given)), expected, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-11)


@pytest.mark.parametrize("name", [name for name in CALLS if not name.startswith(("link_", "jacobian"))])
def test_a_batch_of_one_stays_one_after_another(name, monkeypatch):
    """A batch of one and one state have separate functions, in any order of calls."""
    monkeypatch.setenv("LIEDYN_CODE", "auto")
    (which, function), model = CALLS[name], ld.build(model_of("universal").description)
    states = [state(model, 1)[k] for k in which]
    expected = [x.shape for x in results(function(model, *states))]
    for size in ((1,), (1,), (), (1,), ()):
        found = results(function(model, *(np.broadcast_to(x, (*size, *x.shape)) for x in states)))
        assert [x.shape for x in found] == [(*size, *shape) for shape in expected]


@EVERY
@SIZES
def test_arguments_are_left_alone_and_results_are_new(which, function, size):
    model = model_of(NAME)
    given = arrays(which, size)
    before = [x.copy() for x in given]
    constants = model.constants.copy(), model.index.copy()
    first = results(function(model, *given))
    kept = [x.copy() for x in first]
    for result in first:
        assert not any(np.shares_memory(result, x) for x in given)
    function(model, *arrays(which, size, seed=2))
    for x, y in zip((*given, *first, model.constants, model.index), (*before, *kept, *constants), strict=True):
        np.testing.assert_array_equal(x, y)


@EVERY
@SIZES
def test_lists_and_other_arrays_are_accepted(which, function, size):
    """Lists, and arrays that are read-only, strided, in Fortran order, not aligned or of another byte order."""
    model = model_of(NAME)
    given = arrays(which, size)
    expected = [x.copy() for x in results(function(model, *given))]

    def read_only(x):
        x = x.copy()
        x.flags.writeable = False
        return x

    def unaligned(x):
        raw = np.empty(x.nbytes + 1, dtype=np.uint8)[1:]
        y = raw.view(np.float64).reshape(x.shape)
        y[...] = x
        assert not y.flags.aligned
        return y

    same(function, model, [read_only(x) for x in given], expected)
    same(function, model, [np.repeat(x, 3, axis=-1)[..., ::3] for x in given], expected)
    same(function, model, [np.asfortranarray(x) for x in given], expected)
    same(function, model, [unaligned(x) for x in given], expected)
    same(function, model, [x.astype(">f8") for x in given], expected)
    same(function, model, [x.tolist() for x in given], expected)
    same(function, model, [np.broadcast_to(x, (3, *x.shape))[1] for x in given], expected)


@EVERY
def test_integers_and_single_precision_are_accepted(which, function):
    model = model_of(NAME)
    given = arrays(which)
    given[0] = model.neutral()
    if which == (0, 0):
        given[1] = model.neutral()
    given = [np.rint(3 * x) if k else x for k, x in enumerate(given)] if which != (0, 0) else given
    expected = results(function(model, *given))
    same(function, model, [x.astype(int) for x in given], expected)
    same(function, model, [x.astype(np.float32) for x in given], expected)
    same(function, model, [x.astype(np.int8).tolist() for x in given], expected)
    if len(given) > 1 and which != (0, 0):
        flags = [given[0], *(x > 0 for x in given[1:])]
        same(function, model, flags, results(function(model, *(x.astype(float) for x in flags))))


def refused(error, function, *given, **options) -> str:
    with pytest.raises(error) as caught:
        function(*given, **options)
    assert isinstance(caught.value, ld.LiedynError) and "\n" not in str(caught.value)
    assert not isinstance(caught.value, ld.ComputationError) or error is ld.ComputationError
    return str(caught.value)


ARGUMENTS = ("q", "v", "a", "tau")


def name_of(label, which, k):
    if label == "difference":
        return ("q0", "q1")[k]
    return ("q0", "dv")[k] if label == "integrate" else ARGUMENTS[which[k]]


@pytest.mark.parametrize("label", CALLS)
@SIZES
def test_wrong_shapes_are_refused_by_name(label, size):
    which, function = CALLS[label]
    model = model_of(NAME)
    for k, index in enumerate(which):
        given, n = arrays(which, size), model.nq if index == 0 else model.nv
        for wrong in (given[k][..., :-1], np.zeros((*size, n + 1)), np.zeros(()), np.zeros((n, 3)), 1.0):
            given[k] = wrong
            found = np.shape(wrong)
            assert refused(ld.ShapeError, function, model, *given) == (
                f"{name_of(label, which, k)} has the wrong shape: expected (…, {n}), got {found}")


@pytest.mark.parametrize("label", CALLS)
def test_what_is_no_array_of_numbers_is_refused(label):
    which, function = CALLS[label]
    model = model_of(NAME)
    for k in range(len(which)):
        for wrong, kind in (("abc", "str"), (None, "NoneType"), ({"a": 1}, "dict"), ([1, [2, 3]], "list"), (["1"] * 40, "list"),
                            (np.ones(40, dtype=complex), "ndarray of complex128"), (np.array([None] * 40), "ndarray of object")):
            given = arrays(which)
            given[k] = wrong
            text = refused(ld.ShapeError, function, model, *given)
            assert text == f"{name_of(label, which, k)} is not an array of numbers: got {kind}"


MASKED = "has masked values (remove these states, or fill the array: "


@pytest.mark.parametrize("label", CALLS)
@SIZES
def test_masked_values_are_refused(label, size):
    """They counted as numbers: NumPy's conversion exposes the values under a mask."""
    which, function = CALLS[label]
    model = model_of(NAME)
    for k in range(len(which)):
        given, name = arrays(which, size), name_of(label, which, k)
        hidden = np.zeros(given[k].shape, dtype=bool)
        hidden[..., 0] = True
        expected = f"{name} {MASKED}{name}.filled(value))"
        for wrong in [np.ma.array(given[k], mask=hidden), [np.ma.array(given[k], mask=hidden)]]:
            wrong = [*given[:k], wrong, *given[k + 1:]]
            assert refused(ld.ShapeError, function, model, *wrong) == expected
        given[k] = np.ma.array(given[k], mask=np.ma.nomask)
        same(function, model, given, [x.copy() for x in results(function(model, *arrays(which, size)))])


def test_a_masked_mask_and_masked_wrenches_are_refused():
    model = model_of(NAME)
    q, v, a, tau = state(model)
    mask = np.ma.array(np.zeros(model.nv, dtype=bool), mask=True)
    assert refused(ld.ShapeError, ld.hybrid_dynamics, model, q, v, a, tau, mask) == (
        f"prescribed {MASKED}prescribed.filled(value))")
    wrench = np.ma.array(np.zeros(6), mask=np.arange(6) == 2)
    assert refused(ld.ShapeError, ld.inverse_dynamics, model, q, v, a, f_ext={"root": wrench}) == (
        f"f_ext['root'] {MASKED}f_ext['root'].filled(value))")


@pytest.mark.parametrize("label", [label for label, (which, _) in CALLS.items() if len(which) > 1])
def test_leading_axes_that_do_not_fit_are_refused(label):
    which, function = CALLS[label]
    given = arrays(which, (6,))
    given[-1] = given[-1][:4]
    text = refused(ld.ShapeError, function, model_of(NAME), *given)
    assert text.startswith("leading axes do not match: ") and f"{name_of(label, which, len(which) - 1)} (4, " in text


READ_ALL = [label for label in CALLS if not label.startswith("hybrid")]


@pytest.mark.parametrize("label", READ_ALL)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_nan_and_infinity_are_refused_with_coordinate_and_state(label, bad):
    which, function = CALLS[label]
    model = model_of(NAME)
    for k, index in enumerate(which):
        names = model.q_names if index == 0 else model.v_names
        for c in (0, 8, len(names) - 1):
            name = name_of(label, which, k)
            given = arrays(which)
            given[k][c] = bad
            assert refused(ld.ConfigurationError, function, model, *given) == (
                f"{name}[{c}] ({names[c]}) is not finite: got {bad}")
            for row in (0, 6, 7, 10):
                given = arrays(which, (11,))
                given[k][row, c] = bad
                assert refused(ld.ConfigurationError, function, model, *given) == (
                    f"{name}[{c}] ({names[c]}) of state {row} is not finite: got {bad}")


@pytest.mark.parametrize("label", CALLS)
def test_quaternions_must_be_of_unit_norm(label):
    """They are never normalized silently. Rounding of single precision exceeds the tolerance, too."""
    which, function = CALLS[label]
    model = model_of(NAME)
    joints = [joint for joint in model.joints if joint.type in ("ball", "free")]
    assert len(joints) > 2
    for k in range(which.count(0)):
        for joint in joints:
            where = slice(joint.q.stop - 4, joint.q.stop)
            given = arrays(which)
            given[k][where] *= 1.001
            assert refused(ld.ConfigurationError, function, model, *given) == (
                f"the quaternion of joint {joint.name!r} is not of unit norm: expected |q| = 1 within 5e-10, got 1.001 "
                "(normalize it first)")
            for row in (0, 5, 7, 10):
                given = arrays(which, (11,))
                given[k][row, where] = 0
                assert f"joint {joint.name!r} in state {row} is not of unit norm: expected |q| = 1 within 5e-10" in refused(
                    ld.ConfigurationError, function, model, *given)
            given = arrays(which)
            given[k][where] *= 1 + 1e-10                 # well above what many roundings leave
            function(model, *given)


@pytest.mark.parametrize("size", [(), (11,)])
def test_hybrid_dynamics_reads_only_what_it_should(size):
    model = model_of(NAME)
    q, v, a, tau = state(model, 3, size)
    mask = np.arange(model.nv) % 3 == 0
    a[..., ~mask], tau[..., mask] = np.nan, np.inf
    a1, tau1 = ld.hybrid_dynamics(model, q, v, a, tau, mask)
    assert np.isfinite(a1).all() and np.isfinite(tau1).all()
    state_5 = " of state 5" if size else ""
    for x, name, k in ((a, "a", 9), (tau, "tau", 10), (v, "v", 3)):
        wrong = [q, v.copy(), a.copy(), tau.copy()]
        wrong[("q", "v", "a", "tau").index(name)][(5, k) if size else k] = np.nan
        assert refused(ld.ConfigurationError, ld.hybrid_dynamics, model, *wrong, mask) == (
            f"{name}[{k}] ({model.v_names[k]}){state_5} is not finite: got nan")
        assert np.isfinite(x[..., k]).all()


@pytest.mark.parametrize(("mask", "found"), [
    (np.zeros(31, dtype=bool), "bool of shape (31,)"), (np.zeros((2, 32), dtype=bool), "bool of shape (2, 32)"),
    (np.zeros(32), "float64 of shape (32,)"), ([0] * 32, "int64 of shape (32,)")])
def test_masks_of_the_wrong_kind_are_refused(mask, found):
    model = model_of(NAME)
    assert refused(ld.ShapeError, ld.hybrid_dynamics, model, *state(model), mask) == (
        f"prescribed is a mask over v: expected bool (32,), got {found}")


def test_masks_may_be_lists_read_only_or_strided():
    model = model_of(NAME)
    mask = np.arange(32) % 3 == 0
    frozen = mask.copy()
    frozen.flags.writeable = False
    expected = ld.hybrid_dynamics(model, *state(model), mask)
    for other in (mask.tolist(), frozen, np.repeat(mask, 2)[::2]):
        assert_same(ld.hybrid_dynamics(model, *state(model), other), expected)


def test_external_wrenches_that_are_refused():
    model = model_of(NAME)
    q, v, a, tau = state(model)
    n = len(model.link_names)
    for function, x in ((ld.inverse_dynamics, a), (ld.forward_dynamics, tau)):
        of = lambda f, q=q, function=function, x=x: refused(ValueError, function, model, q, v, x, f_ext=f)      # noqa: E731
        assert of(np.zeros((n - 1, 6))) == f"f_ext has the wrong shape: expected (…, {n}, 6), got ({n - 1}, 6)"
        assert of({"root": [1, 2, 3]}) == "f_ext['root'] has the wrong shape: expected (…, 6), got (3,)"
        assert of({"rot": np.zeros(6)}) == "f_ext: no link 'rot'; did you mean 'root'?"
        assert of({"root": [0, 0, 0, 0, 0, np.nan]}) == "f_ext contains NaN or infinite values"
        assert of({"root": np.zeros((2, 6)), "link1": np.zeros((3, 6))}) == (
            "leading axes do not match: f_ext['root'] (2, 6), f_ext['link1'] (3, 6)")
        text = of(np.zeros((2, n, 6)), np.array([q, q, q]))
        assert text.startswith("leading axes do not match: q (3, 35)") and f"f_ext (2, {n}, 6)" in text
        for row in range(11):
            wrench = np.zeros((11, n, 6))
            wrench[row, 2, 2] = np.inf
            assert of(wrench) == "f_ext contains NaN or infinite values"


def test_mappings_may_be_of_any_class():
    model = model_of(NAME)
    q, v, a, _ = state(model, 3, (3,))
    forces, rates = {"link3": np.arange(6.0)}, {"mass.link1": 1.0}
    assert_same(*(ld.inverse_dynamics(model, q, v, a, f_ext=given) for given in (MappingProxyType(forces), forces)))
    v[1] = np.nan
    partial = ld.inverse_dynamics(model, q, v, a, f_ext=MappingProxyType(forces), on_error="nan")
    np.testing.assert_array_equal(partial, ld.inverse_dynamics(model, q, v, a, f_ext=forces, on_error="nan"))
    assert_same(*(ld.inverse_dynamics_directional(model, q[0], v[0], a[0], parameters=given)[1]
                  for given in (MappingProxyType(rates), rates)))


def test_unknown_names_are_refused_with_a_suggestion():
    model = model_of(NAME)
    q, v, a, _ = state(model)
    for function, given in ((ld.link_pose, (q,)), (ld.link_twist, (q, v)), (ld.link_acceleration, (q, v, a)), (ld.jacobian, (q,)),
                            (ld.jacobian_derivative, (q, v))):
        assert refused(ld.LiedynError, function, model, *given, "lnk3") == "no link 'lnk3'; did you mean 'link3'?"
        text = refused(KeyError, function, model, *given, "zzz")
        assert text.startswith("no link 'zzz'; the model has root, link0, ")
    assert refused(KeyError, model.q_index, "jont3") == "no moving joint 'jont3'; did you mean 'joint3'?"
    assert refused(ValueError, model.v_index, "joint33").startswith("no moving joint 'joint33'; did you mean 'joint3'?")
    assert refused(KeyError, ld.joint_motion, model, "bse", q[:7]) == "no moving joint 'bse'; did you mean 'base'?"


@pytest.mark.parametrize(("old", "new"), [("body", "local"), ("link", "local"), ("mixed", "local_world_aligned"),
                                          ("spatial", "world")])
def test_old_names_of_frames_are_refused_with_the_new_ones(old, new):
    model = model_of(NAME)
    q, v, a, _ = state(model)
    for function, given in ((ld.jacobian, (q, "root")), (ld.jacobian_derivative, (q, v, "root")), (ld.link_twist, (q, v, "root")),
                            (ld.link_acceleration, (q, v, a, "root")), (ld.joint_wrenches, (q, v, a))):
        assert refused(ld.ShapeError, function, model, *given, frame=old) == (
            f"frame must be one of local, local_world_aligned, world, got '{old}' (called \"{new}\" here)")
    assert refused(ld.ShapeError, ld.jacobian, model, q, "root", frame="LOCAL") == (
        "frame must be one of local, local_world_aligned, world, got 'LOCAL'")
    assert "got ['local']" in refused(ld.ShapeError, ld.jacobian, model, q, "root", frame=["local"])


def test_a_joints_own_functions_check_their_arguments():
    model = model_of(NAME)
    assert refused(ld.ShapeError, ld.joint_motion, model, "base", [0, 0, 0]) == (
        "q of 'base' has the wrong shape: expected (…, 7), got (3,)")
    assert refused(ld.ShapeError, ld.joint_motion, model, "base", model.neutral()[:7], [1.0]) == (
        "v of 'base' has the wrong shape: expected (…, 6), got (1,)")
    assert refused(ld.ConfigurationError, ld.joint_motion, model, "base", [0, 0, np.nan, 0, 0, 0, 1]) == (
        "q[2] (base.pz) is not finite: got nan")
    assert refused(ld.ConfigurationError, ld.joint_motion, model, "base", [0, 0, 0, 0, 0, 0, 2]) == (
        "the quaternion of joint 'base' is not of unit norm: expected |q| = 1 within 5e-10, got 2 (normalize it first)")


@pytest.mark.parametrize("label", CALLS)
@pytest.mark.parametrize("size", [(), (11,)])
def test_overflow_is_an_error_and_never_nan(label, size):
    """A state beyond double precision: an error, or a finite result where the function does not need the product. Scratch is kept
    from call to call: nothing of that state is left in it."""
    which, function = CALLS[label]
    model = model_of(NAME)
    expected = results(function(model, *arrays(which, size)))
    for huge in (1e120, 1e155, 1e200, 1e306):
        for k in range(len(which)):
            given = arrays(which, size)
            given[k][..., 0 if which[k] == 0 else slice(None)] *= huge
            try:
                value = function(model, *given)
            except ld.ComputationError as error:
                assert str(error) in ("the result is not finite: the state is too large for double precision",
                                      "the robot has no moving mass: its centre of mass is not defined")
            else:
                assert all(np.isfinite(x).all() for x in results(value))
            for x, y in zip(results(function(model, *arrays(which, size))), expected, strict=True):
                assert_same(x, y)


def test_fast_calls_fall_back_for_any_other_argument():
    """A compiled entry point takes contiguous float64 only; other arguments are converted, without compilation."""
    from liedyn.kernels.hybrid_dynamics import hybrid_batch
    from liedyn.kernels.newton_euler import inverse_batch
    model = model_of("universal")
    q, v, a, tau = state(model)
    expected = ld.inverse_dynamics(model, q, v, a), ld.forward_dynamics(model, q, v, tau)
    for entry in (inverse_batch, hybrid_batch):
        assert len(entry.signatures) == 1
    for other in (np.float32, ">f8", object):
        if other is object:
            q1, v1 = q.tolist(), tuple(v)
        else:
            q1, v1 = q.astype(other), v.astype(other)
        rtol = 1e-5 if other is np.float32 else 1e-14
        np.testing.assert_allclose(ld.inverse_dynamics(model, q1, v1, a), expected[0], rtol=rtol)
        np.testing.assert_allclose(ld.forward_dynamics(model, q1, v1, tau, passive=1), expected[1], rtol=10 * rtol)
    for entry in (inverse_batch, hybrid_batch):
        assert len(entry.signatures) == 1


def test_batch_calls_may_start_from_any_thread_before_anything_is_compiled():
    """The first calls of a new process come from eight threads: each compiles or loads once, and all agree."""
    code = """
import numpy as np, liedyn as ld
from concurrent.futures import ThreadPoolExecutor
from liedyn.model.description import Joint, Robot
from liedyn.model.links import Link
link = lambda name: Link(name, 1.0, (0.1, 0.0, 0.2), (1.0, 0.0, 0.0, 1.0, 0.0, 1.0))
model = ld.build(Robot("r", (link("a"), link("b")), (Joint("j", "revolute", "a", "b", axes=((0.0, 1.0, 0.0),)),)))
x = np.linspace(0, 1, 24).reshape(-1, 1)
def work(k):
    rows = x if k % 2 else x[0]
    return np.ravel(ld.forward_dynamics(model, rows, rows, rows))[0], np.ravel(ld.mass_matrix(model, rows))[0]
with ThreadPoolExecutor(8) as pool:
    found = set(pool.map(work, range(16)))
assert len({round(a, 12) for a, _ in found}) == 1 and len({round(m, 12) for _, m in found}) == 1, found
print("agreed")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=900, check=False)
    assert done.stdout == "agreed\n", done.stderr
