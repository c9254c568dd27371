"""`liedyn batch`: many runs of a scenario as one table."""
from __future__ import annotations

import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from liedyn.cli.console import Console, check_drawn, with_console
from liedyn.cli.options import FILE, ParamType, force_option, json_option, override_option
from liedyn.errors import ComputationError, LiedynError, LiedynWarning, UsageError

if TYPE_CHECKING:
    from liedyn.batch.run_batch import PreparedSweep, SweepOutcome


class _Shard(ParamType):
    """The text i/N: part i of N."""

    name = "i/N"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, int]:
        match = re.fullmatch(r"(\d+)/(\d+)", value)
        if not match or not 1 <= int(match[1]) <= int(match[2]):
            self.fail(f"{value!r} is not a part of the runs such as 2/5, from 1/5 to 5/5.", param, ctx)
        return int(match[1]), int(match[2])


@click.command(short_help="Run a sweep: many runs of a scenario, as one table.")
@click.argument("sweep", type=FILE)
@click.option("-o", "--output", type=click.Path(file_okay=False), metavar="FOLDER", help="Folder to write. Default: runs/NAME.")
@override_option(", in all runs")
@click.option("--dry-run", is_flag=True, help="Check everything, then print the number of runs and steps, and the disk space "
              "needed.")
@click.option("--rerun", type=click.IntRange(0), metavar="K", help="Compute run K alone and write its run folder, as `simulate` "
              "does, or the CSV of another job.")
@click.option("--shard", type=_Shard(), metavar="i/N", help="Compute part i of N of the runs only; the shard that finishes "
              "last writes the table.")
@click.option("--resume", is_flag=True, help="Compute only what is missing in the folder, also after the sweep has been edited.")
@click.option("-j", "--jobs", type=click.IntRange(1), metavar="N", help="Number of processes or threads. Default: all cores.")
@click.option("--scheduler", metavar="ADDRESS",
              help="Compute on a dask cluster whose workers share the file system: tcp://host:8786.")
@click.option("--csv", is_flag=True, help="Also write the table as runs.csv.")
@with_console(force_option, json_option)
def batch(sweep: str, output: str | None, overrides: tuple[str, ...], dry_run: bool, rerun: int | None,
          shard: tuple[int, int] | None, resume: bool, jobs: int | None, scheduler: str | None, csv: bool, force: bool,
          as_json: bool, console: Console) -> None:
    """Run the scenario of a sweep many times, with different values each time, and write one table of results.

    \b
    Example:  liedyn batch configs/sweeps/pendulum_release.yaml
    writes    runs/pendulum_release/: runs.parquet, batch.json, and trajectories/ if the sweep asks for them
    Example:  liedyn batch configs/sweeps/pendulum_release.yaml --dry-run
    Example:  liedyn batch configs/sweeps/pendulum_release.yaml --rerun 17
    """
    from liedyn.io.atomic_output import path_part
    from liedyn.io.sweep_file import read_sweep

    if sum((dry_run, rerun is not None, bool(shard or resume or scheduler))) > 1:
        raise click.UsageError("--dry-run and --rerun cannot be combined, neither with each other nor with --shard, --resume or "
                               "--scheduler.")
    if force and (resume or shard):
        raise click.UsageError("--force contradicts --resume and --shard, which keep what is there.")
    folder = Path(output or Path("runs", path_part(Path(sweep).stem)))
    read = read_sweep(sweep, overrides)
    with console.progress.stage("checking the sweep"):
        from liedyn.batch.run_batch import PreparedSweep
        prepared = PreparedSweep(read, threads=jobs)
    console.robot(prepared.binding.model)
    console.warn(*prepared.warnings)
    if rerun is not None:
        if rerun >= prepared.count:
            raise UsageError(f"there is no run {rerun}: the sweep has {prepared.count} runs, from 0 to {prepared.count - 1}")
        again = _rerun_along if read.job else _rerun
        again(prepared, rerun, Path(output) if output else folder.with_name(f"{folder.name}_{rerun}"), force, as_json, console)
        return
    if dry_run:
        _dry_run(prepared, folder, as_json, console)
        return
    from liedyn.dynamics.batching.threads import cores
    jobs = jobs or cores()
    done = _run(prepared, folder, console, shard=shard, force=force, resume=resume, jobs=jobs, scheduler=scheduler, csv=csv)
    if as_json:
        console.result_json({"runs": done.count, "computed": done.computed, "reused": done.reused, "chunks_missing": done.missing,
                             "seconds": done.seconds, "status": done.table.counts, "folder": str(folder)})
    _print_summary(done, folder, console)


def _run(prepared: PreparedSweep, folder: Path, console: Console, *, shard: tuple[int, int] | None,
         **options: Any) -> SweepOutcome:
    first: list[tuple[float, int]] = []                     # time and number of runs at the first call

    def progress(done: int, count: int) -> None:
        if not first:
            first.append((time.monotonic(), done))
        spent, more = time.monotonic() - first[0][0], done - first[0][1]
        rate = more / spent if spent > 0.0 and more else None
        about = "" if rate is None else f"; {rate:.3g} runs a second, {(count - done) / rate:.0f} s left"
        console.progress.update(done / count if count else 1.0, f"{done} of {count} runs{about}")

    with console.progress.stage("simulating"):
        try:
            return prepared.run(folder, shard=shard or (1, 1), progress=progress, **options)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(f"what is computed is in {folder}; --resume computes the rest") from None


def _print_summary(done: SweepOutcome, folder: Path, console: Console) -> None:
    """Print a summary of a batch. Raise ComputationError if runs are not complete."""
    reused = f", {done.reused} were there already" if done.reused else ""
    counts = ", ".join(f"{n} {status}" for status, n in sorted(done.table.counts.items()))
    console.say(f"{done.computed} runs in {done.seconds:.2f} s{reused}{f': {counts}' if counts else ''}")
    if done.missing:
        console.warn(LiedynWarning("missing-chunks",
                                   f"{done.missing} chunks of other shards are missing: the table is written when the last of "
                                   "them is done"))
        return
    if done.table.n_with_warning:
        console.warn(LiedynWarning("suspicious-runs",
                                   f"{done.table.n_with_warning} of {done.count} runs are complete but suspicious: see the "
                                   "column reason"))
    console.wrote([path for path in (folder / "runs.parquet", folder / "runs.csv", folder / "batch.json") if path.exists()])
    many, reason = done.table.failure
    if many:
        lost = done.count - done.table.counts.get("complete", 0)
        these = "the first" if lost <= many else f"{many} of them"
        raise ComputationError(f"{max(lost, many)} of {done.count} runs are not complete, {these} because: {reason} "
                               "(column reason)")


def _dry_run(prepared: PreparedSweep, folder: Path, as_json: bool, console: Console) -> None:
    from liedyn.report.result_summary import batch_text

    prepared.check_disk(folder)
    report = prepared.report(folder)
    if as_json:
        console.result_json(report)
    else:
        console.result(batch_text(report))


def _rerun(prepared: PreparedSweep, number: int, folder: Path, force: bool, as_json: bool, console: Console) -> None:
    from liedyn.io.atomic_output import check_folder
    from liedyn.report.run_folder import write_run
    from liedyn.simulation.run import simulate_prepared

    check_folder(folder, mark="run.json", force=force)
    ended = None
    try:
        result = simulate_prepared(prepared.binding.run(number), console.progress)
    except LiedynError as error:
        if error.result is None:
            raise
        ended, result = error, error.result
    with console.progress.stage("writing results"):
        written = write_run(result, folder, force=force)
    console.warn(*_values(prepared, number), *result.warnings)
    console.run(result, written, folder, as_json)
    if ended is not None:
        raise ended
    check_drawn(written.failures)


def _rerun_along(prepared: PreparedSweep, number: int, path: Path, force: bool, as_json: bool, console: Console) -> None:
    """Run a job along a trajectory again and write its CSV."""
    from liedyn.analysis.recorded_motion import comments_for
    from liedyn.batch.sweep_binding import TrajectoryRun
    from liedyn.batch.trajectory_jobs import run_trajectory_job
    from liedyn.io.atomic_output import check_output
    from liedyn.io.trajectory_csv import write_trajectory

    target = str(path if path.suffix == ".csv" else path.with_name(f"{path.name}.csv"))
    check_output(target, force=force)
    run = prepared.binding.run(number)
    job = prepared.sweep.job
    assert job is not None, "the sweep runs a job along a trajectory"
    assert isinstance(run, TrajectoryRun), "a job along a trajectory has such runs"
    result = run_trajectory_job(job, run)
    write_trajectory(target, comments_for(result.header, run.model, target), result.t, result.columns, force=force)
    console.warn(*_values(prepared, number), *result.warnings)
    if as_json:
        console.result_json({"output": target, "rows": len(result.t), "columns": [name for name, _, _ in result.columns]})
    console.wrote_file(target, f": {len(result.columns)} columns, {len(result.t)} rows")


def _values(prepared: PreparedSweep, number: int) -> list[LiedynWarning]:
    values = ", ".join(f"{parameter.key} = {x}" for parameter,
                       x in zip(prepared.sweep.parameters, prepared.binding.values_of(number), strict=True))
    edited = [LiedynWarning("robot-edited", "the robot is another one than in its file: other commands do not know what differs")]
    return [LiedynWarning("rerun", f"run {number}: {values}"), *(edited if prepared.binding.of_robot else [])]
