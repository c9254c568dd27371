"""Jacobian of a link and its time derivative: column k is Ad_{T_link,i} S_k for the joints i between link and ground."""
from liedyn.jit import entry, kernel, primitive
from liedyn.joints.kinds import NV
from liedyn.joints.motion import joint_add, joint_column, joint_pose
from liedyn.joints.tree import tree_of
from liedyn.kernels.checks import BAD_RESULT, BAD_V, OK, finite, take_configuration
from liedyn.kernels.frames import LOCAL, WORLD
from liedyn.lie.blocks import pack, unpack
from liedyn.lie.lanes import WIDTH, number_like
from liedyn.lie.rows import load_apart, load_pose, store_apart
from liedyn.lie.se3 import Ad, Ad_inv, ad, add, compose, identity, neg, plus_ad, zero6
from liedyn.lie.vec3 import cross, rotate
from liedyn.seam.views import carve


@primitive
def load_column(J, k, nv): return load_apart(J, k, nv), load_apart(J, 3 * nv + k, nv)


@primitive
def store_column(J, k, nv, V):
    store_apart(J, k, nv, V[0])
    store_apart(J, 3 * nv + k, nv, V[1])


@kernel
def jacobian(tree, link, frame, q, v, J, dJ):
    """Writes J and, unless empty, dJ (6 nv, by rows) of a link. v is read for dJ only."""
    nv = tree.armature.shape[0]
    zero = number_like(q, 0.0)
    rest = zero6(zero)
    for k in range(nv):
        store_column(J, k, nv, rest)
        if dJ.size:
            store_column(dJ, k, nv, rest)
    T = compose(identity(zero), load_pose(tree.link_pose, link))       # of the link in body i
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


@entry("i8(i8[::1], f8[::1], f8[:,::1], i8, i8, f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], i8, i8)", nogil=True)
def jacobians(index, constants, memory, link, frame, q, v, J, dJ, first, last):
    """J and, unless it has no columns, dJ (N, 6 nv) of states first … last - 1."""
    nq, nv = index[1], index[2]
    tree, (Q, v1, J1, dJ1, _) = tree_of(index, constants), carve(memory, (nq, nv, 6 * nv, dJ.shape[1]))
    for k in range(first, last, WIDTH):
        code = take_configuration(tree, q, k, Q)
        if dJ1.size and code == OK:
            pack(v, k, v1)
            code = OK if finite(v1) else BAD_V
        if code != OK:
            return code
        jacobian(tree, link, frame, Q, v1, J1, dJ1)
        if not finite(J1) or not finite(dJ1):
            return BAD_RESULT
        unpack(J1, J, k)
        if dJ1.size:
            unpack(dJ1, dJ, k)
    return OK
