"""Batches in blocks of states: the same numbers as rows, by generated code that reads and writes blocks."""
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import liedyn as ld
from code_kinds import generated_code
from liedyn.codegen.specialize import is_supported
from liedyn.dynamics.batching import block_calls
from rounding import assert_same
from zoo import state

COUNT = 37                                                    # the last block is not full, in each precision
ROBOTS = Path(__file__).parents[2] / "robots"
CALLS = {
    "inverse_dynamics": "qva", "forward_dynamics": "qvt", "hybrid_dynamics": "qvat", "mass_matrix": "q",
    "inverse_mass_matrix": "q", "inverse_dynamics_derivatives": "qva", "forward_dynamics_derivatives": "qvt",
    "hybrid_dynamics_derivatives": "qvat"}


@cache
def model_of(name="double_pendulum"):
    return ld.load(ROBOTS / f"{name}.yaml")


def batch(model, letters, count=COUNT):
    q, v, a, tau = state(model, 1, (count,))
    return [{"q": q, "v": v, "a": a, "t": tau}[letter] for letter in letters]


def function_options(model, name):
    return {"prescribed": np.arange(model.nv) % 2 == 0} if "hybrid" in name else {}


def arrays_of(result):
    """Return the results; a mask of hybrid dynamics is none."""
    results = result if isinstance(result, tuple) else (result,)
    return [x for x in results if isinstance(x, ld.StateBlocks) or x.dtype.kind == "f"]


def blocks_of(rows, dtype="float64"):
    return [ld.StateBlocks.of(x, dtype) for x in rows]


def check(model, name, rows, dtype="float64", **options):
    function, options = getattr(ld, name), options | function_options(model, name)
    expected = arrays_of(function(model, *rows, dtype=dtype, **options))
    wrenches = {"f_ext": ld.StateBlocks.of(options["f_ext"], dtype)} if "f_ext" in options else {}
    results = arrays_of(function(model, *blocks_of(rows, dtype), dtype=dtype, **options | wrenches))
    assert len(results) == len(expected)
    for x, y in zip(results, expected, strict=True):
        assert isinstance(x, ld.StateBlocks) and x.array.dtype == y.dtype == dtype and len(x) == len(y)
        assert (not len(x) or x.array.ctypes.data % 64 == 0) and not x.array.flags.writeable
        assert_same(x.rows(), y) if dtype == "float64" else np.testing.assert_allclose(x.rows(), y, rtol=1e-4, atol=1e-4)


@pytest.fixture
def generated(monkeypatch):
    """Generated code, and an error where a call goes by rows."""
    if not is_supported():
        pytest.skip("this LLVM cannot read the text of generated code")
    computed = block_calls._computed_blocks

    def by_blocks(*arguments):
        results = computed(*arguments)
        assert results is not None
        return results
    monkeypatch.setattr(block_calls, "_computed_blocks", by_blocks)
    with generated_code():
        yield


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", CALLS)
def test_generated_code_computes_blocks_as_rows(name, dtype, generated):
    model = model_of()
    rows = batch(model, CALLS[name])
    before = [x.copy() for x in rows]
    check(model, name, rows, dtype)
    assert_same(rows, before)


def test_wrenches_and_options_are_those_of_rows(generated):
    model = model_of()
    f_ext = np.random.default_rng(0).standard_normal((COUNT, len(model.link_names), 6))
    check(model, "inverse_dynamics", batch(model, "qva"), f_ext=f_ext)
    check(model, "inverse_dynamics", batch(model, "qva"), passive=False)


def test_threads_share_whole_blocks(generated, monkeypatch):
    monkeypatch.setattr("liedyn.dynamics.batching.threads.cores", lambda: 3)
    model, parts = model_of(), []
    monkeypatch.setattr(block_calls, "run_generated_batch", lambda generated, *rest, run=block_calls.run_generated_batch: run(
        Parts(generated, parts), *rest))
    width = ld.StateBlocks.width("float32")
    check(model, "mass_matrix", batch(model, "q", 4040), "float32")       # a third is an odd number of eights
    assert len(parts) == 3 and all(edge % width == 0 for part in parts for edge in part)


class Parts:
    def __init__(self, generated, parts):
        self.generated, self.parts, self.workspace_size = generated, parts, generated.workspace_size

    def run(self, arrays, workspace, first, last):
        self.parts.append((first, last))
        return self.generated.run(arrays, workspace, first, last)


@pytest.mark.parametrize("name", CALLS)
def test_generic_kernels_compute_blocks_by_rows(name):
    check(model_of(), name, batch(model_of(), CALLS[name]))


def test_a_robot_with_couplings_and_an_empty_batch_go_by_rows():
    hand, model = model_of("hand"), model_of()
    q = np.tile(ld.expand(hand, np.zeros(len(hand.independent))), (COUNT, 1))
    with generated_code():
        check(hand, "forward_dynamics", [q, *np.zeros((2, COUNT, hand.nv))])
        check(model, "mass_matrix", [np.zeros((0, model.nq))])


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_blocks_of_rows_and_back(dtype):
    for count in (0, 1, 7, 8, 16, 37):
        rows = np.arange(6.0 * count).reshape(count, 3, 2).astype(dtype)
        blocks, width = ld.StateBlocks.of(rows, dtype), ld.StateBlocks.width(dtype)
        assert len(blocks) == blocks.count == count and blocks.shape == (3, 2)
        assert blocks.array.shape == (-(-count // width), 3, 2, width) and blocks.array.dtype == dtype
        assert_same(blocks.rows(), rows)
        if count:
            last = np.moveaxis(blocks.array[-1], -1, 0)[(count - 1) % width:]
            assert_same(last, np.broadcast_to(rows[-1], last.shape))


def test_an_aligned_array_is_shared_and_another_one_copied():
    blocks = ld.StateBlocks.of(np.ones((40, 2)))
    again = ld.StateBlocks(blocks.array, 40)
    assert np.shares_memory(again.array, blocks.array) and again == blocks
    memory = np.ones(blocks.array.size + 9)
    start = (-memory.ctypes.data % 64) // 8 + 1
    odd = memory[start:start + blocks.array.size].reshape(blocks.array.shape)
    copied = ld.StateBlocks(odd, 40)
    assert not np.shares_memory(copied.array, odd) and copied == blocks


MODEL = model_of()
ROWS = batch(MODEL, "qva")
Q, V, A = blocks_of(ROWS)
WIDTH = ld.StateBlocks.width()


@pytest.mark.parametrize("call, error, text", [
    (lambda: ld.inverse_dynamics(MODEL, Q, ROWS[1], A), ld.ShapeError, "q is StateBlocks, and v is not: got ndarray"),
    (lambda: ld.inverse_dynamics(MODEL, *ROWS[:2], A), ld.ShapeError, r"a is not an array of numbers: got StateBlocks"),
    (lambda: ld.link_poses(MODEL, Q), ld.ShapeError, r"q is not an array of numbers: got StateBlocks \(use rows: blocks.rows"),
    (lambda: ld.inverse_dynamics(MODEL, Q, V, A, f_ext=np.zeros((len(MODEL.link_names), 6))), ld.ShapeError, "f_ext is not"),
    (lambda: ld.inverse_dynamics(MODEL, Q, V, A, dtype="float32"), ld.ShapeError, "q has blocks of float64: expected float32"),
    (lambda: ld.mass_matrix(MODEL, ld.StateBlocks.of(ROWS[0], "float32")), ld.ShapeError, 'pass dtype="float32"'),
    (lambda: ld.mass_matrix(MODEL, ld.StateBlocks.of(ROWS[0][:, 1:])), ld.ShapeError, "q has the wrong shape: expected blocks"),
    (lambda: ld.inverse_dynamics(MODEL, Q, ld.StateBlocks.of(ROWS[1][:5]), A), ld.ShapeError, "q has 37, v has 5"),
    (lambda: ld.mass_matrix(MODEL, Q, out=np.zeros(3)), ld.ArgumentError, "out is not available for StateBlocks"),
    (lambda: ld.Variants([MODEL] * COUNT).mass_matrix(Q), ld.ArgumentError, "StateBlocks are not available here"),
    (lambda: ld.StateBlocks(ROWS[0]), ld.ShapeError, rf"expected the shape \(blocks, …, {WIDTH}\)"),
    (lambda: ld.StateBlocks([[1.0]]), ld.ShapeError, "expected an array of float64 or float32, got list"),
    (lambda: ld.StateBlocks(Q.array, 10_000), ld.ShapeError, "expected a count from"),
    (lambda: ld.StateBlocks(Q.array, 5.0), ld.ShapeError, "expected a count from .*, got 5.0"),
    (lambda: ld.StateBlocks.of(np.ma.masked_less(Q.rows(), 0.0)), ld.ShapeError, "rows has masked values"),
    (lambda: ld.StateBlocks.of([1.0, 2.0]), ld.ShapeError, r"expected rows \(N, …\) of numbers"),
    (lambda: ld.StateBlocks.of(ROWS[0], "int64"), ld.ArgumentError, "dtype must be float64 or float32"),
])
def test_errors_name_what_is_wrong(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_invalid_states_raise_as_for_rows():
    rows = [x.copy() for x in ROWS]
    rows[1][5, 1] = np.nan
    messages = []
    for arguments in (rows, blocks_of(rows)):
        with pytest.raises(ld.ConfigurationError) as caught:
            ld.inverse_dynamics(MODEL, *arguments)
        messages.append(str(caught.value))
    assert messages[0] == messages[1] and "state 5" in messages[0]
    tau = ld.inverse_dynamics(MODEL, *blocks_of(rows), on_error="nan").rows()
    assert np.isnan(tau[5]).all() and np.isnan(tau).sum() == MODEL.nv


def test_single_precision_gives_states_that_fail_to_double_precision(monkeypatch):
    rows = [x.copy() for x in ROWS]
    rows[0][3, -1] = 1e6                                                   # an angle beyond the range of float32
    computed, results = block_calls._computed_blocks, []
    monkeypatch.setattr(block_calls, "_computed_blocks", lambda *arguments: results.append(computed(*arguments)) or results[-1])
    with generated_code():
        blocks = ld.inverse_dynamics(MODEL, *blocks_of(rows, "float32"), dtype="float32")
        expected = ld.inverse_dynamics(MODEL, *rows, dtype="float32")
    assert results == [None]
    np.testing.assert_allclose(blocks.rows(), expected, rtol=1e-3, atol=1e-3)
