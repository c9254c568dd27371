"""Derivatives of hybrid dynamics with respect to q, v and the inputs, from inverse dynamics ID at the solution:

    da_v = -M_vv^-1 (dID)_v,    dtau_u = (dID)_u + M_uv da_v

for torque-specified (v) and prescribed (u) coordinates: K1 Tables 6-7 solved for all directions. Derivatives with respect to the
inputs (tau_v, a_u) are the principal pivot transform of M: see `pivot_transform`.
"""
from liedyn.joints.joint_model import tree_views
from liedyn.kernels.batch_blocks import BAD_RESULT, OK, SINGULAR, SMALLEST_NORMAL, is_below, states_per_block, store_block
from liedyn.kernels.couplings import (
    coupling_views,
    expand_solution_derivatives,
    fold_matrix,
    with_pattern,
)
from liedyn.kernels.force_elements import subtract_element_derivatives
from liedyn.kernels.hybrid_dynamics import is_free_on_branch, load_input, mass_matrix_workspace, solve_accelerations, solve_matrix
from liedyn.kernels.inverse_dynamics_derivatives import derivatives_workspace, derivatives_workspace_size, inverse_derivatives
from liedyn.kernels.kinematics import load_wrenches
from liedyn.lie.simd import absolute, all_less, load, number_like, store
from liedyn.lie.vectors import cross, load3, load_pose, load_twist, rotate_back
from liedyn.model.description import FREE, NV
from liedyn.numba_tools.decorators import entry_point, inline_kernel
from liedyn.numba_tools.deferred_kernels import call_deferred
from liedyn.numba_tools.numba_internals import split_workspace


def hybrid_derivatives_workspace_size(n, nv):
    """Return the size (numbers) of the workspace of `hybrid_derivatives`."""
    return 2 * nv * nv + 3 * nv + derivatives_workspace_size(n, nv)


@inline_kernel
def hybrid_derivatives(tree, couplings, prescribed, q, v, a, tau, f_ext, passive, Dq, Dv, Du, ws):
    """Write derivatives (nv nv each, by rows) of tau where prescribed and of a elsewhere.

    Dq, Dv: with respect to q and v; Du: with respect to a where prescribed and tau elsewhere. Returns a positive number if a
    joint's articulated inertia vanishes.
    """
    n, nv = tree.parent.size, prescribed.size
    deficit = solve_accelerations(tree, couplings, prescribed, q, v, a, tau, f_ext, passive, ws)
    inverse_derivatives(tree, q, v, ws.a, f_ext, passive, Dq, Dv, ws.M, derivatives_workspace(ws.memory, n, nv))
    for X in (Dq, Dv, ws.M):
        fold_matrix(couplings, X, nv)
    solve_matrix(tree, prescribed, ws.L, ws.Psi, Dq, False)
    solve_matrix(tree, prescribed, ws.L, ws.Psi, Dv, False)
    inverse_mass_matrix(tree, prescribed, ws.L, ws.Psi, Du)
    if prescribed.any():
        add_products(tree, prescribed, ws.M, Dq)
        add_products(tree, prescribed, ws.M, Dv)
        pivot_transform(tree, prescribed, ws.M, Du)
    store_floating_columns(tree, prescribed, passive, v, derivatives_workspace(ws.memory, n, nv).T, Dq, Dv, Du)
    if passive and tree.element.size:
        add_element_effects(tree, couplings, prescribed, q, v, Dq, Dv, Du, ws)
    expand_solution_derivatives(couplings, prescribed, Dq, Dv, Du)
    return deficit


@inline_kernel
def add_element_effects(tree, couplings, prescribed, q, v, Dq, Dv, Du, ws):
    """Add the effects of the changes of the forces of force elements, which act like tau, to Dq and Dv.

    These forces join coordinates on different branches, so that they are not part of the matrices with the pattern of the tree.
    """
    n, nv = tree.parent.size, prescribed.size
    zero = number_like(q, 0.0)
    K, D = ws.M, ws.L                                              # no longer needed
    for k in range(nv * nv):
        store(K, k, zero)
        store(D, k, zero)
    call_deferred(subtract_element_derivatives, (tree, q, v, K, D, derivatives_workspace(ws.memory, n, nv).psi))
    for X, Y in ((K, Dq), (D, Dv)):
        fold_matrix(couplings, X, nv)
        for r in range(nv):
            for c in range(nv):
                total = load(Y, r * nv + c)
                if prescribed[r]:
                    total = total + load(X, r * nv + c)
                for k in range(nv):
                    if not prescribed[k]:
                        total = total - load(Du, r * nv + k) * load(X, k * nv + c)
                store(Y, r * nv + c, total)


@inline_kernel
def inverse_mass_matrix(tree, prescribed, L, Psi, U):
    """Write U_vv = M_vv^-1, symmetric; zero elsewhere."""
    nv, zero = prescribed.size, number_like(Psi, 0.0)
    for r in range(nv):
        for c in range(nv):
            store(U, r * nv + c, zero - 1.0 if r == c and not prescribed[r] else zero)
    solve_matrix(tree, prescribed, L, Psi, U, True)
    for r in range(nv):
        for c in range(r):
            store(U, r * nv + c, load(U, c * nv + r))


@inline_kernel
def pivot_transform(tree, prescribed, M, U):
    """Write U_uv = M_uv U_vv, U_vu = -U_uv^T, U_uu = M_uu + M_uv U_vu: the principal pivot transform of M over v."""
    nv = prescribed.size
    add_products(tree, prescribed, M, U)
    for u in range(nv):
        for c in range(nv if prescribed[u] else 0):
            if not prescribed[c]:
                store(U, c * nv + u, -load(U, u * nv + c))
    for u in range(nv):
        for c in range(nv if prescribed[u] else 0):
            if prescribed[c]:
                x = load(M, u * nv + c)
                for j in range(tree.top[u], tree.last[u] + 1):
                    if is_free_on_branch(tree, prescribed, u, j):
                        x = x + load(M, u * nv + j) * load(U, j * nv + c)
                store(U, u * nv + c, x)


@inline_kernel
def add_products(tree, prescribed, M, X):
    """Add M_uv X_v to X_u."""
    nv = prescribed.size
    for u in range(nv):
        for j in range(tree.top[u], tree.last[u] + 1 if prescribed[u] else 0):
            if is_free_on_branch(tree, prescribed, u, j):
                m = load(M, u * nv + j)
                for c in range(tree.top[u], tree.last[tree.top[u]] + 1):
                    store(X, u * nv + c, load(X, u * nv + c) + m * load(X, j * nv + c))


@inline_kernel
def store_floating_columns(tree, prescribed, passive, v, T, Dq, Dv, Du):
    """Write the columns of the coordinates of a floating base, which have a closed form (10 % of the operations of a quadruped).

    A translation of the base changes nothing. A rotation changes the direction of gravity g; a linear velocity u adds w x u in
    the frame of the base: the accelerations of the base change by d(R^T g) - w x u.
    """
    for i in range(1, tree.parent.size):
        if is_floating_base(tree, i, passive):
            k = tree.iv[i]
            g, w = rotate_back(load_pose(T, i)[0], load_twist(tree.dV0, 0)[1]), load3(v, k)
            for c in range(3):
                e = 1.0 if c == 0 else 0.0, 1.0 if c == 1 else 0.0, 1.0 if c == 2 else 0.0
                store_base_column(tree, prescribed, k, k + c, cross(e, g), Dq, Du)
                store_base_column(tree, prescribed, k, k + 3 + c, cross(e, w), Dv, Du)


@inline_kernel
def is_floating_base(tree, i, passive):
    """Return whether body i is free on the ground and its joint has no passive forces."""
    x = number_like(tree.armature, 0.0)
    for k in range(tree.iv[i], tree.iv[i] + NV[tree.kind[i]]):
        x = x + absolute(load(tree.armature, k))
        if passive:
            x = x + absolute(load(tree.damping, k)) + absolute(load(tree.friction, k))
    return tree.parent[i] == 0 and tree.kind[i] == FREE and all_less(x, 5e-324)


@inline_kernel
def store_base_column(tree, prescribed, k, c, x, X, Du):
    """Write column c of X, where the linear acceleration of a base (from coordinate k + 3 on) changes by x.

    Where that acceleration is prescribed, the forces change as if it changed by -x.
    """
    nv, zero = prescribed.size, number_like(X, 0.0)
    for r in range(tree.top[k], tree.last[k] + 1):
        store(X, r * nv + c, zero)
    for j in range(3):
        l = k + 3 + j
        if not prescribed[l]:
            store(X, l * nv + c, load(X, l * nv + c) + x[j])
        else:
            for r in range(tree.top[k], tree.last[k] + 1):
                store(X, r * nv + c, load(X, r * nv + c) - x[j] * load(Du, r * nv + l))


# batches ----------------------------------------------------------------------------------------------------------------
def hybrid_derivatives_batch_workspace_size(n, nq, nv, nl):
    """Return the size (numbers) of the workspace of `hybrid_derivatives_batch` for one state (see `Model.sizes`)."""
    return hybrid_derivatives_workspace_size(n, nv) + nq + 3 * nv + 6 * nl + 6 * n + 3 * nv * nv


@entry_point("i8(i8[::1], f8[::1], f8[::1], b1[::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], b1, f8[:,::1], "
             "f8[:,::1],"
             " f8[:,::1], i8, i8)",
       "i8(i8[::1], f8[::1], f8[:,::1], b1[::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], b1, f8[:,::1], f8[:,::1],"
             " f8[:,::1], i8, i8)", nogil=True)
def hybrid_derivatives_batch(index, constants, memory, prescribed, q, v, a, tau, f_ext, passive, Dq, Dv, Du, first, last):
    """Write the derivatives (N, nv nv) of states first … last - 1: see `hybrid_derivatives`.

    f_ext: (N, 6 n_links) in link frames, or empty.
    """
    n, nq, nv, nl = index[0], index[1], index[2], index[3]
    size = nv * nv
    tree, parts = tree_views(index, constants), split_workspace(memory, (nq, nv, nv, nv, 6 * nl, 6 * n, size, size, size))
    Q, V, A, Tau, links, bodies, x, y, z, m = parts
    ws, couplings = mass_matrix_workspace(m, nv), coupling_views(index, constants)
    if couplings.follower.size:
        tree = with_pattern(tree, couplings)
    passive = passive and index[4] != 0
    for k in range(first, last, states_per_block(memory)):
        bad_f_ext, F = load_wrenches(tree, f_ext, k, links, bodies)
        code = load_input(tree, couplings, prescribed, q, v, a, tau, k, Q, V, A, Tau) or bad_f_ext
        if code != OK:
            return code
        deficit = hybrid_derivatives(tree, couplings, prescribed, Q, V, A, Tau, F, passive, x, y, z, ws)
        if not is_below(deficit, SMALLEST_NORMAL):
            return SINGULAR
        if not (store_block(x, Dq, k) and store_block(y, Dv, k) and store_block(z, Du, k)):
            return BAD_RESULT
    return OK
