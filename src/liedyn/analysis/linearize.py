"""Linearization of a robot, or of a scenario at a time or at rest, in tangent coordinates."""
from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from liedyn.analysis.configurations import fixed_coordinates, solve_equilibrium
from liedyn.analysis.linear_system import LinearSystem
from liedyn.analysis.operating_point import (
    LinearizationSetup,
    OperatingPoint,
    check_time,
    instant,
    partition_coordinates,
    prepare,
    state_at,
    with_fixed_inputs,
    with_hybrid_dynamics,
)
from liedyn.analysis.tangent_system import LawDerivatives, check_all_matched, linear_system, motion_derivatives, tangent_system
from liedyn.arrays import Array, ArrayLike, Progress, Wrenches
from liedyn.dynamics.batching.arrays import as_array, as_single_state, wrenches
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
    friction_steps,
    mass_matrix_condition,
    numerical_derivative,
    rounding_error,
)
from liedyn.dynamics.kinematics import link_poses
from liedyn.dynamics.manifold import difference, integrate
from liedyn.dynamics.scales import model_scales
from liedyn.errors import ComputationError, LiedynWarning, ShapeError, list_names, warn
from liedyn.immutable import Immutable
from liedyn.integrators.problem import InitialValueProblem
from liedyn.integrators.segment import RightHandSide
from liedyn.io.scenarios.scenario import Scenario
from liedyn.io.yaml_values import Overrides
from liedyn.kernels.simulation.signals import TORQUE
from liedyn.model.model import Model
from liedyn.robot_files import robot_file_warnings
from liedyn.simulation.constraint_setup import constraint_motions_at
from liedyn.simulation.control.law_derivatives import passive_force_warnings
from liedyn.simulation.joint_friction import JointFriction, prescribed_friction, rigid_frictions, without_friction
from liedyn.simulation.trajectory_columns import coordinate_index, thrust_names

_CLOSED = 1e-7       # maximum residual of constraints [rad | lengths of the loop]; for velocities, relative to the largest one


@dataclass(frozen=True, eq=False)
class Linearization(Immutable):
    """The linear system of a scenario about an instant of its motion or about an equilibrium.

    model         the robot at the operating point, without rigid friction, which is part of the system
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


def linearize(  # noqa: PLR0913 (the state and independent options of a public function)
        model: Model, q: ArrayLike, v: ArrayLike, tau: ArrayLike, *, a: ArrayLike | None = None,
        prescribed: ArrayLike | None = None, f_ext: Wrenches | None = None, passive: bool = True,
        inputs: str | Sequence[str] = "*", outputs: str | Sequence[str] = "q.*", independent: str | Sequence[str] = (),
        constraint_motion: Mapping[str, Any] | None = None) -> LinearSystem:
    """Return the linear system of small deviations from a motion.

    Rigid friction of joints that move is that of runs, at rest it is regularized. Forces, external wrenches in local frames, and
    accelerations of prescribed coordinates are constant except for the inputs.

    Parameters
    ----------
    model : Model
    q : (nq,) array
        Configuration [rad | m]; ball and free joints have unit quaternions x y z w.
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
    mask = np.zeros(nv, dtype=bool) if prescribed is None else np.asarray(prescribed)
    if a is None and mask.any():
        raise ShapeError("a is missing: prescribed coordinates need their acceleration")
    q0, v0, tau0 = (as_single_state(x, name, (n,)) for name, x, n in (("q", q, model.nq), ("v", v, nv), ("tau", tau, nv)))
    _check_closed(model, q0, v0, constraint_motion)
    sliding = [friction for friction in rigid_frictions(model) if passive and v0[friction.coordinate]]
    model, friction, laws = without_friction(model, sliding), np.zeros(nv), LawDerivatives.zero(nv)
    for k, each in ((each.coordinate, each) for each in sliding):
        friction[k], laws.wrench_force[k, nv + k] = each.force(v0[k]), each.slope(v0[k])
    if passive:
        warn(passive_force_warnings(model, q0, v0))
    a0 = np.zeros(nv) if a is None else as_array(a, "a", (nv,))
    point = OperatingPoint(0.0, q0, v0, a0, tau0 + friction, wrenches(model, f_ext), np.zeros(nv), np.zeros(nv))
    point = with_hybrid_dynamics(model, point, mask, passive, constraint_motion)
    partition = partition_coordinates(model, q0, v0, mask, constraint_motion, independent)
    dynamics = motion_derivatives(model, point, mask, passive, constraint_motion)
    return tangent_system(model, point, dynamics, laws, mask, inputs, outputs, partition)


def _check_closed(model: Model, q: Array, v: Array, constraint_motion: Mapping[str, Any] | None) -> None:
    """Raise ComputationError if q or v violates the constraints."""
    if not model.nc:
        return
    residuals = (("q", constraint_residual(model, q, constraint_motion=constraint_motion), 1.0,
                  "project_configuration or assemble"),
                 ("v", constraint_velocity(model, q, v, constraint_motion=constraint_motion), float(rate_magnitude(model, v, 1)),
                  "project_velocity"))
    for name, x, size, functions in residuals:
        error = equation_weights(model) * np.abs(x)
        row = int(np.argmax(error))
        if not error[row] <= _CLOSED * size:
            raise ComputationError(f"{name} violates the constraints: the residual of {model.constraint_equation_names[row]} is "
                                   f"{abs(x[row]):.3g} ({functions} corrects it)")


def linearize_scenario(  # noqa: PLR0913 (independent options of a public function)
        path: str | os.PathLike[str] | Mapping[str, Any], *, at: float = 0.0, equilibrium: bool = False,
        hold: str | Sequence[str] = (), open_loop: bool = False, step: float | None = None,
        inputs: str | Sequence[str] = "*", outputs: str | Sequence[str] | None = None,
        independent: str | Sequence[str] = (), verify: bool = False, overrides: Overrides = (),
        strict: bool = False, progress: Progress | None = None) -> Linearization:
    """Linearize a scenario file, or a robot file with defaults, at a time of its motion or about an equilibrium.

    Rigid friction is that of the run: where it holds a joint, small inputs do not move the joint, with a warning. At an
    equilibrium it holds all joints that have it.

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

    show, start = progress or SilentProgress(), time.perf_counter()
    setup = check_linearization(path, at=at, equilibrium=equilibrium, hold=hold, inputs=inputs, outputs=outputs,
                                overrides=overrides, strict=strict)
    offset, u = None, None
    with show.stage("simulating up to the operating point"):
        setup, t, q, v = state_at(setup, float(at), show.update)
    warnings, selected_outputs = list(setup.warnings), _default_outputs(setup) if outputs is None else outputs
    if equilibrium:
        with show.stage("searching for an equilibrium"):
            equilibrium_point = solve_equilibrium(setup, t, q, v, hold)
        q, v, u, offset = equilibrium_point.q, np.zeros(setup.model.nv), equilibrium_point.u, equilibrium_point.offset
        setup = setup.at_rest(t, q)
        warnings, setup = [*warnings, *equilibrium_point.warnings], replace(setup, integral=equilibrium_point.integral)
    with show.stage("linearizing"):
        integral = setup.integral
        problem = with_fixed_inputs(setup.problem, instant(setup.problem, t, q, v, None, integral), rest=equilibrium)
        point = instant(problem, t, q, v, u, integral)
        if open_loop:
            problem = with_fixed_inputs(problem, instant(problem, t, q, v, None, integral), laws=False)
        system = linear_system(setup, problem, point, inputs=inputs, outputs=selected_outputs, independent=independent,
                               integrals_act=not open_loop)
        step = setup.scenario.output_step if step is None else float(step)
        Ad, Bd = system.discretize(step)
        warnings += passive_force_warnings(setup.model, point.q, point.v) if setup.scenario.passive else []
        warnings += _sticking_warnings(setup)
    done, comparison = time.perf_counter(), None
    if verify:
        with show.stage("comparing with finite differences"):
            comparison = differences(problem, point, u, system, show.update, not open_loop, setup.frictions)
    point = replace(point, tau=point.tau - prescribed_friction(problem, setup.frictions, point.v[None])[0])
    timing = {"linearize": done - start, "verify": time.perf_counter() - done}
    warn((*robot_file_warnings(setup.model), *warnings))
    return Linearization(setup.scenario, setup.model, point, system, step, Ad, Bd, offset, comparison, tuple(warnings), timing)


def check_linearization(path: str | os.PathLike[str] | Mapping[str, Any], *, at: float, equilibrium: bool,
                        hold: str | Sequence[str], inputs: str | Sequence[str], outputs: str | Sequence[str] | None,
                        overrides: Overrides, strict: bool) -> LinearizationSetup:
    """Return the setup of `linearize_scenario`. Raise for arguments that are wrong without a simulation."""
    setup = prepare(path, overrides, strict)
    check_time(setup.scenario, float(at))
    if not setup.scenario.events:                            # events can change which coordinates are prescribed
        check_all_matched(setup.model, setup.prescribed, inputs, _default_outputs(setup) if outputs is None else outputs)
        if equilibrium:
            fixed_coordinates(setup, hold)
    return setup


def _sticking_warnings(setup: LinearizationSetup) -> list[LiedynWarning]:
    """Return a warning about the coordinates that friction holds at rest."""
    names = [name for name, sticks in zip(setup.model.v_names, setup.sticking, strict=True) if sticks]
    if not names:
        return []
    return [LiedynWarning("friction-sticks", f"friction holds {list_names(names, 4)} at rest: small inputs do not move "
                          f"{'it' if len(names) == 1 else 'them'} in the linear system; passive=false omits all passive forces")]


def _default_outputs(setup: LinearizationSetup) -> list[str]:
    """Return the default outputs: q.* and the forces of prescribed joints."""
    return ["q.*", *(f"tau.{name}" for name, p in zip(setup.model.tau_names, setup.prescribed, strict=True) if p)]


# Comparison of a linearization with extrapolated differences of the right-hand side -------------------------------------

_STEP = 0.02                 # of characteristic units: results are smooth over this step, and rounding is small relative to it
_TOUCHING = 1.0, 1e-2, 1e-4  # of the step, with contacts: these are about 1 mm deep, and creep at about 1 mm/s
_WITHIN = 1e-3               # of the step, if the step leaves the domain of a law

Deviate: TypeAlias = Callable[[Array, Array], tuple[Array, Array]]      # (q, v) from deviations dq, dv


def differences(problem: InitialValueProblem, point: OperatingPoint, u: Array | None, system: LinearSystem,
                update: Callable[[float], None] = lambda _fraction: None,
                integrals_act: bool = True, frictions: Sequence[JointFriction] = ()) -> dict[str, DerivativeComparison]:
    """Return {"A", "B", "C", "D"} with the maximum differences to extrapolated finite differences of the right-hand side.

    Differences are relative to the maximum entry of the rows of the same kind (q, v, a, …), in characteristic units.

    problem        a problem of `with_fixed_inputs`
    u              (nv + actuators,) additions to its inputs at the point, or None
    integrals_act  False: the integrals of pid laws have no effect on forces
    frictions      rigid friction, which is not part of the forces of prescribed coordinates
    """
    model = problem.model
    nv, actuators, n = model.nv, len(model.description.actuators), len(system.states)
    u0 = np.zeros(nv + actuators) if u is None else u
    rates = _Rates(problem, point, system, frictions)
    f = len(rates.index)

    def outcome(x: Array, du: Array) -> Array:
        integral = point.integral.copy()
        integral[problem.schedule.integral] += integrals_act * x[2 * f:n]
        y: Array = rates.at(x[:f], x[f:2 * f], u0 + du, integral) / rows
        return y

    def along_state(k: int, h: float) -> Array:
        return outcome(h * x[k], 0 * u0)

    def along_input(k: int, size: float, h: float) -> Array:
        return outcome(0 * x[0], h * size * du[k])

    condition = float(mass_matrix_condition(model, point.q[None], problem.schedule.level == TORQUE)[0])
    units = model_scales(model)
    by_state, by_input, by_output = map(units.unit_scales, (system.state_units, system.input_units, system.output_units))
    rows = np.concatenate([by_state / units.time, by_output])
    x, du, columns = np.diag(by_state), np.eye(nv + actuators), []
    steps = (_STEP,) if problem.contacts is None else tuple(fraction * _STEP for fraction in _TOUCHING)
    for k, name in enumerate(system.states):
        kind, _, coordinate = name.partition(".")
        bends = friction_steps(model, coordinate) if kind == "v" and problem.passive else ()
        columns.append(_best_derivative(partial(along_state, k), (*steps, *(x / by_state[k] for x in bends)), condition))
        update(k / n)
    columns += [_best_derivative(partial(along_input, k, size), (1.0,), condition)
                for k, size in zip(_input_indices(model, system), by_input, strict=True)]
    numerical, uncertainty = (np.column_stack(parts) for parts in zip(*columns, strict=True))
    uncertainty += rounding_error(condition, numerical)
    analytic = np.vstack([np.hstack([system.A, system.B]), np.hstack([system.C, system.D])])
    analytic = analytic * np.concatenate([by_state, by_input]) / rows[:, None]
    kinds = [f"state {name.partition('.')[0]}" for name in system.states] + [name.partition(".")[0] for name in system.outputs]
    return _compare(analytic, numerical, uncertainty, np.array(kinds), n)


class _Rates:
    """Rates of the states and outputs of a system, from the right-hand side at states near the operating point.

    index  (f,) coordinates whose deviations and velocities are states
    """

    def __init__(self, problem: InitialValueProblem, point: OperatingPoint, system: LinearSystem,
                 frictions: Sequence[JointFriction]):
        self.problem, self.model, self.point, self.frictions = problem, problem.model, point, frictions
        self.outputs = [self._output_index(*name.partition(".")[::2]) for name in system.outputs]
        self.index = np.array([self.model.v_names.index(name.partition(".")[2]) for name in system.states
                               if name.startswith("q.")])
        self._rhs = RightHandSide(problem, problem.signals)
        self._scales = model_scales(self.model)
        self._v_scales = self._scales.unit_scales(self.model.v_units)
        self._deviate: Deviate = self._unconstrained if problem.constraints is None else self._constrained()

    def at(self, dq: Array, dv: Array, u: Array, integral: Array) -> Array:
        """Return the rates of the states, then the outputs, at deviations dq, dv (f,) of the coordinates `index`."""
        q, v = self._deviate(dq, dv)
        motion = instant(self.problem, self.point.t, q, v, u, integral, self._rhs)
        return np.concatenate([self._rate_of_deviation(q, v)[self.index], motion.a[self.index],
                               motion.integral_rate[self.problem.schedule.integral], self._output_values(q, v, motion)])

    def _unconstrained(self, dq: Array, dv: Array) -> tuple[Array, Array]:
        return integrate(self.model, self.point.q, dq), self.point.v + dv

    def _constrained(self) -> Deviate:
        """Return the function that computes the state (q, v) from deviations of the independent coordinates `index`.

        The other coordinates follow from the constraints.
        """
        model, point, constraint_motion = self.model, self.point, constraint_motions_at(self.problem, self.point.t)
        independent = np.isin(np.arange(model.nv), self.index)
        partition = partition_coordinates(model, point.q, point.v, independent, constraint_motion)
        assert partition is not None                           # the model has constraints
        Z = partition.Z

        def deviate(dq: Array, dv: Array) -> tuple[Array, Array]:
            q = project_configuration(model, integrate(model, point.q, Z @ dq), prescribed=independent,
                                      constraint_motion=constraint_motion)
            v = point.v.copy()
            v[self.index] += dv
            return q, project_velocity_unchecked(model, q, v, prescribed=independent, constraint_motion=constraint_motion)
        return deviate

    def _output_index(self, kind: str, name: str) -> tuple[str, int | tuple[int, int]]:
        """Return the kind of an output, and its index among the values of this kind."""
        if kind != "p":
            return kind, coordinate_index(self.model, f"{kind}.{name}")
        link, _, axis = name.rpartition(".")
        return kind, (self.model.link_index(link), "xyz".index(axis))

    def _output_values(self, q: Array, v: Array, motion: OperatingPoint) -> list[float]:
        tau = motion.tau - prescribed_friction(self.problem, self.frictions, v[None])[0]
        values = {"q": difference(self.model, self.point.q, q), "v": v, "a": motion.a, "tau": tau}
        if any(kind == "p" for kind, _ in self.outputs):
            values["p"] = link_poses(self.model, q)[:, :3, 3]
        return [values[kind][index] for kind, index in self.outputs]

    def _rate_of_deviation(self, q: Array, v: Array) -> Array:
        """Return d(dq)/dt of the deviation from a motion through the point at constant velocity.

        Uses differences along both motions.
        """
        model, point = self.model, self.point
        fast = np.abs(v / self._v_scales).max(initial=1.0 / self._scales.time)

        def deviations(steps: Array) -> Array:
            times = steps[:, None]
            return difference(model, integrate(model, point.q, times * point.v), integrate(model, q, times * v))
        return numerical_derivative(deviations, _STEP / fast, 3)


def _best_derivative(f: Callable[[float], Array], steps: tuple[float, ...], condition: float) -> tuple[Array, Array]:
    """Return the best derivative of f at zero and its uncertainty; steps are shortened if they leave the domain of a law."""
    try:
        return best_derivative(f, steps, condition)
    except ComputationError:                       # beyond the domain of a law
        return best_derivative(f, tuple(_WITHIN * h for h in steps), condition)


def _input_indices(model: Model, system: LinearSystem) -> list[int]:
    """Return the indices of the system's inputs among the coordinates and actuators."""
    thrusts = thrust_names(model)
    return [model.nv + thrusts.index(name) if name in thrusts else coordinate_index(model, name) for name in system.inputs]


def _compare(analytic: Array, numerical: Array, uncertainty: Array, kinds: NDArray[np.str_],
             n: int) -> dict[str, DerivativeComparison]:
    """Return the comparison of A, B, C and D, which are separated at row and column n.

    Each entry is relative to the maximum entry of the same matrix in rows of the same kind.
    """
    scale = np.ones(analytic.shape)
    for kind in set(kinds):
        rows = kinds == kind
        for columns in (slice(None, n), slice(n, None)):
            block = np.abs(numerical[rows, columns])
            scale[rows, columns] = block.max(initial=0.0) or 1.0
            uncertainty[rows, columns] = uncertainty[rows, columns].max(axis=0, initial=0.0)
    halves = slice(None, n), slice(n, None)
    blocks = {"A": (0, 0), "B": (0, 1), "C": (1, 0), "D": (1, 1)}
    return {name: compare(*(x[halves[i], halves[j]] for x in (analytic, numerical, uncertainty, scale)))
            for name, (i, j) in blocks.items()}
