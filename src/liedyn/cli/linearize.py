from __future__ import annotations

from pathlib import Path

import click

from liedyn.cli.console import check_drawn, with_console
from liedyn.cli.options import FILE, force_option, json_option, override_option, strict_option


@click.command(short_help="Linearize a scenario at a time or about an equilibrium.")
@click.argument("scenario", metavar="SCENARIO_OR_ROBOT", type=FILE)
@click.option("--at", type=float, default=0.0, show_default=True, metavar="SECONDS",
              help="Simulate up to this time and linearize there.")
@click.option("--equilibrium", is_flag=True, help="Linearize about an equilibrium near the state at that time.")
@click.option("--hold", multiple=True, metavar="PATTERN", help="With --equilibrium: joints to hold in place by a force to "
              "be found, or actuators whose thrust is to be found; may be repeated.")
@click.option("--open-loop", is_flag=True, help="Omit the state feedback of torques, PD laws, wrenches and thrusts.")
@click.option("--inputs", multiple=True, metavar="PATTERN", help="Inputs, such as 'tau.*' or thrust.rotor1; may be repeated. "
              "Default: all.")
@click.option("--outputs", multiple=True, metavar="PATTERN", help="Outputs, such as 'q.*', v.elbow, 'a.*', 'tau.*', "
              "'p.hand.*' (position of a link); may be repeated. Default: 'q.*' and the forces of prescribed joints.")
@click.option("--independent", multiple=True, metavar="PATTERN", help="For a robot with loops: coordinates to use as states; "
              "may be repeated. Others are chosen automatically.")
@click.option("--step", type=click.FloatRange(min=0, min_open=True), metavar="SECONDS", help="Time step of the discretization. "
              "Default: the scenario's output_step.")
@click.option("--verify", is_flag=True, help="Compare with extrapolated finite differences; exit status 4 if they differ.")
@click.option("-o", "--output", type=click.Path(), metavar="FOLDER", help="Folder to write. Default: runs/NAME_linear.")
@override_option()
@click.option("--no-plots", is_flag=True, help="Do not draw pictures.")
@with_console(strict_option, force_option, json_option)
def linearize(scenario, at, equilibrium, hold, open_loop, inputs, outputs, independent, step, verify, output, overrides,
              no_plots, strict, force, as_json, console):
    """Linearize a scenario about its motion or an equilibrium: dx/dt = A x + B u, y = C x + D u for small deviations.

    States are the deviations q.<joint> and v.<joint>. Inputs are the accelerations of prescribed joints, and additional forces
    and thrusts for all other joints and actuators.

    \b
    Example:  liedyn linearize configs/panda_hybrid.yaml --at 2.0
    writes    runs/panda_hybrid_linear/: A.csv … D.csv, Ad.csv, Bd.csv, system.npz, linear.json, plots/
    Example:  liedyn linearize configs/cart_pole.yaml --equilibrium --open-loop --inputs tau.cart --verify
    """
    from liedyn.io.output import check_folder, path_part

    if hold and not equilibrium:
        raise click.UsageError("--hold requires --equilibrium.")
    if output == "-":
        raise click.UsageError("The result is a folder; name one with -o, or use --json for a report on stdout.")
    folder = Path(output) if output else Path("runs", path_part(f"{Path(scenario).stem}_linear"))
    check_folder(folder, mark="linear.json", force=force)

    from liedyn.analyse.linearization.linearize import linearize_scenario
    from liedyn.report.linear_folder import check, summary, text, write_linearization

    result = linearize_scenario(scenario, at=at, equilibrium=equilibrium, hold=hold, open_loop=open_loop, step=step,
                                inputs=inputs or "*", outputs=outputs or None, independent=independent, verify=verify,
                                overrides=overrides, strict=strict, progress=console.progress)
    console.robot(result.model)
    check(result)
    with console.progress.stage("writing results"):
        written = write_linearization(result, folder, force=force, plots=not no_plots)
    console.notes(result.notes)
    if as_json:
        console.result_json(summary(result, folder))
    else:
        console.result(text(result))
    console.seconds(result.timing)
    console.wrote(written.paths)
    check_drawn(written.failures)
