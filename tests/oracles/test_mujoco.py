"""Random trees against MuJoCo: a small writer turns a description into MJCF (hinge, slide, ball and free joints; compound
joints as several on one body; armature, damping, springs)."""
import re
from dataclasses import replace

import mujoco
import numpy as np
import pytest

import liedyn as ld
from bridge import relative
from joint_forces import passive_force
from liedyn.model.description import WORLD, Joint, Robot
from liedyn.model.links import Pose
from liedyn.model.model_joint import joint_screws
from matrices import quaternion
from measured_rows import exact, rows_of
from mujoco_pair import MuJoCoPair
from zoo import random_joint, random_link, random_robot

KNOWN = ("revolute", "continuous", "prismatic", "ball", "universal", "cylindrical", "planar", "euler")
BY_LINES = {"0"}
PROMISED = 1e-10


def text(values) -> str:
    return " ".join(repr(float(x)) for x in values)


def mjcf(robot) -> str:
    """Return the robot as MJCF. Every link has mass, no joint is fixed, and friction is omitted."""
    hanging: dict[str, list] = {}
    for joint in robot.joints:
        hanging.setdefault(joint.parent, []).append(joint)
    links = {link.name: link for link in robot.links}
    children = {joint.child for joint in robot.joints}

    def body(name, joint):
        link = links[name]
        R = np.reshape(joint.origin.rotation, (3, 3)) if joint else np.eye(3)
        x, y, z, w = quaternion(R)
        xx, xy, xz, yy, yz, zz = link.inertia
        position = joint.origin.translation if joint else (0, 0, 0)
        lines = [f'<body name="{name}" pos="{text(position)}" quat="{text((w, x, y, z))}">',
                 f'<inertial pos="{text(link.com)}" mass="{link.mass!r}" fullinertia="{text((xx, yy, zz, xy, xz, yz))}"/>']
        lines += moves(joint) if joint else ['<freejoint name="base"/>'] if robot.base == "floating" else []
        return "\n".join([*lines, *(body(j.child, j) for j in hanging.get(name, [])), "</body>"])

    top = [body(link.name, None) for link in robot.links if link.name not in children]
    top += [body(joint.child, joint) for joint in hanging.get(WORLD, []) if WORLD not in links]
    return f"""<mujoco>
  <compiler angle="radian" inertiafromgeom="false" balanceinertia="false" autolimits="false"/>
  <option gravity="{text(robot.gravity)}"><flag energy="enable" contact="disable"/></option>
  <worldbody>{''.join(top)}</worldbody>
</mujoco>"""


def moves(joint) -> list[str]:
    """Return one element per degree of freedom. The coordinates of a ball joint share damping and armature in MuJoCo."""
    if joint.type == "free":
        return [f'<freejoint name="{joint.name}"/>']
    if joint.type == "ball":
        c = joint.coordinates[0]
        return [f'<joint name="{joint.name}" type="ball" damping="{c.damping!r}" armature="{c.armature!r}"/>']
    out = []
    for k, (screw, c) in enumerate(zip(joint_screws(joint), joint.coordinates, strict=True)):
        kind, axis = ("hinge", screw[:3]) if screw[:3].any() else ("slide", screw[3:])
        out.append(f'<joint name="{joint.name}.{k}" type="{kind}" axis="{text(axis)}" damping="{c.damping!r}" '
                   f'armature="{c.armature!r}" stiffness="{c.stiffness!r}" springref="{c.rest!r}"/>')
    return out


def without_friction(robot):
    """MuJoCo's dry friction is a constraint; and a ball joint has one figure for its three coordinates."""
    joints = []
    for joint in robot.joints:
        first = joint.coordinates[:1] * len(joint.coordinates) if joint.type == "ball" else joint.coordinates
        joints.append(replace(joint, coordinates=tuple(replace(c, friction=0.0) for c in first)))
    return replace(robot, joints=tuple(joints))


class Pair(MuJoCoPair):
    def __init__(self, robot, seed):
        robot = without_friction(robot)
        super().__init__(ld.build(robot), mujoco.MjModel.from_xml_string(mjcf(robot)), seed,
                         lambda joint: joint.name if joint.type in ("ball", "free") else f"{joint.name}.0")


def compare(pair, worst, where):
    model, q, v, a, tau = pair.model, pair.q, pair.v, pair.a, pair.tau
    many = np.tile(q, (9, 1))
    F = {model.link_names[-1]: np.array([1.0, -2, 3, 4, 5, -6]), model.link_names[len(model.link_names) // 2]: np.arange(6.0)}
    theirs = pair.mass()
    mujoco.mj_subtreeVel(pair.mj, pair.data)
    momentum, centre = pair.data.subtree_linvel[0] * pair.mj.body_mass.sum(), pair.data.subtree_com[0].copy()
    potential, kinetic = pair.data.energy
    spin = pair.data.subtree_angmom[0] + np.cross(centre, momentum)
    checks = {
        "mass matrix": (ld.mass_matrix(model, q), ld.mass_matrix(model, many)[4], theirs),
        "inverse dynamics": (ld.inverse_dynamics(model, q, v, a), ld.inverse_dynamics(model, many, v, a)[4], pair.inverse()),
        "forward dynamics": (ld.forward_dynamics(model, q, v, tau), ld.forward_dynamics(model, many, v, tau)[4], pair.forward()),
        "forward dynamics with wrenches": (ld.forward_dynamics(model, q, v, tau, f_ext=F),
                                           ld.forward_dynamics(model, many, v, tau, f_ext=F)[4], pair.forward(F)),
    }
    if model.link_body.min() > 0:                       # MuJoCo counts what is at rest
        checks |= {
            "energy": (ld.energy(model, q, v), np.transpose(ld.energy(model, many, v))[4], (kinetic, potential)),
            "momentum": (ld.momentum(model, q, v), ld.momentum(model, many, v)[4], np.r_[spin, momentum]),
            "centre of mass": (ld.centre_of_mass(model, q), ld.centre_of_mass(model, many)[4], centre)}
    for what, (one, batch, reference) in checks.items():
        assert worst(f"MuJoCo, float64: {what}", relative(one, reference), where) < PROMISED
        assert worst(f"MuJoCo, Lanes: {what}", relative(batch, reference), where) < PROMISED
    rows = [pair.mj.body(name).id for name in model.link_names]
    poses = ld.link_poses(model, q)
    assert worst("MuJoCo: positions of links [m]", np.abs(poses[:, :3, 3] - pair.data.xpos[rows]).max(), where) < 1e-13
    turned = np.abs(poses[:, :3, :3].reshape(-1, 9) - pair.data.xmat[rows]).max()
    assert worst("MuJoCo: rotations of links", turned, where) < 1e-13


@pytest.mark.parametrize("kind", KNOWN)
def test_every_joint_kind_that_mujoco_can_write(kind, worst):
    robot = random_robot(80, 3, types=(kind,), chain=True, massless=False)
    compare(Pair(robot, 1), worst, kind)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("base", ["fixed", "floating"])
def test_random_trees(seed, base, worst):
    robot = random_robot(90 + seed, 12, types=KNOWN, base=base, massless=False)
    compare(Pair(robot, seed), worst, f"zoo {90 + seed}, {base}")


@pytest.mark.parametrize("seed", range(3))
def test_trees_on_the_ground(seed, worst):
    robot = random_robot(100 + seed, 8, types=KNOWN, grounded=True, massless=False)
    compare(Pair(robot, seed), worst, f"zoo {100 + seed}, on the ground")


def test_a_long_chain(worst, monkeypatch):
    """Sixty links: the error grows with the depth, not with its square."""
    monkeypatch.setenv("LIEDYN_CODE", "generic")
    robot = random_robot(110, 60, types=("revolute", "prismatic"), chain=True, massless=False)
    compare(Pair(robot, 1), worst, "sixty links")


def test_passive_forces(worst):
    robot = random_robot(111, 10, types=("revolute", "prismatic", "universal", "planar"), massless=False)
    pair = Pair(robot, 2)
    pair.forward()
    theirs = pair.G.T @ pair.data.qfrc_passive
    assert theirs.any()
    assert worst("MuJoCo: passive forces", relative(passive_force(pair.model, pair.q, pair.v), theirs)) < 1e-14
    with_forces, without = (ld.inverse_dynamics(pair.model, pair.q, pair.v, pair.a, passive=x) for x in (True, False))
    assert relative(without - with_forces, theirs) < 1e-12


def test_several_free_bodies(worst):
    """Free joints start at the ground, where MuJoCo supports them; one carries an arm."""
    rng = np.random.default_rng(5)
    links = tuple(random_link(rng, name) for name in ("a", "b", "arm"))
    joints = (Joint("fly", "free", WORLD, "a"), Joint("soar", "free", WORLD, "b"),
              random_joint(rng, "elbow", "universal", "b", "arm"))
    compare(Pair(Robot("swarm", links, joints), 3), worst, "free bodies")


@pytest.mark.parametrize("seed", range(3))
def test_sensors(seed, worst):
    """Gyros, accelerometers, and wrenches of all bodies on their parents, at sites with random poses."""
    robot, rng = without_friction(random_robot(120 + seed, 6, types=KNOWN, massless=False)), np.random.default_rng(seed)
    places = {link.name: (rng.uniform(-1, 1, 3), rng.uniform(-1, 1, 3)) for link in robot.links}
    sites = "".join(f'<{kind} site="{name}"/>' for name in places for kind in ("gyro", "accelerometer", "torque", "force"))
    written = mjcf(robot).replace("</mujoco>", f"<sensor>{sites}</sensor></mujoco>")
    for name, (at, rpy) in places.items():
        R = np.reshape(Pose.from_xyz_rpy(at, rpy).rotation, (3, 3))
        x, y, z, w = quaternion(R)
        site = f'<site name="{name}" pos="{text(at)}" quat="{text((w, x, y, z))}"/>'
        written = re.sub(f'(<body name="{name}".*?>)', rf"\1{site}", written)
    pair = MuJoCoPair(ld.build(robot), mujoco.MjModel.from_xml_string(written), seed,
                      lambda joint: joint.name if joint.type in ("ball", "free") else f"{joint.name}.0")
    a = pair.forward()
    rows, theirs = rows_of(pair.model, pair.q[None], pair.v[None], a[None]), pair.data.sensordata.reshape(-1, 12)
    joints = {joint.child: joint.name for joint in pair.model.description.joints}
    for (name, (at, rpy)), expected in zip(places.items(), theirs, strict=True):
        placed = {"at": tuple(at), "rpy": tuple(rpy)}
        assert worst("MuJoCo: IMU", relative(exact(rows, type="imu", link=name, **placed)[0], expected[:6])) < PROMISED
        if name in joints:
            F = exact(rows, type="force_torque", joint=joints[name], **placed)[0]
            assert worst("MuJoCo: force-torque sensor", relative(F, expected[6:])) < PROMISED
