"""The key `motors` of a scenario: what a motor is, the keys of one, and its way from YAML and back."""
from __future__ import annotations

from dataclasses import dataclass

from liedyn.io.keys import Key, Keys, List, Number, Vector, default_of
from liedyn.io.scenarios.signal_keys import by_name
from liedyn.io.yaml_text import Node

_LARGEST = 1e9           # gears and what they multiply: squares of these are far from overflow


@dataclass(frozen=True, slots=True)
class Motor:
    """A motor behind a gear.

    gear      turns of the motor for one of the joint [rad/rad | rad/m]
    curve     points (speed, torque) of the motor [rad/s, N m] with increasing speeds; none: no limit
    inertia   of the rotor [kg m^2]
    """

    gear: float = 1.0
    curve: tuple[tuple[float, float], ...] = ()
    inertia: float = 0.0


def _curve(node: Node) -> tuple[tuple[float, float], ...]:
    points = tuple(row.vector(2) for row in node.items(least=1, of="points [speed, torque]"))
    for before, after, row in zip((None, *points), points, node.value, strict=False):
        if before is not None and after[0] <= before[0]:
            raise row.value[0].problem("speeds must increase", found=f"{after[0]:g}", expected=f"a speed above {before[0]:g}")
        if not 0.0 <= after[1] <= _LARGEST:
            raise row.value[1].problem("the torque of a motor's curve is out of range", found=f"{after[1]:g}",
                                       expected="its size, from 0 to 1e9 N m: the curve holds for both directions")
    if not any(torque for _, torque in points):
        raise node.problem("the motor has no torque at any speed", expected="a torque above 0")
    return points


MOTOR = Keys("motor", (
    Key("gear", Number(above=0, most=_LARGEST), "turns of the motor for one of the joint [rad/rad or rad/m]",
        default_of(Motor, "gear"), example=100, live=True),
    Key("curve", List(Vector(2), 1, how=_curve), "the largest torque at a speed, both of the motor, points `[speed, torque]` "
        "[rad/s, N m] joined by lines; see [motors](#motors)", "no limit", example=[[0, 1.2], [300, 1.2], [420, 0]], live=True),
    Key("inertia", Number(least=0, most=_LARGEST), "of the rotor [kg m²]: the joint has the armature gear² inertia",
        default_of(Motor, "inertia"), example=1e-5)), how=lambda node: Motor(**MOTOR.values(node)))
MOTORS = by_name(MOTOR, "joint*")


def plain_motor(motor: Motor) -> dict:
    """In the layout of the file."""
    return {"gear": motor.gear, "curve": motor.curve or None, "inertia": motor.inertia or None}
