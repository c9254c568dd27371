"""The law `computed_torque` for joints that are not elastic: its motions, and the derivative of its forces."""
from __future__ import annotations

from dataclasses import replace

import numpy as np

from liedyn.arrays import Array
from liedyn.codegen.rhs import read_signal
from liedyn.dynamics.derivatives import hybrid_dynamics_derivatives
from liedyn.errors import ScenarioError
from liedyn.kernels.simulation.joint_laws import JointLaws
from liedyn.simulation.control.control_law import LawContext, error_gains, not_controllable_error
from liedyn.simulation.name_binding import bind_joints


def bind_computed_torque(context: LawContext, laws: JointLaws) -> JointLaws:
    control, model, compiler, prescribed = context.control, context.model, context.compiler, context.always
    for rule in control.motion:
        if rule.pattern in model.joint_names:
            joint = model.joint(rule.pattern)
            if prescribed[joint.v].any():
                raise not_controllable_error(joint, rule.place)
            if joint.v.stop - joint.v.start != 1:
                raise ScenarioError(f"joint {joint.name} has {joint.v.stop - joint.v.start} coordinates: computed torque drives "
                                    "joints of one", place=rule.place)
    names = [joint.name for joint in model.joints if joint.v.stop - joint.v.start == 1 and not prescribed[joint.v.start]]
    bound = bind_joints(control.motion, model, names)
    if not bound:
        raise ScenarioError("the law drives no joint", place=control.place,
                            expected="a motion of at least one joint that is not prescribed")
    driven, signal = np.zeros(model.nv, dtype=bool), np.full(model.nv, -1)
    for name, rule in bound.items():
        k = model.v_index(name).start
        purpose = replace(compiler.joint_purpose("position", k), name=f"motion of {name}")
        driven[k], signal[k] = not laws.given[k], compiler.add(rule.value, purpose)
    return laws._replace(driven=driven, signal=signal, given=laws.given | driven, gains=error_gains(control))


def computed_torque_jacobian(problem, t: float, q, v, here, others) -> Array:
    """(nv, 2 nv) derivative of the forces that computed torque computes; others: of the forces of coordinates not driven."""
    laws, model, nv = problem.joint_laws, problem.model, problem.model.nv
    a, inputs, driven = here.a.copy(), others.copy(), np.flatnonzero(laws.driven)
    inputs[laws.given] = 0.0
    for k in driven:
        r, dr, ddr = read_signal(problem.signals, laws.signal[k], t, q, v)
        a[k] = ddr + laws.gains[1] * (dr - v[k]) + laws.gains[0] * (r - q[problem.schedule.q_of_v[k]])
        inputs[k, k], inputs[k, nv + k] = -laws.gains[0], -laws.gains[1]
    d = hybrid_dynamics_derivatives(model.spanning_tree(), q, v, a, here.tau, laws.given, passive=problem.passive).split()
    return np.hstack([d.dtau_dq, d.dtau_dv]) + d.dtau_du @ inputs
