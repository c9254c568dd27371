"""Values of elements of a description: conversions keep what is no number, and checks name the place."""
import numpy as np
import pytest

from liedyn.errors import ArgumentError, ModelError, Place
from liedyn.model.element_values import (
    as_each,
    as_elements,
    as_float,
    as_floats,
    as_inertia,
    as_matrix,
    as_vectors,
    check_finite,
    check_pose,
)
from liedyn.model.links import Pose

PLACE = Place(key="arm")


def test_conversions_return_floats_and_leave_the_rest():
    assert as_float(np.int64(3)) == 3.0 and as_float("x") == "x" and as_float(10**400) == 10**400
    assert as_floats(np.arange(3)) == (0.0, 1.0, 2.0) and as_floats("123") == "123" and as_floats([1, "x"]) == [1, "x"]
    assert as_vectors(np.eye(2)) == ((1.0, 0.0), (0.0, 1.0)) and as_vectors(5) == 5


def test_inertias_are_matrices_diagonals_or_six_numbers():
    I = np.array([[1.0, 2.0, 3.0], [2.0, 4.0, 5.0], [3.0, 5.0, 6.0]])
    assert as_inertia(I, PLACE) == (1.0, 2.0, 3.0, 4.0, 5.0, 6.0) == as_inertia([1, 2, 3, 4, 5, 6], PLACE)
    assert as_inertia([1, 2, 3], PLACE) == (1.0, 0.0, 0.0, 2.0, 0.0, 3.0)
    with pytest.raises(ModelError, match="arm: the inertia is not symmetric"):
        as_inertia(I + np.triu(np.full((3, 3), 1e-6), 1), PLACE)


@pytest.mark.parametrize("value", [np.eye(3), "pose", np.ones((4, 4)), [[1.0]]])
def test_other_poses_are_errors(value):
    assert np.array_equal(as_matrix(np.eye(4).tolist(), PLACE, "origin"), np.eye(4))
    with pytest.raises(ModelError, match="arm: the origin is not a pose"):
        as_matrix(value, PLACE, "origin")


def test_one_number_stands_for_each_coordinate():
    assert as_each(2, 3, PLACE, "damping") == [2.0, 2.0, 2.0] and as_each([1, 2], 2, PLACE, "damping") == [1.0, 2.0]
    for value in ([1.0], ["a", "b"]):
        with pytest.raises(ModelError, match="arm: wrong damping"):
            as_each(value, 2, PLACE, "damping")


@pytest.mark.parametrize("values, text", [
    ([1.0], "wrong mass"), (None, "wrong mass"), ([1.0, np.inf], "not a finite number in the mass"),
                                          ([1.0, 2e30], "number too large in the mass"), (["a", 1.0], "wrong mass")])
def test_numbers_that_are_not_finite_are_errors(values, text):
    check_finite([1.0, -1e30], 2, PLACE, "mass")
    with pytest.raises(ModelError, match=f"arm: {text}"):
        check_finite(values, 2, PLACE, "mass")


@pytest.mark.parametrize("rotation", [np.diag([1.0, 1.0, -1.0]), np.eye(3) + 1e-5, np.zeros((3, 3))])
def test_rotations_are_orthonormal_and_right_handed(rotation):
    check_pose(Pose((0.0, -1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0)), PLACE, "origin")
    with pytest.raises(ModelError, match="the rotation of the origin is not a rotation matrix"):
        check_pose(Pose(rotation), PLACE, "origin")


def test_elements_of_another_class_are_errors():
    assert as_elements([1, 2], int, "Robot", "links") == (1, 2)
    for values in ([1, "a"], "ab", 5):
        with pytest.raises(ArgumentError, match="Robot: links must be a sequence of"):
            as_elements(values, int if values != 5 else str, "Robot", "links")
