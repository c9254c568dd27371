"""What a run says of its constraints: residuals, the work of closures, singular configurations."""
from __future__ import annotations

import numpy as np

from liedyn.dynamics.loops.constraint_wrenches import closure_wrenches
from liedyn.dynamics.loops.constraints import constraint_jacobian, constraint_residual
from liedyn.dynamics.loops.rank import row_scale
from liedyn.simulation.driven_loops import drives_of

_GOOD = 1e-9                # rad or lengths of the loop: residuals above it are said


def joint_forces(model, record) -> np.ndarray:
    """(N, nv) joint forces A^T lambda of the constraints [N m | N]."""
    A = constraint_jacobian(model, record.q, drive=drives_of(model, record.drive))
    return np.einsum("trk,tr->tk", A, record.multipliers)


def reactions(model, record) -> np.ndarray:
    """(N, loops, 6) wrenches on links b, world axes, about the origins of frames b [N m | N]."""
    return closure_wrenches(model, record.q, record.multipliers, drive=drives_of(model, record.drive))


class ConstraintCheck:
    """Of a run, some rows after the other."""

    def __init__(self):
        self._work, self._last, self._worst = 0.0, None, np.zeros(2)
        self._off, self._said = 0.0, ""

    def add(self, forces, record) -> None:
        """Rows of a record; forces (N, nv) as `joint_forces` gives them."""
        power, t = np.einsum("tk,tk->t", forces, record.v), record.t
        if self._last is not None:
            t, power = (np.append(before, x) for before, x in zip(self._last, (t, power), strict=True))
        self._work += float(0.5 * (power[1:] + power[:-1]) @ np.diff(t))
        self._last = t[-1], power[-1]
        self._worst = np.maximum(self._worst, record.residual.max(axis=0))

    def judge(self, model, record, closed) -> None:
        """The residuals of the equations that are `closed` (nc,), in radians and lengths of their loops."""
        residual = np.abs(constraint_residual(model, record.q, drive=drives_of(model, record.drive))) * closed
        off = residual * row_scale(model)
        k, r = np.unravel_index(np.argmax(off), off.shape)
        if not off[k, r] <= self._off:
            unit = [unit for one in model.constraints for unit in one.units][r]
            self._off = float(off[k, r])
            self._said = f"{residual[k, r]:.1e} {unit} in {model.row_names[r]} at t = {record.t[k]:.6g} s"

    def value(self, model, statistics) -> tuple[dict[str, float], list[str]]:
        """Values of the self-check and notes.

        constraint_residual            the largest at an output [rad | m]
        constraint_velocity_residual   the same of velocities [rad/s | m/s]
        constraint_drift               the largest before a projection
        closure_work                   what the closures supplied [J], by the trapezoidal rule over the outputs: 0 unless driven
        """
        loops, (position, velocity) = statistics.loops, self._worst
        values = {"constraint_residual": float(position), "constraint_velocity_residual": float(velocity)}
        if loops is not None:
            values["constraint_drift"] = max(loops.drift, float(position))
        values["closure_work"] = self._work
        notes = []
        if self._off > _GOOD:
            notes.append(f"constraint residuals reach {self._said} (constraints.stabilization=projection projects them out after "
                         "each step)")
        if loops is not None and loops.singular:
            row = model.row_names[loops.singular_row] if loops.singular_row >= 0 else "a constraint"
            again = f", and {loops.singular - 1} more" if loops.singular > 1 else ""
            notes.append(f"the mechanism passed a singular configuration at t = {loops.singular_time:.6g} s{again}: {row} became "
                         "dependent on other constraints there, where the motion may branch; it was continued straight through")
        return values, notes
