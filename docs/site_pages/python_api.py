"""The public names of the Python package, by subject: what autodoc makes of their docstrings."""
from __future__ import annotations

import inspect

import liedyn

SUBJECTS: dict[str, tuple[str, ...]] = {
    "robots": ("load", "load_description", "build", "attach", "fix_joints", "save", "Model", "Robot", "Link", "Shape",
               "Joint", "curve_joint", "Pose", "Mimic", "Loop", "Coupling", "ForceElement", "Actuator", "Keyframe", "Variants",
               "parameter_names", "plan", "Plan", "warmup", "Warmup"),
    "dynamics": ("inverse_dynamics", "forward_dynamics", "hybrid_dynamics", "mass_matrix", "inverse_mass_matrix", "bias_force",
                 "gravity_force", "joint_wrenches", "energy", "element_forces", "ElementForces", "element_wrenches",
                 "StateBlocks"),
    "kinematics": ("link_pose", "link_poses", "link_twist", "link_acceleration", "jacobian", "jacobian_derivative",
                   "centre_of_mass", "momentum", "joint_motion", "integrate", "difference", "d_integrate", "d_difference",
                   "random_configuration", "random_motion"),
    "simulation": ("simulate", "run_scenario", "Result", "write_run", "figure_of", "replay_of", "view", "read_trajectory",
                   "Trajectory", "motion_of", "RecordedMotion", "trajectory_of", "plan_move", "Move", "rollout", "Rollout",
                   "RolloutEvents", "RolloutAdjoint", "rollout_derivatives", "RolloutDerivatives", "Feedback", "Stepper"),
    "linearization": ("linearize", "linearize_scenario", "LinearSystem", "Gain", "find_equilibrium", "tvlqr", "TimeVaryingGain",
                      "LinearSteps"),
    "derivatives": ("inverse_dynamics_derivatives", "forward_dynamics_derivatives", "hybrid_dynamics_derivatives",
                    "InverseDerivatives", "ForwardDerivatives", "HybridDerivatives", "SplitDerivatives",
                    "inverse_dynamics_directional", "forward_dynamics_directional", "hybrid_dynamics_directional",
                    "parameter_derivatives", "inverse_dynamics_second_derivatives", "SecondDerivatives"),
    "time derivatives": ("higher_order_inverse_dynamics", "higher_order_forward_dynamics", "higher_order_hybrid_dynamics",
                         "link_pose_derivatives", "link_twist_derivatives", "jacobian_derivatives", "centre_of_mass_derivatives",
                         "momentum_derivatives", "spatial_twists", "body_twists", "spatial_wrenches", "body_wrenches"),
    "closed forms": ("closed_form", "spatial_closed_form", "kim_tables", "coriolis_matrix", "slotine_li_inverse_dynamics",
                     "mass_matrix_rate", "mass_matrix_derivative", "christoffel_symbols", "curvature_tensor",
                     "sectional_curvature", "scalar_curvature"),
    "expressions": ("casadi_function", "casadi_right_hand_side", "symbolic", "Symbolic"),
    "devices": ("to_device",),
    "inverse kinematics": ("inverse_kinematics", "InverseKinematics", "Task"),
    "constraints": ("assemble", "Assembly", "assemblies", "kinematic_sweep", "KinematicSweep", "SpecialPosition", "mobility",
                    "Mobility", "expand", "reduce", "constraint_residual",
                    "constraint_velocity", "constraint_jacobian", "constraint_bias", "project_configuration", "project_velocity",
                    "constrained_forward_dynamics", "constrained_hybrid_dynamics", "ConstrainedMotion",
                    "constrained_inverse_dynamics", "ConstrainedInverse", "constraint_forces", "constraint_wrenches",
                    "closure_wrenches", "constrained_forward_derivatives", "constrained_hybrid_derivatives",
                    "balance_derivatives", "constrained_inverse_derivatives"),
    "parameters": ("inertial_parameters", "regressor", "slotine_li_regressor", "energy_regressor", "momentum_regressor",
                   "base_parameters", "excite", "Excitation", "identify", "Identification", "consistent_parameters",
                   "ConsistentParameters"),
    "errors": ("LiedynError", "InputError", "ModelError", "ScenarioError", "TrajectoryError", "ShapeError", "ConfigurationError",
               "NameLookupError", "UsageError", "ArgumentError", "ComputationError", "CheckFailed", "LiedynWarning"),
}


# functions that are imported from modules of their own, since they need other packages
ELSEWHERE = {"simulation": ("liedyn.interop.jax.rollout_function", "liedyn.interop.torch.rollout_function"),
             "expressions": ("liedyn.interop.jax.robot_function",)}


def subject_page(subject: str) -> str:
    """A table of the names, then each with its docstring; then what the functions return, where it has no public name."""
    names = (*SUBJECTS[subject], *ELSEWHERE.get(subject, ()))
    table = "\n".join(f"   {name.removeprefix('liedyn.')}" for name in names)
    details = [_detail(name) for name in names]
    details += [_class(f"{one.__module__}.{one.__qualname__}", "   :no-index:\n") for one in _returned(SUBJECTS[subject])]
    text = "\n".join((".. currentmodule:: liedyn\n", ".. autosummary::\n   :nosignatures:\n", f"{table}\n", *details))
    return f"```{{eval-rst}}\n{text}```"


def _detail(name: str) -> str:
    what = None if "." in name else getattr(liedyn, name)
    if not inspect.isclass(what):
        return f".. autofunction:: {name}\n"
    return f".. autoclass:: {name}\n" if issubclass(what, Exception) else _class(name)


def _class(name: str, options: str = "") -> str:
    return f".. autoclass:: {name}\n   :members:\n{options}"


def _returned(names: tuple[str, ...]) -> list[type]:
    """Classes of liedyn that functions return and that are not public names."""
    public = {getattr(liedyn, name) for name in liedyn.__all__}
    found = []
    for function in (getattr(liedyn, name) for name in names):
        result = function.__annotations__.get("return") if inspect.isfunction(function) else None
        result = function.__globals__.get(result) if isinstance(result, str) else result
        if inspect.isclass(result) and result.__module__.startswith("liedyn.") and result not in public:
            found.append(result)
    return list(dict.fromkeys(found))
