"""The command `batch`: run a sweep, print its plan, or compute one of its runs again."""
from __future__ import annotations

import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from liedyn.cli.console import Console, with_console
from liedyn.cli.options import FILE, force_option, json_option, override_option
from liedyn.errors import ComputationError, LiedynError, LiedynWarning, UsageError

if TYPE_CHECKING:                       # they import NumPy and Numba
    from liedyn.batch.run_batch import PreparedSweep, SweepOutcome
    from liedyn.batch.sweep_binding import ScenarioBinding, TrajectoryBinding


def _shard(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"(\d+)/(\d+)", text)
    if not match or not 1 <= int(match[1]) <= int(match[2]):
        raise click.BadParameter(f"expected a shard I/N, such as 2/5, got {text!r}.")
    return int(match[1]), int(match[2])


@click.command(short_help="Run a sweep: many runs of a scenario, as one table.")
@click.argument("sweep", type=FILE)
@click.option("-o", "--output", type=click.Path(file_okay=False), metavar="FOLDER", help="Folder to write. Default: runs/NAME.")
@override_option(", in all runs")
@click.option("--dry-run", is_flag=True, help="Check the input, then print the number of runs and steps and the required disk "
              "space.")
@click.option("--rerun", type=click.IntRange(0), metavar="K", help="Compute only run K and write its run folder, as `simulate` "
              "does, or its CSV if the job of the sweep is not `simulate`.")
@click.option("--shard", type=_shard, metavar="i/N", help="Compute only shard I of N; the shard that finishes last "
              "writes the table.")
@click.option("--resume", is_flag=True, help="Compute only the missing runs; the sweep may have been edited.")
@click.option("-j", "--jobs", type=click.IntRange(1), metavar="N", help="Number of processes or threads. Default: all cores.")
@click.option("--scheduler", metavar="ADDRESS",
              help="Compute on a dask cluster whose workers share the file system: tcp://host:8786.")
@click.option("--csv", is_flag=True, help="Also write the table as runs.csv.")
@with_console(force_option, json_option)
def batch(sweep: str, output: str | None, overrides: tuple[str, ...], dry_run: bool, rerun: int | None,      # noqa: PLR0913
          shard: tuple[int, int] | None, resume: bool, jobs: int | None, scheduler: str | None, csv: bool, force: bool,
          as_json: bool, console: Console) -> None:
    """Run the scenario of a sweep many times, with different values each time, and write one table of results.

    \b
    Examples:
      liedyn batch configs/sweeps/pendulum_release.yaml
          # writes runs/pendulum_release/: runs.parquet, batch.json, and
          # trajectories/ if the sweep has `trajectories: true`
      liedyn batch configs/sweeps/pendulum_release.yaml --dry-run
      liedyn batch configs/sweeps/pendulum_release.yaml --rerun 17
    """
    from liedyn.io.atomic_output import path_part, stem_of
    from liedyn.io.sweep_file import read_sweep

    if sum((dry_run, rerun is not None, bool(shard or resume or scheduler))) > 1:
        raise click.UsageError("--dry-run and --rerun cannot be combined with each other, or with --shard, --resume or "
                               "--scheduler.")
    if force and (resume or shard):
        raise click.UsageError("--force cannot be combined with --resume or --shard, which keep existing results.")
    folder = Path(output or Path("runs", path_part(stem_of(sweep))))
    description = read_sweep(sweep, overrides)
    with console.progress.stage("checking the sweep"):
        from liedyn.batch.run_batch import PreparedSweep
        prepared = PreparedSweep(description, threads=jobs)
    console.robot(prepared.binding.model)
    console.warn(*prepared.warnings)
    if rerun is not None:
        if rerun >= prepared.count:
            raise UsageError(f"there is no run {rerun}: the sweep has {prepared.count} runs, from 0 to {prepared.count - 1}")
        from liedyn.batch.sweep_binding import TrajectoryBinding
        path = Path(output) if output else folder.with_name(f"{folder.name}_{rerun}")
        if isinstance(prepared.binding, TrajectoryBinding):
            _rerun_trajectory_job(prepared.binding, rerun, path, force, as_json, console)
        else:
            _rerun_simulation(prepared.binding, rerun, path, force, as_json, console)
        return
    if dry_run:
        _dry_run(prepared, folder, as_json, console)
        return
    from liedyn.dynamics.batching.threads import cores
    outcome = _run(prepared, folder, console, shard=shard or (1, 1), force=force, resume=resume, jobs=jobs or cores(),
                   scheduler=scheduler, csv=csv)
    if as_json:
        console.result_json({"runs": outcome.count, "computed": outcome.computed, "reused": outcome.reused,
                             "chunks_missing": outcome.missing, "seconds": outcome.seconds, "status": outcome.table.counts,
                             "folder": str(folder)})
    _print_summary(outcome, folder, console)


def _run(prepared: PreparedSweep, folder: Path, console: Console, **options: Any) -> SweepOutcome:
    from liedyn.batch.run_batch import Pace
    from liedyn.numba_tools.compile_cache import FIRST_RUN_TIME

    at_start: int | None = None                             # number of finished runs before this call
    pace = Pace()

    def report_progress(done: int, count: int) -> None:
        nonlocal at_start
        at_start = done if at_start is None else at_start
        t, forecast, seconds = time.monotonic(), "", None
        if done == at_start < count:
            forecast = f"; the first run loads or compiles code: {FIRST_RUN_TIME}"
        else:
            pace.update(done)
        if pace.runs_per_second:
            forecast, seconds = f"; {pace.runs_per_second:.3g} runs a second", (count - done) / pace.runs_per_second

        def details() -> str:                               # the remaining time also changes while a chunk is running
            remaining = "" if seconds is None else f", {max(0.0, seconds - (time.monotonic() - t)):.0f} s left"
            return f"{done} of {count} runs{forecast}{remaining}"

        console.progress.update(done / count if count else 1.0, details)

    with console.progress.stage("simulating"):
        try:
            return prepared.run(folder, progress=report_progress, **options)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(f"results so far are in {folder}; --resume computes the remaining runs") from None


def _print_summary(outcome: SweepOutcome, folder: Path, console: Console) -> None:
    """Print a summary of a batch. Raise ComputationError if runs are not complete."""
    reused = f", {outcome.reused} reused" if outcome.reused else ""
    counts = ", ".join(f"{count} {status}" for status, count in sorted(outcome.table.counts.items()))
    console.message(f"{outcome.computed} runs in {outcome.seconds:.2f} s{reused}{f': {counts}' if counts else ''}")
    if outcome.missing:
        console.warn(LiedynWarning("missing-chunks",
                                   f"{outcome.missing} chunks of other shards are missing; the last shard writes the table"))
        return
    if outcome.table.n_with_warning:
        console.warn(LiedynWarning("suspicious-runs",
                                   f"{outcome.table.n_with_warning} of {outcome.count} runs are complete but suspicious: see the "
                                   "column reason"))
    console.files([path for path in (folder / "runs.parquet", folder / "runs.csv", folder / "batch.json") if path.exists()])
    n_failed, reason = outcome.table.failure
    if n_failed:
        n_incomplete = outcome.count - outcome.table.counts.get("complete", 0)
        subject = "the first" if n_incomplete <= n_failed else f"{n_failed} of them"
        raise ComputationError(f"{max(n_incomplete, n_failed)} of {outcome.count} runs are not complete, {subject} because: "
                               f"{reason} (column reason)")


def _dry_run(prepared: PreparedSweep, folder: Path, as_json: bool, console: Console) -> None:
    from liedyn.report.result_summary import batch_text

    prepared.check_disk(folder)
    report = prepared.report(folder)
    console.report(as_json, report, batch_text(report))


def _rerun_simulation(binding: ScenarioBinding, number: int, folder: Path, force: bool, as_json: bool, console: Console) -> None:
    """Simulate a run again and write its run folder."""
    from liedyn.io.atomic_output import check_folder
    from liedyn.report.run_folder import MODEL, write_run
    from liedyn.simulation.run import simulate_prepared

    check_folder(folder, mark="run.json", force=force)
    failure = None
    try:
        result = simulate_prepared(binding.run(number), console.progress)
    except LiedynError as error:
        if error.result is None:
            raise
        failure, result = error, error.result
    with console.progress.stage("writing results"):
        written = write_run(result, folder, force=force)
    console.warn(*_rerun_warnings(binding, number, folder / MODEL))
    console.run(result, failure, written, folder, as_json)


def _rerun_trajectory_job(binding: TrajectoryBinding, number: int, path: Path, force: bool, as_json: bool,
                          console: Console) -> None:
    """Run a job along a trajectory again and write its CSV."""
    from liedyn.analysis.recorded_robot import comments_for
    from liedyn.batch.trajectory_jobs import run_trajectory_job
    from liedyn.io.atomic_output import STDIO, check_output
    from liedyn.io.trajectory_csv import Trajectory, model_file, write_trajectory
    from liedyn.robot_files import yaml_of

    target = path if path.suffix.lower() == ".csv" else path.with_name(f"{path.name}.csv")
    check_output(target, force=force)
    run = binding.run(number)
    result = run_trajectory_job(binding.job, run)
    if binding.of_robot:                                    # then the model is written next to the CSV
        Trajectory(comments_for(result.header, run.model, STDIO), result.t, {name: x for name, _, x in result.columns},
                   {name: unit for name, unit, _ in result.columns}, model=yaml_of(run.model)).save(target, force=force)
    else:
        recorded = run.trajectory if binding.job.robot is None else None
        write_trajectory(target, comments_for(result.header, run.model, str(target), recorded), result.t, result.columns,
                         force=force)
    console.warn(*_rerun_warnings(binding, number, model_file(target)), *result.warnings)
    if as_json:
        console.result_json({"output": str(target), "rows": len(result.t), "columns": [name for name, _, _ in result.columns]})
    console.file(str(target), f"{len(result.columns)} columns, {len(result.t)} rows")


def _rerun_warnings(binding: ScenarioBinding | TrajectoryBinding, number: int, model: Path) -> list[LiedynWarning]:
    """Return messages about the values of a run, and about the file `model` with its robot if the robot varies."""
    values = zip(binding.sweep.parameters, binding.values_of(number), strict=True)
    warnings = [LiedynWarning("rerun", f"run {number}: {', '.join(f'{parameter.key} = {x}' for parameter, x in values)}")]
    if binding.of_robot:
        warnings.append(LiedynWarning("robot-edited", "the robot of this run differs from the robot file; commands that read the "
                                      f"run use {model}"))
    return warnings
