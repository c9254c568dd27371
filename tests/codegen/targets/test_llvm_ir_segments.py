"""Lines in segments, each over a few blocks of states in turn, against whole ones; rows of a batch into blocks and back."""
from functools import cache

import numpy as np
import pytest

import liedyn as ld
from bridge import relative
from liedyn.arrays import cache_aligned
from liedyn.codegen.specialize import GeneratedBatchFunction, build, is_supported, simd_width
from liedyn.codegen.targets import llvm_ir
from liedyn.codegen.trace import Array, Trace, make_trace
from liedyn.codegen.tracer import Operations
from liedyn.dynamics.batching.calls import intercepted_specialization
from zoo import model_of, state

pytestmark = pytest.mark.skipif(not is_supported(), reason="this LLVM cannot read the text of lines: loops are used")


def recording_of(function, model):
    q, v, a, _ = state(model, 0)
    asked, _ = intercepted_specialization(function, model, q, v, a)
    return make_trace(model, asked)


@cache
def line_in(function, name, count):
    """Return a trace and its generated code in at least `count` segments, compiled once for all tests."""
    trace = recording_of(function, model_of(name))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(llvm_ir, "MAX_SEGMENT_OPERATIONS", trace.size // count + 1)
        parts = llvm_ir.segments(trace)
        assert len(parts) == count and all(part.operations for part in parts)
        return trace, GeneratedBatchFunction(build(trace, simd_width()))


def run(trace, arrays, line=None):
    line = line or GeneratedBatchFunction(build(trace, simd_width()))
    good = line.run(arrays, cache_aligned(line.workspace_size, make=np.empty), 0, len(arrays[0]))
    return good, arrays


def arrays_of(trace, **given):
    count = len(given["q"])
    return [np.ascontiguousarray(given[x.name]) if x.name in given else np.full((count, x.size), np.nan)
            for x in trace.arrays]


@pytest.mark.parametrize("count", [1, 7, 8, 33, 70])
@pytest.mark.parametrize("function, name", [(ld.forward_dynamics, "every kind"), (ld.forward_dynamics_derivatives, "ball")],
                         ids=["every kind", "derivatives"])
def test_segments_give_what_the_whole_line_gives(function, name, count):
    (trace, one), (_, cut) = (line_in(function, name, parts) for parts in (1, 4))
    q, v, _, tau = state(model_of(name), 1, (count,))
    good, whole = run(trace, arrays_of(trace, q=q, v=v, tau=tau), one)
    also_good, found = run(trace, arrays_of(trace, q=q, v=v, tau=tau), cut)
    assert good and also_good
    for x, y in zip(whole, found, strict=True):
        assert relative(x, y) < 1e-12            # products are added in one instruction or two: the solve with M enlarges it


def test_each_segment_leaves_what_later_ones_load(monkeypatch):
    trace = recording_of(ld.inverse_dynamics_derivatives, model_of("every kind"))
    monkeypatch.setattr(llvm_ir, "MAX_SEGMENT_OPERATIONS", trace.size // 5)
    left, done = {}, []
    for part in llvm_ir.segments(trace):
        assert part.reloaded.items() <= left.items()
        left |= part.spilled
        done += [k for k in part.operations if trace.ops.operations[k][0] != "input"]
    assert done == [k for k in trace.live_operations if trace.ops.operations[k][0] != "input"]
    assert len(set(left.values())) == len(left) > 0
    assert sum(len(part.bounds) for part in llvm_ir.segments(trace)) == len(trace.bounds)


@pytest.mark.parametrize("array", ["q", "v", "tau"])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("place", [0, 20, 36])
def test_a_bad_number_is_seen_in_any_block(array, bad, place):
    trace, line = line_in(ld.forward_dynamics, "every kind", 4)
    q, v, _, tau = state(model_of("every kind"), 2, (37,))
    given = {"q": q, "v": v, "tau": tau}
    for k in (0, 1, given[array].shape[1] - 1):
        changed = {name: x.copy() for name, x in given.items()}
        changed[array][place, k] = bad
        good, _ = run(trace, arrays_of(trace, **changed), line)
        assert not good, f"{array}[{k}]"


@pytest.mark.parametrize("states", [1, 5, 8, 19])
@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 7, 8, 9, 16, 17])
def test_rows_of_any_length_come_back(size, states):
    """The function reverses the numbers of a row."""
    ops = Operations()
    x, y = ops.inputs("x", size), ops.inputs("y", size)
    written = tuple(x[size - 1 - k] * y[k] for k in range(size))
    trace = Trace(ops, (Array("x", size, (None,) * size), Array("y", size, written)), (), tuple(x))
    X, Y = np.random.default_rng(size).standard_normal((2, states, size))
    good, (given, found) = run(trace, [X.copy(), Y.copy()])
    assert good and (given == X).all()
    assert np.array_equal(found, X[:, ::-1] * Y)


@pytest.mark.parametrize("states", [1, 5, 8, 19])
@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 7, 8, 9, 16, 17])
def test_rows_that_are_written_in_part_come_back(size, states):
    """The function reverses the numbers, writes one constant and leaves one unchanged."""
    ops = Operations()
    x, y = ops.inputs("x", size), ops.inputs("y", size)
    written = [x[size - 1 - k] * y[k] for k in range(size)]
    kept = size // 2
    written[kept] = None
    if size > 2:
        written[1] = 3.0
    trace = Trace(ops, (Array("x", size, (None,) * size), Array("y", size, tuple(written))), (), tuple(x))
    rng = np.random.default_rng(size)
    X, Y = rng.standard_normal((2, states, size))
    expected = X[:, ::-1] * Y
    expected[:, kept] = Y[:, kept]
    if size > 2 and kept != 1:
        expected[:, 1] = 3.0
    good, (given, found) = run(trace, [X.copy(), Y.copy()])
    assert good and (given == X).all()
    assert np.array_equal(found, expected) if size < 3 or kept != 1 else np.array_equal(found[:, 2:], expected[:, 2:])


def test_a_constant_that_equals_the_number_of_a_stored_operation(monkeypatch):
    """The operation was loaded under the name of the constant, and the text was not valid."""
    ops = Operations()
    a, b = ops.inputs("x", 2)
    product = y = a * b
    for _ in range(10):
        y = y * a + b
    assert product.k == 2
    y = (y * 2.0 + a) * product
    trace = Trace(ops, (Array("x", 2, (None, None)), Array("y", 1, (y,))), (), ())
    monkeypatch.setattr(llvm_ir, "MAX_SEGMENT_OPERATIONS", trace.size // 2 + 1)
    assert 2 in llvm_ir.segments(trace)[1].reloaded
    x = np.random.default_rng(0).uniform(0.5, 1.5, (9, 2))
    good, (_, result) = run(trace, [x, np.zeros((9, 1))])
    expected = x[:, 0] * x[:, 1]
    for _ in range(10):
        expected = expected * x[:, 0] + x[:, 1]
    assert good and result[:, 0] == pytest.approx((expected * 2.0 + x[:, 0]) * x[:, 0] * x[:, 1], rel=1e-12)
