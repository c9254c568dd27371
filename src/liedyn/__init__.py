"""liedyn: from a robot file (URDF or YAML) to its motion and forces, on SE(3).

    import liedyn as ld
    model = ld.load("robot.urdf")
    tau = ld.inverse_dynamics(model, q, v, a)

Names are imported on first use, so that `import liedyn` is quick.
"""
from importlib import import_module

__version__ = "0.1.0"

_HOME = {
    "load": "loading", "load_description": "loading",
    "build": "model.build", "Model": "model.model", "Robot": "model.description",
    "inverse_dynamics": "dynamics.inverse", "bias_force": "dynamics.inverse", "gravity_force": "dynamics.inverse",
    "joint_wrenches": "dynamics.inverse",
    "inverse_dynamics_derivatives": "dynamics.derivatives", "forward_dynamics_derivatives": "dynamics.derivatives",
    "hybrid_dynamics_derivatives": "dynamics.derivatives",
    "inverse_dynamics_second_derivatives": "dynamics.second_derivatives",
    "InverseDerivatives": "dynamics.derivative_results", "ForwardDerivatives": "dynamics.derivative_results",
    "HybridDerivatives": "dynamics.derivative_results", "SplitDerivatives": "dynamics.derivative_results",
    "SecondDerivatives": "dynamics.second_derivatives",
    "inverse_dynamics_directional": "dynamics.directional", "forward_dynamics_directional": "dynamics.directional",
    "hybrid_dynamics_directional": "dynamics.directional",
    "parameter_derivatives": "dynamics.directional", "parameter_names": "dynamics.parameters",
    "forward_dynamics": "dynamics.hybrid", "hybrid_dynamics": "dynamics.hybrid",
    "constraint_residual": "dynamics.constraints", "constraint_velocity": "dynamics.constraints",
    "constraint_bias": "dynamics.constraints", "constraint_jacobian": "dynamics.constraints",
    "project_configuration": "dynamics.constraints", "project_velocity": "dynamics.constraints",
    "constrained_forward_dynamics": "dynamics.constrained", "constrained_hybrid_dynamics": "dynamics.constrained",
    "constraint_forces": "dynamics.constrained", "ConstrainedMotion": "dynamics.constrained",
    "constraint_wrenches": "dynamics.constraint_wrenches",
    "constrained_inverse_dynamics": "dynamics.constrained_inverse", "ConstrainedInverse": "dynamics.constrained_inverse",
    "constrained_forward_derivatives": "dynamics.constrained_derivatives",
    "constrained_hybrid_derivatives": "dynamics.constrained_derivatives",
    "balance_derivatives": "dynamics.constrained_derivatives",
    "constrained_inverse_derivatives": "dynamics.constrained_inverse_derivatives",
    "mass_matrix": "dynamics.mass", "inverse_mass_matrix": "dynamics.mass",
    "coriolis_matrix": "dynamics.coriolis", "christoffel_symbols": "dynamics.coriolis",
    "mass_matrix_derivative": "dynamics.coriolis", "mass_matrix_rate": "dynamics.coriolis",
    "closed_form": "dynamics.closed_form", "spatial_closed_form": "dynamics.spatial_closed_form",
    "curvature_tensor": "dynamics.curvature",
    "sectional_curvature": "dynamics.curvature", "scalar_curvature": "dynamics.curvature",
    "link_pose": "dynamics.kinematics", "link_poses": "dynamics.kinematics", "link_twist": "dynamics.kinematics",
    "link_acceleration": "dynamics.kinematics", "jacobian": "dynamics.kinematics",
    "jacobian_derivative": "dynamics.kinematics", "energy": "dynamics.kinematics", "momentum": "dynamics.kinematics",
    "centre_of_mass": "dynamics.kinematics",
    "link_pose_derivatives": "dynamics.higher_order_kinematics",
    "link_twist_derivatives": "dynamics.higher_order_kinematics",
    "jacobian_derivatives": "dynamics.higher_order_kinematics",
    "centre_of_mass_derivatives": "dynamics.higher_order_kinematics",
    "momentum_derivatives": "dynamics.higher_order_kinematics",
    "higher_order_inverse_dynamics": "dynamics.higher_order", "higher_order_forward_dynamics": "dynamics.higher_order",
    "higher_order_hybrid_dynamics": "dynamics.higher_order",
    "spatial_twists": "dynamics.spatial_base", "body_twists": "dynamics.spatial_base",
    "spatial_wrenches": "dynamics.spatial_base", "body_wrenches": "dynamics.spatial_base",
    "integrate": "dynamics.manifold", "difference": "dynamics.manifold",
    "regressor": "dynamics.regressor", "inertial_parameters": "dynamics.regressor",
    "energy_regressor": "dynamics.regressor", "momentum_regressor": "dynamics.regressor",
    "base_parameters": "dynamics.base_parameters", "identify": "simulate.identify",
    "linearize": "simulate.linearize", "linearize_scenario": "simulate.linearize", "LinearSystem": "simulate.linear_system",
    "find_equilibrium": "simulate.equilibrium",
    "assemble": "dynamics.assembly", "Assembly": "dynamics.assembly", "mobility": "dynamics.mobility",
    "Mobility": "dynamics.mobility",
    "run_scenario": "simulate.run", "random_configuration": "dynamics.manifold", "joint_motion": "dynamics.manifold",
    "LiedynError": "errors", "InputError": "errors", "ModelError": "errors", "ScenarioError": "errors",
    "TrajectoryError": "errors", "ShapeError": "errors", "ConfigurationError": "errors", "ComputationError": "errors",
}

__all__ = [*_HOME, "__version__"]


def __getattr__(name):
    if name not in _HOME:
        raise AttributeError(f"module 'liedyn' has no attribute {name!r}")
    value = getattr(import_module(f"liedyn.{_HOME[name]}"), name)
    globals()[name] = value            # so that the next look-up does not come here
    return value


def __dir__():
    return sorted(__all__)
