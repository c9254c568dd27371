"""The recording of a robot's motion: skeleton, energy, limits."""
from pathlib import Path

import numpy as np
import pytest

from liedyn.dynamics.kinematics import link_pose, link_poses
from liedyn.io.trajectory_csv import Trajectory
from liedyn.report.plots.plot_data import FRAMES, RIM, column_limits, record, skeleton
from liedyn.report.plots.spatial_plots import draw_motion
from liedyn.report.replay.scene import GROUND, body_scene
from liedyn.robot_files import load

ROBOTS = Path(__file__).parents[2] / "robots"


def still(model, n=3):
    t = np.linspace(0, 1, n)
    return t, np.tile(model.neutral(), (n, 1))


def trajectory(model, n=3):
    t, q = still(model, n)
    columns = {f"q.{name}": q[:, k] for k, name in enumerate(model.q_names)}
    columns |= {f"v.{name}": np.ones(n) for name in model.v_names}
    return t, columns


@pytest.fixture
def bar(tmp_path):
    """Return two links on a hinge at (0, 0, 1), with a sensor frame and a thruster."""
    (tmp_path / "bar.yaml").write_text("""
links:
  upper: {mass: 1, com: [0, 0, -0.25], inertia: [0.1, 0.1, 0.1]}
  lower: {mass: 2, com: [0, 0, -0.3], inertia: [0.1, 0.1, 0.1]}
  sensor: {}
joints:
  hip: {type: revolute, parent: world, child: upper, axis: [0, 1, 0], origin: {xyz: [0, 0, 1]},
        limits: {lower: -2, upper: 2, velocity: 3, effort: 4}}
  knee: {type: revolute, parent: upper, child: lower, axis: [0, 1, 0], origin: {xyz: [0, 0, -0.5]},
         limits: {lower: -2, upper: 2, velocity: 3, effort: 5}}
  glue: {type: fixed, parent: upper, child: sensor, origin: {xyz: [1, 0, 0]}}
actuators:
  jet: {link: lower, position: [0.1, 0, 0], axis: [1, 0, 0]}
""")
    return load(tmp_path / "bar.yaml")


def test_the_skeleton_joins_origins_ends_and_thrusters(bar):
    t, q = still(bar)
    drawn = skeleton(bar, t, q)
    lines = {(tuple(drawn.points[0, a]), tuple(drawn.points[0, b])) for a, b in drawn.edges}
    assert lines == {((0, 0, 1), (0, 0, 0.5)),                    # hip to knee
                     ((0, 0, 0.5), (0, 0, 0.2)),                  # knee to the centre of mass of the last link
                     ((0, 0, 0.5), (0.1, 0, 0.5))}                # knee to the thruster; the sensor frame is no limb
    assert drawn.masses.tolist() == [0, 0, 2, 0]


@pytest.mark.parametrize(("shape", "rims"), [("disc", 1), ("sphere", 3)])
def test_what_rolls_has_a_rim(tmp_path, shape, rims):
    """The rim is about the origin of frame B, perpendicular to the axle, and touches the plane."""
    axle = ", axis: [0, 1, 0]" if shape == "disc" else ""
    (tmp_path / "wheel.yaml").write_text(f"""
links: {{wheel: {{mass: 1, inertia: [0.1, 0.2, 0.1]}}}}
joints: {{wheel: {{type: free, parent: world, child: wheel}}}}
loops:
  ground: {{type: rolling, a: world, b: {{link: wheel, xyz: [0, 0.1, 0]}}, radius: 0.3, shape: {shape}{axle}}}
""")
    model = load(tmp_path / "wheel.yaml")
    t, q = still(model)
    q[:, 2], q[1:, 0] = 0.3, 1.0                                   # it stands on the ground, and moves
    drawn = skeleton(model, t, q)
    assert [len(rim) for rim in drawn.rims] == [RIM] * rims
    assert len(draw_motion(drawn).axes[0].collections) > 2
    around = drawn.points[0][list(drawn.rims[0])] - (0.0, 0.1, 0.3)
    np.testing.assert_allclose(np.linalg.norm(around, axis=1), 0.3)
    np.testing.assert_allclose(around[:, 1] if shape == "disc" else 0.0, 0.0, atol=1e-15)
    assert abs(drawn.points[..., 2].min()) < 1e-3


def test_the_skeleton_reaches_to_the_closures_and_shows_rods():
    """Links end where their closures hold them: both ends of a four-bar's pin are drawn, in one place; a rod is a line."""
    linkage = load(ROBOTS / "four_bar.yaml")
    q = np.array([[0.0, -1.3694384060045657, -1.7721542475852272], [0.0, -1.3694384060045657, -1.7721542475852272 + 1e-3]])
    drawn = skeleton(linkage, np.array([0.0, 1.0]), q)
    pin = link_pose(linkage, q[0], "rocker") @ [0.25, 0, 0, 1]
    assert (np.abs(drawn.points[0] - pin[:3]).max(1) < 1e-12).sum() == 2
    pieces = load(ROBOTS / "closures.yaml")
    q = np.tile(pieces.neutral(), (2, 1))
    q[1, pieces.q_index("left_bob")] = 0.1
    drawn = skeleton(pieces, np.array([0.0, 1.0]), q)
    lines = [drawn.points[0][list(edge)] for edge in drawn.edges]
    assert any(np.allclose(line, [[-0.2, 0, 0.5], [0.2, 0, 0.5]]) for line in lines)


def test_force_elements_are_lines_between_their_ends():
    clamp = load("robots/toggle_clamp.yaml")
    q = np.array([clamp.neutral(), [0.5, -1.0, 0.0245]])
    drawn = skeleton(clamp, np.array([0.0, 1.0]), q)
    pad, spring, damper = drawn.rims                                             # there and back
    assert len(damper) == 2 and len(pad) == len(spring) > 20
    ends = drawn.points[:, [spring[0], spring[len(spring) // 2]]]
    np.testing.assert_allclose(ends, drawn.points[:, list(damper)], atol=1e-15)
    np.testing.assert_allclose(ends[:, 0], [[-0.2, 0, 0.2]] * 2, atol=1e-15)      # on the ground
    np.testing.assert_allclose(ends[1, 1], (link_pose(clamp, q[1], "crank") @ [0, 0, -0.09, 1])[:3], atol=1e-15)
    page = body_scene(clamp, link_poses(clamp, q), {})
    assert [spring for _, _, spring in page["elements"]] == [1, 1, 0]
    assert page["points"][page["elements"][2][0]] == [GROUND, -0.2, 0, 0.2]


def test_the_skeleton_turns_with_the_joints(bar):
    t, q = still(bar)
    q[-1] = [np.pi / 2, 0]                                        # about y: what hung down points to -x
    drawn = skeleton(bar, t, q)
    assert np.allclose(drawn.points[-1], [[0, 0, 1], [-0.5, 0, 1], [-0.8, 0, 1], [-0.5, 0, 0.9]])


def test_long_motions_are_thinned_and_keep_their_ends(bar):
    t, q = still(bar, 10_000)
    drawn = skeleton(bar, t, q)
    assert FRAMES / 2 < len(drawn.t) <= FRAMES and drawn.t[0] == 0 and drawn.t[-1] == 1
    assert np.allclose(np.diff(drawn.t)[:-1], drawn.t[1])


def test_limits_of_the_columns(bar):
    limits = column_limits(bar)
    assert limits["q.hip"] == (-2, 2) and limits["v.knee"] == (-3, 3) and limits["tau.knee"] == (-5, 5)


def test_energy_is_computed_where_it_is_not_given(bar):
    t, columns = trajectory(bar)
    whole = record(Trajectory({}, t, columns, {}), bar, "bar")
    assert np.allclose(whole.energy.potential, 9.81 * (1 * 0.75 + 2 * 0.2))
    assert whole.energy.kinetic.shape == t.shape and whole.energy.kinetic[0] > 0
    del columns["v.hip"]
    assert record(Trajectory({}, t, columns, {}), bar, "bar").energy is None
    del columns["q.hip"]
    partial = record(Trajectory({}, t, columns, {}), bar, "bar")
    assert partial.skeleton is None and [group.name for group in partial.groups] == ["positions", "velocities"]


@pytest.mark.parametrize("robot", sorted(path.name for path in ROBOTS.glob("*.yaml")))
def test_every_robot_of_ours_can_be_recorded(robot):
    model = load(ROBOTS / robot)
    t, columns = trajectory(model)
    whole = record(Trajectory({}, t, columns, {}), model, robot)
    assert whole.energy is not None
    assert (whole.base is not None) == (model.base == "floating")
    assert sum(len(group.series) for group in whole.groups) == model.nq + model.nv
