"""The robots and scenarios that come with liedyn: they load without warnings and are what their sources say."""
from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import yaml

import liedyn as ld
from liedyn.io.robots.robot_yaml import read_loops_file
from liedyn.io.scenarios.scenario_file import SCENARIO, read_scenario
from liedyn.io.scenarios.signal_schema import CURVES, LEVELS
from liedyn.model.description import JOINT_TYPES, LOOP_TYPES, WORLD, Robot
from liedyn.model.links import Link
from liedyn.model.model import build
from liedyn.model.validate import validate
from liedyn.robot_files import load_description
from liedyn.simulation.input_schedule import compile_schedule

ROOT = Path(__file__).parents[2]
ROBOTS = sorted(path for path in (ROOT / "robots").glob("*.*") if not path.name.endswith(".loops.yaml"))
SCENARIOS = sorted((ROOT / "configs").glob("*.yaml"))

# nq, nv, total mass [kg]. Masses as published: see the head of each file.
LAYOUT = {
    "andrews.yaml": (7, 7, 0.04325 + 0.00365 + 0.02373 + 0.00706 + 0.0705 + 0.00706 + 0.05498),
    "arm_with_tool.urdf": (2, 2, 1.8),
    "asymmetric_body.yaml": (7, 6, 700 * 0.3 * 0.2 * 0.1),
    "bennett.yaml": (3, 3, 1.8),
    "bouncing_arm.yaml": (2, 2, 900 * (0.04 * 0.04 * 0.5 + 0.03 * 0.03 * 0.4)),
    "bricard.yaml": (5, 5, 5.0),
    "cam_valve.yaml": (3, 3, 7850 * np.pi * (0.03**2 * 0.01 + 0.02**2 * 0.012) + 0.06),
    "cart_arm.yaml": (7, 7, 60 + 0.925 + 3.7 + 8.393 + 2.33 + 1.219 + 1.219 + 0.1879),
    "cart_pole.yaml": (2, 2, 1.1),
    "closures.yaml": (39, 35, None),
    "crane.yaml": (5, 4, 283.0),
    "delta.yaml": (22, 21, 0.4 + 3 * 0.5 + 6 * 0.08),
    "double_pendulum.urdf": (2, 2, 2.0),
    "double_pendulum.yaml": (2, 2, 2.0),
    "elastic_arm.yaml": (6, 6, 15.0),
    "five_bar.yaml": (4, 4, 0.68),
    "five_bar_redundant.yaml": (4, 4, 1.08),
    "four_bar.yaml": (3, 3, 7850 * 0.005 * 0.02 * (0.1 + 0.5 + 0.25)),
    "gripper.urdf": (6, 6, 0.48),
    "hand.yaml": (16, 16, None),
    "hopper.xml": (10, 9, 700 * (0.3 * 0.2 * 0.16 + np.pi * (0.025**2 * (0.3 + 0.1 / 3) + 0.018**2 * (0.4 + 0.024))) + 0.5),
    "hexarotor_arms.yaml": (13, 12, 4.0),
    "humanoid.yaml": (38, 37, 73.0),
    "iiwa.yaml": (7, 7, 5.0 + 5.76 + 6.35 + 3 * 3.5 + 1.8 + 1.2),
    "jansen_leg.yaml": (7, 7, 2700 * 0.006 * 0.02 * (0.15 + 0.5 + 0.619 + 0.415 + 0.401 + 0.558 + 0.393 + 0.394 + 0.367 + 0.49
                                                     + 0.657)),
    "knee.yaml": (8, 8, 16.0),
    "n_four_bar.yaml": (5, 5, 5.0),
    "panda.yaml": (9, 9, 0.629769 + 4.970684 + 0.646926 + 3.228604 + 3.587895 + 1.225946 + 1.666555 + 0.735522 + 0.73 + 0.03),
    "quadruped.yaml": (19, 18, 3.3 + 4 * (0.54 + 0.634 + 0.064) + 12 * 0.055),
    "quadrotor.yaml": (7, 6, 1.0),
    "rolling_disc.yaml": (7, 6, 1.0),
    "showcase.yaml": (29, 27, None),
    "slider_crank.yaml": (3, 3, 0.36 + 0.151104 + 0.075552),
    "stick_slip.yaml": (2, 2, 5.0),
    "stewart.yaml": (25, 24, 40 + 6 * 4.2),
    "tendon_finger.yaml": (3, 3, None),
    "toggle_clamp.yaml": (3, 3, 7850 * (2 * 0.02 * 0.01 * 0.1 + np.pi * 0.012**2 * 0.05)),
    "top.yaml": (4, 3, 15.0),
    "ur5.yaml": (6, 6, 3.7 + 8.393 + 2.33 + 1.219 + 1.219 + 0.1879),
    "ur5_gripper.yaml": (6, 6, 3.7 + 8.393 + 2.33 + 1.219 + 1.219 + 0.1879 + 0.925),
}


def load(name: str) -> Robot:
    return validate(load_description(ROOT / "robots" / name))


def link_of(robot: Robot, name: str) -> Link:
    return next(link for link in robot.links if link.name == name)


def inertia_of(link: Link) -> np.ndarray:
    xx, xy, xz, yy, yz, zz = link.inertia
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def homogeneous(rotation, translation) -> np.ndarray:
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = np.reshape(rotation, (3, 3)), translation
    return T


def turn(axis, angle: float) -> np.ndarray:
    """Return the rotation about a unit axis by Rodrigues' formula."""
    x, y, z = axis
    K = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + math.sin(angle) * K + (1 - math.cos(angle)) * K @ K


def poses(robot: Robot, angles=None) -> dict[str, np.ndarray]:
    """Return the pose of every link in the world by homogeneous matrices; joints not in `angles` are at zero."""
    found = {WORLD: np.eye(4)}
    children = {joint.child for joint in robot.joints}
    found |= {link.name: np.eye(4) for link in robot.links if link.name not in children}
    waiting = list(robot.joints)
    while waiting:
        joint = next(joint for joint in waiting if joint.parent in found)
        waiting.remove(joint)
        angle = (angles or {}).get(joint.name, 0.0)
        motion = homogeneous(turn(joint.axes[0], angle), (0, 0, 0)) if angle else np.eye(4)
        found[joint.child] = found[joint.parent] @ homogeneous(joint.origin.rotation, joint.origin.translation) @ motion
    return found


def centre_of_mass(robot: Robot) -> np.ndarray:
    placed = poses(robot)
    total = sum(link.mass for link in robot.links)
    return sum(link.mass * (placed[link.name] @ [*link.com, 1])[:3] for link in robot.links) / total


def denavit_hartenberg(a, alpha, d, theta) -> np.ndarray:
    return (homogeneous(turn((0, 0, 1), theta), (0, 0, d)) @ homogeneous(turn((1, 0, 0), alpha), (a, 0, 0)))


# every robot ----------------------------------------------------------------------------------------------------------


def test_the_table_lists_every_robot():
    assert sorted(LAYOUT) == sorted(path.name for path in ROBOTS)


@pytest.mark.parametrize("name", LAYOUT)
def test_has_no_findings(name):
    """Except for information, such as the contacts of a MuJoCo file, which a scenario describes."""
    assert [str(one) for one in load(name).warnings if one.level == "warning"] == []


@pytest.mark.parametrize("name", LAYOUT)
def test_coordinates_and_mass(name):
    robot, (nq, nv, mass) = load(name), LAYOUT[name]
    model = build(robot)
    assert (model.nq, model.nv) == (nq, nv)
    if mass is not None:
        assert sum(link.mass for link in robot.links) == pytest.approx(mass, rel=1e-12)


@pytest.mark.parametrize("name", [name for name in LAYOUT if name.endswith(".yaml")])
def test_says_where_its_numbers_come_from(name):
    head = (ROOT / "robots" / name).read_text().split("\nname:")[0]
    assert head.startswith("# ") and len(head) > 200


def test_limits_are_given_for_every_joint_that_has_them():
    """A MuJoCo file has no limits of speed."""
    without = {"continuous", "ball", "free", "fixed"}
    for name in LAYOUT:
        if name.endswith(".xml"):
            continue
        for joint in load(name).joints:
            if joint.type in without or "." in joint.name:     # screws of a curve, which follow its coordinate
                continue
            for coordinate in joint.coordinates:
                values = (coordinate.lower, coordinate.upper, coordinate.velocity, coordinate.effort)
                assert np.isfinite(values).all(), f"{name}: {joint.name}"


# one by one -----------------------------------------------------------------------------------------------------------


def test_double_pendulum_is_the_same_robot_in_both_formats():
    urdf, yaml_robot = load("double_pendulum.urdf"), load("double_pendulum.yaml")
    assert [joint.name for joint in urdf.joints] == [joint.name for joint in yaml_robot.joints]
    assert urdf.joints == yaml_robot.joints
    for link in yaml_robot.links:
        other = link_of(urdf, link.name)
        assert (other.mass, other.com) == (link.mass, link.com)
        np.testing.assert_allclose(other.inertia, link.inertia, rtol=1e-15, atol=0)


def test_double_pendulum_rods_are_those_of_the_textbook():
    rod = link_of(load("double_pendulum.yaml"), "lower")
    np.testing.assert_allclose(np.diag(inertia_of(rod)), [(3 * 0.02**2 + 1) / 12] * 2 + [0.02**2 / 2], rtol=1e-15)
    assert poses(load("double_pendulum.yaml"))["tip"][2, 3] == 0.0


def test_ur5_follows_its_denavit_hartenberg_table():
    """Table of the manufacturer, standard convention: T = Rz(theta) Tz(d) Tx(a) Rx(alpha)."""
    robot, rng = load("ur5.yaml"), np.random.default_rng(5)
    table = zip([0, -0.425, -0.39225, 0, 0, 0], [math.pi / 2, 0, 0, math.pi / 2, -math.pi / 2, 0],
                [0.089159, 0, 0, 0.10915, 0.09465, 0.0823], strict=True)
    rows, names = list(table), [joint.name for joint in robot.joints if joint.type == "revolute"]
    for angles in (np.zeros(6), *rng.uniform(-math.pi, math.pi, (5, 6))):
        expected = np.linalg.multi_dot([denavit_hartenberg(*row, theta) for row, theta in zip(rows, angles, strict=True)])
        found = poses(robot, dict(zip(names, angles, strict=True)))["tool0"]
        np.testing.assert_allclose(found, expected, atol=1e-14)


def test_ur5_reaches_as_far_as_the_sum_of_its_links():
    flange = poses(load("ur5.yaml"))["tool0"][:3, 3]
    np.testing.assert_allclose(flange, [-0.425 - 0.39225, -0.10915 - 0.0823, 0.089159 - 0.09465], atol=1e-15)


def test_ur5_centres_of_mass_are_those_of_the_table():
    """Published in Denavit-Hartenberg frame i, which is ours shifted by a_i and turned by alpha_i about x."""
    published = {"shoulder_link": (0, math.pi / 2, [0, -0.02561, 0.00193]),
                 "upper_arm_link": (-0.425, 0, [0.2125, 0, 0.11336]),
                 "forearm_link": (-0.39225, 0, [0.15, 0, 0.0265]),
                 "wrist_1_link": (0, math.pi / 2, [0, -0.0018, 0.01634]),
                 "wrist_2_link": (0, -math.pi / 2, [0, 0.0018, 0.01634]),
                 "wrist_3_link": (0, 0, [0, 0, -0.001159])}
    robot = load("ur5.yaml")
    for name, (a, alpha, com) in published.items():
        np.testing.assert_allclose(link_of(robot, name).com, turn((1, 0, 0), alpha) @ com + [a, 0, 0], atol=1e-15, err_msg=name)


def test_panda_follows_its_denavit_hartenberg_table():
    """Craig's convention: T = Rx(alpha) Tx(a) Tz(d) Rz(theta); then the flange at 0.107 m."""
    robot, rng = load("panda.yaml"), np.random.default_rng(7)
    table = list(zip([0, 0, 0, 0.0825, -0.0825, 0, 0.088], np.array([0, -1, 1, 1, -1, 1, 1]) * math.pi / 2,
                     [0.333, 0, 0.316, 0, 0.384, 0, 0], strict=True))
    for angles in rng.uniform(-2, 2, (5, 7)):
        expected = np.eye(4)
        for (a, alpha, d), theta in zip(table, angles, strict=True):
            expected = expected @ homogeneous(turn((1, 0, 0), alpha), (a, 0, 0)) @ homogeneous(turn((0, 0, 1), theta), (0, 0, d))
        expected = expected @ homogeneous(np.eye(3), (0, 0, 0.107))
        found = poses(robot, {f"panda_joint{k + 1}": angle for k, angle in enumerate(angles)})["panda_link8"]
        np.testing.assert_allclose(found, expected, atol=1e-14)


def test_iiwa_has_the_lengths_of_its_data_sheet():
    """Shoulder, elbow and wrist are 0.36, 0.42 and 0.4 m apart, the flange 0.126 m; bent by the elbow, the forearm is level."""
    robot = load("iiwa.yaml")
    upright, bent = poses(robot), poses(robot, {"joint_4": math.pi / 2})
    heights = [upright[name][2, 3] for name in ("link_2", "link_4", "link_6", "flange")]
    np.testing.assert_allclose(heights, np.cumsum([0.36, 0.42, 0.4, 0.126]), atol=1e-15)
    np.testing.assert_allclose(bent["flange"][:3, 3], [-0.526, 0.0, 0.78], atol=1e-14)


def test_quadruped_stands_on_four_feet_and_is_symmetric():
    robot = load("quadruped.yaml")
    placed = poses(robot)
    for leg, x, y in (("FL", 1, 1), ("FR", 1, -1), ("HL", -1, 1), ("HR", -1, -1)):
        np.testing.assert_allclose(placed[f"{leg}_foot"][:3, 3], [x * 0.19, y * (0.049 + 0.062), -(0.209 + 0.195)], atol=1e-15)
    mirror = np.diag([1.0, -1.0, 1.0])
    for part in ("abductor", "thigh", "shank"):
        for fore in "FH":
            left, right = (link_of(robot, f"{fore}{side}_{part}") for side in "LR")
            np.testing.assert_array_equal(mirror @ left.com, right.com)
            np.testing.assert_array_equal(mirror @ inertia_of(left) @ mirror, inertia_of(right))
    np.testing.assert_allclose(centre_of_mass(robot)[:2], 0, atol=1e-15)


def test_quadruped_armature_is_the_rotor_through_the_gear():
    for joint in load("quadruped.yaml").joints:
        if joint.type == "revolute":
            gear = 9.33 if joint.name.endswith("knee") else 6
            assert joint.coordinates[0].armature == pytest.approx(63e-6 * gear**2, rel=1e-4)


def test_humanoid_is_as_heavy_as_each_segment_of_the_table_and_symmetric():
    percent = {"pelvis": 11.17, "abdomen": 16.33, "thorax": 15.96, "head": 6.94, "upper_arm": 2.71, "forearm": 1.62, "hand": 0.61,
               "thigh": 14.16, "shank": 4.33, "foot": 1.37}
    robot = load("humanoid.yaml")
    for link in robot.links:
        assert link.mass == pytest.approx(0.73 * percent[link.name.removeprefix("left_").removeprefix("right_")], rel=1e-5)
    np.testing.assert_allclose(centre_of_mass(robot)[1], 0, atol=1e-15)


def test_humanoid_has_the_build_of_a_man():
    """The centre of mass of a standing man lies at 55 to 57 percent of his height above the soles."""
    robot = load("humanoid.yaml")
    placed = poses(robot)
    sole = placed["left_foot"][2, 3] - 0.039 * 1.741
    vertex = placed["head"][2, 3] + 0.2429
    assert vertex - sole == pytest.approx(1.741, abs=0.05)
    assert (centre_of_mass(robot)[2] - sole) / (vertex - sole) == pytest.approx(0.56, abs=0.015)


def test_humanoid_whole_body_inertia_is_that_of_a_standing_man():
    """About 12 kg m^2 about the transverse axis with the arms down (measured on living men: 10 to 14)."""
    robot, total = load("humanoid.yaml"), np.zeros((3, 3))
    placed, com = poses(robot), centre_of_mass(robot)
    for link in robot.links:
        r = (placed[link.name] @ [*link.com, 1])[:3] - com
        total += inertia_of(link) + link.mass * (r @ r * np.eye(3) - np.outer(r, r))
    assert 10 < total[1, 1] < 14 and 10 < total[0, 0] < 14 and 0.8 < total[2, 2] < 1.6


def test_top_about_its_pivot():
    top = link_of(load("top.yaml"), "top")
    A, C = top.inertia[0] + top.mass * top.com[2] ** 2, top.inertia[5]
    assert (A, C) == (15.234375, 0.46875)


def test_block_has_three_different_moments_of_inertia():
    block = link_of(load("asymmetric_body.yaml"), "block")
    np.testing.assert_allclose(np.diag(inertia_of(block)) / block.mass * 1200, [5, 10, 13], rtol=1e-14)


def test_equal_thrusts_of_the_hexarotor_lift_it_straight_up():
    allocation = np.zeros((6, 6))
    for k, rotor in enumerate(load("hexarotor_arms.yaml").actuators):
        axis = np.array(rotor.axis)
        allocation[:, k] = [*(np.cross(rotor.position, axis) + rotor.torque_ratio * axis), *axis]
    assert np.linalg.matrix_rank(allocation) == 6                     # each wrench has its thrusts: fully actuated
    hover = 4 * 9.81 / 6 / math.cos(math.radians(20))
    np.testing.assert_allclose(allocation @ np.full(6, hover), [0, 0, 0, 0, 0, 39.24], atol=1e-9)


def test_showcase_shows_every_joint_type_and_every_key():
    robot = load("showcase.yaml")
    assert {joint.type for joint in robot.joints} == set(JOINT_TYPES)
    tree = yaml.safe_load((ROOT / "robots" / "showcase.yaml").read_text())
    keys = {key for part in ("links", "joints", "actuators") for entry in tree[part].values() for key in entry}
    assert keys == {
        "mass", "com", "inertia", "shape", "density", "rpy",
        "type", "parent", "child", "origin", "axis", "axes", "pitch", "sequence", "screws",
        "limits", "damping", "friction", "armature", "stiffness", "rest",
        "link", "position", "torque_ratio"}
    shapes = {shape for link in tree["links"].values() for shape in link.get("shape", {})}
    assert shapes == {"box", "sphere", "cylinder", "capsule"}
    assert {key for joint in tree["joints"].values() for key in joint.get("origin", {})} == {"xyz", "rpy", "quaternion"}


def test_mechanisms_show_every_closure():
    robots = [load(name) for name in LAYOUT]
    assert {loop.type for robot in robots for loop in robot.loops} == set(LOOP_TYPES)
    assert any(robot.couplings for robot in robots) and any(joint.mimic for robot in robots for joint in robot.joints)
    files = (ROOT / "robots").glob("*.loops.yaml")
    assert any(loop.driven for path in files for loop in read_loops_file(path).loops)


# scenarios ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_scenario_fits_its_robot(path):
    scenario = read_scenario(path)
    compiled = compile_schedule(scenario, ld.load(scenario.robot, base=scenario.base, loops=scenario.loops))
    codes = {one.code for one in compiled.warnings}
    expected = {"initial-state-rounded"}                      # initial values have few digits
    expected |= {"passive-torque"} if path.stem == "andrews" else set()              # its spring
    assert codes <= expected


def test_every_robot_has_a_scenario():
    assert {Path(read_scenario(path).robot).name for path in SCENARIOS} == set(LAYOUT)


def test_scenarios_show_every_key():
    trees = [yaml.safe_load(path.read_text()) for path in SCENARIOS]
    assert {key for tree in trees for key in tree} == set(SCENARIO)
    words = _words(trees)
    others = {
        "pd", "kp", "kd", "target", "feedforward", "amplitude", "frequency", "phase", "offset", "file", "interpolation",
        "link", "frame", "wrench", "point", "from", "until", "torque", "prescribe",
        "method", "step", "rtol", "atol", "max_step", "rk4", "dopri5", "DOP853"}
    assert {*LEVELS, *CURVES, *others} - words == set()


def _words(tree) -> set[str]:
    if isinstance(tree, dict):
        return set(tree) | set().union(*map(_words, tree.values()), set())
    if isinstance(tree, list):
        return set().union(*map(_words, tree), set())
    return {tree} if isinstance(tree, str) else set()


def test_data_files_stay_small():
    sizes = {path.name: path.stat().st_size for path in (ROOT / "configs").glob("*.csv")}
    assert sizes and max(sizes.values()) < 20_000, sizes
