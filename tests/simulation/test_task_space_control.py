"""Tracking in task space: closed-form errors of arms, Gauss's principle on random trees over every joint kind, what the target
leaves free, singular configurations, and errors."""
from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import yaml
from scipy.spatial.transform import Rotation

import liedyn as ld
from liedyn.analysis.linearize import linearize_scenario
from liedyn.codegen.trace import traced_module
from liedyn.errors import ScenarioError
from liedyn.integrators.segment import evaluate_state
from liedyn.io.scenarios.scenario_file import read_scenario, scenario_of, to_plain
from liedyn.kernels.simulation.task_space_law import DAMPING_THRESHOLD, SWEEPS
from liedyn.simulation.control.task_space_control import smallest_mobility
from liedyn.simulation.input_schedule import compile_schedule
from liedyn.simulation.run import run_scenario
from zoo import ROBOTS, state

ROOT = Path(__file__).parents[2]
FINE = {"method": "dopri5", "rtol": 1e-11, "atol": 1e-12}
PLANAR = """\
links:
  upper: {mass: 3, com: [0.25, 0, 0], inertia: [0.01, 0.06, 0.06]}
  lower: {mass: 2, com: [0.2, 0, 0], inertia: [0.01, 0.03, 0.03]}
  hand: {mass: 0.5, com: [0.05, 0, 0], inertia: [0.001, 0.002, 0.002]}
joints:
  shoulder: {type: revolute, parent: world, child: upper, axis: [0, 0, 1], limits: {lower: -9, upper: 9}}
  elbow: {type: revolute, parent: upper, child: lower, axis: [0, 0, 1], origin: {xyz: [0.5, 0, 0]}, limits: {lower: -9, upper: 9}}
  wrist: {type: revolute, parent: lower, child: hand, axis: [0, 0, 1], origin: {xyz: [0.4, 0, 0]}, limits: {lower: -9, upper: 9}}
"""
ARMS = {
    "ur5": ("tool0", dict(zip((f"{name}_joint" for name in ("shoulder_pan", "shoulder_lift", "elbow", "wrist_1", "wrist_2",
                                                            "wrist_3")), (0.2, -1.2, 1.4, -1.0, 1.2, 0.3), strict=True))),
    "panda": ("panda_hand", {f"panda_joint{k + 1}": x for k, x in enumerate((0.1, -0.4, 0.2, -2.0, 0.3, 1.8, 0.5))})}
POINT = [0.02, -0.01, 0.05]


def task(link: str, target: dict, **more) -> dict:
    return {"law": "task_space", "link": link, "target": target, "poles": [-8, -12], **more}


def tool(model, q, link):
    """Return the position of the point and the orientation of the link."""
    T = ld.link_pose(model, q, link)
    return T[:3, :3] @ POINT + T[:3, 3], Rotation.from_matrix(T[:3, :3])


@pytest.mark.parametrize("name", ARMS)
@pytest.mark.parametrize("way", ["signals", "waypoints"])
def test_errors_of_position_and_orientation_obey_their_linear_equation(name, way, worst):
    """e'' + 20 e' + 96 e = 0 of the position, and of the rotation vector from the link to its target."""
    link, start = ARMS[name]
    model = ld.load(ROOT / "robots" / f"{name}.yaml")
    q0, v0 = model.neutral(), np.zeros(model.nv)
    for joint, x in start.items():
        q0[model.q_index(joint)], v0[model.v_index(joint)] = x, 0.2
    p0, R0 = tool(model, q0, link)
    aside = np.array([0.04, 0.03, -0.05])
    a0 = R0.as_euler("xyz")
    if way == "signals":
        target = {"xyz": [f"{p0[0] + 0.03} + 0.05*sin(2*t)", f"{p0[1] - 0.02} + 0.04*cos(3*t)", f"{p0[2]} + 0.05*t"],
                  "rpy": [f"{a0[0] + 0.2} + 0.2*sin(t)", f"{a0[1]} + 0.2*t", float(a0[2] - 0.3)]}

        def desired(t):
            moved, turned = np.array([[0.03 + 0.05 * np.sin(2 * t), -0.02 + 0.04 * np.cos(3 * t), 0.05 * t],
                                      [0.2 + 0.2 * np.sin(t), 0.2 * t, -0.3]])
            return p0 + moved, Rotation.from_euler("xyz", a0 + turned)
    else:                                                      # at rest until it begins: its curve is tested elsewhere
        turned = (R0 * Rotation.from_rotvec([0.3, -0.2, 0.1]))
        pose = {"xyz": (p0 + aside).tolist(), "quaternion": turned.as_quat().tolist()}
        target = {"waypoints": [{"t": 5, **pose}, {"t": 6, **pose}]}

        def desired(t):
            return p0 + aside, turned
    run = run_scenario({"robot": str(ROOT / "robots" / f"{name}.yaml"), "duration": 1.0, "output_step": 0.05, "integrator": FINE,
                        "initial": {"q": start, "v": dict.fromkeys(start, 0.2)}, "control": task(link, target, point=POINT)})

    def error(q, t):
        (p, R), (r, Q) = tool(model, q, link), desired(t)
        return np.r_[r - p, (R.inv() * Q).as_rotvec()]

    def rate(h):
        return (error(ld.integrate(model, q0, h * v0), h) - error(ld.integrate(model, q0, -h * v0), -h)) / (2 * h)
    e0, de0 = error(q0, 0.0), (4 * rate(1e-3) - rate(2e-3)) / 3                   # good to 1e-12
    found, t = np.array([error(*x) for x in zip(run.q, run.t, strict=True)]), run.t[:, None]
    exact = ((12 * e0 + de0) * np.exp(-8 * t) - (8 * e0 + de0) * np.exp(-12 * t)) / 4
    assert np.abs(e0[:3]).max() > 0.02 and np.abs(e0[3:]).max() > 0.2
    assert worst(f"task space, {name}", np.abs(found - exact).max()) < 1e-9
    np.testing.assert_allclose(run.tracking.error[:, :3], -found[:, :3], atol=1e-12)
    np.testing.assert_allclose(run.tracking.error[:, 3], np.linalg.norm(found[:, 3:], axis=1), atol=1e-12)
    assert run.tracking.names == tuple(f"{link}.{what}" for what in ("x", "y", "z", "angle"))
    assert run.check["energy_balance_relative"] < 1e-8 and not any("singular" in note for note in map(str, run.warnings))


@pytest.mark.parametrize("name, turns", [("every kind, a chain", False), ("every kind, a chain", True),
                                         ("every kind, floating", True), ("one degree of freedom each", False)])
def test_accelerations_are_nearest_to_those_of_the_posture(scenario, name, turns):
    """Gauss: M (a - a0) is a combination of rows of J, over what is not prescribed; J a is what is asked."""
    model, prescribed = ld.build(ROBOTS[name]), []
    prescribed = [joint.name for joint in model.joints if joint.type == "free"] + [model.joint_names[-3]]
    link = model.link_names[-1]
    simple = next(joint.name for joint in reversed(model.joints)
                  if joint.v.stop - joint.v.start == 1 and joint.name not in prescribed)
    joints = {joint: {"prescribe": {"acceleration": [f"0.{k + 3}*cos(t)" for k in range(
        model.v_index(joint).stop - model.v_index(joint).start)]}} for joint in prescribed}
    target = {"xyz": ["0.3*t", "0.2*sin(t)", 0.1]} | ({"rpy": [0.1, "0.2*t", 0.3]} if turns else {})
    s = scenario_of(scenario(PLANAR, joints=joints, control=task(link, target, posture={simple: 0.7}, point=POINT)))
    problem, checked = compile_schedule(s, model).problem, 0
    law, free = problem.joint_laws.task, problem.schedule.level == 0
    for seed in range(4):
        q, v, *_ = state(model, seed)
        if smallest_mobility(model, law, q[None])[0] < 2 * DAMPING_THRESHOLD:
            continue
        checked += 1
        t, work = 0.4, evaluate_state(problem, 0.4, q, v)
        J, dJ = ld.jacobian(model, q, link, frame="local_world_aligned"), \
            ld.jacobian_derivative(model, q, v, link, frame="local_world_aligned")
        T = ld.link_pose(model, q, link)
        arm, w = T[:3, :3] @ POINT, J[:3] @ v
        J_p = J[3:] - np.cross(arm, J[:3].T).T
        dJ_p = dJ[3:] - np.cross(arm, dJ[:3].T).T - np.cross(np.cross(w, arm), J[:3].T).T
        r, dr, ddr = [0.3 * t, 0.2 * np.sin(t), 0.1], [0.3, 0.2 * np.cos(t), 0], [0, -0.2 * np.sin(t), 0]
        asked = np.array(ddr) + 20 * (dr - J_p @ v) + 96 * (r - T[:3, 3] - arm)
        size = np.abs(asked).max() + np.abs(dJ_p @ v).max() + np.abs(J_p * work.a).max()
        np.testing.assert_allclose(J_p @ work.a + dJ_p @ v, asked, rtol=0, atol=1e-10 * size)
        a0, M, k = np.where(free, -20 * v, work.a), ld.mass_matrix(model, q), model.v_index(simple).start
        pull = M @ (work.a - a0)
        alone = np.linalg.inv(M[np.ix_(free, free)])[np.count_nonzero(free[:k]), np.count_nonzero(free[:k])]
        pull[k] -= 96 * (0.7 - q[model.q_index(simple).start]) / alone
        pull = pull[free]
        rows = np.vstack([*([J[:3]] if turns else []), J_p])[:, free]
        left = pull - rows.T @ np.linalg.lstsq(rows.T, pull, rcond=None)[0]
        assert np.abs(left).max() < 1e-9 * np.abs(pull).max()
        first = np.array([0.3, 0.4, 0.5, 0.6, 0.7, 0.8]) * np.cos(t)
        for joint in prescribed:
            v_ = model.v_index(joint)
            np.testing.assert_allclose(work.a[v_], first[:v_.stop - v_.start], atol=1e-14)
    assert checked


def test_what_the_target_leaves_free_goes_to_the_posture(scenario):
    control = task("hand", {"xyz": [0.6, 0.2, 0]}, point=[0.1, 0, 0])
    keys = scenario(PLANAR, duration=20, integrator=FINE, initial={"q": {"shoulder": -0.4, "elbow": 1.2, "wrist": 0.3}})
    rest = run_scenario(keys | {"control": control})
    bent = run_scenario(keys | {"control": control | {"posture": {"wrist": 0.9}}})
    for run in (rest, bent):
        assert np.abs(run.tracking.error[-1]).max() < 1e-9
        assert np.abs(run.v[-1]).max() < 1e-4                  # its slowest mode takes a second
        assert not any("singular" in note for note in map(str, run.warnings))
    assert abs(bent.q[-1, 2] - 0.9) < 1e-4 and abs(rest.q[-1, 2] - 0.9) > 0.1


@pytest.mark.parametrize("rpy, xyz, unit", [((0.01, 0.0, 0.0), (0, 0, 0), 1), ((1.1, -0.7, 2.2), (5, 2, -3), 1),
                                            ((0.4, 0.3, 0.2), (30, 20, 10), 100)])
@pytest.mark.parametrize("turns", [False, True])
def test_motion_does_not_depend_on_the_axes_of_the_world_or_on_units(scenario, rpy, xyz, unit, turns):
    """A planar arm whose target leaves its plane, in a frame that is turned and moved with arm, gravity and target; lengths
    `unit` times larger numbers, and torques unit^2 times. Out of the plane the target is ignored."""
    def run(rpy, xyz, unit):
        robot, turn = yaml.safe_load(PLANAR), Rotation.from_euler("xyz", rpy)
        for link in robot["links"].values():
            link["com"] = [unit * x for x in link["com"]]
            link["inertia"] = [unit**2 * x for x in link["inertia"]]
        for joint in robot["joints"].values():
            joint["origin"] = {"xyz": [unit * x for x in joint.get("origin", {"xyz": [0, 0, 0]})["xyz"]]}
        robot["joints"]["shoulder"]["origin"] = {"xyz": list(xyz), "rpy": list(rpy)}
        robot["gravity"] = (unit * turn.apply([0, -9.81, 0])).tolist()

        def pose(p, angle):
            orientation = {"quaternion": (turn * Rotation.from_euler("z", angle)).as_quat().tolist()} if turns else {}
            return {"xyz": (turn.apply(unit * np.array(p)) + xyz).tolist(), **orientation}
        target = {"waypoints": [{"t": 0, **pose([0.6, 0.3, 0.2], 0.9)}, {"t": 0.4, **pose([0.5, 0.4, -0.3], 1.3)}]}
        return run_scenario(scenario(yaml.safe_dump(robot), duration=0.4, integrator=FINE, output_step=0.05,
                                     initial={"q": {"shoulder": -0.2, "elbow": 1.0, "wrist": 0.3}},
                                     control=task("hand", target, point=[0.1 * unit, 0, 0])))
    plain, other = run((0, 0, 0), (0, 0, 0), 1), run(rpy, xyz, unit)
    np.testing.assert_allclose(other.q, plain.q, rtol=0, atol=1e-9)
    np.testing.assert_allclose(other.tau / unit**2, plain.tau, rtol=0, atol=1e-7 * np.abs(plain.tau).max())
    assert not any("singular" in note for note in map(str, (*plain.warnings, *other.warnings)))


@pytest.mark.parametrize("m", [3, 6])
def test_damped_solutions_turn_with_the_axes(m):
    """The kernel's inverse of J M^-1 J^T against that by eigenvalues of LAPACK: regular, damped and zero ones, and equal ones."""
    rng, kernels = np.random.default_rng(m), traced_module("kernels.simulation.task_space_law")
    for values in (np.linspace(1, 2, m), np.r_[np.ones(m - 1), 3e-4], np.r_[0.0, 2e-4, np.ones(m - 2)], np.ones(m)):
        X = np.linalg.qr(rng.standard_normal((m, m)))[0]
        A, r = X * values @ X.T, rng.standard_normal(m)
        task = SimpleNamespace(rows=np.arange(m), A=A.ravel().copy(), r=r.copy(), jacobi_rotations=np.zeros(SWEEPS * m * (m - 1)))
        kernels.rotate_to_axes(task)
        found = task.A.reshape(m, m)
        assert np.abs(found - np.diag(np.diag(found))).max() < 1e-14
        task.r *= [kernels.damped_inverse(x) for x in np.diag(found)]
        kernels.rotate_back_from_axes(task)
        lack = np.maximum(DAMPING_THRESHOLD - values, 0.0)
        np.testing.assert_allclose(task.r, X / (values + lack**2 / DAMPING_THRESHOLD) @ X.T @ r, rtol=0, atol=1e-10)


def test_out_of_reach_it_is_damped_and_says_so(scenario):
    """The arm is 1 m long. The limits of its motors limit the motion."""
    run = run_scenario(scenario(PLANAR, duration=3, integrator={"method": "dopri5"}, saturate={"*": 20}, output_step=0.01,
                                initial={"q": {"shoulder": -0.4, "elbow": 1.2, "wrist": 0.3}},
                                control=task("hand", {"xyz": ["0.6 + 0.3*t", 0, 0]}, point=[0.1, 0, 0])))
    assert np.isfinite(run.q).all() and any(re.search(r"hand is close to a singular configuration from t = \d", note)
                                            for note in map(str, run.warnings))
    assert run.check["energy_balance_relative"] < 1e-5


def test_sampled_it_tracks_as_well(scenario):
    keys = scenario(PLANAR, duration=1, integrator={"method": "rk4"},
                    initial={"q": {"shoulder": -0.4, "elbow": 1.2, "wrist": 0.3}},
                    control=task("hand", {"xyz": ["0.6 + 0.1*sin(t)", 0.2, 0], "rpy": [0, 0, 0.8]}, point=[0.1, 0, 0]))
    plain, rough, fine = (run_scenario(keys | more)
                          for more in ({}, {"sampling": {"rate": 500}}, {"sampling": {"rate": 1000}}))
    gaps = [np.abs(run.q - plain.q).max() for run in (rough, fine)]
    assert gaps[1] < 5e-3 and 1.8 < gaps[0] / gaps[1] < 2.2    # of first order in the period
    assert np.abs(fine.tracking.error[-1]).max() < 1e-2 and fine.tracking.names == plain.tracking.names


def test_linear_models_and_implicit_methods_have_its_derivatives(scenario):
    keys = scenario(PLANAR, integrator=FINE, output_step=0.1, initial={"q": {"shoulder": -0.4, "elbow": 1.2, "wrist": 0.3}},
                    control=task("hand", {"xyz": ["0.6 + 0.1*sin(t)", 0.2, 0], "rpy": [0, 0, 0.8]}, point=[0.1, 0, 0]))
    found = linearize_scenario(keys, at=0.0, verify=True)
    assert all(x.off < 1e-7 for x in found.differences.values())
    poles = np.sort(np.linalg.eigvals(linearize_scenario(keys | {"control": keys["control"] | {
        "target": {"xyz": [0.6, 0.2, 0], "rpy": [0, 0, 0.8]}}, "duration": 6}, at=6.0).system.A).real)
    np.testing.assert_allclose(poles, [-12] * 3 + [-8] * 3, atol=1e-4)            # triple poles: the root of 1e-12
    implicit = run_scenario(keys | {"integrator": {"method": "rodas5p", "rtol": 1e-9, "atol": 1e-10}})
    np.testing.assert_allclose(implicit.q, run_scenario(keys).q, atol=1e-7)


def test_it_reads_back_what_it_writes(scenario, tmp_path):
    for target in ({"xyz": [0.6, "0.2*t", 0], "rpy": [0, 0, 0.8]}, {"rpy": [0, 0, "t"]},
                   {"waypoints": [{"t": 0, "xyz": [0.5, 0, 0]}, {"t": 1, "xyz": [0.6, 0, 0], "rpy": [0, 0, 1]}]}):
        s = scenario_of(scenario(PLANAR, control=task("hand", target, posture={"elbow": 1}, point=POINT)))
        (tmp_path / "again.yaml").write_text(yaml.safe_dump(to_plain(s, tmp_path), sort_keys=False))
        assert read_scenario(tmp_path / "again.yaml") == s


GOOD = task("hand", {"xyz": [0.6, 0.2, 0]})


@pytest.mark.parametrize("keys, message", [
    ({"control": GOOD | {"link": "hnd"}}, r"no such link.*got 'hnd' .did you mean hand"),
    ({"control": {key: GOOD[key] for key in GOOD if key != "link"}}, "the link that follows the target"),
    ({"control": {key: GOOD[key] for key in GOOD if key != "target"}}, "rpy: the same, or waypoints"),
    ({"control": {key: GOOD[key] for key in GOOD if key != "poles"}}, "exactly one of bandwidth, poles"),
    ({"control": GOOD | {"target": {}}}, "requires xyz or rpy"),
    ({"control": GOOD | {"target": {"xyz": [0, "q(elbow)", 0]}}}, "this signal is a function of time only"),
    ({"control": GOOD | {"motion": {"elbow": 0}}}, "motion"),
    ({"control": GOOD | {"posture": {"elbw": 0}}}, r"no such joint.*got 'elbw'"),
    ({"control": GOOD | {"posture": {"elbow": [0, 1]}}}, "joint elbow: wrong number of values"),
    ({"control": GOOD | {"point": [0, 0]}}, "point"),
    ({"base": "floating", "control": GOOD}, "task_space drives all joints, but base is free"),
    ({"control": GOOD, "joints": {"*": {"prescribe": {"velocity": 0}}}}, "task_space cannot move the link hand")])
def test_bad_values_are_told_in_a_line(scenario, keys, message):
    robot = PLANAR if "base" not in keys else \
        "links:\n  root: {mass: 1, inertia: [0.1, 0.1, 0.1]}\n" + PLANAR.replace("links:\n", "").replace("world", "root")
    with pytest.raises(ScenarioError, match=message) as caught:
        run_scenario(scenario(robot, **keys))
    assert "\n" not in str(caught.value)


def test_elastic_joints_are_refused():
    with pytest.raises(ScenarioError, match="task_space does not support elastic joints"):
        run_scenario(ROOT / "configs" / "elastic_arm.yaml", {"control": task("forearm", {"xyz": [0, 0, 1]})})
