"""Constrained forward dynamics against Pinocchio's `constraintDynamics`: real robots, fixed and floating, with welds and balls
between random links, and redundant ones."""
from dataclasses import replace
from functools import cache

import numpy as np
import pinocchio as pin
import pytest

import liedyn as ld
from bridge import PinocchioBridge, file_of, relative
from liedyn.model.description import WORLD
from loop_zoo import matrix, random_closure

N, PROMISED = 9, 1e-9
# closures that leave them some freedom
FIXED = {"ur5_robot.urdf": ("ball",), "panda.urdf": ("weld", "ball"), "talos_reduced.urdf": ("weld", "ball", "ball-weld"),
         "tiago_dual.urdf": ("weld", "ball-weld"), "allegro_left_hand.urdf": ("ball", "ball-ball", "weld")}
FLOATING = {"panda.urdf": ("weld", "ball-ball"), "solo12.urdf": ("weld", "ball-weld", "ball-ball"),
            "talos_reduced.urdf": ("ball", "ball-weld", "ball-ball-weld-weld"),
            "g1_29dof_rev_1_0.urdf": ("weld-weld", "ball-ball")}
BY_LINES = {"ur5_robot", "panda"}
CASES = [(name, base, kinds) for base, robots in (("fixed", FIXED), ("floating", FLOATING))
         for name, every in robots.items() for kinds in every]
TYPES = {"weld": pin.ContactType.CONTACT_6D, "ball": pin.ContactType.CONTACT_3D}


@cache
def tree_of(name, base):
    """Return the robot without its mimic joints, which Pinocchio's model lacks."""
    robot = ld.load_description(file_of(name), base=base)
    robot = replace(robot, joints=tuple(replace(joint, mimic=None) for joint in robot.joints))
    return robot, ld.build(robot)


@cache
def bridge_of(name, base):
    return PinocchioBridge(file_of(name), tree_of(name, base)[1])


class Looped:
    """A robot file with closures that fit a random configuration: ours and Pinocchio's."""

    def __init__(self, name, base, kinds, seed, twice=False):
        rng = np.random.default_rng([seed, 41])
        robot, tree = tree_of(name, base)
        self.q = ld.random_configuration(tree, rng)
        bodies = dict(zip(tree.link_names, tree.link_body, strict=True)) | {WORLD: 0}
        loops = []
        for k, kind in enumerate(kinds):
            a = b = WORLD
            while bodies[a] == bodies[b]:
                a, b = (str(x) for x in rng.choice([*bodies], 2))
            loops.append(random_closure(rng, kind, f"loop{k}", tree, self.q, a, b))
        if twice:
            loops.append(replace(loops[0], name="again"))
        self.model = ld.build(replace(robot, loops=tuple(loops)))
        self.bridge = bridge_of(name, base)
        self.v = ld.project_velocity(self.model, self.q, rng.standard_normal((N, tree.nv)))
        self.tau = rng.standard_normal((N, tree.nv))

    def _frame(self, link, where):
        if link == WORLD:
            return 0, pin.SE3(matrix(where))
        frame = self.bridge.pin.frames[self.bridge.pin.getFrameId(link, pin.FrameType.BODY)]
        return frame.parentJoint, frame.placement * pin.SE3(matrix(where))

    def _rows(self, loop):
        """Frame B comes first: its contact forces are then along the axes of liedyn's."""
        return pin.RigidConstraintModel(TYPES[loop.type], self.bridge.pin, *self._frame(loop.b, loop.pose_b),
                                        *self._frame(loop.a, loop.pose_a), pin.LOCAL)

    def theirs(self, mu):
        """Return the accelerations (N, nv) in the coordinates of liedyn."""
        bridge, out = self.bridge, []
        rows, data = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
        rows.extend([self._rows(loop) for loop in self.model.description.loops])
        data.extend([one.createData() for one in rows])
        pin.initConstraintDynamics(bridge.pin, bridge.data, rows, data)
        settings = pin.ProximalSettings(1e-14, mu, 50)
        S, Q = bridge.S(self.q), bridge.q(self.q)
        for v, tau in zip(self.v, self.tau, strict=True):
            a = pin.constraintDynamics(bridge.pin, bridge.data, Q, S @ v, np.linalg.solve(S.T, tau), rows, data, settings)
            out.append(np.linalg.solve(S, a.copy()))
        return np.array(out)

    def ours(self):
        return ld.constrained_forward_dynamics(self.model, self.q, self.v, self.tau, passive=False)


def well_conditioned(case):
    A, M = ld.constraint_jacobian(case.model, case.q), ld.mass_matrix(case.model, case.q)
    s = np.linalg.svd(np.linalg.solve(np.linalg.cholesky(M), A.T), compute_uv=False)
    return s[-1] > 1e-3 * s[0]


@pytest.mark.parametrize("name, base, kinds", CASES)
def test_accelerations(name, base, kinds, worst):
    """Of the first three random closures whose rows do not depend on each other: nine states at once and one by one."""
    done = 0
    for seed in range(40):
        case = Looped(name, base, kinds.split("-"), seed)
        if case.model.nc >= case.model.nv or not well_conditioned(case):
            continue
        done += 1
        ours, theirs = case.ours(), case.theirs(0.0)
        assert worst("Pinocchio's constraintDynamics, Lanes: a", relative(ours.a, theirs), f"{name}, {base}") < PROMISED
        one = [ld.constrained_forward_dynamics(case.model, case.q, v, tau, passive=False).a
               for v, tau in zip(case.v, case.tau, strict=True)]
        assert worst("Pinocchio's constraintDynamics, float64: a", relative(one, theirs), f"{name}, {base}") < PROMISED
        if done == 3:
            break
    assert done == 3


@pytest.mark.parametrize("name", FLOATING)
def test_closed_twice(name, worst):
    """Rows are dependent: Pinocchio iterates towards the minimum multipliers, liedyn removes redundant rows."""
    seed = next(k for k in range(30) if well_conditioned(Looped(name, "floating", ["ball"], k)))
    case = Looped(name, "floating", ["ball"], seed, twice=True)
    off = relative(case.ours().a, case.theirs(1e-8))
    assert worst("Pinocchio's constraintDynamics, closed twice: a", off, name) < PROMISED
