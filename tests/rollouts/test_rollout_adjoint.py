"""Derivatives through the steps of runs: against differences of the runs, against each other, and by parameters."""
import dataclasses

import numpy as np
import pytest

import liedyn as ld
from liedyn.model.description import Coordinate, Joint, Robot
from liedyn.model.links import Link
from zoo import ROBOTS, model_of, state

DT, STEPS = 2e-3, 20
PENDULUM = "robots/double_pendulum.yaml"


def differences(f, e=1e-4):
    """Return df(0) from four values: an error of order e^4, 1e-12 here, and 1e-12 of rounding."""
    return (8 * (f(e) - f(-e)) - (f(2 * e) - f(-2 * e))) / (12 * e)


class Case:
    """Runs of a robot, a linear cost of all their states, and a direction in which all that is given moves."""

    def __init__(self, name, method, feedback=None, runs=3):
        self.model, rng = model_of(name), np.random.default_rng(0)
        self.q, self.v, _, _ = state(self.model, 3, (runs,))
        self.v = 0.3 * self.v
        self.tau = rng.standard_normal((runs, STEPS, self.model.nv))
        self.d_q, self.d_v = rng.standard_normal((2, runs, STEPS + 1, self.model.nv))
        self.x = [rng.standard_normal(y.shape) for y in (self.v, self.v, self.tau)]
        # dry friction has kinks
        self.options = {"dt": DT, "steps": STEPS, "method": method, "passive": False, "feedback": feedback}
        self.run = ld.rollout(self.model, self.q, self.v, self.tau, **self.options)

    def cost(self, run):
        return (self.d_q * ld.difference(self.model, self.run.q, run.q)).sum(axis=(1, 2)) + (self.d_v * run.v).sum(axis=(1, 2))

    def moved(self, e):
        return ld.rollout(self.model, ld.integrate(self.model, self.q, e * self.x[0]), self.v + e * self.x[1],
                          self.tau + e * self.x[2], **self.options)


@pytest.mark.parametrize("method", ["rk4", "semi_implicit"])
@pytest.mark.parametrize("name", ["universal", "ball", "free", "every kind, floating"])
def test_a_cost_changes_as_the_adjoint_says(name, method, worst):
    case = Case(name, method)
    found = case.run.adjoint(case.d_q, case.d_v)
    rate = sum((y * x).reshape(3, -1).sum(axis=1) for y, x in zip((found.q0, found.v0, found.tau), case.x, strict=True))
    expected = differences(lambda e: case.cost(case.moved(e)))
    assert worst(f"adjoint of {method}", np.abs(rate - expected).max() / np.abs(expected).max(), name) < 1e-9


def test_accelerations_that_stages_share_do_not_hide_others(worst):
    """A flywheel next to a pendulum: its acceleration is the same number at each stage of rk4, that of the pendulum is not."""
    links = tuple(Link(name, 1.0, com=(x, 0.0, 0.0), inertia=(0.1, 0, 0, 0.1, 0, 0.1))
                  for name, x in (("arm", 0.5), ("wheel", 0.0)))
    joints = tuple(Joint(f"{link.name}_joint", "continuous", "world", link.name, axes=((0.0, 1.0, 0.0),),
                         coordinates=(Coordinate(),)) for link in links)
    model, d_q = ld.build(Robot("beside", links=links, joints=joints)), np.zeros((STEPS + 1, 2))
    d_q[-1] = 1.0

    def end(tau, v=0.2):
        return ld.rollout(model, [0.3, 0.0], [v, 1.0], tau, dt=DT, steps=STEPS)
    found = end(np.zeros(2)).adjoint(d_q, parameters=["gravity.z"])
    expected = [differences(lambda e, x=x: end(e * x).q[-1].sum()) for x in np.eye(2)]
    assert worst("adjoint: decoupled coordinates", np.abs(found.tau.sum(axis=0) - expected).max() / np.abs(expected).max()) < 1e-9
    assert abs(expected[1] / ((STEPS * DT)**2 / 2 / 0.1) - 1.0) < 1e-9               # t^2 / 2 I of the flywheel
    assert abs(found.v0[0] / differences(lambda e: end(np.zeros(2), 0.2 + e).q[-1].sum()) - 1.0) < 1e-9


def test_gains_of_feedback(worst):
    rng = np.random.default_rng(1)
    model = model_of("ball")
    gain, direction = rng.uniform(0, 1, (2, 3, model.nv, 2 * model.nv))
    about = ld.random_configuration(model, rng, 3)
    case = Case("ball", "rk4", ld.Feedback(gain, about))
    found = case.run.adjoint(case.d_q, case.d_v)

    def cost(e):
        options = case.options | {"feedback": ld.Feedback(gain + e * direction, about)}
        return case.cost(ld.rollout(case.model, case.q, case.v, case.tau, **options))
    expected = differences(cost)
    rate = (found.gain * direction).sum(axis=(1, 2))
    assert worst("adjoint: gains", np.abs(rate - expected).max() / np.abs(expected).max()) < 1e-9


def test_parameters_of_the_robot(worst):
    """By differences of robots that are variants of one: all values of all parameters in one rollout."""
    kinds = ("mass", "com", "inertia", "gravity", "armature", "damping", "rest")
    robot = ROBOTS["universal"]
    for kind in ("armature", "damping", "rest"):                     # above zero, so that less is allowed
        robot = changed(robot, kind, 0.2)
    model, steps = ld.build(robot), (-2e-5, -1e-5, 1e-5, 2e-5)
    names = [name for kind, name in named(model, robot).items() if kind in kinds]
    q, v, _, tau = (x[0] for x in state(model, 3, (1,)))
    options = {"dt": DT, "steps": STEPS, "method": "semi_implicit"}
    d_v = np.random.default_rng(2).standard_normal((STEPS + 1, model.nv))
    found = ld.rollout(model, q, 0.3 * v, tau, **options).adjoint(None, d_v, names).parameters
    variants = ld.Variants([ld.build(changed(robot, kind, e)) for kind in kinds for e in steps])
    runs = ld.rollout(variants, np.broadcast_to(q, (len(variants), model.nq)), 0.3 * v, tau, **options)
    cost = (d_v * runs.v).sum(axis=(1, 2)).reshape(len(kinds), 4)
    expected = (8 * (cost[:, 2] - cost[:, 1]) - (cost[:, 3] - cost[:, 0])) / 12e-5
    for kind, a, b in zip(kinds, found, expected, strict=True):
        # rounding of the cost: 1e-15 of it over 1e-5
        assert worst("adjoint: parameters", abs(a - b) / max(abs(b), 1.0), kind) < 1e-8


def named(model, robot) -> dict[str, str]:
    last, coordinate = robot.links[-1].name, model.v_names[1]
    return {"mass": f"mass.{last}", "com": f"com.{last}.y", "inertia": f"inertia.{last}.xz", "gravity": "gravity.z",
            "armature": f"armature.{coordinate}", "damping": f"damping.{coordinate}", "rest": f"rest.{coordinate}"}


def changed(robot, kind, e):
    """The robot with another value of the parameter that `named` names; the second coordinate is one of its first joint."""
    if kind == "gravity":
        return dataclasses.replace(robot, gravity=(*robot.gravity[:2], robot.gravity[2] + e))
    if kind in ("armature", "damping", "rest"):
        first = robot.joints[0]
        second = dataclasses.replace(first.coordinates[1], **{kind: getattr(first.coordinates[1], kind) + e})
        return dataclasses.replace(robot, joints=(dataclasses.replace(
            first, coordinates=(first.coordinates[0], second, *first.coordinates[2:])), *robot.joints[1:]))
    last = robot.links[-1]
    part = {"mass": last.mass + e, "com": (last.com[0], last.com[1] + e, last.com[2]),
            "inertia": (*last.inertia[:2], last.inertia[2] + e, *last.inertia[3:])}[kind]
    return dataclasses.replace(robot, links=(*robot.links[:-1], dataclasses.replace(last, **{kind: part})))


def test_derivatives_of_the_end_are_rows_of_the_adjoint(worst):
    case = Case("ball", "semi_implicit")
    options = {name: case.options[name] for name in ("dt", "steps", "method", "passive")}
    found = ld.rollout_derivatives(case.model, case.q, case.v, case.tau, **options)

    def end(e):
        run = case.moved(e)
        return np.concatenate([ld.difference(case.model, case.run.q[:, -1], run.q[:, -1]), run.v[:, -1]], axis=1)
    rate = np.einsum("nij,nj->ni", found.q0, case.x[0]) + np.einsum("nij,nj->ni", found.v0, case.x[1]) + np.einsum(
        "nisj,nsj->ni", found.tau, case.x[2])
    expected = differences(end)
    assert worst("derivatives of the end", np.abs(rate - expected).max() / np.abs(expected).max()) < 1e-9


def test_variants_and_runs_that_diverge(worst):
    model = ld.load(PENDULUM)
    q, v, tau = np.zeros((3, 2)), np.ones((3, 2)), np.zeros((3, STEPS, 2))
    tau[1, 3] = 1e300
    options = {"dt": DT, "steps": STEPS, "method": "semi_implicit"}
    d_v = np.ones((3, STEPS + 1, 2))
    found = ld.rollout(model, q, v, tau, **options).adjoint(None, d_v)
    alone = ld.rollout(model, q[0], v[0], tau[0], **options).adjoint(None, d_v[0])
    assert np.isnan(found.tau[1]).all() and np.isnan(found.q0[1]).all()
    assert np.array_equal(found.tau[2], alone.tau) and np.array_equal(found.q0[0], alone.q0)
    variants = ld.Variants([model, ld.load(PENDULUM, gravity=(0, 0, -5.0)), model])
    heavy_run = ld.rollout(variants, q, v, **options)
    heavy = heavy_run.adjoint(None, d_v)
    with pytest.raises(ld.UsageError, match="derivatives with respect to parameters require one model, got variants"):
        heavy_run.adjoint(None, d_v, ["mass.upper"])
    assert worst("adjoint: variants", np.abs(heavy.q0[2] - alone.q0).max()) < 1e-14
    assert np.abs(heavy.q0[1] - alone.q0).max() > 1e-4
    several = ld.rollout(variants, np.broadcast_to(q, (2, 3, 2)), v, **options).adjoint(None, d_v)
    assert np.array_equal(several.q0, np.stack([heavy.q0] * 2))


@pytest.mark.parametrize(("options", "arguments", "error", "message"), [
    ({"every": 2}, {}, ld.UsageError, "the adjoint requires the state of each step: expected every=1, got every=2"),
    ({"tau": lambda t, q, v: v}, {}, ld.UsageError, "the adjoint has no derivatives of a policy; use a Feedback"),
    ({}, {"d_q": np.zeros((3, 2))}, ld.ShapeError,
     r"d_q has the wrong shape: expected \(21, 2\), for each step and the end, got \(3, 2\)"),
    ({}, {"parameters": ["mass.uper"]}, ld.NameLookupError, "no parameter 'mass.uper'; did you mean 'mass.upper'"),
    ({}, {"parameters": ["origin.elbow.vx"]}, ld.UsageError, "no derivative with respect to 'origin.elbow.vx': it moves a joint"),
])
def test_what_is_refused(options, arguments, error, message):
    run = ld.rollout(ld.load(PENDULUM), [0.1, 0.0], [0.0, 0.0], dt=DT, steps=STEPS, **options)
    with pytest.raises(error, match=message):
        run.adjoint(**arguments)
