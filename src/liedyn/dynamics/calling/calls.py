"""Between Python's arrays and the kernels' entries: shapes, batches, threads, and codes that become errors."""
from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import replace
from math import prod

import numpy as np

from liedyn.codegen.lines import Asked, asked_of, batch_of, one_of, wanted
from liedyn.dynamics.calling.threads import chunks, on_threads, require_lock
from liedyn.errors import ComputationError, ConfigurationError, ShapeError, UsageError
from liedyn.jit import prepare
from liedyn.joints.kinds import BALL, FREE
from liedyn.kernels import checks
from liedyn.model.cache_lines import on_cache_lines
from liedyn.model.model import Model

NONE = np.empty(0)              # no external wrench, one state
NONE_BATCH = np.empty((0, 0))   # the same for a batch
SCALAR = 0                      # which signature of an entry with two

_array = np.ndarray             # looked up once: every 0.1 us of a call counts

require_lock()


def as_array(x, name: str, last: tuple[int, ...]) -> np.ndarray:
    """x as a C-contiguous float64 array whose last axes are `last`."""
    if type(x) is not np.ndarray:
        _refuse_masked(x, name)
    try:
        array = np.asarray(x)
    except (TypeError, ValueError):                       # ragged lists
        array = None
    if array is None or array.dtype.kind not in "fiub":   # strings would be parsed, imaginary parts dropped
        of = f" of {x.dtype}" if isinstance(x, np.ndarray) else ""
        raise ShapeError(f"{name} is not an array of numbers; found {type(x).__name__}{of}")
    array = np.asarray(array, dtype=np.float64, order="C")
    if array.shape[array.ndim - len(last):] != last or array.ndim < len(last):
        expected = ", ".join(str(n) for n in last)
        raise ShapeError(f"{name} has the wrong shape; found {array.shape}, expected (…, {expected})")
    return array if array.flags.behaved else array.copy()     # the entries know arrays only that are writable and aligned


def _refuse_masked(x, name: str) -> None:
    """What a masked array hides would come back as if it were given."""
    if any(np.ma.is_masked(part) for part in (x if isinstance(x, (list, tuple)) else (x,))):
        raise ShapeError(f"{name} has masked values (remove these states, or fill the array: "
                         f"{name}.filled(value))")


def batched(*named: tuple[str, np.ndarray, int]) -> tuple[tuple[int, ...], list[np.ndarray]]:
    """Common leading axes, and each array as (N, n), C-contiguous. `named`: name, array, how many last axes are its own."""
    leads = [array.shape[:array.ndim - own] for _, array, own in named]
    lead = leads[0]
    if any(shape != lead for shape in leads):
        try:
            lead = np.broadcast_shapes(*leads)
        except ValueError:
            shapes = ", ".join(f"{name} {array.shape}" for name, array, _ in named)
            raise ShapeError(f"leading axes do not match: {shapes}") from None
    count = prod(lead)
    out = []
    for _, array, own in named:
        if array.shape[:array.ndim - own] != lead:
            array = np.broadcast_to(array, lead + array.shape[array.ndim - own:]).copy()     # writeable, as entries ask
        out.append(np.ascontiguousarray(array).reshape(count, prod(array.shape[array.ndim - own:])))
    return lead, out


def wrenches(model, f_ext) -> np.ndarray | None:
    """External wrenches as (…, n_links, 6), from an array or a dict by link name."""
    n = len(model.link_names)
    if f_ext is None:
        return None
    if not isinstance(f_ext, dict):
        return as_array(f_ext, "f_ext", (n, 6))
    given = {model.link_index(name): as_array(F, f"f_ext[{name!r}]", (6,)) for name, F in f_ext.items()}
    try:
        lead = np.broadcast_shapes(*[F.shape[:-1] for F in given.values()])
    except ValueError:
        shapes = ", ".join(f"f_ext[{name!r}] {np.shape(F)}" for name, F in f_ext.items())
        raise ShapeError(f"leading axes do not match: {shapes}") from None
    out = np.zeros((*lead, n, 6))
    for k, F in given.items():
        out[..., k, :] = F
    return out


def run(entry, model, size: int, before: tuple, arrays: tuple, count: int, one_by_one: bool = False) -> int:
    """Call an entry over `count` states: by a line, else by loops on Lanes; on all cores. Returns a code.

    size: numbers of scratch for one state; before: arguments between the scratch and the arrays of states; one_by_one: not eight
    states side by side, whose scratch would be too large."""
    other = getattr(_thread, "run", None)
    if other is not None:
        return other(model, entry, size, before, arrays, count)
    if count == 0 or by_line(entry, model, size, before, arrays, count):
        return checks.OK
    return by_loops(entry, model, size, before, arrays, count, one_by_one)


def by_loops(entry, model, size: int, before: tuple, arrays: tuple, count: int, one_by_one: bool = False) -> int:
    """`run` without lines."""
    alone = (count == 1 or one_by_one) and len(entry.liedyn_signatures) == 2
    prepare(entry, SCALAR if alone else len(entry.liedyn_signatures) - 1)
    edges, memory = chunks(count, model.n_bodies), scratch if alone else scratch_of_eight

    def part(first, last):
        return entry(model.index, model.constants, memory(size), *before, *arrays, first, last)

    if len(edges) == 2:
        return part(0, count)
    return next((code for code in on_threads(part, edges) if code), checks.OK)


def by_line(entry, model, size: int, before: tuple, arrays: tuple, count: int) -> bool:
    """Whether a line has computed the batch. Where it has not, loops do, and they say what is wrong with it."""
    rows = with_numbers(arrays)
    if not wanted() or not of_states(rows, count):
        return False
    asked = asked_of(entry, size, before, arrays)
    if count == 1:
        one = one_of(model, asked, [x.shape for x in rows])
        return one is not None and not one.call(*rows)
    line = batch_of(model, asked)
    return line is not None and run_line(line, model, rows, count)


def of_states(rows, count: int) -> bool:
    """Whether arrays have a row for each state: a line would read and write beyond others."""
    return all(x.ndim == 2 and len(x) >= count for x in rows)


def run_line(line, model, rows, count: int) -> bool:
    """A line over a batch, on all cores. Whether the results can be used. rows: the arrays that hold numbers."""
    edges = chunks(count, model.n_bodies)

    def part(first, last):
        return line.run(rows, scratch(line.scratch), first, last)

    return part(0, count) if len(edges) == 2 else all(on_threads(part, edges))


def with_numbers(arrays) -> list[np.ndarray]:
    return [x for x in arrays if isinstance(x, _array) and x.size]


def asked_by(function, model, *arguments, **options) -> tuple[Asked, Model]:
    """Which entry a public function calls for these arguments, with what, and for which model (it may be that of the open tree);
    it is not called."""
    try:
        with taken_over(_answer):
            function(replace(model), *arguments, **options)            # which has no lines yet
    except _Answer as answer:
        return answer.asked, answer.model
    raise UsageError(f"{function.__name__} calls no entry of the kernels")


class _Answer(Exception):
    def __init__(self, asked: Asked, model):
        self.asked, self.model = asked, model


def _answer(model, entry, size, before, arrays, count):
    raise _Answer(asked_of(entry, size, before, arrays), model)


@contextmanager
def taken_over(run: Callable):
    """Within it this thread's entries are not called, but run(model, entry, size, before, arrays, count) in their place; count is
    None for one state."""
    before = getattr(_thread, "run", None)
    _thread.run = run
    try:
        yield
    finally:
        _thread.run = before


def run_one(model, key, entry, size: int, before: tuple, given: int, numbers: tuple, arrays: tuple) -> bool:
    """One state that needs no help: whether it was done. Else all is as before, and the caller takes the long way, which
    converts, compiles and names what is wrong.

    key: of the line that the first call leaves; numbers: its arrays, of which the first `given` are q and then any of v, a, and
    the others results; arrays: those of the entry, some of which may be empty, and scalars."""
    try:
        return not model._cache[key](*numbers)
    except (KeyError, TypeError):
        pass
    states = zip(numbers[:given], (model.nq, *[model.nv] * (given - 1)), strict=True)
    if not all(type(x) is _array and x.dtype == float and x.shape == (n,) and x.flags.carray for x, n in states):
        return False
    return single(model, key, entry, size, before, arrays) == checks.OK


def single(model, key, entry, size: int, before: tuple, arrays: tuple) -> int:
    """An entry for one state: by its line, which is left for `key`, else by loops. arrays: without an axis of the batch. Returns
    a code."""
    rows = tuple(x.reshape(1, -1) if isinstance(x, _array) else x for x in arrays)
    other = getattr(_thread, "run", None)
    if other is not None:
        return other(model, entry, size, before, rows, None)
    if wanted():
        numbers = with_numbers(arrays)
        line = one_of(model, asked_of(entry, size, before, rows), [x.shape for x in numbers])
        if line is not None:
            model._cache[key] = line.call
            if not line.call(*numbers):
                return checks.OK
    return by_loops(entry, model, size, before, rows, 1)


def scratch(size: int) -> np.ndarray:
    """This thread's scratch, kept between calls, on a border of cache lines: one that is not makes a Lanes load two
    (forward dynamics of a 6-DoF arm is 1.6 times slower)."""
    memory = getattr(_thread, "memory", None)
    if memory is None or memory.size < size:
        memory = on_cache_lines(-(-size // 8) * 8, make=np.empty)
        _thread.lanes = memory.reshape(-1, 8)             # first: an interrupt in between must not leave rows too few
        _thread.memory = memory
    return memory[:size]


def scratch_of_eight(size: int) -> np.ndarray:
    """The same for eight states: at least `size` rows of eight."""
    try:
        lanes = _thread.lanes
        if len(lanes) >= size:
            return lanes                    # a part of it would take 1 us more, where a large result has left nothing else near
    except AttributeError:                  # the first of this thread
        pass
    scratch(8 * size)
    return _thread.lanes


_thread = threading.local()


def as_mask(prescribed, nv: int) -> np.ndarray:
    """A mask over v, or a ShapeError."""
    _refuse_masked(prescribed, "prescribed")
    mask = np.ascontiguousarray(prescribed)
    if mask.dtype != bool or mask.shape != (nv,):
        raise ShapeError(f"prescribed is a mask over v; found {mask.dtype} of shape {mask.shape}, expected bool ({nv},)")
    return mask if mask.flags.writeable else mask.copy()


def where_read(x: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """x with the entries that are not read set to zero, for the message of an error."""
    return np.where(mask, x, 0.0)


# errors -----------------------------------------------------------------------------------------------------------
_NAMES = {checks.BAD_Q: ("q", "q_names"), checks.BAD_V: ("v", "v_names"), checks.BAD_A: ("a", "v_names"),
          checks.BAD_TAU: ("tau", "v_names")}


def refuse(model, code: int, names: dict[str, str] | None = None, **arrays) -> None:
    """Turn an entry's code into an error that names the coordinate. arrays: q, v, a, tau as given; names: what the caller
    calls them, where it calls them otherwise."""
    if code == checks.OK:
        return
    if code in _NAMES:
        name, coordinates = _NAMES[code]
        raise ConfigurationError(_not_finite((names or {}).get(name, name), arrays.get(name), getattr(model, coordinates)))
    if code == checks.BAD_F_EXT:
        raise ConfigurationError("f_ext contains NaN or infinite values")
    if code == checks.BAD_QUATERNION:
        _refuse_quaternion(model, arrays["q"])
    if code == checks.SINGULAR:
        raise ComputationError("a joint's articulated inertia vanishes in this configuration: its acceleration is not defined "
                               "(a compound joint in a singular position, or a massless link at the end of the tree)")
    if code == checks.BAD_RESULT:
        raise ComputationError("the result is not finite: the state is too large for double precision")
    raise ShapeError("arguments have the wrong shape")


def _not_finite(name: str, array, names) -> str:
    rows = np.reshape(array, (-1, len(names)))
    bad = np.argwhere(~np.isfinite(rows))
    if not len(bad):
        return f"{name} contains NaN or infinite values"
    k, c = bad[0]
    where = f" of state {k}" if len(rows) > 1 else ""
    return f"{name}[{c}] ({names[c]}){where} is not finite; found {rows[k, c]}"


def _refuse_quaternion(model, q) -> None:
    rows = np.reshape(q, (-1, model.nq))
    for joint in model.joints:
        if joint.kind in (BALL, FREE):
            for k, u in enumerate(rows[:, joint.q.stop - 4:joint.q.stop]):
                check_unit(joint.name, u, f" in state {k}" if len(rows) > 1 else "")
    raise ConfigurationError("a quaternion is not of unit norm")


def check_unit(joint: str, u, where: str = "") -> None:
    """ConfigurationError unless the quaternion u (4,) is of unit norm."""
    norm = float(np.linalg.norm(u))
    if not abs(norm**2 - 1) < checks.UNIT:
        raise ConfigurationError(f"the quaternion of joint {joint!r}{where} is not of unit norm; found |q| = {norm:.12g}, "
                                 f"expected 1 within {checks.UNIT / 2:g} (normalize it first)")
