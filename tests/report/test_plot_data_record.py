"""Columns of a trajectory become groups of curves by joint."""
import dataclasses
import math
from pathlib import Path

import numpy as np

import liedyn as ld
from liedyn.analysis.trajectory_dynamics import wrench_comments
from liedyn.analysis.trajectory_kinematics import frame_comment
from liedyn.report.plots.plot_data import (
    base_path_of_columns,
    energy_of_columns,
    groups_of_columns,
    prescribed_comment,
    prescribed_of_comments,
    record,
    skeleton,
)

N = 5
ROOT = Path(__file__).parents[2]


def groups(*columns, **options):
    names = [column.partition("[")[0] for column in columns]
    units = {column.partition("[")[0]: column.partition("[")[2].rstrip("]") for column in columns}
    comments = options.get("comments", {}) | prescribed_comment(options.get("prescribed", ()))
    return groups_of_columns({name: np.zeros(N) for name in names}, units, comments, options.get("limits", {}),
                             options.get("joints", ()))


def test_groups_by_prefix_in_a_fixed_order():
    found = groups("tau.elbow[N m]", "v.elbow[rad/s]", "comment", "q.elbow[rad]", "fext.hand.mx[N m]", "a.elbow[rad/s^2]")
    assert [group.name for group in found] == ["positions", "velocities", "torques", "external_forces"]
    assert found[2].series[0].unit == "N m" and found[2].series[0].joint == "elbow"
    assert found[3].series[0].joint == "hand" and found[3].series[0].label == "mx"


def test_units_that_a_file_lacks_are_those_of_the_robot():
    model = ld.load(ROOT / "robots" / "cart_pole.yaml")
    motion = ld.trajectory_of(model, np.arange(N) * 0.1, np.zeros((N, 2)))
    bare = dataclasses.replace(motion, units=dict.fromkeys(motion.units, ""))
    assert [s.unit for s in record(bare, model, "").groups[0].series] == ["m", "rad"]


def test_reactions_have_a_panel_a_constraint_and_unit():
    found = groups("reaction.pin.mx[N m]", "reaction.pin.fx[N]", "reaction.pin.fy[N]", "reaction.gear[N m]", "drift[m]",
                   "tau.elbow[N m]")
    assert [group.name for group in found] == ["torques", "reactions"]
    assert [(s.joint, s.label, s.unit) for s in found[1].series] == [
        ("pin", "mx", "N m"), ("pin", "fx", "N"), ("pin", "fy", "N"), ("gear", "", "N m")]


def test_pictures_name_the_axes_that_the_comments_of_the_file_name():
    model = ld.load(ROOT / "robots/four_bar.yaml")
    columns = "wrench.knee.mx[N m]", "twist.hand.wx[rad/s]", "reaction.pin.fx[N]", "q.knee[rad]"
    for axes, words in (("world", "world axes"), ("link", "axes of the child link"),
                        ("joint", "axes of the joint's frame, fixed in the parent link")):
        comments = {**wrench_comments(model, axes), "frame": frame_comment("local", None)}
        found = {group.name: group.axes for group in groups(*columns, comments=comments)}
        assert found["joint_wrenches"] == f"{words}, about the child link's origin"
        assert found["link_twists"] == "axes of the link, about its point" and found["positions"] == ""
        assert found["reactions"].endswith(", about the origin of frame b")
    assert {group.axes for group in groups(*columns)} == {""}


def test_measured_torques_share_the_panel_of_the_computed_ones():
    columns = {"tau.elbow": np.zeros(N), "measured.elbow": np.ones(N), "tau.wrist": np.zeros(N), "measured.foot": np.ones(N)}
    group, = groups_of_columns(columns, dict.fromkeys(columns, "N m"), {}, {}, ())
    assert [(s.joint, s.label, float(s.values[0])) for s in group.series] == [
        ("elbow", "computed", 0.0), ("elbow", "measured", 1.0), ("wrist", "", 0.0)]


def test_motors_have_torque_and_speed_in_panels_of_their_own():
    found = groups("motor.elbow.speed[rad/s]", "motor.elbow.torque[N m]", "tau.elbow[N m]")
    assert [(group.name, len(group.series)) for group in found] == [("torques", 1), ("motors", 2)]


def test_accelerations_are_drawn_where_there_are_no_positions():
    assert [group.name for group in groups("a.elbow[rad/s^2]")] == ["accelerations"]


def test_joint_and_label():
    q, = groups("q.base.px[m]", "q.base.qw", "q.cardan.1[rad]", "q.gimbal.z2[rad]", "q.tube.slide[m]", "q.arm.left[rad]",
                "q.x[m]")
    assert [(s.joint, s.label) for s in q.series] == [
        ("base", "px"), ("base", "qw"), ("cardan", "1"), ("gimbal", "z2"), ("tube", "slide"), ("arm.left", ""), ("x", "")]


def test_a_joint_whose_name_ends_like_a_label_is_not_split_where_joints_are_known():
    q, = groups("q.leg.1[rad]", "q.leg.2[rad]", joints=["leg.1", "leg.2"])
    assert [(s.joint, s.label) for s in q.series] == [("leg.1", ""), ("leg.2", "")]


def test_limits_and_prescribed_joints():
    q, tau = groups("q.elbow[rad]", "tau.elbow[N m]", "tau.ball.mx[N m]", "tau.ball.my[N m]", limits={"q.elbow": (-1, 2)},
                    prescribed=["elbow", "ball.wy"])
    assert (q.series[0].lower, q.series[0].upper, q.series[0].prescribed) == (-1, 2, True)
    assert [s.prescribed for s in tau.series] == [True, False, True]
    assert tau.series[0].upper == math.inf


def test_base_path():
    columns = {f"q.base.{x}": np.full(N, k) for k, x in enumerate(("px", "py", "pz", "qx", "qy", "qz", "qw"))}
    base = base_path_of_columns(columns)
    assert base.position[0].tolist() == [0, 1, 2] and base.quaternion[0].tolist() == [3, 4, 5, 6]
    del columns["q.base.py"]
    assert base_path_of_columns(columns) is None


def test_energy_and_its_balance():
    columns = {"energy.kinetic": np.array([1.0, 2.0]), "energy.potential": np.array([5.0, 5.0]),
               "energy.work": np.array([0.0, 0.75])}
    energy = energy_of_columns(columns)
    assert energy.residual.tolist() == [0, 0.25]
    assert energy_of_columns({name: x for name, x in columns.items() if name != "energy.work"}) is None


def test_prescribed_joints_go_through_a_comment():
    assert prescribed_comment([]) == {} and prescribed_of_comments({}) == []
    assert prescribed_of_comments(prescribed_comment(["elbow", "ball.wx"])) == ["elbow", "ball.wx"]


def test_links_without_a_line_have_the_outlines_of_their_shapes():
    """A cart whose pole is at its origin, and a ball. The view is that of the lines, which are in a plane."""
    links = [ld.Link("cart", mass=1, shape=ld.Shape.box(0.4, 0.2, 0.1)),
             ld.Link("pole", mass=1, com=[0, 0, 0.5], shape=ld.Shape.cylinder(0.01, 1.0))]
    joints = [ld.Joint("slide", "prismatic", "world", "cart", axis=[1, 0, 0]),
              ld.Joint("hinge", "continuous", "cart", "pole", axis=[0, 1, 0])]
    model, t = ld.build(ld.Robot("cart", links, joints)), np.linspace(0, 1, 5)
    drawn = skeleton(model, t, np.stack([0.1 * t, t], axis=1))
    outline = drawn.points[:, sorted({k for line in drawn.outlines for k in line})]
    assert np.allclose(np.ptp(outline[0], axis=0), [0.4, 0.2, 0.1]) and np.allclose(outline[-1] - outline[0], [0.1, 0, 0])
    assert drawn.line_points.shape[1] == drawn.points.shape[1] - outline.shape[1] and np.ptp(drawn.line_points[..., 1]) == 0.0
    for shape, size in ((ld.Shape.sphere(0.1), 3 * [0.2]), (ld.Shape.cylinder(0.1, 0.5), [0.2, 0.2, 0.5]),
                        (ld.Shape.capsule(0.1, 0.5), [0.2, 0.2, 0.7])):
        single = ld.build(ld.Robot("single", [ld.Link("body", mass=1, shape=shape)], base="floating"))
        drawn = skeleton(single, t[:1], single.neutral()[None])
        assert not drawn.edges and np.allclose(np.ptp(drawn.points[0], axis=0), size, atol=1e-3)
        assert drawn.line_points is drawn.points
