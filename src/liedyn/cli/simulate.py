"""The command `simulate`: run a scenario, resume an interrupted run, or print the plan of a run."""
from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import click

from liedyn.cli.console import Console, arguments_first, with_console
from liedyn.cli.options import (
    IGNORE_MIMIC,
    Existing,
    force_option,
    ignore_mimic_option,
    json_option,
    override_option,
    reading_options,
    reading_overrides,
    strict_option,
)
from liedyn.errors import ComputationError, Interrupted, LiedynError, LiedynWarning, ScenarioError, UsageError

if TYPE_CHECKING:                       # they import NumPy and Numba
    from liedyn.io.checkpoint_files import Unfinished
    from liedyn.robot_files import ReadingOptions
    from liedyn.simulation.run import Result


class _Run(Existing):
    """A scenario, a robot file, or a run folder, which may still have its temporary name."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path; that of the run folder for its temporary name."""
        from liedyn.io.atomic_output import UNFINISHED, is_unfinished

        name = os.fspath(value).rstrip(os.sep + (os.altsep or "")).removesuffix(UNFINISHED)
        return name if is_unfinished(name) else super().convert(value, param, ctx)


@click.command(short_help="Simulate a scenario: trajectory, self-check and plots.")
@click.argument("scenario", metavar="SCENARIO_OR_ROBOT", type=_Run())
@click.option("-o", "--output", type=click.Path(), metavar="FOLDER", help="Run folder to write. Default: runs/NAME.")
@override_option(", such as -S integrator.step=1e-4")
@click.option("--resume", is_flag=True, help="Continue a run that was interrupted or killed. SCENARIO_OR_ROBOT may be its run "
              "folder.")
@click.option("--force-long", is_flag=True, help="Allow more than 1e8 steps or 1e7 rows, and results that may not fit into "
              "memory or on disk.")
@click.option("--dry-run", is_flag=True, help="Check the input and print the plan of the run, without simulating or writing.")
@click.option("--print-config", is_flag=True, help="Print the scenario with overrides and defaults as YAML, without simulating.")
@click.option("--no-plots", is_flag=True, help="Write neither plots nor the replay.")
@with_console(ignore_mimic_option, reading_options, strict_option, force_option, json_option)
def simulate(scenario: str, output: str | None, overrides: tuple[str, ...], resume: bool, force_long: bool,       # noqa: PLR0913
             dry_run: bool, print_config: bool, no_plots: bool, ignore_mimic: bool, reading: ReadingOptions, strict: bool,
             force: bool, as_json: bool, console: Console) -> None:
    """Simulate a scenario and write its trajectory, self-check and plots to a run folder.

    If a robot file is given instead of a scenario, its passive motion is simulated from the neutral configuration. A
    joint whose limits exclude zero starts in the middle of its range.

    \b
    Examples:
      liedyn simulate configs/panda_hybrid.yaml -S duration=10
          # writes runs/panda_hybrid/: trajectory.csv, run.json, plots/,
          # replay.html
      liedyn simulate configs/panda_hybrid.yaml -S duration=10 --dry-run
      liedyn simulate runs/panda_hybrid --resume
    """
    from liedyn.io.atomic_output import check_folder, is_unfinished, path_part, stem_of

    overrides = (*overrides, *reading_overrides(reading), *((IGNORE_MIMIC,) if ignore_mimic else ()))
    if resume and (dry_run or print_config):
        raise click.UsageError("--resume cannot be combined with --dry-run or --print-config.")
    if not resume and not Path(scenario).is_file():
        raise click.UsageError(f"{scenario} is a directory: a scenario or robot file is needed, or --resume.")
    folder = Path(output or (Path("runs", path_part(stem_of(scenario))) if Path(scenario).is_file() else scenario))
    if print_config:
        if dry_run or as_json:
            raise click.UsageError("--print-config cannot be combined with --dry-run or --json.")
        _print_config(scenario, overrides, force_long, strict, folder, console)
        return
    if resume and not is_unfinished(folder) and _is_complete(scenario, folder, console):
        return
    if folder.exists() and not resume:
        from liedyn.io.scenarios.scenario_file import check_kind
        check_kind(scenario)                                   # before a result that it would not replace

    def check_arguments() -> None:
        from liedyn.simulation.preparation import prepare
        prepare(scenario, list(overrides), strict, force_long)

    conflict = "" if resume or force else _conflict(folder)
    with arguments_first(check_arguments):
        if conflict and not dry_run:
            raise UsageError(conflict)
        check_folder(folder, mark="run.json", force=force or resume or dry_run)

    if dry_run:
        if conflict:
            console.warn(LiedynWarning("result-exists", conflict))
        _dry_run(scenario, overrides, force_long, strict, folder, as_json, console)
        return

    if not resume:
        from liedyn.io.scenarios.scenario_file import scenario_of
        scenario_of(scenario, overrides, force_long)           # errors, before the imports of a run and the process of the plots

    from liedyn.report.plots.drawing import PlotProcess

    with PlotProcess(idle=no_plots) as plot_process:         # before the slow imports
        result, failure, disk = _simulate(scenario, list(overrides), console, strict, force_long, folder, resume)
        console.robot(result.model)
        with console.progress.stage("writing results"):
            from liedyn.report.run_folder import write_run

            written = write_run(result, folder, force=force or resume, plots=not no_plots and result.status != "interrupted",
                                plot_process=plot_process)
    disk.close(finished=result.status != "interrupted")
    console.run(result, failure, written, folder, as_json)


def _conflict(folder: Path) -> str:
    """Return an error text if the folder contains a result, else ""."""
    from liedyn.io.atomic_output import is_unfinished

    if is_unfinished(folder):
        return f"the run in {folder} is not finished; --resume continues it, --force starts over"
    return f"{folder} already exists; --force overwrites it" if (folder / "run.json").is_file() else ""


def _simulate(scenario: str, overrides: list[str], console: Console, strict: bool, force_long: bool, folder: Path,
              resume: bool) -> tuple[Result, LiedynError | None, Unfinished]:
    """Return the result, the error with which it ended (or None), and the folder of an unfinished run."""
    from liedyn.io.atomic_output import is_unfinished
    from liedyn.io.checkpoint_files import Unfinished, read_checkpoint
    from liedyn.simulation.run import simulate_file

    resumed = resume and is_unfinished(folder)
    disk = Unfinished(folder)
    if resumed and not Path(scenario).is_file():
        disk.command = read_checkpoint(disk.path)["file"]["command"]
        scenario = disk.command["scenario"]
    else:
        disk.command = {"scenario": os.path.abspath(scenario), "overrides": overrides, "strict": strict, "force_long": force_long}
    try:
        with _stop_on_signal(disk):
            return simulate_file(scenario, disk.command["overrides"], console.progress, disk.command["strict"],
                                 force_long or disk.command["force_long"], disk, resumed), None, disk
    except (ComputationError, ScenarioError, Interrupted) as error:
        if error.result is None:
            disk.close(finished=isinstance(error, ComputationError))
            raise
        advice = f" (`liedyn simulate {folder} --resume` continues)" if isinstance(error, Interrupted) else ""
        t = error.result.t
        rows = "1 row" if len(t) == 1 else f"{len(t)} rows"
        error.args = (f"{error}; {rows}, up to t = {t[-1]:.6g} s, in {folder}{advice}",)
        return error.result, error, disk
    except LiedynError:
        disk.close(finished=False)
        raise
    except KeyboardInterrupt:
        disk.close(finished=False)
        if not is_unfinished(folder):
            raise
        raise KeyboardInterrupt(f"`liedyn simulate {folder} --resume` continues from the last checkpoint") from None


def _is_complete(scenario: str, folder: Path, console: Console) -> bool:
    """Return whether a run without checkpoint is complete. Raise an error if it cannot start from the beginning."""
    from liedyn.report.run_folder import status_of

    status = status_of(folder)
    if status == "diverged":
        raise ComputationError(f"the run in {folder} has diverged: there is nothing to resume")
    if status is not None:
        console.message(f"{folder}: the run is complete, there is nothing to resume")
        return True
    if not Path(scenario).is_file():
        raise UsageError(f"{folder} is not a run folder: there is nothing to resume")
    console.warn(LiedynWarning("no-checkpoint", f"there is no checkpoint of {folder}: the run starts from the beginning"))
    return False


def _print_config(scenario: str, overrides: tuple[str, ...], force_long: bool, strict: bool, folder: Path,
                  console: Console) -> None:
    from liedyn.io.atomic_output import STDIO
    from liedyn.io.scenarios.scenario_file import to_plain
    from liedyn.io.yaml_values import to_yaml
    from liedyn.simulation.preparation import prepare

    prepared = prepare(scenario, list(overrides), strict, force_long, folder)
    console.warn(*prepared.warnings, *prepared.integrator_reasons)
    console.write_text(STDIO, to_yaml(to_plain(prepared.scenario)), force=False)


def _dry_run(scenario: str, overrides: tuple[str, ...], force_long: bool, strict: bool, folder: Path, as_json: bool,
             console: Console) -> None:
    from liedyn.report.result_summary import plan_text
    from liedyn.simulation.preparation import prepare

    prepared = prepare(scenario, list(overrides), strict, force_long, folder)
    console.robot(prepared.model)
    console.warn(*prepared.warnings)
    plan = prepared.report(folder)
    console.report(as_json, plan, plan_text(plan))


# Ctrl-C and SIGTERM during a run: it ends between two steps, and its rows are written -----------------------------------

_SIGNALS = signal.SIGINT, signal.SIGTERM


@contextmanager
def _stop_on_signal(run: Unfinished) -> Iterator[None]:
    """Set `run.stop` at the first of these signals within a block, while the run is `listening`.

    Further signals, and signals at other times, end the process as usual.
    """
    def handle(number: int, _frame: FrameType | None) -> None:
        if run.listening and not run.stop:
            run.stop = number
        elif number == signal.SIGINT:
            raise KeyboardInterrupt
        else:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)

    previous = {}
    try:
        for number in _SIGNALS:
            previous[number] = signal.signal(number, handle)
    except ValueError:                                         # only the main thread can set signal handlers
        pass
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
