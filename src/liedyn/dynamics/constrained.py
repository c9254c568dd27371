"""Forward and hybrid dynamics of constrained systems, and the constraint forces as wrenches and joint forces."""
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from liedyn.dynamics.calls import NONE, NONE_BATCH, as_array, as_mask, batched, run, where_read, wrenches
from liedyn.dynamics.constraints import DRIVE, constraint_jacobian, drive_array, refuse_constrained, require_constraints
from liedyn.errors import ComputationError
from liedyn.jit import prepare
from liedyn.kernels.constrained import constrained_batch, constrained_batch_memory, constrained_one

# What is asked may contradict the constraints by rounding: of the largest acceleration, and of one unit.
_CONTRADICTS = 1e-7


class ConstrainedMotion(NamedTuple):
    """What constrained dynamics gives.

    a, tau        (..., nv) accelerations and joint forces, complete
    multipliers   (..., m) lambda: the tree obeys M a + b = tau + A^T lambda [N m | N]; of least norm where rows depend on others
    independent   (..., m) bool: False for a row that follows from those before it
    """

    a: np.ndarray
    tau: np.ndarray
    multipliers: np.ndarray
    independent: np.ndarray


def constrained_forward_dynamics(model, q, v, tau, *, f_ext=None, passive=True, drive=None, baumgarte=0.0):
    """Accelerations of a constrained system under joint forces.

    Solves ``M a + b = tau + A^T lambda``, ``A a + gamma = 0`` by articulated sweeps: O(n m + m^3).

    Parameters
    ----------
    model : Model
        With constraints.
    q : (..., nq) array
        Configuration [rad | m]; should be closed (`assemble`, `project_configuration`).
    v, tau : (..., nv) arrays
        Joint velocity, which should obey the constraints (`project_velocity`), and joint force.
    f_ext, passive
        As in `forward_dynamics`.
    drive : {closure name: (T, V, dV)}, optional
        Motion of driven closures, see `constraint_residual`.
    baumgarte : float
        Frequency f [rad/s] of stabilization: ``A a + gamma + 2 f A v + f^2 residual = 0``.

    Returns
    -------
    ConstrainedMotion

    Raises
    ------
    ModelError, ShapeError, ConfigurationError, ComputationError

    Notes
    -----
    Kim 2012 v2.01, §3. Accelerations are unique also where rows depend on each other; multipliers are then those of least norm.
    """
    none = model._cache.get("none")
    if none is None:
        none = model._cache.setdefault("none", np.zeros(model.nv, dtype=bool))
    if f_ext is None and drive is None:
        try:                                  # arrays as they should be: the entry checks shapes and values itself
            if q.ndim == 1:
                a, out, force = np.empty(model.nv), np.empty((3, model.nc)), tau.copy()
                if not constrained_one(model.machine, model.loop_machine, none, q, v, a, force, NONE, NONE, baumgarte, passive,
                                       out):
                    return ConstrainedMotion(a, force, out[0], out[1] != 0.0)
        except (TypeError, AttributeError):   # other types, lists, or not compiled yet
            pass
    return _constrained(model, q, v, None, tau, none, f_ext, passive, drive, baumgarte)


def constrained_hybrid_dynamics(model, q, v, a, tau, prescribed, *, f_ext=None, passive=True, drive=None, baumgarte=0.0):
    """Complete accelerations and joint forces of a constrained system, when each coordinate has one of the two given.

    ``a`` is read where prescribed and ``tau`` where not; the rest is ignored. Other parameters and results as in
    `constrained_forward_dynamics`. Where the prescribed motion leaves multipliers open they are those of least norm.

    Raises
    ------
    ComputationError
        Also where the prescribed accelerations contradict the constraints: names both.

    Notes
    -----
    Kim 2012 v2.01, §3; NOTES "Constrained systems": A_v M_vv^-1 A_v^T takes the place of A M^-1 A^T.
    """
    prescribed = as_mask(prescribed, model.nv)
    return _constrained(model, q, v, as_array(a, "a", (model.nv,)), tau, prescribed, f_ext, passive, drive, baumgarte)


def constraint_forces(model, q, multipliers, *, drive=None):
    """Joint forces A^T lambda (..., nv) of the multipliers [N m | N]."""
    A = constraint_jacobian(model, q, drive=drive)
    return np.einsum("...rk,...r->...k", A, as_array(multipliers, "multipliers", (model.nc,)))


def _constrained(model, q, v, a, tau, prescribed, f_ext, passive, drive, frequency):
    require_constraints(model)
    frequency = float(frequency)
    named = [("q", as_array(q, "q", (model.nq,)), 1), ("v", as_array(v, "v", (model.nv,)), 1),
             ("tau", as_array(tau, "tau", (model.nv,)), 1)]
    if a is not None:
        named.append(("a", a, 1))
    F, D = wrenches(model, f_ext), drive_array(model, drive)
    if F is not None:
        named.append(("f_ext", F, 2))
    if D.size:
        named.append(("drive", D, 1))
    one = all(array.ndim == own for _, array, own in named)
    lead, rows = batched(*named)
    given = dict(zip([name for name, _, _ in named], rows, strict=True))
    a = given["a"].copy() if "a" in given else np.zeros((len(rows[0]), model.nv))
    tau, m = given["tau"].copy(), model.nc
    out = np.empty((len(a), 3 * m))
    code = (_one if one else _batch)(model, given, a, tau, prescribed, frequency, bool(passive), out)
    refuse_constrained(model, code, q=given["q"], v=given["v"], a=where_read(given.get("a", a), prescribed),
                       tau=where_read(given["tau"], ~prescribed))
    keep = out[:, m:2 * m] != 0.0
    if prescribed.any():
        _refuse_contradiction(model, given["q"], prescribed, a, keep, out[:, 2 * m:])
    shape = (*lead, model.nv)
    return ConstrainedMotion(a.reshape(shape), tau.reshape(shape), out[:, :m].reshape(*lead, m), keep.reshape(*lead, m))


def _one(model, given, a, tau, prescribed, frequency, passive, out):
    prepare(constrained_one)
    F = np.ascontiguousarray(given["f_ext"]).ravel() if "f_ext" in given else NONE
    D = given["drive"][0] if "drive" in given else NONE
    return constrained_one(model.machine, model.loop_machine, prescribed, given["q"][0], given["v"][0], a[0], tau[0], F, D,
                           frequency, passive, out.reshape(3, model.nc))


def _batch(model, given, a, tau, prescribed, frequency, passive, out):
    D = given.get("drive", np.empty((len(a), 0)))
    n, nq, nv, nl = model.sizes
    size = constrained_batch_memory(n, nq, nv, nl, len(model.constraints), model.nc, D.shape[1] // DRIVE)
    return run(constrained_batch, model, size, (model.loop_index, model.loop_constants, prescribed),
               (given["q"], given["v"], a, tau, given.get("f_ext", NONE_BATCH), D, frequency, passive, out), len(a))


def _refuse_contradiction(model, q, prescribed, a, keep, gap):
    """Where a dependent row asks for more than rounding, its constraint and the prescribed coordinates contradict each other."""
    scale = _CONTRADICTS * (1.0 + np.abs(a).max(axis=1, initial=0.0))
    bad = (np.abs(gap) > scale[:, None]) & ~keep
    if not bad.any():
        return
    k, r = np.argwhere(bad)[0]
    constraint = next(one for one in model.constraints if one.rows.start <= r < one.rows.stop)
    A = constraint_jacobian(model, q[k])
    moved = np.abs(A[constraint.rows]).max(axis=0) > 1e-9
    among = prescribed & moved if (prescribed & moved).any() else prescribed
    names = [model.v_names[i] for i in np.flatnonzero(among)]
    unit = "rad/s^2" if constraint.units[r - constraint.rows.start] == "rad" else "m/s^2"
    where = f" in state {k}" if len(q) > 1 else ""
    raise ComputationError(f"the prescribed accelerations contradict the constraint {constraint.name!r}{where}: its row "
                           f"{model.row_names[r]} is off by {abs(gap[k, r]):.3g} {unit}; prescribed are {', '.join(names)} "
                           "(prescribe fewer joints, or accelerations that agree)")
