"""Time derivatives of inverse and forward dynamics, on the tree of the paper that gives them: against Pinocchio's `rnea` (of
order 0 only, so the figures are multiples of its time), the paper's own program, and CasADi.

The authors' program, 101 bodies, one core: 28.5 to 248 us for inverse dynamics of orders 0 to 5, 38.9 to 383 us for forward
ones, where `rnea` takes 16.8 us.
"""
from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

import liedyn as ld
from benchmarks.branches import Casadi, pinocchio_of, tree
from benchmarks.measure import consume
from bridge import SWAP, relative
from spatial_series import reference_inverse

AUTHORS = {"inverse": (1.7, 3.1, 5.0, 7.6, 10.9, 14.8), "forward": (2.3, 5.4, 8.6, 12.7, 17.5, 22.8)}   # times rnea
UNDER_AUTHORS = {"one": 4.0, "batch": 12.0}     # times
OVER_AUTOMATIC = {False: 50.0, True: 10.0}      # times CasADi at order 4, without and with elimination
QUADRATIC, LINEAR = 2.0, 1.2        # exponents; a batch of 1001 bodies works in 18 MB, outside the caches that hold 21
ORDERS = range(6)
LENGTHS = (4, 10, 20, 60, 200)       # of the five branches
GROWTH = 8                           # calls of one measurement of growth
CALLED, BATCH = 64, 512              # states of one measurement: a call each; in one call, whose first ones pay for the caches
CALLS = 4            # of CasADi for all states of ours
ACCURATE = 1e-10       # relative, order by order: what all must agree to before anything is timed


class Case:
    """The tree at random states, with random derivatives of the motion and the forces that belong to them."""

    def __init__(self, order: int, states: int = 1, branches: int = 5, bodies: int = 20):
        self.robot = tree(branches, bodies)
        self.model = model = ld.build(self.robot)
        self.order, rng = order, np.random.default_rng(0)
        self.states = {"one": min(states, CALLED), "batch": states}
        self.q = ld.random_configuration(model, rng, states)
        self.v = rng.standard_normal((states, order + 2, model.nv))
        self.tau = ld.higher_order_inverse_dynamics(model, self.q, self.v)

    def check(self) -> None:
        """Check that inverse dynamics equals the reference, and that forward dynamics under these forces gives its motion."""
        model, q, v, tau = self.model, self.q[0], self.v[0], self.tau[0]
        agree("inverse dynamics", tau, reference_inverse(model, q, v))
        self.check_other("forward", ld.higher_order_forward_dynamics(model, q, v[0], tau))
        self.check_other("forward", self.batch("forward", self.order)()[0])

    def check_other(self, what: str, results: Sequence[np.ndarray]) -> None:
        """Somebody's derivatives from order 0 on. Accelerations are judged by the forces that they take: each order divides by
        inertias what those before left of rounding, so two programs' own differ by 1e-5 at order 4."""
        tau = self.tau[0, :len(results)]
        if what == "forward":
            results = reference_inverse(self.model, self.q[0], np.concatenate([self.v[0, :1], results]))
        agree(f"{what} dynamics", results, tau)

    def batch(self, what: str, order: int) -> Callable[[], np.ndarray]:
        """Compute all states in one call."""
        model, q, v, tau = self.model, self.q, self.v[:, :order + 2].copy(), self.tau[:, :order + 1].copy()
        if what == "inverse":
            return lambda: ld.higher_order_inverse_dynamics(model, q, v)
        v = v[:, 0].copy()
        return lambda: ld.higher_order_forward_dynamics(model, q, v, tau)

    def one_by_one(self, what: str, order: int) -> Callable[[], None]:
        """Compute some states with one call each."""
        model, some = self.model, slice(self.states["one"])
        v, tau = self.v[some, :order + 2].copy(), self.tau[some, :order + 1].copy()
        if what == "inverse":
            rows = list(zip(self.q[some], v, strict=True))
            return lambda: each(lambda q, v: ld.higher_order_inverse_dynamics(model, q, v), rows)
        rows = list(zip(self.q[some], v[:, 0].copy(), tau, strict=True))
        return lambda: each(lambda q, v, tau: ld.higher_order_forward_dynamics(model, q, v, tau), rows)

    def how(self, how: str) -> Callable:
        return self.batch if how == "batch" else self.one_by_one

    def rnea(self) -> Callable[[], None]:
        """Compute the same states with Pinocchio, with one call each."""
        import pinocchio as pin
        some = slice(self.states["one"])
        their_model = pinocchio_of(self.robot)
        data = their_model.createData()
        swap = [*SWAP, *range(6, self.model.nv)]
        rows = [(q, v[0][swap], v[1][swap]) for q, v in zip(self.q[some], self.v[some], strict=True)]
        error = relative(pin.rnea(their_model, data, *rows[0])[swap], self.tau[0, 0])
        assert error < ACCURATE, f"inverse dynamics differ from Pinocchio's by {error:.1e}"
        return lambda: each(lambda q, v, a: pin.rnea(their_model, data, q, v, a), rows)


def repeated(function: Callable, times: int) -> None:
    for _ in range(times):
        consume(function())


def agree(name: str, results: Sequence[np.ndarray], expected: Sequence[np.ndarray]) -> None:
    for order, (x, y) in enumerate(zip(results, expected, strict=True)):
        error = relative(x, y)
        assert error < ACCURATE, f"{name} of order {order} differ by {error:.1e}"


def each(function: Callable, rows: Sequence[tuple]) -> None:
    for row in rows:
        consume(function(*row))


def against_rnea(states: int = BATCH, repeats: int = 61) -> Iterator[tuple[str, int, str, float, float]]:
    """Return ("inverse" or "forward", order, "one" or "batch", microseconds per state, ratio to rnea), on one core."""
    case = Case(max(ORDERS), states)
    case.check()
    rnea = case.rnea()
    for what in AUTHORS:
        for order in ORDERS:
            for how, count in case.states.items():
                theirs, ours = in_turn([rnea, case.how(how)(what, order)], repeats)
                yield what, order, how, ours / count * 1e6, ours / count / theirs * case.states["one"]


def rnea_microseconds(repeats: int = 61) -> float:
    """Return the time of Pinocchio's `rnea` for the tree of 101 bodies."""
    return in_turn([Case(0, CALLED).rnea()], repeats)[0] / CALLED * 1e6


def by_order(how: str, orders: Sequence[int] = range(13), states: int = BATCH, repeats: int = 21, bodies: int = 20):
    """{"inverse", "forward"}: us a state of each order. `how` is "one" (call a state) or "batch"; five branches of `bodies`."""
    case = Case(max(orders), states if how == "batch" else GROWTH, bodies=bodies)
    return {what: in_turn([case.how(how)(what, order) for order in orders], repeats) / case.states[how] * 1e6 for what in AUTHORS}


def by_bodies(how: str, lengths: Sequence[int] = LENGTHS, order: int = 3, states: int = BATCH, repeats: int = 21):
    """{"inverse", "forward"}: us a state of trees of 1 + 5 n bodies for the lengths n of their branches."""
    cases = [Case(order, states if how == "batch" else GROWTH, bodies=n) for n in lengths]
    return {what: in_turn([case.how(how)(what, order) for case in cases], repeats) / cases[0].states[how] * 1e6
            for what in AUTHORS}


def in_turn(functions: Sequence[Callable], repeats: int) -> np.ndarray:
    """Seconds of processor time of each. They take turns, and are told by their median ratio to the first, so that a slow moment
    of the machine strikes all, and another program's time none."""
    for function in functions:
        function()
    rounds = np.array([[processor_seconds(function) for function in functions] for _ in range(repeats)])
    return np.median(rounds[:, 0]) * np.median(rounds / rounds[:, :1], axis=0)


def processor_seconds(function: Callable[[], object]) -> float:
    began = time.thread_time()
    consume(function())
    return time.thread_time() - began


def exponent(sizes: Sequence[float], times: Sequence[float]) -> float:
    """Return p of the power law c size^p that fits the times best on logarithmic scales."""
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])


class Automatic(NamedTuple):
    """CasADi's derivative of one order next to ours."""
    what: str              # inverse, forward
    eliminate: bool        # common subexpressions, at each order
    order: int
    built: float           # s that it took to build the graph up to this order, and the function
    operations: int
    us: float              # a call of ours, which returns all orders up to this one
    theirs: float          # us, a call of theirs, which returns this order alone

    @property
    def ratio(self) -> float:
        return self.theirs / self.us


def against_casadi(what: str, orders: Sequence[int] = (4,), states: int = CALLED, repeats: int = 15,
                   bodies: int = 20) -> Iterator[Automatic]:
    """These orders, first without elimination, then with it. All states for a few calls of theirs: after one of theirs the caches
    are its own, and a single call of ours would measure that."""
    case = Case(max(orders), states, bodies=bodies)
    case.check()
    given = case.v[0] if what == "inverse" else np.concatenate([case.v[0, :1], case.tau[0]])
    for eliminate in (False, True):
        began = time.perf_counter()
        graph, built, results = Casadi(case.model, what, eliminate), 0.0, []
        for order in range(max(orders) + 1):
            if order:
                graph.differentiate()
            built += time.perf_counter() - began
            began = time.perf_counter()
            theirs, operations = graph.call(case.q[0], given)
            compiled = time.perf_counter() - began
            results.append(theirs().copy())
            if order in orders:
                case.check_other(what, results)
                calls = partial(repeated, theirs, CALLS)
                their_time, our_time = in_turn([calls, case.one_by_one(what, order)], repeats)
                yield Automatic(what, eliminate, order, built + compiled, operations, our_time / states * 1e6,
                                their_time / CALLS * 1e6)
            began = time.perf_counter()


# what `make bench` prints ---------------------------------------------------------------------------------------------
def report(line: Callable[[bool, str], None], quick: bool = False) -> None:
    print("\ninverse and forward dynamics with their time derivatives, 101 bodies, in times of Pinocchio's rnea")
    few = {"repeats": 3, "states": 8} if quick else {}
    for what, order, how, us, multiple in against_rnea(**few):
        theirs, asked = AUTHORS[what][order], UNDER_AUTHORS[how]
        line(theirs >= asked * multiple, f"{what} order {order} {how:5s}: {us:6.2f} us, {multiple:6.3f} rnea, the authors' "
             f"{theirs:4.1f}, {theirs / multiple:5.1f}x (asked {asked:g}x)")
    bodies, lengths = (2, (2, 4, 8)) if quick else (20, LENGTHS)
    print(f"\ngrowth with the order ({1 + 5 * bodies} bodies) and with the number of bodies (order 3), us a state")
    for how in UNDER_AUTHORS:
        report_orders(line, how, by_order(how, bodies=bodies, **few))
        report_bodies(line, how, [1 + 5 * n for n in lengths], by_bodies(how, lengths, **few))
    print(f"\nautomatic differentiation by CasADi, {1 + 5 * bodies} bodies, one call (us)")
    for what in AUTHORS:
        for x in against_casadi(what, bodies=bodies, **few):
            how, asked = ("plain", "eliminated")[x.eliminate], OVER_AUTOMATIC[x.eliminate]
            line(x.ratio >= asked, f"{what} order {x.order} {how:10s}: ours {x.us:5.1f}, CasADi {x.theirs:5.0f} ({x.operations} "
                 f"operations, built in {x.built:.0f} s), {x.ratio:5.1f}x (asked {asked:g}x)")


def report_orders(line, how: str, times: dict[str, np.ndarray]) -> None:
    """Power laws of r + 1 fitted from order 2 on, and over the upper half, where the fixed cost of a call counts less."""
    for what, us in times.items():
        fits = {first: exponent(np.arange(first, len(us)) + 1, us[first:]) for first in (2, len(us) // 2)}
        line(max(fits.values()) <= QUADRATIC, f"{what} {how:5s}, orders 0 to {len(us) - 1}: " + ", ".join(f"{x:.3g}" for x in us)
             + "; " + ", ".join(f"from {first} on (r + 1)^{p:.2f}" for first, p in fits.items()) + f" (asked {QUADRATIC:g})")


def report_bodies(line, how: str, bodies: list[int], times: dict[str, np.ndarray]) -> None:
    for what, us in times.items():
        p = exponent(bodies, us)
        line(p <= LINEAR, f"{what} {how:5s}, bodies " + ", ".join(f"{n}: {x:.3g}" for n, x in zip(bodies, us, strict=True))
             + f"; n^{p:.2f} (asked {LINEAR:g})")
