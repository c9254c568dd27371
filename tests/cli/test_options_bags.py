"""ROS bags in the commands that read a trajectory: the same results as from our own files, and from arrays."""
import json
from pathlib import Path

import numpy as np
import pandas
import pytest
from scipy.spatial.transform import Rotation

import liedyn as ld
from bags import FORMS, START, Bag, ns
from command_line import ok, run, said
from liedyn.io.trajectory_csv import read_trajectory
from messages import has_parts

ROOT = Path(__file__).parents[2]
UR5, QUADRUPED = ROOT / "robots/ur5.yaml", ROOT / "robots/quadruped.yaml"
T = np.round(np.arange(60) * 0.02, 2)


def ur5_motion(model):
    phase, w = np.arange(6), 2 * np.pi * np.array([0.4, 0.4, 0.6, 0.6, 0.5, 0.5])
    angle = np.outer(T, w) + phase
    return 0.5 * np.sin(angle), 0.5 * w * np.cos(angle), -0.5 * w**2 * np.sin(angle)


@pytest.fixture
def model(tmp_path, monkeypatch):
    """Return a UR5 with one motion in own.csv, log.csv (degrees, other names) and a bag of each format."""
    monkeypatch.chdir(tmp_path)
    model = ld.load(UR5)
    q, v, a = ur5_motion(model)
    tau = ld.inverse_dynamics(model, q, v, a)
    ld.trajectory_of(model, T, q, v, tau=tau).save("own.csv")
    short = [name.removesuffix("_joint") for name in model.v_names]
    titles = ["stamp", *(f"pos_{name}" for name in short), *(f"vel_{name}" for name in short), *(f"cur_{name}" for name in short)]
    rows = np.column_stack([np.round(T * 1e3), np.degrees(q), v * 30 / np.pi, tau / 13.2e-3])
    Path("log.csv").write_text("\n".join([",".join(titles), *(",".join(map(repr, row)) for row in rows.tolist())]) + "\n")
    for form in FORMS:
        bag = Bag(form)
        for k, stamp in enumerate(ns(T)):
            bag.joints(stamp, model.v_names, q[k], v[k], tau[k])
        Path(form).mkdir()
        bag.write(f"{form}/bag")
    return model


MAP = "t=stamp[ms],q.*_joint=pos_*[deg],v.*_joint=vel_*[rpm],tau.*_joint=cur_*[mA]*13.2"
PATHS = {"sqlite3": "sqlite3/bag", "mcap": "mcap/bag", "mcap file": "mcap file/bag/bag.mcap", "ros1": "ros1/bag.bag"}


def forces(path):
    trajectory = read_trajectory(path)
    return np.column_stack([x for name, x in trajectory.columns.items() if name.startswith("tau.")])


@pytest.mark.parametrize("form", FORMS)
def test_a_bag_a_log_in_degrees_and_our_own_file_give_the_same_torques(model, form):
    ok("inverse", "own.csv", "-o", "expected.csv")
    ok("inverse", "log.csv", "--columns", MAP, "-r", UR5, "-o", "mapped.csv")
    ok("inverse", f"{PATHS[form]}", "-r", UR5, "--topic", "/joint_states", "-o", "found.csv")
    expected = forces("expected.csv")
    scale = np.abs(expected).max()
    assert scale > 50 and np.abs(forces("found.csv") - expected).max() <= 1e-12 * scale
    assert np.abs(forces("mapped.csv") - expected).max() <= 1e-12 * scale
    header = read_trajectory("found.csv").header
    assert header["topics"] == "/joint_states" and header["start"] == "1700000000.000000000"


def test_commands_read_bags(model):
    """Also with a slash at the end of the folder. Results are written next to the folder, not into it."""
    before = sorted(Path("mcap/bag").iterdir())
    ok("forward", "mcap/bag/", "-r", UR5)
    ok("kinematics", "mcap/bag", "-r", UR5, "--link", "tool0", "--topic", "joint_states")
    ok("plot", "mcap/bag", "-r", UR5, "-f", "svg")
    ok("replay", "mcap/bag", "-r", UR5)
    ok("plot", "ros1/bag.bag", "-r", UR5, "-f", "svg", "--topic", "/joint_states")
    found = json.loads(ok("parameters", UR5, "--from", "mcap/bag", "--with", "none", "--no-offset", "--json").stdout)
    own = json.loads(ok("parameters", UR5, "--from", "own.csv", "--with", "none", "--no-offset", "--json").stdout)
    assert found == own
    assert sorted(Path("mcap/bag").iterdir()) == before
    assert sorted(path.name for path in Path("mcap").iterdir()) == ["bag", "bag_forward.csv", "bag_kinematics.csv", "bag_plots",
                                                                    "bag_replay.html"]


def test_convert_writes_a_trajectory(model):
    result = ok("convert", "ros1/bag.bag", "-r", UR5, "-o", "motion.csv")
    assert said(result) == ["wrote motion.csv: 18 columns, 60 rows"]
    ok("inverse", "motion.csv", "-o", "a.csv")                               # the comment names the robot
    ok("inverse", "own.csv", "-o", "b.csv")
    assert np.array_equal(forces("a.csv"), forces("b.csv"))
    ok("convert", "log.csv", "--columns", MAP, "-o", "log_motion.csv")
    assert read_trajectory("log_motion.csv").units["q.elbow_joint"] == "rad"
    report = json.loads(ok("convert", "mcap/bag", "-o", "b2.csv", "--json").stdout)
    assert report["rows"] == 60 and report["files"] == ["b2.csv"]
    assert ok("convert", "mcap/bag", "-o", "-").stdout.splitlines()[2].startswith("t[s],q.shoulder_pan_joint,")


def test_convert_keeps_robots_and_trajectories_apart(model):
    for options, text in ((["mcap/bag", "-o", "x.urdf"], "a trajectory is written as CSV; give a name that ends in .csv"),
                          (["mcap/bag", "-o", "x.csv", "--lossy"],
                           "--to, --fix, --lossy and --loops apply to robot files only"),
                          ([UR5, "-o", "x.urdf", "--topic", "/a"], "options for ROS bags apply to trajectories only"),
                          (["mcap/bag", "-o", "-", "--json"], "cannot be combined: both write to stdout")):
        result = run("convert", *options)
        assert result.exit_code == 2 and text in said(result)[0] and len(said(result)) == 1
    result = ok("convert", "mcap/bag", "-r", QUADRUPED, "-o", "x.csv")
    assert "unknown columns of mcap/bag are ignored: q.shoulder_pan_joint" in result.stderr


def test_names_that_differ_from_the_robot(model):
    bag = Bag()
    q, _, _ = ur5_motion(model)
    for k, stamp in enumerate(ns(T)):
        bag.joints(stamp, ["shoulder_pan_joint", "lift", *model.v_names[2:]], q[k])
    path = bag.write("renamed")
    result = run("inverse", path, "-r", UR5)
    assert result.exit_code == 3 and len(said(result)) == 1
    assert has_parts(said(result)[0], "q.shoulder_lift_joint: a column is missing … got 'q.lift'")
    ok("inverse", path, "-r", UR5, "--columns", "q.shoulder_lift_joint=q.lift")
    bag = Bag()
    bag.joints(START, ["a", "b"], [0, 0])
    result = run("inverse", bag.write("other"), "-r", UR5)
    assert result.exit_code == 3 and has_parts(said(result)[0], "no column belongs to a joint of the robot ur5 … got 'q.a, q.b'")


def test_warnings_of_a_bag_are_printed(model):
    """Each warning is printed once, and is in the report."""
    bag = Bag()
    q, v, _ = ur5_motion(model)
    for k, stamp in enumerate(ns(T + 0.5 * (T > 0.6))):
        bag.joints(stamp, model.v_names, q[k], v[k])
        bag.wrench(stamp, "tool0", np.zeros(6))
    result = ok("inverse", bag.write("gap"), "-r", UR5, "--json")
    found = [warning["code"] for warning in json.loads(result.stdout)["warnings"]]
    assert found[:2] == ["topics-not-read", "time-gaps"]
    text = "gap: messages of /joint_states are missing: a step of 0.52 s at t = 0.6 s instead of 0.02 s [time-gaps]"
    assert [line for line in said(result) if "time-gaps" in line] == [f"warning: {text}"]


def test_a_scenario_and_a_sweep_read_a_bag(model):
    """A sweep reads a bag of one file; for a folder, the error states the remedy. Warnings about the bag are those of the run."""
    q, v, _ = ur5_motion(model)
    bag = Bag("mcap file")
    for k, stamp in enumerate(ns(T + 0.1 * (T > 0.6))):
        bag.joints(stamp, model.v_names, q[k], v[k])
    path = bag.write("gap")
    motion = {"prescribe": {"position": {"csv": {"file": path, "interpolation": "quintic"}}}}
    scenario = {"robot": str(UR5), "duration": 0.5, "joints": {"*": motion}}
    with pytest.warns(ld.LiedynWarning, match="missing: a step of 0.12 s"):
        result = ld.run_scenario(scenario)
    assert "time-gaps" in [warning.code for warning in result.warnings] and np.abs(result.q[0] - q[0]).max() < 1e-12
    motion["prescribe"]["position"]["csv"]["file"] = "mcap/bag"
    assert np.abs(ld.run_scenario(scenario).q[0] - q[0]).max() < 1e-12
    sweep = (f"job: inverse\ntrajectory: PATH\nrobot: {UR5}\noutputs: {{peak: max(abs(tau.elbow_joint))}}\n"
             "parameters: [{key: robot.mass.wrist_3_link, list: [0.1879, 2]}]\n")
    Path("sweep.yaml").write_text(sweep.replace("PATH", "ros1/bag.bag"))
    ok("batch", "sweep.yaml")
    ok("inverse", "own.csv", "-o", "own_forces.csv")
    peak = np.abs(read_trajectory("own_forces.csv").columns["tau.elbow_joint"]).max()
    assert abs(pandas.read_parquet("runs/sweep/runs.parquet")["peak"][0] - peak) < 1e-9 * peak
    Path("sweep.yaml").write_text(sweep.replace("PATH", "mcap/bag"))
    text = said(run("batch", "sweep.yaml", "--force"))[0]
    assert "got 'mcap/bag' (name the file in the folder, or convert the bag with" in text


def test_options_of_bags_need_a_bag(model):
    result = run("inverse", "own.csv", "--topic", "/joint_states")
    assert result.exit_code == 2 and said(result)[0].startswith("error: own.csv is not a ROS bag")
    result = run("parameters", UR5, "--topic", "/joint_states")
    assert result.exit_code == 2 and "--topic requires --from" in said(result)[0]
    result = run("inverse", "sqlite3", "-r", UR5)                            # a folder, but no bag
    assert result.exit_code == 2 and "is a directory" in said(result)[0]


# --- external wrenches and floating bases, against dynamics of arrays ------------------------------------------------

def test_a_wrench_acts_on_the_link_of_its_frame(model):
    q, v, _ = ur5_motion(model)
    F = np.column_stack([np.sin((k + 1) * T) * (k + 2) for k in range(6)])
    bag = Bag()
    for k, stamp in enumerate(ns(T)):
        bag.joints(stamp, model.v_names, q[k], v[k])
        bag.wrench(stamp, "tool0", F[k], topic="/ft_sensor")
    ok("inverse", bag.write("loaded"), "-r", UR5, "--topic", "/joint_states", "--topic", "/ft_sensor", "-o", "found.csv")
    a = ld.motion_of(model, ld.trajectory_of(model, T, q, v)).a
    expected = ld.inverse_dynamics(model, q, v, a, f_ext={"tool0": F})
    assert np.abs(forces("found.csv") - expected).max() <= 1e-12 * np.abs(expected).max()
    assert np.abs(expected - ld.inverse_dynamics(model, q, v, a)).max() > 1.0


def base_motion(t):
    """Return pose, body twist and its derivative of a base that rotates about z at a rate w(t), on a circle in the world."""
    angle, w, alpha = 0.5 * np.sin(2 * t), np.cos(2 * t), -2 * np.sin(2 * t)
    p = np.column_stack([np.sin(t), 0.3 * np.cos(t), 0.5 + 0.1 * np.sin(2 * t)])
    dp = np.column_stack([np.cos(t), -0.3 * np.sin(t), 0.2 * np.cos(2 * t)])
    ddp = np.column_stack([-np.sin(t), -0.3 * np.cos(t), -0.4 * np.sin(2 * t)])
    zero = np.zeros_like(t)
    tilt = Rotation.from_rotvec([0.2, -0.1, 0.3])
    R = tilt * Rotation.from_rotvec(np.column_stack([zero, zero, angle]))
    omega, linear = np.column_stack([zero, zero, w]), R.inv().apply(dp)
    rate = R.inv().apply(ddp) - np.cross(omega, linear)                      # d(R^T p')/dt = R^T p'' - w x R^T p'
    return np.hstack([p, R.as_quat()]), np.hstack([omega, linear]), np.column_stack([zero, zero, alpha, rate])


@pytest.mark.parametrize("form", FORMS)
def test_a_floating_base_from_odometry(tmp_path, monkeypatch, form):
    """Compared with closed forms of the motion. Accelerations are derived from 200 Hz."""
    monkeypatch.chdir(tmp_path)
    dog, t = ld.load(QUADRUPED), np.round(np.arange(201) * 0.005, 3)
    pose, twist, rate = base_motion(t)
    n = dog.nv - 6
    angle = np.outer(t, np.linspace(1, 2, n)) + np.arange(n)
    joints = dog.v_names[6:]
    q, v = np.hstack([pose, 0.3 * np.sin(angle)]), np.hstack([twist, 0.3 * np.linspace(1, 2, n) * np.cos(angle)])
    a = np.hstack([rate, -0.3 * np.linspace(1, 2, n)**2 * np.sin(angle)])
    bag, child = Bag(form), dog.joints[0].child
    for k, stamp in enumerate(ns(t)):
        bag.joints(stamp, joints, q[k, 7:], v[k, 6:])
        bag.odometry(stamp, pose[k], twist[k], child=child)
    path = bag.write("bag")
    topics = ["--topic", "/joint_states", "--topic", "/odom"]
    result = ok("inverse", path, "-r", QUADRUPED, *topics, "-o", "found.csv")
    assert "contradicting-rates" not in result.stderr and "other-base-frame" not in result.stderr
    expected = ld.inverse_dynamics(dog, q, v, a)
    found = read_trajectory("found.csv")
    assert np.abs(forces("found.csv") - expected)[5:-5].max() < 1e-6 * np.abs(expected).max()
    assert np.array_equal(found.columns["v.base.vx"], twist[:, 3])
    ld.trajectory_of(dog, t, q, v).save("own.csv")
    ok("inverse", "own.csv", "-o", "own_forces.csv")
    assert np.abs(forces("own_forces.csv") - forces("found.csv")).max() <= 1e-12 * np.abs(expected).max()


def test_a_floating_base_from_transforms(tmp_path, monkeypatch):
    """Velocities are derived from poses, also those of the joints."""
    monkeypatch.chdir(tmp_path)
    dog, t = ld.load(QUADRUPED), np.round(np.arange(201) * 0.005, 3)
    pose, twist, rate = base_motion(t)
    q, v, a = (np.hstack([x, np.zeros((len(t), dog.nv - 6))]) for x in (pose, twist, rate))
    bag, child = Bag("ros1"), dog.joints[0].child
    for k, stamp in enumerate(ns(t)):
        bag.joints(stamp, dog.v_names[6:], q[k, 7:], v[k, 6:])
        bag.transform(stamp, "odom", child, pose[k])
    result = ok("inverse", bag.write("bag"), "-r", QUADRUPED, "--topic", "/joint_states", "--topic", "/tf", "--base-frame", child,
                "-o", "found.csv")
    assert "[incomplete-topic]" in result.stderr and "[derived-motion]" in result.stderr
    expected = ld.inverse_dynamics(dog, q, v, a)
    assert np.abs(forces("found.csv") - expected)[10:-10].max() < 1e-5 * np.abs(expected).max()


def test_odometry_of_another_frame_and_of_a_fixed_base(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    dog, t = ld.load(QUADRUPED), np.round(np.arange(20) * 0.005, 3)
    pose, twist, _ = base_motion(t)
    bag = Bag()
    for k, stamp in enumerate(ns(t)):
        bag.joints(stamp, dog.v_names[6:], np.zeros(dog.nv - 6), np.zeros(dog.nv - 6))
        bag.odometry(stamp, pose[k], twist[k], child="base_footprint")
    path, topics = bag.write("bag"), ["--topic", "/joint_states", "--topic", "/odom"]
    result = ok("inverse", path, "-r", QUADRUPED, *topics, "-o", "a.csv")
    assert ("warning: bag contains the motion of frame base_footprint, but the base of the robot quadruped is link "
            f"{dog.joints[0].child} [other-base-frame]") in said(result)
    result = run("inverse", path, "-r", QUADRUPED, *topics, "--base", "fixed", "-o", "b.csv")
    assert "q.base.px" in result.stderr                                      # never silently
