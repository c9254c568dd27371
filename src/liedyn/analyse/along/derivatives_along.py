"""Derivatives of inverse, forward and hybrid dynamics along the rows of a trajectory file, as columns."""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from liedyn.analyse.along.derivative_columns import column_names, jacobian, question, rows_of
from liedyn.analyse.along.derive import POINTS
from liedyn.analyse.along.derived_error import error_notes
from liedyn.analyse.along.recorded_checks import recorded_limit_notes
from liedyn.analyse.along.recorded_motion import Along, header_along, motion_for
from liedyn.analyse.along.verify_derivatives import verify_rows
from liedyn.errors import UsageError
from liedyn.model.model import Model

_ROWS = 256                      # of the trajectory at a time: Jacobians of many rows and joints are large
_JUDGED = 256                    # rows by which errors are estimated


def derivatives_along(model: Model, trajectory, *, of: str = "inverse", prescribed: Sequence[str] = (), by: Sequence[str] = (),
                      joints: Sequence[str] = (), verify: bool = False, progress=None) -> Along:
    """Derivatives at each row of a trajectory, one column each: `dtau.elbow/dq.shoulder`, `da.elbow/dmass.hand`.

    Parameters
    ----------
    of : "inverse", "forward" or "hybrid"
        What is differentiated: tau of q, v, a; a of q, v, tau; or tau of the prescribed joints and a of the others.
    prescribed : patterns of joint names, for "hybrid"
    by : patterns of what to differentiate by: q.*, v.*, a.*, tau.* (of coordinates; those that go in) and `parameter_names`
        Default: by q, v and all that goes in.
    joints : patterns of the joints whose force or acceleration is differentiated; default: all
    verify : bool
        Compare a few rows with extrapolated differences.
    progress : optional
        With `stage(text)`, a context, and `update(fraction)`.

    Returns
    -------
    Along
        Its notes tell what was derived, how many columns there are and how large the differences of `verify` are.

    Raises
    ------
    TrajectoryError, ComputationError
    UsageError
        For a robot with constraints, a pattern that matches nothing, or more than 20,000 columns.
    CheckFailed
        With `verify`, where a difference is larger than 1e-6 and than what the differences may be off themselves.
    """
    if model.nc:
        raise UsageError(f"the robot {model.name} has constraints (loops, couplings): derivatives along a trajectory are for "
                         "robots "
                         "without them; use liedyn linearize, or constrained_inverse_derivatives in Python")
    asked = question(model, of, prescribed, by, joints)
    motion = motion_for(model, trajectory, of, asked.prescribed)
    parts = [jacobian(model, asked, rows_of(motion, slice(k, k + _ROWS))) for k in range(0, len(motion.q), _ROWS)]
    table = np.concatenate([part.reshape(len(part), -1) for part in parts])
    names, units = column_names(model, asked)
    some = _sample(len(motion.q))
    doubts = error_notes(motion, table[some], lambda other: jacobian(model, asked, rows_of(other, some)).reshape(len(some), -1),
                         names, units, "liedyn inverse --smooth auto (whose result has v and a)" if of == "inverse" else None)
    notes = [*motion.notes, *doubts, *([f"{len(names)} columns; --by and --joint choose among them"] if len(names) > 400 else [])]
    tau = np.zeros_like(motion.v) if motion.tau is None else motion.tau
    notes[len(motion.notes):0] = recorded_limit_notes(model, trajectory.t, motion.q, motion.v, tau)
    if verify:
        from liedyn.simulation.run import Silent
        notes.append(verify_rows(model, asked, motion, progress or Silent()))
    columns = list(zip(names, units, table.T, strict=True))
    return Along(header_along(model, trajectory, motion.passive), trajectory.t, columns, tuple(notes))


def _sample(count: int) -> np.ndarray:
    """Rows of `count` by which errors are estimated: those at the ends, and some between."""
    if count <= _JUDGED:
        return np.arange(count)
    return np.unique(np.r_[:POINTS, np.linspace(POINTS, count - POINTS, _JUDGED - 2 * POINTS).astype(int), count - POINTS:count])
