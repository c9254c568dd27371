"""Prescribed motions that begin in the middle of a run."""
from __future__ import annotations

import numpy as np

from liedyn.codegen.signals import read_signal
from liedyn.errors import Place, ScenarioError
from liedyn.kernels.simulation.signals import POSITION, VELOCITY
from liedyn.simulation.events.moments import Moment, impelled
from liedyn.simulation.prescribed_poses import held_by, pose_gap, prescribed_at, velocity_gap

_AGREE = 1e-6            # relative: a prescribed motion that begins where the joint is; people round
_JUMPS = "a motion without a jump, or impulsive: true in the phase"


def begin_motions(moment: Moment, problem, t: float, impulsive: bool, who: str, place: Place) -> Moment:
    """Prescribed coordinates must be where their motion is at t; their velocity may jump there if that is allowed. who: begins
    them, for messages. Raises ScenarioError."""
    schedule, signals, names = problem.schedule, problem.signals, problem.model.v_names
    targets = _pose_targets(moment, problem, t, impulsive, who, place)
    for k in np.flatnonzero(np.isin(schedule.level, (POSITION, VELOCITY))):
        if k in targets:
            continue
        x, dx, _ = read_signal(signals, schedule.signal[k], t, moment.q, moment.v)
        if schedule.level[k] == POSITION:
            is_at = moment.q[schedule.q_of_v[k]]
            if not abs(x - is_at) <= _AGREE * max(1.0, abs(x)):
                raise ScenarioError(f"{who} prescribes {names[k]} at {x:.9g} from t = {t:.9g} s on, where it is at {is_at:.9g}",
                                    place=place, expected="a motion that begins where the joint is, or prescribe velocity")
        wanted = dx if schedule.level[k] == POSITION else x
        if not (impulsive or abs(wanted - moment.v[k]) <= _AGREE * max(1.0, abs(wanted))):
            raise ScenarioError(f"{who} prescribes the velocity {wanted:.9g} of {names[k]} from t = {t:.9g} s on, where it is "
                                f"{moment.v[k]:.9g}", place=place, expected=_JUMPS)
        targets[int(k)] = wanted
    if all(moment.v[k] == x for k, x in targets.items()):
        return moment
    rows, values = np.eye(len(moment.v))[list(targets)], np.array(list(targets.values()))
    return impelled(moment, problem, rows, values, set(targets))[0]


def _pose_targets(moment: Moment, problem, t: float, impulsive: bool, who: str, place: Place) -> dict[int, float]:
    """The same check for ball and free joints whose pose is prescribed. Returns their velocities, by coordinate."""
    targets, (q, v) = {}, prescribed_at(problem, t, moment.q, moment.v)
    for name, (of_q, of_v) in held_by(problem).items():
        for what, here, there, gap, expected in (
                ("pose", moment.q[of_q], q[of_q], pose_gap, "a motion that begins where the joint is"),
                ("twist", moment.v[of_v], v[of_v], velocity_gap, _JUMPS)):
            if not gap(here, there) <= _AGREE and not (impulsive and what == "twist"):
                is_at, begins = (", ".join(f"{x:.9g}" for x in one) for one in (here, there))
                raise ScenarioError(f"{who} prescribes the {what} [{begins}] of {name} from t = {t:.9g} s on, where it is "
                                    f"[{is_at}]", place=place, expected=expected)
        targets |= {k: float(v[k]) for k in range(of_v.start, of_v.stop)}
    return targets
