"""Constraints of a model at a state: how far they are open, their Jacobian, their velocity and what motion adds; and the way
back onto them."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from liedyn.dynamics.calling.annotations import Array, ArrayLike, OnError
from liedyn.dynamics.calling.arguments import as_array, as_mask, states
from liedyn.dynamics.calling.calls import check_configuration, check_finite, computed, refuse
from liedyn.dynamics.calling.each_state import each_state
from liedyn.dynamics.loops.desk_for import desk_for
from liedyn.dynamics.loops.rank import column_scale, row_scale, size_of_rates
from liedyn.dynamics.manifold import difference, integrate
from liedyn.errors import ComputationError, ModelError
from liedyn.jit import prepare
from liedyn.kernels.checks import BAD_F_EXT, OK
from liedyn.kernels.loops.by_parts import CLOSE_POSITION, CLOSE_VELOCITY, CONTRADICTS, FAR, OPEN, mechanism
from liedyn.kernels.loops.desk import LEFT, TOLERANCE
from liedyn.kernels.loops.loop_kinematics import BIAS, JACOBIAN, RESIDUAL, VELOCITY, constraint_state_memory, constraint_states
from liedyn.kernels.loops.parts import CHANGED, HOLONOMIC, MOVED, RESIDUALS, ROWS
from liedyn.model.model import Model

_ROUNDS = 20              # of slides along the constraints: each leaves their curvature times the distance
_NEAR = 1e-9             # a distance of which rounding hides the direction
_PERPENDICULAR = 1e-9    # of the distance: a slide that is left out moves the result by 1e-9 of it

_OF_POSITION, _OF_VELOCITY = (RESIDUALS, HOLONOMIC, MOVED), (ROWS, CHANGED)


def constraint_residual(model: Model, q: ArrayLike, *, drive: Mapping[str, Any] | None = None,
                        on_error: OnError = "raise") -> Array:
    """Residual of each constraint (..., m) [rad | m], in the order of ``model.row_names``.

    Parameters
    ----------
    model : Model
    q : (..., nq) array
    drive : {closure name: (T, V, dV)}, optional
        Motion of the frames A of driven loops: pose (..., 4, 4) in the frame of the file, its twist (..., 6) and the twist's
        rate (..., 6), both in the moving frame [w; v]; what is omitted is zero. Closures that are not named do not move.
    on_error
        As in `inverse_dynamics`.

    Raises
    ------
    ModelError
        For a model without constraints.
    ShapeError, ConfigurationError, NameLookupError

    Notes
    -----
    Rows as in `joints.closures`: angles of misalignment as 2 sin(angle/2), lengths along frame B.

    Examples
    --------
    >>> model = ld.load("robots/four_bar.yaml")
    >>> ld.constraint_residual(model, [1.2, 0.2, 1.8]).round(3)      # the loop is open
    array([ 0.   ,  0.   , -0.108,  0.041,  0.   ])
    """
    if on_error != "raise":
        return each_state(constraint_residual, locals())
    return _constraints(model, RESIDUAL, q, np.zeros(model.nv), drive)


def constraint_velocity(model: Model, q: ArrayLike, v: ArrayLike, *, drive: Mapping[str, Any] | None = None,
                        on_error: OnError = "raise") -> Array:
    """Velocity of each constraint row: A v minus that of the drive; zero if v satisfies the constraints.

    Parameters
    ----------
    model : Model
    q : (..., nq) array
        Configuration [rad | m] that closes the loops: see `assemble`.
    v : (..., nv) array
        Velocity [rad/s | m/s]; of a free joint its body twist [w; v].
    drive
        Motion of driven loops, as in `constraint_residual`.
    on_error
        As in `inverse_dynamics`.

    Returns
    -------
    velocity : (..., m) array
        In the order of ``model.row_names`` [rad/s | m/s].

    Raises
    ------
    ModelError, ShapeError, ConfigurationError, NameLookupError

    Examples
    --------
    >>> model = ld.load("robots/four_bar.yaml")
    >>> q = ld.assemble(model, [1.2, 0.2, 1.8], fixed=["crank"]).q
    >>> ld.constraint_velocity(model, q, [1.0, 0.0, 0.0]).round(3)      # the loop opens
    array([ 0.   ,  0.   , -0.198,  0.276,  0.   ])
    """
    if on_error != "raise":
        return each_state(constraint_velocity, locals())
    return _constraints(model, VELOCITY, q, v, drive)


def constraint_bias(model: Model, q: ArrayLike, v: ArrayLike, *, drive: Mapping[str, Any] | None = None,
                    on_error: OnError = "raise") -> Array:
    """gamma of the constraints at acceleration level: ``A a + gamma = 0`` (K2 §3).

    Parameters
    ----------
    model : Model
    q : (..., nq) array
        Configuration [rad | m] that closes the loops: see `assemble`.
    v : (..., nv) array
        Velocity [rad/s | m/s]; of a free joint its body twist [w; v].
    drive
        Motion of driven loops, as in `constraint_residual`.
    on_error
        As in `inverse_dynamics`.

    Returns
    -------
    gamma : (..., m) array
        In the order of ``model.row_names`` [rad/s^2 | m/s^2].

    Raises
    ------
    ModelError, ShapeError, ConfigurationError, NameLookupError

    Examples
    --------
    >>> model = ld.load("robots/four_bar.yaml")
    >>> q = ld.assemble(model, [1.2, 0.2, 1.8], fixed=["crank"]).q
    >>> v = ld.project_velocity(model, q, [1.0, 0.0, 0.0])
    >>> ld.constraint_bias(model, q, v).round(3)
    array([0.   , 0.   , 0.486, 0.165, 0.   ])
    """
    if on_error != "raise":
        return each_state(constraint_bias, locals())
    return _constraints(model, BIAS, q, v, drive)


def constraint_jacobian(model: Model, q: ArrayLike, *, drive: Mapping[str, Any] | None = None,
                        on_error: OnError = "raise") -> Array:
    """A: rows of the twist of frame B relative to A that the closures constrain, and of the couplings (K2 (55)).

    It is the derivative of `constraint_residual` at configurations where that is zero.

    Parameters
    ----------
    model : Model
    q : (..., nq) array
        Configuration [rad | m] that closes the loops: see `assemble`.
    drive
        Motion of driven loops, as in `constraint_residual`.
    on_error
        As in `inverse_dynamics`.

    Returns
    -------
    A : (..., m, nv) array
        Rows in the order of ``model.row_names``.

    Raises
    ------
    ModelError, ShapeError, ConfigurationError, NameLookupError

    Examples
    --------
    >>> model = ld.load("robots/four_bar.yaml")
    >>> q = ld.assemble(model, [1.2, 0.2, 1.8], fixed=["crank"]).q
    >>> ld.constraint_jacobian(model, q).shape
    (5, 3)
    """
    if on_error != "raise":
        return each_state(constraint_jacobian, locals())
    return _constraints(model, JACOBIAN, q, np.zeros(model.nv), drive)


def project_configuration(model: Model, q: ArrayLike, *, prescribed: ArrayLike | None = None,
                          drive: Mapping[str, Any] | None = None, tolerance: float = 1e-13, on_error: OnError = "raise") -> Array:
    """q projected onto the constraints in the metric of the mass matrix.

    Gauss-Newton steps on the manifold from a configuration that is nearly closed; from a guess, see `assemble`. Then q slides
    along the constraints until the way to the given configuration is perpendicular to them.

    Parameters
    ----------
    model : Model
    q : (..., nq) array
        Configuration [rad | m] near a closed one.
    prescribed : (nv,) bool array, optional
        Coordinates that do not change.
    drive
        Motion of driven loops, as in `constraint_residual`.
    tolerance : float
        Largest residual that counts as closed [rad | metres per characteristic length of the loop]. Where rounding leaves more,
        a thousand times as much does.
    on_error
        As in `inverse_dynamics`.

    Returns
    -------
    q : (..., nq) array
        A closed configuration.

    Raises
    ------
    ModelError, ShapeError, ConfigurationError
    ComputationError
        If the constraints cannot be satisfied from there.

    Examples
    --------
    >>> model = ld.load("robots/four_bar.yaml")
    >>> q = ld.project_configuration(model, [1.2, 0.6, 1.8])
    >>> bool(np.abs(ld.constraint_residual(model, q)).max() < 1e-12)
    True
    """
    if on_error != "raise":
        return each_state(project_configuration, locals())
    closed = _project(model, q, None, prescribed, drive, tolerance)
    return _nearest(model, as_array(q, "q", (model.nq,)), closed, prescribed, drive, tolerance) if closed.size else closed


def _nearest(model, start, q, prescribed, drive, tolerance):
    """Closed configurations q moved along the constraints until the way to `start` is perpendicular to them in the metric of M.

    Newton steps from an open configuration are not enough: rows that depend on each other in closed configurations, as those of
    overconstrained linkages, do not in open ones, where they add directions to the steps."""
    still = {name: (motion[0],) for name, motion in (drive or {}).items()}         # project_velocity: V is zero
    unit = column_scale(model)

    def slide(q):
        away = difference(model, q, start)
        among = project_velocity(model, q, away, prescribed=prescribed, drive=still)
        return among, *(np.abs(x / unit).max(axis=-1, keepdims=True) for x in (among, away))

    among, size, far = slide(q)
    moving = np.ones_like(size, dtype=bool)
    for _ in range(_ROUNDS):
        moving &= (far > _NEAR) & (size > _PERPENDICULAR * far)
        if not moving.any():
            break
        try:
            found = _project(model, integrate(model, q, np.where(moving, among, 0.0)), None, prescribed, drive, tolerance)
            after, left, away = slide(found)
        except ComputationError:                                       # a neighbour that cannot be closed
            break
        moving &= left < size                                          # not at branches
        q, among, size, far = (np.where(moving, x, y) for x, y in ((found, q), (after, among), (left, size), (away, far)))
    return q


def project_velocity(model: Model, q: ArrayLike, v: ArrayLike, *, prescribed: ArrayLike | None = None,
                     drive: Mapping[str, Any] | None = None, on_error: OnError = "raise") -> Array:
    """v projected onto the constraints in the metric of the mass matrix.

    Parameters
    ----------
    model : Model
    q : (..., nq) array
        Configuration [rad | m] that closes the loops: see `assemble`.
    v : (..., nv) array
        Velocity [rad/s | m/s]; of a free joint its body twist [w; v].
    prescribed : (nv,) bool array, optional
        Coordinates whose velocity does not change.
    drive
        Motion of driven loops, as in `constraint_residual`.
    on_error
        As in `inverse_dynamics`.

    Returns
    -------
    v : (..., nv) array
        The nearest velocity with ``A v`` that of the drive, else zero.

    Raises
    ------
    ModelError, ShapeError, ConfigurationError
    ComputationError
        If no velocity satisfies the constraints: those of `prescribed` coordinates or of driven loops contradict them.

    Examples
    --------
    >>> model = ld.load("robots/four_bar.yaml")
    >>> q = ld.assemble(model, [1.2, 0.2, 1.8], fixed=["crank"]).q
    >>> v = ld.project_velocity(model, q, [1.0, 0.0, 0.0])
    >>> bool(np.abs(ld.constraint_velocity(model, q, v)).max() < 1e-12)
    True
    """
    if on_error != "raise":
        return each_state(project_velocity, locals())
    found = nearest_velocity(model, q, v, prescribed, drive)
    if prescribed is not None or drive is not None:
        _refuse_contradiction(model, q, found, drive)
    return found


def nearest_velocity(model: Model, q: ArrayLike, v: ArrayLike, prescribed: ArrayLike | None = None,
                     drive: Mapping[str, Any] | None = None) -> Array:
    """`project_velocity` for those who look themselves at what is left of the residual."""
    return _project(model, q, v, prescribed, drive, 0.0)


def _refuse_contradiction(model, q, v, drive) -> None:
    """Where rows that depend on what is given could not be satisfied."""
    left = np.abs(constraint_velocity(model, q, v, drive=drive)).reshape(-1, model.nc)
    scaled = left * row_scale(model)
    bad = scaled > CONTRADICTS * size_of_rates(model, v, 1).reshape(-1, 1)
    if bad.any():
        k, r = np.unravel_index(np.argmax(np.where(bad, scaled, 0.0)), left.shape)
        state = f" of state {k}" if len(left) > 1 else ""
        raise ComputationError(f"no velocity{state} satisfies the constraints: that of {model.row_names[r]} stays at "
                               f"{left[k, r]:.3g} (prescribe fewer coordinates, or other velocities)")


def require_constraints(model) -> None:
    if not model.nc:
        raise ModelError(f"robot {model.name} has no constraints", expected="loops, couplings or a mimic in its file")


def _constraints(model, what, q, v, drive) -> np.ndarray:
    require_constraints(model)
    shape = (model.nc, model.nv) if what == JACOBIAN else (model.nc,)
    return computed(model, ("constraints", what), constraint_states,
                    lambda n, nq, nv, nl: constraint_state_memory(n, nq, nv, len(model.constraints), model.nc, model.driven),
                    {"q": q, "v": v, "drive": drive}, shape, before=model._arrays[2:4], options=(what,))


def _project(model, q, v, prescribed, drive, tolerance):
    require_constraints(model)
    lead, given = states(model, {"q": q, "drive": drive} if v is None else {"q": q, "drive": drive, "v": v})
    given = {name: x.copy() for name, x in given.items()}
    count = len(given["q"])
    if not count:
        return np.empty((*lead, model.nq if v is None else model.nv))
    mask = np.zeros(model.nv, dtype=bool) if prescribed is None else as_mask(prescribed, model.nv)
    prepare(mechanism)
    check_states(model, **given)
    code, k, left = _project_each(model, given, mask, float(tolerance), False)
    if code == FAR:
        code, k, left = _project_each(model, given, mask, float(tolerance), True)
    if code == OPEN:
        _refuse_open(model, given["q"][k], drive, left)
    refuse(model, code, **given)
    return given["v" if v is not None else "q"].reshape(*lead, -1)


def _project_each(model, given, mask, tolerance, loops):
    """States one at a time, in place. Returns a code, the state that it is of, and the residual that was left there."""
    position = "v" not in given
    made = desk_for(model, mask, mask, mask, False, which=_OF_POSITION if position else _OF_VELOCITY, loops=loops)
    d, what, address = made.desk, CLOSE_POSITION if position else CLOSE_VELOCITY, made.numbers.ctypes.data
    d.figures[TOLERANCE] = tolerance
    for k in range(len(given["q"])):
        for name, x in given.items():
            getattr(d, name)[:] = x[k]
        code = mechanism(address, what)
        if code != OK:
            return code, k, d.figures[LEFT]
        for name in ("q", "v"):
            if name in given:
                given[name][k] = getattr(d, name)
    return OK, 0, 0.0


def check_states(model, q, v=None, a=None, tau=None, **other) -> None:
    """ConfigurationError for arrays (N, n) that parts read, where one is not finite or a quaternion not of unit norm; other:
    f_ext, drive."""
    check_configuration(model, q)
    for name, x in (("v", v), ("a", a), ("tau", tau)):
        if x is not None:
            check_finite(name, x, model.v_names)
    if not all(np.isfinite(x).all() for x in other.values()):
        refuse(model, BAD_F_EXT, **other)


def _refuse_open(model, q, drive, size):
    name, residual = "", np.abs(constraint_residual(model, q, drive=drive)) if np.isfinite(q).all() else np.empty((0, 0))
    if residual.ndim == 1:
        r = int(np.argmax(residual))
        name, size = model.row_names[r], residual[r]
    raise ComputationError(f"the constraints cannot be satisfied from this configuration; the residual of {name or 'one'} stays "
                           f"at {size:.3g} "
                           "(start from a nearer configuration, or check with liedyn assemble whether the lengths allow it)")
