"""The comment `# passive` of a CSV."""
import numpy as np
import pytest

from command_line import ok, run
from liedyn.io.trajectory_csv import read_trajectory

ROBOT = """\
name: spring
gravity: [0, 0, 0]
links: {a: {mass: 1}}
joints: {a: {type: prismatic, parent: world, child: a, axis: [1, 0, 0], stiffness: 100}}
"""


@pytest.fixture
def motion(tmp_path):
    def motion(comment: str):
        (tmp_path / "spring.yaml").write_text(ROBOT)
        path = tmp_path / "motion.csv"
        path.write_text(f"{comment}t [s],q.a [m],v.a [m/s],a.a [m/s^2]\n" + "".join(f"{k / 10},0.5,0,0\n" for k in range(3)))
        return path

    return motion


@pytest.mark.parametrize(("comment", "torque"), [("", 50), ("# passive: true\n", 50), ("# passive: False\n", 0),
                                                 ("# passive: false\n", 0)])
def test_springs_act_as_the_comment_says(motion, tmp_path, comment, torque):
    ok("inverse", motion(comment), "--robot", tmp_path / "spring.yaml", "-o", tmp_path / "out.csv")
    assert np.allclose(read_trajectory(tmp_path / "out.csv").columns["tau.a"], torque)


def test_another_text_is_an_error(motion, tmp_path):
    result = run("inverse", motion("# passive: no\n"), "--robot", tmp_path / "spring.yaml")
    assert result.exit_code == 3 and "# passive: expected true or false, got 'no'" in result.stderr
