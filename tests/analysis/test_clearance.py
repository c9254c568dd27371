"""Distances of links by spheres: they contain the shapes, the smooth minimum is a bound, its derivatives are exact."""
import dataclasses

import numpy as np
import pytest

import liedyn as ld
from liedyn.analysis.clearance import _SOFT, SCALE, clearance, covering_spheres
from liedyn.model.spatial import pose

SHAPES = [("sphere", (0.3,)), ("capsule", (0.1, 0.45)), ("cylinder", (0.1, 0.35)), ("cylinder", (0.2, 0.05)),
          ("box", (0.1, 0.4, 0.25)), ("box", (0.2, 0.2, 0.2))]
AT = ld.Pose.from_xyz_rpy((0.1, -0.2, 0.3), (0.4, 0.5, -0.6))


def shape_points(kind, sizes, rng):
    """Return random points of a shape in its own frame."""
    u = rng.uniform(-1.0, 1.0, (4000, 3))
    if kind == "box":
        return 0.5 * u * sizes
    radius, length = (*sizes, 0.0)[:2]
    p = u * [radius, radius, radius + 0.5 * length]
    beyond = np.maximum(np.abs(p[:, 2]) - 0.5 * length, 0.0)
    across = np.hypot(p[:, 0], p[:, 1])
    return p[(across < radius) & (beyond == 0.0) if kind == "cylinder" else np.hypot(across, beyond) < radius]


def beyond(kind, sizes, p):
    """Return the distances of points from a shape in its own frame; zero inside."""
    if kind == "box":
        return np.linalg.norm(np.maximum(np.abs(p) - 0.5 * np.array(sizes), 0.0), axis=-1)
    radius, length = (*sizes, 0.0)[:2]
    across, along = np.hypot(p[..., 0], p[..., 1]), np.maximum(np.abs(p[..., 2]) - 0.5 * length, 0.0)
    return np.hypot(np.maximum(across - radius, 0.0), along) if kind == "cylinder" else np.maximum(
        np.hypot(across, along) - radius, 0.0)


@pytest.mark.parametrize(("kind", "sizes", "bound"), [(*shape, bound) for shape, bound in zip(
    SHAPES, (1e-12, 0.0098, 0.0567, 0.0934, 0.041, 0.074), strict=True)] + [
    ("cylinder", (0.1, 0.1 * length), 0.1 * bound) for length, bound in (
        (0.02, 0.58), (0.5, 0.38), (1.0, 0.342), (1.01, 0.38), (1.5, 0.32), (1.51, 0.567), (2.9, 0.567), (20.0, 0.567))])
def test_spheres_contain_the_shape_and_are_not_much_larger(kind, sizes, bound):
    """The distance of their surface from the shape, with a bound [m]. Of cylinders, points of an edge and an end, too."""
    spheres, T, rng = covering_spheres(ld.Shape(kind, sizes, AT)), pose(AT), np.random.default_rng(1)
    centers, p = (spheres[:, :3] - T[:3, 3]) @ T[:3, :3], shape_points(kind, sizes, rng)
    if kind == "cylinder":
        at = sizes[0] * np.sqrt(np.r_[np.ones(2000), rng.uniform(0.0, 1.0, 2000)])[:, None]
        angle = rng.uniform(0.0, 6.3, (4000, 1))
        edge = np.hstack([at * np.cos(angle), at * np.sin(angle), np.full_like(at, 0.5 * sizes[1])]) * (1.0 - 1e-9)
        p = np.concatenate([p, edge, edge * [1.0, 1.0, -1.0]])
    assert (np.linalg.norm(p[:, None] - centers, axis=2) <= spheres[:, 3]).any(axis=1).all()
    u = rng.standard_normal((2000, 3))
    surface = centers[:, None] + spheres[:, 3, None, None] * u / np.linalg.norm(u, axis=1)[:, None]
    assert 0.85 * bound < beyond(kind, sizes, surface).max(initial=0.99e-12) <= bound and len(spheres) <= 21


@pytest.fixture(scope="module")
def arm():
    return ld.load("robots/ur5.yaml")


def postures(model, n, seed=0):
    return np.random.default_rng(seed).uniform(-1.5, 1.5, (n, model.nv))


def test_smooth_distances_are_bounds_with_exact_derivatives(arm):
    every, warnings = clearance(arm, 0.02, {"z": (0.0, np.inf), "x": (-0.5, 0.8)}, postures(arm, 50))
    assert [warning.code for warning in warnings] == ["always-near"] and "shoulder_link and z > 0 m" in every.excluded
    q, dq = postures(arm, 20, 1), postures(arm, 20, 2)
    below = every.nearest(q) - every.smooth(q)
    assert below.min() >= 0.0 and below.max() <= _SOFT / SCALE * every.scale * np.log(len(every.offset))

    def smooth(h):
        return every.smooth(q + h * dq)

    expected = (8 * (smooth(1e-5) - smooth(-1e-5)) - (smooth(2e-5) - smooth(-2e-5))) / 12e-5
    along = np.einsum("ngk,nk->ng", every.smooth_derivatives(q), dq)
    assert np.abs(along - expected).max() < 1e-8 * np.abs(expected).max()


def test_distances_are_those_of_spheres_in_the_world(arm):
    every, _ = clearance(arm, 0.02, {"z": (0.1, np.inf), "x": (-np.inf, 0.8)}, postures(arm, 50))
    q = postures(arm, 3, 1)
    shapes = {link.name: link.shapes for link in arm.description.links}

    def spheres(name, k):
        own, T = covering_spheres(shapes[name][0]), ld.link_pose(arm, q[k], name)
        return own[:, :3] @ T[:3, :3].T + T[:3, 3], own[:, 3]

    for g, gap in enumerate(every.gaps):
        for k in range(len(q)):
            p, r = spheres(gap.link, k)
            if gap.other in shapes:
                other, s = spheres(gap.other, k)
                expected = (np.linalg.norm(p[:, None] - other, axis=2) - r[:, None] - s).min() - 0.02
            else:
                expected = (p[:, 2] - r).min() - 0.1 if "z" in gap.other else 0.8 - (p[:, 0] + r).max()
            assert abs(every.nearest(q[k:k + 1])[0, g] - expected) < 1e-14
    assert {frozenset(gap[:2]) for gap in every.gaps}.isdisjoint([frozenset(("upper_arm_link", "forearm_link"))])   # a joint


def test_links_without_shapes_are_named():
    robot = ld.load("robots/double_pendulum.yaml")
    with pytest.raises(ld.UsageError, match="no distance can be limited: no two links that can move"):
        clearance(robot, 0.1, None, postures(robot, 5))
    links = (ld.Link("upper", mass=1.0, inertia=[0.1, 0.1, 0.01]), *robot.description.links[1:])
    bare = dataclasses.replace(robot.description, links=links, visuals={})
    every, warnings = clearance(ld.build(bare), None, {"z": (-2.0, np.inf)}, postures(robot, 5))
    assert [warning.code for warning in warnings] == ["no-shape"] and every.excluded == ("upper",)
    assert [gap.link for gap in every.gaps] == ["lower"]


@pytest.mark.parametrize(("limit", "excluded"), [(0.03, ()), (0.05, ("link_5 and link_7",))])
def test_flat_ends_do_not_exclude_links(limit, excluded):
    """Spheres of a flat link exceeded its ends so much that it was never far enough from another link."""
    iiwa = ld.load("robots/iiwa.yaml")
    every, _ = clearance(iiwa, limit, None, np.random.default_rng(0).uniform(iiwa.lower, iiwa.upper, (200, iiwa.nv)))
    assert every.excluded == excluded


@pytest.mark.parametrize(("options", "text"), [
    ((-0.1, None), "self_distance must be a finite number of metres >= 0, got -0.1"),
    ((np.inf, None), "self_distance must be a finite number"),
    ((None, {"w": (0.0, 1.0)}), "space: the axis must be one of x, y, z, got 'w'"),
    ((None, {"z": (1.0, 0.0)}), "space['z'] must be two numbers, lower < upper, got (1.0, 0.0)"),
    ((None, {"z": 1.0}), "space['z'] must be two numbers"),
    ((None, {"z": (3.0, np.inf)}), "no posture is within the distance limits of shoulder_link and z > 3 m, "),
])
def test_errors(arm, options, text):
    with pytest.raises(ld.UsageError) as error:
        clearance(arm, *options, postures(arm, 5))
    assert text in str(error.value)
