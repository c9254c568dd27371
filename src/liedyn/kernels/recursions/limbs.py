"""Inverse and forward dynamics of one state with the limbs side by side (see `joints.limbs`): the passes of `newton_euler` and
`hybrid`, first over the trunk and then over the limbs, and backward over the limbs first."""
from liedyn.jit import entry, primitive
from liedyn.joints.limbs import (
    FIRST,
    HUNG_ON,
    add_to_trunk,
    chains_of,
    from_lanes,
    from_trunk,
    group_of,
    in_lanes,
    limbs_of,
    rows_of,
    to_lanes,
)
from liedyn.joints.passive import passive_force
from liedyn.kernels.checks import BAD_RESULT, OK, SHAPE, bad_motion, finite
from liedyn.kernels.recursions.hybrid import bad_input, eliminate, hybrid_work, solved, substitute, twists
from liedyn.kernels.recursions.newton_euler import add_rotors_less_passive, forces, motions, newton_euler_work, store_ground
from liedyn.lie.lanes import largest, maximum
from liedyn.spans import span


@primitive
def forward(limbs, none, q, v, a, tau, passive):
    """Writes a; none: the mask of no prescribed coordinate. Returns a positive number if an articulated inertia vanishes."""
    trunk, m = limbs.trunk, limbs.scratch
    n, nv = trunk.parent.size, limbs.nv
    work = hybrid_work(m, n, nv)
    Q, V, Tau, A, memory = lanes_of(limbs)
    to_lanes(limbs, q, limbs.of_q, Q)
    to_lanes(limbs, v, limbs.of_v, V)
    to_lanes(limbs, tau, limbs.of_v, Tau)
    store_ground(trunk, q, work.V, work.dV)
    if passive:
        passive_force(trunk, q, v, work.passive)
    twists(trunk, 1, q, v, work)
    deficit = -1.0
    for g in range(limbs.groups):
        tree, inner = chains_of(limbs, g), hybrid_of_chains(limbs, g, memory)
        (Qg,), (Vg,) = group_of(limbs, g, Q), group_of(limbs, g, V)
        (Taug,), (Ag,) = group_of(limbs, g, Tau), group_of(limbs, g, A)
        from_trunk(limbs, g, 6, work.V, inner.V)
        if passive:
            passive_force(tree, Qg, Vg, inner.passive)
        twists(tree, FIRST, Qg, Vg, inner)
        worse = eliminate(tree, FIRST, none, Vg, passive, Ag, Taug, span(Qg, 0, 0), inner)
        deficit = maximum(deficit, largest(worse))
        add_to_trunk(limbs, g, 21, inner.AI, work.AI)
        add_to_trunk(limbs, g, 6, inner.AB, work.AB)
    deficit = maximum(deficit, eliminate(trunk, 1, none, v, passive, a, tau, span(q, 0, 0), work))
    substitute(trunk, 1, none, v, passive, a, tau, work)
    for g in range(limbs.groups):
        tree, inner = chains_of(limbs, g), hybrid_of_chains(limbs, g, memory)
        (Vg,), (Taug,), (Ag,) = group_of(limbs, g, V), group_of(limbs, g, Tau), group_of(limbs, g, A)
        from_trunk(limbs, g, 6, work.dV, inner.dV)
        substitute(tree, FIRST, none, Vg, passive, Ag, Taug, inner)
    from_lanes(limbs, A, a)
    return deficit


@primitive
def inverse(limbs, q, v, a, passive, tau):
    """Writes tau."""
    trunk, m = limbs.trunk, limbs.scratch
    n, nv = trunk.parent.size, limbs.nv
    work = newton_euler_work(m, n, nv)
    Q, V, A, Tau, memory = lanes_of(limbs)
    to_lanes(limbs, q, limbs.of_q, Q)
    to_lanes(limbs, v, limbs.of_v, V)
    to_lanes(limbs, a, limbs.of_v, A)
    store_ground(trunk, q, work.V, work.dV)
    motions(trunk, 1, q, v, a, work)
    for g in range(limbs.groups):
        tree, inner = chains_of(limbs, g), newton_euler_of_chains(limbs, g, memory)
        (Qg,), (Vg,) = group_of(limbs, g, Q), group_of(limbs, g, V)
        (Ag,), (Taug,) = group_of(limbs, g, A), group_of(limbs, g, Tau)
        from_trunk(limbs, g, 6, work.V, inner.V)
        from_trunk(limbs, g, 6, work.dV, inner.dV)
        motions(tree, FIRST, Qg, Vg, Ag, inner)
        forces(tree, FIRST, span(Qg, 0, 0), Taug, inner)
        add_rotors_less_passive(tree, Qg, Vg, Ag, passive, Taug, inner.passive)
        add_to_trunk(limbs, g, 6, span(inner.F, 6 * HUNG_ON, 6), work.F)
    forces(trunk, 1, span(q, 0, 0), tau, work)
    add_rotors_less_passive(trunk, q, v, a, passive, tau, work.passive)     # spoils the limbs' coordinates, written next
    from_lanes(limbs, Tau, tau)


@primitive
def lanes_of(limbs):
    """Four arrays of coordinates, of which the kernels write the last only, and the rest of the scratch. They stand behind the
    larger of the works of the trunk: at the same place for both kernels, so that what drives massless bodies stays zero."""
    first = 51 * limbs.trunk.parent.size + 9 * limbs.nv
    (m,), k = in_lanes(span(limbs.scratch, first, limbs.scratch.size - first)), rows_of(limbs)
    return span(m, 0, k), span(m, k, k), span(m, 2 * k, k), span(m, 3 * k, k), span(m, 4 * k, m.shape[0] - 4 * k)


@primitive
def hybrid_of_chains(limbs, g, memory):
    n, nv = limbs.n, limbs.n - FIRST
    size = 51 * n + 9 * nv
    return hybrid_work(span(memory, g * size, size), n, nv)


@primitive
def newton_euler_of_chains(limbs, g, memory):
    n, nv = limbs.n, limbs.n - FIRST
    size = 30 * n + nv
    return newton_euler_work(span(memory, g * size, size), n, nv)


# from Python ------------------------------------------------------------------------------------------------------
@entry("i8(f8[::1], b1[::1], f8[::1], f8[::1], f8[::1], f8[::1], b1)")
def forward_of_limbs(array, none, q, v, a, tau, passive):
    """One state without external wrenches. Returns a code of `checks`."""
    limbs = limbs_of(array)
    nq, nv = limbs.nq, limbs.nv
    if q.size != nq or v.size != nv or a.size != nv or tau.size != nv or none.size != nv:
        return SHAPE
    code = bad_input(limbs.trunk, none, q, v, a, tau, nq, nv)
    if code != OK:
        return code
    return solved(forward(limbs, none, q, v, a, tau, passive and limbs.passive), a, tau, nv)


@entry("i8(f8[::1], f8[::1], f8[::1], f8[::1], b1, f8[::1])")
def inverse_of_limbs(array, q, v, a, passive, tau):
    limbs = limbs_of(array)
    nq, nv = limbs.nq, limbs.nv
    if q.size != nq or v.size != nv or a.size != nv or tau.size != nv:
        return SHAPE
    code = bad_motion(limbs.trunk, q, v, a, nq, nv)
    if code != OK:
        return code
    inverse(limbs, q, v, a, passive and limbs.passive, tau)
    return OK if finite(tau, nv) else BAD_RESULT
