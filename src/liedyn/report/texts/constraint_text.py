"""Closures and couplings, as text for people and as plain data for programs."""
from __future__ import annotations

from collections import Counter

from liedyn.model.description import Coupling, Loop
from liedyn.model.model import Model
from liedyn.model.validate_constraints import mimic_couplings
from liedyn.report.texts.text_table import counted, table


def constraint_summary(model: Model) -> list[dict]:
    """A dict for each constraint: its rows, and the figures of a closure or the terms of a coupling."""
    return [{"name": one.name, "type": one.type, "rows": [one.rows.start, one.rows.stop], "row_names": list(one.row_names),
             "units": list(one.units)} | (_plain_loop(given) if isinstance(given, Loop) else _plain_coupling(given))
            for one, given in zip(model.constraints, _described(model), strict=True)]


def constraint_table(model: Model) -> list[str]:
    """A row a constraint: what it joins, or its equation."""
    rows = [["constraint", "type", "joins", "locks", "rows"]]
    for one, given in zip(model.constraints, _described(model), strict=True):
        joins = _joins(given) if isinstance(given, Loop) else equation(given)
        rows.append([one.name, one.type, joins, " ".join(one.labels), str(one.rows.stop - one.rows.start)])
    return table(rows, left=range(4)) if len(rows) > 1 else []


def constraint_count(model: Model) -> str:
    """Such as "2 loops and 1 coupling, 11 rows"; empty where there are none."""
    if not model.constraints:
        return ""
    kinds = Counter("coupling" if one.type == "coupling" else "loop" for one in model.constraints)
    return " and ".join(counted(n, kind) for kind, n in kinds.items()) + f", {counted(model.nc, 'row')}"


def equation(coupling: Coupling) -> str:
    """The coupling, solved for its first coordinate where that one's coefficient is 1: `finger2 = 1.2 finger1 + 0.1`."""
    (first, *others), offset = coupling.terms, coupling.offset
    if first[2] == 1.0:
        shown = _sum([(name, label, -c) for name, label, c in others], offset)
        return f"{_name(first)} = {shown or '0'}"
    return f"{_sum(coupling.terms, 0.0)} = {offset:g}"


def _sum(terms, offset: float) -> str:
    parts = [(c, f"{abs(c):g} {_name(term)}" if abs(c) != 1 else _name(term)) for term in terms for c in [term[2]]]
    parts += [(offset, f"{abs(offset):g}")] if offset else []
    text = " ".join(f"{'-' if c < 0 else '+'} {shown}" for c, shown in parts)
    return text.removeprefix("+ ") if not text.startswith("- ") else f"-{text[2:]}"


def _name(term) -> str:
    return f"{term[0]}.{term[1]}" if term[1] else term[0]


def _described(model: Model) -> tuple[Loop | Coupling, ...]:
    robot = model.description
    return *robot.loops, *robot.couplings, *mimic_couplings(robot)


def _joins(loop: Loop) -> str:
    figure = {"distance": f", {loop.length:g} m", "rolling": f", {loop.shape} of {loop.radius:g} m"}.get(loop.type, "")
    return f"{loop.a} - {loop.b}{figure}{', driven' if loop.driven else ''}"


def _plain_loop(loop: Loop) -> dict:
    plain = {"a": _plain_frame(loop.a, loop.pose_a), "b": _plain_frame(loop.b, loop.pose_b),
             "axes": [list(axis) for axis in loop.axes], "driven": loop.driven}
    if loop.type == "distance":
        plain["length"] = loop.length
    if loop.type == "rolling":
        plain |= {"radius": loop.radius, "shape": loop.shape}
    return plain


def _plain_frame(link: str, pose) -> dict:
    R = pose.rotation
    return {"link": link, "xyz": list(pose.translation), "rotation": [list(R[k:k + 3]) for k in (0, 3, 6)]}


def _plain_coupling(coupling: Coupling) -> dict:
    return {"terms": {_name(term): term[2] for term in coupling.terms}, "offset": coupling.offset}
