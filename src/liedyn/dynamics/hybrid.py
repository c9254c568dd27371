"""Forward and hybrid dynamics."""
from __future__ import annotations

import numpy as np

from liedyn.dynamics.calls import NONE, NONE_BATCH, as_array, batched, refuse, run, wrenches
from liedyn.errors import ShapeError
from liedyn.jit import prepare
from liedyn.kernels.hybrid import hybrid_batch, hybrid_batch_memory, hybrid_one


def forward_dynamics(model, q, v, tau, *, f_ext=None, passive=True):
    """Accelerations that the joint forces ``tau`` produce: articulated bodies, O(n).

    Solves ``M(q) a + b(q, v) = tau + tau_passive + sum_i J_i^T f_ext_i`` for ``a``.

    Parameters
    ----------
    model : Model
    q : (..., nq) array
        Configuration [rad | m]; ball and free joints hold unit quaternions x y z w.
    v, tau : (..., nv) arrays
        Joint velocity [rad/s | m/s] and force [N m | N].
    f_ext : (..., n_links, 6) array or {link name: (..., 6) array}, optional
        External wrench [m; f] [N m | N] on each link, in the link frame, about its origin.
    passive : bool
        Whether joint springs, damping and friction act.

    Returns
    -------
    a : (..., nv) array
        Joint acceleration; a free joint's is the component-wise rate of its body twist.

    Raises
    ------
    ShapeError, ConfigurationError
    ComputationError
        Where a joint's articulated inertia vanishes.

    Notes
    -----
    Kim 2012 v1.01, Table 3.
    """
    if f_ext is None:
        a = np.empty(model.nv)
        try:                                  # one state in arrays as they should be: no check in Python
            if not hybrid_one(model.index, model.constants, model.memory, _none(model), q, v, a, tau, NONE, passive):
                return a
        except TypeError:
            pass
    return _general(model, q, v, np.zeros(model.nv), tau, _none(model), f_ext, passive)[0]


def hybrid_dynamics(model, q, v, a, tau, prescribed, *, f_ext=None, passive=True):
    """Complete accelerations and joint forces, when each coordinate has one of the two given.

    Parameters
    ----------
    model : Model
    q : (..., nq) array
        Configuration [rad | m]; ball and free joints hold unit quaternions x y z w.
    v : (..., nv) array
        Joint velocity [rad/s | m/s].
    a, tau : (..., nv) arrays
        Acceleration, read where prescribed; joint force, read where not. The rest is ignored, NaN included.
    prescribed : (nv,) bool array
        True where the acceleration is given; any mask, also within a ball or free joint.
    f_ext, passive
        As in `forward_dynamics`.

    Returns
    -------
    a, tau : (..., nv) arrays
        New arrays, both complete.

    Raises
    ------
    ShapeError, ConfigurationError, ComputationError

    Notes
    -----
    Kim 2012 v1.01, Table 4.
    """
    prescribed = np.ascontiguousarray(prescribed)
    if prescribed.dtype != bool or prescribed.shape != (model.nv,):
        raise ShapeError(f"prescribed is a mask over v; found {prescribed.dtype} of shape {prescribed.shape}, "
                         f"expected bool ({model.nv},)")
    return _general(model, q, v, a, tau, prescribed if prescribed.flags.writeable else prescribed.copy(), f_ext, passive)


def _none(model) -> np.ndarray:
    """Mask of no prescribed coordinate."""
    try:
        return model._cache["none"]
    except KeyError:
        return model._cache.setdefault("none", np.zeros(model.nv, dtype=bool))


def _general(model, q, v, a, tau, prescribed, f_ext, passive):
    q, v = as_array(q, "q", (model.nq,)), as_array(v, "v", (model.nv,))
    a, tau = as_array(a, "a", (model.nv,)), as_array(tau, "tau", (model.nv,))
    F = wrenches(model, f_ext)
    prepare(hybrid_one)
    if q.ndim == v.ndim == a.ndim == tau.ndim == 1 and (F is None or F.ndim == 2):
        F = NONE if F is None else np.ascontiguousarray(F).ravel()
        a1, tau1 = a.copy(), tau.copy()
        code = hybrid_one(model.index, model.constants, model.memory, prescribed, q, v, a1, tau1, F, bool(passive))
        refuse(model, code, q=q, v=v, a=_where(a, prescribed), tau=_where(tau, ~prescribed))
        return a1, tau1
    named = [("q", q, 1), ("v", v, 1), ("a", a, 1), ("tau", tau, 1)] + ([("f_ext", F, 2)] if F is not None else [])
    lead, rows = batched(*named)
    a1 = rows[2].copy() if prescribed.any() else np.empty((len(rows[2]), model.nv))
    tau1 = rows[3].copy() if prescribed.any() else rows[3]
    size = hybrid_batch_memory(model.n_bodies, model.nq, model.nv, len(model.link_names))
    code = run(hybrid_batch, model, size, (prescribed,),
               (rows[0], rows[1], a1, tau1, rows[4] if F is not None else NONE_BATCH, bool(passive)), len(a1))
    refuse(model, code, q=rows[0], v=rows[1], a=_where(rows[2], prescribed), tau=_where(rows[3], ~prescribed))
    shape = (*lead, model.nv)
    return a1.reshape(shape), tau1.reshape(shape)


def _where(x: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """x with the entries that are not read set to zero, for the message of an error."""
    return np.where(mask, x, 0.0)
