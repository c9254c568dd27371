"""Forward and hybrid dynamics."""
from __future__ import annotations

import numpy as np

from liedyn.dynamics.calling.annotations import Array, ArrayLike, OnError, Wrenches
from liedyn.dynamics.calling.arguments import NONE, as_mask
from liedyn.dynamics.calling.calls import completed
from liedyn.dynamics.calling.each_state import each_state
from liedyn.dynamics.calling.results import hand_over
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
    return hand_over(_general(model, _ONE[bool(passive)], q, v, NONE, tau, none_prescribed(model), f_ext, passive, out)[0], out)


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
    key = "hybrid_dynamics", bool(passive), prescribed.tobytes()
    return hand_over(_general(model, key, q, v, a, tau, prescribed, f_ext, passive), out)


def none_prescribed(model) -> np.ndarray:
    """Mask of no prescribed coordinate."""
    try:
        return model._cache["none"]
    except KeyError:
        return model._cache.setdefault("none", np.zeros(model.nv, dtype=bool))


def _general(model, key, q, v, a, tau, prescribed, f_ext, passive, out=None):
    """a: NONE where nothing is prescribed; out: then for the accelerations."""
    given = {"q": q, "v": v, "a": a, "tau": tau, "f_ext": f_ext}
    return completed(model, key, hybrid_batch, hybrid_batch_memory, given, (model.nv,), prescribed, (prescribed,),
                     (bool(passive),), out)
