"""Prescribed motions that begin or jump in the middle of a run."""
from __future__ import annotations

import numpy as np

from liedyn.codegen.steps.signals import instructions
from liedyn.errors import Place, ScenarioError
from liedyn.simulation.events.moments import Moment, impelled
from liedyn.simulation.prescribed_poses import Followed, following, prescribed_at

_AGREE = 1e-6            # relative, as `Followed.off` says: a prescribed motion that begins where the joint is; people round


def begin_motions(moment: Moment, problem, t: float, impulsive: bool, who: str, place: Place) -> Moment:
    """Prescribed coordinates must be where their motion is at t; their velocity may jump there if that is allowed. who: begins
    them, for messages. Raises ScenarioError."""
    here, there, targets = (moment.q, moment.v), prescribed_at(problem, t, moment.q, moment.v), {}
    for one in following(problem):
        off, jump = one.off(here, there)
        if not off <= _AGREE:
            where, is_at = one.told(there[0][one.q]), one.told(here[0][one.q])
            expected = "a motion that begins where the joint is"
            if one.is_pose:
                raise ScenarioError(f"{who} prescribes the pose {where} of {one.name} from t = {t:.9g} s on, where it is {is_at}",
                                    place=place, expected=expected)
            raise ScenarioError(f"{who} prescribes {one.name} at {where} from t = {t:.9g} s on, where it is at {is_at}",
                                place=place, expected=f"{expected}, or prescribe velocity")
        if not (impulsive or jump <= _AGREE):
            raise ScenarioError(f"{who} prescribes the {'twist' if one.is_pose else 'velocity'} {one.told(there[1][one.v])} of "
                                f"{one.name} from t = {t:.9g} s on, where it is {one.told(here[1][one.v])}", place=place,
                                expected="a motion without a jump, or impulsive: true in the phase")
        targets |= {k: float(there[1][k]) for k in range(one.v.start, one.v.stop)}
    if all(moment.v[k] == x for k, x in targets.items()):
        return moment
    rows, values = np.eye(len(moment.v))[list(targets)], np.array(list(targets.values()))
    return impelled(moment, problem, rows, values, set(targets))[0]


def jump_notes(parts) -> list[str]:
    """A note on the first jump of each prescribed motion within the parts of a run (`parts.Part`). Only expressions can jump."""
    notes: dict[str, str] = {}
    for part in parts:
        problem, times = part.problem, part.record.t
        moving = [one for one in following(problem) if one.name not in notes and _is_expression(problem, one)]
        breaks, before = problem.schedule.breaks, problem.schedule.before
        within = (breaks > times[0]) & (breaks <= times[-1]) if moving and len(times) else np.zeros(len(breaks), dtype=bool)
        q, v = problem.q, problem.v
        for t, earlier in zip(breaks[within], before[within], strict=True):
            here, there = prescribed_at(problem, earlier, q, v), prescribed_at(problem, t, q, v)
            for one in moving:
                if one.name not in notes and max(one.off(here, there)) > _AGREE:
                    notes[one.name] = _jump_note(problem, one, t, here, there)
    return list(notes.values())


def _is_expression(problem, one: Followed) -> bool:
    poses = problem.schedule.poses
    used = poses.signal[poses.signal >= 0] if one.is_pose else problem.schedule.signal[one.v]
    return any(len(instructions(problem.signals, int(k))) for k in used)


def _jump_note(problem, one: Followed, t: float, here, there) -> str:
    unit = problem.model.v_units[one.v.start]
    moved = one.off(here, there)[0] > _AGREE
    if one.is_pose:
        what, size = "pose" if moved else "twist", ""
    elif moved:
        what, size = "position", f" by {(there[0][one.q] - here[0][one.q])[0]:.6g} {unit}"
    else:
        what, size = "velocity", f" by {(there[1][one.v] - here[1][one.v])[0]:.6g} {unit}/s"
    return (f"the prescribed {what} of {one.name} jumps{size} at t = {t:.6g} s, where no impulse acts: motion, forces and "
            "energies are not reliable from there on (use waypoints or a smooth expression)")
