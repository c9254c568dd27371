"""Derivatives of outputs by what varies: in closed form, and against differences of runs alone and of the commands."""
import numpy as np
import pytest

import liedyn as ld
import sweeps_along
from liedyn.batch.sensitivities import DIFFERENCES, EXACT, NotDifferentiableError, sensitivities
from liedyn.batch.trajectory_jobs import run_trajectory_job
from liedyn.dynamics.model_parameters import with_parameters
from liedyn.report.plots.batch_plots import plot_batch
from sweeps import DRAWN, OUTPUTS, ROBOT, SCENARIO, batch, written

SLIDER = """\
name: slider
links: {block: {mass: 2, inertia: [1, 1, 1]}}
joints: {x: {type: prismatic, parent: world, child: block, axis: [1, 0, 0]}}
"""


def test_a_block_that_is_pushed(tmp_path):
    """x = x0 + v0 t + F t^2 / (2 m), which rk4 solves to rounding; the derivatives in closed form."""
    (tmp_path / "slider.yaml").write_text(SLIDER)
    scenario = ("robot: slider.yaml\nduration: 2\noutput_step: 0.1\nintegrator: {method: rk4, step: 0.05}\n"
                "joints: {x: {torque: 3}}\n")
    found = batch(tmp_path, """\
parameters:
  - {key: initial.q.x, name: x0, uniform: [0.1, 0.3]}
  - {key: initial.v.x, name: v0, uniform: [0.2, 0.8]}
  - {key: joints.x.torque, name: F, uniform: [2, 4]}
  - {key: robot.mass.block, name: m, uniform: [1, 3]}
samples: 4
outputs:
  end: final(q.x)
  square: final(v.x)**2 / 2 + 1
  mean: mean(q.x)
  pull: max(a.x) + 2*final(tau.x)
  half: at(1, x(block))
  most: final(max(q.x, 0.5))
""", scenario=scenario)
    x0, v0, F, m, t = 0.2, 0.5, 3.0, 2.0, 2.0
    result = sensitivities(found.evaluator, [x0, v0, F, m], np.array([0.1, 0.2, 0.5, 0.5]))
    end, v = [1, t, t**2 / (2 * m), -F * t**2 / (2 * m**2)], [0, 1, t / m, -F * t / m**2]
    times = np.linspace(0.0, t, 21)
    squares = np.sum(np.diff(times) * (times[1:]**2 + times[:-1]**2) / 2) / t          # the mean of t^2 by the trapezoidal rule
    want = [end, (v0 + F * t / m) * np.array(v), [1, t / 2, squares / (2 * m), -F * squares / (2 * m**2)],
            [0, 0, 1 / m + 2, -F / m**2], [1, 1, 1 / (2 * m), -F / (2 * m**2)], end]
    assert result.methods == (EXACT,) * 6
    assert np.allclose(result.derivatives, want, rtol=1e-11, atol=1e-11)       # rounding of differences of the constants
    assert np.allclose(result.base, [x0 + v0 * t + F * t**2 / (2 * m), (v0 + F * t / m)**2 / 2 + 1, 0.7 + F * squares / (2 * m),
                                     F / m + 2 * F, 0.7 + F / (2 * m), x0 + v0 * t + F * t**2 / (2 * m)], rtol=1e-13)


def test_a_sweep_without_outputs_has_no_sensitivities(tmp_path):
    (tmp_path / "slider.yaml").write_text(SLIDER)
    scenario = "robot: slider.yaml\nduration: 0.1\noutput_step: 0.1\nintegrator: {method: rk4, step: 0.05}\n"
    found = batch(tmp_path, "parameters:\n  - {key: initial.q.x, name: x0, uniform: [0.1, 0.3]}\nsamples: 4\n", scenario=scenario)
    result = sensitivities(found.evaluator, [0.2], np.array([0.1]))
    assert result.derivatives.shape == (0, 1) and result.methods == ()


def slopes_by_runs(run, centre, spreads, share=1e-3):
    """Differences of sixth order of run(values), (outputs, m)."""
    found = []
    for k, spread in enumerate(spreads):
        h = share * spread
        found.append(sum(w * (run([*centre[:k], centre[k] + n * h, *centre[k + 1:]])
                              - run([*centre[:k], centre[k] - n * h, *centre[k + 1:]]))
                         for n, w in ((1, 0.75), (2, -0.15), (3, 1 / 60))) / h)
    return np.array(found).T


def test_a_controlled_pendulum_against_runs_alone(tmp_path, worst):
    text = f"""{DRAWN}  - {{key: robot.com.lower.z, name: com, uniform: [-0.6, -0.4]}}
samples: 4
{OUTPUTS}  far: "sqrt(mean(q.elbow**2)) + max(vz(tip, 0, 0.1, 0.3))*final(x(tip))"
  peak: max(abs(tau.shoulder)) + min(a.elbow)
  turn: "atan2(final(q.elbow), 2) - max(1, final(t)) + tanh(0.1*final(wy(tip)))"
  heat: max(energy.kinetic) - integral(energy.potential)
  work: "min(energy.work) + final(energy.work)"
"""
    found = batch(tmp_path, text)
    centre, spreads = [0.3, 20.0, 1.1, -0.5], np.array([1.0, 5.0, 0.1, 0.05])
    result = sensitivities(found.evaluator, centre, spreads)
    assert result.methods == (EXACT,) * 9

    def run(values):
        from liedyn.batch.output_expressions import motion_of_run
        from liedyn.io.scenarios.scenario_file import scenario_of
        from liedyn.simulation.preparation import prepare_run
        from liedyn.simulation.run import SilentProgress, simulate_prepared
        q, kp, mass, com = values
        model = ld.build(with_parameters(ld.load(ROBOT), {"mass.lower": mass, "com.lower.z": com}))
        scenario = scenario_of(tmp_path / "scenario.yaml", {"initial.q.shoulder": q, "joints.shoulder.torque.pd.kp": kp})
        motion = motion_of_run(simulate_prepared(prepare_run(scenario, model), SilentProgress()))
        return np.array([float(np.ravel(one.value(motion))[0]) for one in found.evaluator.outputs])
    want = slopes_by_runs(run, centre, spreads)
    off = np.abs(result.derivatives - want) / (1e-3 * np.abs(want).max(axis=1, keepdims=True) + np.abs(want))
    # the differences have 1e-14 of rounding over steps of 5e-5 to 5e-3
    assert worst("sensitivities of outputs: differences of runs", off.max()) < 1e-7


def test_a_free_body(tmp_path):
    """Quaternions: a block that tumbles; the rates of q are those of its numbers."""
    scenario = f"""\
robot: {ROBOT.with_name("asymmetric_body.yaml")}
base: floating
duration: 0.4
output_step: 0.1
integrator: {{method: rk4, step: 1.0e-2}}
initial: {{v: {{base: [1, 3, 0.5, 0.2, -0.4, 0.1]}}}}
"""
    found = batch(tmp_path, """\
parameters:
  - {key: initial.v.base, list: [[1, 3, 0.5, 0.2, -0.4, 0.1]]}
  - {key: robot.inertia.body.xx, uniform: [0.2, 0.3], scale: relative}
  - {key: robot.gravity.x, uniform: [1, 2]}
samples: 3
combine: sample
outputs: {a: final(q.base.qx), b: 'max(x(body, 0.1, 0.2, 0.3))', c: 'min(vy(body, 0.1, 0.2, 0.3))', d: final(wz(body)),
          e: final(energy.potential)}
""".replace("body.xx", f"{_body()}.xx").replace("(body", f"({_body()}"), scenario=scenario)
    nominal = found.binding.nominal[1]
    centre, spreads = [(1.0, 3.0, 0.5, 0.2, -0.4, 0.1), 1.1 * nominal, 1.5], np.array([0.0, 0.1 * nominal, 0.5])
    result = sensitivities(found.evaluator, centre, spreads)
    assert result.methods == (EXACT,) * 5 and np.isnan(result.derivatives[:, 0]).all()

    def run(values):
        return found.evaluator.compute_runs(0, [[centre[0]], *(np.array([x]) for x in values)]).outputs[0]
    want = slopes_by_runs(run, centre[1:], spreads[1:], 1e-2)
    assert np.abs(want).max() > 0.1 and np.allclose(result.derivatives[:, 1:], want, rtol=1e-8, atol=1e-9)


def _body() -> str:
    return ld.load(ROBOT.with_name("asymmetric_body.yaml")).link_names[0]


def test_controllers_in_python_act_in_derivatives(tmp_path):
    """tau = -3 x, sampled twice: x1 = x0 (1 - 3 t^2 / (2 m)), and so on. Vectorized runs have these torques as constants."""
    (tmp_path / "slider.yaml").write_text(SLIDER)
    (tmp_path / "spring.py").write_text("def spring(t, q, v):\n    return -3 * q\nspring.vectorized = True\n")
    scenario = ("robot: slider.yaml\nduration: 1\noutput_step: 0.5\nintegrator: {method: rk4, step: 0.05}\n"
                "sampling: {period: 0.5}\ncontroller: spring.py:spring\n")
    found = batch(tmp_path, "parameters: [{key: initial.q.x, uniform: [0, 1]}]\nsamples: 3\noutputs: {x: final(q.x)}\n",
                  scenario=scenario)
    result, x1, v1 = sensitivities(found.evaluator, [0.5], np.array([0.3])), 1 - 3 * 0.25 / 4, -3 * 0.5 / 2
    assert found.evaluator.is_vectorized and result.methods == (DIFFERENCES,)
    assert result.derivatives[0, 0] == pytest.approx(x1 + v1 * 0.5 - 3 * x1 * 0.25 / 4, rel=1e-9)


def test_what_is_not_exact_is_by_differences_and_says_so(tmp_path):
    """A step that changes the number of steps; a motion with adaptive steps; and a place at which nothing can be run."""
    text = "parameters: [{key: initial.q.shoulder, uniform: [0, 1]}]\nsamples: 3\noutputs: {x: final(q.elbow)}\n"
    found = batch(tmp_path, f"overrides: {{integrator: {{method: dopri5, rtol: 1.0e-10, atol: 1.0e-12}}}}\n{text}")
    by_dopri5 = sensitivities(found.evaluator, [0.5], np.array([0.3]))
    exact = sensitivities(batch(tmp_path, text).evaluator, [0.5], np.array([0.3]))
    assert by_dopri5.methods == (DIFFERENCES,) and exact.methods == (EXACT,)
    assert by_dopri5.derivatives == pytest.approx(exact.derivatives, rel=1e-5)
    mass = batch(tmp_path, "parameters: [{key: robot.mass.lower, list: [1, 2]}]\noutputs: {x: final(q.elbow)}\n")
    with pytest.raises(NotDifferentiableError, match="the run at the medians of the varied parameters did not complete"):
        sensitivities(mass.evaluator, [-1.0], np.array([1.0]))
    near = sensitivities(mass.evaluator, [1e-3], np.array([10.0]))         # masses next to it are below zero
    assert near.base[0] == near.base[0] and near.methods == (DIFFERENCES,) and np.isnan(near.derivatives).all()


def test_points_of_links_that_a_parameter_moves_are_by_differences(tmp_path):
    """The exact derivative of the tip would leave out that the joint moves on its link."""
    found = batch(tmp_path, "parameters: [{key: robot.origin.elbow.vz, uniform: [-0.1, 0.1]}]\nsamples: 3\n"
                            "outputs: {tip: final(z(tip)), angle: final(q.elbow)}\n")
    centre, spread = [0.02], np.array([0.1])
    result = sensitivities(found.evaluator, centre, spread)
    assert result.methods == (DIFFERENCES, EXACT)

    def run(values):
        return found.evaluator.compute_runs(0, [np.array([x]) for x in values]).outputs[0]
    assert result.derivatives == pytest.approx(slopes_by_runs(run, centre, spread, 1e-2), rel=1e-6)


def test_a_screw_whose_axis_jumps_is_by_differences(tmp_path):
    """The axis of a slide that begins to turn is far away: derivatives of its numbers cancel to some 10 % of those of a run."""
    (tmp_path / "slider.yaml").write_text(SLIDER)
    scenario = ("robot: slider.yaml\nduration: 1\noutput_step: 0.5\nintegrator: {method: rk4, step: 0.05}\n"
                "joints: {x: {torque: 1}}\n")
    found = batch(tmp_path, "parameters: [{key: robot.screw.x.wz, uniform: [-0.1, 0.1]}]\nsamples: 3\noutputs: {x: final(q.x)}\n",
                  scenario=scenario)
    for centre, method in ((0.008, DIFFERENCES), (0.8, EXACT)):
        assert sensitivities(found.evaluator, [centre], np.array([0.1])).methods == (method,)


@pytest.mark.parametrize("head, text", [("job: inverse", "max(abs(tau.shoulder)) + final(z(tip))"),
                                        ("job: forward", "mean(a.elbow)"),
                                        ("job: hybrid\nprescribed: elbow", "max(a.shoulder) - min(tau.elbow)")])
def test_jobs_along_a_trajectory(tmp_path, head, text):
    found = sweeps_along.batch(tmp_path, f"{head}\n{sweeps_along.VARY}outputs: {{x: '{text}'}}\n")
    centre, spreads = [1.1, 0.2], np.array([0.1, 0.1])
    result = sensitivities(found.evaluator, centre, spreads)
    assert result.methods == (EXACT,)

    def run(values):
        from liedyn.batch.output_expressions import BatchMotion
        bound = found.binding.bind(values)
        columns = [(name, unit, x[None]) for name, unit, x in run_trajectory_job(found.sweep.job, bound).columns]
        state = found.evaluator.vectorized_along(found.sweep.job.trajectory).setting.motion
        return found.evaluator.outputs[0].value(BatchMotion(bound.model, bound.trajectory.t, columns, state.q[None],
                                                            state.v[None]))
    assert result.derivatives == pytest.approx(slopes_by_runs(run, centre, spreads, 0.05), rel=1e-9)


@pytest.mark.parametrize("job, key, centre, text", [
    ("job: derivatives\nfunction: inverse", "robot.mass.lower", 1.1, "mean(d(tau.elbow, a.elbow))"),
    ("job: inverse\nwrenches: world", "robot.mass.lower", 1.1, "max(tau.elbow)"),
    ("job: inverse\nsmooth: 0.3", "robot.mass.lower", 1.1, "max(tau.elbow)"),
    ("job: inverse", "robot.links.lower.mass", 1.1, "max(tau.elbow)"),
])
def test_other_jobs_along_a_trajectory_are_by_differences(tmp_path, job, key, centre, text):
    """Exact derivatives are those of dynamics without smoothing, with respect to parameters of the model."""
    sweep = f"parameters: [{{key: {key}, uniform: [0.5, 2]}}]\nsamples: 3\noutputs: {{x: '{text}'}}\n"
    found, spread = sweeps_along.batch(tmp_path, f"{job}\n{sweep}"), np.array([0.1])
    result = sensitivities(found.evaluator, [centre], spread)
    assert result.methods == (DIFFERENCES,)

    def run(values):
        return found.evaluator.compute_runs(0, [np.array([x]) for x in values]).outputs[0]
    assert result.derivatives == pytest.approx(slopes_by_runs(run, [centre], spread, 0.05), rel=1e-8)


def test_the_picture(tmp_path, monkeypatch):
    batch(tmp_path, f"{DRAWN}samples: 5\n{OUTPUTS}").run(tmp_path / "out")
    written_there, warnings = plot_batch(tmp_path / "out", tmp_path / "plots", ["png"])
    assert "tornado.png" in {path.name for path in written_there.paths} and warnings == () and not written_there.failures
    monkeypatch.setattr("liedyn.report.plots.batch_plots._LONGEST", 0.0)
    _, warnings = plot_batch(tmp_path / "out", tmp_path / "slow", ["png"])
    assert "no tornado plot: the runs around the medians would take" in str(warnings[0])
    monkeypatch.undo()
    written(tmp_path, f"{DRAWN}samples: 5\n{OUTPUTS}", SCENARIO.replace("duration: 0.5", "duration: 0.6"))
    there, warnings = plot_batch(tmp_path / "out", tmp_path / "others", ["png"])
    assert "no tornado plot: the sweep, its scenario or a robot file has changed since the batch ran; run" in str(warnings[0])
    assert "tornado.png" not in {path.name for path in there.paths}
    (tmp_path / "sweep.yaml").unlink()
    assert "no tornado plot: " in str(plot_batch(tmp_path / "out", tmp_path / "gone", ["png"])[1][0])
