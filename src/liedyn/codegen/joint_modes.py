"""Modes of coordinates as inputs of a step: each is free, or has a prescribed acceleration.

Hybrid dynamics with a mask that is an input (K1 Table 4): a coordinate with the armature R = 2^100 and the force R a has the
acceleration a. All other inertias are below the rounding of R, so that results are those of hybrid dynamics to rounding, and the
kernels need no masks of numbers. This includes loops, couplings, and joints of several coordinates. The force of a prescribed
coordinate follows from inverse dynamics.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from liedyn.codegen.scenario_inputs import SwitchableCoordinates
from liedyn.codegen.trace import traced_module
from liedyn.codegen.tracer import absolute, maximum, object_array, where_less, zeros
from liedyn.kernels.couplings import NO_COUPLINGS
from liedyn.kernels.newton_euler import newton_euler_workspace_size
from liedyn.kernels.simulation.signals import ACCELERATION, POSITION, TORQUE, VELOCITY
from liedyn.model.description import NO_AXIAL_INERTIA

# Numbers of a coordinate: its mode, and c0, c1, c2 of the acceleration c0 - c1 q - c2 v. c1 acts on screw joints only.
MODE_SIZE = 4
FREE, PRESCRIBED, OF_SCENARIO = 0.0, 1.0, 2.0        # modes: the last is the motion that the scenario prescribes
_RIGID = 2.0**100


class JointModes:
    """The modes of coordinates in the trace of a step.

    tree      of the robot, with armatures by mode
    mismatch  of the accelerations of the last evaluation and those that are prescribed
    """

    def __init__(self, runs: Any, coordinates: SwitchableCoordinates):
        self.runs, self.coordinates = runs, coordinates
        self.numbers = runs.inputs["modes"].reshape(-1, MODE_SIZE)
        self.accelerations = zeros(len(self.numbers))
        armature, flags = object_array([*runs.tree.armature]), runs.tree.flags & ~NO_AXIAL_INERTIA
        for k, (mode, *_) in zip(coordinates.v, self.numbers, strict=True):
            armature[k] = where_less(0.5, mode, _RIGID, armature[k])
        self.tree = runs.tree._replace(armature=armature, flags=flags)

    def begin(self, k: int, q0, y):
        """Return the state with the motion of the scenario at time k of the step. Write the prescribed accelerations."""
        w, nv, y, self.flagged = self.runs.workspace, self.runs.workspace.v.size, y.copy(), []
        for j, (i, iq, level, signal) in enumerate(zip(*self.coordinates, strict=True)):
            mode, c0, c1, c2 = self.numbers[j]
            a = c0 - c2 * y[nv + i] - (c1 * (q0[iq] + y[i]) if iq >= 0 else 0.0)
            if level != TORQUE:
                x, dx, ddx = motion = self._motion(k, level, signal)
                self.flagged.append((signal, where_less(1.5, mode, sum(motion), 0.0)))
                if level == POSITION:
                    y[i] = where_less(1.5, mode, x - q0[iq], y[i])
                if level != ACCELERATION:
                    y[nv + i] = where_less(1.5, mode, dx, y[nv + i])
                a, w.tau[i] = where_less(1.5, mode, ddx, a), 0.0
            self.accelerations[j] = a
            w.a[i] = where_less(0.5, mode, a, 0.0)                     # for laws that read it
        return y

    def _motion(self, k: int, level: int, signal: int):
        """Return position, velocity and acceleration of the scenario at time k of the step; zeros below its level."""
        runs, w = self.runs, self.runs.workspace
        x = traced_module("kernels.simulation.signals").evaluate_signal(runs.signals[k], signal, runs.times[k], w.q, w.v, w.stack)
        missing = {POSITION: 0, VELOCITY: 1, ACCELERATION: 2}[level]
        return [0.0] * missing + [*x][:3 - missing]

    def prescribe(self) -> None:
        """Write the forces of prescribed coordinates, and flag signals that are not finite."""
        w = self.runs.workspace
        for signal, x in self.flagged:
            traced_module("kernels.simulation.signals").flag_nonfinite(w.flag, signal, x)
        for i, (mode, *_), a in zip(self.coordinates.v, self.numbers, self.accelerations, strict=True):
            w.tau[i] = where_less(0.5, mode, _RIGID * a, w.tau[i])

    def rates(self, k: int, q0, y, dy):
        """Write the rates of an open tree as `right_hand_side` does, except for the work. Return a code."""
        runs, w = self.runs, self.runs.workspace
        y, p = runs.evaluate_inputs(k, q0, y), runs.plant
        deficit = traced_module("kernels.hybrid_dynamics").complete_coupled_motion(
            self.tree, p.couplings, p.acceleration_known, w.q, w.v, w.a, w.tau, w.F, p.passive[0], w.memory)
        return runs.motion.store_rates(runs.tree, p, runs.signals[k], y, deficit, 0.0, dy, w)

    @property
    def mismatch(self):
        """Maximum difference of accelerations and those that are prescribed, relative to these plus 1."""
        total = 0.0
        for i, (mode, *_), a in zip(self.coordinates.v, self.numbers, self.accelerations, strict=True):
            difference = absolute(self.runs.workspace.a[i] - a) / (1.0 + absolute(a))
            total = maximum(total, where_less(0.5, mode, difference, 0.0))
        return total

    def loop_code(self, of_equations: int, of_modes: int):
        """Return the code of dependent equations of loops: of_modes if a coordinate is prescribed that the scenario does not."""
        code = float(of_equations)
        for mode, *_ in self.numbers:
            code = where_less(0.5, mode, where_less(mode, 1.5, float(of_modes), code), code)
        return code

    def end(self, q, v) -> None:
        """Set q and v at the end of a step to the motion of the scenario."""
        for (i, iq, level, signal), (mode, *_) in zip(zip(*self.coordinates, strict=True), self.numbers, strict=True):
            x, dx, _ = self._motion(-1, level, signal) if level != TORQUE else (0.0, 0.0, 0.0)
            if level == POSITION:
                q[iq] = where_less(1.5, mode, x, q[iq])
            if level in (POSITION, VELOCITY):
                v[i] = where_less(1.5, mode, dx, v[i])

    def write_forces(self) -> None:
        """Write the generalized forces of prescribed coordinates: ID(q, v, a) - A^T lambda."""
        runs, w, p = self.runs, self.runs.workspace, self.runs.plant
        kernels, n, nv = traced_module("kernels.newton_euler"), runs.tree.parent.size, w.v.size
        force, memory = zeros(nv), kernels.newton_euler_workspace(zeros(newton_euler_workspace_size(n, nv)), n, nv)
        kernels.newton_euler(runs.tree, runs.tree.J, w.q, w.v, w.a, w.F, p.passive[0], force, memory)
        if runs.mechanism:
            force = force - self._constraint_forces()
        couplings, folding = p.couplings or NO_COUPLINGS, traced_module("kernels.couplings")
        folding.subtract_follower_forces(couplings, w.tau, force)
        folding.fold_forces(couplings, force)
        for i, (mode, *_) in zip(self.coordinates.v, self.numbers, strict=True):
            w.tau[i] = where_less(0.5, mode, force[i], w.tau[i])

    def _constraint_forces(self) -> np.ndarray:
        """Return A^T lambda. The columns of A are A v for unit velocities."""
        mechanism, nv = self.runs.mechanism, self.runs.workspace.v.size
        multipliers, forces = mechanism.constraint_ws.multipliers.copy(), zeros(nv)
        for k, v in enumerate(np.eye(nv)):
            mechanism.constraint_ws = mechanism.constraint_ws._replace(v=object_array([*map(float, v)]))
            mechanism.write("velocities")
            forces[k] = sum(x * y for x, y in zip(mechanism.constraint_ws.velocity, multipliers, strict=True))
        return forces
