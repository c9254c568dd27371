"""Mechanisms with constraint equations that consist of rounding or that depend on each other, anywhere in the world and in any
unit of length; and their motion by dense equations, with the rank that is known of each."""
from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import NamedTuple

import numpy as np
from scipy.spatial.transform import Rotation

import liedyn as ld
from liedyn.model.description import WORLD, Joint, Loop, Robot
from liedyn.model.links import Link, Pose

X, Y, Z = ((1.0, 0.0, 0.0),), ((0.0, 1.0, 0.0),), ((0.0, 0.0, 1.0),)
GRAVITY = np.array([0.4, -3.0, -9.0])


@dataclass(frozen=True)
class Place:
    """Where the world stands, and the metre's length in units of length."""

    rpy: tuple[float, float, float] = (0.0, 0.0, 0.0)
    xyz: tuple[float, float, float] = (0.0, 0.0, 0.0)
    unit: float = 1.0

    @property
    def rotation(self) -> np.ndarray:
        return Rotation.from_euler("xyz", self.rpy).as_matrix()


HOME = Place()
PLACES = {"home": HOME, "near": Place((0.4, 0.3, 0.2), (0.3, 0.2, 0.1)), "tilted": Place((1.1, -0.7, 2.2), (5.0, 2.0, -3.0)),
          "millimetres": Place((0.4, 0.3, 0.2), (0.3, 0.2, 0.1), 1e3),
          "kilometres": Place((-1.0, 0.2, 0.5), (0.7, 0.1, 0.1), 1e-3),
          "a kilometre away": Place((0.3, 2.0, -0.4), (900.0, -300.0, 200.0))}


class Case(NamedTuple):
    """A mechanism at a closed configuration: the rank of its equations there, velocity and generalized forces, and whether each
    coordinate slides."""

    robot: Robot
    q: tuple[float, ...]
    rank: int
    v: tuple[float, ...]
    tau: tuple[float, ...]


def body(name: str, mass: float, com, inertia) -> Link:
    xx, yy, zz = inertia
    return Link(name, mass, tuple(com), (xx, 0.0, 0.0, yy, 0.0, zz))


def at(xyz=(0.0, 0.0, 0.0), rpy=(0.0, 0.0, 0.0)) -> Pose:
    return Pose.from_xyz_rpy(xyz, rpy)


def cardan(angle: float) -> Case:
    """Return two grounded shafts at 30 degrees: one of four equations is not zero."""
    links = body("a", 1.0, (0, 0, 0), (0.002, 0.01, 0.01)), body("b", 1.0, (0, 0, 0), (0.003, 0.01, 0.01))
    joints = (Joint("a", "continuous", WORLD, "a", at(), X), Joint("b", "continuous", WORLD, "b", at(rpy=(0, 0, np.pi / 6)), X))
    robot = Robot("cardan", links, joints, loops=(Loop("cross", "universal", "a", "b", axes=(Y[0], Z[0])),))
    other = np.arctan2(np.sin(angle), np.cos(angle) * np.cos(np.pi / 6))
    return Case(robot, (angle, float(other)), 1, (3.0, 2.0), (1.0, 0.0))


def coaxial(kind: str, difference: float) -> Case:
    """Return two links on one axis that are connected at their tips."""
    links = body("a", 1.2, (0.1, 0.05, -0.4), (0.03, 0.02, 0.01)), body("b", 0.7, (-0.05, -0.1, -0.6), (0.02, 0.05, 0.01))
    joints = Joint("p", "revolute", WORLD, "a", at(), Y), Joint("r", "revolute", WORLD, "b", at(), Y)
    loop = Loop("tie", kind, "a", "b", at((0, 0, -1.0)), at((0, 0, -1.0)), Y if kind == "revolute" else ())
    return Case(Robot("coaxial", links, joints, loops=(loop,)), (0.3, 0.3 + difference), 1, (1.0, 0.5), (0.3, 0.1))


@cache
def spherical(turn: float) -> Case:
    """Return a mechanism with all axes through one point, on a turntable: two of five equations are independent."""
    links = body("table", 2.0, (0.1, 0, 0), (0.1, 0.1, 0.1)), *(body(f"L{i}", 1.0, (0.2, 0.1, 0.05), (0.02, 0.03, 0.04))
                                                                 for i in range(4))
    centre, turns = (0.3, 0.2, 0.5), ((1.0, 0.3, 0.2), (0.9, -0.2, 0.4), (0.8, 0.5, -0.3))
    joints = (Joint("turn", "continuous", WORLD, "table", at(), Z), Joint("j0", "continuous", "table", "L0",
              at(centre, (0.3, 0.2, 0.1)), Z), *(Joint(f"j{i + 1}", "continuous", f"L{i}", f"L{i + 1}", at(rpy=rpy), Z)
                                                 for i, rpy in enumerate(turns)))
    robot = Robot("spherical", links, joints,
                  loops=(Loop("pin", "revolute", "table", "L3", at(centre, (1.2, 0.7, 0.5)), at(), X),))
    q = ld.assemble(ld.build(robot), [turn, 0.5, 0.4, 0.3, 0.2], fixed=["turn"]).q
    return Case(robot, tuple(map(float, q)), 2, (0.7, 1.0, 0.5, -0.3, 0.2), (1.0,) * 5)


def parallelogram(angle: float) -> Case:
    """Return a parallelogram of 1, 2, 1 m. It is flat at 0, where one of five equations is independent; elsewhere two."""
    links = tuple(body(name, 1.0, (x / 2, 0, 0), (0.001, 0.08, 0.08)) for name, x in (("a", 1.0), ("c", 2.0), ("b", 1.0)))
    joints = (Joint("ja", "continuous", WORLD, "a", at(), Z), Joint("jc", "continuous", "a", "c", at((1.0, 0, 0)), Z),
              Joint("jb", "continuous", WORLD, "b", at((2.0, 0, 0)), Z))
    robot = Robot("parallelogram", links, joints, loops=(Loop("pin", "revolute", "c", "b", at((2.0, 0, 0)), at((1.0, 0, 0)), Z),))
    return Case(robot, (angle, -angle, angle), 1 if angle == 0.0 else 2, (1.0, -1.0, 1.0), (0.3, 0.0, 0.0))


def slider_crank(crank: float) -> Case:
    """Return a slider-crank with crank 0.5 and rod 1: dead centres at 0 and pi."""
    links = (body("a", 1.0, (0.25, 0, 0), (0.001, 0.02, 0.02)), body("c", 1.0, (0.5, 0, 0), (0.001, 0.08, 0.08)),
             body("s", 0.5, (0, 0, 0), (0.01, 0.01, 0.01)))
    joints = (Joint("ja", "continuous", WORLD, "a", at(), Z), Joint("jc", "continuous", "a", "c", at((0.5, 0, 0)), Z),
              Joint("js", "prismatic", WORLD, "s", at(), X))
    robot = Robot("slider", links, joints, loops=(Loop("pin", "revolute", "c", "s", at((1.0, 0, 0)), at(), Z),))
    slider = 1.5 if crank == 0.0 else 0.5
    return Case(robot, (crank, -crank, slider), 2, (1.0, -slider, 0.0), (0.3, 0.0, 0.0))


@cache
def five_bar() -> Case:
    """Return a planar five-bar closed by a ball joint (two degrees of freedom): the equation across the plane is rounding."""
    links = tuple(body(name, 1.0 + 0.2 * i, (0.2, 0.01 * i, 0.03), (0.01, 0.02 + 0.01 * i, 0.02))
                  for i, name in enumerate("abcd"))
    joints = (Joint("p", "continuous", WORLD, "a", at(), Y),
              Joint("k", "continuous", "a", "b", at((0.4, 0, 0)), Y),
              Joint("r", "continuous", WORLD, "c", at((0.5, 0, 0.1)), Y), Joint("s", "continuous", "c", "d", at((0.45, 0, 0)), Y))
    robot = Robot("five_bar", links, joints, loops=(Loop("pin", "ball", "b", "d", at((0.6, 0, 0)), at((0.55, 0, 0))),))
    q = ld.assemble(ld.build(robot), [-2.0, 1.2, -1.0, -1.1]).q
    return Case(robot, tuple(map(float, q)), 2, (1.0, 0.3, -0.4, 0.2), (0.1, 0.2, -0.3, 0.0))


CASES = {"five-bar": five_bar(), "Cardan joint, 0.1 rad": cardan(0.1), "Cardan joint, 1.5 rad": cardan(1.5),
         "Cardan joint, 2.7 rad": cardan(2.7),
         "coaxial, weld": coaxial("weld", 1e-14), "coaxial, ball": coaxial("ball", 1e-12),
         "coaxial, revolute": coaxial("revolute", 0.0), "spherical, 0": spherical(0.0), "spherical, 1.3 rad": spherical(1.3),
         "parallelogram, flat": parallelogram(0.0), "parallelogram": parallelogram(0.4), "slider-crank": slider_crank(0.0),
         "slider-crank, inner": slider_crank(np.pi)}


# anywhere ---------------------------------------------------------------------------------------------------------
class Placed(NamedTuple):
    """A case at a place. lengths: (nv,) of one unit of each coordinate, the unit of length where it slides; rows: (m,) the same
    of residuals."""

    model: ld.Model
    rank: int
    q: np.ndarray
    v: np.ndarray
    tau: np.ndarray
    lengths: np.ndarray
    rows: np.ndarray
    unit: float


@cache
def placed(name: str, place: str, code: str = "auto") -> Placed:
    """code: models keep what they were called with."""
    case, where = CASES[name], PLACES[place]
    model = ld.build(moved(case.robot, where))
    lengths = np.where(np.array(model.v_units) == "m", where.unit, 1.0)
    rows = np.where([unit == "m" for one in model.constraints for unit in one.units], where.unit, 1.0)
    q, v, tau = (np.array(x) for x in (case.q, case.v, case.tau))
    return Placed(model, case.rank, q * lengths, v * lengths, tau * where.unit**2 / lengths, lengths, rows, where.unit)


def moved(robot: Robot, where: Place) -> Robot:
    """Return the robot and its gravity at another place."""
    R, p, unit = where.rotation, np.array(where.xyz), where.unit

    def pose(given: Pose, of_world: bool) -> Pose:
        rotation, x = np.reshape(given.rotation, (3, 3)), np.array(given.translation)
        if of_world:
            rotation, x = R @ rotation, R @ x + p
        return Pose(tuple(rotation.ravel().tolist()), tuple((unit * x).tolist()))

    links = tuple(replace(one, com=tuple(unit * x for x in one.com), inertia=tuple(unit**2 * x for x in one.inertia))
                  for one in robot.links)
    joints = tuple(replace(one, origin=pose(one.origin, one.parent == WORLD)) for one in robot.joints)
    loops = tuple(replace(one, pose_a=pose(one.pose_a, one.a == WORLD), pose_b=pose(one.pose_b, one.b == WORLD))
                  for one in robot.loops)
    return replace(robot, links=links, joints=joints, loops=loops, gravity=tuple((unit * R @ GRAVITY).tolist()))


# dense equations --------------------------------------------------------------------------------------------------
class Dense(NamedTuple):
    """Equations of the known rank, in units of length that make them of the order of one."""

    M: np.ndarray
    A: np.ndarray         # (rank, nv) a basis of the equations
    U: np.ndarray         # (m, rank) the equations are U A except for rounding


def dense(case: Placed) -> Dense:
    A = ld.constraint_jacobian(case.model, case.q) * case.lengths / case.rows[:, None]
    U, s, V = np.linalg.svd(A)
    r = case.rank
    assert s[r - 1] > 1e-3 and (len(s) == r or s[r] < 1e-8)                   # the rank is what it is said to be
    M = ld.mass_matrix(case.model.spanning_tree(), case.q) * np.outer(case.lengths, case.lengths) / case.unit**2
    return Dense(M, s[:r, None] * V[:r], U[:, :r])


def motion(case: Placed, v) -> tuple[np.ndarray, np.ndarray]:
    """Return accelerations and generalized forces A^T lambda in the units of the model."""
    d, model = dense(case), case.model
    tau, b = ((case.lengths * x) / case.unit**2 for x in (case.tau, ld.bias_force(model, case.q, v)))
    gamma = d.U.T @ (ld.constraint_bias(model, case.q, v) / case.rows)
    along = np.linalg.solve(d.M, d.A.T)
    free = np.linalg.solve(d.M, tau - b)
    p = np.linalg.solve(d.A @ along, -gamma - d.A @ free)
    return case.lengths * (free + along @ p), case.unit**2 / case.lengths * (d.A.T @ p)


def least_multipliers(case: Placed, force) -> np.ndarray:
    """Return the multipliers of minimum Euclidean norm with A^T lambda = force."""
    A = ld.constraint_jacobian(case.model, case.q)
    U, s, V = np.linalg.svd(A)
    r = case.rank
    return U[:, :r] @ ((V[:r] @ force) / s[:r])


def projected(case: Placed, v, rows=None, values=None) -> np.ndarray:
    """Return the velocity nearest to v in the metric of M that satisfies the constraints, and rows (k, nv) with their values."""
    d, x = dense(case), v / case.lengths
    G, b = d.A, np.zeros(case.rank)
    if rows is not None:
        G, b = np.vstack([G, rows * case.lengths]), np.append(b, values)
    along = np.linalg.solve(d.M, G.T)
    return case.lengths * (x + along @ np.linalg.solve(G @ along, b - G @ x))


def wrist():
    """Return three joints that intersect: singular where the second is at a right angle."""
    links = [Link("a", 0.0), Link("b", 0.0), Link("hand", 1.0, com=[0.0, 0.1, 0.2], inertia=[0.03, 0.02, 0.01])]
    joints = [Joint(f"j{k}", "continuous", parent, child, axis=axis) for k, (parent, child, axis) in enumerate(
        [("world", "a", [0, 1, 0]), ("a", "b", [1, 0, 0]), ("b", "hand", [0, 0, 1])])]
    return ld.build(Robot("wrist", links, joints))
