"""Linearization of a robot, or of a scenario at a time or at rest, in tangent coordinates."""
from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from liedyn.analysis.configurations import fixed_coordinates, solve_equilibrium
from liedyn.analysis.linear_system import LinearSystem
from liedyn.analysis.operating_point import (
    LinearizationSetup,
    OperatingPoint,
    chart,
    completed,
    instant,
    prepare,
    state_at,
    with_fixed_inputs,
)
from liedyn.analysis.tangent_system import check_all_matched, linear_system, tangent_system
from liedyn.arrays import Array, ArrayLike, Wrenches
from liedyn.dynamics.batching.arrays import as_array, wrenches
from liedyn.dynamics.constraints.constraints import (
    constraint_residual,
    constraint_velocity,
    project_configuration,
    project_velocity_unchecked,
)
from liedyn.dynamics.constraints.rank import equation_weights, rate_magnitude
from liedyn.dynamics.finite_differences import (
    DerivativeComparison,
    best_derivative,
    compare,
    extrapolated_derivative,
    has_friction,
    mass_matrix_condition,
    rounding_error,
)
from liedyn.dynamics.kinematics import difference, integrate, link_poses
from liedyn.dynamics.scales import model_scales
from liedyn.errors import ComputationError, LiedynWarning, ShapeError, warn
from liedyn.immutable import Immutable
from liedyn.io.scenarios.scenario import Scenario
from liedyn.io.yaml_values import Overrides
from liedyn.kernels.simulation.signals import TORQUE
from liedyn.model.description import FRICTION_SPEED
from liedyn.model.model import Model
from liedyn.numba_tools.compile_cache import FIRST_RUN_MESSAGE
from liedyn.robot_files import robot_file_warnings
from liedyn.simulation.constraint_setup import constraint_motions_at
from liedyn.simulation.control.law_derivatives import friction_warnings

_CLOSED = 1e-7       # maximum residual of constraints [rad | lengths of the loop]; for velocities, relative to the largest one


@dataclass(frozen=True, eq=False)
class Linearization(Immutable):
    """The linear system of a scenario about an instant of its motion or about an equilibrium.

    here          operating point: t, q, v, a, tau, external wrenches
    system        the linear system; step [s], Ad, Bd: its discretization
    offset        {input: value} that an equilibrium requires in addition to the scenario's forces; None without `equilibrium`
    differences   {matrix: comparison with extrapolated finite differences}; None without `verify`
    """

    scenario: Scenario
    model: Model
    here: OperatingPoint
    system: LinearSystem
    step: float
    Ad: Array
    Bd: Array
    offset: dict[str, float] | None = None
    differences: dict[str, DerivativeComparison] | None = None
    warnings: tuple[LiedynWarning, ...] = ()
    timing: dict[str, float] = field(default_factory=dict, compare=False)

    def __repr__(self) -> str:
        return f"<Linearization {self.model.name}: t = {self.here.t:g} s, step {self.step:g} s; system: {self.system!r}>"


def linearize(model: Model, q: ArrayLike, v: ArrayLike, tau: ArrayLike, *, a: ArrayLike | None = None,
              prescribed: ArrayLike | None = None, f_ext: Wrenches | None = None, passive: bool = True,
              inputs: str | Sequence[str] = "*", outputs: str | Sequence[str] = "q.*", independent: str | Sequence[str] = (),
              constraint_motion: Mapping[str, Any] | None = None) -> LinearSystem:
    """Return the linear system of small deviations from a motion.

    Forces, external wrenches in local frames, and accelerations of prescribed coordinates are constant except for the inputs.

    Parameters
    ----------
    model : Model
    q : (nq,) array
        Configuration [rad | m]; ball and free joints hold unit quaternions x y z w.
    v, tau : (nv,) arrays
        Joint velocity [rad/s | m/s] and force [N m | N], read where not prescribed.
    a : (nv,) array, optional
        Acceleration, read where prescribed.
    prescribed : (nv,) bool array, optional
        Coordinates whose acceleration is the input; default: none.
    f_ext, passive
        As in `forward_dynamics`.
    inputs, outputs : names or patterns, one or several
        Inputs are tau.<coordinate>, a.<coordinate> (where prescribed), thrust.<actuator>; outputs are q.…, v.…, a.…,
        tau.<coordinate> and p.<link>.x, .y, .z (a link's origin in the world).
    independent : names or patterns, one or several
        For a model with constraints: coordinates to use as states. Prescribed ones are always used; others are chosen.
    constraint_motion : {closure name: (T, V, dV)}, optional
        Motion of driven loops, see `constraint_residual`.

    Returns
    -------
    LinearSystem
        States q.<coordinate> (tangent: rotation [rad] and translation [m] in the body frame for ball and free joints), then v;
        with constraints those of independent coordinates.

    Raises
    ------
    ShapeError, ConfigurationError, ComputationError
        Also if q or v violate the constraints.
    ModelError
        For a robot without a moving joint.
    UsageError
        For a pattern that matches nothing.

    Examples
    --------
    >>> model = ld.load("robots/double_pendulum.yaml")
    >>> ld.linearize(model, [0.0, 0.0], [0.0, 0.0], [0.0, 0.0])
    <LinearSystem, neutral: 4 states q.shoulder, q.elbow, v.shoulder, v.elbow; 2 inputs tau.shoulder, ...
    """
    nv = model.nv
    prescribed = np.zeros(nv, dtype=bool) if prescribed is None else np.asarray(prescribed)
    if a is None and prescribed.any():
        raise ShapeError("a is missing: prescribed coordinates need their acceleration")
    q, v, tau = as_array(q, "q", (model.nq,)), as_array(v, "v", (nv,)), as_array(tau, "tau", (nv,))
    for name, x in (("q", q), ("v", v), ("tau", tau)):
        if x.ndim != 1:
            raise ShapeError(f"a single state is expected; found {name} of shape {x.shape}")
    _check_closed(model, q, v, constraint_motion)
    a, tau = completed(model, q, v, np.zeros(nv) if a is None else a, tau, prescribed, f_ext, passive, constraint_motion)
    chosen = chart(model, q, v, prescribed, constraint_motion, independent)
    here = OperatingPoint(0.0, q, v, a, tau, wrenches(model, f_ext), *np.zeros((2, nv)))
    none = np.zeros((nv, 2 * nv))
    return tangent_system(model, here, prescribed, passive, none, none, inputs, outputs, chosen, constraint_motion)


def _check_closed(model, q, v, constraint_motion) -> None:
    """Raise ComputationError if q or v violates the constraints."""
    if not model.nc:
        return
    for what, x, size, mend in (("q", constraint_residual(model, q, constraint_motion=constraint_motion), 1.0,
                                 "project_configuration or assemble"),
                                ("v", constraint_velocity(model, q, v, constraint_motion=constraint_motion),
                                 rate_magnitude(model, v, 1), "project_velocity")):
        off = equation_weights(model) * np.abs(x)
        r = int(np.argmax(off))
        if not off[r] <= _CLOSED * size:
            raise ComputationError(f"{what} violates the constraints: the residual of {model.constraint_equation_names[r]} is "
                                   f"{abs(x[r]):.3g} "
                                   f"({mend} corrects it)")


def linearize_scenario(path: str | os.PathLike[str] | Mapping[str, Any], *, at: float = 0.0, equilibrium: bool = False,
                       hold: str | Sequence[str] = (), open_loop: bool = False, step: float | None = None,
                       inputs: str | Sequence[str] = "*", outputs: str | Sequence[str] | None = None,
                       independent: str | Sequence[str] = (), verify: bool = False, overrides: Overrides = (),
                       strict: bool = False, progress: Any | None = None) -> Linearization:
    """Linearize a scenario file, or a robot file with defaults, at a time of its motion or about an equilibrium.

    Parameters
    ----------
    path : path or mapping
        A scenario YAML, robot YAML or URDF; or the keys of a scenario as a dict.
    at : float
        Time [s] up to which the scenario is simulated; the system is that of the phase, locked joints and attached bodies then.
    equilibrium : bool
        Linearize about an equilibrium near the state at that time (`find_equilibrium`).
    hold : names or patterns, one or several
        With `equilibrium`: joints to hold in place by a force to be found, actuators whose thrust is to be found.
    open_loop : bool
        Omit the state feedback of torques, PD and PID laws, wrenches and thrusts. Integrals of PID laws, states z.<coordinate>
        [N m | N], continue summing the errors.
    step : float, optional
        Time step of the discretization [s]; default: the scenario's output_step.
    inputs, outputs, independent
        As for `linearize`. Default outputs: q.* and the forces of prescribed joints.
    verify : bool
        Compare with extrapolated finite differences of the right-hand side.
    overrides, strict
        As for `run_scenario`.
    progress : optional
        An object with `stage(text)`, a context, and `update(fraction)`.

    Returns
    -------
    Linearization

    Raises
    ------
    ScenarioError, ModelError, TrajectoryError, UsageError
        UsageError also if an event ends the run before `at`, or a joint rests at a hard stop then.
    ComputationError
        If the simulation fails before `at`, a force has no derivative, or no equilibrium is found.

    Examples
    --------
    >>> found = ld.linearize_scenario("configs/cart_pole.yaml", equilibrium=True)
    >>> found.system.states, found.system.stability
    (('q.cart', 'q.pole', 'v.cart', 'v.pole'), 'stable')
    """
    from liedyn.simulation.run import SilentProgress

    progress, began = progress or SilentProgress(), time.perf_counter()
    setup = prepare(path, overrides, strict)
    offset, u = None, None
    if not setup.scenario.events:                            # events can change which coordinates are prescribed
        check_all_matched(setup.model, setup.prescribed, inputs, _default_outputs(setup) if outputs is None else outputs)
        if equilibrium:
            fixed_coordinates(setup, hold)
    with progress.stage(f"simulating up to the instant ({FIRST_RUN_MESSAGE})"):
        setup, t, q, v = state_at(setup, float(at), progress.update)
    warnings, outputs = list(setup.warnings), _default_outputs(setup) if outputs is None else outputs
    if equilibrium:
        with progress.stage(f"looking for an equilibrium ({FIRST_RUN_MESSAGE})"):
            found = solve_equilibrium(setup, t, q, v, hold)
        q, v, u, offset = found.q, np.zeros(setup.model.nv), found.u, found.offset
        warnings, setup = [*warnings, *found.warnings], replace(setup, integral=found.integral)
    with progress.stage(f"linearizing ({FIRST_RUN_MESSAGE})"):
        z = setup.integral
        rest = with_fixed_inputs(setup.problem, instant(setup.problem, t, q, v, None, z), rest=equilibrium)
        here = instant(rest, t, q, v, u, z)
        if open_loop:
            rest = with_fixed_inputs(rest, instant(rest, t, q, v, None, z), laws=False)
        system = linear_system(setup, rest, here, inputs, outputs, independent=independent, acting=not open_loop)
        step = setup.scenario.output_step if step is None else float(step)
        Ad, Bd = system.discretize(step)
        warnings += friction_warnings(setup.model, here.v) if setup.scenario.passive else []
    done, compared = time.perf_counter(), None
    if verify:
        with progress.stage("comparing with differences"):
            compared = differences(rest, here, u, system, progress.update, not open_loop)
    timing = {"linearize": done - began, "verify": time.perf_counter() - done}
    warn((*robot_file_warnings(setup.model), *warnings))
    return Linearization(setup.scenario, setup.model, here, system, step, Ad, Bd, offset, compared, tuple(warnings), timing)


def _default_outputs(setup: LinearizationSetup) -> list[str]:
    """Return the default outputs: q.* and the forces of prescribed joints."""
    return ["q.*", *(f"tau.{name}" for name, p in zip(setup.model.v_names, setup.prescribed, strict=True) if p)]


# Comparison of a linearization with extrapolated differences of the right-hand side -------------------------------------

_STEP = 0.02                 # of characteristic units: results are smooth over this step, and rounding is small relative to it
_TOUCHING = 1.0, 1e-2, 1e-4  # of the step, with contacts: these are about 1 mm deep, and creep at about 1 mm/s
_WITHIN = 1e-3               # of the step, if the step leaves the domain of a law


def differences(problem, here: OperatingPoint, u, system: LinearSystem, update=lambda fraction: None,
                acting: bool = True) -> dict[str, DerivativeComparison]:
    """Return {"A", "B", "C", "D"} with the largest differences to extrapolated finite differences of the right-hand side.

    Differences are relative to the largest entry of the rows of the same kind (q, v, a, …), in characteristic units.

    problem  a problem of `with_fixed_inputs`
    u        (nv + actuators,) additions to its inputs at `here`, or None
    acting   False: the integrals of pid laws have no effect on forces
    """
    model = problem.model
    nv, actuators, n = model.nv, len(model.description.actuators), len(system.states)
    u = np.zeros(nv + actuators) if u is None else u
    inputs, index = _input_numbers(model, system), _coordinates(model, system)
    f, sums = len(index), problem.schedule.integral
    deviated = _deviated_tied(problem, here, index) if problem.constraints is not None else _deviated(model, here)

    def outcome(x, w):
        z = here.integral.copy()
        z[sums] += acting * x[2 * f:n]
        return _outcome(problem, here, *deviated(x[:f], x[f:2 * f]), u + w, z, index, sums, system.outputs) / rows

    condition = float(mass_matrix_condition(model, here.q[None], problem.schedule.level == TORQUE)[0])
    units = model_scales(model)
    by_state, by_input, of_outputs = map(units.unit_scales, (system.state_units, system.input_units, system.output_units))
    rows = np.concatenate([by_state / units.time, of_outputs])
    x, w, found = np.diag(by_state), np.eye(nv + actuators), []
    steps = (_STEP,) if problem.contacts is None else tuple(share * _STEP for share in _TOUCHING)
    for k, name in enumerate(system.states):
        rate, _, coordinate = name.partition(".")
        bends = (2 * FRICTION_SPEED / by_state[k],) if rate == "v" and problem.passive and has_friction(model, coordinate) else ()
        found.append(_surest(lambda h, k=k: outcome(h * x[k], 0 * u), steps + bends, condition))
        update(k / n)
    found += [_surest(lambda h, k=k, size=size: outcome(0 * x[0], h * size * w[k]), (1.0,), condition)
              for k, size in zip(inputs, by_input, strict=True)]
    theirs, doubt = (np.column_stack(columns) for columns in zip(*found, strict=True))
    doubt += rounding_error(condition, theirs)
    ours = np.vstack([np.hstack([system.A, system.B]), np.hstack([system.C, system.D])])
    ours = ours * np.concatenate([by_state, by_input]) / rows[:, None]
    kinds = [f"state {name.partition('.')[0]}" for name in system.states] + [name.partition(".")[0] for name in system.outputs]
    return _compare(ours, theirs, doubt, np.array(kinds), n)


def _coordinates(model, system) -> np.ndarray:
    """Return the indices of the coordinates whose positions are states."""
    return np.array([model.v_names.index(name.partition(".")[2]) for name in system.states if name.startswith("q.")])


def _deviated(model, here: OperatingPoint):
    """Return the function that computes the state (q, v) from deviations dq, dv."""
    return lambda dq, dv: (integrate(model, here.q, dq), here.v + dv)


def _deviated_tied(problem, here: OperatingPoint, index):
    """Return the function that computes the state (q, v) from deviations dq, dv of the independent coordinates (`index`).

    The other coordinates follow from the constraints.
    """
    model, constraint_motion = problem.model, constraint_motions_at(problem, here.t)
    given = np.isin(np.arange(model.nv), index)
    Z = chart(model, here.q, here.v, given, constraint_motion).Z

    def deviated(dq, dv):
        q = project_configuration(model, integrate(model, here.q, Z @ dq), prescribed=given, constraint_motion=constraint_motion)
        v = here.v.copy()
        v[index] += dv
        return q, project_velocity_unchecked(model, q, v, prescribed=given, constraint_motion=constraint_motion)
    return deviated


def _surest(f, steps: tuple[float, ...], condition: float):
    """Return the best derivative of f at zero and its uncertainty; steps are shortened if they leave the domain of a law."""
    try:
        return best_derivative(f, steps, condition)
    except ComputationError:                       # beyond the domain of a law
        return best_derivative(f, tuple(_WITHIN * h for h in steps), condition)


def _input_numbers(model, system) -> list[int]:
    """Return the indices of the system's inputs among the coordinates and actuators."""
    names = [*model.v_names, *(f"thrust.{actuator.name}" for actuator in model.description.actuators)]
    return [names.index(name if name.startswith("thrust.") else name.partition(".")[2]) for name in system.inputs]


def _outcome(problem, here: OperatingPoint, q, v, u, z, index, sums, outputs) -> np.ndarray:
    """Return the rates of the states, then the outputs, at a state near `here`.

    index  coordinates whose deviations and velocities are states
    sums   coordinates whose integrals are states
    """
    model = problem.model
    there = instant(problem, here.t, q, v, u, z)
    values = {"q": difference(model, here.q, q), "v": v, "a": there.a, "tau": there.tau}
    places = link_poses(model, q)[:, :3, 3] if any(name.startswith("p.") for name in outputs) else None
    y = []
    for name in outputs:
        kind, _, rest = name.partition(".")
        if kind == "p":
            link, _, axis = rest.rpartition(".")
            y.append(places[model.link_index(link), "xyz".index(axis)])
        else:
            y.append(values[kind][model.v_names.index(rest)])
    return np.concatenate([_rate_of_deviation(model, here, q, v)[index], there.a[index], there.integral_rate[sums], y])


def _rate_of_deviation(model, here: OperatingPoint, q, v) -> np.ndarray:
    """Return d(dq)/dt of the deviation from a motion through `here` at constant velocity, by differences along both motions."""
    units = model_scales(model)
    fast = np.abs(v / units.unit_scales(model.v_units)).max(initial=1.0 / units.time)
    change = lambda s: difference(model, integrate(model, here.q, s * here.v), integrate(model, q, s * v))      # noqa: E731
    return extrapolated_derivative(change, _STEP / fast, 3)[0]


def _compare(ours, theirs, doubt, kinds, n: int) -> dict[str, DerivativeComparison]:
    """Return the comparison of A, B, C and D, which are separated at row and column n.

    Each entry is relative to the largest entry of the same matrix in rows of the same kind.
    """
    scale = np.ones(ours.shape)
    for kind in set(kinds):
        rows = kinds == kind
        for columns in (slice(None, n), slice(n, None)):
            block = np.abs(theirs[rows, columns])
            scale[rows, columns] = block.max(initial=0.0) or 1.0
            doubt[rows, columns] = doubt[rows, columns].max(axis=0, initial=0.0)
    halves = slice(None, n), slice(n, None)
    blocks = {"A": (0, 0), "B": (0, 1), "C": (1, 0), "D": (1, 1)}
    return {name: compare(*(x[halves[i], halves[j]] for x in (ours, theirs, doubt, scale))) for name, (i, j) in blocks.items()}
