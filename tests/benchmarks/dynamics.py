"""Inverse and forward dynamics against Pinocchio's own calls."""
from __future__ import annotations

import numpy as np

import liedyn as ld
from benchmarks.measure import Pair, side_by_side
from bridge import PinocchioBridge, relative, robots_folder

ROBOTS = {                                    # name: file of example-robot-data, base
    "UR5": ("ur_description/urdf/ur5_robot.urdf", "fixed"),
    "Panda": ("panda_description/urdf/panda.urdf", "fixed"),
    "Talos": ("talos_data/robots/talos_reduced.urdf", "fixed"),
    "Go2, floating": ("go2_description/urdf/go2.urdf", "floating"),
}


class Case:
    """A robot, random states for both, and a check that both compute the same."""

    def __init__(self, name: str, states: int):
        import pinocchio as pin
        path, base = ROBOTS[name]
        self.name, self.pin, self.states = name, pin, states
        self.model = model = ld.load(robots_folder() / path, base=base).spanning_tree()
        bridge = PinocchioBridge(robots_folder() / path, model)
        rng = np.random.default_rng(0)
        self.q = ld.random_configuration(model, rng, states)
        self.v, self.x = rng.standard_normal((2, states, model.nv))
        self.Q = np.array([bridge.q(q) for q in self.q])
        self.V, self.X = np.empty((2, states, model.nv))
        self.V[:, bridge.v], self.X[:, bridge.v] = self.v, self.x
        self.their_model, self.their_data = bridge.pin, bridge.data
        self.pool = pin.ModelPool(bridge.pin)
        self.pool.resize(1)
        self.columns = [np.asfortranarray(x.T) for x in (self.Q, self.V, self.X)]
        self.out = np.zeros((model.nv, states), order="F")
        for ours, theirs in ((self.inverse, self.their_inverse), (self.forward, self.their_forward)):
            error = relative(ours(), np.asarray(theirs()).T[:, bridge.v])
            assert error < 1e-10, f"{name}: differs from Pinocchio by {error:.1e}"

    def inverse(self): return ld.inverse_dynamics(self.model, self.q, self.v, self.x, passive=False)
    def forward(self): return ld.forward_dynamics(self.model, self.q, self.v, self.x, passive=False)
    def their_inverse(self): return self.pin.rneaInParallel(1, self.pool, *self.columns)
    def their_forward(self): return self.pin.abaInParallel(1, self.pool, *self.columns)

    def one_by_one(self, ours, theirs, repeats: int) -> Pair:
        """Call the same function from Python for each state."""
        mine = list(zip(self.q, self.v, self.x, strict=True))
        other = list(zip(self.Q, self.V, self.X, strict=True))
        model, their_model, data = self.model, self.their_model, self.their_data
        return side_by_side(lambda: [ours(model, q, v, x) for q, v, x in mine],
                            lambda: [theirs(their_model, data, q, v, x) for q, v, x in other], repeats)


def batches(states: int = 4096, repeats: int = 25) -> list[tuple[str, str, int, float, Pair]]:
    """Return (robot, function, nv, microseconds per state, pair), on one core."""
    rows = []
    for name in ROBOTS:
        case = Case(name, states)
        for what, ours, theirs in (("forward", case.forward, case.their_forward), ("inverse", case.inverse, case.their_inverse)):
            pair = side_by_side(ours, theirs, repeats)
            rows.append((name, what, case.model.nv, pair.ours / states * 1e6, pair))
    return rows


def single_calls(states: int = 2000, repeats: int = 11) -> list[tuple[str, str, int, float, Pair]]:
    """Return the same for one call per state."""
    import pinocchio as pin
    rows = []
    for name in ROBOTS:
        case = Case(name, states)
        for what, ours, theirs in (("forward", ld.forward_dynamics, pin.aba), ("inverse", ld.inverse_dynamics, pin.rnea)):
            pair = case.one_by_one(ours, theirs, repeats)
            rows.append((name, what, case.model.nv, pair.ours / states * 1e6, pair))
    return rows
