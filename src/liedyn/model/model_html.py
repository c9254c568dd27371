"""A model in notebooks: its tree of links and joints as HTML, and a table of constraints."""
from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

from liedyn.errors import escape_nonprintable, of_level
from liedyn.model.description import WORLD, Coordinate, Joint, Robot

if TYPE_CHECKING:
    from liedyn.model.model import Model

_OPEN_LEVELS = 3            # of the tree that are unfolded
_MOST_LINKS = 500           # of a robot whose tree is shown


def model_html(model: Model) -> str:
    """Return the model as HTML: a summary, and its links and joints with masses, types and limits as a tree to fold."""
    robot, links = model.description, len(model.link_names)
    gravity = " ".join(f"{x:g}" for x in model.gravity)
    parts = [f"<b>{_text(model.name)}</b>: {links} link{'s' * (links != 1)}, nq {model.nq}, nv {model.nv}, "
             f"{_text(model.base)} base, {math.fsum(link.mass for link in robot.links):.4g} kg, gravity {gravity} m/s²"]
    if links <= _MOST_LINKS:
        parts.append(_tree(robot))
    else:
        parts.append(f"<p>The tree of {links} links is not shown: <code>model.joints</code> lists the joints.</p>")
    constraints = [(loop.name, f"{loop.type} closure of {loop.a} and {loop.b}") for loop in robot.loops]
    constraints += [(coupling.name, f"coupling of {' and '.join(joint for joint, _, _ in coupling.terms)}")
                    for coupling in robot.couplings]
    parts += _list("Constraints", constraints)
    parts += _list("Actuators", [(x.name, f"on {x.link or ', '.join(name for name, _ in x.joints)}") for x in robot.actuators])
    parts += _list("Warnings", [("", str(warning)) for warning in of_level("warning", model.warnings)])
    return f'<div class="liedyn-model">{"".join(parts)}</div>'


def _text(text: object) -> str:
    return escape(escape_nonprintable(str(text)))


def _list(title: str, rows: Sequence[tuple[str, str]]) -> list[str]:
    """Return an element that unfolds rows of names and texts, or nothing without rows."""
    items = "".join(f"<li>{f'<b>{_text(name)}</b> ' if name else ''}{_text(text)}</li>" for name, text in rows)
    return [f"<details><summary>{title} ({len(rows)})</summary><ul>{items}</ul></details>"] if rows else []


def _tree(robot: Robot) -> str:
    """Return the links below the world, each in its parent, without recursion: chains may be long."""
    children: dict[str, list[tuple[str, Joint | None]]] = {}
    moved, names = {joint.child for joint in robot.joints}, {link.name for link in robot.links}
    for joint in robot.joints:
        children.setdefault(joint.parent if joint.parent in names else "", []).append((joint.child, joint))
    children.setdefault("", []).extend((link.name, None) for link in robot.links if link.name not in moved)
    masses = {link.name: link.mass for link in robot.links}
    out = [f"<ul><li>{WORLD}"]
    stack: list[tuple[str, Joint | None, int] | str] = ["</li></ul>", *_level(children.get("", ()), 1)]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            out.append(item)
            continue
        name, parent_joint, level = item
        line = _line(name, masses[name], parent_joint, robot)
        below = children.get(name, ())
        is_open = " open=\"open\"" if level <= _OPEN_LEVELS else ""
        out.append(f"<li><details{is_open}><summary>{line}</summary>" if below else f"<li>{line}")
        stack.append("</details></li>" if below else "</li>")
        stack += _level(below, level + 1)
    return "".join(out)


def _level(children: Iterable[tuple[str, Joint | None]], level: int) -> list[tuple[str, Joint | None, int] | str]:
    """Return stack entries of the children of a link, the last one first, in a list."""
    entries: list[tuple[str, Joint | None, int] | str] = [(name, joint, level) for name, joint in children]
    return ["</ul>", *reversed(entries), "<ul>"] if entries else []


def _line(name: str, mass: float, joint: Joint | None, robot: Robot) -> str:
    """Return a link, and the joint that moves it."""
    link = f"<b>{_text(name)}</b>{f' {mass:.4g} kg' if mass else ''}"
    if joint is None:
        return f"{link} <i>({'free' if robot.base == 'floating' else 'fixed'})</i>"
    limits = [text for label, unit, c in zip(joint.labels, joint.units, joint.coordinate_parameters, strict=True)
              if (text := _limits(label, unit, c))]
    mimic = f" follows {_text(joint.mimic.joint)}" if joint.mimic else ""
    return f"{_text(joint.name)} <i>({_text(joint.type)}{mimic})</i> → {link}" + (f" <small>{_text('; '.join(limits))}</small>"
                                                                                 if limits else "")


def _limits(label: str, unit: str, coordinate: Coordinate) -> str:
    """Return the limits of a coordinate, "" without any."""
    force = {"rad": "N m", "m": "N"}[unit]
    parts = []
    if math.isfinite(coordinate.lower) or math.isfinite(coordinate.upper):
        parts.append(f"{coordinate.lower:g} to {coordinate.upper:g} {unit}")
    parts += [f"{value:g} {name}" for value, name in ((coordinate.velocity, f"{unit}/s"), (coordinate.effort, force),
                                                   (coordinate.acceleration, f"{unit}/s^2"), (coordinate.jerk, f"{unit}/s^3"))
              if math.isfinite(value)]
    return f"{label} {', '.join(parts)}".strip() if parts else ""
