"""The public names of liedyn and the modules that hold them: read by `liedyn.__getattr__`, by editors and type checkers."""

from liedyn.analysis.configurations import find_equilibrium as find_equilibrium
from liedyn.analysis.consistent_parameters import (
    ConsistentParameters as ConsistentParameters,
    consistent_parameters as consistent_parameters,
)
from liedyn.analysis.excitation import Excitation as Excitation, excite as excite
from liedyn.analysis.identification import Identification as Identification, identify as identify
from liedyn.analysis.linear_system import LinearSystem as LinearSystem
from liedyn.analysis.linearize import linearize as linearize, linearize_scenario as linearize_scenario
from liedyn.analysis.moves import Move as Move, plan_move as plan_move
from liedyn.analysis.optimal_gains import Gain as Gain
from liedyn.analysis.recorded_motion import (
    motion_of as motion_of,
    RecordedMotion as RecordedMotion,
    trajectory_of as trajectory_of,
)
from liedyn.analysis.trajectory_regulator import TimeVaryingGain as TimeVaryingGain, tvlqr as tvlqr
from liedyn.dynamics.batching.state_blocks import StateBlocks as StateBlocks
from liedyn.dynamics.closed_form import closed_form as closed_form
from liedyn.dynamics.constraints.assembly import (
    assemblies as assemblies,
    assemble as assemble,
    Assembly as Assembly,
)
from liedyn.dynamics.constraints.constrained_derivatives import (
    balance_derivatives as balance_derivatives,
    constrained_forward_derivatives as constrained_forward_derivatives,
    constrained_hybrid_derivatives as constrained_hybrid_derivatives,
)
from liedyn.dynamics.constraints.constrained_dynamics import (
    constrained_forward_dynamics as constrained_forward_dynamics,
    constrained_hybrid_dynamics as constrained_hybrid_dynamics,
    ConstrainedMotion as ConstrainedMotion,
    constraint_forces as constraint_forces,
)
from liedyn.dynamics.constraints.constrained_inverse import (
    constrained_inverse_derivatives as constrained_inverse_derivatives,
    constrained_inverse_dynamics as constrained_inverse_dynamics,
    ConstrainedInverse as ConstrainedInverse,
)
from liedyn.dynamics.constraints.kinematic_sweep import (
    kinematic_sweep as kinematic_sweep,
    KinematicSweep as KinematicSweep,
    SpecialPosition as SpecialPosition,
)
from liedyn.dynamics.constraints.mobility import Mobility as Mobility, mobility as mobility
from liedyn.dynamics.constraints.constraints import (
    closure_wrenches as closure_wrenches,
    constraint_bias as constraint_bias,
    constraint_jacobian as constraint_jacobian,
    constraint_residual as constraint_residual,
    constraint_velocity as constraint_velocity,
    constraint_wrenches as constraint_wrenches,
    project_configuration as project_configuration,
    project_velocity as project_velocity,
)
from liedyn.dynamics.constraints.couplings import (
    expand as expand,
    reduce as reduce,
)
from liedyn.dynamics.coriolis import (
    christoffel_symbols as christoffel_symbols,
    coriolis_matrix as coriolis_matrix,
    curvature_tensor as curvature_tensor,
    mass_matrix_derivative as mass_matrix_derivative,
    mass_matrix_rate as mass_matrix_rate,
    scalar_curvature as scalar_curvature,
    sectional_curvature as sectional_curvature,
    slotine_li_inverse_dynamics as slotine_li_inverse_dynamics,
)
from liedyn.dynamics.derivatives import (
    d_difference as d_difference,
    d_integrate as d_integrate,
    forward_dynamics_derivatives as forward_dynamics_derivatives,
    ForwardDerivatives as ForwardDerivatives,
    hybrid_dynamics_derivatives as hybrid_dynamics_derivatives,
    HybridDerivatives as HybridDerivatives,
    inverse_dynamics_derivatives as inverse_dynamics_derivatives,
    inverse_dynamics_second_derivatives as inverse_dynamics_second_derivatives,
    InverseDerivatives as InverseDerivatives,
    SecondDerivatives as SecondDerivatives,
    SplitDerivatives as SplitDerivatives,
)
from liedyn.dynamics.directional_derivatives import (
    forward_dynamics_directional as forward_dynamics_directional,
    hybrid_dynamics_directional as hybrid_dynamics_directional,
    inverse_dynamics_directional as inverse_dynamics_directional,
    parameter_derivatives as parameter_derivatives,
)
from liedyn.dynamics.dynamics import (
    bias_force as bias_force,
    forward_dynamics as forward_dynamics,
    gravity_force as gravity_force,
    hybrid_dynamics as hybrid_dynamics,
    inverse_dynamics as inverse_dynamics,
    inverse_mass_matrix as inverse_mass_matrix,
    joint_wrenches as joint_wrenches,
    mass_matrix as mass_matrix,
)
from liedyn.dynamics.fixed_joints import fix_joints as fix_joints
from liedyn.dynamics.inertial_parameters import (
    base_parameters as base_parameters,
    energy_regressor as energy_regressor,
    inertial_parameters as inertial_parameters,
    momentum_regressor as momentum_regressor,
    regressor as regressor,
    slotine_li_regressor as slotine_li_regressor,
)
from liedyn.dynamics.kim2012 import kim_tables as kim_tables
from liedyn.dynamics.force_elements import (
    element_forces as element_forces,
    element_wrenches as element_wrenches,
    ElementForces as ElementForces,
)
from liedyn.dynamics.inverse_kinematics import InverseKinematics as InverseKinematics, inverse_kinematics as inverse_kinematics
from liedyn.dynamics.kinematic_tasks import Task as Task
from liedyn.dynamics.kinematics import (
    centre_of_mass as centre_of_mass,
    centre_of_mass_derivatives as centre_of_mass_derivatives,
    energy as energy,
    jacobian as jacobian,
    jacobian_derivative as jacobian_derivative,
    jacobian_derivatives as jacobian_derivatives,
    joint_motion as joint_motion,
    link_acceleration as link_acceleration,
    link_pose as link_pose,
    link_pose_derivatives as link_pose_derivatives,
    link_poses as link_poses,
    link_twist as link_twist,
    link_twist_derivatives as link_twist_derivatives,
    momentum as momentum,
    momentum_derivatives as momentum_derivatives,
)
from liedyn.dynamics.manifold import (
    difference as difference,
    integrate as integrate,
    random_configuration as random_configuration,
    random_motion as random_motion,
)
from liedyn.dynamics.model_parameters import parameter_names as parameter_names
from liedyn.dynamics.plan import Plan as Plan, plan as plan
from liedyn.dynamics.spatial_closed_form import (
    body_twists as body_twists,
    body_wrenches as body_wrenches,
    spatial_closed_form as spatial_closed_form,
    spatial_twists as spatial_twists,
    spatial_wrenches as spatial_wrenches,
)
from liedyn.dynamics.time_derivatives import (
    higher_order_forward_dynamics as higher_order_forward_dynamics,
    higher_order_hybrid_dynamics as higher_order_hybrid_dynamics,
    higher_order_inverse_dynamics as higher_order_inverse_dynamics,
)
from liedyn.dynamics.variants import Variants as Variants
from liedyn.errors import (
    ArgumentError as ArgumentError,
    CheckFailed as CheckFailed,
    ComputationError as ComputationError,
    ConfigurationError as ConfigurationError,
    InputError as InputError,
    LiedynError as LiedynError,
    LiedynWarning as LiedynWarning,
    ModelError as ModelError,
    NameLookupError as NameLookupError,
    ScenarioError as ScenarioError,
    ShapeError as ShapeError,
    TrajectoryError as TrajectoryError,
    UsageError as UsageError,
)
from liedyn.interop.casadi import casadi_function as casadi_function, casadi_right_hand_side as casadi_right_hand_side
from liedyn.interop.sympy import Symbolic as Symbolic, symbolic as symbolic
from liedyn.interop.devices import to_device as to_device
from liedyn.io.trajectory_csv import read_trajectory as read_trajectory, Trajectory as Trajectory
from liedyn.model.curve_joint import curve_joint as curve_joint
from liedyn.model.description import (
    Actuator as Actuator,
    Coupling as Coupling,
    Joint as Joint,
    Keyframe as Keyframe,
    Loop as Loop,
    Mimic as Mimic,
    Robot as Robot,
)
from liedyn.model.force_element import ForceElement as ForceElement
from liedyn.model.links import Link as Link, Pose as Pose, Shape as Shape
from liedyn.model.model import Model as Model
from liedyn.report.motion_plots import figure_of as figure_of
from liedyn.report.replay.replay import replay_of as replay_of
from liedyn.report.replay.view import view as view
from liedyn.report.run_folder import write_run as write_run
from liedyn.robot_files import (
    attach as attach,
    build as build,
    load as load,
    load_description as load_description,
    save as save,
)
from liedyn.rollouts.events import RolloutEvents as RolloutEvents
from liedyn.rollouts.inputs import Feedback as Feedback
from liedyn.rollouts.rollout import (
    LinearSteps as LinearSteps,
    Rollout as Rollout,
    rollout as rollout,
    rollout_derivatives as rollout_derivatives,
    RolloutAdjoint as RolloutAdjoint,
    RolloutDerivatives as RolloutDerivatives,
)
from liedyn.rollouts.stepper import Stepper as Stepper
from liedyn.simulation.compile_ahead import Warmup as Warmup, warmup as warmup
from liedyn.simulation.run import Result as Result, run_scenario as run_scenario, simulate as simulate

__version__: str
