"""The variational method: the discrete Euler-Lagrange equations themselves, order, momenta, energy over a long run, what it
refuses."""
import numpy as np
import pytest

import liedyn as ld
from liedyn.errors import ComputationError, ScenarioError
from liedyn.integrators.problem import Options
from liedyn.integrators.solve import solve
from liedyn.simulation.preparation import prepare

STEP = 2e-3
TREE = """base: floating
gravity: [0.5, -1, -9.81]
links:
  body: {mass: 2, com: [0.01, 0, 0], inertia: [0.03, 0.02, 0.05]}
  arm: {mass: 0.5, com: [0, 0, -0.2], inertia: [0.01, 0.01, 0.002]}
  hand: {mass: 0.2, com: [0, 0.02, -0.05], inertia: [0.001, 0.002, 0.0015]}
  tip: {mass: 0.1, com: [0, 0, 0.1], inertia: [0.001, 0.001, 0.0005]}
joints:
  swing: {type: revolute, parent: body, child: arm, axis: [0, 1, 0], origin: {xyz: [0.1, 0, -0.1]}, stiffness: 2, armature: 0.01,
          limits: {lower: -9, upper: 9}}
  twist: {type: ball, parent: arm, child: hand, origin: {xyz: [0, 0, -0.4]}}
  slide: {type: helical, parent: hand, child: tip, axis: [1, 0, 0], pitch: 0.05, stiffness: 1}
"""
MOVING = {"v": {"base": [1, 2, -3, 0.5, 0, 2], "swing": 2, "twist": [3, -1, 4], "slide": 1}}
FORCED = {"joints": {"swing": {"torque": "0.5*sin(3*t) - 0.1*v(slide)"}},
          "external_forces": [{"link": "tip", "frame": "local_world_aligned", "wrench": [0.01, 0, 0, 0, "0.3*cos(5*t)", 0.1]}]}


def problem_of(scenario, robot=TREE, **more):
    given = {"initial": MOVING, "integrator": {"method": "variational", "step": STEP}} | more
    return prepare(scenario(robot, **given), ()).problem


def motion(problem, times, step=STEP):
    return solve(problem, times, Options("variational", step=step))[0]


def discrete_lagrangian(model, q0, q1, h):
    """Return L_d from public functions: the energy at both ends with the constant velocity between them."""
    v = ld.difference(model, q0, q1) / h
    (k0, p0), (k1, p1) = (ld.energy(model, q, v) for q in (q0, q1))
    return 0.5 * h * (k0 - p0 + k1 - p1)


def test_discrete_euler_lagrange_equations(scenario, worst):
    """D_2 L_d(q_0, q_1) + D_1 L_d(q_1, q_2) = 0 along a motion without forces, by Richardson's differences of L_d."""
    problem = problem_of(scenario)
    model, q = problem.model, motion(problem, STEP * np.arange(20)).q
    units, errors = np.eye(model.nv), []
    for q0, q1, q2 in zip(q[3:], q[4:], q[5:], strict=False):
        def action(e, q0=q0, q1=q1, q2=q2):
            moved = ld.integrate(model, np.broadcast_to(q1, (model.nv, model.nq)), e * units)
            return (discrete_lagrangian(model, np.broadcast_to(q0, moved.shape), moved, STEP)
                    + discrete_lagrangian(model, moved, np.broadcast_to(q2, moved.shape), STEP))
        slope = [(action(e) - action(-e)) / (2 * e) for e in (2e-5, 1e-5)]
        momentum = ld.mass_matrix(model, q1) @ (ld.difference(model, q1, q2) / STEP)
        errors.append(np.abs((4 * slope[1] - slope[0]) / 3).max() / np.abs(momentum).max())
    assert worst("variational: discrete Euler-Lagrange equations", max(errors)) < 1e-9


def test_second_order_against_another_method(scenario):
    problem = problem_of(scenario, **FORCED)
    times = np.linspace(0, 0.4, 5)
    exact = solve(problem, times, Options("dop853", rtol=1e-12, atol=1e-13))[0]
    off = []
    for step in (4e-3, 2e-3, 1e-3):
        found = motion(problem, times, step)
        off.append([np.abs(getattr(found, name) - getattr(exact, name)).max() for name in ("q", "v", "supplied_energy")])
    assert np.all(np.abs(np.log2(np.array(off[:-1]) / off[1:]) - 2) < 0.1)


def test_momenta_of_symmetries_are_kept(scenario, worst):
    """Linear and angular momentum in the world of a free robot without gravity are constant."""
    problem = problem_of(scenario, TREE.replace("[0.5, -1, -9.81]", "[0, 0, 0]"))
    found = motion(problem, np.linspace(0, 4, 9), 4e-3)
    momentum = ld.momentum(problem.model, found.q, found.v)
    assert worst("variational: momentum of a free robot", np.abs(momentum - momentum[0]).max() / np.abs(momentum).max()) < 1e-11


def test_energy_stays_near_its_value(scenario):
    """Twenty thousand steps of a chaotic motion have no drift, whereas the same steps of rk4 have a large one."""
    moving = {"v": {"swing": 9, "twist": [3, -1, 4], "slide": 1}}
    problem = problem_of(scenario, TREE.replace("floating", "fixed"), initial=moving)
    times, drift = np.linspace(0, 200, 4001), {}
    for method in ("variational", "rk4"):
        found = solve(problem, times, Options(method, step=1e-2))[0]
        energy = sum(ld.energy(problem.model, found.q, found.v))
        drift[method] = abs(np.median(energy[-1000:]) - np.median(energy[:1000])) / abs(energy[0])
    assert drift["variational"] < 0.03 and drift["rk4"] > 0.3


def test_what_it_does_not_know_is_refused(scenario):
    with pytest.raises(ScenarioError, match=r"variational does not support prescribed motions: expected another "
                                            r"integrator\.method, got 'swing'"):
        problem_of(scenario, joints={"swing": {"prescribe": {"acceleration": 0}}})
    with pytest.raises(ScenarioError, match="contacts are not supported by variational"):
        problem_of(scenario, contacts={"links": {"tip": {"sphere": {"radius": 0.02}}}})


def test_a_step_without_a_solution_is_an_error(scenario):
    problem = problem_of(scenario, joints={"swing": {"torque": {"pd": {"kp": 0, "kd": 1000, "target": 0}}}})
    with pytest.raises(ComputationError, match=r"variational did not converge in the step from t = 0 s$") as caught:
        motion(problem, np.array([0.0, 0.1]), 2e-2)
    assert caught.value.depends_on_method and caught.value.at == 0.0


@pytest.mark.parametrize("ratio, converges", [(0.1, True), (0.3, True), (0.6, False)])
def test_feedback_that_slows_the_iteration_costs_no_accuracy(scenario, ratio, converges):
    """The matrix of the iteration is without the feedback, so each iteration reduces the error by this ratio, h kd / 2 m. The
    momentum of a slider under linear feedback is multiplied by (1 - ratio) / (1 + ratio) in each step."""
    slider = ("gravity: [0, 0, 0]\nlinks: {a: {mass: 2}}\n"
              "joints: {x: {type: prismatic, parent: world, child: a, axis: [1, 0, 0], limits: {lower: -9, upper: 9}}}\n")
    step = 0.0625                                                 # the sum of steps is exact
    feedback = {"x": {"torque": {"pd": {"kp": 0, "kd": 2 * 2.0 * ratio / step, "target": 0}}}}
    problem = problem_of(scenario, slider, initial={"v": {"x": 3.0}}, joints=feedback)
    if converges:
        v = motion(problem, step * np.arange(5), step).v[:, 0]
        np.testing.assert_allclose(v, 3.0 * ((1 - ratio) / (1 + ratio)) ** np.arange(5), rtol=1e-12)
    else:                                                         # after the iterations that are allowed, 0.6^30 = 2e-7 remains
        with pytest.raises(ComputationError, match="variational did not converge"):
            motion(problem, step * np.arange(5), step)
