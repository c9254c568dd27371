"""Public functions, recorded for one robot: which kernel, what goes in and what comes out."""
from __future__ import annotations

from collections.abc import Callable

import numpy as np

from liedyn.codegen.llvm import Recording
from liedyn.codegen.plain import plain
from liedyn.lie.recorded import SINCOS_RANGE, Tape, absolute, maximum, zeros

SMALLEST = 2.2250738585072014e-308          # x < SMALLEST: x is 0 or less
_UNIT = 1e-9            # of |quaternion|^2, as `kernels.checks.UNIT`


def record(model, function: str, passive: bool, with_f_ext: bool, library: bool = False) -> Recording:
    """The function of this robot. f_ext, where there is one, is the last input: wrenches in link frames. library: see `Tape`."""
    tape, tree = Tape(library), plain("joints.tree").tree_of(model.index, model.constants)
    inputs = [("q", model.nq), ("v", model.nv), *_FUNCTIONS[function][0](model.nv)]
    if with_f_ext:
        inputs.append(("f_ext", 6 * len(model.link_names)))
    given = {name: tape.inputs(name, count) for name, count in inputs}
    F = zeros(0)
    if with_f_ext:
        n, kinematics = model.n_bodies, plain("kernels.recursions.kinematics")
        _, F = kinematics.gather(tree, given["f_ext"], zeros(6 * n), n, len(model.link_names))
    outputs, bounds = _FUNCTIONS[function][1](tree, model, given, F, bool(passive and model.has_passive_forces))
    return Recording(tape, tuple(inputs), tuple(map(tuple, outputs)), (*bounds, *_of_inputs(model, tape, given["q"])))


def _of_inputs(model, tape: Tape, q) -> list[tuple]:
    """Quaternions of unit norm, angles that sine and cosine hold."""
    off, angle = 0.0, 0.0
    for joint in model.joints:
        if joint.type in ("ball", "free"):
            x, y, z, w = q[joint.q.stop - 4:joint.q.stop]
            off = maximum(absolute(x * x + y * y + z * z + w * w - 1.0), off)
    for x in tape.angles:
        angle = maximum(absolute(x), angle)
    return [(x, bound) for x, bound in ((off, _UNIT), (angle, SINCOS_RANGE)) if not isinstance(x, float)]


def _inverse_dynamics(tree, model, given, F, passive):
    kernel, n, nv, tau = plain("kernels.recursions.newton_euler"), model.n_bodies, model.nv, zeros(model.nv)
    work = kernel.newton_euler_work(zeros(kernel.newton_euler_memory(n, nv)), n, nv)
    kernel.newton_euler(tree, given["q"], given["v"], given["a"], F, passive, tau, work)
    return [tau], []


def _forward_dynamics(tree, model, given, F, passive):
    kernel, n, nv, a = plain("kernels.recursions.hybrid"), model.n_bodies, model.nv, zeros(model.nv)
    work = kernel.hybrid_work(zeros(kernel.hybrid_memory(n, nv)), n, nv)
    nothing = np.zeros(nv, dtype=bool)
    deficit = kernel.hybrid(tree, nothing, given["q"], given["v"], a, given["tau"], F, passive, work)
    return [a], [] if isinstance(deficit, float) else [(deficit, SMALLEST)]        # deficit <= 0


KERNELS = {"inverse_dynamics": ("kernels.recursions.newton_euler", "kernels.recursions.kinematics"),
           "forward_dynamics": ("kernels.recursions.hybrid",)}
_FUNCTIONS: dict[str, tuple[Callable, Callable]] = {
    "inverse_dynamics": (lambda nv: [("a", nv)], _inverse_dynamics),
    "forward_dynamics": (lambda nv: [("tau", nv)], _forward_dynamics),
}
