"""Compilation of the functions of the package in advance: for container images, tests and courses."""
from __future__ import annotations

import inspect
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import liedyn as ld
from liedyn.arrays import ArrayLike
from liedyn.errors import NameLookupError, counted, size_text
from liedyn.model.model import Model
from liedyn.numba_tools import compile_cache
from liedyn.simulation.run import SilentProgress

DEFAULT_GROUPS = ("dynamics", "simulate")
BATCH_SIZE = 9                           # states of a batch: one vector of eight states, and one more

# Compiled code is the same for every robot; these are as small as possible.
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


# The arguments of these functions follow from their names, see `_arguments`.
GROUPS = {
    "dynamics": (
        "inverse_dynamics", "forward_dynamics", "hybrid_dynamics", "bias_force", "gravity_force", "joint_wrenches",
        "element_forces", "element_wrenches",
        "mass_matrix", "inverse_mass_matrix", "link_pose", "link_poses", "link_twist", "link_acceleration", "jacobian",
        "jacobian_derivative", "energy", "momentum", "centre_of_mass", "integrate", "difference", "inverse_kinematics"),
    "simulate": (),
    "derivatives": (
        "inverse_dynamics_derivatives", "forward_dynamics_derivatives", "hybrid_dynamics_derivatives",
        "inverse_dynamics_second_derivatives", "inverse_dynamics_directional", "forward_dynamics_directional",
        "hybrid_dynamics_directional", "parameter_derivatives", "coriolis_matrix",
        "slotine_li_inverse_dynamics", "christoffel_symbols", "mass_matrix_derivative", "mass_matrix_rate", "curvature_tensor",
        "d_integrate", "d_difference", "linearize"),
    "higher-order": (
        "higher_order_inverse_dynamics", "higher_order_forward_dynamics", "higher_order_hybrid_dynamics",
        "link_pose_derivatives", "link_twist_derivatives", "jacobian_derivatives", "centre_of_mass_derivatives",
        "momentum_derivatives"),
    "parameters": ("regressor", "slotine_li_regressor", "energy_regressor", "momentum_regressor", "base_parameters"),
    "loops": (
        "constraint_residual", "constraint_velocity", "constraint_bias", "constraint_jacobian", "project_configuration",
        "project_velocity", "constrained_forward_dynamics", "constrained_hybrid_dynamics", "constraint_forces",
        "constraint_wrenches", "closure_wrenches", "constrained_inverse_dynamics", "constrained_forward_derivatives",
        "constrained_hybrid_derivatives", "constrained_inverse_derivatives", "balance_derivatives", "mobility"),
}
VARIANTS = {"coriolis_matrix": ({"method": "recursive"}, {"method": "christoffel"})}
METHODS = ("rk4", "dopri5", "rodas5p")
SINGLE_STATE = {"curvature_tensor", "linearize", "base_parameters", "mobility"}


@dataclass(frozen=True)
class WarmupStep:
    """A function that was compiled or loaded, and the time of its first calls."""

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

    steps: tuple[WarmupStep, ...]
    cache: str
    files: int
    size: int

    def __repr__(self) -> str:
        return f"<Warmup: {self.summary}>"

    @property
    def summary(self) -> str:
        """Number of functions, their time and the size of the cache, as a sentence."""
        return (f"{counted(len(self.steps), 'function')} in {sum(step.seconds for step in self.steps):.1f} s; the cache "
                f"{self.cache} holds {counted(self.files, 'compiled function')}, {size_text(self.size)}")

    def plain(self) -> dict[str, Any]:
        """Return the fields as dicts and lists, for JSON."""
        return asdict(self)


def warmup(what: str | Iterable[str] | None = None, *, robot: str | os.PathLike[str] | Model | None = None,
           progress: Any = None) -> Warmup:
    """Compile the functions of groups, or load them from the cache, so that later calls and processes need not compile them.

    Code is compiled for this processor, into the folder that LIEDYN_CACHE_DIR names or the user's cache. It is the same for every
    robot.

    Parameters
    ----------
    what : str or several, optional
        One or more of "dynamics", "simulate", "derivatives", "higher-order", "parameters", "loops"; or "all". Default:
        dynamics and simulate, and loops for a robot that has some.
    robot : path or Model, optional
        Robot that determines the default groups.
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
    progress, steps = progress or SilentProgress(), []
    with tempfile.TemporaryDirectory(prefix="liedyn-") as folder:
        waiting = [step for group in groups for step in _steps(group, Path(folder))]
        for k, (group, name, call) in enumerate(waiting):
            with progress.stage(f"compiling or loading {name} ({k + 1} of {len(waiting)})"):
                start = time.perf_counter()
                call()
                steps.append(WarmupStep(group, name, time.perf_counter() - start))
    return Warmup(tuple(steps), str(compile_cache.root()), *compile_cache.contents())


def _groups(choice: str | Iterable[str] | None, robot: str | os.PathLike[str] | Model | None) -> list[str]:
    if choice is None:
        loops = robot is not None and (robot if isinstance(robot, Model) else ld.load(robot)).nc > 0
        return [*DEFAULT_GROUPS, *(["loops"] if loops else [])]
    names = [choice] if isinstance(choice, str) else list(choice)
    for name in names:
        if name != "all" and name not in GROUPS:
            raise NameLookupError(f"unknown group of functions {name!r}: expected one of {', '.join([*GROUPS, 'all'])}")
    return [name for name in GROUPS if name in names or "all" in names]


def _steps(group: str, folder: Path) -> Iterator[tuple[str, str, Callable[[], object]]]:
    """Yield (group, name, call) of each function; robot files are in the folder."""
    loops = group == "loops"
    path = folder / f"{group}_robot.yaml"
    path.write_text(LOOP if loops else TREE, encoding="utf-8", newline="\n")
    model = ld.load(path)
    guess = GUESS if loops else np.ones(model.nv)
    if loops:
        yield group, "assemble", partial(ld.assemble, model, guess)
    for name in GROUPS[group]:
        yield group, name, partial(_call, getattr(ld, name), model, guess, ((),) if name in SINGLE_STATE else ((), (BATCH_SIZE,)))
    if loops or group == "simulate":
        for method in METHODS:
            yield group, f"run_scenario, {method}", partial(_run, path, model, guess, method)


def _call(function: Callable[..., Any], model: ld.Model, guess: ArrayLike,
          batch_shapes: Iterable[tuple[int, ...]]) -> None:
    """Call a function with its positional arguments and, if it has this parameter, a direction dq."""
    q = ld.assemble(model, guess).q if model.nc else guess
    for lead in batch_shapes:
        known = _arguments(model, np.broadcast_to(q, (*lead, model.nq)))
        arguments = {name: known[name] for name, parameter in inspect.signature(function).parameters.items()
                     if parameter.default is parameter.empty or name in ("dq", "actuated")}
        for version in VARIANTS.get(function.__name__, ({},)):
            function(**arguments, **version)


def _arguments(model: ld.Model, q: np.ndarray) -> dict[str, Any]:
    """Return arguments by name for one state or a batch at rest; the orders of derivatives are 0 and 1."""
    lead = q.shape[:-1]
    x, rates = np.zeros((*lead, model.nv)), np.zeros((*lead, 2, model.nv))
    return {"model": model, "link": "b", "actuated": ["first"], "prescribed": np.arange(model.nv) == 0,
            "tasks": {model.link_names[-1]: ld.link_pose(model, q, model.link_names[-1])},
            "multipliers": np.zeros((*lead, model.nc)),
            **dict.fromkeys(("q", "q0", "q1"), q), **dict.fromkeys(("v", "a", "v_r", "a_r", "tau", "x", "dq", "dv"), x),
            **dict.fromkeys(("v_derivatives", "a_derivatives", "tau_derivatives"), rates)}


def _run(path: Path, model: ld.Model, guess: ArrayLike, method: str) -> None:
    """Run a scenario with an expression, an external force and this integrator."""
    step = {"step": 0.01} if method == "rk4" else {"rtol": 1e-6, "atol": 1e-9}
    force = {"link": "b", "frame": "local", "wrench": [0, 0, 0, 0, 0, "sin(t)"]}
    ld.run_scenario({
        "robot": str(path), "duration": 0.02, "output_step": 0.01, "integrator": {"method": method, **step},
        "initial": {"q": dict(zip(model.joint_names, np.asarray(guess, dtype=float).tolist(), strict=True))},
        "joints": {"first": {"torque": "-q(first)"}}, "external_forces": [force]})
