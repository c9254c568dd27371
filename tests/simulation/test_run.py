"""Scenarios from file to motion."""
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import liedyn as ld
from liedyn.errors import CheckFailed, ComputationError, LiedynError
from liedyn.simulation.preparation import output_times, prepare
from liedyn.simulation.run import SilentProgress, run_scenario, simulate_file, simulate_prepared

ROOT = Path(__file__).parents[2]
METHODS = ("rk4", "dopri5", "dop853", "rodas5p", "RK45", "DOP853", "Radau", "BDF", "LSODA")

ARM = """
links:
  upper: {mass: 1.0, com: [0, 0, -0.25], inertia: [0.02, 0.02, 0.001]}
  lower: {mass: 0.8, com: [0, 0, -0.2], inertia: [0.01, 0.01, 0.001]}
  hand: {mass: 0.2, com: [0, 0, -0.05], inertia: [0.001, 0.001, 0.001]}
joints:
  shoulder: {type: revolute, parent: world, child: upper, axis: [0, 1, 0], damping: 0.2,
             limits: {lower: -9, upper: 9, velocity: 9, effort: 99}}
  elbow: {type: revolute, parent: upper, child: lower, origin: {xyz: [0, 0, -0.5]}, axis: [0, 1, 0],
          limits: {lower: -9, upper: 9, velocity: 9, effort: 99}}
  wrist: {type: ball, parent: lower, child: hand, origin: {xyz: [0, 0, -0.4]}, damping: 0.01}
"""


@pytest.fixture
def write(tmp_path):
    def file(scenario: str, robot: str = ARM) -> Path:
        (tmp_path / "arm.yaml").write_text(robot)
        (tmp_path / "run.yaml").write_text("robot: arm.yaml\n" + scenario)
        return tmp_path / "run.yaml"
    return file


def test_prescribed_positions_are_exact_at_every_level(write):
    """q, v, a of a prescribed joint are the signal and its derivatives to rounding, for all methods."""
    path = write('duration: 1\njoints:\n  shoulder: {prescribe: {position: "0.3*sin(4*t)"}}\n'
                 "  elbow: {prescribe: {velocity: \"0.5*cos(3*t)\"}}\n")
    for method in METHODS:
        r = run_scenario(path, [f"integrator.method={method}"])
        assert np.allclose(r.q[:, 0], 0.3 * np.sin(4 * r.t), rtol=0, atol=1e-15)
        assert np.allclose(r.v[:, 0], 1.2 * np.cos(4 * r.t), rtol=0, atol=1e-15)
        assert np.allclose(r.a[:, 0], -4.8 * np.sin(4 * r.t), rtol=0, atol=1e-14)
        assert np.allclose(r.v[:, 1], 0.5 * np.cos(3 * r.t), rtol=0, atol=1e-15)
        assert np.allclose(r.q[:, 1], 0.5 / 3 * np.sin(3 * r.t), rtol=0, atol=1e-7)


def test_all_methods_agree_on_a_hybrid_scenario_with_a_force_window(write):
    path = write('duration: 1\ninitial: {v: {elbow: 1.0, wrist: [1, -2, 0.5]}}\njoints:\n'
                 '  shoulder: {prescribe: {acceleration: "sin(5*t)"}}\n'
                 '  elbow: {torque: {pd: {kp: 5, kd: 0.5, target: "0.2*t"}}}\n'
                 "external_forces:\n"
                 "  - {link: hand, wrench: [0, 0, 0, 3, 0, \"2*sin(t)\"], from: 0.303, until: 0.604}\n")
    reference = run_scenario(path, ["integrator={method: dopri5, rtol: 1e-12, atol: 1e-13}"])
    for method in METHODS:
        r = run_scenario(path, [f"integrator={{method: {method}}}"])
        bound = 1e-6 if method != "BDF" else 1e-5             # BDF's tolerance is of a step, not of the run
        assert np.abs(ld.difference(r.model, reference.q, r.q)).max() < bound, method
        assert r.check["inverse_dynamics_residual"] < 1e-12
        assert r.check["energy_balance_relative"] < 1e-5
    assert reference.check["energy_balance_relative"] < 1e-10


def test_a_force_window_is_met_exactly_by_fixed_steps(write):
    """A push that begins and ends between steps does not reduce the order: half the step divides the error by 16."""
    path = write("duration: 1\nexternal_forces:\n"
                 "  - {link: lower, frame: local, wrench: [0, 2, 0, 0, 0, 0], from: 0.2501, until: 0.7003}\n")
    fine = run_scenario(path, ["integrator={method: dopri5, rtol: 1e-12, atol: 1e-13}"])
    coarse, half = (np.abs(fine.q[:, :2] - run_scenario(path, [f"integrator.step={h}"]).q[:, :2]).max() for h in (2e-3, 1e-3))
    assert half < 1e-8 and coarse / half > 12, (coarse, half)


def test_energy_of_a_double_pendulum_over_a_minute():
    r = run_scenario(ROOT / "configs/double_pendulum.yaml", ["duration=60", "integrator={method: rk4, step: 1e-3}"])
    energy = r.kinetic + r.potential
    assert np.abs(energy - energy[0]).max() < 1e-8 * np.abs(energy).max()
    assert np.abs(r.balance).max() < 1e-8 * np.abs(energy).max()


def test_what_inverse_dynamics_gives_back_is_what_was_applied():
    r = run_scenario(ROOT / "configs/panda_hybrid.yaml", ["duration=2.5"])
    f_ext = {link: r.wrench[:, k] for k, link in enumerate(r.forced_links)}
    tau = ld.inverse_dynamics(r.model, r.q, r.v, r.a, f_ext=f_ext)
    assert np.abs(tau - r.tau).max() < 1e-12 * np.abs(r.tau).max()
    assert np.abs(r.wrench).max() > 1                          # the push was there


def test_passive_false_leaves_damping_out(write):
    path = write("duration: 0.5\ninitial: {v: {shoulder: 3.0}}\n")
    with_damping, without = run_scenario(path), run_scenario(path, ["passive=false"])
    assert np.abs(without.balance).max() < 1e-9
    assert (with_damping.kinetic + with_damping.potential)[-1] < (without.kinetic + without.potential)[-1] - 1e-3


def test_output_times_end_with_the_run(write):
    r = run_scenario(write("duration: 0.1\noutput_step: 0.03\n"))
    assert np.allclose(r.t, [0, 0.03, 0.06, 0.09, 0.1])
    assert np.allclose(output_times(run_scenario(write("duration: 0.3\noutput_step: 0.1\n")).scenario), [0, 0.1, 0.2, 0.3])


def test_a_robot_file_falls_freely(write):
    path = write("duration: 1\n").with_name("arm.yaml")
    r = run_scenario(path)
    assert r.t[-1] == 5.0 and np.abs(r.tau).max() == 0.0


def test_a_signal_that_leaves_its_domain_names_itself_and_its_place(write):
    path = write('duration: 2\njoints:\n  elbow: {torque: "log(1 - t)"}\n')
    with pytest.raises(ComputationError, match=r"run\.yaml:4: .*the signal of .*elbow.* is not a finite number .* t = 0\.9"):
        run_scenario(path)
    with pytest.raises(ComputationError, match="elbow"):
        run_scenario(path, ["integrator.method=DOP853"])


def test_a_singular_compound_joint_names_the_reason(write):
    robot = ARM.replace("type: ball,", "type: euler, sequence: zyz,").replace("damping: 0.01", "limits: {lower: -9, upper: 9}")
    with pytest.raises(ComputationError, match="articulated inertia vanishes at or soon after t = 0 s"):
        run_scenario(write("duration: 1\n", robot))


def test_strict_refuses_a_robot_with_findings(write):
    robot = ARM.replace(",\n             limits: {lower: -9, upper: 9, velocity: 9, effort: 99}", "")
    with pytest.raises(CheckFailed, match="warning"):
        run_scenario(write("duration: 1\n", robot), strict=True)


def test_a_balance_that_is_off_is_said(write):
    """A step that is much too long, and an angle whose rounding exceeds the motion, still give numbers."""
    assert not run_scenario(write("duration: 1\n")).warnings
    result = run_scenario(write("duration: 1\ninitial: {q: {shoulder: 9e11}, v: {elbow: 2}}\n"))
    assert any(note.startswith("the relative error of the energy balance is ") for note in map(str, result.warnings))
    for initial in "{q: {shoulder: 1e300}, v: {elbow: 2}}", "{v: {elbow: -1e12}}":
        with pytest.raises(ld.ScenarioError, match=r"initial\..*too large: expected .*got -?1[e0].*"):
            run_scenario(write(f"duration: 1\ninitial: {initial}\n"))


def test_loading_includes_the_preparation(write, monkeypatch):
    """Which its caller measures; by a clock that is at rest."""
    prepared = prepare(write("duration: 0.1\n"), {})
    monkeypatch.setattr("liedyn.simulation.run.time", SimpleNamespace(perf_counter=lambda: 5.0))
    timing = simulate_prepared(prepared, SilentProgress(), loading=0.25).timing
    assert timing == {"load": 0.25, "compile": 0.0, "simulate": 0.0, "check": 0.0}


def test_progress_is_told(write):
    class Heard:
        stages, fractions = [], []

        def stage(self, text):
            import contextlib
            self.stages.append(text)
            return contextlib.nullcontext()

        def update(self, fraction):
            self.fractions.append(fraction)

    simulate_file(write("duration: 0.5\n"), [], Heard())
    assert any("compile" in s for s in Heard.stages) and "simulating" in Heard.stages
    assert Heard.fractions[-1] == pytest.approx(1.0)


@pytest.mark.parametrize("override, text", [
    ("duration=-1", "duration"), ("integrator.method=euler", "integrator"), ("nonsense=1", "nonsense"),
    ("robot=none.yaml", "none.yaml"),
])
def test_bad_overrides_are_refused(write, override, text):
    with pytest.raises(LiedynError, match=text):
        run_scenario(write("duration: 1\n"), [override])
