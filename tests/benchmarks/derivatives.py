"""Derivatives of dynamics against Pinocchio's computeABADerivatives and computeRNEADerivatives."""
from __future__ import annotations

import numpy as np

import liedyn as ld
from benchmarks.measure import Pair, median, side_by_side
from bridge import PinocchioBridge, relative, robots_folder

ROBOTS = {                                    # name: file of example-robot-data, base
    "UR5": ("ur_description/urdf/ur5_robot.urdf", "fixed"),
    "Panda": ("panda_description/urdf/panda.urdf", "fixed"),
    "Go2, floating": ("go2_description/urdf/go2.urdf", "floating"),
    "Talos": ("talos_data/robots/talos_reduced.urdf", "fixed"),
    "Talos, floating": ("talos_data/robots/talos_reduced.urdf", "floating"),
}

BATCHES = 8          # of ours for one of theirs: about as long


class Case:
    """A robot, random states for both, and a check that both compute the same."""

    def __init__(self, name: str, states: int):
        import pinocchio as pin
        path, base = ROBOTS[name]
        self.model = model = ld.load(robots_folder() / path, base=base).spanning_tree()
        self.bridge = PinocchioBridge(robots_folder() / path, model)
        rng = np.random.default_rng(0)
        self.q = ld.random_configuration(model, rng, states)
        self.v, self.x = rng.standard_normal((2, states, model.nv))
        self.Q = np.array([self.bridge.q(q) for q in self.q])
        self.V, self.X = np.empty((2, states, model.nv))
        self.V[:, self.bridge.v], self.X[:, self.bridge.v] = self.v, self.x
        self.functions = {"inverse": (ld.inverse_dynamics_derivatives, pin.computeRNEADerivatives),
                          "forward": (ld.forward_dynamics_derivatives, pin.computeABADerivatives)}
        self.check()

    def check(self) -> None:
        data, order = self.bridge.data, np.ix_(self.bridge.v, self.bridge.v)
        for what, fields in (("inverse", ("dtau_dq", "dtau_dv")), ("forward", ("ddq_dq", "ddq_dv"))):
            ours, theirs = self.functions[what]
            mine = ours(self.model, self.q[0], self.v[0], self.x[0], passive=False)
            theirs(self.bridge.pin, data, self.Q[0], self.V[0], self.X[0])
            for x, field in zip(mine, fields, strict=False):
                error = relative(x, getattr(data, field)[order])
                assert error < 1e-9, f"{self.model.name}: {field} differs from Pinocchio by {error:.1e}"

    def one_by_one(self, what: str, repeats: int) -> Pair:
        (ours, theirs), model, their_model, data = self.functions[what], self.model, self.bridge.pin, self.bridge.data
        mine = list(zip(self.q, self.v, self.x, strict=True))
        other = list(zip(self.Q, self.V, self.X, strict=True))
        return side_by_side(lambda: last(ours(model, q, v, x, passive=False) for q, v, x in mine),
                            lambda: last(theirs(their_model, data, q, v, x) for q, v, x in other), repeats)

    def batch(self, what: str, repeats: int) -> Pair:
        """Compute all states at once. Pinocchio has no batch call: its states are computed sequentially."""
        (ours, theirs), model, their_model, data = self.functions[what], self.model, self.bridge.pin, self.bridge.data
        other = list(zip(self.Q, self.V, self.X, strict=True))
        pair = side_by_side(lambda: last(ours(model, self.q, self.v, self.x, passive=False) for _ in range(BATCHES)),
                            lambda: last(theirs(their_model, data, q, v, x) for q, v, x in other), repeats)
        return Pair(pair.ours / BATCHES, pair.theirs, pair.ratio * BATCHES)


def last(results):
    """Return the last of many results: a list of all would measure their memory."""
    kept = None
    for kept in results:                                         # noqa: B007
        pass
    return kept


def of_a_batch(nv: int, numbers: int) -> int:
    """Return states whose derivatives have about that many numbers, at most 512."""
    return min(512, numbers // (3 * nv * nv) // 8 * 8)


def against_pinocchio(numbers: int = 250_000, repeats: int = 15) -> list[tuple[str, str, int, str, float, Pair]]:
    """(robot, what, nv, "one" or "batch", us a state, pair), one core. Batches whose results have about `numbers` numbers,
    2 MB, at most 512 states: larger ones measure how fast the machine hands out fresh memory."""
    rows = []
    for name in ROBOTS:
        nv = Case(name, 1).model.nv
        states = of_a_batch(nv, numbers)
        case = Case(name, states)
        for what in ("inverse", "forward"):
            for how, pair in (("one", case.one_by_one(what, repeats)), ("batch", case.batch(what, repeats))):
                rows.append((name, what, case.model.nv, how, pair.ours / states * 1e6, pair))
    return rows


def large_batches(numbers: int = 5_000_000, repeats: int = 9) -> list[tuple[str, str, int, float, float]]:
    """(robot, what, states, us a state, the same in times of one of a batch as `against_pinocchio` measures): results of about so
    many numbers, 40 MB, each dropped when the next is there."""
    rows = []
    for name in ROBOTS:
        nv = Case(name, 1).model.nv
        large, small = Case(name, numbers // (3 * nv * nv) // 8 * 8), Case(name, max(8, of_a_batch(nv, numbers // 20)))
        for what, (ours, _) in large.functions.items():
            times = len(large.q) // len(small.q)
            pair = side_by_side(lambda ours=ours, small=small, times=times: last(
                ours(small.model, small.q, small.v, small.x, passive=False) for _ in range(times)),
                lambda ours=ours, large=large: ours(large.model, large.q, large.v, large.x, passive=False), repeats)
            each = len(small.q) * times / len(large.q)
            rows.append((name, what, len(large.q), pair.theirs / len(large.q) * 1e6, pair.ratio * each))
    return rows


def hybrid_against_forward(numbers: int = 250_000, repeats: int = 15) -> list[tuple[str, int, str, float, float, float]]:
    """(robot, nv, "one" or "batch", us a state of hybrid derivatives with every other joint prescribed, the same of forward ones,
    ratio); batches as in `against_pinocchio`."""
    rows = []
    for name in ROBOTS:
        nv = Case(name, 1).model.nv
        count = {"one": 64, "batch": of_a_batch(nv, numbers)}
        for how, states in count.items():
            case, mask = Case(name, states), np.arange(nv) % 2 == 0
            given = list(zip(case.q, case.v, case.x, strict=True)) if how == "one" else [(case.q, case.v, case.x)] * BATCHES
            pair = side_by_side(
                lambda case=case, given=given, mask=mask: last(
                    ld.hybrid_dynamics_derivatives(case.model, q, v, x, x, mask, passive=False) for q, v, x in given),
                lambda case=case, given=given: last(ld.forward_dynamics_derivatives(case.model, q, v, x, passive=False)
                                                    for q, v, x in given), repeats)
            us = 1e6 / (states if how == "one" else states * BATCHES)
            rows.append((name, nv, how, pair.ours * us, pair.theirs * us, pair.ratio))
    return rows


def differences(case: Case, k: int, h: float = 1e-5) -> tuple[np.ndarray, ...]:
    """Second derivatives of inverse dynamics as one has them from Pinocchio, which does not offer them to Python: central
    differences of computeRNEADerivatives, 4 nv calls, to 1e-9 or so. In Pinocchio's order."""
    import pinocchio as pin
    model, data, (q, v, a), nv = case.bridge.pin, case.bridge.data, (case.Q[k], case.V[k], case.X[k]), case.model.nv
    dqdq, dqdv, dvdv, dqda = np.empty((4, nv, nv, nv))
    for j, e in enumerate(h * np.eye(nv)):
        dq, _, M = pin.computeRNEADerivatives(model, data, pin.integrate(model, q, e), v, a)
        dqdq[:, :, j], dqda[:, j] = dq, M
        dq, _, M = pin.computeRNEADerivatives(model, data, pin.integrate(model, q, -e), v, a)
        dqdq[:, :, j] -= dq
        dqda[:, j] -= M
        dq, dv, _ = pin.computeRNEADerivatives(model, data, q, v + e, a)
        dqdv[:, :, j], dvdv[:, :, j] = dq, dv
        dq, dv, _ = pin.computeRNEADerivatives(model, data, q, v - e, a)
        dqdv[:, :, j] -= dq
        dvdv[:, :, j] -= dv
    return dqdq / (2 * h), dqdv / (2 * h), dvdv / (2 * h), dqda / (2 * h)


def second(repeats: int = 9, states: int = 16) -> list[tuple[str, int, str, float, Pair]]:
    """Return (robot, nv, "one" or "batch", microseconds per state of second derivatives of inverse dynamics, pair)."""
    rows = []
    for name in ROBOTS:
        case = Case(name, states)
        model, order = case.model, np.ix_(*[case.bridge.v] * 3)
        for x, y in zip(ld.inverse_dynamics_second_derivatives(model, case.q[0], case.v[0], case.x[0], passive=False),
                        differences(case, 0), strict=True):
            error = relative(x, y[order])
            assert error < 1e-7, f"{model.name}: second derivatives differ from Pinocchio's by {error:.1e}"
        given = list(zip(case.q, case.v, case.x, strict=True))
        ours = {"one": lambda model=model, given=given: last(
                    ld.inverse_dynamics_second_derivatives(model, q, v, a, passive=False) for q, v, a in given),
                "batch": lambda model=model, case=case: ld.inverse_dynamics_second_derivatives(
                    model, case.q, case.v, case.x, passive=False)}
        for how, function in ours.items():
            pair = side_by_side(function, lambda case=case: differences(case, 1), repeats)
            rows.append((name, model.nv, how, pair.ours / states * 1e6,
                         Pair(pair.ours / states, pair.theirs, pair.ratio * states)))
    return rows


GEAR = {7: 32.0, 30: 620.0}     # us, published for GEAR (K1's own program): 7 joints; 30 joints, half of them prescribed


def hybrid_chains(repeats: int = 15) -> list[tuple[int, float, float]]:
    """Return (joints, microseconds per call of hybrid derivatives of a chain, GEAR's)."""
    from benchmarks.chains import chain
    rows = []
    for n, theirs in GEAR.items():
        model = ld.build(chain(n))
        rng = np.random.default_rng(0)
        mask = np.arange(n) % 2 == 0 if n == 30 else np.zeros(n, dtype=bool)
        states = list(zip(ld.random_configuration(model, rng, 64), *rng.standard_normal((3, 64, n)), strict=True))
        us = median(lambda states=states, model=model, mask=mask: last(
            ld.hybrid_dynamics_derivatives(model, q, v, a, tau, mask) for q, v, a, tau in states), repeats) / 64 * 1e6
        rows.append((n, us, theirs))
    return rows
