"""Vector environments of Gymnasium, whose environments are the runs of a `Stepper`.

    from liedyn.interop.gymnasium import RobotVectorEnv

    env = RobotVectorEnv(model, 64, dt=1e-3, steps=10, duration=5.0, reward=lambda q, v, action: -q[:, 1]**2)
    observations, _ = env.reset(seed=0)
    observations, rewards, terminations, truncations, infos = env.step(env.action_space.sample())
"""
from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from liedyn.arrays import Array, ArrayLike, Integers, Mask, Method, Patterns
from liedyn.dynamics.variants import Variants
from liedyn.errors import ShapeError, UsageError
from liedyn.model.description import ONE_DOF
from liedyn.model.model import Model
from liedyn.rollouts.inputs import Feedback
from liedyn.rollouts.stepper import Stepper
from liedyn.simulation.name_binding import joint_coordinates, v_to_q_indices

Reward: TypeAlias = Callable[[Array, Array, Array], ArrayLike]                  # (q, v, action) -> (N,)
Termination: TypeAlias = Callable[[Array, Array], ArrayLike]                    # (q, v) -> (N,) bool
Observation: TypeAlias = Callable[[Array, Array], ArrayLike]                    # (q, v) -> (N, k)
InitialState: TypeAlias = Callable[[np.random.Generator, int], tuple[ArrayLike, ArrayLike]]     # (rng, n) -> (n, nq), (n, nv)


class RobotVectorEnv(gymnasium.vector.VectorEnv[Array, Array, Any]):
    """N environments of a robot, or of its variants, that are advanced together.

    An action is a generalized force of each controlled coordinate, within its effort limits, or a setpoint of the feedback within
    its position limits. Actions outside the action space are clipped to it. Spaces have the type float32.

    Parameters
    ----------
    model : Model or Variants
    num_envs : int
        Number of environments.
    dt : float
        Step of the integrator [s].
    reward : callable
        ``reward(q, v, action)`` returns (N,) from the states (N, nq), (N, nv) after the step and the clipped actions.
    steps : int
        Steps of the integrator for each action.
    terminated : callable, optional
        ``terminated(q, v)`` returns (N,) bool: whether episodes end in these states; default: none.
    duration : float, optional
        Time [s] after which an episode is truncated; default: none is.
    initial : callable, optional
        ``initial(rng, n)`` returns n initial states (n, nq), (n, nv); default: the neutral configuration at rest. Its random
        numbers depend on the seed of `reset` only.
    observation : callable, optional
        ``observation(q, v)`` returns (N, k); default: q and v.
    observation_space : gymnasium.spaces.Box, optional
        Of one environment; required with `observation`. Default: positions within their limits, with the range of limits added on
        both sides because they do not act in a stepper; other positions and velocities without bounds.
    joints : names or patterns, optional
        Joints that actions control; default: the joints with motors in the robot file, otherwise those with effort limits.
    action : {"force", "setpoint"}
        Meaning of actions. A setpoint requires `feedback`, and holds for positions of joints with one coordinate.
    autoreset_mode : gymnasium.vector.AutoresetMode
        When episodes that have ended start again.
    method, feedback, contacts, passive
        As of `ld.Stepper`.

    Attributes
    ----------
    stepper : Stepper
        States and contacts of all environments.

    Raises
    ------
    UsageError
        For a robot without controlled joints, setpoints without feedback, observations without space, a duration that is not
        positive, an unknown mode, and a step that no `reset` precedes.
    ShapeError
        For results of functions with wrong shapes, and for terminations that are not bool.

    Notes
    -----
    An environment whose run cannot continue is terminated. Its observation and reward are those of the state before, and
    ``infos["failed"]`` is true. ``reset(options={"reset_mask": mask})`` resets some environments.
    """

    def __init__(self, model: Model | Variants, num_envs: int, *, dt: float, reward: Reward,        # noqa: PLR0913 - independent
                 steps: int = 1, terminated: Termination | None = None, duration: float | None = None,
                 initial: InitialState | None = None, observation: Observation | None = None,
                 observation_space: gymnasium.spaces.Box | None = None, joints: Patterns | None = None, action: str = "force",
                 autoreset_mode: AutoresetMode = AutoresetMode.NEXT_STEP, method: Method = "rk4",
                 feedback: Feedback | None = None, contacts: Mapping[str, Any] | None = None, passive: bool = True):
        # a mechanism is open in the neutral configuration
        q0, v0 = (None, None) if initial is None else initial(np.random.default_rng(0), num_envs)
        self.stepper = Stepper(model, dt, runs=num_envs, q0=q0, v0=v0, steps=steps, method=method, feedback=feedback,
                               contacts=contacts, passive=passive)
        self.model, self.num_envs = self.stepper.model, num_envs
        self.metadata = {"autoreset_mode": _autoreset_mode(autoreset_mode)}
        self._reward, self._terminated, self._initial, self._observation = reward, terminated, initial, observation
        if duration is not None and not duration > 0.0:
            raise UsageError(f"duration must be a positive time [s] or None, got {duration}")
        self._duration = np.inf if duration is None else duration * (1.0 - 1e-9)
        self._coordinates = _controlled_coordinates(self.model, joints)
        self._is_setpoint = _check_action(self.model, action, self._coordinates, feedback)
        self._setpoint = np.tile(self.model.neutral(), (num_envs, 1)) if feedback is None else np.array(
            np.broadcast_to(np.asarray(feedback.setpoint_q, dtype=float), (num_envs, self.model.nq)))
        if observation is not None and observation_space is None:
            raise UsageError("observation requires observation_space, the space of one observation: gymnasium.spaces.Box(…)")
        self.single_observation_space = _state_space(self.model) if observation_space is None else observation_space
        self.single_action_space = self._action_box = _action_space(self.model, self._coordinates, self._is_setpoint)
        self.observation_space, self.action_space = (batch_space(space, num_envs) for space in (self.single_observation_space,
                                                                                               self.single_action_space))
        self._done, self._is_reset = np.zeros(num_envs, dtype=bool), False

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Array, dict[str, Any]]:
        """Start new episodes, of all environments or of the mask ``options["reset_mask"]``. Return observations and infos."""
        super().reset(seed=seed)
        mask = np.asarray((options or {}).get("reset_mask", np.ones(self.num_envs, dtype=bool)))
        if mask.shape != (self.num_envs,) or mask.dtype != bool:
            raise ShapeError(f"reset_mask is not a mask of the environments: expected bool ({self.num_envs},), "
                             f"got {mask.dtype} {mask.shape}")
        self._start_episodes(np.flatnonzero(mask))
        self._is_reset = True
        return self._observe(self.stepper.q, self.stepper.v), {}

    def step(self, actions: ArrayLike) -> tuple[Array, Array, Mask, Mask, dict[str, Any]]:
        """Return observations (N, …), rewards, terminations and truncations (N,), and infos after one action each (N, k)."""
        if not self._is_reset:
            raise UsageError("call reset() before step(): the environments have no initial states")
        stepper = self.stepper
        values = np.asarray(actions, dtype=float)
        if values.shape != self.action_space.shape:
            raise ShapeError(f"actions have the wrong shape: expected {self.action_space.shape}, got {values.shape}")
        clipped = np.clip(values, self._action_box.low, self._action_box.high)
        previous = stepper.q.copy(), stepper.v.copy()
        self._apply(clipped)
        ended = stepper.ended
        q, v = (np.where(ended[:, None], x, y) for x, y in zip(previous, (stepper.q, stepper.v), strict=True))
        failed = ended & ~self._done
        rewards = self._result("reward", self._reward(q, v, clipped)).astype(float)
        terminations = failed.copy()
        if self._terminated is not None:
            ends = self._result("terminated", self._terminated(q, v))
            if ends.dtype != bool:
                raise ShapeError(f"the result of terminated has the wrong type: expected bool, got {ends.dtype}")
            terminations |= ends
        truncations = (stepper.t >= self._duration) & ~terminations
        observations, infos = self._observe(q, v), _failures(failed)
        mode, done = self.metadata["autoreset_mode"], terminations | truncations
        if mode is AutoresetMode.NEXT_STEP and self._done.any():
            again, done = self._done.copy(), done & ~self._done
            self._start_episodes(np.flatnonzero(again))
            observations[again] = self._observe(stepper.q, stepper.v)[again]
            rewards[again], terminations, truncations = 0.0, terminations & ~again, truncations & ~again
        elif mode is AutoresetMode.SAME_STEP and done.any():
            infos |= {"final_obs": _object_rows(observations, done), "_final_obs": done, "final_info": {}, "_final_info": done}
            self._start_episodes(np.flatnonzero(done))
            observations[done] = self._observe(stepper.q, stepper.v)[done]
        self._done = done if mode is AutoresetMode.NEXT_STEP else np.zeros(self.num_envs, dtype=bool)
        return observations, rewards, terminations, truncations, infos

    def _apply(self, actions: Array) -> None:
        """Advance the runs with these actions."""
        stepper = self.stepper
        if self._is_setpoint:
            self._setpoint[:, v_to_q_indices(self.model)[self._coordinates]] = actions
            stepper.set_setpoint(self._setpoint)
            stepper.step(stepper.q, stepper.v)
        else:
            tau = np.zeros((self.num_envs, self.model.nv))
            tau[:, self._coordinates] = actions
            stepper.step(stepper.q, stepper.v, tau)

    def _start_episodes(self, rows: Integers) -> None:
        """Set these environments to initial states."""
        if self._initial is None:
            self.stepper.reset(rows)
        elif len(rows):
            q, v = self._initial(self.np_random, len(rows))
            self.stepper.reset(rows, q, v)
        self._done[rows] = False

    def _observe(self, q: Array, v: Array) -> Array:
        """Return the observations (N, …) in these states as a new array."""
        values = np.concatenate([q, v], axis=1) if self._observation is None else np.asarray(self._observation(q, v))
        if values.shape != self.observation_space.shape:
            raise ShapeError("the result of observation has the wrong shape: expected "
                             f"{self.observation_space.shape}, got {values.shape}")
        return np.array(values, dtype=self.observation_space.dtype)

    def _result(self, name: str, x: ArrayLike) -> Any:
        """Return the result (N,) of a function as an array."""
        values: Any = np.asarray(x)
        if values.shape != (self.num_envs,):
            raise ShapeError(f"the result of {name} has the wrong shape: expected ({self.num_envs},), got {values.shape}")
        return values


def _autoreset_mode(mode: AutoresetMode | str) -> AutoresetMode:
    """Return the mode, which may be given by its value."""
    try:
        return AutoresetMode(mode)
    except ValueError:
        modes = ", ".join(str(x.value) for x in AutoresetMode)
        raise UsageError(f"autoreset_mode must be one of {modes}, got {mode!r}") from None


def _controlled_coordinates(model: Model, joints: Patterns | None) -> Integers:
    """Return the indices of the velocity coordinates that actions control."""
    if joints is None and not model.actuated:
        coordinates = np.flatnonzero(np.isfinite(model.effort_limit))
    else:
        coordinates = np.flatnonzero(joint_coordinates(model, model.actuated if joints is None else joints))
    if not len(coordinates):
        raise UsageError("no joint has an effort limit; give `joints`, the names of the joints that actions control")
    return coordinates


def _check_action(model: Model, action: str, coordinates: Integers, feedback: Feedback | None) -> bool:
    """Return whether actions are setpoints, or raise UsageError."""
    if action not in ("force", "setpoint"):
        raise UsageError(f"action must be force or setpoint, got {action!r}")
    if action == "setpoint" and feedback is None:
        raise UsageError("actions that are setpoints require `feedback`, for example ld.Feedback.pd(kp, kd, q)")
    angular = {k for joint in model.joints if joint.kind != ONE_DOF for k in range(joint.v.start, joint.v.stop)}
    if action == "setpoint" and angular & set(coordinates.tolist()):
        raise UsageError("actions cannot set the quaternions of ball and free joints; give `joints` without them")
    return action == "setpoint"


def _state_space(model: Model) -> gymnasium.spaces.Box:
    """Return the space of q and v: limits, with the range of position limits added on both sides."""
    q_low, q_high = np.full(model.nq, -np.inf), np.full(model.nq, np.inf)
    for quaternion in model.quaternions.values():
        q_low[quaternion], q_high[quaternion] = -1.0, 1.0
    of_v, extent = v_to_q_indices(model), model.upper - model.lower
    for k in np.flatnonzero(np.isfinite(extent)):
        q_low[of_v[k]], q_high[of_v[k]] = model.lower[k] - extent[k], model.upper[k] + extent[k]
    return _box(np.concatenate([q_low, np.full(model.nv, -np.inf)]), np.concatenate([q_high, np.full(model.nv, np.inf)]))


def _action_space(model: Model, coordinates: Integers, is_setpoint: bool) -> gymnasium.spaces.Box:
    """Return the space of the actions of one environment."""
    low, high = (model.lower, model.upper) if is_setpoint else (-model.effort_limit, model.effort_limit)
    return _box(low[coordinates], high[coordinates])


def _box(low: Array, high: Array) -> gymnasium.spaces.Box:
    return gymnasium.spaces.Box(low.astype(np.float32), high.astype(np.float32))


def _failures(failed: Mask) -> dict[str, Any]:
    """Return the infos about environments whose runs have ended."""
    return {"failed": failed, "_failed": failed} if failed.any() else {}


def _object_rows(observations: Array, mask: Mask) -> Any:
    """Return an array of objects (N,): the observation of each environment of the mask, None for the others."""
    rows = np.full(len(observations), None, dtype=object)
    for k in np.flatnonzero(mask):
        rows[k] = observations[k].copy()
    return rows
