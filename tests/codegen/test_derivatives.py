"""Recorded kernels of derivatives, evaluated number by number, against compiled loops; and how many operations they take."""
import numpy as np
import pytest

import liedyn as ld
from bridge import relative
from liedyn.codegen.trace import traced_module
from liedyn.codegen.tracer import Operations, Tracer, zeros
from liedyn.kernels.couplings import NO_COUPLINGS
from zoo import ROBOTS, model_of, state

SHORT = [name for name in ROBOTS if model_of(name).nv <= 32 and name != "every kind"]        # which "…, floating" is, too
_OPERATIONS = {"fadd": np.add, "fsub": np.subtract, "fmul": np.multiply, "fdiv": np.divide, "fneg": np.negative, "fabs": np.abs,
               "sqrt": np.sqrt, "sin": np.sin, "cos": np.cos, "less": lambda x, y, yes, no: np.where(x < y, yes, no)}


def recorded(model, which, prescribed=None):
    """Return (trace, three matrices as lists of numbers by rows, deficit) of one robot."""
    n, nv, ops = model.n_bodies, model.nv, Operations(libm=True)
    tree = traced_module("joints.joint_model").tree_views(model.index, model.constants)
    q, v, a, tau = (ops.inputs(name, count) for name, count in (("q", model.nq), ("v", nv), ("a", nv), ("tau", nv)))
    kernel, out, deficit = traced_module(f"kernels.{which}_dynamics_derivatives"), [zeros(nv * nv) for _ in range(3)], -1.0
    if which == "inverse":
        work = kernel.derivatives_workspace(zeros(kernel.derivatives_workspace_size(n, nv)), n, nv)
        kernel.inverse_derivatives(tree, q, v, a, zeros(0), model.has_passive_forces, *out, work)
    else:
        work = kernel.mass_matrix_workspace(zeros(kernel.hybrid_derivatives_workspace_size(n, nv)), nv)
        deficit = kernel.hybrid_derivatives(tree, NO_COUPLINGS, prescribed, q, v, a, tau, zeros(0), model.has_passive_forces,
                                            *out, work)
    return ops, out, deficit


def evaluated(ops, results, **given):
    """Return numbers (N, results) for inputs (N, n) by name."""
    found = {}
    for k in ops.live_operations(results):
        name, *rest = ops.operations[k]
        if name == "input":
            found[k] = given[rest[0]][:, rest[1]]
        else:
            found[k] = _OPERATIONS[name](*(found[x] if isinstance(x, int) else x for x in rest))
    count = len(given["q"])
    return np.stack([found[x.k] if isinstance(x, Tracer) else np.full(count, x) for x in results], axis=1)


def matrices(model, ops, out, given):
    found = evaluated(ops, [x for each in out for x in each], **given)
    return found.reshape(-1, 3, model.nv, model.nv).swapaxes(0, 1)


@pytest.mark.parametrize("name", SHORT)
def test_recorded_derivatives_are_those_of_the_loops(name, monkeypatch, worst):
    """The operations are the same. Fused products and sines round differently, which the condition of M magnifies."""
    monkeypatch.setenv("LIEDYN_CODE", "generic")
    model = model_of(name)
    q, v, a, tau = state(model, 3, (5,))
    given = {"q": q, "v": v, "a": a, "tau": tau}
    found = matrices(model, *recorded(model, "inverse")[:2], given)
    for x, y in zip(found, ld.inverse_dynamics_derivatives(model, q, v, a), strict=True):
        assert worst("recorded inverse derivatives", relative(x, y), name) < 1e-13
    for mask in (np.zeros(model.nv, dtype=bool), np.arange(model.nv) % 3 == 1, np.ones(model.nv, dtype=bool)):
        found = matrices(model, *recorded(model, "hybrid", mask)[:2], given)
        for x, y in zip(found, ld.hybrid_dynamics_derivatives(model, q, v, a, tau, mask)[:3], strict=True):
            assert worst("recorded hybrid derivatives", relative(x, y), name) < 1e-10


def test_zeros_of_the_tree_are_not_computed():
    """Entries of coordinates on different branches are folded away."""
    model = model_of("every kind")
    _, last = model.paths[1], model.paths[2]
    k = np.arange(model.nv)
    hangs = (k[:, None] >= k) & (k[:, None] <= last)
    _, out, _ = recorded(model, "inverse")
    for x in out:
        computed = np.array([isinstance(y, Tracer) for y in x]).reshape(model.nv, model.nv)
        assert not computed[~(hangs | hangs.T)].any()
    top = model.paths[1]
    _, out, _ = recorded(model, "hybrid", np.zeros(model.nv, dtype=bool))
    for x in out:
        computed = np.array([isinstance(y, Tracer) for y in x]).reshape(model.nv, model.nv)
        assert not computed[top[:, None] != top].any()


def test_singular_pivots_are_a_result_of_the_line():
    """The deficit of a compound joint is positive in gimbal lock only."""
    from liedyn.model.description import Joint, Robot
    from liedyn.model.links import Link
    model = ld.build(Robot("r", (Link("a", 1.0, (0.5, 0, 0), (1.0, 0, 0, 1.0, 0, 1.0)),), (
        Joint("j", "euler", "world", "a", sequence="xyz"),)))
    ops, _, deficit = recorded(model, "hybrid", np.zeros(3, dtype=bool))
    q = np.array([[0.1, np.pi / 2, 0.2], [0.1, 0.4, 0.2]])
    found = evaluated(ops, [deficit], q=q, v=0 * q, a=0 * q, tau=0 * q + 1.0)[:, 0]
    assert found[0] > 0 > found[1]


@pytest.mark.parametrize(("name", "which", "most"), [
    ("one degree of freedom each", "inverse", 3_300), ("one degree of freedom each", "hybrid", 4_800),
    ("free", "inverse", 6_800)])
def test_lines_stay_short(name, which, most):
    """Bounds are a tenth above the numbers when this was written. Traces beyond 40,000 operations are not generated."""
    model = model_of(name)
    ops, out, _ = recorded(model, which, np.zeros(model.nv, dtype=bool))
    size = len(ops.live_operations([x for each in out for x in each]))
    assert size < most
