"""What follows from the rows of a run: energies, reactions, tracking, contacts, and the self-check. Computed some rows after the
other, so that the memory does not grow with the run."""
from __future__ import annotations

from dataclasses import replace

import numpy as np

from liedyn.dynamics.inverse import inverse_dynamics
from liedyn.dynamics.kinematics import energy
from liedyn.dynamics.scales import scales_of
from liedyn.kernels.simulation.signals import TORQUE
from liedyn.simulation.contact import ContactMotion, contact_motion
from liedyn.simulation.control_laws.laws import followed
from liedyn.simulation.control_laws.tracking import Tracking
from liedyn.simulation.events.parts import Part
from liedyn.simulation.joint_limits.limits import KINDS, Excess, limits_exceeded, merged
from liedyn.simulation.joint_limits.stops import stop_forces
from liedyn.simulation.records.rows import Rows, blocks
from liedyn.simulation.run_checks.balance import EnergyBalance, work_of_weight
from liedyn.simulation.run_checks.constraint_check import ConstraintCheck, joint_forces, reactions
from liedyn.simulation.run_checks.creep import Creep


class SelfCheck:
    """Of a run of `model`, whose first problem is `problem`. rows: its rows, `parts` those that count.

    kinetic, potential, reactions, tracking, contacts, stops, limits   as in `Result`
    exceeded   the limits that joints exceed: while forces move them, and while they are prescribed or locked
    """

    def __init__(self, scenario, model, problem, rows: Rows, parts: list[Part], contact_names: tuple[str, ...]):
        self.model, self.problem, self.contact_names, self.passive = model, problem, contact_names, scenario.passive
        self.rows, self.n = rows, sum(len(part.record.t) for part in parts)
        self.kinetic, self.potential = rows.room("kinetic", self.n), rows.room("potential", self.n)
        self.reactions: np.ndarray | None = None
        self.tracking: Tracking | None = None
        self.contacts: ContactMotion | None = None
        self.stops = None if scenario.limits is None else rows.room("stops", self.n, model.nv)
        self.exceeded: tuple[tuple[Excess, ...], tuple[Excess, ...]] = ((), ())
        self._rooms: dict[type, dict[str, np.ndarray]] = {}                # arrays of tracking and contacts, to be written to
        self.creep = Creep.of_model(model, scenario.passive)
        self._balance = EnergyBalance(model)
        self._constraints = ConstraintCheck() if any(part.problem.ties is not None for part in parts) else None
        self._force, self._off, self._norm, self._tracking = 0.0, 0.0, 0.0, 0.0
        for place, block in blocks(parts):
            self._add(place, block)

    def _add(self, place: slice, block: Part) -> None:
        record, model = block.record, self.model
        self.kinetic[place], self.potential[place] = energies = energy(block.model, record.q, record.v, passive=self.passive)
        self._balance.add(record, *energies)
        self.creep.add(record.t, record.q, block.problem)
        self.creep.follow(record.t, record.v)
        again = _inverse(block, self.passive)
        if self._constraints is not None:
            forces, wrenches = joint_forces(model, record), reactions(model, record)
            again -= forces
            self._constraints.add(forces, record)
            if block.problem.ties is not None:
                self._constraints.judge(model, record, np.isin(model.row_names, block.model.row_names))
            if self.reactions is None:
                self.reactions = self.rows.room("reactions", self.n, *wrenches.shape[1:])
            self.reactions[place] = wrenches
        reach = scales_of(model).of_all(model.v_units)
        force = max(_worst(again * reach), _worst(energies[0]) + work_of_weight(model))
        self._force, self._off, self._norm = np.maximum(                   # NaN stays
            (self._force, self._off, self._norm), (force, _worst((again - record.tau) * reach), _norm_error(model, record.q)))
        driven = record.tau
        if self.stops is not None:
            self.stops[place] = stop_forces(block.problem, record)
            driven = record.tau - self.stops[place]
        free = {model.v_names[k] for k in np.flatnonzero(block.problem.schedule.level == TORQUE)}
        found, (moved, fixed) = limits_exceeded(model, record.t, record.q, record.v, driven), self.exceeded
        self.exceeded = (merged(moved, (one for one in found if one.coordinate in free)),
                         merged(fixed, (one for one in found if one.coordinate not in free)))
        self._follow(place, record)
        self._touch(place, record)

    @property
    def limits(self) -> tuple[Excess, ...]:
        order = {name: k for k, name in enumerate(self.model.v_names)}
        return tuple(sorted(merged(*self.exceeded), key=lambda one: (KINDS.index(one.kind), order[one.coordinate])))

    def _follow(self, place: slice, record) -> None:
        problem, final = self.problem, place.stop == self.n
        found = followed(problem, record.t, record.q, final)
        if found is None:
            return
        self.tracking = self._kept(self.tracking, place, found, ("link", "reference"))
        self._tracking = np.maximum(self._tracking, _worst(found.error))

    def _touch(self, place: slice, record) -> None:
        found = contact_motion(self.problem, self.contact_names, record.q, record.v)
        if found is not None:
            self.contacts = self._kept(self.contacts, place, found, ("force", "depth", "slip", "centre"))

    def _kept(self, kept, place: slice, found, names: tuple[str, ...]):
        """What is found of some rows, written to its place in the arrays of all rows."""
        rooms = self._rooms.setdefault(type(found), {})
        if kept is None:
            rooms |= {name: self.rows.room(name, self.n, *getattr(found, name).shape[1:]) for name in names}
            kept = replace(found, **rooms)                         # read-only views
        for name, room in rooms.items():
            room[place] = getattr(found, name)
        return kept

    def values(self, statistics) -> tuple[dict[str, float], list[str]]:
        """Of `Result.check`, and notes about the constraints. statistics: what the run took.

        The residual of inverse dynamics is relative to the largest joint force, or to the work of the weight and the kinetic
        energy, along 1 rad or a characteristic length: forces of links that cancel in the joints round, too."""
        of_constraints, notes = ({}, []) if self._constraints is None else self._constraints.value(self.model, statistics)
        balance, relative = self._balance.value(statistics.steps)
        followed_by = {} if self.tracking is None else {"tracking_error": float(self._tracking)}
        return {"energy_balance": balance, "energy_balance_relative": relative,
                "inverse_dynamics_residual": float(self._off / max(self._force, 1e-300)),
                "quaternion_norm": float(self._norm), **of_constraints, **followed_by}, notes


def _inverse(part: Part, passive: bool):
    """Joint forces of a stretch again, by inverse dynamics of its motion."""
    record, links, f_ext = part.record, part.problem.forced_links, None
    if len(links):
        f_ext = np.zeros((len(record.t), len(part.model.link_names), 6))
        f_ext[:, links] = record.wrench.reshape(len(record.t), len(links), 6)
    return inverse_dynamics(part.model.open_tree(), record.q, record.v, record.a, f_ext=f_ext, passive=passive)


def _worst(x: np.ndarray) -> float:
    return float(np.abs(x).max(initial=0.0))


def _norm_error(model, q) -> float:
    """Largest difference of a quaternion's norm from 1."""
    worst = 0.0
    for joint in model.joints:
        if joint.type in ("ball", "free"):
            norms = np.linalg.norm(q[:, joint.q.stop - 4:joint.q.stop], axis=1)
            worst = np.maximum(worst, np.abs(norms - 1).max())
    return worst
