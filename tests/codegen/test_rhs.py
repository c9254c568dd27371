"""Constrained motion by lines of a robot's parts, against generic kernels."""
from pathlib import Path

import numpy as np
import pytest

import liedyn as ld
from bridge import relative
from liedyn.codegen import rhs
from liedyn.codegen.specialize import is_supported

LINES = pytest.mark.skipif(not is_supported(), reason="this LLVM cannot read the text of lines: loops are used")
ROOT = Path(__file__).parents[2]
ROBOTS = ("four_bar", "five_bar", "slider_crank", "delta", "stewart")


def closed(name, rng):
    """Return a separate model, a configuration and velocities that satisfy its constraints, and forces."""
    model = ld.load(ROOT / f"robots/{name}.yaml")
    q = ld.assemble(model).q
    v = ld.project_velocity(model, q, rng.standard_normal(model.nv))
    return model, q, v, rng.standard_normal(model.nv)


def by(code, monkeypatch, name, compute):
    """Return the results of `compute` for one state, the same for both kinds of code."""
    monkeypatch.setenv("LIEDYN_CODE", "generic")
    _, *state = closed(name, np.random.default_rng(4))
    monkeypatch.setenv("LIEDYN_CODE", code)
    return compute(ld.load(ROOT / f"robots/{name}.yaml"), *state)


@LINES
@pytest.mark.parametrize("name", ROBOTS)
def test_dynamics_by_lines_are_those_by_loops(name, monkeypatch, worst):
    def compute(model, q, v, tau):
        motion = ld.constrained_forward_dynamics(model, q, v, tau)
        F = np.zeros((len(model.link_names), 6))
        F[-1] = 1.0
        pushed = ld.constrained_forward_dynamics(model, q, v, tau, f_ext=F)
        return motion.a, motion.multipliers, pushed.a, pushed.multipliers
    for x, y in zip(by("auto", monkeypatch, name, compute), by("generic", monkeypatch, name, compute), strict=True):
        assert worst("constrained dynamics: lines against loops", relative(x, y), name) < 1e-9


@LINES
@pytest.mark.parametrize("name", ROBOTS)
def test_projections_by_lines_are_those_by_loops(name, monkeypatch, worst):
    def compute(model, q, v, tau):
        near = ld.project_configuration(model, ld.integrate(model, q, 1e-3 * tau / np.abs(tau).max()))
        return near, ld.project_velocity(model, near, v + 0.1), ld.constraint_residual(model, near)
    lines, loops = by("auto", monkeypatch, name, compute), by("generic", monkeypatch, name, compute)
    error = max(relative(x, y) for x, y in zip(lines[:2], loops[:2], strict=True))
    assert worst("projections: lines against loops", error, name) < 1e-8
    assert np.abs(lines[2]).max() < 1e-9


@LINES
def test_lines_are_made_for_parts(monkeypatch):
    """Otherwise the tests above would compare generic kernels with themselves."""
    monkeypatch.setenv("LIEDYN_CODE", "auto")
    found = []
    record = rhs.trace_stages
    monkeypatch.setattr(rhs, "trace_stages", lambda *args: found.append(record(*args)) or found[-1])
    monkeypatch.setattr(rhs.compile_cache, "load_or_build", lambda folder, name, make: make())
    model, q, v, tau = closed("four_bar", np.random.default_rng(4))
    ld.constrained_forward_dynamics(model, q, v, tau, f_ext=np.zeros((len(model.link_names), 6)))
    assert found and all(found)


@LINES
@pytest.mark.parametrize("method", ["rk4", "dopri5", "generalized_alpha"])
def test_runs_by_lines_are_those_by_loops(method, monkeypatch, worst):
    results = []
    for code in ("auto", "generic"):
        monkeypatch.setenv("LIEDYN_CODE", code)
        integrator = {"method": method} if method == "dopri5" else {"method": method, "step": 1e-3}
        results.append(ld.run_scenario(ROOT / "configs/four_bar.yaml", {"duration": 0.2, "integrator": integrator}))
    lines, loops = results
    # generalized-alpha ends its iteration at residuals of 1e-11, which are accelerations of 1e-11 / step^2
    bound = 1e-6 if method == "generalized_alpha" else 1e-9
    for name in ("q", "v", "a", "tau"):
        assert worst(f"loop runs by lines: {method}", relative(getattr(lines, name), getattr(loops, name)), name) < bound


def test_far_angles_turn_to_the_loops(monkeypatch):
    """The sine of generated code ends at 1e5 rad; the generic kernels continue."""
    monkeypatch.setenv("LIEDYN_CODE", "auto")
    model, q, v, tau = closed("four_bar", np.random.default_rng(4))
    far = q + 2 * np.pi * 1e5 * np.array([k == 0 for k in range(model.nq)])
    near, found = (ld.constrained_forward_dynamics(model, x, v, tau) for x in (q, far))
    assert relative(found.a, near.a) < 1e-6
