"""Constrained dynamics on random looped trees over every kind of joint, closure and coupling: rows and gamma by plain matrices
and differences, accelerations and multipliers by dense equations, one state and nine, and what must not depend on the frame."""
from dataclasses import replace

import numpy as np
import pytest

import liedyn as ld
import loop_reference as reference
from bridge import relative, worst_state
from differences import by_q
from liedyn.model.description import WORLD, Joint, Mimic
from loop_zoo import LOOPED, UNDRIVEN, anywhere, as_pose, looped_of, matrix, motion, world_pose
from matrices import derivative, exp, inverse, pose, quaternion
from zoo import model_of, random_robot

EPS, N, PROMISED = np.finfo(float).eps, 9, 1e-9
EVERY = pytest.mark.parametrize("name", LOOPED)
STILL = pytest.mark.parametrize("name", UNDRIVEN)


def bound_of(condition):
    """1e-9, or what rounding makes of equations of that condition."""
    return max(PROMISED, EPS * condition)


def wrenches(model, seed, size=()):
    return np.random.default_rng([seed, 5]).standard_normal((*size, len(model.link_names), 6))


# rows -------------------------------------------------------------------------------------------------------------
@EVERY
def test_closed_where_it_was_made(name, worst):
    case = looped_of(name)
    off = np.abs(ld.constraint_residual(case.model, case.q, constraint_motion=case.constraint_motion)).max()
    assert worst("residual where closed", off, name) < 1e-14


@EVERY
def test_rows_bias_and_velocity(name, worst, monkeypatch):
    """Nine states on Lanes, where otherwise thousands go, and the same one by one; closed and open, against the reference."""
    case = looped_of(name)
    model, constraint_motion = case.model, {"constraint_motion": case.constraint_motion}
    q, v, _, _ = anywhere(case, 1, (N,))
    q[0], v[1] = case.q, motion(case, 1)[1]
    A, gamma, u = ld.constraint_jacobian(model, q,
                                         **constraint_motion), ld.constraint_bias(model, q, v,
                                                                                  **constraint_motion), ld.constraint_velocity(
        model, q, v, **constraint_motion)
    residual = ld.constraint_residual(model, q, **constraint_motion)
    for k in range(N):
        one = q[k], v[k]
        assert worst("A, Lanes against float64", relative(A[k], ld.constraint_jacobian(model, q[k], **constraint_motion)),
                     name) < 1e-13
        assert worst("gamma, Lanes against float64",
                     relative(gamma[k], ld.constraint_bias(model, *one, **constraint_motion), 1.0), name) < 1e-12
        assert relative(u[k], ld.constraint_velocity(model, *one, **constraint_motion), 1.0) < 1e-13
        assert relative(residual[k], ld.constraint_residual(model, q[k], **constraint_motion), 1.0) < 1e-13
    for k in range(3):
        rows, velocity = reference.equations(model, q[k], case.constraint_motion)
        assert worst("A against plain matrices", relative(A[k], rows), name) < 1e-13
        assert worst("A v against plain matrices", relative(u[k], rows @ v[k] - velocity, 1.0), name) < 1e-12
        expected = reference.bias(model, q[k], v[k], case.constraint_motion)
        size = np.abs(v[k]).max()**2 * np.abs(rows).max() * 10
        assert worst("gamma against differences", relative(gamma[k], expected, size), name) < 1e-10


@STILL
def test_rows_are_the_derivative_of_the_residual(name, worst):
    """Where it is closed; what rolls is bound in its height only. gamma is the derivative of A v."""
    case = looped_of(name)
    model, q = case.model, case.q
    A = ld.constraint_jacobian(model, q)
    v = motion(case, 2)[1]
    rate = derivative(lambda t: ld.constraint_jacobian(model, ld.integrate(model, q, t * v)) @ v, 0.003)
    gamma = ld.constraint_bias(model, q, v)
    assert worst("gamma against differences of A", relative(gamma, rate, np.abs(v).max()**2), name) < 1e-10
    for one, loop in zip(model.constraints, model.description.loops, strict=False):
        if loop.type == "rolling":
            (T_a, _), (T_b, _), _ = reference.frames(model, q, loop, None)
            n = (inverse(T_b) @ T_a)[:3, 2]
            A[one.rows] = np.outer(n, n) @ A[one.rows]
    numeric = by_q(lambda x: ld.constraint_residual(model, x), model, q, 0.003)
    assert worst("A against differences of the residual", relative(numeric, A), name) < 1e-10


@pytest.mark.parametrize("name", [name for name in LOOPED if name not in UNDRIVEN])
def test_a_drive_moves_the_residual(name, worst):
    """d/dt residual = A v - u while the drive continues, and d/dt (A v - u) = gamma."""
    case = looped_of(name)
    model, q, constraint_motion = case.model, case.q, case.constraint_motion
    v = np.random.default_rng(3).standard_normal(model.nv)

    def at(t):
        later = reference.later(constraint_motion, t)
        return ld.constraint_residual(model, ld.integrate(model, q, t * v), constraint_motion=later)
    rate = derivative(at, 0.003)
    u = ld.constraint_velocity(model, q, v, constraint_motion=constraint_motion)
    for one, loop in zip(model.constraints, model.description.loops, strict=True):
        if loop.type == "rolling":
            (T_a, _), (T_b, _), _ = reference.frames(model, q, loop, constraint_motion)
            n = (inverse(T_b) @ T_a)[:3, 2]
            u[one.rows] = n * (n @ u[one.rows])
    assert worst("a drive: rate of the residual", relative(rate, u), name) < 1e-10


# accelerations ----------------------------------------------------------------------------------------------------
@EVERY
@pytest.mark.parametrize("passive", [True, False])
def test_forward_dynamics_against_dense_equations(name, passive, worst):
    """Closed, with velocities that obey the constraints and that do not; springs, rotors, external wrenches."""
    case = looped_of(name)
    model, constraint_motion = case.model, case.constraint_motion
    for seed, states in ((1, motion(case, 1)), (2, (case.q, *anywhere(case, 2)[1:]))):
        q, v, _, tau = states
        options = {"passive": passive, "f_ext": wrenches(model, seed) if passive else None}
        if dependent(case) and seed == 2:
            continue                                 # velocities that break dependent rows leave them nothing to agree on
        out = ld.constrained_forward_dynamics(model, q, v, tau, constraint_motion=constraint_motion, **options)
        a, force, multipliers, condition = reference.forward(model, q, v, tau, constraint_motion, **options)
        bound = bound_of(condition)
        label = "forward, dense equations" if bound == PROMISED else "forward, dense equations, ill-conditioned"
        assert worst(f"{label}: a", relative(out.a, a), name) < bound
        assert worst(f"{label}: lambda", relative(out.multipliers, multipliers, 1e-3 * np.abs(force).max()), name) < 100 * bound
        assert (out.tau == tau).all()


def dependent(case):
    """Whether rows depend on each other at the closed configuration."""
    A, _ = reference.equations(case.model, case.q, case.constraint_motion)
    s = np.linalg.svd(A, compute_uv=False)
    return len(A) > A.shape[1] or s[-1] < 1e-9 * s[0]


@EVERY
def test_forward_dynamics_obeys_both_equations(name, worst):
    """M a + b = tau + A^T lambda and A a + gamma = 0, of nine states; and these are the nine one by one.
    Checks: K2 (54), (55)."""
    case = looped_of(name)
    model, constraint_motion = case.model, {"constraint_motion": case.constraint_motion}
    q, v, _, tau = motion(case, 3, (N,))
    F = wrenches(model, 3, (N,))
    out = ld.constrained_forward_dynamics(model, q, v, tau, f_ext=F, **constraint_motion)
    needed = ld.inverse_dynamics(model.spanning_tree(), q, v, out.a, f_ext=F)
    supplied = tau + ld.constraint_forces(model, q, out.multipliers, **constraint_motion)
    assert worst("forward: M a + b = tau + A^T lambda", worst_state(supplied, needed), name) < 1e-10
    gap = np.einsum("kij,kj->ki", ld.constraint_jacobian(model, q, **constraint_motion),
                    out.a) + ld.constraint_bias(model, q, v, **constraint_motion)
    assert worst("forward: A a + gamma = 0", np.abs(gap).max() / np.abs(out.a).max(), name) < 1e-9
    condition = reference.forward(model, q[0], v[0], tau[0], case.constraint_motion)[3]
    for k in range(N):
        one = ld.constrained_forward_dynamics(model, q[k], v[k], tau[k], f_ext=F[k], **constraint_motion)
        assert worst("forward: Lanes against float64", relative(out.a[k], one.a), name) < bound_of(condition) / 100
        assert (out.independent[k] == one.independent).all()
    A, _ = reference.equations(model, case.q, case.constraint_motion)
    s = np.linalg.svd(A, compute_uv=False)
    assert out.independent.sum(axis=1).tolist() == [int((s > 1e-7 * s[0]).sum())] * N


@EVERY
def test_multipliers_are_of_least_norm(name, worst):
    """No part of lambda lies in the null space of A^T; closure forces do no work beyond that of a drive."""
    case = looped_of(name)
    model, constraint_motion = case.model, {"constraint_motion": case.constraint_motion}
    q, v, _, tau = motion(case, 4)
    out = ld.constrained_forward_dynamics(model, q, v, tau, **constraint_motion)
    A = ld.constraint_jacobian(model, q, **constraint_motion)
    U, s, _ = np.linalg.svd(A)
    idle = U[:, int((s > 1e-7 * s[0]).sum()):]
    off = np.abs(idle.T @ out.multipliers).max(initial=0.0) / np.abs(out.multipliers).max()
    bound = bound_of(reference.forward(model, q, v, tau, case.constraint_motion)[3])
    assert worst("multipliers in the null space of A^T", off, name) < bound
    if not case.constraint_motion:
        forces = A.T @ out.multipliers
        assert worst("power of closure forces", abs(v @ forces) / (np.abs(v).max() * np.abs(forces).max()), name) < bound


# hybrid dynamics --------------------------------------------------------------------------------------------------
@EVERY
def test_hybrid_dynamics_against_dense_equations(name, worst):
    """Random masks; the accelerations that are prescribed agree with the constraints, since forward dynamics made them."""
    case = looped_of(name)
    model, constraint_motion = case.model, case.constraint_motion
    q, v, _, tau = motion(case, 5)
    F = wrenches(model, 5)
    made = ld.constrained_forward_dynamics(model, q, v, tau, f_ext=F, constraint_motion=constraint_motion)
    A, _ = reference.equations(model, q, constraint_motion)
    gamma = ld.constraint_bias(model, q, v, constraint_motion=constraint_motion)
    for seed, share in enumerate((0.1, 0.3, 0.6, 0.9)):
        mask = np.random.default_rng([seed, 31]).random(model.nv) < share
        nan = np.full(model.nv, np.nan)              # what is not read may be anything
        out = ld.constrained_hybrid_dynamics(model, q, v, np.where(mask, made.a, nan), np.where(mask, nan, tau), mask, f_ext=F,
                                             constraint_motion=constraint_motion)
        a, force, _, condition = reference.hybrid(model, q, v, made.a, tau, mask, constraint_motion, f_ext=F)
        bound = bound_of(condition)
        label = "hybrid, dense equations" if bound == PROMISED else "hybrid, dense equations, ill-conditioned"
        size = np.abs(force).max()
        assert worst(f"{label}: a", relative(out.a, a), f"{name}, {share}") < bound
        assert worst(f"{label}: tau", relative(out.tau, force, size), f"{name}, {share}") < 100 * bound
        needed = ld.inverse_dynamics(model.spanning_tree(), q, v, out.a, f_ext=F)
        gap = relative(out.tau + A.T @ out.multipliers, needed)
        assert worst("hybrid: M a + b = tau + A^T lambda", gap, name) < 1e-9
        assert worst("hybrid: A a + gamma = 0", np.abs(A @ out.a + gamma).max() / np.abs(out.a).max(), name) < 1e-8


@EVERY
def test_hybrid_dynamics_at_its_extremes(name, worst):
    """Nothing prescribed: forward dynamics. All prescribed: inverse dynamics of the open tree, lambda = 0."""
    case = looped_of(name)
    model, constraint_motion = case.model, {"constraint_motion": case.constraint_motion}
    q, v, _, tau = motion(case, 6, (N,))
    none, every = np.zeros(model.nv, dtype=bool), np.ones(model.nv, dtype=bool)
    forward = ld.constrained_forward_dynamics(model, q, v, tau, **constraint_motion)
    out = ld.constrained_hybrid_dynamics(model, q, v, np.full(model.nv, np.nan), tau, none, **constraint_motion)
    assert worst("hybrid, nothing prescribed: forward", relative(out.a, forward.a), name) < 1e-14
    out = ld.constrained_hybrid_dynamics(model, q, v, forward.a, np.full(model.nv, np.nan), every, **constraint_motion)
    assert (out.multipliers == 0).all() and (out.a == forward.a).all() and not out.independent.any()
    needed = ld.inverse_dynamics(model.spanning_tree(), q, v, out.a)
    assert worst("hybrid, all prescribed: inverse", relative(out.tau, needed), name) < 1e-12


# frames -----------------------------------------------------------------------------------------------------------
def moved(case, G):
    """The whole mechanism moved by G, the ground with all that hangs on it, and gravity."""
    robot, R = case.model.description, G[:3, :3]
    on_ground = [replace(j, origin=as_pose(G @ matrix(j.origin))) if j.parent == WORLD else j for j in robot.joints]
    loops = [replace(one, pose_a=as_pose(G @ matrix(one.pose_a)) if one.a == WORLD else one.pose_a,
                     pose_b=as_pose(G @ matrix(one.pose_b)) if one.b == WORLD else one.pose_b) for one in robot.loops]
    q, root = case.q.copy(), {link.name for link in robot.links} - {j.child for j in robot.joints}
    if robot.base == "floating":
        free = case.model.joints[0]
        T = G @ world_pose(case.model, case.q, free.child)
        q[free.q] = np.r_[T[:3, 3], quaternion(T[:3, :3])]
    elif root:
        on_ground.append(Joint("mount", "fixed", WORLD, root.pop(), as_pose(G)))
    gravity = tuple(float(x) for x in R @ robot.gravity)
    return case._replace(model=ld.build(replace(robot, joints=tuple(on_ground), loops=tuple(loops), gravity=gravity)), q=q)


def same_motion(case, other):
    """Accelerations of both."""
    model, rng = case.model, np.random.default_rng(33)
    tau = rng.standard_normal(model.nv)
    v = ld.project_velocity(model, case.q, rng.standard_normal(model.nv), constraint_motion=case.constraint_motion)
    return [ld.constrained_forward_dynamics(x.model, x.q, v, tau, constraint_motion=case.constraint_motion)
            for x in (case, other)]


@EVERY
def test_frames_do_not_matter(name, worst):
    case = looped_of(name)
    one, other = same_motion(case, moved(case, exp(np.array([0.4, -0.9, 0.7, 0.5, -2.0, 1.0]))))
    bound = bound_of(reference.forward(case.model, case.q, 0 * one.a, one.tau, case.constraint_motion)[3])
    assert worst("a in another frame", relative(other.a, one.a), name) < bound
    assert worst("lambda in another frame", relative(other.multipliers, one.multipliers, 1e-3 * np.abs(one.tau).max()),
                 name) < 100 * bound


@EVERY
def test_far_from_the_origin(name, worst):
    """1e4 m away, a position in the world is known to 1e-12 m: closures on the ground open by that, those between links do not,
    and accelerations lose as much as a rounding 1e4 times larger makes them."""
    case = looped_of(name)
    far = moved(case, pose(np.eye(3), [1e4, -5e3, 8e3]))
    off = np.abs(ld.constraint_residual(far.model, far.q, constraint_motion=case.constraint_motion)).max()
    assert worst("residual 1e4 m from the origin [m]", off, name) < 1e-11
    one, other = same_motion(case, far)
    condition = reference.forward(case.model, case.q, 0 * one.a, one.tau, case.constraint_motion)[3]
    assert worst("a 1e4 m from the origin", relative(other.a, one.a), name) < max(PROMISED, 1e4 * EPS * condition)


# mimic ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("seed", range(4))
def test_mimic_is_the_robot_with_fewer_coordinates(seed, worst):
    """q = B x + c: M a + b = tau becomes B^T M B ddx = B^T (tau - b), dense."""
    types, base = ("revolute", "prismatic", "ball", "continuous"), ("fixed", "floating")[seed % 2]
    robot = random_robot(60 + seed, 9, types=types, base=base)
    single = [j.name for j in robot.joints if j.type in ("revolute", "prismatic", "continuous")]
    follow = {single[2]: Mimic(single[0], -1.3, 0.2), single[3]: Mimic(single[2], 0.6, -0.1), single[4]: Mimic(single[1], 2.0)}
    model = ld.build(replace(robot, joints=tuple(replace(j, mimic=follow.get(j.name)) for j in robot.joints)))
    rng = np.random.default_rng(seed)
    q, tau = ld.random_configuration(model, rng), rng.standard_normal(model.nv)
    B = np.eye(model.nv)
    for name in (single[2], single[3], single[4]):   # in the order in which they follow
        k, i = model.v_index(name).start, model.v_index(follow[name].joint).start
        B[k] = follow[name].multiplier * B[i]
        q[model.q_index(name)] = follow[name].multiplier * q[model.q_index(follow[name].joint)] + follow[name].offset
    B = B[:, [k for k in range(model.nv) if k not in {model.v_index(name).start for name in follow}]]
    v = B @ rng.standard_normal(B.shape[1])
    assert np.abs(ld.constraint_residual(model, q)).max() < 1e-15 and np.abs(ld.constraint_velocity(model, q, v)).max() < 1e-15
    M, b = reference.spanning_tree(model, q, v)
    expected = B @ np.linalg.solve(B.T @ M @ B, B.T @ (tau - b))
    out = ld.constrained_forward_dynamics(model, q, v, tau)
    assert worst("mimic: the reduced equations", relative(out.a, expected)) < 1e-11
    free = [k for k in range(model.nv) if model.v_names[k] not in follow]
    inverse_ = ld.constrained_inverse_dynamics(model, q, v, out.a, [model.v_names[k] for k in free], tau_passive=tau)
    assert inverse_.case == "unique" and worst("mimic: forces come back", relative(inverse_.tau, tau)) < 1e-10


def test_the_open_tree_of_a_looped_robot_is_the_robot_without_loops():
    plain, looped = model_of("every kind"), looped_of("every kind, looped").model
    q, v = ld.random_configuration(plain, np.random.default_rng(1)), np.ones(plain.nv)
    assert (ld.inverse_dynamics(plain, q, v, v) == ld.inverse_dynamics(looped.spanning_tree(), q, v, v)).all()
    assert (ld.mass_matrix(plain, q) == ld.mass_matrix(looped, q)).all()
