"""Energy, momentum, centre of mass, after `kinematics` with twists."""
from liedyn.jit import entry, kernel
from liedyn.joints.passive import spring_energy
from liedyn.joints.tree import tree_of
from liedyn.kernels.checks import BAD_RESULT, OK, finite, take_state
from liedyn.kernels.recursions.kinematics import TWISTS, kinematics, kinematics_memory, kinematics_work
from liedyn.lie.blocks import unpack
from liedyn.lie.inertia import momentum
from liedyn.lie.lanes import WIDTH, load, number_like, store
from liedyn.lie.rows import load3, load_pose, load_rigid, load_twist, store_twist
from liedyn.lie.se3 import add, dAd_inv, dot, zero6
from liedyn.lie.vec3 import add3, dot3, rotate, scale3
from liedyn.seam.views import carve


@kernel
def energy(tree, q, v, passive, work, out):
    """out (2): kinetic energy, rotors included; potential energy of gravity (zero at the origin) and, where `passive`, springs.

    Source: K1 (14)-(19); PBP (32), (39), (58)."""
    zero = number_like(q, 0.0)
    kinetic, potential = zero, zero
    g = load3(tree.dV0, 3)                                        # minus the acceleration of gravity
    for i in range(1, tree.parent.size):
        I, V, (R, p) = load_rigid(tree.I, i), load_twist(work.V, i), load_pose(work.T, i)
        kinetic = kinetic + 0.5 * dot(momentum(I, V), V)
        potential = potential + dot3(g, add3(scale3(I[0], p), rotate(R, I[1])))
    for k in range(tree.armature.shape[0]):
        x = load(v, k)
        kinetic = kinetic + 0.5 * load(tree.armature, k) * x * x
    store(out, 0, kinetic)
    if passive:
        potential = potential + spring_energy(tree, q)
    store(out, 1, potential)


@kernel
def total_momentum(tree, work, out):
    """out (6): momentum [angular; linear] of all bodies about the world's origin, world axes (K1 (23), (24))."""
    zero = number_like(work.V, 0.0)
    h = zero6(zero)
    for i in range(1, tree.parent.size):
        h = add(h, dAd_inv(load_pose(work.T, i), momentum(load_rigid(tree.I, i), load_twist(work.V, i))))
    store_twist(out, 0, h)


@kernel
def centre_of_mass(tree, work, out):
    """out (3): in the world; of the moving bodies."""
    zero = number_like(work.T, 0.0)
    mass, h = zero, (zero, zero, zero)
    for i in range(1, tree.parent.size):
        I, (R, p) = load_rigid(tree.I, i), load_pose(work.T, i)
        mass = mass + I[0]
        h = add3(h, add3(scale3(I[0], p), rotate(R, I[1])))
    for k in range(3):
        store(out, k, h[k] / mass)


# from Python ------------------------------------------------------------------------------------------------------
def energy_memory(n, nq, nv, nl): return kinematics_memory(n) + nq + nv + 11


@entry("i8(i8[::1], f8[::1], f8[:,::1], f8[:,::1], f8[:,::1], b1, f8[:,::1], i8, i8)", nogil=True)
def totals(index, constants, memory, q, v, passive, out, first, last):
    """out (N, 11) of states first … last - 1: kinetic and potential energy, momentum (6), centre of mass (3)."""
    n, nq, nv = index[0], index[1], index[2]
    tree, (Q, v1, sums, m) = tree_of(index, constants), carve(memory, (nq, nv, 11))
    work = kinematics_work(m, n)
    for k in range(first, last, WIDTH):
        code = take_state(tree, q, v, k, Q, v1)
        if code != OK:
            return code
        kinematics(tree, Q, v1, v1, TWISTS, work)
        energy(tree, Q, v1, passive, work, sums[:2])
        total_momentum(tree, work, sums[2:8])
        centre_of_mass(tree, work, sums[8:11])           # not finite where nothing has mass
        if not finite(sums[:8]):
            return BAD_RESULT
        unpack(sums, out, k)
    return OK
