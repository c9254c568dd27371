"""Kinematics along a motion: against single calls of the library, splines of SciPy through what is written, and closed forms."""
from dataclasses import replace

import numpy as np
import pytest
from scipy.interpolate import make_interp_spline
from scipy.spatial.transform import Rotation

import liedyn as ld
from liedyn.analysis.trajectory_kinematics import kinematics_along
from liedyn.errors import ComputationError, TrajectoryError, UsageError
from liedyn.io.trajectory_csv import Trajectory, read_trajectory, write_trajectory
from liedyn.model.description import Joint, Robot
from liedyn.model.links import Link, Pose
from liedyn.simulation.trajectory_columns import motion_columns
from zoo import model_of, random_robot, state

ROBOTS = ("every kind", "every kind, floating")


def recorded(model, t, **arrays):
    columns = motion_columns(model, **arrays)
    return Trajectory({}, np.asarray(t, dtype=float), {name: x for name, _, x in columns},
                      {name: unit for name, unit, _ in columns}, "motion.csv", np.arange(len(t)) + 2)


def found(along):
    return {name: x for name, _, x in along.columns}


def stacked(columns, kind, parts):
    return np.column_stack([columns[f"{kind}.{part}"] for part in parts])


TWIST, RATE = ("wx", "wy", "wz", "vx", "vy", "vz"), ("dwx", "dwy", "dwz", "dvx", "dvy", "dvz")
POSE = ("px", "py", "pz", "qx", "qy", "qz", "qw")


@pytest.mark.parametrize("name", ROBOTS)
@pytest.mark.parametrize("frame", ["local", "local_world_aligned", "world"])
def test_links_move_as_single_calls_have_it(name, frame):
    model = model_of(name)
    q, v, a, _ = state(model, 3, 5)
    link = model.joints[-1].child
    along = kinematics_along(model, recorded(model, range(5), q=q, v=v, a=a), [link, model.link_names[1]], frame=frame,
                             jacobian=True)
    assert along.header["frame"].startswith(f"{frame}: ") and not along.warnings
    got = found(along)
    T = ld.link_pose(model, q, link)
    np.testing.assert_allclose(stacked(got, f"pose.{link}", POSE[:3]), T[:, :3, 3], atol=1e-14)
    turned = Rotation.from_quat(stacked(got, f"pose.{link}", POSE[3:])).as_matrix()
    np.testing.assert_allclose(turned, T[:, :3, :3], atol=1e-14)
    J = np.array([[got[f"jacobian.{link}.{part}/{by}"] for by in model.v_names] for part in TWIST]).transpose(2, 0, 1)
    twist, acceleration = (stacked(got, f"{kind}.{link}", parts) for kind, parts in (("twist", TWIST), ("acceleration", RATE)))
    for x, expected in ((J, ld.jacobian(model, q, link, frame=frame)), (twist, ld.link_twist(model, q, v, link, frame=frame)),
                        (acceleration, ld.link_acceleration(model, q, v, a, link, frame=frame))):
        np.testing.assert_allclose(x, expected, rtol=0, atol=1e-13 * np.abs(expected).max())
    whole = np.sqrt(np.linalg.det(J @ J.transpose(0, 2, 1)))            # which no change of frame changes: det Ad = 1
    np.testing.assert_allclose(got[f"manipulability.{link}"], whole, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("frame", ["local", "local_world_aligned", "world"])
def test_a_point_of_a_link_moves_as_a_frame_that_is_welded_there(frame):
    model = model_of("every kind, floating")
    weld = next(joint for joint in model.description.joints if joint.type == "fixed")
    at = weld.origin.translation
    turn = np.reshape(weld.origin.rotation, (3, 3)) if frame == "local" else np.eye(3)      # axes of the weld -> of its parent
    q, v, a, _ = state(model, 4, 3)
    got = found(kinematics_along(model, recorded(model, range(3), q=q, v=v, a=a), [weld.parent], point=at, frame=frame,
                                 jacobian=True))
    np.testing.assert_allclose(stacked(got, f"pose.{weld.parent}", POSE[:3]), ld.link_pose(model, q, weld.child)[:, :3, 3],
                               atol=1e-14)
    rows = {"twist": ld.link_twist(model, q, v, weld.child, frame=frame),
            "acceleration": ld.link_acceleration(model, q, v, a, weld.child, frame=frame)}
    J = ld.jacobian(model, q, weld.child, frame=frame)
    rows |= {f"jacobian/{by}": J[..., k] for k, by in enumerate(model.v_names)}
    for kind, x in rows.items():
        name, _, by = kind.partition("/")
        expected = np.concatenate([x[:, :3] @ turn.T, x[:, 3:] @ turn.T], axis=1)
        parts = [f"{part}/{by}" for part in TWIST] if by else RATE if name == "acceleration" else TWIST
        np.testing.assert_allclose(stacked(got, f"{name}.{weld.parent}", parts), expected, rtol=0,
                                   atol=1e-13 * max(1.0, np.abs(expected).max()))
    v_point = ld.link_twist(model, q, v, weld.child)[:, 3:]
    np.testing.assert_allclose(got[f"speed.{weld.parent}"], np.linalg.norm(v_point, axis=1), rtol=1e-13)


@pytest.fixture(scope="module")
def swinging():
    """Return a tree of joints with one coordinate that move as sines, at 401 times, and the exact rates."""
    model = ld.build(random_robot(21, 5, types=("revolute", "prismatic", "helical"), massless=False))
    t, k = np.linspace(0, 1, 401), np.arange(model.nv)
    w = 3.0 + k
    q, v, a = (x + 0 * t[:, None] for x in (0.3 * np.sin(np.outer(t, w) + k), 0.3 * w * np.cos(np.outer(t, w) + k),
                                            -0.3 * w**2 * np.sin(np.outer(t, w) + k)))
    return model, t, q, v, a


# Septic splines through rows 2.5 ms apart: their rates are off by less than 1e-9 of the size here, and by more near the ends.
INNER, CLOSE = slice(20, -20), {"rtol": 0, "atol": 3e-8}


def rates(t, x, order=1):
    return make_interp_spline(t, x, 7).derivative(order)(t)[INNER]


def test_rates_are_those_of_splines_through_the_poses(swinging):
    model, t, q, v, a = swinging
    link = model.link_names[-1]
    got = found(kinematics_along(model, recorded(model, t, q=q, v=v, a=a), [link], point=(0.1, -0.2, 0.3)))
    pose, twist, acceleration = (stacked(got, f"{kind}.{link}", parts) for kind, parts in (
        ("pose", POSE), ("twist", TWIST), ("acceleration", RATE)))
    np.testing.assert_allclose(twist[INNER, 3:], rates(t, pose[:, :3]), **CLOSE)
    np.testing.assert_allclose(acceleration[INNER, 3:], rates(t, pose[:, :3], 2), rtol=0, atol=1e-5)
    np.testing.assert_allclose(acceleration[INNER], rates(t, twist), **CLOSE)
    # dQ/dt = (w, 0) Q / 2 in world axes; quaternions do not jump
    spin = np.column_stack([twist[INNER, :3], np.zeros(len(t))[INNER]])
    Q, dQ = pose[INNER, 3:], rates(t, pose[:, 3:])
    product = np.column_stack([np.cross(spin[:, :3], Q[:, :3]) + spin[:, :3] * Q[:, 3:], -np.sum(spin[:, :3] * Q[:, :3], axis=1)])
    np.testing.assert_allclose(dQ, product / 2, **CLOSE)


def test_the_whole_robot_moves_as_its_masses(swinging):
    """Centre of mass and momentum by sums over links, rates by splines; the zero-moment point by the rate of the momentum."""
    model, t, q, v, a = swinging
    got = found(kinematics_along(model, recorded(model, t, q=q, v=v, a=a), com=True, momentum=True, zmp=True))
    moving = [link for k, link in enumerate(model.description.links) if model.link_body[k] > 0]
    mass = sum(link.mass for link in moving)
    c = sum(link.mass * (ld.link_pose(model, q, link.name)[:, :3] @ np.r_[link.com, 1]) for link in moving) / mass
    position, velocity, acceleration = (stacked(got, f"com.{kind}", "xyz") for kind in ("position", "velocity", "acceleration"))
    np.testing.assert_allclose(position, c, atol=1e-14)
    np.testing.assert_allclose(velocity[INNER], rates(t, c), **CLOSE)
    np.testing.assert_allclose(acceleration[INNER], rates(t, velocity), **CLOSE)
    L, p = stacked(got, "momentum.angular", "xyz"), stacked(got, "momentum.linear", "xyz")
    np.testing.assert_allclose(p, mass * velocity, atol=1e-13)
    force = rates(t, p) - mass * model.gravity
    moment = rates(t, L + np.cross(c, p)) - np.cross(c[INNER], mass * model.gravity)
    lever = np.column_stack([got["zmp.x"], got["zmp.y"], 0 * t])[INNER]
    np.testing.assert_allclose(got["zmp.force"][INNER], force[:, 2], rtol=0, atol=1e-6)
    left = moment - np.cross(lever, force)
    assert np.abs(left[:, :2]).max() < 1e-6 * max(1.0, np.abs(lever).max()) * np.abs(force).max()
    L_links = sum(_spin(model, q, v, link) for link in moving) - np.cross(c, p)
    np.testing.assert_allclose(L, L_links, atol=1e-12 * np.abs(L).max())


def _spin(model, q, v, link):
    """Return the angular momentum of a link about the world's origin."""
    T, V = ld.link_pose(model, q, link.name), ld.link_twist(model, q, v, link.name)
    xx, xy, xz, yy, yz, zz = link.inertia
    I = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    r = T[:, :3] @ np.r_[link.com, 1]
    u = np.einsum("nij,nj->ni", T[:, :3, :3], V[:, 3:] + np.cross(V[:, :3], link.com))
    return np.einsum("nij,nj->ni", T[:, :3, :3], V[:, :3] @ I) + link.mass * np.cross(r, u)


def cart(height=0.8):
    """Return a mass that slides along x on a table of this height."""
    slide = Joint("slide", "prismatic", "table", "mass", Pose(translation=(0, 0, height)), axes=((1.0, 0, 0),))
    return ld.build(Robot("cart", (Link("table"), Link("mass", 2.0, inertia=(0.01, 0, 0, 0.01, 0, 0.01))), (slide,)))


def test_zero_moment_point_of_a_cart_on_a_table():
    """x - h ddx / g (Kajita et al. 2003)."""
    model, x, ddx = cart(), np.array([[0.1], [0.2], [-0.4]]), np.array([[0.0], [3.0], [-20.0]])
    got = found(kinematics_along(model, recorded(model, range(3), q=x, v=0 * x, a=ddx), zmp=True))
    np.testing.assert_allclose(got["zmp.x"], (x - 0.8 * ddx / 9.81)[:, 0], rtol=1e-14)
    np.testing.assert_allclose(got["zmp.y"], 0, atol=1e-15)
    np.testing.assert_allclose(got["zmp.force"], 2 * 9.81, rtol=1e-14)


@pytest.mark.parametrize("gravity", [9.81, 9.81e-10])
def test_a_zero_moment_point_is_defined_in_all_units_of_time(gravity):
    """The minimum force was that of 1 m/s^2, so that in units of 1e-5 s the point was undefined."""
    model = ld.build(replace(cart().description, gravity=(0.0, 0.0, -gravity)))
    x = np.array([[0.1], [0.2], [-0.4]])
    got = found(kinematics_along(model, recorded(model, range(3), q=x, v=0 * x, a=0 * x), zmp=True))
    np.testing.assert_allclose(got["zmp.x"], x[:, 0], rtol=1e-14)


def test_free_fall_has_no_zero_moment_point(tmp_path):
    model = ld.build(Robot("stone", (Link("stone", 2.0, inertia=(0.1, 0, 0, 0.1, 0, 0.1)),), (), base="floating"))
    q, a = np.tile(model.neutral(), (2, 1)), np.zeros((2, 6))
    a[1, 5] = -9.81
    found = kinematics_along(model, recorded(model, range(2), q=q, v=0 * a, a=a), zmp=True)
    columns = {name: x for name, _, x in found.columns}
    assert columns["zmp.x"][0] == columns["zmp.y"][0] == 0 and np.isnan([columns["zmp.x"][1], columns["zmp.y"][1]]).all()
    assert "is not defined in 1 of 2 rows, the first at t = 1.0, where no vertical force acts" in str(found.warnings[0])
    write_trajectory(tmp_path / "zmp.csv", found.header, found.t, found.columns)
    assert (tmp_path / "zmp.csv").read_text().splitlines()[-1].startswith("1.0,,,")
    again = read_trajectory(tmp_path / "zmp.csv").columns
    assert all(np.array_equal(again[name], x, equal_nan=True) for name, x in columns.items())
    a[:, 5] = -9.81
    with pytest.raises(ComputationError, match=r"not defined: no vertical force acts on the robot at any time"):
        kinematics_along(model, recorded(model, range(2), q=q, v=0 * a, a=a), zmp=True)


def test_other_cells_must_have_a_value(tmp_path):
    for row in ("1,,2,1", "1,nan,2,1", "1,2,nan,", "1,2,,x"):
        (tmp_path / "zmp.csv").write_text(f"t,q.a,zmp.x,zmp.y\n0,1,2,3\n{row}\n")
        with pytest.raises(TrajectoryError, match=r"zmp\.csv:3: "):
            read_trajectory(tmp_path / "zmp.csv")


def test_manipulability_of_an_anthropomorphic_arm():
    """Yoshikawa 1985: l2 l3 |sin q3| |l2 cos q2 + l3 cos(q2 + q3)|; of three joints, none of all six rows."""
    joints = (Joint("q1", "revolute", "base", "turn", axes=((0, 0, 1.0),)),
              Joint("q2", "revolute", "turn", "upper", axes=((0, -1.0, 0),)),
              Joint("q3", "revolute", "upper", "lower", Pose(translation=(0.4, 0, 0)), axes=((0, -1.0, 0),)))
    links = tuple(Link(name, 1.0, inertia=(0.1, 0, 0, 0.1, 0, 0.1)) for name in ("base", "turn", "upper", "lower"))
    model = ld.build(Robot("arm", links, joints))
    q = np.random.default_rng(3).uniform(-2, 2, (6, 3))
    motion = recorded(model, range(6), q=q, v=0 * q, a=0 * q)
    got = found(kinematics_along(model, motion, ["lower"], point=(0.3, 0, 0), jacobian=True))
    reach = 0.4 * np.cos(q[:, 1]) + 0.3 * np.cos(q[:, 1] + q[:, 2])
    np.testing.assert_allclose(got["manipulability.lower.position"], 0.12 * np.abs(np.sin(q[:, 2]) * reach), rtol=1e-12)
    assert not got["manipulability.lower"].any()


def test_what_is_derived_is_told_of(swinging):
    model, t, q, v, a = swinging
    along = kinematics_along(model, recorded(model, t, q=q), [model.link_names[-1]], com=True)
    first, second = map(str, along.warnings)
    assert first.startswith("velocities and accelerations are derived from the positions")
    assert second.startswith("estimated error")
    exact = found(kinematics_along(model, recorded(model, t, q=q, v=v, a=a), [model.link_names[-1]], com=True))
    for name, x in found(along).items():
        assert np.abs(x - exact[name])[INNER].max() < 1e-5 * max(1.0, np.abs(exact[name]).max()), name


def test_errors_of_rates_that_cancel_are_relative_to_those_of_the_joints():
    """The second link keeps its orientation: its angular velocity is the rounding of a sum of two."""
    links = tuple(Link(name, 1.0, inertia=(0.1, 0, 0, 0.1, 0, 0.1)) for name in ("upper", "lower"))
    joints = (Joint("q1", "revolute", "world", "upper", axes=((0, 1.0, 0),)),
              Joint("q2", "revolute", "upper", "lower", Pose(translation=(0.4, 0, 0)), axes=((0, 1.0, 0),)))
    model, t = ld.build(Robot("arm", links, joints)), np.linspace(0.0, 2.0, 101)
    x = np.sin(3 * t) + 1e-9 * np.random.default_rng(5).standard_normal((2, len(t)))
    along = kinematics_along(model, recorded(model, t, q=np.stack([x[0], -x[1]], axis=1)), ["lower"])
    assert [warning.code for warning in along.warnings] == ["derived-motion", "negligible-error"]


def test_too_many_columns_are_refused(monkeypatch):
    from liedyn.analysis import trajectory_kinematics as module
    monkeypatch.setattr(module, "LARGEST", 11)
    model, one = cart(), np.zeros((2, 1))
    with pytest.raises(UsageError, match="would have 12 columns, at most 11 are written"):
        kinematics_along(model, recorded(model, range(2), q=one, v=one, a=one), ["*"], jacobian=True)


@pytest.mark.parametrize("given, words", [
    ({}, "there is nothing to compute: name a link with --link NAME, or use --com, --momentum or --zmp"),
    ({"links": ["mas"]}, "no link of --link matches 'mas'; did you mean mass?"),
    ({"links": ["?"]}, "no link of --link matches '?'; the names are table, mass"),
    ({"point": (0, 0, 1), "com": True}, "--point needs --link NAME"),
    ({"jacobian": True, "com": True}, "--jacobian needs --link NAME"),
    ({"links": ["*"], "point": (0, 0, 1)}, "--point is in the axes of one link; there are 2: table, mass"),
    ({"links": ["mass"], "point": (0, 0, np.inf)}, "--point: expected three finite numbers"),
])
def test_wrong_questions(given, words):
    model, one = cart(), np.zeros((2, 1))
    with pytest.raises(UsageError) as error:
        kinematics_along(model, recorded(model, range(2), q=one, v=one, a=one), given.pop("links", ()), **given)
    assert words in str(error.value)
