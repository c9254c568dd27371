"""How contact forces answer to a small change of the state: the derivative of the generalized force that they give.

All is seen from the link a of a contact. X is the pose of the link b (or of the world) in a, U the twist of a less that of b. A
change of a coordinate moves b against a by the twist eta, and U by dU; column k of the relative Jacobian C is eta of q_k:

    joints of a:  C = -J,       dU =  ad_{V before} J       - ad_eta Ad_X V_b
    joints of b:  C = Ad_X J,   dU = -Ad_X ad_{V before} J  - ad_eta Ad_X V_b

for a change of q_k, where `before` are the joints nearer to the ground, and eta = 0, dU = -C for a change of v_k. The wrench F
on a changes by dF(eta, dU), that on b, in its own frame, by -Ad*_X (dF + ad*_eta F). In joints that carry both links, -ad*_eta F
is left of the two.
"""
from liedyn.jit import kernel, primitive
from liedyn.joints.kinds import NV
from liedyn.joints.motion import joint_add, joint_column, joint_pose
from liedyn.joints.tree import tree_of
from liedyn.kernels.simulation.contact import (
    CREEP,
    DAMPING,
    FRICTION,
    GROUND,
    MATERIAL,
    SOFT,
    SPHERE,
    STIFFNESS,
    WIDTH,
    normal_force,
    power,
    softened,
    touching,
)
from liedyn.kernels.simulation.link_points import along
from liedyn.lie.lanes import sqrt
from liedyn.lie.rows import load3, load_pose, load_twist, store_twist
from liedyn.lie.se3 import Ad, Ad_inv, ad, compose, dot, inverse, minus_dad, neg, sub
from liedyn.lie.vec3 import add3, cross, dot3, plus_cross, scale3, sub3

_REST = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
_STILL = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0), (0.0, 0.0, 0.0)


@kernel
def contact_slopes(index, constants, contacts, q, v, C, E, out):
    """Adds to out (nv, 2 nv) the derivative by [dq; dv] of the generalized force of all contacts, less what it would be if each
    wrench stood still in its link's frame. C, E: (6 nv,) scratch. Numbers are float64."""
    tree = tree_of(index, constants)
    for j in range(contacts.link.size):
        a, b = contacts.link[j], contacts.other[j]
        on_a = contacts.first[j], contacts.first[j + 1]
        on_b = contacts.other_first[j], contacts.other_first[j + 1]
        Ta, Va = along(contacts.path, on_a[0], on_a[1], a, tree, q, v)
        Tb, Vb = _STILL, _REST
        if contacts.kind[j] != GROUND:
            Tb, Vb = along(contacts.other_path, on_b[0], on_b[1], b, tree, q, v)
        X = compose(inverse(Ta), Tb)
        Vb = Ad(X, Vb)
        U = sub(Va, Vb)
        d, n, p = touching(contacts, j, X)
        if not normal_force(contacts, j, d, -dot3(n, plus_cross(U[1], U[0], p))) > 0.0:
            continue
        columns(contacts.path, on_a[0], on_a[1], a, tree, q, v, -1.0, _STILL, Va, C, E)
        if contacts.kind[j] != GROUND:
            columns(contacts.other_path, on_b[0], on_b[1], b, tree, q, v, 1.0, X, Vb, C, E)
        push(contacts.path, on_a[0], on_a[1], contacts, j, tree, q, X, Vb, U, C, E, out)
        if contacts.kind[j] != GROUND:
            push(contacts.other_path, on_b[0], on_b[1], contacts, j, tree, q, X, Vb, U, C, E, out)


@kernel
def columns(path, first, last, link, tree, q, v, sign, X, V, C, E):
    """C and E = ad_{V before} J (less, of b) of the joints along a path, in the frame of a. V: the link's twist there."""
    T = load_pose(tree.link_pose, link)
    for k in range(last - 1, first - 1, -1):
        i = path[k]
        V = sub(V, Ad(X, Ad_inv(T, joint_add(tree, i, _REST, v))))
        for c in range(NV[tree.kind[i]]):
            J = Ad(X, Ad_inv(T, joint_column(tree, i, c, 0.0)))
            o = tree.iv[i] + c
            store_twist(C, o, J if sign > 0.0 else neg(J))
            store_twist(E, o, neg(ad(V, J)) if sign > 0.0 else ad(V, J))
        T = compose(joint_pose(tree, i, q), T)


@kernel
def push(path, first, last, contacts, j, tree, q, X, Vb, U, C, E, out):
    """The columns of out that belong to the joints along a path."""
    nv = tree.armature.size
    for k in range(first, last):
        i = path[k]
        for c in range(NV[tree.kind[i]]):
            o = tree.iv[i] + c
            eta = load_twist(C, o)
            F, dF = wrench_slope(contacts, j, X, U, eta, sub(load_twist(E, o), ad(eta, Vb)))
            turned = minus_dad(eta, F)
            answer(contacts, j, tree, C, dF, sub(dF, turned), o, out)
            answer_below(contacts, j, tree, q, turned, o, out)
            F, dF = wrench_slope(contacts, j, X, U, _REST, neg(eta))
            answer(contacts, j, tree, C, dF, dF, nv + o, out)


@primitive
def answer(contacts, j, tree, C, on_a, on_b, column, out):
    """The generalized force of dF on a and -dF on b, both in the frame of a."""
    for k in range(contacts.first[j], contacts.first[j + 1]):
        i = contacts.path[k]
        for c in range(NV[tree.kind[i]]):
            out[tree.iv[i] + c, column] -= dot(on_a, load_twist(C, tree.iv[i] + c))
    for k in range(contacts.other_first[j], contacts.other_first[j + 1]):
        i = contacts.other_path[k]
        for c in range(NV[tree.kind[i]]):
            out[tree.iv[i] + c, column] -= dot(on_b, load_twist(C, tree.iv[i] + c))


@kernel
def answer_below(contacts, j, tree, q, F, column, out):
    """The generalized force of F on a in the joints that carry both links: what dF on a and on b leave of each other."""
    T, i = load_pose(tree.link_pose, contacts.link[j]), tree.link_body[contacts.link[j]]
    for k in range(contacts.first[j + 1] - 1, contacts.first[j] - 1, -1):
        i = contacts.path[k]
        T = compose(joint_pose(tree, i, q), T)
        i = tree.parent[i]
    while i > 0:
        for c in range(NV[tree.kind[i]]):
            out[tree.iv[i] + c, column] += dot(F, Ad_inv(T, joint_column(tree, i, c, 0.0)))
        T = compose(joint_pose(tree, i, q), T)
        i = tree.parent[i]


@kernel
def wrench_slope(contacts, j, X, U, eta, dU):
    """F, the wrench on a, and dF."""
    d, n, p = touching(contacts, j, X)
    x = load3(contacts.normal, 3 * j)
    if contacts.kind[j] == SPHERE:
        x = sub3(p, scale3(contacts.height[j] - 0.5 * d, n))                  # the centre of b
        dx = plus_cross(eta[1], eta[0], x)
        l = contacts.radius[j] + contacts.height[j] - d
        dd = dot3(n, dx)
        dn = scale3(-1.0 / l, sub3(dx, scale3(dd, n)))
        dp = sub3(add3(dx, scale3(contacts.height[j] - 0.5 * d, dn)), scale3(0.5 * dd, n))
    else:
        x = X[1]                                                              # height of a point above: h_b + n (p - x)
        dn = cross(eta[0], n)
        dp = scale3(-contacts.radius[j], dn)
        dd = dot3(n, plus_cross(eta[1], eta[0], x)) - dot3(dn, sub3(load3(contacts.centre, 3 * j), x))
    u = plus_cross(U[1], U[0], p)
    du = add3(plus_cross(dU[1], dU[0], p), cross(U[0], dp))
    rate, drate = -dot3(n, u), -dot3(dn, u) - dot3(n, du)
    N, dN = normal_force(contacts, j, d, rate), normal_slope(contacts, j, d, rate, dd, drate)
    mu, e = contacts.material[MATERIAL * j + FRICTION], contacts.material[MATERIAL * j + CREEP]
    slip, dslip = add3(u, scale3(rate, n)), add3(du, add3(scale3(drate, n), scale3(rate, dn)))
    s = 1.0 / sqrt(dot3(slip, slip) + e * e)
    ds = -s * s * s * dot3(slip, dslip)
    way = sub3(n, scale3(mu * s, slip))
    f = scale3(N, way)
    df = add3(scale3(dN, way), scale3(N, sub3(dn, scale3(mu, add3(scale3(ds, slip), scale3(s, dslip))))))
    return (cross(p, f), f), (add3(cross(dp, f), cross(p, df)), df)


@primitive
def normal_slope(contacts, j, d, rate, dd, drate):
    """Change of the normal force, which is not zero."""
    m = MATERIAL * j
    k, c, w, n = (contacts.material[m + STIFFNESS], contacts.material[m + DAMPING], contacts.material[m + WIDTH],
                  0.5 * contacts.twice[j])
    g, dg, s, ds = 1.0 + c * rate, c * drate, d, dd
    if contacts.smooth[j]:
        dg, ds = dg * softened_slope(g, SOFT), ds * softened_slope(s, w)
        g, s = softened(g, SOFT), softened(s, w)
    x = power(s, contacts.twice[j])
    return k * (x * dg + n * x / s * ds * g)


@primitive
def softened_slope(x, w):
    return min(max((x + w) / (2.0 * w), 0.0), 1.0)
