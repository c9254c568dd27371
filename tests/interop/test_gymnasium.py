"""Vector environments: against Gymnasium's own SyncVectorEnv of single environments, and its checker."""
import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import liedyn as ld
from liedyn.interop.gymnasium import RobotVectorEnv

N = 4


def random_state(rng, n):
    return rng.uniform(-0.3, 0.3, (n, 2)), rng.uniform(-0.1, 0.1, (n, 2))


OPTIONS = {"dt": 5e-3, "steps": 4, "reward": lambda q, v, action: np.cos(q[:, 1]) - 1e-3 * action[:, 0]**2,
           "terminated": lambda q, v: np.abs(q[:, 1]) > 0.4, "duration": 0.5, "initial": random_state}


def cart_pole(n=N, **more):
    return RobotVectorEnv(ld.load("robots/cart_pole.yaml"), n, **OPTIONS | more)


class Single(gymnasium.Env):
    """A vector environment of one environment as that one."""

    def __init__(self, **more):
        self.env = cart_pole(1, autoreset_mode=AutoresetMode.DISABLED, **more)
        self.observation_space, self.action_space = self.env.single_observation_space, self.env.single_action_space

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.env.reset(seed=seed)[0][0], {}

    def step(self, action):
        observation, reward, terminated, truncated, _ = self.env.step(action[None])
        return observation[0], float(reward[0]), bool(terminated[0]), bool(truncated[0]), {}


def test_gymnasium_accepts_one_environment():
    check_env(Single(), skip_render_check=True)


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_episodes_are_those_of_single_environments(mode):
    """All start from given states, so that random numbers have no effect: several episodes are equal."""
    starts = np.random.default_rng(3).uniform(-0.3, 0.3, 2)

    def initial(rng, n):
        return np.tile(starts, (n, 1)), np.zeros((n, 2))
    env = cart_pole(initial=initial, autoreset_mode=mode)
    peers = SyncVectorEnv([lambda: Single(initial=initial)] * N, autoreset_mode=mode)
    assert env.metadata["autoreset_mode"] is mode
    np.testing.assert_array_equal(env.reset(seed=1)[0], peers.reset(seed=1)[0])
    rng, ends, cut = np.random.default_rng(0), 0, 0
    for _ in range(120):
        actions = rng.uniform(-1, 1, (N, 1)).astype(np.float32) * np.array([[0.0], [5.0], [20.0], [50.0]], dtype=np.float32)
        mine, other = env.step(actions), peers.step(actions)
        for x, y in zip(mine[:4], other[:4], strict=True):
            np.testing.assert_array_equal(x, y)
            assert x.dtype == y.dtype
        assert mine[4].keys() == other[4].keys()
        for x, y in zip(mine[4].get("final_obs", ()), other[4].get("final_obs", ()), strict=True):
            assert (x is None) == (y is None) and np.array_equal(x, y)
        ends, cut = ends + mine[2].sum(), cut + mine[3].sum()
    assert ends > 5


def test_spaces_are_those_of_the_robot():
    env = cart_pole()
    assert env.single_action_space == gymnasium.spaces.Box(-50.0, 50.0, (1,), np.float32) and env.action_space.shape == (N, 1)
    np.testing.assert_allclose(env.single_observation_space.low, [-7.2, -np.inf, -np.inf, -np.inf])
    observations, _ = env.reset(seed=0)
    assert env.observation_space.contains(observations)
    env = cart_pole(terminated=lambda q, v: q[:, 1])
    env.reset(seed=0)
    with pytest.raises(ld.ShapeError, match="the result of terminated has the wrong type: expected bool, got float64"):
        env.step(np.zeros((N, 1)))
    dog = ld.load("robots/quadruped.yaml")
    low = RobotVectorEnv(dog, 1, dt=1e-3, joints="*_knee", reward=lambda q, v, a: q[:, 2]).single_observation_space.low
    np.testing.assert_array_equal(low[dog.q_index("base")], [-np.inf] * 3 + [-1.0] * 4)


def test_seeds_repeat_and_environments_differ():
    env, other = cart_pole(), cart_pole()
    first, again = env.reset(seed=5)[0], other.reset(seed=5)[0]
    np.testing.assert_array_equal(first, again)
    assert np.unique(first[:, 0]).size == N and not np.array_equal(first, env.reset()[0])
    env.reset(seed=5)
    env.action_space.seed(2)
    for _ in range(60):                                        # also the starts of later episodes
        actions = env.action_space.sample()
        for x, y in zip(env.step(actions)[:4], other.step(actions)[:4], strict=True):
            np.testing.assert_array_equal(x, y)


def test_results_are_not_reused():
    env = cart_pole()
    first, _ = env.reset(seed=0)
    copy = first.copy()
    second = env.step(np.zeros((N, 1)))[0]
    np.testing.assert_array_equal(first, copy)
    assert second is not first and not np.shares_memory(second, env.stepper.q)


def test_some_environments_are_reset():
    env = cart_pole(autoreset_mode=AutoresetMode.DISABLED)
    env.reset(seed=0)
    before = env.step(np.full((N, 1), 5.0))[0]
    mask = np.array([True, False, False, True])
    after, _ = env.reset(options={"reset_mask": mask})
    np.testing.assert_array_equal(after[~mask], before[~mask])
    assert (after[mask] != before[mask]).all() and env.stepper.t.tolist() == [0.0, 0.02, 0.02, 0.0]
    with pytest.raises(ld.ShapeError, match="reset_mask is not a mask of the environments"):
        env.reset(options={"reset_mask": [1, 0]})


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_runs_that_cannot_continue_are_terminated(mode):
    env = cart_pole(autoreset_mode=mode)
    before, _ = env.reset(seed=0)
    actions = np.zeros((N, 1))
    actions[2] = np.nan
    observations, rewards, terminations, _, infos = env.step(actions)
    assert terminations.tolist() == infos["failed"].tolist() == [False, False, True, False]
    assert np.isfinite(observations).all()
    final = infos["final_obs"][2] if mode is AutoresetMode.SAME_STEP else observations[2]
    np.testing.assert_array_equal(final, before[2])
    observations, rewards, terminations, _, infos = env.step(np.zeros((N, 1)))
    assert np.isfinite(observations).all() and np.isfinite(rewards).all() and not terminations.any() and not infos


def test_actions_are_clipped_and_setpoints_lead_there():
    env, other = cart_pole(), cart_pole()
    env.reset(seed=0), other.reset(seed=0)
    np.testing.assert_array_equal(env.step(np.full((N, 1), 1e3))[0], other.step(np.full((N, 1), 50.0))[0])
    law = ld.Feedback.pd([200.0, 200.0], [20.0, 20.0], [0.0, 0.0])
    env = RobotVectorEnv(ld.load("robots/double_pendulum.yaml"), 2, dt=1e-3, steps=20, joints="*", action="setpoint",
                         feedback=law, reward=lambda q, v, action: -np.abs(q - action).max(axis=1))
    env.reset(seed=0)
    rewards = [env.step(np.tile([0.3, -0.5], (2, 1)))[1] for _ in range(60)]
    assert rewards[0][0] < -0.3 and rewards[-1][0] > -0.05


def test_variants_and_observations_of_the_user():
    model = ld.load("robots/cart_pole.yaml")
    robots = ld.Variants(model, {"mass.pole": [0.1, 0.2, 0.3]})
    space = gymnasium.spaces.Box(-1.0, 1.0, (2,), np.float64)
    env = RobotVectorEnv(robots, 3, observation=lambda q, v: np.stack([np.sin(q[:, 1]), np.cos(q[:, 1])], axis=1),
                         observation_space=space, **OPTIONS)
    env.reset(seed=0)
    assert env.step(np.zeros((3, 1)))[0].dtype == np.float64 and len(env.stepper.q) == 3
    bad = RobotVectorEnv(robots, 3, observation=lambda q, v: q[:, :1], observation_space=space, **OPTIONS)
    with pytest.raises(ld.ShapeError, match=r"the result of observation has the wrong shape: expected \(3, 2\), got \(3, 1\)"):
        bad.reset(seed=0)


@pytest.mark.parametrize(("options", "error", "message"), [
    ({"observation": lambda q, v: q}, ld.UsageError, "observation requires observation_space"),
    ({"action": "torque"}, ld.UsageError, "action must be force or setpoint, got 'torque'"),
    ({"action": "setpoint"}, ld.UsageError, "require `feedback`"),
    ({"joints": "wheel"}, ld.LiedynError, "wheel"),
    ({"duration": 0.0}, ld.UsageError, r"duration must be a positive time \[s\] or None, got 0.0"),
    ({"autoreset_mode": "next"}, ld.UsageError, "autoreset_mode must be one of NextStep, SameStep, Disabled, got 'next'"),
])
def test_errors_of_arguments(options, error, message):
    with pytest.raises(error, match=message):
        cart_pole(**options)


def test_a_mechanism_starts_from_its_initial_states():
    """A mechanism that is open in the neutral configuration was an error."""
    model = ld.load("robots/five_bar.yaml")
    q = ld.assemble(model, [-2, 1.3, -1, -1.5]).q
    env = RobotVectorEnv(model, 3, dt=1e-3, joints=["left", "right"], reward=lambda q, v, a: q[:, 0],
                         initial=lambda rng, n: (np.tile(q, (n, 1)), np.zeros((n, 4))))
    env.reset(seed=0)
    env.step(np.zeros((3, 2)))
    expected = ld.rollout(model, q, np.zeros(4), dt=1e-3, steps=1).q[-1]
    np.testing.assert_allclose(env.stepper.q, np.tile(expected, (3, 1)), atol=1e-12)


def test_errors_of_robots_and_functions():
    with pytest.raises(ld.UsageError, match="no joint has an effort limit; give `joints`"):
        RobotVectorEnv(ld.load("robots/double_pendulum.yaml"), 2, dt=1e-3, reward=lambda q, v, a: q[:, 0])
    env = cart_pole(reward=lambda q, v, action: q)
    with pytest.raises(ld.UsageError, match=r"call reset\(\) before step\(\)"):
        env.step(np.zeros((N, 1)))
    env.reset(seed=0)
    with pytest.raises(ld.ShapeError, match=r"the result of reward has the wrong shape: expected \(4,\), got \(4, 2\)"):
        env.step(np.zeros((N, 1)))
    with pytest.raises(ld.ShapeError, match="actions have the wrong shape"):
        env.step(np.zeros(N))
    env = cart_pole(terminated=lambda q, v: q[:, 1])
    env.reset(seed=0)
    with pytest.raises(ld.ShapeError, match="the result of terminated has the wrong type: expected bool, got float64"):
        env.step(np.zeros((N, 1)))
    dog = ld.load("robots/quadruped.yaml")
    law = ld.Feedback.pd(np.ones(dog.nv), np.ones(dog.nv), dog.neutral())
    with pytest.raises(ld.UsageError, match="cannot set the quaternions"):
        RobotVectorEnv(dog, 2, dt=1e-3, joints="base", action="setpoint", feedback=law, reward=lambda q, v, a: q[:, 0])
