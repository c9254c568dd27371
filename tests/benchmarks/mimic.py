"""Robots with mimic joints and couplings against the same trees without them, whose joints move independently."""
from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

import liedyn as ld
from benchmarks.measure import Pair, side_by_side
from bridge import robots_folder

ROBOTS = {"Panda": robots_folder() / "panda_description/urdf/panda.urdf", "hand": "robots/hand.yaml"}


class Case:
    """A robot, its open tree, and random states of both that satisfy the couplings."""

    def __init__(self, name: str, states: int):
        self.model = model = ld.load(ROBOTS[name])
        self.tree, rng = model.spanning_tree(), np.random.default_rng(0)
        self.q = ld.random_configuration(model, rng, states)
        _, self.v, self.a = ld.expand(model, *(0.1 * rng.standard_normal((3, states, len(model.independent)))))
        self.tau = np.zeros((states, model.nv))

    def functions(self, states: int) -> Iterator[tuple[str, Callable[[ld.Model], object]]]:
        """Yield names, and functions of the robot or its tree."""
        q, v, a, tau = self.q[:states], self.v[:states], self.a[:states], self.tau[:states]
        yield "inverse dynamics", lambda model: ld.inverse_dynamics(model, q, v, a)
        yield "forward dynamics", lambda model: ld.forward_dynamics(model, q, v, tau)
        yield "derivatives of forward dynamics", lambda model: ld.forward_dynamics_derivatives(model, q, v, tau).da_dq
        yield "256 runs of 50 steps by rk4", lambda model: ld.rollout(model, q[:256], v[:256], dt=1e-3, steps=50, every=50).q
        yield "one run of 500 steps by rk4", lambda model: ld.rollout(model, q[0], 0.0 * v[0], dt=1e-4, steps=500, every=500).q
        yield "a simulation of 0.5 s by rk4", lambda model: ld.simulate(model, duration=0.5, q0=q[0], v0=0.0 * v[0],
                                                                         integrator={"method": "rk4", "step": 1e-4}).q


def against_open_trees(states: int = 4096, repeats: int = 11) -> Iterator[tuple[str, str, Pair]]:
    """Return (robot, function, Pair of the tree and the robot: its ratio is that of the robot to its tree)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")                                  # limits that runs exceed
        for name in ROBOTS:
            case = Case(name, states)
            for what, function in case.functions(states):
                yield name, what, side_by_side(partial(function, case.tree), partial(function, case.model), repeats)
