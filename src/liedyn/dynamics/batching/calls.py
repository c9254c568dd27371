"""Between arrays of a batch and the kernels' entries: lines or loops, threads, and codes that become errors."""
from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import contextmanager
from math import prod

import numpy as np

from liedyn.codegen.specialize import generated_batch_function, generated_function, is_enabled, specialization_of
from liedyn.codegen.trace import Specialization
from liedyn.dynamics.batching.arrays import NONE, hand_over, motion_parts, place_for, places_for, states
from liedyn.dynamics.batching.threads import chunks, on_threads, require_lock
from liedyn.errors import ComputationError, ConfigurationError, ShapeError, UsageError
from liedyn.kernels import batch_blocks
from liedyn.model.description import SCREW
from liedyn.model.model import Model, on_cache_lines
from liedyn.numba_tools.decorators import compile_entry_point

SCALAR = 0                      # which signature of an entry with two
_TOO_LARGE = 1 << 19            # numbers of scratch for one state, from which on eight do not go side by side: 32 MB a thread

require_lock()


def computed(model, key, entry, memory: Callable[..., int], given: dict, *shapes: tuple[int, ...], before: tuple = (),
             prescribed: np.ndarray | None = None, options: tuple = (), after: tuple = (), out=None):
    """What an entry makes of states: an array (*lead, *shape) for each shape, in a tuple where there are several.

    key: under which a call for one state leaves its line in the model's cache to those that differ in the numbers of states
    alone; None: it leaves none. memory: numbers of scratch, by `Model.sizes`. given: states, as `states` takes them. The entry's
    arguments are, in this order: before (or the mask prescribed), states, options, results, after."""
    if given.get("f_ext") is given.get("drive") is None and model.nv:          # else its line has no states to take
        found = by_line(model, key, out if out is None or len(shapes) > 1 else (out,),
                        *[x for x in given.values() if x is not None and x is not NONE])
        if found is not None:
            return found if out is None else out
    else:
        key = None
    lead, arrays = states(model, given)
    count, places = prod(lead), places_for([(*lead, *shape) for shape in shapes], out, arrays.values())
    if count == 1:                                             # with the shapes of one state, whatever the batch
        rows, results = _of_one(model, arrays), [x.reshape(shape) for x, shape in zip(places, shapes, strict=True)]
    else:
        rows, results = arrays.values(), [x.reshape(count, prod(shape)) for x, shape in zip(places, shapes, strict=True)]
    before = before if prescribed is None else (prescribed,)
    arguments = (*rows, *options, *results, *after)
    code = run(entry, model, memory(*model.sizes), before, arguments, None if count == 1 else count, key)
    refuse(model, code, prescribed, **arrays)
    return hand_over(tuple(places) if len(shapes) > 1 else places[0], out)


def completed(model, key, entry, memory: Callable[..., int], given: dict, shape: tuple[int, ...], prescribed: np.ndarray,
              before: tuple, options: tuple = (), out=None) -> tuple[np.ndarray, np.ndarray]:
    """Accelerations and forces (*lead, *shape) of an entry that completes both in place: the third and fourth of its states, the
    fifth being wrenches. Where nothing is prescribed the third is NONE, and out a place for it. The others as in `computed`."""
    lead, arrays = states(model, given)
    _, _, name, _, wrenches = given
    q, v, a, tau, F = arrays.values()
    count, tau = prod(lead), tau.reshape(*lead, *shape)
    if given[name] is NONE:                               # all of tau is read, nothing of it written
        a = place_for((*lead, *shape), out, arrays.values())
    else:
        a, tau = a.reshape(*lead, *shape).copy(), tau.copy()
    if count == 1:
        q, v, F, rows = q[0], v[0], F[0], [x.reshape(shape) for x in (a, tau)]
    else:
        rows = [x.reshape(count, prod(shape)) for x in (a, tau)]
    key = key if given[wrenches] is None else None
    code = run(entry, model, memory(*model.sizes), before, (q, v, *rows, F, *options), None if count == 1 else count, key)
    refuse(model, code, prescribed, **arrays)
    return a, tau


def _of_one(model, arrays: dict[str, np.ndarray]) -> list[np.ndarray]:
    """The arrays (1, n) of a batch of one, in the shapes that they have for a state: derivatives have a row for each order."""
    return [x.reshape(-1, model.nv) if name.endswith("_derivatives") and name != "f_ext_derivatives" and x.size else x[0]
            for name, x in arrays.items()]


def by_line(model, key, out, *numbers):
    """Results of one state, or a batch of one, by the line that an earlier call has left for `key`, or None. numbers: arrays as
    they should be, of which the line checks all; out: None, or so many arrays as there are results."""
    try:
        line = model._cache[key]
        if out is None:
            return line(*numbers)
        return out if line(*numbers, *out) == 0 else None
    except (KeyError, TypeError):
        return None


def run(entry, model, size: int, before: tuple, arrays: tuple, count: int | None, key=None) -> int:
    """Call an entry over `count` states: by a line, else by loops on Lanes; on all cores. Returns a code.

    size: numbers of scratch for one state; before: arguments between the scratch and the arrays of states; count: None for one
    state, whose arrays have no axis of the batch; key: under which its line is left in the model's cache."""
    rows = arrays if count is not None else tuple(x.reshape(1, x.size) if isinstance(x, np.ndarray) else x for x in arrays)
    other = getattr(_thread, "run", None)
    if other is not None:
        return other(model, entry, size, before, rows, count)
    if count == 0 or (is_enabled() and _by_line(model, specialization_of(entry, size, before, rows), with_numbers(arrays), count,
                                                key)):
        return batch_blocks.OK
    return by_loops(entry, model, size, before, rows, 1 if count is None else count)


def by_loops(entry, model, size: int, before: tuple, arrays: tuple, count: int) -> int:
    """`run` without lines."""
    alone = (count == 1 or size > _TOO_LARGE) and len(entry.liedyn_signatures) == 2
    compile_entry_point(entry, SCALAR if alone else len(entry.liedyn_signatures) - 1)
    edges, memory = chunks(count, model.n_bodies), scratch if alone else scratch_of_eight
    index, constants, *_ = model._arrays

    def part(first, last):
        return entry(index, constants, memory(size), *before, *arrays, first, last)

    if len(edges) == 2:
        return part(0, count)
    return next((code for code in on_threads(part, edges) if code), batch_blocks.OK)


def _by_line(model, asked: Specialization, numbers, count: int | None, key) -> bool:
    """Whether a line has computed the batch. Where it has not, loops do, and they say what is wrong with it."""
    if count is not None and not of_states(numbers, count):
        return False
    if count is not None and count > 1:
        line = generated_batch_function(model, asked)
        return line is not None and run_line(line, model, numbers, count)
    line = generated_function(model, asked, [x.shape for x in numbers])
    if line is None:
        return False
    if key is not None:
        model._cache[key] = line.call
    return not line.call(*numbers)


def of_states(rows, count: int) -> bool:
    """Whether arrays have a row for each state: a line would read and write beyond others."""
    return all(x.ndim == 2 and len(x) >= count for x in rows)


def run_line(line, model, rows, count: int) -> bool:
    """A line over a batch, on all cores. Whether the results can be used. rows: the arrays that hold numbers."""
    edges = chunks(count, model.n_bodies)

    def part(first, last):
        return line.run(rows, scratch(line.workspace_size), first, last)

    return part(0, count) if len(edges) == 2 else all(on_threads(part, edges))


def with_numbers(arrays) -> list[np.ndarray]:
    return [x for x in arrays if isinstance(x, np.ndarray) and x.size]


def asked_by(function, model, *arguments, **options) -> tuple[Specialization, Model]:
    """Which entry a public function calls for these arguments, with what, and for which model (it may be that of the open tree);
    it is not called."""
    try:
        with taken_over(_answer):
            function(model._copy(), *arguments, **options)            # which has no lines yet
    except _Answer as answer:
        return answer.asked, answer.model
    raise UsageError(f"{function.__name__} calls no entry of the kernels")


class _Answer(Exception):
    def __init__(self, asked: Specialization, model):
        self.asked, self.model = asked, model


def _answer(model, entry, size, before, arrays, count):
    raise _Answer(specialization_of(entry, size, before, arrays), model)


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


# errors -----------------------------------------------------------------------------------------------------------
_RATES = {batch_blocks.BAD_V: ("v", "dv", "v_derivatives"), batch_blocks.BAD_A: ("a", "a_derivatives"),
          batch_blocks.BAD_TAU: ("tau", "tau_derivatives")}


def refuse(model, code: int, prescribed: np.ndarray | None = None, **arrays) -> None:
    """Turn an entry's code into an error that names the coordinate. arrays: of its arguments by name; prescribed: where a is
    read, and tau is not."""
    if code == batch_blocks.OK:
        return
    if code in (batch_blocks.BAD_Q, batch_blocks.BAD_QUATERNION):
        for name in ("q", "q0", "q1"):
            if name in arrays:
                check_configuration(model, arrays[name], name)
        raise ConfigurationError("a quaternion is not of unit norm")
    if code in _RATES:
        name = next(name for name in _RATES[code] if name in arrays)
        x = arrays[name].reshape(len(arrays[name]), *(-1,) * name.endswith("_derivatives"), model.nv)
        read = True if prescribed is None or code == batch_blocks.BAD_V else prescribed == (code == batch_blocks.BAD_A)
        check_finite(name, np.where(read, x, 0.0), model.v_names)
        raise ConfigurationError(f"{name} contains NaN or infinite values")
    if code == batch_blocks.BAD_F_EXT:
        what = {"f_ext_derivatives": "f_ext_derivatives", "drive": "f_ext or the motion of a driven loop"}
        what = next((text for name, text in what.items() if name in arrays), "f_ext")
        raise ConfigurationError(f"{what} contains NaN or infinite values")
    if code == batch_blocks.SINGULAR:
        raise ComputationError("a joint's articulated inertia vanishes in this configuration: its acceleration is not defined "
                               "(a compound joint in a singular position, or a massless link at the end of the tree)")
    if code == batch_blocks.BAD_RESULT:
        raise ComputationError("the result is not finite: the state is too large for double precision")
    raise ShapeError("arguments have the wrong shape")


def check_finite(name: str, x: np.ndarray, coordinates: tuple[str, ...]) -> None:
    """ConfigurationError that names the first number of x that is not finite, if there is one. x: (…, coordinates), or
    (…, rows, coordinates) of …_derivatives."""
    if np.isfinite(x).all():
        return
    rows = x.reshape(-1, *x.shape[x.ndim - (2 if name.endswith("_derivatives") else 1):])
    state, *at = first = tuple(np.argwhere(~np.isfinite(rows))[0])
    where, place = f" of state {state}" if len(rows) > 1 else "", ", ".join(map(str, at))
    raise ConfigurationError(f"{name}[{place}] ({coordinates[at[-1]]}){where} is not finite; found {rows[first]}")


def check_configuration(model, q: np.ndarray, name: str = "q") -> None:
    """ConfigurationError unless q (…, nq) is finite and its quaternions are of unit norm."""
    check_finite(name, q, model.q_names)
    for joint in model.joints:
        if joint.kind != SCREW:
            check_unit(joint.name, q[..., joint.q.stop - 4:joint.q.stop])


@np.errstate(over="ignore")
def check_unit(joint: str, u: np.ndarray) -> None:
    """ConfigurationError unless the quaternions u (…, 4) of a joint are of unit norm."""
    norms = np.linalg.norm(u.reshape(-1, 4), axis=1)
    bad = ~(np.abs(norms**2 - 1) < batch_blocks.UNIT)
    if bad.any():
        k = int(np.argmax(bad))
        where = f" in state {k}" if len(bad) > 1 else ""
        raise ConfigurationError(f"the quaternion of joint {joint!r}{where} is not of unit norm; found |q| = {norms[k]:.12g}, "
                                 f"expected 1 within {batch_blocks.UNIT / 2:g} (normalize it first)")


# Batches of which some states fail: what becomes of the others ----------------------------------------------------------

# of an argument's axes, how many belong to a state: the others are the batch's
_AXES = {"q": 1, "v": 1, "a": 1, "tau": 1, "q0": 1, "q1": 1, "dv": 1, "tau_passive": 1, "weights": 1, "multipliers": 1,
         "x": 1, "dq": 1, "da": 1, "dtau": 1, "parameters": 1, "f_ext": 2, "df_ext": 2, "v_derivatives": 2,
         "a_derivatives": 2, "tau_derivatives": 2, "f_ext_derivatives": 3}
_DRIVE = 2, 1, 1        # of a driven loop: pose, twist, its rate
_OF_STATES = ConfigurationError, ComputationError


def each_state(function, given: dict):
    """What a public function gives for an `on_error` other than "raise": the results of all states that can be computed; of the
    others NaN, False or 0, and on_error(state, error) is called, where it is a function.

    given: all arguments of `function` by name, as its locals() are at its head. A batch that fails is computed again by halves
    down to the states that fail: about as many states again as it has where few fail, so nothing is asked of the entries."""
    model, on_error, out = given["model"], given["on_error"], given.get("out")
    given = {x: given[x] for x in given if x not in ("model", "on_error", "out")}
    result = _all_states(function, model, _listener(on_error), given)
    return result if out is None else hand_over(result, out)


def _all_states(function, model, tell, given):
    try:
        return function(model, **given)
    except _OF_STATES as problem:
        error = problem.with_traceback(None)           # which would hold the arrays of the call
    lead = _lead(given)
    flat = _mapped(given, lambda x, own: np.broadcast_to(x, (*lead, *_last(x, own))).reshape((prod(lead), *_last(x, own))))

    def call(first, last):
        """A second axis of the batch tells fields of states from others."""
        return function(model, **_mapped(flat, lambda x, _: x[first:last, None]))

    found, failed = [], {}
    _by_halves(call, 0, prod(lead), error, found, failed)
    result = _joined(found, call, lead)
    for k, error in sorted(failed.items()):
        tell(k if len(lead) == 1 else tuple(int(x) for x in np.unravel_index(k, lead)) if lead else (), error)
    return result


def _listener(on_error):
    if on_error == "nan":
        return lambda state, error: None
    if not callable(on_error):
        raise ShapeError(f'on_error must be "raise", "nan" or a function of a state\'s index and its error; found {on_error!r}')
    return on_error


def _by_halves(call, first, last, error, found, failed) -> None:
    """Results of parts of [first, last), of which `error` is known, and the errors of the states that have none."""
    if last - first == 1:
        failed[first] = error
        return
    middle = (first + last) // 2
    for part in ((first, middle), (middle, last)):
        try:
            found.append((*part, call(*part)))
            continue
        except _OF_STATES as problem:
            error = problem.with_traceback(None)
        _by_halves(call, *part, error, found, failed)


def _joined(found, call, lead):
    """One result of all states, of the type that the parts have."""
    first, last, pattern = found[0] if found else (0, 0, call(0, 0))
    fields = []
    for k, one in enumerate(_fields(pattern)):
        if np.shape(one)[:2] == (last - first, 1):                   # else no field of states, as a mask
            one = _filled(np.asarray(one), [(*where, _fields(result)[k]) for *where, result in found], lead)
        fields.append(one)
    return _like(pattern, fields)


def _filled(pattern, parts, lead):
    """An array of all states (*lead, …), of those parts that are there."""
    out = np.zeros((prod(lead), *pattern.shape[2:]), np.result_type(pattern, *(x for *_, x in parts)))
    if out.dtype.kind == "f":
        out.fill(np.nan)
    for first, last, x in parts:
        out[first:last] = x[:, 0]
    return out.reshape((*lead, *out.shape[1:]))[()]


def _fields(result) -> list:
    return [result] if isinstance(result, np.ndarray) else list(result)


def _like(result, fields):
    if isinstance(result, np.ndarray):
        return fields[0]
    kind = type(result)
    return kind(fields) if kind is tuple else kind(*fields)


def _lead(given) -> tuple[int, ...]:
    leads = []
    _mapped(given, lambda x, own: leads.append(x.shape[:x.ndim - own]))
    return np.broadcast_shapes(*leads)


def _last(x, own) -> tuple[int, ...]:
    return x.shape[x.ndim - own:]


def _mapped(given: dict, change) -> dict:
    """The arguments, with change(array, how many axes belong to a state) in place of each array of states."""
    def of_states(name, x):
        if x is None or (name not in _AXES and name != "drive"):
            return x
        if name == "drive":
            return {closure: tuple(change(np.asarray(part), own) for part, own in zip(motion_parts(motion), _DRIVE, strict=False))
                    for closure, motion in x.items()}
        if isinstance(x, dict):                        # wrenches by link, rates by parameter
            return {key: change(np.asarray(part), _AXES[name] - 1) for key, part in x.items()}
        return change(np.asarray(x), _AXES[name])
    return {name: of_states(name, x) for name, x in given.items()}
