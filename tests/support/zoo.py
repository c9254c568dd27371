"""Seeded random robots over every kind of joint, as awkward as real ones: branches, welded links, massless frames,
springs, rotors, any gravity. Inertias are physical: those of solid ellipsoids.

The spans of the coordinates keep product-of-exponential joints away from where their screws depend on each other, so
that a tolerance speaks of the algorithm and not of the configuration.
"""
from __future__ import annotations

import math
import os
from functools import cache

import numpy as np
from hypothesis import strategies as st

import liedyn as ld
from liedyn.model.description import JOINT_TYPES, WORLD, Coordinate, Joint, Robot
from liedyn.model.links import Link, Pose

MOVING = tuple(kind for kind in JOINT_TYPES if kind != "fixed")
SIMPLE = ("revolute", "continuous", "prismatic", "helical")        # one degree of freedom, one axis
SEQUENCES = ("zyx", "xyz", "yxz", "zxz", "yzy", "xyx")


def unit(rng, n=3):
    x = rng.standard_normal(n)
    return x / np.linalg.norm(x)


def floats(x) -> tuple[float, ...]:
    return tuple(float(value) for value in x)


def random_pose(rng, size=0.4) -> Pose:
    return Pose.from_xyz_quaternion(floats(rng.uniform(-size, size, 3)), floats(unit(rng, 4)))


def random_link(rng, name: str, mass: float | None = None) -> Link:
    """Return an ellipsoid with random axes: principal inertias m/5 (b^2 + c^2), …"""
    mass = float(rng.uniform(0.5, 3.0)) if mass is None else mass
    x, y, z = rng.uniform(0.05, 0.3, 3)**2
    R = np.reshape(random_pose(rng).rotation, (3, 3))
    J = R @ np.diag([y + z, x + z, x + y]) @ R.T * mass / 5
    return Link(name, mass, floats(rng.uniform(-0.2, 0.2, 3)), floats(J[np.triu_indices(3)]))


def random_screw(rng) -> tuple[float, ...]:
    """Return the screw of a rotation, a translation or a general motion; not of unit length."""
    shape = rng.integers(3)
    w, p = rng.uniform(0.5, 1.5) * unit(rng), rng.uniform(-0.3, 0.3, 3)
    if shape == 0:
        return floats([*w, *np.cross(p, w)])
    if shape == 1:
        return floats([0, 0, 0, *w])
    return floats([*w, *(np.cross(p, w) + rng.uniform(-0.2, 0.2) * w)])


def random_coordinate(rng, kind: str, unit_: str, middle: float | None, springs: bool) -> Coordinate:
    """Return a coordinate. About half have passive forces; they have limits where the joint supports them."""
    often = lambda high: float(rng.uniform(0, high)) if rng.random() < 0.5 else 0.0     # noqa: E731
    limits = {}
    if JOINT_TYPES[kind].bounded:
        span = 1.0 if kind in ("screws", "euler") else 2.5 if unit_ == "rad" else 0.5
        centre = middle if middle is not None else float(rng.uniform(-0.3, 0.3))
        limits = {"lower": centre - span, "upper": centre + span}
    passive = {"damping": often(0.5), "friction": often(0.3), "armature": often(0.2)} if springs else {}
    if passive.get("friction"):
        passive["friction_speed"] = 0.008 + 0.01 * passive["friction"]
    if springs and kind not in ("ball", "free"):
        passive |= {"stiffness": often(5.0), "rest": float(rng.uniform(-0.5, 0.5))}
    speed, force = float(rng.uniform(1, 5)), float(rng.uniform(1, 50))
    return Coordinate(velocity=speed, effort=force, acceleration=3.0 * speed, jerk=40.0 * speed, **limits, **passive)


def random_joint(rng, name: str, kind: str, parent: str, child: str, springs: bool = True) -> Joint:
    given, type_ = {}, JOINT_TYPES[kind]
    if len(type_.axes) == 1:
        given["axes"] = (floats(unit(rng)),)
    if len(type_.axes) == 2:
        first = unit(rng)
        second = np.cross(first, unit(rng))
        given["axes"] = (floats(first), floats(second / np.linalg.norm(second) + 0.3 * first))
    if "pitch" in type_.parameters:
        given["pitch"] = float(rng.uniform(-0.3, 0.3))
    if kind == "euler":
        given["sequence"] = SEQUENCES[rng.integers(len(SEQUENCES))]
    if kind == "screws":
        made = [random_screw(rng) for _ in range(rng.integers(1, 7))]
        given["screws"] = tuple(made[k] for k in range(len(made)) if any(made[k][:3]) or k < 3)      # at most three slides
    joint = Joint(name, kind, parent, child, random_pose(rng), **given)
    middles = [None] * len(joint.labels)
    if kind == "euler":                                # singular at the middle angle 90 degrees, or 0 where it is zxz
        middles[1] = math.pi / 2 if joint.sequence[0] == joint.sequence[2] else 0.0
    coordinates = tuple(random_coordinate(rng, kind, unit_, middle, springs)
                        for unit_, middle in zip(joint.units, middles, strict=True))
    return Joint(name, kind, parent, child, joint.origin, coordinates=coordinates, **given)


def random_robot(seed: int, n: int = 8, *, base: str = "fixed", types=MOVING, chain: bool = False, springs: bool = True,
                 grounded: bool = False, massless: bool = True) -> Robot:
    """A tree of n moving joints, with some massless links and welded links between.

    grounded: joints may hang on the world, several of them; else there is one root link (with mass).
    massless: links without mass, and links welded on others."""
    rng = np.random.default_rng(seed)
    root = [] if grounded else [random_link(rng, "root")]
    links, joints = list(root), []
    ends = [WORLD] if grounded else ["root"]           # what a joint may hang on
    kinds = list(rng.permutation([types[k % len(types)] for k in range(n)]))
    for k, kind in enumerate(kinds):
        parent = ends[-1] if chain or rng.random() < 0.4 else ends[rng.integers(len(ends))]
        links.append(random_link(rng, f"link{k}"))
        joints.append(random_joint(rng, f"joint{k}", str(kind), parent, f"link{k}", springs))
        ends.append(f"link{k}")
        if massless and rng.random() < 0.25:           # a link welded on, with mass or as a frame; the tree may continue from it
            links.append(random_link(rng, f"weld{k}") if rng.random() < 0.5 else Link(f"weld{k}"))
            joints.append(Joint(f"fixed{k}", "fixed", f"link{k}", f"weld{k}", random_pose(rng)))
            ends.append(f"weld{k}")
    links = _some_massless(rng, links, joints) if massless else tuple(links)
    return Robot(f"zoo{seed}", links, tuple(joints), base, floats(rng.uniform(-10, 10, 3)))


def _some_massless(rng, links, joints) -> tuple[Link, ...]:
    """Takes the mass of some links between two 1-DoF joints: harmless, since the body behind the second moves the first."""
    simple = {j.child for j in joints if j.type in SIMPLE}
    behind: dict[str, list[Joint]] = {}
    for joint in joints:
        behind.setdefault(joint.parent, []).append(joint)
    bare: set[str] = set()
    for link in reversed(links):
        after = [j.child for j in behind.get(link.name, []) if j.child in simple and j.child not in bare]
        if link.name in simple and after and rng.random() < 0.5:
            bare.add(link.name)
    return tuple(Link(link.name) if link.name in bare else link for link in links)


ROBOTS: dict[str, Robot] = {
    **{kind: random_robot(100 + k, 3, types=(kind,), chain=True) for k, kind in enumerate(MOVING)},
    "every kind": random_robot(1, len(MOVING), grounded=True),
    "every kind, floating": random_robot(2, len(MOVING), base="floating"),
    "every kind, a chain": random_robot(3, len(MOVING), chain=True),
    "every kind twice, floating": random_robot(4, 2 * len(MOVING), base="floating"),
    "no passive forces, floating": random_robot(5, 9, base="floating", springs=False),
    "one degree of freedom each": random_robot(6, 12, types=SIMPLE),
    "a long chain": random_robot(7, 30, types=("revolute", "prismatic", "helical"), chain=True),
    "a lone body": random_robot(8, 0, base="floating"),
}


def model_of(name: str):
    """Return the model of a robot of the zoo. A model keeps its generated code, so generic kernels get a separate model."""
    return _model_of(name, os.environ.get("LIEDYN_CODE"))


@cache
def _model_of(name, code):
    return ld.build(ROBOTS[name])


def state(model, seed: int = 0, size=()):
    """Return q, v, a, tau of a random state."""
    rng = np.random.default_rng([seed, 99])
    size = (size,) if np.isscalar(size) else tuple(size)
    return (ld.random_configuration(model, rng, size), *(rng.standard_normal((*size, model.nv)) for _ in range(3)))


robots = st.builds(random_robot, st.integers(0, 2**32 - 1), st.integers(1, 10), base=st.sampled_from(["fixed", "floating"]),
                   chain=st.booleans(), springs=st.booleans())
