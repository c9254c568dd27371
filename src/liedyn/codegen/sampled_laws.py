"""A sample of a sampled controller as a trace: measured state, control laws, integrals, limits and resolution of the torques.

The same as `simulation.control.sampled_control.SampledController` without delay, noise, observer and functions of the user.
"""
from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from liedyn.codegen.rhs import RhsTracing
from liedyn.codegen.scenario_inputs import ScenarioTables
from liedyn.codegen.specialize import GeneratedBatchFunction, cache_folder, is_enabled, load_or_build_batch_function, simd_width
from liedyn.codegen.trace import VARYING, Array, Trace, angle_bounds, new_values, traced_module
from liedyn.codegen.tracer import absolute, object_array, where_less, zeros
from liedyn.kernels.simulation.rate_evaluation import CURVE_COEFFICIENTS
from liedyn.kernels.simulation.signals import TORQUE


def trace_sample(tables: ScenarioTables, controlled: np.ndarray, limit: np.ndarray, resolution: tuple[np.ndarray, ...],
                 interval: float, varying: tuple[int, ...] = ()) -> Trace:
    """Trace a sample.

    It reads now = [t, Taylor coefficients of the curves at t], values, q, v and integral (nv,), and writes integral and torque
    (inputs,).

    tables      of the laws, as if they were continuous
    controlled  (inputs,) bool: coordinates and actuators on which the controller acts
    limit       (inputs,) of the torque, infinite for none
    resolution  of q, v and the torque, each (inputs,); 0: exact
    interval    between samples [s]
    varying     indices of constants of the robot that are inputs, too, in the array `VARYING`
    """
    runs = _SampleTracing(tables, varying)
    w, schedule, nv, previous = runs.workspace, tables.schedule, tables.model.nv, runs.inputs["integral"]
    runs.evaluate_laws(resolution)
    thrusters = nv + schedule.force_actuator[schedule.force_actuator >= 0]
    torque, integral = zeros(len(controlled)), zeros(nv)
    torque[:nv], torque[thrusters] = w.tau, w.wrench[len(w.wrench) - len(thrusters):]
    torque[~controlled] = 0.0
    bottom, top = runs.limits(limit)
    columns = schedule.integral
    for k, rate in zip(columns, w.z[len(columns):2 * len(columns)], strict=True):      # not further beyond a limit
        is_winding = (where_less(top[k], torque[k], where_less(0.0, rate, 1.0, 0.0), 0.0)
                      + where_less(torque[k], bottom[k], where_less(rate, 0.0, 1.0, 0.0), 0.0))
        integral[k] = previous[k] + where_less(0.5, is_winding, 0.0, rate * interval)
    for k in range(len(torque)):
        x = quantized(torque[k], resolution[2][k])
        x = where_less(x, bottom[k], bottom[k], x)
        torque[k] = where_less(top[k], x, top[k], x)
    arrays = [Array(name, len(x), new_values(x, integral) if name == "integral" else (None,) * len(x))
              for name, x in runs.inputs.items()]
    if varying:
        arrays.append(Array(VARYING, len(varying), (None,) * len(varying)))
    finite = tuple(x for x in torque if not isinstance(x, float))
    return Trace(runs.ops, (*arrays, Array("torque", len(torque), tuple(torque))), tuple(angle_bounds(runs.ops)), finite)


def load_or_build_laws(sampled: Any, interval: float, varying: tuple[int, ...]) -> GeneratedBatchFunction | None:
    """Return the laws of a sampled controller for batches, or None if generated code is not available.

    sampled  `simulation.control.sampled_control.SampledLaws`

    The function has the arrays of `trace_sample`, without limits and resolution of torques. Torques of runs with angles beyond
    the range of sines are NaN.
    """
    tables, controlled = sampled.law.tables()._replace(varying=()), sampled.controlled
    resolution = *sampled.resolution[:2], np.zeros(len(controlled))
    if not is_enabled():
        return None

    def trace() -> Trace:
        sample = trace_sample(tables, controlled, np.full(len(controlled), np.inf), resolution, interval, varying)

        def checked(torque):
            for x, bound in sample.bounds:
                torque = where_less(x, bound, torque, np.nan)
            return torque
        *inputs, torque = sample.arrays
        return Trace(sample.ops, (*inputs, replace(torque, new_values=tuple(map(checked, torque.new_values)))), (), ())
    name = tables.name("laws", controlled.tobytes(), *(x.tobytes() for x in resolution), interval, simd_width(),
                       varying=varying)
    return load_or_build_batch_function(tables.model, cache_folder("kernels.simulation.right_hand_side.right_hand_side",
                                                                   "codegen.sampled_laws"), name, trace)


class _SampleTracing(RhsTracing):
    """Tracing of the laws at one time."""

    def __init__(self, tables: ScenarioTables, varying: tuple[int, ...]):
        model, self.schedule = tables.model, tables.schedule
        super().__init__(tables, {"now": 1 + CURVE_COEFFICIENTS * len(tables.curves), "values": len(tables.scenario_values),
                                  "q": model.nq, "v": model.nv, "integral": model.nv},
                         varying)
        self.t, curves = self.inputs["now"][0], self.inputs["now"][1:]
        sides = np.full(tables.signals.switches.size, np.nan)          # switches are evaluated
        self.traced = tables.traced_tables(self.inputs["values"], self.t, curves, sides)

    def evaluate_laws(self, resolution) -> None:
        """Write the torques at the measured state to the workspace."""
        schedule, q, v = self.schedule, self.inputs["q"].copy(), self.inputs["v"].copy()
        for k in np.flatnonzero((schedule.level == TORQUE) & (schedule.q_of_v >= 0)):
            q[schedule.q_of_v[k]] = quantized(q[schedule.q_of_v[k]], resolution[0][k])
            v[k] = quantized(v[k], resolution[1][k])
        y = np.concatenate([zeros(len(v)), v, self.inputs["integral"][schedule.integral], zeros(1)])
        with np.errstate(all="ignore"):
            self.motion.evaluate_inputs(self.tree, self.traced.plant, self.traced.schedule, self.traced.signals, self.t, q, y,
                                        self.workspace)

    def limits(self, limit) -> tuple[np.ndarray, np.ndarray]:
        """Return the minimum and maximum torques and thrusts, as `joint_control.force_limits`."""
        w, laws, signals = self.workspace, self.traced.plant.joint_laws, self.traced.signals
        bottom, top = object_array([*-limit]), object_array([*limit])
        if laws is None:
            return bottom, top
        evaluate = traced_module("kernels.simulation.signals").evaluate_signal
        for k in np.flatnonzero(laws.top >= 0):
            bottom[k], top[k] = (evaluate(signals, of[k], self.t, w.q, w.v, w.stack)[0] for of in (laws.bottom, laws.top))
        return bottom, top


def quantized(x, resolution: float):
    """Return x rounded to a multiple of the resolution, or x where that is 0 or less than the spacing of floats."""
    if not resolution or isinstance(x, float):
        return x
    eps = float(np.finfo(np.float32 if x.ops.single else np.float64).eps)
    up = 1.5 / eps                                         # x + up - up is the whole number nearest to x
    return where_less(absolute(x) * eps, resolution, (x / resolution + up - up) * resolution, x)
