"""Inverse, forward and hybrid dynamics differentiated by q, v and the inputs.

The matrices of a batch are views of one array: keep a copy of one to let the others go."""
from __future__ import annotations

from ctypes import addressof, c_char
from typing import NamedTuple

import numpy as np

from liedyn.dynamics.calling.annotations import ArrayLike, OnError, Wrenches
from liedyn.dynamics.calling.calls import (
    NONE,
    NONE_BATCH,
    as_array,
    as_mask,
    batched,
    filled_groups,
    leave_scratch,
    refuse,
    related,
    run,
    scratch_and_whether,
    where_read,
    wrenches,
)
from liedyn.dynamics.calling.each_state import each_state
from liedyn.dynamics.calling.rooms import take_room
from liedyn.dynamics.calling.threads import one_thread
from liedyn.dynamics.derivatives.derivative_results import ForwardDerivatives, HybridDerivatives, InverseDerivatives
from liedyn.dynamics.open_tree import refuse_constraints
from liedyn.jit import prepare
from liedyn.kernels.checks import OTHER_MASK
from liedyn.kernels.derivatives.hybrid_derivatives import (
    batch_memory,
    hybrid_derivatives_batch,
    hybrid_derivatives_one,
    kept_memory,
    one_memory,
    pushed_derivatives_one,
)
from liedyn.kernels.derivatives.inverse_derivatives import (
    inverse_derivatives_batch,
    inverse_derivatives_batch_memory,
    inverse_derivatives_memory,
    inverse_derivatives_one,
)
from liedyn.lie.blocks import CACHED
from liedyn.model.cache_lines import on_cache_lines
from liedyn.model.model import Model

# looked up once: every 0.1 us of a call counts
_empty, _array, _FLOAT, _new = np.empty, np.ndarray, np.dtype(float), tuple.__new__
_byte, _address = c_char.from_buffer, addressof
_MOST_MASKS = 64


def inverse_dynamics_derivatives(model: Model, q: ArrayLike, v: ArrayLike, a: ArrayLike, *, f_ext: Wrenches | None = None,
                                 passive: bool = True, on_error: OnError = "raise") -> InverseDerivatives:
    """Derivatives of `inverse_dynamics` by q, v and a: O(n depth).

    Parameters
    ----------
    model, q, v, a, f_ext, passive
        As in `inverse_dynamics`. f_ext stays constant in its link's frame; for derivatives by it see `by_wrench`.
    on_error
        As in `inverse_dynamics`.

    Returns
    -------
    InverseDerivatives
        dtau_dq, dtau_dv, M, each (..., nv, nv). By q: d/de at 0 of tau(q (+) e d), with (+) as in `integrate`; v and a keep
        their components.

    Raises
    ------
    ShapeError, ConfigurationError

    Notes
    -----
    Kim 2012 v1.01, Table 5, for all coordinates at once; see `kernels.derivatives.pairs`.
    """
    if model.nc:
        refuse_constraints(model, "inverse_dynamics_derivatives", "constrained_inverse_derivatives")
    if on_error != "raise":
        return each_state(inverse_dynamics_derivatives, locals())
    nv = model.nv
    if f_ext is None:
        try:                                  # arrays as they should be: the entry checks shapes and values itself
            tools = model._cache["derivatives"]
            if q.ndim == 1:
                shape = tools.shape
                x, y, z = _empty(shape), _empty(shape), _empty(shape)         # views of one array would take 0.6 us more
                if not inverse_derivatives_one.direct(tools.machine, q, v, a, NONE, passive, x, y, z):
                    return _new(InverseDerivatives, (x, y, z))
            elif q.ndim == 2 and one_thread(model, len(q)):
                out, past, x, y, z = _room(tools, len(q))
                memory, cleared = scratch_and_whether(tools.room[0], tools.related)
                if not inverse_derivatives_batch.direct(model.index, model.constants, memory, q, v, a, NONE_BATCH, passive,
                                                        tools.related, out, past, cleared, 0, len(q)):
                    leave_scratch(tools.related)
                    return _new(InverseDerivatives, (x, y, z))
        except (TypeError, AttributeError, KeyError):   # other types, lists, or not compiled yet
            pass
    tools = _tools(model)
    named = [("q", as_array(q, "q", (model.nq,)), 1), ("v", as_array(v, "v", (nv,)), 1), ("a", as_array(a, "a", (nv,)), 1)]
    given, lead, rows = _given(model, named, f_ext)
    x = given["q"], given["v"], given["a"], given["f_ext"], bool(passive)
    if lead is None:
        prepare(inverse_derivatives_one)
        out = np.empty((3, nv, nv))
        code = inverse_derivatives_one(tools.machine, *x, *out)
    else:
        out, past, *matrices = _room(tools, rows)
        code = run(inverse_derivatives_batch, model, tools.room[0], (),
                   (*x, tools.related, out, past, False), rows)
    refuse(model, code, **{name: given[name] for name in ("q", "v", "a")})
    return InverseDerivatives(*(out if lead is None else _shaped(matrices, lead)))


def forward_dynamics_derivatives(model: Model, q: ArrayLike, v: ArrayLike, tau: ArrayLike, *, f_ext: Wrenches | None = None,
                                 passive: bool = True, on_error: OnError = "raise") -> ForwardDerivatives:
    """Derivatives of `forward_dynamics` by q, v and tau.

    Parameters
    ----------
    model, q, v, tau, f_ext, passive
        As in `forward_dynamics`. f_ext stays constant in its link's frame; for derivatives by it see `by_wrench`.
    on_error
        As in `inverse_dynamics`.

    Returns
    -------
    ForwardDerivatives
        da_dq, da_dv, M_inverse, each (..., nv, nv). By q: d/de at 0 of a(q (+) e d), with (+) as in `integrate`; v and tau
        keep their components.

    Raises
    ------
    ShapeError, ConfigurationError
    ComputationError
        If a joint's articulated inertia vanishes.

    Notes
    -----
    ``da = -M^-1 dID`` with inverse dynamics ID at the solution (Kim 2012 v1.01, Table 6, for all coordinates at once).
    """
    if model.nc:
        refuse_constraints(model, "forward_dynamics_derivatives", "constrained_forward_derivatives")
    if on_error != "raise":
        return each_state(forward_dynamics_derivatives, locals())
    if f_ext is None:
        try:                                  # arrays as they should be: the entry checks shapes and values itself
            if q.ndim == 1:
                machine, shape, memo, none = model._cache["no mask"]
                x, y, z = _empty(shape), _empty(shape), _empty(shape)         # views of one array would take 0.6 us more
                if not hybrid_derivatives_one.direct(machine, none, memo, q, v, v, tau, passive, x, y, z):
                    return _new(ForwardDerivatives, (x, y, z))
            elif q.ndim == 2 and one_thread(model, len(q)):
                tools = model._cache["derivatives"]
                out, past, x, y, z = _room(tools, len(q))
                if not _batch_here(model, tools, tools.none, q, v, v, tau, passive, out, past):
                    return _new(ForwardDerivatives, (x, y, z))
        except (TypeError, AttributeError, KeyError):   # other types, lists, or not compiled yet
            pass
    return ForwardDerivatives(*_solved(model, q, v, None, tau, _tools(model).none, f_ext, passive))


def hybrid_dynamics_derivatives(model: Model, q: ArrayLike, v: ArrayLike, a: ArrayLike, tau: ArrayLike, prescribed: ArrayLike, *,
                                f_ext: Wrenches | None = None, passive: bool = True,
                                on_error: OnError = "raise") -> HybridDerivatives:
    """Derivatives of `hybrid_dynamics` by q, v and the inputs.

    Parameters
    ----------
    model, q, v, a, tau, prescribed, f_ext, passive
        As in `hybrid_dynamics`.
    on_error
        As in `inverse_dynamics`.

    Returns
    -------
    HybridDerivatives
        dy_dq, dy_dv, dy_du, each (..., nv, nv), of what comes out: tau where prescribed, a elsewhere. `split` makes da_dq,
        da_dv, da_du, dtau_dq, dtau_dv, dtau_du of them. Tangent convention as in `forward_dynamics_derivatives`.

    Raises
    ------
    ShapeError, ConfigurationError, ComputationError

    Notes
    -----
    ``da_v = -M_vv^-1 dID_v``, ``dtau_u = dID_u + M_uv da_v`` (Kim 2012 v1.01, Table 7, for all coordinates at once).
    """
    if model.nc:
        refuse_constraints(model, "hybrid_dynamics_derivatives", "constrained_hybrid_derivatives")
    if on_error != "raise":
        return each_state(hybrid_dynamics_derivatives, locals())
    if f_ext is None:
        try:                                  # arrays as they should be: the entry checks shapes and values itself
            if q.ndim == 1:
                machine, shape, memo, mask = model._cache["latest mask"]
                x, y, z = _empty(shape), _empty(shape), _empty(shape)         # views of one array would take 0.6 us more
                code = hybrid_derivatives_one.direct(machine, prescribed, memo, q, v, a, tau, passive, x, y, z)
                if not code:
                    return _new(HybridDerivatives, (x, y, z, mask))
                if code == OTHER_MASK:
                    known = model._cache["derivatives"].masks[prescribed.tobytes()]
                    machine, shape, memo, mask = model._cache["latest mask"] = known
                    if not hybrid_derivatives_one.direct(machine, prescribed, memo, q, v, a, tau, passive, x, y, z):
                        return _new(HybridDerivatives, (x, y, z, mask))
            elif q.ndim == 2 and one_thread(model, len(q)):
                tools = model._cache["derivatives"]
                *_, mask = tools.masks[prescribed.tobytes()]
                out, past, x, y, z = _room(tools, len(q))
                if not _batch_here(model, tools, prescribed, q, v, a, tau, passive, out, past):
                    return _new(HybridDerivatives, (x, y, z, mask))
        except (TypeError, AttributeError, KeyError):   # other types, lists, not compiled yet, or a new mask
            pass
    a, mask = as_array(a, "a", (model.nv,)), as_mask(prescribed, model.nv).copy()
    known = model._cache["latest mask"] = _known(model, mask)
    return HybridDerivatives(*_solved(model, q, v, a, tau, mask, f_ext, passive), known[-1])


def _batch_here(model, tools, prescribed, q, v, a, tau, passive, out, past):
    """Forward or hybrid derivatives of a batch by this thread. Returns a code; TypeError for arrays that are not as they should
    be."""
    memory, cleared = scratch_and_whether(tools.room[1], tools.coupled)
    code = hybrid_derivatives_batch.direct(model.index, model.constants, memory, prescribed, q, v, a, tau, NONE_BATCH, passive,
                                           tools.coupled, out, past, cleared, 0, len(q))
    if not code:
        leave_scratch(tools.coupled)
    return code


def _known(model, mask):
    """What `masks` of the tools has of a mask, from now on known."""
    tools, key = _tools(model), mask.tobytes()
    known = tools.masks.get(key)
    if known is None:
        if len(tools.masks) > _MOST_MASKS:
            tools.masks.clear()
        shared = mask.copy()
        shared.flags.writeable = False
        memo = np.zeros(kept_memory(model.nv))
        memo.view(bool)[8 * (-model.nv // 8):][:model.nv] = mask             # see `kept`
        known = tools.masks.setdefault(key, (tools.machine, tools.shape, memo, shared))
    return known


def _solved(model, q, v, a, tau, prescribed, f_ext, passive):
    """a is an array, or None where nothing is prescribed."""
    nv, tools = model.nv, _tools(model)
    tau = as_array(tau, "tau", (nv,))
    named = [("q", as_array(q, "q", (model.nq,)), 1), ("v", as_array(v, "v", (nv,)), 1), ("tau", tau, 1),
             ("a", tau if a is None else a, 1)]
    given, lead, rows = _given(model, named, f_ext)
    q, v, tau, x, F = (given[name] for name in ("q", "v", "tau", "a", "f_ext"))
    if lead is None:
        out = np.empty((3, nv, nv))
        entry, pushing = (hybrid_derivatives_one, ()) if F is NONE else (pushed_derivatives_one, (F,))
        prepare(entry)
        machine, _, memo, _ = _known(model, prescribed)
        code = entry(machine, prescribed, memo, q, v, x, tau, *pushing, bool(passive), *out)
        if a is None:
            model._cache["no mask"] = machine, tools.shape, memo, prescribed
    else:
        out, past, *matrices = _room(tools, rows)
        code = run(hybrid_derivatives_batch, model, tools.room[1], (prescribed,),
                   (q, v, x, tau, F, bool(passive), tools.coupled, out, past, False), rows)
    if code:
        refuse(model, code, q=q, v=v, a=where_read(x, prescribed), tau=where_read(tau, ~prescribed))
    return out if lead is None else _shaped(matrices, lead)


def _given(model, named, f_ext):
    """Arguments by name, leading axes (None: one state) and how many states."""
    F = wrenches(model, f_ext)
    if F is not None:
        named.append(("f_ext", F, 2))
    if all(array.ndim == own for _, array, own in named):
        given = {name: np.ascontiguousarray(array).reshape(-1) for name, array, _ in named}
        return {"f_ext": NONE, **given}, None, 1
    lead, rows = batched(*named)
    given = dict(zip([name for name, _, _ in named], rows, strict=True))
    return {"f_ext": NONE_BATCH, **given}, lead, len(rows[0])


def lines(nv: int) -> int:
    """Numbers of a matrix in a row of an entry's result: whole lines of eight."""
    return -(-nv * nv // 8) * 8


def columns(nv: int) -> int:
    """Numbers in a row of three matrices. Eight rows are written at once, and must not be at the same few places of their pages,
    where they drive each other from the caches: handing out 32 coordinates took 1.8 times as long."""
    used = 3 * lines(nv) // 8
    return 8 * (used if used % 16 else used + 5)


def _room(tools, count):
    """Uninitialized rows on borders of cache lines, in eights, for three matrices of each state; whether to write them past the
    caches; and the matrices in them, by columns."""
    nv, wide, size = tools.row
    rows, past = (max(count, 1) + 7) // 8 * 8, False
    if rows * wide > CACHED:
        room, memory = take_room(rows, wide)
        first, out, past = room.first, room.lines_in(memory), room.past
    else:                                                        # the same without a Room: 0.7 us less
        memory = _empty(rows * wide + 8)
        first = -_address(_byte(memory)) % 64
        out = _array((rows, wide), _FLOAT, memory, first)
    shape, strides = (count, nv, nv), (8 * wide, 8, 8 * nv)
    return (out, past, _array(shape, _FLOAT, memory, first, strides), _array(shape, _FLOAT, memory, first + size, strides),
            _array(shape, _FLOAT, memory, first + 2 * size, strides))


def _shaped(matrices, lead):
    return matrices if len(lead) == 1 else [x.reshape(*lead, *x.shape[1:]) for x in matrices]


class _Tools(NamedTuple):
    """What the entries need of a model, besides its arrays."""

    machine: np.ndarray         # index, constants and scratch for one state
    shape: tuple[int, int]      # of a matrix
    row: tuple[int, int, int]   # of results: nv, numbers, bytes of a matrix
    room: tuple[int, int]       # scratch for one of eight states: inverse; forward and hybrid
    none: np.ndarray            # mask of no prescribed coordinate
    related: np.ndarray         # lines of eight of dtau/dq, dtau/dv, M that hold more than zeros
    coupled: np.ndarray         # the same for da/dq, da/dv, M^-1
    masks: dict[bytes, tuple]   # known ones: (machine, shape, what the entry keeps of it, mask that results share: a copy for
                                # each would take 0.1 us)


def _tools(model) -> _Tools:
    try:
        return model._cache["derivatives"]
    except KeyError:
        return model._cache.setdefault("derivatives", _new_tools(model))


def _new_tools(model) -> _Tools:
    n, nv = model.sizes[0], model.nv
    top = model.paths[1]
    head = model.index.size + model.constants.size
    size = max(one_memory(n, nv), inverse_derivatives_memory(n, nv))
    machine = on_cache_lines(head + size, at=head)              # where the scratch starts
    machine[:head] = np.concatenate([model.index.view(np.float64), model.constants])
    room = inverse_derivatives_batch_memory(*model.sizes), batch_memory(*model.sizes)
    row = nv, columns(nv), 8 * lines(nv)
    return _Tools(machine, (nv, nv), row, room, np.zeros(nv, dtype=bool), filled_groups(related(model)),
                  filled_groups(top[:, None] == top), {})
