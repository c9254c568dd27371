"""Masses of shapes: parts make up the whole, triangles enclose the shape, and turned bodies have turned tensors."""
import itertools
import math

import numpy as np
import pytest
from scipy.spatial import ConvexHull
from scipy.spatial.transform import Rotation

from liedyn.model.links import Pose
from liedyn.model.mass_properties import Mass, rotated_inertia, total, uniform, uniform_triangles

R, L, SIZES = 0.3, 0.8, (0.4, 0.6, 1.0)


def body(shape, sizes, at=(0.0, 0.0, 0.0)):
    """A uniform body of density 1 with its centre at a point."""
    volume, inertia = uniform(shape, sizes)
    return Mass(volume, at, tuple(volume * x for x in inertia))


def half_ball(end):
    """With its flat side at z = 0; its centre is 3/8 of the radius from there."""
    mass, across, along = 2 / 3 * math.pi * R**3, 83 / 320 * R**2, 0.4 * R**2
    return Mass(mass, (0.0, 0.0, end * (L / 2 + 3 / 8 * R)), (mass * across, 0.0, 0.0, mass * across, 0.0, mass * along))


def assert_equal(one, other, rtol=1e-12):
    for x, y in zip((one.mass, one.com, one.inertia), (other.mass, other.com, other.inertia), strict=True):
        np.testing.assert_allclose(x, y, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("whole, parts", [
    (body("box", SIZES), [body("box", (0.1, 0.6, 1.0), (-0.15, 0.0, 0.0)), body("box", (0.3, 0.6, 1.0), (0.05, 0.0, 0.0))]),
    (body("cylinder", (R, L)), [body("cylinder", (R, L / 2), (0.0, 0.0, z)) for z in (-L / 4, L / 4)]),
    (body("capsule", (R, L)), [half_ball(-1), body("cylinder", (R, L)), half_ball(1), Mass()]),
    (body("sphere", (R,)), [body("capsule", (R, 1e-13))])])
def test_parts_make_up_the_whole(whole, parts):
    assert_equal(total(parts), whole)


def test_bodies_anywhere_have_the_sum_of_their_moments():
    rng = np.random.default_rng(2)
    parts = [Mass(float(m), tuple(c.tolist()), tuple(x.tolist()))
             for m, c, x in zip(rng.uniform(0.5, 2, 3), rng.standard_normal((3, 3)), rng.standard_normal((3, 6)), strict=True)]
    masses, centres = np.array([part.mass for part in parts]), np.array([part.com for part in parts])
    com = masses @ centres / masses.sum()
    d = centres - com
    tensor = (masses @ (d**2).sum(axis=1)) * np.eye(3) - np.einsum("i,ij,ik->jk", masses, d, d)
    assert_equal(total(parts), Mass(float(masses.sum()), tuple(com), tuple(
        tensor[np.triu_indices(3)] + np.sum([part.inertia for part in parts], axis=0))))


def box_mesh():
    """Points and triangles, all oriented outwards, of a box away from the origin."""
    points = np.array([1.0, -2.0, 0.5]) + list(itertools.product(*((-s / 2, s / 2) for s in SIZES)))
    triangles = ConvexHull(points).simplices
    corners = points[triangles]
    reversed_ones = np.linalg.det(corners - points.mean(axis=0)) < 0.0
    triangles[reversed_ones] = triangles[reversed_ones][:, ::-1]
    return points, triangles


@pytest.mark.parametrize("kind", ["exact", "legacy"])
def test_triangles_of_a_box_enclose_it(kind):
    assert_equal(uniform_triangles(*box_mesh(), kind), body("box", SIZES, (1.0, -2.0, 0.5)))


def test_the_shell_of_a_box_is_six_plates():
    plates = []
    for k, side in itertools.product(range(3), (-0.5, 0.5)):
        sizes, at = np.array(SIZES), np.array([1.0, -2.0, 0.5])
        at[k] += side * sizes[k]
        sizes[k] = 0.0
        area = float(np.prod(np.delete(SIZES, k)))
        plates.append(Mass(area, tuple(at), tuple(area * x for x in uniform("box", sizes)[1])))
    assert_equal(uniform_triangles(*box_mesh(), "shell"), total(plates))


def test_a_turned_body_has_a_turned_tensor():
    turn = Rotation.from_euler("xyz", [0.3, -0.7, 1.1]).as_matrix()
    inertia = (2.0, 0.1, -0.2, 3.0, 0.3, 4.0)
    tensor = np.array([[2.0, 0.1, -0.2], [0.1, 3.0, 0.3], [-0.2, 0.3, 4.0]])
    found = Mass(2.0, (0.1, 0.2, 0.3), inertia).seen_from(Pose(tuple(turn.ravel().tolist()), (1.0, 2.0, 3.0)))
    np.testing.assert_allclose(found.inertia, (turn @ tensor @ turn.T)[np.triu_indices(3)], rtol=1e-14)
    np.testing.assert_allclose(found.com, turn @ [0.1, 0.2, 0.3] + [1.0, 2.0, 3.0], rtol=1e-14)
    assert found.mass == 2.0 and rotated_inertia(tuple(turn.ravel().tolist()), inertia) == found.inertia


def test_the_mass_of_nothing_is_zero():
    assert total([]) == total([Mass(), Mass(com=(1.0, 0.0, 0.0))]) == Mass()
