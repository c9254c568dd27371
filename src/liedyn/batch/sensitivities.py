"""Derivatives of the outputs of a sweep by what varies, at one place of it.

Of runs that go side by side they are exact for the steps as these are computed (`step_rates`), of jobs along a trajectory by the
derivatives of the dynamics by parameters; outputs are differentiated as they are evaluated (`rates`). Else: central differences.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from liedyn.analyse.along.derivative_columns import Question
from liedyn.analyse.along.derivative_columns import jacobian as derivatives
from liedyn.analyse.along.dynamics_along import setting_of
from liedyn.analyse.along.recorded_motion import columns_of_motion
from liedyn.batch.along import AlongBench
from liedyn.batch.chunk import Bench
from liedyn.batch.motions import RunsMotion
from liedyn.batch.rates import NotExact, WithRates
from liedyn.batch.simulations import SimulationBench
from liedyn.batch.step_rates import rates_of_simulation
from liedyn.dynamics.kinematics import jacobian, jacobian_derivative, link_pose, link_twist
from liedyn.dynamics.tangent_numbers import tangent_rates
from liedyn.errors import LiedynError
from liedyn.kernels.simulation.link_points import COMPONENTS
from liedyn.simulation.records.motion_columns import columns_of

RUNS = 4                         # for central differences, by what varies
EXACT, DIFFERENCES = "exact derivatives", "central differences"
_FINE, _STEP = 1e-3, 0.02        # of the spread: differences of numbers that a run is made of, and of runs
_MOVING = ("origin", "screw", "pitch")          # parameters that displace links


@dataclass(frozen=True)
class Sensitivities:
    """base (outputs,): where all is at the centre; slopes (outputs, m): by what varies, NaN where it is no number, or runs beside
    the centre fail; ways: of each output, EXACT or DIFFERENCES."""

    base: np.ndarray
    slopes: np.ndarray
    ways: tuple[str, ...]


def sensitivities(bench: Bench, centre: list, spreads: np.ndarray) -> Sensitivities:
    """centre: values of what varies; spreads (m,): how far each varies, 0 for what is no number or does not vary.

    Raises ComputationError where the run at the centre is not complete."""
    which = np.flatnonzero(spreads > 0.0)
    n, base = len(bench.outputs), _outputs_at(bench, [centre])[0]
    if np.isnan(base).all() and n:
        raise NotExact("the run at the medians of what varies is not complete")
    slopes, ways = np.full((n, len(spreads)), np.nan), [DIFFERENCES] * n
    try:
        motion = _motion(bench, centre, spreads, which)
    except LiedynError:                                        # NotExact, or what is beside the centre cannot be run
        motion = None
    for k, output in enumerate(bench.outputs if motion is not None else ()):
        try:
            with np.errstate(all="ignore"):
                found = output.value(motion)
        except NotExact:
            continue
        slopes[k, which], ways[k] = found.dx[:, 0] if isinstance(found, WithRates) else 0.0, EXACT
    rest = [k for k in range(n) if ways[k] == DIFFERENCES]
    if rest:
        slopes[np.ix_(rest, which)] = differences(lambda rows: _outputs_at(bench, rows)[:, rest], centre, spreads, which, _STEP).T
    return Sensitivities(base, slopes, tuple(ways))


def differences(evaluate: Callable, centre: list, spreads, which, share: float) -> np.ndarray:
    """(which, results) central differences of evaluate(rows of values) with steps of a share of the spread and half of it,
    extrapolated to order 4."""
    found = []
    for k in which:
        h, rows = share * spreads[k], []
        for step in (h, -h, 0.5 * h, -0.5 * h):
            rows.append([*centre[:k], centre[k] + step, *centre[k + 1:]])
        a, b, c, d = evaluate(rows)
        found.append((4.0 * (c - d) / h - (a - b) / (2.0 * h)) / 3.0)
    return np.array(found)


def _outputs_at(bench: Bench, rows: list[list]) -> np.ndarray:
    """(rows, outputs) of runs with these values, NaN where they are not complete."""
    columns = [np.array(x) if all(isinstance(y, float) for y in x) else list(x) for x in zip(*rows, strict=True)]
    return bench.computed(0, columns).outputs


def _motion(bench: Bench, centre: list, spreads, which) -> _RatesMotion:
    if not isinstance(bench, SimulationBench):
        return _along(bench, centre, which)
    of_robot = [name for one, name in zip(bench.sweep.vary, bench.binding.parameters, strict=True) if one.of_robot]
    still = all(name and name.partition(".")[0] not in _MOVING for name in of_robot)
    return _RatesMotion(*rates_of_simulation(bench, centre, lambda numbers: differences(numbers, centre, spreads, which, _FINE)),
                        still)


class _RatesMotion:
    """A run, and the rates of what outputs read of it. rates: by what varies as runs side by side, of q by its numbers; still:
    whether links stay where they are on their bodies."""

    def __init__(self, base: RunsMotion, rates: RunsMotion, still: bool):
        self.base, self.t, self.rates, self.still = base, base.t, rates, still

    def column(self, name: str):
        if name in self.rates.columns:
            return WithRates(self.base.column(name), self.rates.column(name)[:, None])
        if name.startswith("fext."):
            return self.base.column(name)
        raise NotExact(name)

    def times_of(self, event: str):
        raise NotExact("events")

    def point(self, kind: str, link: str, at) -> WithRates:
        """p = p_link + R at; V, the twist, in world axes: dV = J dv + (dJ along dq) v."""
        if not self.still:
            raise NotExact(f"{kind}({link})")
        model, (q, v), found = self.base.model, (np.ascontiguousarray(x[0]) for x in (self.base.q, self.base.v)), []
        arm = link_pose(model, q, link)[..., :3, :3] @ np.array(at)
        J, V = (f(model, q, *more, link, frame="local_world_aligned") for f, more in ((jacobian, ()), (link_twist, (v,))))
        for dq, dv in zip(self.rates.q, self.rates.v, strict=True):
            x = np.ascontiguousarray(tangent_rates(model, q, dq))
            moved = (J @ x[..., None])[..., 0]
            turned = np.cross(moved[..., :3], arm)
            dV = (J @ dv[..., None])[..., 0] + (jacobian_derivative(model, q, x, link, frame="local_world_aligned")
                                                @ v[..., None])[..., 0]
            of_point = dV[..., 3:] + np.cross(dV[..., :3], arm) + np.cross(V[..., :3], turned)
            found.append(np.concatenate([moved[..., 3:] + turned, of_point, dV[..., :3]], axis=-1))
        return WithRates(self.base.point(kind, link, at), np.array(found)[:, None, :, COMPONENTS.index(kind)])


# along a trajectory -----------------------------------------------------------------------------------------------------

def _along(bench: AlongBench, centre: list, which) -> _RatesMotion:
    """The motion is given; what comes out has derivatives by parameters."""
    job, binding = bench.sweep.job, bench.binding
    names = [binding.parameters[k] for k in which]
    if not bench.side_by_side or job.kind == "derivatives" or not all(names):
        raise NotExact("this job")
    if any(name.partition(".")[0] in _MOVING for name in names):
        raise NotExact("placements")
    run = binding.bind(centre)
    setting = setting_of(run.model, run.trajectory, job.kind, job.prescribed)
    motion, given = setting.motion, setting.prescribed
    found = derivatives(run.model, Question(job.kind, given, np.arange(run.model.nv), tuple(names)), motion)
    found = np.moveaxis(found, -1, 0)
    still = {kind: np.zeros((len(names), *x.shape)) for kind, x in (("q", motion.q), ("v", motion.v))}
    rates = columns_of(run.model, **still, tau=np.where(given, found, 0.0), a=np.where(given, 0.0, found))
    base = [(name, unit, x[None]) for name, unit, x in columns_of_motion(run.model, setting.compute(run.model, motion))]
    t = run.trajectory.t
    return _RatesMotion(RunsMotion(run.model, t, base, motion.q[None], motion.v[None]),
                        RunsMotion(run.model, t, rates, **still), True)
