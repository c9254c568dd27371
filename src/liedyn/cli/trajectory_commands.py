"""Commands along a trajectory: `inverse`, `forward`, `hybrid`, `kinematics`, `derivatives`; `parameters` and `identify`."""
from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from liedyn.cli.console import Console, Progress, arguments_first, with_console
from liedyn.cli.options import (
    TRAJECTORY,
    RangeOr,
    along_command,
    bag_options,
    base_option,
    columns_option,
    force_option,
    ignore_mimic_option,
    json_option,
    order_option,
    reading_options,
    robot_argument,
    seconds_or,
    smooth_option,
    strict_option,
    with_options,
)

if TYPE_CHECKING:                       # they import NumPy and Numba
    from liedyn.analysis.recorded_motion import CompletedTrajectory
    from liedyn.arrays import Base, Criterion, Frame
    from liedyn.io.ros_bag import BagOptions
    from liedyn.io.trajectory_csv import Trajectory
    from liedyn.model.model import Model
    from liedyn.robot_files import ReadingOptions


def _check_actuated(model: Model, actuated: tuple[str, ...], **_: Any) -> None:
    from liedyn.simulation.name_binding import joint_coordinates
    joint_coordinates(model, actuated)


@along_command(
    "Compute generalized forces along a trajectory (inverse dynamics).",
    click.option("-a", "--actuated", multiple=True, metavar="PATTERN", help="For a robot with loops: actuated joints, a "
                 "name or a pattern; may be repeated. Default: those of the robot file, else those with a column tau in "
                 "TRAJECTORY."),
    click.option("--criterion", type=click.Choice(["unique", "least_torque", "least_constraint_force"]), default="unique",
                 show_default=True, help="For a robot with loops and redundant actuation: criterion that selects the forces."),
    click.option("--wrenches", type=click.Choice(["world", "link", "joint"]), help="Also write the wrenches that joints "
                 "(also fixed ones) and loops transmit, in axes of the world, the child link or the joint's frame."),
    order_option, smooth_option, check=_check_actuated)
def inverse(model: Model, motion: Trajectory, actuated: tuple[str, ...], criterion: Criterion, wrenches: str | None, order: int,
            smooth: float | str | None, progress: Progress) -> CompletedTrajectory:
    """Compute the generalized forces along TRAJECTORY, a CSV or ROS bag of q and, optionally, v and a.

    Columns are matched by name (q.elbow[rad], v.elbow[rad/s], …), in any order. Missing v and a are computed from q. With
    --order 2, the result also has the time derivatives d1tau.elbow[N m/s] and d2tau.elbow[N m/s^2]. They are computed from
    columns d1a.elbow[rad/s^3] and d2a.elbow[rad/s^4], or from splines whose error is estimated.

    \b
    Examples:
      liedyn inverse runs/panda_hybrid/trajectory.csv
          # writes runs/panda_hybrid/trajectory_inverse.csv
      liedyn inverse motion.csv --robot arm.urdf -o - | head
      liedyn inverse motion.csv --robot arm.urdf --order 2 --smooth auto
      liedyn inverse bag/ --topic /joint_states --robot arm.urdf
      liedyn inverse runs/four_bar/trajectory.csv --wrenches world
      liedyn inverse runs/five_bar_redundant/trajectory.csv \\
          --criterion least_torque
    """
    from liedyn.analysis.trajectory_dynamics import dynamics_along
    return dynamics_along(model, motion, "inverse", actuated=actuated, criterion=criterion, order=order, smooth=smooth,
                          wrenches=wrenches, progress=progress)


# forward ----------------------------------------------------------------------------------------------------------------

@along_command("Compute joint accelerations along a trajectory.", order_option, smooth_option)
def forward(model: Model, motion: Trajectory, order: int, smooth: float | str | None, progress: Progress) -> CompletedTrajectory:
    """Compute the joint accelerations for the state and forces in each row of TRAJECTORY, a CSV of q, v and tau.

    Nothing is integrated; to simulate a motion, see `liedyn simulate`. With --order 2, the result also has the time derivatives
    d1a.elbow and d2a.elbow. They are computed from columns d1tau.elbow and d2tau.elbow, or from splines whose error is
    estimated.

    \b
    Examples:
      liedyn forward runs/panda_hybrid/trajectory.csv
          # writes runs/panda_hybrid/trajectory_forward.csv
      liedyn forward motion_inverse.csv --order 2
    """
    from liedyn.analysis.trajectory_dynamics import dynamics_along
    return dynamics_along(model, motion, "forward", order=order, smooth=smooth, progress=progress)


# hybrid -----------------------------------------------------------------------------------------------------------------

def _check_prescribed(model: Model, prescribed: tuple[str, ...], **_: Any) -> None:
    from liedyn.simulation.name_binding import joint_coordinates
    joint_coordinates(model, prescribed)


@along_command(
    "Compute hybrid dynamics along a trajectory.",
    click.option("-p", "--prescribed", multiple=True, required=True, metavar="PATTERN",
                 help="Joints whose acceleration is prescribed, a name or a pattern such as 'leg_*'; may be repeated."),
    order_option, smooth_option, check=_check_prescribed)
def hybrid(model: Model, motion: Trajectory, prescribed: tuple[str, ...], order: int, smooth: float | str | None,
           progress: Progress) -> CompletedTrajectory:
    """Compute hybrid dynamics along TRAJECTORY: the forces of prescribed joints and the accelerations of all others.

    Prescribed joints need columns a (or q or v, from which a is computed), all others need tau. With --order 2, the result also
    has the first two time derivatives. They are computed from columns d1a.elbow, d2a.elbow and d1tau.knee, d2tau.knee, or from
    splines whose error is estimated.

    \b
    Examples:
      liedyn hybrid motion.csv --prescribed 'panda_joint[1-4]' \\
          --prescribed '*finger*'
          # writes motion_hybrid.csv
      liedyn hybrid motion.csv --prescribed 'base' --order 2
    """
    from liedyn.analysis.trajectory_dynamics import dynamics_along
    return dynamics_along(model, motion, "hybrid", prescribed, order=order, smooth=smooth, progress=progress)


# kinematics -------------------------------------------------------------------------------------------------------------

def _check_kinematics(model: Model, links: tuple[str, ...], **values: Any) -> None:
    from liedyn.analysis.trajectory_kinematics import kinematics_request
    kinematics_request(model, links, **values)


@along_command(
    "Compute the motion of links along a trajectory.",
    click.option("-l", "--link", "links", multiple=True, metavar="PATTERN",
                 help="Link, or pattern of links; may be repeated."),
    click.option("--point", type=float, nargs=3, metavar="X Y Z",
                 help="Point of the link, in link axes [m]. Default: its origin."),
    click.option("--frame", type=click.Choice(["local", "local_world_aligned", "world"]), default="local_world_aligned",
                 show_default=True, help="Frame of twist, acceleration and Jacobian: link axes, about the point; world axes, "
                 "about the point; world axes, about the world's origin."),
    click.option("--jacobian", is_flag=True, help="Also write the Jacobian and the manipulability."),
    click.option("--com", is_flag=True, help="Write the centre of mass, its velocity and acceleration."),
    click.option("--momentum", is_flag=True,
                 help="Write the linear momentum, and the angular momentum about the centre of mass."),
    click.option("--zmp", is_flag=True, help="Write the zero-moment point (of gravity and inertia) on the plane z = 0."),
    check=_check_kinematics)
def kinematics(model: Model, motion: Trajectory, links: tuple[str, ...], point: tuple[float, float, float] | None,  # noqa: PLR0913
               frame: Frame, jacobian: bool, com: bool, momentum: bool, zmp: bool,
               progress: Progress) -> CompletedTrajectory:              # noqa: ARG001 - every function gets it
    """Compute poses, twists and accelerations of links along TRAJECTORY, a CSV of q and, optionally, v and a.

    Columns are pose.hand.px[m], twist.hand.vx[m/s], speed.hand[m/s], acceleration.hand.vx[m/s^2], …; with --jacobian also
    jacobian.hand.vx/elbow[m/rad], … Missing v and a are computed from q. `liedyn plot` draws the result.

    \b
    Examples:
      liedyn kinematics runs/panda_hybrid/trajectory.csv --link panda_hand \\
          --jacobian
          # writes runs/panda_hybrid/trajectory_kinematics.csv
      liedyn kinematics motion.csv --robot arm.urdf --link hand \\
          --point 0 0 0.1 --frame local
      liedyn kinematics runs/quadruped_walks/trajectory.csv --link '*_foot' \\
          --com --momentum --zmp
    """
    from liedyn.analysis.trajectory_kinematics import kinematics_along
    return kinematics_along(model, motion, links, point=point, frame=frame, jacobian=jacobian, com=com, momentum=momentum,
                            zmp=zmp)


# derivatives ------------------------------------------------------------------------------------------------------------

def _check_derivatives(model: Model, function: str, prescribed: tuple[str, ...], variables: tuple[str, ...],
                       joints: tuple[str, ...], **_: Any) -> None:
    from liedyn.analysis.trajectory_derivatives import derivative_request
    derivative_request(model, function, prescribed, variables, joints)


@along_command(
    "Compute derivatives of the dynamics along a trajectory.",
    click.option("--function", type=click.Choice(["inverse", "forward", "hybrid"]), default="inverse", show_default=True,
                 help="Function to differentiate: generalized forces (inverse), accelerations (forward), or hybrid dynamics."),
    click.option("-p", "--prescribed", multiple=True, metavar="PATTERN",
                 help="With --function hybrid: joints whose acceleration is prescribed; may be repeated."),
    click.option("--wrt", "variables", multiple=True, metavar="PATTERN",
                 help="Variables with respect to which to differentiate, such as 'q.*', v.elbow, mass.hand, 'com.hand.*', "
                 "'origin.elbow.*', gravity.z; may be repeated. Default: q, v and the input (a or tau) of all coordinates."),
    click.option("--joint", "joints", multiple=True, metavar="PATTERN",
                 help="Joints whose force or acceleration is differentiated; may be repeated. Default: all."),
    click.option("--verify", is_flag=True,
                 help="Compare some rows with extrapolated finite differences; exit status 4 if they differ."),
    check=_check_derivatives)
def derivatives(model: Model, motion: Trajectory, function: str, prescribed: tuple[str, ...], variables: tuple[str, ...],
                joints: tuple[str, ...], verify: bool, progress: Progress) -> CompletedTrajectory:
    """Compute derivatives of the dynamics along TRAJECTORY, one column each, such as dtau.elbow/dq.shoulder.

    Derivatives of ball and free joints are with respect to small rotations and translations along the body axes
    (q.base.wx, …).

    \b
    Examples:
      liedyn derivatives runs/ur5_excite/trajectory.csv \\
          --joint wrist_1_joint --wrt 'mass.*' --wrt 'friction.*'
          # writes runs/ur5_excite/trajectory_derivatives.csv
      liedyn derivatives motion.csv --function forward --joint elbow \\
          --wrt 'mass.*' --wrt 'com.hand.*' --verify
    """
    from liedyn.analysis.trajectory_derivatives import derivatives_along
    return derivatives_along(model, motion, of=function, prescribed=prescribed, by=variables, joints=joints, verify=verify,
                             progress=progress)


# parameters -------------------------------------------------------------------------------------------------------------

def _fit_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options for recordings and for the parameters to estimate."""
    return with_options(bag_options(with_options(command, _FIT_OPTIONS)), (columns_option,))


_FIT_OPTIONS = (
    click.option("--smooth", type=seconds_or("auto", "none"), metavar="auto|SECONDS|none",
                 help="Knot spacing of the least-squares splines that give v and a if a recording has none. Default: auto, the "
                      "spacing with the smallest estimated error. none: splines through every row."),
    click.option("--with", "joints", multiple=True, type=click.Choice(["armature", "damping", "friction", "stiffness", "none"]),
                 help="Joint parameters to include; may be repeated. Others keep the values of the robot file. Default: those "
                      "that the robot file has."),
    click.option("--offset/--no-offset", default=True, show_default=True,
                 help="Also estimate a constant torque of each joint from recordings."),
    click.option("--fixed", multiple=True, metavar="PARAMETER",
                 help="Keep the value of the robot file, by name or pattern, such as damping.elbow or '*.hand'; may be "
                      "repeated."),
    click.option("--zero-offset", "zero_offsets", multiple=True, metavar="JOINT",
                 help="Also estimate the zero offsets of the encoders of these joints, by name or pattern; may be repeated."),
    click.option("--torque-scale", "torque_scales", multiple=True, metavar="JOINT",
                 help="Also estimate the ratio of the measured to the true torque of these joints, as of a torque constant; may "
                      "be repeated. At least one link or torque must be known."),
    click.option("--stribeck", multiple=True, metavar="JOINT",
                 help="Also estimate by how much the friction of these joints rises at low speed, and the Stribeck speed; may be "
                      "repeated. Their friction must be estimated (--with friction)."),
    click.option("--tolerance", type=click.FloatRange(0, 1, max_open=True), metavar="X",
                 help="Ignore parameters whose effect relative to the strongest one is below X. Default: 1e-10."))


def _check_joints(joints: tuple[str, ...]) -> None:
    if "none" in joints and len(joints) > 1:
        raise click.UsageError("--with none cannot be combined with another --with.")


@click.command(short_help="List the identifiable parameters; estimate them from a recorded motion.")
@robot_argument
@click.option("--from", "trajectory", type=TRAJECTORY, metavar="TRAJECTORY",
              help="Estimate the parameters from this CSV or ROS bag of q and tau (and v and a, if present).")
@_fit_options
@click.option("-o", "--output", type=click.Path(), metavar="FILE",
              help="CSV to write in addition to the table (--quiet omits the table); `-` writes it to stdout instead.")
@with_console(base_option, ignore_mimic_option, reading_options, strict_option, force_option, json_option)
def parameters(robot: str, trajectory: str | None, columns: str | None, bag: BagOptions,                             # noqa: PLR0913
               smooth: float | str | None, joints: tuple[str, ...], offset: bool, fixed: tuple[str, ...],
               zero_offsets: tuple[str, ...], torque_scales: tuple[str, ...], stribeck: tuple[str, ...],
               tolerance: float | None, output: str | None, base: Base | None, ignore_mimic: bool, reading: ReadingOptions,
               strict: bool, force: bool, as_json: bool, console: Console) -> None:
    """List the base parameters of ROBOT: the identifiable combinations of masses, first moments of mass (hx = m c_x) and second
    moments about the link's origin (Ixx, …). With --from, estimate them from a recorded motion.

    \b
    Examples:
      liedyn parameters robots/ur5.yaml
      liedyn simulate configs/ur5_excite.yaml
      liedyn parameters robots/ur5.yaml \\
          --from runs/ur5_excite/trajectory.csv --with friction --with damping
      liedyn parameters arm.urdf --from encoders.csv --smooth 0.2
      liedyn parameters arm.urdf --from encoders.csv --zero-offset 'elbow*'
    """
    from liedyn.io.atomic_output import check_output

    of_recordings = {"--smooth": smooth, "--zero-offset": zero_offsets, "--torque-scale": torque_scales, "--stribeck": stribeck,
                     "--columns": columns, **{f"--{key.replace('_', '-')}": x for key, x in bag.items()}}
    unused = [option.replace("topics", "topic") for option, value in of_recordings.items() if value and trajectory is None]
    if unused:
        raise click.UsageError(f"{unused[0]} requires --from.")
    _check_joints(joints)
    if as_json and output == "-":
        raise click.UsageError("--json and a CSV cannot both be written to stdout; name a file with -o.")

    def check_arguments() -> None:
        from liedyn.analysis.recorded_robot import robot_of
        from liedyn.io.trajectory_csv import read_trajectory
        from liedyn.robot_files import read_model
        if trajectory is None:
            read_model(robot, base=base, strict=strict, ignore_mimic=ignore_mimic, **reading)
        else:
            robot_of(read_trajectory(trajectory, columns=columns, **bag), robot, base=base, strict=strict,
                     ignore_mimic=ignore_mimic, reading=reading)

    if output:
        with arguments_first(check_arguments):
            check_output(output, force=force)

    from liedyn.analysis.identification import parameters_of
    from liedyn.report.result_summary import parameter_text, parameters_to_dict, weak_warnings, write_parameters

    with console.progress.stage("computing"):
        result = parameters_of(robot, trajectory, columns=columns, bag=bag, base=base, strict=strict, ignore_mimic=ignore_mimic,
                               reading=reading, joints=joints, offset=offset, fixed=fixed,
                               zero_offsets=zero_offsets, torque_scales=torque_scales, stribeck=stribeck, smooth=smooth or "auto",
                               tolerance=tolerance)
    console.robot(result.model)
    console.warn(*result.warnings, *weak_warnings(result.base))
    if output:
        write_parameters(output, result.base, result.fit, force=force)
    if as_json:
        console.result_json(parameters_to_dict(result.model, result.base, result.fit))
    elif output != "-" and not (output and console.quiet):
        console.result(parameter_text(result.model, result.base, result.fit, whole=console.verbose))
    if output:
        console.file(output, f"{len(result.base)} base parameters")


@click.command(short_help="Identify a robot from recordings: a robot file with consistent parameters.")
@robot_argument
@click.argument("recordings", nargs=-1, required=True, type=TRAJECTORY)
@click.option("--validate", multiple=True, type=TRAJECTORY, metavar="RECORDING",
              help="Test the parameters on this recording, which is not used for the estimate; may be repeated.")
@click.option("--only", multiple=True, metavar="LINK", help="Estimate the inertia of these links only, such as a payload, by "
              "name or pattern; may be repeated. Others keep the values of the robot file.")
@click.option("--prior-weight", type=RangeOr("auto", 1e-6), default=1.0, show_default=True, metavar="W|auto",
              help="Weight of the robot file: its masses are known to 1/sqrt(W), which is 100 % for 1 and 10 % for 100. auto: "
                   "the weight for which the estimates from the recordings are most likely.")
@click.option("--weight", "weights", multiple=True, metavar="RECORDING=W", help="Factor of the information of a recording, > 0; "
              "may be repeated. Default: 1; each recording counts by its own residual.")
@click.option("--prior", multiple=True, metavar="PARAMETER=VALUE,DEVIATION", help="Known value of a parameter and its standard "
              "deviation, such as mass.hand=0.73,0.01; may be repeated.")
@click.option("--equal", multiple=True, metavar="LINK=OTHER[,AXIS]", help="Links with the same mass, centre and inertia in their "
              "frames, or mirrored along the axis x, y or z; may be repeated.")
@click.option("--total-mass", type=click.FloatRange(0, min_open=True), metavar="KG", help="Mass of the whole robot.")
@_fit_options
@click.option("-o", "--output", type=click.Path(), metavar="FOLDER", help="Folder for the identified robot file, "
              "parameters.json and report.html. Default: the tables are printed only.")
@with_console(base_option, ignore_mimic_option, reading_options, strict_option, force_option, json_option)
def identify(robot: str, recordings: tuple[str, ...], validate: tuple[str, ...], only: tuple[str, ...],              # noqa: PLR0913
             prior_weight: float | str, weights: tuple[str, ...], fixed: tuple[str, ...], prior: tuple[str, ...],
             equal: tuple[str, ...], total_mass: float | None, columns: str | None, bag: BagOptions, smooth: float | str | None,
             joints: tuple[str, ...], offset: bool, zero_offsets: tuple[str, ...], torque_scales: tuple[str, ...],
             stribeck: tuple[str, ...], tolerance: float | None, output: str | None, base: Base | None, ignore_mimic: bool,
             reading: ReadingOptions, strict: bool, force: bool, as_json: bool, console: Console) -> None:
    """Identify the masses, centres of mass, inertias and joint parameters of ROBOT from RECORDINGS of q and tau.

    The first tables are those of `parameters --from`, for each recording. Then all parameters are estimated such that every link
    is a body that can exist. The robot file decides on what the recordings do not determine.

    \b
    Examples:
      liedyn simulate configs/ur5_excite.yaml
      liedyn identify robots/ur5.yaml runs/ur5_excite/trajectory.csv \\
          --with friction --with damping -o runs/ur5_identified
          # writes identified.yaml, parameters.json and report.html
      liedyn identify arm.urdf first.csv second.csv --validate third.csv \\
          -o identified
      liedyn identify arm.urdf with_payload.csv --only hand
      liedyn identify arm.urdf slow.csv --with friction \\
          --stribeck 'wrist*' --prior-weight auto
      liedyn identify arm.urdf first.csv second.csv \\
          --weight second.csv=0.25 --prior mass.hand=0.73,0.01 \\
          --fixed 'damping.*'
    """
    from liedyn.io.atomic_output import check_folder

    _check_joints(joints)
    if output == "-":
        raise click.UsageError("The result is a folder; name one with -o, or use --json for a report on stdout.")

    def check_arguments() -> None:
        from liedyn.analysis.recorded_robot import robot_of
        from liedyn.io.trajectory_csv import read_trajectory
        for path in (*recordings, *validate):
            robot_of(read_trajectory(path, columns=columns, **bag), robot, base=base, strict=strict, ignore_mimic=ignore_mimic,
                     reading=reading)

    if output:
        with arguments_first(check_arguments):
            check_folder(output, mark="parameters.json", force=force)

    from liedyn.analysis.identified_robot import identified_robot
    from liedyn.report.identification_report import identified_text, identified_to_dict, write_identified

    with console.progress.stage("computing"):
        result = identified_robot(robot, recordings, validate=validate, columns=columns, bag=bag, base=base, strict=strict,
                                  ignore_mimic=ignore_mimic, reading=reading, joints=joints, offset=offset,
                                  zero_offsets=zero_offsets, torque_scales=torque_scales, stribeck=stribeck,
                                  smooth=smooth or "auto", tolerance=tolerance, weights=weights, prior_weight=prior_weight,
                                  only=only or None, fixed=fixed, prior=prior, equal=equal, total_mass=total_mass)
    paths, losses = write_identified(result, output, force=force) if output else ([], ())
    console.robot(result.model, paths[0] if paths else "FOLDER/identified.*")
    console.warn(*result.warnings, *losses)
    if as_json or not (output and console.quiet):
        console.report(as_json, identified_to_dict(result), identified_text(result, whole=console.verbose))
    console.files(paths)
