"""Kim 2012, v1.01 (K1), equation by equation: each formula evaluated as printed, from poses, points of mass and differences, and
held against what the library computes. Tables 2 to 7 as printed are `liedyn.kim_tables`: tests/dynamics/test_kim2012.py."""
from types import SimpleNamespace

import numpy as np
import pytest

import liedyn as ld
from bridge import relative
from liedyn.model import spatial
from liedyn.model.description import Robot
from liedyn.model.links import Link
from matrices import adjoint, derivative, exp, hat, inverse, pose, random_rotations, skew
from matrices import bracket as ad
from zoo import floats, random_robot

EXACT, SLOPE = 1e-13, 1e-9            # rounding of these sums; differences of eighth order along a motion of a few rad/s
ROBOT = random_robot(31, 6, types=("revolute", "universal", "prismatic", "helical", "euler", "revolute"), springs=False,
                     massless=False)


def some(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape)


def poses(seed, n):
    rng = np.random.default_rng(seed)
    return [pose(R, p) for R, p in zip(random_rotations(rng, n), rng.standard_normal((n, 3)), strict=True)]


def vee(X):
    return np.array([X[2, 1], X[0, 2], X[1, 0], *X[:3, 3]])


@pytest.fixture(scope="module")
def case():
    """A tree with joints of one, two and three coordinates on a smooth motion q(t), a force and wrenches on its links."""
    model, rng = ld.build(ROBOT), np.random.default_rng(3)
    q, (v, a, tau) = ld.random_configuration(model, rng), 0.5 * rng.standard_normal((3, model.nv))
    F = rng.standard_normal((len(model.link_names), 6))
    bodies = ld.kim_tables(model, q, v, f_ext=F).bodies
    for b in bodies:
        b.X = adjoint(inverse(b.T))
        b.children = [k for k, child in enumerate(bodies) if child.parent >= 0 and bodies[child.parent] is b]
    return SimpleNamespace(model=model, q=q, v=v, a=a, tau=tau, F=F, bodies=bodies, dV0=np.r_[0, 0, 0, -model.gravity],
                           at=lambda t: q + t * v + t * t * a / 2)


# SE(3) ------------------------------------------------------------------------------------------------------------
def test_rotations_and_poses(case):
    """Checks: K1 (1)-(5), Figure 1. Frame B is a link, frame A the world."""
    name = case.model.link_names[-1]
    T = ld.link_pose(case.model, case.q, name)
    R, p = T[:3, :3], T[:3, 3]
    np.testing.assert_allclose(R @ R.T, np.eye(3), atol=1e-14)                                       # (2)
    assert abs(np.linalg.det(R) - 1) < 1e-14
    for axis in np.eye(3):                                                                           # (1): columns are B's axes
        np.testing.assert_allclose((T @ np.r_[axis, 1])[:3] - p, R @ axis, atol=1e-14)
    np.testing.assert_array_equal(T[3], [0, 0, 0, 1])                                                # (3)
    np.testing.assert_allclose(spatial.inverse(T), pose(R.T, -R.T @ p), atol=1e-15)                  # (4)
    np.testing.assert_allclose(spatial.inverse(T) @ T, np.eye(4), atol=1e-14)
    V = ld.link_twist(case.model, case.q, case.v, name)
    dT = derivative(lambda t: ld.link_pose(case.model, case.at(t), name))
    np.testing.assert_allclose(dT, T @ hat(V), atol=SLOPE)                                           # (5): the matrix of a twist


def test_adjoints():
    """Checks: K1 (6)-(8). Of matrices, of components, and of duals, which keep the power."""
    T, (xi, F) = poses(1, 1)[0], some(1, 2, 6)
    moved = vee(T @ hat(xi) @ np.linalg.inv(T))                                                      # (6)
    np.testing.assert_allclose(spatial.adjoint(T) @ xi, moved, atol=1e-14)                           # (7)
    assert abs(spatial.adjoint(T).T @ F @ xi - F @ moved) < 1e-13                                    # (8)


def test_velocity_and_force(case):
    """Checks: K1 (9)-(13). V of each link is T^-1 dT/dt; two frames on one body; power is the same in both."""
    T = ld.link_poses(case.model, case.q)
    dT = derivative(lambda t: ld.link_poses(case.model, case.at(t)))
    for k, name in enumerate(case.model.link_names):
        R = T[k, :3, :3]
        V = ld.link_twist(case.model, case.q, case.v, name)                                          # (10): w, then v
        np.testing.assert_allclose(hat(V), np.linalg.inv(T[k]) @ dT[k], atol=SLOPE)                  # (9)
        np.testing.assert_allclose(skew(V[:3]), R.T @ dT[k, :3, :3], atol=SLOPE)
        np.testing.assert_allclose(V[3:], R.T @ dT[k, :3, 3], atol=SLOPE)
    T_ab, (Va, Fa) = poses(2, 1)[0], some(2, 2, 6)                                                   # (12): m, then f
    Vb, Fb = spatial.adjoint(inverse(T_ab)) @ Va, spatial.adjoint(T_ab).T @ Fa                       # (11), (13)
    moment, force = Fa[:3], Fa[3:]
    np.testing.assert_allclose(T_ab[:3, :3] @ Fb[:3], moment - np.cross(T_ab[:3, 3], force), atol=1e-14)
    assert abs(Fa @ Va - Fb @ Vb) < 1e-13


# one body: a cloud of mass points -----------------------------------------------------------------------------------
def cloud():
    """Masses and places of twelve points, and the floating robot of one link that they make."""
    rng = np.random.default_rng(4)
    m, r = rng.uniform(0.1, 0.5, 12), rng.uniform(-0.4, 0.6, (12, 3))
    com = m @ r / m.sum()
    about = sum(mass * skew(x - com).T @ skew(x - com) for mass, x in zip(m, r, strict=True))
    link = Link("cloud", float(m.sum()), floats(com), floats(about[np.triu_indices(3)]))
    return m, r, link, ld.build(Robot("cloud", (link,), (), "floating", (0.0, 0.0, 0.0)))


def test_kinetic_energy_of_a_body():
    """Checks: K1 (14)-(20). From the integral over the body to the quadratic form, which is the library's."""
    m, r, link, model = cloud()
    q, V = ld.random_configuration(model, np.random.default_rng(5)), some(5, 6)
    w, v = V[:3], V[3:]
    R = ld.link_pose(model, q, "cloud")[:3, :3]
    dp, dR = R @ v, R @ skew(w)
    first = skew(m @ r)
    second = sum(mass * skew(x).T @ skew(x) for mass, x in zip(m, r, strict=True))
    I = np.block([[second, first], [first.T, m.sum() * np.eye(3)]])                                  # (20)
    np.testing.assert_allclose(spatial.inertia_matrix(spatial.inertia_from_link(link)), I, atol=1e-14)
    velocities = dp + r @ dR.T
    forms = [(m * (velocities**2).sum(1)).sum() / 2,                                                 # (14)
             V @ I @ V / 2,                                                                          # (15), (19)
             (m * (dp @ dp + 2 * (r @ dR.T) @ dp + ((r @ dR.T)**2).sum(1))).sum() / 2,               # (16)
             (m.sum() * dp @ dp - 2 * dp @ R @ first @ w + w @ second @ w) / 2,                      # (17)
             (m.sum() * v @ v - 2 * v @ first @ w + w @ second @ w) / 2]                             # (18)
    np.testing.assert_allclose(forms, ld.energy(model, q, V)[0], rtol=1e-13)


def test_inertia_in_other_frames():
    """Checks: K1 (21), (22). Of a body whose inertia is given about its centre of mass, along separate axes."""
    T, mass, Ic = poses(6, 1)[0], 1.7, np.diag([0.3, 0.4, 0.5])
    R, p = T[:3, :3], T[:3, 3]
    about = R @ Ic @ R.T
    I = spatial.inertia_matrix(spatial.inertia_from_link(Link("a", mass, floats(p), floats(about[np.triu_indices(3)]))))
    np.testing.assert_allclose(I, np.block([[about + mass * skew(p).T @ skew(p), mass * skew(p)],
                                            [mass * skew(p).T, mass * np.eye(3)]]), atol=1e-15)      # (22)
    T_ab = inverse(T)                                # from the centre of mass frame A to the body frame B
    Ia = np.block([[Ic, np.zeros((3, 3))], [np.zeros((3, 3)), mass * np.eye(3)]])
    np.testing.assert_allclose(I, adjoint(T_ab).T @ Ia @ adjoint(T_ab), atol=1e-14)                  # (21)
    ten = np.r_[mass, 0, 0, 0, Ic[np.triu_indices(3)]]
    np.testing.assert_allclose(spatial.inertia_matrix(spatial.transform_inertia(T, ten)), I, atol=1e-14)


def test_momentum_of_a_body():
    """Checks: K1 (23), (24). In the world it is the sum over the points."""
    m, r, link, model = cloud()
    q, V = ld.random_configuration(model, np.random.default_rng(7)), some(7, 6)
    T, I = ld.link_pose(model, q, "cloud"), spatial.inertia_matrix(spatial.inertia_from_link(link))
    x = T[:3, 3] + r @ T[:3, :3].T
    dx = (V[3:] + np.cross(V[:3], r)) @ T[:3, :3].T
    points = np.r_[m @ np.cross(x, dx), m @ dx]
    np.testing.assert_allclose(adjoint(inverse(T)).T @ (I @ V), points, atol=1e-13)
    np.testing.assert_allclose(ld.momentum(model, q, V), points, atol=1e-13)


def test_rates_in_a_moving_frame():
    """Checks: K1 (25)-(29), Lemma 1, Lemma 2. Differentiated where the axes are at rest, and brought back."""
    V, (X, dX, Y, dY) = some(8, 6), some(9, 4, 6)
    T = lambda t: exp(t * V)                                                                         # noqa: E731
    w, R = V[:3], lambda t: T(t)[:3, :3]
    assert relative(derivative(lambda t: R(t) @ (X[:3] + t * dX[:3])), dX[:3] + np.cross(w, X[:3])) < SLOPE             # (25)
    np.testing.assert_allclose(spatial.bracket(V), np.block([[skew(w), np.zeros((3, 3))], [skew(V[3:]), skew(w)]]))     # (27)
    moved = derivative(lambda t: adjoint(T(t)) @ (X + t * dX))
    assert relative(moved, dX + spatial.bracket(V) @ X) < SLOPE                                      # (26)
    moved = derivative(lambda t: adjoint(inverse(T(t))).T @ (Y + t * dY))
    assert relative(moved, dY - spatial.bracket(V).T @ Y) < SLOPE                                    # (28), (29)


def test_newton_and_euler():
    """Checks: K1 (30), (31). The library's force on a free body is the rate of its momentum, in any frame on it."""
    _, _, link, model = cloud()
    q, (V, dV) = ld.random_configuration(model, np.random.default_rng(10)), some(10, 2, 6)
    T, I = ld.link_pose(model, q, "cloud"), spatial.inertia_matrix(spatial.inertia_from_link(link))
    place = lambda t: T @ exp(t * V + t * t / 2 * dV)                                                # noqa: E731
    F = adjoint(T).T @ derivative(lambda t: adjoint(inverse(place(t))).T @ I @ (V + t * dV))         # (30)
    right = I @ dV - ad(V).T @ I @ V                                                                 # (31)
    assert relative(F, right) < SLOPE
    assert relative(ld.inverse_dynamics(model, q, V, dV), right) < EXACT
    T_ab = poses(11, 1)[0]
    back, Ib = adjoint(inverse(T_ab)), adjoint(T_ab).T @ I @ adjoint(T_ab)
    Vb, dVb = back @ V, back @ dV
    assert relative(Ib @ dVb - ad(Vb).T @ Ib @ Vb, adjoint(T_ab).T @ right) < EXACT


# trees --------------------------------------------------------------------------------------------------------------
def test_equations_of_motion(case):
    """Checks: K1 (32), (33), Table 1; K2 (34). Inverse, forward and hybrid dynamics are three ways to read one equation."""
    model, q, v, a = case.model, case.q, case.v, case.a
    M, b = ld.mass_matrix(model, q), ld.bias_force(model, q, v)
    tau = M @ a + b                                                                                  # (32)
    assert relative(ld.inverse_dynamics(model, q, v, a), tau) < EXACT
    assert relative(ld.forward_dynamics(model, q, v, tau), a) < 1e-10
    u = np.arange(model.nv) % 3 == 0                                                                 # (33): u prescribed
    by_inverse = np.linalg.solve(M[np.ix_(~u, ~u)], tau[~u] - b[~u] - M[np.ix_(~u, u)] @ a[u])       # K2 (34)
    a_, tau_ = ld.hybrid_dynamics(model, q, v, np.where(u, a, np.nan), np.where(u, np.nan, tau), u)
    assert relative(by_inverse, a[~u]) < 1e-10 and relative(a_, a) < 1e-10 and relative(tau_, tau) < 1e-10


def kinematics(case, a):
    """V, dV of the bodies by (36), (40); eta = ad_V S v + dS v."""
    V, dV, eta = [], [], []
    for b in case.bodies:
        above, d_above = (V[b.parent], dV[b.parent]) if b.parent >= 0 else (np.zeros(6), case.dV0)
        V.append(b.X @ above + b.S @ case.v[b.at])                                                   # (36)
        eta.append(ad(V[-1]) @ b.S @ case.v[b.at] + b.dS @ case.v[b.at])
        dV.append(b.X @ d_above + eta[-1] + b.S @ a[b.at])                                           # (40)
    return V, dV, eta


@pytest.mark.parametrize("k", range(6))
def test_velocities_and_accelerations(case, k):
    """Checks: K1 (34)-(40). Each step as printed, against poses along the motion, also for joints whose S moves."""
    model, v, a = case.model, case.v, case.a
    joint, body = model.joints[k], case.bodies[k]

    def of(link, t=0.0):
        return ld.link_pose(model, case.at(t), link)

    def twist(link, t=0.0):
        return ld.link_twist(model, case.at(t), v + t * a, link)

    def step_at(t):
        return inverse(of(joint.parent, t)) @ of(joint.child, t)
    T, above, step = of(joint.child), of(joint.parent), step_at(0)
    dT, d_above = derivative(lambda t: of(joint.child, t)), derivative(lambda t: of(joint.parent, t))
    S, dS = body.S @ v[joint.v], body.dS @ v[joint.v]
    d_step, back, X = step @ hat(S), inverse(step), adjoint(inverse(step))                           # S dq = T^-1 dT
    V = twist(joint.child)
    np.testing.assert_allclose(inverse(T) @ dT, hat(V), atol=SLOPE)                                  # (34)
    np.testing.assert_allclose(back @ inverse(above) @ (d_above @ step + above @ d_step), hat(V), atol=SLOPE)            # (35)
    Vp, dVp = vee(inverse(above) @ d_above), derivative(lambda t: twist(joint.parent, t))
    np.testing.assert_allclose(X @ Vp + S, V, atol=SLOPE)                                            # (36)
    found, rest = ld.link_acceleration(model, case.q, v, a, joint.child), dS + body.S @ a[joint.v]
    moved = derivative(lambda t: vee(inverse(step_at(t)) @ hat(twist(joint.parent, t)) @ step_at(t)))
    np.testing.assert_allclose(moved + rest, found, atol=SLOPE)                                      # (37)
    terms = -back @ d_step @ back @ hat(Vp) @ step + back @ hat(dVp) @ step + back @ hat(Vp) @ d_step
    np.testing.assert_allclose(vee(terms) + rest, found, atol=SLOPE)                                 # (38)
    np.testing.assert_allclose(X @ dVp + ad(X @ Vp) @ S + rest, found, atol=SLOPE)                   # (39)
    np.testing.assert_allclose(X @ dVp + ad(V) @ S + rest, found, atol=SLOPE)                        # (40)
    by_recursion = kinematics(case, a)                                                               # gravity included
    assert relative(by_recursion[0][k], V) < EXACT
    assert relative(by_recursion[1][k], found + adjoint(inverse(T)) @ case.dV0) < 1e-12


def articulated(case, a, tau, given):
    """AI, AB of the bodies: (48), (49) where no joint is given, (51), (52) where some are."""
    V, _, eta = kinematics(case, a)
    AI = [b.I for b in case.bodies]
    AB = [-ad(V[i]).T @ b.I @ V[i] - b.F_ext for i, b in enumerate(case.bodies)]
    for k in range(len(case.bodies) - 1, -1, -1):
        b = case.bodies[k]
        if given[k]:
            Pi, beta = AI[k], AB[k] + AI[k] @ (eta[k] + b.S @ a[b.at])
        else:
            Psi = np.linalg.inv(b.S.T @ AI[k] @ b.S)
            Pi = AI[k] - AI[k] @ b.S @ Psi @ b.S.T @ AI[k]
            beta = AB[k] + AI[k] @ eta[k] + AI[k] @ b.S @ Psi @ (tau[b.at] - b.S.T @ AI[k] @ eta[k] - b.S.T @ AB[k])
        if b.parent >= 0:
            AI[b.parent] = AI[b.parent] + b.X.T @ Pi @ b.X
            AB[b.parent] = AB[b.parent] + b.X.T @ beta
    return AI, AB


@pytest.mark.parametrize("some_given", [False, True], ids=["forward", "hybrid"])
def test_articulated_bodies(case, some_given):
    """Checks: K1 (41)-(52). A body's wrench by Newton and Euler, by its children, and by articulated inertia."""
    model, q, v = case.model, case.q, case.v
    given = [some_given and k % 2 == 0 for k in range(len(case.bodies))]
    mask = np.zeros(model.nv, bool)
    for b, whether in zip(case.bodies, given, strict=True):
        mask[b.at] = whether
    a, tau = ld.hybrid_dynamics(model, q, v, case.a, case.tau, mask, f_ext=case.F)
    V, dV, eta = kinematics(case, a)
    AI, AB = articulated(case, a, tau, given)
    F = ld.joint_wrenches(model, q, v, a, f_ext=case.F)
    scale = np.abs(F).max()
    for i, b in enumerate(case.bodies):
        own = b.I @ dV[i] - ad(V[i]).T @ b.I @ V[i]
        passed = sum((case.bodies[k].X.T @ F[k] for k in b.children), np.zeros(6))
        above = dV[b.parent] if b.parent >= 0 else case.dV0
        assert relative(F[i] + b.F_ext - passed, own, scale) < 1e-12                                 # (41)
        assert relative(b.S.T @ F[i], tau[b.at], scale) < 1e-12
        assert relative(AI[i] @ dV[i] + AB[i], F[i], scale) < 1e-11                                  # (42), (47), (50)
        assert relative(AI[i] @ (b.X @ above + eta[i] + b.S @ a[b.at]) + AB[i], F[i], scale) < 1e-11             # (43)
        if not given[i]:
            need = tau[b.at] - b.S.T @ AI[i] @ (b.X @ above + eta[i]) - b.S.T @ AB[i]
            assert relative(np.linalg.solve(b.S.T @ AI[i] @ b.S, need), a[b.at], 1.0) < 1e-11        # (44)
        assert relative(own - b.F_ext + passed, F[i], scale) < 1e-12                                 # (45)
        by_children = sum((x.X.T @ (AI[k] @ (x.X @ dV[i] + eta[k] + x.S @ a[x.at]) + AB[k])
                           for k, x in ((k, case.bodies[k]) for k in b.children)), np.zeros(6))
        assert relative(own - b.F_ext + by_children, F[i], scale) < 1e-11                            # (46)


# derivatives by a scalar ----------------------------------------------------------------------------------------------
def test_derivatives_of_adjoints():
    """Checks: K1 (53)-(61), Lemma 3, Corollary 1. Of a pose and a twist that depend on p."""
    (A, B, xi, dxi, F), h, adjoint, ad = some(12, 5, 6), 0.02, spatial.adjoint, spatial.bracket
    T = lambda p: exp(A) @ exp(p * B)                                                                # noqa: E731
    T0, dT = T(0), derivative(T, h)
    Ti, dTi = np.linalg.inv(T0), derivative(lambda p: np.linalg.inv(T(p)), h)
    left, right = vee(dT @ Ti), vee(Ti @ dT)                                                         # right: (61)
    Ad = adjoint(T0)
    slope = derivative(lambda p: adjoint(T(p)), h)
    assert relative(ad(left) @ Ad, slope) < SLOPE                                                    # (53)
    along = derivative(lambda p: adjoint(T(p)) @ (xi + p * dxi), h)
    assert relative(slope @ xi + Ad @ dxi, along) < SLOPE                                            # (54)
    assert relative(derivative(lambda p: vee(T(p) @ hat(xi + p * dxi) @ np.linalg.inv(T(p))), h), along) < SLOPE         # (55)
    assert relative(vee(dT @ hat(xi) @ Ti + T0 @ hat(dxi) @ Ti + T0 @ hat(xi) @ dTi), along) < SLOPE                     # (56)
    moved = T0 @ hat(xi) @ Ti
    assert relative(vee(dT @ Ti @ moved - moved @ dT @ Ti + T0 @ hat(dxi) @ Ti), along) < SLOPE                          # (57)
    assert relative(ad(left) @ Ad @ xi + Ad @ dxi, along) < SLOPE                                    # (58)
    back = adjoint(inverse(T0))
    assert relative(-ad(right) @ back, derivative(lambda p: adjoint(inverse(T(p))), h)) < SLOPE      # (59)
    assert relative(-back.T @ ad(right).T, derivative(lambda p: adjoint(inverse(T(p))).T, h)) < SLOPE                    # (60)
    moved = derivative(lambda p: adjoint(inverse(T(p))).T @ F, h)
    np.testing.assert_allclose(moved, back.T @ -ad(right).T @ F, atol=SLOPE)


def test_what_the_tables_of_derivatives_begin_with(case):
    """Checks: K1 (61)-(64), Corollary 2. dh = T^-1 dT/dp is a column of S for a coordinate of the joint and zero for another; of
    (64) what does not depend on p is zero."""
    for k in range(case.model.nv):
        for joint in case.model.joints:
            what_depends_on_a_coordinate(case, joint, k)


def what_depends_on_a_coordinate(case, joint, k):
    model, q, v, e, own = case.model, case.q, case.v, np.eye(case.model.nv)[k], joint.v.start <= k < joint.v.stop
    place = model.joints.index(joint)
    by_q, by_v = ld.kim_tables(model, q, v, dq=e).bodies[place], ld.kim_tables(model, q, v, dv=e).bodies[place]

    def motion(dq, dv=0.0):
        return ld.joint_motion(model, joint.name, (q + dq * e)[joint.q], (v + dv * e)[joint.v])
    T, S, _ = motion(0.0)
    np.testing.assert_allclose(vee(inverse(T) @ derivative(lambda t: motion(t)[0])), by_q.h, atol=SLOPE)     # (61)
    np.testing.assert_array_equal(by_q.h, S[:, k - joint.v.start] if own else np.zeros(6))           # (62), (63)
    for x in (by_q.pI, by_q.pF_ext, by_v.pI, by_v.h, by_v.pS):
        assert not x.any()
    assert own or not (by_q.pS.any() or by_q.pdS.any() or by_v.pdS.any())
    for found, slope in ((by_q.pS, derivative(lambda t: motion(t)[1])), (by_q.pdS, derivative(lambda t: motion(t)[2])),
                         (by_v.pdS, derivative(lambda t: motion(0.0, t)[2]))):
        np.testing.assert_allclose(found, slope, atol=SLOPE)
