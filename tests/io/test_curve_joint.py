"""Joints along a curve in robot files: a circle is a revolute joint, poses by components, tables, and what is an error."""
import numpy as np
import pytest

import liedyn as ld
from liedyn.errors import ModelError
from liedyn.model.links import Pose
from liedyn.robot_files import yaml_of

LINKS = """links:
  arm: {mass: 1.3, com: [%s, 0.03, 0.02], inertia: [0.01, 0.02, 0.025]}
  tip: {mass: 0.4, com: [0.05, 0, 0.1], inertia: [0.001, 0.002, 0.0025]}
joints:
"""
PLACE = "parent: world, child: arm, origin: {xyz: [0.2, 0.1, 0.3], rpy: [1.2, 0.3, -0.5]}"
MORE = "damping: 0.1, armature: 0.02, stiffness: 3, rest: 0.2, limits: {lower: -7, upper: 7, velocity: 4, effort: 9}"
WRIST = "  wrist: {type: continuous, parent: arm, child: tip, axis: [0, 1, 0], origin: {xyz: [%s, 0, 0]}}\n"
CIRCLE = LINKS % 0.1 + f"""  hinge: {{type: curve, {PLACE}, {MORE}, coordinate: yaw, %s}}
""" + WRIST % 0.2
HINGE = LINKS % 0.4 + f"  hinge: {{type: revolute, axis: [0, 0, 1], {PLACE}, {MORE}}}\n" + WRIST % 0.5
FUNCTIONS = 'functions: {x: "0.3*cos(q)", y: "0.3*sin(hinge)"}'


def load(tmp_path, text, name="robot.yaml"):
    (tmp_path / name).write_text(text)
    return ld.load(tmp_path / name)


@pytest.fixture
def pair(tmp_path):
    return load(tmp_path, CIRCLE % FUNCTIONS, "circle.yaml"), load(tmp_path, HINGE, "hinge.yaml")


def state(seed, size=()):
    rng = np.random.default_rng(seed)
    return rng.uniform(-3, 3, (*size, 2)), *rng.standard_normal((3, *size, 2))


def same(x, y):
    np.testing.assert_allclose(x, y, rtol=0, atol=1e-12 * max(1.0, np.abs(y).max()))


def test_a_circle_is_a_revolute_joint_in_every_function(pair):
    """Poses, twists, inverse, forward and hybrid dynamics, and their derivatives along the independent coordinates."""
    curve, hinge = pair
    assert curve.independent == ("hinge", "wrist") and curve.warnings == hinge.warnings == ()
    y, dy, ddy, force = state(1, (9,))
    q, v, a = ld.expand(curve, y, dy, ddy)
    at, tau = [curve.v_names.index(name) for name in curve.independent], np.zeros((9, 4))
    tau[:, at] = force
    for link in ("arm", "tip"):
        pose, expected = ld.link_pose(curve, q, link), ld.link_pose(hinge, y, link)
        if link == "arm":                                  # its origin is on the axis, or on the circle
            shift = np.eye(4)
            shift[0, 3] = 0.3
            expected = expected @ shift
        same(pose, expected)
    same(ld.link_twist(curve, q, v, "tip"), ld.link_twist(hinge, y, dy, "tip"))
    same(ld.constrained_inverse_dynamics(curve, q, v, a, curve.independent).tau[:, at], ld.inverse_dynamics(hinge, y, dy, ddy))
    motion = ld.constrained_forward_dynamics(curve, q, v, tau)
    acceleration = ld.forward_dynamics(hinge, y, dy, force)
    same(motion.a[:, at], acceleration)
    same(ld.expand(curve, y, dy, motion.a[:, at])[2], motion.a)
    mask, given = np.isin(np.arange(4), at[:1]), np.array([True, False])
    hybrid = ld.constrained_hybrid_dynamics(curve, q, v, a, tau, mask)
    other = ld.hybrid_dynamics(hinge, y, dy, ddy, force, given)
    same(hybrid.a[:, at], other[0])
    same(hybrid.tau[:, at], other[1])


def test_the_derivatives_of_a_circle_are_those_of_a_revolute_joint(pair):
    curve, hinge = pair
    y, dy, _, force = state(2)
    q, v = ld.expand(curve, y, dy)
    at, tau = [curve.v_names.index(name) for name in curve.independent], np.zeros(4)
    tau[at] = force
    N = np.zeros((4, 2))
    N[at] = np.eye(2)
    N[:2, 0] = -0.3 * np.sin(y[0]), 0.3 * np.cos(y[0])
    dN = np.zeros((4, 2))
    dN[:2, 0] = np.array([-0.3 * np.cos(y[0]), -0.3 * np.sin(y[0])]) * dy[0]
    rates = ld.constrained_forward_derivatives(curve, q, v, tau)
    da_dq, da_dv, da_dtau = ld.forward_dynamics_derivatives(hinge, y, dy, force)
    same(rates.da_dv[at] @ N, da_dv)
    same(rates.da_dtau[np.ix_(at, at)], da_dtau)
    same(rates.da_dq[at] @ N + rates.da_dv[at] @ dN, da_dq)


def test_a_run_on_a_circle_is_that_of_a_revolute_joint(pair, tmp_path):
    """With equal steps; the difference is the error of the integrator in other coordinates."""
    runs = [ld.run_scenario({"robot": str(tmp_path / name), "duration": 1, "integrator": {"method": "dop853", "rtol": 1e-12,
                                                                                         "atol": 1e-13},
                             "initial": {"q": {"hinge": 0.7, "wrist": -0.4}, "v": {"hinge": 1.3, "wrist": 0.8}}})
            for name in ("circle.yaml", "hinge.yaml")]
    at = [runs[0].model.q_names.index(name) for name in ("hinge", "wrist")]
    np.testing.assert_allclose(runs[0].q[:, at], runs[1].q, rtol=0, atol=1e-10)
    np.testing.assert_allclose(runs[0].v[:, at], runs[1].v, rtol=0, atol=1e-9)
    assert len(runs[0].warnings) == len(runs[1].warnings) == 1               # the limit of velocity


@pytest.mark.parametrize("coordinate", ["x", "y", "z", "roll", "pitch", "yaw"])
def test_the_pose_is_that_of_its_components(tmp_path, coordinate):
    """T = Trans(x, y, z) Rz(yaw) Ry(pitch) Rx(roll), as in `origin`."""
    factors = dict(zip(("x", "y", "z", "roll", "pitch", "yaw"), (0.3, -0.2, 0.4, 0.5, -0.3, 0.7), strict=True))
    functions = {name: f"{factor}*q + 0.1*q**2" for name, factor in factors.items() if name != coordinate}
    model = load(tmp_path, CIRCLE.replace("coordinate: yaw", f"coordinate: {coordinate}") % f"functions: {functions}")
    x = 0.8
    values = {name: x if name == coordinate else factor * x + 0.1 * x * x for name, factor in factors.items()}
    curve = Pose.from_xyz_rpy([values[name] for name in "xyz"], [values[name] for name in ("roll", "pitch", "yaw")])
    base = Pose.from_xyz_rpy((0.2, 0.1, 0.3), (1.2, 0.3, -0.5))
    T, B = np.eye(4), np.eye(4)
    for M, pose in ((T, curve), (B, base)):
        M[:3, :3], M[:3, 3] = np.reshape(pose.rotation, (3, 3)), pose.translation
    np.testing.assert_allclose(ld.link_pose(model, ld.expand(model, [x, 0.0]), "arm"), B @ T, atol=1e-14)


def test_a_table_gives_what_its_functions_give(tmp_path):
    x = np.linspace(-180, 180, 61)
    turn = np.deg2rad(x)
    rows = "\n".join(f"{a!r},{b!r},{c!r}" for a, b, c in zip(x.tolist(), (300 * np.cos(turn)).tolist(),
                                                             (300 * np.sin(turn)).tolist(), strict=True))
    (tmp_path / "circle.csv").write_text(f"yaw[deg],x[mm],y[mm]\n{rows}\n")
    lists = {"yaw": turn.tolist(), "x": (0.3 * np.cos(turn)).tolist(), "y": (0.3 * np.sin(turn)).tolist()}
    one, two, three = (load(tmp_path, CIRCLE % text) for text in (
        FUNCTIONS, "table: circle.csv, interpolation: quintic, periodic: true",
        f"table: {lists}, interpolation: quintic, periodic: true"))
    y, dy, ddy, _ = state(3, (20,))
    y += 2 * np.pi
    for other in (two, three):
        for ours, truth in zip(ld.expand(other, y, dy, ddy), ld.expand(one, y, dy, ddy), strict=True):
            np.testing.assert_allclose(ours, truth, rtol=0, atol=2e-6)


def test_the_joint_keeps_its_numbers(tmp_path):
    model = load(tmp_path, CIRCLE % FUNCTIONS)
    k = model.v_names.index("hinge")
    joint = next(joint for joint in model.description.joints if joint.name == "hinge")
    assert (model.lower[k], model.upper[k], model.velocity_limit[k], model.effort_limit[k]) == (-7, 7, 4, 9)
    assert (joint.coordinates[0].damping, joint.coordinates[0].stiffness, joint.type) == (0.1, 3, "revolute")
    assert model.q_names == ("hinge.x", "hinge.y", "hinge", "wrist")
    ld.save(model, tmp_path / "out.yaml")
    other = ld.load(tmp_path / "out.yaml")
    for name in ("index", "constants", "loop_index", "loop_constants"):
        np.testing.assert_array_equal(getattr(other, name), getattr(model, name))


def test_a_curve_mimics(tmp_path):
    text = CIRCLE % (FUNCTIONS + ", mimic: {joint: wrist, multiplier: 2}")
    assert load(tmp_path, text).independent == ("wrist",)


def test_initial_positions_of_a_curve_are_those_of_its_coordinate(tmp_path):
    load(tmp_path, CIRCLE % FUNCTIONS)
    run = ld.run_scenario({"robot": str(tmp_path / "robot.yaml"), "duration": 0.01, "initial": {"q": {"hinge": 0.5}}})
    np.testing.assert_allclose(run.q[0], [0.3 * np.cos(0.5), 0.3 * np.sin(0.5), 0.5, 0.0], atol=1e-13)
    assert run.warnings == ()


@pytest.mark.parametrize("text, message", [
    ("functions: {x: q}, table: {yaw: [0, 1], x: [0, 1]}", "joints.hinge: a curve requires functions or a table: expected one of "
                                                           "functions, table, got"),
    ("damping: 1", "joints.hinge: a curve requires functions or a table: expected one of functions, table, got []"),
    ("functions: {}", "joints.hinge: the curve has no other components"),
    ("functions: {yaw: q}", "joints.hinge.functions.yaw: not a component that is a function of the coordinate: expected x, "
                            "y, z, roll, pitch, got 'yaw'"),
    ("functions: {w: q}", "joints.hinge.functions.w: not a component"),
    ("functions: {x: abs(q)}", "joints.hinge.functions.x: abs has kinks or jumps"),
    ("functions: {x: q}, periodic: true", "joints.hinge.periodic: periodic requires a table"),
    ("functions: {x: q}, axis: [0, 0, 1]", "joints.hinge.axis: a curve joint has no axis"),
    ("table: {x: [0, 1]}", "joints.hinge.table: the table has no column of the coordinate yaw: got ['x']"),
    ("table: {yaw: [0, 1], x: [0, 1, 2]}", "joints.hinge.table: the columns yaw and x have different lengths"),
    ("table: {yaw: [0, 1], w: [0, 1]}", "joints.hinge.table: not a component of the pose: expected x, y, z, roll, pitch, "
                                        "yaw, got 'w'"),
    ("table: {yaw: [0, 1], x: [0, 1]}", "wrong number of points for cubic interpolation: expected 4 to 2000, got 2"),
    ("table: none.csv", "joints.hinge.table: no such CSV file")])
def test_broken_curves(tmp_path, text, message):
    text = (CIRCLE % text).replace(", damping: 0.1,", ",") if text.startswith("damping") else CIRCLE % text
    with pytest.raises(ModelError) as caught:
        load(tmp_path, text)
    assert message in str(caught.value) and "\n" not in str(caught.value), str(caught.value)
    assert caught.value.place.line == 5


@pytest.mark.parametrize("titles, message", [
    ("yaw,w", "wrong or repeated column of a curve: expected x, y, z, roll, pitch, yaw, got 'w'"),
    ("yaw,yaw", "wrong or repeated column of a curve: expected x, y, z, roll, pitch, yaw, got 'yaw'"),
    ("yaw[mm],x", "the column has the unit of another quantity: expected rad, got 'm'"),
    ("yaw,x[kg]", "wrong unit in the table of a coupling: expected a unit of angle or length: rad, deg, m, mm, …, got 'kg'")])
def test_broken_csv_of_curves(tmp_path, titles, message):
    (tmp_path / "c.csv").write_text(titles + "\n0,0\n1,1\n2,2\n3,3\n")
    with pytest.raises(ModelError) as caught:
        load(tmp_path, CIRCLE % "table: c.csv")
    assert message in str(caught.value), str(caught.value)


def test_a_table_that_does_not_cover_the_limits_is_a_warning(tmp_path):
    model = load(tmp_path, CIRCLE % "table: {yaw: [0, 1, 2, 3], x: [0, 0.1, 0.2, 0.2]}")
    warning, = model.warnings
    assert warning.code == "coupling-beyond-table"
    assert "straight lines continue the table beyond 0 to 3 of hinge, whose limits are -7 to 7" in str(warning)


def test_columns_of_a_table_have_units(tmp_path):
    with_units = load(tmp_path, CIRCLE % 'table: {"yaw[deg]": [-630, -90, 90, 630], "x[mm]": [0, 100, 200, 200]}')
    in_si = load(tmp_path, CIRCLE % f"table: {{yaw: {np.radians([-630, -90, 90, 630]).tolist()}, x: [0, 0.1, 0.2, 0.2]}}")
    np.testing.assert_allclose(with_units.loop_constants, in_si.loop_constants, rtol=1e-13, atol=1e-15)
    with pytest.raises(ModelError, match=r"hinge\.table: the column has the unit of another quantity: expected rad, got 'm'"):
        load(tmp_path, CIRCLE % 'table: {"yaw[mm]": [0, 1, 2, 3], x: [0, 1, 2, 3]}')
    with pytest.raises(ModelError, match="two columns have the same name: got 'x'"):
        load(tmp_path, CIRCLE % 'table: {yaw: [0, 1, 2, 3], x: [0, 1, 2, 3], "x[m]": [0, 1, 2, 3]}')


def test_a_table_of_a_curve_in_degrees_is_a_warning(tmp_path):
    warning, = load(tmp_path, CIRCLE % "table: {yaw: [-90, 0, 90, 180], x: [0, 0.1, 0.2, 0.2]}").warnings
    assert warning.code == "table-units"
    assert "the table does not seem to be in rad and m: hinge reaches 180 rad, its limit is 7 rad" in str(warning)


def test_a_curve_of_python_is_that_of_a_file(tmp_path):
    """By functions and by a table. Limits, damping and a mimic belong to the coordinate."""
    origin = Pose.from_xyz_rpy([0.2, 0.1, 0.3], [1.2, 0.3, -0.5])
    arguments = {"origin": origin, "damping": 0.1, "armature": 0.02, "stiffness": 3, "rest": 0.2,
                 "limits": {"lower": -7, "upper": 7, "velocity": 4, "effort": 9}}
    links = [ld.Link("arm", 1.3, [0.1, 0.03, 0.02], [0.01, 0.02, 0.025]),
             ld.Link("tip", 0.4, [0.05, 0, 0.1], [0.001, 0.002, 0.0025])]
    wrist = ld.Joint("wrist", "continuous", "arm", "tip", [0.2, 0, 0], axis=[0, 1, 0])
    x = [0.0, 1.0, 2.0, 3.0]
    for key, value, text in (("functions", {"x": "0.3*cos(q)", "y": "0.3*sin(hinge)"}, FUNCTIONS),
                             ("table", {"yaw": x, "x": [0.1, 0.2, 0.1, 0]}, "table: {yaw: [0, 1, 2, 3], x: [0.1, 0.2, 0.1, 0]}")):
        curve = ld.curve_joint("hinge", "world", "arm", "yaw", **{key: value}, **arguments)
        robot = ld.Robot("robot", links, [curve, wrist])
        (tmp_path / "robot.yaml").write_text(CIRCLE % text)
        assert yaml_of(ld.build(robot)) == yaml_of(ld.load(tmp_path / "robot.yaml"))


@pytest.mark.parametrize("make, error, message", [
    (lambda: ld.Joint("a", "curve", "world", "a", coordinate="x", functions={"y": "q"}), ld.ArgumentError,
     "Joint has no argument 'coordinate'; ld.curve_joint makes joints along a curve"),
    (lambda: ld.build(ld.Robot("r", [ld.Link("a", 1)], [ld.Joint("a", "curve", "world", "a")])), ModelError,
     "unknown joint type.*got 'curve' .ld.curve_joint"),
    (lambda: ld.curve_joint("a", "world", "b", "yow", {"x": "q"}), ModelError, 'joint "a": not a component.*mean yaw'),
    (lambda: ld.curve_joint("a", "world", "b", "yaw", {"yaw": "q"}), ModelError, 'joint "a": not a component that is a function'),
    (lambda: ld.curve_joint("a", "world", "b", "yaw", {}), ModelError, 'joint "a": the curve has no other components'),
    (lambda: ld.curve_joint("a", "world", "b", "yaw"), ModelError, 'joint "a": a curve requires functions or a table'),
    (lambda: ld.curve_joint("a", "world", "b", "yaw", {"x": "sin(p)"}), ModelError, 'joint "a": .*unknown name'),
    (lambda: ld.curve_joint("a", "world", "b", "yaw", table={"x": [1, 2]}), ModelError, "wrong columns in the table of a curve: "
                                                                                        "expected a column yaw, got 'x: 2"),
    (lambda: ld.curve_joint("a", "world", "b", "yaw", table={"yaw": [0, 1, 2], "x": [1, 2]}), ModelError, "wrong columns in the "
                                                                                                          "table of a curve: "
                                                                                                          "expected a column "
                                                                                                          "yaw, got 'yaw: 3 "
                                                                                                          "numbers, x: 2"),
    (lambda: ld.curve_joint("a", "world", "b", "yaw", {"x": "q"}, dampng=1), ld.ArgumentError, "mean 'damping'")])
def test_wrong_curves_of_python(make, error, message):
    with pytest.raises(error, match=message):
        make()
