"""Dynamics of robots with mimic joints and couplings: against reduction by hand, constrained dynamics, Pinocchio, differences."""
import pickle
import re
from dataclasses import replace

import numpy as np
import pytest
from mpmath import mp

import liedyn as ld
from code_kinds import generated_code
from coupled_robots import coupled_robot, coupled_state, equations, reduction
from differences import by_each, by_q
from exact import exact, solve
from exact_motion import CoupledMotion
from liedyn.codegen.specialize import generic_kernels
from liedyn.model.description import Coupling, Joint, Mimic, Robot
from liedyn.model.links import Link

ROBOTS = {f"{base} {seed}": (seed, base) for seed in range(4) for base in ("fixed", "floating")}
EVERY = pytest.mark.parametrize("name", ROBOTS)
EVERY_CODE = pytest.mark.parametrize("name, code", [(name, "generic") for name in ROBOTS]
                                     + [("fixed 0", "generated"), ("floating 1", "generated")], indirect=["code"])
# A line for each mask and derivative of a robot of twenty coordinates takes seconds to compile: one robot, one mask.
EVERY_CODE_OF_DERIVATIVES = pytest.mark.parametrize(
    "name, code", [(name, "generic") for name in ROBOTS] + [("fixed 0", "generated")], indirect=["code"])
CODES = pytest.mark.parametrize("code", ["generic", "generated"], indirect=True)
SIZES = pytest.mark.parametrize("size", [(), (1,), (13,)], ids=["one", "batch of one", "batch"])


@pytest.fixture
def code(request):
    with generated_code() if request.param == "generated" else generic_kernels():
        yield request.param


def coupled(name):
    model = coupled_robot(*ROBOTS[name])
    return model, *reduction(model)


def close(x, y, tolerance=1e-11):
    np.testing.assert_allclose(x, y, rtol=0, atol=tolerance * max(1.0, np.abs(y).max(initial=0.0)))


def masks(model, G, independent):
    """Return masks: none, one driver, one follower, all, every second coordinate."""
    nv = model.nv
    followers = np.setdiff1d(np.arange(nv), independent)
    driver = independent[np.flatnonzero(G[followers[0]])[0]] if G[followers[0]].any() else independent[0]
    return [np.zeros(nv, bool), np.arange(nv) == driver, np.arange(nv) == followers[0], np.ones(nv, bool), np.arange(nv) % 2 == 0]


@EVERY
def test_the_robots_have_followers_that_move(name):
    model, G, independent = coupled(name)
    followers = np.setdiff1d(np.arange(model.nv), independent)
    assert len(followers) == model.nc >= 2 and np.abs(G[followers]).max() > 0.1
    elimination = model.elimination()
    close(elimination.projection[:, independent], G, 1e-14)
    assert np.array_equal(elimination.independent, independent)


@EVERY_CODE
@SIZES
def test_inverse_dynamics_are_those_of_the_tree_times_the_reduction(name, size, code):
    model, G, independent = coupled(name)
    q, v, a, _ = coupled_state(model, G, 1, size)
    f_ext = np.random.default_rng(2).standard_normal((*size, len(model.link_names), 6))
    for options in {}, {"f_ext": f_ext}, {"passive": False}:
        tau = ld.inverse_dynamics(model, q, v, a, **options)
        close(tau[..., independent], ld.inverse_dynamics(model.spanning_tree(), q, v, a, **options) @ G)
        assert not np.delete(tau, independent, axis=-1).any()


@EVERY_CODE
@SIZES
def test_forward_dynamics_are_those_of_constrained_dynamics(name, size, code):
    model, G, _ = coupled(name)
    q, v, _, tau = coupled_state(model, G, 3, size)
    a = ld.forward_dynamics(model, q, v, tau)
    M = G.T @ ld.mass_matrix(model, q) @ G
    force = (tau - ld.inverse_dynamics(model.spanning_tree(), q, v, np.zeros_like(v))) @ G
    by_hand = np.linalg.solve(M, force[..., None])[..., 0] @ G.T
    close(a, by_hand, 1e-10)
    close(a, ld.constrained_forward_dynamics(model, q, v, tau).a, 1e-8)
    assert ld.forward_dynamics(model, q, v, tau, out=(out := np.empty_like(a))) is out and np.array_equal(out, a)


@EVERY_CODE
@SIZES
def test_hybrid_dynamics_satisfy_the_reduced_equations_for_each_mask(name, size, code):
    model, G, independent = coupled(name)
    q, v, given, tau = coupled_state(model, G, 4, size)
    for mask in masks(model, G, independent):
        a, force = ld.hybrid_dynamics(model, q, v, np.where(mask, given, np.nan), np.where(mask, np.nan, tau), mask)
        close(a, a[..., independent] @ G.T, 1e-9)
        close(a[..., mask], given[..., mask], 1e-12)
        assert np.array_equal(force[..., ~mask], tau[..., ~mask])
        close((force - ld.inverse_dynamics(model.spanning_tree(), q, v, a)) @ G, np.zeros((*size, G.shape[1])), 1e-9)


@EVERY_CODE_OF_DERIVATIVES
def test_derivatives_are_those_of_differences(name, code):
    model, G, _ = coupled(name)
    q, v, a, tau = coupled_state(model, G, 5)
    N = model.elimination().projection

    def along(x):
        return ld.integrate(model, q, N @ x)

    def inverse(q, v, a):
        return ld.inverse_dynamics(model, q, v, a, passive=False)

    def forward(q, v, tau):
        return ld.forward_dynamics(model, q, v, tau, passive=False)
    d = ld.inverse_dynamics_derivatives(model, q, v, a, passive=False)
    close(d.dtau_dq, by_each(lambda x: inverse(along(x), v, a), model.nv), 1e-8)
    close(d.dtau_dv, by_each(lambda x: inverse(q, v + N @ x, a), model.nv), 1e-8)
    close(d.M, by_each(lambda x: inverse(q, v, a + N @ x), model.nv), 1e-8)
    second = ld.inverse_dynamics_second_derivatives(model, q, v, a)
    smooth = ld.inverse_dynamics_second_derivatives(model, q, v, a, passive=False)
    close(smooth.dqdq, by_each(lambda x: ld.inverse_dynamics_derivatives(model, along(x), v, a).dtau_dq, model.nv), 1e-8)
    close(smooth.dqdv, by_each(lambda x: ld.inverse_dynamics_derivatives(model, q, v + N @ x, a).dtau_dq, model.nv), 1e-8)
    d = ld.forward_dynamics_derivatives(model, q, v, tau, passive=False)
    close(d.da_dq, by_each(lambda x: forward(along(x), v, tau), model.nv, 0.005), 1e-6)
    close(d.da_dv, by_each(lambda x: forward(q, v + N @ x, tau), model.nv, 0.005), 1e-6)
    close(d.M_inverse, by_each(lambda x: forward(q, v, tau + x), model.nv), 1e-7)
    # passive forces: those of the tree, reduced
    tree = model.spanning_tree()
    for all_, smooth_, of_tree, of_smooth_tree in zip(
            ld.inverse_dynamics_derivatives(model, q, v, a), ld.inverse_dynamics_derivatives(model, q, v, a, passive=False),
            ld.inverse_dynamics_derivatives(tree, q, v, a), ld.inverse_dynamics_derivatives(tree, q, v, a, passive=False),
            strict=True):
        close(all_ - smooth_, N.T @ (of_tree - of_smooth_tree) @ N, 1e-9)
    close(second.dvdv - smooth.dvdv, np.einsum("ijk,ia,jb,kc->abc", ld.inverse_dynamics_second_derivatives(tree, q, v, a).dvdv
          - ld.inverse_dynamics_second_derivatives(tree, q, v, a, passive=False).dvdv, N, N, N), 1e-9)


@EVERY_CODE_OF_DERIVATIVES
def test_hybrid_derivatives_and_directions_are_those_of_differences(name, code):
    model, G, independent = coupled(name)
    q, v, a, tau = coupled_state(model, G, 6)
    dq, dv, da, dtau = coupled_state(model, G, 7)[1], *coupled_state(model, G, 8)[1:]
    for mask in masks(model, G, independent)[0 if code == "generic" else -1:]:
        def results(s, mask=mask):
            x, y = ld.hybrid_dynamics(model, ld.integrate(model, q, s * dq), v + s * dv, a + s * da, tau + s * dtau, mask,
                                      passive=False)
            return np.stack([x, y])
        along = by_each(lambda s: results(s[0]), 1, 0.003)[..., 0]
        d = ld.hybrid_dynamics_derivatives(model, q, v, a, tau, mask, passive=False)
        of_output = d.dy_dq @ dq + d.dy_dv @ dv + d.dy_du @ np.where(mask, da, dtau)
        close(of_output, np.where(mask, along[1], along[0]), 1e-5)
        *_, by_a, by_tau = ld.hybrid_dynamics_directional(model, q, v, a, tau, mask, dq=dq, dv=dv, da=da, dtau=dtau,
                                                           passive=False)
        close(np.stack([by_a, by_tau])[:, ~mask], along[:, ~mask], 1e-5)
        close(np.where(mask, by_tau, by_a), of_output, 1e-9)
    _, by_inverse = ld.inverse_dynamics_directional(model, q, v, a, dq=dq, dv=dv, da=da)
    d = ld.inverse_dynamics_derivatives(model, q, v, a)
    close(by_inverse, d.dtau_dq @ dq + d.dtau_dv @ dv + d.M @ da, 1e-10)


@pytest.mark.parametrize("name", ["fixed 0", "floating 1"])
@pytest.mark.parametrize("of", ["inverse", "forward", "hybrid"])
def test_parameter_derivatives_are_differences_of_changed_robots(name, of):
    model, G, independent = coupled(name)
    q, v, a, tau = coupled_state(model, G, 9)
    mask = np.arange(model.nv) % 2 == 0
    link = next(link.name for link in reversed(model.description.links) if link.mass)
    joint = model.v_names[np.setdiff1d(np.arange(model.nv), independent)[0]]

    def result(step):
        changed = model.with_changes(mass={link: model.description.links[model.link_index(link)].mass + step[0]},
                                     armature={joint: 1.0 + step[1]}, damping={joint: 1.0 + step[2]})
        if of == "inverse":
            return ld.inverse_dynamics(changed, q, v, a)
        x, y = ld.hybrid_dynamics(changed, q, v, a, tau, mask if of == "hybrid" else np.zeros_like(mask))
        return np.where(mask, y, x) if of == "hybrid" else x
    changed = model.with_changes(armature={joint: 1.0}, damping={joint: 1.0})
    derivatives = ld.parameter_derivatives(changed, q, v, {"inverse": a, "forward": tau}.get(of, np.where(mask, a, tau)),
                                           [f"mass.{link}", f"armature.{joint}", f"damping.{joint}"], of=of,
                                           **{"prescribed": mask} if of == "hybrid" else {})
    close(derivatives, by_each(result, 3, 1e-3), 1e-7)


@EVERY
@pytest.mark.parametrize("size", [(), (3,)], ids=["one", "batch"])
def test_higher_orders_invert_each_other(name, size):
    model, G, independent = coupled(name)
    q, v, *_ = coupled_state(model, G, 10, size)
    rng = np.random.default_rng(11)
    a, tau = rng.standard_normal((*size, 3, G.shape[1])) @ G.T, rng.standard_normal((*size, 3, model.nv))
    N = model.elimination().projection
    motion = np.concatenate([v[..., None, :], a], axis=-2)
    force = ld.higher_order_inverse_dynamics(model, q, motion)
    close(force, ld.higher_order_inverse_dynamics(model.spanning_tree(), q, motion) @ N)
    close(ld.higher_order_forward_dynamics(model, q, v, force), a, 1e-6)
    of_order_0 = ld.higher_order_forward_dynamics(model, q, v, tau[..., :1, :])[..., 0, :]
    close(of_order_0, ld.forward_dynamics(model, q, v, tau[..., 0, :]), 1e-9)
    for mask in masks(model, G, independent):
        x, y = ld.higher_order_hybrid_dynamics(model, q, v, np.where(mask, a, np.nan), np.where(mask, np.nan, tau), mask)
        again = ld.higher_order_inverse_dynamics(model, q, np.concatenate([v[..., None, :], x], axis=-2))
        close(y @ N, again, 1e-6)
        close(x[..., mask], a[..., mask], 1e-12)
        assert np.array_equal(y[..., ~mask], tau[..., ~mask])


def test_the_frames_of_a_floating_base_and_of_wrenches_are_those_of_the_tree():
    model, G, _ = coupled("floating 2")
    q, v, *_ = coupled_state(model, G, 12)
    rng = np.random.default_rng(13)
    F, tau = rng.standard_normal((2, len(model.link_names), 6)), rng.standard_normal((2, model.nv))
    options = {"base_frame": "world", "f_ext_derivatives": F, "f_ext_frame": "local_world_aligned"}
    a = ld.higher_order_forward_dynamics(model, q, v, tau, **options)
    again = ld.higher_order_inverse_dynamics(model, q, np.concatenate([v[None], a]), **options)
    close(again, tau @ model.elimination().projection, 1e-8)


@EVERY
def test_base_parameters_determine_the_forces(name):
    model, G, _ = coupled(name)
    base = ld.base_parameters(model, passive=False)
    q, v, a, _ = coupled_state(model, G, 14, (7,))
    Y = ld.regressor(model, q, v, a)
    N = model.elimination().projection
    reduced = N.T @ Y[..., base.columns] @ base.values
    close(reduced, ld.inverse_dynamics(model, q, v, a, passive=False), 1e-8)
    assert len(base.names) < len(ld.base_parameters(model.spanning_tree()).names)


@EVERY
def test_forces_with_a_reference_velocity_are_those_of_the_tree(name):
    model, G, _ = coupled(name)
    q, v, a, _ = coupled_state(model, G, 15, (7,))
    _, v_r, _, _ = coupled_state(model, G, 16, (7,))
    tree = ld.slotine_li_inverse_dynamics(model.spanning_tree(), q, v, v_r, a)
    close(ld.slotine_li_inverse_dynamics(model, q, v, v_r, a), np.where(
        np.isin(np.arange(model.nv), model.elimination().follower), 0.0, tree @ model.elimination().projection), 1e-11)
    k = model.elimination().follower[0]
    wrong = v_r + np.where(np.arange(model.nv) == k, 1.0, 0.0)
    with pytest.raises(ld.ConfigurationError, match=rf"v_r \({model.v_names[k]}\) of state . contradicts the couplings"):
        ld.slotine_li_inverse_dynamics(model, q, v, wrong, a)


def test_a_follower_on_another_axis_changes_what_is_identifiable_as_by_hand():
    """Two wheels about parallel axes, geared 1:2: only I1 + 4 I2 is identifiable."""
    links = tuple(Link(name, 1.0, (0.0, 0.0, 0.0), (0.1, 0.0, 0.0, 0.1, 0.0, 0.3)) for name in "ab")
    joints = (Joint("p", "continuous", "world", "a", axes=((0.0, 0.0, 1.0),)),
              Joint("q", "continuous", "world", "b", axes=((0.0, 0.0, 1.0),), mimic=Mimic("p", 2.0)))
    robot = Robot("gears", links, joints, gravity=(0.0, 0.0, 0.0))
    model = ld.build(robot)
    base = ld.base_parameters(model)
    assert base.values == pytest.approx([0.3 + 4 * 0.3])
    assert ld.inverse_dynamics(model, [0.1, 0.2], [1, 2], [1, 2]) == pytest.approx([0.3 + 4 * 0.3, 0.0])


@pytest.mark.parametrize("which, name", [("q", "q"), ("v", "v"), ("a", "a")])
@CODES
def test_a_contradiction_is_named(which, name, code):
    model, G, independent = coupled("fixed 1")
    k = int(np.setdiff1d(np.arange(model.nv), independent)[0])
    for size in (), (5,):
        motion = dict(zip("qva", coupled_state(model, G, 15, size), strict=False))
        index = model.q_names.index(model.v_names[k]) if which == "q" else k
        motion[which] = motion[which].copy()
        motion[which][(2, index) if size else index] += 0.01
        for function in (ld.inverse_dynamics, ld.inverse_dynamics_derivatives, ld.inverse_dynamics_second_derivatives):
            with pytest.raises(ld.ConfigurationError) as error:
                function(model, **motion)
            state = " of state 2" if size else ""
            assert str(error.value).startswith(f"{name} ({model.v_names[k]}){state} contradicts the couplings of robot "
                                               f"{model.name}: expected ")
        result = ld.inverse_dynamics(model, **motion, on_error="nan")
        assert np.isnan(result).any() and (not size or np.isfinite(result[[0, 1, 3, 4]]).all())


GIMBAL = """
links: {a: {}, b: {}, c: {mass: 1.0, com: [0.1, 0.2, 0.3], inertia: [0.1, 0.2, 0.3]}, d: {mass: 0.1}, e: {mass: 0.1}}
joints:
  z: {type: continuous, parent: world, child: a, axis: [0, 0, 1]}
  y: {type: continuous, parent: a, child: b, axis: [0, 1, 0]}
  x: {type: continuous, parent: b, child: c, axis: [1, 0, 0]}
  left: {type: prismatic, parent: c, child: d, axis: [1, 0, 0], limits: {lower: 0, upper: 1}}
  right: {type: prismatic, parent: c, child: e, axis: [-1, 0, 0], limits: {lower: 0, upper: 1}, mimic: {joint: left}}
"""


@pytest.mark.parametrize("y", [np.pi / 2, 0.4])
def test_inertias_that_vanish_are_errors_of_every_function(y, tmp_path):
    """A massless gimbal in its singular position. Time derivatives raised an error of NumPy instead."""
    (tmp_path / "gimbal.yaml").write_text(GIMBAL)
    model = ld.load(tmp_path / "gimbal.yaml")
    q, rest, two = np.array([0.0, y, 0.0, 0.0, 0.0]), np.zeros(5), np.ones((2, 5))
    fingers = np.arange(5) > 2
    calls = [lambda: ld.forward_dynamics(model, q, rest, rest), lambda: ld.hybrid_dynamics(model, q, rest, rest, rest, fingers),
             lambda: ld.forward_dynamics_derivatives(model, q, rest, rest),
             lambda: ld.hybrid_dynamics_derivatives(model, q, rest, rest, rest, fingers),
             lambda: ld.higher_order_forward_dynamics(model, q, rest, two),
             lambda: ld.higher_order_hybrid_dynamics(model, q, rest, two, two, fingers)]
    for call in calls:
        if y == 0.4:
            call()
            continue
        with pytest.raises(ld.ComputationError, match="inertia vanishes"):
            call()


@CODES
def test_what_is_not_read_may_be_nan_and_forces_of_followers_may_not(code):
    model, G, independent = coupled("fixed 1")
    q, v, a, tau = coupled_state(model, G, 16)
    k = int(np.setdiff1d(np.arange(model.nv), independent)[0])
    tau[k] = np.nan
    with pytest.raises(ld.ConfigurationError, match="tau"):
        ld.forward_dynamics(model, q, v, tau)
    mask = np.zeros(model.nv, bool)
    mask[np.flatnonzero(G[:, 0])] = True
    tau[mask] = np.nan
    tau = np.where(np.isnan(tau) & ~mask, 0.0, tau)
    found, _ = ld.hybrid_dynamics(model, q, v, np.where(mask, a, np.nan), tau, mask)
    close(found[mask], a[mask], 1e-12)
    contradiction = np.where(mask, a, 0.0)
    contradiction[np.flatnonzero(mask & ~np.isin(np.arange(model.nv), independent))[:1]] += 1.0
    if (mask & ~np.isin(np.arange(model.nv), independent)).any():
        with pytest.raises(ld.ConfigurationError, match="contradicts the couplings"):
            ld.hybrid_dynamics(model, q, v, contradiction, tau, mask)


@EVERY
def test_expand_and_reduce_invert_each_other(name):
    model, G, independent = coupled(name)
    q, v, a, _ = coupled_state(model, G, 17, (4,))
    y, dy, ddy = ld.reduce(model, q, v, a)
    assert dy.shape == (4, len(model.independent)) and np.array_equal(dy, v[:, independent])
    for x, expected in zip(ld.expand(model, y, dy, ddy), (q, v, a), strict=True):
        close(x, expected, 1e-14)
    assert np.abs(ld.constraint_residual(model, ld.expand(model, y[0]))).max() < 1e-13


@pytest.mark.parametrize("which", ["v", "a"])
def test_single_precision_is_named_where_it_contradicts_couplings(which):
    model, G, _ = coupled("fixed 0")
    motion = dict(zip("qva", coupled_state(model, G, 17, (4,))[:3], strict=True))
    with pytest.raises(ld.ConfigurationError, match=r"; is it of single precision\? \(ld.expand computes it"):
        ld.inverse_dynamics(model, **{**motion, which: motion[which].astype(np.float32)})


def test_accelerations_without_velocities_are_refused():
    model, G, _ = coupled("fixed 0")
    q, v, a, _ = coupled_state(model, G, 17, ())
    y, _, ddy = ld.reduce(model, q, v, a)
    with pytest.raises(ld.UsageError, match=r"ddy is given without dy \(give both\)"):
        ld.expand(model, y, None, ddy)
    with pytest.raises(ld.UsageError, match=r"a is given without v \(give both\)"):
        ld.reduce(model, q, None, a)


def test_robots_without_couplings_are_their_own_reduction_and_loops_are_refused():
    model = ld.load("robots/panda.yaml")
    q = ld.random_configuration(model, np.random.default_rng(0))
    assert model.independent == model.v_names
    assert np.array_equal(ld.expand(model, q), q) and np.array_equal(ld.reduce(model, q), q)
    mechanism = ld.load("robots/four_bar.yaml")
    for call in (lambda: ld.expand(mechanism, np.zeros(3)), lambda: ld.reduce(mechanism, np.zeros(3)),
                 lambda: ld.inverse_dynamics(mechanism, *np.zeros((3, 3)))):
        with pytest.raises(ld.ModelError, match="does not account for the constraints"):
            call()


# couplings that are written in another way ------------------------------------------------------------------------------

def changed(model, **couplings):
    return ld.build(replace(model.description, **couplings))


@pytest.mark.parametrize("factor", [1e-9, -3.0, 1e9])
def test_the_factor_of_a_coupling_changes_nothing(factor):
    model = coupled_robot(1)
    G, _ = reduction(model)
    scaled = changed(model, couplings=tuple(
        replace(x, terms=tuple((joint, label, factor * c) for joint, label, c in x.terms), offset=factor * x.offset)
        for x in model.description.couplings))
    q, v, a, tau = coupled_state(model, G, 18, (3,))
    assert scaled.independent == model.independent
    close(ld.inverse_dynamics(scaled, q, v, a), ld.inverse_dynamics(model, q, v, a), 1e-12)
    close(ld.forward_dynamics(scaled, q, v, tau), ld.forward_dynamics(model, q, v, tau), 1e-9)


def test_mimics_are_couplings_and_redundant_ones_change_nothing():
    model = coupled_robot(2)
    G, _ = reduction(model)
    mimics = [(joint.name, joint.mimic) for joint in model.description.joints if joint.mimic]
    couplings = tuple(Coupling(f"of {name}", ((name, "", 1.0), (mimic.joint, "", -mimic.multiplier)), mimic.offset)
                      for name, mimic in mimics)
    plain = tuple(replace(joint, mimic=None) for joint in model.description.joints)
    as_couplings = changed(model, joints=plain, couplings=(*model.description.couplings, *couplings))
    redundant = changed(model, couplings=(*model.description.couplings, *couplings))
    q, v, a, tau = coupled_state(model, G, 19, (3,))
    for other in as_couplings, redundant:
        close(ld.forward_dynamics(other, q, v, tau), ld.forward_dynamics(model, q, v, tau), 1e-9)
    close(ld.inverse_dynamics(redundant, q, v, a), ld.inverse_dynamics(model, q, v, a), 1e-12)
    (a_name, _), *_ = mimics
    other = replace(couplings[0], offset=couplings[0].offset + 1.0)
    with pytest.raises(ld.ModelError, match=f"the coupling {a_name} contradicts coupling"):
        changed(model, couplings=(*model.description.couplings, other))


@pytest.mark.parametrize("multiplier", [0.0, 1e-6, 1e3])
def test_any_ratio_is_possible(multiplier):
    """With ratio zero, the follower is at rest."""
    model = coupled_robot(3)
    first = next(joint.name for joint in model.description.joints if joint.mimic)
    model = changed(model, joints=tuple(replace(joint, mimic=replace(joint.mimic, multiplier=multiplier)) if joint.name == first
                                        else joint for joint in model.description.joints))
    G, _ = reduction(model)
    q, v, _, tau = coupled_state(model, G, 20)
    found = ld.forward_dynamics(model, q, v, tau)
    M = G.T @ ld.mass_matrix(model, q) @ G
    force = (tau - ld.inverse_dynamics(model.spanning_tree(), q, v, np.zeros_like(v))) @ G
    by_hand = G @ np.linalg.solve(M, force)
    np.testing.assert_allclose(found, by_hand, rtol=1e-7, atol=1e-9 * np.abs(by_hand).max())


def test_variants_with_couplings_are_single_robots():
    model = coupled_robot(0)
    G, _ = reduction(model)
    q, v, a, tau = coupled_state(model, G, 21, (3,))
    link = next(link.name for link in model.description.links if link.mass)
    robots = [model.with_changes(mass={link: mass}) for mass in (1.0, 2.0, 3.0)]
    variants = ld.Variants(robots)
    for name, x in (("inverse_dynamics", a), ("forward_dynamics", tau)):
        for context in (None, generic_kernels()):
            if context is None:
                found = getattr(variants, name)(q, v, x)
            else:
                with context:
                    found = getattr(variants, name)(q, v, x)
            close(found, [getattr(ld, name)(robots[k], q[k], v[k], x[k]) for k in range(3)], 1e-10)


def test_pinocchio_agrees_where_it_supports_mimic_joints(tmp_path):
    pinocchio = pytest.importorskip("pinocchio")
    model = ld.load("robots/hand.yaml")
    model = ld.build(replace(model.description, loops=(), couplings=()))
    path = tmp_path / "hand.urdf"
    ld.save(model, path, lossy=True)
    model = ld.load(path)
    theirs = pinocchio.buildModelFromUrdf(str(path), mimic=True)
    theirs.gravity.linear = model.gravity
    data = theirs.createData()
    G, independent = reduction(model)
    rng = np.random.default_rng(0)
    q = ld.random_configuration(model, rng)
    dy, ddy = rng.standard_normal((2, len(independent)))
    order = [model.v_names.index(theirs.names[joint]) for joint in range(1, theirs.njoints)
             if theirs.joints[joint].nv and model.v_names.index(theirs.names[joint]) in independent]
    places = [int(np.flatnonzero(independent == k)[0]) for k in order]
    y, dy_, ddy_ = q[order], dy[places], ddy[places]
    tau = pinocchio.rnea(theirs, data, y, dy_, ddy_)
    ours = ld.inverse_dynamics(model, q, G @ dy, G @ ddy, passive=False)
    close(ours[order], tau, 1e-11)


def test_derivatives_by_the_pose_of_a_floating_base_are_tangent():
    model, G, _ = coupled("fixed 0")
    q, v, a, _ = coupled_state(model, G, 22)
    base = slice(0, 6)
    d = ld.inverse_dynamics_derivatives(model, q, v, a).dtau_dq[:, base]
    tree = model.spanning_tree()
    expected = by_q(lambda x: ld.inverse_dynamics(tree, x, v, a), tree, q)[:, base]
    close(d, model.elimination().projection.T @ expected, 1e-8)


@pytest.mark.parametrize("seed", range(4))
@CODES
def test_forces_are_those_in_a_hundred_digits_reduced_by_hand(seed, code):
    """d'Alembert's principle for each body, from poses alone, times the transposed reduction."""
    model = coupled_robot(seed, types=("revolute", "prismatic", "helical"))
    tree = model.spanning_tree()
    A, right = equations(model)
    independent = [model.v_names.index(name) for name in model.independent]
    followers = np.setdiff1d(np.arange(model.nv), independent)
    with mp.workdps(60):
        G, c = exact(np.zeros((model.nv, len(independent)))), exact(np.zeros(model.nv))
        G[independent] = exact(np.eye(len(independent)))
        G[followers] = -np.column_stack([solve(exact(A[:, followers]), A[:, k]) for k in independent])
        c[followers] = solve(exact(A[:, followers]), right)[:, 0]
        motion = CoupledMotion(tree, seed, G, c, independent)
        q, (v, a) = motion.q, motion.v
        forces = G.T @ motion.forces()
    tau = np.zeros(model.nv)
    tau[independent] = forces.astype(float)
    scale = np.abs(tau).max()
    assert np.abs(ld.inverse_dynamics(model, q, v, a, passive=False) - tau).max() < 1e-14 * scale * model.nv
    assert np.abs(ld.regressor(model, q, v, a) @ parameters_of(model) @ G.astype(float) - tau[independent]).max() < 1e-13 * scale
    condition = np.linalg.cond(G.astype(float).T @ ld.mass_matrix(tree, q) @ G.astype(float))
    assert np.abs(ld.forward_dynamics(model, q, v, tau, passive=False) - a).max() < 1e-14 * condition * max(np.abs(a).max(), 1.0)


def parameters_of(model):
    """Return the parameters without those of passive forces."""
    p = ld.inertial_parameters(model)
    return np.where([name.startswith(("damping.", "friction.")) for name in p.names], 0.0, p.values)


@EVERY_CODE_OF_DERIVATIVES
def test_derivatives_with_respect_to_wrenches_are_those_of_differences(name, code):
    """Those of inverse dynamics were those of the open tree."""
    model, G, _ = coupled(name)
    q, v, a, tau = coupled_state(model, G, 23)
    link = model.link_names[-1]
    J = ld.jacobian(model, q, link)
    zero, units = np.zeros(6), np.eye(6)

    def changes(function):
        return np.column_stack([function({link: unit}) - function({link: zero}) for unit in units])
    d = ld.inverse_dynamics_derivatives(model, q, v, a)
    close(d.wrt_wrench(J), changes(lambda f: ld.inverse_dynamics(model, q, v, a, f_ext=f)), 1e-10)
    close(pickle.loads(pickle.dumps(d)).wrt_wrench(J), d.wrt_wrench(J))
    variants = ld.Variants([model, model]).inverse_dynamics_derivatives(np.array([q, q]), v, a)
    close(variants.wrt_wrench(np.array([J, J])), np.array([d.wrt_wrench(J)] * 2))
    forward = ld.forward_dynamics_derivatives(model, q, v, tau)
    close(forward.wrt_wrench(J), changes(lambda f: ld.forward_dynamics(model, q, v, tau, f_ext=f)), 1e-8)
    mask = np.arange(model.nv) % 3 == 0
    hybrid = ld.hybrid_dynamics_derivatives(model, q, v, a, tau, mask)

    def result(f):
        accelerations, forces = ld.hybrid_dynamics(model, q, v, a, tau, mask, f_ext=f)
        return np.where(mask, forces, accelerations)
    close(hybrid.wrt_wrench(J), changes(result), 1e-8)


def test_plans_are_made_on_the_couplings():
    """Also of functions that check the state in Python."""
    model = coupled_robot(1)
    for function in ("inverse_dynamics", "forward_dynamics_derivatives", "inverse_dynamics_second_derivatives"):
        assert ld.plan(model, function).way == ld.plan(model.spanning_tree(), function).way


@SIZES
@CODES
def test_contradictory_prescribed_accelerations_are_an_error(code, size):
    """Generated code for one state had replaced the follower before the generic kernels compared it."""
    model, G, independent = coupled("fixed 0")
    q, v, a, tau = coupled_state(model, G, 0, size)
    follower = np.setdiff1d(np.arange(model.nv), independent)[0]
    mask = np.arange(model.nv) == follower
    mask[independent[G[follower] != 0.0]] = True
    assert not mask.all()
    close(ld.hybrid_dynamics(model, q, v, a, tau, mask)[0][..., mask], a[..., mask])
    for wrong in (1e-3, 1e6, np.nan):
        bad = a.copy()
        bad[..., follower] += wrong
        with pytest.raises(ld.ConfigurationError, match=re.escape(f"a ({model.v_names[follower]})")):
            ld.hybrid_dynamics(model, q, v, bad, tau, mask)
        assert np.isnan(ld.hybrid_dynamics(model, q, v, bad, tau, mask, on_error="nan")[0]).all()
