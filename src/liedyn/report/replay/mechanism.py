"""The kinematics of a robot as plain values for `mechanism.js`, which moves it in the page as the library does."""
from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from liedyn.codegen.trace import traced_module
from liedyn.dynamics.constraints.rank import coordinate_scales, equation_weights
from liedyn.joints.loop_joints import BODY_A, BODY_B, KIND
from liedyn.model.couplings import FunctionCoupling
from liedyn.model.description import COUPLING, ONE_DOF, coordinate_name
from liedyn.model.model import Model
from liedyn.model.model_joint import ModelJoint
from liedyn.model.spatial import pose_to_array
from liedyn.model.validate import mimic_couplings
from liedyn.report.replay.scene import bodies_of


def mechanism_data(model: Model, q: np.ndarray) -> dict[str, Any]:
    """Return plain values of a robot at the configuration q.

    q          the configuration
    bodies     of the kernels: parent, kind of joint, first coordinate in q and v, a and b of its screw, pose at zero
    frames     body of the kernels and pose in it, of each body of the page
    parts      what sliders move: a coordinate, or a ball or free joint: name, joint, type, link, kind, unit, first coordinate in
               q and v, limits, names of what it follows, whether it keeps its position where loops allow it
    followers  followers of couplings in the order of evaluation: terms [coordinate in q, factor], or a program
    closures   kind, bodies, frames in them, size, and weight of each equation
    unit       (nv,) 1 rad, or a length [m] for translations
    keyframes  configurations by name
    """
    tree = traced_module("joints.joint_model").tree_views(model.index, model.constants)
    T0, S = tree.T0.reshape(-1, 12), tree.S.reshape(-1, 2)
    first, _ = bodies_of(model)
    return {
        "q": q.tolist(),
        "bodies": [[*map(int, indices), *S[i].tolist(), T0[i].tolist()]
                   for i, indices in enumerate(zip(tree.parent, tree.kind, tree.iq, tree.iv, strict=True))],
        "frames": [[int(model.link_body[k]), pose_to_array(model.link_pose[k]).tolist()] for k in first],
        "parts": [part for joint in model.joints for part in _parts(model, joint)],
        "followers": list(_followers(model)), "closures": list(_closures(model)),
        "unit": coordinate_scales(model).tolist() if model.constraints else [1.0] * model.nv,
        "keyframes": {name: state.q.tolist() for name, state in model.keyframes.items()}}


def _parts(model: Model, joint: ModelJoint) -> Iterator[dict[str, Any]]:
    of_joint = {"joint": joint.name, "type": joint.type, "link": joint.child, "kind": joint.kind,
                "keeps": joint.name in model.actuated}
    if joint.kind != ONE_DOF:
        yield of_joint | {"name": joint.name, "unit": "", "q": joint.q.start, "v": joint.v.start, "lower": None, "upper": None,
                          "follows": ""}
        return
    for k in range(joint.v.start, joint.v.stop):
        yield of_joint | {"name": model.v_names[k], "unit": model.v_units[k], "q": joint.q.start + k - joint.v.start, "v": k,
                          "lower": _finite(model.lower[k]), "upper": _finite(model.upper[k]),
                          "follows": _driver_text(model, model.v_names[k]) if model.follows[k] else ""}


def _driver_text(model: Model, name: str) -> str:
    """Return what a follower follows: the joint that it mimics, or the couplings that name it."""
    couplings = [coupling for coupling in (*model.description.couplings, *mimic_couplings(model.description))
                 if name in (coordinate_name(*term[:2]) for term in coupling.terms)]
    drivers = [coordinate_name(*term[:2]) for coupling in couplings for term in coupling.terms]
    return ", ".join(dict.fromkeys(driver for driver in drivers if driver != name))


def _finite(x: float) -> float | None:
    return float(x) if math.isfinite(x) else None


def _followers(model: Model) -> Iterator[dict[str, Any]]:
    """Yield followers so that each comes after the coordinates that determine it."""
    place = np.zeros(model.nv, dtype=int)
    for joint in model.joints:
        if joint.kind == ONE_DOF:
            place[joint.v] = np.arange(joint.q.start, joint.q.stop)
    elimination = model.elimination(model.function_followers)
    linear = {int(k): (np.flatnonzero(ratios).tolist(), ratios, float(offset)) for k, ratios, offset
              in zip(elimination.follower, elimination.ratios, elimination.offset, strict=True)}
    functions = {coupling.follower.v: coupling for coupling in model.function_couplings}
    pending: list[int] = [*linear, *functions]
    written: set[int] = set()
    while pending:
        k = pending.pop(0)
        drivers = linear[k][0] if k in linear else [functions[k].driver.v]
        if any(driver in (linear.keys() | functions.keys()) - written for driver in drivers):
            pending.append(k)                               # later: the model has no cycles
            continue
        written.add(k)
        if k in linear:
            _, ratios, offset = linear[k]
            yield {"q": int(place[k]), "v": k, "offset": offset, "terms": [[int(place[j]), float(ratios[j])] for j in drivers]}
        else:
            yield {"q": int(place[k]), "v": k, **_program(functions[k])}


def _program(coupling: FunctionCoupling) -> dict[str, Any]:
    program = coupling.program
    return {"driver": int(coupling.driver.q), "code": program.code.tolist(), "constants": program.constants.tolist()}


def _closures(model: Model) -> Iterator[dict[str, Any]]:
    """Yield the loops without those that are driven: their frames move with the time."""
    if not model.constraints:
        return
    views = traced_module("joints.loop_joints").constraint_views(model.loop_index, model.loop_constants)
    weights = equation_weights(model)
    frames, extents = views.pose.reshape(-1, 2, 12), views.extent.reshape(-1, 2)
    for constraint, record, (a, b), (extent, sphere) in zip(model.constraints, views.record, frames, extents, strict=True):
        if constraint.kind < COUPLING and not constraint.driven:
            yield {"name": constraint.name, "kind": constraint.kind, "a": int(record[BODY_A]), "b": int(record[BODY_B]),
                   "at_a": a.tolist(), "at_b": b.tolist(), "extent": float(extent), "sphere": float(sphere),
                   "weights": weights[constraint.rows].tolist()}
            assert record[KIND] == constraint.kind


def messages_of(model: Model) -> list[dict[str, str]]:
    """Return the warnings of `check` about a robot, with the link to which each belongs, "" for none."""
    names = {joint.name: joint.child for joint in model.description.joints} | {loop.name: loop.b for loop
                                                                               in model.description.loops}
    names |= {name: name for name in model.link_names}

    def link_of(key: str | None) -> str:
        quoted = [part for part in (key or "").replace('"', "\n").split("\n") if part in names]
        return names[quoted[0]] if quoted else ""

    return [{"code": warning.code, "level": warning.level, "text": str(warning.message) + (f" ({warning.hint})" if warning.hint
                                                                                          else ""),
             "link": link_of(warning.place.key if warning.place else None)} for warning in _ordered(model.warnings)]


def _ordered(warnings: Sequence[Any]) -> list[Any]:
    return sorted(warnings, key=lambda warning: warning.level != "warning")
