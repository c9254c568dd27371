"""Chains of revolute joints: cost against length, and one rk4 step against MuJoCo's."""
from __future__ import annotations

import numpy as np

import liedyn as ld
from benchmarks.measure import Pair, seconds, side_by_side
from liedyn.integrators.problem import InitialValueProblem, Options
from liedyn.integrators.solve import solve
from liedyn.kernels.simulation.signals import CONSTANT, TORQUE, InputSchedule, Signals
from liedyn.model.description import Coordinate, Joint, Robot
from liedyn.model.links import Link, Pose

LENGTH, MASS, RADIUS = 0.2, 0.5, 0.02        # m, kg, m: rods along z, joint axes x and y in turn


def chain(n: int) -> Robot:
    across = MASS * (3 * RADIUS**2 + LENGTH**2) / 12
    links = tuple(Link(f"link{k}", MASS, (0.0, 0.0, -LENGTH / 2), (across, 0.0, 0.0, across, 0.0, MASS * RADIUS**2 / 2))
                  for k in range(n))
    joints = tuple(Joint(f"joint{k}", "revolute", f"link{k - 1}" if k else "world", f"link{k}",
                         Pose(translation=(0.0, 0.0, -LENGTH if k else 0.0)), ((1.0, 0.0, 0.0) if k % 2 else (0.0, 1.0, 0.0),),
                         coordinates=(Coordinate(-10.0, 10.0, 100.0, 100.0),)) for k in range(n))
    return Robot("chain", links, joints)


def mjcf(n: int) -> str:
    """Return the same chain for MuJoCo, without contacts."""
    across = MASS * (3 * RADIUS**2 + LENGTH**2) / 12
    body = ""
    for k in reversed(range(n)):
        axis = "1 0 0" if k % 2 else "0 1 0"
        body = (f'<body pos="0 0 {-LENGTH if k else 0}"><joint type="hinge" axis="{axis}"/>'
                f'<inertial pos="0 0 {-LENGTH / 2}" mass="{MASS}" diaginertia="{across} {across} {MASS * RADIUS**2 / 2}"/>'
                f"{body}</body>")
    return ('<mujoco><option integrator="RK4" timestep="0.001" gravity="0 0 -9.81">'
            f'<flag contact="disable" constraint="disable"/></option><worldbody>{body}</worldbody></mujoco>')


def microseconds_per_body(lengths=(10, 30, 100, 300, 1000), repeats: int = 15) -> dict[str, list[tuple[int, float, float]]]:
    """{kind of number: (bodies, us a body and state, the same against the shortest chain)} of batch forward dynamics on Lanes
    and of the evaluations of an rk4 run on float64. The lengths take turns, so that a slow moment of the machine strikes all."""
    out = {}
    for kind, prepare in (("Lanes", _batch), ("float64", _run)):
        runs = [prepare(n) for n in lengths]
        for function, _ in runs:
            function()
        rounds = np.array([[seconds(function) / bodies for function, bodies in runs] for _ in range(repeats)])
        ratios = np.median(rounds / rounds[:, :1], axis=0)
        out[kind] = list(zip(lengths, np.median(rounds, axis=0) * 1e6, ratios, strict=True))
    return out


def _batch(n: int):
    """Return a function, and the number of bodies that it computes."""
    model, states = ld.build(chain(n)), max(8, 40_000 // n // 8 * 8)
    q, v, tau = np.random.default_rng(0).uniform(-1, 1, (3, states, n))
    return lambda: ld.forward_dynamics(model, q, v, tau), states * n


def _run(n: int):
    model, steps = ld.build(chain(n)), max(2, 5000 // n)
    problem, times = free_motion(model, np.zeros(n), np.zeros(n)), np.array([0.0, steps * 1e-4])
    options = Options("rk4", 1e-4)
    return lambda: solve(problem, times, options)[0].q, solve(problem, times, options)[1].evaluations * n


def free_motion(model, q, v) -> InitialValueProblem:
    """Return a problem without motors and forces."""
    nv, none = model.nv, np.zeros(0)
    ints = np.zeros(0, dtype=np.int64)
    schedule = InputSchedule(np.full(nv, TORQUE, dtype=np.int64), np.zeros(nv, dtype=np.int64), np.full(nv, -1, dtype=np.int64),
                        *np.zeros((2, nv)), np.arange(nv, dtype=np.int64), ints, ints, none, none, ints, *np.zeros((4, 0)))
    signals = Signals(np.array([CONSTANT]), np.array([0]), np.array([1]), none, none, ints, np.zeros(1))
    return InitialValueProblem(model=model, schedule=schedule, signals=signals, q=q, v=v, stack_size=3)


def rk4_step(n: int, steps: int = 1000, repeats: int = 11) -> tuple[float, float, Pair]:
    """Return microseconds per step of liedyn and of MuJoCo's RK4, and the pair. Both start from the same state and must agree."""
    import mujoco
    model = ld.build(chain(n))
    q0, v0 = np.full(n, 0.1), np.full(n, 0.2)
    problem, times = free_motion(model, q0, v0), np.array([0.0, steps * 1e-3])
    theirs = mujoco.MjModel.from_xml_string(mjcf(n))
    data = mujoco.MjData(theirs)

    def our_run():
        return solve(problem, times, Options("rk4", 1e-3))[0].q[-1]

    def their_run():
        data.time, data.qpos[:], data.qvel[:] = 0.0, q0, v0
        mujoco.mj_step(theirs, data, nstep=steps)
        return data.qpos.copy()

    difference = np.abs(our_run() - their_run()).max()
    assert difference < 1e-6, f"chain of {n}: differs from MuJoCo by {difference:.1e}"
    pair = side_by_side(our_run, their_run, repeats)
    return pair.ours / steps * 1e6, pair.theirs / steps * 1e6, pair
