"""Names of joints whose acceleration is not defined, for error messages and for checks before a run.

`model.articulated_inertia` computes them. They depend on which joints are prescribed.
"""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from liedyn.arrays import Array, Mask
from liedyn.dynamics.scales import model_scales
from liedyn.errors import ComputationError, list_names
from liedyn.joints.joint_model import tree_views
from liedyn.kernels.couplings import coupling_views
from liedyn.model.articulated_inertia import BodyTree, split_configuration, vanishing_coordinates
from liedyn.model.constraint_arrays import packed_model
from liedyn.model.description import NO_AXIAL_INERTIA, Joint
from liedyn.model.model import Model
from liedyn.model.model_cache import ModelValue
from liedyn.model.spatial import pose_from_array
from liedyn.model.warnings import describe_missing_inertia

_MAX_NAMES = 4
_POSITIVE_INERTIA = ModelValue("model with positive inertia")


@dataclass(frozen=True)
class _SingularJointsKey:
    """Key of the joints without inertia. prescribed: the mask of prescribed coordinates as bytes."""

    prescribed: bytes


def joints_without_inertia(model: Model, prescribed: Mask | None = None) -> tuple[str, ...]:
    """Return the joints whose torque determines their acceleration in no configuration, the outermost first.

    prescribed: (nv,) bool; for a model whose couplings are eliminated, True for followers. Loops are not considered.
    """
    if model.moves_inertia:
        return ()
    mask = np.zeros(model.nv, dtype=bool) if prescribed is None else np.asarray(prescribed, dtype=bool)
    return model.cached(_SingularJointsKey(mask.tobytes()), lambda: _singular_joints(model, mask))


def check_joints_move_inertia(model: Model, prescribed: Mask) -> None:
    """Raise ComputationError that names a joint without inertia that is not prescribed. See `joints_without_inertia`.

    Kernels also recognize its pivot as rounding, but not in each configuration: rounding grows near other singular ones.
    """
    names = joints_without_inertia(model, prescribed)
    if names:
        raise ComputationError(describe_joints_without_inertia(model, names))


def with_positive_inertia(model: Model) -> Model:
    """Return a model whose mass matrix is a metric: joints that move no inertia have armatures of a characteristic size.

    Projections onto the constraints use it. Without a mass, any metric of these coordinates is as good.
    """
    return model if model.moves_inertia else model.cached(_POSITIVE_INERTIA, lambda: _with_positive_inertia(model))


def _with_positive_inertia(model: Model) -> Model:
    armature, scales = body_tree(model).armature.copy(), model_scales(model)
    for name in joints_without_inertia(model):
        for k in range(model.v_index(name).start, model.v_index(name).stop):
            armature[k] += scales.mass * (1.0 if model.v_units[k] == "m" else scales.length**2)
    return with_armature(model, armature)._copy(moves_inertia=True)


def with_armature(model: Model, armature: Array) -> Model:
    """Return a copy of a model for the kernels with other armatures (nv,), which may be negative."""
    index, constants = model.index.copy(), model.constants.copy()
    tree = tree_views.py_func(index, constants)
    changed = np.flatnonzero(tree.armature != armature)
    tree.armature[:] = armature
    bodies = np.searchsorted(tree.iv[1:], changed, side="right")
    tree.flags[bodies] &= ~NO_AXIAL_INERTIA
    packed = packed_model(index, constants, model.loop_index, model.loop_constants)
    return model._copy(index=index, constants=constants, packed_model=packed)


def describe_singular_joints(model: Model, prescribed: Mask | None = None, q: Array | None = None) -> str:
    """Return why accelerations are not defined: names of joints without inertia, or of those that have none at a state of q.

    q: (N, nq) states of a batch, at least one of which is singular. Joints that are singular there are named for one state.
    """
    names = joints_without_inertia(model, prescribed)
    if names:
        return describe_joints_without_inertia(model, names)
    if q is not None and len(q) == 1:
        mask = np.zeros(model.nv, dtype=bool) if prescribed is None else prescribed
        names = _singular_joints(model, mask, q[0])
    suffix = f" (joint {_listing(names)})" if names else ""
    return (f"a joint's articulated inertia vanishes in this configuration: its acceleration is not defined{suffix}; "
            "a compound joint may be in a singular position, or a prismatic joint may have moved a mass onto an axis")


def describe_joints_without_inertia(model: Model, names: tuple[str, ...], prescribe: str = "prescribe its motion") -> str:
    """Return an error message for joints that are driven by torques and move no inertia. prescribe: advice for joint {}."""
    of_name = {joint.name: joint for joint in model.description.joints}
    joint = of_name.get(names[0]) or Joint(names[0], "free", "world", model.link_names[0])
    further = f" (also {_listing(names[1:])})" if names[1:] else ""
    reason = describe_missing_inertia(model.description, joint)
    return (f"the acceleration of joint {names[0]!r} is not defined: {reason}{further}; {prescribe.format(names[0])}, or give "
            "the link mass and inertia, or the joint armature")


def _listing(names: tuple[str, ...]) -> str:
    return list_names([*map(repr, names)], _MAX_NAMES)


def singular_coordinates(model: Model, prescribed: Mask, q: Array | None = None) -> list[int]:
    """Return the coordinates whose torque does not determine their acceleration, at q or in every configuration."""
    tree = body_tree(model)
    return vanishing_coordinates(tree, prescribed, _projection(model), None if q is None else split_configuration(tree, q))


def _singular_joints(model: Model, prescribed: Mask, q: Array | None = None) -> tuple[str, ...]:
    vanishing = singular_coordinates(model, prescribed, q)
    names = [joint.name for joint in model.joints if not set(vanishing).isdisjoint(range(joint.v.start, joint.v.stop))]
    return tuple(names[::-1])


def body_tree(model: Model) -> BodyTree:
    """Return the bodies of a model for `model.articulated_inertia`."""
    tree, n = tree_views.py_func(model.index, model.constants), model.n_bodies
    return BodyTree(tree.parent, tree.kind, tree.S.reshape(n, 2), pose_from_array(tree.T0.reshape(n, 12)), tree.I.reshape(n, 10),
                    tree.armature)


def _projection(model: Model) -> Array | None:
    """Return N of the couplings at the end of the arrays of a model, or None without any."""
    couplings = coupling_views.py_func(model.index, model.constants)
    if not couplings.follower.size:
        return None
    N = np.eye(model.nv)
    for f, k in enumerate(couplings.follower):
        terms = slice(couplings.first[f], couplings.first[f + 1])
        N[k] = 0.0
        np.add.at(N[k], couplings.term[terms], couplings.ratio[terms])
    return N
