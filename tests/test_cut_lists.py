"""Lists of names in messages say that they are cut."""
import re

import numpy as np
import pytest

import liedyn as ld


@pytest.fixture(scope="module")
def chain() -> ld.Model:
    """Thirty hinges in a row."""
    links = [ld.Link(f"link{k}", 1.0, inertia=np.eye(3)) for k in range(30)]
    joints = [ld.Joint(f"j{k}", "continuous", f"link{k - 1}" if k else "world", f"link{k}", axis=[0, 1, 0]) for k in range(30)]
    return ld.build(ld.Robot("chain", links, joints))


def test_names_of_the_model(chain):
    with pytest.raises(ld.NameLookupError, match=r"no moving joint 'xyz'; the model has j0, .*, j11 and 18 more"):
        chain.joint("xyz")


def test_a_cycle_of_links():
    links = [ld.Link(f"link{k}", 1.0, inertia=np.eye(3)) for k in range(30)]
    joints = [ld.Joint(f"j{k}", "continuous", f"link{(k - 1) % 30}", f"link{k}", axis=[0, 1, 0]) for k in range(30)]
    with pytest.raises(ld.ModelError, match=r"the joints form a cycle: link29 -> link0 -> .* -> link18 -> … \(11 more\)"):
        ld.build(ld.Robot("ring", links, joints))


def test_columns_that_belong_to_no_joint(chain, tmp_path):
    (tmp_path / "log.csv").write_text("t,q.x\n0,0\n1,0\n")
    with pytest.raises(ld.TrajectoryError, match=re.escape("expected 'q.j0, q.j1, q.j2, q.j3 and 26 more'").replace("'", "'?")):
        ld.motion_of(chain, ld.read_trajectory(tmp_path / "log.csv"))


def test_constraints_that_a_function_does_not_account_for():
    links = [ld.Link(f"link{k}", 1.0, inertia=np.eye(3)) for k in range(8)]
    joints = [ld.Joint(f"j{k}", "continuous", "world", f"link{k}", axis=[0, 1, 0]) for k in range(8)]
    loops = [ld.Loop(f"loop{k}", "ball", f"link{k}", f"link{k + 1}") for k in range(6)]
    with pytest.raises(ld.ModelError, match=r"\(loop0, loop1, loop2, loop3 and 2 more\)"):
        ld.forward_dynamics(ld.build(ld.Robot("tied", links, joints, loops=loops)), *np.zeros((3, 8)))
