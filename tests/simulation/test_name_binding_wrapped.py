"""Columns of a CSV that a scenario follows: recorded angles that wrap by 2 pi."""
import numpy as np
import pytest

import liedyn as ld

ARM = """
name: two
links:
  a: {mass: 1, com: [0.2, 0, 0], inertia: [0.02, 0.02, 0.02]}
  b: {mass: 1, com: [0.2, 0, 0], inertia: [0.02, 0.02, 0.02]}
  deck: {mass: 1, inertia: [0.02, 0.02, 0.02]}
joints:
  turn: {type: continuous, parent: world, child: a, axis: [0, 1, 0]}
  bend: {type: revolute, parent: a, child: b, axis: [0, 1, 0], origin: {xyz: [0.4, 0, 0]}, limits: {lower: -3.5, upper: 3.5}}
  slide: {type: prismatic, parent: b, child: deck, axis: [0, 1, 0]}
"""
BALL = """
name: ball
links: {body: {mass: 1, inertia: [0.02, 0.02, 0.02]}}
joints: {ball: {type: ball, parent: world, child: body}}
"""
T = np.arange(201) * 0.01
TURNING = 3.0 * T                                                    # passes pi at 1.05 s
MOTIONS = {"continuous": TURNING, "wrapped": (TURNING + np.pi) % (2.0 * np.pi) - np.pi}


@pytest.fixture
def simulated(tmp_path):
    """Run the body of a scenario of 2 s next to continuous.csv and wrapped.csv, which contain the column `angle`."""
    for name, x in MOTIONS.items():
        rows = "\n".join(f"{t:.17g},{angle:.17g}" for t, angle in zip(T, x, strict=True))
        (tmp_path / f"{name}.csv").write_text(f"t[s],angle\n{rows}\n")

    def run(body: str, name: str, robot: str = ARM) -> ld.Result:
        (tmp_path / "robot.yaml").write_text(robot)
        signal = f"{{csv: {{file: {name}.csv, column: angle}}}}"
        (tmp_path / "s.yaml").write_text("robot: robot.yaml\nduration: 2\noutput_step: 0.02\n" + body.replace("CSV", signal))
        return ld.run_scenario(tmp_path / "s.yaml")

    return run


DRIVEN = {
    "position": ("joints: {turn: {prescribe: {position: CSV}}, '*': {prescribe: {acceleration: 0}}}", ARM),
    "target": ("joints: {turn: {torque: {pd: {kp: 200, kd: 20, target: CSV}}}, '*': {prescribe: {acceleration: 0}}}", ARM),
    "motion of a law": ("control: {law: computed_torque, motion: {turn: CSV}, poles: [-8, -12]}\n"
                        "joints: {bend: {prescribe: {acceleration: 0}}, slide: {prescribe: {acceleration: 0}}}", ARM),
    "attitude": ("joints: {ball: {prescribe: {position: {rpy: [0.3, 0, CSV]}}}}", BALL),
}


def unwrapping(result) -> list[str]:
    return [note for note in map(str, result.warnings) if "unwrapped" in note]


@pytest.mark.parametrize("body,robot", DRIVEN.values(), ids=DRIVEN)
def test_a_signal_that_wraps_gives_the_motion_of_the_continuous_one(simulated, body, robot):
    one = simulated(body, "continuous", robot)
    with pytest.warns(ld.LiedynWarning, match="column angle of .*wrapped.csv were unwrapped"):
        other = simulated(body, "wrapped", robot)
    assert not unwrapping(one) and len(unwrapping(other)) == 1
    assert "s.yaml:" in unwrapping(other)[0] and "(1 times) [" in unwrapping(other)[0]
    np.testing.assert_allclose(other.q, one.q, rtol=0, atol=1e-7)       # rounding of a remainder, integrated adaptively
    np.testing.assert_allclose(other.tau, one.tau, rtol=0, atol=1e-5)


def test_limits_exclude_a_signal_that_wraps(simulated):
    with pytest.raises(ld.ScenarioError, match=r"column angle of .*wrapped.csv jumps by a full turn at row 106, and its limits "
                                               "exclude further turns") as caught:
        simulated("joints: {bend: {prescribe: {position: CSV}}}", "wrapped")
    assert "within [-3.5, 3.5] rad" in str(caught.value) and "s.yaml:" in str(caught.value)


def test_lengths_and_torques_do_not_wrap(simulated):
    for body in ("joints: {slide: {prescribe: {position: CSV}}}", "joints: {turn: {torque: CSV}}"):
        assert not unwrapping(simulated(body, "wrapped"))


FOLLOW = "{turn: {torque: {pd: {kp: 200, kd: 20, target: CSV}}}"


@pytest.mark.parametrize("keys", [
    f"joints: {FOLLOW}, bend: {{prescribe: {{acceleration: 0}}}}}}\nevents: {{stay: {{at: 1.0, do: {{lock: bend}}}}}}",
    "joints: {'*': {prescribe: {acceleration: 0}}}\n"
    f"phases: {{rest: {{}}, go: {{joints: {FOLLOW}}}}}}}\n"
    "events: {start: {at: 0.5, do: {phase: go}}, stay: {at: 1.0, do: {lock: bend}}}"], ids=["first phase", "later phase"])
def test_a_wrap_is_reported_once_in_whatever_phase(simulated, keys):
    assert len(unwrapping(simulated(keys, "wrapped"))) == 1
