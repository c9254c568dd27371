"""Derivatives of robots that float: columns that are known beforehand (floating_columns), where they
are and where they are not, against -M^-1 times the derivatives of inverse dynamics, which know nothing of it.

Tolerances: rounding times the condition of M."""
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

import liedyn as ld
from bridge import relative
from liedyn.dynamics.batching import threads
from liedyn.model.description import WORLD, Coordinate, Joint, Robot
from rounding import assert_same
from zoo import random_link, random_pose, state

GRAVITY = (0.3, -1.2, -9.0)


def robot(*roots, coordinates=()):
    """A tree on the ground for each of `roots`, a joint's type: a body with three limbs, of three, two and one joints."""
    rng = np.random.default_rng(7)
    links, joints = [], []
    for tree, kind in enumerate(roots):
        base = f"base{tree}"
        links.append(random_link(rng, base))
        axes = ((0.0, 0.6, 0.8),) if kind == "revolute" else ()
        joints.append(Joint(f"root{tree}", kind, WORLD, base, random_pose(rng), axes=axes, coordinates=coordinates or ()))
        for limb in range(3):
            parent = base
            for k in range(3 - limb):
                name = f"link{tree}{limb}{k}"
                links.append(random_link(rng, name))
                joints.append(Joint(f"joint{name}", "revolute", parent, name, random_pose(rng), axes=((0.0, 0.6, 0.8),),
                                    coordinates=(Coordinate(armature=0.1, damping=0.3),)))
                parent = name
    return ld.build(Robot("floating", tuple(links), tuple(joints), gravity=GRAVITY))


RESISTING = tuple(Coordinate(damping=0.2 * k, friction=0.1) for k in range(6))
ROTORS = tuple(Coordinate(armature=0.1 * k) for k in range(6))
MODELS = {
    "one": (robot("free"), 1), "two": (robot("free", "free"), 2), "among others": (robot("revolute", "free", "ball", "free"), 2),
    "ball": (robot("ball"), 0), "resisting": (robot("free", coordinates=RESISTING), 0),
    "rotors": (robot("free", coordinates=ROTORS), 0),
}
EVERY = pytest.mark.parametrize("name", MODELS)
SIZES = pytest.mark.parametrize("size", [(), (11,)], ids=["float64", "Lanes"])


def masks(nv):
    rng = np.random.default_rng(3)
    k = np.arange(nv)
    return [k < 0, k == 1, k == 4, k == 9, k % 7 == 6, k >= 6, k < 6, rng.random(nv) < 0.3]


@EVERY
@SIZES
def test_what_calls_leave_in_the_scratch_reaches_no_result(name, size):
    """NaN of calls that were errors, and numbers of other masks."""
    model, _ = MODELS[name]
    q, v, a, tau = state(model, 5, size)

    def all_of_them(order):
        found = {}
        for k in order:
            with pytest.raises(ld.ComputationError, match="not finite"):
                ld.inverse_dynamics_derivatives(model, q, v * 1e306, a)
            with pytest.raises(ld.ComputationError, match="not finite"):
                ld.forward_dynamics_derivatives(model, q, v * 1e306, tau)
            found[k] = [x.copy() for x in ld.hybrid_dynamics_derivatives(model, q, v, a, tau, given[k])]
        return found
    given = masks(model.nv)
    there, back = all_of_them(range(len(given))), all_of_them(reversed(range(len(given))))
    for k, result in there.items():
        for x, y in zip(result, back[k], strict=True):
            assert_same(x, y)


@EVERY
def test_threads_do_not_matter(name, monkeypatch):
    """A batch in parts; and single calls and batches of any mask from eight threads of Python at once."""
    model, _ = MODELS[name]
    states = {size: state(model, 6, size) for size in ((), (45,))}
    jobs = [(size, mask) for size in states for mask in masks(model.nv)]

    def solve(job):
        size, mask = job
        q, v, a, tau = states[size]
        hybrid = ld.hybrid_dynamics_derivatives(model, q, v, a, tau, mask)[:3]
        return *hybrid, *ld.forward_dynamics_derivatives(model, q, v, tau), *ld.inverse_dynamics_derivatives(model, q, v, a)

    expected = [solve(job) for job in jobs]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(solve, jobs * 10))
    monkeypatch.setattr(threads, "_MIN_WORK_PER_THREAD", 1)
    monkeypatch.setattr(threads, "cores", lambda: 3)
    found += [solve(job) for job in jobs]
    for k, result in enumerate(found):
        for x, y in zip(result, expected[k % len(jobs)], strict=True):
            assert_same(x, y)


def by_inverse(model, q, v, a, mask, f_ext, passive):
    """dy by q, v and u from inverse dynamics' derivatives at the solution a, for one state; by dense linear algebra."""
    at, w = ld.inverse_dynamics_derivatives(model, q, v, a, f_ext=f_ext, passive=passive), ~mask
    unit = np.eye(model.nv)
    Du = np.where(mask, at.M, -unit)
    for D in (at.dtau_dq, at.dtau_dv, Du):
        y = np.zeros_like(D)
        y[w] = np.linalg.solve(at.M[np.ix_(w, w)], -D[w])
        y[mask] = D[mask] + at.M[np.ix_(mask, w)] @ y[w]
        yield y


@SIZES
@EVERY
@pytest.mark.parametrize("passive", [True, False])
def test_columns_of_what_floats(name, size, passive, worst):
    """Any mask: some touch the base. With external wrenches, which turn with their links."""
    model, _ = MODELS[name]
    q, v, a, tau = state(model, 4, size)
    F = np.random.default_rng(1).standard_normal((*size, len(model.link_names), 6))
    for mask in masks(model.nv):
        x = ld.hybrid_dynamics(model, q, v, a, tau, mask, f_ext=F, passive=passive)[0]
        found = [ld.hybrid_dynamics_derivatives(model, q, v, a, tau, mask, f_ext=F, passive=passive)[:3]]
        if not mask.any():
            found.append(ld.forward_dynamics_derivatives(model, q, v, tau, f_ext=F, passive=passive))
        for k in np.ndindex(size):
            expected = list(by_inverse(model, q[k], v[k], x[k], mask, F[k], passive))
            for result in found:
                for y, z in zip(result, expected, strict=True):
                    assert worst("derivatives of what floats", relative(y[k], z, 1.0), name) < 1e-11


@EVERY
def test_passive_or_not_and_masks_take_turns(name, worst):
    """What single calls keep of the last one is made anew where the mask, or what resists, is another."""
    model, _ = MODELS[name]
    q, v, a, tau = state(model, 4)
    for passive in (True, False, False, True):
        for mask in masks(model.nv)[:3]:
            for given, found in ((np.zeros(model.nv, bool), ld.forward_dynamics_derivatives(model, q, v, tau, passive=passive)),
                                 (mask, ld.hybrid_dynamics_derivatives(model, q, v, a, tau, mask, passive=passive)[:3])):
                x = ld.hybrid_dynamics(model, q, v, a, tau, given, passive=passive)[0]
                for y, z in zip(found, by_inverse(model, q, v, x, given, None, passive), strict=True):
                    assert worst("derivatives of what floats", relative(y, z, 1.0), name) < 1e-11


@SIZES
@EVERY
def test_known_columns_are_exact(name, size):
    """Zero, except for the linear accelerations of the base: no rounding; if nothing prescribed or passive touches the base."""
    model, floats = MODELS[name]
    q, v, a, tau = state(model, 4, size)
    exact = [joint for joint in model.joints if joint.type == "free"][:floats]
    mask = np.isin(np.arange(model.nv), [model.nv - 1])
    for by_q, by_v, *_ in (ld.forward_dynamics_derivatives(model, q, v, tau),
                           ld.hybrid_dynamics_derivatives(model, q, v, a, tau, mask)):
        for root in exact:
            k = root.v.start
            linear = np.isin(np.arange(model.nv), [k + 3, k + 4, k + 5])
            assert not by_q[..., k + 3:k + 6].any() and not by_q[..., ~linear, k:k + 3].any()
            assert not by_v[..., ~linear, k + 3:k + 6].any() and by_v[..., k:k + 3].any()
            for x in (by_q[..., linear, k:k + 3], by_v[..., linear, k + 3:k + 6]):
                assert x.any()
                np.testing.assert_array_equal(x, -x.swapaxes(-1, -2))


@SIZES
@EVERY
def test_nothing_depends_on_where_a_robot_floats(name, size):
    """No rounding, for any mask; and by its linear velocity, nothing where no acceleration of the base is prescribed."""
    model, floats = MODELS[name]
    q, v, a, tau = state(model, 4, size)
    for mask in masks(model.nv):
        y = ld.hybrid_dynamics_derivatives(model, q, v, a, tau, mask)
        for root in [joint for joint in model.joints if joint.type == "free"][:floats]:
            k = root.v.start
            assert not y.dy_dq[..., k + 3:k + 6].any()
            assert mask[k + 3:k + 6].any() or not np.delete(y.dy_dv[..., k + 3:k + 6], slice(k + 3, k + 6), -2).any()


def test_without_gravity_nothing_turns():
    weightless = ld.build(replace(MODELS["one"][0].description, gravity=(0.0, 0.0, 0.0)))
    q, v, _, tau = state(weightless, 4)
    assert not ld.forward_dynamics_derivatives(weightless, q, v, tau).da_dq[:, :6].any()
