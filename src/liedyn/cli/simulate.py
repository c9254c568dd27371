"""`liedyn simulate`: one run of a scenario."""
from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from liedyn.cli.console import Console, check_drawn, with_console
from liedyn.cli.options import Existing, force_option, json_option, override_option, strict_option
from liedyn.errors import ComputationError, Interrupted, LiedynError, LiedynWarning, ScenarioError, UsageError

if TYPE_CHECKING:
    from liedyn.io.checkpoint_files import Unfinished
    from liedyn.simulation.run import Result


class _Run(Existing):
    """A scenario, a robot file, or a run folder, which may still have its temporary name."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        from liedyn.io.atomic_output import UNFINISHED, is_unfinished

        name = os.fspath(value).rstrip("/").removesuffix(UNFINISHED)
        return name if is_unfinished(name) else super().convert(value, param, ctx)


@click.command(short_help="Simulate a scenario: trajectory, self-check and plots.")
@click.argument("scenario", metavar="SCENARIO_OR_ROBOT", type=_Run())
@click.option("-o", "--output", type=click.Path(), metavar="FOLDER", help="Run folder to write. Default: runs/NAME.")
@override_option(", such as -S integrator.step=1e-4")
@click.option("--resume", is_flag=True, help="Continue a run that was interrupted or killed. SCENARIO_OR_ROBOT may be its run "
              "folder.")
@click.option("--force-long", is_flag=True, help="Allow more than 1e8 steps or 1e7 rows, and results that may not fit into "
              "memory or on disk.")
@click.option("--dry-run", is_flag=True, help="Check everything and say what would be done, without simulating or writing.")
@click.option("--print-config", is_flag=True, help="Print the scenario with overrides and defaults as YAML, without simulating.")
@click.option("--no-plots", is_flag=True, help="Write neither plots nor the replay.")
@with_console(strict_option, force_option, json_option)
def simulate(scenario: str, output: str | None, overrides: tuple[str, ...], resume: bool, force_long: bool, dry_run: bool,
             print_config: bool, no_plots: bool, strict: bool, force: bool, as_json: bool, console: Console) -> None:
    """Simulate a scenario and write its trajectory, self-check and plots to a run folder.

    If a robot file is given instead of a scenario, its passive motion is simulated from the neutral configuration.

    \b
    Example:  liedyn simulate configs/panda_hybrid.yaml -S duration=10
    writes    runs/panda_hybrid/: trajectory.csv, run.json, plots/, replay.html
    Example:  liedyn simulate configs/panda_hybrid.yaml -S duration=10 --dry-run
    Example:  liedyn simulate runs/panda_hybrid --resume
    """
    from liedyn.io.atomic_output import check_folder, is_unfinished, path_part

    if resume and (dry_run or print_config):
        raise click.UsageError("--resume cannot be combined with --dry-run or --print-config.")
    if not resume and not os.path.isfile(scenario):
        raise click.UsageError(f"{scenario} is a directory: a scenario or robot file is needed, or --resume.")
    folder = Path(output or (Path("runs", path_part(Path(scenario).stem)) if os.path.isfile(scenario) else scenario))
    if print_config:
        if dry_run or as_json:
            raise click.UsageError("--print-config cannot be combined with --dry-run or --json.")
        _print_config(scenario, overrides, force_long, strict, folder, console)
        return
    if resume and not is_unfinished(folder) and _has_ended(scenario, folder, console):
        return
    blocked = ""                                            # error for an existing result, which a dry run only reports
    if not resume and not force and is_unfinished(folder):
        blocked = f"the run in {folder} is not finished; --resume continues it, --force starts anew"
    elif not force and not resume and (folder / "run.json").is_file():
        blocked = f"{folder} exists already; --force overwrites it"
    if blocked and not dry_run:
        raise UsageError(blocked)
    check_folder(folder, mark="run.json", force=force or resume or dry_run)

    if dry_run:
        if blocked:
            console.warn(LiedynWarning("result-exists", blocked))
        _dry_run(scenario, overrides, force_long, strict, folder, as_json, console)
        return

    from liedyn.report.plots.drawing import PlotProcess

    with PlotProcess(idle=no_plots) as plot_process:         # before the slow imports
        from liedyn.report.run_folder import write_run

        result, ended, disk = _simulate(scenario, list(overrides), console, strict, force_long, folder, resume)
        console.robot(result.model)
        with console.progress.stage("writing results"):
            written = write_run(result, folder, force=force or resume, plots=not no_plots and result.status != "interrupted",
                                plot_process=plot_process)
    disk.close(finished=result.status != "interrupted")
    console.warn(*result.warnings)
    console.run(result, written, folder, as_json)
    if ended is not None:
        raise ended
    check_drawn(written.failures)


def _simulate(scenario: str, overrides: list[str], console: Console, strict: bool, force_long: bool, folder: Path,
              resume: bool) -> tuple[Result, LiedynError | None, Unfinished]:
    """Return the result, the error with which it ended (or None), and the folder of an unfinished run."""
    from liedyn.io.atomic_output import is_unfinished
    from liedyn.io.checkpoint_files import Unfinished, read_checkpoint
    from liedyn.simulation.run import simulate_file

    resumed = resume and is_unfinished(folder)
    disk = Unfinished(folder)
    if resumed and not os.path.isfile(scenario):
        disk.command = read_checkpoint(disk.path)["file"]["command"]
        scenario = disk.command["scenario"]
    else:
        disk.command = {"scenario": os.path.abspath(scenario), "overrides": overrides, "strict": strict, "force_long": force_long}
    try:
        with stop_on_signals(disk):
            return simulate_file(scenario, disk.command["overrides"], console.progress, disk.command["strict"],
                                 force_long or disk.command["force_long"], disk, resumed), None, disk
    except (ComputationError, ScenarioError, Interrupted) as error:
        if error.result is None:
            disk.close(finished=isinstance(error, ComputationError))
            raise
        again = f" (`liedyn simulate {folder} --resume` continues)" if isinstance(error, Interrupted) else ""
        t = error.result.t
        error.args = (f"{error}; {len(t)} rows, up to t = {t[-1]:.6g} s, are in {folder}{again}",)
        return error.result, error, disk
    except LiedynError:
        disk.close(finished=False)
        raise
    except KeyboardInterrupt:
        disk.close(finished=False)
        if not is_unfinished(folder):
            raise
        raise KeyboardInterrupt(f"`liedyn simulate {folder} --resume` continues from the last checkpoint") from None


def _has_ended(scenario: str, folder: Path, console: Console) -> bool:
    """Return whether a run without checkpoint has ended. If not, it starts from the beginning."""
    from liedyn.report.run_folder import status_of

    status = status_of(folder)
    if status == "diverged":
        raise ComputationError(f"the run in {folder} has diverged: there is nothing to resume")
    if status is not None:
        console.say(f"{folder}: the run is complete, there is nothing to resume")
        return True
    if not os.path.isfile(scenario):
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
    if as_json:
        console.result_json(plan)
    else:
        console.result(plan_text(plan))


# Ctrl-C and SIGTERM during a run: it ends between two steps, and its rows are written -----------------------------------

_STOP_SIGNALS = signal.SIGINT, signal.SIGTERM


@contextmanager
def stop_on_signals(run: Unfinished) -> Iterator[None]:
    """Set `run.stop` at the first of these signals within a block, while the run is `listening`.

    Further signals, and signals at other times, end the process as usual.
    """
    def stop(number: int, _frame: object) -> None:
        if run.listening and not run.stop:
            run.stop = number
        elif number == signal.SIGINT:
            raise KeyboardInterrupt
        else:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)

    previous = {}
    try:
        for number in _STOP_SIGNALS:
            previous[number] = signal.signal(number, stop)
    except ValueError:                                         # only the main thread can set signal handlers
        pass
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
