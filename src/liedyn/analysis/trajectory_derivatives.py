"""Derivatives of dynamics along a trajectory, as columns with names and units, and their verification by finite differences."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from liedyn.analysis.numerical_differentiation import POINTS, error_warnings
from liedyn.analysis.recorded_motion import CompletedTrajectory, SampledMotion, header_along, motion_for, prescribed_of
from liedyn.analysis.recording_checks import recording_warnings
from liedyn.analysis.trajectory_dynamics import satisfy_constraints, with_followers
from liedyn.arrays import Array, Integers, Mask, Progress
from liedyn.dynamics.batching.calls import generic_kernels_of
from liedyn.dynamics.derivatives import forward_dynamics_derivatives, hybrid_dynamics_derivatives, inverse_dynamics_derivatives
from liedyn.dynamics.directional_derivatives import parameter_derivatives
from liedyn.dynamics.dynamics import hybrid_dynamics, inverse_dynamics
from liedyn.dynamics.finite_differences import (
    MAX_EXCESS,
    DerivativeComparison,
    best_derivative,
    compare,
    friction_steps,
    mass_matrix_condition,
    rounding_error,
)
from liedyn.dynamics.manifold import integrate
from liedyn.dynamics.model_parameters import parameter_names, parameter_value, perturbed_model
from liedyn.dynamics.scales import model_scales
from liedyn.dynamics.variants import Variants
from liedyn.errors import CheckFailed, LiedynWarning, UsageError
from liedyn.io.csv_table import LONGEST_LINE
from liedyn.io.trajectory_csv import Trajectory
from liedyn.model.model import Model
from liedyn.simulation.name_binding import joint_coordinates, select
from liedyn.simulation.trajectory_columns import coordinate_columns, coordinate_index

LARGEST = 20_000                 # maximum number of columns


@dataclass(frozen=True, eq=False)
class DerivativeRequest:
    """The derivatives to compute.

    of           "inverse", "forward" or "hybrid"
    prescribed   (nv,) bool: coordinates whose force is a result; for the others, the acceleration is
    outputs      indices of the coordinates whose results are differentiated
    by           names of variables: q.<coordinate>, v.<coordinate>, inputs a.<coordinate> or tau.<coordinate>, parameters
    """

    of: str
    prescribed: Mask
    outputs: Integers
    by: tuple[str, ...]


def derivative_request(model: Model, of: str, prescribed: Sequence[str], by: Sequence[str],
                       joints: Sequence[str]) -> DerivativeRequest:
    """Return the request for patterns of names. Raise UsageError if one matches nothing, or there are too many columns."""
    if (of == "hybrid") != bool(prescribed):
        raise UsageError("--prescribed and --function hybrid must be used together")
    mask = prescribed_of(model, of, prescribed)
    outputs = np.flatnonzero(joint_coordinates(model, joints)) if joints else np.arange(model.nv)
    state = [f"{kind}.{name}" for kind in "qv" for name in model.v_names]
    state += _input_names(model, mask)
    request = DerivativeRequest(of, mask, outputs, _select_variables(model, by, state) if by else tuple(state))
    count = len(outputs) * len(request.by)
    if count > LARGEST:
        raise UsageError(f"the result would have {count} columns: {len(outputs)} forces or accelerations with respect to "
                         f"{len(request.by)} variables. The maximum is {LARGEST}: select with --joint PATTERN and --wrt "
                         "PATTERN, such as "
                         "--wrt 'q.*'")
    if sum(len(text) + 3 for texts in column_names(model, request) for text in texts) > LONGEST_LINE:  # of `read_trajectory`
        raise UsageError(f"the names of {count} columns make the header line too long: select with --joint and --wrt")
    return request


def _select_variables(model: Model, patterns: Sequence[str], state: list[str]) -> tuple[str, ...]:
    """Return the names of variables that match, in the order of the patterns, without duplicates."""
    known = [*state, *parameter_names(model)]
    kinds = [f"{kind}.*" for kind in dict.fromkeys(name.partition(".")[0] for name in known)]
    return tuple(known[k] for k in select(patterns, known, "variable of --wrt", listed=kinds))


def jacobian(model: Model, request: DerivativeRequest, motion: SampledMotion) -> Array:
    """Return the derivatives (N, outputs, by) at all samples of a motion."""
    kinds = [kind_of(name) for name in request.by]
    blocks: dict[str, Array] = {}
    if any(kind != "parameter" for kind in kinds):
        blocks = dict(zip("qvu", _state_derivatives(model, request, motion), strict=True))
    parameters = [name for name, kind in zip(request.by, kinds, strict=True) if kind == "parameter"]
    by_parameter = _parameter_derivatives(model, request, motion, parameters) if parameters else np.zeros((0, 0, 0))
    out = np.empty((len(motion.q), len(request.outputs), len(request.by)))
    for j, (name, kind) in enumerate(zip(request.by, kinds, strict=True)):
        if kind == "parameter":
            out[:, :, j] = by_parameter[:, request.outputs, parameters.index(name)]
        else:
            out[:, :, j] = blocks[kind][:, request.outputs, coordinate_index(model, name)]
    return out


def _state_derivatives(model: Model, request: DerivativeRequest, motion: SampledMotion) -> list[Array]:
    """Return the derivatives (N, nv, nv) of the results with respect to q, v and the inputs."""
    q, v, a, tau = motion.q, motion.v, motion.a_or_zero, motion.tau_or_zero
    if request.of == "inverse":
        return list(inverse_dynamics_derivatives(model, q, v, a, **motion.options))
    if request.of == "forward":
        return list(forward_dynamics_derivatives(model, q, v, tau, **motion.options))
    return list(hybrid_dynamics_derivatives(model, q, v, a, tau, request.prescribed, **motion.options)[:3])


def _parameter_derivatives(model: Model, request: DerivativeRequest, motion: SampledMotion, parameters: list[str]) -> Array:
    """Return the derivatives (N, nv, parameters) of the results with respect to parameters of the model."""
    x = np.where(request.prescribed, motion.a_or_zero, motion.tau_or_zero)
    if request.of == "hybrid":
        return parameter_derivatives(model, motion.q, motion.v, x, parameters, of="hybrid", prescribed=request.prescribed,
                                     **motion.options)
    return parameter_derivatives(model, motion.q, motion.v, x, parameters, of="inverse" if request.of == "inverse" else "forward",
                                 **motion.options)


def rows_of(motion: SampledMotion, rows: Integers | slice) -> SampledMotion:
    """Return the motion at the given rows."""
    a, tau, f_ext = (None if x is None else x[rows] for x in (motion.a, motion.tau, motion.f_ext))
    return SampledMotion(motion.q[rows], motion.v[rows], a, tau, f_ext, motion.passive, motion.warnings)


# names and units ---------------------------------------------------------------------------------------------------
def _input_names(model: Model, prescribed: Mask) -> list[str]:
    """Return the name of the input of each coordinate: its acceleration where it is prescribed, else its force."""
    columns = zip(coordinate_columns(model, "a"), coordinate_columns(model, "tau"), strict=True)
    return [a if is_prescribed else tau for (a, tau), is_prescribed in zip(columns, prescribed, strict=True)]


def kind_of(name: str) -> str:
    """Return "q", "v", "u" (an input) or "parameter" (of the model)."""
    head = name.partition(".")[0]
    return head if head in ("q", "v") else "u" if head in ("a", "tau") else "parameter"


def column_names(model: Model, request: DerivativeRequest) -> tuple[list[str], list[str]]:
    """Return names and units of all columns, one output after another."""
    names, units = [], []
    results = _input_names(model, ~request.prescribed)
    for k in request.outputs:
        for by in request.by:
            names.append(f"d{results[k]}/d{by}")
            units.append(quotient(unit_of(model, results[k]), unit_of(model, by)))
    return names, units


def unit_of(model: Model, name: str) -> str:
    """Return the unit of a coordinate's q, v, a or tau, or of a parameter of the model."""
    head, _, element = name.partition(".")
    fixed = {"mass": "kg", "com": "m", "inertia": "kg m^2", "pitch": "m/rad", "gravity": "m/s^2"}
    if head in fixed:
        return fixed[head]
    last = element.rpartition(".")[2]
    if head in ("origin", "screw"):
        angle, length = ("rad", "m") if head == "origin" else ("", "m")
        return angle if last.startswith("w") else length
    c = model.v_units[coordinate_index(model, name)]
    force = {"rad": "N m", "m": "N"}[c]
    return {"q": c, "v": f"{c}/s", "a": f"{c}/s^2", "tau": force, "armature": {"rad": "kg m^2", "m": "kg"}[c],
            "damping": f"{force} s/{c}", "friction": force, "stiffness": f"{force}/{c}", "rest": c,
            "friction_speed": f"{c}/s"}[head]


def quotient(above: str, below: str) -> str:
    """Return the unit of a derivative: N m/rad, N m/(rad/s), (rad/s^2)/(N m); empty if both units are equal."""
    if above == below:
        return ""
    if not below:
        return above
    above = f"({above})" if "/" in above else above
    return f"{above}/({below})" if "/" in below or " " in below else f"{above}/{below}"


# Comparison with extrapolated differences of dynamics -------------------------------------------------------------------

ROWS, PARAMETERS = 5, 60   # maximum numbers of rows and of model parameters that are compared
# of characteristic units, masses and inertias: results are smooth over this step, and rounding is small relative to it
_STEP = 0.02
_LIGHT = 1e-4         # of the maximum mass or inertia: size assumed for a link without mass or inertia
_NOTHING = 1e-6       # minimum scale of derivatives, relative to the force or acceleration


def verify_rows(model: Model, request: DerivativeRequest, motion: SampledMotion, progress: Progress) -> LiedynWarning:
    """Return the warning that reports the maximum difference from finite differences.

    Raises CheckFailed if a difference is larger than MAX_EXCESS and than the uncertainty of the finite differences.
    """
    rows = np.unique(np.linspace(0, len(motion.q) - 1, ROWS).astype(int))
    with progress.stage("comparing with finite differences"):
        result = differences(model, request, motion, rows, progress.update)
    worst = max(result, key=lambda kind: (result[kind].excess, result[kind].off))
    text = f"maximum relative difference from extrapolated differences, on {len(rows)} row{'s' * (len(rows) > 1)}: " \
           f"{result[worst].off:.1e} ({worst})"
    if not result[worst].sound:
        raise CheckFailed(f"{text}: expected at most {MAX_EXCESS:g}; nothing is written")
    uncertainty = max(result.values(), key=lambda comparison: comparison.doubt)
    if uncertainty.doubt > MAX_EXCESS:
        text += f"; where the mass matrix is nearly singular, finite differences are accurate to {uncertainty.doubt:.0e} only"
    return LiedynWarning("compared", text)


def differences(model: Model, request: DerivativeRequest, motion: SampledMotion, rows: Integers,
                update: Callable[[float], None] = lambda _fraction: None) -> dict[str, DerivativeComparison]:
    """Return the maximum differences from finite differences at the given rows, {"dtau/dq": …}.

    Differences are relative to the maximum derivative of the same kind in characteristic units, or to a millionth of the force or
    acceleration if that is larger (at rest, derivatives with respect to v can be zero).
    """
    request, chosen = _with_fewer_parameters(request), rows_of(motion, rows)
    u = np.where(request.prescribed, chosen.a_or_zero, chosen.tau_or_zero)
    condition = mass_matrix_condition(model, chosen.q, ~request.prescribed)
    of, by = _characteristic(model, request)
    numerical, error = (x * by for x in _differences(model, request, chosen, u, of, condition.max(), update))
    analytic = jacobian(model, request, chosen) * by / of[:, None]
    results = _outcome(model, request, chosen, chosen.q, chosen.v, u) / of
    heads = np.array([name.partition(".")[0] for name in request.by])
    out = {}
    for kind, mask in (("tau", request.prescribed[request.outputs]), ("a", ~request.prescribed[request.outputs])):
        for head in dict.fromkeys(heads):
            x, y, z = (block[:, mask][:, :, heads == head] for block in (analytic, numerical, error))
            if y.size:
                size = max(np.abs(y).max(), _NOTHING * np.abs(results[:, mask]).max()) or 1.0
                uncertainty = z.max(axis=1, keepdims=True) + rounding_error(condition[:, None, None], y)
                out[f"d{kind}/d{head}"] = compare(x, y, uncertainty, size)
    return out


def _characteristic(model: Model, request: DerivativeRequest) -> tuple[Array, Array]:
    """Return the characteristic units of the outputs and of the variables."""
    scales = model_scales(model)
    names = _input_names(model, ~request.prescribed)
    outputs = [names[k] for k in request.outputs]
    of, by = (scales.unit_scales(unit_of(model, name) for name in names) for names in (outputs, request.by))
    return of, by


def _with_fewer_parameters(request: DerivativeRequest) -> DerivativeRequest:
    """Return the request with at most PARAMETERS model parameters, evenly selected: each requires a new robot for every step."""
    parameters = [name for name in request.by if kind_of(name) == "parameter"]
    selected = {parameters[k] for k in np.linspace(0, len(parameters) - 1, min(PARAMETERS, len(parameters))).astype(int)}
    by = tuple(name for name in request.by if kind_of(name) != "parameter" or name in selected)
    return DerivativeRequest(request.of, request.prescribed, request.outputs, by)


def _differences(model: Model, request: DerivativeRequest, motion: SampledMotion, u: Array, of: Array, condition: float,
                 update: Callable[[float], None]) -> tuple[Array, Array]:
    """Return derivatives (N, outputs, by) from extrapolated central differences, outputs in units `of`, and their uncertainty."""
    out, error = np.empty((2, len(motion.q), len(request.outputs), len(request.by)))
    for j, name in enumerate(request.by):
        update(j / len(request.by))
        outcome, steps = _variable_function(model, request, motion, u, name)

        def in_units(s: float, outcome: Callable[[float], Array] = outcome) -> Array:
            return outcome(s) / of
        out[:, :, j], error[:, :, j] = best_derivative(in_units, steps, condition)
    return out, error


def _variable_function(model: Model, request: DerivativeRequest, motion: SampledMotion, u: Array,
                       name: str) -> tuple[Callable[[float], Array], tuple[float, ...]]:
    """Return the results as a function of a change of one variable, and the initial steps of finite differences."""
    kind = kind_of(name)
    if kind == "parameter":
        return lambda s: _outcome_of_robot(perturbed_model(model, name, s), model, request, motion, u), _steps(model, name)
    dq, dv, du = np.zeros((3, model.nv))
    {"q": dq, "v": dv, "u": du}[kind][coordinate_index(model, name)] = 1.0
    N = model.elimination(request.prescribed).projection       # followers move with the coordinate
    dq, dv, du = N @ dq, N @ dv, np.where(request.prescribed, N @ du, du)
    step = _STEP * model_scales(model).unit_scale(unit_of(model, name))
    if kind == "u" and du.any():                                         # results are linear in u: large steps are accurate
        sizes = model_scales(model).unit_scales(unit_of(model, name) for name in _input_names(model, request.prescribed))
        step = float(sizes @ np.abs(du)) * np.abs(u / sizes).max(initial=1.0)
    steps = (step, *(friction_steps(model, name.partition(".")[2]) if kind == "v" and motion.passive else ()))
    return lambda s: _outcome(model, request, motion, integrate(model, motion.q, s * dq), motion.v + s * dv, u + s * du), steps


def _outcome_of_robot(changed_model: Model, model: Model, request: DerivativeRequest, motion: SampledMotion, u: Array) -> Array:
    """Return the results of a robot with changed parameters, as a variant of `model` if the structure is the same."""
    if not np.array_equal(changed_model.index, model.index):
        with generic_kernels_of(changed_model, model):
            return _outcome(changed_model, request, motion, motion.q, motion.v, u)
    constants = np.tile(changed_model.constants, (len(motion.q), 1))
    with Variants.of_numbers(model, range(len(changed_model.constants)), constants).in_place_of_the_model() as robots:
        return _outcome(robots, request, motion, motion.q, motion.v, u)


def _outcome(model: Model, request: DerivativeRequest, motion: SampledMotion, q: Array, v: Array, u: Array) -> Array:
    """Return the results (N, outputs): tau where prescribed, a elsewhere."""
    if request.of == "inverse":
        return inverse_dynamics(model, q, v, u, **motion.options)[:, request.outputs]
    a, tau = hybrid_dynamics(model, q, v, u, u, request.prescribed, **motion.options)
    return np.where(request.prescribed, tau, a)[:, request.outputs]


def _steps(model: Model, name: str) -> tuple[float, ...]:
    """Return the initial steps of a parameter.

    Small steps are relative to the value of the link, since accelerations are nonlinear in it. Large ones are relative to the
    maximum value, since forces are linear in it.
    """
    head, _, element = name.partition(".")
    unit = model_scales(model).unit_scale(unit_of(model, name))
    if head not in ("mass", "inertia", "armature"):
        return (_STEP * unit,)
    links = model.description.links
    size = {link.name: link.mass if head == "mass" else max(map(abs, link.inertia)) for link in links}
    largest = unit if head == "armature" else max(size.values()) or unit
    link_name = element if head == "mass" else element.rpartition(".")[0]
    magnitude = abs(parameter_value(model, name)) if head == "armature" else size[link_name]
    small, large = _STEP * (magnitude or _LIGHT * largest), _STEP * max(magnitude, unit if head == "armature" else largest)
    return (small, (small * large) ** 0.5, large)


# Derivatives of inverse, forward and hybrid dynamics along the rows of a trajectory file, as columns --------------------

_ROWS = 256                      # number of rows that are computed at a time: limits the memory of Jacobians
_JUDGED = 256                    # maximum number of rows from which errors are estimated


def derivatives_along(model: Model, trajectory: Trajectory, *, of: str = "inverse", prescribed: Sequence[str] = (),
                      by: Sequence[str] = (), joints: Sequence[str] = (), verify: bool = False,
                      progress: Progress | None = None) -> CompletedTrajectory:
    """Return derivatives at each row of a trajectory, one column each: `dtau.elbow/dq.shoulder`, `da.elbow/dmass.hand`.

    Parameters
    ----------
    of : "inverse", "forward" or "hybrid"
        Differentiated function: tau of q, v, a; a of q, v, tau; or tau of the prescribed joints and a of the others.
    prescribed : patterns of joint names, for "hybrid"
    by : patterns of variables
        q.*, v.*, a.*, tau.* (of coordinates; a or tau where it is an input) and `parameter_names`. Default: q, v and all inputs.
    joints : patterns of the joints whose force or acceleration is differentiated; default: all
    verify : bool
        Compare a few rows with extrapolated differences.
    progress : optional
        An object with `stage(text)`, a context, and `update(fraction)`.

    Returns
    -------
    CompletedTrajectory
        Its warnings report derived velocities and accelerations, large numbers of columns and the differences of `verify`.

    Raises
    ------
    TrajectoryError, ComputationError
    UsageError
        For a robot with loops, a pattern that matches nothing, or more than 20,000 columns.
    CheckFailed
        With `verify`, if a difference is larger than 1e-6 and than the uncertainty of finite differences.
    """
    if not model.has_only_linear_couplings:
        raise UsageError(f"the robot {model.name} has loops: derivatives along a trajectory are not available; use liedyn "
                         "linearize, or constrained_inverse_derivatives in Python")
    request = derivative_request(model, of, prescribed, by, joints)
    motion = motion_for(model, trajectory, of, request.prescribed)
    if model.nc:
        motion = with_followers(model, satisfy_constraints(model, trajectory, motion))
    parts = [jacobian(model, request, rows_of(motion, slice(k, k + _ROWS))) for k in range(0, len(motion.q), _ROWS)]
    table = np.concatenate([part.reshape(len(part), -1) for part in parts])
    names, units = column_names(model, request)
    sample = _sample(len(motion.q))

    def variant_derivatives(variant: SampledMotion) -> Array:
        return jacobian(model, request, rows_of(variant, sample)).reshape(len(sample), -1)

    uncertainty = error_warnings(table[sample], motion.variants, variant_derivatives, names, units,
                                 model_scales(model).unit_scales(units),
                                 "liedyn inverse --smooth auto (whose result has v and a)" if of == "inverse" else None)
    limits = recording_warnings(model, trajectory.t, motion.q, motion.v, motion.tau_or_zero, trajectory=trajectory)
    warnings = [*motion.warnings, *limits, *uncertainty,
                *([LiedynWarning("many-columns",
                                 f"{len(names)} columns; select with --wrt and --joint")] if len(names) > 400 else [])]
    if verify:
        from liedyn.simulation.run import SilentProgress
        warnings.append(verify_rows(model, request, motion, progress or SilentProgress()))
    columns = list(zip(names, units, table.T, strict=True))
    return CompletedTrajectory(header_along(model, trajectory, motion.passive), trajectory.t, columns, tuple(warnings))


def _sample(count: int) -> Integers:
    """Return indices of the rows from which errors are estimated: those at the ends, and some between."""
    if count <= _JUDGED:
        return np.arange(count)
    return np.unique(np.r_[:POINTS, np.linspace(POINTS, count - POINTS, _JUDGED - 2 * POINTS).astype(int), count - POINTS:count])
