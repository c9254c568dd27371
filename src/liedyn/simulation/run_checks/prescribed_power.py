"""The power that prescribed motions take."""
from __future__ import annotations

import numpy as np

from liedyn.io.scenarios.scenario import Prescribe, Scenario
from liedyn.simulation.names import phase_rules


def prescribed_power(scenario: Scenario, model, v: np.ndarray, tau: np.ndarray) -> dict[str, np.ndarray]:
    """(N,) tau . v [W] of each joint that is prescribed, in a phase at least: what its motor supplies. v, tau: (N, nv)."""
    phases = [phase.name for phase in scenario.phases] or [None]
    rules = [phase_rules(scenario, model, phase) for phase in phases]
    return {joint.name: np.sum(tau[:, joint.v] * v[:, joint.v], axis=1) for joint in model.joints
            if any(joint.name in one and isinstance(one[joint.name].value, Prescribe) for one in rules)}
