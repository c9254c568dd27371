"""Second derivatives of inverse dynamics: the kernel of the first ones on duals, eight directions at a time.

    directions of q:  d(dtau/dq)/dq,  d(dtau/dv)/dq,  dM/dq            directions of v:  d(dtau/dv)/dv
"""
from liedyn.jit import entry, kernel, primitive
from liedyn.joints.kinds import BALL, SCREW
from liedyn.joints.motion import load_quaternion
from liedyn.joints.tree import tree_of
from liedyn.kernels.checks import BAD_RESULT, OK, bad_motion
from liedyn.kernels.inverse_derivatives import inverse_derivatives, inverse_derivatives_memory
from liedyn.kernels.results import clear
from liedyn.lie.blocks import set_row_part, set_rows, transpose
from liedyn.lie.duals import rates_of
from liedyn.lie.lanes import absolute, all_less, load, number_like, store
from liedyn.lie.so3 import quaternion_product, quaternion_rotation


@primitive
def constant_duals(x, X):
    """X = x without rates."""
    for k in range(x.shape[0]):
        store(X, k, x[k])


@primitive
def along_configuration(tree, q, first, Q):
    """The rates of Q = q along the tangents of coordinates first … first + 7."""
    for i in range(1, tree.parent.size):
        o, k = tree.iq[i], tree.iv[i]
        if tree.kind[i] == SCREW:
            seed(Q, o, k - first, 1.0)
        elif tree.kind[i] == BALL:
            seed_quaternion(Q, o, load_quaternion(q, o), k - first)
        else:
            u = load_quaternion(q, o + 3)
            seed_quaternion(Q, o + 3, u, k - first)
            R = quaternion_rotation(u)
            for c in range(3):                                    # dp = R dx
                for r in range(3):
                    seed(Q, o + r, k + 3 + c - first, R[3 * r + c])


@primitive
def seed_quaternion(Q, o, u, direction):
    """du = u (dw, 0)/2."""
    for c in range(3):
        du = quaternion_product(u, (0.5 if c == 0 else 0.0, 0.5 if c == 1 else 0.0, 0.5 if c == 2 else 0.0, 0.0))
        for j in range(4):
            seed(Q, o + j, direction + c, du[j])


@primitive
def seed(X, row, direction, rate):
    if 0 <= direction < 8:
        X[row, 1, direction] = rate


@kernel
def differentiated(tree, Q, V, A, passive, X, memory, n, nv):
    """X (3 nv nv) duals: dtau/dq, dtau/dv, M by rows."""
    k = nv * nv
    inverse_derivatives(tree, Q, V, A, X[:0], passive, X[:k], X[k:2 * k], X[2 * k:], memory, n, nv, None)


@primitive
def spread_rates(X, first, nv, T):
    """T[i nv + j, k] = rate of X_ij in direction k, of eight from `first` on; T (nv nv, nv). Returns zero, or NaN where one is
    not finite."""
    total, count = rates_of(number_like(X, 0.0)), min(8, nv - first)
    for k in range(nv * nv):
        x = rates_of(load(X, k))
        total = total + x * 0.0
        set_row_part(T, k, first, count, x)
    return total


@primitive
def spread_across(X, first, nv, T):
    """The same with T[i nv + k, j]."""
    total, count = rates_of(number_like(X, 0.0)), min(8, nv - first)
    for i in range(nv):
        o, row = i * nv, i * nv + first
        for j in range(0, nv, 8):
            a, last = o + j, o + nv - 1
            x = (rates_of(load(X, a)), rates_of(load(X, min(a + 1, last))), rates_of(load(X, min(a + 2, last))),
                 rates_of(load(X, min(a + 3, last))), rates_of(load(X, min(a + 4, last))), rates_of(load(X, min(a + 5, last))),
                 rates_of(load(X, min(a + 6, last))), rates_of(load(X, min(a + 7, last))))
            for k in range(8):
                total = total + x[k] * 0.0
            y = transpose(x)
            if count == 8 and j + 8 <= nv:
                set_rows(T, row, j, y)
            else:
                for k in range(count):
                    set_row_part(T, row + k, j, min(8, nv - j), y[k])
    return total


# from Python ------------------------------------------------------------------------------------------------------
def second_derivatives_memory(n, nq, nv, nl):
    """Lanes: two a dual."""
    return 2 * (inverse_derivatives_memory(n, nv) + nq + 2 * nv + 3 * nv * nv) + nq + 2 * nv


@entry("i8(i8[::1], f8[::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], b1, f8[:,::1], i8, i8)", nogil=True)
def second_derivatives(index, constants, memory, q, v, a, passive, out, first, last):
    """States first … last - 1, one at a time; out (N, 4 nv^3): dqdq, dqdv, dvdv, dqda. Returns a code of `checks`."""
    n, nq, nv = index[0], index[1], index[2]
    tree, k = tree_of(index, constants), nv * nv
    rows = memory.shape[0] // 2
    duals = memory[:2 * rows].reshape(rows, 2, 8)
    Q, V, A, X = duals[:nq], duals[nq:nq + nv], duals[nq + nv:nq + 2 * nv], duals[nq + 2 * nv:nq + 2 * nv + 3 * k]
    work = duals[nq + 2 * nv + 3 * k:]
    passive = passive and index[4] != 0
    clear(X)
    for state in range(first, last):
        code = bad_motion(tree, q[state], v[state], a[state], nq, nv)
        if code != OK:
            return code
        constant_duals(a[state], A)
        T, total = out[state].reshape(4 * k, nv), rates_of(number_like(X, 0.0))
        for c in range(0, nv, 8):
            constant_duals(v[state], V)
            constant_duals(q[state], Q)
            along_configuration(tree, q[state], c, Q)
            differentiated(tree, Q, V, A, passive, X, work, n, nv)
            total = total + spread_rates(X[:k], c, nv, T[:k])
            total = total + spread_across(X[k:2 * k], c, nv, T[k:2 * k])
            total = total + spread_across(X[2 * k:], c, nv, T[3 * k:])
            constant_duals(q[state], Q)
            for j in range(c, min(c + 8, nv)):
                seed(V, j, j - c, 1.0)
            differentiated(tree, Q, V, A, passive, X, work, n, nv)
            total = total + spread_rates(X[k:2 * k], c, nv, T[2 * k:3 * k])
        if not all_less(absolute(total), 1.0):
            return BAD_RESULT
    return OK
