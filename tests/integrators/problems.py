"""Initial value problems for the integrators' tests."""
import numpy as np

import liedyn as ld
from liedyn.integrators.problem import InitialValueProblem
from liedyn.kernels.simulation.signals import CONSTANT, TORQUE, InputSchedule, Signals
from liedyn.model.description import Coordinate, Joint, Robot
from liedyn.model.links import Link, Pose


def free_motion(model, q, v) -> InitialValueProblem:
    """Return a problem without motors and external forces."""
    from liedyn.simulation.name_binding import v_to_q_indices
    nv, none, ints = model.nv, np.zeros(0), np.zeros(0, dtype=np.int64)
    schedule = InputSchedule(np.full(nv, TORQUE, dtype=np.int64), np.zeros(nv, dtype=np.int64), np.full(nv, -1, dtype=np.int64),
                        np.zeros(nv), np.zeros(nv), v_to_q_indices(model), ints, ints, none, none, ints, none, none, none, none)
    signals = Signals(np.array([CONSTANT]), np.array([0]), np.array([1]), none, none, ints, np.zeros(1))
    return InitialValueProblem(model=model, schedule=schedule, signals=signals, q=np.array(q, dtype=float),
                               v=np.array(v, dtype=float), stack_size=3)


def link(name, mass=1.0, com=(0.05, -0.02, 0.1), inertia=(0.05, 0.0, 0.0, 0.08, 0.0, 0.1)) -> Link:
    return Link(name, mass, com, inertia)


def floating_robot(gravity=(0.0, 0.0, -9.81)):
    """Return a free base with a revolute and a ball joint: every kind of chart."""
    limits = (Coordinate(-10.0, 10.0, 50.0, 50.0),)
    joints = (Joint("arm", "revolute", "body", "arm", Pose(translation=(0.2, 0.0, 0.1)), ((0.0, 1.0, 0.0),), coordinates=limits),
              Joint("wrist", "ball", "arm", "hand", Pose(translation=(0.0, 0.0, 0.3))))
    return ld.build(Robot("floating", (link("body", 2.0), link("arm"), link("hand", 0.5)), joints, base="floating",
                          gravity=gravity))


def turning_state(model):
    """Return a state away from the origin, with velocities at which rotations matter."""
    q = model.neutral()
    q[:3] = 0.3, -0.2, 1.0
    u = np.array([0.2, -0.4, 0.1, 0.8])
    q[3:7] = u / np.linalg.norm(u)
    q[7] = 0.4
    v = np.array([1.5, -2.0, 1.0, 0.3, 0.1, -0.2, 2.0, -1.0, 1.5, 2.5])
    return q, v


def torque_free_body(inertia=(0.05, 0.0, 0.0, 0.10, 0.0, 0.13)):
    return ld.build(Robot("body", (Link("body", 4.2, (0.0, 0.0, 0.0), inertia),), (), base="floating", gravity=(0.0, 0.0, 0.0)))
