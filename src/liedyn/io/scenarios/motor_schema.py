"""Keys of `motors` in scenarios, reading from YAML and CSV files, and writing."""
from __future__ import annotations

from typing import Any

import numpy as np

from liedyn.io.file_schema import Boolean, Field, List, Number, OneOf, Schema, Text, Vector, default_of
from liedyn.io.scenarios.scenario import Motor
from liedyn.io.scenarios.signal_schema import by_name
from liedyn.io.scenarios.table_schema import read_columns
from liedyn.io.units import unit_of
from liedyn.io.yaml_nodes import Node

_LARGEST = 1e9           # gears and what they multiply: squares of these are far from overflow
_POSITIVE = Number(above=0, maximum=_LARGEST)
_FRACTION = Number(above=0, maximum=1)
_CURVE_UNITS, _LOSS_UNITS, _EFFICIENCY_UNITS = ("rad/s", "N m"), ("rad/s", "N m", "W"), ("rad/s", "N m", "")


def _motor(node: Node) -> Motor:
    nodes, values = MOTOR.nodes(node), MOTOR.values(node)
    for key, required in {"voltage": ("resistance", "torque_constant"), "current": ("torque_constant",),
                        "resistance": ("torque_constant",)}.items():
        for other in required:
            if key in nodes and other not in nodes:
                raise nodes[key].problem(f"{key} requires {other}", expected=f"the key {other}")
    for key, other in (("curve", "voltage"), ("efficiency_map", "loss_map")):
        if key in nodes and other in nodes:
            raise nodes[key].problem(f"{key} cannot be combined with {other}", expected=f"{key} or {other}")
    motor = Motor(**values)
    if "regeneration" in nodes and not motor.has_losses:
        raise nodes["regeneration"].problem("regeneration requires losses", expected="resistance, loss_map or efficiency_map")
    return motor


def _rows(node: Node, units: tuple[str, ...], words: str, minimum: int) -> np.ndarray:
    """Return the columns (n, N) of a list of rows, of a CSV or of lists by title, in SI."""
    columns, written, _ = read_columns(node, len(units), f"{len(units)}: {words}", minimum)
    for unit, expected in zip(written, units, strict=True):
        if unit and unit_of(unit) != unit_of(expected or "1"):
            raise node.problem("a column of a motor has another unit", found=unit, expected=expected or "a number")
    return columns


def _curve(node: Node) -> tuple[tuple[float, float], ...]:
    speeds, torques = _rows(node, _CURVE_UNITS, "speed, torque", 1)
    falls = np.flatnonzero(np.diff(speeds) <= 0.0)
    if falls.size:
        k = int(falls[0])
        speed = node.value[k + 1].value[0] if node.kind == "list" else node
        raise speed.problem("speeds must increase", found=float(speeds[k + 1]), expected=f"a speed > {speeds[k]:g}")
    if np.abs(torques).max() > _LARGEST or not (torques > 0.0).any():
        raise node.problem("the motor has no torque at any speed" if np.abs(torques).max() <= _LARGEST else
                           "the torque of a motor's curve is out of range", expected="a torque above 0, and at most 1e9 N m")
    ends = np.concatenate([speeds, -speeds])
    width = np.interp(ends, speeds, torques) + np.interp(-ends, speeds, torques)
    if width.min() < 0.0:
        k = int(np.argmin(width))
        raise node.problem(f"the maximum torque at {ends[k]:g} rad/s is below the minimum, which is that at {-ends[k]:g} rad/s "
                           "with the opposite sign", found=float(np.interp(ends[k], speeds, torques)),
                           expected=f"at least {-np.interp(-ends[k], speeds, torques):g} N m")
    return tuple(zip(speeds.tolist(), torques.tolist(), strict=True))


def _map(node: Node, units: tuple[str, ...], lowest: float, highest: float) -> tuple[tuple[float, ...], ...]:
    """Return the rows of a map over all combinations of speeds and torques. Values are from `lowest` to `highest`."""
    columns = _rows(node, units, "speed, torque, value", 4)
    rows: tuple[tuple[float, ...], ...] = tuple(map(tuple, columns.T.tolist()))
    (speeds, torques), pairs = (np.unique(x) for x in columns[:2]), {row[:2] for row in rows}
    if min(len(speeds), len(torques)) < 2 or len(rows) != len(pairs) or len(pairs) != len(speeds) * len(torques):
        raise node.problem("the map does not have one row for each combination of its speeds and torques",
                           found=f"{len(rows)} rows of {len(speeds)} speeds and {len(torques)} torques",
                           expected=f"{len(speeds) * len(torques)} different rows, of at least 2 speeds and 2 torques")
    outside = columns[2][~((columns[2] >= lowest) & (columns[2] <= highest))]
    if outside.size:
        raise node.problem("a value of the map is out of range", found=float(outside[0]),
                           expected=f"from {lowest:g} to {highest:g}" if highest < np.inf else f"at least {lowest:g}")
    return rows


def _efficiency(node: Node) -> tuple[float, float]:
    if node.kind != "mapping":
        value = _FRACTION.read(node)
        return value, value
    values = GEAR_EFFICIENCY.values(node)
    return values.get("forward", 1.0), values.get("backward", 1.0)


def _thermal(node: Node) -> tuple[float, float, float]:
    values = THERMAL.values(node)
    return values["continuous"], values["time_constant"], values.get("initial", 0.0)


_TABLE = (Text(), List(Vector(3), 4))
GEAR_EFFICIENCY = Schema("gear_efficiency", (
    Field("forward", _FRACTION, "where the motor drives the joint", 1, example=0.9, live=True),
    Field("backward", _FRACTION, "where the joint drives the motor", 1, example=0.8, live=True)))
THERMAL: Schema = Schema("thermal", (
    Field("continuous", _POSITIVE, "torque that the motor can hold without end [N m]", required=True, example=0.6, live=True),
    Field("time_constant", _POSITIVE, "of the temperature of the winding [s]", required=True, example=40, live=True),
    Field("initial", Number(minimum=0), "load at the start; 1 is the limit", 0, example=0.3)), reader=_thermal)
MOTOR: Schema = Schema("motor", (
    Field("gear", _POSITIVE, "turns of the motor for one of the joint [rad/rad or rad/m]",
          default_of(Motor, "gear"), example=100, live=True),
    Field("curve", OneOf((Text(), List(Vector(2), 1)), "motor_curve", _curve), "the maximum torque at a speed, both of the "
        "motor, points `[speed, torque]` [rad/s, N m] joined by lines, or a CSV, whose titles may have units; see "
        "[motors](#motors)", "no limit", example=[[0, 1.2], [300, 1.2], [420, 0]], live=True),
    Field("inertia", Number(minimum=0, maximum=_LARGEST), "of the rotor [kg m²]: the joint has the armature gear² inertia",
          default_of(Motor, "inertia"), example=1e-5),
    Field("voltage", _POSITIVE, "of a DC motor [V], instead of a curve: the torque is at most k (V - k ω) / R", "no limit"),
    Field("current", _POSITIVE, "maximum current [A]: the torque is at most k I", "no limit"),
    Field("resistance", _POSITIVE, "R of the winding [ohm], for copper losses", "no losses"),
    Field("torque_constant", _POSITIVE, "k [N m/A or V s/rad]"),
    Field("peak", _POSITIVE, "maximum torque at all speeds [N m]", "no limit", example=2.5),
    Field("gear_efficiency", OneOf((_FRACTION, GEAR_EFFICIENCY), "gear_efficiencies", _efficiency), "of the power through the "
        "gear, in both directions or as `{forward, backward}`", 1, example=0.9),
    Field("loss_map", OneOf(_TABLE, "loss_map", lambda node: _map(node, _LOSS_UNITS, 0.0, np.inf)), "rows `[speed, torque, "
        "loss]` [rad/s, N m, W] for all combinations, or a CSV: losses in addition to those in the winding", "no losses",
        example=[[0, 0, 0], [0, 1, 2], [300, 0, 5], [300, 1, 9]]),
    Field("efficiency_map", OneOf(_TABLE, "efficiency_map", lambda node: _map(node, _EFFICIENCY_UNITS, 1e-3, 1.0)), "rows "
        "`[speed, torque, efficiency]` for all combinations, or a CSV: all losses of the motor, instead of `loss_map`",
        "no losses", example=[[0, 0, 0.4], [0, 1, 0.6], [300, 0, 0.4], [300, 1, 0.85]]),
    Field("regeneration", Boolean(), "whether electrical power of a braking motor is returned; otherwise a resistor dissipates "
        "it", default_of(Motor, "regeneration"), example=True),
    Field("thermal", THERMAL, "continuous torque and time constant of the winding: the load of the motor is reported",
          "not computed")), reader=_motor)
MOTORS = by_name(MOTOR, "joint*")


def motor_to_dict(motor: Motor) -> dict[str, Any]:
    """Return the motor as in a file."""
    forward, backward = motor.gear_efficiency
    plain = {key: getattr(motor, key) for key in ("voltage", "current", "resistance", "torque_constant", "peak")}
    return plain | {"gear": motor.gear, "curve": motor.curve or None, "inertia": motor.inertia or None,
                    "gear_efficiency": None if forward == backward == 1.0 else {"forward": forward, "backward": backward},
                    "loss_map": motor.loss_map or None, "efficiency_map": motor.efficiency_map or None,
                    "regeneration": None if motor.regeneration else False,
                    "thermal": motor.thermal and dict(zip(THERMAL, motor.thermal, strict=True))}
