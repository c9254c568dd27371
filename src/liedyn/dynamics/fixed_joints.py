"""Models of robots whose joints are fixed at given coordinates: their links become parts of other bodies."""
from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from dataclasses import replace

import numpy as np

from liedyn.arrays import Array, ArrayLike
from liedyn.dynamics.batching.arrays import as_array
from liedyn.dynamics.constraints.constraints import constraint_residual
from liedyn.dynamics.force_elements import element_forces
from liedyn.dynamics.kinematics import joint_motion
from liedyn.errors import ConfigurationError, LiedynWarning, ModelError, ShapeError, UsageError, list_names, warn
from liedyn.model.coupling_functions import evaluate, function_program
from liedyn.model.description import ONE_DOF, WORLD, Actuator, Coupling, Joint, Loop, Robot, coordinate_name
from liedyn.model.element_values import element_location
from liedyn.model.force_element import ForceElement
from liedyn.model.link_tree import body_by_link, build_link_tree
from liedyn.model.links import as_pose
from liedyn.model.model import Model, build, build_validated
from liedyn.model.validate import mimic_couplings

_AGREES = 1e-6      # of a coupling with coordinates of 1 rad or 1 m: a smaller residual of stated coordinates is rounding
_AT_LIMIT = 1e-6    # of a limit: coordinates with six digits
_CLOSED = 1e-5      # residual of a loop [rad | lengths of the loop], for coordinates with six digits


def fix_joints(model: Model, values: Mapping[str, ArrayLike]) -> Model:
    """Return the model with joints fixed at the given coordinates.

    A fixed joint has no coordinates. The links behind it become part of the body before it, with their exact inertias, so the
    dynamics are those of `hybrid_dynamics` with these joints at rest. All links keep their names, poses and shapes.

    Parameters
    ----------
    model : Model
    values : {joint: coordinate or array}
        Coordinates of each joint to fix [rad | m], as in q: for a ball joint x y z w, for a free joint px py pz x y z w. The
        joint of a floating base is `base`. Coordinates beyond limits cause a warning.

    Returns
    -------
    Model
        Without the coordinates of these joints. Couplings of fixed joints are evaluated: mimic joints, and others whose position
        they determine, are fixed as well. Loops and force elements whose links become one body are removed. Springs, motors
        (`actuated`), armatures and keyframe values of fixed joints are removed, too, and their terms of tendons.

    Raises
    ------
    NameLookupError, ShapeError, UsageError
    ConfigurationError
        For coordinates that are not finite, contradict a coupling, or leave a loop open whose links become one body; for the
        floating base of a root link that is called world, as the ground.
    ModelError
        If a coupling then determines one of several coordinates of a joint, or the driver of a function.

    Examples
    --------
    >>> model = ld.load("robots/double_pendulum.yaml")
    >>> straight = ld.fix_joints(model, {"elbow": 0.0})
    >>> straight, ld.mass_matrix(straight, [0.3])
    (<Model double_pendulum: 1 joint, nq 1, nv 1, fixed base; 3 links, 2 kg>, array([[2.666867]]))
    """
    if not isinstance(values, Mapping):
        raise UsageError(f"fix_joints: expected {{joint: coordinates}}, got {values!r}")
    q = model.neutral()
    fixed = {name: _coordinates(model, name, x) for name, x in values.items()}
    known = {coordinate: float(x) for name, values_of in fixed.items() if model.joint(name).kind == ONE_DOF
             for coordinate, x in zip(model.v_names[model.joint(name).v], values_of, strict=True)}
    couplings = _remaining_couplings(model.description, known)
    fixed |= _determined_joints(model, known, fixed)
    for name, x in fixed.items():
        q[model.q_index(name)] = x
    poses = {name: joint_motion(model, name, x)[0] for name, x in fixed.items()}
    robot = _without_motion(model.description, poses, couplings)
    return build(replace(robot, loops=_remaining_loops(model.description, robot, q), elements=_remaining_elements(model, robot)))


def _coordinates(model: Model, name: str, x: ArrayLike) -> Array:
    """Return the coordinates of a joint. Warn of those beyond its limits. They are checked further where its pose is computed."""
    size, values = len(model.q_names[model.q_index(name)]), as_array(np.atleast_1d(x), f"fix_joints: {name}", ())
    if values.shape != (size,):
        raise ShapeError(f"fix_joints: the joint {name} has {size} coordinate{'s' * (size > 1)}: got {values.shape}")
    joint = model.joint(name)
    if joint.screws is not None:
        lower, upper = model.lower[joint.v], model.upper[joint.v]
        slack = _AT_LIMIT * np.maximum(*(np.where(np.isfinite(limit), np.abs(limit), 0.0) for limit in (lower, upper)))
        beyond = (lower < upper) & ((values < lower - slack) | (values > upper + slack))
        warn([LiedynWarning("beyond-limits", f"fix_joints: {model.v_names[joint.v][k]} is fixed at {values[k]:g} "
                            f"{model.v_units[joint.v][k]}, its limits are {lower[k]:g} to {upper[k]:g}")
              for k in np.flatnonzero(beyond)])
    return values


def _remaining_couplings(robot: Robot, known: dict[str, float]) -> tuple[Coupling, ...]:
    """Return the couplings of the robot between other coordinates, and add the coordinates that known ones determine.

    known  {coordinate: value}
    """
    pending = [*robot.couplings, *mimic_couplings(robot)]
    while True:
        count = len(known)
        for coupling in pending:
            _determine(coupling, known)
        if len(known) == count:
            break
    return tuple(rest for coupling in robot.couplings if (rest := _remaining_coupling(coupling, known)) is not None)


def _terms(coupling: Coupling) -> dict[str, float]:
    """Return the coefficients of the coordinates of a linear coupling."""
    return {coordinate_name(joint, label): factor for joint, label, factor in coupling.terms if factor or coupling.function}


def _determine(coupling: Coupling, known: dict[str, float]) -> None:
    """Add the one coordinate of a coupling that is not known. Raise if known coordinates contradict it."""
    terms = _terms(coupling)
    unknown = [name for name in terms if name not in known]
    if len(unknown) > 1 or len(unknown) == len(terms):
        return
    place = coupling.place
    if coupling.function is not None:
        follower, driver = terms
        if unknown == [driver]:
            raise ModelError(f"the coupling {coupling.name} determines the joint {follower}", place=place, found=follower,
                             expected=f"its driver {driver} among the fixed joints")
        terms, offset = {follower: 1.0}, float(evaluate(function_program(coupling.function), known[driver])[0])
        if not np.isfinite(offset):
            raise ConfigurationError(f"the function of the coupling {coupling.name} is not defined at "
                                     f"{driver} = {known[driver]:g}")
    else:
        offset = coupling.offset
    rest = offset - sum(factor * known[name] for name, factor in terms.items() if name in known)
    if unknown:
        known[unknown[0]] = rest / terms[unknown[0]]
    elif abs(rest) > _AGREES * max(abs(factor) * max(abs(known[name]), 1.0) for name, factor in terms.items()):
        stated = ", ".join(f"{name} = {known[name]:g}" for name in _terms(coupling))
        raise ConfigurationError(f"the fixed joints contradict the coupling {coupling.name}: {stated} (residual {abs(rest):.3g})")


def _remaining_coupling(coupling: Coupling, known: Mapping[str, float]) -> Coupling | None:
    """Return a coupling without known coordinates, or None if it has no others."""
    terms = _terms(coupling)
    rest = tuple(term for term in coupling.terms if coordinate_name(*term[:2]) not in known)
    if all(name in known for name in terms):
        return None
    return coupling if len(rest) == len(coupling.terms) else \
        replace(coupling, terms=rest, offset=coupling.offset - sum(c * known[name] for name, c in terms.items() if name in known))


def _determined_joints(model: Model, known: Mapping[str, float], fixed: Mapping[str, Array]) -> dict[str, Array]:
    """Return the coordinates of the other joints that known coordinates fix."""
    joints = {}
    for joint in model.joints:
        names = model.v_names[joint.v]
        open_names = [name for name in names if name not in known]
        if joint.kind != ONE_DOF or joint.name in fixed or open_names == list(names):
            continue
        if open_names:
            raise ModelError(f"couplings determine only some coordinates of the joint {joint.name}",
                             found=list_names([name for name in names if name in known], 6),
                             expected=f"also {joint.name} among the fixed joints")
        joints[joint.name] = np.array([known[name] for name in names])
    return joints


def _without_motion(robot: Robot, poses: Mapping[str, Array], couplings: tuple[Coupling, ...]) -> Robot:
    """Return the robot with joints fixed at poses {joint: pose of the child in the parent}, without loops."""
    names, root = {joint.name for joint in robot.joints}, build_link_tree(robot).root
    if root == WORLD and not poses.keys() <= names:
        raise ConfigurationError(f"fix_joints: the floating base cannot be fixed, since the root link is called {WORLD}, as the "
                                 "ground (rename the link, or load the robot with base='fixed' if its pose is the identity)")
    joints = [_fixed_joint(joint, poses[joint.name]) if joint.name in poses else joint for joint in robot.joints]
    base = [Joint(name, "fixed", WORLD, root, T) for name, T in poses.items() if name not in names]
    return replace(
        robot, joints=(*base, *joints), base="fixed" if base else robot.base, couplings=couplings, loops=(),
        actuated=tuple(name for name in robot.actuated if name not in poses),
        actuators=tuple(_remaining_actuators(robot, poses)),
        keyframes=tuple(replace(keyframe, q=_of_others(keyframe.q, poses), v=_of_others(keyframe.v, poses))
                        for keyframe in robot.keyframes),
        warnings=tuple(warning for warning in robot.warnings if warning.place is None or warning.place.key not in poses))


def _remaining_actuators(robot: Robot, fixed: Container[str]) -> Iterator[Actuator]:
    """Yield the actuators; tendons without their fixed joints, on which their forces are internal ones of a body."""
    for actuator in robot.actuators:
        joints = tuple((name, factor) for name, factor in actuator.joints if name not in fixed)
        if joints or not actuator.joints:
            yield replace(actuator, joints=joints)


def _fixed_joint(joint: Joint, T: Array) -> Joint:
    return Joint(joint.name, "fixed", joint.parent, joint.child, as_pose(T, element_location(joint, "origin"), "origin"),
                 place=joint.place)


def _of_others(values: tuple[tuple[str, tuple[float, ...]], ...],
               poses: Mapping[str, Array]) -> tuple[tuple[str, tuple[float, ...]], ...]:
    return tuple(value for value in values if value[0] not in poses)


def _remaining_loops(robot: Robot, reduced: Robot, q: Array) -> tuple[Loop, ...]:
    """Return the loops whose links are on two bodies of the reduced robot. Raise if another one is not closed at q."""
    body_of = body_by_link(build_link_tree(reduced), reduced.base)
    rigid = [loop for loop in robot.loops if body_of[loop.a] == body_of[loop.b]]
    if rigid:
        free = tuple(replace(joint, mimic=None) for joint in robot.joints)
        model = build_validated(replace(robot, joints=free, couplings=(), loops=tuple(rigid), keyframes=()))
        residual = constraint_residual(model, q)
        for loop, constraint in zip(rigid, model.constraints, strict=True):
            error = np.abs(residual[constraint.rows] / constraint.scales).max()
            if loop.driven or error > _CLOSED:
                text = "is driven" if loop.driven else f"is open by {error:.3g} (relative to its length)"
                raise ConfigurationError(f"the fixed joints leave no motion between the links of the loop {loop.name}, "
                                         f"which {text}")
    return tuple(loop for loop in robot.loops if loop not in rigid)


def _remaining_elements(model: Model, reduced: Robot) -> tuple[ForceElement, ...]:
    """Return the force elements between different bodies of the reduced robot.

    A spring without a free length keeps the one of the whole robot: its length at zero coordinates, also of the fixed joints.
    """
    if not model.description.elements:
        return ()
    tree, body_of = model.spanning_tree(), body_by_link(build_link_tree(reduced), reduced.base)
    lengths = element_forces(tree, tree.neutral(), np.zeros(tree.nv)).length
    return tuple(replace(element, free_length=(float(length),))
                 if element.type == "spring" and not (element.free_length or element.table) else element
                 for element, length in zip(model.description.elements, lengths, strict=True)
                 if body_of[element.a] != body_of[element.b])
