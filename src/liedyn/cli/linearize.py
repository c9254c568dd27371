from __future__ import annotations

from pathlib import Path

import click

from liedyn.cli.console import check_drawn, with_console
from liedyn.cli.options import FILE, force_option, json_option, strict_option


@click.command(short_help="A, B, C, D of a scenario, at a time or at rest, with modes.")
@click.argument("scenario", metavar="SCENARIO_OR_ROBOT", type=FILE)
@click.option("--at", type=float, default=0.0, show_default=True, metavar="SECONDS", help="Run the scenario up to this time.")
@click.option("--equilibrium", is_flag=True, help="Take a configuration at rest near the one at that time.")
@click.option("--hold", multiple=True, metavar="PATTERN", help="With --equilibrium: a joint that stays where it is by a force "
              "to be found, or an actuator whose thrust is to be found; may be repeated.")
@click.option("--open-loop", is_flag=True, help="Leave out what torques, pd laws, wrenches and thrusts read of the state.")
@click.option("--inputs", multiple=True, metavar="PATTERN", help="Inputs to keep, as in 'tau.*' or thrust.rotor1; may be "
              "repeated.")
@click.option("--outputs", multiple=True, metavar="PATTERN", help="Outputs, as in 'q.*', v.elbow, 'a.*', 'tau.*', 'p.hand.*' "
              "(a link's place); may be repeated; default: 'q.*' and the forces of prescribed joints.")
@click.option("--independent", multiple=True, metavar="PATTERN", help="Of a robot with constraints: coordinates to be states; "
              "may be repeated; those that are missing are chosen.")
@click.option("--step", type=click.FloatRange(min=0, min_open=True), metavar="SECONDS", help="Of the discretization; default: "
              "the scenario's output_step.")
@click.option("--verify", is_flag=True, help="Compare with extrapolated differences; exit status 4 if they differ.")
@click.option("-o", "--output", type=click.Path(), metavar="FOLDER", help="Folder to write; default: runs/NAME_linear.")
@click.option("-S", "overrides", multiple=True, metavar="KEY=VALUE", help="Override a value of the scenario; may be repeated.")
@click.option("--no-plots", is_flag=True, help="Draw no picture.")
@strict_option
@force_option
@json_option
@with_console
def linearize(scenario, at, equilibrium, hold, open_loop, inputs, outputs, independent, step, verify, output, overrides,
              no_plots, strict, force, as_json, console):
    """Linearize a scenario: dx/dt = A x + B u, y = C x + D u for small deviations from its motion, or from rest.

    States are the deviations q.<joint> and v.<joint>; inputs the accelerations of prescribed joints, additions to the forces of
    the others and to thrusts.

    \b
    Example:  liedyn linearize configs/panda_hybrid.yaml --at 2.0
    writes    runs/panda_hybrid_linear/: A.csv … D.csv, Ad.csv, Bd.csv, system.npz, linear.json, plots/
    Example:  liedyn linearize configs/cart_pole.yaml --equilibrium --open-loop --inputs tau.cart --verify
    """
    from liedyn.io.output import check_folder, path_part

    if hold and not equilibrium:
        raise click.UsageError("--hold has a meaning with --equilibrium only.")
    if output == "-":
        raise click.UsageError("A linearization is a folder of files; name one with -o; --json reports on stdout.")
    folder = Path(output) if output else Path("runs", path_part(f"{Path(scenario).stem}_linear"))
    check_folder(folder, mark="linear.json", force=force)

    from liedyn.report.linear_folder import check, summary, text, write_linearization
    from liedyn.simulate.linearize import linearize_scenario

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
    console.detail("seconds: " + ", ".join(f"{part} {seconds:.2f}" for part, seconds in result.timing.items()))
    console.wrote(written.paths)
    check_drawn(written.failures)
