"""ROS bags: topics of each type in each format, their times, what is reported about them, and the errors."""
import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from mcap.writer import Writer
from rosbags.rosbag2 import CompressionMode
from rosbags.typesys import Stores, get_types_from_msg, get_typestore
from scipy.spatial.transform import Rotation

import liedyn as ld
from bags import FORMS, JOINTS, START, Bag, ns
from liedyn.errors import TrajectoryError, UsageError
from liedyn.io.ros_bag import is_bag
from messages import has_parts

T = np.arange(50) * 0.02
NAMES = ("shoulder", "elbow")
Q = np.column_stack([np.sin(T), np.cos(2 * T)])
V = np.column_stack([np.cos(T), -2 * np.sin(2 * T)])
TAU = Q * 3


def joint_bag(form="sqlite3", t=T, *, log=None, **arrays):
    """Write a bag of joint states; arrays: q, v, tau (N, 2)."""
    bag, values = Bag(form), {"q": Q, "v": V, "tau": TAU} | arrays
    for k, stamp in enumerate(ns(t)):
        bag.joints(stamp, NAMES, *(values[key][k] for key in ("q", "v", "tau")), log=None if log is None else log[k])
    return bag


def codes(trajectory):
    return [warning.code for warning in trajectory.warnings]


def read(path, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ld.LiedynWarning)
        return ld.read_trajectory(path, **options)


# --- joint states ----------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("form", FORMS)
def test_joint_states_in_each_format(tmp_path, form):
    bag = joint_bag(form)
    bag.image(START)
    trajectory = ld.read_trajectory(bag.write(tmp_path / "bag"))
    assert list(trajectory.columns) == ["q.shoulder", "q.elbow", "v.shoulder", "v.elbow", "tau.shoulder", "tau.elbow"]
    assert np.array_equal(np.column_stack(list(trajectory.columns.values())), np.hstack([Q, V, TAU]))
    assert trajectory.t.tolist() == np.round(T, 2).tolist()                  # decimal seconds, correctly rounded
    assert trajectory.header == {"topics": "/joint_states", "start": "1700000000.000000000"} and not trajectory.warnings


def test_joints_in_another_order_are_matched_by_name(tmp_path):
    bag = Bag()
    for k, stamp in enumerate(ns(T)):
        order = [0, 1] if k % 2 else [1, 0]
        bag.joints(stamp, [NAMES[j] for j in order], Q[k, order])
    trajectory = ld.read_trajectory(bag.write(tmp_path / "bag"))
    assert list(trajectory.columns) == ["q.elbow", "q.shoulder"]
    assert np.array_equal(trajectory.columns["q.elbow"], Q[:, 1]) and np.array_equal(trajectory.columns["q.shoulder"], Q[:, 0])


@pytest.mark.parametrize("missing", [np.zeros((len(T), 0)), np.full((len(T), 2), np.nan)])
def test_positions_only(tmp_path, missing):
    """Other arrays are empty, or NaN as ros2_control writes them."""
    trajectory = ld.read_trajectory(joint_bag(v=missing, tau=missing).write(tmp_path / "bag"))
    assert list(trajectory.columns) == ["q.shoulder", "q.elbow"] and not trajectory.warnings


def test_velocities_that_some_joints_lack_are_not_read(tmp_path):
    v = V.copy()
    v[:, 1] = np.nan
    with pytest.warns(ld.LiedynWarning, match="velocities are not read, because some are missing: elbow"):
        trajectory = ld.read_trajectory(joint_bag(v=v).write(tmp_path / "bag"))
    assert [name for name in trajectory.columns if name.startswith("v.")] == [] and "tau.elbow" in trajectory.columns


def test_efforts_that_some_messages_lack_are_not_read(tmp_path):
    tau = TAU.copy()
    tau[3:5] = np.nan
    trajectory = read(joint_bag(tau=tau).write(tmp_path / "bag"))
    assert "tau.elbow" not in trajectory.columns and set(codes(trajectory)) == {"incomplete-topic"}
    assert trajectory.warnings[0].message.startswith("effort of shoulder is missing in 2 of 50 messages of /joint_states")


def test_efforts_that_some_joints_lack_leave_those_of_the_others(tmp_path):
    """A gripper without efforts removed those of the arm."""
    tau = TAU.copy()
    tau[:, 1] = np.nan
    with pytest.warns(ld.LiedynWarning, match="efforts are missing: elbow"):
        trajectory = ld.read_trajectory(joint_bag(tau=tau).write(tmp_path / "bag"))
    assert np.array_equal(trajectory.columns["tau.shoulder"], TAU[:, 0]) and "tau.elbow" not in trajectory.columns


def test_a_column_map_on_top(tmp_path):
    path = joint_bag(q=np.degrees(Q)).write(tmp_path / "bag")
    trajectory = ld.read_trajectory(path, columns={"q.*": "q.*[deg]", "tau.elbow": "-tau.elbow", "q.wrist": "0"})
    assert np.abs(trajectory.columns["q.elbow"] - Q[:, 1]).max() < 1e-15 and trajectory.units["q.elbow"] == "rad"
    assert np.array_equal(trajectory.columns["tau.elbow"], -TAU[:, 1])
    assert np.array_equal(trajectory.columns["v.elbow"], V[:, 1])            # needs no entry
    Path(tmp_path, "bag.columns.yaml").write_text('columns: {q.*: q.*}\nunits: {q: deg}\n')
    assert np.array_equal(ld.read_trajectory(path).columns["q.elbow"], trajectory.columns["q.elbow"])


# --- several streams -------------------------------------------------------------------------------------------------

def two_publishers(tmp_path, shift=0.0, gripper=T):
    bag = Bag()
    for k, stamp in enumerate(ns(T)):
        bag.joints(stamp, NAMES, Q[k])
    for k, stamp in enumerate(ns(np.asarray(gripper) + shift)):
        bag.joints(stamp, ["finger"], [0.1 * gripper[k]])
    return bag.write(tmp_path / "bag")


def test_publishers_with_equal_times_are_merged(tmp_path):
    trajectory = ld.read_trajectory(two_publishers(tmp_path))
    assert np.array_equal(trajectory.columns["q.finger"], 0.1 * T) and not trajectory.warnings
    assert np.array_equal(trajectory.columns["q.elbow"], Q[:, 1])


def test_only_the_common_interval_is_read(tmp_path):
    trajectory = ld.read_trajectory(two_publishers(tmp_path, gripper=T[2:-1]))
    assert len(trajectory) == 47 and codes(trajectory) == ["rows-omitted"] and trajectory.header["start"].endswith(".040000000")


def test_publishers_with_other_times_are_an_error_or_are_interpolated(tmp_path):
    path = two_publishers(tmp_path, shift=0.005)
    with pytest.raises(TrajectoryError) as caught:
        ld.read_trajectory(path)
    assert str(caught.value) == (
        f"{path}: messages have different times: expected equal stamps, got '/joint_states (elbow, shoulder) (50 messages at 50 "
        "Hz), "
        "/joint_states (finger) (50 messages at 50 Hz)' (--interpolate (or interpolate=True) interpolates at the times "
        "of /joint_states (elbow, shoulder))")
    with pytest.warns(ld.LiedynWarning, match=r"/joint_states \(finger\) .* is interpolated linearly at the times of"):
        trajectory = ld.read_trajectory(path, interpolate=True)
    assert codes(trajectory) == ["interpolated", "rows-omitted"]             # the first row is before the finger
    assert trajectory.warnings[1].message.endswith("of the topics are not read: 1")
    assert np.abs(trajectory.columns["q.finger"] - 0.1 * (T[1:] - 0.005)).max() < 1e-15
    assert np.array_equal(trajectory.columns["q.elbow"], Q[1:, 1])


def test_times_are_those_of_the_joints_with_the_most_messages(tmp_path):
    bag = Bag()
    for k, stamp in enumerate(ns(T)[::2]):
        bag.joints(stamp, ["finger"], [k])
    for k, stamp in enumerate(ns(T)):
        bag.joints(stamp, NAMES, Q[k], log=stamp + 1)
    trajectory = read(bag.write(tmp_path / "bag"), interpolate=True)
    assert np.array_equal(trajectory.columns["q.elbow"], Q[:49, 1])
    assert np.abs(trajectory.columns["q.finger"] - np.arange(49) / 2).max() < 1e-12


def test_topics_without_a_common_time(tmp_path):
    for interpolate in (False, True):
        with pytest.raises(TrajectoryError, match=r"the topics have no common time interval.*got '/joint_states \(elbow, "
                                                  r"shoulder\) \(50 messages at 50 Hz\), /joint_states \(finger\) \(50 "
                                                  r"messages at 50 Hz\)'"):
            ld.read_trajectory(two_publishers(tmp_path / str(interpolate), shift=5.0), interpolate=interpolate)


def test_one_joint_in_two_sets_of_joints(tmp_path):
    bag = Bag()
    bag.joints(START, NAMES, [0, 0])
    bag.joints(START + 10, ["elbow", "wrist"], [0, 0])
    with pytest.raises(TrajectoryError, match="message 2 of /joint_states: messages list the joint elbow with different joints"):
        ld.read_trajectory(bag.write(tmp_path / "bag"))


# --- floating base ---------------------------------------------------------------------------------------------------

def base_motion(t):
    """Return pose (N, 7) and body twist (N, 6) of a base that rotates about its z axis while it moves on a circle and up."""
    w = 0.7
    p = np.column_stack([np.cos(w * t), np.sin(w * t), 0.1 * t])
    tilt = Rotation.from_rotvec([0.3, -0.2, 0.1])
    R = Rotation.from_rotvec(np.outer(w * t, [0, 0, 1])) * tilt
    linear = np.column_stack([-w * np.sin(w * t), w * np.cos(w * t), np.full(len(t), 0.1)])
    return np.hstack([p, R.as_quat()]), np.hstack([R.inv().apply(np.tile([0, 0, w], (len(t), 1))), R.inv().apply(linear)])


@pytest.mark.parametrize("form", FORMS)
def test_odometry_is_pose_and_body_twist_of_the_base(tmp_path, form):
    pose, twist = base_motion(T)
    bag = joint_bag(form)
    for k, stamp in enumerate(ns(T)):
        bag.odometry(stamp, pose[k], twist[k])
    path = bag.write(tmp_path / "bag")
    trajectory = ld.read_trajectory(path, topics=["/joint_states", "odom"])
    q = np.column_stack([trajectory.columns[f"q.base.{part}"] for part in ("px", "py", "pz", "qx", "qy", "qz", "qw")])
    v = np.column_stack([trajectory.columns[f"v.base.{part}"] for part in ("wx", "wy", "wz", "vx", "vy", "vz")])
    assert np.array_equal(q, pose) and np.array_equal(v, twist)
    assert trajectory.units["v.base.vx"] == "m/s" and trajectory.units["tau.base.mx"] == "N m"
    assert not any(trajectory.columns[f"tau.base.{part}"].any() for part in ("mx", "fz"))          # no motor acts on the base
    assert trajectory.header["base_frame"] == "base_link"
    assert codes(ld.read_trajectory(path)) == ["topics-not-read"]


def test_a_map_gives_the_base_the_name_of_another_free_joint(tmp_path):
    pose, twist = base_motion(T)
    bag = Bag()
    for k, stamp in enumerate(ns(T)):
        bag.odometry(stamp, pose[k], twist[k])
    path = bag.write(tmp_path / "bag")
    trajectory = ld.read_trajectory(path, topics="/odom", columns="q.root.*=q.base.*,v.root.*=v.base.*")
    assert np.array_equal(trajectory.columns["q.root.qw"], pose[:, 6]) and len(trajectory.columns) == 13
    assert trajectory.units["v.root.wx"] == "rad/s" and np.array_equal(trajectory.columns["v.root.wx"], twist[:, 0])


@pytest.mark.parametrize("form", FORMS)
def test_transforms_are_composed(tmp_path, form):
    """odom -> footprint moves, footprint -> base_link is static. Velocities without those of the base are not read."""
    pose, _ = base_motion(T)
    bag, offset = joint_bag(form), np.array([0.1, 0.0, 0.3, 0.0, 0.0, np.sin(0.2), np.cos(0.2)])
    bag.transform(START, "footprint", "base_link", pose[-1], topic="/tf_static")             # the last one is valid
    bag.transform(START + 1, "footprint", "base_link", offset, topic="/tf_static")
    for k, stamp in enumerate(ns(T)):
        bag.transform(stamp, "/odom", "/footprint", pose[k])
        bag.transform(stamp, "base_link", "arm", pose[k], log=stamp + 1)
    path, topics = bag.write(tmp_path / "bag"), ["/joint_states", "/tf"]
    for frame in ("base_link", "odom:base_link"):
        trajectory = read(path, topics=topics, base_frame=frame)
        R = Rotation.from_quat(pose[:, 3:])
        expected = np.hstack([pose[:, :3] + R.apply(offset[:3]), (R * Rotation.from_quat(offset[3:])).as_quat()])
        q = np.column_stack([trajectory.columns[f"q.base.{part}"] for part in ("px", "py", "pz", "qx", "qy", "qz", "qw")])
        assert np.abs(q - expected).max() < 1e-15 and codes(trajectory) == ["incomplete-topic"]
        assert "v.elbow" not in trajectory.columns
    footprint = read(path, topics=topics, base_frame="footprint")
    assert np.array_equal(footprint.columns["q.base.qx"], pose[:, 3])
    for frame, text in ((None, "the frame of the base is missing"), ("bas_link", "there is no frame bas_link"),
                        ("map:base_link", "no transforms lead from map to base_link")):
        with pytest.raises(TrajectoryError, match=text):
            ld.read_trajectory(path, topics=topics, base_frame=frame)


def test_orientations_are_interpolated_along_the_rotation(tmp_path):
    """A base that rotates at a constant rate is exact between its samples."""
    bag, coarse = joint_bag(), T[::5]
    pose, twist = base_motion(coarse)
    for k, stamp in enumerate(ns(coarse)):
        bag.odometry(stamp, pose[k] * np.array([1, 1, 1, *[(-1)**k] * 4]), twist[k])     # both signs of a quaternion
    trajectory = read(bag.write(tmp_path / "bag"), topics=["/joint_states", "/odom"], interpolate=True)
    expected = base_motion(T[:46])[0]
    q = np.column_stack([trajectory.columns[f"q.base.{part}"] for part in ("qx", "qy", "qz", "qw")])
    assert len(trajectory) == 46 and np.abs(np.abs(np.sum(q * expected[:, 3:], axis=1)) - 1.0).max() < 1e-14
    assert np.abs(trajectory.columns["q.base.pz"] - expected[:, 2]).max() < 1e-15


@pytest.mark.parametrize("lower", [-np.pi, 0.0])
def test_angles_that_wrap_are_interpolated_through_no_jump(tmp_path, lower):
    """They were interpolated across the jump: -0.0166 between 3.075 and -3.108."""
    bag, t = Bag(), np.arange(400) * 0.01
    angles = np.column_stack([3 + 5 * t, 3 - 5 * t])
    wrapped = (angles - lower) % (2 * np.pi) + lower
    for k in range(len(t)):
        bag.joints(ns(t)[k], ["x"], [0.1 * k], topic="/a")
        bag.joints(ns(t + 0.005)[k], ["up", "down"], wrapped[k], topic="/b")
    path = bag.write(tmp_path / "bag")
    with pytest.warns(ld.LiedynWarning, match=r"angles of /b that jump by 2 pi were unwrapped .*: q.up \([34] times\), q.down"):
        trajectory = ld.read_trajectory(path, topics=["/a", "/b"], interpolate=True)
    assert codes(trajectory) == ["interpolated", "rows-omitted", "angles-unwrapped"]
    q = np.column_stack([trajectory.columns["q.up"], trajectory.columns["q.down"]])
    between = (wrapped[0] - angles[0]) + (angles[1:] + angles[:-1]) / 2
    assert np.abs(q - between).max() < 1e-13


def test_other_jumps_than_those_of_full_turns_remain(tmp_path):
    """A jump of 5 is not a full turn, and velocities do not wrap."""
    bag, q, v = Bag(), np.where(T < 0.5, 0.0, 5.0), np.where(T < 0.5, 0.0, 2 * np.pi)
    for k in range(len(T)):
        bag.joints(ns(T)[k], ["x"], [0.0], [0.0], topic="/a")
        bag.joints(ns(T + 0.01)[k], ["y"], [q[k]], [v[k]], topic="/b")
    trajectory = read(bag.write(tmp_path / "bag"), topics=["/a", "/b"], interpolate=True)
    assert codes(trajectory) == ["interpolated", "rows-omitted"]
    for name, x in (("q.y", q), ("v.y", v)):
        assert np.abs(trajectory.columns[name] - (x[1:] + x[:-1]) / 2).max() < 1e-13


def test_quaternions_are_scaled_or_an_error(tmp_path):
    pose, twist = base_motion(T)
    for name, factor in (("single", 1 + 1e-6), ("wrong", 1.1)):
        bag = Bag()
        for k, stamp in enumerate(ns(T)):
            bag.odometry(stamp, pose[k] * np.array([1, 1, 1, *[factor] * 4]), twist[k])
        path = bag.write(tmp_path / name)
        if name == "single":
            trajectory = read(path, topics="/odom")
            assert codes(trajectory) == ["quaternion-scaled"]
            assert np.abs(trajectory.columns["q.base.qw"] - pose[:, 6]).max() < 1e-15
        else:
            with pytest.raises(TrajectoryError, match=r"of /odom: an orientation is not of unit norm: expected 1, got '\|q\| = "
                                                      r"1.1'"):
                ld.read_trajectory(path, topics="/odom")


def test_wrenches_are_those_on_the_link_of_their_frame(tmp_path):
    bag, F = joint_bag(), np.column_stack([np.sin((k + 1) * T) for k in range(6)])
    for k, stamp in enumerate(ns(T)):
        bag.wrench(stamp, "/tool0", F[k])
    trajectory = ld.read_trajectory(bag.write(tmp_path / "bag"), topics=["/joint_states", "/wrench"])
    parts = ("mx", "my", "mz", "fx", "fy", "fz")
    assert np.array_equal(np.column_stack([trajectory.columns[f"fext.tool0.{part}"] for part in parts]), F)
    assert [trajectory.units[f"fext.tool0.{part}"] for part in parts] == ["N m"] * 3 + ["N"] * 3


# --- times -----------------------------------------------------------------------------------------------------------

def test_stamps_that_are_zero(tmp_path):
    bag = Bag()
    for k, stamp in enumerate(ns(T)):
        bag.joints(0, NAMES, Q[k], log=stamp)
    with pytest.warns(ld.LiedynWarning, match="stamps of /joint_states are zero: the times of the recorder are used"):
        trajectory = ld.read_trajectory(bag.write(tmp_path / "bag"))
    assert trajectory.t.tolist() == np.round(T, 2).tolist()


@pytest.mark.parametrize("first", [-500, -5])
def test_stamps_that_are_negative(tmp_path, first):
    """Stamps that cross zero were reported as zero; others were used."""
    bag = Bag()
    for k, stamp in enumerate(ns(T)):
        bag.joints((first + k) * 10**8, NAMES, Q[k], log=stamp)
    with pytest.warns(ld.LiedynWarning, match="stamps of /joint_states are negative: the times of the recorder are used"):
        trajectory = ld.read_trajectory(bag.write(tmp_path / "bag"))
    assert trajectory.t.tolist() == np.round(T, 2).tolist()


def test_times_of_the_recorder(tmp_path):
    path = joint_bag(log=ns(T + 0.001 * np.arange(50))).write(tmp_path / "bag")
    assert np.abs(ld.read_trajectory(path, log_times=True).t - 0.021 * np.arange(50)).max() < 1e-15
    assert np.abs(ld.read_trajectory(path).t - T).max() < 1e-15


def test_gaps_jumps_and_jitter_are_reported(tmp_path):
    late = T + np.where(T >= 0.4, 0.3, 0.0)
    irregular = T + 0.004 * (-1.0) ** np.arange(50)                          # steps of 12 and 28 ms
    for name, bag, code, text in (
            ("gap", joint_bag(t=late), "time-gaps",
             "messages of /joint_states are missing: a step of 0.32 s at t = 0.38 s instead of 0.02 s"),
            ("jump", joint_bag(t=late, log=ns(T)), "clock-jump", "jump while the recorder received messages without a gap"),
            ("jitter", joint_bag(t=irregular), "time-jitter", "irregular: 0.012 to 0.028 s, standard deviation 40 % of 0.02 s")):
        with pytest.warns(ld.LiedynWarning, match=text):
            trajectory = ld.read_trajectory(bag.write(tmp_path / name))
        assert codes(trajectory) == [code] and len(trajectory) == 50         # nothing is resampled


def test_repeated_messages_are_read_once(tmp_path):
    bag = joint_bag()
    bag.joints(ns(T)[7], NAMES, Q[7], V[7], TAU[7], log=ns(T)[7] + 5)
    trajectory = read(bag.write(tmp_path / "bag"))
    assert len(trajectory) == 50 and codes(trajectory) == ["repeated-messages"]


# --- errors ----------------------------------------------------------------------------------------------------------

def error_of(path, **options):
    with pytest.raises(ld.LiedynError) as caught:
        read(path, **options)
    text = str(caught.value)
    assert "\n" not in text
    return text.removeprefix(f"{path}: ")


def test_topics_that_are_missing_or_have_another_type(tmp_path):
    bag = joint_bag()
    bag.image(START)
    path = bag.write(tmp_path / "bag")
    assert error_of(path, topics="/joint_state") == (
        "/joint_state: the bag has no such topic: expected one of /joint_states (sensor_msgs/JointState) (did you mean "
        "/joint_states?)")
    assert error_of(path, topics="/camera") == (
        "/camera: the type of the topic cannot be read: expected sensor_msgs/JointState, nav_msgs/Odometry, "
        "tf2_msgs/TFMessage, geometry_msgs/WrenchStamped, got 'sensor_msgs/CompressedImage'")


def test_the_choice_among_topics(tmp_path):
    bag = Bag()
    for topic in ("/left/joint_states", "/right/joint_states"):
        bag.joints(START, NAMES, [0, 0], topic=topic)
    assert error_of(bag.write(tmp_path / "two")) == (
        "the bag has several topics of the type sensor_msgs/JointState: expected topics that are named with --topic (or "
        "topics=), got '/left/joint_states (sensor_msgs/JointState), /right/joint_states (sensor_msgs/JointState)'")
    assert error_of(tmp_path / "two", topics=["/left/joint_states", "/right/joint_states"]) == (
        "two topics contain the same quantity: expected topics of different joints and links, got 'q.shoulder'")
    bag = Bag()
    bag.image(START)
    assert error_of(bag.write(tmp_path / "none")) == (
        "the bag has no topic of the type sensor_msgs/JointState: expected topics that are named with --topic (or topics=), "
        "got '/camera (sensor_msgs/CompressedImage)'")


@pytest.mark.parametrize("form", ["mcap", "ros1"])
def test_types_of_the_same_name_that_are_not_those_of_ros(tmp_path, form):
    bag = Bag(form)
    changed = get_types_from_msg("std_msgs/Header header\nstring[] name\nfloat64[] position\n", JOINTS)
    bag.store = get_typestore(Stores.EMPTY)
    original = get_typestore(Stores.ROS1_NOETIC if form == "ros1" else Stores.ROS2_JAZZY)
    kept = {name: original.fielddefs[name] for name in ("std_msgs/msg/Header", "builtin_interfaces/msg/Time")}
    bag.store.register(kept | changed)
    bag.add("/joint_states", JOINTS, START, bag.make(JOINTS, header=bag.header(START), name=["a"], position=np.zeros(1)))
    text = error_of(bag.write(tmp_path / "bag"))
    assert has_parts(text, "/joint_states: the definition of the message type is not that of ROS … got '")


@pytest.mark.parametrize("form", FORMS)
def test_empty_bags(tmp_path, form):
    bag = Bag(form)
    assert "empty" in error_of(bag.write(tmp_path / "bag"))
    bag.topics["/joint_states"] = JOINTS
    text = error_of(bag.write(tmp_path / "other"))
    assert "no messages" in text or "empty" in text


@pytest.mark.parametrize("form, ending", [("mcap file", "mcap"), ("sqlite3", "db3"), ("ros1", "bag")])
def test_damaged_files(tmp_path, form, ending):
    path = Path(joint_bag(form).write(tmp_path / "bag"))
    data = (path if path.is_file() else next(path.glob("*.db3"))).read_bytes()
    for k, part in enumerate((data[:0], data[:len(data) // 3], data[:len(data) * 9 // 10], b"no bag at all")):
        cut = tmp_path / f"cut{k}.{ending}"
        cut.write_bytes(part)
        assert re.match("the bag (cannot be read|is empty): ", error_of(cut)), error_of(cut)


@pytest.mark.parametrize("form", ["sqlite3", "mcap"])
@pytest.mark.parametrize("mode", [CompressionMode.FILE, CompressionMode.MESSAGE])
def test_compressed_bags_are_read_as_folders(tmp_path, form, mode):
    """A file without its folder caused errors about a stopped recorder, or about text that is not CSV."""
    folder = Path(joint_bag(form).write(tmp_path / "bag", compression=mode))
    assert np.array_equal(ld.read_trajectory(folder).columns["q.elbow"], Q[:, 1])
    file, = (file for file in folder.iterdir() if file.name != "metadata.yaml")
    part = "file is" if mode.name == "FILE" else "messages are"
    assert is_bag(file) and error_of(file) == (
        f"the {part} compressed: expected the folder of the bag, with the file metadata.yaml, got 'compression by zstd' (give "
        "bag/ instead of the file)")
    assert "does not exist" in error_of(tmp_path / "missing.db3.zstd")


def test_folders_without_metadata(tmp_path):
    folder = Path(joint_bag().write(tmp_path / "bag"))
    (folder / "metadata.yaml").unlink()
    assert error_of(folder).endswith("(`ros2 bag reindex` repairs a bag that was not closed)")
    assert not is_bag(tmp_path) and not is_bag(tmp_path / "missing") and is_bag(folder)
    (folder / "trajectory.csv").touch()
    assert not is_bag(folder)                                                # a run folder with a replay as MCAP


def test_mcap_with_other_messages(tmp_path):
    with (tmp_path / "json.mcap").open("wb") as file:
        writer = Writer(file)
        writer.start()
        schema = writer.register_schema(name="Pose", encoding="jsonschema", data=b"{}")
        channel = writer.register_channel(schema_id=schema, topic="/pose", message_encoding="json")
        writer.add_message(channel, log_time=1, publish_time=1, data=b"{}")
        writer.finish()
    assert error_of(tmp_path / "json.mcap").startswith(
        "the messages are not ROS messages: expected ROS 2 messages in CDR encoding, got 'Profile is not ros2.'")


def test_messages_that_are_not_valid(tmp_path):
    for name, fields, text in (
            ("short", (NAMES, [0.0]), "position and name have different lengths: expected 2, or none, got 1"),
            ("long", (NAMES, [0, 0], [0, 0, 0]), "velocity and name have different lengths: expected 2, or none, got 3"),
            ("unnamed", ((), [0.0, 0.0]), "there are no joint names: expected the name of each joint"),
            ("twice", (("elbow", "elbow"), [0, 0]),
             "joint names are not distinct: expected the name of each joint, got 'elbow, elbow'"),
            ("nan", (NAMES, [0, np.nan]), "the position of elbow is not finite, or is missing"),
            ("without", (NAMES, []), "the position of shoulder is not finite, or is missing")):
        bag = Bag()
        bag.joints(START, NAMES, [0, 0])
        bag.joints(START + 10, *fields)
        assert error_of(bag.write(tmp_path / name)).startswith(f"message 2 of /joint_states: {text}")


def test_times_that_do_not_increase(tmp_path):
    t = T.copy()
    t[[10, 11]] = t[[11, 10]]
    assert error_of(joint_bag(t=t, log=ns(T)).write(tmp_path / "order")) == (
        "message 12 of /joint_states: time stamps decrease: messages are out of order, or a clock was set back: expected "
        "increasing "
        "stamps, got '0.02 s before message 11' (--log-times (or log_times=True) uses the times of the recorder)")
    t = T.copy()
    t[11] = t[10]
    assert error_of(joint_bag(t=t, log=ns(T)).write(tmp_path / "equal")).startswith(
        "message 12 of /joint_states: two different messages have the same time")


def test_frames_that_are_empty_or_change(tmp_path):
    pose, twist = base_motion(T[:2])
    for name, frames, text in (("empty", ("", ""), "message 1 of /odom: child_frame_id is empty"),
                               ("change", ("base_link", "other"),
                                "message 2 of /odom: child_frame_id changes: expected base_link, got 'other'")):
        bag = Bag()
        for k, frame in enumerate(frames):
            bag.odometry(START + 10 * k, pose[k], twist[k], child=frame)
        assert error_of(bag.write(tmp_path / name), topics="/odom").startswith(text)
    assert error_of(tmp_path / "change", topics="/odom").endswith("expected base_link, got 'other'")


def test_values_that_are_not_finite(tmp_path):
    pose, twist = base_motion(T[:3])
    for topic in ("/odom", "/tf", "/wrench"):
        bag = Bag()
        for k in range(3):
            bad = [np.nan if k == 2 else 0.0, *[0.0] * 5]
            bag.odometry(START + k, pose[k], twist[k] + bad)
            bag.transform(START + k, "odom", "base_link", pose[k] + [*bad, 0.0])
            bag.wrench(START + k, "tool0", bad)
        text = error_of(bag.write(tmp_path / topic[1:]), topics=topic, base_frame="base_link")
        name = "/tf (odom -> base_link)" if topic == "/tf" else topic
        assert text == f"message 3 of {name}: a value is not finite: expected finite numbers"


def test_bases_that_are_not_defined(tmp_path):
    pose, twist = base_motion(T[:3])
    bag = Bag()
    for k in range(3):
        bag.odometry(START + k, pose[k], twist[k])
        bag.odometry(START + k, pose[k], twist[k], topic="/other")
        bag.transform(START + k, "odom", "base_link", pose[k])
        bag.transform(START + k, "odom" if k < 2 else "map", "camera", pose[k])
        bag.transform(START + k, "odom", "wheel", pose[k], topic="/wheels/tf")
    bag.transform(START, "wheel", "hub", pose[0], topic="/wheels/tf_static")
    path = bag.write(tmp_path / "bag")
    assert error_of(path, topics=["/odom", "/other"]) == "/other: two topics give the motion of the base: expected one of them"
    assert error_of(path, topics="/odom", base_frame="camera") == (
        "/odom: the topic gives the motion of another frame: expected camera, got 'base_link'")
    assert error_of(path, topics="/tf", base_frame="base_link") == (
        "/tf: the frame camera has two parents: expected odom, got 'map'")
    assert error_of(path, topics="/wheels/tf", base_frame="wheel:hub") == (
        "/wheels/tf: all transforms from wheel to hub are static: expected a base that moves")


def test_without_the_package(tmp_path, monkeypatch):
    path = joint_bag().write(tmp_path / "bag")
    monkeypatch.setattr("liedyn.io.ros_bag.find_spec", lambda _: None)
    with pytest.raises(UsageError, match=re.escape("reading ROS bags requires the package rosbags: pip install 'liedyn[bags]'")):
        ld.read_trajectory(path)


def test_options_of_bags_with_a_csv(tmp_path):
    Path(tmp_path, "motion.csv").write_text("t[s],q.elbow\n0,1\n")
    with pytest.raises(UsageError, match=r"motion.csv is not a ROS bag: topics, base_frame, interpolate and log_times have no"):
        ld.read_trajectory(tmp_path / "motion.csv", topics="/joint_states")
