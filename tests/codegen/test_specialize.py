"""Lines against generic kernels, for every function; what a line does not answer for, the loops do, with their errors."""
import numpy as np
import pytest

import liedyn as ld
from bridge import relative
from liedyn.arrays import cache_aligned
from liedyn.codegen import python_call, specialize, trace
from liedyn.codegen.specialize import GeneratedBatchFunction, build, is_supported
from liedyn.codegen.trace import Array, Trace, make_trace
from liedyn.codegen.tracer import NotTraceableError, Operations
from liedyn.dynamics.batching.calls import intercepted_specialization
from zoo import ROBOTS, model_of, state

SHORT = [name for name in ROBOTS if model_of(name).nv <= 20]
SMALL = [name for name in ROBOTS if model_of(name).nv <= 7]
LINES = pytest.mark.skipif(not is_supported(), reason="this LLVM cannot read the text of lines: loops are used")


def mask(model): return np.arange(model.nv) % 2 == 0


def hybrid(m, q, v, a, tau, F):
    """Call hybrid dynamics. Inputs that are not read are NaN."""
    return ld.hybrid_dynamics(m, q, v, np.where(mask(m), a, np.nan), np.where(mask(m), np.nan, tau), mask(m))


DYNAMICS = {
    "inverse": lambda m, q, v, a, tau, F: ld.inverse_dynamics(m, q, v, a),
    "forward": lambda m, q, v, a, tau, F: ld.forward_dynamics(m, q, v, tau),
    "hybrid": hybrid,
}
FUNCTIONS = DYNAMICS | {
    "inverse, wrenches": lambda m, q, v, a, tau, F: ld.inverse_dynamics(m, q, v, a, f_ext=F, passive=False),
    "forward, wrenches": lambda m, q, v, a, tau, F: ld.forward_dynamics(m, q, v, tau, f_ext=F, passive=False),
    "bias": lambda m, q, v, a, tau, F: ld.bias_force(m, q, v), "gravity": lambda m, q, v, a, tau, F: ld.gravity_force(m, q),
    "mass": lambda m, q, v, a, tau, F: ld.mass_matrix(m, q),
    "inverse mass": lambda m, q, v, a, tau, F: ld.inverse_mass_matrix(m, q),
    "poses": lambda m, q, v, a, tau, F: ld.link_poses(m, q),
    "twist": lambda m, q, v, a, tau, F: ld.link_twist(m, q, v, m.link_names[-1], frame="world"),
    "acceleration": lambda m, q, v, a, tau, F: ld.link_acceleration(m, q, v, a, m.link_names[-1]),
    "Jacobian": lambda m, q, v, a, tau, F: ld.jacobian(m, q, m.link_names[-1]),
    "its derivative": lambda m, q, v, a, tau, F: ld.jacobian_derivative(m, q, v, m.link_names[-1], frame="local_world_aligned"),
    "energy": lambda m, q, v, a, tau, F: ld.energy(m, q, v), "momentum": lambda m, q, v, a, tau, F: ld.momentum(m, q, v),
    "Coriolis": lambda m, q, v, a, tau, F: ld.coriolis_matrix(m, q, v),
    "Christoffel": lambda m, q, v, a, tau, F: ld.christoffel_symbols(m, q),
    "Slotine and Li": lambda m, q, v, a, tau, F: (ld.slotine_li_regressor(m, q, v, tau, a),
                                                  ld.slotine_li_inverse_dynamics(m, q, v, tau, a)),
    "regressor": lambda m, q, v, a, tau, F: ld.regressor(m, q, v, a, passive=True),
    "sums": lambda m, q, v, a, tau, F: ld.momentum_regressor(m, q, v),
    "second derivatives": lambda m, q, v, a, tau, F: ld.inverse_dynamics_second_derivatives(m, q, v, a),
    "integrate": lambda m, q, v, a, tau, F: ld.integrate(m, q, v),
    "difference": lambda m, q, v, a, tau, F: ld.difference(m, q, ld.integrate(m, q, 0.1 * v)),
    "series, inverse": lambda m, q, v, a, tau, F: ld.higher_order_inverse_dynamics(m, q, np.stack([v, a, tau, v], -2)),
    "series, forward": lambda m, q, v, a, tau, F: ld.higher_order_forward_dynamics(m, q, v, np.stack([tau, a, v], -2)),
}


def given(model, count, seed=3):
    """Return q, v, a, tau and wrenches on links."""
    return *state(model, seed, (count,)), np.random.default_rng(0).standard_normal((count, len(model.link_names), 6))


def both(monkeypatch, name, function, arrays):
    """Return results of generated code for a batch and for its first state, and of the generic kernels."""
    results, model = [], fresh(name)
    for code, one, states in (("auto", model, slice(None)), ("auto", model, 0), ("generic", fresh(name), slice(None))):
        monkeypatch.setenv("LIEDYN_CODE", code)
        found = function(one, *(x[states] for x in arrays))
        results.append([np.asarray(x) for x in (found if isinstance(found, tuple) else (found,))])
    return results


def fresh(name):
    """Return a separate model without the cache of others."""
    return ld.build(ROBOTS[name])


@LINES
@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("name", SHORT)
def test_a_line_gives_what_the_loops_give(name, function, monkeypatch, worst):
    if function not in DYNAMICS and name not in SMALL:
        pytest.skip("long results of long robots compile for long")
    batch, one, loops = both(monkeypatch, name, FUNCTIONS[function], given(model_of(name), 21))    # two eights, and five
    for x, y, z in zip(batch, one, loops, strict=True):
        assert worst(f"lines against loops: {function}", relative(x, z), name) < 1e-11
        assert worst(f"lines against loops, one state: {function}", relative(y, z[0]), name) < 1e-11


@LINES
@pytest.mark.parametrize("function", FUNCTIONS)
def test_functions_go_by_line(function, monkeypatch):
    """Otherwise the test above would compare generic kernels with themselves."""
    monkeypatch.setenv("LIEDYN_CODE", "auto")
    model, arrays, compiled = fresh("universal"), given(model_of("universal"), 9), []
    monkeypatch.setattr(specialize, "GeneratedBatchFunction", lambda built: compiled.append(built)
                        or GeneratedBatchFunction(built))
    FUNCTIONS[function](model, *arrays)
    assert compiled


@LINES
@pytest.mark.parametrize("function", ["inverse_dynamics", "forward_dynamics"])
@pytest.mark.parametrize("width", [2, 4, 8])
def test_every_width_gives_the_same(function, width, worst):
    """Also for registers wider than those of this processor, and batches of any length."""
    model = model_of("every kind, floating")
    q, v, a, tau, F = given(model, 19)
    x, call = (a if function == "inverse_dynamics" else tau), getattr(ld, function)
    asked, _ = intercepted_specialization(call, model, q, v, x, f_ext=F, passive=False)
    trace = make_trace(model, asked)
    line, expected = GeneratedBatchFunction(build(trace, width)), call(model, q, v, x, f_ext=F, passive=False)
    scratch = cache_aligned(-(-line.workspace_size // 8) * 8, make=np.empty)
    arrays = {"q": q, "v": v, "a": a, "tau": tau, "f_ext": F.reshape(19, -1)}
    result = "tau" if function == "inverse_dynamics" else "a"
    for count in range(1, 20):
        arrays[result] = np.full((count, model.nv), np.nan)
        assert line.run([np.ascontiguousarray(arrays[x.name][:count]) for x in trace.arrays], scratch, 0, count)
        assert worst(f"lines of any width: {function}", relative(arrays[result], expected[:count])) < 1e-12


@pytest.fixture
def by_lines(monkeypatch):
    monkeypatch.setenv("LIEDYN_CODE", "auto")


@LINES
def test_batches_go_in_parts_and_shapes(by_lines, monkeypatch):
    model = fresh("every kind")
    q, v, _, tau, _ = given(model, 101)
    monkeypatch.setattr("liedyn.dynamics.batching.calls.chunks", lambda count, *_: [0, 40, 80, count])
    found = ld.forward_dynamics(model, q, v, tau)
    folded = ld.forward_dynamics(model, *(x[:100].reshape(4, 25, -1) for x in (q, v, tau)))
    each = np.array([ld.forward_dynamics(model, *(x[k] for x in (q, v, tau))) for k in range(101)])
    assert relative(found, each) < 1e-12 and relative(folded.reshape(100, -1), each[:100]) < 1e-12


@pytest.mark.parametrize("spoil, error", [
    (lambda q, v, a: v.__setitem__((30, 2), np.nan), r"v\[2\].* of state 30 is not finite"),
    (lambda q, v, a: q.__setitem__((12, 0), np.inf), r"q\[0\].* of state 12 is not finite"),
    (lambda q, v, a: q.__setitem__((5, slice(3, 7)), 1.0), "in state 5 is not of unit norm"),
    (lambda q, v, a: a.__setitem__((7, 1), -np.inf), r"a\[1\].* of state 7 is not finite"),
    (lambda q, v, a: v.__setitem__(slice(None), 1e200), "the result is not finite"),
])
def test_bad_states_are_refused_in_the_words_of_the_loops(spoil, error, by_lines):
    model = fresh("every kind, floating")
    q, v, a, _, _ = given(model, 40)
    ld.inverse_dynamics(model, q, v, a)
    spoil(q, v, a)
    with pytest.raises(ld.LiedynError, match=error):
        ld.inverse_dynamics(model, q, v, a)
    k = 30 if "30" in error else 12 if "12" in error else 5 if "5" in error else 7
    with pytest.raises(ld.LiedynError, match=error.replace(f" of state {k}", "").replace(f"in state {k} ", "")):
        ld.inverse_dynamics(model, q[k], v[k], a[k])


def test_vanishing_inertias_are_refused_in_the_words_of_the_loops(by_lines):
    from liedyn.model.description import Joint, Robot
    from liedyn.model.links import Link
    model = ld.build(Robot("r", (Link("a", 1.0, (0.5, 0, 0), (1.0, 0, 0, 1.0, 0, 1.0)),), (
        Joint("j", "euler", "world", "a", sequence="xyz"),)))
    q = np.tile([0.1, np.pi / 2, 0.2], (20, 1))                # gimbal lock
    for x in (q, q[0]):
        with pytest.raises(ld.ComputationError, match="articulated inertia vanishes"):
            ld.forward_dynamics(model, x, 0 * x, 0 * x + 1.0)


def test_large_angles_are_left_to_the_loops(by_lines):
    """Their sine and cosine are those of the C library."""
    model = fresh("revolute")
    q, v, a, _, _ = given(model, 20)
    q[3, 0] += 2 * np.pi * 1e6
    assert np.isfinite(ld.inverse_dynamics(model, q, v, a)).all()
    assert np.isfinite(ld.inverse_dynamics(model, q[3], v[3], a[3])).all()


@pytest.mark.parametrize("what", ["LLVM", "LIEDYN_CODE"])
def test_without_lines_loops_do_all(what, by_lines, monkeypatch):
    if what == "LLVM":
        monkeypatch.setattr(specialize, "is_supported", lambda: False)
    else:
        monkeypatch.setenv("LIEDYN_CODE", "generic")
    monkeypatch.setattr(specialize, "build", lambda *args: pytest.fail("a line was made"))
    model = fresh("every kind")
    q, v, _, tau, _ = given(model, 20)
    a = ld.forward_dynamics(model, q, v, tau)
    assert relative(ld.forward_dynamics(model, q[3], v[3], tau[3]), a[3]) < 1e-12
    assert not any(isinstance(key, specialize.GeneratedFunctionKey) for key in model._cache.values)


def test_another_word_for_lines_is_refused(monkeypatch):
    monkeypatch.setenv("LIEDYN_CODE", "fast")
    model = fresh("revolute")
    with pytest.raises(ld.UsageError, match="LIEDYN_CODE must be auto or generic, got 'fast'"):
        ld.mass_matrix(model, model.neutral())


@LINES
def test_an_array_that_is_read_and_gets_a_constant_is_read_before():
    """The old number at the same place is used elsewhere."""
    ops = Operations()
    old = ops.inputs("x", 2)
    trace = Trace(ops, (Array("x", 2, (7.0, old[0] + old[1])),), (), (old[0],))
    line, x = GeneratedBatchFunction(build(trace, 4)), np.tile([1.0, 2.0], (5, 1))
    assert line.run([x], cache_aligned(line.workspace_size, make=np.empty), 0, 5) and (x == [7.0, 3.0]).all()


@LINES
def test_long_lines_are_left_to_the_loops(by_lines, monkeypatch):
    model = fresh("every kind")
    monkeypatch.setattr(specialize, "MAX_OPERATIONS", 10)
    monkeypatch.setattr(specialize.compile_cache, "load_or_build", lambda folder, name, make: make())
    q, v, a, _, _ = given(model, 20)
    found = ld.inverse_dynamics(model, q, v, a)
    assert relative(ld.inverse_dynamics(model, q[2], v[2], a[2]), found[2]) < 1e-12
    functions = [value for key, value in model._cache.values.items() if isinstance(key, specialize.GeneratedFunctionKey)]
    assert functions == [None, None]


@LINES
def test_a_line_is_kept_on_disk_and_made_again_where_it_is_damaged(by_lines, monkeypatch, tmp_path):
    monkeypatch.setattr(specialize.compile_cache, "root", lambda: tmp_path)
    recorded = []
    monkeypatch.setattr(specialize, "make_trace", lambda *args, **how: recorded.append(args) or make_trace(*args, **how))
    q, v, _, tau, _ = given(model_of("helical"), 9)
    results = [ld.forward_dynamics(fresh("helical"), q, v, tau) for _ in range(2)]
    assert len(recorded) == 1 and relative(*results) == 0.0           # the same code twice
    kept, = (path for path in tmp_path.glob("generated.hybrid_batch-*/*"))
    kept.write_bytes(kept.read_bytes()[:-7])
    assert relative(ld.forward_dynamics(fresh("helical"), q, v, tau), results[0]) == 0.0
    assert len(recorded) == 2


@LINES
def test_directions_come_before_states_and_go_by_loops(monkeypatch):
    """Generated code takes rows of states: it would write beyond arrays with another first axis."""
    results = []
    for code in ("auto", "generic"):
        monkeypatch.setenv("LIEDYN_CODE", code)
        model = fresh("planar")
        q, v, a, tau, _ = given(model_of("planar"), 30)
        found = [*ld.inverse_dynamics_directional(model, q, v, a, dq=v), *ld.forward_dynamics_directional(model, q, v, tau, dq=v)]
        results.append([np.asarray(x) for x in (*found, *ld.parameter_derivatives(model, q, v, a))])
    for x, y in zip(*results, strict=True):
        assert relative(x, y) < 1e-12


# the crossing ---------------------------------------------------------------------------------------------------------
@LINES
@pytest.mark.parametrize("ctypes_only", [False, True])
def test_arrays_that_are_not_as_they_should_be_go_the_long_way(ctypes_only, by_lines, monkeypatch):
    """Other types, layouts and shapes give the same result or a clear error, in both kinds of call."""
    if ctypes_only:
        monkeypatch.setattr(python_call, "is_supported", lambda: False)
    model = fresh("planar")
    q, v, _, tau, _ = (x[0] for x in given(model, 1))
    expected = ld.forward_dynamics(model, q, v, tau)
    wide = np.zeros((model.nv, 2))
    wide[:, 0] = v
    others = [v.tolist(), v.astype(">f8"), wide[:, 0], np.frombuffer(b"x" + v.tobytes(), offset=1), v.view(np.ma.MaskedArray)]
    read_only = v.copy()
    read_only.flags.writeable = False
    for other in (*others, read_only):
        assert relative(ld.forward_dynamics(model, q, other, tau), expected) < 1e-15
    for bad in (v[:-1], np.append(v, 0.0), "x", v * 1j):
        with pytest.raises(ld.ShapeError):
            ld.forward_dynamics(model, q, bad, tau)
    assert ld.forward_dynamics(model, q[None], v[None], tau[None]).shape == (1, model.nv)


@LINES
def test_members_of_arrays_are_where_they_are_looked_for():
    """Otherwise every call would use ctypes."""
    assert python_call.is_supported()


@pytest.mark.parametrize("question", [bool, lambda x: x > 1.0, lambda x: x == x, lambda x: [1, 2].index(x), abs])
def test_a_kernel_cannot_ask_what_a_recorded_number_is(question):
    """Otherwise a wrong branch would be taken silently."""
    x, = Operations().inputs("q", 1)
    with pytest.raises((NotTraceableError, TypeError)):
        question(x)


@pytest.mark.parametrize("mix", [lambda x, y: x * y, lambda x, y: x + y, lambda x, y: y - x, lambda x, y: y / x])
def test_a_number_is_not_the_operation_with_that_number(mix):
    """Operation 5 times itself is not 5.0 times it: friction of exactly 5 N gave a wrong force."""
    *_, five, six = Operations().inputs("q", 7)
    assert mix(six, five).k != mix(six, 5.0).k and mix(five, six).k != mix(five, 6.0).k


def test_every_rewritten_function_is_one_of_its_module(monkeypatch):
    """After a rename, three of them replaced nothing, and numbers that were not finite were not detected."""
    for name in trace.REWRITES:
        assert trace.traced_module(name)
    monkeypatch.setitem(trace.REWRITES, "lie.vectors", {"no_such_function": None})
    with pytest.raises(AttributeError, match=r"REWRITES names functions that lie\.vectors does not have: no_such_function"):
        trace._execute_module.__wrapped__("lie.vectors")


@LINES
def test_a_force_that_is_not_finite_is_found_by_generated_code(monkeypatch):
    monkeypatch.setenv("LIEDYN_CODE", "auto")
    model = fresh("universal")
    q, (v, tau) = model.neutral(), np.zeros((2, model.nv))
    tau[0] = np.nan
    for states in (q, v, tau), tuple(np.stack([x] * 9) for x in (q, v, tau)):
        with pytest.raises(ld.ConfigurationError, match="tau"):
            ld.forward_dynamics_derivatives(model, *states)


@LINES
def test_generic_kernels_in_one_thread_leave_generated_code_to_others():
    """The context changed the environment: where two threads overlapped, one raised KeyError."""
    from concurrent.futures import ThreadPoolExecutor
    from threading import Barrier
    barrier = Barrier(2)

    def first():
        with specialize.generic_kernels():
            barrier.wait()                                     # both are inside
            barrier.wait()                                     # the other one is outside again
            return specialize.is_enabled()

    def second():
        barrier.wait()
        with specialize.generic_kernels():
            inside = specialize.is_enabled()
        outside = specialize.is_enabled()
        barrier.wait()
        return inside, outside
    with ThreadPoolExecutor(2) as pool:
        one, other = pool.submit(first), pool.submit(second)
    assert not one.result() and other.result() == (False, True) and specialize.is_enabled()
