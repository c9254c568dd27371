"""`ld.Stepper`: steps of one or many runs, one call at a time, with everything prepared before the first of them."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from liedyn.arrays import Array, ArrayLike, Mask, Method, Precision
from liedyn.dynamics.batching.arrays import as_array
from liedyn.dynamics.batching.calls import check_configuration
from liedyn.dynamics.batching.state_blocks import is_single
from liedyn.dynamics.variants import Variants
from liedyn.errors import ComputationError, LiedynWarning, ShapeError, UsageError, counted, warn
from liedyn.immutable import same
from liedyn.integrators.batch_integrator import BatchIntegrator, BatchOutputs, BatchStates, Grid
from liedyn.kernels.batch_blocks import QUATERNION_TOLERANCE
from liedyn.kernels.simulation.right_hand_side import BAD_SIGNAL
from liedyn.model.model import Model
from liedyn.public_calls import explained
from liedyn.rollouts.engine import check_single_precision, contact_motions, normalize_quaternions, prepare_problem, step_clocks
from liedyn.rollouts.inputs import ContactSettings, Feedback, RolloutInputs, to_numpy
from liedyn.rollouts.rollout import REASONS, check_numbers
from liedyn.rollouts.rollout_warnings import state_warnings, stiff_warnings
from liedyn.rollouts.sequential_runs import missing_code
from liedyn.simulation.contact_setup import ContactMotion
from liedyn.simulation.name_binding import v_to_q_indices

_RUNS_IN_MESSAGE = 8
_ROUNDING = 1e-18        # squared residual of couplings [rad^2 | m^2]: a smaller one is rounding


class Stepper:
    """Steps of a simulation for learning and control: `ld.rollout` one call at a time, without its preparations.

    A call of `step` computes the same numbers as that many steps of `ld.rollout`, bit for bit, and takes a few microseconds more
    than its arithmetic. The state is in the arrays `q` and `v`, which each step overwrites. Joint limits and events do not act.

    Parameters
    ----------
    model : Model or Variants
        With `Variants`, each run has its robot.
    dt : float
        Step of the integrator [s].
    runs : int, optional
        Number N of runs; default: those of the other arguments. One state without an axis of runs if these have none.
    q0, v0 : (…, nq), (…, nv), optional
        Initial states, also of `reset`; default: the neutral configuration at rest.
    method : {"rk4", "semi_implicit"}
        As in `ld.rollout`.
    steps : int
        Steps of the integrator in each call, with constant generalized forces.
    feedback : Feedback, optional
        Added to the generalized forces, evaluated at each stage of a step. `set_setpoint` changes its setpoint.
    passive : bool
        Whether joint springs, damping and friction act.
    prescribed : (nv,) bool, optional
        Mask of coordinates whose acceleration is given to `step`.
    contacts : mapping, optional
        As the key `contacts` of a scenario. See `contact_forces`.
    events : None
        Not supported: an error refers to `ld.rollout`.
    dtype : "float64" or "float32"
        Precision of the steps, as in `ld.rollout`. In single precision, each call ends with quaternions of unit norm; bits may
        differ from those of a rollout.

    Attributes
    ----------
    q, v : (…, nq), (…, nv)
        State; NaN for runs that have ended.
    t : (…,)
        Time since the last reset of each run [s].
    ended : (…,) bool
        Runs that cannot continue until they are reset.
    reasons : dict
        Why they ended, by the index of the run (flattened).
    contact_names : tuple of str
        The contacts.
    warnings : tuple of LiedynWarning
        About the initial states, also given as warnings, such as a step that is too long for stiff forces.

    Raises
    ------
    ShapeError, ConfigurationError, ScenarioError
        As `ld.rollout`.
    UsageError
        As `ld.rollout`, and for robots without generated code.

    Examples
    --------
    >>> model = ld.load("robots/double_pendulum.yaml")
    >>> stepper = ld.Stepper(model, 1e-3, runs=2, q0=[0.3, 0.0], steps=10)
    >>> q, v = stepper.q, stepper.v
    >>> for _ in range(10):
    ...     q, v = stepper.step(q, v, tau=-2.0 * v)
    >>> q.round(3)
    array([[0.286, 0.01 ],
           [0.286, 0.01 ]])
    >>> stepper.reset([1])
    >>> stepper.t
    array([0.1, 0. ])
    """

    @explained
    def __init__(self, model: Model | Variants, dt: float, *, runs: int | None = None,       # noqa: PLR0913 - are independent
                 q0: ArrayLike | None = None, v0: ArrayLike | None = None, method: Method = "rk4", steps: int = 1,
                 feedback: Feedback | None = None, passive: bool = True, prescribed: ArrayLike | None = None,
                 contacts: Mapping[str, Any] | None = None, events: None = None, dtype: Precision = "float64"):
        if events is not None:
            raise UsageError("a Stepper has no events; use ld.rollout, or test the state after each step and call `reset`")
        self._arguments: dict[str, Any] = {
            "model": model, "dt": dt, "runs": runs, "q0": q0, "v0": v0, "method": method, "steps": steps, "feedback": feedback,
            "passive": passive, "prescribed": prescribed, "contacts": contacts, "dtype": dtype}
        check_numbers(method, dt, steps=steps, **({} if runs is None else {"runs": runs}))
        steps, dt = int(steps), float(dt)                              # of NumPy they may be 32 bits wide
        variants, model = (model, model.model) if isinstance(model, Variants) else (None, model)
        self._is_single = is_single(dtype, "Stepper") and check_single_precision(
            "Stepper", model, {"Variants": variants, "contacts": contacts})
        q, v = (default if x is None else to_numpy(x) for x, default in ((q0, model.neutral()), (v0, np.zeros(model.nv))))
        if runs is not None and np.ndim(q) == 1:
            q = np.broadcast_to(q, (runs, np.size(q)))
        inputs = RolloutInputs(model, variants, q, v, None, feedback, None, 1, ContactSettings.read(contacts, model), None,
                               prescribed, thrusts=True)
        if runs is not None and inputs.lead != (runs,):
            raise ShapeError(f"runs does not match the other arguments, whose axes of runs are {inputs.lead}: expected "
                             f"a number for one axis of runs, got {runs}")
        places, constants = inputs.varying
        problem, generated = prepare_problem(inputs, inputs.masks[0], passive, method, places, None, self._is_single)
        if generated is None:
            raise UsageError(f"a Stepper requires {missing_code(problem, inputs, method)}; use ld.rollout")
        self.model, self.dt, self.steps = model, dt, steps
        self._inputs, self._problem, self._method, self._mask = inputs, problem, method, inputs.masks[0]
        self._has_prescribed = bool(self._mask.any())
        self._states = BatchStates.from_states(inputs.q, inputs.v, np.full(inputs.count, steps))
        self._initial = self._states.q.copy(), self._states.v.copy()
        self._step_inputs, self._values = inputs.step_inputs(0, 1), inputs.values()
        self._forces = self._step_inputs.series[:, 0, :inputs.n_inputs]
        self._forces_are_zero, self._count = True, np.zeros(inputs.count, dtype=np.int64)
        self._ended_earlier = np.zeros(inputs.count, dtype=bool)
        outputs = BatchOutputs.allocate(inputs.count, 1, model.nq, model.nv, 0)
        grid = Grid(step_clocks(steps, dt), np.full(steps + 1, -1))
        self._advance = BatchIntegrator(problem, generated, constants).prepare(self._states, grid, outputs, self._values,
                                                                               self._step_inputs)
        self.q, self.v = (x.reshape(*inputs.lead, x.shape[1]) for x in (self._states.q, self._states.v))
        self._followers = _follower_equations(model) if model.nc and model.has_only_linear_couplings else None
        self._quaternions = {joint: self._states.q[:, columns] for joint, columns in model.quaternions.items()}
        self.warnings = self._initial_warnings(q0 is not None)
        warn(self.warnings)

    def _initial_warnings(self, has_states: bool) -> tuple[LiedynWarning, ...]:
        """Return warnings about the initial states. Contacts and limits are judged in given states only."""
        problem = self._problem if has_states else replace(self._problem, contacts=None)
        q, v = self.q[..., None, :], self.v[..., None, :]
        flat = (x.reshape(self._inputs.count, 1, x.shape[-1]) for x in (q, v))
        if not self._inputs.count:
            return ()
        return (*self._inputs.warnings, *stiff_warnings(problem, self._inputs, self.dt, self._method, np.zeros(1), *flat),
                *(state_warnings(problem, self._inputs, np.zeros(1), q) if has_states else ()))

    @explained
    def step(self, q: ArrayLike, v: ArrayLike, tau: ArrayLike | None = None, *, a: ArrayLike | None = None,
             out: tuple[Array, Array] | None = None) -> tuple[Array, Array]:
        """Return the state after `steps` steps from q, v, with constant generalized forces tau.

        Parameters
        ----------
        q, v : (…, nq), (…, nv)
            State. `stepper.q` and `stepper.v`, which the last call has returned, are not copied. All arguments may be views of
            them.
        tau : (…, nv) or (nv,), optional
            Generalized forces [N m | N]; default: zero. With nv + m columns, the last m are thrusts [N] of the actuators.
        a : (…, nv) or (nv,), optional
            Accelerations of prescribed coordinates; default: zero. Other entries are ignored.
        out : (q, v), optional
            Separate arrays (…, nq), (…, nv) of float64 for the result, which is also in `stepper.q` and `stepper.v`.

        Returns
        -------
        q, v : (…, nq), (…, nv)
            `out`, or `stepper.q` and `stepper.v`, which the next call overwrites.

        Raises
        ------
        ShapeError, ConfigurationError
            For wrong shapes, quaternions without unit norm, q off linear couplings or mimic joints, and `out` that overlaps, is
            read-only or not float64. Velocities of followers are not checked but replaced; for loops, q and v are not checked.
        ComputationError
            If the run of a single state cannot continue. With an axis of runs, such runs have NaN, and are in `ended`.

        Examples
        --------
        >>> stepper = ld.Stepper(ld.load("robots/double_pendulum.yaml"), 1e-3)
        >>> q, v = stepper.step([0.3, 0.0], [0.0, 0.0], [1.0, 0.0])
        >>> v.round(5)
        array([-0.00199, -0.00059])
        """
        if out is not None:
            self._check_out(out)
        self._set_forces(tau, a)                                       # first: they may be views of the present state
        if q is not self.q or v is not self.v:
            self._set_state(q, v)
        if self._advance():
            self._end_runs()
        if self._is_single:
            normalize_quaternions(self.model, self.q)
        self._count += self.steps
        if out is None:
            return self.q, self.v
        out[0][...], out[1][...] = self.q, self.v
        return out

    def _set_state(self, q: ArrayLike, v: ArrayLike) -> None:
        """Copy the state to the arrays of the prepared call. It may be views of them."""
        q_array, v_array = self._checked(self.q, q, "q"), self._checked(self.v, v, "v")
        if v is not self.v and np.may_share_memory(v_array, self.q):
            v_array = v_array.copy()                                   # it is read after q is written
        if q is not self.q:
            if self._followers is not None:
                self._check_followers(q_array)
            self.q[...] = q_array
            if self._quaternions:
                self._check_quaternions()
        if v is not self.v:
            self.v[...] = v_array

    def _check_out(self, out: tuple[Array, Array]) -> None:
        """Raise ShapeError unless these are two separate arrays for q and v, or `stepper.q` and `stepper.v` themselves."""
        if not isinstance(out, (tuple, list)) or len(out) != 2:
            raise ShapeError(f"out is not a pair of arrays: expected (q, v), got {type(out).__name__}")
        for x, y, other, name in ((out[0], self.q, self.v, "out q"), (out[1], self.v, self.q, "out v")):
            if x is y:
                continue
            if type(x) is not np.ndarray or x.dtype != np.float64:
                raise ShapeError(f"{name} is not an array of float64: got {getattr(x, 'dtype', type(x).__name__)}")
            if x.shape != y.shape:
                raise ShapeError(f"{name} has the wrong shape: expected {y.shape}, got {x.shape}")
            if not x.flags.writeable:
                raise ShapeError(f"{name} is read-only: expected a writable array")
            if np.shares_memory(x, y) or np.shares_memory(x, other):
                raise ShapeError(f"{name} overlaps the state of the stepper: expected another array, or no out")
        if np.shares_memory(*out):
            raise ShapeError("out q and out v overlap: expected two separate arrays")

    def _load(self, target: Array, x: ArrayLike, name: str) -> None:
        """Copy an argument to an array of the prepared call."""
        target[...] = self._checked(target, x, name)

    @staticmethod
    def _checked(target: Array, x: ArrayLike, name: str) -> Array:
        """Return an argument as an array that can be copied to `target`. Raise ShapeError otherwise."""
        array = as_array(to_numpy(x), name, target.shape[-1:]) if type(x) is not np.ndarray else x
        if array.shape not in (target.shape, target.shape[-1:]):
            expected = " or ".join(dict.fromkeys((str(target.shape), str(target.shape[-1:]))))
            raise ShapeError(f"{name} has the wrong shape: expected {expected}, got {array.shape}")
        if array.dtype.kind not in "fiu":
            raise ShapeError(f"{name} is not an array of real numbers: got {array.dtype}")
        return array

    def _check_followers(self, q: Array) -> None:
        """Raise ConfigurationError for positions q (…, nq) off the couplings. Those of runs that have ended are NaN."""
        assert self._followers is not None
        matrix, offset = self._followers
        residual = (q.dot(matrix) - offset).ravel()
        if not residual.dot(residual) < _ROUNDING:                     # 1 us; the check by residuals in lengths takes 0.2 ms
            initial = self._initial[0]
            states = np.broadcast_to(q, self.q.shape).reshape(initial.shape)
            self._check_states(np.where(np.isnan(states), initial, states), np.zeros_like(self._initial[1]))

    def _check_states(self, q: Array, v: Array) -> None:
        """Check states (runs, nq), (runs, nv) as initial ones."""
        RolloutInputs(self.model, None, q, v, None, None, None, 1, None, None, self._arguments["prescribed"], ("q", "v"))

    def _check_quaternions(self) -> None:
        """Raise ConfigurationError for quaternions without unit norm. Those of runs that have ended are NaN."""
        for u in self._quaternions.values():
            if (np.abs(np.einsum("ij,ij->i", u, u) - 1.0) >= QUATERNION_TOLERANCE).any():
                q = np.where(np.isnan(self._states.q), self.model.neutral(), self._states.q)
                check_configuration(self.model, q.reshape(self.q.shape), "q", "run")

    def _set_forces(self, tau: ArrayLike | None, a: ArrayLike | None) -> None:
        """Set the generalized forces of the steps, and the accelerations of prescribed coordinates."""
        nv, forces = self.model.nv, self._forces
        if tau is not None:
            if forces.shape[1] > nv and np.shape(tau)[-1:] == (nv,):          # without thrusts
                forces[:, nv:] = 0.0
                forces = forces[:, :nv]
            self._load(forces if self.q.ndim > 1 else forces[0], self._flat(tau), "tau")
            self._forces_are_zero = False
        elif not self._forces_are_zero:
            self._forces[...] = 0.0
            self._forces_are_zero = True
        if a is not None or self._has_prescribed:
            if not self._has_prescribed:
                raise UsageError("a requires `prescribed`, the mask of the coordinates with prescribed acceleration")
            accelerations = np.zeros((len(self._forces), nv))
            if a is not None:
                self._load(accelerations if self.q.ndim > 1 else accelerations[0], self._flat(a), "a")
            np.copyto(self._forces[:, :nv], accelerations, where=self._mask)
            self._forces_are_zero = False

    def _flat(self, x: ArrayLike) -> Any:
        """Return an argument with one axis of runs, where there are several."""
        return x if self.q.ndim < 3 or np.ndim(x) == 1 else np.reshape(x, (-1, np.shape(x)[-1]))

    def _end_runs(self) -> None:
        """Set the states of runs that have ended to NaN, or raise an error for a single state."""
        ended = self._states.ended >= 0
        self._states.codes[ended & ~self._ended_earlier & ~np.isfinite(self._forces).all(axis=1)] = BAD_SIGNAL
        self._ended_earlier[:] = ended
        self._states.q[ended], self._states.v[ended] = np.nan, np.nan
        if self.q.ndim == 1:
            raise ComputationError(f"the run ended at t = {float(self.t):.6g} s: {self.reasons[0]} (reset the stepper)")

    def reset(self, rows: ArrayLike | None = None, q: ArrayLike | None = None, v: ArrayLike | None = None) -> None:
        """Set the states of some runs, and their times to zero.

        Parameters
        ----------
        rows : indices or mask (…,), optional
            Runs (flattened); default: all.
        q, v : (rows, nq), (rows, nv), optional
            States, also (nq,) and (nv,) for all; default: the initial states.

        Raises
        ------
        ShapeError, ConfigurationError
            For wrong shapes, numbers that are not finite, quaternions without unit norm, and states off the constraints.

        Examples
        --------
        >>> stepper = ld.Stepper(ld.load("robots/double_pendulum.yaml"), 1e-3, runs=3)
        >>> stepper.reset([0, 2], q=[[0.1, 0.0], [0.2, 0.0]])
        >>> stepper.q
        array([[0.1, 0. ],
               [0. , 0. ],
               [0.2, 0. ]])
        """
        index = self._rows(rows)
        q_reset, v_reset = (initial[index] for initial in self._initial)             # copies
        for target, x, name in ((q_reset, q, "q"), (v_reset, v, "v")):
            if x is not None:
                self._load(target, x, name)
        if q is not None or v is not None:                             # checked as initial states
            self._check_states(q_reset, v_reset)
        self._states.q[index], self._states.v[index] = q_reset, v_reset
        self._states.auxiliary[index], self._states.ended[index], self._states.codes[index] = 0.0, -1, 0
        self._count[index], self._ended_earlier[index] = 0, False

    def _rows(self, rows: ArrayLike | None) -> Any:
        """Return the indices of runs, or raise UsageError."""
        if rows is None:
            return np.arange(self._inputs.count)
        index, count = np.asarray(rows), self._inputs.count
        if index.dtype == bool and index.size == count:
            return np.flatnonzero(index)
        is_integer = not index.size or index.dtype.kind in "iu"
        if not is_integer or (index < -count).any() or (index >= count).any():
            raise UsageError(f"rows are indices of runs from 0 to {count - 1}, or a mask of {count}, got {index.dtype} "
                             f"{index.shape}")
        return index.reshape(-1).astype(np.int64)

    def set_setpoint(self, q: ArrayLike, v: ArrayLike | None = None) -> None:
        """Set the setpoint (…, nq), (…, nv) of the feedback; default: at rest.

        Examples
        --------
        >>> model = ld.load("robots/double_pendulum.yaml")
        >>> stepper = ld.Stepper(model, 1e-3, steps=2000, feedback=ld.Feedback.pd([50.0, 50.0], [9.0, 9.0], [0.0, 0.0]))
        >>> stepper.set_setpoint([0.3, 0.1])
        >>> stepper.step(stepper.q, stepper.v)[0].round(2)
        array([0.23, 0.09])
        """
        inputs, nq, nv = self._inputs, self.model.nq, self.model.nv
        if inputs.pattern is None:
            raise UsageError("this stepper has no setpoint; create it with `feedback`")
        first = inputs.first_gain_index + inputs.gains.shape[1]
        setpoint = self._values[:, first:first + nq + nv]
        for columns, x, shape, name in ((slice(0, nq), q, self.q.shape, "q"), (slice(nq, None), v, self.v.shape, "v")):
            values = np.empty(shape)
            self._load(values, np.zeros(nv) if x is None else x, name)
            if name == "q":
                check_configuration(self.model, values, "q", "run")
            setpoint[:, columns] = values.reshape(inputs.count, shape[-1])

    @property
    def t(self) -> Array:
        """(…,) time since the last reset of each run [s]."""
        return np.asarray(self._count * self.dt, dtype=float).reshape(self._inputs.lead)

    @property
    def ended(self) -> Mask:
        """(…,) bool: runs that cannot continue until they are reset."""
        mask: Mask = (self._states.ended >= 0).reshape(self._inputs.lead)
        return mask

    @property
    def reasons(self) -> dict[int, str]:
        """Why runs have ended, by the index of the run (flattened)."""
        return {int(k): REASONS[int(self._states.codes[k])] for k in np.flatnonzero(self._states.ended >= 0)}

    @property
    def contact_names(self) -> tuple[str, ...]:
        """Names of the contacts; empty without `contacts`."""
        return () if self._inputs.contacts is None else self._inputs.contacts.names

    @property
    def contacts(self) -> ContactMotion:
        """Contacts in the present state: normal forces, depths and slips (…, m), centre of pressure (…, 3)."""
        if self._inputs.contacts is None:
            raise UsageError("this stepper has no contacts; create it with `contacts`")
        motion = contact_motions(self._problem, self._inputs, self.q[..., None, :], self.v[..., None, :])
        return replace(motion, **{name: getattr(motion, name)[..., 0, :] for name in ("force", "depth", "slip", "centre")})

    @property
    def contact_forces(self) -> Array:
        """(…, m) normal forces [N] of the contacts `contact_names` in the present state; NaN for runs that have ended."""
        return self.contacts.force

    def _state_arrays(self) -> dict[str, Array]:
        """Return the arrays that steps change."""
        states = self._states
        return {"q": states.q, "v": states.v, "auxiliary": states.auxiliary, "ended": states.ended, "codes": states.codes,
                "count": self._count, "values": self._values, "ended_earlier": self._ended_earlier}

    def __reduce__(self) -> tuple[Any, ...]:
        """Return a copy from the arguments and the state: the prepared call has addresses of memory."""
        return _restore, (self._arguments, {name: x.copy() for name, x in self._state_arrays().items()})

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Stepper):
            return NotImplemented
        return same(self._comparable(), other._comparable())

    def _comparable(self) -> tuple[Any, ...]:
        """Return everything on which the next steps depend."""
        model = self._arguments["model"]
        robots = (model.model, model.varying) if isinstance(model, Variants) else model
        return robots, {name: x for name, x in self._arguments.items() if name != "model"}, self._state_arrays()

    __hash__ = None                                                    # type: ignore[assignment]  # its state changes

    def __repr__(self) -> str:
        count, ended = self._inputs.count, int(np.count_nonzero(self._states.ended >= 0))
        runs = "one state" if self.q.ndim == 1 else counted(count, "run")
        lines = [f"  run {k} ended: {reason}" for k, reason in list(self.reasons.items())[:_RUNS_IN_MESSAGE]]
        lines += [f"  warning: {warning}" for warning in self.warnings]
        return "\n".join([f"<Stepper of {self.model.name}: {runs}, {self.steps} x {self.dt:g} s, {self._method}"
                          f"{f', {ended} ended' if ended else ''}>", *lines])


def _follower_equations(model: Model) -> tuple[Array, Array]:
    """Return a matrix (nq, nf) and an offset (nf,): q @ matrix - offset are the residuals of the followers' couplings."""
    elimination, places = model.elimination(), v_to_q_indices(model)
    matrix = np.zeros((model.nq, len(elimination.follower)))
    single = places >= 0
    matrix[places[single]] = -elimination.ratios[:, single].T
    matrix[places[elimination.follower], np.arange(matrix.shape[1])] += 1.0
    return matrix, elimination.offset


def _restore(arguments: dict[str, Any], arrays: dict[str, Array]) -> Stepper:
    """Return a stepper with these arguments and this state."""
    import warnings
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LiedynWarning)                 # they were given before
        stepper = Stepper(**arguments)
    for name, x in stepper._state_arrays().items():
        x[...] = arrays[name]
    return stepper
