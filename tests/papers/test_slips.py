"""Slips of the papers, or of their scans: what is printed fails where what is meant holds. `docs/papers.toml` lists them."""
import numpy as np
import pytest

import liedyn as ld
from bridge import relative
from liedyn.model import spatial
from matrices import adjoint, bracket, derivative, hat, inverse, skew
from pbp_page import Links, Page, chain
from zoo import random_robot

HOLDS, SLOPE, FAILS = 1e-11, 1e-8, 0.01   # rounding, differences of eighth order; a slip is a hundredth at least of what it is in
TYPES = ["revolute", "prismatic", "revolute", "revolute"]
N = len(TYPES)


def vee(X):
    return np.array([X[2, 1], X[0, 2], X[1, 0], *X[:3, 3]])


class Case(Links):
    def __init__(self):
        super().__init__(chain(8, TYPES))
        self.model = ld.build(self.robot)
        self.x, self.dx, self.ddx = np.random.default_rng(9).uniform(-1, 1, (3, N))
        self.page = Page(self.robot, self.x)
        self.steps = self.steps_at(self.x)


@pytest.fixture(scope="module")
def case():
    return Case()


def test_velocities_are_carried_by_the_inverse(case):
    """Checks: PBP (24), (25). Printed: Ad of f_{i-1,i}."""
    def recursion(Ad):
        V, dV = [np.zeros(6)], [np.zeros(6)]
        for f, S, dx, ddx in zip(case.steps, case.S, case.dx, case.ddx, strict=True):
            dV.append(S * ddx + Ad(f) @ dV[-1] + bracket(Ad(f) @ V[-1]) @ (S * dx))
            V.append(Ad(f) @ V[-1] + S * dx)
        return np.array(V[1:]), np.array(dV[1:])
    model, x, dx, ddx = case.model, case.x, case.dx, case.ddx
    V = np.array([ld.link_twist(model, x, dx, name) for name in model.link_names])
    dV = np.array([ld.link_acceleration(model, x, dx, ddx, name) for name in model.link_names])
    for found, expected in zip(recursion(lambda f: adjoint(inverse(f))), (V, dV), strict=True):
        assert relative(found, expected) < HOLDS
    for printed, expected in zip(recursion(adjoint), (V, dV), strict=True):
        assert relative(printed, expected) > FAILS


def test_wrenches_are_carried_by_the_dual_of_the_inverse(case):
    """Checks: PBP (26), (80). (26), and the sentence before (80), print Ad* of f_{i,i+1}; (80) has f_{i+1,i}, which is right."""
    model = case.model
    F = ld.joint_wrenches(model, case.x, case.dx, case.ddx)
    for i in range(N - 1):
        V = ld.link_twist(model, case.x, case.dx, model.link_names[i])
        fall = adjoint(inverse(case.poses(case.x)[i])) @ np.r_[0, 0, 0, -model.gravity]
        dV = ld.link_acceleration(model, case.x, case.dx, case.ddx, model.link_names[i]) + fall
        own = case.J[i] @ dV - bracket(V).T @ case.J[i] @ V
        f = case.steps[i + 1]
        assert relative(adjoint(inverse(f)).T @ F[i + 1] + own, F[i]) < HOLDS
        assert relative(adjoint(f).T @ F[i + 1] + own, F[i]) > FAILS


def test_kinetic_energy_has_a_half(case):
    """Checks: PBP (32), (39). Printed: without 1/2, and (39) so after (35), which has it."""
    M = case.page.mass()
    energy = ld.energy(case.model, case.x, case.dx)[0]
    assert abs(case.dx @ M @ case.dx / 2 - energy) < HOLDS * energy
    assert abs(case.dx @ M @ case.dx - energy) > FAILS * energy
    links = 0.0
    for i in range(1, N + 1):
        V = sum(case.page.Ad(i, j + 1, case.page.A[j]) * case.dx[j - 1] for j in range(1, i + 1))
        links += case.page.metric(i, V, V)                                           # (39) as printed
    assert abs(links / 2 - energy) < HOLDS * energy and abs(links - energy) > FAILS * energy


def test_velocities_have_rates(case):
    """Checks: PBP (38). Printed: the sum of Ad_i^{j+1}(A_j), without the rates of x_j, which (33) and (39) have."""
    f, df = case.poses(case.x)[-1], derivative(lambda t: case.poses(case.x + t * case.dx)[-1])
    V = adjoint(case.home[-1]) @ vee(inverse(f) @ df)
    terms = [case.page.Ad(N, j + 1, case.page.A[j]) for j in range(1, N + 1)]
    assert relative(sum(term * dx for term, dx in zip(terms, case.dx, strict=True)), V) < SLOPE
    assert relative(sum(terms), V) > FAILS


def test_conditions_of_the_second_derivative_are_exchanged(case):
    """Checks: PBP (54). The first line is printed for l <= k and is that for k <= l, and the second the other way round."""
    A, B = case.page.A, np.random.default_rng(1).standard_normal(6)

    def line(i, j, first, then):
        """Ad_j^then([Ad_{then-1}^first([Ad_{first-1}^i(B), A_first]), A_then])."""
        page = case.page
        inner = bracket(page.Ad(first - 1, i, B)) @ A[first]
        return page.Ad(j, then, bracket(page.Ad(then - 1, first, inner)) @ A[then])

    def slope(i, j, k, l):
        def first(t):
            page = Page(case.robot, case.x + t * np.eye(N)[l - 1])
            return page.Ad(j, k, bracket(page.Ad(k - 1, i, B)) @ A[k])
        return derivative(first)
    i, j = 1, N
    for k, l in ((1, 3), (3, 1), (3, 4), (4, 3)):
        expected = slope(i, j, k, l)
        as_printed = line(i, j, k, l) if l <= k else line(i, j, l, k)
        mended = line(i, j, k, l) if k <= l else line(i, j, l, k)
        assert relative(mended, expected) < SLOPE
        assert relative(as_printed, expected) > FAILS
    assert relative(line(i, j, 3, 3), slope(i, j, 3, 3)) < SLOPE                     # where k = l, both are the same


def test_g_of_the_potential_points_up(case):
    """Checks: PBP (58), (59). With g the acceleration of gravity, the energy is minus the printed sum."""
    places = [T @ np.r_[com, 1] for T, com in zip(case.poses(case.x), case.com, strict=True)]
    printed = sum(m * case.model.gravity @ p[:3] for m, p in zip(case.mass, places, strict=True))
    potential = ld.energy(case.model, case.x, case.dx)[1]
    assert abs(-printed - potential) < HOLDS * abs(potential) and abs(printed - potential) > FAILS * abs(potential)
    assert relative(case.page.gravity_force(), ld.gravity_force(case.model, case.x)) < HOLDS


def test_rates_and_a_sign_in_the_2R_example():
    """Checks: PBP (61)-(64). Printed entries have the rate that multiplies them already inside; (63) lost its minus sign."""
    robot = chain(2, ["revolute", "revolute"])
    model, page = ld.build(robot), Page(robot, np.array([0.4, -1.1]))
    x, v = np.array([0.4, -1.1]), np.array([0.7, 1.3])
    A1, A2 = page.A[1:]
    a, turned = page.Ad(2, 2, A1), page.Ad(2, 2, bracket(A1) @ A2)
    p, r = page.metric(2, turned, a), page.metric(2, turned, A2)
    printed = np.array([[p * v[0] * v[1], p * v[0] * v[1] + r * v[1]**2], [p * v[0]**2, 0.0]])
    force = ld.inverse_dynamics(model, x, v, 0 * v) - ld.gravity_force(model, x)
    mended = printed * [[1, 1], [-1, 1]]
    assert relative(mended.sum(axis=1), force) < HOLDS                               # rows sum to C v
    assert relative((mended / v) @ v, force) < HOLDS                                 # so that C is this
    assert relative(printed @ v, force) > FAILS and relative(mended @ v, force) > FAILS
    assert relative(printed.sum(axis=1), force) > FAILS
    C = ld.coriolis_matrix(model, x, v, method="christoffel")
    assert relative(mended / v, C) < HOLDS


def test_the_bracket_is_with_the_velocity_of_the_link_before(case):
    """Checks: PBP (73). Printed: Ad^-1 of V_i. It is Ad^-1(V_{i-1}), or V_i itself, whose part along S_i falls out."""
    model, x, dx, ddx = case.model, case.x, case.dx, case.ddx
    V = [ld.link_twist(model, x, dx, name) for name in model.link_names]
    dV = [ld.link_acceleration(model, x, dx, ddx, name) for name in model.link_names]
    for i in range(1, N):
        back, S = adjoint(inverse(case.steps[i])), case.S[i]
        rest = back @ dV[i - 1] + S * ddx[i]
        assert relative(rest + bracket(back @ V[i - 1]) @ S * dx[i], dV[i]) < HOLDS
        assert relative(rest + bracket(V[i]) @ S * dx[i], dV[i]) < HOLDS
        assert relative(rest + bracket(back @ V[i]) @ S * dx[i], dV[i]) > FAILS


def test_a_sign_in_the_moment(case):
    """Checks: PBP (83). Printed: + m [w] [r]^2 w. This term, with its minus, is m [r] [w]^2 r, and not the second of (82), as the
    sentence after it has it."""
    rng = np.random.default_rng(3)
    m, r, I = case.mass[0], case.com[0], spatial.symmetric_matrix(case.robot.links[0].inertia)
    w, v, dw, dv = rng.standard_normal((4, 3))
    a = dv + np.cross(w, v) + np.cross(dw, r) + np.cross(w, np.cross(w, r))
    moment = I @ dw + np.cross(w, I @ w) + np.cross(r, m * a)                        # (75)
    W, R, U = skew(w), skew(r), skew(v)
    rest = I @ dw - m * R @ R @ dw + m * R @ dv + W @ I @ w + m * W @ R @ v + m * U @ W @ r
    assert relative(rest - m * W @ R @ R @ w, moment) < 1e-13
    assert relative(rest + m * W @ R @ R @ w, moment) > FAILS
    np.testing.assert_allclose(-W @ R @ R @ w, R @ W @ W @ r, atol=1e-14)
    assert relative(-R @ R @ dw, R @ W @ W @ r) > FAILS


def test_one_letter_for_two_poses(case):
    """Checks: PBP (50), (51). M_i of (23) is in link i - 1; in (50) it is the pose at home in the base frame, their product."""
    form = ld.closed_form(case.model, case.x)
    block = lambda i: slice(6 * i, 6 * i + 6)                                        # noqa: E731
    home, local, S = np.zeros((6 * N, 6 * N)), np.zeros((6 * N, 6 * N)), np.zeros((6 * N, N))
    for i in range(N):
        home[block(i), block(i)], local[block(i), block(i)] = adjoint(case.home[i]), adjoint(case.M[i])
        S[block(i), i] = case.S[i]
    assert relative(home @ S, form.A) < HOLDS and relative(local @ S, form.A) > FAILS


# Kim ----------------------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def tree():
    model = ld.build(random_robot(33, 4, types=("revolute", "universal", "helical", "prismatic"), springs=False, massless=False))
    rng = np.random.default_rng(5)
    return model, ld.random_configuration(model, rng), *(0.5 * rng.standard_normal((3, model.nv)))


def test_screws_are_derivatives_of_the_pose(tree):
    """Checks: K1 Table 2. The list of symbols before it prints T^-1 times the derivative of T^-1 for the columns of S."""
    model, q = tree[:2]
    for joint in model.joints:
        T, S, _ = ld.joint_motion(model, joint.name, q[joint.q])
        for k, e in enumerate(np.eye(len(q))[joint.q]):
            pose_at = lambda t, e=e, j=joint: ld.joint_motion(model, j.name, (q + t * e)[j.q])[0]    # noqa: E731
            dT, d_inverse = derivative(pose_at), derivative(lambda t, f=pose_at: inverse(f(t)))
            np.testing.assert_allclose(inverse(T) @ dT, hat(S[:, k]), atol=SLOPE)
            assert np.abs(inverse(T) @ d_inverse - hat(S[:, k])).max() > FAILS


def test_articulated_inertias_are_carried_by_the_inverse(tree):
    """Checks: K1 (48), (49), Table 6. Printed: Ad* of T_{lambda(i),k}, beside Ad of its inverse."""
    model, q, v, _, tau = tree
    tables = ld.kim_tables(model, q, v)

    def forward(dual):
        """a by Table 3."""
        bodies, V, eta, a, dV = tables.bodies, [], [], np.zeros(model.nv), []
        for b in bodies:
            V.append(adjoint(inverse(b.T)) @ (V[b.parent] if b.parent >= 0 else np.zeros(6)) + b.S @ v[b.at])
            eta.append(bracket(V[-1]) @ b.S @ v[b.at] + b.dS @ v[b.at])
        AI, AB = [b.I for b in bodies], [-bracket(x).T @ b.I @ x for b, x in zip(bodies, V, strict=True)]
        for k in range(len(bodies) - 1, -1, -1):
            b, X = bodies[k], adjoint(inverse(bodies[k].T))
            if b.parent >= 0:
                Psi, U = np.linalg.inv(b.S.T @ AI[k] @ b.S), AI[k] @ b.S
                AI[b.parent] = AI[b.parent] + dual(b.T) @ (AI[k] - U @ Psi @ U.T) @ X
                rest = tau[b.at] - b.S.T @ (AI[k] @ eta[k] + AB[k])
                AB[b.parent] = AB[b.parent] + dual(b.T) @ (AB[k] + AI[k] @ eta[k] + U @ Psi @ rest)
        for k, b in enumerate(bodies):
            above = adjoint(inverse(b.T)) @ (dV[b.parent] if b.parent >= 0 else tables.dV0)
            a[b.at] = np.linalg.solve(b.S.T @ AI[k] @ b.S, tau[b.at] - b.S.T @ (AI[k] @ (above + eta[k]) + AB[k]))
            dV.append(above + eta[k] + b.S @ a[b.at])
        return a
    a = ld.forward_dynamics(model, q, v, tau)
    assert relative(forward(lambda T: adjoint(inverse(T)).T), a) < 1e-9
    assert relative(forward(lambda T: adjoint(T).T), a) > FAILS


def test_rows_of_the_tables_of_derivatives(tree):
    """Checks: K1 Tables 6-7. The scan lost or mixed their first rows: dV_i has Ad of the inverse and the parent's dV, deta_i
    begins with ad of dV_i. Of Table 7 also dbeta of prescribed joints and dPsi of others. `liedyn.kim_tables` has them mended."""
    model, q, v, a, tau = tree
    dq, dv, da, dtau = np.random.default_rng(6).standard_normal((4, model.nv))
    tables = ld.kim_tables(model, q, v, dq=dq, dv=dv)
    at = lambda t: ld.kim_tables(model, q + t * dq, v + t * dv)                                      # noqa: E731

    def motion(t):
        """V_i, eta_i of all bodies."""
        V, eta = [], []
        for b in at(t).bodies:
            V.append(adjoint(inverse(b.T)) @ (V[b.parent] if b.parent >= 0 else np.zeros(6)) + b.S @ (v + t * dv)[b.at])
            eta.append(bracket(V[-1]) @ b.S @ (v + t * dv)[b.at] + b.dS @ (v + t * dv)[b.at])
        return np.array([V, eta])
    (V, _), (pV, p_eta) = motion(0.0), derivative(motion)
    for i, b in enumerate(tables.bodies):
        Vp, pVp = (V[b.parent], pV[b.parent]) if b.parent >= 0 else (np.zeros(6), np.zeros(6))
        own = b.pS @ v[b.at] + b.S @ dv[b.at]
        back = adjoint(inverse(b.T))
        assert relative(back @ pVp - bracket(b.h) @ back @ Vp + own, pV[i]) < SLOPE
        if b.parent >= 0:
            assert relative(adjoint(b.T) @ pVp - bracket(b.h) @ adjoint(b.T) @ Vp + own, pV[i]) > FAILS       # Table 6 as printed
        row = bracket(V[i]) @ own + b.pdS @ v[b.at] + b.dS @ dv[b.at]
        assert relative(bracket(pV[i]) @ b.S @ v[b.at] + row, p_eta[i], 1.0) < SLOPE
        if b.parent >= 0:
            assert relative(back @ pVp + row, p_eta[i], 1.0) > FAILS                                 # Table 7 as it can be read
    mask = np.zeros(model.nv, bool)
    for joint in model.joints[::2]:
        mask[joint.v] = True
    found = tables.table_7(a, tau, mask, da, dtau)
    slopes = derivative(lambda t: np.array(at(t).table_4(a + t * da, tau + t * dtau, mask)), 0.004)
    for x, y in zip(found[2:], slopes, strict=True):
        assert relative(x, y) < SLOPE


def test_gravity_enters_as_an_acceleration_upwards(tree):
    """Checks: PL (26). Printed: dV_0 = (0, g), as in K1, g "in appropriate direction": minus the acceleration of gravity."""
    model, q = tree[:2]
    form = ld.closed_form(model, q)
    weight = ld.gravity_force(model, q)
    for sign, holds in ((-1, True), (1, False)):
        phi = form.S.T @ form.G.T @ form.J @ form.G @ form.P0 @ np.r_[0, 0, 0, sign * model.gravity]
        assert (relative(phi, weight) < HOLDS) == holds
