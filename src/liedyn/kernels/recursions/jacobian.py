"""Jacobian of a link and its time derivative: column k is Ad_{T_link,i} S_k for the joints i between link and ground."""
from liedyn.jit import entry, kernel, primitive
from liedyn.joints.kinds import NV
from liedyn.joints.motion import joint_add, joint_column, joint_pose
from liedyn.joints.tree import tree_of
from liedyn.kernels.checks import BAD_RESULT, BAD_V, OK, bad_configuration, finite
from liedyn.kernels.frames import LOCAL, WORLD
from liedyn.lie.blocks import pack, states_in, unpack
from liedyn.lie.lanes import load, number_like, store
from liedyn.lie.rows import load_pose
from liedyn.lie.se3 import Ad, Ad_inv, ad, add, compose, neg, plus_ad
from liedyn.lie.vec3 import cross, rotate


@primitive
def load_column(J, k, nv):
    return ((load(J, k), load(J, nv + k), load(J, 2 * nv + k)),
            (load(J, 3 * nv + k), load(J, 4 * nv + k), load(J, 5 * nv + k)))


@primitive
def store_column(J, k, nv, V):
    for r in range(3):
        store(J, r * nv + k, V[0][r])
        store(J, (3 + r) * nv + k, V[1][r])


@kernel
def jacobian(tree, link, frame, q, v, J, dJ):
    """Writes J and, unless empty, dJ (6 nv, by rows) of a link. v is read for dJ only."""
    nv = tree.armature.shape[0]
    zero = number_like(q, 0.0)
    rest = (zero, zero, zero), (zero, zero, zero)
    for k in range(nv):
        store_column(J, k, nv, rest)
        if dJ.size:
            store_column(dJ, k, nv, rest)
    one = zero + 1.0
    identity = (one, zero, zero, zero, one, zero, zero, zero, one), (zero, zero, zero)
    T = compose(identity, load_pose(tree.link_pose, link))       # of the link in body i
    V = rest                                                     # of the link against body i, in the link frame
    i = tree.link_body[link]
    while i > 0:
        for c in range(NV[tree.kind[i]]):
            S = Ad_inv(T, joint_column(tree, i, c, zero))
            store_column(J, tree.iv[i] + c, nv, S)
            if dJ.size:
                store_column(dJ, tree.iv[i] + c, nv, neg(ad(V, S)))
        if dJ.size:
            V = add(V, Ad_inv(T, joint_add(tree, i, rest, v)))
        T = compose(joint_pose(tree, i, q), T)
        i = tree.parent[i]
    if frame != LOCAL:
        change_frame(tree, link, frame, T, V, J, dJ)


@primitive
def change_frame(tree, link, frame, T, V, J, dJ):
    """From the link frame to world axes. T is the link's pose in the world, V its twist (link frame)."""
    nv = tree.armature.shape[0]
    i = tree.link_body[link]
    while i > 0:
        for k in range(tree.iv[i], tree.iv[i] + NV[tree.kind[i]]):
            S = load_column(J, k, nv)
            if frame == WORLD:
                store_column(J, k, nv, Ad(T, S))                 # d(Ad_T S) = Ad_T (ad_V S + dS)
                if dJ.size:
                    store_column(dJ, k, nv, Ad(T, plus_ad(load_column(dJ, k, nv), V, S)))
            else:
                store_column(J, k, nv, (rotate(T[0], S[0]), rotate(T[0], S[1])))
                if dJ.size:
                    spin = cross(V[0], S[0]), cross(V[0], S[1])
                    dS = add(load_column(dJ, k, nv), spin)
                    store_column(dJ, k, nv, (rotate(T[0], dS[0]), rotate(T[0], dS[1])))
        i = tree.parent[i]


# from Python ------------------------------------------------------------------------------------------------------
def jacobian_memory(n, nq, nv, nl): return nq + 13 * nv


@entry("i8(i8[::1], f8[::1], f8[::1], i8, i8, f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], i8, i8)",
       "i8(i8[::1], f8[::1], f8[:,::1], i8, i8, f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], i8, i8)", nogil=True)
def jacobians(index, constants, memory, link, frame, q, v, J, dJ, first, last):
    """J and, unless it has no columns, dJ (N, 6 nv) of states first … last - 1."""
    _n, nq, nv = index[0], index[1], index[2]
    tree, m = tree_of(index, constants), memory
    Q, v1, J1, dJ1 = m[:nq], m[nq:nq + nv], m[nq + nv:nq + 7 * nv], m[nq + 7 * nv:nq + 7 * nv + dJ.shape[1]]
    for k in range(first, last, states_in(memory)):
        pack(q, k, Q)
        code = bad_configuration(tree, Q, nq)
        if dJ1.size and code == OK:
            pack(v, k, v1)
            code = OK if finite(v1, nv) else BAD_V
        if code != OK:
            return code
        jacobian(tree, link, frame, Q, v1, J1, dJ1)
        if not finite(J1, J1.shape[0]) or not finite(dJ1, dJ1.shape[0]):
            return BAD_RESULT
        unpack(J1, J, k)
        if dJ1.size:
            unpack(dJ1, dJ, k)
    return OK
