"""Commands on robot files: `info`, `check`, `view`, `convert`, `export`, `move`, `excite`; `template`, `schema`, `warmup`."""
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from liedyn.cli.console import Console, arguments_first, with_console
from liedyn.cli.inverse_kinematics import target_options, tasks_of_options
from liedyn.cli.options import (
    FILE,
    IGNORE_MIMIC,
    TRAJECTORY,
    bag_options,
    base_option,
    columns_option,
    file_kind_argument,
    force_option,
    ignore_mimic_option,
    is_bag_file,
    json_option,
    live_option,
    loops_option,
    meshes_option,
    override_option,
    reading_options,
    reading_overrides,
    robot_argument,
    slider_option,
    strict_option,
    text_output_option,
)
from liedyn.io.robots.robot_formats import in_words, written_endings, written_formats

if TYPE_CHECKING:                       # imports NumPy
    from liedyn.analysis.moves import Move
    from liedyn.arrays import Array, Base, Frame
    from liedyn.io.ros_bag import BagOptions
    from liedyn.io.trajectory_csv import Trajectory
    from liedyn.model.model import Model
    from liedyn.robot_files import ReadingOptions


@click.command(short_help="Show a robot file: tree, coordinates, limits.")
@robot_argument
@with_console(base_option, loops_option, reading_options, json_option)
def info(robot: str, base: Base | None, loops: str | None, reading: ReadingOptions, as_json: bool,
         console: Console) -> None:
    """Show the content of ROBOT, a URDF, YAML or MJCF file: tree, order of the coordinates, masses, limits.

    \b
    Examples:
      liedyn info robots/panda.yaml
      liedyn info robots/quadruped.yaml --base floating --json
      liedyn info robots/delta.yaml --loops robots/delta_guided.loops.yaml
    """
    from liedyn.report.robot_summary import robot_summary, robot_text
    from liedyn.robot_files import read_model

    model = read_model(robot, base=base, loops=loops, **reading)
    console.report(as_json, robot_summary(model), robot_text(model))
    console.robot(model)


# check ------------------------------------------------------------------------------------------------------------------

@click.command(short_help="Check robot files and list all warnings.")
@click.argument("robots", metavar="ROBOT...", nargs=-1, required=True, type=FILE)
@with_console(base_option, loops_option, reading_options, json_option)
def check(robots: tuple[str, ...], base: Base | None, loops: str | None, reading: ReadingOptions, as_json: bool,
          console: Console) -> None:
    """Check robot files and list all warnings: physically impossible inertias, missing limits, mimic joints without a joint to
    follow, …

    Parts that have no influence on the dynamics and are not read, such as elements of Gazebo, are information: -v lists them.

    Exit status: 0 no warnings, 3 a file cannot be used, 4 there are warnings.

    \b
    Examples:
      liedyn check robots/*.yaml
      liedyn check robots/delta.yaml --loops robots/delta_guided.loops.yaml
    """
    if loops and len(robots) > 1:
        raise click.UsageError(f"--loops requires exactly one robot, got {len(robots)}.")
    from liedyn.report.robot_summary import examine, raise_for_warnings

    summaries = [examine(robot, base, loops, reading) for robot in robots]
    console.report(as_json, [summary.to_dict() for summary in summaries],
                   "\n".join(summary.text(verbose=console.verbose) for summary in summaries))
    raise_for_warnings(summaries)


# view -------------------------------------------------------------------------------------------------------------------

@click.command(short_help="Show a robot in 3D in the browser, with a slider for each joint.")
@robot_argument
@click.option("--q", "q", multiple=True, metavar="JOINT=VALUE", help="Coordinates of a joint (separated by commas); may be "
              "repeated. Default: zero, or the middle of limits that exclude it. Loops are closed near these.")
@click.option("--floating", is_flag=True, help="Let the root link float: the same as --base floating.")
@click.option("-o", "--output", type=click.Path(dir_okay=False), metavar="FILE.html",
              help="Page to write. Default: a file with the name of the robot in a temporary folder.")
@click.option("--no-open", is_flag=True, help="Do not open the browser.")
@live_option
@slider_option
@meshes_option
@with_console(base_option, loops_option, reading_options, force_option, json_option)
def view(robot: str, q: tuple[str, ...], floating: bool, output: str | None, no_open: bool, live: bool,     # noqa: PLR0913
         sliders: tuple[str, ...], meshes: bool | None, base: Base | None, loops: str | None, reading: ReadingOptions,
         force: bool, as_json: bool, console: Console) -> None:
    """Show ROBOT, a URDF, YAML or MJCF file, in 3D: a page with a slider for each joint.

    Couplings and mimic joints follow the sliders, and loops stay closed. The page shows link frames, joint axes, inertia
    ellipsoids, centres of mass and shapes for collisions. A click on a link shows its mass, and the warnings of `liedyn check`
    about it. With --live, it simulates the motion without torques in the browser, and the mouse pulls links.

    \b
    Examples:
      liedyn view robots/panda.yaml
      liedyn view robots/double_pendulum.yaml --live
      liedyn view robots/four_bar.yaml --q crank=1.2
      liedyn view robots/quadruped.yaml --floating --no-open \\
          -o quadruped.html
    """
    if floating and base == "fixed":
        raise click.UsageError("--floating and --base fixed contradict each other.")
    if sliders and not live:
        raise click.UsageError("--slider requires --live.")
    from liedyn.analysis.configurations import configuration_of
    from liedyn.dynamics.joint_values import neutral_within_limits
    from liedyn.io.atomic_output import check_output, stem_of
    from liedyn.report.replay.view import temporary_page, write_view
    from liedyn.robot_files import read_model

    if live:
        base = "floating" if floating else base
        start = [f"initial.q.{joint.strip()}=[{value}]" if "," in value else f"initial.q.{joint.strip()}={value}"
                 for joint, _, value in (text.partition("=") for text in q)]
        overrides = (*start, *reading_overrides(reading), *((f"base={base}",) if base else ()),
                     *((f"loops={loops}",) if loops else ()))
        page = output or str(temporary_page(f"{stem_of(robot)}_live"))
        path = console.live_page(robot, page, overrides, sliders=sliders, meshes=meshes, as_json=as_json,
                                 package_roots=reading.get("package_roots", ()), force=force or output is None)
        console.open_page(path, no_open=no_open)
        return

    def opened() -> tuple[Model, Array]:
        model = read_model(robot, base="floating" if floating else base, loops=loops, **reading)
        return model, configuration_of(model, q, neutral_within_limits(model))

    if output is not None:
        with arguments_first(opened):
            check_output(output, force=force)
    model, configuration = opened()
    with console.progress.stage("writing the page"):
        path, warnings = write_view(model, configuration, [text.split("=")[0].strip() for text in q], output=output,
                                    meshes=meshes, roots=reading.get("package_roots", ()), force=force)
    console.warn(*warnings)
    if as_json:
        console.result_json({"file": str(path), "robot": model.name})
    console.file(str(path))
    console.robot(model)
    console.open_page(path, no_open=no_open)


# convert ----------------------------------------------------------------------------------------------------------------

@click.command(short_help="Convert a robot file to URDF or robot YAML, a log or ROS bag to a trajectory CSV.")
@click.argument("source", metavar="ROBOT|TRAJECTORY", type=TRAJECTORY)
@click.option("-o", "--output", type=click.Path(), required=True, metavar="FILE", help="File to write, with the ending "
              f"{in_words(list(written_endings()))}, or .csv for a trajectory; `-` for stdout.")
@click.option("--to", "format", metavar=f"[{'|'.join(written_formats())}]", help="Format of standard output, with `-o -`.")
@click.option("--fix", multiple=True, metavar="JOINT=VALUE", help="Joint of a robot to fix at these coordinates (separated by "
              "commas); may be repeated. Mimic joints of it are fixed, too.")
@click.option("--lossy", is_flag=True, help="Convert even if the format cannot describe the robot's dynamics, and omit "
              "what it cannot describe.")
@click.option("-r", "--robot", type=FILE, help="Robot of a trajectory, which its CSV then names. Default: the one named in the "
              "trajectory, if any.")
@columns_option
@bag_options
@with_console(base_option, loops_option, reading_options, force_option, json_option)
def convert(source: str, output: str, format: str | None, fix: tuple[str, ...], lossy: bool,                 # noqa: PLR0913
            robot: str | None, columns: str | None, bag: BagOptions, base: Base | None,
            loops: str | None, reading: ReadingOptions, force: bool, as_json: bool,
            console: Console) -> None:
    """Convert ROBOT, a URDF, YAML or MJCF file, to the format given by the ending of the output file; or TRAJECTORY, a ROS bag
    or a CSV, to a CSV with the names and units of liedyn.

    Numbers are preserved exactly, rotations up to rounding. URDF cannot describe every robot. Where possible, an equivalent
    form is written, with a warning: a universal joint becomes two revolute joints with a massless link between them; loops and
    couplings are written to a loops file next to the URDF. Springs, armatures, ball and helical joints, and a gravity other than
    the default have no equivalent: such a robot requires --lossy. From URDF to URDF, all other parts of the file are kept:
    meshes, collision shapes, transmissions, comments. In other conversions, primitives are written for drawing; meshes and
    shapes of contacts are not.

    \b
    Examples:
      liedyn convert robots/ur5.yaml -o ur5.urdf
      liedyn convert robot.urdf -o robot.yaml
      liedyn convert robots/hopper.xml -o hopper.yaml
      liedyn convert robots/ur5_gripper.yaml \\
          --fix wrist_3_joint=0.5 --fix wrist_2_joint=-1.57 -o arm.yaml
      liedyn convert robots/four_bar.yaml -o four_bar.urdf
          # also writes four_bar.loops.yaml
      liedyn convert robots/arm_with_tool.urdf \\
          --inertia-from-meshes 2700 -o arm.urdf
      liedyn convert arm.urdf.xacro \\
          --xacro-arg tool=gripper -o arm_with_gripper.urdf
      liedyn convert robots/asymmetric_body.yaml --base fixed -o - --to urdf
      liedyn convert configs/logs/ur5_log.csv -o motion.csv
      liedyn convert bag/ --topic /joint_states --robot arm.urdf -o motion.csv
    """
    if source == "-" or Path(source).suffix.lower() == ".csv" or is_bag_file(source):
        if format is not None or lossy or loops or fix:
            raise click.UsageError("--to, --fix, --lossy and --loops apply to robot files only.")
        _convert_trajectory(source, output, robot, columns, bag, base, reading, force=force, as_json=as_json, console=console)
        return
    if robot is not None or columns is not None or any(bag.values()):
        raise click.UsageError("--robot, --columns and options for ROS bags apply to trajectories only.")
    from liedyn.io.atomic_output import STDIO
    from liedyn.robot_files import convert as convert_description
    from liedyn.robot_files import format_of, load_description, write

    if (output == STDIO) != (format is not None):
        raise click.UsageError("--to is required with `-o -` and not allowed otherwise: the ending of FILE gives the format.")
    if output == STDIO and as_json:
        raise click.UsageError("`-o -` and --json cannot be combined: both write to stdout.")
    path = Path(output)
    description = load_description(source, base, loops, **reading)
    if fix:
        from liedyn.analysis.configurations import positions_of
        from liedyn.dynamics.fixed_joints import fix_joints
        from liedyn.model.model import build
        model = build(description)
        with console.issued_warnings():
            description = fix_joints(model, positions_of(model, fix, "--fix")).description
    name, folder = (None, None) if output == STDIO else (path.name, path.parent)
    result = convert_description(description, format or format_of(path), name, folder)
    result.check(lossy=lossy, source=source)
    console.warn(*result.warnings)
    if output == STDIO:
        console.write_text(output, result.text, force=force)
        return
    files = write(result, path, force=force)
    if as_json:
        console.result_json({"files": [str(file) for file in files], "format": result.format,
                             "rewritten": list(result.rewritten),
                             "losses": [{"element": loss.element, "message": loss.message, "dynamics": loss.dynamics}
                                        for loss in result.losses]})
    console.files(files)


def _convert_trajectory(source: str, output: str, robot: str | None, columns: str | None, bag: BagOptions,       # noqa: PLR0913
                        base: Base | None, reading: ReadingOptions, *, force: bool, as_json: bool, console: Console) -> None:
    from liedyn.analysis.recorded_robot import converted

    if output != "-" and Path(output).suffix.lower() != ".csv":
        raise click.UsageError(f"-o {output}: a trajectory is written as CSV; give a name that ends in .csv.")
    if output == "-" and as_json:
        raise click.UsageError("`-o -` and --json cannot be combined: both write to stdout.")
    trajectory, warnings = converted(source, output, robot, base=base, columns=columns, bag=bag, reading=reading)
    trajectory.save(output, force=force)
    console.warn(*warnings)
    if as_json:
        console.result_json({"files": [output], "rows": len(trajectory), "columns": list(trajectory.columns),
                             "warnings": [warning.to_dict() for warning in warnings]})
    console.file(output, f"{len(trajectory.columns)} columns, {len(trajectory)} rows")


# export -----------------------------------------------------------------------------------------------------------------

# the names of `interop.traced_functions.FUNCTIONS`, whose module imports Numba
FUNCTIONS = (
    "inverse_dynamics", "forward_dynamics", "hybrid_dynamics", "mass_matrix", "inverse_mass_matrix", "bias_force",
    "gravity_force", "coriolis_matrix", "christoffel_symbols", "slotine_li_inverse_dynamics", "regressor",
    "slotine_li_regressor", "energy",
    "momentum", "centre_of_mass", "integrate", "difference", "d_integrate", "d_difference", "link_pose", "link_twist",
    "link_acceleration", "jacobian", "jacobian_derivative", "inverse_dynamics_derivatives", "forward_dynamics_derivatives",
    "hybrid_dynamics_derivatives", "constraint_residual", "constraint_velocity", "constraint_bias", "constraint_jacobian")
_TARGETS = {"c": "C", "wasm": "WebAssembly", "opencl": "OpenCL", "ptx": "PTX", "casadi": "CasADi", "latex": "LaTeX"}
_FORMULAS, _STEPS, _KERNELS = ("casadi", "latex"), ("c", "wasm"), ("opencl", "ptx")


@click.command(short_help="Write dynamics of a robot as code or formulas, or a step of a scenario as code.")
@click.argument("robot", metavar="ROBOT_OR_SCENARIO", type=FILE)
@click.option("--function", type=click.Choice(FUNCTIONS), metavar="NAME",
              help=f"Function of a robot to write: {', '.join(FUNCTIONS)}.  [default: forward_dynamics]")
@click.option("--to", "target", type=click.Choice([*_TARGETS]), default="c", show_default=True,
              help="c: C99 and a header. wasm: a WebAssembly module, a wrapper in JavaScript and its types. opencl: a kernel in "
              "OpenCL C. ptx: a kernel for GPUs by NVIDIA. casadi: a file for casadi.Function.load. latex: equations.")
@click.option("-o", "--output", type=click.Path(dir_okay=False), metavar="FILE",
              help="FILE.c, .wasm, .cl, .ptx, .casadi or .tex to write; other files are next to it. Default: ROBOT_FUNCTION or "
              "SCENARIO in the current folder.")
@click.option("--dtype", type=click.Choice(["float64", "float32"]), default="float64", show_default=True,
              help="Numbers of C, WebAssembly, OpenCL and PTX. float32: single precision.")
@click.option("--parameter", "parameters", multiple=True, metavar="NAME[=EXPRESSION]",
              help="Parameter of the robot that is a symbol, such as mass.upper=m1; for latex and casadi. Repeatable.")
@click.option("--link", metavar="LINK", help="Link whose pose, twist, acceleration or Jacobian is computed.")
@click.option("--frame", type=click.Choice(["local", "local_world_aligned", "world"]),
              help="Frame of twists, accelerations and Jacobians, as in ld.jacobian.  [default: local]")
@click.option("-p", "--prescribed", multiple=True, metavar="PATTERN",
              help="For hybrid dynamics: joints whose acceleration is prescribed, a name or a pattern; may be repeated.")
@click.option("--no-passive", is_flag=True, help="Omit joint springs, damping and friction.")
@click.option("--gpu", "processor", metavar="ARCHITECTURE", help="For ptx: the oldest GPU that runs the kernel, such as sm_90.  "
              "[default: sm_80]")
@click.option("--control", "only_control", is_flag=True,
              help="Write only the control laws, motors and signals of a scenario, in C.")
@click.option("--with-test", is_flag=True, help="Also write NAME_test.c, a program that compares one state, or 1,000 steps, with "
              "liedyn's result.")
@override_option()
@with_console(base_option, ignore_mimic_option, reading_options, strict_option, force_option, json_option)
def export(robot: str, function: str | None, target: str, output: str | None, dtype: Any, link: str | None,       # noqa: PLR0913
           parameters: tuple[str, ...], frame: Frame | None, prescribed: tuple[str, ...], no_passive: bool,
           processor: str | None, only_control: bool, with_test: bool, overrides: tuple[str, ...], base: Base | None,
           ignore_mimic: bool, reading: ReadingOptions, strict: bool, force: bool, as_json: bool, console: Console) -> None:
    """Write a function of a robot's dynamics or kinematics, or a whole step of a scenario, as code.

    Functions are C99, WebAssembly, kernels for GPUs in OpenCL C or PTX, functions of CasADi, or equations in LaTeX. Steps are C99
    or WebAssembly.

    In C, a function has no loops, allocates no memory, and needs only <math.h>. A step contains the integrator rk4, contacts,
    constraints, motors, control laws and signals of the scenario; a sampled controller is a separate function. Comments list the
    order and the units of the arrays, and how kernels are launched.

    \b
    Examples:
      liedyn export robots/panda.yaml \\
          --function forward_dynamics -o panda_fd.c
          # writes panda_fd.c, panda_fd.h
      liedyn export robots/panda.yaml --function jacobian \\
          --link panda_hand --frame local_world_aligned
      liedyn export robots/ur5.yaml --function inverse_dynamics \\
          --dtype float32 --with-test
      liedyn export robots/panda.yaml --function hybrid_dynamics \\
          --prescribed 'panda_joint[1-4]'
      liedyn export robots/panda.yaml --to opencl --dtype float32
          # writes panda_forward_dynamics.cl
      liedyn export robots/panda.yaml --to ptx --gpu sm_90
          # writes panda_forward_dynamics.ptx
      liedyn export configs/panda_hybrid.yaml --with-test
          # writes panda_hybrid.c, panda_hybrid.h, panda_hybrid_test.c
      liedyn export configs/panda_computed_torque.yaml --control
          # writes panda_computed_torque.c, panda_computed_torque.h
      liedyn export configs/panda_hybrid.yaml --to wasm
          # writes panda_hybrid.wasm, panda_hybrid.js, panda_hybrid.d.ts
      liedyn export robots/double_pendulum.yaml --to latex \\
          --function mass_matrix --parameter mass.lower=m2
    """
    from liedyn.io.scenarios.scenario_file import describes_robot

    of_robot = describes_robot(robot)
    of_functions = (("--function", function), ("--link", link), ("--frame", frame), ("--prescribed", prescribed),
                    ("--no-passive", no_passive), ("--parameter", parameters))
    if option := next((option for option, value in of_functions if value and not of_robot), None):
        raise click.UsageError(f"{option} applies to functions of a robot file, and this is a scenario.")
    _check_target(target, (("--dtype float32", dtype == "float32", (*_STEPS, *_KERNELS)), ("--with-test", with_test, ("c",)),
                           ("--control", only_control, ("c",)),
                           ("--parameter", parameters, _FORMULAS), ("--gpu", processor, ("ptx",))))
    if target not in _STEPS and not of_robot:
        raise click.UsageError(f"--to {target} applies to functions of a robot file, and this is a scenario.")
    for option, value in (("-S", overrides), ("--control", only_control)):
        if of_robot and value:
            raise click.UsageError(f"{option} applies to scenarios, and this is a robot file.")
    if only_control and with_test:
        raise click.UsageError("--with-test applies to functions and steps, and not to --control.")
    from liedyn.interop.c_files import write_export, write_step_export
    from liedyn.interop.device_files import write_device_export
    from liedyn.interop.formula_files import write_formulas
    from liedyn.interop.wasm_files import write_wasm_export, write_wasm_step_export
    from liedyn.robot_files import read_model
    from liedyn.simulation.name_binding import joint_coordinates

    path, in_c = Path(output) if output else None, target == "c"
    written: Any
    if of_robot:
        model = read_model(robot, base=base, strict=strict, ignore_mimic=ignore_mimic, **reading)
        console.robot(model)
        write: Any = (partial(write_export, dtype=dtype, with_test=with_test) if in_c else
                      partial(write_formulas, to=target, parameters=parameters) if target in _FORMULAS else
                      partial(write_device_export, to=target, dtype=dtype, processor=processor) if target in _KERNELS else
                      partial(write_wasm_export, dtype=dtype))
        options = {"link": link, "frame": frame, "passive": False if no_passive else None,
                   "prescribed": joint_coordinates(model, prescribed) if prescribed else None}
        with console.progress.stage("writing the function"):
            written, paths = write(model, function or "forward_dynamics", path, force=force, **options)
        report = {"function": written.name, "equations" if target == "latex" else "operations": written.size}
    else:
        overrides = (*overrides, *reading_overrides(reading), *((IGNORE_MIMIC,) if ignore_mimic else ()),
                     *((f"base={base}",) if base else ()))
        write = partial(write_step_export, with_test=with_test, control=only_control) if in_c else write_wasm_step_export
        with console.progress.stage("writing the step"):
            written, paths = write(robot, path, overrides=overrides, dtype=dtype, strict=strict, force=force)
        console.warn(*written.warnings)
        names = {"step": not only_control, "sample": only_control and written.step.sampler is not None, "control": True}
        function = next(name for name, is_written in names.items() if is_written)
        report = {"function": f"{written.name}_{function}", "operations": written.size,
                  "warnings": [warning.to_dict() for warning in written.warnings]}
    if as_json:
        console.result_json({"files": [str(path) for path in paths]} | report)
    console.files(paths)


def _check_target(target: str, options: Iterable[tuple[str, Any, tuple[str, ...]]]) -> None:
    """Raise UsageError for an option that does not belong to the target. options: name, value, targets."""
    for option, value, targets in options:
        if value and target not in targets:
            raise click.UsageError(f"{option} applies to {', '.join(_TARGETS[x] for x in targets)}.")


# move -------------------------------------------------------------------------------------------------------------------

@click.command(short_help="Plan a motion to a configuration under velocity, acceleration and jerk limits.")
@robot_argument
@click.option("--to", "target", multiple=True, metavar="JOINT=VALUE", help="Target of a joint (coordinates separated by "
              "commas), or the name of a keyframe; may be repeated. Other joints stay, or move --link.")
@target_options
@click.option("--from", "start", multiple=True, metavar="JOINT=VALUE", help="Start of a joint, or the name of a keyframe; may "
              "be repeated. Default: zero.")
@click.option("--velocity", multiple=True, metavar="[JOINT=]LIMIT", help="Maximum velocity [rad/s or m/s], of all joints or "
              "of a joint or pattern; may be repeated. Default: from the robot file.")
@click.option("--acceleration", multiple=True, metavar="[JOINT=]LIMIT", help="Maximum acceleration [rad/s^2 or m/s^2].")
@click.option("--jerk", multiple=True, metavar="[JOINT=]LIMIT", help="Maximum jerk [rad/s^3 or m/s^3]. Without it, the "
              "acceleration jumps.")
@click.option("--duration", type=float, metavar="SECONDS", help="Duration, if longer than the shortest one.")
@click.option("--straight", is_flag=True, help="Move along a straight line of joint coordinates.")
@click.option("--step", type=float, default=0.01, show_default=True, metavar="SECONDS", help="Time between two rows.")
@loops_option
@click.option("-o", "--output", type=click.Path(), default="-", help="CSV to write. Default: stdout.")
@with_console(base_option, ignore_mimic_option, reading_options, strict_option, force_option, json_option)
def move(robot: str, target: tuple[str, ...], start: tuple[str, ...], velocity: tuple[str, ...],               # noqa: PLR0913
         acceleration: tuple[str, ...], jerk: tuple[str, ...], duration: float | None, straight: bool, step: float,
         loops: str | None, output: str, base: Base | None, ignore_mimic: bool, reading: ReadingOptions, strict: bool,
         force: bool, as_json: bool, console: Console, **goals: Any) -> None:
    """Plan the fastest motion of ROBOT from one configuration to another, under limits of velocity, acceleration and jerk.

    All joints arrive at the same time. With --link, inverse kinematics finds the configuration at the target that is near the
    start. The output is a trajectory with columns q, v and a, for `inverse`, `replay`, `plot` and
    the signals of a scenario.

    \b
    Examples:
      liedyn move robots/panda.yaml --to panda_joint4=-1.5 \\
          --to panda_joint2=0.5 --acceleration 5 --jerk 50 -o motion.csv
      liedyn move robots/ur5.yaml --from elbow_joint=1.5 --link tool0 \\
          --pose 0.4,0.2,0.5,3.14,0,0 --acceleration 5 -o motion.csv
      liedyn inverse motion.csv
    """
    from liedyn.io.atomic_output import check_output

    if as_json and output == "-":
        raise click.UsageError("--json and a CSV cannot both go to stdout; name a file with -o.")

    tasks = tasks_of_options(**goals)
    if not target and not tasks:
        raise click.UsageError("no target: give --to JOINT=VALUE, or --link NAME with a target such as --pose X,Y,Z,R,P,Y.")

    def plan() -> Move:
        from liedyn.analysis.moves import move_of_texts
        from liedyn.robot_files import read_model
        model = read_model(robot, base=base, loops=loops, strict=strict, ignore_mimic=ignore_mimic, **reading)
        with console.issued_warnings():
            return move_of_texts(model, target, start, {"velocity": velocity, "acceleration": acceleration, "jerk": jerk},
                                 tasks=tasks, duration=duration, straight=straight)

    with arguments_first(plan):
        check_output(output, force=force)
    planned = plan()
    console.robot(planned.model)
    trajectory = planned.trajectory(step)
    rows = save_planned(trajectory, output, reading, ignore_mimic=ignore_mimic, force=force)
    console.message(planned.summary)
    if as_json:
        console.result_json({"output": output, "duration": planned.duration, "limiting": list(planned.limiting),
                             "rows": len(trajectory)})
    console.file(output, rows)


# excite -----------------------------------------------------------------------------------------------------------------

@click.command(short_help="Plan a motion that makes the inertial parameters identifiable, within limits.")
@robot_argument
@click.option("--duration", type=float, default=10.0, show_default=True, metavar="SECONDS", help="Duration: a multiple of the "
              "period.")
@click.option("--period", type=float, metavar="SECONDS", help="Period of the motion. Default: the duration.")
@click.option("--harmonics", type=int, default=5, show_default=True, metavar="N", help="Number of frequencies: 1/period to "
              "N/period. Splines have as many coefficients.")
@click.option("--kind", type=click.Choice(["fourier", "splines"]), default="fourier", show_default=True, help="Functions of "
              "time: a Fourier series, or splines of degree 5.")
@click.option("--from", "start", multiple=True, metavar="JOINT=VALUE", help="Position of a joint at the start and the end, or "
              "the name of a keyframe; may be repeated. Other joints start at zero. Default: the best start.")
@click.option("--rate", type=float, default=100.0, show_default=True, metavar="HZ", help="Rows per second, of the CSV and of the "
              "recording.")
@click.option("--noise", multiple=True, metavar="[JOINT=]NOISE", help="Standard deviation of the measured torque [N m or N], of "
              "all joints or of a joint or pattern; may be repeated. inf: not measured. Default: 1 % of the effort limit.")
@click.option("--criterion", type=click.Choice(["d-optimal", "condition"]), default="d-optimal", show_default=True,
              help="Maximize log det of the information, or minimize the condition number.")
@click.option("--parameter", "parameters", multiple=True, metavar="PATTERN", help="Base parameters of the criterion, such as "
              "'mass.*'; may be repeated. Default: all.")
@click.option("--with", "joints", multiple=True, type=click.Choice(["armature", "damping", "friction", "stiffness", "none"]),
              help="Joint parameters to estimate; may be repeated. Default: those that the robot file has.")
@click.option("--offset/--no-offset", default=True, show_default=True, help="Also estimate a constant torque of each joint.")
@click.option("--position", multiple=True, metavar="JOINT=LOWER,UPPER", help="Position limits [rad or m]; may be repeated. "
              "Default: from the robot file.")
@click.option("--velocity", multiple=True, metavar="[JOINT=]LIMIT", help="Maximum velocity [rad/s or m/s], of all joints or of a "
              "joint or pattern; may be repeated. Default: from the robot file.")
@click.option("--acceleration", multiple=True, metavar="[JOINT=]LIMIT", help="Maximum acceleration [rad/s^2 or m/s^2].")
@click.option("--torque", multiple=True, metavar="[JOINT=]LIMIT", help="Maximum joint torque or force [N m or N].")
@click.option("--self-distance", type=float, metavar="METRES", help="Minimum distance of links that no joint connects. Default: "
              "not limited.")
@click.option("--floor", type=float, metavar="HEIGHT", help="Minimum height z of moving links [m], as --space z=HEIGHT,inf.")
@click.option("--space", multiple=True, metavar="AXIS=LOWER,UPPER", help="Positions x, y or z of moving links in the world [m], "
              "such as x=-inf,0.8 before a wall; may be repeated. Default: not limited.")
@click.option("--starts", type=int, default=24, show_default=True, metavar="N", help="Number of random starts.")
@click.option("--seed", type=int, default=0, show_default=True, metavar="N", help="Seed of the random starts.")
@click.option("-j", "--jobs", type=click.IntRange(1), metavar="N", help="Number of processes that compute the starts. Default: "
              "all cores.")
@click.option("--rehearse", is_flag=True, help="Also identify the parameters from the motion with simulated noise, of this seed, "
              "and print the errors.")
@click.option("-o", "--output", type=click.Path(), default="-", help="CSV to write. Default: stdout, without the table.")
@with_console(base_option, ignore_mimic_option, reading_options, strict_option, force_option, json_option)
def excite(robot: str, joints: tuple[str, ...], noise: tuple[str, ...], position: tuple[str, ...],             # noqa: PLR0913
           velocity: tuple[str, ...], acceleration: tuple[str, ...], torque: tuple[str, ...], floor: float | None,
           space: tuple[str, ...], start: tuple[str, ...], rehearse: bool, output: str, base: Base | None, ignore_mimic: bool,
           reading: ReadingOptions, strict: bool, force: bool, as_json: bool, console: Console, **options: Any) -> None:
    """Plan a motion of ROBOT from which its base parameters can be identified as well as its limits allow, and print the standard
    deviation of each parameter before anything is measured.

    The motion is periodic, and starts and ends at rest. Self-collision and the surroundings are considered with --self-distance,
    --floor and --space only. Replay the motion before it is used.

    \b
    Examples:
      liedyn excite robots/ur5.yaml -o excite.csv
      liedyn excite robots/ur5.yaml --duration 20 --period 10 --velocity 2 \\
          --position elbow_joint=-2,2 --noise 0.5 -o excite.csv --force
      liedyn excite robots/ur5.yaml --self-distance 0.02 --floor 0.01 \\
          -o above.csv
      liedyn excite robots/ur5.yaml --kind splines --from elbow_joint=1 \\
          -o from_rest.csv
      liedyn excite robots/ur5.yaml --rehearse -o rehearsed.csv
      liedyn replay excite.csv
    """
    from liedyn.io.atomic_output import check_output

    if as_json and output == "-":
        raise click.UsageError("--json and a CSV cannot both go to stdout; name a file with -o.")
    if rehearse and output == "-":
        raise click.UsageError("--rehearse prints a table; name a file for the CSV with -o.")
    if "none" in joints and len(joints) > 1:
        raise click.UsageError("--with none cannot be combined with another --with.")

    def read() -> Model:
        from liedyn.robot_files import read_model
        return read_model(robot, base=base, strict=strict, ignore_mimic=ignore_mimic, **reading)

    with arguments_first(read):
        check_output(output, force=force)

    from liedyn.analysis.excitation import excitation_of_texts
    from liedyn.report.result_summary import excitation_text, excitation_to_dict

    model = read()
    console.robot(model)
    kinds = tuple(kind for kind in joints if kind != "none") if joints else None
    with console.progress.stage("optimizing the motion"), console.issued_warnings():
        motion = excitation_of_texts(model, {"noise": noise, "position": position, "velocity": velocity,
                                             "acceleration": acceleration, "torque": torque,
                                             "space": (*space, *([] if floor is None else [f"z={floor},inf"]))},
                                     start, joints=kinds, **options)
    fit = None
    if rehearse:
        with console.progress.stage("identifying from simulated noise"):
            fit = motion.rehearse(options["seed"])
        console.warn(*fit.warnings)
    rows = save_planned(motion.trajectory(), output, reading, ignore_mimic=ignore_mimic, force=force)
    console.message(motion.summary)
    if as_json:
        console.result_json(excitation_to_dict(motion, fit) | {"output": output})
    elif output != "-" and not console.quiet:
        console.result(excitation_text(motion, fit, whole=console.verbose))
    console.file(output, rows)


def save_planned(trajectory: Trajectory, output: str, reading: ReadingOptions, *, ignore_mimic: bool, force: bool) -> str:
    """Write a planned motion, with comments that name the robot and how it was read. Return its numbers of columns and rows."""
    from liedyn.analysis.recorded_robot import MIMIC_IGNORED, options_comment
    comments = options_comment(reading, Path() if output == "-" else Path(output).absolute().parent)
    if ignore_mimic:
        comments["mimic"] = MIMIC_IGNORED
    replace(trajectory, header=trajectory.header | comments, model="").save(output, force=force)   # the comments name the robot
    return f"{len(trajectory.columns)} columns, {len(trajectory)} rows"


# template ---------------------------------------------------------------------------------------------------------------

@click.command(short_help="Write a commented scenario, robot, loops, sweep or columns file with all keys.")
@file_kind_argument
@with_console(text_output_option, force_option)
def template(kind: str, output: str, force: bool, console: Console) -> None:
    """Write a commented YAML file with all keys of a scenario, robot, loops or sweep file, or of a map of columns.

    Without the comments, it is a complete file: the robot is an arm with two joints, and the scenario moves it.

    \b
    Examples:
      liedyn template robot -o robot.yaml
      liedyn template scenario -o swing.yaml
      liedyn simulate swing.yaml
    """
    from liedyn.io.schema_export import template_text

    console.write_text(output, template_text(kind), force=force)


# schema -----------------------------------------------------------------------------------------------------------------

@click.command(short_help="Write the JSON schema of scenario, robot, loops, sweep or columns files.")
@file_kind_argument
@with_console(text_output_option, force_option)
def schema(kind: str, output: str, force: bool, console: Console) -> None:
    """Write the JSON schema (draft 2020-12) of scenario, robot, loops, sweep or columns files.

    Editors use it to complete and check them.

    \b
    Examples:
      liedyn schema scenario -o scenario.schema.json

    A file uses the schema if this is its first line:

    \b
      # yaml-language-server: $schema=scenario.schema.json
    """
    from liedyn.io.schema_export import schema_text

    console.write_text(output, schema_text(kind), force=force)


# warmup -----------------------------------------------------------------------------------------------------------------

GROUPS = ("dynamics", "simulate", "derivatives", "higher-order", "parameters", "loops", "all")


@click.command(short_help="Compile functions in advance.")
@click.argument("robot", type=FILE, required=False)
@click.option("-w", "--what", multiple=True, type=click.Choice(GROUPS), help="Group of functions to compile; may be repeated. "
              "Default: dynamics and simulate, and loops if ROBOT has loops.")
@with_console(reading_options, json_option)
def warmup(robot: str | None, what: tuple[str, ...], reading: ReadingOptions, as_json: bool, console: Console) -> None:
    """Compile functions for this processor and store the code in the cache. Later runs load it instead of compiling: in container
    images, in CI, in a demonstration.

    Most of the code is the same for all robots. The environment variable LIEDYN_CACHE_DIR selects the folder of the cache.

    \b
    Examples:
      liedyn warmup
      liedyn warmup robots/four_bar.yaml
      liedyn warmup --what all --json
    """
    from liedyn.robot_files import read_model
    from liedyn.simulation import compile_ahead

    model = read_model(robot, **reading) if robot is not None else None
    report = compile_ahead.warmup(what or None, robot=model, progress=console.progress)
    if as_json:
        console.result_json(report.plain())
    for step in report.steps:
        console.detail(f"{step.seconds:6.1f} s  {step.function} ({step.group})")
    console.message(report.summary)
