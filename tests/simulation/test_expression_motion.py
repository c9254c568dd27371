"""Derivatives of an event's expression along the flow: each operand, each kind of joint, against differences along the motion."""
from types import SimpleNamespace

import numpy as np
import pytest

import liedyn as ld
from liedyn.io.scenarios.scenario import Expression
from liedyn.kernels.simulation.signals import TORQUE
from liedyn.simulation.expression_motion import expression_motion
from liedyn.simulation.name_binding import v_to_q_indices
from liedyn.simulation.signals.signal_compiler import SignalCompiler, SignalPurpose
from zoo import model_of, state

H = 2e-3                    # s: the five-point formulas leave H^4 times fifth and sixth derivatives, and 1e-16 / H^2


class Problem:
    def __init__(self, model, text: str):
        table = SignalCompiler(model, 1.0, v_to_q_indices(model))
        self.k = table.add_program(table.compile(Expression(text), SignalPurpose("test", forces=True)), SignalPurpose("test"))
        self.model, self.signals = model, table.arrays(np.zeros(0), np.zeros(0))
        self.schedule = SimpleNamespace(level=np.full(model.nv, TORQUE), q_of_v=np.full(model.nv, -1))


def path(model, q, v, a, s, steps=40):
    """Return the configuration if the components of v change at constant rates, by Gauss points of order 4 (Magnus)."""
    h = s / steps
    for n in range(steps):
        one, other = (v + a * (n + c) * h for c in (0.5 - np.sqrt(3) / 6, 0.5 + np.sqrt(3) / 6))
        q = ld.integrate(model, q, h * (one + other) / 2 + bracket(model, one, other) * np.sqrt(3) / 12 * h * h)
    return q


def bracket(model, one, other):
    """Return the bracket of twists of ball and free joints: [V_other, V_one] of right-multiplied exponentials, up to sign."""
    out = np.zeros_like(one)
    for joint in model.joints:
        i = joint.v.start
        if joint.type in ("ball", "free"):
            out[i:i + 3] = np.cross(one[i:i + 3], other[i:i + 3])
        if joint.type == "free":
            out[i + 3:i + 6] = np.cross(one[i:i + 3], other[i + 3:i + 6]) + np.cross(one[i + 3:i + 6], other[i:i + 3])
    return out


@pytest.mark.parametrize("name", ["every kind, floating", "every kind"])
@pytest.mark.parametrize("text", [
    "x({link})", "z({link}, 0.1, -0.2, 0.3)", "vy({link}, 0.1, -0.2, 0.3)", "wx({link})", "q({joint})", "v({joint})",
    "sin(3*q({joint}))*z({link}) - 2*t**2", "z({link}, 0, 1, 0)**2/(2 + x({link})**2)",
    "q({free}.px)", "q({free}.qx) + 2*q({free}.qw)", "q({ball}.qy)*q({ball}.qz)"])
def test_derivatives_are_those_along_the_motion(name, text, worst):
    model = model_of(name).spanning_tree()
    q, v, a, _ = state(model, 3)
    named = {kind: next(joint.name for joint in model.joints if joint.type == kind) for kind in ("revolute", "free", "ball")}
    problem = Problem(model, text.format(link=model.link_names[-1], joint=named["revolute"], **named))

    def value(s):
        return expression_motion(problem, problem.k, s, path(model, q, v, a, s), v + a * s).value

    back, before, now, after, ahead = (value(n * H) for n in (-2, -1, 0, 1, 2))
    found = expression_motion(problem, problem.k, 0.0, q, v, a)
    rate = (back - ahead + 8 * (after - before)) / (12 * H)
    curvature = (16 * (after + before) - ahead - back - 30 * now) / (12 * H * H)
    scale = max(1.0, abs(rate), abs(curvature))
    assert worst("rate of an expression", abs(found.rate - rate) / scale, text) < 1e-7
    if np.isnan(found.curvature):
        assert text.startswith(("v", "wx"))                    # the rate of an acceleration is not known
    else:
        assert worst("curvature of an expression", abs(found.curvature - curvature) / scale, text) < 1e-6
    assert abs(found.value - now) <= found.bound < 1e-12 * max(1.0, found.size)


def test_forces_have_no_known_derivatives():
    model = model_of("revolute")
    q, v, a, tau = state(model, 3)
    problem = Problem(model, f"tau({model.joint_names[0]})")
    found = expression_motion(problem, problem.k, 0.0, q, v, a, tau)
    assert found.value == tau[0] and np.isnan(found.rate) and np.isnan(found.curvature)
