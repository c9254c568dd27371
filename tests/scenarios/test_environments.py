"""configs/cart_pole_env.py and configs/quadruped_env.py: what is learned balances, and robots stand."""
import numpy as np
import pytest

from bridge import file_of
from command_line import script_of


def test_the_policy_balances_the_pole(capsys):
    script, lines = script_of("cart_pole_env"), []
    gains = script.learn(6, 0, report=lines.append)
    assert len(lines) == 6 and "gains" in lines[0]
    env = script.cart_pole_env(16)
    balanced = script.returns(env, np.tile(gains, (16, 1)), seed=9)
    assert balanced.min() > 200.0 > 2.0 * script.returns(env, np.zeros((16, 4)), seed=9).max()
    np.testing.assert_array_equal(script.returns(env, np.tile(gains, (16, 1)), seed=9), balanced)
    assert script.main(["--iterations", "1"]) == 0
    assert "64 episodes with these gains" in capsys.readouterr().out


@pytest.mark.parametrize("robot", ["Mini Cheetah", "Go2"])
def test_quadrupeds_stand_on_their_feet(robot):
    script = script_of("quadruped_env")
    env = script.quadruped_env(script.ROBOT if robot == "Mini Cheetah" else file_of("go2.urdf"), 3)
    env.reset(seed=0)
    for _ in range(200):
        *_, terminations, truncations, infos = env.step(np.tile(script.LEG, (3, 4)))
        assert not terminations.any() and not truncations.any() and not infos
    force, mass = env.stepper.contact_forces.sum(axis=1), sum(link.mass for link in env.model.description.links)
    trunk = next(link.mass for link in env.model.description.links if link.name == env.model.joints[0].child)
    masses = mass + trunk / 0.8 * np.array([0.0, 0.2, 0.4])                    # the description is that of the first robot
    np.testing.assert_allclose(force, 9.81 * masses, rtol=0.02)


def test_quadrupeds_with_random_actions(capsys):
    assert script_of("quadruped_env").main(["--envs", "4", "--seconds", "0.1"]) == 0
    assert "4 robots, 0.1 s each" in capsys.readouterr().out
