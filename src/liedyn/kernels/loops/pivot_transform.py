"""Coordinates that are prescribed (u) among others (v): the principal pivot transform of M over v,

    U_vv = M_vv^-1,   U_uv = M_uv U_vv,   U_vu = -U_uv^T,   U_uu = M_uu + M_uv U_vu,

which takes forces of v and accelerations of u to accelerations of v and forces of u."""
from liedyn.jit import apart, primitive
from liedyn.kernels.derivatives.limb_sweep import from_the_ground, sweep_limbs
from liedyn.kernels.derivatives.mass_sweep import solve_by_rows, sweep


@primitive
def of_one_state(tree, prescribed, ways, M, sides, F, order, A, rows):
    deficit = sweep(tree, prescribed, ways, M, F, A, rows)
    solve_by_rows(ways, sides, A, rows)
    return deficit


@apart("sides", one=of_one_state, eight=primitive)
def pivot_transform(tree, prescribed, ways, M, sides, F, order, A, rows):
    """U, first in A, from M by columns, read where a row hangs on the column. M follows in A after `rows` rows: of one state all
    of it, zero before; of eight it stands there already, and E of `limb_sweep` takes its place.

    sides (4 nv): the first, x, becomes M_vv^-1 x where not prescribed; for the other three, of eight states alone, see
    `from_the_ground`. What stands on different ground is not written. F (3 nv), order (nv) and of one state the last two matrices
    in A are scratch. Returns a positive number if a pivot is below where it is rounding."""
    deficit = sweep_limbs(tree, prescribed, ways, M, sides, F, order)
    from_the_ground(tree, prescribed, ways, sides, A, rows)
    return deficit
