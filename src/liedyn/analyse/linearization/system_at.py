"""The linear system of a scenario's problem about an instant, with the integrals of its pid laws, and the independent coordinates
there."""
from __future__ import annotations

import numpy as np

from liedyn.analyse.linearization.independent import chart
from liedyn.analyse.linearization.instant import Instant, Setup, signal_at
from liedyn.analyse.linearization.linear_system import LinearSystem
from liedyn.analyse.linearization.tangent_system import Integrals, tangent_system
from liedyn.integrators.evaluation import evaluated
from liedyn.kernels.simulation.joint_laws import COMPUTED
from liedyn.simulation.control_laws.feedback import joint_laws, wrench_laws
from liedyn.simulation.control_laws.joint_law_slopes import at_limits
from liedyn.simulation.control_laws.signal_slopes import signal_gradient
from liedyn.simulation.driven_loops import drives_at


def linear_system(setup: Setup, problem, here: Instant, inputs="*", outputs="q.*", prescribed=None,
                  independent=(), acting: bool = True) -> LinearSystem:
    """Of a `frozen` problem about an instant. prescribed: other coordinates than those of the setup; acting: whether forces
    answer to integrals."""
    prescribed = setup.prescribed if prescribed is None else prescribed
    force, push = joint_laws(problem, here.t, here.q, here.v, here.integral), wrench_laws(problem, here.t, here.q, here.v)
    drive = drives_at(problem, here.t)
    independent = chart(problem.model, here.q, here.v, prescribed, drive, independent)
    return tangent_system(setup.model, here, prescribed, problem.passive, force, push, inputs, outputs, independent, drive,
                          integrals_of(problem, here, acting))


def integrals_of(problem, here: Instant, acting: bool = True) -> Integrals:
    """How the integrals of pid laws answer to the state, and joint forces to them. An integral that rests at a limit of the force
    keeps its value, and a force that is at its limit."""
    schedule, nv, laws = problem.schedule, problem.model.nv, problem.joint_laws
    k = schedule.integral
    rate, force = np.zeros((len(k), 2 * nv)), np.zeros((nv, len(k)))
    if not len(k):
        return Integrals(k, rate, force)
    for row, i, ki in zip(rate, k, schedule.ki, strict=True):
        at_target = signal_at(problem, schedule.target[i], here) == here.q[schedule.q_of_v[i]]
        if here.integral_rate[i] != 0.0 or at_target:          # else it rests, with an error
            row += ki * signal_gradient(problem, schedule.target[i], here.t, here.q, here.v)
            row[i] -= ki
    if acting:
        force[k, np.arange(len(k))] = 1.0
        if laws is not None and (laws.acts[COMPUTED] or laws.task is not None):
            force[laws.driven] = _of_computed(problem, here)[laws.driven]          # it knows the other forces
        if laws is not None:
            force[at_limits(problem, here.t, here.q, here.v, here.integral)[1]] = 0.0
    return Integrals(k, rate, force)


def _of_computed(problem, here: Instant) -> np.ndarray:
    """(nv, m) derivative of joint forces by integrals: forces are affine in them."""
    p, nv = problem.without_stops, problem.model.nv

    def forces(x):
        return evaluated(p, here.t, here.q, here.v, integral=here.integral + x).tau.copy()
    return np.column_stack([0.5 * (forces(e) - forces(-e)) for e in np.eye(nv)[problem.schedule.integral]])


