"""Codes of messages: each names one kind of `errors.LiedynWarning`, its level, what it means, and what to do."""
from typing import NamedTuple

WARN = "warning"                         # may make numbers wrong or doubtful, or something was lost: look at it
INFO = "information"                     # a fact that changes no number: there is nothing to do


class MessageCode(NamedTuple):
    """The level of the messages of a code ("warning" or "information"), what they mean, and what to do."""

    level: str
    meaning: str


_TABLE: dict[str, tuple[str, str]] = {
    # robot files
    "invalid-xml": (WARN, "A robot file is not valid XML, but can be read. Correct it, since other programs may reject it."),
    "urdf-not-read": (INFO, "Elements of a URDF that other programs read are ignored, such as `gazebo`. Nothing to do."),
    "shape-left-out": (
        WARN, "A shape of a URDF with an invalid size, scale or pose is ignored: it is not drawn and has no mass. Correct it."),
    "unknown-tag": (INFO, "A tag in a URDF link or joint is not part of URDF and is ignored. Nothing to do."),
    "unknown-attribute": (INFO, "An attribute of a URDF element is not part of URDF and is ignored. Nothing to do."),
    "dynamics-not-read": (
        WARN, "A tag or attribute that is ignored in a URDF resembles one that is read. Correct its name or place."),
    "repeated-tag": (WARN, "A URDF element appears twice, and the first one is used. Remove one of them."),
    "mjcf-not-read": (
        INFO, "Parts of an MJCF file are not read, such as contacts or sensors. A scenario describes contacts and control."),
    "mjcf-left-out": (
        WARN, "Parts of an MJCF file that change the motion are ignored, as requested. Compare the motion with MuJoCo."),
    "mjcf-limits": (
        WARN, "Limits of an MJCF file are ignored, or only the larger of two limits is read. Set limits in a scenario."),
    "mjcf-friction": (
        WARN, "`frictionloss` of an MJCF file is read as smooth friction. Compare the motion of joints that come to rest."),
    "inertia-from-meshes": (
        INFO, "Links without an inertia have that of their shapes, as requested. Compare the masses with the data sheet."),
    "mesh-not-closed": (
        WARN, "The surface of a mesh is not closed, and its convex hull gives the inertia. Close it, or write an `inertial`."),
    "loops-unused": (WARN, "`loops.yaml` next to a URDF does not name this robot and is ignored. Give it the key `robot`."),
    "triangle-inequality": (
        WARN, "A principal inertia exceeds the sum of the other two, which is physically impossible. Correct the inertia."),
    "negative-inertia": (
        WARN, "The inertia of a welded link is not positive semidefinite, but that of the combined body is. Correct it."),
    "inertia-far-off": (WARN, "The inertia of a body is implausible for its mass. Check its units."),
    "point-mass": (WARN, "A body that can turn has mass and no rotational inertia. Give it an inertia."),
    "no-inertia": (
        WARN, "A joint moves no inertia, so its torque does not determine its acceleration. Prescribe its motion, or give the "
        "link inertia."),
    "limits-missing": (WARN, "A revolute or prismatic joint has no position limits. Give it limits, or make it continuous."),
    "limits-zero-range": (WARN, "The lower and upper limit of a joint are equal. Correct the limits, or make the joint fixed."),
    "limits-raised": (
        WARN, "Limits of a planned motion exceed those of the robot file. Correct the file, or reduce the limits."),
    "limits-negative": (WARN, "A velocity or effort limit is negative. Give a positive limit."),
    "limits-units": (WARN, "A limit of a revolute joint spans several turns and seems to be in degrees. Write it in radians."),
    "lengths-units": (WARN, "A joint is more than 100 m from its parent: lengths seem to be in mm. Write them in metres."),
    "axis-missing": (WARN, "A URDF axis has no `xyz`; the default 1 0 0 is used. Write the axis."),
    "axis-not-unit": (WARN, "An axis does not have unit length and was scaled. Check that the direction is right."),
    "coupling-beyond-table": (
        WARN, "The driver of a coupling may leave the range of its table. Extend the table, or give the driver limits."),
    "table-units": (
        WARN, "A table of a coupling or of a scenario seems to be in degrees or mm. Give its columns units, or convert it."),
    "couplings-fix-joints": (
        WARN, "Couplings together fix joints. If they are meant to be equivalent, give them the same coefficients."),
    "mimic": (WARN, "A joint mimics a joint that does not exist; it moves independently. Correct the name."),
    "singular-at-zero": (
        WARN, "A joint is singular at zero, the default initial position. Choose another initial position, or other axes."),
    "gravity-of-part": (
        WARN, "The gravity of an included or attached robot is ignored. Set `gravity` in the file of the whole robot."),
    "robot-warnings": (WARN, "A robot file has warnings. `model.warnings` and `liedyn check` list them."),
    "written-differently": (
        INFO, "A robot was saved in an equivalent form, because the format lacks the original one. Nothing to do."),
    "inputs-not-written": (WARN, "A file of gains lacks inputs of the motion. Give them in the scenario, too."),
    "not-written": (WARN, "The format cannot express a part of the robot that was saved. Use robot YAML to keep everything."),
    # scenarios
    "override-replaces": (WARN, "An override removes another key of the scenario. Check that this is intended."),
    "no-effect": (WARN, "A key of the scenario has no effect. Remove it, or correct what it refers to."),
    "quaternion-scaled": (WARN, "A quaternion was scaled to unit norm. Write it with more digits."),
    "angles-unwrapped": (WARN, "Angles that jump by 2 pi were made continuous. Check that the joint turns as intended."),
    "many-switches": (WARN, "A signal switches at more times than can be located. Use a smoother expression."),
    "gravity-twice": (WARN, "The gravity of joints is compensated twice. Remove `gravity: true`, or choose another law."),
    "joint-without-motor": (
        WARN, "A law actuates joints that `actuated` of the robot file does not list. Choose other joints, or add them to "
        "`actuated`."),
    "passive-torque": (
        INFO, "A torque acts on a joint that `actuated` of the robot file does not list, such as a disturbance. Nothing to do."),
    "observer-unstable": (
        WARN, "The estimate of an observer diverges from the state. Use the gain of `system.lqe(W, V, step)` with the period of "
        "the samples."),
    "setpoint-not-at-rest": (WARN, "The setpoint of a control law is not an equilibrium. Use `ld.find_equilibrium`."),
    "motion-not-smooth": (WARN, "A motion jumps in a derivative that the elastic joints need. Use a smoother motion."),
    "deep-contact": (
        WARN, "The initial penetration of a contact causes a force far above the weight of the robot. Start higher, or use a "
        "larger `contacts.sink`."),
    "started-within-limits": (
        INFO, "Joints start within their limits, since zero is outside them. Set `initial` to choose the positions."),
    "initial-state-open": (
        WARN, "The initial state violates the constraints. Use `ld.assemble`, or `initial.assemble: true`."),
    "initial-state-projected": (
        WARN, "Given initial values were changed because they violate the constraints. Give fewer values, or consistent ones."),
    "initial-state-rounded": (
        INFO, "Given initial values were changed by less than 0.001 to satisfy the constraints. Nothing to do."),
    "changes-not-continued": (
        WARN, "The run of `initial.from` ends with attached bodies or locked joints, and this run starts without them. Add the "
        "bodies, or lock the joints by an event at 0."),
    "stiff-integrator": (
        WARN, "Forces are too stiff for the default integrator; an implicit one is used. See `integrator.method`."),
    "laws-sampled": (WARN, "Control laws are sampled at the rate of the rows of `tau`. Check that this is intended."),
    # events
    "unreachable-phase": (WARN, "No event enters a phase. Add an event, or remove the phase."),
    "event-after-end": (WARN, "Events are due after the end of the run and do not happen. Increase the duration."),
    "event-never-happened": (WARN, "Events with `when` did not happen in the run. Check their expressions."),
    "event-without-side": (
        WARN, "An event without a direction starts at its value at rest, so its impact has no effect. Give a direction."),
    "event-within-step": (
        WARN, "A rollout may miss an event that occurs and ends within a step. Use a shorter `dt`, or `ld.simulate`."),
    "stop-passed": (WARN, "A joint passes a moving stop in spite of an impact. Use a contact, or the relative velocity."),
    "impacts-ended": (INFO, "Repeated impacts ended, and the coordinate stays at the stop. Nothing to do."),
    # self-check of a run
    "nothing-moves": (INFO, "A robot starts at rest in an equilibrium, and no force acts. Set `initial`, a motion or a torque."),
    "stiff-step": (
        WARN, "The step is too long for stiff forces: the motion is not reliable. Shorten it, or use another integrator."),
    "switches-in-steps": (
        WARN, "A step in another language evaluates switches, such as limits of forces, and does not locate them. Shorten it."),
    "live-steps": (
        INFO, "A live page integrates with `rk4`, not the scenario's method. Name `rk4` in the scenario to choose its step."),
    "unresolved-force": (
        WARN, "A force changes over a range of velocities that `integrator.atol` does not resolve. Use a smaller `atol`."),
    "energy-balance": (WARN, "The error of the energy balance is large. Use a shorter step or another integrator."),
    "quaternion-norm": (WARN, "Quaternions of a run are not of unit norm. Use a shorter step."),
    "ill-conditioned": (WARN, "Inverse dynamics does not reproduce the applied forces. Check the inertias of light bodies."),
    "constraint-residual": (WARN, "Residuals of constraints are large. Use `constraints.stabilization: projection`."),
    "singular-configuration": (
        WARN, "A mechanism reaches a singular configuration, where its motion may branch. Avoid this configuration."),
    "singular-state": (
        WARN, "Constraints are linearly dependent in a state, which has more degrees of freedom. See `ld.mobility`."),
    "constraint-not-met": (
        WARN, "Accelerations miss a constraint because q or v violate it. Use `ld.project_configuration` first."),
    "motion-jumps": (WARN, "A prescribed motion jumps, and no impulse acts. Use waypoints or a smooth expression."),
    "chattering": (WARN, "A signal switches too often, and the integration is of first order. Smooth the signal."),
    "solver-warning": (WARN, "SciPy issued a warning during the integration. Read it, or use another integrator."),
    "beyond-limits": (
        WARN, "Position, velocity, effort or thrust limits are exceeded. Set `limits` or `saturate` to make them act."),
    "stop-yields": (WARN, "A compliant stop deflects more than under the load of the joint. Use a larger `limits.stiffness`."),
    "force-limited": (WARN, "A joint torque, force or thrust reached its limit. Check that the limited motion is intended."),
    "motor-limited": (WARN, "A motor reached its torque-speed curve. Check that the limited motion is intended."),
    "motor-overheated": (WARN, "A motor exceeds the load that it can hold without end. Lower its torque, or shorten the duty."),
    "motor-beyond-map": (WARN, "A motor leaves its map of losses, whose last values are used. Extend the map."),
    "motor-energy-inaccurate": (
        WARN, "Energies of motors from the rows of the result are inaccurate. Use a shorter `output_step`."),
    "motor-exceeded": (WARN, "A prescribed motion requires more torque than the curve of its motor allows. Use a slower motion."),
    "task-singular": (
        WARN, "The link of a task-space law is close to a singular configuration, and the law is damped. Move the target."),
    "estimate-inconsistent": (
        WARN, "Adapted parameters belong to no body, as a negative mass. Use smaller steps, or a smaller `adaptation_gain`."),
    "lyapunov-increase": (
        INFO, "The Lyapunov function of `slotine_li` increases: fixed parameters of the law differ from the robot, forces are at "
              "limits, or other forces act. Adapt more parameters."),
    "friction-creep": (WARN, "Smoothed friction lets joints creep at rest. Lock the joint to hold it."),
    "slow-friction": (WARN, "Joints move so slowly that smoothed friction acts as damping. Use `passive: false` to omit it."),
    "linearized-friction": (WARN, "Friction near rest is linearized as a strong damper. Use `passive: false` to omit it."),
    "damping-undirected": (
        WARN, "The ends of a damped force element coincide, so that its damping has no direction. Choose another configuration."),
    "friction-regularized": (
        WARN, "Friction that holds in runs is smoothed in functions of a state, and zero at rest. Add it to the forces there."),
    "friction-law": (WARN, "Friction that holds contradicts its law in a run, which energies do not show. Use smaller steps or "
                     "tolerances, or another integrator."),
    "friction-sticks": (
        WARN, "A joint that friction holds at rest does not move in a linear system. Linearize where it slides, or without "
        "friction."),
    "friction-not-unique": (
        INFO, "Joints with rigid friction hold each other at rest. The motion is unique, but not the friction of each joint."),
    "modes-hidden": (
        WARN, "Rates of a linear system are so far apart that slow poles are rounding errors. Use less damping, or lock joints."),
    "gain-inaccurate": (
        WARN, "Rates of poles are so far apart that the gain of a regulator or filter is inaccurate. Use less damping."),
    "contacts-unstretched": (
        WARN, "A rollout continues another one, but contacts that stick begin without friction. Compute the motion in one "
        "rollout."),
    # inverse kinematics
    "target-missed": (
        WARN, "A target of inverse kinematics is not reached. The result is the nearest configuration that was found."),
    "path-jumps": (
        WARN, "A joint moves far between two targets of a path. Add targets between them; check for singular configurations."),
    # equilibria and linear systems
    "equilibrium-far": (
        WARN, "The equilibrium was found from another guess, and closer ones may exist. Give a better guess."),
    "equilibrium-moving": (WARN, "A prescribed motion is not at rest at the equilibrium. Choose another time."),
    "equilibrium-of-instant": (
        WARN, "Forces depend on time, and the equilibrium is that of one instant. Choose the time with `at`."),
    "after-events": (
        WARN, "The linearized system is the one after events of the run. Check its phase, locked joints and attached bodies."),
    # recorded motions
    "model-missing": (
        WARN, "The model that a file was recorded with is missing. Check that the robot file used instead is the same."),
    "robot-changed": (WARN, "The robot file differs from that of the recording. Check that it is the right file."),
    "gravity-differs": (WARN, "The gravity of the recording replaces that of the model. Check that this is intended."),
    "mimic-ignored": (
        WARN, "The recording leaves mimic joints and couplings out, so its forces are those of the robot without them. Check "
        "that this is intended."),
    "armature-differs": (WARN, "The armatures of the recording replace those of the model. Check that this is intended."),
    "unknown-columns": (WARN, "Columns match nothing of the robot and are ignored. Correct their names."),
    "columns-mapped": (
        INFO, "A column map gives columns their names and units; columns without an entry are ignored. Nothing to do."),
    "attached-bodies": (WARN, "Bodies that were attached in the recording are not in the model. Add them to the robot file."),
    "topics-not-read": (INFO, "A ROS bag has other topics that could be read. `--topic` names all topics to read."),
    "incomplete-topic": (
        WARN, "Velocities or efforts of joints are missing, in some or all messages, and are not read. Log them all."),
    "log-times": (WARN, "Stamps of a ROS bag are not positive: times of the recorder are used. Set stamps in the publisher."),
    "repeated-messages": (WARN, "Repeated messages of a ROS bag are not read. Record each topic once."),
    "rows-omitted": (INFO, "Messages of a ROS bag outside of the common time of its topics are not read. Nothing to do."),
    "rows-left-out": (
        INFO, "Rows of a file with the comment `missing` lack a value of the motion and are left out. Nothing to do."),
    "interpolated": (WARN, "Topics of a ROS bag with other times were interpolated. Compare their rates with the motion."),
    "time-gaps": (
        WARN, "Messages of a ROS bag or rows are missing. Do not rely on derived velocities and accelerations near a gap."),
    "time-jitter": (WARN, "Messages of a ROS bag have irregular times. Check that stamps are those of the measurement."),
    "clock-jump": (WARN, "Stamps of a ROS bag jump, but the times of the recorder do not. Cut the bag there."),
    "other-base-frame": (
        WARN, "A ROS bag contains the motion of another frame than the base link. Choose the frame with `--base-frame`."),
    "degrees": (WARN, "Angles seem to be in degrees. Give the unit with `--columns`."),
    "torques-compared": (
        INFO, "The differences between measured and computed torques. The result contains the measured ones in the columns "
        "`measured`."),
    "torque-scale": (WARN, "Measured torques are those of the robot file times a factor. Check their signs and units."),
    "time-unit": (WARN, "Times seem to be in ms, us or ns. Give the unit with `--columns`, such as `t=stamp[ms]`."),
    "contradicting-rates": (WARN, "A column is not the rate of another one. Check units and signs, or omit it."),
    "derived-motion": (WARN, "Velocities or accelerations were derived from the positions. Read the estimated error."),
    "position-noise": (INFO, "The noise of the positions from which rates were derived. Compare it with that of the sensor."),
    "forces-filtered": (INFO, "Forces are filtered like the positions, and rows at the ends are omitted. Nothing to do."),
    "estimated-error": (WARN, "The estimated error that derived columns cause. Compare it with the accuracy that you need."),
    "negligible-error": (INFO, "The estimated error that derived columns cause is at most 0.1 %. Nothing to do."),
    "not-reliable": (WARN, "Results are not reliable, for the reason in the message. Use smoothing, or measured derivatives."),
    "smoothing-unused": (WARN, "The smoothing has no effect. Omit the option, or use a larger value."),
    "smoothing-too-strong": (WARN, "The smoothing removes more than noise. Use a smaller value, or `auto`."),
    "event-rows-omitted": (INFO, "The motion jumps at events, and the second of two rows at one time is omitted. Nothing to do."),
    "actuated-joints": (
        WARN, "Forces in the trajectory determine which joints are actuated, or contradict the robot file. Use `--actuated`."),
    "moved-onto-constraints": (
        WARN, "Positions, velocities or accelerations were projected onto the constraints. Check that the change is small."),
    "zmp-undefined": (WARN, "The zero-moment point is not defined in rows without a vertical force. Their cells are empty."),
    "no-manipulability": (INFO, "The manipulability of robots with constraints is not computed. Nothing to do."),
    "many-columns": (WARN, "The result has many columns. Choose among them with `--wrt` and `--joint`."),
    "compared": (INFO, "The maximum difference of derivatives from finite differences (`--verify`). Nothing to do."),
    # identification
    "outliers": (WARN, "Single rows of a recording differ from both neighbours. Omit them, or repair the sensor."),
    "position-jumps": (WARN, "Recorded positions jump between two rows. Check for missing rows, and the encoder."),
    "coarse-positions": (
        WARN, "Recorded positions have a coarse resolution: most change by at most one step from row to row. Record at a lower "
        "rate, or with a finer encoder."),
    "joints-at-rest": (
        WARN, "Joints do not move in a recording that does not determine all parameters. Move them, or fix them in the robot "
        "file."),
    "short-recording": (WARN, "A recording has few rows for the number of parameters. Record for longer, or at a higher rate."),
    "constant-positions": (
        WARN, "The model does not explain the torques, and a recorded position is constant while other joints move. Check the "
        "encoder."),
    "saturated-torques": (
        WARN, "The model does not explain the torques, and a recorded torque stays at its extreme. Check the range of the sensor "
        "and of the motor."),
    "suspected-columns": (
        WARN, "The model explains the torques much better if columns are swapped, or with another sign, unit, delay or gravity. "
        "Check these columns."),
    "not-physical": (WARN, "Estimated parameters have physically impossible values. Check signs of torques, axes and gravity."),
    "unlike-robot-file": (
        WARN, "Estimates differ from the robot file by their sign or by one factor. Check signs and units of torques."),
    "unexplained-torques": (
        WARN, "The model does not explain the measured torques. Estimate more parameters, or check the recording."),
    "coloured-residuals": (INFO, "Residuals are not white, and the deviations count fewer samples. Nothing to do."),
    "force-not-measured": (
        WARN, "Measured forces of joints are missing, or are constants that do not fit the motion, and their equations are "
        "omitted. Log them, or name the motors by `actuated`."),
    "not-excited": (
        WARN, "The motion does not excite parameters, which keep their values from the robot file. Use a richer motion."),
    "always-near": (
        WARN, "The spheres of links are nearer to each other or to a plane than a distance limit in all random postures, so that "
        "it does not apply to them: they may touch. Reduce the limit."),
    "no-shape": (
        WARN, "Links have no primitive shapes, so their distances are not limited. Give them `shapes` in the robot file."),
    "not-separable": (
        WARN, "The motion determines only combinations of parameters. Use a richer motion, or a robot "
        "file in which the joints at rest are fixed."),
    "zero-offset-not-identifiable": (
        WARN, "The recording does not determine zero offsets of encoders, which are assumed to be right. Estimate those of other "
        "joints only, or measure them at a reference pose."),
    "stribeck-not-identifiable": (
        WARN, "The recording does not determine Stribeck friction, whose level is assumed to be constant. Move the joints slowly "
        "in both directions."),
    "links-without-prior": (
        WARN, "Links without mass in the robot file keep their values. Give them a mass and an inertia to estimate them."),
    "prior-contradicts-recordings": (
        WARN, "Recordings contradict the robot file, which moves estimates by more than their deviation. Lower `prior_weight`."),
    "total-mass-contradicted": (
        WARN, "The total mass of the robot contradicts the recordings and the robot file. Correct `total_mass`."),
    "prior-not-possible": (
        WARN, "Inertias of the robot file cannot exist, or are those of flat bodies, so they were changed for the "
        "estimate. Correct them."),
    "recordings-contradict": (
        WARN, "The estimates of several recordings differ by more than their deviations. Check that they are of one robot with "
        "one payload, and compare the fits."),
    "recording-repeated": (
        WARN, "Several fits are of one recording, whose information counts several times. Pass each fit once."),
    "consistent-misfit": (
        WARN, "The consistent parameters contradict the recordings. Check the recordings, or lower the weight of the robot "
        "file."),
    "offsets-not-in-model": (
        WARN, "Estimated constant torques are not part of a robot. Add them to the torques of a controller."),
    "zero-offsets-not-in-model": (
        WARN, "Zero offsets of encoders are not part of a robot file. Subtract them from the readings of the encoders."),
    "weak-parameters": (WARN, "Parameters have almost no effect, perhaps because angles are rounded. Use `--tolerance 1e-4`."),
    # assembly of mechanisms
    "other-guess": (WARN, "The loops were closed from a random guess. Check that this is the branch that you want."),
    "degenerate-assembly": (
        WARN, "An assembly has more degrees of freedom than others: for example, both arms of a scissor coincide. Use another "
              "guess."),
    "sweep-stopped": (
        WARN, "A driver cannot reach the end of its range: it is at a dead centre, or a joint is at its limit. The rows before "
              "are complete."),
    "no-assembly": (WARN, "No configuration that closes the loops of a robot was reached. Check lengths, frames and limits."),
    "immobile": (WARN, "The mechanism cannot move, apart from driven loops. Check the constraints."),
    "driven-loops-still": (WARN, "Driven loops are at their positions in the file. Use `--constraint-motion`."),
    # batches
    "sample-count": (WARN, "The number of Sobol samples is not a power of two. Use one that is."),
    "suspicious-runs": (WARN, "Runs of a batch are complete but suspicious. See the column `reason`."),
    "incomplete-runs": (WARN, "Runs of a batch are not complete and not drawn. See the column `reason`."),
    "empty-output": (WARN, "An output has no value in some runs. Check its expression."),
    "missing-chunks": (WARN, "Other shards of a batch are not done. Run them, or use `--resume`."),
    "rerun": (INFO, "The parameters of the run that is repeated. Nothing to do."),
    "robot-edited": (
        INFO, "The robot of a run differs from its file. It is written with the run, and commands use the written robot. "
        "Nothing to do."),
    # files and plots
    "result-exists": (WARN, "A result already exists and would not be replaced. Use `--force` or `--resume`."),
    "no-checkpoint": (INFO, "There is no checkpoint, and the run starts from the beginning. Nothing to do."),
    "not-planar": (WARN, "A motion leaves the plane in which a mechanism is drawn. Use the plane of the motion."),
    "not-drawn": (WARN, "A plot, or a part of it, was not drawn. The message gives the reason."),
    "double-precision": (
        WARN, "States of a batch in single precision were computed in double precision: their inertias or numbers exceed its "
        "range, or there is no generated code. Use double precision."),
    "nothing-compared": (WARN, "Runs drawn in the same panels have no joints in common. Compare runs of the same robot."),
    "mesh-not-found": (WARN, "A mesh file was not found. Use `--package-root`."),
    "texture-not-found": (WARN, "The image of a texture was not found. Name an existing file, or use `--package-root`."),
    "meshes-available": (INFO, "The robot file has meshes that are not drawn. Install the packages that read them."),
    "open-loops": (WARN, "A robot is drawn with open loops. Use `liedyn assemble` with another guess, or repair its loops."),
    "view-moved": (
        WARN, "Given coordinates contradict loops or couplings, and are drawn differently. Give fewer, or consistent ones."),
    "not-opened": (WARN, "No browser was found. Open the written page in a browser."),
}

WARNING_CODES = {code: MessageCode(*row) for code, row in _TABLE.items()}
