from __future__ import annotations

from pathlib import Path

import click

from liedyn.cli.console import check_drawn, with_console
from liedyn.cli.options import FILE, force_option, json_option, override_option, strict_option


@click.command(short_help="Simulate a scenario: trajectory, self-check and pictures.")
@click.argument("scenario", metavar="SCENARIO_OR_ROBOT", type=FILE)
@click.option("-o", "--output", type=click.Path(), metavar="FOLDER", help="Run folder to write. Default: runs/NAME.")
@override_option(", such as -S integrator.step=1e-4")
@click.option("--force-long", is_flag=True, help="Allow more than 1e8 steps or 1e7 rows, and results that may not fit into "
              "memory or on disk.")
@click.option("--dry-run", is_flag=True, help="Check everything and say what would be done, without simulating or writing.")
@click.option("--print-config", is_flag=True, help="Print the scenario with overrides and defaults as YAML, without simulating.")
@click.option("--no-plots", is_flag=True, help="Do not draw pictures.")
@strict_option
@force_option
@json_option
@with_console
def simulate(scenario, output, overrides, force_long, dry_run, print_config, no_plots, strict, force, as_json, console):
    """Simulate a scenario and write its trajectory, self-check and pictures to a run folder.

    If a robot file is given instead of a scenario, its passive motion is simulated from the neutral configuration.

    \b
    Example:  liedyn simulate configs/panda_hybrid.yaml -S duration=10
    writes    runs/panda_hybrid/: trajectory.csv, run.json, plots/
    Example:  liedyn simulate configs/panda_hybrid.yaml -S duration=10 --dry-run
    """
    from liedyn.io.output import check_folder, path_part

    folder = Path(output) if output else Path("runs", path_part(Path(scenario).stem))
    if print_config:
        if dry_run or as_json:
            raise click.UsageError("--print-config goes without --dry-run and --json.")
        _print_config(scenario, overrides, force_long, strict, console)
        return
    check_folder(folder, mark="run.json", force=force)

    if dry_run:
        _dry_run(scenario, overrides, force_long, strict, folder, as_json, console)
        return

    from liedyn.report.pictures.drawing import Draughtsman

    with Draughtsman(idle=no_plots) as draughtsman:         # before the imports that take long
        from liedyn.report.run_folder import write_run
        from liedyn.simulate.run import simulate_file

        result = simulate_file(scenario, list(overrides), console.progress, strict, force_long, folder)
        console.robot(result.model)
        with console.progress.stage("writing results"):
            written = write_run(result, folder, force=force, plots=not no_plots, draughtsman=draughtsman)
    console.notes(result.notes)
    if as_json:
        console.result((folder / "run.json").read_text(encoding="utf-8").rstrip())
    console.say(result.summary)
    console.detail("seconds: " + ", ".join(f"{part} {seconds:.2f}" for part, seconds in result.timing.items()))
    console.wrote(written.paths)
    check_drawn(written.failures)


def _print_config(scenario, overrides, force_long, strict, console):
    from liedyn.io.output import STDIO
    from liedyn.io.plain_scenario import to_plain
    from liedyn.io.write_yaml import to_yaml
    from liedyn.simulate.preparation import prepare

    prepared = prepare(scenario, list(overrides), strict, force_long)
    console.notes((*prepared.notes, *prepared.chosen))
    console.write_text(STDIO, to_yaml(to_plain(prepared.scenario)), force=False)


def _dry_run(scenario, overrides, force_long, strict, folder, as_json, console):
    from liedyn.report.texts.plan_text import plan_text
    from liedyn.simulate.preparation import prepare

    prepared = prepare(scenario, list(overrides), strict, force_long, folder)
    console.robot(prepared.model)
    console.notes(prepared.notes)
    plan = prepared.report(folder)
    if as_json:
        console.result_json(plan)
    else:
        console.result(plan_text(plan))
