"""MJCF files against MuJoCo itself: random ones over all that is read, and small ones in every detail."""
from pathlib import Path

import mujoco
import numpy as np
import pytest

import liedyn as ld
from bridge import relative
from command_line import ok, run
from joint_forces import passive_force
from liedyn.errors import ModelError
from liedyn.io.robots import IGNORABLE
from liedyn.io.robots.visual_shapes import link_shapes
from liedyn.model.description import WORLD, Coordinate, Coupling
from liedyn.report.robot_summary import robot_text
from liedyn.robot_files import load_description
from liedyn.simulation.control.thrusts import thrust_columns
from matrices import pose
from mjcf_zoo import random_mjcf
from mujoco_pair import MuJoCoPair

VERSION = tuple(map(int, mujoco.__version__.split(".")[:2]))
pytestmark = pytest.mark.skipif(VERSION < (3, 3), reason="older versions have fewer elements and attributes")
NEW = VERSION >= (4,)
# Of sums over a dozen bodies, relative to the largest entry; 1e-14 is seen in 500 files. Before MuJoCo 4, its principal inertias
# are good to 1e-6.
ROUNDING = 1e-13 if NEW else 1e-5


@pytest.fixture
def pair(tmp_path, monkeypatch):
    """Return pair(text, seed): both models of a text. MuJoCo writes a log into the current folder."""
    monkeypatch.chdir(tmp_path)

    def of(text: str, seed: int = 0) -> MuJoCoPair:
        path = tmp_path / "robot.xml"
        path.write_text(text)
        model = ld.load(path)
        return MuJoCoPair(model, mujoco.MjModel.from_xml_string(text), seed, model.joints.index)
    return of


def bodies(both: MuJoCoPair) -> list[str]:
    return [both.mj.body(k).name for k in range(1, both.mj.nbody)]


# --- random files ----------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("seed", range(14))
def test_random_files_move_alike(seed, pair, worst):
    both = pair(random_mjcf(seed), seed)
    model, q, v = both.model, both.q, both.v
    assert set(bodies(both)) <= set(model.link_names)
    where = f"mjcf zoo {seed}"
    assert worst("MJCF: mass matrix", relative(ld.mass_matrix(model, q), both.mass()), where) < ROUNDING
    assert worst("MJCF: bias force", relative(ld.bias_force(model, q, v), both.bias()), where) < ROUNDING
    assert worst("MJCF: passive force", relative(passive_force(model, q, v), both.passive()), where) < ROUNDING
    assert worst("MJCF: inverse dynamics", relative(ld.inverse_dynamics(model, q, v, both.a), both.inverse()), where) < ROUNDING
    a = ld.forward_dynamics(model, q, v, both.tau)
    assert worst("MJCF: forward dynamics", relative(a, both.forward()), where) < 1e3 * ROUNDING         # by cond(M)
    rows = [both.mj.body(name).id for name in bodies(both)]
    T = np.array([ld.link_poses(model, q)[model.link_index(name)] for name in bodies(both)])
    assert worst("MJCF: positions of bodies [m]", np.abs(T[:, :3, 3] - both.data.xpos[rows]).max(), where) < ROUNDING
    assert np.abs(T[:, :3, :3].reshape(-1, 9) - both.data.xmat[rows]).max() < ROUNDING
    for k in range(both.mj.nsite):
        T = ld.link_pose(model, q, both.mj.site(k).name)
        assert np.abs(T[:3, 3] - both.data.site_xpos[k]).max() < ROUNDING
        assert np.abs(T[:3, :3].ravel() - both.data.site_xmat[k]).max() < ROUNDING
    for joint, there in both.joints:
        if joint.type in ("revolute", "continuous", "prismatic"):
            limits = there.range if both.mj.jnt_limited[there.id] else (-np.inf, np.inf)
            assert np.allclose([model.lower[joint.v.start], model.upper[joint.v.start]], limits, rtol=1e-15)


@pytest.mark.parametrize("seed", range(20))
def test_equality_constraints_of_random_files(seed, pair, worst):
    """At the start, where they are closed by construction, the same velocities are left; elsewhere, the same distance and angle
    stay open."""
    text = random_mjcf(seed, constraints=True)
    try:
        both = pair(text, seed)
    except ModelError as error:                          # two bodies of one: there is nothing to constrain
        assert "two links of one body" in str(error)
        return
    model = both.model
    for k, (_, left) in enumerate(both.equality()):
        ours = model.constraints[[one.name for one in model.constraints].index(f"equality{k + 1}")]
        loop = next((loop for loop in model.description.loops if loop.name == ours.name), None)
        if loop is None:
            assert np.allclose(ld.constraint_residual(model, both.q)[ours.rows], left, rtol=0, atol=1e-14)
            continue
        A, B = (placed(model, both.q, link, where) for link, where in ((loop.a, loop.pose_a), (loop.b, loop.pose_b)))
        assert abs(np.linalg.norm(A[:3, 3] - B[:3, 3]) - np.linalg.norm(left[:3])) < ROUNDING
        if loop.type == "weld":                          # theirs is the vector part of a quaternion
            R = A[:3, :3].T @ B[:3, :3]
            assert abs(np.sqrt(max(0.0, 3 - np.trace(R)) / 4) - np.linalg.norm(left[3:])) < 1e-7         # the root of rounding
    both.set(both.start(), *np.zeros((3, model.nv)))
    A = ld.constraint_jacobian(model, both.q)
    for k, (J, left) in enumerate(both.equality()):
        if np.abs(left).max() < 1e-9 and np.abs(J).max() > 1e-9:
            mine = A[model.constraint(f"equality{k + 1}").rows]
            assert worst("MJCF: rows of a constraint", np.abs(projector(mine) - projector(J)).max(), f"zoo {seed}") < 1e-9


def placed(model, q, link, where):
    T = np.eye(4) if link == WORLD else ld.link_pose(model, q, link)
    return T @ pose(where.rotation, where.translation)


def projector(A):
    """Return the projector onto the velocities that the rows forbid."""
    _, s, V = np.linalg.svd(A)
    V = V[:np.sum(s > 1e-9 * s[0])]
    return V.T @ V


# --- robots ----------------------------------------------------------------------------------------------------------

CRANE = """<mujoco model="crane">
  <compiler angle="radian"/>
  <worldbody>
    <body name="trolley" pos="0 0 2">
      <joint name="rail" type="slide" axis="1 0 0" frictionloss="2" range="-3 3" actuatorfrcrange="-80 100"/>
      <geom type="box" size="0.3 0.2 0.1"/>
      <body name="rope" pos="0 0 -0.1">
        <joint name="swing" type="ball" damping="0.1" armature="0.01" range="0 1"/>
        <geom type="capsule" fromto="0 0 0 0 0 -1" size="0.01" mass="0.2"/>
        <body name="hook" pos="0 0 -1"><geom type="sphere" size="0.05" density="7800"/></body>
      </body>
    </body>
  </worldbody>
</mujoco>"""
DRONE = """<mujoco model="drone">
  <default><motor ctrlrange="0 5"/><site type="box"/></default>
  <worldbody>
    <body name="frame">
      <freejoint/>
      <geom type="box" size="0.1 0.1 0.02" mass="0.8"/>
      <site name="front" pos="0.15 0 0.02" euler="5 0 0"/>
      <site name="left" pos="0 0.15 0.02"/>
    </body>
  </worldbody>
  <actuator>
    <motor name="m1" site="front" gear="0 0 2 0 0 -0.03"/>
    <motor site="left" gear="0 0 1 0 0 0.02"/>
    <motor name="odd" site="left" gear="0 0 1 0.3 0 0"/>
  </actuator>
</mujoco>"""
HOPPER = Path(__file__).parents[2] / "robots" / "hopper.xml"


def moves_alike(both) -> None:
    model, q, v = both.model, both.q, both.v
    assert relative(ld.mass_matrix(model, q), both.mass()) < ROUNDING
    for ours, theirs in ((ld.bias_force(model, q, v), both.bias()), (passive_force(model, q, v), both.passive())):
        assert np.abs(ours - theirs).max() < ROUNDING * max(1.0, np.abs(theirs).max())


def test_the_hopper(pair):
    both = pair(HOPPER.read_text())
    moves_alike(both)
    model = both.model
    assert model.v_names[6:] == ("hip_roll", "hip_pitch", "leg")
    assert model.effort_limit[6:].tolist() == [40.0, 60.0, np.inf]
    assert np.allclose([model.lower[7], model.upper[8]], [-np.pi / 3, 0.15])
    assert [str(warning) for warning in model.warnings] == [
        f"{model.source}:1: mujoco: not read: contacts of geoms (5) [mjcf-not-read]"]


@pytest.mark.parametrize("seed", range(3))
def test_keyframes_are_states_of_mujoco(seed, pair):
    """A key has quaternions of any norm, another has no qpos: poses and velocities of all bodies agree."""
    text, rng = random_mjcf(seed), np.random.default_rng(seed)
    plain = mujoco.MjModel.from_xml_string(text)
    qpos, qvel = ((" ".join(map(repr, rng.standard_normal(n).tolist()))) for n in (plain.nq, plain.nv))
    keys = f'<key name="home" qpos="{qpos}" qvel="{qvel}"/><key ctrl="{"1 " * plain.nu}"/>'
    both = pair(text.replace("</mujoco>", f"<keyframe>{keys}</keyframe></mujoco>"))
    model, mj, data = both.model, both.mj, both.data
    assert list(model.keyframes) == ["home", "key2"]
    assert ("ctrl of key frames (1)" in str(model.warnings)) == bool(plain.nu)
    for k, state in enumerate(model.keyframes.values()):
        both.set(state.q, state.v, both.a, both.tau)
        velocities = data.qvel.copy()
        mujoco.mj_resetDataKeyframe(mj, data, k)
        mujoco.mj_forward(mj, data)
        assert np.abs(velocities - data.qvel).max() < 1e-14 * max(1.0, np.abs(velocities).max())
        for name in bodies(both):
            T, body = ld.link_pose(model, state.q, name), mj.body(name).id
            assert np.abs(T[:3, 3] - data.xpos[body]).max() < 1e-12
            assert np.abs(T[:3, :3].ravel() - data.xmat[body]).max() < 1e-12


def test_a_crane_with_a_ball_joint_and_dry_friction(pair):
    model = pair(CRANE).model
    joints = {joint.name: joint for joint in model.description.joints}
    assert joints["rail"].coordinates == (Coordinate(-3, 3, effort=100, friction=2),)
    assert joints["swing"].coordinates == (Coordinate(damping=0.1, armature=0.01),) * 3
    assert joints["hook_fixed"].type == "fixed"
    both = pair(CRANE.replace(" range", " user"))        # which would hold there
    both.set(both.q, np.r_[1.0, both.v[1:]], both.a, 0 * both.tau)
    found, theirs = ld.forward_dynamics(model, both.q, both.v, both.tau), both.forward()
    assert relative(found, theirs) < 1e-3                # theirs is a soft constraint; ours is smooth below 0.01 m/s
    assert relative(ld.forward_dynamics(model, both.q, both.v, both.tau, passive=False), theirs) > 1e-2
    assert [warning.code for warning in model.warnings] == ["mjcf-not-read", "mjcf-limits", "mjcf-friction"]
    assert [warning.level for warning in model.warnings] == ["information", "warning", "warning"]
    assert model.warnings[1].message == "not read: limits of ball joints (1), the smaller force limit of the two directions (1)"


def test_thrusters_of_a_drone(pair):
    """The force of a motor at a site is our actuator's wrench; its command there is thrust by the length of the gear."""
    both = pair(DRONE)
    model, (m1, left) = both.model, both.model.description.actuators
    assert (m1.name, m1.link, left.name, m1.torque_ratio, left.torque_ratio) == ("m1", "frame", "left", -0.015, 0.02)
    assert "actuators whose force and torque have other axes (1)" in model.warnings[0].message
    for k, (thruster, gain) in enumerate(((m1, 2.0), (left, 1.0))):
        both.data.ctrl[:] = 0
        both.data.ctrl[k] = 0.7
        mujoco.mj_forward(both.mj, both.data)
        p, n = np.array(thruster.position), np.array(thruster.axis)
        F = 0.7 * gain * np.r_[np.cross(p, n) + thruster.torque_ratio * n, n]
        J = ld.jacobian(model, both.q, thruster.link)
        assert relative(J.T @ F, both.G.T @ both.data.qfrc_actuator) < 1e-12


def test_free_joints_have_mujocos_coordinates(pair):
    both = pair(DRONE.replace('name="frame"', 'name="frame" pos="1 2 3"'))
    assert both.start()[:3].tolist() == [1, 2, 3] and both.model.neutral()[:3].tolist() == [0, 0, 0]
    assert both.model.joint_names == ("frame_joint",)


# --- details ---------------------------------------------------------------------------------------------------------

def arm(body="", rest="", head="", joint='<joint name="j"/>'):
    geom = '<geom type="box" size="0.1 0.2 0.3"/>'
    return f'<mujoco>{head}<worldbody><body name="a">{joint}{geom}{body}</body></worldbody>{rest}</mujoco>'


@pytest.mark.parametrize("text", [
    arm(head='<compiler settotalmass="3"/>', body='<body><joint/><geom size="0.1"/></body>'),
    arm(head='<compiler inertiagrouprange="0 1"/>', body='<geom size="1" group="3"/>'),
    arm(head='<compiler inertiafromgeom="true"/>', body='<inertial mass="1" pos="0 0 0" diaginertia="1 1 1"/>'),
    arm(head='<compiler inertiafromgeom="true"/>',
        body='<body><joint/><inertial mass="1" pos="0 0 1" diaginertia="1 1 1"/><geom size="1" mass="0"/></body>'),
    arm(head='<compiler inertiafromgeom="false"/>', body='<geom size="1"/><inertial mass="1" pos="0 0 1" diaginertia="1 1 1"/>'),
    arm(head='<compiler boundinertia="3"/><compiler boundmass="70"/>'),
    arm(head='<compiler balanceinertia="true"/>', body='<inertial mass="1" pos="0 0 1" euler="9 0 20" diaginertia="1 1 3"/>'),
    arm(head='<compiler angle="radian" eulerseq="ZXz"/>', body='<geom type="cylinder" size="0.1 0.4" euler="0.1 0.2 0.3"/>'),
    arm(head='<option><flag gravity="disable" spring="disable"/></option>', joint='<joint stiffness="3" ref="20" name="j"/>'),
    arm(head='<option><flag damper="disable" limit="disable"/></option>', joint='<joint damping="3" range="0 1" name="j"/>'),
    arm(head='<default class="main"><joint damping="2"/></default>', joint='<joint class="main" name="j"/>'),
    arm(body='<geom type="ellipsoid" fromto="0 0 1 0 0 0" size="0.1"/><geom type="box" fromto="0 0 0 0 0 1" size="0.1"/>'),
    arm(body='<body pos="1 0 0"><inertial mass="1" pos="0 0 0" diaginertia="1 1 1"/></body>'),
    pytest.param(arm(rest='<actuator><position joint="j" kp="0" gear="3" armature="0.1" damping="0.2"/></actuator>'),
                 marks=pytest.mark.skipif(not NEW, reason="MuJoCo has these attributes since version 4")),
    pytest.param(arm('<geom type="box" size="1 2 3" quat="1 2 3 4"/>', head='<default><geom euler="10 20 30"/></default>'),
                 marks=pytest.mark.skipif(not NEW, reason="before MuJoCo 4, the euler of a class wins over a quat")),
])
def test_inertias_flags_and_classes_are_mujocos(text, pair):
    moves_alike(pair(text))


def read(tmp_path, text: str, name="robot.xml"):
    path = tmp_path / name
    path.write_text(text)
    return load_description(path)


def test_names_that_are_made_up_differ_from_given_ones(tmp_path):
    """Bodies are numbered as in MuJoCo. Links of joints away from the body's origin have the joint's name."""
    robot = read(tmp_path, """<mujoco><worldbody><body><joint pos="0 0 1"/><geom size="1"/>
        <body name="body1_joint"><joint name="x" pos="1 0 0"/><joint name="y"/><geom size="1"/><site name="x"/></body>
        </body></worldbody></mujoco>""")
    assert [link.name for link in robot.links] == ["body1_joint_", "body1", "x", "body1_joint", "x_"]
    assert [(joint.name, joint.type, joint.parent, joint.child) for joint in robot.joints] == [
        ("body1_joint", "continuous", WORLD, "body1_joint_"), ("body1_frame", "fixed", "body1_joint_", "body1"),
        ("x", "continuous", "body1", "x"), ("y", "continuous", "x", "body1_joint"), ("x__site", "fixed", "body1_joint", "x_")]
    assert ld.build(robot).v_names == ("body1_joint", "x", "y")


def test_no_link_is_called_world(tmp_path):
    """Links of joints and sites with this name are renamed."""
    robot = read(tmp_path, arm('<site name="world"/>', joint='<joint name="world" pos="1 0 0"/>'))
    assert [link.name for link in robot.links] == ["world_", "a", "world__"]
    ld.build(robot)


def test_couplings_of_joints_and_tendons(tmp_path):
    robot = read(tmp_path, arm(
        joint='<joint name="i" type="slide" ref="0.2"/><joint name="j" ref="90"/><joint name="k" axis="1 0 0"/>', rest="""
        <tendon><fixed name="t"><joint joint="i" coef="2"/><joint joint="k" coef="1"/></fixed></tendon>
        <equality><joint name="one" joint1="i" joint2="j" polycoef="0.1 3 0 0 0"/><joint joint1="k" active="false"/>
        <tendon tendon1="t" polycoef="0.5"/></equality>"""))
    assert robot.couplings == (Coupling("one", (("i", "", 1.0), ("j", "", -3.0)), 0.1 + 0.2 - 3 * (np.pi / 2)),
                               Coupling("equality3", (("i", "", 2.0), ("k", "", 1.0)), 0.9))
    assert "constraints that are not active (1)" in robot.warnings[0].message and "tendons" not in robot.warnings[0].message


def test_forces_of_actuators(tmp_path):
    robot = read(tmp_path, arm(joint="".join(f'<joint name="{n}" axis="{a}"/>' for n, a in zip("ijk", ("1 0 0", "0 1 0", "0 0 1"),
                                                                                            strict=True)), rest="""
        <actuator><motor joint="i" gear="-2" ctrlrange="-3 1" forcerange="-4 4"/><motor joint="i" ctrlrange="-1 1"/>
        <position joint="j" kp="10" ctrlrange="-1 1" forcerange="-5 2"/><position joint="k" ctrlrange="-1 1"/></actuator>"""))
    assert [joint.coordinates[0].effort for joint in robot.joints[:3]] == [7.0, 5.0, np.inf]
    assert "actuators with gains (2)" in robot.warnings[0].message


RANGES = [('gear="-3" ctrlrange="-1 2" forcerange="-5 .5"', ""), ('gear="2" ctrlrange="-4 1" forcerange="-2 3"', ""),
          ('ctrlrange="-2 0" forcerange="0 1"', ""), ('ctrlrange="0 10" forcerange="-3 .1"', ""),
          ('gear="0" ctrlrange="0 1"', ""),
          ('forcerange="-4 1"', 'actuatorfrcrange="-1 3"'), ('ctrlrange="-4 1" forcelimited="false" forcerange="-1 1"', "")]


@pytest.mark.parametrize("others", ["", '<motor joint="i" gear="1.5" ctrlrange="-.1 2"/>'])
@pytest.mark.parametrize("motor, joint", RANGES)
def test_limits_of_forces_against_mujoco(tmp_path, motor, joint, others):
    """They are the maximum forces of all controls."""
    mujoco = pytest.importorskip("mujoco")
    text = arm(joint=f'<joint name="i" axis="1 0 0" {joint}/>', rest=f'<actuator><motor joint="i" {motor}/>{others}</actuator>')
    model, found = mujoco.MjModel.from_xml_string(text), []
    data = mujoco.MjData(model)
    for control in (-100.0, 100.0):
        data.ctrl[:] = control * np.sign(model.actuator_gear[:, 0])
        mujoco.mj_forward(model, data)
        found.append(float(data.qfrc_actuator[0]))
    robot, (least, most) = read(tmp_path, text), found
    assert robot.joints[0].coordinates[0].effort == pytest.approx(max(abs(least), abs(most)), abs=1e-15)
    limits = [warning.message for warning in robot.warnings if warning.code == "mjcf-limits"]
    assert limits == ["not read: the smaller force limit of the two directions (1)"] * (least != -most)


def test_limits_of_thrusters(tmp_path):
    """Ranges of the control and of the force, times the length of the gear."""
    def found(ranges):
        body = '<body name="frame"><freejoint/><geom type="box" size=".2 .1 .1" mass="1"/><site name="r" pos=".2 0 0"/></body>'
        motor = f'<actuator><motor name="m" site="r" gear="0 0 2" {ranges}/></actuator>'
        text = f"<mujoco><worldbody>{body}</worldbody>{motor}</mujoco>"
        (tmp_path / "drone.xml").write_text(text)
        return ld.load_description(tmp_path / "drone.xml").actuators[0].limits
    assert found('ctrlrange="0 10"') == (0.0, 20.0) and found('forcerange="-1 1"') == (-2.0, 2.0)
    assert found('ctrlrange="0 10" forcerange="-1 1"') == (0.0, 2.0)
    assert found("") is None and found('ctrlrange="0 10" ctrllimited="false"') is None


def test_included_files(tmp_path, pair):
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "defaults.xml").write_text(
        '<mujocoinclude>\n<default><joint damping="3"/></default><include file="more.xml"/></mujocoinclude>')
    (tmp_path / "parts" / "more.xml").write_text('<mujoco><option gravity="0 0 -1"/></mujoco>')
    robot = read(tmp_path, arm(head='<include file="parts/defaults.xml"/>'))
    assert robot.gravity == (0, 0, -1) and robot.joints[0].coordinates[0].damping == 3
    (tmp_path / "parts" / "more.xml").write_text('<mujoco>\n\n<option gravity="0 0"/></mujoco>')
    with pytest.raises(ModelError, match=r"parts/more.xml:3: <option gravity>: expected 3 numbers, got '0 0'"):
        read(tmp_path, arm(head='<include file="parts/defaults.xml"/>'))
    (tmp_path / "parts" / "more.xml").write_text('<mujoco><include file="parts/defaults.xml"/></mujoco>')
    with pytest.raises(ModelError, match=r"the file is included twice: got 'parts/defaults.xml'"):
        read(tmp_path, arm(head='<include file="parts/defaults.xml"/>'))


def test_meshes_are_read_only_where_they_give_an_inertia(tmp_path):
    mesh = '<geom type="mesh" mesh="m"/>'
    with pytest.raises(ModelError, match=r"robot.xml:1: <geom mesh>: unknown mesh: expected the name of a <mesh>, got 'm'"):
        read(tmp_path, arm(mesh))
    read(tmp_path, arm(f'{mesh}<inertial mass="1" pos="0 0 0" diaginertia="1 1 1"/>'))
    read(tmp_path, arm(mesh.replace("/>", ' mass="0"/>')))
    robot = read(tmp_path, arm(joint=mesh, body='<body><joint/><geom size="1"/></body>'))
    assert "masses of meshes that do not move (1)" in robot.warnings[0].message


def test_shapes_for_pictures(tmp_path):
    text = arm('<geom type="capsule" size="0.1 0.2" pos="1 0 0"/><geom type="ellipsoid" size="1 1 1"/><geom size="9" group="3"/>')
    read(tmp_path, text)
    shapes = link_shapes(ld.load_description(tmp_path / "robot.xml"))
    assert [(one.kind, one.sizes, one.pose.translation) for one in shapes["a"]] == [
        ("box", (0.2, 0.4, 0.6), (0, 0, 0)), ("capsule", (0.1, 0.4), (1, 0, 0))]


def test_mjcf_through_yaml(tmp_path):
    """Springs, ball joints and constraints are preserved: the robot is the same."""
    model = ld.build(read(tmp_path, random_mjcf(1, constraints=True)))
    warnings = ld.save(model, tmp_path / "robot.yaml")
    other = ld.load(tmp_path / "robot.yaml")
    assert [(one.code, one.place.key) for one in warnings] == [("not-written", "shapes")]
    assert np.array_equal(other.index, model.index) and relative(other.constants, model.constants) < 1e-14
    assert relative(other.loop_constants, model.loop_constants) < 1e-14


@pytest.mark.parametrize("text, message", [
    ("<mujoco>", "not valid XML: the file ends before </mujoco>"),
    ('<!DOCTYPE mujoco [<!ENTITY x "y">]><mujoco/>', "robot.mjcf:1: a DOCTYPE is not accepted"),
    ("<robot/>", "not a MuJoCo file: expected <mujoco>"),
    ("<mujoco><worldbody/></mujoco>", "no bodies in this file: expected at least one <body> in <worldbody>"),
    ("<mujoco><wordbody/></mujoco>", "unknown element: expected one of compiler.*got '<wordbody>'"),
    (arm(head='<include file="none.xml"/>'), "<include file>: the included file does not exist.*got 'none.xml'"),
    (arm(head="<include/>"), "<include file>: the attribute file is missing"),
    (arm(head='<option viscosity="0.1"/>'), "<option viscosity>: forces of a fluid are not supported: expected 0, got '0.1' ."),
    (arm(head='<compiler angle="turn"/>'), "<compiler angle>: expected one of degree, radian, got 'turn'"),
    (arm(head='<compiler eulerseq="xyw"/>'), "expected three of x y z X Y Z"),
    (arm(head='<compiler coordinate="global"/>'), "global coordinates are not supported"),
    (arm(head='<default><default class="x"/><default class="x"/></default>'), "the default class is defined twice: got 'x'"),
    (arm(head='<default><default class="leg"/></default>', joint='<joint class="lag"/>'),
     r"<joint class>: unknown default class: expected one of main, leg, got 'lag' \(did you mean leg\?\)"),
    (arm(joint='<joint name="j" axis="0 0 0"/>'), '<joint axis> of "j": the zero vector: expected a direction, got \'0 0 0\''),
    (arm(joint='<joint pos="0 x 0"/>'), "<joint pos>: expected finite numbers separated by spaces, got 'x'"),
    (arm(joint='<joint pos="0 1e999 0"/>'), "<joint pos>: not a finite number.*got '1e999'"),
    (arm(joint='<joint type="screw"/>'), "<joint type>: expected one of hinge, slide, ball, free, got 'screw'"),
    (arm(joint='<joint dampin="1"/>'), r"<joint dampin>: unknown attribute: got 'dampin' \(did you mean damping\?\)"),
    (arm(joint='<joint damping="1 2"/>'), "damping that is not constant is not supported: expected one number, got '1 2'"),
    (arm(joint='<joint springdamper="1 2"/>'), "springdamper is not supported: expected stiffness and damping, got '1 2'"),
    (arm(joint='<joint range="2 1" limited="true"/>'), "the limits are swapped: expected the lower limit first, got '2 1'"),
    (arm(joint='<joint limited="true"/>'), 'the joint is limited, but has no range: expected a range, or limited="false"'),
    (arm(joint='<joint range="1 2"/>', head='<compiler autolimits="false"/>'), "a range without limited, and autolimits is"),
    (arm(joint='<joint type="ball" stiffness="2"/>'), "a ball joint has no stiffness: expected 0, got '2'"),
    (arm(joint='<joint type="free" armature="2"/>'), "a free joint has no armature: expected 0, or a <freej.*got '2'"),
    (arm(joint='<freejoint align="true"/>'), "a free body whose frame is moved to its centre of mass is not supported"),
    (arm(joint="<freejoint/><joint/>"), "a free joint must be the only joint of its body, which must be a child of the world: "
                                        "expected one joint"),
    (arm("<body><freejoint/></body>"), "a free joint must be the only joint of its body, which must be a child of the world: "
                                       "expected other joints"),
    (arm('<body name="a"/>'), '<body name> of "a": another element has the same name: got \'a\''),
    (arm('<body name="world"/>'), "the name of the world"),
    (arm('<body gravcomp="1"/>'), "compensation of gravity is not supported"),
    (arm('<body quat="1 0 0 0" euler="0 0 0"/>'), "<body euler>: several orientations: expected one of them, got"),
    (arm("<composite/>"), r"<composite> is not supported \(write the compiled model with MuJoCo: mujoco.mj_saveLastXML\)"),
    (arm("<replicate/>"), "<replicate count>: the attribute count is missing"),
    (arm('<replicate count="1.5"/>'), "<replicate count>: expected a whole number, got '1.5'"),
    (arm('<replicate count="2" ofset="1 0 0"/>'), r"unknown attribute: got 'ofset' \(did you mean offset\?\)"),
    (arm('<replicate count="2"><joint/></replicate>'), "<joint>: a joint cannot be replicated"),
    (arm('<replicate count="1e9"><body/></replicate>'), "too many copies: expected at most 100000 elements"),
    (arm('<attach model="m" prefix="x"/>'), "<attach model>: unknown model: expected the name of a <model> in <asset>, got 'm'"),
    (arm('<attach model="m"/>', head='<asset><model name="m" file="none.xml"/></asset>'),
     "the file of the model does not exist.*got 'none.xml'"),
    (arm('<attach model="m" body="a" prefix="x"/>', head='<asset><model name="m" file="robot.mjcf"/></asset>'),
     "the model contains itself: got 'm'"),
    (arm("<plugin/>"), "<plugin> is not supported"), (arm("<bode/>"),
     "unknown element: expected an element of a body, got '<bode>'"),
    (arm('<geom type="ball"/>'), "unknown type of geom: expected one of sphere, capsule.*got 'ball'"),
    (arm('<geom type="box" size="1 1"/>'), "<geom size>: expected 3 numbers, got '1 1'"),
    (arm('<geom size="0"/>'), "wrong size of a sphere: expected 1 number above 0, got '0'"),
    (arm('<geom size="1" mass="-1"/>'), "negative mass: expected zero or more, got '-1'"),
    (arm('<geom size="1" fromto="0 0 0 1 1 1"/>'), "fromto applies only to a capsule, cylinder, box or ellipsoid without pos"),
    (arm('<geom size="1" shellinertia="true"/>'), "the inertia of a hollow shape is not computed"),
    (arm('<inertial pos="0 0 0"/>'), "<inertial mass>: an <inertial> requires mass"),
    (arm('<inertial mass="1" pos="0 0 0" diaginetria="1 1 1"/>'), r"unknown attribute.* \(did you mean diaginertia\?\)"),
    (arm('<inertial mass="1" pos="0 0 0" fullinertia="1 1 1 0 0 0" diaginertia="1 1 1"/>'), "fullinertia and diaginertia cannot "
                                                                                            "be combined"),
    (arm('<inertial mass="1" pos="0 0 0"/><inertial mass="1" pos="0 0 0"/>'), "more than one <inertial>"),
    (arm('<inertial mass="1" pos="0 0 0" euler="1 0 0" fullinertia="1 1 1 0 0 0"/>'), "fullinertia cannot be combined with an "
                                                                                      "orientation: it is in the axes of the"),
    (arm('<site name="s"/><site name="s"/>'), "another site has the same name"),
    (arm(rest='<tendon><spatial stiffness="2"/></tendon>'), "<spatial stiffness>: a tendon with stiffness is not supported"),
    (arm(rest='<tendon><fixed name="t"><joint joint="k"/></fixed></tendon><equality><tendon tendon1="t"/></equality>'),
     "a tendon requires joints with one coordinate: expected a hinge or slide joint, got 'k'"),
    (arm(rest='<equality><joint joint1="j" joint2="j" polycoef="0 1 2 0 0"/></equality>'),
     "<joint polycoef>: a constraint that is not linear is not supported: expected a0 a1 0 0 0, got '0 1 2 0 0'"),
    (arm(rest='<equality><joint joint1="i"/></equality>'),
     "no joint of that name can be coupled: expected a hinge or slide joint, got 'i'"),
    (arm(rest='<equality><connect body1="b" anchor="0 0 0"/></equality>'), "unknown body: expected a body's name, got 'b'"),
    (arm(rest='<equality><connect body1="a"/></equality>'), "the attribute anchor is missing: expected 3 numbers"),
    (arm(rest='<equality><connect site1="s" site2="t"/></equality>'), "unknown site: expected a site's name, got 's'"),
    (arm(rest='<equality><flex flex="f"/></equality>'), "a constraint of type flex is not supported"),
    (arm(rest='<equality><joint name="e" joint1="j"/><joint name="e" joint1="j"/></equality>'), "another constraint has the same "
                                                                                                "name"),
    (arm(rest='<deformable><flex name="f"/></deformable>'), "deformable bodies are not supported"),
    (arm(rest='<actuator><motor joint="i"/></actuator>'), "unknown joint: expected a joint's name, got 'i'"),
    (arm(rest='<actuator><motor site="s"/></actuator>'), "unknown site: expected a site's name, got 's'"),
    (arm(rest='<actuator><motor tendon="t" armature="1"/></actuator>'), "armature of an actuator that does not act on a hinge"),
    (arm(rest='<actuator><motor joint="j" damping="1 2"/></actuator>'), "damping that is not constant is not supported"),
    ("<mujoco>" + "<body>" * 250, "too deeply nested: expected at most 200 levels"),
])
def test_what_is_refused(tmp_path, text, message):
    with pytest.raises(ModelError, match=message) as error:
        read(tmp_path, text, "robot.mjcf")
    assert "\n" not in str(error.value) and "robot.mjcf:" in str(error.value)


TWO = ('<body name="b" pos="0 0 1"{}><joint name="k" axis="1 0 0"/><geom type="box" pos="0 1 0" size="0.1 0.2 0.3"/></body>')
TENDON = '<tendon><fixed stiffness="30" springlength="0"><joint joint="j" coef="1"/><joint joint="k" coef="-1"/></fixed></tendon>'


@pytest.mark.parametrize("part, text, without", [
    ("fluid", arm(TWO.format(""), head='<option density="1.2" viscosity="0.1"/>'), arm(TWO.format(""))),
    ("gravcomp", arm(TWO.format(' gravcomp="0.5"')), arm(TWO.format(""))),
    ("tendons", arm(TWO.format(""), rest=TENDON), arm(TWO.format(""))),
    ("free-joints", arm(TWO.format(""), joint='<joint type="free" armature="0.3"/>'), arm(TWO.format(""), joint="<freejoint/>")),
    ("springs", arm(TWO.format(""), joint='<joint type="ball" stiffness="3" name="j"/>'),
     arm(TWO.format(""), joint='<joint type="ball" name="j"/>')),
    ("springs", arm(TWO.format(""), joint='<joint springdamper="0.1 1" name="j"/>'), arm(TWO.format(""))),
    ("couplings", arm(TWO.format(""), rest='<equality><joint joint1="j" joint2="k" polycoef="0 1 2"/></equality>'),
     arm(TWO.format(""))),
    ("flex", arm(TWO.format(""), rest='<deformable><flex name="f"/></deformable>'), arm(TWO.format(""))),
    ("plugins", arm(TWO.format("") + '<plugin plugin="p"/>'), arm(TWO.format(""))),
])
def test_parts_that_are_left_out_on_request(tmp_path, pair, part, text, without):
    """By default they are an error. On request, the robot is that of MuJoCo without the part, and a warning names it."""
    both = pair(without)
    (tmp_path / "robot.xml").write_text(text)
    with pytest.raises(ModelError, match=rf"\(--ignore {part} leaves it out; ignore=\[\"{part}\"\] in Python\)") as error:
        ld.load(tmp_path / "robot.xml")
    assert "\n" not in str(error.value)
    with pytest.warns(ld.LiedynWarning, match="omitted because of --ignore or ignore=, which changes the motion: "):
        both.model = ld.load(tmp_path / "robot.xml", ignore=[part])
    moves_alike(both)
    warning, = (warning for warning in both.model.warnings if warning.code == "mjcf-left-out")
    assert warning.level == "warning" and f"{IGNORABLE[part]} (" in warning.message
    if part not in ("couplings", "flex", "plugins"):                       # the part does something there
        other = MuJoCoPair(both.model, mujoco.MjModel.from_xml_string(text), 0, both.model.joints.index)
        assert relative(ld.inverse_dynamics(both.model, both.q, both.v, both.a), other.inverse()) > 1e-6


def test_all_parts_that_are_not_computed_are_in_one_error(tmp_path):
    """Each of them was a separate error."""
    parts = {"fluid": "forces of a fluid", "gravcomp": "compensation of gravity", "tendons": "a tendon with stiffness"}
    (tmp_path / "robot.xml").write_text(arm(TWO.format(' gravcomp="0.5"'), head='<option density="1.2"/>', rest=TENDON))
    for ignored in ([], ["gravcomp"]):
        with pytest.raises(ModelError, match="leaves them out") as error:
            ld.load(tmp_path / "robot.xml", ignore=ignored)
        message, (_, *names) = str(error.value), error.value.hint.partition(" leaves")[0].split("--ignore ")
        names = [name.strip() for name in names]
        assert [part for part, text in parts.items() if f"{text} " in message] == [x for x in parts if x not in ignored]
        assert set(names) == set(parts)
        with pytest.warns(ld.LiedynWarning, match="omitted"):
            ld.load(tmp_path / "robot.xml", ignore=names)


def test_parts_that_are_not_there_and_names_that_are_wrong(tmp_path, pair):
    assert not any(warning.code == "mjcf-left-out" for warning in pair(arm()).model.warnings)
    with pytest.raises(ModelError, match=r"unknown part to ignore: expected one of fluid, .*got 'fluids' .*mean fluid"):
        ld.load(tmp_path / "robot.xml", ignore="fluids")
    with pytest.raises(ModelError, match="parts can be ignored in MJCF files only: got 'fluid'"):
        ld.load("robots/top.yaml", ignore=["fluid"])


def test_commands_and_scenarios_leave_parts_out(tmp_path):
    (tmp_path / "arm.xml").write_text(arm(head='<option density="1.2"/>'))
    assert "--ignore fluid leaves it out" in run("info", tmp_path / "arm.xml").stderr
    assert "warning" in ok("info", tmp_path / "arm.xml", "--ignore", "fluid").stderr
    assert "forces of a fluid (1)" in run("check", tmp_path / "arm.xml", "--ignore", "fluid").stdout
    ok("convert", tmp_path / "arm.xml", "--ignore", "fluid", "-o", tmp_path / "arm.yaml")
    result = ld.run_scenario({"robot": str(tmp_path / "arm.xml"), "duration": 0.01, "ignore": ["fluid"]})
    assert "mjcf-left-out" in {warning.code for warning in result.model.warnings}


def test_the_ending_xml_is_of_both_formats(tmp_path):
    urdf = '<robot name="r"><link name="a"/></robot>'
    assert read(tmp_path, urdf).name == "r" and read(tmp_path, arm()).name == "robot"
    with pytest.raises(ModelError, match="a DOCTYPE is not accepted"):
        read(tmp_path, "<!DOCTYPE mujoco>" + arm())
    with pytest.raises(ModelError, match="not valid XML"):
        read(tmp_path, "mujoco")
    with pytest.raises(ModelError, match=r"not a URDF file: expected <robot>, got '<mujoco>' \(give a MuJoCo file the ending "
                                         r".xml\)"):
        read(tmp_path, arm(), "robot.urdf")
    with pytest.raises(ModelError, match="neither a URDF nor a MuJoCo file: expected <robot> or <mujoco>"):
        read(tmp_path, "<robots/>")


def test_the_base_of_a_robot_on_free_joints_is_not_called_fixed(tmp_path):
    for joint, expected in (("<freejoint/>", "free joint base"), ('<joint type="ball" name="j"/>', "fixed base")):
        (tmp_path / "robot.xml").write_text(arm(TWO.format(""), joint=joint))
        model = ld.load(tmp_path / "robot.xml")
        assert expected in repr(model) and expected in robot_text(model) and model.base == "fixed"


TENDONS = """<mujoco><worldbody><body name="a"><joint name="i" axis="0 1 0"/><geom size="0.1"/>
  <body name="b" pos="0 0 .3"><joint name="k" type="slide" axis="1 0 0"/><geom size="0.1"/>
  <body pos="0 .3 .3"><joint name="l" axis="1 0 1"/><geom size="0.1"/></body></body></body></worldbody>
<tendon><fixed name="t"><joint joint="i" coef="2"/><joint joint="k" coef="-0.5"/></fixed>
  <fixed name="s"><joint joint="l" coef="0.2"/><joint joint="k" coef="0.3"/></fixed></tendon>
<actuator><motor name="pull" tendon="t" gear="3" ctrlrange="0 10" ctrllimited="true"/>
  <position tendon="s" kp="5" forcerange="-4 6"/><motor joint="i"/></actuator></mujoco>"""


def test_actuators_on_tendons_have_the_forces_of_mujoco(pair):
    """A tendon over several joints is an actuator; its limits are those of its force before the gear."""
    both = pair(TENDONS)
    found = [(x.name, x.joints, x.limits) for x in both.model.description.actuators]
    assert found == [("pull", (("i", 6.0), ("k", -1.5)), (0.0, 10.0)), ("s", (("l", 0.2), ("k", 0.3)), (-4.0, 6.0))]
    assert both.model.description.actuated == ("i",)
    assert any("actuators with gains (1)" in x.message for x in both.model.warnings)
    both.data.qpos[:], both.data.ctrl[:] = [0.1, 0.2, 0.3], [2.0, 0.7, 0.0]
    mujoco.mj_forward(both.mj, both.data)
    columns = thrust_columns(both.model, np.array([0.1, 0.2, 0.3]))
    np.testing.assert_allclose(columns @ both.data.actuator_force[:2], both.data.qfrc_actuator, atol=1e-14)
