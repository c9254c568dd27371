"""Mechanisms for metamorphic tests: random trees of all joint types, and mechanisms with a degenerate geometry.

The seed varies from run to run: tests/conftest.py sets LIEDYN_SEED unless it is set."""
from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

import liedyn as ld
from coupled_robots import coupled_robot
from degenerate_mechanisms import CASES, GRAVITY, at, body
from liedyn.model.description import WORLD, Coupling, Joint, Robot
from liedyn.model.force_element import ForceElement
from liedyn.model.links import Link, Pose
from loop_zoo import looped_robot
from zoo import SIMPLE, random_robot

SEED = int(os.environ["LIEDYN_SEED"])


class State(NamedTuple):
    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    tau: np.ndarray
    f_ext: dict[str, np.ndarray]          # external wrenches in the frames of their links
    free: np.ndarray | None = None        # a velocity that does not satisfy the constraints
    step: np.ndarray | None = None        # a displacement
    multipliers: np.ndarray | None = None # of the constraint equations
    mask: np.ndarray | None = None        # of coordinates
    time: float = 1.0                     # the unit of time


class Mechanism(NamedTuple):
    robot: Robot
    q: np.ndarray | None = None           # a closed configuration
    v: np.ndarray | None = None           # a velocity along a branch, where it is singular


def coincident_axes() -> Robot:
    """Return equal bodies with a common centre: axes that intersect, coincide and are orthogonal, and links without mass."""
    axes = ((0.0, 0.0, 1.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0), (0.0, 0.0, 1.0), (1.0, 0.0, 0.0), (1.0, 0.0, 0.0))
    names = [f"L{k}" for k in range(6)]
    bare = {"L0", "L4"}                                          # the next body moves them
    links = tuple(Link(n) if n in bare else body(n, 1.0, (0.1, 0.0, 0.2), (0.03, 0.03, 0.02)) for n in names)
    joints = tuple(Joint(f"j{k}", "prismatic" if k == 4 else "revolute", WORLD if k == 0 else names[k - 1], names[k], at(), (a,))
                   for k, a in enumerate(axes))
    return Robot("coincident", links, joints)


def tree_of_axes(name: str, axes, *, steps=(0.0, 0.0, 0.0), base: str = "fixed", slides=(), bare=()) -> Robot:
    """Return a chain of equal bodies; links `bare` have no mass. Joints are one step apart and about or along `axes`."""
    links = [Link(f"L{k}") if k in bare else body(f"L{k}", 1.0, (0.1, 0.0, 0.2), (0.03, 0.03, 0.02)) for k in range(len(axes))]
    first = "root" if base == "floating" else WORLD
    if base == "floating":
        links.insert(0, body("root", 1.0, (0.1, 0.0, 0.2), (0.03, 0.03, 0.02)))
    joints = tuple(Joint(f"j{k}", "prismatic" if k in slides else "revolute", f"L{k - 1}" if k else first, f"L{k}", at(steps),
                         (a,)) for k, a in enumerate(axes))
    return Robot(name, tuple(links), joints, base)


X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
AXES = {"parallel axes": tree_of_axes("parallel", (Y,) * 5, steps=(0.4, 0.0, 0.0)),
        "parallel axes, floating": tree_of_axes("parallel", (Y,) * 4, steps=(0.4, 0.0, 0.0), base="floating"),
        "collinear axes": tree_of_axes("collinear", (Z, Z, Z, Z), steps=(0.0, 0.0, 0.5), slides=(1, 3), bare=(0, 2)),
        "orthogonal axes": tree_of_axes("orthogonal", (X, Y, Z, X, Y, Z), bare=(0, 3)),
        "orthogonal slides": tree_of_axes("slides", (X, Y, Z), slides=(0, 1, 2), bare=(0, 1))}


MECHANISMS: dict[str, Callable[[], Mechanism]] = {
    "random tree": lambda: Mechanism(random_robot(SEED, 8, grounded=True)),
    "random floating tree": lambda: Mechanism(random_robot(SEED + 1, 7, base="floating")),
    "random chain of simple joints": lambda: Mechanism(random_robot(SEED + 2, 6, types=SIMPLE, chain=True)),
    "coincident axes": lambda: Mechanism(coincident_axes()),
    **{name: partial(Mechanism, robot) for name, robot in AXES.items()},
    "orthogonal axes at zero": lambda: Mechanism(AXES["orthogonal axes"], np.zeros(6)),
    "parallel axes, stretched": lambda: Mechanism(AXES["parallel axes"], np.zeros(5)),
    "random tree with couplings": lambda: coupled(SEED + 5, "fixed"),
    "random tree with mimic joints": lambda: mimicking(SEED + 6, "fixed"),
    "random floating tree with mimic joints": lambda: mimicking(SEED + 7, "floating"),
    "random tree with elements": lambda: Mechanism(with_elements(random_robot(SEED + 8, 4, grounded=True))),
    "random loops": lambda: looped(SEED + 3, "fixed"),
    "random floating loops": lambda: looped(SEED + 4, "floating"),
    **{name: partial(lambda name: _degenerate(name), name) for name in CASES},
}


def _degenerate(name: str) -> Mechanism:
    return Mechanism(replace(CASES[name].robot, gravity=tuple(GRAVITY.tolist())), np.array(CASES[name].q),
                     np.array(CASES[name].v))


def with_elements(robot: Robot) -> Robot:
    """Return a robot with a force element of each type."""
    links = [link.name for link in robot.links]
    a, b = Pose.from_xyz_rpy([0.1, -0.2, 0.1], [0.1, 0.2, 0.3]), Pose.from_xyz_rpy([0.3, 0.1, -0.2], [-0.4, 0.2, 0.3])
    numbers = [("spring", {"stiffness": 90, "free_length": 0.3, "preload": 2, "damping": (1, 3)}), ("damper", {"damping": 4}),
               ("cable", {"stiffness": 60, "free_length": 0.1, "damping": 3}),
               ("gas_spring", {"force": 30, "extended_length": 30.0, "stroke": 29.0, "progression": 3.0}),
               ("torsion", {"stiffness": 7, "damping": 0.3, "rest": 0.2, "axis": (0, 1, 0)}),
               ("bushing", {"stiffness": (3, 4, 5, 60, 70, 80), "damping": (0.1, 0.2, 0.3, 2, 3, 4)})]
    ends = [(WORLD if k % 3 == 0 else links[k % 2], links[-1 - k % 2]) for k in range(len(numbers))]
    return replace(robot, elements=[ForceElement(kind, kind, *pair, a, b, **values)
                                    for (kind, values), pair in zip(numbers, ends, strict=True)])


def mimicking(seed: int, base: str) -> Mechanism:
    """Return a random tree with a chain of two mimic joints."""
    return Mechanism(replace(coupled_robot(seed, base).description, couplings=()))


def coupled(seed: int, base: str) -> Mechanism:
    """Return a random tree with a coupling of three coordinates and a chain of two."""
    robot = coupled_robot(seed, base).description
    chain = tuple(Coupling(one.name, ((one.name, "", 1.0), (one.mimic.joint, "", -one.mimic.multiplier)), one.mimic.offset)
                  for one in robot.joints if one.mimic)
    return Mechanism(replace(robot, joints=tuple(replace(one, mimic=None) for one in robot.joints),
                             couplings=(*robot.couplings, *chain)))


def looped(seed: int, base: str) -> Mechanism:
    robot = random_robot(seed, 7, types=("revolute", "ball", "prismatic", "helical"), base=base)
    kinds = [("revolute", "coupling"), ("ball", "distance"), ("universal",), ("distance", "rolling")][seed % 4]
    robot, q, _ = looped_robot(robot, seed, kinds)
    return Mechanism(robot, q)


def state_of(mechanism: Mechanism, model) -> State:
    """Return a random state that satisfies the constraints."""
    rng = np.random.default_rng([SEED, 99])
    q = ld.random_configuration(model, rng) if mechanism.q is None else mechanism.q
    v, a, tau = (rng.standard_normal(model.nv) for _ in range(3))
    if model.constraints:
        v = ld.project_velocity(model, q, v)
        try:
            a = ld.constrained_forward_dynamics(model, q, v, tau).a
        except ld.ComputationError:                            # singular, and the velocity leads along no branch
            v = ld.project_velocity(model, q, mechanism.v)
            a = ld.constrained_forward_dynamics(model, q, v, tau).a
    tip = mechanism.robot.links[-1].name
    f, free, step = rng.standard_normal(6), rng.standard_normal(model.nv), rng.uniform(-0.2, 0.2, model.nv)
    rows = sum(len(one.units) for one in model.constraints)
    mask = rng.random(model.nv) < 0.5
    if model.has_only_linear_couplings:               # the order decides which of several prescribed followers has the force
        mask[model.elimination().follower] = False
    return State(q, v, a, tau, {tip: f}, free, step, rng.standard_normal(rows), mask)
