"""Keys that change nothing in a run are reported."""
import pytest

from liedyn.simulation.preparation import prepare

BLOCK = """
links: {b: {mass: 2}}
joints: {x: {type: prismatic, parent: world, child: b, axis: [1, 0, 0], limits: {%s}}}
"""
FORCE = {"link": "b", "wrench": [0, 0, 0, 1, 0, 0]}
CASES = {
    "force": ("", {"external_forces": [FORCE, FORCE | {"from": 2, "until": 3}]},
              "external force 2 on link b begins at t = 2 s, after the end of the run"),
    "force in time": ("", {"external_forces": [FORCE | {"from": 0.5, "until": 3}]}, None),
    "saturate": ("", {"saturate": True}, "saturate has no effect: the robot file has no effort limits for these joints"),
    "saturate with limits": ("effort: 3", {"saturate": True}, None),
    "saturate by number": ("", {"saturate": {"x": 3}}, None),
    "stop": ("", {"limits": "stop"}, "limits has no effect: the robot file has no position limits for these joints"),
    "stop with limits": ("lower: -1, upper: 1", {"limits": "stop"}, None),
}


@pytest.mark.parametrize("case", CASES)
def test_what_has_no_effect_has_a_note(scenario, case):
    limits, keys, note = CASES[case]
    warnings = prepare(scenario(BLOCK % limits, **keys), ()).warnings
    assert [one.message for one in warnings] == ([note] if note else [])


@pytest.mark.parametrize("keys, note", [
    ({"saturate": {"thrust.fan": 3}}, "saturate has no effect on thrusts: `actuators` and `control` drive none of them"),
    ({"saturate": {"thrust.fan": 3}, "actuators": {"fan": 1}}, None), ({"saturate": True}, None)])
def test_limits_of_thrusts_that_nothing_drives(scenario, keys, note):
    robot = BLOCK % "effort: 3" + "actuators: {fan: {link: b, limits: [0, 6]}}"
    assert [one.message for one in prepare(scenario(robot, **keys), ()).warnings] == ([note] if note else [])
