"""Batches of which some states fail: what becomes of the others."""
from __future__ import annotations

from math import prod

import numpy as np

from liedyn.dynamics.calling.arguments import motion_parts
from liedyn.dynamics.calling.results import hand_over
from liedyn.errors import ComputationError, ConfigurationError, ShapeError

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
