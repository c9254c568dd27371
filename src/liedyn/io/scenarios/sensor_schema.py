"""Keys of `sensors` in scenarios, reading from YAML and writing."""
from __future__ import annotations

import re
from typing import Any

from liedyn.io.file_schema import Choice, Field, Named, Number, OneOf, Schema, Text, Vector, default_of, kinds_with, too_many
from liedyn.io.scenarios.scenario import FORCE_LONG, LEAST_PERIOD, WRENCH_AXES, Rule, Sensor
from liedyn.io.scenarios.signal_schema import by_name, patterns, rules_to_dict
from liedyn.io.yaml_nodes import Node
from liedyn.model.element_values import MAX_INPUT

# Quantities of the sensors at links and joints, in the order of `Sensor.noises`, and the keys of each type of sensor
QUANTITIES = {"imu": ("gyro", "accelerometer"), "force_torque": ("moment", "force")}
_VECTORS = {kind: tuple(f"{quantity}_{error}" for quantity in names for error in ("noise", "bias"))
            for kind, names in QUANTITIES.items()}
_PLACED = ("at", "rpy")
KEYS = {"encoder": ("joints", "noise", "resolution", "zero_offset"),
        "torque": ("joints", "noise", "resolution", "offset", "scale", "torque_constant", "delay"),
        "imu": ("link", *_PLACED, *_VECTORS["imu"]),
        "force_torque": ("joint", "frame", *_PLACED, *_VECTORS["force_torque"])}
_FIELDS = {"zero_offset": "offset"}                            # of `Sensor`, where keys have other names
_NAME = re.compile(r"[\w-]+")


def read_sensors(node: Node, duration: float, maximum: int) -> tuple[Sensor, ...]:
    """Return the sensors. Raise if a run of this duration [s] has more than `maximum` samples of one of them."""
    sensors: tuple[Sensor, ...] = SENSORS.read(node)
    for sensor in sensors:
        if sensor.rate is not None and duration * sensor.rate > maximum:
            raise too_many(node.value[sensor.name].value["rate"], "samples", duration * sensor.rate, maximum, "at most",
                           maximum / duration, "Hz", hint=FORCE_LONG)
    return sensors


def _sensors(node: Node) -> tuple[Sensor, ...]:
    sensors = []
    for name, child in node.mapping().items():
        if not _NAME.fullmatch(name):
            raise child.problem("the name of a sensor is part of names of columns", found=name,
                                expected="letters, digits, _ and -")
        values = SENSOR.values(child)
        if values.get("frame", WRENCH_AXES[0]) != WRENCH_AXES[0]:
            for key in _PLACED:
                if key in values:
                    raise child.value[key].problem(f"{key} cannot be combined with this frame", found=values["frame"],
                                                   expected=f"frame: {WRENCH_AXES[0]}")
        for field, error in (("noises", "noise"), ("biases", "bias")):
            parts = [values.pop(f"{quantity}_{error}", (0.0,) * 3) for quantity in QUANTITIES.get(values["type"], ())]
            values |= {field: sum(parts, ())} if parts else {}
        sensors.append(Sensor(name, **{_FIELDS.get(key, key): value for key, value in values.items()}, place=child.place))
    return tuple(sensors)


def _by_joint(value: Number, words: str) -> OneOf:
    """Return the declaration of a number for all joints, or of numbers by joint or pattern."""
    of_each = by_name(value, "joint*")

    def read(node: Node) -> tuple[Rule, ...]:
        rules: tuple[Rule, ...] = of_each.read(node) if node.kind == "mapping" else (Rule("*", value.read(node),
                                                                                          place=node.place),)
        return rules
    return OneOf((value, of_each), words, read)


def _vector(value: Number, words: str) -> OneOf:
    """Return the declaration of a number for all three components, or of three numbers."""
    several = Vector(3)

    def read(node: Node) -> tuple[float, ...]:
        if node.kind != "list":
            return (value.read(node),) * 3
        several.read(node)
        return tuple(map(value.read, node.items()))
    return OneOf((value, several), words, read)


def _of(name: str, value: Any, meaning: str, default: Any = None, **more: Any) -> Field:
    return Field(name, value, meaning, default, kinds=kinds_with(name, KEYS), **more)


_SIZE, _ANY = Number(minimum=0, maximum=MAX_INPUT), Number(minimum=-MAX_INPUT, maximum=MAX_INPUT)
_MEANINGS = {"gyro": "angular velocity [rad/s]", "accelerometer": "specific force [m/s²]", "moment": "moment [N m]",
             "force": "force [N]"}
_EXAMPLES = {"gyro": (1e-3, [0.002, 0, -0.001]), "accelerometer": (0.02, 0.05), "moment": (0.01, 0.02), "force": (0.1, [0, 0, 1])}


def _vector_fields(quantity: str) -> tuple[Field, Field]:
    noise, bias = _EXAMPLES[quantity]
    return (_of(f"{quantity}_noise", _vector(_SIZE, "noise_of_vector"), f"standard deviation of the measured "
                f"{_MEANINGS[quantity]}: a number, or `[x, y, z]`", 0, example=noise),
            _of(f"{quantity}_bias", _vector(_ANY, "bias_of_vector"), f"constant error of the measured {_MEANINGS[quantity]}: a "
                "number, or `[x, y, z]`", 0, example=bias))


SENSOR = Schema("sensor", (
    Field("type", Choice(tuple(KEYS)), "`encoder`: positions of joints; `torque`: torques and forces of motors at joints; `imu`: "
        "angular velocity and specific force of a link; `force_torque`: wrench through a joint",
        required=f"one of {', '.join(KEYS)}", example="encoder", live=True),
    Field("rate", Number(above=0, maximum=1 / LEAST_PERIOD), "samples per second, the first one at the start [Hz]",
        "at 0, output_step, …", example=500, live=True),
    Field("dropout", Number(minimum=0, maximum=1), "fraction of the samples that are lost at random",
        default_of(Sensor, "dropout"), example=0.01),
    _of("joints", patterns(()), "joints or patterns", "all except ball and free joints", example=["elbow"]),
    _of("noise", _by_joint(_SIZE, "noise"), "standard deviation [rad, m, N m or N]: a number, or by joint or pattern", 0,
        example=1e-4),
    _of("resolution", _by_joint(_SIZE, "step"), "step to whose multiples values are rounded [rad, m, N m or N]: a number, or by "
        "joint or pattern", 0, example={"elbow": 2e-4}),
    _of("zero_offset", _by_joint(_ANY, "offset"), "of `encoder`: what it shows at zero [rad or m]: a number, or by joint or "
        "pattern", 0, example={"elbow": 0.004}),
    _of("offset", _by_joint(_ANY, "offset"), "of `torque`: what it shows without torque [N m or N]: a number, or by joint or "
        "pattern", 0, example=0.1),
    _of("scale", _by_joint(_ANY, "scale"), "of `torque`: measured per true torque, such as the ratio of the assumed torque "
        "constant to the true one: a number, or by joint or pattern", 1, example={"elbow": 1.03}),
    _of("torque_constant", _by_joint(Number(above=0, maximum=MAX_INPUT), "constant"), "of `torque`: torque at the joint per "
        "current [N m/A or N/A], for columns of currents: a number, or by joint or pattern", "no currents", example=12),
    _of("delay", Number(minimum=0, maximum=MAX_INPUT), "of `torque`: age of a value when it is sampled [s]",
        default_of(Sensor, "delay"), example=2e-3),
    _of("link", Text(), "of `imu`: the link that carries it", required="the name of a link", example="lower"),
    _of("joint", Text(), "of `force_torque`: the joint, moving or fixed, through which the wrench on its child link acts",
        required="the name of a joint", example="wrist"),
    _of("frame", Choice(WRENCH_AXES), "of `force_torque`: axes of the wrench, which is about the child link's origin: `link` for "
        "the child link, `joint` for the joint's frame in the parent link, `world`", default_of(Sensor, "frame"),
        example="joint"),
    _of("at", Vector(3, MAX_INPUT), "position on the link [m]; of `force_torque` on the child link, with `frame: link`",
        "the origin", example=[0, 0, 0.05]),
    _of("rpy", Vector(3, MAX_INPUT), "orientation on the link [rad], as `at`", "zero", example=[0, 0, 1.5708]),
    *(field for names in QUANTITIES.values() for quantity in names for field in _vector_fields(quantity))),
    kind="type", subject="the sensor {}")
SENSORS = Named(SENSOR, "sensor", _sensors)


def sensor_to_dict(sensor: Sensor) -> dict[str, Any]:
    """Return a sensor as in a file."""
    plain: dict[str, Any] = {"type": sensor.type, "rate": sensor.rate, "dropout": sensor.dropout or None}
    for k, quantity in enumerate(QUANTITIES.get(sensor.type, ())):
        for error, values in (("noise", sensor.noises), ("bias", sensor.biases)):
            part = values[3 * k:3 * k + 3]
            plain[f"{quantity}_{error}"] = list(part) if any(part) else None
    for key in KEYS[sensor.type]:
        if key in plain:
            continue
        value = getattr(sensor, _FIELDS.get(key, key))
        if key == "joints":
            value = [rule.pattern for rule in value]
        elif isinstance(value, tuple) and key not in _PLACED:
            value = rules_to_dict(value)
        plain[key] = value if value not in ([], {}, 0.0, (0.0,) * 3) else None
    return plain
