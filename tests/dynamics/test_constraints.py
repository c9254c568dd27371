"""Residual, A, velocity and gamma as they are called; the way back onto the constraints; drives; and errors."""
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import liedyn as ld
import loop_reference as reference
from bridge import relative
from liedyn.dynamics.constraints.rank import equation_weights
from liedyn.model.description import WORLD, Loop
from liedyn.model.links import Pose
from loop_zoo import LOOPED, looped_of, motion
from matrices import exp
from zoo import ROBOTS, model_of

FILES = Path(__file__).parents[2] / "robots"

N = 9
EVERY = pytest.mark.parametrize("name", LOOPED)


# calls ------------------------------------------------------------------------------------------------------------
def test_shapes():
    case = looped_of("closed twice")
    model, m, nv = case.model, case.model.nc, case.model.nv
    q, v, _, _ = motion(case, 1, (2, 3))
    assert ld.constraint_residual(model, q).shape == (2, 3, m)
    assert ld.constraint_velocity(model, q, v).shape == ld.constraint_bias(model, q[0, 0], v).shape == (2, 3, m)
    assert ld.constraint_jacobian(model, q).shape == (2, 3, m, nv) and ld.constraint_jacobian(model, q[0, 0]).shape == (m, nv)
    assert ld.constraint_forces(model, q, np.ones(m)).shape == (2, 3, nv)
    assert ld.project_configuration(model, q).shape == (2, 3, model.nq)
    assert ld.project_velocity(model, q, v[0]).shape == (2, 3, nv)
    assert ld.constraint_residual(model, q[:0]).shape == (0, 3, m)
    assert ld.project_configuration(model, q[:0]).shape == (0, 3, model.nq)
    assert ld.project_velocity(model, q[:0], v[:0]).shape == (0, 3, nv)
    assert len(model.constraint_equation_names) == m


def test_lists_and_views_are_taken():
    case = looped_of("closed twice")
    model = case.model
    q, v, _, _ = motion(case, 1, (N,))
    A = ld.constraint_jacobian(model, q)
    assert (ld.constraint_jacobian(model, np.asfortranarray(q)) == A).all()
    assert relative(ld.constraint_bias(model, list(q[0]), list(v[0])), ld.constraint_bias(model, q[0], v[0])) == 0
    before = q.copy()
    ld.project_configuration(model, q)
    assert (q == before).all()


@EVERY
def test_forces_of_multipliers(name, worst):
    case = looped_of(name)
    x = np.random.default_rng(1).standard_normal((N, case.model.nc))
    A = ld.constraint_jacobian(case.model, case.q, constraint_motion=case.constraint_motion)
    off = relative(ld.constraint_forces(case.model, case.q, x, constraint_motion=case.constraint_motion), x @ A)
    assert worst("A^T lambda", off, name) < 1e-13


# drives -----------------------------------------------------------------------------------------------------------
def test_a_drive_by_parts():
    """Pose, twist and rate: omitted ones are zero, and a closure that is not named is at rest."""
    case = looped_of("driven")
    model, q, v = case.model, case.q, np.ones(case.model.nv)
    T, V, dV = case.constraint_motion["loop0"]
    full = ld.constraint_bias(model, q, v, constraint_motion={"loop0": (T, V, 0 * dV)})
    assert (ld.constraint_bias(model, q, v, constraint_motion={"loop0": (T, V)}) == full).all()
    still = ld.constraint_velocity(model, q, v, constraint_motion={"loop0": (T, 0 * V, 0 * V)})
    assert (ld.constraint_velocity(model, q, v, constraint_motion={"loop0": T}) == still).all()
    poses = {name: motion[0] for name, motion in case.constraint_motion.items()}
    closed = ld.project_configuration(model, q, constraint_motion={name: (pose,) for name, pose in poses.items()})
    assert (ld.project_configuration(model, q, constraint_motion=poses) == closed).all()
    none = {name: (np.eye(4), np.zeros(6), np.zeros(6)) for name in case.constraint_motion}
    assert (ld.constraint_residual(model, q, constraint_motion=none) == ld.constraint_residual(model, q)).all()
    # gamma is affine in the rate of the twist, and quadratic in velocities
    with_dV = ld.constraint_bias(model, q, v, constraint_motion={"loop0": (T, V, dV)})
    twice = ld.constraint_bias(model, q, v, constraint_motion={"loop0": (T, V, 2 * dV)})
    assert relative(twice - with_dV, with_dV - full) < 1e-12


def test_a_batch_of_drives():
    case = looped_of("driven")
    model, t = case.model, np.linspace(-0.5, 0.5, N)
    later = [reference.later(case.constraint_motion, x) for x in t]
    many = {name: tuple(np.stack([one[name][k] for one in later]) for k in range(3)) for name in case.constraint_motion}
    v = np.random.default_rng(2).standard_normal((N, model.nv))
    for call in (lambda q, v, d: ld.constraint_bias(model, q, v, constraint_motion=d),
                 lambda q, v, d: ld.constraint_jacobian(model, q, constraint_motion=d),
                 lambda q, v, d: ld.constraint_residual(model, q, constraint_motion=d),
                 lambda q, v, d: ld.project_velocity(model, q, v, constraint_motion=d),
                 lambda q, v, d: ld.constrained_forward_dynamics(model, q, v, v, constraint_motion=d).a):
        out = call(case.q, v, many)
        assert relative(out, [call(case.q, v[k], later[k]) for k in range(N)]) < 1e-12


def test_a_drive_in_the_axes_of_the_file():
    """A slide is driven along x of frame A, for any axis of the closure: the residual is the displacement of frame A."""
    robot = ROBOTS["a lone body"]
    for axis in ((0, 0, 1), (1, 0, 0), (0.6, -0.8, 0)):
        model = ld.build(replace(robot, loops=(Loop("tool", "revolute", WORLD, "root", Pose(), Pose(), (axis,), driven=True),)))
        q = model.neutral()
        out = ld.constraint_residual(model, q, constraint_motion={"tool": exp(np.r_[0, 0, 0, 0.3, 0, 0])})
        assert abs(np.linalg.norm(out[2:]) - 0.3) < 1e-15
        q[:3] = 0.3, 0, 0
        assert np.abs(ld.constraint_residual(model, q, constraint_motion={"tool": exp(np.r_[0, 0, 0, 0.3, 0, 0])})).max() < 1e-15
        v = np.r_[0, 0, 0, 0.7, 0, 0]
        assert np.abs(ld.constraint_velocity(model, q, v,
                                             constraint_motion={"tool": (exp(np.r_[0, 0, 0, 0.3, 0, 0]), v)})).max() < 1e-15


# projections ------------------------------------------------------------------------------------------------------
def nudged(case, size, count=N):
    rng = np.random.default_rng(4)
    dv = rng.standard_normal((count, case.model.nv))
    return ld.integrate(case.model, case.q, size * dv / np.linalg.norm(dv, axis=1, keepdims=True))


@EVERY
@pytest.mark.parametrize("size", [0.1, 1e-3])
def test_configurations_are_closed_by_the_shortest_way(name, size, worst):
    """Residual at rounding. The way, dq, is in the range of M^-1 A^T except for second order: what is off it goes with its size.
    What rolls may slip on that way: of its rows the normal one counts."""
    case = looped_of(name)
    model, constraint_motion = case.model, case.constraint_motion
    q = nudged(case, size)
    closed = ld.project_configuration(model, q, constraint_motion=constraint_motion)
    off = np.abs(ld.constraint_residual(model, closed, constraint_motion=constraint_motion) * equation_weights(model)).max()
    assert worst("projection: residual", off, name) <= 2e-13          # rounding along the chains: 1.003e-13 seen with AVX2
    away = []
    for one, other in zip(q, closed, strict=True):
        dq, M = ld.difference(model, one, other), ld.mass_matrix(model, other)
        L = np.linalg.cholesky(M)
        U, s, _ = np.linalg.svd(np.linalg.solve(L, holonomic(model, other, constraint_motion).T), full_matrices=False)
        U, y = U[:, s > 1e-7 * s[0]], L.T @ dq
        away.append(np.linalg.norm(y - U @ (U.T @ y)) / np.linalg.norm(y))
    assert worst(f"projection from {size}: part off M^-1 A^T", max(away), name) < 50 * size


def holonomic(model, q, constraint_motion):
    """Return the rows of A that constrain configurations."""
    A, _ = reference.equations(model, q, constraint_motion)
    for one, loop in zip(model.constraints, model.description.loops, strict=False):
        if loop.type == "rolling":
            (T_a, _), (T_b, _), _ = reference.frames(model, q, loop, constraint_motion)
            n = T_b[:3, :3].T @ T_a[:3, 2]
            A[one.rows] = np.outer(n, n) @ A[one.rows]
    return A


@pytest.mark.parametrize("name", ["closed twice, floating", "closure: universal", "driven"])
def test_prescribed_coordinates_stay(name):
    case = looped_of(name)
    model, q = case.model, nudged(case, 0.02)
    mask, A = np.zeros(model.nv, dtype=bool), ld.constraint_jacobian(model, case.q, constraint_motion=case.constraint_motion)
    for k in range(model.nv):                        # as many as leave the rest able to close
        rest = ~mask & (np.arange(model.nv) != k)
        s = np.linalg.svd(A[:, rest], compute_uv=False)
        mask[k] = (s > 0.2).sum() == np.linalg.matrix_rank(A, 1e-9)
    assert mask.sum() > 3
    closed = ld.project_configuration(model, q, prescribed=mask, constraint_motion=case.constraint_motion)
    assert np.abs(ld.constraint_residual(model, closed, constraint_motion=case.constraint_motion)).max() <= 1e-13
    assert np.abs(ld.difference(model, q, closed)[:, mask]).max() < 1e-15
    v = np.random.default_rng(5).standard_normal((N, model.nv))
    moved = ld.project_velocity(model, closed, v, prescribed=mask, constraint_motion=case.constraint_motion)
    assert (moved[:, mask] == v[:, mask]).all()
    assert np.abs(ld.constraint_velocity(model, closed, moved, constraint_motion=case.constraint_motion)).max() < 1e-10


def test_what_is_closed_stays():
    case = looped_of("closed twice")
    assert (ld.project_configuration(case.model, case.q) == case.q).all()
    rough = ld.project_configuration(case.model, nudged(case, 1e-3), tolerance=1e-5)
    assert 1e-12 < np.abs(ld.constraint_residual(case.model, rough)).max() <= 1e-5


@EVERY
def test_velocities_are_projected(name, worst):
    """v - M^-1 A^T (A M^-1 A^T)^+ (A v - u), dense. A second projection has no effect; a batch equals single states."""
    case = looped_of(name)
    model, constraint_motion = case.model, case.constraint_motion
    v = np.random.default_rng(6).standard_normal((N, model.nv))
    out = ld.project_velocity(model, case.q, v, constraint_motion=constraint_motion)
    A, u = reference.equations(model, case.q, constraint_motion)
    L = np.linalg.cholesky(ld.mass_matrix(model, case.q))
    B = np.linalg.solve(L, A.T).T
    s = np.linalg.svd(B, compute_uv=False)
    condition = (s[0] / s[s > 1e-7 * s[0]][-1])**2
    expected = v - np.linalg.solve(L.T, np.linalg.pinv(B, rcond=1e-7) @ (v @ A.T - u).T).T
    bound = max(1e-10, 1e-14 * condition)
    assert worst("projection of velocities, dense", relative(out, expected, 1.0), name) < bound
    off = np.abs(ld.constraint_velocity(model, case.q, out, constraint_motion=constraint_motion)).max()
    assert worst("projection of velocities: A v", off, name) < bound * np.abs(A).sum(axis=1).max()
    again = ld.project_velocity(model, case.q, out, constraint_motion=constraint_motion)
    assert worst("projection of velocities, twice", relative(again, out, 1.0), name) < bound
    single = [ld.project_velocity(model, case.q, x, constraint_motion=constraint_motion) for x in v]
    assert relative(out, single) < 1e-14


# errors --------------------------------------------------------------------------------------------------
def refused(error, function, *args, **options):
    with pytest.raises(error) as caught:
        function(*args, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_what_is_refused():
    case, open_ = looped_of("driven"), model_of("every kind")
    model, q, v = case.model, case.q, np.zeros(case.model.nv)
    for function, args in ((ld.constraint_residual, (v,)), (ld.constraint_jacobian, (v,)), (ld.constraint_bias, (v, v)),
                           (ld.project_configuration, (v,)), (ld.project_velocity, (v, v))):
        assert refused(ld.ModelError, function, open_, *args) == (
            "robot zoo1 has no constraints: expected loops, couplings or a mimic in its file")
    assert f"q has the wrong shape: expected (…, {model.nq}), got (3,)" in refused(
        ld.ShapeError, ld.constraint_residual, model, np.zeros(3))
    assert "leading axes do not match" in refused(ld.ShapeError, ld.constraint_bias, model, np.tile(q, (2, 1)),
                                                         np.zeros((3, model.nv)))
    bad = q.copy()
    bad[-1] = np.nan
    for function in (ld.constraint_residual, ld.constraint_jacobian, ld.project_configuration):
        assert f"q[{model.nq - 1}] (" in refused(ld.ConfigurationError, function, model, bad)
        assert "of state 1 is not finite" in refused(ld.ConfigurationError, function, model, np.stack([q, bad]),
                                                     constraint_motion=case.constraint_motion)
    for function in (ld.constraint_velocity, ld.constraint_bias, ld.project_velocity):
        assert "v[0] (" in refused(ld.ConfigurationError, function, model, q, v + np.nan)
    assert "is not of unit norm" in refused(ld.ConfigurationError, ld.constraint_residual, model, 2 * q)
    assert "prescribed is a mask over v" in refused(ld.ShapeError, ld.project_configuration, model, q, prescribed=[1, 2])
    assert "multipliers has the wrong shape" in refused(ld.ShapeError, ld.constraint_forces, model, q, np.ones(2))


def test_drives_that_are_refused():
    case = looped_of("driven")
    model, q = case.model, case.q
    T = case.constraint_motion["loop0"][0]
    assert refused(ld.LiedynError, ld.constraint_residual, model, q, constraint_motion={"loop9": T}) == (
        "no driven loop 'loop9'; the model has loop0, loop1, loop2")
    assert "constraint_motion has the wrong shape: expected (…, 4, 4), got (3, 3)" in refused(
        ld.ShapeError, ld.constraint_residual, model, q, constraint_motion={"loop0": np.eye(3)})
    for function, args in ((ld.constraint_residual, (q,)), (ld.project_configuration, (q,)),
                           (ld.constrained_forward_dynamics, (q, np.zeros(model.nv), np.zeros(model.nv)))):
        assert "the motion of a driven loop contains NaN or infinite values" in refused(
            ld.LiedynError, function, model, *args, constraint_motion={"loop0": (T, np.full(6, np.nan))})


def test_what_cannot_be_closed():
    """A rod is too short: the error names the constraint that stays open."""
    rod = Loop("rod", "distance", WORLD, "link2", Pose.from_xyz_rpy((50.0, 0, 0), (0, 0, 0)), length=0.3)
    model = ld.build(replace(ROBOTS["revolute"], loops=(rod,)))
    text = refused(ld.ComputationError, ld.project_configuration, model, ld.random_configuration(model, np.random.default_rng(1)))
    assert text.startswith("the constraints cannot be satisfied from this configuration; the residual of rod remains ")
    assert text.endswith("(start from a closer configuration, or check with liedyn assemble whether the lengths allow it)")


def test_prescribed_velocities_that_contradict_the_constraints_are_refused():
    model = ld.load("robots/four_bar.yaml")
    q = ld.assemble(model, [1.2, 0.2, 1.8], fixed=["crank"]).q
    with pytest.raises(ld.ComputationError, match=r"no velocity satisfies the constraints: the residual of pin\.v. remains "
                                                  r".*prescribe"):
        ld.project_velocity(model, q, [1.0, 0.0, 0.0], prescribed=[True, True, True])
    fine = ld.project_velocity(model, q, [1.0, 0.0, 0.0])
    assert np.allclose(ld.project_velocity(model, q, fine, prescribed=[True, True, True]), fine, rtol=0, atol=1e-15)


@pytest.mark.parametrize("name", ["bennett", "bricard", "four_bar", "five_bar"])
def test_projected_configurations_are_perpendicular_to_the_constraints(name):
    """In the metric of M. Newton steps alone moved the Bennett linkage eleven times too far: rows that depend on each
    other in closed configurations do not in open ones."""
    model = ld.load(FILES / f"{name}.yaml")
    here = ld.assemble(model, model.neutral()).q
    start = ld.integrate(model, here, 1e-3 * np.random.default_rng(0).standard_normal((5, model.nv)))
    q = ld.project_configuration(model, start)
    assert np.abs(ld.constraint_residual(model, q)).max() < 1e-12
    away = ld.difference(model, q, start)
    assert np.abs(ld.project_velocity(model, q, away)).max() < 1e-8 * np.abs(away).max()
    kept = np.arange(model.nv) == 0
    held = ld.project_configuration(model, start[0], prescribed=kept)
    assert held[0] == start[0, 0]
