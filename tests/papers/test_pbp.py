"""Park, Bobrow and Ploen 1995 (PBP), equation by equation, on chains of revolute and prismatic joints: each formula evaluated as
printed, with the mends of tests/papers/test_slips.py, and held against what the library computes."""
import numpy as np
import pytest

import liedyn as ld
from bridge import relative
from liedyn.model import spatial
from matrices import adjoint, bracket, derivative, exp, hat, inverse, pose, random_rotations, skew
from pbp_page import Links, Page, chain, product

EXACT, SLOPE = 1e-12, 1e-9            # rounding about the world's origin; differences of eighth order
TYPES = ["revolute", "prismatic", "revolute", "revolute"]
N = len(TYPES)
ROBOT = chain(4, TYPES)


def vee(X):
    return np.array([X[2, 1], X[0, 2], X[1, 0], *X[:3, 3]])


def some(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape)


def a_pose(seed):
    rng = np.random.default_rng(seed)
    return pose(random_rotations(rng, 1)[0], rng.standard_normal(3))


class Chain(Links):
    """The chain at x, dx, ddx, on the page and in the library."""

    def __init__(self):
        super().__init__(ROBOT)
        self.model = ld.build(ROBOT)
        self.x, self.dx, self.ddx = np.random.default_rng(7).uniform(-1, 1, (3, N))
        self.page, self.form = Page(ROBOT, self.x), ld.closed_form(self.model, self.x)
        self.steps = self.steps_at(self.x)

    def along(self, t):
        return self.x + t * self.dx + t * t / 2 * self.ddx

    def motion(self, dV0):
        """V_i, dV_i by (24), (25), Ad being that of the inverse."""
        V, dV = [np.zeros(6)], [dV0]
        for f, S, dx, ddx in zip(self.steps, self.S, self.dx, self.ddx, strict=True):
            X = adjoint(inverse(f))
            dV.append(S * ddx + X @ dV[-1] + bracket(X @ V[-1]) @ (S * dx))                          # (25)
            V.append(X @ V[-1] + S * dx)                                                             # (24)
        return V[1:], dV[1:]


@pytest.fixture(scope="module")
def case():
    return Chain()


# §2 -----------------------------------------------------------------------------------------------------------------
def test_brackets_and_adjoints():
    """Checks: PBP (1)-(7). Commutators, conjugation and duals against the library's matrices."""
    X, (x, y, z) = a_pose(1), some(1, 3, 6)
    commutator = vee(hat(x) @ hat(y) - hat(y) @ hat(x))
    (w1, v1), (w2, v2) = (x[:3], x[3:]), (y[:3], y[3:])
    by_parts = np.r_[np.cross(w1, w2), np.cross(w1, v2) - np.cross(w2, v1)]
    np.testing.assert_allclose(by_parts, commutator, atol=1e-14)                                     # (1), (5)
    np.testing.assert_allclose(spatial.bracket(x) @ y, commutator, atol=1e-14)                       # (6)
    turn, b = X[:3, :3], X[:3, 3]
    moved = vee(X @ hat(x) @ inverse(X))
    np.testing.assert_allclose(np.r_[turn @ w1, np.cross(b, turn @ w1) + turn @ v1], moved, atol=1e-14)                  # (2)
    np.testing.assert_allclose(spatial.adjoint(X) @ x, moved, atol=1e-14)                            # (3)
    none = np.zeros((3, 3))
    np.testing.assert_allclose(np.block([[turn.T, turn.T @ skew(b).T], [none, turn.T]]), spatial.adjoint(X).T, atol=1e-15)   # (4)
    dual = np.block([[-skew(w1), -skew(v1)], [none, -skew(w1)]])
    assert abs(dual @ z @ y - z @ commutator) < 1e-13                                                # (7)
    np.testing.assert_array_equal(dual, spatial.bracket(x).T)


def test_forces_in_another_frame():
    """Checks: PBP (8)-(11). Forces as angular velocities and moments as velocities, or both by the dual of Ad."""
    T, F = a_pose(2), some(2, 6)
    m, f = F[:3], F[3:]                                                                              # (8)
    swapped = np.linalg.inv(spatial.adjoint(T)) @ np.r_[f, m]                                        # (9)
    new = spatial.adjoint(T).T @ F
    np.testing.assert_allclose(np.r_[swapped[3:], swapped[:3]], new, atol=1e-14)
    np.testing.assert_allclose(vee(inverse(T) @ hat(np.r_[f, m]) @ T), swapped, atol=1e-14)          # (10)
    turn, b = T[:3, :3], T[:3, 3]
    np.testing.assert_allclose(np.r_[turn.T @ m - turn.T @ np.cross(b, f), turn.T @ f], new, atol=1e-14)                 # (11)


def test_product_of_exponentials(case):
    """Checks: PBP (12)-(14), (30), (31), (67). Three forms of the pose of every link, and the library's."""
    page, form, x = case.page, case.form, case.x
    P = [adjoint(M) @ S for M, S in zip(case.M, case.S, strict=True)]      # e^{P x} M = M e^{S x}
    for i, name in enumerate(case.model.link_names):
        found = ld.link_pose(case.model, x, name)
        steps = [exp(P[k] * x[k]) @ case.M[k] for k in range(i + 1)]
        assert relative(product(steps), found) < 1e-14                                              # (12)
        space = product([page.e(k + 1) for k in range(i + 1)]) @ case.home[i]
        assert relative(space, found) < 1e-14                                                        # (13), (30), (31)
        assert relative(page.A[i + 1], adjoint(product(case.M[:i])) @ P[i]) < 1e-14
        B = [adjoint(inverse(case.home[i])) @ page.A[k + 1] for k in range(i + 1)]
        assert relative(case.home[i] @ product([exp(B[k] * x[k]) for k in range(i + 1)]), found) < 1e-14                # (14)
        assert relative(product(case.steps[:i + 1]), found) < 1e-14                                 # (67)
        assert relative(form.poses[i], found) < 1e-14


def test_exponentials_in_closed_form():
    """Checks: PBP (15)-(17). Against the series and against the library's."""
    w, v, phi = some(3, 3), some(4, 3), 1.3
    w /= np.linalg.norm(w)
    W = skew(w)
    R = np.eye(3) + np.sin(phi) * W + (1 - np.cos(phi)) * W @ W                                      # (16)
    b = (phi * np.eye(3) + (1 - np.cos(phi)) * W + (phi - np.sin(phi)) * W @ W) @ v                  # (17)
    np.testing.assert_allclose(pose(R, b), exp(np.r_[w, v] * phi), atol=1e-14)                       # (15)
    np.testing.assert_allclose(spatial.exp_screw(np.r_[w, v], phi), pose(R, b), atol=1e-14)


def test_velocity_of_the_tip(case):
    """Checks: PBP (18)-(20), (33), (38). f^-1 df by screws of the body and of space, by differences and by the library."""
    page, x, dx = case.page, case.x, case.dx
    found = ld.link_twist(case.model, x, dx, case.model.link_names[-1])
    M = case.home[-1]
    A, B = page.A[1:], [adjoint(inverse(M)) @ A for A in page.A[1:]]
    body, space = np.zeros(6), np.zeros(6)
    for k in range(N):
        after = [exp(-B[j] * x[j]) for j in range(N - 1, k, -1)]
        body += adjoint(product(after)) @ B[k] * dx[k]                                              # (18)
        after = [exp(-A[j] * x[j]) for j in range(N - 1, k, -1)]
        space += adjoint(product(after)) @ A[k] * dx[k]                                             # (33)
    by_Ad = sum(page.Ad(N, k + 1, page.A[k]) * dx[k - 1] for k in range(1, N + 1))                   # (38), with its rates
    f, df = case.poses(x)[-1], derivative(lambda t: case.poses(x + t * dx)[-1])
    for V in (body, vee(inverse(M) @ hat(space) @ M), adjoint(inverse(M)) @ space, adjoint(inverse(M)) @ by_Ad):      # (19), (20)
        assert relative(V, found) < EXACT
    np.testing.assert_allclose(vee(inverse(f) @ df), found, atol=SLOPE)
    assert relative(case.form.body_jacobians[-1] @ dx, found) < EXACT


# §3 -----------------------------------------------------------------------------------------------------------------
def test_recursion(case):
    """Checks: PBP (21)-(28). Newton and Euler's recursion; (22) leaves gravity out, [0; -g] for dV_0 puts it in."""
    for i, link in enumerate(case.robot.links):
        r, I = case.com[i], spatial.symmetric_matrix(link.inertia)
        J = np.block([[I - link.mass * skew(r) @ skew(r), link.mass * skew(r)], [-link.mass * skew(r), link.mass * np.eye(3)]])
        np.testing.assert_allclose(J, case.J[i], atol=1e-15)                                         # (21)
        np.testing.assert_allclose(spatial.inertia_matrix(spatial.inertia_from_link(link)), J, atol=1e-14)
        swap = np.roll(np.eye(6), 3, axis=0)                                                         # (a, b)^(c, d) = a.d + b.c
        featherstone = np.block([[-link.mass * skew(r), link.mass * np.eye(3)], [J[:3, :3], link.mass * skew(r)]])       # (28)
        np.testing.assert_allclose(swap @ featherstone, J, atol=1e-15)
    fall = np.r_[0, 0, 0, -case.model.gravity]
    weight = ld.gravity_force(case.model, case.x)
    for dV0, expected in ((fall, 0.0), (np.zeros(6), weight)):
        V, dV = case.motion(dV0)                                                                     # (23)-(25)
        F, tau = np.zeros(6), np.zeros(N)                                                            # (22)
        for i in range(N - 1, -1, -1):
            passed = adjoint(inverse(case.steps[i + 1])).T @ F if i + 1 < N else F
            F = passed + case.J[i] @ dV[i] - bracket(V[i]).T @ case.J[i] @ V[i]                      # (26)
            tau[i] = case.S[i] @ F                                                                   # (27)
        assert relative(tau, ld.inverse_dynamics(case.model, case.x, case.dx, case.ddx) - expected) < EXACT


def test_derivation_of_the_recursion(case):
    """Checks: PBP (67)-(73). Rates of poses and of velocities along a motion, link by link."""
    V, dV = case.motion(np.zeros(6))
    poses, rates = case.poses(case.x), derivative(lambda t: np.array(case.poses(case.along(t))))
    at = Chain()

    def velocities(t):
        at.x, at.dx = case.along(t), case.dx + t * case.ddx
        at.steps = at.steps_at(at.x)
        return np.array(at.motion(np.zeros(6))[0])
    slopes = derivative(velocities)
    for i in range(N):
        assert relative(vee(inverse(poses[i]) @ rates[i]), V[i], 1.0) < SLOPE
        assert relative(slopes[i], dV[i], 1.0) < SLOPE                                               # (73), as mended
        if not i:
            continue
        f, df = case.steps[i], case.steps[i] @ hat(case.S[i] * case.dx[i])
        both = np.array([np.linalg.inv(poses[i - 1] @ f) @ (rates[i - 1] @ f + poses[i - 1] @ df),                       # (68)
                         inverse(f) @ (inverse(poses[i - 1]) @ rates[i - 1]) @ f + inverse(f) @ df])                     # (69)
        for X in both:
            assert relative(vee(X), V[i], 1.0) < SLOPE
        assert relative(adjoint(inverse(f)) @ V[i - 1] + case.S[i] * case.dx[i], V[i]) < EXACT       # (70)
        d_inverse = -inverse(f) @ df @ inverse(f)
        Vp, dVp = hat(V[i - 1]), hat(dV[i - 1])
        product = vee(d_inverse @ Vp @ f + inverse(f) @ dVp @ f + inverse(f) @ Vp @ df)              # (72)

        def carried(t, i=i):
            step = case.M[i] @ exp(case.S[i] * case.along(t)[i])
            return vee(inverse(step) @ hat(velocities(t)[i - 1]) @ step)
        moved = derivative(carried)                                                                  # (71)
        assert relative(moved, product, 1.0) < SLOPE
        assert relative(product + case.S[i] * case.ddx[i], dV[i]) < EXACT                            # (73), as mended


def test_forces_of_one_link(case):
    """Checks: PBP (74)-(83). Forces and moments by three-vectors about the centre of mass, and by six-vectors."""
    rng = np.random.default_rng(9)
    for i, link in enumerate(case.robot.links):
        m, r, I = link.mass, case.com[i], spatial.symmetric_matrix(link.inertia)
        w, v, dw, dv = rng.standard_normal((4, 3))
        a = dv + np.cross(w, v)                                                                      # (76)
        a_com = a + np.cross(dw, r) + np.cross(w, np.cross(w, r))                                    # (77)
        f, moment = m * a_com, I @ dw + np.cross(w, I @ w) + np.cross(r, m * a_com)                  # (74), (75)
        W, R, U, dW = skew(w), skew(r), skew(v), skew(dw)
        force = m * (dv + W @ v + dW @ r + W @ W @ r)                                                # (78), (81)
        by_vectors = I @ dw + np.cross(w, I @ w) + m * R @ dv + m * R @ W @ v + m * R @ dW @ r + m * R @ W @ W @ r       # (79)
        by_twists = (I @ dw - m * R @ R @ dw + m * R @ dv + W @ I @ w                                # (82)
                     - m * W @ R @ R @ w + m * W @ R @ v + m * U @ W @ r)                            # (83), as mended
        V, J = np.r_[w, v], case.J[i]
        wrench = J @ np.r_[dw, dv] - bracket(V).T @ J @ V
        for x in (np.r_[moment, f], np.r_[by_vectors, force], np.r_[by_twists, force]):
            assert relative(wrench, x) < 1e-14
    F = ld.joint_wrenches(case.model, case.x, case.dx, case.ddx)
    V, dV = case.motion(np.r_[0, 0, 0, -case.model.gravity])
    for i in range(N - 1):
        net = F[i] - adjoint(inverse(case.steps[i + 1])).T @ F[i + 1]                                # (80): of f_{i+1,i}
        assert relative(net, case.J[i] @ dV[i] - bracket(V[i]).T @ case.J[i] @ V[i], np.abs(F).max()) < EXACT


# §4 -----------------------------------------------------------------------------------------------------------------
def test_equations_of_motion(case):
    """Checks: PBP (29), (40), (52), (55)-(59). With M, Gamma and phi of the page; Gamma are differences of M."""
    page = case.page
    M, Gamma, phi = page.mass(), page.christoffel(), page.gravity_force()
    tau = M @ case.ddx + np.einsum("ijk,i,j->k", Gamma, case.dx, case.dx) + phi                      # (29)
    assert relative(ld.inverse_dynamics(case.model, case.x, case.dx, case.ddx), tau) < EXACT
    dM = np.array([derivative(lambda t, e=e: Page(ROBOT, case.x + t * e).mass()) for e in np.eye(N)])                  # [k, i, j]
    by_slopes = (dM.transpose(0, 2, 1) + dM.transpose(0, 2, 1).swapaxes(0, 1) - dM.transpose(1, 2, 0)) / 2               # (52)
    assert relative(by_slopes, Gamma) < SLOPE
    np.testing.assert_array_equal(Gamma, Gamma.swapaxes(0, 1))

    def potential(x):                                # (58), with minus the acceleration of gravity for its g
        moved = Page(ROBOT, x)
        places = [product([moved.e(k + 1) for k in range(i + 1)]) @ moved.c[i + 1] for i in range(N)]
        return -sum(m * moved.gravity @ p[:3] for m, p in zip(case.mass, places, strict=True))
    assert relative(ld.energy(case.model, case.x, case.dx)[1], potential(case.x)) < EXACT
    slope = np.array([derivative(lambda t, e=e: potential(case.x + t * e)) for e in np.eye(N)])
    assert relative(slope, phi) < SLOPE                                                              # (59)


def test_kinetic_energy(case):
    """Checks: PBP (32), (34)-(36), (39), Definition 1. With the factor 1/2 that (32) and (39) lost."""
    page, total = case.page, 0.0
    for i, link in enumerate(case.robot.links):
        com_home = case.home[i] @ pose(np.eye(3), case.com[i])                                  # M_i of §4: at the centre of mass
        turn, b, m = com_home[:3, :3], com_home[:3, 3], link.mass
        V = sum(page.Ad(i + 1, j + 1, page.A[j]) * case.dx[j - 1] for j in range(1, i + 2))
        at_com = np.block([[turn.T, np.zeros((3, 3))], [-skew(turn.T @ b) @ turn.T, turn.T]]) @ V    # (34)
        np.testing.assert_allclose(at_com, adjoint(inverse(com_home)) @ V, atol=1e-13)
        I_com = spatial.symmetric_matrix(link.inertia)
        energy = (at_com[:3] @ I_com @ at_com[:3] + m * at_com[3:] @ at_com[3:]) / 2
        I = turn @ I_com @ turn.T - m * skew(b) @ skew(b)
        form = np.block([[I, m * skew(b)], [m * skew(b).T, m * np.eye(3)]])                          # (36)
        np.testing.assert_allclose(form, page.D[i + 1], atol=1e-13)
        np.testing.assert_allclose(V @ form @ V / 2, energy, rtol=1e-11)                             # (35), (39)
        total += energy
    M = page.mass()
    np.testing.assert_allclose([total, case.dx @ M @ case.dx / 2], ld.energy(case.model, case.x, case.dx)[0], rtol=1e-11)   # (32)


def test_factors(case):
    """Checks: PBP (37), (41)-(51), Definition 2. The page's blocks are the library's, and both factorizations give M."""
    page, form = case.page, case.form
    A, L, D = (np.zeros((6 * N, n)) for n in (N, 6 * N, 6 * N))
    block = lambda i: slice(6 * i, 6 * i + 6)                                                        # noqa: E731
    for i in range(N):
        A[block(i), i] = page.A[i + 1]                                                               # (41)
        D[block(i), block(i)] = page.D[i + 1]                                                        # (44), (45)
        for j in range(i + 1):
            back = product([exp(-page.A[k] * case.x[k - 1]) for k in range(i + 1, j + 1, -1)])
            L[block(i), block(j)] = adjoint(back)                                                    # (42), (43)
            for column in np.eye(6):
                assert relative(page.Ad(i + 1, j + 2, column), adjoint(back) @ column) < 1e-13       # (37)
    for found, expected in ((form.A, A), (form.L, L), (form.D, D)):
        assert relative(found, expected) < EXACT
    M = ld.mass_matrix(case.model, case.x)
    assert relative(A.T @ L.T @ D @ L @ A, M) < EXACT                                                # (46)
    S, J, Q, G = np.zeros((6 * N, N)), np.zeros((6 * N, 6 * N)), np.zeros((6 * N, 6 * N)), np.eye(6 * N)
    for i in range(N):
        S[block(i), i], J[block(i), block(i)], Q[block(i), block(i)] = case.S[i], case.J[i], adjoint(case.home[i])
        for j in range(i):
            G[block(i), block(j)] = adjoint(inverse(product(case.steps[j + 1:i + 1])))              # (49)
    for found, expected in ((form.S, S), (form.J, J), (form.Q, Q), (form.G, G)):                     # (47)-(50)
        assert relative(found, expected) < EXACT
    assert relative(S.T @ G.T @ J @ G @ S, M) < EXACT                                                # (51)
    back = np.linalg.inv(Q)
    for one, other in ((A, Q @ S), (L, Q @ G @ back), (D, back.T @ J @ back)):
        assert relative(one, other) < EXACT


def test_derivatives_of_Ad(case):
    """Checks: PBP (53), (54), Proposition 1, Proposition 2. All indices; (54) with its two conditions exchanged."""
    for j in range(1, N + 1):
        for i in range(1, j + 1):
            for k in range(1, N + 1):
                for l in range(1, N + 1):
                    derivatives_of_Ad(case, i, j, k, l)


def derivatives_of_Ad(case, i, j, k, l):
    A, B, x, e, form = case.page.A, some(11, 6), case.x, np.eye(N), case.form
    size = np.abs(B).max()

    def first(page):
        if not i <= k <= j:
            return np.zeros(6)
        return page.Ad(j, k, bracket(page.Ad(k - 1, i, B)) @ A[k])                                   # (53)
    if l == 1:
        slope = derivative(lambda t: Page(ROBOT, x + t * e[k - 1]).Ad(j, i, B))
        assert relative(first(case.page), slope, size) < 1e-8
        assert relative(form.Ad_derivative(j - 1, i - 1, k - 1) @ B, first(case.page), size) < EXACT
    second = np.zeros(6)
    if i <= k <= j and i <= l <= j:
        low, high = min(k, l), max(k, l)
        inner = bracket(case.page.Ad(low - 1, i, B)) @ A[low]
        second = case.page.Ad(j, high, bracket(case.page.Ad(high - 1, low, inner)) @ A[high])        # (54)
    slope = derivative(lambda t: first(Page(ROBOT, x + t * e[l - 1])))
    assert relative(second, slope, size) < 1e-8
    assert relative(form.Ad_second_derivative(j - 1, i - 1, k - 1, l - 1) @ B, second, size) < EXACT


def test_the_mass_matrix_is_a_pullback(case):
    """Checks: PBP (65). Of the metric of the links by the Jacobian of their poses, here by differences."""
    M = np.zeros((N, N))
    for i in range(N):
        J = np.array([vee(inverse(case.poses(case.x)[i]) @ derivative(lambda t, e=e, i=i: case.poses(case.x + t * e)[i]))
                      for e in np.eye(N)]).T
        M += J.T @ case.J[i] @ J
    assert relative(ld.mass_matrix(case.model, case.x), M) < SLOPE


def test_curvature(case):
    """Checks: PBP (66). From the page's Christoffel symbols and their differences."""
    Gamma, M = case.page.christoffel(), case.page.mass()
    d = np.stack([derivative(lambda t, e=e: Page(ROBOT, case.x + t * e).christoffel(), 0.01) for e in np.eye(N)], axis=-1)
    up = Gamma @ np.linalg.inv(M)                                                                    # Gamma^k_ij at [i, j, k]
    R = (np.einsum("jlik->ijkl", d) - np.einsum("jkil->ijkl", d)
         + np.einsum("ilr,jkr->ijkl", Gamma, up) - np.einsum("ikr,jlr->ijkl", Gamma, up))
    assert relative(ld.curvature_tensor(case.model, case.x), R) < 1e-8
