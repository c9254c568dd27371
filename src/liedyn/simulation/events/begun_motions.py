"""Prescribed motions that begin in the middle of a run."""
from __future__ import annotations

import numpy as np

from liedyn.errors import Place, ScenarioError
from liedyn.simulation.events.moments import Moment, impelled
from liedyn.simulation.prescribed_poses import following, prescribed_at

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
