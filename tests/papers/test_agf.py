"""Ali, Gabellieri and Franchi on time derivatives of any order (AGF), equation by equation, on a floating base with a tree of
revolute and prismatic joints. The text that we have lost every formula: they were derived anew from what it says of them
(notation of §2-§6 and of the appendices), and each is held against differences along a motion and against the library."""
import json
from math import comb
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import liedyn as ld
from bridge import relative
from liedyn.model import spatial
from matrices import adjoint, bracket, derivative, exp, hat, inverse, pose, quaternion, random_rotations, skew
from zoo import random_robot

ROOT = Path(__file__).parents[2]
EXACT, SLOPE = 1e-12, 1e-8            # rounding about the world's origin; differences of eighth order
ROBOT = random_robot(52, 5, types=("revolute", "prismatic"), base="floating", springs=False, massless=False)
G0 = lambda model: np.r_[0, 0, 0, model.gravity]                                                     # noqa: E731


def some(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape)


def a_pose(seed):
    rng = np.random.default_rng(seed)
    return pose(random_rotations(rng, 1)[0], rng.standard_normal(3))


def vee(X):
    return np.array([X[2, 1], X[0, 2], X[1, 0], *X[:3, 3]])


# §2 -----------------------------------------------------------------------------------------------------------------
def test_groups_and_brackets():
    """Checks: AGF (1)-(7). Spatial twist: dC/dt = hat(V) C."""
    C, D, (V, dV, x, y), adjoint, bracket = a_pose(1), a_pose(2), some(1, 4, 6), spatial.adjoint, spatial.bracket
    R, p, none = C[:3, :3], C[:3, 3], np.zeros((3, 3))
    np.testing.assert_allclose(spatial.inverse(C), pose(R.T, -R.T @ p), atol=1e-14)                  # (1)
    assert not hat(x)[3].any() and np.abs(hat(x)[:3, :3] + hat(x)[:3, :3].T).max() == 0              # (2)
    np.testing.assert_allclose(hat(spatial.adjoint(C) @ x), C @ hat(x) @ inverse(C), atol=1e-13)     # (3)
    np.testing.assert_allclose(hat(spatial.bracket(x) @ y), hat(x) @ hat(y) - hat(y) @ hat(x), atol=1e-14)               # (4)
    np.testing.assert_array_equal(spatial.bracket(x), np.block([[skew(x[:3]), none], [skew(x[3:]), skew(x[:3])]]))       # (5)
    at = lambda t: exp(t * V + t * t / 2 * dV) @ C                                                   # noqa: E731
    twist = lambda t: vee(derivative(lambda s: at(t + s)) @ inverse(at(t)))                          # noqa: E731
    np.testing.assert_allclose(twist(0), V, atol=SLOPE)
    back = adjoint(inverse(C))
    np.testing.assert_allclose(derivative(lambda t: adjoint(inverse(at(t)))), -back @ bracket(V), atol=SLOPE)            # (6)
    np.testing.assert_allclose(derivative(lambda t: bracket(twist(t))), bracket(derivative(twist)), atol=SLOPE)
    for one, other in ((adjoint(C) @ adjoint(D), adjoint(C @ D)), (inverse(adjoint(C)), adjoint(inverse(C))),            # (7)
                       (bracket(x) @ y, -bracket(y) @ x),
                       (adjoint(C) @ bracket(x) @ inverse(adjoint(C)), bracket(adjoint(C) @ x)),
                       (bracket(bracket(x) @ y), bracket(x) @ bracket(y) - bracket(y) @ bracket(x))):
        np.testing.assert_allclose(one, other, atol=1e-12)


def test_screws_and_exponentials(case):
    """Checks: AGF (8), (9). Screws at home, in the world: (e, p x e) of an axis e through p, (0, e) of a slide."""
    model = case.model
    robot = {joint.name: joint for joint in model.description.joints}
    home = ld.link_poses(model, model.neutral())
    for joint in model.joints[1:]:
        T = home[model.link_index(joint.child)]
        axis = T[:3, :3] @ np.array(robot[joint.name].axes[0])
        Y = np.r_[axis, np.cross(T[:3, 3], axis)] if joint.type == "revolute" else np.r_[0, 0, 0, axis]                  # (8)
        J = ld.jacobian(model, model.neutral(), joint.child, frame="world")
        np.testing.assert_allclose(J[:, joint.v.start], Y, atol=1e-13)
        np.testing.assert_allclose(spatial.exp_screw(Y, 0.7), exp(0.7 * Y), atol=1e-13)              # (9)
        q = model.neutral()
        q[joint.q.start] = 0.7
        np.testing.assert_allclose(ld.link_pose(model, q, joint.child), exp(0.7 * Y) @ T, atol=1e-13)


# the tree on a motion -----------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def case():
    """State and its first derivatives, in spatial coordinates of the base; wrenches on links and their rates."""
    model, rng = ld.build(ROBOT), np.random.default_rng(4)
    q = ld.random_configuration(model, rng)
    v, a, jerk = 0.5 * rng.standard_normal((3, model.nv))
    W = rng.standard_normal((2, len(model.link_names), 6))
    form = ld.spatial_closed_form(model, q, base_frame="world")
    tau = np.array([form.inverse_dynamics(v, a, W[0]), form.inverse_dynamics_rate(v, a, jerk, *W)])
    return SimpleNamespace(model=model, q=q, v=v, a=a, jerk=jerk, W=W, form=form, tau=tau)


def moved(case, t):
    """q(t), v, a: the base by its spatial twist V + t dV + t^2/2 ddV, in short steps; the joints by their series."""
    model, (v, a, jerk) = case.model, (case.v, case.a, case.jerk)
    T, n = ld.link_pose(model, case.q, model.link_names[0]), 10
    h = t / n
    for k in range(n):                                # Magnus, fourth order
        V1, V2 = (v[:6] + s * a[:6] + s * s / 2 * jerk[:6] for s in ((k + 0.5 - 3**0.5 / 6) * h, (k + 0.5 + 3**0.5 / 6) * h))
        T = exp(h / 2 * (V1 + V2) + 3**0.5 / 12 * h * h * bracket(V2) @ V1) @ T
    q = case.q + np.r_[np.zeros(7), t * v[6:] + t * t / 2 * a[6:] + t**3 / 6 * jerk[6:]]
    q[:3], q[3:7] = T[:3, 3], quaternion(T[:3, :3])
    return q, v + t * a + t * t / 2 * jerk, a + t * jerk


def test_closed_form_of_order_0_and_1(case):
    """Checks: AGF (10)-(19), (31)-(40), Proposition 1, Lemma 1, Table 2. Factors, rates and both equations of motion along a
    motion; the matrices P and P^T of parents and children."""
    form, (v, a) = case.form, (case.v, case.a)
    at = lambda t: ld.spatial_closed_form(case.model, moved(case, t)[0], base_frame="world")         # noqa: E731
    N = len(form.parent)
    one = np.eye(6 * N)
    np.testing.assert_array_equal(form.L @ (one - form.P), one)
    V = form.J @ v
    np.testing.assert_allclose(V, form.P @ V + form.S @ v, atol=1e-13)                               # (33): by parents
    dV = form.J @ a + form.J_rate(v) @ v
    assert relative(form.twist_rates(v, a), dV) < EXACT                                              # (34), (35)
    assert relative(derivative(lambda t: at(t).J @ moved(case, t)[1], 0.01), dV) < SLOPE
    ddV = form.J @ case.jerk + 2 * form.J_rate(v) @ a + form.J_second_rate(v, a) @ v                 # (39), (40)
    assert relative(derivative(lambda t: at(t).twist_rates(*moved(case, t)[1:]), 0.01), ddV) < SLOPE
    W = np.zeros((N, 6))
    np.add.at(W, form.link_block, case.W[0])
    gravity = form.B @ form.G                                                                        # (36)
    M, C = form.J.T @ form.B @ form.J, form.coriolis_matrix(v)                                       # (11), (21)
    g, external = -form.J.T @ gravity, form.J.T @ W.ravel()                                          # (12), (13)
    assert relative(M @ a + C @ v + g - external, case.tau[0]) < EXACT                               # (10), (37)
    # by children: wrenches passed on from the leaves, W_i = own + sum of those of the children
    momentum_rate = form.B @ dV + form.B_rate(v) @ V
    passed = momentum_rate - gravity - W.ravel()
    passed = np.linalg.solve(one - form.P.T, passed)                                                 # (31)
    assert relative(form.S.T @ passed, case.tau[0]) < EXACT
    rates = {"mass_matrix": form.mass_matrix_rate(v), "gravity_force": form.gravity_force_rate(v), "B": form.B_rate(v)}
    for name, rate in rates.items():                                                                 # (15), (18)
        assert relative(derivative(lambda t, name=name: getattr(at(t), name), 0.01), rate) < SLOPE
    dC = form.coriolis_matrix_rate(v, a)                                                             # (16), (17), (38)
    assert relative(derivative(lambda t: at(t).coriolis_matrix(moved(case, t)[1]), 0.01), dC) < SLOPE
    d_external = form.external_force_rate(v, *case.W)                                                # (19)
    slope = derivative(lambda t: at(t).external_force(case.W[0] + t * case.W[1]), 0.01)
    assert relative(d_external, slope) < SLOPE
    d_tau = M @ case.jerk + (rates["mass_matrix"] + C) @ a + dC @ v + rates["gravity_force"] - d_external                # (14)
    assert relative(d_tau, case.tau[1]) < EXACT
    skewed = rates["mass_matrix"] - 2 * C                                                            # (32)
    assert np.abs(skewed + skewed.T).max() < EXACT * np.abs(M).max()


def test_derivatives_of_the_base_s_pose(case):
    """Checks: AGF (20), Remark 1. C^(k+1) by Leibniz' rule from the spatial twist and its derivatives."""
    V = np.array([case.v, case.a, case.jerk])[:, :6]
    C = [ld.link_pose(case.model, case.q, case.model.link_names[0])]
    for k in range(3):
        C.append(sum(comb(k, j) * hat(V[j]) @ C[k - j] for j in range(k + 1)))                       # (20)
    own = np.zeros((3, case.model.nv))
    own[:, :6], own[:, 6:] = ld.body_twists(case.q[:7], V), np.array([case.v, case.a, case.jerk])[:, 6:]
    found = ld.link_pose_derivatives(case.model, case.q, own, case.model.link_names[0])
    for k in range(4):
        np.testing.assert_allclose(found[k], C[k], atol=1e-12)


def test_the_leading_matrix_is_the_same_at_every_order(case):
    """Checks: AGF (22), (23), Lemma 2. The highest derivative of the motion enters every order by the same M."""
    model, ORDERS = case.model, 3
    M = ld.mass_matrix(model, case.q)
    v = 0.3 * some(5, ORDERS + 1, model.nv)
    tau = ld.higher_order_inverse_dynamics(model, case.q, v)
    for k in range(ORDERS):
        more = v.copy()
        more[k + 1] += 1.0
        change = ld.higher_order_inverse_dynamics(model, case.q, more) - tau
        assert relative(change[k], M @ np.ones(model.nv)) < 1e-10
        assert np.abs(change[:k]).max(initial=0.0) == 0


@pytest.mark.parametrize("base_given", [False, True], ids=["wrench of the base given", "motion of the base given"])
def test_hybrid_dynamics_of_higher_order(case, base_given):
    """Checks: AGF (24)-(26), Algorithm 4. Joints of both kinds; the base by its wrench or by its motion. Inverse dynamics undoes
    each order."""
    model, ORDERS, rng = case.model, 3, np.random.default_rng(6)
    v, tau = 0.3 * rng.standard_normal((2, ORDERS + 1, model.nv))
    mask = np.arange(model.nv) % 2 == 0
    mask[:6] = base_given
    a, force = ld.higher_order_hybrid_dynamics(model, case.q, v[0], v[1:], tau[:ORDERS], mask)
    assert relative(a[:, mask], v[1:, mask]) == 0 and relative(force[:, ~mask], tau[:ORDERS, ~mask]) == 0
    again = ld.higher_order_inverse_dynamics(model, case.q, np.concatenate([v[:1], a]))
    assert relative(again, force) < 1e-9


def spatial_bodies(case, t=0.0):
    """V, dV and spatial inertias of the blocks at t, by the library's poses and differences of them."""
    q, v, a = moved(case, t)
    form = ld.spatial_closed_form(case.model, q, base_frame="world")
    N = len(form.parent)
    B = [form.B[6 * i:6 * i + 6, 6 * i:6 * i + 6] for i in range(N)]
    return form, form.twists(v).reshape(N, 6), form.twist_rates(v, a).reshape(N, 6), B


def articulated(case):
    """Articulated inertias of the blocks (49), from the leaves, and per joint S^T AI S."""
    form, _, _, B = spatial_bodies(case)
    AI, pivots = list(B), {}
    for i in range(len(B) - 1, 0, -1):
        S = form.screws[i]
        pivots[i] = (S.T @ AI[i] @ S).item()
        AI[form.parent[i]] = AI[form.parent[i]] + AI[i] - AI[i] @ S @ S.T @ AI[i] / pivots[i]
    return form, AI, pivots


def test_articulated_bodies_of_order_0_and_1(case):
    """Checks: AGF (22), (23), (44)-(56), (65), (66), Algorithm 3, Lemma 2. Both orders by the same articulated inertias: biases
    inwards, accelerations and jerks from the base; and the wrenches that they give are those of the bodies behind a joint."""
    form, V, _, B = spatial_bodies(case)
    _, AI, pivots = articulated(case)
    N, P, v, a = len(B), form.parent, case.v, case.a
    W, dW = (np.zeros((N, 6)) for _ in range(2))
    np.add.at(W, form.link_block, case.W[0])
    np.add.at(dW, form.link_block, case.W[1])
    S_rate, G = form.S_rate(v), G0(case.model)
    dB = [-B[i] @ bracket(V[i]) - bracket(V[i]).T @ B[i] for i in range(N)]
    found, twist_rates = [], [None, None]
    for order, tau in enumerate(case.tau):
        # what a joint adds to its body's twist rate besides S times the unknown
        S = [form.S[6 * i:6 * i + 6, form.columns[i]] for i in range(N)]
        dS = [S_rate[6 * i:6 * i + 6, form.columns[i]] for i in range(N)]
        if order == 0:
            eta = [dS[i] @ v[form.columns[i]] for i in range(N)]                                     # (66)
            bias = [dB[i] @ V[i] - B[i] @ G - W[i] for i in range(N)]                                # (44), (65)
        else:
            dV = twist_rates[0]
            ddS = [bracket(dV[i]) @ S[i] + bracket(V[i]) @ dS[i] if i else 0 * S[i] for i in range(N)]
            eta = [2 * dS[i] @ a[form.columns[i]] + ddS[i] @ v[form.columns[i]] for i in range(N)]
            ddB = [-dB[i] @ bracket(V[i]) - bracket(V[i]).T @ dB[i] - B[i] @ bracket(dV[i]) - bracket(dV[i]).T @ B[i]
                   for i in range(N)]
            bias = [2 * dB[i] @ dV[i] + ddB[i] @ V[i] - dB[i] @ G - dW[i] for i in range(N)]         # (51), (52)
        AB, force = list(bias), {}
        # the force along a joint at order 1 is tau' less what its turning screw makes of the wrench of order 0: dS^T W
        wrenches0 = found[0][1] if order else None
        for i in range(N - 1, 0, -1):
            force[i] = tau[form.columns[i]] - (dS[i].T @ wrenches0[i] if order else 0.0)             # (46), (53)
            rest = (force[i] - S[i].T @ (AI[i] @ eta[i] + AB[i])).item()
            AB[P[i]] = AB[P[i]] + AB[i] + AI[i] @ (eta[i] + S[i][:, 0] * rest / pivots[i])           # (45), (48), (49), (55)
        x = np.zeros(case.model.nv)
        rates = np.zeros((N, 6))
        x[:6] = rates[0] = np.linalg.solve(AI[0], tau[:6] - AB[0])                                   # (50), (56)
        for i in range(1, N):
            rest = (force[i] - S[i].T @ (AI[i] @ (rates[P[i]] + eta[i]) + AB[i])).item()
            x[form.columns[i]] = rest / pivots[i]                                                    # (47), (54)
            rates[i] = rates[P[i]] + eta[i] + S[i] @ x[form.columns[i]]
        twist_rates[order] = rates
        wrenches = [AI[i] @ rates[i] + AB[i] for i in range(N)]                                      # (22)
        passed = [bias[i] + B[i] @ rates[i] for i in range(N)]                                       # each body alone
        for i in range(N - 1, 0, -1):
            passed[P[i]] = passed[P[i]] + passed[i]
        assert relative(wrenches, np.array(passed)) < 1e-10
        found.append((x, wrenches))
    assert relative(found[0][0], case.a) < 1e-10
    assert relative(found[1][0], case.jerk) < 1e-9


def test_momenta_and_wrenches_in_space(case):
    """Checks: AGF (57)-(70). Derivatives of spatial inertia, momentum, gravity and applied wrenches along a motion."""
    form, V, dV, B = spatial_bodies(case)
    G, h = G0(case.model), 0.01
    F, dF = some(8, 2, 6)                             # a wrench in the body's frame, and its component-wise rate
    for i in (0, len(B) - 1):
        T = form.poses[i]
        own = spatial.inertia_matrix(case.form.rigid[i])
        np.testing.assert_allclose(adjoint(inverse(T)).T @ own @ adjoint(inverse(T)), B[i], atol=1e-11)                  # (60)
        X, dX = bracket(V[i]), bracket(dV[i])
        dB = -X.T @ B[i] - B[i] @ X
        ddB = -(dX.T @ B[i] + B[i] @ dX) - (X.T @ dB + dB @ X)                                       # (61), with Leibniz' rule

        def at(t, i=i):
            form, V, dV, B = spatial_bodies(case, t)
            return form.poses[i], V[i], dV[i], B[i]
        assert relative(derivative(lambda t: at(t)[3], h), dB) < SLOPE
        slope = derivative(lambda t: -bracket(at(t)[1]).T @ at(t)[3] - at(t)[3] @ bracket(at(t)[1]), h)
        assert relative(slope, ddB) < SLOPE
        rate = B[i] @ dV[i] + dB @ V[i]                                                              # (57), (58), (62)
        assert relative(derivative(lambda t: at(t)[3] @ at(t)[1], h), rate) < SLOPE                  # of B V (59)
        assert relative(rate - B[i] @ dV[i], -X.T @ B[i] @ V[i], np.abs(rate).max()) < EXACT         # (65): the bias
        ddV = derivative(lambda t: at(t)[2], h)
        second = B[i] @ ddV + 2 * dB @ dV[i] + ddB @ V[i]                                            # (62)
        assert relative(derivative(lambda t: at(t)[3] @ at(t)[2] - bracket(at(t)[1]).T @ at(t)[3] @ at(t)[1], h), second) < SLOPE
        assert relative(derivative(lambda t: at(t)[3] @ G, h), dB @ G) < SLOPE                       # (63), (64)
        back = adjoint(inverse(T)).T
        d_wrench = back @ dF - X.T @ back @ F                                                        # (67), (68)
        assert relative(derivative(lambda t: adjoint(inverse(at(t)[0])).T @ (F + t * dF), h), d_wrench, 1.0) < SLOPE
        d_back = -X.T @ back                                                                         # (70)
        second = 2 * d_back @ dF - (dX.T @ back + X.T @ d_back) @ F                                  # (69)
        slope = derivative(lambda t: adjoint(inverse(at(t)[0])).T @ dF
                           - bracket(at(t)[1]).T @ adjoint(inverse(at(t)[0])).T @ (F + t * dF), h)
        assert relative(slope, second, 1.0) < SLOPE


# the aerial manipulator of §7 -----------------------------------------------------------------------------------------
def test_the_aerial_manipulator():
    """Checks: AGF (27)-(30), Figure 1, Figure 2, Table 3. Its tree of two arms of three joints, home poses, axes, and propellers:
    of the robot file and of the reference data, which hold stand-ins for the numbers that the text lost."""
    model = ld.load(ROOT / "robots/hexarotor_arms.yaml")
    data = json.loads((ROOT / "tests/oracles/aerial_manipulator.json").read_text(encoding="utf-8"))["model"]
    assert model.nv == 12 and data["num_bodies"] == 7
    assert data["parent"] == [-1, 0, 1, 2, 0, 4, 5]                                                  # (27)
    blocks = [joint.body - 1 for joint in model.joints]
    assert ld.closed_form(model, model.neutral()).parent.tolist() == data["parent"] and sorted(blocks) == list(range(7))
    home = ld.link_poses(model, np.r_[np.zeros(6), 1, np.zeros(6)])
    place = np.zeros((7, 3))
    for i, (parent, step) in enumerate(zip(data["parent"], data["Ap"], strict=True)):
        np.testing.assert_array_equal(np.array(step)[:3, :3], np.eye(3))                             # (29): axes of the world
        place[i] = (place[parent] if i else 0) + np.array(step)[:3, 3]
    for joint in model.joints:
        T, link = home[model.link_index(joint.child)], model.description.links[model.link_index(joint.child)]
        i = joint.body - 1
        np.testing.assert_allclose(T[:3, 3] + link.com, place[i], atol=1e-14)
        assert link.mass == data["mass"][i]
        np.testing.assert_allclose(link.inertia, np.array(data["inertia_about_com_body_axes"][i])[np.triu_indices(3)])
        if i:
            np.testing.assert_allclose(T[:3, 3], data["joint_point_home"][i], atol=1e-14)            # (30)
    for k, rotor in enumerate(model.description.actuators):                                          # (28)
        turn = exp(np.r_[0, 0, k * np.pi / 3 + np.pi / 6, 0, 0, 0])
        tilt = exp(np.r_[(-1)**k * np.radians(20), 0, 0, 0, 0, 0])
        T = turn @ pose(np.eye(3), [0.39, 0, 0]) @ tilt
        wrench = adjoint(inverse(T)).T @ np.r_[0, 0, rotor.torque_ratio, 0, 0, 1]                    # drag and thrust along z
        ours = np.r_[np.cross(rotor.position, rotor.axis) + rotor.torque_ratio * np.array(rotor.axis), rotor.axis]
        np.testing.assert_allclose(ours, wrench, atol=1e-9)
