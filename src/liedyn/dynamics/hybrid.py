"""Forward and hybrid dynamics."""
from __future__ import annotations

import numpy as np

from liedyn.dynamics.calling.annotations import Array, ArrayLike, OnError, Wrenches
from liedyn.dynamics.calling.calls import NONE_BATCH, as_array, as_mask, batched, refuse, run, single, where_read, wrenches
from liedyn.dynamics.calling.each_state import each_state
from liedyn.dynamics.calling.results import hand_over, place_for
from liedyn.dynamics.open_tree import refuse_constraints
from liedyn.kernels.recursions.hybrid import hybrid_batch, hybrid_batch_memory
from liedyn.model.model import Model

_ONE = {False: "forward_dynamics, passive=False", True: "forward_dynamics"}


def forward_dynamics(model: Model, q: ArrayLike, v: ArrayLike, tau: ArrayLike, *, f_ext: Wrenches | None = None,
                     passive: bool = True, on_error: OnError = "raise", out: Array | None = None) -> Array:
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
        External wrench [m; f] [N m | N] on each link, in its "local" frame: link axes, about the link's origin.
    passive : bool
        Whether joint springs, damping and friction act.
    on_error : "raise", "nan" or function
        What happens with a state that cannot be computed: "raise" ends the call with an error; "nan" gives NaN for that state; a
        function is called as ``on_error(state, error)``, with the index in the batch and the error, and the result is NaN.
    out : (..., nv) array of float64, optional
        Where the result is written, which is then returned; it may be one of the arguments.

    Returns
    -------
    a : (..., nv) array
        Joint acceleration; a free joint's is the component-wise rate of its body twist.

    Raises
    ------
    ShapeError, ConfigurationError
    ModelError
        For a robot with loops or couplings: use `constrained_forward_dynamics` or `Model.open_tree`.
    ComputationError
        If a joint's articulated inertia vanishes.

    Notes
    -----
    Source: K1 Tables 1, 3.

    Examples
    --------
    >>> model, q, v = ld.load("robots/double_pendulum.yaml"), [0.3, -0.2], [1.0, 0.5]
    >>> ld.forward_dynamics(model, q, v, tau=[0.0, 0.5], f_ext={"tip": [0, 0, 0, 1, 0, 0]}).round(3)
    array([-7.735, 16.433])
    """
    if f_ext is None and on_error == "raise":
        try:                                  # arrays as they should be, of which the line checks all
            line = model._cache[_ONE[passive]]
            if out is not None and not line(q, v, out, tau):
                return out
            if out is None and (a := line(q, v, tau)) is not None:
                return a
        except (KeyError, TypeError):
            pass
    if model.nc:
        refuse_constraints(model, "forward_dynamics", "constrained_forward_dynamics")
    if on_error != "raise":
        return each_state(forward_dynamics, locals())
    return hand_over(_general(model, q, v, None, tau, none_prescribed(model), f_ext, passive, out)[0], out)


def hybrid_dynamics(model: Model, q: ArrayLike, v: ArrayLike, a: ArrayLike, tau: ArrayLike, prescribed: ArrayLike, *,
                    f_ext: Wrenches | None = None, passive: bool = True, on_error: OnError = "raise",
                    out: tuple[Array, Array] | None = None) -> tuple[Array, Array]:
    """All accelerations and joint forces, given one of the two for each coordinate.

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
    on_error
        As in `inverse_dynamics`.
    out : two (..., nv) arrays of float64, optional
        Where a and tau are written, which are then returned; they may be those of the arguments.

    Returns
    -------
    a, tau : (..., nv) arrays
        Both complete, and new where there is no `out`.

    Raises
    ------
    ShapeError, ConfigurationError, ComputationError
    ModelError
        For a robot with loops or couplings: use `constrained_hybrid_dynamics` or `Model.open_tree`.

    Notes
    -----
    Source: K1 (33), Tables 1, 4; K2 (34).

    Examples
    --------
    >>> model, q, v = ld.load("robots/double_pendulum.yaml"), [0.3, -0.2], [1.0, 0.5]
    >>> a, tau = ld.hybrid_dynamics(model, q, v, a=[0.0, np.nan], tau=[np.nan, 0.5], prescribed=[True, False])
    >>> a.round(3), tau.round(3)
    (array([0.   , 0.329]), array([5.233, 0.5  ]))
    """
    if model.nc:
        refuse_constraints(model, "hybrid_dynamics", "constrained_hybrid_dynamics")
    if on_error != "raise":
        return each_state(hybrid_dynamics, locals())
    if f_ext is None:
        try:
            all_a, all_tau = a.copy(), tau.copy()
            if not model._cache["hybrid_dynamics", passive, prescribed.tobytes()](q, v, all_a, all_tau):
                return hand_over((all_a, all_tau), out)
        except (KeyError, TypeError, AttributeError):
            pass
    prescribed = as_mask(prescribed, model.nv)
    return hand_over(_general(model, q, v, as_array(a, "a", (model.nv,)), tau, prescribed, f_ext, passive), out)


def none_prescribed(model) -> np.ndarray:
    """Mask of no prescribed coordinate."""
    try:
        return model._cache["none"]
    except KeyError:
        return model._cache.setdefault("none", np.zeros(model.nv, dtype=bool))


def _general(model, q, v, a, tau, prescribed, f_ext, passive, out=None):
    """a is an array already, or None where nothing is prescribed; out: then for a."""
    named = [("q", as_array(q, "q", (model.nq,)), 1), ("v", as_array(v, "v", (model.nv,)), 1),
             ("tau", as_array(tau, "tau", (model.nv,)), 1)]
    if a is not None:
        named.append(("a", a, 1))
    F = wrenches(model, f_ext)
    if F is not None:
        named.append(("f_ext", F, 2))
    if all(array.ndim == own for _, array, own in named):
        return _one(model, named, prescribed, passive, out)
    lead, rows = batched(*named)
    given = dict(zip([name for name, _, _ in named], rows, strict=True))
    if a is None:
        a = place_for((*lead, model.nv), out, rows).reshape(len(rows[0]), model.nv)
        tau = given["tau"]
    else:
        a, tau = given["a"].copy(), given["tau"].copy()
    size = hybrid_batch_memory(*model.sizes)
    code = run(hybrid_batch, model, size, (prescribed,),
               (given["q"], given["v"], a, tau, given.get("f_ext", NONE_BATCH), bool(passive)), len(a))
    _refuse(model, code, given, prescribed)
    shape = (*lead, model.nv)
    return a.reshape(shape), tau.reshape(shape)


def _one(model, named, prescribed, passive, out):
    given = {name: np.ascontiguousarray(array) for name, array, _ in named}
    a = given["a"].copy() if "a" in given else place_for((model.nv,), out, given.values())
    tau, F, passive = given["tau"].copy(), given.get("f_ext", NONE_BATCH), bool(passive)
    key = ("hybrid_dynamics", passive, prescribed.tobytes()) if "a" in given else _ONE[passive]
    if F is not NONE_BATCH:
        key = key, "f_ext"
    code = single(model, key, hybrid_batch, hybrid_batch_memory(*model.sizes), (prescribed,),
                  (given["q"], given["v"], a, tau, F, passive))
    _refuse(model, code, given, prescribed)
    return a, tau


def _refuse(model, code, given, prescribed):
    if code:
        a = where_read(given["a"], prescribed) if "a" in given else None
        refuse(model, code, q=given["q"], v=given["v"], a=a, tau=where_read(given["tau"], ~prescribed))

