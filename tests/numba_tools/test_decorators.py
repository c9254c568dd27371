"""Compiled code: it is renewed when any source that it is made of changes."""
import ast
import importlib
import tracemalloc
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from numba import typeof
from numba.core.errors import NumbaError, TypingError

import liedyn
from compiled import probe
from liedyn.numba_tools import decorators
from liedyn.numba_tools.compile_cache import _NOT_COMPILED, source_files, source_path
from zoo import model_of, state

PACKAGE = Path(liedyn.__file__).parent


def imports_of(module: str) -> set[str]:
    """Return the modules of liedyn that a module imports, by the syntax tree."""
    tree = ast.parse(source_path(module).read_text(encoding="utf-8"))
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("liedyn"):
            base = node.module.removeprefix("liedyn").removeprefix(".")
            for alias in node.names:                       # `from liedyn.kernels import checks` names a module, too
                longer = f"{base}.{alias.name}" if base else alias.name
                found.add(longer if source_path(longer) else base)
        elif isinstance(node, ast.Import):
            found |= {alias.name.removeprefix("liedyn.") for alias in node.names if alias.name.startswith("liedyn.")}
    return {name for name in found if source_path(name)}


# Modules with compiled code: those that import the decorators.
COMPILED = [name for package in ("lie", "joints", "kernels", "integrators")
            for path in sorted((PACKAGE / package).rglob("*.py"))
            if "numba_tools.decorators" in imports_of(name := ".".join(path.relative_to(PACKAGE).with_suffix("").parts))]


def test_an_empty_list_of_cases_fails(pytestconfig):
    """One list searched for a package of another name, was empty, and its tests passed."""
    assert pytestconfig.getini("empty_parameter_set_mark") == "fail_at_collect"
    assert {name.split(".")[0] for name in COMPILED} == {"lie", "joints", "kernels", "integrators"}


@pytest.mark.parametrize("module", COMPILED)
def test_the_cache_knows_every_source(module):
    """The imports that the cache reads are those of the syntax tree: no compiled code belongs to an outdated source."""
    expected, waiting = set(), [module]
    while waiting:
        name = waiting.pop()
        if name not in expected:
            expected.add(name)
            waiting += imports_of(name)
    found = source_files(source_path(module))
    assert found == {source_path(name) for name in expected - _NOT_COMPILED}


def entries():
    """Return every compiled function that Python calls."""
    found = {}
    for name in COMPILED:
        module = importlib.import_module(f"liedyn.{name}")
        found |= {f"{name}.{key}": value for key, value in vars(module).items()
                  if hasattr(value, "liedyn_signatures") and value.py_func.__module__ == module.__name__}
    return found


ENTRIES = entries()


def test_entries_are_found():
    assert {f"kernels.{name}" for name in (
        "newton_euler.inverse_batch", "hybrid_dynamics.hybrid_batch", "mass_matrix.mass_matrices")} <= set(ENTRIES)


@pytest.mark.parametrize("name", ENTRIES)
def test_entries_cannot_allocate(name):
    """Compiled without reference counts: an allocation would be an error of the compiler. Nothing is compiled at a call."""
    entry = ENTRIES[name]
    assert entry.targetoptions["_nrt"] is False
    assert entry.targetoptions["nopython"] is True
    assert entry._can_compile is False
    with pytest.raises(TypeError, match="No matching definition"):
        entry(*([np.zeros(3, dtype=np.float32)] * len(entry.py_func.__code__.co_varnames[:entry.py_func.__code__.co_argcount])))
    assert len(entry.signatures) <= len(entry.liedyn_signatures)


def test_an_allocation_in_compiled_code_is_refused():
    @probe
    def allocates(n):
        return np.zeros(n)[0]

    with pytest.raises(TypingError, match="Only accept returning of array passed into the function"):
        allocates(3)


@pytest.mark.parametrize("decorator", [decorators.inline_kernel, decorators.internal_kernel])
def test_what_only_compiled_code_calls_refuses_calls_from_python(decorator):
    """It has no wrapper for such calls, which would crash."""
    @decorator
    def twice(x):
        return 2.0 * x

    @probe
    def caller(x):
        return twice(x)

    for _ in "not compiled yet", "compiled":
        with pytest.raises(TypeError, match="twice is called by compiled code only"):
            twice(1.0)
        assert caller(1.0) == 2.0
    assert twice.py_func(1.0) == 2.0


def test_a_failed_compilation_says_why_and_leaves_the_entry_shut():
    """It ended in an AssertionError without text."""
    entry = decorators.entry_point("f8(f8)")(_without_meaning)
    with pytest.raises(NumbaError, match="nothing_of_this_name"):
        decorators.compile_entry_point(entry)
    with pytest.raises(TypeError):
        entry(1.0)


def _without_meaning(x):
    return nothing_of_this_name(x)          # noqa: F821


def test_batches_allocate_nothing_but_their_results():
    """Workspaces are reused per thread: a larger batch takes less than a fifth of one array's row in addition."""
    model = model_of("every kind")
    cases = {count: state(model, 1, count) for count in (400, 8000)}

    def peak(function, count):
        tracemalloc.start()
        for _ in range(3):
            function(*cases[count])
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found - count * model.nv * 8

    for function in (lambda q, v, a, tau: liedyn.forward_dynamics(model, q, v, tau),
                     lambda q, v, a, tau: liedyn.inverse_dynamics(model, q, v, a)):
        for count in cases:
            function(*cases[count])
        small, large = (peak(function, count) for count in cases)
        assert large - small < 7600 * model.nv * 8 / 5


# a kernel behind an address, whose first argument is packed ---------------------------------------------------------------
class Packed(NamedTuple):
    x: np.ndarray
    none: None
    inner: tuple
    number: int
    M: np.ndarray


@decorators.kernel
def weighted_sum(packed, factor, negative, out):
    x, _none, (indices, mask), number, M = decorators.value_at(packed)
    out[0] = number
    for i, k in enumerate(indices):
        out[0] += x[k] * M[i, k] if mask[k] else 0.0
    out[0] *= -factor if negative else factor
    return np.int64(indices.size)


@decorators.kernel
def call_weighted_sum(address, packed, factor, out):
    return decorators.call_with_values(address, (decorators.array_address(packed), factor, factor < 0.0, out))


@pytest.mark.parametrize("factor", [2.0, -3.0])
def test_a_packed_tuple_has_the_layout_of_compiled_code(factor):
    rng = np.random.default_rng(0)
    values = Packed(rng.standard_normal(5), None, (np.array([4, 1, 3]), rng.random(5) < 0.7), 7, rng.standard_normal((3, 5)))
    out = np.zeros(1)
    address = decorators.address_for(weighted_sum, values, factor, False, out)
    assert call_weighted_sum(address, decorators.packed_values(values), factor, out) == 3
    k, mask = values.inner
    expected = 7 + (values.x[k] * values.M[np.arange(3), k] * mask[k]).sum()
    assert out[0] == pytest.approx(abs(factor) * expected, rel=1e-14)
    context = weighted_sum.targetctx
    assert context.get_abi_sizeof(context.get_data_type(typeof(values))) == decorators.packed_values(values).nbytes


def test_a_call_with_an_array_that_is_not_contiguous_is_not_compiled():
    with pytest.raises(TypingError):
        call_weighted_sum(0, np.zeros(1, dtype=np.int64), 1.0, np.zeros(4)[::2])


@pytest.mark.parametrize("value", [0.5, True, "text"])
def test_values_that_compiled_code_stores_in_another_way_are_not_packed(value):
    with pytest.raises(TypeError, match=type(value).__name__):
        decorators.packed_values((np.zeros(1), (1, value)))
