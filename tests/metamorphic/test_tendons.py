"""Thrusts of tendons move a robot alike: turned, moved, in other units, renamed, reordered, and with fixed joints between."""
from dataclasses import replace

import numpy as np
import pytest

import liedyn as ld
from liedyn.simulation.control.thrusts import thrust_columns, thrust_entries
from metamorphic.mechanisms import SEED
from metamorphic.transformations import TRANSFORMATIONS
from zoo import random_robot

KINDS = ("revolute", "prismatic", "helical", "continuous", "ball")


def accelerations(model, q, v, thrusts):
    """Return the accelerations by the wrenches on links, and by the forces on joints."""
    f_ext = np.zeros((len(model.link_names), 6))
    for j, link, wrench in thrust_entries(model, range(len(thrusts))):
        f_ext[link] += thrusts[j] * wrench
    zero = np.zeros(model.nv)
    return (ld.forward_dynamics(model, q, v, zero, f_ext=f_ext),
            ld.forward_dynamics(model, q, v, thrust_columns(model, q) @ thrusts))


@pytest.mark.parametrize("relation", TRANSFORMATIONS)
@pytest.mark.parametrize("base", ["fixed", "floating"])
def test_tendons_act_alike(base, relation):
    by, robot = TRANSFORMATIONS[relation], random_robot(SEED + 9, 7, types=KINDS, base=base)
    single = [joint for joint in robot.joints if len(joint.labels) == 1]
    arms = [{joint.name: factor for joint, factor in zip(joints, (0.4, -0.7, 1.1), strict=False)}
            for joints in (single[:3], single[-2:])]
    turning = {joint.name for joint in single if joint.units[0] == "rad"}

    def model_with(other, name, length):
        return ld.build(replace(other, actuators=tuple(
            ld.Actuator(f"t{k}", joints={name(joint): c * (length if joint in turning else 1.0) for joint, c in each.items()})
            for k, each in enumerate(arms))))
    old, new = model_with(robot, str, 1.0), model_with(by.change(robot), by.name, by.length)
    rng, maps, thrusts = np.random.default_rng(SEED), by.maps(old, new), np.array([3.0, -2.0])
    q, v = ld.random_configuration(old, rng), rng.standard_normal(old.nv)
    by_wrenches, by_forces = accelerations(old, q, v, thrusts)
    scale = np.abs(maps.result(np.ones(old.nv), "v", (0, 0, -2)))
    there = accelerations(new, maps.configuration(q), maps.result(v, "v", (0, 0, -1)),
                          thrusts * by.mass * by.length / by.time**2)
    expected = maps.result(by_forces, "v", (0, 0, -2)) / scale
    for a in (maps.result(by_wrenches, "v", (0, 0, -2)), *there):
        assert np.abs(a / scale - expected).max() < 1e-9 * np.abs(expected).max(), f"repeat with LIEDYN_SEED={SEED}"
