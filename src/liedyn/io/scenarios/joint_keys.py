"""What joints of a scenario do, and poses over time: their keys, from YAML and back."""
from __future__ import annotations

import math
from typing import Any

from liedyn.io.keys import Boolean, Either, Key, Keys, List, Number, Text, Vector, one_of, only
from liedyn.io.scenarios.scenario import Constant, Drive, Motion, Pd, Prescribe, Signal, Torque
from liedyn.io.scenarios.signal_keys import CURVES, SIGNAL, SIGNALS, THREE_SIGNALS, plain_signal, read_signal
from liedyn.io.scenarios.waypoints import Waypoint, Waypoints
from liedyn.io.yaml_text import Node

LARGEST_GAIN = 1e30                              # as a robot's masses and inertias: products of these are far from overflow
_UNIT_NORM = 1e-6                                # a quaternion typed with seven digits is meant to be a unit one


# poses --------------------------------------------------------------------------------------------------------------

def _waypoints(node: Node) -> Waypoints:
    points: list[Waypoint] = []
    for child in node.items(least=2, of="waypoints {t, xyz, rpy}"):
        values, given = WAYPOINT.values(child), child.value
        if points and values["t"] <= points[-1].t:
            raise given["t"].problem("times must increase", found=given["t"].shown(), expected=f"a time after {points[-1].t:g}")
        if "rpy" in values and "quaternion" in values:
            raise given["rpy"].problem("both rpy and quaternion", expected="one of them")
        norm = math.hypot(*values.get("quaternion", (1.0,)))
        if abs(norm - 1.0) > _UNIT_NORM:
            raise given["quaternion"].problem(f"the quaternion has norm {norm:.7g}", found=given["quaternion"].shown(),
                                              expected="a unit quaternion x, y, z, w")
        points.append(Waypoint(**values, place=child.place))
    return Waypoints(tuple(points), node.place)


def _pose(node: Node) -> Motion | Waypoints:
    """Of a ball or free joint."""
    given = node.mapping((*POSE_MOTION, *CURVES))
    for key in given:
        if key not in POSE_MOTION:
            by = ", ".join(one for one in given if one in POSE_MOTION)
            raise given[key].problem(f"{key} does not stand beside {by} of a pose",
                                     hint="it may stand beside a curve in xyz and rpy" if key == "from" else None)
    if "waypoints" not in given:
        return _motion(node, "a pose")
    if len(given) > 1:
        raise node.problem("waypoints stand alone", found=", ".join(given), expected="waypoints, or xyz and rpy")
    return POSE_MOTION.value(given, "waypoints")


def _motion(node: Node, what: str = "a driven loop") -> Motion:
    values = MOTION.values(node)
    if not values:
        raise node.problem(f"{what} needs xyz or rpy", expected="xyz: [signal, signal, signal], rpy: the same")
    return Motion(**values, place=node.place)


WAYPOINT = Keys("waypoint", (
    Key("t", Number(), "time [s]", required=True, missing="the time of the waypoint", example=2, live=True),
    Key("xyz", Vector(3), "position [m], for free joints", "zero", example=[0.1, 0, 0.5], live=True),
    Key("rpy", Vector(3), "orientation R = Rz Ry Rx [rad]", "zero", example=[0, 0, 1.2], live=True),
    Key("quaternion", Vector(4), "instead of `rpy`: `[x, y, z, w]`", example=[0, 0, 0.6, 0.8])))
POSE_MOTION = Keys("pose_motion", (
    Key("xyz", THREE_SIGNALS, "position, three signals [m], for free joints", "zero", example=[0, 0, "0.1*sin(t)"]),
    Key("rpy", THREE_SIGNALS, "orientation R = Rz Ry Rx, three signals [rad]", "zero", example=["0.2*sin(t)", 0, 0]),
    Key("waypoints", List(WAYPOINT, 2, how=_waypoints), "instead of both: poses with their times, joined by a curve of "
        "continuous acceleration",
        example=[{"t": 0, "xyz": [0, 0, 0.5]}, {"t": 2, "xyz": [0.1, 0, 0.5], "rpy": [0, 0, 1.2]}])), how=_pose)
MOTION = Keys("motion", (
    Key("xyz", THREE_SIGNALS, "position, three signals [m]", "zero", example=["0.1*t", 0, 0]),
    Key("rpy", THREE_SIGNALS, "orientation R = Rz Ry Rx, three signals [rad]", "zero", example=[0, 0, "sin(t)"])), how=_motion)


# joints -------------------------------------------------------------------------------------------------------------

def _prescribe(node: Node) -> Prescribe:
    level, signals = LEVELS.only(node, "prescribe")
    return Prescribe(level, signals, node.value[level].place)


def _position(node: Node) -> Signal | tuple[Signal, ...] | Motion | Waypoints:
    if node.kind == "mapping" and (node.value.keys() & set(POSE_MOTION) or not node.value.keys() & set(CURVES)):
        return _pose(node)
    return SIGNALS.read(node)


def _torque(node: Node) -> Torque | Pd:
    if node.kind == "mapping" and node.value.keys() & {"pd", "pid"}:
        kinds = TORQUES.one_of[0]
        key, child = only(node, node.mapping(kinds), kinds, "torque")
        return TORQUES[key].value.read(child)
    signals = SIGNALS.read(node) if node.kind == "list" else read_signal(node, "pd", "pid")
    return Torque(signals, node.place)


def _pd(node: Node, keys: Keys) -> Pd:
    return Pd(**{"kd": 0.0, "feedforward": Constant(0.0, node.place)} | keys.values(node), place=node.place)


_GAIN = Number(least=0, most=LARGEST_GAIN)
_GAINS = Either((_GAIN, List(_GAIN, 1, words="numbers")), "gain")
_KP = Key("kp", _GAINS, "gain of the position", required=True, example=50, live=True)
_OF_PD = (
    Key("kd", _GAINS, "gain of the velocity", 0, example=5, live=True),
    Key("target", SIGNALS, "desired position, a signal", required=True, example=0.3, live=True),
    Key("feedforward", SIGNALS, "force that is added, a signal", 0, example="0.5*sin(t)"),
    Key("gravity", Boolean(), "whether the gravity force of the joint is added", False, example=True))
PD = Keys("pd", (_KP, *_OF_PD), how=lambda node: _pd(node, PD))
PID = Keys("pid", (_KP, Key("ki", _GAINS, "gain of the integral", required=True, example=20, live=True), *_OF_PD),
           how=lambda node: _pd(node, PID))
TORQUES = Keys("torque", (Key("pd", PD, "`kp (target - q) + kd (d target/dt - v) + feedforward`"),
                          Key("pid", PID, "the same and `ki` times the integral of `target - q`"),
                          *CURVES.keys),
               one_of=(("pd", "pid", *CURVES.one_of[0]),))
_TORQUE = Either((Number(), Text(), TORQUES, List(SIGNAL, 1, words="signals")), "torque_signals", _torque)
LEVELS = one_of(
    "prescribe",
    Key("acceleration", SIGNALS, "the velocity and position result from integration", example="0.8*sin(2*t)"),
    Key("velocity", SIGNALS, "the position results from integration", example={"sine": {"amplitude": 0.5, "frequency": 2}}),
    Key("position", Either((POSE_MOTION, SIGNALS), "position", _position), "the joint follows it exactly; nothing is "
        "integrated. Of ball and free joints a pose: `xyz` and `rpy`, or `waypoints`", example={"quintic": [[0, 0], [2, 1]]}),
    how=_prescribe)
DRIVES = one_of(
    "drive",
    Key("torque", _TORQUE, "joint force [N m or N]: a signal, `pd` or `pid`; a list with one for each coordinate",
        example="-0.5*q - 0.1*v"),
    Key("prescribe", LEVELS, "motion of the joint at one of these levels"),
    how=lambda node: DRIVES.only(node, "a joint")[1])


def plain_drive(value: Drive | Motion | Waypoints | Signal | tuple[Signal, ...]) -> Any:
    match value:
        case Motion():
            return {"xyz": plain_signal(value.xyz) or None, "rpy": plain_signal(value.rpy) or None}
        case Waypoints():
            return {"waypoints": [{key: getattr(one, key) for key in WAYPOINT if key == "t" or getattr(one, key)}
                                  for one in value.points]}
        case Prescribe():
            return {"prescribe": {value.level: plain_drive(value.signals)}}
        case Torque():
            return {"torque": plain_signal(value.signals)}
        case Pd():
            return {"torque": {"pd" if value.ki is None else "pid": {
                "kp": value.kp, "ki": value.ki, "kd": value.kd, "target": plain_signal(value.target),
                "feedforward": plain_signal(value.feedforward), "gravity": value.gravity or None}}}
    return plain_signal(value)
