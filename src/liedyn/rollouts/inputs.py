"""The arguments of a rollout as arrays with one row for each run."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import prod
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from liedyn.arrays import Array, ArrayLike
from liedyn.dynamics.batching.arrays import as_array, common_leading_axes
from liedyn.dynamics.batching.calls import check_configuration, check_finite
from liedyn.dynamics.constraints.constraints import (
    constraint_jacobian,
    constraint_residual,
    constraint_velocity,
    independent_equations,
)
from liedyn.dynamics.constraints.mobility import singular_state_warnings
from liedyn.dynamics.constraints.rank import equation_rank, equation_weights, rate_magnitude
from liedyn.dynamics.variants import Variants
from liedyn.errors import ConfigurationError, LiedynWarning, Place, ScenarioError, ShapeError, UsageError
from liedyn.immutable import Immutable
from liedyn.integrators.batch_integrator import StepInputs
from liedyn.integrators.problem import Statistics
from liedyn.io.scenarios.contact_schema import read_contacts
from liedyn.io.yaml_nodes import Node
from liedyn.io.yaml_values import text_of, tree_of
from liedyn.kernels.simulation.contact import Contacts
from liedyn.model.model import Model
from liedyn.simulation.contact_setup import bind_contacts, material_scale, robot_weights
from liedyn.simulation.control.rigid_joint_laws import expand_gain
from liedyn.simulation.control.thrusts import check_variants, input_count, thrust_entries
from liedyn.simulation.trajectory_columns import thrust_names

# rad or lengths of the loop; of velocities, relative to the maximum: initial states with larger errors raise
MAX_CLOSURE_ERROR = 1e-6

Policy: TypeAlias = Callable[[float, Array, Array], ArrayLike]             # (t, q, v) -> tau, of all runs


@dataclass(frozen=True, eq=False)
class Feedback(Immutable):
    """State feedback, computed at each stage of a step: tau += -gain [q (-) setpoint_q; v - setpoint_v].

    gain          (…, nv, 2 nv) [N m or N per rad or m, and per their rates]; leading axes are runs. With further rows, one for
                  each actuator, it also acts on thrusts [N]. With an axis of steps, (…, S, nv, 2 nv), it is constant in each step
    setpoint_q    (…, nq), or (…, S, nq) with an axis of steps: then it is constant in each step; q (-) setpoint_q is a tangent
                  vector
    setpoint_v    (…, nv) or (…, S, nv); default: zero

    Examples
    --------
    >>> model = ld.load("robots/double_pendulum.yaml")
    >>> law = ld.Feedback.pd([20.0, 5.0], [4.0, 1.0], target=[0.5, 0.0])
    >>> ld.rollout(model, [0.3, 0.0], [0.0, 0.0], dt=1e-3, steps=100, feedback=law).q[-1].round(3)
    array([ 0.307, -0.033])
    """

    gain: ArrayLike
    setpoint_q: ArrayLike
    setpoint_v: ArrayLike | None = None

    def __repr__(self) -> str:
        parts = (f"{name} {None if x is None else np.shape(x)}" for name, x in vars(self).items())
        return f"<Feedback: {', '.join(parts)}>"

    @classmethod
    def pd(cls, kp: ArrayLike, kd: ArrayLike, target: ArrayLike, target_v: ArrayLike | None = None) -> Feedback:
        """Return the feedback tau += kp (target - q) + kd (target_v - v), with gains (…, nv) or numbers."""
        kp, kd = np.asarray(kp, dtype=float), np.asarray(kd, dtype=float)
        try:
            kp, kd = np.broadcast_arrays(kp, kd)
        except ValueError:
            raise ShapeError(f"kp and kd do not match: expected (…, nv), got {kp.shape} and {kd.shape}") from None
        if kp.ndim == 0:
            raise ShapeError("kp and kd have the wrong shape: expected (…, nv), for example np.full(model.nv, kp), got numbers")
        eye = np.eye(kp.shape[-1])
        return cls(np.concatenate([kp[..., None] * eye, kd[..., None] * eye], axis=-1), target, target_v)

    @classmethod
    def by_name(cls, model: Model, gain: Mapping[str, Mapping[str, float]], setpoint_q: ArrayLike,
                setpoint_v: ArrayLike | None = None) -> Feedback:
        """Return the feedback of a gain with names, {"tau.cart": {"q.pole": -48.5, …}, …}, such as `Gain.by_name`.

        Rows are tau.… and thrust.…. Missing entries are zero. Raises ScenarioError for a name that the model does not have.
        """
        columns = list(dict.fromkeys(name for row in gain.values() for name in row))
        values = [[row.get(name, 0.0) for name in columns] for row in gain.values()]
        rows, at = expand_gain(model, list(gain), columns, values, Place(key="gain"))
        full = np.zeros((input_count(model) if (at >= model.nv).any() else model.nv, 2 * model.nv))
        full[at] = rows
        return cls(full, setpoint_q, setpoint_v)


class ContactSettings(NamedTuple):
    """`contacts` of a rollout, bound to its model."""

    contacts: Contacts
    names: tuple[str, ...]
    key: str               # text of the argument

    @property
    def sticking(self) -> list[str]:
        """Names of the contacts that stick."""
        return [name for name, place in zip(self.names, self.contacts.stretch, strict=True) if place >= 0]

    @classmethod
    def read(cls, argument: Mapping[str, Any] | None, model: Model) -> ContactSettings | None:
        """Return the contacts of an argument, or None."""
        node = scenario_key("contacts", argument, "{'links': {'foot': {'sphere': {'radius': 0.02}}}}")
        if node is None:
            return None
        contacts, names = bind_contacts(read_contacts(node, "rk4"), model)
        return contacts and cls(contacts, names, text_of(argument, "contacts", ScenarioError))


def scenario_key(key: str, argument: Mapping[str, Any] | None, example: str) -> Node | None:
    """Return the node of an argument with the syntax of a key of a scenario, or None.

    Raises UsageError unless the argument is a mapping.
    """
    if argument is None:
        return None
    if not isinstance(argument, Mapping):
        raise UsageError(f"{key} is a mapping as in a scenario: expected for example {example}, got {type(argument).__name__}")
    return tree_of({key: argument}, "rollout", ScenarioError).get(key)


class Argument(NamedTuple):
    """An argument of a rollout: an array whose leading axes are those of runs.

    n_axes        number of its last axes that are not axes of runs
    coordinates   names along the last axis, for errors about numbers that are not finite; None: these are not checked
    """

    name: str
    array: np.ndarray
    n_axes: int
    coordinates: tuple[str, ...] | None = None


@dataclass(frozen=True)
class _EquationsKey:
    """Key of the independent equations of linear couplings. mask: prescribed coordinates as bytes."""

    mask: bytes


class RolloutInputs:
    """Checked arguments of a rollout, with one row for each of the N runs.

    lead, count        leading axes of the arguments, and their product N
    robot              (N,) index of the variant of each run
    n_inputs           number of inputs: nv, and that of the actuators if thrusts act
    q, v               (N, nq), (N, nv) initial states
    tau, a             (N, 1 or S, inputs) generalized forces and thrusts; (N, 1 or S, nv) accelerations of prescribed coordinates
    masks              (1 or S, nv) bool: prescribed coordinates
    last               (N,) number of steps
    rows               independent constraint equations by mask (bytes)
    pattern, gains     mask (inputs, 2 nv) of the feedback gains that are not all zero, and these (N, gains)
    feedback_values    (N, gains + nq + nv + inputs) gains, setpoint_q, setpoint_v, and zero forces and thrusts of the setpoint
    gain_steps         number of gains of a feedback: that of steps, or 1
    moving             (places in `values`, series (N, 1 or S, n)) of gains and setpoints that change between steps
    rerun_indices      runs that `run_sequentially` has repeated
    stretches          (N, R, 3s) stretches of contacts that stick, at the outputs
    singular_times     times at which these passed a singular configuration, by run
    warnings           about the initial states
    """

    def __init__(self, model: Model, variants: Variants | None, q0: ArrayLike, v0: ArrayLike,  # noqa: PLR0913
                 tau: ArrayLike | Policy | None, feedback: Feedback | None, last: ArrayLike | None, steps: int,
                 contacts: ContactSettings | None, a: ArrayLike | None, prescribed: ArrayLike | None,
                 names: tuple[str, str] = ("q0", "v0"), thrusts: bool = False) -> None:
        """names: of the arguments q0 and v0, for errors; thrusts: whether thrusts of actuators act in any case."""
        self.model, self.variants, self.steps, self.contacts = model, variants, steps, contacts
        self.policy = tau if callable(tau) else None
        if a is not None and prescribed is None:
            raise UsageError("a requires `prescribed`, the mask of the coordinates with prescribed acceleration")
        self.masks, self.n_inputs = _masks(model, prescribed, steps), input_count(model)
        gain = getattr(feedback, "gain", None)
        if not (thrusts or self.policy or _has_thrusts(tau, -1, model) or _has_thrusts(gain, -2, model)):
            self.n_inputs = model.nv
        elif variants is not None:
            check_variants(variants)
        feedback_arguments = [] if feedback is None else list(_feedback_arguments(model, feedback, steps))
        arguments = [
            Argument(names[0], as_array(to_numpy(q0), names[0], (model.nq,)), 1, model.q_names),
            Argument(names[1], as_array(to_numpy(v0), names[1], (model.nv,)), 1, model.v_names),
            Argument("tau", self._series("tau", tau, ~np.asarray(self.masks.all(axis=0)), self.n_inputs), 2,
                     (*model.v_names, *thrust_names(model))),
            Argument("a", self._series("a", a, np.asarray(self.masks.any(axis=0))), 2, model.v_names),
            *feedback_arguments,
            *([Argument("last", np.asarray(last), 0)] if last is not None else ()),
            *([Argument("variants", np.arange(len(variants)), 0)] if variants else ())]
        self.lead = common_leading_axes(*((x.name, x.array, x.n_axes) for x in arguments), axes="the axes of runs")
        self.count = prod(self.lead)
        for argument in feedback_arguments:
            _check_not_both(argument, self.lead, steps)
        rows = {x.name: self._runs(x) for x in arguments}
        self.robot = rows.get("variants", np.zeros(self.count, dtype=np.int64))
        self.q, self.v, self.tau, self.a = (np.ascontiguousarray(rows[name]) for name in (*names, "tau", "a"))
        check_configuration(model, self.q, names[0], "run")
        self.warnings: list[LiedynWarning] = []
        self.rows = {mask.tobytes(): rows for mask, rows in self._independent_equations(model, names)} if model.nc else {}
        self.rerun_indices = np.zeros(0, dtype=np.int64)
        self.stretches: np.ndarray | None = None
        self.singular_times: dict[int, float] = {}
        for name, x in (("tau", self.tau), ("a", self.a)):
            self._check_steps(name, x)
        self.last = np.full(self.count, steps) if last is None else self._check_last(rows["last"])
        self.pattern: np.ndarray | None = None
        self.moving: list[tuple[np.ndarray, np.ndarray]] = []
        if feedback is not None:
            self._bind_feedback(rows)

    def note_singular(self, k: int, statistics: Statistics) -> None:
        """Store the time at which run k passed a singular configuration."""
        loops = statistics.loops
        if loops is not None and loops.singular:
            self.singular_times[k] = loops.singular_time

    def _series(self, name: str, x: ArrayLike | Policy | None, read: np.ndarray, n: int = 0) -> np.ndarray:
        """Return x as (…, 1 or S, nv or n), with zeros where `read` (nv,) is False; zeros for None and for a policy.

        n: number of columns, of which those after nv may be missing in x
        """
        nv = self.model.nv
        array = np.zeros(nv) if x is None or callable(x) else to_numpy(x)
        series = self.as_inputs(array, name) if n else as_array(array, name, (nv,))
        read = np.append(read, np.ones(series.shape[-1] - nv, dtype=bool))
        return np.where(read, series[None] if series.ndim == 1 else series, 0.0)

    def as_inputs(self, x: ArrayLike, name: str) -> np.ndarray:
        """Return generalized forces (…, nv), or these and thrusts (…, inputs), as (…, inputs). name: of x, for errors."""
        nv, n = self.model.nv, self.n_inputs
        array = np.asarray(as_array(x, name, (n if np.shape(x)[-1:] == (n,) else nv,)))
        return array if array.shape[-1] == n else np.concatenate([array, np.zeros((*array.shape[:-1], n - nv))], axis=-1)

    def _runs(self, argument: Argument) -> np.ndarray:
        """Return the array of an argument with one row for each run, or raise an error if a number is not finite."""
        x = argument.array
        trailing_shape = x.shape[x.ndim - argument.n_axes:]
        rows = np.broadcast_to(x, self.lead + trailing_shape).reshape(self.count, *trailing_shape)
        if argument.coordinates is not None:
            check_finite(argument.name, rows, argument.coordinates, argument.n_axes, "run")
        return rows

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without the policy, which may not be picklable; a rollout with a policy has no adjoint."""
        return vars(self) | {"policy": None}

    def _independent_equations(self, model: Model, arguments: tuple[str, str]) -> Iterator[tuple[np.ndarray, tuple[Any, ...]]]:
        """Yield each mask and the independent constraint equations under it, at the state of the first run.

        Raises ConfigurationError for states off the constraints, and UsageError for driven loops and for too many prescribed
        coordinates.
        """
        driven = next((constraint.name for constraint in model.constraints if constraint.driven), None)
        if driven:
            raise UsageError(f"the loop {driven} is driven; a rollout has no motion for it: use ld.simulate")
        if not self.count:
            return
        with self.with_run_robots() as robots:
            open_q, open_v = constraint_residual(robots, self.q), constraint_velocity(robots, self.q, self.v)
            ranks = None if model.has_only_linear_couplings else equation_rank(model, constraint_jacobian(robots, self.q))
        for name, x, size, relative, mend in (
                (arguments[0], open_q, 1.0, "rad or lengths of the loop", "project_configuration, or assemble"),
                (arguments[1], open_v, rate_magnitude(model, self.v, 1)[:, None], "of its maximum velocity", "project_velocity")):
            residuals = np.abs(x) * equation_weights(model) / size
            worst = residuals.max(axis=1, initial=0.0)
            k = int(np.argmax(worst))
            if worst[k] > MAX_CLOSURE_ERROR:
                row = model.constraint_equation_names[int(np.argmax(residuals[k]))]
                raise ConfigurationError(f"{name} of run {k} violates the constraints by {worst[k]:.1e} ({row}), more than "
                                         f"{MAX_CLOSURE_ERROR:g} {relative}; use ld."
                                         f"{'expand, which computes followers' if model.has_only_couplings else mend}")
        if ranks is not None:
            self.warnings += singular_state_warnings(model, self.q, ranks, state_kind="run")
        begins: dict[bytes, tuple[Any, ...]] = {}
        for first, _, mask in self.segments:
            begins.setdefault(mask.tobytes(), (first, mask))
        for first, mask in begins.values():
            rows = self._equations_under(model, mask)
            _, free_equations, driven_equations = rows
            if len(driven_equations) < len(free_equations):
                names = ", ".join(name for name, is_prescribed in zip(model.v_names, mask, strict=True) if is_prescribed)
                raise UsageError(f"the constraints make the prescribed coordinates dependent: got {names} in step {first} "
                                 "(prescribe fewer)")
            yield mask, rows

    def _equations_under(self, model: Model, mask: np.ndarray) -> tuple[tuple[int, ...], ...]:
        """Return the independent equations under a mask; those of linear couplings do not depend on the state."""
        if not model.has_only_linear_couplings:
            return independent_equations(model, self.q[0], mask)
        rows: tuple[tuple[int, ...], ...] = model.cached(_EquationsKey(mask.tobytes()),
                                                         lambda: independent_equations(model, self.q[0], mask))
        return rows

    def with_run_robots(self, run_indices: slice | np.ndarray = slice(None)) -> AbstractContextManager[Model]:
        """Return a context manager for a model with the robot of each run.

        Its functions compute state k with the robot of run k, or of run run_indices[k].
        """
        if self.variants is None:
            return nullcontext(self.model)
        places, constants = self.varying
        return Variants.of_numbers(self.model, places, constants[run_indices]).in_place_of_the_model()

    @cached_property
    def segments(self) -> list[tuple[int, int, np.ndarray]]:
        """First step, step after the last, and mask (nv,) of prescribed coordinates of each segment with one mask."""
        borders = [0, *(np.flatnonzero((self.masks[1:] != self.masks[:-1]).any(axis=1)) + 1), self.steps]
        return [(int(s), int(end), self.masks[min(s, len(self.masks) - 1)]) for s, end in pairwise(borders)]

    def _bind_feedback(self, rows: Mapping[str, np.ndarray]) -> None:
        """Set pattern, gains, feedback_values and moving."""
        gain, q, v = (x if x.ndim == n else x[:, None] for x, n in (
            (rows["feedback.gain"], 4), (rows["feedback.setpoint_q"], 3), (rows["feedback.setpoint_v"], 3)))
        self.gain_rows, self.gain_steps = gain.shape[2], gain.shape[1]
        missing = np.zeros((*gain.shape[:2], self.n_inputs - self.gain_rows, gain.shape[3]))
        gain = np.concatenate([gain, missing], axis=2)
        self.pattern = (gain != 0.0).any(axis=(0, 1))
        check_configuration(self.model, q[:, 0], "feedback.setpoint_q", "run")
        gains = gain[..., self.pattern]
        self.gains, first = gains[:, 0], self.first_gain_index
        self.largest_gains = np.where(-gains.min(axis=1) > gains.max(axis=1), gains.min(axis=1), gains.max(axis=1))
        self.feedback_values = np.concatenate([self.gains, q[:, 0], v[:, 0], np.zeros((self.count, self.n_inputs))], axis=1)
        for name, x in (("gain", gains), ("setpoint_q", q), ("setpoint_v", v)):
            self._check_steps(f"feedback.{name}", x)
            if x.shape[1] > 1:
                self.moving.append((first + np.arange(x.shape[2]), x))
            first += x.shape[2]

    def _check_steps(self, name: str, x: np.ndarray) -> None:
        if x.shape[1] not in (1, self.steps):
            raise ShapeError(f"{name} has the wrong number of steps: expected {self.steps} or 1, got {x.shape[1]}")

    def _check_last(self, last: np.ndarray) -> np.ndarray:
        """Return the number of steps of each run, or raise UsageError."""
        if last.dtype.kind not in "iu" or (last < 1).any() or (last > self.steps).any():
            is_numeric = last.size and last.dtype.kind in "iuf"
            description = f"{last.dtype} from {last.min()} to {last.max()}" if is_numeric else f"{last.dtype}"
            raise UsageError(f"last is the number of steps of each run: expected integers from 1 to {self.steps}, "
                             f"got {description}")
        return last.astype(np.int64)

    def step_inputs(self, first: int, until: int, tau: np.ndarray | None = None) -> StepInputs:
        """Return the inputs that change in the steps first … until - 1 of one segment.

        They are generalized forces and thrusts (`tau` (N, 1, inputs), if given), accelerations of prescribed coordinates, and
        gains and setpoints that change.
        """
        nv, mask = self.model.nv, self.masks[min(first, len(self.masks) - 1)]
        driving = _steps_of_series(self.tau, first, until) if tau is None else tau
        if mask.any():
            a = _steps_of_series(self.a, first, until)
            steps = max(a.shape[1], driving.shape[1])
            driving = np.broadcast_to(driving, (self.count, steps, self.n_inputs)).copy()
            np.copyto(driving[..., :nv], a, where=mask)
        if not self.moving:
            return StepInputs(np.arange(self.n_inputs), np.require(driving, requirements=["C", "W"]))
        places = np.concatenate([np.arange(self.n_inputs), *(places for places, _ in self.moving)])
        parts = driving, *(_steps_of_series(x, first, until) for _, x in self.moving)
        length = max(x.shape[1] for x in parts)
        series = np.concatenate([np.broadcast_to(x, (self.count, length, x.shape[2])) for x in parts], axis=2)
        return StepInputs(places, np.ascontiguousarray(series))            # of broadcast parts, it may be in column order

    @property
    def varying(self) -> tuple[tuple[int, ...], np.ndarray]:
        """Indices in the constants of a model at which the variants differ, and the values of each run there (N, indices)."""
        if self.variants is None:
            return (), np.zeros((self.count, 0))
        places, constants = self.variants.varying
        return places, constants[self.robot]

    @cached_property
    def weights(self) -> np.ndarray:
        """Weights of the variants, relative to that of the first one."""
        if self.variants is None:
            return np.ones(1)
        weights = robot_weights(self.variants)
        return weights / (weights[0] or 1.0)               # for a weight of zero, no stiffness is proportional to it

    @property
    def first_gain_index(self) -> int:
        """Index of the first feedback gain in `values`."""
        return (self.n_inputs + self._thrust_directions.size
                + (0 if self.contacts is None else self.contacts.contacts.material.size))

    @cached_property
    def _thrust_directions(self) -> np.ndarray:
        """Components of the wrenches of thrusts of 1 N that are not zero, if thrusts act."""
        basis = np.array([wrench for *_, wrench in thrust_entries(self.model, range(self.n_inputs - self.model.nv))]).ravel()
        components: np.ndarray = basis[basis != 0.0]
        return components

    def values(self) -> np.ndarray:
        """Return a new array (N, k) with the values of each run for `BatchStep.scenario_values`."""
        parts = [self.tau[:, 0], np.broadcast_to(self._thrust_directions, (self.count, self._thrust_directions.size))]
        if self.contacts is not None:
            bound = self.contacts.contacts
            parts.append(bound.material * material_scale(bound, self.weights[self.robot]))
        # for parts of one column, np.concatenate may return column order
        return np.ascontiguousarray(np.concatenate(parts + ([] if self.pattern is None else [self.feedback_values]), axis=1))


def _steps_of_series(x: np.ndarray, first: int, until: int) -> np.ndarray:
    """Return the steps first … until - 1 of a series (N, 1 or S, n)."""
    return x if x.shape[1] == 1 else x[:, first:until]


def _masks(model: Model, prescribed: ArrayLike | None, steps: int) -> np.ndarray:
    """Return (1 or S, nv) bool: the prescribed coordinates in each step."""
    if prescribed is None:
        return np.zeros((1, model.nv), dtype=bool)
    x = np.asarray(prescribed)
    if x.dtype != bool:
        raise UsageError(f"prescribed must be a mask: expected booleans (nv,) or (steps, nv), got {x.dtype}")
    if x.shape not in ((model.nv,), (steps, model.nv)):
        raise ShapeError(f"prescribed has the wrong shape: expected ({model.nv},) or ({steps}, {model.nv}), got {x.shape}")
    return x.reshape(-1, model.nv)


def _feedback_arguments(model: Model, feedback: Feedback, steps: int) -> list[Argument]:
    """Return the arrays of a feedback."""
    if not isinstance(feedback, Feedback):
        raise UsageError(f"feedback must be a Feedback, got {type(feedback).__name__}")
    n_rows = input_count(model) if _has_thrusts(feedback.gain, -2, model) else model.nv
    gain = as_array(to_numpy(feedback.gain), "feedback.gain", (n_rows, 2 * model.nv))
    setpoint_q = as_array(to_numpy(feedback.setpoint_q), "feedback.setpoint_q", (model.nq,))
    setpoint_v = np.zeros(model.nv) if feedback.setpoint_v is None else as_array(
        to_numpy(feedback.setpoint_v), "feedback.setpoint_v", (model.nv,))
    return [Argument(name, x, n + (x.ndim > n and x.shape[-n - 1] == steps != 1), coordinates) for name, x, n, coordinates in (
        ("feedback.gain", gain, 2, ()), ("feedback.setpoint_q", setpoint_q, 1, model.q_names),
        ("feedback.setpoint_v", setpoint_v, 1, model.v_names))]


def _has_thrusts(x: Any, axis: int, model: Model) -> bool:
    """Return whether an axis of an array has an entry for each coordinate and each actuator of a robot with actuators."""
    shape = () if x is None or callable(x) else np.shape(to_numpy(x))
    return bool(model.description.actuators) and len(shape) >= -axis and shape[axis] == input_count(model)


def _check_not_both(argument: Argument, lead: tuple[int, ...], steps: int) -> None:
    """Raise ShapeError for gains or setpoints whose axis could be that of runs or that of steps."""
    n = 2 if argument.name == "feedback.gain" else 1
    kind, x, rest = ("state", argument.array, ":") if n == 1 else ("gain", argument.array, ":, :")
    if steps > 1 and n < x.ndim <= len(lead) + n and x.shape[-n - 1] == lead[-1] == steps:
        raise ShapeError(f"{argument.name} may have a {kind} for each run or for each step, as there are {steps} of both, got "
                         f"{x.shape}: write x[None] for each step, np.repeat(x[..., None, {rest}], {steps}, axis={-n - 1}) for "
                         "each run")


def to_numpy(x: Any) -> Any:
    """Return an array of another library as a NumPy array, without a copy if possible."""
    if isinstance(x, np.ndarray) or not hasattr(x, "__dlpack__"):
        return x
    try:
        return np.from_dlpack(x)
    except (RuntimeError, BufferError, TypeError):             # on another device, or with gradients: asarray may convert it
        return np.asarray(x)
