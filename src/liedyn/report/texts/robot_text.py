"""What a robot file holds, as text for people and as plain data for programs."""
from __future__ import annotations

import math

from liedyn.model.description import Coordinate, Joint
from liedyn.model.model import Model
from liedyn.report.texts.constraint_text import constraint_count, constraint_summary, constraint_table
from liedyn.report.texts.text_table import counted, table

_PASSIVE = ("damping", "friction", "armature", "stiffness", "rest")
_LIMITS = ("lower", "upper", "velocity", "effort")


def robot_summary(model: Model) -> dict:
    """The model as dicts, lists, numbers and None (no limit): what `liedyn info --json` prints."""
    robot = model.description
    described = {joint.name: joint for joint in robot.joints}
    return {
        "name": model.name, "source": model.source, "base": model.base, "gravity": [float(x) for x in model.gravity],
        "nq": model.nq, "nv": model.nv, "mass": _total_mass(model),
        "q_names": list(model.q_names), "q_units": list(model.q_units),
        "v_names": list(model.v_names), "v_units": list(model.v_units),
        "joints": [{"name": joint.name, "type": joint.type, "parent": joint.parent, "child": joint.child,
                    "q": [joint.q.start, joint.q.stop], "v": [joint.v.start, joint.v.stop],
                    "coordinates": [_plain_coordinate(c, model.v_names[joint.v.start + k], model.v_units[joint.v.start + k])
                                    for k, c in enumerate(_coordinates(described.get(joint.name), joint))],
                    "mimic": _plain_mimic(described.get(joint.name))}
                   for joint in model.joints],
        "fixed_joints": [{"name": joint.name, "parent": joint.parent, "child": joint.child}
                         for joint in robot.joints if joint.type == "fixed"],
        "links": [{"name": link.name, "parent": parent, "mass": link.mass, "com": list(link.com), "inertia": list(link.inertia)}
                  for link, parent in zip(robot.links, model.link_parents, strict=True)],
        "constraints": constraint_summary(model),
        "actuators": [{"name": a.name, "link": a.link, "position": list(a.position), "axis": list(a.axis),
                       "torque_ratio": a.torque_ratio} for a in robot.actuators],
        "findings": len(model.findings),
    }


def robot_text(model: Model) -> str:
    """Head, tree, table of the coordinates, actuators."""
    gravity = " ".join(f"{x:g}" for x in model.gravity)
    joints, links = counted(len(model.joints), "moving joint"), counted(len(model.link_names), "link")
    head = [f"{model.name}: {joints}, {links}, {model.base} base",
            f"nq {model.nq}, nv {model.nv}, mass {_total_mass(model):.6g} kg, gravity {gravity} m/s^2"]
    if model.constraints:
        head.append(f"constraints: {constraint_count(model)}")
    parts = [head, ["Tree: joint (type) -> link", *_tree(model)], _coordinate_table(model), constraint_table(model),
             _actuator_table(model)]
    return "\n\n".join("\n".join(part) for part in parts if part)


def _total_mass(model: Model) -> float:
    return math.fsum(link.mass for link in model.description.links)


def _coordinates(described: Joint | None, joint) -> tuple[Coordinate, ...]:
    """Figures of each velocity coordinate; the joint of a floating base is not in the description and has none."""
    given = described.coordinates if described else ()
    return given or (Coordinate(),) * (joint.v.stop - joint.v.start)


def _plain_coordinate(coordinate: Coordinate, name: str, unit: str) -> dict:
    limits = {key: getattr(coordinate, key) for key in _LIMITS}
    return {"name": name, "unit": unit} | {key: x if math.isfinite(x) else None for key, x in limits.items()} \
        | {key: getattr(coordinate, key) for key in _PASSIVE}


def _plain_mimic(joint: Joint | None) -> dict | None:
    if joint is None or joint.mimic is None:
        return None
    return {"joint": joint.mimic.joint, "multiplier": joint.mimic.multiplier, "offset": joint.mimic.offset}


# --- tree ------------------------------------------------------------------------------------------------------------

def _tree(model: Model) -> list[str]:
    """A line a link. Only branches are set in: a line without a branch mark hangs on the one above it."""
    robot = model.description
    links = {link.name: link for link in robot.links}
    moved = {joint.child for joint in robot.joints}
    free = {joint.child: joint for joint in model.joints if joint.child not in moved}           # of a floating base
    children: dict[str | None, list[tuple[str, Joint | None]]] = {None: [(name, free.get(name)) for name in links
                                                                         if name not in moved]}
    for joint in robot.joints:                              # None: the world, which a link may have the name of
        children.setdefault(joint.parent if joint.parent in links else None, []).append((joint.child, joint))
    lines, stack = ["world"], _branches(children[None], "", always=True)
    while stack:
        name, joint, first, rest = stack.pop()
        mass = links[name].mass
        lines.append(first + (f"{joint.name} ({joint.type}) -> " if joint else "") + name + (f"  {mass:.4g} kg" if mass else ""))
        stack += _branches(children.get(name, []), rest)
    return lines


def _branches(children: list[tuple], indent: str, always: bool = False) -> list[tuple]:
    """Stack entries (link, joint, what stands before it, what stands before those below it), last one first."""
    if len(children) == 1 and not always:
        return [(*children[0], indent, indent)]
    last = len(children) - 1
    return [(*child, indent + ("└─ " if k == last else "├─ "), indent + ("   " if k == last else "│  "))
            for k, child in reversed([*enumerate(children)])]


# --- tables ----------------------------------------------------------------------------------------------------------

def _coordinate_table(model: Model) -> list[str]:
    """A row a coordinate; ball and free joints in one row with their ranges in q and v."""
    described = {joint.name: joint for joint in model.description.joints}
    used = [key for key in _PASSIVE if any(getattr(c, key) for j in model.joints
                                           for c in _coordinates(described.get(j.name), j))]
    rows = [["coordinate", "type", "q", "v", "unit", "lower", "upper", "speed", "force", *used]]
    for joint in model.joints:
        coordinates = _coordinates(described.get(joint.name), joint)
        if joint.screws is None:
            rows.append([joint.name, joint.type, _range(joint.q), _range(joint.v)])
            continue
        for k, c in enumerate(coordinates):
            v = joint.v.start + k
            rows.append([model.v_names[v], joint.type, str(joint.q.start + k), str(v), model.v_units[v],
                         *(_number(getattr(c, key)) for key in _LIMITS), *(f"{getattr(c, key):.4g}" for key in used)])
    return table(rows, left=range(2)) if len(rows) > 1 else ["No moving joints."]


def _actuator_table(model: Model) -> list[str]:
    rows = [["actuator", "link", "position [m]", "axis", "torque ratio [m]"]]
    rows += [[a.name, a.link, " ".join(f"{x:g}" for x in a.position), " ".join(f"{x:g}" for x in a.axis), f"{a.torque_ratio:g}"]
             for a in model.description.actuators]
    return table(rows, left=range(4)) if len(rows) > 1 else []


def _range(part: slice) -> str:
    return f"{part.start}..{part.stop - 1}"


def _number(x: float) -> str:
    return f"{x:.4g}" if math.isfinite(x) else "-"
