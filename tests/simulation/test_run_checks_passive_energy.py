"""Energies of runs, rollouts, batches and recorded motions contain springs where they act, and only there."""
import numpy as np
import pytest

import liedyn as ld
from liedyn.analysis.trajectory_dynamics import dynamics_along
from liedyn.batch.run_batch import PreparedSweep
from liedyn.batch.sensitivities import EXACT, sensitivities
from liedyn.io.sweep_file import read_sweep
from liedyn.report.plots.plot_data import record
from liedyn.simulation.run import SilentProgress, simulate_prepared

SPRING = """
name: p
gravity: [0, 0, 0]
links: {b: {mass: 1.0, inertia: [0.1, 0.1, 0.1]}}
joints: {j: {type: continuous, parent: world, child: b, axis: [0, 0, 1], stiffness: 5.0, rest: 0.2}}
"""
ARM = """
name: arm
links:
  a: {mass: 2.0, com: [0.1, 0.02, 0.3], inertia: [0.2, 0.3, 0.1]}
  b: {mass: 1.0, com: [0.3, 0, 0.1], inertia: [0.1, 0.05, 0.08]}
  c: {mass: 0.5, com: [0, 0.1, 0.1], inertia: [0.02, 0.03, 0.04]}
joints:
  turn: {type: revolute, parent: world, child: a, axis: [0, 1, 0], limits: {lower: -1.2, upper: 1.0}, stiffness: 40, rest: 0.4,
         damping: 0.3, friction: 0.2, armature: 0.1}
  roll: {type: continuous, parent: a, child: b, origin: {xyz: [0, 0, 0.5]}, axis: [1, 0, 0], stiffness: 12, rest: -0.7,
         damping: 0.1}
  slide: {type: prismatic, parent: b, child: c, origin: {xyz: [0.4, 0, 0]}, axis: [1, 0, 0], limits: {lower: -0.3, upper: 0.3},
          stiffness: 300, rest: 0.05, friction: 0.3}
"""
REST, STIFFNESS = np.array([0.4, -0.7, 0.05]), np.array([40.0, 12.0, 300.0])
COM = {"a": (2.0, [0.1, 0.02, 0.3]), "b": (1.0, [0.3, 0, 0.1]), "c": (0.5, [0, 0.1, 0.1])}
INITIAL = "initial: {q: {turn: 0.2, roll: 0.5, slide: -0.1}, v: {turn: 1.0, roll: -2.0, slide: 0.3}}"
SCENARIOS = {
    "free": "",
    "set": "events: {s: {at: 0.2, do: {set: {q: {turn: -0.5, slide: 0.2}, v: {roll: 3.0}}}}}",
    "locked": "events: {l: {at: 0.1, do: {lock: roll}}, f: {at: 0.3, do: {unlock: roll}}}",
    "payload": "events: {g: {at: 0.1, do: {attach: {link: c, mass: 1.5, com: [0.1, 0, 0]}}}, d: {at: 0.3, do: {detach: c}}}",
    "stops": "limits: stop\nintegrator: {method: dopri5, rtol: 1.0e-10, atol: 1.0e-11}",
    "hard stops": "limits: hard",
    "driven": 'external_forces: [{link: c, wrench: [0, 0, 0, "5*sin(3*t)", 0, 2]}]\njoints: {turn: {torque: "sin(5*t)"}}',
    "sampled": "sampling: {period: 0.01}\n"
               "control: {law: computed_torque, bandwidth: 6, motion: {turn: 0.3, roll: 0.1, slide: 0}}",
    "generalized alpha": "integrator: {method: generalized_alpha, step: 2.0e-4}",
    "variational": "integrator: {method: variational, step: 2.0e-4}",
    "rodas5p": "integrator: {method: rodas5p}",
}


def arm(folder) -> ld.Model:
    (folder / "arm.yaml").write_text(ARM)
    return ld.load(folder / "arm.yaml")


def simulated(folder, text: str, passive: bool):
    arm(folder)
    (folder / "s.yaml").write_text(f"robot: arm.yaml\nduration: 0.5\noutput_step: 0.01\npassive: {str(passive).lower()}\n"
                                   f"{text}\n{INITIAL}\n")
    return ld.run_scenario(folder / "s.yaml")


def potential(model, q, passive: bool, payload: float = 0.0) -> np.ndarray:
    """Return the potential energy from poses and positions only; payload: at [0.1, 0, 0] of c."""
    found = sum(9.81 * m * (ld.link_poses(model, q)[..., model.link_index(link), :, :] @ [*x, 1.0])[..., 2]
                for link, (m, x) in (*COM.items(), ("c", (payload, [0.1, 0, 0]))))
    return found + passive * 0.5 * (q - REST)**2 @ STIFFNESS


@pytest.mark.parametrize("passive", [False, True])
def test_potential_energy_contains_springs_only_where_they_act(tmp_path, passive):
    (tmp_path / "p.yaml").write_text(SPRING)
    run = ld.simulate(ld.load(tmp_path / "p.yaml"), duration=1.0, q0=[0.5], v0=[1.0], passive=passive)
    expected = 2.5 * (run.q[:, 0] - 0.2)**2 if passive else 0.0 * run.t
    np.testing.assert_allclose(run.potential, expected, atol=1e-12)
    assert run.check["energy_balance_relative"] < 1e-6 and not run.warnings


@pytest.mark.parametrize("passive", [False, True])
@pytest.mark.parametrize("name", SCENARIOS)
def test_energy_of_runs_changes_by_the_work_of_what_acts(name, passive, tmp_path):
    run = simulated(tmp_path, SCENARIOS[name], passive)
    held = np.where((run.t > 0.1) & (run.t < 0.3), 1.5, 0.0) if name == "payload" else 0.0
    steady = np.abs(np.abs(run.t - 0.2) - 0.1) > 1e-9                        # no event happens there
    expected = potential(run.model, run.q, passive, held)
    assert np.allclose(run.potential[steady], expected[steady], rtol=0, atol=1e-11 * np.abs(expected).max())
    assert run.check["energy_balance_relative"] < 1e-5                       # the least accurate method; a spring holds 1 to 10 J
    for event, before, after in jumps(run):
        assert event.change == pytest.approx(after - before, rel=1e-9, abs=1e-9)


def jumps(run):
    """Return the events with a row before and one after, and the energies there."""
    total = run.kinetic + run.potential
    for event in run.events:
        rows = np.flatnonzero(run.t == event.t)
        if len(rows) == 2:
            yield event, total[rows[0]], total[rows[1]]


@pytest.mark.parametrize("passive", [False, True])
def test_a_recorded_motion_is_computed_with_what_acted(passive, tmp_path):
    run = simulated(tmp_path, SCENARIOS["driven"], passive)
    ld.write_run(run, tmp_path / "run")
    model, trajectory = run.model, ld.read_trajectory(tmp_path / "run/trajectory.csv")
    for of, kind, given in (("inverse", "tau", run.tau), ("forward", "a", run.a)):
        columns = {name: x for name, _, x in dynamics_along(model, trajectory, of).columns}
        found = np.transpose([columns[f"{kind}.{name}"] for name in model.v_names])
        assert np.allclose(found, given, rtol=0, atol=1e-9 * np.abs(given).max())
    drawn = record(ld.trajectory_of(model, run.t, run.q, run.v, run.a, run.tau, passive=passive), model, "arm").energy
    assert np.allclose(drawn.potential, potential(model, run.q, passive), rtol=0, atol=1e-10)


@pytest.mark.parametrize("passive", [False, True])
def test_rollouts_of_robots_with_springs_keep_the_energy_of_what_acts(passive, tmp_path):
    """Without damping and friction; of one robot, and of variants of masses and stiffness."""
    text = ARM
    for resistance in ("damping: 0.3", "friction: 0.2", "damping: 0.1", "friction: 0.3"):
        assert resistance in text
        text = text.replace(resistance, resistance[:-3] + "0.0")
    (tmp_path / "arm.yaml").write_text(text)
    (tmp_path / "stiff.yaml").write_text(text.replace("stiffness: 40", "stiffness: 90").replace("mass: 0.5", "mass: 0.9"))
    first, other = (ld.load(tmp_path / name) for name in ("arm.yaml", "stiff.yaml"))
    q, v = np.tile([0.2, 0.5, -0.1], (2, 1)), np.tile([1.0, -2.0, 0.3], (2, 1))
    for models, robots in ((first, [first, first]), (ld.Variants([first, other]), [first, other])):
        run = ld.rollout(models, q, v, dt=5e-4, steps=600, passive=passive)
        for k, robot in enumerate(robots):
            total = sum(ld.energy(robot, run.q[k], run.v[k], passive=passive))
            assert np.ptp(total) < 1e-8 * np.ptp(ld.energy(robot, run.q[k], run.v[k])[0])


SWEEP = """scenario: s.yaml
parameters:
  - {key: robot.stiffness.roll, name: k, uniform: [8, 16]}
  - {key: robot.mass.b, name: m, uniform: [0.8, 1.3]}
samples: 3
outputs: {last: final(energy.potential), highest: max(energy.potential), work: final(energy.work)}
"""


@pytest.mark.parametrize("passive", [False, True])
@pytest.mark.parametrize("feature", ["", SCENARIOS["set"]], ids=["together", "one by one"])
def test_batches_report_the_energy_of_what_acts(feature, passive, tmp_path):
    arm(tmp_path)
    (tmp_path / "s.yaml").write_text(f"robot: arm.yaml\nduration: 0.3\noutput_step: 0.01\npassive: {str(passive).lower()}\n"
                                     f"integrator: {{method: rk4, step: 1.0e-3}}\n{feature}\n{INITIAL}\n")
    (tmp_path / "sweep.yaml").write_text(SWEEP)
    found = PreparedSweep(read_sweep(tmp_path / "sweep.yaml"))
    table = found.evaluator.compute_chunk(0, 3)
    for i in range(3):
        run = simulate_prepared(found.binding.run(i), SilentProgress())
        assert table.outputs[i] == pytest.approx([run.potential[-1], run.potential.max(), run.work[-1]], rel=1e-9, abs=1e-9)
        assert table.energy_balance[i] < 1e-6
    result = sensitivities(found.evaluator, [12.0, 1.0], np.array([1.0, 0.1]))
    if not feature:
        assert result.methods == (EXACT,) * 3
        h = 1e-4
        for k, step in enumerate(np.diag([12.0, 1.0]) * h):
            ends = [found.evaluator.compute_runs(0, [[x] for x in np.array([12.0, 1.0]) + s * step]).outputs[0] for s in (1, -1)]
            assert result.derivatives[:, k] == pytest.approx((ends[0] - ends[1]) / (2 * step[k]), rel=1e-5, abs=1e-6)


def test_energy_leaves_springs_out_that_do_not_act(tmp_path):
    """One state, a batch of one, a batch and variants. Stiff springs that do not act cause no rounding."""
    model = arm(tmp_path)
    (tmp_path / "stiff.yaml").write_text(ARM.replace("stiffness: 40", "stiffness: 4.0e12"))
    stiff, q = ld.load(tmp_path / "stiff.yaml"), np.random.default_rng(3).normal(size=(9, 3))
    for x in (q[0], q[:1], q):
        for passive in (True, False):
            assert np.allclose(ld.energy(model, x, x, passive=passive)[1], potential(model, x, passive), rtol=1e-13, atol=1e-12)
        assert np.array_equal(ld.energy(stiff, x, x, passive=False), ld.energy(model, x, x, passive=False))
    robots = ld.Variants([model, stiff])
    assert np.allclose(robots.energy(q[:2], q[:2], passive=False)[1], potential(model, q[:2], False), rtol=1e-13, atol=1e-12)
    with pytest.raises(ld.ArgumentError, match=r"energy has no argument 'pasive'; did you mean 'passive'\?"):
        ld.energy(model, q[0], q[0], pasive=False)
