"""Time derivatives of inverse and forward dynamics of one state with the limbs side by side (see `joints.limbs`): the passes of
`higher_order_inverse` and `higher_order_hybrid` over the trunk and over the limbs."""
from liedyn.jit import entry, primitive
from liedyn.joints.limbs import (
    FIRST,
    add_to_trunk,
    chains_of,
    from_trunk,
    group_of,
    in_lanes,
    limbs_of,
    rows_from_lanes,
    rows_of,
    rows_to_lanes,
    series_to_lanes,
    to_lanes,
)
from liedyn.joints.series import passive_series
from liedyn.kernels.checks import BAD_RESULT, BAD_V, OK, SHAPE, SINGULAR, bad_configuration, finite
from liedyn.kernels.series.higher_order_hybrid import (
    begin,
    derivatives_of,
    distribute,
    factor,
    gather_bias,
    hybrid_series_memory,
    hybrid_series_work,
    series_of,
    store_coefficient,
    store_ground_rate,
)
from liedyn.kernels.series.higher_order_inverse import (
    add_rotor_series_less_passive,
    force_series,
    inverse_series_memory,
    inverse_series_work,
    store_ground_series,
    twist_series,
)
from liedyn.kernels.series.taylor import scale_rows, to_series
from liedyn.kernels.series.wrench_series import LINK, wrench_series_work
from liedyn.lie.lanes import WIDTH, maximum
from liedyn.spans import span


@primitive
def inverse(limbs, K, q, v, passive, rubs, tau, m):
    """Coefficients 0 … K - 2 of tau (K - 1 rows of nv) from those of v (nv series of K)."""
    trunk, n, length = limbs.trunk, limbs.n, limbs.n - FIRST
    work, m = inverse_series_work(m, trunk.parent.size, limbs.nv, K)
    (wide,), r = in_lanes(m), rows_of(limbs)
    Q, V, Tau = span(wide, 0, r), span(wide, r, K * r), span(wide, (K + 1) * r, (K - 1) * r)
    rest = span(wide, 2 * K * r, wide.shape[0] - 2 * K * r)
    to_lanes(limbs, q, limbs.of_q, Q)
    series_to_lanes(limbs, K, v, V)
    unloaded, all_unloaded = none_given(m, n, K), none_given(wide, n, K)
    store_ground_series(trunk, K, work.V)
    twist_series(trunk, 1, K, q, v, work)
    for g in range(limbs.groups):
        tree, (inner, rest) = chains_of(limbs, g), inverse_series_work(rest, n, length, K)
        (Qg,), (Vg,), (Taug,) = group_of(limbs, g, Q), group_of(limbs, g, V), group_of(limbs, g, Tau)
        from_trunk(limbs, g, 6 * K, work.V, inner.V)
        twist_series(tree, FIRST, K, Qg, Vg, inner)
        force_series(tree, FIRST, K, all_unloaded, Taug, inner)
        add_rotor_series_less_passive(tree, K, Qg, Vg, passive, rubs, Taug, inner)
        add_to_trunk(limbs, g, 6 * K, inner.G, work.G)
    force_series(trunk, 1, K, unloaded, tau, work)
    add_rotor_series_less_passive(trunk, K, q, v, passive, rubs, tau, work)       # spoils the limbs' coordinates, written next
    rows_from_lanes(limbs, K - 1, Tau, tau)


@primitive
def forward(limbs, K, none, q, v, a, tau, passive, rubs, m):
    """Coefficients 0 … K - 2 of a from those of tau (K - 1 rows of nv). Returns a positive number if an articulated inertia
    vanishes; none: the mask of no prescribed coordinate."""
    trunk, n, nv, length = limbs.trunk, limbs.n, limbs.nv, limbs.n - FIRST
    work, factors, m = hybrid_series_work(m, trunk.parent.size, nv, K)
    (wide,), r = in_lanes(m), rows_of(limbs)
    Q, V, Tau, A = span(wide, 0, r), span(wide, r, r), span(wide, 2 * r, (K - 1) * r), span(wide, (K + 1) * r, (K - 1) * r)
    memory = span(wide, 2 * K * r, wide.shape[0] - 2 * K * r)
    to_lanes(limbs, q, limbs.of_q, Q)
    to_lanes(limbs, v, limbs.of_v, V)
    rows_to_lanes(limbs, K - 1, tau, Tau)
    unloaded, all_unloaded = none_given(m, n, K), none_given(wide, n, K)
    store_ground_series(trunk, K, work.V)
    store_coefficient(K, 0, v, work.v)
    begin(trunk, 1, K, q, work)
    deficit, rest = -1.0, memory
    for g in range(limbs.groups):
        tree, (inner, parts, rest) = chains_of(limbs, g), hybrid_series_work(rest, n, length, K)
        (Qg,), (Vg,) = group_of(limbs, g, Q), group_of(limbs, g, V)
        from_trunk(limbs, g, 6 * K, work.V, inner.V)
        store_coefficient(K, 0, Vg, inner.v)
        begin(tree, FIRST, K, Qg, inner)
        deficit = maximum(deficit, factor(tree, FIRST, none, inner, parts))
        add_to_trunk(limbs, g, 21, inner.AI, work.AI)
    deficit = maximum(deficit, factor(trunk, 1, none, work, factors))
    for k in range(K - 1):
        x, force = span(a, k * nv, nv), span(tau, k * nv, nv)
        rest = memory
        for g in range(limbs.groups):
            tree, (inner, parts, rest) = chains_of(limbs, g), hybrid_series_work(rest, n, length, K)
            (Qg,), (Taug,), (Ag,) = group_of(limbs, g, Q), group_of(limbs, g, Tau), group_of(limbs, g, A)
            if passive:
                passive_series(tree, K, k, Qg, inner.v, rubs, inner.rub, parts.passive)
            gather_bias(tree, FIRST, K, k, none, passive, span(Ag, k * length, length), span(Taug, k * length, length),
                        all_unloaded, inner, parts)
            add_to_trunk(limbs, g, 6, inner.AB, work.AB)
        if passive:
            passive_series(trunk, K, k, q, work.v, rubs, work.rub, factors.passive)
        gather_bias(trunk, 1, K, k, none, passive, x, force, unloaded, work, factors)
        store_ground_rate(k, work)
        distribute(trunk, 1, K, k, none, passive, x, force, work, factors)
        store_coefficient(K, k + 1, x, work.v)
        rest = memory
        for g in range(limbs.groups):
            tree, (inner, parts, rest) = chains_of(limbs, g), hybrid_series_work(rest, n, length, K)
            (Taug,), (Ag,) = group_of(limbs, g, Tau), group_of(limbs, g, A)
            from_trunk(limbs, g, 6, work.dV, inner.dV)
            distribute(tree, FIRST, K, k, none, passive, span(Ag, k * length, length), span(Taug, k * length, length),
                       inner, parts)
            store_coefficient(K, k + 1, span(Ag, k * length, length), inner.v)
    rows_from_lanes(limbs, K - 1, A, a)
    return deficit


@primitive
def none_given(memory, n, K):
    """No external wrenches, of numbers as in `memory`."""
    return wrench_series_work(span(memory, 0, 0), n, 0, K, LINK, False)


# from Python ------------------------------------------------------------------------------------------------------
def inverse_of_limbs_memory(groups, n, trunk, nv, K):
    length = n - FIRST
    scalar = nv * K + inverse_series_memory(trunk, nv, K)
    return scalar + WIDTH + WIDTH * groups * (2 * K * length + inverse_series_memory(n, length, K))


def forward_of_limbs_memory(groups, n, trunk, nv, K):
    length = n - FIRST
    scalar = 2 * nv * (K - 1) + hybrid_series_memory(trunk, nv, K)
    return scalar + WIDTH + WIDTH * groups * (2 * K * length + hybrid_series_memory(n, length, K))


@entry("i8(f8[::1], f8[::1], f8[:,::1], b1, f8[:,::1])")
def higher_order_inverse_of_limbs(array, q, v, passive, tau):
    """One state without external wrenches: v (K, nv), tau (K - 1, nv)."""
    limbs, K = limbs_of(array), v.shape[0]
    nq, nv, m = limbs.nq, limbs.nv, limbs.scratch
    if K < 2 or q.size != nq or v.shape[1] != nv or tau.shape[1] != nv or tau.shape[0] != K - 1:
        return SHAPE
    x, series, Tau = v.reshape(K * nv), span(m, 0, K * nv), tau.reshape((K - 1) * nv)
    code = bad_configuration(limbs.trunk, q, nq)
    if code == OK and not finite(x, nv * K):
        code = BAD_V
    if code != OK:
        return code
    to_series(x, K, nv, series)
    inverse(limbs, K, q, series, passive and limbs.passive, limbs.rubs, Tau, span(m, K * nv, m.size - K * nv))
    scale_rows(Tau, K - 1, nv, True)
    return OK if finite(Tau, nv * (K - 1)) else BAD_RESULT


@entry("i8(f8[::1], b1[::1], f8[::1], f8[::1], f8[:,::1], f8[:,::1], b1)")
def higher_order_forward_of_limbs(array, none, q, v, a, tau, passive):
    """One state without external wrenches: a and tau (K - 1, nv)."""
    limbs, K = limbs_of(array), tau.shape[0] + 1
    nq, nv, m = limbs.nq, limbs.nv, limbs.scratch
    rows = nv * (K - 1)
    if K < 2 or q.size != nq or v.size != nv or none.size != nv or tau.shape[1] != nv or a.shape[1] != nv or a.shape[0] != K - 1:
        return SHAPE
    A, Tau, given, out = span(m, 0, rows), span(m, rows, rows), tau.reshape(rows), a.reshape(rows)
    for k in range(rows):
        A[k], Tau[k] = 0.0, given[k]
    code = series_of(limbs.trunk, K, none, q, v, A, Tau)
    if code == OK and forward(limbs, K, none, q, v, A, Tau, passive and limbs.passive, limbs.rubs,
                              span(m, 2 * rows, m.size - 2 * rows)) > 0.0:
        code = SINGULAR
    if code == OK:
        code = derivatives_of(K, A, Tau)
    if code == OK:
        for k in range(rows):
            out[k] = A[k]
    return code
