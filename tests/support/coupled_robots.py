"""Random robots with mimic joints and couplings, and their reduction by hand."""
from dataclasses import replace

import numpy as np

import liedyn as ld
from liedyn.model.description import ONE_DOF, Coupling, Mimic
from zoo import random_robot


def coupled_robot(seed: int, base: str = "fixed", **options):
    """Return a model with a chain of two mimic joints, and a coupling of three other joints if there are so many."""
    rng = np.random.default_rng(seed)
    robot = random_robot(seed, 9, base=base, **options)
    single = [k for k, joint in enumerate(robot.joints) if joint.kind == ONE_DOF and len(joint.labels) == 1]
    rng.shuffle(single)
    driver, *followers = single[:3]
    joints = list(robot.joints)
    for follower in followers:
        joints[follower] = replace(joints[follower], mimic=Mimic(joints[driver].name, rng.uniform(-2, 2), rng.uniform(-1, 1)))
        driver = follower
    others = single[3:6]
    couplings = (Coupling("gears", tuple((joints[k].name, "", rng.uniform(-2, 2)) for k in others), rng.uniform(-1, 1)),)
    return ld.build(replace(robot, joints=tuple(joints), couplings=couplings if len(others) == 3 else ()))


def equations(model):
    """Return A (nc, nv) and the right-hand sides of A q = b, from the couplings as written."""
    rows, right = [], [coupling.offset for coupling in model.description.couplings]
    names = list(model.v_names)
    for coupling in model.description.couplings:
        row = np.zeros(model.nv)
        for joint, label, c in coupling.terms:
            row[names.index(f"{joint}.{label}" if label else joint)] = c
        rows.append(row)
    for joint in model.description.joints:
        if joint.mimic:
            row = np.zeros(model.nv)
            row[names.index(joint.name)], row[names.index(joint.mimic.joint)] = 1.0, -joint.mimic.multiplier
            rows.append(row)
            right.append(joint.mimic.offset)
    return np.array(rows), np.array(right)


def reduction(model):
    """Return G (nv, ny) and the independent coordinates, from the couplings as written."""
    independent = [model.v_names.index(name) for name in model.independent]
    G = np.zeros((model.nv, len(independent)))
    G[independent] = np.eye(len(independent))
    followers = np.setdiff1d(np.arange(model.nv), independent)
    A, _ = equations(model)
    G[followers] = -np.linalg.solve(A[:, followers], A[:, independent])
    return G, np.array(independent)


def coupled_state(model, G, seed: int, size=()):
    """Return q, v, a that satisfy the couplings, and generalized forces of all coordinates."""
    rng = np.random.default_rng(seed)
    q = ld.random_configuration(model, rng, size)
    dy, ddy = rng.standard_normal((2, *size, G.shape[1]))
    return q, dy @ G.T, ddy @ G.T, rng.standard_normal((*size, model.nv))
