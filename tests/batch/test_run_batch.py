"""A batch: each run is that of `run_scenario`, whatever is next to it; nothing is lost, nothing is computed twice."""
import csv
import json
import re

import numpy as np
import pytest

import liedyn as ld
from command_line import ok, run
from liedyn.batch.evaluator import hashes
from liedyn.batch.output_expressions import motion_of_run
from liedyn.dynamics.model_parameters import with_parameters
from liedyn.io.trajectory_csv import read_trajectory
from liedyn.simulation.preparation import prepare_run
from liedyn.simulation.run import SilentProgress, simulate_prepared
from sweeps import DRAWN, OUTPUTS, ROBOT, SCENARIO, batch, table, without_seconds, written

SAMPLES = f"{DRAWN}samples: 150\nseed: 4\n{OUTPUTS}"
ADAPTIVE = "overrides: {integrator: {method: dopri5, rtol: 1.0e-9, atol: 1.0e-10}}\n"


def outputs_alone(found, number):
    """By the way of `run_scenario`."""
    result = simulate_prepared(found.binding.run(number), SilentProgress())
    return [float(np.ravel(one.value(motion_of_run(result)))[0]) for one in found.evaluator.outputs], result


def test_a_run_side_by_side_is_the_run_alone(tmp_path, worst):
    found = batch(tmp_path, SAMPLES)
    assert found.evaluator.vectorized_sweep.is_affine
    rows = found.evaluator.compute_chunk(0, 150)
    assert rows.status == ["complete"] * 150
    for k in (0, 63, 64, 149):
        alone, result = outputs_alone(found, k)
        # lines round sums in another order than the loop of one run
        assert worst("batch: outputs", np.abs(rows.outputs[k] - alone).max() / max(1.0, np.abs(alone).max())) < 1e-12
        # itself 1e-9 of the energy, of which 1e-12 is rounding
        assert rows.energy_balance[k] == pytest.approx(result.check["energy_balance_relative"], rel=1e-3)


def test_a_run_is_that_of_run_scenario_with_these_values(tmp_path):
    """The binding against the public function: overrides, and a robot that is built anew."""
    found = batch(tmp_path, SAMPLES)
    release, kp, mass = found.binding.values_of(7)
    overrides = {"initial.q.shoulder": release, "joints.shoulder.torque.pd.kp": kp}
    model = ld.load(ROBOT)
    changed = ld.build(with_parameters(model, {"mass.lower": mass}))
    assert changed.description.links[1].mass == pytest.approx(mass, rel=1e-15)
    from liedyn.io.scenarios.scenario_file import scenario_of
    result = simulate_prepared(prepare_run(scenario_of(tmp_path / "scenario.yaml", overrides), changed), SilentProgress())
    mine = outputs_alone(found, 7)[1]
    assert np.array_equal(mine.q, result.q) and np.array_equal(mine.tau, result.tau)
    plain = batch(tmp_path, "parameters: [{key: initial.q.shoulder, list: [0.3]}]\n", name="other.yaml")
    public = ld.run_scenario(tmp_path / "scenario.yaml", {"initial.q.shoulder": 0.3})
    assert np.array_equal(outputs_alone(plain, 0)[1].q, public.q)


def test_null_removes_a_key_as_in_an_override(tmp_path):
    """Without the gains of the shoulder, it swings freely."""
    found = batch(tmp_path, "overrides: {joints.shoulder: null}\nparameters: [{key: initial.q.shoulder, list: [0.3]}]\n")
    free = ld.run_scenario(tmp_path / "scenario.yaml", ["initial.q.shoulder=0.3", "joints.shoulder=null"])
    held = ld.run_scenario(tmp_path / "scenario.yaml", ["initial.q.shoulder=0.3"])
    assert np.array_equal(outputs_alone(found, 0)[1].q, free.q) and not np.array_equal(free.q, held.q)


def test_by_number_alone_bit_for_bit(tmp_path):
    tables = []
    for size, threads in ((None, 2), (64, 1), (37, 2)):
        found = batch(tmp_path, SAMPLES, size)
        found.evaluator.threads = threads
        assert found.run(tmp_path / f"out{size}").table.counts == {"complete": 150}
        tables.append(without_seconds(tmp_path / f"out{size}"))
    assert tables[0] == tables[1] == tables[2]
    assert tables[0]["number"] == [*range(150)]


@pytest.mark.parametrize("text, affine", [
    ("parameters: [{key: initial.q.shoulder, range: [0, 1, 5]}, {key: joints.shoulder.torque.pd.kd, list: [0, 1, 2]}]\n", True),
    # the spatial inertia has the product of the two
    ("parameters: [{key: robot.mass.lower, list: [1, 2, 3]}, {key: robot.com.lower.z, list: [-0.4, -0.5, -0.6]}]\n", False),
    ("parameters: [{key: robot.links.lower.com, list: [[0, 0, -0.4], [0, 0.1, -0.5]]}]\n", False)])
def test_what_is_not_affine_is_bound_run_by_run(tmp_path, text, affine):
    found = batch(tmp_path, text + OUTPUTS)
    assert found.evaluator.vectorized_sweep.is_affine is affine
    rows = found.evaluator.compute_chunk(0, found.count)
    assert rows.status == ["complete"] * found.count
    for k in range(found.count):
        assert rows.outputs[k] == pytest.approx(outputs_alone(found, k)[0], rel=1e-12, abs=1e-13)


@pytest.mark.parametrize("text", [
    "parameters: [{key: integrator.step, list: [0.002, 0.001]}]\n", "parameters: [{key: duration, list: [0.3, 0.4]}]\n",
    "parameters: [{key: joints.shoulder.torque.pd.target.sine.amplitude, list: [0.5, 0.6]}]\n"])
def test_what_changes_the_steps_or_the_code_goes_alone(tmp_path, text):
    found = batch(tmp_path, text + OUTPUTS.replace("0.27", "0.22"))
    rows = found.evaluator.compute_chunk(0, 2)
    assert rows.status == ["complete"] * 2
    for k in range(2):
        assert rows.outputs[k] == pytest.approx(outputs_alone(found, k)[0], rel=1e-12, abs=1e-13)


def test_runs_that_fail_are_rows_and_the_others_go_on(tmp_path):
    text = ("parameters: [{key: joints.shoulder.torque.pd.kd, list: [1, 1.0e+5, 2]}, {key: robot.mass.lower, list: [1, -1]}]\n"
            + OUTPUTS)
    found = batch(tmp_path, text)
    assert found.run(tmp_path / "out").table.counts == {"complete": 2, "diverged": 1, "failed": 3}
    rows = table(tmp_path / "out")
    assert rows["status"] == ["complete", "failed", "diverged", "failed", "complete", "failed"]
    assert rows["last"][2] is None and rows["last"][1] is None and rows["reason"][0] == ""
    with pytest.raises(ld.ComputationError) as caught:
        simulate_prepared(found.binding.run(2), SilentProgress(), trials=False)
    assert rows["reason"][2] == str(caught.value) and "mass" in rows["reason"][1]
    assert rows["last"][4] == pytest.approx(outputs_alone(found, 4)[0][0], rel=1e-12)


@pytest.mark.parametrize(("lists", "status"),
                         [
    ("parameters: [{key: joints.shoulder.torque.pd.kd, list: [1.0e+5, 2.0e+5]}, {key: robot.mass.lower, list: [1, 2]}]",
     "diverged"),
                          (
    "parameters: [{key: robot.friction.shoulder, list: [0, 0.2, 0.1]}, {key: external_forces.0.wrench.3, list: [1, 2, 3]}]\n"
                           "combine: zip", "complete")])
def test_outputs_of_links_where_no_run_of_a_chunk_is_vectorized(tmp_path, lists, status):
    forces = "external_forces: [{link: lower, wrench: [0, 0.2, 0, 1, 0, sin(5*t)], from: 0.1, until: 0.4}]\n"
    found = batch(tmp_path, f"{lists}\noutputs: {{high: max(z(tip)), fast: max(abs(vz(tip)))}}\n", scenario=SCENARIO + forces)
    rows = found.evaluator.compute_chunk(0, 3)
    assert rows.status == [status] * len(rows.status)
    if status == "complete":
        for k in range(3):
            assert rows.outputs[k] == pytest.approx(outputs_alone(found, k)[0], rel=1e-10)


def test_trajectories_are_those_of_the_runs(tmp_path):
    from pyarrow import parquet
    for text, name in (("", "rk4"), (ADAPTIVE, "dopri5")):
        text += DRAWN.replace("- {key: robot", "# {") + "samples: 5\ntrajectories: {every: 4, columns: ['q.*', tau.elbow]}\n"
        found = batch(tmp_path, text, 3)
        found.run(tmp_path / name)
        kept = parquet.read_table(tmp_path / name / "trajectories").to_pandas()
        assert list(kept) == ["number", "t[s]", "q.shoulder[rad]", "q.elbow[rad]", "tau.elbow[N m]"]
        for k in range(5):
            rows, result = kept[kept.number == k], outputs_alone(found, k)[1]
            which = [0, 4, 8, 10]                              # and the last
            assert np.array_equal(rows["t[s]"], result.t[which])
            assert np.allclose(rows[["q.shoulder[rad]", "q.elbow[rad]"]], result.q[which], rtol=1e-12, atol=1e-13)
            assert np.allclose(rows["tau.elbow[N m]"], result.tau[which, 1], rtol=1e-12, atol=1e-13)


def test_columns_that_some_runs_have_are_in_all_files_of_trajectories(tmp_path):
    from pyarrow import parquet

    from liedyn.report.plots.batch_plots import _envelopes
    text = f"{ADAPTIVE}parameters: [{{key: external_forces.0.link, list: [lower, tip]}}]\ntrajectories: {{columns: ['*.fz']}}\n"
    scenario = f"{SCENARIO}external_forces: [{{link: lower, wrench: [0, 0, 0, 0, 0, 2]}}]\n"
    found = batch(tmp_path, text, 1, scenario=scenario)                            # a chunk for each run
    found.run(tmp_path / "out")
    kept = parquet.read_table(tmp_path / "out" / "trajectories").to_pydict()
    assert list(kept) == ["number", "t[s]", "fext.lower.fz[N]", "fext.tip.fz[N]"]
    lower, tip = ({name: x.tolist() for name, _, x in outputs_alone(found, k)[1].columns} for k in range(2))
    assert kept["fext.lower.fz[N]"] == lower["fext.lower.fz"] + [None] * 11
    assert kept["fext.tip.fz[N]"] == [None] * 11 + tip["fext.tip.fz"]
    last = [one.quantiles[2][-1] for one in _envelopes(tmp_path / "out")]
    assert last == pytest.approx([lower["fext.lower.fz"][-1], tip["fext.tip.fz"][-1]], rel=1e-12)          # of one run: itself


def test_a_run_without_a_column_that_an_output_reads_fails_and_the_others_go_on(tmp_path):
    """The whole batch ended with its error."""
    scenario = f"{SCENARIO}external_forces: [{{link: lower, wrench: [0, 0, 0, 0, 0, 2]}}]\n"
    text = f"{ADAPTIVE}parameters: [{{key: external_forces.0.link, list: [lower, tip]}}]\noutputs: {{x: max(fext.lower.fz)}}\n"
    rows = batch(tmp_path, text, scenario=scenario).evaluator.compute_chunk(0, 2)
    assert rows.status == ["complete", "failed"] and rows.outputs[0, 0] == pytest.approx(2.0, abs=0.1)
    assert rows.reason[1] == "a run has no column fext.lower.fz (did you mean fext.tip.fz?)" and np.isnan(rows.outputs[1, 0])


EVENTS = """\
events:
  straight: {when: "q(elbow)", value: 0, direction: rising, once: true, do: {impact: {joint: elbow, restitution: 0.5}}}
  mid-way: {at: [0.2, 0.4], do: record}
"""


def test_outputs_at_events(tmp_path):
    """Against the occurrences of `run_scenario`; the elbow of the second run does not straighten."""
    text = f"""{ADAPTIVE}parameters: [{{key: initial.q.elbow, list: [-0.05, 1.5]}}]
outputs:
  time: at(straight, t)
  angle: at(straight, q.elbow)
  before: before(straight, v.elbow)
  after: "at(straight, v.elbow)"
  tip: before(straight, vz(tip)) - at(straight, vz(tip))
  times: count(straight)
  marks: "count(event(mid-way))"
  mark: "before(event(mid-way), t) + 0*at(0.2, t)"
"""
    found = batch(tmp_path, text, scenario=f"{SCENARIO}{EVENTS}")
    assert found.evaluator.vectorized_sweep is None
    found.run(tmp_path / "out")
    rows, result = table(tmp_path / "out"), outputs_alone(found, 0)[1]
    one = next(event for event in result.events if event.name == "straight")
    assert rows["time"][0] == one.t and 0.0 < one.t < 0.5 and rows["times"] == [1.0, 0.0]
    assert abs(rows["angle"][0]) < 1e-12                       # located to rounding
    assert rows["after"][0] == pytest.approx(-0.5 * rows["before"][0], rel=1e-12) and rows["before"][0] > 0.1
    assert rows["after"][0] - rows["before"][0] == pytest.approx(one.dv[1], rel=1e-12)
    tip = ld.jacobian(result.model, result.q[np.searchsorted(result.t, one.t)], "tip", frame="local_world_aligned")[5]
    assert rows["tip"][0] == pytest.approx(-float(tip @ one.dv), rel=1e-10)
    assert rows["marks"] == [2.0, 2.0] and rows["mark"] == [0.2, 0.2]
    assert all(rows[name][1] is None for name in ("time", "angle", "before", "after", "tip"))
    assert rows["status"] == ["complete"] * 2


# --- the folder ------------------------------------------------------------------------------------------------------

def test_resume_computes_what_is_missing_and_a_changed_sweep_what_differs(tmp_path):
    found = batch(tmp_path, SAMPLES, 32)
    assert found.run(tmp_path / "out").computed == 150
    whole = without_seconds(tmp_path / "out")
    with pytest.raises(ld.UsageError, match="already exists; --resume computes the missing runs, --force starts over"):
        found.run(tmp_path / "out")
    chunks = sorted((tmp_path / "out" / "chunks").iterdir())
    chunks[1].unlink()
    (tmp_path / "out" / "runs.parquet").unlink()
    done = found.run(tmp_path / "out", resume=True)
    assert (done.computed, done.reused) == (32, 118) and without_seconds(tmp_path / "out") == whole
    more = batch(tmp_path, SAMPLES.replace("150", "170")).run(tmp_path / "out", resume=True)          # the size of chunks stays
    assert (more.computed, more.reused, more.table.counts) == (42, 128, {"complete": 170})  # the last one was not full
    assert {name: x[:150] for name, x in without_seconds(tmp_path / "out").items()} == whole
    other = batch(tmp_path, SAMPLES.replace("final(q.elbow)", "initial(q.elbow)")).run(tmp_path / "out", resume=True)
    assert (other.computed, other.reused) == (150, 0)
    assert len([*(tmp_path / "out" / "chunks").iterdir()]) == 5                       # of other sweeps none is left
    anew = batch(tmp_path, SAMPLES).run(tmp_path / "out", force=True)
    assert anew.computed == 150 and without_seconds(tmp_path / "out") == whole


def test_files_of_the_table_are_of_the_present_sweep(tmp_path):
    """A resumed batch of an edited sweep, of which chunks are missing, had the table of the sweep before."""
    out, rows = tmp_path / "out", lambda: len((tmp_path / "out/runs.csv").read_text().splitlines()) - 1
    batch(tmp_path, SAMPLES, 32).run(out, csv=True)
    assert rows() == 150
    batch(tmp_path, SAMPLES.replace("150", "40"), 32).run(out, resume=True)
    assert rows() == 40 == len(table(out)["number"])
    assert batch(tmp_path, SAMPLES.replace("150", "170"), 32).run(out, shard=(1, 2)).missing
    assert not (out / "runs.parquet").exists() and not (out / "runs.csv").exists()


def test_runs_that_an_event_ends_keep_their_trajectories(tmp_path):
    """As single runs do: a phase prescribes a position at which the joint is not."""
    from pyarrow import parquet
    scenario = (f"{SCENARIO}phases: {{a: {{}}, b: {{joints: {{elbow: {{prescribe: {{position: 0.5}}}}}}}}}}\n"
                "events: {e: {at: 0.2, do: {phase: b}}}\n")
    text = ("parameters: [{key: initial.q.elbow, list: [0.1, 0.2]}]\noutputs: {x: final(q.elbow)}\n"
            "trajectories: {columns: [q.elbow]}\n")
    batch(tmp_path, text, scenario=scenario).run(tmp_path / "out")
    found = table(tmp_path / "out")
    assert found["status"] == ["diverged"] * 2 and all("phase b prescribes elbow at 0.5" in reason for reason in found["reason"])
    assert {*parquet.read_table(tmp_path / "out" / "trajectories")["number"].to_pylist()} == {0, 1}


def test_another_robot_is_another_batch(tmp_path):
    robot = tmp_path / "robot.yaml"
    robot.write_text(ROBOT.read_text())
    scenario, text = SCENARIO.replace(str(ROBOT), "robot.yaml"), "parameters: [{key: initial.q.elbow, list: [0, 1]}]\n"
    batch(tmp_path, text, scenario=scenario).run(tmp_path / "out")
    assert batch(tmp_path, text, scenario=scenario).run(tmp_path / "out", resume=True).reused == 2
    robot.write_text(ROBOT.read_text().replace("mass: 1.0, com", "mass: 1.1, com"))
    assert batch(tmp_path, text, scenario=scenario).run(tmp_path / "out", resume=True).reused == 0


def test_shards_make_one_table(tmp_path):
    found = batch(tmp_path, SAMPLES, 32)
    found.run(tmp_path / "whole")
    for part in (2, 1, 3):
        done = batch(tmp_path, SAMPLES, 32).run(tmp_path / "parts", shard=(part, 3))
        assert bool(done.missing) == (not (tmp_path / "parts" / "runs.parquet").exists()) == (part != 3)
    assert without_seconds(tmp_path / "parts") == without_seconds(tmp_path / "whole")


def test_the_command(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = written(tmp_path, SAMPLES.replace("150", "12"))
    report = json.loads(ok("batch", path, "--dry-run", "--json").stdout)
    assert report["runs"] == 12 and report["mode"] == "vectorized" and (report["rows"], report["steps"]) == (11, 250)
    assert not {"seconds", "seconds_each"} & report.keys()             # a few runs do not tell of the others
    assert not (tmp_path / "runs").exists()
    text = ok("batch", path, "--dry-run").stdout
    assert "12 runs of double_pendulum" in text and "\n  first run  250 steps, 11 rows\n" in text and "time" not in text
    assert re.search(r"\n  disk       about [\d.]+ kB in ", text)
    adaptive = ok("batch", path, "--dry-run", "-S", "integrator={method: dopri5}").stdout
    assert "\n  first run  steps chosen by error control, 11 rows\n" in adaptive
    found = ok("batch", path, "--csv")
    assert "12 complete" in found.stderr and "runs/sweep/runs.parquet" in found.stderr
    units = json.loads((tmp_path / "runs/sweep/batch.json").read_text(encoding="utf-8"))["units"]
    assert units == {"release": "rad", "mass": "kg", "last": "rad", "highest": "m", "effort": "N^2 m^2 s", "half": "rad/s"}
    rows = table(tmp_path / "runs" / "sweep")
    with open(tmp_path / "runs/sweep/runs.csv", encoding="utf-8") as file:
        lines = [*csv.DictReader(file)]
    assert [one["status"] for one in lines] == rows["status"] and [float(one["last"]) for one in lines] == rows["last"]
    assert run("batch", path).exit_code == 2
    assert json.loads(ok("batch", path, "--resume", "--json").stdout)["reused"] == 12
    again = ok("batch", path, "--rerun", 5)
    assert "run 5: initial.q.shoulder = " in again.stderr and "the robot of this run differs from the robot file" in again.stderr
    ok("inverse", "runs/sweep_5/trajectory.csv", "-o", "inverse.csv")           # with the robot of the run
    same = read_trajectory(tmp_path / "inverse.csv").columns["tau.elbow"]
    assert np.allclose(same, read_trajectory(tmp_path / "runs/sweep_5/trajectory.csv").columns["tau.elbow"], atol=1e-9)
    motion = read_trajectory(tmp_path / "runs/sweep_5/trajectory.csv")
    assert motion.columns["q.elbow"][-1] == pytest.approx(rows["last"][5], rel=1e-12)
    pictures = ok("plot", "runs/sweep", "-f", "png").stderr
    assert all(f"plots/{name}.png" in pictures for name in ("scatter", "histograms"))


LAW = "control: {law: state_feedback, gain: {tau.shoulder: {q.shoulder: 30, v.shoulder: 6}}, setpoint: {q: {shoulder: 0.2}}}\n"
TORQUE = "control: {law: computed_torque, bandwidth: 8, motion: {shoulder: '0.3*sin(2*t)'}}\n"


@pytest.mark.parametrize("law, vary, affine", [
    (LAW, """{key: 'control.gain."tau.shoulder"."q.shoulder"', list: [20, 30]}, {key: robot.mass.lower, list: [1, 1.1]}""", True),
    (TORQUE, "{key: robot.mass.lower, list: [1, 1.1, 1.2]}", None), (TORQUE, "{key: control.bandwidth, list: [6, 8]}", None)])
def test_control_laws(tmp_path, law, vary, affine):
    scenario = SCENARIO[:SCENARIO.index("joints:")].replace("shoulder: 0.4, ", "") + law
    found = batch(tmp_path, f"parameters: [{vary}]\n{OUTPUTS}", scenario=scenario)
    rows = found.evaluator.compute_chunk(0, found.count)
    assert rows.status == ["complete"] * found.count
    assert affine is None or found.evaluator.vectorized_sweep.is_affine is affine
    for k in range(found.count):
        assert rows.outputs[k] == pytest.approx(outputs_alone(found, k)[0], rel=1e-11, abs=1e-12)


def test_factors_columns_of_a_csv_and_values_for_all_runs(tmp_path):
    (tmp_path / "values.csv").write_text("# measured\nname, kd\n1, 2\n3, 4.5\n", encoding="utf-8")
    (tmp_path / "angles.csv").write_text("release (deg),b_deg\n90,0\n180,0\n", encoding="utf-8")
    text = """\
overrides: {joints.elbow.torque: 0, integrator: {method: rk4, step: 0.001}}
parameters:
  - {key: initial.q.shoulder, list: [0.5, 2], scale: relative}
  - {key: joints.shoulder.torque.pd.kd, csv: {file: values.csv, column: kd}}
  - {key: robot.mass.lower, range: [1, 1.5, 2], scale: relative}
  - {key: initial.q.elbow, csv: {file: angles.csv, column: release (deg)}}
combine: zip
"""
    path = written(tmp_path, text)
    from liedyn.batch.run_batch import PreparedSweep
    from liedyn.io.sweep_file import read_sweep
    found = PreparedSweep(read_sweep(path, ["duration=0.3"]))
    assert [list(x) for x in found.binding.values(0, 2)] == [[0.2, 0.8], [2.0, 4.5], [1.0, 1.5], [np.pi / 2, np.pi]]
    run = found.binding.run(1)
    assert (run.scenario.duration, run.scenario.integrator.step, run.problem.q[0]) == (0.3, 0.001, 0.8)
    assert run.model.description.links[1].mass == 1.5


@pytest.mark.parametrize(("key", "shares"), [("mass.lower, list: [1.0, 1.3]", True), ("damping.elbow, list: [0, 0.2]", False)])
def test_right_hand_sides_of_a_robot_of_its_own_read_its_constants(key, shares, tmp_path):
    """They would be written into generated code, for one run. Robots with other flags (damping or none) go by loops."""
    from liedyn.codegen import specialize
    text = f"{ADAPTIVE}parameters: [{{key: robot.{key}}}]\noutputs: {{last: final(q.elbow)}}\n"
    found, seen = batch(tmp_path, text), []
    assert found.evaluator.vectorized_sweep is None
    wanted = specialize.is_enabled
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("liedyn.codegen.rhs.is_enabled", lambda varying: seen.append((varying, wanted(varying))) or seen[-1][1])
        rows = found.evaluator.compute_chunk(0, 2)
    assert seen and wanted() and all(enabled for _, enabled in seen) is shares
    assert (found.binding.varying_constants in {varying for varying, _ in seen}) is shares
    for k in range(2):
        # the tolerances of dopri5 are 1e-9; both ways take the same steps except for rounding
        assert rows.outputs[k] == pytest.approx(outputs_alone(found, k)[0], abs=1e-9)


def test_samples_of_sobol_are_a_power_of_two(tmp_path):
    text = f"{DRAWN}sampling: sobol\n"
    assert batch(tmp_path, f"{text}samples: 64\n").warnings == ()
    assert "100 is not a power of two" in str(batch(tmp_path, f"{text}samples: 100\n").warnings[0])


def test_values_beyond_those_that_were_looked_at_are_bound_in_full(tmp_path, monkeypatch):
    """A mass below zero among many: the affine map alone would compute on."""
    monkeypatch.setattr("liedyn.batch.sweep_binding.N_SAMPLES", 8)
    text = "parameters: [{key: robot.mass.lower, normal: {mean: 1, std: 0.6}}]\nsamples: 200\nseed: 2\n"
    found = batch(tmp_path, text + OUTPUTS)
    assert found.evaluator.vectorized_sweep.is_affine
    rows = found.evaluator.compute_chunk(0, 200)
    valid = []
    for k in range(200):
        try:
            valid.append(bool(found.binding.run(k)))
        except ld.ModelError:
            valid.append(False)
    assert 2 < valid.count(False) < 30
    assert rows.status == ["complete" if good else "failed" for good in valid]
    k = int(np.argmax(rows.values[0]))
    assert rows.outputs[k] == pytest.approx(outputs_alone(found, k)[0], rel=1e-12)


def test_the_hash_of_a_run_does_not_depend_on_its_chunk():
    """Of its number, its numbers and its other values; all tell."""
    values = [np.array([1.0, 1.0, 2.0]), ["a", "b", "b"], [True, True, False]]
    found = hashes("sweep", 4, values)
    assert len(set(found)) == 3
    for k in range(3):
        assert hashes("sweep", 4 + k, [x[k:k + 1] for x in values]) == found[k:k + 1]
    for changed in ([np.array([1.0, 3.0, 2.0]), *values[1:]], [values[0], ["a", "c", "b"], values[2]]):
        assert [x == y for x, y in zip(hashes("sweep", 4, changed), found, strict=True)] == [True, False, True]
    assert not set(hashes("sweep", 5, values)) & set(found) and not set(hashes("other", 4, values)) & set(found)


def test_the_estimate_of_the_folder_is_about_what_it_holds(tmp_path):
    """With many outputs, and with trajectories."""
    outputs = "".join(f"  x{k}: final(q.elbow) + {k}\n" for k in range(40))
    for name, more in (("outputs", ""), ("trajectories", "trajectories: {columns: [\"*\"]}\n")):
        (tmp_path / name).mkdir()
        found = batch(tmp_path / name, f"{DRAWN}samples: 600\noutputs:\n{outputs}{more}")
        found.run(tmp_path / name / "out")
        held = sum(file.stat().st_size for file in (tmp_path / name / "out").rglob("*") if file.is_file())
        assert 0.4 < found.bytes_on_disk() / held < 2.5, name
