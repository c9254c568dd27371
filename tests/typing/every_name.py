"""Every public name with the type that a checker finds: read by the tests, not run."""
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, assert_type

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

import liedyn as ld

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


def robots(path: Path) -> ld.Model:
    robot = assert_type(ld.load_description("robot.urdf"), ld.Robot)
    model = assert_type(ld.build(robot), ld.Model)
    assert_type(ld.load(path, base="floating", gravity=(0, 0, -1.62), strict=True), ld.Model)
    assert_type(ld.save(model, path, lossy=True, force=True), tuple[ld.LiedynWarning, ...])
    assert_type(ld.save(robot, "robot.yaml"), tuple[ld.LiedynWarning, ...])
    assert_type((model.nq, model.nv, model.joint_names), tuple[int, int, tuple[str, ...]])
    assert_type((model.neutral(), model.lower, model.q_index("elbow")), tuple[Array, Array, slice])
    assert_type(ld.parameter_names(model), tuple[str, ...])
    assert_type(ld.save(robot, path, lossy=True), tuple[ld.LiedynWarning, ...])
    assert_type(ld.plan(model, "jacobian", link="hand").way, Literal["generated", "generic"])
    plan: ld.Plan = ld.plan(model, "mass_matrix")
    done: ld.Warmup = ld.warmup(["dynamics", "loops"])
    assert_type(ld.attach(model, robot, parent="tool0", prefix="left_", origin=[0, 0, 0.1], joint="revolute"), ld.Model)
    print(plan.reason, done.summary, ld.__version__)
    return model


def dynamics(model: ld.Model, q: Array, v: Array, a: Array, tau: Array, mask: Mask) -> None:
    assert_type(ld.inverse_dynamics(model, q, v, a, f_ext={"hand": [0, 0, 0, 0, 0, -5]}, on_error="nan"), Array)
    assert_type(ld.forward_dynamics(model, q, v, tau, f_ext=np.zeros((3, 6)), passive=False, out=a), Array)
    assert_type(ld.hybrid_dynamics(model, q, v, a, tau, [True, False]), tuple[Array, Array])
    assert_type(ld.bias_force(model, q, v), Array)
    assert_type(ld.gravity_force(model, [0.1, 0.2]), Array)
    assert_type(ld.joint_wrenches(model, q, v, a, frame="world"), Array)
    assert_type(ld.element_forces(model, q, v, on_error="nan"), ld.ElementForces)
    assert_type(ld.element_wrenches(model, q, v), Array)
    assert_type(ld.mass_matrix(model, q), Array)
    assert_type(ld.inverse_mass_matrix(model, q), Array)
    assert_type(ld.coriolis_matrix(model, q, v, method="christoffel"), Array)
    assert_type(ld.christoffel_symbols(model, q), Array)
    assert_type(ld.mass_matrix_derivative(model, q), Array)
    assert_type(ld.mass_matrix_rate(model, q, v), Array)
    assert_type(ld.energy(model, q, v), tuple[Array, Array])
    assert_type(ld.momentum(model, q, v), Array)
    assert_type(ld.centre_of_mass(model, q), Array)
    blocks = ld.StateBlocks.of(q, dtype="float32")
    assert_type(ld.forward_dynamics(model, blocks, blocks, blocks, dtype="float32"), ld.StateBlocks)
    assert_type(ld.hybrid_dynamics(model, blocks, blocks, blocks, blocks, mask), tuple[ld.StateBlocks, ld.StateBlocks])
    assert_type((blocks.rows(), blocks.width("float32"), ld.mass_matrix(model, blocks)), tuple[Array, int, ld.StateBlocks])
    variants = ld.Variants([model, model])
    assert_type(variants.forward_dynamics(q, v, tau), Array)
    assert_type(variants.energy(q, v), tuple[Array, Array])
    assert_type(variants.inverse_dynamics_derivatives(q, v, a), ld.InverseDerivatives)


def kinematics(model: ld.Model, q: Array, v: Array, a: Array) -> None:
    assert_type(ld.link_pose(model, q, "hand"), Array)
    assert_type(ld.link_poses(model, q), Array)
    assert_type(ld.link_twist(model, q, v, "hand", frame="local_world_aligned"), Array)
    assert_type(ld.link_acceleration(model, q, v, a, "hand"), Array)
    assert_type(ld.jacobian(model, q, "hand", frame="world"), Array)
    assert_type(ld.jacobian_derivative(model, q, v, "hand"), Array)
    assert_type(ld.joint_motion(model, "elbow", [0.3]), tuple[Array, Array, Array])
    assert_type(ld.random_configuration(model, np.random.default_rng(0), (2, 3)), Array)
    assert_type(ld.random_motion(model, np.random.default_rng(0)), tuple[Array, Array, Array])
    assert_type(ld.expand(model, q), Array)
    assert_type(ld.expand(model, q, v, a), tuple[Array, Array, Array])
    assert_type(ld.reduce(model, q, v), tuple[Array, Array])
    assert_type(model.independent, tuple[str, ...])
    assert_type(ld.difference(model, q, ld.integrate(model, q, v)), Array)
    assert_type(ld.d_integrate(model, q, v), tuple[Array, Array])
    assert_type(ld.d_difference(model, q, q), tuple[Array, Array])


def derivatives(model: ld.Model, q: Array, v: Array, a: Array, tau: Array, mask: Mask) -> None:
    inverse: ld.InverseDerivatives = ld.inverse_dynamics_derivatives(model, q, v, a)
    forward: ld.ForwardDerivatives = ld.forward_dynamics_derivatives(model, q, v, tau, out=(a, a, a))
    hybrid: ld.HybridDerivatives = ld.hybrid_dynamics_derivatives(model, q, v, a, tau, mask)
    split: ld.SplitDerivatives = hybrid.split()
    second: ld.SecondDerivatives = ld.inverse_dynamics_second_derivatives(model, q, v, a)
    da_dq, _, M_inverse = forward
    assert_type((inverse.M, split.dtau_du, second.dqdv, M_inverse, da_dq), tuple[Array, Array, Array, Array, Array])
    assert_type((forward.wrt_wrench(ld.jacobian(model, q, "hand")), hybrid.prescribed), tuple[Array, Mask])
    assert_type(ld.inverse_dynamics_directional(model, q, v, a, dq=v, parameters={"mass.hand": 1.0}), tuple[Array, Array])
    assert_type(ld.forward_dynamics_directional(model, q, v, tau, dtau=tau), tuple[Array, Array])
    assert_type(ld.hybrid_dynamics_directional(model, q, v, a, tau, mask, dq=v), tuple[Array, Array, Array, Array])
    assert_type(ld.parameter_derivatives(model, q, v, a, ["mass.hand"], of="inverse"), Array)


def time_derivatives(model: ld.Model, q: Array, v: Array, rows: Array, mask: Mask) -> None:
    assert_type(ld.higher_order_inverse_dynamics(model, q, rows, base_frame="world"), Array)
    assert_type(ld.higher_order_forward_dynamics(model, q, v, rows), Array)
    assert_type(ld.higher_order_hybrid_dynamics(model, q, v, rows, rows, mask), tuple[Array, Array])
    assert_type(ld.link_pose_derivatives(model, q, rows), Array)
    assert_type(ld.link_twist_derivatives(model, q, rows, "hand"), Array)
    assert_type(ld.jacobian_derivatives(model, q, rows, "hand"), Array)
    assert_type(ld.centre_of_mass_derivatives(model, q, rows), Array)
    assert_type(ld.momentum_derivatives(model, q, rows), Array)
    assert_type(ld.spatial_twists(q, rows), Array)
    assert_type(ld.body_twists(q, rows), Array)
    assert_type(ld.spatial_wrenches(q, rows, rows), Array)
    assert_type(ld.body_wrenches(q, rows, rows), Array)


def closed_forms(model: ld.Model, q: Array, v: Array, a: Array) -> None:
    body, spatial = ld.closed_form(model, q), ld.spatial_closed_form(model, q)
    assert_type((body.mass_matrix, body.Gamma, body.coriolis_matrix(v)), tuple[Array, Array, Array])
    assert_type((spatial.J, spatial.inverse_dynamics(v, a), spatial.constant), tuple[Array, Array, Mask])
    print(ld.kim_tables(model, q, v).table_2(a))
    assert_type(ld.curvature_tensor(model, q), Array)
    assert_type(ld.sectional_curvature(model, q, v, a), float)
    assert_type(ld.scalar_curvature(model, q), float)
    print(ld.to_device(model, "opencl", dtype="float32").function("jacobian", link="hand"))
    print(ld.casadi_function(model, "hybrid_dynamics", prescribed=[True, False], passive=False))
    print(ld.casadi_right_hand_side("scenario.yaml", ["duration=1"], inputs=["kp of elbow"]))
    formulas: ld.Symbolic = ld.symbolic(model, "mass_matrix", {"mass.hand": "m"})
    assert_type((formulas.function, formulas.latex()), tuple[str, str])


def reaching(model: ld.Model, q: Array) -> None:
    tasks = [ld.Task(link="hand", position=[0.1, 0.2, 0.3], axes="xy"), ld.Task(centre_of_mass=q[:3], priority=2)]
    solution: ld.InverseKinematics = ld.inverse_kinematics(model, tasks, q, posture={"elbow": 0.3}, path=False)
    assert_type((solution.q, solution.reached, solution.position_error), tuple[Array, Mask, Array])


def loops(model: ld.Model, q: Array, v: Array, a: Array, tau: Array, mask: Mask, lam: Array) -> None:
    found: ld.Assembly = ld.assemble(model, q, fixed=["crank"])
    every: tuple[ld.Assembly, ...] = ld.assemblies(model, {"cr*": 1.0}, fixed=["crank"], searches=5)
    sweep: ld.KinematicSweep = ld.kinematic_sweep(model, "crank", [0.0, 1.0], {"rocker": 1.0}, driven=["rocker"], fixed=["knee"])
    special: ld.SpecialPosition = sweep.special_positions[0]
    assert_type((special.position, sweep.mechanical_advantage("rocker"), sweep.stop), tuple[float, Array, str])
    how: ld.Mobility = ld.mobility(model, every[0].q)
    assert_type((how.degrees, how.redundant, found.singular), tuple[int, tuple[str, ...], bool])
    motion: ld.ConstrainedMotion = ld.constrained_forward_dynamics(model, q, v, tau, baumgarte=10.0)
    motion = ld.constrained_hybrid_dynamics(model, q, v, a, tau, mask, pfaffian=lambda q: np.zeros((1, 3)))
    assert_type((motion.a, motion.multipliers, motion.independent), tuple[Array, Array, Mask])
    inverse: ld.ConstrainedInverse = ld.constrained_inverse_dynamics(model, q, v, a, ["crank"], criterion="least_torque")
    assert_type(inverse.tau, Array)
    assert_type(ld.constrained_forward_derivatives(model, q, v, tau).da_dtau, Array)
    assert_type(ld.constrained_hybrid_derivatives(model, q, v, a, tau, mask).split().da_dq, Array)
    assert_type(ld.constrained_inverse_derivatives(model, q, v, a, ["crank"]).dtau_da, Array)
    assert_type(ld.balance_derivatives(model, q, v, a, lam).dR1_dq, Array)
    assert_type(ld.constraint_residual(model, q), Array)
    assert_type(ld.constraint_velocity(model, q, v), Array)
    assert_type(ld.constraint_bias(model, q, v), Array)
    assert_type(ld.constraint_jacobian(model, q), Array)
    assert_type(ld.constraint_forces(model, q, lam), Array)
    assert_type(ld.constraint_wrenches(model, q, lam), Array)
    assert_type(ld.closure_wrenches(model, q, lam, frame="world"), Array)
    assert_type(ld.project_configuration(model, q), Array)
    assert_type(ld.project_velocity(model, q, v), Array)


def parameters(model: ld.Model, q: Array, v: Array, a: Array, tau: Array) -> None:
    assert_type(ld.regressor(model, q, v, a, joints=["friction"]), Array)
    assert_type(ld.slotine_li_regressor(model, q, v, v, a), Array)
    assert_type(ld.slotine_li_inverse_dynamics(model, q, v, v, a), Array)
    assert_type(ld.energy_regressor(model, q, v).kinetic, Array)
    assert_type(ld.momentum_regressor(model, q, v), Array)
    assert_type(ld.inertial_parameters(model).names, tuple[str, ...])
    assert_type(ld.base_parameters(model).matrix, Array)
    assert_type(ld.base_parameters(model, fixed="*.hand").fixed, tuple[str, ...])
    fit: ld.Identification = ld.identify(model, [0.0, 0.1], q, tau, smooth="auto")
    recorded: ld.Trajectory = ld.read_trajectory("motion.csv")
    fit = ld.identify(model, recorded, zero_offsets=["elbow"], torque_scales="wrist*", stribeck=["elbow"],
                      fixed=["*.hand"])
    assert_type((fit.nonlinear.names, fit.nonlinear.values), tuple[tuple[str, ...], Array])
    assert_type((fit.covariance, fit.root_information, fit.model), tuple[Array, Array, ld.Model])
    consistent: ld.ConsistentParameters = ld.consistent_parameters([fit], prior_weight=4.0, only=["hand"], total_mass=20.0)
    consistent = ld.consistent_parameters([fit], weights=[1.0], fixed=["damping.*"], prior={"mass.hand": (0.7, 0.1)},
                                          equal={"left": ("right", "y"), "one": "other"})
    assert_type((consistent.validate(recorded).explained, consistent.validate("motion.csv").rows), tuple[Array, int])
    assert_type((consistent.model, consistent.values, consistent.deviations), tuple[ld.Model, Array, Array])
    assert_type(consistent.zero_offsets | consistent.torque_scales, dict[str, tuple[float, float]])
    assert_type(consistent.friction_rises | consistent.stribeck_speeds, dict[str, tuple[float, float]])
    assert_type((consistent.stribeck, consistent.applied_to(model)), tuple[dict[str, tuple[float, float]], ld.Model])
    consistent = ld.consistent_parameters([fit], prior_weight="auto")
    motion: ld.RecordedMotion = ld.motion_of(model, recorded)
    assert_type((motion.q, motion.v, motion.tau), tuple[Array, Array, Array | None])
    made: ld.Trajectory = ld.trajectory_of(model, motion.t, q, v, tau=tau, f_ext={"hand": np.zeros((9, 6))})
    made.save(Path("made.csv"), force=True)
    assert_type((len(made), made.units), tuple[int, dict[str, str]])
    assert_type((fit.values, fit.reliable, recorded.columns), tuple[Array, Mask, dict[str, Array]])


def linear(model: ld.Model, q: Array, v: Array, tau: Array) -> None:
    system: ld.LinearSystem = ld.linearize(model, q, v, tau, outputs=["q.*", "p.hand.x"])
    assert_type(system.discretize(0.01), tuple[Array, Array])
    assert_type((system.eigenvalues, system.select("tau.*").B), tuple[NDArray[np.complex128], Array])
    assert_type((system.poles, system.frequency_response([1.0])), tuple[NDArray[np.complex128], NDArray[np.complex128]])
    gain: ld.Gain = system.lqr({"q.*": 1.0}, np.eye(2), step=0.01)
    assert_type(ld.Feedback.by_name(model, gain.by_name, q), ld.Feedback)
    assert_type(ld.linearize_scenario({"robot": "arm.urdf", "duration": 1}, at=0.5).system, ld.LinearSystem)
    assert_type(ld.find_equilibrium("scenario.yaml", hold="elbow").q, Array)
    move: ld.Move = ld.plan_move(model, {"elbow": 1.0}, q, acceleration=3.0, jerk={"elbow": 20.0})
    assert_type((move.duration, move.at(0.5).q, move.trajectory(0.01)), tuple[float, Array, ld.Trajectory])
    motion: ld.Excitation = ld.excite(model, noise={"*": 0.1}, position={"elbow": (-1.0, 1.0)}, velocity=2.0,
                                     space={"z": (0.1, 9.0)}, kind="splines", q0={"elbow": 0.5})
    assert_type((motion.deviations, motion.at(0.5).q, motion.trajectory()), tuple[Array, Array, ld.Trajectory])


def push(t: float, q: Array, v: Array) -> Mapping[str, float]:
    return {"elbow": -2.0 * q[1]}


def simulations(model: ld.Model, q: Array, v: Array) -> None:
    run: ld.Result = ld.run_scenario("scenario.yaml", {"duration": 2}, controller=push)
    run = ld.simulate(model, duration=2, q0=[0.3, 0.0], tau=lambda t, q, v: -20 * q, rate=500)
    run = ld.simulate("arm.urdf", tau={"elbow": "-2*q"}, method="dopri5", passive=False)
    assert_type((run.t, run.reactions, run.check), tuple[Array, Array | None, dict[str, float]])
    assert_type((run.plot("torques", against=[run]), ld.figure_of(run)), tuple[Figure, Figure])
    assert_type(ld.replay_of(run, against=[run], follow="hand"), str)
    run.save("runs/one", force=True)
    run.replay(Path("one.html"), against=[run], side_by_side=True, traces=["hand"], speed=0.5)
    assert_type(ld.replay_of(run, against=(run,), follow="hand", meshes=True, package_roots=["robots"], inline=True), str)
    assert_type(ld.view(model, {"elbow": 0.5}, output="arm.html", meshes=False, open_browser=False, force=True), Path)
    assert_type(ld.view(model, q, package_roots=["robots"]), Path)
    ld.write_run(run, Path("runs/two"), plots=False)
    law = ld.Feedback.pd(np.full(2, 10.0), np.full(2, 1.0), q)
    runs: ld.Rollout = ld.rollout(model, q, v, lambda t, q, v: -q, dt=1e-3, steps=10, feedback=law)
    assert isinstance(runs.events, ld.RolloutEvents)
    assert_type((runs.plot("velocities"), ld.figure_of(runs)), tuple[Figure, Figure])
    runs.replay("runs.html", runs=[0, 1], side_by_side=True, force=True)
    back: ld.RolloutAdjoint = runs.adjoint(runs.q, parameters=["mass.hand"])
    slopes: ld.RolloutDerivatives = ld.rollout_derivatives(model, q, v, dt=1e-3, steps=10, method="semi_implicit")
    assert_type((runs.q, runs.complete, back.q0, slopes.tau), tuple[Array, Mask, Array, Array])
    steps: ld.LinearSteps = runs.linearize()
    tracking: ld.TimeVaryingGain = ld.tvlqr(runs, {"q.*": 1.0}, 1.0, inputs="tau.*")
    assert_type((steps.A, tracking.feedback(), tracking.policy(q)(0.0, q, v)), tuple[Array, ld.Feedback, Array])
    stepper: ld.Stepper = ld.Stepper(ld.Variants(model, {"mass.hand": [1.0, 2.0]}), 1e-3, steps=10, feedback=law)
    assert_type((stepper.step(stepper.q, stepper.v, q), stepper.contact_forces), tuple[tuple[Array, Array], Array])
    stepper.reset([0], q)
    assert_type(stepper.ended, Mask)


def described_robot() -> ld.Model:
    frame = ld.Pose.from_xyz_rpy([0, 0, 1], [0, 0, 0.5])
    links = [ld.Link("a", density=1000, shape=ld.Shape.box(0.1, 0.2, 0.3, pose=[0, 0, 1])),
             ld.Link("b", 1, np.zeros(3), inertia=np.eye(3), shapes=[ld.Shape("sphere", [0.1], frame, colour=(1, 0, 0))])]
    curve = ld.curve_joint("zero", "world", "c", "x", {"z": "0.1*q"}, limits=(0, 1))
    joints = [ld.Joint("one", "revolute", "world", "a", origin=np.eye(4), axis=[0, 0, 1], limits=(-1, 1), damping=0.1),
              ld.Joint("two", "planar", "a", "b", frame, axis=np.ones(3), limits={"effort": [1, 2, 3]}, armature=[1, 2, 3]),
              ld.Joint("three", "universal", "a", "b", (0, 0, 1), axes=[[1, 0, 0], [0, 1, 0]],
                       mimic=ld.Mimic("one", multiplier=-1))]
    loops = [ld.Loop("rod", "distance", "world", "b", pose_b=[0, 0, 1], length=0.5),
             ld.Loop("pin", "revolute", "a", "b", axis=[0, 1, 0])]
    robot = ld.Robot("arm", links, joints=[curve, *joints], gravity=[0, 0, -1.6], loops=loops, actuated=["one"],
                     keyframes=[ld.Keyframe("rest", {"one": 0.1})],
                     couplings=[ld.Coupling("gear", {"one": 1, "two.angle": 2}, offset=0.1)],
                     actuators=[ld.Actuator("rotor", "b", axis=[0, 0, 1], torque_ratio=0.1)],
                     elements=[ld.ForceElement("spring", "spring", "a", "b", pose_b=[0, 0, 1], stiffness=10, free_length=[1, 2])])
    assert_type((links[0].com, joints[0].axes), tuple[tuple[float, float, float], tuple[tuple[float, float, float], ...]])
    assert_type(ld.fix_joints(ld.build(robot), {"one": 0.1, "two": [0, 0, 1]}), ld.Model)
    return ld.build(robot)


def errors(anything: Any) -> list[str]:
    try:
        ld.load(anything)
    except ld.ModelError as error:
        return [error.message, str(error.place), str(error.expected), str(error.hint)]
    except ld.ArgumentError as error:
        return [str(error), ld.LiedynWarning.__name__]
    except (ld.ScenarioError, ld.TrajectoryError, ld.InputError) as error:
        return [str(error.found)]
    except (ld.ShapeError, ld.ConfigurationError, ld.NameLookupError, ld.UsageError, ld.CheckFailed) as error:
        return [str(error), str(error.exit_status)]
    except ld.ComputationError as error:
        return [] if error.result is None else [error.result.reason]
    except ld.LiedynError:
        return []
    return [""]
