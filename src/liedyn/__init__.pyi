"""The public names of liedyn and the modules that hold them: read by `liedyn.__getattr__`, by editors and type checkers."""

from liedyn.analyse.along.arrays_of_trajectories import (
    motion_of as motion_of,
    RecordedMotion as RecordedMotion,
    trajectory_of as trajectory_of,
)
from liedyn.dynamics.loops.assembly import assemble as assemble, Assembly as Assembly
from liedyn.dynamics.parameters.base_parameters import base_parameters as base_parameters
from liedyn.dynamics.closed_forms.closed_form import closed_form as closed_form
from liedyn.dynamics.loops.constrained import (
    constrained_forward_dynamics as constrained_forward_dynamics,
    constrained_hybrid_dynamics as constrained_hybrid_dynamics,
    ConstrainedMotion as ConstrainedMotion,
    constraint_forces as constraint_forces,
)
from liedyn.dynamics.loops.constrained_derivatives import (
    balance_derivatives as balance_derivatives,
    constrained_forward_derivatives as constrained_forward_derivatives,
    constrained_hybrid_derivatives as constrained_hybrid_derivatives,
)
from liedyn.dynamics.loops.constrained_inverse import (
    constrained_inverse_dynamics as constrained_inverse_dynamics,
    ConstrainedInverse as ConstrainedInverse,
)
from liedyn.dynamics.loops.constrained_inverse_derivatives import (
    constrained_inverse_derivatives as constrained_inverse_derivatives,
)
from liedyn.dynamics.loops.constraint_wrenches import (
    closure_wrenches as closure_wrenches,
    constraint_wrenches as constraint_wrenches,
)
from liedyn.dynamics.loops.constraints import (
    constraint_bias as constraint_bias,
    constraint_jacobian as constraint_jacobian,
    constraint_residual as constraint_residual,
    constraint_velocity as constraint_velocity,
    project_configuration as project_configuration,
    project_velocity as project_velocity,
)
from liedyn.dynamics.closed_forms.coriolis import (
    christoffel_symbols as christoffel_symbols,
    coriolis_matrix as coriolis_matrix,
    mass_matrix_derivative as mass_matrix_derivative,
    mass_matrix_rate as mass_matrix_rate,
)
from liedyn.dynamics.closed_forms.curvature import (
    curvature_tensor as curvature_tensor,
    scalar_curvature as scalar_curvature,
    sectional_curvature as sectional_curvature,
)
from liedyn.dynamics.derivatives.derivative_results import (
    ForwardDerivatives as ForwardDerivatives,
    HybridDerivatives as HybridDerivatives,
    InverseDerivatives as InverseDerivatives,
    SplitDerivatives as SplitDerivatives,
)
from liedyn.dynamics.derivatives.first_derivatives import (
    forward_dynamics_derivatives as forward_dynamics_derivatives,
    hybrid_dynamics_derivatives as hybrid_dynamics_derivatives,
    inverse_dynamics_derivatives as inverse_dynamics_derivatives,
)
from liedyn.dynamics.derivatives.manifold_derivatives import d_difference as d_difference, d_integrate as d_integrate
from liedyn.dynamics.derivatives.directional import (
    forward_dynamics_directional as forward_dynamics_directional,
    hybrid_dynamics_directional as hybrid_dynamics_directional,
    inverse_dynamics_directional as inverse_dynamics_directional,
    parameter_derivatives as parameter_derivatives,
)
from liedyn.dynamics.variants import Variants as Variants
from liedyn.dynamics.plan import plan as plan, Plan as Plan
from liedyn.dynamics.series.higher_order import (
    higher_order_forward_dynamics as higher_order_forward_dynamics,
    higher_order_hybrid_dynamics as higher_order_hybrid_dynamics,
    higher_order_inverse_dynamics as higher_order_inverse_dynamics,
)
from liedyn.dynamics.series.higher_order_kinematics import (
    centre_of_mass_derivatives as centre_of_mass_derivatives,
    jacobian_derivatives as jacobian_derivatives,
    link_pose_derivatives as link_pose_derivatives,
    link_twist_derivatives as link_twist_derivatives,
    momentum_derivatives as momentum_derivatives,
)
from liedyn.dynamics.hybrid import forward_dynamics as forward_dynamics, hybrid_dynamics as hybrid_dynamics
from liedyn.dynamics.inverse import (
    bias_force as bias_force,
    gravity_force as gravity_force,
    inverse_dynamics as inverse_dynamics,
    joint_wrenches as joint_wrenches,
)
from liedyn.dynamics.kim_tables import kim_tables as kim_tables
from liedyn.dynamics.kinematics import (
    centre_of_mass as centre_of_mass,
    energy as energy,
    jacobian as jacobian,
    jacobian_derivative as jacobian_derivative,
    link_acceleration as link_acceleration,
    link_pose as link_pose,
    link_poses as link_poses,
    link_twist as link_twist,
    momentum as momentum,
)
from liedyn.dynamics.manifold import (
    difference as difference,
    integrate as integrate,
    joint_motion as joint_motion,
    random_configuration as random_configuration,
)
from liedyn.dynamics.mass import inverse_mass_matrix as inverse_mass_matrix, mass_matrix as mass_matrix
from liedyn.dynamics.loops.mobility import mobility as mobility, Mobility as Mobility
from liedyn.dynamics.parameters.model_parameters import parameter_names as parameter_names
from liedyn.dynamics.parameters.regressor import (
    energy_regressor as energy_regressor,
    inertial_parameters as inertial_parameters,
    momentum_regressor as momentum_regressor,
    regressor as regressor,
)
from liedyn.dynamics.derivatives.second_derivatives import (
    inverse_dynamics_second_derivatives as inverse_dynamics_second_derivatives,
    SecondDerivatives as SecondDerivatives,
)
from liedyn.dynamics.series.spatial_base import (
    body_twists as body_twists,
    body_wrenches as body_wrenches,
    spatial_twists as spatial_twists,
    spatial_wrenches as spatial_wrenches,
)
from liedyn.dynamics.closed_forms.spatial_closed_form import spatial_closed_form as spatial_closed_form
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
from liedyn.io.csv import read_trajectory as read_trajectory, Trajectory as Trajectory
from liedyn.loading import load as load, load_description as load_description
from liedyn.saving import save as save
from liedyn.model.build import build as build
from liedyn.model.description import Robot as Robot
from liedyn.model.model import Model as Model
from liedyn.analyse.linearization.equilibrium import find_equilibrium as find_equilibrium
from liedyn.analyse.identification.identify import Identification as Identification, identify as identify
from liedyn.analyse.linearization.linear_system import LinearSystem as LinearSystem
from liedyn.analyse.linearization.linearize import linearize as linearize, linearize_scenario as linearize_scenario
from liedyn.report.replay.result_page import replay_of as replay_of
from liedyn.report.run_folder import figure_of as figure_of
from liedyn.report.run_folder import write_run as write_run
from liedyn.simulation.of_model import simulate as simulate
from liedyn.simulation.rollouts.arguments import Feedback as Feedback
from liedyn.simulation.rollouts.rollout import (
    Rollout as Rollout,
    rollout as rollout,
    rollout_derivatives as rollout_derivatives,
    RolloutDerivatives as RolloutDerivatives,
)
from liedyn.simulation.rollouts.adjoint import RolloutAdjoint as RolloutAdjoint
from liedyn.simulation.rollouts.events import RolloutEvents as RolloutEvents
from liedyn.simulation.run import Result as Result, run_scenario as run_scenario
from liedyn.simulation.warmup import Warmup as Warmup, warmup as warmup

__version__: str
