"""Hybrid dynamics against DART, the other library that has it: real robots that DART reads from URDF, and random trees of
every joint kind that DART knows, built through its API.

DART prescribes whole joints (ACCELERATION actuators); masks that cut through joints are held against inverse dynamics in
`test_pinocchio` and `identities`. Its coordinates map to ours joint by joint through both joint Jacobians: equal twists."""
import xml.etree.ElementTree as ET
from dataclasses import replace

import dartpy as dart
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import liedyn as ld
from bridge import file_of, relative
from liedyn.model.description import ONE_DOF, WORLD
from matrices import pose
from zoo import random_robot

dynamics = dart.dynamics
URDFS = ("hyq_no_sensors.urdf", "panda.urdf", "talos_reduced.urdf", "anymal-kinova.urdf", "tiago_no_hand.urdf",
         "allegro_left_hand.urdf")
BY_LINES = {"panda", "hyq_no_sensors", "0"}           # each mask is a line of its own
KNOWN = ("revolute", "continuous", "prismatic", "helical", "ball", "free", "universal", "planar", "euler")
BASES = pytest.mark.parametrize("base", ["fixed", "floating"])
PROMISED = 1e-10


def isometry(T):
    out = dart.math.Isometry3()
    out.set_rotation(T[:3, :3])
    out.set_translation(T[:3, 3])
    return out


# a skeleton of DART ------------------------------------------------------------------------------------------------
def without_shapes(path) -> str:
    """Return the URDF text without meshes, which dynamics does not need."""
    root = ET.parse(path).getroot()
    for link in root.iter("link"):
        for shape in [*link.findall("visual"), *link.findall("collision")]:
            link.remove(shape)
    return ET.tostring(root, encoding="unicode")


def skeleton_of_urdf(path, base):
    """Read the file with DART. A fixed root is a free joint that does not move."""
    loader = dart.utils.DartLoader()
    skeleton = loader.parseSkeletonString(without_shapes(path), dart.common.Uri(), dart.utils.DartResourceRetriever())
    root = skeleton.getRootJoint()
    assert root.getType() == "FreeJoint"
    if base == "fixed":
        root.setActuatorType(dynamics.ACCELERATION)
        root.setCommands(np.zeros(6))
    return skeleton


def skeleton_of_description(robot):
    """Build the skeleton joint by joint."""
    skeleton, bodies, links = dynamics.Skeleton(), {}, {link.name: link for link in robot.links}

    def add(kind, parent, child, origin):
        create = getattr(skeleton, f"create{kind}JointAndBodyNodePair")
        joint, body = create(bodies[parent]) if parent in bodies else create()
        joint.setTransformFromParentBodyNode(isometry(origin))
        link = links[child]
        xx, xy, xz, yy, yz, zz = link.inertia
        body.setInertia(dynamics.Inertia(link.mass, link.com, [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]))
        bodies[child] = body
        return joint

    children = {joint.child for joint in robot.joints}
    for link in robot.links:
        if link.name not in children:
            add("Free" if robot.base == "floating" else "Weld", WORLD, link.name, np.eye(4)).setName("base")
    kinds = {"continuous": "Revolute", "helical": "Screw", "fixed": "Weld"}
    for joint in robot.joints:
        theirs = add(kinds.get(joint.type, joint.type.capitalize()), joint.parent, joint.child,
                     pose(joint.origin.rotation, joint.origin.translation))
        theirs.setName(joint.name)
        axes = [np.array(axis) / np.linalg.norm(axis) for axis in joint.axes]
        if joint.type in ("revolute", "continuous", "prismatic", "helical"):
            theirs.setAxis(axes[0])
        if joint.type == "helical":
            theirs.setPitch(2 * np.pi * joint.pitch)                     # metres a turn
        if joint.type == "universal":
            theirs.setAxis1(axes[0])
            theirs.setAxis2(axes[1])
        if joint.type == "planar":
            turn = least_turn_from_z(axes[0])
            theirs.setArbitraryPlane(turn[:, 0], turn[:, 1])
    return skeleton


def least_turn_from_z(axis) -> np.ndarray:
    """The rotation by the smallest angle that takes z to the axis. SciPy 1.11's align_vectors of one vector is another."""
    x, y, z = axis / np.linalg.norm(axis)
    angle = np.arctan2(np.hypot(x, y), z)
    return Rotation.from_rotvec(angle * np.array([-y, x, 0.0]) / max(np.hypot(x, y), 1e-300)).as_matrix()


# the same state in both ---------------------------------------------------------------------------------------------
class Pair:
    """Our model and DART's skeleton in one state."""

    def __init__(self, model, skeleton, seed):
        self.model, self.skeleton = model, skeleton
        skeleton.setGravity(model.gravity)
        for joint in skeleton.getJoints():                       # DART treats damping implicitly, over a time step
            for k in range(joint.getNumDofs()):
                joint.setDampingCoefficient(k, 0)
        rng = np.random.default_rng(seed)
        self.q = ld.random_configuration(model, rng)
        self.v, self.a, self.tau = rng.standard_normal((3, model.nv))
        self.joints, self.G, self.rate = [], {}, {}
        for joint in model.joints:
            theirs = skeleton.getRootJoint() if joint.name == "base" else skeleton.getJoint(joint.name)
            self.joints.append((joint, theirs))
            self._position(joint, theirs)
        for joint, theirs in self.joints:
            self._velocity(joint, theirs)

    def _position(self, joint, theirs):
        q = self.q[joint.q]
        if joint.kind == ONE_DOF:
            theirs.setPositions(q)
        else:
            motion = Rotation.from_quat(q[-4:]).as_matrix()
            free = joint.type == "free"
            theirs.setPositions(dynamics.FreeJoint.convertToPositions(isometry(pose(motion, q[:3]))) if free
                                else dynamics.BallJoint.convertToPositions(motion))
        T = ld.joint_motion(self.model, joint.name, q)[0]
        if joint.parent in self.model.link_names or joint.name == "base":
            np.testing.assert_allclose(theirs.getRelativeTransform().matrix(), T, atol=1e-12)

    def _velocity(self, joint, theirs):
        """v_dart = G v, a_dart = G a + r: both joint Jacobians give the child the same twist and its rate."""
        q, v = self.q[joint.q], self.v[joint.v]
        _, S, dS = ld.joint_motion(self.model, joint.name, q, v)
        inverse = np.linalg.pinv(theirs.getRelativeJacobian())
        G = inverse @ S
        theirs.setVelocities(G @ v)
        self.G[joint.name] = G
        self.rate[joint.name] = inverse @ (dS @ v - theirs.getRelativeJacobianTimeDeriv() @ G @ v)

    def hybrid(self, prescribed: set[str]):
        """Return the result of DART in the coordinates of liedyn."""
        for joint, theirs in self.joints:
            G = self.G[joint.name]
            if joint.name in prescribed:
                theirs.setActuatorType(dynamics.ACCELERATION)
                theirs.setCommands(G @ self.a[joint.v] + self.rate[joint.name])
            else:
                theirs.setActuatorType(dynamics.FORCE)
                theirs.setForces(np.linalg.solve(G.T, self.tau[joint.v]))
            theirs.notifyPositionUpdated()                       # an actuator's type alone does not renew what DART keeps
        self.skeleton.computeForwardDynamics()
        a, tau = np.empty((2, self.model.nv))
        for joint, theirs in self.joints:
            G = self.G[joint.name]
            a[joint.v] = np.linalg.solve(G, theirs.getAccelerations() - self.rate[joint.name])
            tau[joint.v] = G.T @ theirs.getForces()
        return a, tau


def compare(pair, worst, where):
    model, rng = pair.model, np.random.default_rng(7)
    names = [joint.name for joint in model.joints]
    for share in (0.0, 0.2, 0.5, 0.8, 1.0):
        prescribed = {name for name in names if rng.random() < share}
        mask = np.zeros(model.nv, dtype=bool)
        for name in prescribed:
            mask[model.v_index(name)] = True
        a, tau = pair.hybrid(prescribed)
        given = np.where(mask, pair.a, np.nan), np.where(mask, np.nan, pair.tau)
        one = ld.hybrid_dynamics(model, pair.q, pair.v, *given, mask, passive=False)
        many = ld.hybrid_dynamics(model, pair.q, np.tile(pair.v, (9, 1)), *given, mask, passive=False)
        for kind, ours in (("float64", one), ("Lanes", [x[4] for x in many])):
            assert worst(f"DART, {kind}: accelerations", relative(ours[0], a), where) < PROMISED
            assert worst(f"DART, {kind}: forces", relative(ours[1], tau), where) < PROMISED


@pytest.mark.parametrize("name", URDFS)
@BASES
def test_real_robots(name, base, worst):
    path = file_of(name)
    for seed in range(3):
        pair = Pair(ld.load(path, base=base).spanning_tree(), skeleton_of_urdf(path, base), seed)
        expected = pair.skeleton.getNumDofs() - (6 if base == "fixed" else 0)
        assert pair.model.nv == expected
        compare(pair, worst, f"{name}, {base}")


@pytest.mark.parametrize("kind", KNOWN)
def test_every_joint_kind_that_dart_knows(kind, worst):
    robot = random_robot(60, 3, types=(kind,), chain=True, springs=False)
    robot = replace(robot, joints=tuple(replace(j, sequence="xyz") if j.type == "euler" else j for j in robot.joints))
    compare(Pair(ld.build(robot), skeleton_of_description(robot), 1), worst, kind)


@pytest.mark.parametrize("seed", range(6))
@BASES
def test_random_trees(seed, base, worst):
    robot = random_robot(70 + seed, 11, types=KNOWN, base=base, springs=False)
    robot = replace(robot, joints=tuple(
        replace(j, sequence="xyz", coordinates=()) if j.type == "euler" else j for j in robot.joints))
    compare(Pair(ld.build(robot), skeleton_of_description(robot), seed), worst, f"zoo {70 + seed}, {base}")
