"""Regressors of torque and energy of real robots against Pinocchio's, column by column.

Pinocchio's ten numbers stand for a moving body, in the frame of its joint, which is that of its first link; ours for a link."""
import numpy as np
import pinocchio as pin
import pytest

import liedyn as ld
from bridge import PinocchioBridge, file_of, relative

TEN = ["a1.urdf", "baxter.urdf", "double_pendulum.urdf", "g1_29dof_rev_1_0.urdf", "icub.urdf", "panda.urdf", "solo12.urdf",
       "talos_reduced.urdf", "ur5_robot.urdf", "xarm7.urdf"]
BY_LINES = {"double_pendulum", "ur5_robot", "panda"}
ORDER = [0, 1, 2, 3, 4, 5, 7, 6, 8, 9]         # theirs: m, h, xx, xy, yy, xz, yz, zz; ours: … xy, xz, yy …
N = 9


@pytest.mark.parametrize("name", TEN)
@pytest.mark.parametrize("base", ["fixed", "floating"])
def test_regressors(name, base, worst):
    model = ld.load(file_of(name), base=base).spanning_tree()
    bridge = PinocchioBridge(model.source, model)
    rng = np.random.default_rng(3)
    q, (v, a) = ld.random_configuration(model, rng, N), rng.standard_normal((2, N, model.nv))
    names = ld.inertial_parameters(model, joints=()).names
    ours = [np.arange(10) + names.index(f"mass.{joint.child}") for joint in model.joints]
    theirs = [10 * (theirs.id - 1) + np.array(ORDER) for _, theirs in bridge.joints]
    many = ld.regressor(model, q, v, a, joints=())
    energies = ld.energy_regressor(model, q, v, joints=())
    for k in range(N):
        Q, S = bridge.q(q[k]), bridge.S(q[k])
        V, A = S @ v[k], S @ a[k] + bridge.dS(q[k], v[k]) @ v[k]
        Y = S.T @ pin.computeJointTorqueRegressor(bridge.pin, bridge.data, Q, V, A)
        rows = {"torque": (Y, many[k], ld.regressor(model, q[k], v[k], a[k], joints=())),
                "kinetic energy": (pin.computeKineticEnergyRegressor(bridge.pin, bridge.data, Q, V), energies.kinetic[k],
                                   ld.energy_regressor(model, q[k], v[k], joints=()).kinetic),
                "potential energy": (pin.computePotentialEnergyRegressor(bridge.pin, bridge.data, Q), energies.potential[k],
                                     ld.energy_regressor(model, q[k], v[k], joints=()).potential)}
        for what, (reference, lanes, scalar) in rows.items():
            reference = np.atleast_2d(reference)
            for kind, x in (("Lanes", lanes), ("float64", scalar)):
                for i, j in zip(ours, theirs, strict=True):
                    off = relative(np.atleast_2d(x)[:, i], reference[:, j], 1.0)
                    assert worst(f"Pinocchio, {kind}: regressor of {what}", off, f"{name}, {base}") < 1e-12
