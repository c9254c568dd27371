"""Shorter ways that lines take in place of a kernel's. Their results differ by rounding; loops would gain nothing by them."""
from __future__ import annotations

from functools import partial

import numpy as np

from liedyn.codegen.adjoint import adjoint
from liedyn.joints.kinds import SCREW
from liedyn.kernels.recursions.by_mass_matrix import mass_matrix_memory
from liedyn.kernels.recursions.hybrid import hybrid_memory
from liedyn.kernels.recursions.newton_euler import newton_euler_memory
from liedyn.lie.recorded import Recorded, Solution, load, load_pose, numbers, sincos, zeros

SHORT = 8           # coordinates from the ground on: forward dynamics by the mass matrix is 10 to 20% faster, from ten on slower


def complete_motion(plain, tree, prescribed, q, v, a, tau, f_ext, passive, work):
    """Of `kernels.recursions.hybrid`. plain: see `codegen.plain`."""
    tape = next((x.tape for x in (*q, *v, *tau) if isinstance(x, Recorded)), None)
    if tape is None or tape.solved is None or prescribed.all():
        return _motion(plain, tree, prescribed, q, v, a, tau, f_ext, passive, work)
    return _solved_motion(plain, tape, tree, prescribed, q, v, a, tau, f_ext, passive, work)


def _motion(plain, tree, prescribed, q, v, a, tau, f_ext, passive, work):
    """By the mass matrix where chains are short."""
    if _longest(tree) > SHORT:
        return plain("kernels.recursions.hybrid").hybrid(tree, prescribed, q, v, a, tau, f_ext, passive, work)
    kinematics, other = plain("kernels.recursions.kinematics"), plain("kernels.recursions.by_mass_matrix")
    kinematics.joint_poses(tree, q, work.T)
    kinematics.body_twists(tree, work.T, v, work.V)
    room = zeros(mass_matrix_memory(tree.parent.size, prescribed.size))
    return other.by_mass_matrix(tree, prescribed, q, v, a, tau, f_ext, passive, other.mass_matrix_work(room, prescribed.size))


def _solved_motion(plain, tape, tree, prescribed, q, v, a, tau, f_ext, passive, work):
    """Accelerations a_v that solve ID(q, v, a)_v = tau_v, where v is torque-specified. With x = M_vv^-1 of the derivatives of a
    cost by them, those by tau_v are x, those by q, v and what else ID rests on -x^T dID: half the operations of the way back
    through the solution."""
    free, given_tau = np.flatnonzero(~prescribed), tau.copy()
    deficit = -1.0
    if tape.known is None:
        deficit = _motion(plain, tree, prescribed, q, v, a, tau, f_ext, passive, work)
    else:
        a[free] = tape.known[free]
    a[free] = numbers([tape.copy(x) for x in a[free]])      # each belongs to one solution, also where evaluations share a result
    inverse, nv, n = plain("kernels.recursions.newton_euler"), len(v), tree.parent.size
    force, bodies = zeros(nv), inverse.newton_euler_work(zeros(newton_euler_memory(n, nv)), n, nv)
    inverse.newton_euler(tree, tree.J, q, v, a, f_ext, passive, force, bodies)
    work.V[:] = bodies.V
    tau[prescribed] = force[prescribed]
    still, at = tree._replace(dV0=zeros(6)), q.copy()                                      # the arrays are written to later
    given = _without_signs([*q, *v, *a[prescribed], *f_ext, *(x for part in tree for x in part)])
    ends = [*given, *a[free]]

    def back(shares):
        x, by = zeros(nv), zeros(nv)
        by[free] = numbers(shares)
        room = plain("kernels.recursions.hybrid").hybrid_work(zeros(hybrid_memory(n, nv)), n, nv)
        _motion(plain, still, prescribed, at, zeros(nv), x, by, f_ext[:0], False, room)
        of_forces = adjoint(tape, [(force[k], -x[k]) for k in free], ends)
        return [*((given_tau[k], x[k]) for k in free), *((y, of_forces(y)) for y in given)]
    tape.solved |= dict.fromkeys((x.k for x in a[free]), Solution(a[free], back))
    return deficit


def _without_signs(given) -> list[Recorded]:
    """Of the recorded numbers x in place of -x, as operations read them, and each once: two numbers may be one operation."""
    recorded = (-x if x.negated else x for x in given if isinstance(x, Recorded))
    return list({x.k: x for x in recorded}.values())


def _longest(tree) -> int:
    """Coordinates between the ground and the end of a chain."""
    depth: list[int] = []
    for above in tree.above:
        depth.append(1 + (depth[above] if above >= 0 else 0))
    return max(depth, default=0)


# Inertias of a screw turn about z before they are placed: this takes a third of the operations of a rotation, and places consist
# of zeros and ones where axes are parallel or at right angles. 7 to 17% of forward dynamics.
def inertia_to_parent(plain, tree, i, q, T, X):
    """Of `joints.motion`."""
    to_parent = plain("lie.inertia").to_parent
    if tree.kind[i] != SCREW:
        return to_parent(T, X)
    (s, c), (A, H, M) = _turn(tree, i, q), X
    return to_parent((load_pose(tree.T0, i)[0], T[1]), (_turned_symmetric(s, c, A), _turned(s, c, H), _turned_symmetric(s, c, M)))


def rigid_to_parent(plain, tree, i, q, T, I):
    """Of `joints.motion`."""
    to_parent = plain("lie.inertia").rigid_to_parent
    if tree.kind[i] != SCREW:
        return to_parent(T, I)
    (s, c), (m, h, A) = _turn(tree, i, q), I
    turned = m, (c * h[0] - s * h[1], s * h[0] + c * h[1], h[2]), _turned_symmetric(s, c, A)
    return to_parent((load_pose(tree.T0, i)[0], T[1]), turned)


def _turn(tree, i, q):
    return sincos(load(tree.S, 2 * i) * load(q, tree.iq[i]))


def _turned_symmetric(s, c, A):
    """R A R^T (xx, xy, xz, yy, yz, zz), where R turns about z. With k = s (xx - yy) + 2 c xy the rest follows from
    c^2 + s^2 = 1."""
    k = s * (A[0] - A[3]) + 2.0 * c * A[1]
    return A[0] - s * k, c * k - A[1], c * A[2] - s * A[4], A[3] + s * k, s * A[2] + c * A[4], A[5]


def _turned(s, c, H):
    """R H R^T, by rows: as of a symmetric one, with xy + yx in place of 2 xy."""
    k = s * (H[0] - H[4]) + c * (H[1] + H[3])
    return (H[0] - s * k, c * k - H[3], c * H[2] - s * H[5], c * k - H[1], H[4] + s * k, s * H[2] + c * H[5],
            c * H[6] - s * H[7], s * H[6] + c * H[7], H[8])


def ways(plain) -> dict[str, dict]:
    """Functions by module and name, for `codegen.plain`."""
    return {"kernels.recursions.hybrid": {"complete_motion": partial(complete_motion, plain)},
            "joints.motion": {f.__name__: partial(f, plain) for f in (inertia_to_parent, rigid_to_parent)}}
