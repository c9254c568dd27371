"""The state at the moment of an event, and how impulses change it (`jumps`)."""
from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from liedyn.dynamics.kinematics import energy
from liedyn.dynamics.loops.constraints import constraint_jacobian
from liedyn.dynamics.loops.rank import without_rounding
from liedyn.kernels.simulation.signals import TORQUE
from liedyn.simulation.events.jumps import jump


@dataclass(frozen=True, eq=False)
class Moment:
    """The state while an event acts: model, q, v; impulse (nv,), work and lost energy so far; passive: whether springs act."""

    model: object
    q: np.ndarray
    v: np.ndarray
    impulse: np.ndarray
    work: float = 0.0
    lost: float = 0.0
    passive: bool = True

    @property
    def energies(self) -> tuple[float, float]:
        kinetic, potential = energy(self.model.open_tree(), self.q, self.v, passive=self.passive)
        return float(kinetic), float(potential)

    def with_work_since(self, before: Moment) -> Moment:
        """With the work that has changed the energy."""
        return replace(self, work=self.work + sum(self.energies) - sum(before.energies))


def kept(moment: Moment, problem, moved=(), closing=()) -> tuple[np.ndarray, np.ndarray]:
    """Rows of the velocity that stay, and their values: what `problem` prescribes but for the coordinates `moved`, and
    constraints but for those rows that are `closing`."""
    prescribed = [k for k in np.flatnonzero(problem.schedule.level != TORQUE) if k not in moved]
    rows = np.eye(len(moment.v))[prescribed]
    if moment.model.nc:
        A = without_rounding(moment.model, constraint_jacobian(moment.model, moment.q))
        rows = np.vstack([rows, np.delete(A, closing, axis=0)])
    return rows, rows @ moment.v


def impelled(moment: Moment, problem, rows, b, moved=(), closing=()) -> tuple[Moment, float]:
    """After impulses by which rows of the velocity become b, and what is `kept` stays. And the work of those along the rows."""
    others, values = kept(moment, problem, moved, closing)
    found = jump(moment.model, moment.q, moment.v, np.vstack([rows, others]), np.concatenate([b, values]))
    after = replace(moment, v=found.v, impulse=moment.impulse + found.impulse, work=moment.work + float(found.work.sum()))
    return after, float(found.work[:len(rows)].sum())


def collided(moment: Moment, problem, rows, b, moved=(), closing=()) -> Moment:
    """The same where what the impulses along the rows take is lost."""
    after, work = impelled(moment, problem, rows, b, moved, closing)
    return replace(after, lost=after.lost - work)
