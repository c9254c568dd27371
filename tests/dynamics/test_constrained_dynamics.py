"""Constrained forward and hybrid dynamics as they are called: arrays, batches, stabilization, contradictions, errors."""
import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest

import liedyn as ld
import loop_reference as reference
from bridge import relative
from liedyn.model.description import WORLD, Loop
from loop_zoo import LOOPED, anywhere, five_bar, looped_of, motion, n_bar_motion
from rounding import assert_same
from zoo import ROBOTS, model_of, state

N = 9


def states(name, seed=1, size=(N,)):
    case = looped_of(name)
    q, v, a, tau = motion(case, seed, size)
    return case.model, q, v, a, tau


# calls ------------------------------------------------------------------------------------------------------------
def test_a_read_only_state_is_computed_by_the_code_of_one_state():
    model, *state = states("closed twice", size=())
    arrays = [state[0], state[1], state[3]]
    ld.constrained_forward_dynamics(model, *arrays)                                          # the first call prepares the code
    compiled = ld.constrained_forward_dynamics(model, *arrays)
    for x in arrays:
        x.flags.writeable = False
    assert type(ld.constrained_forward_dynamics(model, *arrays)) is type(compiled) is not type(
        ld.constrained_forward_dynamics(model, arrays[0][None], *arrays[1:]))


def test_shapes_and_what_is_given_stays():
    model, q, v, a, tau = states("closed twice", size=(2, 3))
    mask = np.zeros(model.nv, dtype=bool)
    mask[-1] = True
    kept = [x.copy() for x in (q, v, a, tau)]
    forward = ld.constrained_forward_dynamics(model, q, v, tau)
    hybrid = ld.constrained_hybrid_dynamics(model, q, v, forward.a, tau, mask)
    for out in (forward, hybrid):
        assert out.a.shape == out.tau.shape == (2, 3, model.nv)
        assert out.multipliers.shape == out.independent.shape == (2, 3, model.nc) and out.independent.dtype == bool
    one = ld.constrained_forward_dynamics(model, q[0, 0], v[0, 0], tau[0, 0])
    assert one.a.shape == (model.nv,) and one.multipliers.shape == one.independent.shape == (model.nc,)
    assert one.independent.dtype == bool and (one.tau == tau[0, 0]).all()
    for before, after in zip(kept, (q, v, a, tau), strict=True):
        assert (before == after).all()
    empty = ld.constrained_forward_dynamics(model, q[:0], v[:0], tau[:0])
    assert empty.a.shape == (0, 3, model.nv) and empty.independent.shape == (0, 3, model.nc)


def test_results_are_not_overwritten_by_the_next_call():
    model, q, v, _, tau = states("closed twice")
    first = ld.constrained_forward_dynamics(model, q[0], v[0], tau[0])
    kept = [first.a.copy(), first.multipliers.copy(), first.independent.copy()]
    ld.constrained_forward_dynamics(model, q[1], v[1], tau[1])
    assert all((x == y).all() for x, y in zip(kept, (first.a, first.multipliers, first.independent), strict=True))


def test_copies_of_a_model_that_has_computed():
    """The cache of a model, with compiled functions, is not copied."""
    model, q, v, _, tau = states("closed twice")
    expected = [ld.constrained_forward_dynamics(model, q[0], v[0], tau[0]).a for _ in range(2)][-1]
    for other in pickle.loads(pickle.dumps(model)), copy.deepcopy(model):
        for _ in range(2):
            assert_same(ld.constrained_forward_dynamics(other, q[0], v[0], tau[0]).a, expected)


def test_broadcasting_lists_and_views():
    model, q, v, _, tau = states("closed twice")
    full = ld.constrained_forward_dynamics(model, q, v, tau)
    assert relative(ld.constrained_forward_dynamics(model, q[0], v, tau).a, full.a) < 1e-14
    assert relative(ld.constrained_forward_dynamics(model, np.asfortranarray(q), v, np.asfortranarray(tau)).a, full.a) < 1e-14
    assert relative(ld.constrained_forward_dynamics(model, list(q[0]), list(v[0]), list(tau[0])).a, full.a[0]) < 1e-13
    frozen = tau[0].copy()
    frozen.flags.writeable = False
    assert relative(ld.constrained_forward_dynamics(model, q[0], v[0], frozen).a, full.a[0]) < 1e-13
    wide = np.repeat(tau[0], 2)[::2]
    assert relative(ld.constrained_forward_dynamics(model, q[0], v[0], wide).a, full.a[0]) < 1e-13


def test_many_states_on_all_cores():
    """So many that threads are used, and not a multiple of eight."""
    model, q, v, _, tau = states("every kind, looped", size=(517,))
    out = ld.constrained_forward_dynamics(model, q, v, tau)
    for k in (0, 7, 8, 300, 511, 512, 516):
        one = ld.constrained_forward_dynamics(model, q[k], v[k], tau[k])
        assert relative(out.a[k], one.a) < 1e-10 and (out.independent[k] == one.independent).all()


def test_external_wrenches_by_name():
    model, q, v, _, tau = states("closed twice")
    F = np.random.default_rng(3).standard_normal((N, len(model.link_names), 6))
    full = ld.constrained_forward_dynamics(model, q, v, tau, f_ext=F).a
    named = ld.constrained_forward_dynamics(model, q, v, tau, f_ext={x: F[:, k] for k, x in enumerate(model.link_names)}).a
    single = ld.constrained_forward_dynamics(model, q[2], v[2], tau[2], f_ext=F[2]).a
    assert (named == full).all() and relative(single, full[2]) < 1e-13
    assert relative(full, ld.constrained_forward_dynamics(model, q, v, tau).a) > 1e-3


# stabilization ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", [name for name in LOOPED if name.startswith(("closure", "driven"))])
def test_baumgarte(name, worst):
    """A a + gamma + 2 f (A v - u) + f^2 residual = 0, at an open configuration with a velocity that opens it further."""
    case, f = looped_of(name), 7.0
    model, constraint_motion = case.model, case.constraint_motion
    _, v, _, tau = anywhere(case, 4)
    q = ld.integrate(model, case.q, 0.01 * np.random.default_rng(5).standard_normal(model.nv))
    A, u = reference.equations(model, q, constraint_motion)
    s = np.linalg.svd(A, compute_uv=False)
    if s[-1] < 1e-6 * s[0]:
        pytest.skip("rows that depend on each other cannot all be stabilized")
    extra = 2 * f * (A @ v - u) + f * f * ld.constraint_residual(model, q, constraint_motion=constraint_motion)
    a, _, multipliers, condition = reference.hybrid(model, q, v, v, tau, np.zeros(model.nv, dtype=bool), constraint_motion, extra)
    bound = max(1e-9, 1e-16 * condition)
    single = ld.constrained_forward_dynamics(model, q, v, tau, constraint_motion=constraint_motion, baumgarte=f)
    batch = ld.constrained_forward_dynamics(model, np.tile(q, (N, 1)), v, tau, constraint_motion=constraint_motion, baumgarte=f)
    for out in (single.a, *batch.a[:2]):
        assert worst("Baumgarte: a", relative(out, a), name) < bound
    assert worst("Baumgarte: lambda", relative(single.multipliers, multipliers), name) < bound
    hybrid = ld.constrained_hybrid_dynamics(model, q, v, v, tau, np.zeros(model.nv, dtype=bool),
                                            constraint_motion=constraint_motion, baumgarte=f)
    assert relative(hybrid.a, single.a) < 1e-12


# contradictions ---------------------------------------------------------------------------------------------------
def test_prescribed_accelerations_that_contradict():
    model, q, v, _, tau = states("closure: weld")
    made = ld.constrained_forward_dynamics(model, q, v, tau)
    bound = np.abs(ld.constraint_jacobian(model, q[0])).max(axis=0) > 1e-6
    k = int(np.flatnonzero(bound)[0])
    mask = bound.copy()
    ld.constrained_hybrid_dynamics(model, q, v, made.a, tau, mask)
    bad = made.a.copy()
    bad[4, k] += 0.5
    with pytest.raises(ld.ComputationError) as caught:
        ld.constrained_hybrid_dynamics(model, q, v, bad, tau, mask)
    text = str(caught.value)
    assert text.startswith("the prescribed motions contradict the constraint 'loop0' in state 4: its row loop0.")
    assert model.v_names[k] in text and "\n" not in text
    assert text.endswith("(prescribe fewer, or consistent accelerations)")
    with pytest.raises(ld.ComputationError, match="contradict the constraint 'loop0': its row"):
        ld.constrained_hybrid_dynamics(model, q[4], v[4], bad[4], tau[4], mask)


@pytest.mark.parametrize("name", LOOPED)
def test_every_contradiction_is_seen(name):
    """With all coordinates prescribed, an error of 1e-3 in one equation raises; rounding of the accelerations does not."""
    case = looped_of(name)
    model, constraint_motion = case.model, case.constraint_motion
    q, v, _, tau = motion(case, 6)
    made = ld.constrained_forward_dynamics(model, q, v, tau, constraint_motion=constraint_motion)
    every = np.ones(model.nv, dtype=bool)
    A = ld.constraint_jacobian(model, q, constraint_motion=constraint_motion)
    size = 1 + np.abs(made.a).max()
    off = A[np.argmax(np.abs(A).max(axis=1))]
    with pytest.raises(ld.ComputationError, match="contradict the constraint"):
        ld.constrained_hybrid_dynamics(model, q, v, made.a + 1e-3 * size * off / (off @ off), tau, every,
                                       constraint_motion=constraint_motion)
    ld.constrained_hybrid_dynamics(model, q, v, made.a * (1 + 1e-14), tau, every, constraint_motion=constraint_motion)


def test_a_drive_that_contradicts():
    """A body that is welded to the ground is driven away from it."""
    loops = (Loop("hold", "weld", WORLD, "root"), Loop("tool", "weld", WORLD, "root", driven=True))
    model = ld.build(replace(ROBOTS["a lone body"], loops=loops))
    q, zero = model.neutral(), np.zeros(6)
    still = ld.constrained_forward_dynamics(model, q, zero, zero, constraint_motion={"tool": np.eye(4)})
    assert np.abs(still.a).max() < 3e-15 * 9.81 and still.independent.sum() == 6              # gravity cancels
    with pytest.raises(ld.ComputationError) as caught:
        ld.constrained_forward_dynamics(model, q, zero, zero,
                                        constraint_motion={"tool": (np.eye(4), zero, np.r_[0, 0, 0, 0, 0.5, 0])})
    assert str(caught.value) == ("the prescribed motions contradict the constraint 'tool': its row tool.vy has a residual of "
                                 "0.5 m/s^2; prescribed are tool (prescribe fewer, or consistent accelerations)")


def test_independent_joints_prescribed_is_inverse_dynamics():
    """As many joints prescribed as there are degrees of freedom: hybrid and inverse dynamics are the same."""
    model, q = five_bar()
    q, v, a, _ = n_bar_motion(model, q, 7)
    names = ["pin0", "pin3"]
    mask = np.isin(model.v_names, names)
    hybrid = ld.constrained_hybrid_dynamics(model, q, v, a, np.zeros(5), mask)
    inverse = ld.constrained_inverse_dynamics(model, q, v, hybrid.a, names)
    assert relative(hybrid.a, a) < 1e-11 and relative(hybrid.tau, inverse.tau) < 1e-11
    assert relative(hybrid.multipliers, inverse.multipliers) < 1e-11


# errors --------------------------------------------------------------------------------------------------
def refused(error, function, *args, **options):
    with pytest.raises(error) as caught:
        function(*args, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("size", [(), (N,)])
def test_what_is_refused(size):
    model, q, v, a, tau = states("closed twice", size=size)
    forward, hybrid = ld.constrained_forward_dynamics, ld.constrained_hybrid_dynamics
    mask = np.zeros(model.nv, dtype=bool)
    open_ = model_of("every kind")
    x = np.zeros(open_.nv)
    for call in (*[lambda: forward(open_, open_.neutral(), x, x)] * 2,        # also when it was an error before
                 lambda: hybrid(open_, open_.neutral(), x, x, x, np.zeros(open_.nv, dtype=bool))):
        assert "robot zoo1 has no constraints" in refused(ld.ModelError, call)
    nan = lambda x: np.where(np.arange(x.shape[-1]) == 1, np.nan, x)          # noqa: E731
    for name, args in (("q", (nan(q), v, tau)), ("v", (q, nan(v), tau)), ("tau", (q, v, nan(tau)))):
        text = refused(ld.ConfigurationError, forward, model, *args)
        assert text.startswith(f"{name}[1] (") and "is not finite: got nan" in text and ("of state 0" in text) == bool(size)
    mask[1] = True
    assert refused(ld.ConfigurationError, hybrid, model, q, v, nan(a), tau, mask).startswith("a[1] (")
    assert "q has the wrong shape" in refused(ld.ShapeError, forward, model, q[..., 1:], v, tau)
    assert "v has the wrong shape" in refused(ld.ShapeError, forward, model, q, v[..., 1:], tau)
    assert "tau has the wrong shape" in refused(ld.ShapeError, forward, model, q, v, tau[..., 1:])
    assert "prescribed is a mask over v" in refused(ld.ShapeError, hybrid, model, q, v, a, tau, [0, 1])
    assert "f_ext" in refused(ld.LiedynError, forward, model, q, v, tau, f_ext=np.full((len(model.link_names), 6), np.nan))
    assert "is not of unit norm" in refused(ld.ConfigurationError, forward, model, 1.5 * q, v, tau)


def test_leading_axes_that_do_not_fit():
    model, q, v, _, tau = states("closed twice")
    assert "leading axes do not match" in refused(ld.ShapeError, ld.constrained_forward_dynamics, model, q, v[:3], tau)


def test_a_tree_that_cannot_move_is_refused():
    """A massless link at the end is an error, as in forward dynamics of the open tree."""
    model, q, v, _, tau = states("closed twice", size=())
    assert "too large for double precision" in refused(ld.ComputationError, ld.constrained_forward_dynamics, model, q, 1e200 * v,
                                                       tau)


@pytest.mark.parametrize("rows", [(0,), (1, 0), (5, 0)])
def test_a_pfaffian_of_no_rows_constrains_nothing(rows):
    """It ended in an error of NumPy about empty stacks."""
    model = model_of("universal")
    q, v, _, tau = state(model, 1, (5,))
    out = ld.constrained_forward_dynamics(model, q, v, tau, pfaffian=lambda q: np.zeros((*rows, model.nv)))
    assert_same(out.a, ld.forward_dynamics(model, q, v, tau))
    assert out.multipliers.shape == out.independent.shape == (5, 0)


@pytest.mark.parametrize("name", ["universal", "closed twice"])
@pytest.mark.parametrize("lead", [(4,), (2, 3)])
def test_pfaffian_constraints_with_a_wrench_of_each_state(name, lead):
    """A batch equals its single states. The axes of wrenches count as axes of the batch."""
    model, q, v, _, tau = states(name) if name in LOOPED else (model := model_of(name), *state(model, 1, (N,)))
    q, v, tau, link = q[0], v[0], tau[0], model.link_names[-1]
    rng = np.random.default_rng(8)
    P, F = rng.standard_normal((1, model.nv)), rng.standard_normal((*lead, 6))
    out = ld.constrained_forward_dynamics(model, q, v, tau, f_ext={link: F}, pfaffian=lambda q: P)
    for index in np.ndindex(lead):
        single = ld.constrained_forward_dynamics(model, q, v, tau, f_ext={link: F[index]}, pfaffian=lambda q: P)
        for whole, one in zip(out, single, strict=True):
            assert whole.shape == (*lead, *one.shape)
            np.testing.assert_allclose(whole[index], one, rtol=0, atol=1e-11 * max(1.0, np.abs(one).max()))


def test_a_motion_of_one_state_was_no_constrained_motion():
    model = ld.load("robots/four_bar.yaml")
    q = ld.assemble(model, [1.2, 0.2, 1.8], fixed=["crank"]).q
    for _ in range(2):                                       # the first call of one state takes another way
        assert isinstance(ld.constrained_forward_dynamics(model, q, np.zeros(3), np.zeros(3)), ld.ConstrainedMotion)
