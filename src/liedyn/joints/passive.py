"""Passive joint forces: damping, smoothed Coulomb friction, springs; and the energy of the springs."""
from liedyn.jit import primitive
from liedyn.joints.kinds import FRICTION_SPEED, NV, SCREW
from liedyn.lie.lanes import load, number_like, sqrt, store


@primitive
def resistance(tree, k, v):
    """Damping and friction of one coordinate: -d v - f v / sqrt(v^2 + v_s^2)."""
    x = load(v, k)
    return -(load(tree.damping, k) * x + load(tree.friction, k) * x / sqrt(x * x + FRICTION_SPEED * FRICTION_SPEED))


@primitive
def passive_force(tree, q, v, out):
    """Writes out (nv,): what springs, damping and friction add to tau."""
    for i in range(1, tree.parent.size):
        o = tree.iv[i]
        for k in range(o, o + NV[tree.kind[i]]):
            force = resistance(tree, k, v)
            if tree.kind[i] == SCREW:
                force = force - load(tree.stiffness, k) * (load(q, tree.iq[i]) - load(tree.rest, k))
            store(out, k, force)


@primitive
def resistance_slope(tree, k, v):
    """Minus the derivative of `resistance` by the velocity."""
    x, w = load(v, k), FRICTION_SPEED * FRICTION_SPEED
    r = 1.0 / (x * x + w)
    return load(tree.damping, k) + load(tree.friction, k) * w * r * sqrt(r)


@primitive
def resistance_curvature(tree, k, v):
    """The derivative of `resistance_slope` by the velocity."""
    x, w = load(v, k), FRICTION_SPEED * FRICTION_SPEED
    r = 1.0 / (x * x + w)
    return -3.0 * load(tree.friction, k) * w * x * r * r * sqrt(r)


@primitive
def spring_energy(tree, q):
    """Potential energy of all joint springs: 1/2 k (q - rest)^2."""
    energy = number_like(q, 0.0)
    for i in range(1, tree.parent.size):
        if tree.kind[i] == SCREW:
            k = tree.iv[i]
            x = load(q, tree.iq[i]) - load(tree.rest, k)
            energy = energy + 0.5 * load(tree.stiffness, k) * x * x
    return energy
