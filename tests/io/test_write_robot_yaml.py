"""Rotations as angles and quaternions of a file: they read back to the same matrix, also where the pitch is a right angle."""
import math

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from liedyn.io.robots.write_robot_yaml import error, quaternion_error, quaternion_of, rpy_of
from liedyn.model.links import IDENTITY, Pose

ANGLES = [(0.1, -0.2, 0.3), (math.pi, 0.0, 0.0), (1.5708, 0.0, -1.5708), (0.3, math.pi / 2, 0.0), (0.4, -math.pi / 2, 1.0),
          (-3.0, 1.2, 3.1), (math.pi / 2, math.pi / 2, math.pi / 2)]


@pytest.mark.parametrize("rpy", ANGLES)
def test_angles_read_back_to_the_same_rotation(rpy):
    R = Pose.from_xyz_rpy(rpy=rpy).rotation
    np.testing.assert_allclose(np.reshape(R, (3, 3)), Rotation.from_euler("xyz", rpy).as_matrix(), atol=1e-15)
    assert error(R, rpy_of(R)) == 0.0


def test_short_angles_are_preferred():
    assert rpy_of(Pose.from_xyz_rpy(rpy=(1.5708, 0.0, -1.5708)).rotation) == (1.5708, 0.0, -1.5708)
    assert rpy_of(IDENTITY) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize("k", range(8))
def test_quaternions_are_of_unit_norm_with_a_positive_last_component(k):
    rotation = Rotation.random(random_state=k) if k < 4 else Rotation.from_rotvec(math.pi * np.eye(4)[k - 4, :3])
    R = tuple(rotation.as_matrix().ravel())
    quaternion = quaternion_of(R)
    assert math.hypot(*quaternion) == pytest.approx(1.0, abs=1e-15) and quaternion[3] >= 0.0
    assert quaternion_error(R, quaternion) < 1e-15 and quaternion_error(R, tuple(-3 * x for x in quaternion)) < 1e-15
    assert abs(np.dot(quaternion, rotation.as_quat())) == pytest.approx(1.0, abs=1e-14)
