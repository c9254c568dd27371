"""Compiling beforehand what the functions of the package need: for images of containers, for tests elsewhere, for a lesson."""
from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import liedyn as ld
from liedyn import code_cache
from liedyn.errors import NameLookupError
from liedyn.simulation.run import Silent

USUAL = ("dynamics", "simulate")
COUNT = 9                           # of a batch: eight states side by side and one more

# Compiled code is the same for every robot; these are as small as can be.
TREE = """
links:
  a: {mass: 1, com: [0.1, 0, 0], inertia: [1, 1, 1]}
  b: {mass: 1, com: [0.1, 0, 0], inertia: [1, 1, 1]}
joints:
  first: {type: revolute, parent: world, child: a, axis: [0, -1, 0], limits: {lower: -9, upper: 9}}
  second: {type: revolute, parent: a, child: b, axis: [0, -1, 0], limits: {lower: -9, upper: 9}, damping: 0.1}
"""
LOOP = """
links:
  a: {mass: 1, com: [0.5, 0, 0], inertia: [1, 1, 1]}
  b: {mass: 1, com: [0.5, 0, 0], inertia: [1, 1, 1]}
  c: {mass: 1, com: [0.5, 0, 0], inertia: [1, 1, 1]}
joints:
  first: {type: continuous, parent: world, child: a, axis: [0, -1, 0]}
  second: {type: continuous, parent: a, child: b, axis: [0, -1, 0], origin: {xyz: [1, 0, 0]}}
  third: {type: continuous, parent: world, child: c, axis: [0, -1, 0], origin: {xyz: [1.5, 0, 0]}}
loops:
  pin: {type: revolute, a: {link: b, xyz: [1, 0, 0]}, b: {link: c, xyz: [1, 0, 0]}, axis: [0, 1, 0]}
"""
GUESS = (1.4, -0.9, 1.2)


@dataclass(frozen=True)
class State:
    """One state or a batch; `rows` gives derivatives of orders 0 and 1."""

    model: ld.Model
    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    tau: np.ndarray

    @property
    def mask(self) -> np.ndarray:
        return np.arange(self.model.nv) == 0

    def rows(self, x) -> np.ndarray:
        return np.stack([x, x], axis=-2)


DYNAMICS = {
    "inverse_dynamics": lambda m, s: ld.inverse_dynamics(m, s.q, s.v, s.a),
    "forward_dynamics": lambda m, s: ld.forward_dynamics(m, s.q, s.v, s.tau),
    "hybrid_dynamics": lambda m, s: ld.hybrid_dynamics(m, s.q, s.v, s.a, s.tau, s.mask),
    "bias_force": lambda m, s: ld.bias_force(m, s.q, s.v),
    "gravity_force": lambda m, s: ld.gravity_force(m, s.q),
    "joint_wrenches": lambda m, s: ld.joint_wrenches(m, s.q, s.v, s.a),
    "mass_matrix": lambda m, s: ld.mass_matrix(m, s.q),
    "inverse_mass_matrix": lambda m, s: ld.inverse_mass_matrix(m, s.q),
    "link_pose": lambda m, s: ld.link_pose(m, s.q, "b"),
    "link_poses": lambda m, s: ld.link_poses(m, s.q),
    "link_twist": lambda m, s: ld.link_twist(m, s.q, s.v, "b"),
    "link_acceleration": lambda m, s: ld.link_acceleration(m, s.q, s.v, s.a, "b"),
    "jacobian": lambda m, s: ld.jacobian(m, s.q, "b"),
    "jacobian_derivative": lambda m, s: ld.jacobian_derivative(m, s.q, s.v, "b"),
    "energy": lambda m, s: ld.energy(m, s.q, s.v),
    "momentum": lambda m, s: ld.momentum(m, s.q, s.v),
    "centre_of_mass": lambda m, s: ld.centre_of_mass(m, s.q),
    "integrate": lambda m, s: ld.integrate(m, s.q, s.v),
    "difference": lambda m, s: ld.difference(m, s.q, s.q),
}
DERIVATIVES = {
    "inverse_dynamics_derivatives": lambda m, s: ld.inverse_dynamics_derivatives(m, s.q, s.v, s.a),
    "forward_dynamics_derivatives": lambda m, s: ld.forward_dynamics_derivatives(m, s.q, s.v, s.tau),
    "hybrid_dynamics_derivatives": lambda m, s: ld.hybrid_dynamics_derivatives(m, s.q, s.v, s.a, s.tau, s.mask),
    "inverse_dynamics_second_derivatives": lambda m, s: ld.inverse_dynamics_second_derivatives(m, s.q, s.v, s.a),
    "inverse_dynamics_directional": lambda m, s: ld.inverse_dynamics_directional(m, s.q, s.v, s.a, dq=s.v),
    "forward_dynamics_directional": lambda m, s: ld.forward_dynamics_directional(m, s.q, s.v, s.tau, dq=s.v),
    "hybrid_dynamics_directional": lambda m, s: ld.hybrid_dynamics_directional(m, s.q, s.v, s.a, s.tau, s.mask, dq=s.v),
    "parameter_derivatives": lambda m, s: ld.parameter_derivatives(m, s.q, s.v, s.a),
    "coriolis_matrix": lambda m, s: [ld.coriolis_matrix(m, s.q, s.v, method=method) for method in ("recursive", "christoffel")],
    "christoffel_symbols": lambda m, s: ld.christoffel_symbols(m, s.q),
    "mass_matrix_derivative": lambda m, s: ld.mass_matrix_derivative(m, s.q),
    "mass_matrix_rate": lambda m, s: ld.mass_matrix_rate(m, s.q, s.v),
    "curvature_tensor": lambda m, s: ld.curvature_tensor(m, s.q),
    "d_integrate": lambda m, s: ld.d_integrate(m, s.q, s.v),
    "d_difference": lambda m, s: ld.d_difference(m, s.q, s.q),
    "linearize": lambda m, s: ld.linearize(m, s.q, s.v, s.tau),
}
HIGHER_ORDER = {
    "higher_order_inverse_dynamics": lambda m, s: ld.higher_order_inverse_dynamics(m, s.q, s.rows(s.v)),
    "higher_order_forward_dynamics": lambda m, s: ld.higher_order_forward_dynamics(m, s.q, s.v, s.rows(s.tau)),
    "higher_order_hybrid_dynamics":
        lambda m, s: ld.higher_order_hybrid_dynamics(m, s.q, s.v, s.rows(s.a), s.rows(s.tau), s.mask),
    "link_pose_derivatives": lambda m, s: ld.link_pose_derivatives(m, s.q, s.rows(s.v)),
    "link_twist_derivatives": lambda m, s: ld.link_twist_derivatives(m, s.q, s.rows(s.v)),
    "jacobian_derivatives": lambda m, s: ld.jacobian_derivatives(m, s.q, s.rows(s.v), "b"),
    "centre_of_mass_derivatives": lambda m, s: ld.centre_of_mass_derivatives(m, s.q, s.rows(s.v)),
    "momentum_derivatives": lambda m, s: ld.momentum_derivatives(m, s.q, s.rows(s.v)),
}
PARAMETERS = {
    "regressor": lambda m, s: ld.regressor(m, s.q, s.v, s.a),
    "energy_regressor": lambda m, s: ld.energy_regressor(m, s.q, s.v),
    "momentum_regressor": lambda m, s: ld.momentum_regressor(m, s.q, s.v),
    "base_parameters": lambda m, s: ld.base_parameters(m),
}
LOOPS = {
    "constraint_residual": lambda m, s: ld.constraint_residual(m, s.q),
    "constraint_velocity": lambda m, s: ld.constraint_velocity(m, s.q, s.v),
    "constraint_bias": lambda m, s: ld.constraint_bias(m, s.q, s.v),
    "constraint_jacobian": lambda m, s: ld.constraint_jacobian(m, s.q),
    "project_configuration": lambda m, s: ld.project_configuration(m, s.q),
    "project_velocity": lambda m, s: ld.project_velocity(m, s.q, s.v),
    "constrained_forward_dynamics": lambda m, s: ld.constrained_forward_dynamics(m, s.q, s.v, s.tau),
    "constrained_hybrid_dynamics": lambda m, s: ld.constrained_hybrid_dynamics(m, s.q, s.v, s.a, s.tau, s.mask),
    "constraint_forces": lambda m, s: ld.constraint_forces(m, s.q, np.zeros((*s.q.shape[:-1], m.nc))),
    "constraint_wrenches": lambda m, s: ld.constraint_wrenches(m, s.q, np.zeros((*s.q.shape[:-1], m.nc))),
    "closure_wrenches": lambda m, s: ld.closure_wrenches(m, s.q, np.zeros((*s.q.shape[:-1], m.nc))),
    "constrained_inverse_dynamics": lambda m, s: ld.constrained_inverse_dynamics(m, s.q, s.v, s.a, ["first"]),
    "constrained_forward_derivatives": lambda m, s: ld.constrained_forward_derivatives(m, s.q, s.v, s.tau),
    "constrained_hybrid_derivatives": lambda m, s: ld.constrained_hybrid_derivatives(m, s.q, s.v, s.a, s.tau, s.mask),
    "constrained_inverse_derivatives": lambda m, s: ld.constrained_inverse_derivatives(m, s.q, s.v, s.a, ["first"]),
    "balance_derivatives": lambda m, s: ld.balance_derivatives(m, s.q, s.v, s.a, np.zeros((*s.q.shape[:-1], m.nc))),
    "mobility": lambda m, s: ld.mobility(m, s.q),
}
GROUPS = {"dynamics": DYNAMICS, "simulate": {}, "derivatives": DERIVATIVES, "higher-order": HIGHER_ORDER,
          "parameters": PARAMETERS, "loops": LOOPS}
METHODS = ("rk4", "dopri5", "rodas5p")
OF_ONE_STATE = {"curvature_tensor", "linearize", "base_parameters", "mobility"}


@dataclass(frozen=True)
class Step:
    """A function that was compiled or loaded, and how long its first calls took."""

    group: str
    function: str
    seconds: float


@dataclass(frozen=True)
class Warmup:
    """What was compiled or loaded; the folder of the cache, the number of its files and their size [bytes].

    Examples
    --------
    >>> ld.warmup("dynamics").seconds           # doctest: +SKIP
    """

    steps: tuple[Step, ...]
    cache: str
    files: int
    size: int

    def __repr__(self) -> str:
        return f"<Warmup: {self.summary}>"

    @property
    def summary(self) -> str:
        return (f"{len(self.steps)} functions in {sum(step.seconds for step in self.steps):.1f} s; the cache {self.cache} holds "
                f"{self.files} compiled functions, {self.size / 1e6:.1f} MB")

    def plain(self) -> dict[str, Any]:
        """As dicts and lists, for JSON."""
        return asdict(self)


def warmup(what: str | Iterable[str] | None = None, *, robot: str | os.PathLike[str] | None = None,
           progress: Any = None) -> Warmup:
    """Compile the functions of groups, or load them from the cache, so that later calls and processes need not compile them.

    Code is compiled for this processor, into the folder that LIEDYN_CACHE_DIR names or the user's cache. It is the same for every
    robot.

    Parameters
    ----------
    what : str or several, optional
        Of "dynamics", "simulate", "derivatives", "higher-order", "parameters", "loops"; or "all". Default: dynamics and
        simulate, and loops for a robot that has some.
    robot : path, optional
        Robot file that the default looks at.
    progress : optional
        An object with `stage(text)`, a context, and `update(fraction)`.

    Returns
    -------
    Warmup

    Raises
    ------
    NameLookupError
        For an unknown group.
    ModelError
        For a robot that cannot be used.

    Examples
    --------
    >>> ld.warmup(["dynamics", "simulate"])     # doctest: +SKIP
    """
    groups = _groups(what, robot)
    progress, steps = progress or Silent(), []
    with tempfile.TemporaryDirectory(prefix="liedyn-") as folder:
        waiting = [step for group in groups for step in _steps(group, Path(folder))]
        for k, (group, name, call) in enumerate(waiting):
            with progress.stage(f"compiling or loading {name} ({k + 1} of {len(waiting)})"):
                start = time.perf_counter()
                call()
                steps.append(Step(group, name, time.perf_counter() - start))
    return Warmup(tuple(steps), str(code_cache.root()), *code_cache.contents())


def _groups(what, robot) -> list[str]:
    if what is None:
        loops = robot is not None and ld.load(robot).nc > 0
        return [*USUAL, *(["loops"] if loops else [])]
    asked = [what] if isinstance(what, str) else list(what)
    for name in asked:
        if name != "all" and name not in GROUPS:
            raise NameLookupError(f"unknown group of functions {name!r}; expected one of {', '.join([*GROUPS, 'all'])}")
    return [name for name in GROUPS if name in asked or "all" in asked]


def _steps(group: str, folder: Path):
    """(group, name, call) of each function; robots are read from a folder."""
    loops = group == "loops"
    path = folder / f"{group}_robot.yaml"
    path.write_text(LOOP if loops else TREE, encoding="utf-8")
    model = ld.load(path)
    guess = GUESS if loops else np.ones(model.nv)
    if loops:
        yield group, "assemble", partial(ld.assemble, model, guess)
    for name, function in GROUPS[group].items():
        yield group, name, partial(_call, function, model, guess, ((),) if name in OF_ONE_STATE else ((), (COUNT,)))
    if loops or group == "simulate":
        for method in METHODS:
            yield group, f"run_scenario, {method}", partial(_run, path, model, guess, method)


def _call(function, model, guess, leads) -> None:
    q = ld.assemble(model, guess).q if model.nc else guess
    for lead in leads:
        shape = (*lead, model.nv)
        function(model, State(model, np.broadcast_to(q, (*lead, model.nq)), *(np.zeros(shape) for _ in range(3))))


def _run(path, model, guess, method) -> None:
    step = {"step": 0.01} if method == "rk4" else {"rtol": 1e-6, "atol": 1e-9}
    force = {"link": "b", "frame": "local", "wrench": [0, 0, 0, 0, 0, "sin(t)"]}
    ld.run_scenario({
        "robot": str(path), "duration": 0.02, "output_step": 0.01, "integrator": {"method": method, **step},
        "initial": {"q": dict(zip(model.joint_names, map(float, guess), strict=True))},
        "joints": {"first": {"torque": "-q(first)"}}, "external_forces": [force]})
