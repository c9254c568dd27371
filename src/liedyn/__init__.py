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
    "forward_dynamics": "dynamics.hybrid", "hybrid_dynamics": "dynamics.hybrid",
    "mass_matrix": "dynamics.mass", "inverse_mass_matrix": "dynamics.mass",
    "link_pose": "dynamics.kinematics", "link_poses": "dynamics.kinematics", "link_twist": "dynamics.kinematics",
    "link_acceleration": "dynamics.kinematics", "jacobian": "dynamics.kinematics",
    "jacobian_derivative": "dynamics.kinematics", "energy": "dynamics.kinematics", "momentum": "dynamics.kinematics",
    "centre_of_mass": "dynamics.kinematics",
    "integrate": "dynamics.manifold", "difference": "dynamics.manifold",
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
