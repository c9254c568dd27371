"""Ploen's skew-symmetric Newton-Euler form (PL), equation by equation: each formula evaluated as printed on a chain and held
against what the library computes. The scan lost the numbers of (4)-(11), (14), (16), (21), (32), (34): read from their order."""
import numpy as np
import pytest

import liedyn as ld
from bridge import relative
from liedyn.dynamics.closed_form import skew_form
from liedyn.model import spatial
from matrices import adjoint, bracket, derivative, exp, hat, inverse, pose, random_rotations, skew
from pbp_page import chain

EXACT, SLOPE = 1e-12, 1e-9            # rounding; differences of eighth order
TYPES = ["revolute", "revolute", "prismatic", "revolute"]
N = len(TYPES)


def block(i): return slice(6 * i, 6 * i + 6)


def diagonal(blocks):
    out = np.zeros((6 * len(blocks), sum(np.atleast_2d(x.T).shape[0] for x in blocks)))
    at = 0
    for i, x in enumerate(blocks):
        x = x.reshape(6, -1)
        out[block(i), at:at + x.shape[1]] = x
        at += x.shape[1]
    return out


class Chain:
    """The chain in the frames of its links, as in `liedyn.closed_form`: M_i, S_i, J_i, and the global matrices of §3.2."""

    def __init__(self):
        self.model = ld.build(chain(5, TYPES))
        self.q, self.dq, self.ddq = np.random.default_rng(6).uniform(-1, 1, (3, N))
        self.form = ld.closed_form(self.model, self.q)
        self.S = [S[:, 0] for S in self.form.screws]
        self.J = [spatial.inertia_matrix(I) for I in self.form.rigid]
        self.dV0 = np.r_[0, 0, 0, -self.model.gravity]
        self.tau = ld.inverse_dynamics(self.model, self.q, self.dq, self.ddq)
        self.size = np.abs(self.form.mass_matrix).max()
        self.matrices(self.q)

    def matrices(self, q):
        """Gamma, P0, G at q, written out."""
        self.f = [M @ exp(S * x) for M, S, x in zip(self.form.offset, self.S, q, strict=True)]       # (14)
        self.Gamma = np.zeros((6 * N, 6 * N))
        for i in range(1, N):
            self.Gamma[block(i), block(i - 1)] = adjoint(inverse(self.f[i]))
        self.P0 = np.vstack([adjoint(inverse(self.f[0])), np.zeros((6 * (N - 1), 6))])
        self.G = np.linalg.inv(np.eye(6 * N) - self.Gamma)
        return self

    def global_matrices(self):
        S, J = diagonal(self.S), diagonal(self.J)
        ad = diagonal([-bracket(S * x) for S, x in zip(self.S, self.dq, strict=True)])
        V = (self.G @ S @ self.dq).reshape(N, 6)
        return S, J, self.G, self.Gamma, ad, diagonal([-bracket(x).T for x in V]), V


@pytest.fixture(scope="module")
def case():
    return Chain()


def test_a_matrix_of_christoffel_symbols(case):
    """Checks: PL (1)-(3). C from the Christoffel symbols makes dM/dt - 2C skew."""
    model, q, v = case.model, case.q, case.dq
    dM = np.stack([derivative(lambda t, e=e: ld.mass_matrix(model, q + t * e)) for e in np.eye(N)], axis=-1)    # dM_ij/dq_k
    symbols = (dM + dM.swapaxes(1, 2) - dM.transpose(2, 1, 0)) / 2                              # (3), C_ij = sum_k Gamma_ijk dq_k
    C = symbols @ v                                                                                  # (2)
    assert relative(ld.coriolis_matrix(model, q, v, method="christoffel"), C, case.size) < SLOPE
    skewed = dM @ v - 2 * C
    assert np.abs(skewed + skewed.T).max() < SLOPE * case.size
    tau = ld.mass_matrix(model, q) @ case.ddq + C @ v + ld.gravity_force(model, q)                   # (1)
    assert relative(case.tau, tau) < SLOPE


def test_adjoints_and_exponentials():
    """Checks: PL (4)-(11). Of twists and wrenches of one body in two frames; products of exponentials by Rodrigues' formula."""
    rng = np.random.default_rng(1)
    X, (x, y, z) = pose(random_rotations(rng, 1)[0], rng.standard_normal(3)), rng.standard_normal((3, 6))
    R, b, none = X[:3, :3], X[:3, 3], np.zeros((3, 3))
    np.testing.assert_allclose(spatial.adjoint(X), np.block([[R, none], [skew(b) @ R, R]]), atol=1e-15)                  # (4)
    np.testing.assert_allclose(spatial.adjoint(X).T, np.block([[R.T, R.T @ skew(b).T], [none, R.T]]), atol=1e-15)        # (5)
    w, v = x[:3], x[3:]
    np.testing.assert_array_equal(spatial.bracket(x), np.block([[skew(w), none], [skew(v), skew(w)]]))                   # (6)
    commutator = hat(x) @ hat(y) - hat(y) @ hat(x)
    np.testing.assert_allclose(hat(spatial.bracket(x) @ y), commutator, atol=1e-14)
    np.testing.assert_array_equal(spatial.bracket(x).T, np.block([[-skew(w), -skew(v)], [none, -skew(w)]]))              # (7)
    assert abs((spatial.bracket(x).T @ z) @ y - z @ spatial.bracket(x) @ y) < 1e-13
    w, phi = w / np.linalg.norm(w), 0.8
    W = skew(w)
    turn = np.eye(3) + np.sin(phi) * W + (1 - np.cos(phi)) * W @ W                                   # (10)
    shift = (phi * np.eye(3) + (1 - np.cos(phi)) * W + (phi - np.sin(phi)) * W @ W) @ v              # (11)
    np.testing.assert_allclose(spatial.exp_screw(np.r_[w, v], phi), pose(turn, shift), atol=1e-14)   # (9)
    one = Chain()
    T = np.eye(4)
    for f in one.f:
        T = T @ f                                                                                    # (8)
    assert relative(T, one.form.poses[-1]) < 1e-14


def test_recursion(case):
    """Checks: PL (12)-(18). And (30): the equation of each body."""
    model = case.model
    for link, J in zip(model.description.links, case.J, strict=True):
        r, I, m = np.array(link.com), spatial.symmetric_matrix(link.inertia), link.mass
        own = np.block([[I - m * skew(r) @ skew(r), m * skew(r)], [-m * skew(r), m * np.eye(3)]])    # (12)
        assert relative(J, own) < 1e-13
    V, dV = [np.zeros(6)], [case.dV0]                                                                # (13)
    for f, S, x, y in zip(case.f, case.S, case.dq, case.ddq, strict=True):                           # (14)
        X = adjoint(inverse(f))
        dV.append(S * y + X @ dV[-1] - bracket(S * x) @ X @ V[-1])                                   # (16)
        V.append(X @ V[-1] + S * x)                                                                  # (15)
    F, tau = np.zeros(6), np.zeros(N)
    for i in range(N - 1, -1, -1):
        passed = adjoint(inverse(case.f[i + 1])).T @ F if i + 1 < N else F
        F = passed + case.J[i] @ dV[i + 1] - bracket(V[i + 1]).T @ case.J[i] @ V[i + 1]              # (17)
        tau[i] = case.S[i] @ F                                                                       # (18)
    assert relative(case.tau, tau) < EXACT


def test_global_matrices(case):
    """Checks: PL (19)-(26). The recursion as matrices, and M, C, phi; the library's factors are these."""
    S, J, G, Gamma, ad, ad_V, _ = case.global_matrices()
    form, dq, ddq = case.form, case.dq, case.ddq
    for found, expected in ((form.S, S), (form.J, J), (form.G, G), (form.Gamma, Gamma), (form.P0, case.P0),
                            (form.ad_of_joints(dq), ad)):
        assert relative(found, expected) < EXACT
    assert not np.linalg.matrix_power(Gamma, N).any()
    V0 = np.zeros(6)
    V = G @ S @ dq + G @ case.P0 @ V0                                                                # (19)
    dV = G @ S @ ddq + G @ ad @ Gamma @ V + G @ ad @ case.P0 @ V0 + G @ case.P0 @ case.dV0           # (20)
    F = G.T @ J @ dV + G.T @ ad_V @ J @ V                                                            # (21)
    assert relative(case.tau, S.T @ F) < EXACT                                                       # (22)
    M, phi = S.T @ G.T @ J @ G @ S, S.T @ G.T @ J @ G @ case.P0 @ case.dV0                           # (24), (26)
    C = S.T @ G.T @ (J @ G @ ad @ Gamma + ad_V @ J) @ G @ S                                          # (25)
    assert relative(case.tau, M @ ddq + C @ dq + phi) < EXACT                                        # (23)
    assert relative(ld.mass_matrix(case.model, case.q), M) < EXACT
    assert relative(ld.gravity_force(case.model, case.q), phi) < EXACT


def test_rates(case):
    """Checks: PL (27), (28). Along q + t dq, by differences and by the library."""
    S, J, G, Gamma, ad, _, _ = case.global_matrices()
    moved = Chain()
    slope = derivative(lambda t: moved.matrices(case.q + t * case.dq).G)
    assert relative(G @ ad @ Gamma @ G, slope) < SLOPE                                               # (27)
    rate = S.T @ G.T @ Gamma.T @ ad.T @ G.T @ J @ G @ S + S.T @ G.T @ J @ G @ ad @ Gamma @ G @ S     # (28)
    slope = derivative(lambda t: ld.mass_matrix(case.model, case.q + t * case.dq))
    assert np.abs(rate - slope).max() < SLOPE * case.size
    for found in (ld.mass_matrix_rate(case.model, case.q, case.dq), case.form.mass_matrix_rate(case.dq)):
        assert np.abs(found - rate).max() < EXACT * case.size


def test_the_recursion_is_not_skew_and_its_modification_is(case):
    """Checks: PL (29)-(38), Propositions 1-2. With ad*_V J, dM/dt - 2C is not skew; with C~ it is, and C v is the same."""
    S, J, G, Gamma, ad, ad_V, V = case.global_matrices()
    rate = case.form.mass_matrix_rate(case.dq)
    C = S.T @ G.T @ (J @ G @ ad @ Gamma + ad_V @ J) @ G @ S
    half = S.T @ G.T @ Gamma.T @ ad.T @ G.T @ J @ G @ S                                              # N
    skewed = rate - 2 * C
    assert np.abs(skewed - (half - half.T - 2 * S.T @ G.T @ ad_V @ J @ G @ S)).max() < EXACT * case.size                 # (29)
    assert np.abs(skewed + skewed.T).max() > 0.01 * case.size
    forms = []
    for I, x, one in zip(case.J, V, case.form.rigid, strict=True):
        w, v, m = skew(x[:3]), skew(x[3:]), I[3, 3]
        r = np.array([I[2, 4], I[0, 5], I[1, 3]]) / m
        R, Ibar = skew(r), I[:3, :3]                                                                 # I - m [r]^2
        own = -bracket(x).T @ I                                                                      # C_i of (30)
        assert np.abs(own + own.T).max() > 0.01 * np.abs(own).max()
        tilde = np.block([[w @ Ibar + Ibar @ w, m * R @ w], [-m * w @ R, m * w]])                    # Proposition 1, (34)
        blocks = np.block([[w @ Ibar + m * v @ -R, m * w @ R + m * v], [-m * w @ R, m * w]])         # (31)
        np.testing.assert_allclose(blocks, own, atol=1e-13)
        force, a, b = own @ x, x[:3], x[3:]
        second = -m * w @ R @ a + m * w @ b
        assert relative(np.r_[w @ Ibar @ a + m * w @ R @ b - m * v @ R @ a + m * v @ b, second], force) < 1e-13          # (32)
        assert relative(np.r_[w @ Ibar @ a + m * R @ w @ b + Ibar @ w @ a, second], force) < 1e-13   # (33)
        assert relative(tilde @ x, force) < 1e-13
        np.testing.assert_allclose(tilde, -tilde.T, atol=1e-15)
        np.testing.assert_allclose(skew_form(one, x), tilde, atol=1e-14)
        forms.append(tilde)
    assert np.abs(J @ G @ ad @ Gamma).max() > 0
    C = S.T @ G.T @ (J @ G @ ad @ Gamma + diagonal(forms)) @ G @ S                                   # (37)
    for method in ("recursive", "factorized"):
        assert np.abs(ld.coriolis_matrix(case.model, case.q, case.dq, method=method) - C).max() < EXACT * case.size
    M, phi = S.T @ G.T @ J @ G @ S, S.T @ G.T @ J @ G @ case.P0 @ case.dV0                           # (36), (38)
    assert relative(case.tau, M @ case.ddq + C @ case.dq + phi) < EXACT                              # (35)
    skewed = rate - 2 * C
    assert np.abs(skewed + skewed.T).max() < EXACT * case.size                                       # Proposition 2
