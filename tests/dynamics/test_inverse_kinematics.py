"""Inverse kinematics: the configurations reach their targets, by forward kinematics, closed forms and optimality conditions."""
import warnings

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import liedyn as ld
from liedyn.dynamics.batching.threads import limit_threads
from liedyn.dynamics.inverse_kinematics import _Searcher
from liedyn.dynamics.kinematic_tasks import task_equations_of, task_list
from loop_zoo import LOOPED, looped_of
from zoo import ROBOTS, model_of, unit

PLANAR = """
links: {upper: {mass: 1, com: [0.5, 0, 0], inertia: [0.01, 0.1, 0.1]},
        fore: {mass: 1, com: [0.25, 0, 0], inertia: [0.01, 0.1, 0.1]},
        tip: {mass: 0.1, com: [0, 0, 0], inertia: [0.01, 0.01, 0.01]}}
joints:
  shoulder: {type: revolute, parent: world, child: upper, axis: [0, 0, 1], limits: {lower: -3, upper: 3}}
  elbow: {type: revolute, parent: upper, child: fore, origin: {xyz: [1.0, 0, 0]}, axis: [0, 0, 1], limits: {lower: -3, upper: 3}}
  end: {type: fixed, parent: fore, child: tip, origin: {xyz: [0.5, 0, 0]}}
"""
GANTRY = """
links: {a: {mass: 1, com: [0, 0, 0], inertia: [1, 1, 1]}, b: {mass: 1, com: [0, 0, 0], inertia: [1, 1, 1]},
        hook: {mass: 2, com: [0.3, 0, 0], inertia: [1, 1, 1]}}
joints:
  x: {type: prismatic, parent: world, child: a, axis: [1, 0, 0], limits: {lower: -2, upper: 2}}
  y: {type: prismatic, parent: a, child: b, axis: [0, 1, 0], limits: {lower: -2, upper: 2}}
  z: {type: prismatic, parent: b, child: hook, axis: [0, 0, 1], limits: {lower: -2, upper: 2}}
"""
REDUNDANT = "robots/panda.yaml"
TOLERANCE = 1e-10


@pytest.fixture(scope="module")
def planar(tmp_path_factory):
    return _loaded(tmp_path_factory, "planar", PLANAR)


@pytest.fixture(scope="module")
def gantry(tmp_path_factory):
    return _loaded(tmp_path_factory, "gantry", GANTRY)


@pytest.fixture(scope="module")
def panda():
    return ld.load("robots/panda.yaml")


def _loaded(factory, name, text):
    path = factory.mktemp(name) / f"{name}.yaml"
    path.write_text(text)
    return ld.load(path)


def goals_of(model, q, link, other, rng):
    """Every kind of goal, which the configuration q fulfils."""
    T, B = ld.link_pose(model, q, link), ld.link_pose(model, q, other)
    point, axis, aim = rng.normal(size=3), unit(rng), rng.normal(size=3)
    place = T[:3, :3] @ point + T[:3, 3]
    ahead = place + 0.7 * T[:3, :3] @ axis
    relative = np.linalg.inv(B) @ T
    return [ld.Task(link=link, pose=T), ld.Task(link=link, position=place, point=point),
            ld.Task(link=link, orientation=T[:3, :3]),
            ld.Task(link=link, direction=T[:3, :3] @ axis, axis=axis), ld.Task(link=link, look_at=ahead, axis=axis, point=point),
            ld.Task(link=link, distance=np.linalg.norm(place - aim), point=point, reference_point=aim),
            ld.Task(centre_of_mass=ld.centre_of_mass(model, q)), ld.Task(link=link, pose=relative, relative_to=other),
            ld.Task(link=link, look_at=B[:3, :3].T @ (ahead - B[:3, 3]), axis=axis, point=point, relative_to=other),
            ld.Task(centre_of_mass=B[:3, :3].T @ (ld.centre_of_mass(model, q) - B[:3, 3]), relative_to=other)]



@pytest.mark.parametrize("name", [name for name in list(ROBOTS)[::5] if name != "a lone body"])
def test_goals_of_all_kinds_are_reached_on_random_trees(name):
    model = model_of(name)
    rng = np.random.default_rng([len(name), model.nv])
    q = ld.random_configuration(model, rng)
    link, other = model.link_names[-1], model.link_names[0]
    tasks = goals_of(model, q, link, other, rng)
    start = ld.integrate(model, q, 0.05 * rng.normal(size=model.nv))
    found = ld.inverse_kinematics(model, tasks, start, limits=False)
    assert found.reached, (name, found.miss())
    assert np.abs(ld.link_pose(model, found.q, link) - tasks[0].pose).max() < 1e-9
    assert np.abs(ld.centre_of_mass(model, found.q) - tasks[6].centre_of_mass).max() < 1e-9
    at_solution = ld.inverse_kinematics(model, tasks, q, limits=False)
    assert at_solution.reached and at_solution.iterations <= 1           # q fulfils all of them: the residuals are right


@pytest.mark.parametrize("name", list(LOOPED)[::9])
def test_loops_and_couplings_stay_closed(name):
    case = looped_of(name)
    model, rng = case.model, np.random.default_rng(len(name))
    link = model.link_names[-1]
    p = ld.link_pose(model, case.q, link)[:3, 3]
    start = ld.integrate(model, case.q, 1e-3 * rng.normal(size=model.nv))
    found = ld.inverse_kinematics(model, {link: p}, start, limits=False, constraint_motion=case.constraint_motion)
    assert found.reached, (name, found.miss())
    assert np.abs(ld.constraint_residual(model, found.q, constraint_motion=case.constraint_motion)).max() < 1e-11
    assert np.abs(ld.link_pose(model, found.q, link)[:3, 3] - p).max() < 1e-9


def test_the_jacobian_is_the_derivative_of_the_residual(panda):
    """Of all kinds of goals, off their targets: by central differences of the residual that the search returns."""
    model, rng = ld.load("robots/showcase.yaml"), np.random.default_rng(4)
    q, target = ld.random_configuration(model, rng), ld.random_configuration(model, rng)
    tasks = goals_of(model, target, model.link_names[-1], model.link_names[2], rng)
    searcher = _Searcher(model, task_equations_of(model, task_list(tasks), (target, np.ones(model.nv)), 1e-10),
                         np.zeros(model.nv, bool), False)
    def at(x):
        return searcher.equations_at(ld.integrate(model, q, x))
    h = 1e-6
    _, J = at(np.zeros(model.nv))
    differences = np.array([(at(h * e)[0] - at(-h * e)[0]) / (2 * h) for e in np.eye(model.nv)]).T
    assert np.abs(J - differences).max() < 1e-7 * max(1.0, np.abs(J).max())


def test_two_bars_reach_a_point_with_both_elbows(planar):
    p = np.array([0.8, 0.6, 0.0])
    c = (p @ p - 1.0 - 0.25) / (2 * 1.0 * 0.5)
    for sign in (-1, 1):
        elbow = sign * np.arccos(c)
        shoulder = np.arctan2(p[1], p[0]) - np.arctan2(0.5 * np.sin(elbow), 1 + 0.5 * np.cos(elbow))
        found = ld.inverse_kinematics(planar, {"tip": p}, [shoulder + 0.1, elbow - 0.2], restarts=0)
        np.testing.assert_allclose(found.q, [shoulder, elbow], atol=1e-9)


def test_a_target_out_of_reach_is_missed_by_its_distance(planar):
    with pytest.warns(ld.LiedynWarning, match=r"the target is not reached; tip misses by 0\.5 m and 0 rad"):
        found = ld.inverse_kinematics(planar, {"tip": [0.0, 2.0, 0.0]})
    assert not found.reached and [warning.code for warning in found.warnings] == ["target-missed"]
    np.testing.assert_allclose(found.position_error, [0.5], atol=1e-8)
    np.testing.assert_allclose(found.q, [np.pi / 2, 0.0], atol=1e-3)
    assert repr(found).startswith("<InverseKinematics: not reached, q [")


def test_a_target_at_the_boundary_is_reached_where_the_arm_is_singular(planar):
    found = ld.inverse_kinematics(planar, {"tip": [1.5, 0.0, 0.0]}, [0.4, 0.9])
    assert found.reached and found.searches == 1
    assert ld.inverse_kinematics(planar, {"tip": [1.5, 0.0, 0.0]}, [0.0, 0.0]).iterations == 0


def test_limits_hold_the_joints_that_would_leave_them(planar):
    lower, upper = planar.lower, planar.upper
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = ld.inverse_kinematics(planar, {"tip": [-1.49, -0.01, 0.0]}, [2.9, 0.0])
    assert (found.q >= lower).all() and (found.q <= upper).all()
    free = ld.inverse_kinematics(planar, {"tip": [-1.49, -0.01, 0.0]}, [2.9, 0.0], limits=False)
    assert free.reached


def test_what_limits_it_is_named(gantry):
    with pytest.warns(ld.LiedynWarning, match="hook misses by 1 m and 0 rad; at limits: x"):
        found = ld.inverse_kinematics(gantry, {"hook": [3.0, 0.5, 0.0]})
    assert found.at_limits == {0: ("x",)}
    np.testing.assert_allclose(found.q, [2.0, 0.5, 0.0], atol=1e-12)


def test_weights_divide_a_contradiction(gantry):
    """min w1^2 |x - a|^2 + w2^2 |x - b|^2."""
    a, b = np.array([0.5, 0.2, -0.3]), np.array([-0.5, 1.0, 0.4])
    with pytest.warns(ld.LiedynWarning, match="not reached"):
        found = ld.inverse_kinematics(gantry, [ld.Task(link="hook", position=a, weight=1.0),
                                               ld.Task(link="hook", position=b, weight=3.0)])
    np.testing.assert_allclose(found.q, (a + 9 * b) / 10, atol=1e-9)
    np.testing.assert_allclose(found.position_error, np.linalg.norm([found.q - a, found.q - b], axis=1), rtol=1e-9)


def test_a_task_of_lower_priority_does_not_disturb(gantry):
    a, b = np.array([0.5, 0.2, -0.3]), np.array([-0.5, 1.0, 0.4])
    first, second = ld.Task(link="hook", position=a, axes="xy"), ld.Task(link="hook", position=b, priority=2)
    for tasks in ([first, second], [second, first]):
        with pytest.warns(ld.LiedynWarning):
            found = ld.inverse_kinematics(gantry, tasks)
        np.testing.assert_allclose(found.q, [a[0], a[1], b[2]], atol=1e-9)


def test_the_task_that_is_missed_is_named(panda):
    """Not another one, whose errors are rounding."""
    q = 0.4 * panda.lower + 0.6 * panda.upper
    hand = ld.Task(link="panda_hand", pose=ld.link_pose(panda, q, "panda_hand"))
    with pytest.warns(ld.LiedynWarning, match=r"not reached; elbow misses by \d"):
        found = ld.inverse_kinematics(panda, [hand, ld.Task(link="panda_link4", position=[0, 0, 1.5], axes="z", priority=2,
                                                            name="elbow")], q)
    assert found.position_error[0] < 1e-9 < 0.1 < found.position_error[1]


def test_a_first_task_out_of_reach_keeps_its_error(panda):
    """The second turns the hand within what the stretched arm leaves."""
    far = ld.Task(link="panda_hand", position=[1.5, 0.3, 0.4])
    down = ld.Task(link="panda_hand", direction=[0, 0, -1], priority=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        alone, both = ld.inverse_kinematics(panda, far), ld.inverse_kinematics(panda, [far, down])
    assert abs(both.position_error[0] - alone.position_error[0]) < 1e-7
    assert both.angle_error[1] < np.arccos(-ld.link_pose(panda, alone.q, "panda_hand")[2, 2]) - 0.01


def test_a_posture_is_the_nearest_of_all_solutions(panda):
    """The displacement from it has no part in the null space of the task."""
    rng = np.random.default_rng(5)
    target, posture = 0.4 * panda.lower + 0.6 * panda.upper, ld.random_configuration(panda, rng)
    posture[:7] = 0.55 * panda.lower[:7] + 0.45 * panda.upper[:7]
    p = ld.link_pose(panda, target, "panda_hand")
    found = ld.inverse_kinematics(panda, {"panda_hand": p}, posture, posture=posture)
    plain = ld.inverse_kinematics(panda, {"panda_hand": p}, posture)
    assert found.reached and (found.q[:7] > panda.lower[:7] + 1e-3).all() and (found.q[:7] < panda.upper[:7] - 1e-3).all()
    J = ld.jacobian(panda, found.q, "panda_hand")[:, :7]
    null = np.linalg.svd(J)[2][6]
    assert abs(null @ (found.q - posture)[:7]) < 1e-6
    assert np.linalg.norm(found.q - posture) <= np.linalg.norm(plain.q - posture)


def test_a_posture_of_one_joint(panda):
    q = 0.4 * panda.lower + 0.6 * panda.upper
    p = ld.link_pose(panda, q, "panda_hand")[:3, 3]
    found = ld.inverse_kinematics(panda, {"panda_hand": p}, q, posture={"panda_joint1": q[0] + 0.2})
    assert found.reached
    np.testing.assert_allclose(found.q[0], q[0] + 0.2, atol=1e-7)


def test_a_guess_by_joint(planar):
    targets = {"tip": [0.8, 0.6, 0.0]}
    for elbow in (-1.0, 1.0):
        ours, theirs = (ld.inverse_kinematics(planar, targets, q, restarts=0) for q in ({"elbow": elbow}, [0.0, elbow]))
        assert (ours.q == theirs.q).all() and np.sign(ours.q[1]) == elbow


def test_fixed_joints_keep_the_guess(panda):
    q = 0.4 * panda.lower + 0.6 * panda.upper
    start = q + 0.1
    other = start + np.array([0, 0.1, 0, -0.2, 0.1, 0.1, 0, 0, 0])
    p = ld.link_pose(panda, other, "panda_hand")[:3, 3]
    found = ld.inverse_kinematics(panda, {"panda_hand": p}, start, fixed=["panda_joint1", "panda_joint3"])
    assert found.reached and found.q[0] == start[0] and found.q[2] == start[2]


def test_a_fixed_base_stays_in_random_starts():
    model = ld.load("robots/quadruped.yaml", base="floating")
    q = ld.random_configuration(model, 11)
    with pytest.warns(ld.LiedynWarning, match="not reached"):
        found = ld.inverse_kinematics(model, {model.link_names[-1]: q[:3] + 9.0}, q, fixed=["base"], restarts=5)
    assert found.searches == 6
    np.testing.assert_allclose(found.q[:7], q[:7], atol=1e-14)         # quaternions are normalized again


def test_a_fixed_coordinate_beyond_its_limits_stays_with_a_warning(gantry):
    with pytest.warns(ld.LiedynWarning, match=r"fixed coordinates are beyond their limits: x \[beyond-limits\]"):
        found = ld.inverse_kinematics(gantry, {"hook": [3.0, 0.5, 0.1]}, [3.0, 0.0, 0.0], fixed=["x"])
    assert found.reached and found.q[0] == 3.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ld.inverse_kinematics(gantry, {"hook": [3.0, 0.5, 0.1]}, [3.0, 0.0, 0.0], fixed=["x"], limits=False)


@pytest.mark.parametrize("options", [{}, {"path": True}, {"posture": [0.1, 0.2, 0.3]}])
def test_no_targets(gantry, options):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = ld.inverse_kinematics(gantry, {"hook": np.zeros((0, 3))}, **options)
    assert found.q.shape == (0, 3) and found.position_error.shape == (0, 1) and found.closure_error.shape == (0,)
    assert repr(found) == "<InverseKinematics: no targets>" and found.miss() == ""


def test_a_guess_beyond_a_limit_moves_to_it(gantry):
    with pytest.warns(ld.LiedynWarning, match="hook misses by 1 m"):
        found = ld.inverse_kinematics(gantry, {"hook": [3.0, 0.5, 0.0]}, [3.0, 0.5, 0.0])
    assert found.q[0] == 2.0


@pytest.mark.parametrize("angle", [np.pi, np.pi - 1e-9, 3.0])
def test_half_turns(tmp_path, angle):
    (tmp_path / "ball.yaml").write_text("links: {b: {mass: 1, com: [0.1, 0, 0], inertia: [1, 1, 1]}}\n"
                                        "joints: {j: {type: ball, parent: world, child: b}}")
    model, rng = ld.load(tmp_path / "ball.yaml"), np.random.default_rng(6)
    for _ in range(10):
        u, axis = Rotation.random(random_state=rng), unit(rng)
        q = u.as_quat()
        R = Rotation.from_rotvec(angle * axis) * u
        found = ld.inverse_kinematics(model, ld.Task(link="b", orientation=R.as_matrix()), q, restarts=0)
        assert found.reached and found.iterations < 15
        a = unit(rng)
        d = Rotation.from_rotvec(angle * np.cross(a, axis) / np.linalg.norm(np.cross(a, axis))).apply(u.apply(a))
        assert ld.inverse_kinematics(model, ld.Task(link="b", axis=a, direction=d), q, restarts=0).reached


def test_a_batch_is_what_its_targets_are_alone(panda):
    """With any number of threads, and with restarts, which are the same for each target."""
    q = ld.random_configuration(panda, 7, 40)
    T = ld.link_pose(panda, q, "panda_hand")
    whole = ld.inverse_kinematics(panda, {"panda_hand": T.reshape(5, 8, 4, 4)}, seed=3)
    assert whole.q.shape == (5, 8, 9) and whole.reached.all() and whole.searches.max() > 1
    flat = whole.q.reshape(40, 9)
    for k in (0, 17, 39):
        np.testing.assert_array_equal(ld.inverse_kinematics(panda, {"panda_hand": T[k]}, seed=3).q, flat[k])
    with limit_threads(1):
        np.testing.assert_array_equal(ld.inverse_kinematics(panda, {"panda_hand": T}, seed=3).q, flat)
    assert np.abs(ld.link_pose(panda, flat, "panda_hand") - T).max() < 1e-9
    found = ld.inverse_kinematics(panda, {"panda_hand": T}, q)
    assert (found.iterations == 0).all() and repr(found) == "<InverseKinematics: all 40 targets reached, 0 iterations each>"


def test_a_path_is_followed_without_jumps(panda):
    t = np.linspace(0, 2 * np.pi, 60)
    q = 0.45 * panda.lower + 0.55 * panda.upper
    T = np.repeat(ld.link_pose(panda, q, "panda_hand")[None], 60, axis=0)
    T[:, 1, 3] += 0.1 * np.sin(t)
    T[:, 2, 3] += 0.1 * np.cos(t) - 0.1
    found = ld.inverse_kinematics(panda, {"panda_hand": T}, q, path=True)
    assert found.reached.all() and np.abs(np.diff(found.q, axis=0)).max() < 0.15 and found.warnings == ()
    assert found.searches.max() == 1
    with pytest.warns(ld.LiedynWarning, match=r"moves by .* between targets 0 and 1 of the path"):
        ld.inverse_kinematics(panda, {"panda_hand": ld.link_pose(panda, np.stack([q, 0.3 * q]), "panda_hand")}, q, path=True)


def test_a_path_returns_from_targets_out_of_reach(planar):
    """At the stretched arm, the error of a target on its line has no derivative."""
    targets, q = np.array([[0.1, 0.9, 0], [0, 2, 0], [0, 2.1, 0], [0, 0.9, 0], [0.1, 0.9, 0]]), [0.7, 1.5]
    with pytest.warns(ld.LiedynWarning, match="2 of 5 targets are not reached; target 2: tip misses by 0.6 m"):
        found = ld.inverse_kinematics(planar, {"tip": targets}, q, path=True)
    assert found.reached.tolist() == [True, False, False, True, True] and found.searches.tolist() == [1, 1, 2, 2, 1]
    np.testing.assert_allclose(found.q[1:3], [[np.pi / 2, 0.0]] * 2, atol=1e-3)
    np.testing.assert_allclose(found.q[4], found.q[0], atol=1e-9)
    with pytest.warns(ld.LiedynWarning, match="1 of 2 targets"):
        assert ld.inverse_kinematics(planar, {"tip": targets[2:4]}, [np.pi / 2, 0.0], path=True).reached.tolist() == [False, True]


@pytest.mark.parametrize("distance", [30.0, 1e3, 1e6])
def test_far_targets_take_few_steps(gantry, distance):
    for model in (gantry, ld.load("robots/quadruped.yaml", base="floating")):
        link, target = model.link_names[-1], distance * np.array([1.0, -0.4, 0.3])
        found = ld.inverse_kinematics(model, {link: target}, limits=False)
        assert found.reached and found.searches == 1 and found.iterations < 15
        assert np.abs(ld.link_pose(model, found.q, link)[:3, 3] - target).max() < 1e-9 + 1e-14 * distance
    body = ld.load("robots/asymmetric_body.yaml")
    posture = [distance, -distance, distance, 0, 0, 0, 1.0]
    found = ld.inverse_kinematics(body, ld.Task(link="block", orientation=[0, 0, 1, 0]), posture=posture)
    assert found.iterations < 25
    np.testing.assert_allclose(found.q, [*posture[:3], 0, 0, 1, 0], rtol=1e-9, atol=1e-9)


def test_every_solution_of_a_ur5_is_found():
    """Six joints without offsets in the wrist: eight configurations for a pose in general position."""
    model = ld.load("robots/ur5.yaml")
    q = np.array([0.3, -1.1, 1.4, 0.5, 0.9, -0.4])
    link = model.link_names[-1]
    T = ld.link_pose(model, q, link)
    starts = np.random.default_rng(8).uniform(-np.pi, np.pi, (300, 6))
    found = ld.inverse_kinematics(model, {link: T}, starts, restarts=0, limits=False)
    angles = np.mod(found.q[found.reached] + 1e-6, 2 * np.pi)
    assert len({tuple(row) for row in np.round(angles, 4)}) == 8
    assert np.abs(ld.link_pose(model, found.q[found.reached], link) - T).max() < 1e-9


def test_angles_make_no_whole_turns_from_the_guess():
    model = ld.load("robots/ur5.yaml")
    q = ld.random_configuration(model, 9, 50)
    link = model.link_names[-1]
    found = ld.inverse_kinematics(model, {link: ld.link_pose(model, q, link)}, np.zeros(6))
    assert found.reached.all() and np.abs(found.q).max() <= np.pi + 1e-9


def test_a_free_base_stands_on_its_feet_with_its_mass_above_them():
    model = ld.load("robots/quadruped.yaml", base="floating")
    q = ld.random_configuration(model, 10)
    q[:7] = [0.2, -0.1, 0.5, 0, 0, 0, 1]
    feet = [name for name in model.link_names if name.endswith("foot")]
    p = ld.link_poses(model, q)[[model.link_index(name) for name in feet], :3, 3]
    c = p.mean(axis=0)
    tasks = [*(ld.Task(link=name, position=x) for name, x in zip(feet, p, strict=True)), ld.Task(centre_of_mass=c, axes="xy")]
    found = ld.inverse_kinematics(model, tasks, q, posture=q)
    assert found.reached
    poses = ld.link_poses(model, found.q)
    np.testing.assert_allclose([poses[model.link_index(name), :3, 3] for name in feet], p, atol=1e-10)
    np.testing.assert_allclose(ld.centre_of_mass(model, found.q)[:2], c[:2], atol=1e-10)


def test_far_from_the_origin_rounding_does_not_count_as_a_miss(tmp_path):
    (tmp_path / "far.yaml").write_text(GANTRY.replace("child: a, axis", "child: a, origin: {xyz: [1e6, 0, 0]}, axis"))
    found = ld.inverse_kinematics(ld.load(tmp_path / "far.yaml"), {"hook": [1e6 + 0.3, 0.2, 0.1]}, tolerance=1e-12)
    assert found.reached and abs(found.q[0] - 0.3) < 1e-9


@pytest.mark.parametrize("tasks, options, error, message", [
    ({"tipp": [0, 0, 0]}, {}, ld.NameLookupError, "no link 'tipp'; did you mean 'tip'"),
    ({}, {}, ld.UsageError, "tasks: nothing to reach"),
    ([{"tip": 1}], {}, ld.UsageError, "expected a dict"),
    ({"tip": [0, 0]}, {}, ld.ShapeError, r"task tip: pose has the wrong shape, got \(2,\)"),
    ({"tip": [0, 0, np.nan]}, {}, ld.ConfigurationError, "task tip: position is not finite"),
    ({"tip": [0, 0, 0, 0, 0, 0, 2]}, {}, ld.ConfigurationError, "the quaternion of task tip: pose is not of unit norm"),
    ({"tip": np.diag([1, 1, -1, 1])}, {}, ld.ConfigurationError, "pose is not a rotation"),
    ({"tip": np.ones((4, 4))}, {}, ld.ConfigurationError, "the last row"),
    (ld.Task(link="tip"), {}, ld.UsageError, "task tip: no goal: expected one of pose, position"),
    (ld.Task(position=[0, 0, 0]), {}, ld.UsageError, "expected the name of a link"),
    (ld.Task(link="tip", centre_of_mass=[0, 0, 0]), {}, ld.UsageError, "leave out the link"),
    (ld.Task(link="tip", pose=np.eye(4), position=[0, 0, 0]), {}, ld.UsageError, "pose already contains"),
    (ld.Task(link="tip", position=[0, 0, 0], relative_to="tip"), {}, ld.UsageError, "the link itself"),
    (ld.Task(link="tip", position=[0, 0, 0], axes="xw"), {}, ld.UsageError, "axes: expected some of x, y, z"),
    (ld.Task(link="tip", direction=[0, 0, 1], axes="x"), {}, ld.UsageError, "the task has none"),
    (ld.Task(link="tip", direction=[0, 0, 0]), {}, ld.ConfigurationError, "direction has no direction"),
    (ld.Task(link="tip", distance=0.0), {}, ld.ConfigurationError, "distance: expected > 0, got 0"),
    (ld.Task(link="tip", orientation=[0, 0, 1]), {}, ld.ShapeError, "orientation has the wrong shape"),
    (ld.Task(link="tip", position=[0, 0, 0], weight=0), {}, ld.UsageError, "weight: expected a number > 0, got 0"),
    (ld.Task(link="tip", position=[0, 0, 0], priority=0.5), {}, ld.UsageError, "priority: expected an integer >= 1, got 0.5"),
    ([ld.Task(link="tip", position=np.zeros((2, 3))), ld.Task(link="fore", position=np.zeros((3, 3)))], {}, ld.ShapeError,
     "leading axes of targets do not match"),
    ({"tip": [0, 0, 0]}, {"q0": [0.0]}, ld.ShapeError, "q0 has the wrong shape"),
    ({"tip": [0, 0, 0]}, {"q0": {"elbw": 0.0}}, ld.NameLookupError, "no moving joint 'elbw'"),
    ({"tip": [0, 0, 0]}, {"q0": {"elbow": [0.0, 1.0]}}, ld.ShapeError, r"^q0\['elbow'\] has the wrong shape"),
    ({"tip": [0, 0, 0]}, {"posture": {"elbow": "x"}}, ld.ShapeError, r"^posture\['elbow'\]"),
    ({"tip": [0, 0, 0]}, {"q0": [0.0, np.inf]}, ld.ConfigurationError, "q0"),
    ({"tip": np.zeros((3, 3))}, {"q0": np.zeros((2, 2))}, ld.ShapeError, "q0 does not match the targets"),
    ({"tip": [0, 0, 0]}, {"path": True}, ld.ShapeError, "path: expected targets"),
    ({"tip": [0, 0, 0]}, {"restarts": -1}, ld.UsageError, "restarts: expected an integer >= 0, got -1"),
    ({"tip": [0, 0, 0]}, {"tolerance": 0}, ld.UsageError, "tolerance: expected a number between 0 and 1, got 0"),
    ({"tip": [0, 0, 0]}, {"fixed": ["knee"]}, ld.NameLookupError, "knee"),
    ({"tip": [0, 0, 0]}, {"posture": {"knee": 1}}, ld.NameLookupError, "knee"),
    ({"tip": [0, 0, 0]}, {"posture": {"elbow": np.nan}}, ld.ConfigurationError, r"^posture\[1\] \(elbow\) is not finite"),
    ({"tip": [0, 0, 0]}, {"posture": [np.inf, 0.0]}, ld.ConfigurationError, r"^posture\[0\] \(shoulder\) is not finite"),
    (ld.Task(link="tip", position=[0, 0, 0], reference_point=[0, 0, 1]), {}, ld.UsageError, "it requires distance"),
    ({"tip": [0, 0, 0]}, {"posture": [0.0]}, ld.ShapeError, "posture has the wrong shape"),
])
def test_wrong_arguments(planar, tasks, options, error, message):
    with pytest.raises(error, match=message):
        ld.inverse_kinematics(planar, tasks, **options)


def test_tasks_show_what_was_given():
    assert repr(ld.Task(link="tip", position=[1, 2, 3], weight=2.0)) == "<Task: link tip, position (1, 2, 3), weight 2>"


def test_joints_without_limits_need_no_middle():
    """NumPy warned of infinite limits."""
    links = [ld.Link("rod", 1.0, [0, 0, -0.5], [0.1, 0.1, 0.01]), ld.Link("tip")]
    pendulum = ld.build(ld.Robot("r", links, [ld.Joint("pivot", "continuous", "world", "rod", axis=[0, 1, 0]),
                                              ld.Joint("weld", "fixed", "rod", "tip", origin=[0, 0, -1.0])]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ld.inverse_kinematics(pendulum, {"tip": [0.6, 0.0, -0.8]}).reached
