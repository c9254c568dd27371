"""Batches of jobs along a trajectory: each run is what the command gives for this robot, whatever is next to it."""
import numpy as np
import pytest

import liedyn as ld
from command_line import ok, run
from liedyn.batch.run_batch import PreparedSweep
from liedyn.batch.trajectory_jobs import run_trajectory_job
from liedyn.dynamics.model_parameters import with_parameters
from liedyn.errors import LiedynError
from liedyn.io.sweep_file import read_sweep
from liedyn.io.trajectory_csv import read_trajectory
from sweeps import ROBOT, table, without_seconds
from sweeps_along import VARY, batch, recorded


def robot_of_run(found: PreparedSweep, number: int) -> ld.Model:
    """Built from its description, not by the binding of the batch."""
    mass, friction = found.binding.values_of(number)
    return ld.build(with_parameters(ld.load(ROBOT), {"mass.lower": mass, "friction.elbow": friction}))


def test_joint_forces_of_many_robots(tmp_path):
    text = f"""job: inverse
{VARY}outputs:
  most: max(abs(tau.shoulder))
  work: integral(tau.elbow*v.elbow)
  low: min(z(tip))
  push: final(fext.lower.fz)
"""
    found = batch(tmp_path, text)
    assert found.evaluator.is_vectorized and found.evaluator.mode == "vectorized"
    found.run(tmp_path / "out")
    rows, motion = table(tmp_path / "out"), read_trajectory(tmp_path / "motion.csv")
    q, v, a = (np.column_stack([motion.columns[f"{kind}.{name}"] for name in ("shoulder", "elbow")]) for kind in "qva")
    for k in (0, 7, 20):
        model = robot_of_run(found, k)
        force = {"lower": np.outer(motion.t, [0, 0, 0, 0, 0, 1.0])}
        tau = ld.inverse_dynamics(model, q, v, a, f_ext=force)
        power = tau[:, 1] * v[:, 1]
        # robots as inputs of one line round in another order than a robot's own line
        assert rows["most"][k] == pytest.approx(np.abs(tau[:, 0]).max(), rel=1e-12)
        assert rows["work"][k] == pytest.approx(float(np.sum(np.diff(motion.t) * (power[1:] + power[:-1]) / 2)), rel=1e-11)
        assert rows["low"][k] == pytest.approx(min(ld.link_pose(model, x, "tip")[2, 3] for x in q), rel=1e-12)
        assert rows["push"][k] == 1.0
    assert len(set(rows["most"])) == 21 and rows["status"] == ["complete"] * 21 and rows["energy_balance"] == [None] * 21


JOBS = {"forward": ("job: forward", "mean(a.elbow)"),
        "hybrid": ("job: hybrid\nprescribed: elbow", "max(a.shoulder) + min(tau.elbow)"),
        "derivatives": ("job: derivatives\nfunction: forward", "final(d(a.elbow, q.shoulder)) + mean(d(a.shoulder, tau.elbow))"),
        "of hybrid": ("job: derivatives\nfunction: hybrid\nprescribed: [elbow]\nwrt: ['q.*']", "max(d(tau.elbow, q.elbow))")}


def mean(t, x) -> float:
    return float(np.sum(np.diff(t) * (x[1:] + x[:-1]) / 2)) / t[-1]


@pytest.mark.parametrize("name", JOBS)
def test_a_run_side_by_side_is_that_of_the_command(tmp_path, name):
    head, text = JOBS[name]
    found = batch(tmp_path, f"{head}\n{VARY}outputs: {{x: '{text}'}}\n")
    assert found.evaluator.mode == "vectorized"
    rows = found.evaluator.compute_chunk(0, 21)
    for k in (3, 11):
        result = run_trajectory_job(found.sweep.job, found.binding.run(k))
        x = {name: x for name, _, x in result.columns}
        if name == "forward":
            want = mean(result.t, x["a.elbow"])
        elif name == "hybrid":
            want = x["a.shoulder"].max() + x["tau.elbow"].min()
        elif name == "derivatives":
            want = x["da.elbow/dq.shoulder"][-1] + mean(result.t, x["da.shoulder/dtau.elbow"])
        else:
            want = x["dtau.elbow/dq.elbow"].max()
        assert rows.outputs[k, 0] == pytest.approx(want, rel=1e-11)


def test_by_number_alone_bit_for_bit_and_shards_and_resume(tmp_path):
    text = f"job: inverse\n{VARY}outputs: {{x: max(tau.elbow)}}\ntrajectories: {{columns: ['tau.*']}}\n"
    batch(tmp_path, text).run(tmp_path / "whole")
    whole = without_seconds(tmp_path / "whole")
    for part in (2, 1):
        batch(tmp_path, text, 4).run(tmp_path / "parts", shard=(part, 2))
    assert without_seconds(tmp_path / "parts") == whole
    (tmp_path / "parts" / "runs.parquet").unlink()
    sorted((tmp_path / "parts" / "chunks").iterdir())[2].unlink()
    assert batch(tmp_path, text, 4).run(tmp_path / "parts", resume=True).computed == 4
    assert without_seconds(tmp_path / "parts") == whole
    from pyarrow import parquet
    rows = [parquet.read_table(tmp_path / name / "trajectories") for name in ("whole", "parts")]
    assert rows[0].equals(rows[1]) and rows[0].column_names == ["number", "t[s]", "tau.shoulder[N m]", "tau.elbow[N m]"]
    recorded(tmp_path / "motion.csv", shift=0.1)
    assert PreparedSweep(read_sweep(tmp_path / "sweep.yaml"), 4).run(tmp_path / "parts", resume=True).reused == 0


def test_robots_that_cannot_be_are_rows_and_the_others_go_on(tmp_path):
    text = "job: inverse\nparameters: [{key: robot.mass.lower, list: [1, -1, 2]}]\noutputs: {x: max(tau.elbow)}\n"
    found = batch(tmp_path, text)
    assert found.run(tmp_path / "out").table.counts == {"complete": 2, "failed": 1}
    rows = table(tmp_path / "out")
    assert rows["status"] == ["complete", "failed", "complete"] and "mass" in rows["reason"][1] and rows["x"][1] is None
    with pytest.raises(LiedynError) as caught:
        found.binding.run(1)
    assert rows["reason"][1] == str(caught.value)


def test_a_state_that_cannot_be_computed_is_one_row(tmp_path, monkeypatch):
    """The batch of a chunk fails as a whole; its halves find the run."""
    found = batch(tmp_path,
                  "job: forward\nparameters: [{key: robot.mass.lower, range: [1, 2, 11]}]\noutputs: {x: max(a.elbow)}\n")
    whole = found.evaluator.compute_chunk(0, 11)
    runs = found.evaluator.vectorized_along(found.sweep.job.trajectory)
    computed, bad = runs._columns, []

    def columns(robots, motion):
        from liedyn.dynamics.batching.calls import _thread
        numbers = _thread.run.__self__.varying[1]
        bad.append(np.any(numbers[:, 0] == whole.values[0][6]))                                  # the mass
        if bad[-1]:
            raise ld.ComputationError("singular")
        return computed(robots, motion)
    monkeypatch.setattr(runs, "_columns", columns)
    rows = found.evaluator.compute_chunk(0, 11)
    others = np.arange(11) != 6
    assert np.array_equal(rows.outputs[others], whole.outputs[others]) and sum(bad) == 5       # of 11, 6, 3, 2, 1
    assert rows.outputs[6] == pytest.approx(whole.outputs[6], rel=1e-12)                          # by itself it is computed here


def test_trajectories_that_vary_and_derivatives_by_parameters_go_one_by_one(tmp_path):
    recorded(tmp_path / "other.csv", rows=6, shift=0.4)
    text = "parameters: [{key: trajectory, list: [motion.csv, other.csv, no.csv]}]\noutputs: {x: 'max(tau.elbow)', n: final(t)}\n"
    with pytest.raises(LiedynError, match=r"no such trajectory: got 'no\.csv'"):
        batch(tmp_path, f"job: inverse\n{text}")
    (tmp_path / "no.csv").write_text("t[s],q.elbow[rad]\n0,x\n")
    found = batch(tmp_path, f"job: inverse\n{text}")
    rows = found.evaluator.compute_chunk(0, 3)
    assert rows.status == ["complete", "complete", "failed"] and "no.csv:2" in rows.reason[2]
    for k, name in enumerate(("motion.csv", "other.csv")):
        columns = {name: x for name, _, x in run_trajectory_job(found.sweep.job, found.binding.run(k)).columns}
        assert found.binding.path([x[k] for x in rows.values]) == str(tmp_path / name)
        assert rows.outputs[k, 0] == columns["tau.elbow"].max()
    text = text.replace(", no.csv", "").replace("max(tau.elbow)", "final(d(tau.elbow, mass.lower))")
    found = batch(tmp_path, f"job: derivatives\nwrt: mass.lower\n{text}")
    assert found.evaluator.mode == "sequential"
    rows = found.evaluator.compute_chunk(0, 2)
    assert rows.outputs[1, 0] == {name: x for name, _, x in run_trajectory_job(found.sweep.job, found.binding.run(1)).columns}[
        "dtau.elbow/dmass.lower"][-1]


def test_the_command(tmp_path):
    batch(tmp_path, f"job: inverse\n{VARY}outputs: {{x: max(tau.elbow)}}\n")
    found = ok("batch", tmp_path / "sweep.yaml", "-o", tmp_path / "out")
    assert "21 complete" in found.stderr
    assert "vectorized" in ok("batch", tmp_path / "sweep.yaml", "--dry-run").stdout
    again = ok("batch", tmp_path / "sweep.yaml", "--rerun", 5, "-o", tmp_path / "five.csv")
    assert "run 5: robot.mass.lower = " in again.stderr
    assert "information: the robot of this run differs from the robot file" in again.stderr and "five.model.yaml" in again.stderr
    ok("inverse", tmp_path / "five.csv", "-o", tmp_path / "same.csv")           # with the robot of the run
    same, five = read_trajectory(tmp_path / "same.csv"), read_trajectory(tmp_path / "five.csv")
    assert np.array_equal(same.columns["tau.elbow"], five.columns["tau.elbow"])
    most = read_trajectory(tmp_path / "five.csv").columns["tau.elbow"].max()
    assert most == pytest.approx(table(tmp_path / "out")["x"][5], rel=1e-12)
    pictures = ok("plot", tmp_path / "out", "-f", "png").stderr
    assert all(f"plots/{name}.png" in pictures for name in ("scatter", "histograms"))
    shown = run("replay", tmp_path / "out", "--runs", "0")
    assert shown.exit_code == 2 and "are not simulations (job: inverse)" in shown.stderr
    assert "overrides do not apply to this job" in run("batch", tmp_path / "sweep.yaml", "-S", "duration=1").stderr


MASS = "parameters: [{key: robot.mass.lower, list: [1]}]\n"


@pytest.mark.parametrize("text, message", [
    (f"job: inverses\n{MASS}", "job: expected .*did you mean inverse"),
    (f"job: hybrid\n{MASS}", "the key prescribed is missing"),
    (f"job: derivatives\nof: forward\n{MASS}", "of: unknown key.*did you mean function"),
    (f"job: derivatives\nby: q.*\n{MASS}", "by: unknown key.*did you mean wrt"),
    (f"job: derivatives\nprescribed: elbow\n{MASS}", "prescribed does not apply to this function.*function: hybrid"),
    (f"job: inverse\nprescribed: elbow\n{MASS}",
     "prescribed does not apply to the job inverse.*write job: hybrid or derivatives"),
    (f"job: inverse\nscenario: sweep.yaml\n{MASS}", "scenario does not apply to the job inverse"),
    (MASS, "trajectory does not apply to the job simulate"),
    (f"job: inverse\norder: 1\nwrenches: world\n{MASS}", "wrenches cannot be combined with order"),
    ("job: inverse\nparameters: [{key: initial.q.elbow, list: [1]}]\n",
     "has no parameter of this name.*got 'initial.q.elbow'"),
    ("job: inverse\nparameters: [{key: trajectory, list: [1]}]\n", "a trajectory must be a path: expected a list of paths"),
    ("job: inverse\nparameters: [{key: robot.mass.lowr, list: [1]}]\n", "did you mean robot.mass.lower"),
    (f"job: hybrid\nprescribed: elbw\n{MASS}", "no moving joint matches 'elbw'"),
    (f"job: inverse\n{MASS}outputs: {{x: max(tau.elbo)}}\n", "no such column.*got 'tau.elbo'"),
    (f"job: inverse\n{MASS}outputs: {{x: final(energy.kinetic)}}\n", "no such column.*got 'energy.kinetic'"),
    (f"job: inverse\n{MASS}outputs: {{x: 'final(d(tau.elbow, q.elbow))'}}\n",
     r"no such column: expected a column that liedyn inverse writes, .*got 'd\(tau.elbow, q.elbow\)'"),
    (f"job: derivatives\n{MASS}outputs: {{x: final(tau.elbow)}}\n",
     r"no such column: expected a column of the trajectory, such as d\(tau.shoulder, q.shoulder\), "),
    (f"job: inverse\n{MASS}outputs: {{x: count(latch)}}\n", "no such event"),
], ids=range(18))
def test_bad_jobs(tmp_path, text, message):
    with pytest.raises(LiedynError, match=message) as caught:
        batch(tmp_path, text)
    assert "\n" not in str(caught.value)


def test_the_estimate_of_memory_counts_the_derivatives(tmp_path):
    """A matrix by q, v and the inputs of each row, and what they are solved from: 4 nv^2."""
    found = {}
    for name, text in (("inverse", "job: inverse\noutputs:\n  x: final(tau.elbow)\n"),
                       ("derivatives", "job: derivatives\nfunction: forward\noutputs:\n  x: final(d(a.elbow, q.elbow))\n")):
        (tmp_path / name).mkdir()
        bench = batch(tmp_path / name, f"{text}{VARY}").evaluator
        found[name] = bench.costs()[0] - len(bench.first.columns)
    assert found["derivatives"] - found["inverse"] == 4 * 2**2


def test_each_trajectory_has_the_robot_of_its_own_comments(tmp_path):
    """Trajectories shared a robot if they differed in the comment `mimic` only, and the forces were those of the other."""
    (tmp_path / "robot.yaml").write_text("""
links: {base: {}, left: {mass: 1}, right: {mass: 2}}
joints:
  driver: {type: prismatic, parent: base, child: left, axis: [1, 0, 0]}
  follower: {type: prismatic, parent: base, child: right, axis: [1, 0, 0], mimic: {joint: driver}}
""")
    rows = "t,a.driver,a.follower,v.driver,v.follower,q.driver,q.follower\n0,3,3,0,0,0,0\n1,3,3,0,0,0,0\n"
    (tmp_path / "coupled.csv").write_text(f"# robot: robot.yaml\n{rows}")
    (tmp_path / "free.csv").write_text(f"# robot: robot.yaml\n# mimic: ignored\n{rows}")
    (tmp_path / "sweep.yaml").write_text("""
job: inverse
trajectory: coupled.csv
parameters: [{key: trajectory, name: motion, list: [coupled.csv, free.csv, coupled.csv]}]
outputs: {driver: max(tau.driver), follower: max(tau.follower)}
""")
    found = PreparedSweep(read_sweep(tmp_path / "sweep.yaml"))
    np.testing.assert_allclose(found.evaluator.compute_chunk(0, 3).outputs, [[9, 0], [3, 6], [9, 0]], atol=1e-12)
