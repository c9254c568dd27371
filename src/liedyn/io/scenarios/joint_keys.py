"""The keys of signals and of what joints do."""
from __future__ import annotations

from liedyn.io.keys import Boolean, Choice, Either, File, Key, Keys, List, Number, Text, Vector, default_of, one_of
from liedyn.io.scenarios.scenario import Sine

LARGEST_GAIN = 1e30                              # as a robot's masses and inertias: products of these are far from overflow
INTERPOLATIONS = ("linear", "cubic", "quintic")

NUMBERS = Either((Number(), List(Number(), 1)), "numbers")          # of one joint

# signals ------------------------------------------------------------------------------------------------------------

SINE = Keys("sine", (
    Key("amplitude", Number(), "in the unit of the signal", required=True, example=0.5, live=True),
    Key("frequency", Number(), "[Hz]", required=True, missing="a frequency in Hz", example=2, live=True),
    Key("phase", Number(), "[rad]", default_of(Sine, "phase"), example=0.1),
    Key("offset", Number(), "in the unit of the signal", default_of(Sine, "offset"), example=0.2)))
CSV = Keys("column", (
    Key("file", File(), "path of a CSV", required=True, missing="the path of a CSV file", example="motion.csv", live=True),
    Key("column", Text(), "name of the column", "the one of this coordinate", example="q.elbow"),
    Key("interpolation", Choice(INTERPOLATIONS), "between the rows", "`linear` for a force, `quintic` for a motion",
        example="quintic")))
CURVES = Keys("curve", (
    Key("quintic", List(List(Number(), 2, 4), 2), "waypoints `[t, x]` to `[t, x, dx, d2x]` joined by quintic polynomials; "
        "derivatives that are not given are zero", example=[[0, 0], [2, 1.0, 0, 0]]),
    Key("spline", List(Vector(2), 2), "points `[t, x]` joined by a cubic spline, with zero slope at both ends",
        example=[[0, 0], [1, 0.4], [2, 0.1]]),
    Key("sine", SINE, "`offset + amplitude sin(2 pi frequency t + phase)`"),
    Key("csv", CSV, "a column of a CSV"),
    Key("from", Text(), "beside one of these: what its time begins with, `phase` (the present one) or the name of an event; "
        "before an event, the curve has its first value", "the start of the run", example="phase")),
    one_of=(("quintic", "spline", "sine", "csv"),))
SIGNAL = Either((Number(), Text(), CURVES), "signal")
SIGNALS = Either((SIGNAL, List(SIGNAL, 1)), "signals")

THREE_SIGNALS = List(SIGNAL, 3, 3)
WAYPOINT = Keys("waypoint", (
    Key("t", Number(), "time [s]", required=True, missing="the time of the waypoint", example=2, live=True),
    Key("xyz", Vector(3), "position [m], for free joints", "zero", example=[0.1, 0, 0.5], live=True),
    Key("rpy", Vector(3), "orientation R = Rz Ry Rx [rad]", "zero", example=[0, 0, 1.2], live=True),
    Key("quaternion", Vector(4), "instead of `rpy`: `[x, y, z, w]`", example=[0, 0, 0.6, 0.8])))
POSE_MOTION = Keys("pose_motion", (
    Key("xyz", THREE_SIGNALS, "position, three signals [m], for free joints", "zero", example=[0, 0, "0.1*sin(t)"]),
    Key("rpy", THREE_SIGNALS, "orientation R = Rz Ry Rx, three signals [rad]", "zero", example=["0.2*sin(t)", 0, 0]),
    Key("waypoints", List(WAYPOINT, 2), "instead of both: poses with their times, joined by a curve of continuous acceleration",
        example=[{"t": 0, "xyz": [0, 0, 0.5]}, {"t": 2, "xyz": [0.1, 0, 0.5], "rpy": [0, 0, 1.2]}])))

# joints -------------------------------------------------------------------------------------------------------------

_GAIN = Number(least=0, most=LARGEST_GAIN)
_GAINS = Either((_GAIN, List(_GAIN, 1)), "gain")
_KP = Key("kp", _GAINS, "gain of the position", required=True, example=50, live=True)
_OF_PD = (
    Key("kd", _GAINS, "gain of the velocity", 0, example=5, live=True),
    Key("target", SIGNALS, "desired position, a signal", required=True, example=0.3, live=True),
    Key("feedforward", SIGNALS, "force that is added, a signal", 0, example="0.5*sin(t)"),
    Key("gravity", Boolean(), "whether the gravity force of the joint is added", False, example=True))
PD = Keys("pd", (_KP, *_OF_PD))
PID = Keys("pid", (_KP, Key("ki", _GAINS, "gain of the integral", required=True, example=20, live=True), *_OF_PD))
TORQUES = Keys("torque", (Key("pd", PD, "`kp (target - q) + kd (d target/dt - v) + feedforward`"),
                          Key("pid", PID, "the same and `ki` times the integral of `target - q`"),
                          *CURVES.keys),
               one_of=(("pd", "pid", *CURVES.one_of[0]),))
_TORQUE = Either((Number(), Text(), TORQUES, List(SIGNAL, 1)), "torque_signals")
LEVELS = one_of(
    "prescribe",
    Key("acceleration", SIGNALS, "the velocity and position result from integration", example="0.8*sin(2*t)"),
    Key("velocity", SIGNALS, "the position results from integration", example={"sine": {"amplitude": 0.5, "frequency": 2}}),
    Key("position", Either((POSE_MOTION, SIGNALS), "position"), "the joint follows it exactly; nothing is integrated. Of ball "
        "and free joints a pose: `xyz` and `rpy`, or `waypoints`", example={"quintic": [[0, 0], [2, 1]]}))
DRIVES = one_of(
    "drive",
    Key("torque", _TORQUE, "joint force [N m or N]: a signal, `pd` or `pid`; a list with one for each coordinate",
        example="-0.5*q - 0.1*v"),
    Key("prescribe", LEVELS, "motion of the joint at one of these levels"))
