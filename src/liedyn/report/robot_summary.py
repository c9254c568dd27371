"""Content of a robot file, as text and as plain data."""
from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from itertools import zip_longest
from textwrap import wrap
from typing import Any

from liedyn.arrays import Base
from liedyn.dynamics.constraints.mobility import MobilitySurvey
from liedyn.errors import CheckFailed, InputError, LiedynWarning, ModelError, counted, escape_nonprintable, of_level
from liedyn.io.robots.coupling_function import function_to_dict
from liedyn.io.robots.write_robot_yaml import PASSIVE, element_parameters
from liedyn.model.coupling_expression import CouplingFunction
from liedyn.model.description import LIMITS, Coordinate, Coupling, Joint, Loop, coordinate_name
from liedyn.model.links import Pose
from liedyn.model.model import Model, base_text
from liedyn.model.model_joint import ModelJoint
from liedyn.model.validate import mimic_couplings
from liedyn.report.mobility_report import survey, survey_lines, survey_to_dict
from liedyn.robot_files import ReadingOptions, read_model

# Tables of text, and counts ----------------------------------------------------------------------------------------------

WIDTH = 80                               # characters of a line of text
_NARROWEST = 14                          # characters of a column of text that is narrowed


def wrapped(text: str, indent: str = "  ") -> list[str]:
    """Return the lines of a text of at most 80 characters each, indented from the second one on."""
    return wrap(text, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def table(rows: list[list[str]], left_aligned: Collection[int], width: int = WIDTH) -> list[str]:
    """Return aligned columns of text, in lines of at most `width` characters.

    The columns with the numbers in `left_aligned` are aligned to the left, all others to the right. In a wide table, the cells
    of the widest left-aligned column are split into several lines. Columns without room follow below, with the first column.
    """
    columns = len(rows[0])
    rows = [[*row, *[""] * (columns - len(row))] for row in rows]
    widths = [max(len(row[k]) for row in rows) for k in range(columns)]
    widest = max(left_aligned, key=lambda k: widths[k])
    widths[widest] = max(min(widths[widest], _NARROWEST), widths[widest] - max(sum(widths) + 2 * (columns - 1) - width, 0))
    fitting = max((n for n in range(1, columns) if sum(widths[:n]) + 2 * (n - 1) <= width), default=columns)
    if fitting > 1 and sum(widths) + 2 * (columns - 1) > width:
        below = [0, *range(fitting, columns)]
        return [*table([row[:fitting] for row in rows], [k for k in left_aligned if k < fitting], width), "",
                *table([[row[k] for k in below] for row in rows], [n for n, k in enumerate(below) if k in left_aligned], width)]
    cells = [[wrap(cell, max(widths[k], 1), break_on_hyphens=False) or [""] for k, cell in enumerate(row)] for row in rows]
    lines = [line for row in cells for line in zip_longest(*row, fillvalue="")]
    rows = [list(line) for line in lines]
    widths = [max(len(row[k]) for row in rows) for k in range(columns)]
    return ["  ".join(cell.ljust(w) if k in left_aligned else cell.rjust(w) for k,
                      (cell, w) in enumerate(zip(row, widths, strict=True))).rstrip() for row in rows]


# Closures and couplings, as text and as plain data -----------------------------------------------------------------------

def constraint_summary(model: Model) -> list[dict[str, Any]]:
    """Return a dict for each constraint: its equations, and the data of a closure or the terms of a coupling."""
    return [{"name": constraint.name, "type": constraint.type, "rows": [constraint.rows.start, constraint.rows.stop],
             "constraint_equation_names": list(constraint.constraint_equation_names), "units": list(constraint.units)} |
            (_loop_to_dict(described) if isinstance(described, Loop) else _coupling_to_dict(described)) for constraint,
            described in zip(model.constraints, _described(model), strict=True)]


def constraint_table(model: Model) -> list[str]:
    """Return a table with a row for each constraint: its two frames, or its equation."""
    rows = [["constraint", "type", "joins", "locks", "equations"]]
    for constraint, described in zip(model.constraints, _described(model), strict=True):
        joins = _joins(described) if isinstance(described, Loop) else equation(described)
        rows.append([constraint.name, constraint.type, joins, " ".join(constraint.labels),
                     str(constraint.rows.stop - constraint.rows.start)])
    return table(rows, left_aligned=range(4)) if len(rows) > 1 else []


def constraint_count(model: Model) -> str:
    """Return the numbers of constraints, such as "2 loops and 1 coupling, 11 equations"; empty if there are none."""
    if not model.constraints:
        return ""
    kinds = Counter("coupling" if constraint.type == "coupling" else "loop" for constraint in model.constraints)
    return " and ".join(counted(n, kind) for kind, n in kinds.items()) + f", {counted(model.nc, 'equation')}"


Term = tuple[str, str, float]                             # joint, label, coefficient


def equation(coupling: Coupling) -> str:
    """Return the equation of a coupling, such as `finger2 = 1.2 finger1 + 0.1`.

    It is solved for its first coordinate if the coefficient of this is 1.
    """
    (first, *other_terms), offset = coupling.terms, coupling.offset
    if coupling.function is not None:
        (driver, label, _), = other_terms
        return f"{coordinate_name(*first[:2])} = {_function(coupling.function)}, q = {coordinate_name(driver, label)}"
    if first[2] == 1.0:
        right_side = _sum([(name, label, -c) for name, label, c in other_terms], offset)
        return f"{coordinate_name(*first[:2])} = {right_side or '0'}"
    return f"{_sum(coupling.terms, 0.0)} = {offset:g}"


def _function(function: CouplingFunction) -> str:
    return function.text or f"table of {len(function.points)} points, {function.interpolation}{', periodic' * function.periodic}"


def _sum(terms: Sequence[Term], offset: float) -> str:
    parts = [(c, coordinate_name(joint, label) if abs(c) == 1 else f"{abs(c):g} {coordinate_name(joint, label)}")
             for joint, label, c in terms]
    parts += [(offset, f"{abs(offset):g}")] if offset else []
    text = " ".join(f"{'-' if c < 0 else '+'} {part}" for c, part in parts)
    return text.removeprefix("+ ") if not text.startswith("- ") else f"-{text[2:]}"


def _described(model: Model) -> tuple[Loop | Coupling, ...]:
    robot = model.description
    return *robot.loops, *robot.couplings, *mimic_couplings(robot)


def _joins(loop: Loop) -> str:
    figure = {"distance": f", {loop.length:g} m", "rolling": f", {loop.shape} of {loop.radius:g} m"}.get(loop.type, "")
    return f"{loop.a} - {loop.b}{figure}{', driven' if loop.driven else ''}"


def _loop_to_dict(loop: Loop) -> dict[str, Any]:
    plain = {"a": _frame_to_dict(loop.a, loop.pose_a), "b": _frame_to_dict(loop.b, loop.pose_b),
             "axes": [list(axis) for axis in loop.axes], "driven": loop.driven}
    if loop.type == "distance":
        plain["length"] = loop.length
    if loop.type == "rolling":
        plain |= {"radius": loop.radius, "shape": loop.shape}
    return plain


def _frame_to_dict(link: str, pose: Pose) -> dict[str, Any]:
    R = pose.rotation
    return {"link": link, "xyz": list(pose.translation), "rotation": [list(R[k:k + 3]) for k in (0, 3, 6)]}


def _coupling_to_dict(coupling: Coupling) -> dict[str, Any]:
    names = [coordinate_name(joint, label) for joint, label, _ in coupling.terms]
    if coupling.function is not None:
        return {"follower": names[0], "driver": names[1], **function_to_dict(coupling.function)}
    return {"terms": {name: c for name, (*_, c) in zip(names, coupling.terms, strict=True)}, "offset": coupling.offset}


# robot text -------------------------------------------------------------------------------------------------------------

def robot_summary(model: Model) -> dict[str, Any]:
    """Return the model as dicts, lists, numbers and None (no limit), as printed by `liedyn info --json`."""
    robot = model.description
    coordinates, mimics = _coordinates(model), {joint.name: joint.mimic for joint in robot.joints if joint.mimic}
    return {
        "name": model.name, "source": model.source, "base": model.base, "gravity": [float(x) for x in model.gravity],
        "nq": model.nq, "nv": model.nv, "mass": _total_mass(model),
        "q_names": list(model.q_names), "q_units": list(model.q_units),
        "v_names": list(model.v_names), "v_units": list(model.v_units),
        "joints": [{"name": joint.name, "type": joint.type, "parent": joint.parent, "child": joint.child,
                    "q": [joint.q.start, joint.q.stop], "v": [joint.v.start, joint.v.stop],
                    "coordinates": [_coordinate_to_dict(c, model.v_names[joint.v.start + k], model.v_units[joint.v.start + k])
                                    for k, c in enumerate(coordinates[joint.name])],
                    "mimic": asdict(mimics[joint.name]) if joint.name in mimics else None}
                   for joint in model.joints],
        "fixed_joints": [{"name": joint.name, "parent": joint.parent, "child": joint.child}
                         for joint in robot.joints if joint.type == "fixed"],
        "links": [{"name": link.name, "parent": parent, "mass": link.mass, "com": list(link.com), "inertia": list(link.inertia)}
                  for link, parent in zip(robot.links, model.link_parents, strict=True)],
        "constraints": constraint_summary(model),
        "actuators": [{"name": a.name, "link": a.link, "position": list(a.position), "axis": list(a.axis),
                       "torque_ratio": a.torque_ratio, "joints": dict(a.joints), "limits": a.limits and list(a.limits)}
                      for a in robot.actuators],
        "elements": [{"name": x.name, "type": x.type, "a": _frame_to_dict(x.a, x.pose_a), "b": _frame_to_dict(x.b, x.pose_b),
                      **element_parameters(x)} for x in robot.elements],
        "keyframes": {name: {key: x.tolist() for key, x in state._asdict().items()} for name, state in model.keyframes.items()},
        "mobility": survey_to_dict(survey(model)[0]),
        "warnings": len(of_level("warning", model.warnings)), "information": len(of_level("information", model.warnings)),
    }


def robot_text(model: Model) -> str:
    """Return a text: header, tree, table of the coordinates, constraints and mobility, actuators, keyframes."""
    gravity = " ".join(f"{x:g}" for x in model.gravity)
    joints, links = counted(len(model.joints), "moving joint"), counted(len(model.link_names), "link")
    head = [f"{model.name}: {joints}, {links}, {base_text(model)} base",
            f"nq {model.nq}, nv {model.nv}, mass {_total_mass(model):.6g} kg, gravity {gravity} m/s^2"]
    if model.constraints:
        head.append(f"constraints: {constraint_count(model)}")
    result, warning = survey(model)
    texts = survey_lines(model, result) if warning is None else [warning.message]
    mobility = [line for text in texts for line in wrapped(text)]
    parts = [head, ["Tree: joint (type) -> link", *_tree(model)], _coordinate_table(model), constraint_table(model), mobility,
             _actuator_table(model), _element_table(model),
             [f"Keyframes: {', '.join(model.keyframes)}"] if model.keyframes else []]
    return "\n\n".join("\n".join(part) for part in parts if part)


def _total_mass(model: Model) -> float:
    return math.fsum(link.mass for link in model.description.links)


def _coordinates(model: Model) -> dict[str, tuple[Coordinate, ...]]:
    """Return the data of the velocity coordinates by joint. The joint of a floating base is not in the description."""
    described = {joint.name: joint.coordinate_parameters for joint in model.description.joints}
    return {joint.name: described.get(joint.name, (Coordinate(),) * (joint.v.stop - joint.v.start)) for joint in model.joints}


def _coordinate_to_dict(coordinate: Coordinate, name: str, unit: str) -> dict[str, Any]:
    values = {key: getattr(coordinate, key) for key in (*LIMITS, *PASSIVE)}
    return {"name": name, "unit": unit} | {key: x if math.isfinite(x) else None for key, x in values.items()}


# --- tree ------------------------------------------------------------------------------------------------------------

def _tree(model: Model) -> list[str]:
    """Return the tree with a line per link.

    Only branches are indented: the parent of a line without a branch mark is the line above it.
    """
    robot = model.description
    links = {link.name: link for link in robot.links}
    moved = {joint.child for joint in robot.joints}
    free = {joint.child: joint for joint in model.joints if joint.child not in moved}           # of a floating base
    children: dict[str | None, list[tuple[str, Joint | ModelJoint | None]]] = {
        None: [(name, free.get(name)) for name in links if name not in moved]}
    for joint in robot.joints:                              # None: the world; a link may be named "world"
        children.setdefault(joint.parent if joint.parent in links else None, []).append((joint.child, joint))
    lines, stack = ["world"], _branches(children[None], "", always=True)
    while stack:
        name, joint, first, indent = stack.pop()
        mass = links[name].mass
        lines.append(first + (f"{joint.name} ({joint.type}) -> " if joint else "") + name + (f"  {mass:.4g} kg" if mass else ""))
        stack += _branches(children.get(name, []), indent)
    return lines


def _branches(children: list[tuple[Any, ...]], indent: str, always: bool = False) -> list[tuple[Any, ...]]:
    """Return stack entries (link, joint, prefix of its line, prefix of the lines below it), last one first."""
    if len(children) == 1 and not always:
        return [(*children[0], indent, indent)]
    last = len(children) - 1
    return [(*child, indent + ("└─ " if k == last else "├─ "), indent + ("   " if k == last else "│  "))
            for k, child in reversed([*enumerate(children)])]


# --- tables ----------------------------------------------------------------------------------------------------------

def _coordinate_table(model: Model) -> list[str]:
    """Return a row per coordinate; ball and free joints have one row with their ranges in q and v."""
    coordinates = _coordinates(model)
    used = [key for key in PASSIVE if any(getattr(c, key) for group in coordinates.values() for c in group)]
    motion = [key for key in ("acceleration", "jerk") if any(math.isfinite(getattr(c, key)) for group in coordinates.values()
                                                             for c in group)]
    limits = [*LIMITS[:4], *motion]
    rows = [["coordinate", "type", "q", "v", "unit", "lower", "upper", "speed", "force", *motion, *used]]
    for joint in model.joints:
        if joint.screws is None:
            rows.append([joint.name, joint.type, _range(joint.q), _range(joint.v)])
            continue
        for k, c in enumerate(coordinates[joint.name]):
            v = joint.v.start + k
            rows.append([model.v_names[v], joint.type, str(joint.q.start + k), str(v), model.v_units[v],
                         *(_number(getattr(c, key)) for key in limits), *(f"{getattr(c, key):.4g}" for key in used)])
    return table(rows, left_aligned=range(2)) if len(rows) > 1 else ["No moving joints."]


def _actuator_table(model: Model) -> list[str]:
    rows = [["actuator", "link", "position [m]", "axis", "torque ratio [m]", "limits [N]"]]
    tendons = [["tendon", "forces on joints by 1 N", "limits [N]"]]
    for a in model.description.actuators:
        limits = "" if a.limits is None else " ".join(f"{x:g}" for x in a.limits)
        if a.joints:
            tendons.append([a.name, ", ".join(f"{joint} {factor:g}" for joint, factor in a.joints), limits])
        else:
            rows.append([a.name, a.link, " ".join(f"{x:g}" for x in a.position), " ".join(f"{x:g}" for x in a.axis),
                         f"{a.torque_ratio:g}", limits])
    tables = [table(rows, left_aligned=range(4)) if len(rows) > 1 else [],
              table(tendons, left_aligned=range(2)) if len(tendons) > 1 else []]
    return [*tables[0], *([""] if all(tables) else []), *tables[1]]


def _element_table(model: Model) -> list[str]:
    rows = [["element", "type", "a", "b", "parameters (SI units)"]]
    for x in model.description.elements:
        values = {key: f"{len(value)} points" if key == "table" else value for key, value in element_parameters(x).items()}
        text = ", ".join(f"{key} {_short(value)}" for key, value in values.items())
        rows.append([x.name, x.type, x.a, x.b, text])
    return table(rows, left_aligned=range(5)) if len(rows) > 1 else []


def _short(value: Any) -> str:
    """Return a parameter of a force element as text; of a matrix its diagonal."""
    if isinstance(value, list) and value and isinstance(value[0], list):
        value = [row[k] for k, row in enumerate(value)]
    if isinstance(value, dict):
        return " / ".join(f"{x:g}" for x in value.values())
    if isinstance(value, list | tuple):
        return " ".join(f"{x:g}" for x in value)
    return value if isinstance(value, str) else f"{value:g}"


def _range(part: slice) -> str:
    return f"{part.start}..{part.stop - 1}"


def _number(x: float) -> str:
    return f"{x:.4g}" if math.isfinite(x) else "-"


# Errors and warnings of robot files, for `liedyn check` ------------------------------------------------------------------

@dataclass(frozen=True)
class RobotSummary:
    """A robot file with its warnings and information, or with the error that loading it raises."""

    file: str
    warnings: tuple[LiedynWarning, ...] = ()
    information: tuple[LiedynWarning, ...] = ()
    constraints: str = ""                    # their number, as text
    mobility: tuple[str, ...] = ()           # lines of text
    survey: MobilitySurvey | None = None
    error: InputError | None = None

    def text(self, *, verbose: bool = False) -> str:
        """Return what `liedyn check` prints for the robot: all warnings, and the number of messages of information or, if
        `verbose`, all of them.
        """
        if self.error is not None:
            return f"{escape_nonprintable(self.file)}: error\n  {escape_nonprintable(str(self.error))}"
        count = counted(len(self.warnings), "warning") if self.warnings else "no warnings"
        bound = f" ({self.constraints})" if self.constraints else ""
        lines = [f"{escape_nonprintable(self.file)}: {count}{bound}", *(f"  {warning}" for warning in self.warnings)]
        lines += [f"  {line}" for line in self.mobility]
        if self.information:
            number = len(self.information)
            lines.append(f"  information: {counted(number, 'message')}" + ("" if verbose else f" (-v lists {_them(number)})"))
            lines += [f"    {message}" for message in self.information if verbose]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return the same as plain data for JSON."""
        return {"file": self.file, "error": str(self.error) if self.error else None, "constraints": self.constraints,
                "mobility": survey_to_dict(self.survey), "warnings": [warning.to_dict() for warning in self.warnings],
                "information": [message.to_dict() for message in self.information]}


def _them(number: int) -> str:
    return "it" if number == 1 else "them"


def examine(file: str, base: Base | None = None, loops: str | None = None,
            reading: ReadingOptions | None = None) -> RobotSummary:
    """Load a robot file, optionally with the closures and couplings of another file, and collect the messages about it."""
    try:
        model = read_model(file, base=base, loops=loops, **(reading or {}))
        result, warning = survey(model)
        messages = (*model.warnings, *([warning] if warning is not None else []))
        return RobotSummary(file, of_level("warning", messages), of_level("information", messages), constraint_count(model),
                            tuple(survey_lines(model, result)), result)
    except InputError as error:
        return RobotSummary(file, error=error)


def raise_for_warnings(robots: Sequence[RobotSummary]) -> None:
    """Raise ModelError if a file is not valid, else CheckFailed if there are warnings."""
    invalid = [robot.file for robot in robots if robot.error is not None]
    if invalid:
        raise ModelError(f"{counted(len(invalid), 'robot')} of {len(robots)} cannot be used: {', '.join(invalid)}")
    with_warnings = [robot for robot in robots if robot.warnings]
    if with_warnings:
        count = sum(len(robot.warnings) for robot in with_warnings)
        raise CheckFailed(f"{counted(count, 'warning')} in {counted(len(with_warnings), 'robot')} of {len(robots)}")
