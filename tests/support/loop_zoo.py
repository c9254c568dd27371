"""Random looped trees: robots of the zoo with closures and couplings between random links, made to fit a random configuration.

The frame on b stands in a random pose of those that the closure leaves free, so that nothing is special but the closing."""
from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import NamedTuple

import numpy as np
from scipy.interpolate import CubicSpline

import liedyn as ld
from liedyn.model.coupling_expression import CouplingFunction
from liedyn.model.description import BALL, FREE, LOOP_TYPES, WORLD, Coordinate, Coupling, Joint, Loop, Robot
from liedyn.model.links import Pose
from loop_reference import function_value, turn_of
from matrices import exp, inverse, pose
from zoo import MOVING, ROBOTS, SIMPLE, floats, random_link, random_pose, random_robot, unit

KINDS = (*LOOP_TYPES, "sphere", "coupling")          # a sphere is the other shape that rolls
_AXIAL = ("revolute", "prismatic", "cylindrical", "planar")


class Looped(NamedTuple):
    """A model with constraints, a configuration that obeys them, and the motion of its driven loops there."""

    model: ld.Model
    q: np.ndarray
    constraint_motion: dict


def free_pose(rng, kind: str, axes, length, radius):
    """Return a pose T_ab (4, 4) that satisfies a closure, for frames as in the file."""
    if kind == "weld":
        return np.eye(4)
    if kind in _AXIAL:                               # screws of the axis, and of what is across
        n = np.array(axes[0]) / np.linalg.norm(axes[0])
        angle = 0.0 if kind == "prismatic" else rng.uniform(-2, 2)
        p = {"revolute": 0 * n, "planar": np.cross(n, rng.uniform(-0.5, 0.5, 3))}.get(kind, rng.uniform(-0.5, 0.5) * n)
        return pose(exp(np.r_[angle * n, 0, 0, 0])[:3, :3], p)
    R = np.reshape(random_pose(rng).rotation, (3, 3))
    if kind == "ball":
        return pose(R, np.zeros(3))
    if kind == "universal":                          # turn R until x of A is across y of B
        x, y = axes[0] / np.linalg.norm(axes[0]), R @ axes[1] / np.linalg.norm(axes[1])
        across = np.cross(x, y) / np.linalg.norm(np.cross(x, y))
        return pose(exp(np.r_[across * (np.pi / 2 - np.arccos(x @ y)), 0, 0, 0])[:3, :3] @ R, np.zeros(3))
    if kind == "distance":
        return pose(R, length * unit(rng))
    height = radius                                  # of a sphere's or disc's centre over the plane z = 0
    if kind == "rolling":
        height = radius * np.sqrt(1.0 - (R @ turn_of(axes[0], 2))[2, 2]**2)
    return pose(R, np.r_[rng.uniform(-0.5, 0.5, 2), height])


def random_closure(rng, kind: str, name: str, model, q, a: str, b: str, constraint_motion=None) -> Loop:
    axes = {"universal": 2, "rolling": 1, **dict.fromkeys(_AXIAL, 1)}.get(kind, 0)
    axes = tuple(floats(rng.uniform(0.5, 2) * unit(rng)) for _ in range(axes))
    length, radius = float(rng.uniform(0.3, 1.0)), float(rng.uniform(0.1, 0.3))
    pose_a = random_pose(rng, 0.2)
    T_a = world_pose(model, q, a) @ matrix(pose_a) @ (np.eye(4) if constraint_motion is None else constraint_motion[0])
    T_b = inverse(world_pose(model, q, b)) @ T_a @ free_pose(rng, kind, axes, length, radius)
    given = {"length": length} if kind == "distance" else {"radius": radius} if kind in ("rolling", "sphere") else {}
    if kind == "sphere":
        kind, given["shape"] = "rolling", "sphere"
    return Loop(name, kind, a, b, pose_a, as_pose(T_b), axes, driven=constraint_motion is not None, **given)


def random_coupling(rng, name: str, model, q, terms: int = 2) -> Coupling | None:
    """Return a coupling of coordinates of different screw joints, or None if there are too few."""
    where = [(joint.name, joint.q.start + k, joint.v.start + k) for joint in model.joints if joint.kind not in (BALL, FREE)
             for k in range(joint.v.stop - joint.v.start)]
    if not where:
        return None
    chosen = [where[k] for k in rng.permutation(len(where))[:terms]]
    coefficients = rng.uniform(0.5, 2, len(chosen)) * rng.choice([-1, 1], len(chosen))
    offset = sum(c * q[i] for c, (_, i, _) in zip(coefficients, chosen, strict=True))
    terms = tuple((joint, label_of(model, joint, v), float(c))
                  for c, (joint, _, v) in zip(coefficients, chosen, strict=True))
    return Coupling(name, terms, float(offset))


def random_function_coupling(rng, name: str, model, q, kind: str, taken) -> Coupling:
    """Return q_f = f(q_d) of two coordinates that q satisfies. Followers are the last coordinates, drivers precede them."""
    where = [(joint.name, label_of(model, joint.name, v), joint.q.start + v - joint.v.start) for joint in model.joints
             if joint.kind not in (BALL, FREE) for v in range(joint.v.start, joint.v.stop)]
    j = next(j for j in range(len(where) - 1, 0, -1) if where[j][:2] not in taken)
    follower, driver = where[j], where[int(rng.integers(j))]
    if kind == "table":
        x = q[driver[2]] + np.linspace(-1.0, 1.0, 8)
        y = rng.uniform(-0.5, 0.5, 8)
        y += q[follower[2]] - CubicSpline(x, y)(q[driver[2]])
        function = CouplingFunction(points=tuple(zip(floats(x), floats(y), strict=True)))
    else:
        function = CouplingFunction(kind, FUNCTIONS[kind])
        shift = q[follower[2]] - function_value(function, q[driver[2]])
        function = CouplingFunction(kind, (*FUNCTIONS[kind], ("literal", float(shift)), ("add", 0.0)))
    return Coupling(name, ((*follower[:2], 1.0), (*driver[:2], 0.0)), function=function)


def _postfix(text: str):
    return tuple(("literal", float(word)) if word[0].isdigit() else (word, 0.0) for word in text.split())


# functions of nonlinear couplings, in postfix notation; a table has random values
FUNCTIONS = {"table": None, "elliptic": _postfix("driver sin 0.6 multiply driver cos 1.3 multiply 2.1 add divide"),
             "slot": _postfix("driver 2 power 1.5 add sqrt driver multiply"),
             "growth": _postfix("driver 0.5 multiply exp driver 2 power 2 add log add driver tanh subtract"),
             "constant": _postfix("0.3"), "dwell": _postfix("driver driver multiply driver multiply 0.2 multiply")}


def label_of(model, joint: str, v: int) -> str:
    name = model.v_names[v]
    return name[len(joint) + 1:]


def world_pose(model, q, link):
    return np.eye(4) if link == WORLD else ld.link_pose(model, q, link)


def matrix(p: Pose):
    return pose(p.rotation, p.translation)


def as_pose(T) -> Pose:
    u, _, v = np.linalg.svd(T[:3, :3])               # orthogonal to rounding
    return Pose(floats((u @ v).ravel()), floats(T[:3, 3]))


def looped(robot: Robot, seed: int, kinds, **options) -> Looped:
    """Return the model of `looped_robot`."""
    robot, q, constraint_motion = looped_robot(robot, seed, kinds, **options)
    return Looped(ld.build(robot), q, constraint_motion)


def looped_robot(robot: Robot, seed: int, kinds, *, redundant: bool = False, driven: bool = False, q=None):
    """The robot with a closure of each kind between links that are not one body.

    redundant: also the first closure once more, elsewhere on the axis or not, and a ball in its frames."""
    rng, model = np.random.default_rng([seed, 3]), ld.build(robot)
    q = ld.random_configuration(model, rng) if q is None else q
    bodies = dict(zip(model.link_names, model.link_body, strict=True)) | {WORLD: 0}
    loops, couplings, constraint_motion = [], [], {}
    for k, kind in enumerate(kinds):
        if kind == "coupling":
            couplings.append(random_coupling(rng, f"gear{k}", model, q))
            continue
        if kind in FUNCTIONS:
            taken = {one.terms[0][:2] for one in couplings if one is not None}
            couplings.append(random_function_coupling(rng, f"cam{k}", model, q, kind, taken))
            continue
        a = b = WORLD
        while bodies[a] == bodies[b]:
            a, b = rng.choice([*bodies], 2)
        motion = (exp(rng.uniform(-0.5, 0.5, 6)), *rng.standard_normal((2, 6))) if driven else None
        loops.append(random_closure(rng, kind, f"loop{k}", model, q, str(a), str(b), motion))
        if driven:
            constraint_motion[f"loop{k}"] = motion
    if redundant:
        loops += [replace(loops[0], name="again"), replace(loops[0], name="pin", type="ball", axes=())]
    couplings = tuple(one for one in couplings if one is not None)
    return replace(robot, loops=tuple(loops), couplings=couplings), q, constraint_motion


def kinds_that_fit(nv: int, first: int) -> tuple[str, ...]:
    """Return the kinds in turn, beginning with `first`, as long as degrees of freedom remain."""
    out, left = [], nv - 1
    for k in range(len(KINDS)):
        kind = KINDS[(first + k) % len(KINDS)]
        rows = 1 if kind == "coupling" else len(LOOP_TYPES["rolling" if kind == "sphere" else kind].labels)
        if rows <= left:
            out.append(kind)
            left -= rows
    return tuple(out)


# name -> robot, seed, kinds, options
_BODIES = random_robot(40, 14, types=("revolute", "ball", "prismatic", "helical"), base="floating")
_MADE = {
    **{f"{name}, looped": (robot, 200 + k, kinds_that_fit(ld.build(robot).nv, 3 * k), {})
       for k, (name, robot) in enumerate(ROBOTS.items())},
    **{f"closure: {kind}": (random_robot(300 + k, 8, types=MOVING[k % 3:] + SIMPLE, base="floating" if k % 2 else "fixed"),
                            300 + k, (kind,), {}) for k, kind in enumerate(KINDS)},
    "closed twice": (random_robot(41, 9), 41, ("weld", "coupling"), {"redundant": True}),
    "closed twice, floating": (_BODIES, 42, ("weld", "universal", "distance"), {"redundant": True}),
    "more rows than freedom": (random_robot(43, 4, types=("revolute", "prismatic")), 43, ("weld", "distance", "coupling"), {}),
    "driven": (random_robot(44, 11, base="floating"), 44, ("ball", "revolute", "distance"), {"driven": True}),
    "driven, lower pairs": (random_robot(45, 33, base="floating"), 45, ("weld", *_AXIAL), {"driven": True}),
    **{f"nonlinear: {kind}": (random_robot(350 + k, 8, base="floating" if k % 2 else "fixed"), 350 + k, (kind,), {})
       for k, kind in enumerate(FUNCTIONS)},
    "nonlinear and linear couplings, loops": (random_robot(47, 14, base="floating"), 47,
                                              ("table", "coupling", "slot", "growth", "ball", "elliptic"), {}),
    "driven, the others": (random_robot(46, 33, base="floating"), 46, KINDS[5:-1], {"driven": True}),
}
LOOPED = tuple(_MADE)
UNDRIVEN = tuple(name for name, (*_, options) in _MADE.items() if not options.get("driven"))
CLOSURES = tuple(name for name in LOOPED if name.startswith("closure"))


@cache
def looped_of(name: str) -> Looped:
    robot, seed, kinds, options = _MADE[name]
    return looped(robot, seed, kinds, **options)


def motion(case: Looped, seed: int = 0, size=()):
    """Return q, v, a, tau: a closed configuration, velocities that satisfy the constraints, random a and tau."""
    model, rng = case.model, np.random.default_rng([seed, 98])
    v, a, tau = rng.standard_normal((3, *size, model.nv))
    q = np.broadcast_to(case.q, (*size, model.nq))
    return q, ld.project_velocity(model, q, v, constraint_motion=case.constraint_motion), a, tau


def anywhere(case: Looped, seed: int = 0, size=()):
    """The same at random configurations, open, and velocities that break the constraints: A and gamma are what they are."""
    model, rng = case.model, np.random.default_rng([seed, 97])
    return (ld.random_configuration(model, rng, size), *rng.standard_normal((3, *size, model.nv)))


# planar linkages --------------------------------------------------------------------------------------------------
def n_bar(n: int, closure="weld", repeated=1, q=None):
    """n revolute joints about z, sequentially from the ground, and a closure of the last link on it: a weld leaves n - 3
    degrees of freedom, a revolute closure n - 2. Model and a configuration that is closed."""
    rng = np.random.default_rng([n, 7])
    links = tuple(random_link(rng, f"bar{k}") for k in range(n))
    coordinates = (Coordinate(damping=0.3, stiffness=2.0, rest=0.1, armature=0.05),)
    joints = tuple(Joint(f"pin{k}", "continuous", f"bar{k - 1}" if k else WORLD, f"bar{k}",
                         Pose.from_xyz_rpy((rng.uniform(0.3, 0.6) if k else 0.0, 0.0, 0.0)), axes=((0.0, 0.0, 1.0),),
                         coordinates=coordinates) for k in range(n))
    tree = Robot("n-bar", links, joints, gravity=(0.5, -9.81, 0.3))
    q = rng.uniform(0.5, 1.0, n) * rng.choice([-1, 1], n) if q is None else q
    tip = Pose.from_xyz_rpy((0.4, 0.1, 0.0))
    end = as_pose(ld.link_pose(ld.build(tree), q, f"bar{n - 1}") @ matrix(tip))
    axes = ((0.0, 0.0, 1.0),) if closure == "revolute" else ()
    loops = tuple(Loop(f"close{k}", closure, WORLD, f"bar{n - 1}", end, tip, axes) for k in range(repeated))
    return ld.build(replace(tree, loops=loops)), q


@cache
def five_bar():
    return n_bar(5)


def n_bar_motion(model, q, seed=0, size=()):
    """Return a motion that satisfies the constraints, and forces that cause it."""
    rng = np.random.default_rng([seed, 8])
    q = np.broadcast_to(q, (*size, model.nq))
    v = ld.project_velocity(model, q, rng.standard_normal((*size, model.nv)))
    out = ld.constrained_forward_dynamics(model, q, v, rng.standard_normal((*size, model.nv)))
    return q, v, out.a, out.tau
