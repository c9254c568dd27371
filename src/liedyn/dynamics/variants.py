"""Robots of one structure with different parameters: one robot for each state of a batch, in one call."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property, wraps
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Self, TypeVar, overload

import numpy as np

from liedyn.arrays import Array, ArrayLike, Integers
from liedyn.codegen.specialize import generated_batch_function, is_enabled, simd_width, specialization_of
from liedyn.dynamics import coriolis, derivatives, dynamics, kinematics
from liedyn.dynamics.batching.calls import (
    Arguments,
    EntryPoint,
    have_state_rows,
    intercept_entry_points,
    nonempty_arrays,
    run_generated_batch,
    simd_thread_workspace,
)
from liedyn.dynamics.batching.state_blocks import state_blocks
from liedyn.dynamics.variant_constants import (
    check_inertias,
    constants_of_robots,
    models_of,
    moves_frames,
    read_parameters,
    representatives,
)
from liedyn.errors import ModelError, NameLookupError, ShapeError, UsageError
from liedyn.joints.joint_model import tree_views
from liedyn.kernels import batch_blocks
from liedyn.model.constraint_arrays import constraint_geometry, packed_model
from liedyn.model.description import NO_AXIAL_INERTIA
from liedyn.model.model import Model
from liedyn.model.model_cache import ModelValue
from liedyn.numba_tools.decorators import compile_entry_point
from liedyn.public_calls import explained

P = ParamSpec("P")
R = TypeVar("R")

_MODEL_OF_VARIANTS = ModelValue("model of variants")
_PASSIVE = slice(4, 6)       # of Model.index: whether there are springs, damping or friction, and friction


class _VariantsMethod(Generic[P, R]):
    """A function of the package as a method of `Variants`, without its first argument."""

    def __init__(self, function: Callable[Concatenate[Model, P], R]):
        self._function = explained(function)
        self.__doc__ = f"`{function.__name__}` of each robot, without its first argument."

    @overload
    def __get__(self, variants: None, owner: type) -> Self: ...
    @overload
    def __get__(self, variants: Variants, owner: type) -> Callable[P, R]: ...

    def __get__(self, variants: Variants | None, owner: type) -> Any:
        if variants is None:
            return self

        @wraps(self._function)
        def call(*arguments: P.args, **options: P.kwargs) -> R:
            with variants.in_place_of_the_model() as model:
                return self._function(model, *arguments, **options)
        return call


class Variants:
    """Robots that differ in numbers only, but not in those of loops and couplings.

    The numbers are masses, inertias, placements, axes, springs, damping, friction, armature and gravity. Springs, damping,
    friction and armature may be zero in some of them.

    Its methods are functions of the package without their first argument: dynamics, their first derivatives, mass matrices,
    poses, twists, Jacobians, energy, momentum. State k of a batch is that of robot k, so each array has as many states as there
    are robots, or is broadcast to them.

    Parameters
    ----------
    models : Model, or sequence of Model
        One model with `parameters`. Or models with the same links and joints, of the same types, in the same order, and the same
        loops, couplings and mimics.
    parameters : {name: array}, optional
        Values of parameters of N robots, by a name of `ld.parameter_names`, a name without its components such as `com.hand`, or
        a pattern such as `friction.*`. Arrays are (N,), also for all parameters that a pattern matches, or (N, k) with a column
        for each of the k parameters; a number is the value of all robots. A name takes precedence over a pattern, a long pattern
        over a short one. `origin` and `screw` are changes of the model, as in sweeps, and each robot is built.

    Raises
    ------
    ModelError
        For no models, for models that differ in more than numbers, and for values that no robot has, such as a negative mass.
    NameLookupError, ShapeError, UsageError
        For unknown parameters, arrays of wrong shapes, and patterns of equal length that match the same parameter.

    Examples
    --------
    >>> model = ld.load("robots/double_pendulum.yaml")
    >>> robots = ld.Variants(model, {"mass.lower": [1.0, 2.0], "com.lower": [[0, 0, -0.2], [0, 0, -0.3]], "damping.*": 0.1})
    >>> robots.gravity_force([[0.3, -0.2], [0.3, -0.2]]).round(3)
    array([[4.544, 0.196],
           [7.835, 0.588]])
    >>> moons = [model.with_changes(gravity=[0, 0, -g]) for g in (9.81, 1.62)]
    >>> ld.Variants(moons).gravity_force([[0.3, -0.2], [0.3, -0.2]]).round(3)
    array([[4.838, 0.49 ],
           [0.799, 0.081]])

    Values relative to those of the model:

    >>> scales = np.linspace(0.8, 1.2, 5)
    >>> ld.Variants(model, {f"mass.{link.name}": link.mass * scales for link in model.description.links})
    <Variants of double_pendulum: 5 robots, 20 numbers differ>
    """

    inverse_dynamics = _VariantsMethod(dynamics.inverse_dynamics)
    forward_dynamics = _VariantsMethod(dynamics.forward_dynamics)
    hybrid_dynamics = _VariantsMethod(dynamics.hybrid_dynamics)
    bias_force = _VariantsMethod(dynamics.bias_force)
    gravity_force = _VariantsMethod(dynamics.gravity_force)
    mass_matrix = _VariantsMethod(dynamics.mass_matrix)
    inverse_mass_matrix = _VariantsMethod(dynamics.inverse_mass_matrix)
    link_poses = _VariantsMethod(kinematics.link_poses)
    link_twist = _VariantsMethod(kinematics.link_twist)
    link_acceleration = _VariantsMethod(kinematics.link_acceleration)
    jacobian = _VariantsMethod(kinematics.jacobian)
    energy = _VariantsMethod(kinematics.energy)
    momentum = _VariantsMethod(kinematics.momentum)
    centre_of_mass = _VariantsMethod(kinematics.centre_of_mass)
    coriolis_matrix = _VariantsMethod(coriolis.coriolis_matrix)
    inverse_dynamics_derivatives = _VariantsMethod(derivatives.inverse_dynamics_derivatives)
    forward_dynamics_derivatives = _VariantsMethod(derivatives.forward_dynamics_derivatives)
    hybrid_dynamics_derivatives = _VariantsMethod(derivatives.hybrid_dynamics_derivatives)

    model: Model
    other_actuators: int | None = None        # the first robot whose actuators differ from those of `model`

    def __init__(self, models: Model | Sequence[Model], parameters: Mapping[str, ArrayLike] | None = None):
        if parameters is not None:
            self._set_parameters(models, parameters)
            return
        if isinstance(models, Model):
            raise ModelError("variants of one model need parameters", expected="ld.Variants(model, {'mass.hand': masses})")
        self.model = self._merge(models)
        self._set_constants(np.array([model.constants for model in models]))
        actuators = [[replace(actuator, limits=None) for actuator in model.description.actuators] for model in models]
        self.other_actuators = next((k for k, each in enumerate(actuators) if each != actuators[0]), None)

    def _set_parameters(self, model: Model | Sequence[Model], arrays: Mapping[str, ArrayLike]) -> None:
        """Set the robots that differ from a model in parameters."""
        if not isinstance(model, Model):
            raise UsageError("parameters are those of one model: expected ld.Variants(model, {…}), got several models")
        parameters = read_parameters(model, arrays)
        if moves_frames(parameters):
            models = models_of(model, parameters)
            self.model = self._merge(models)
            self._set_constants(np.array([model.constants for model in models]))
            return
        check_inertias(model, parameters)
        models, index = representatives(model, parameters)
        self.model = self._merge(models)
        floors = np.array([tree_views.py_func(model.index, model.constants).floor for model in models])
        self._set_constants(constants_of_robots(self.model, parameters, floors[index]))

    def _set_constants(self, constants: Array) -> None:
        """Set the constants (N, n) of all robots."""
        different = np.flatnonzero((constants != constants[0]).any(axis=0))
        self._varying_indices = tuple(map(int, different))
        self._varying_constants = np.ascontiguousarray(constants[:, different])

    @staticmethod
    def _merge(models: Sequence[Model]) -> Model:
        """Return the first model, with flags that hold for all. Raise ModelError for models that differ in more than numbers."""
        if not models:
            raise ModelError("there is no variant", expected="at least one model")
        first = merged = models[0]
        for k, other in enumerate(models):
            index = merged_index(merged, other)
            if index is None:
                raise ModelError(f"variant {k} has another structure than variant 0", found=repr(other),
                                 expected=f"links and joints of {first!r}: variants may differ in numbers only")
            if not (np.array_equal(other.loop_index, first.loop_index)
                    and np.array_equal(_geometry(other), _geometry(first))):
                raise ModelError(f"variant {k} has other loops, couplings or mimics than variant 0",
                                 expected="the same in all variants, which may differ in numbers of links and joints only")
            if _rigid_frictions(other) != _rigid_frictions(first):
                raise ModelError(f"variant {k} has rigid friction in other joints than variant 0",
                                 expected="the same model of friction in all variants, which may differ in numbers only")
            if not np.array_equal(index, merged.index):
                machine = packed_model(index, first.constants, first.loop_index, first.loop_constants)
                merged = first._copy(index=index, packed_model=machine)
        return merged

    @classmethod
    def of_numbers(cls, model: Model, places: Sequence[int], numbers: Array) -> Variants:
        """Return variants of a model whose constants with the indices `places` are `numbers` (robots, places)."""
        variants = cls.__new__(cls)
        variants.model = model
        variants._varying_indices, variants._varying_constants = tuple(map(int, places)), np.ascontiguousarray(numbers)
        return variants

    def constants_of(self, k: int) -> Array:
        """Return the constants of the model of robot k."""
        return self._with_constants_of(k, self.model)

    def _with_constants_of(self, k: int, model: Model) -> Array:
        """Return the constants of a model with those of robot k; the model may have more, of eliminated couplings."""
        constants = model.constants.copy()
        constants[list(self._varying_indices)] = self._varying_constants[k]
        return constants

    def constants_at(self, indices: Integers) -> Array:
        """Return the constants of all robots with the given indices (robots, indices)."""
        columns = {index: k for k, index in enumerate(self._varying_indices)}
        constants = np.tile(self.model.constants[indices], (len(self), 1))
        for k, index in enumerate(map(int, indices)):
            if index in columns:
                constants[:, k] = self._varying_constants[:, columns[index]]
        return constants

    def robot(self, k: int) -> Model:
        """Return the model of robot k: its numbers for the kernels; everything else is that of `model`."""
        first, constants = self.model, self.constants_of(k)
        machine = packed_model(first.index, constants, first.loop_index, first.loop_constants)
        return first._copy(constants=constants, packed_model=machine)

    @contextmanager
    def in_place_of_the_model(self) -> Iterator[Model]:
        """Yield a model with which functions compute state k of a batch for robot k, within the block.

        It is without generated functions for one state. Kernels report joints without inertia, which differ between robots.
        """
        model = self.model.cached(_MODEL_OF_VARIANTS, lambda: self.model._copy(moves_inertia=True))
        with intercept_entry_points(self._run):
            yield model

    @property
    def varying(self) -> tuple[tuple[int, ...], Array]:
        """Indices of the constants in which the robots differ, and their values (robots, indices)."""
        return self._varying_indices, self._varying_constants

    @cached_property
    def _varying_blocks(self) -> Array:
        """The constants that differ (robots / width, indices, width), as SIMD registers of generated code hold them."""
        return state_blocks(self._varying_constants, simd_width())

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without the blocks of constants, since a copy of them has another alignment."""
        return {name: value for name, value in vars(self).items() if name != "_varying_blocks"}

    def __len__(self) -> int:
        return len(self._varying_constants)

    def __repr__(self) -> str:
        return f"<Variants of {self.model.name}: {len(self)} robots, {len(self._varying_indices)} numbers differ>"

    if not TYPE_CHECKING:                                  # a type checker would accept attributes of any name
        def __getattr__(self, name: str):
            if name.startswith("_"):
                raise AttributeError(name)
            raise _NoFunctionError(f"unknown function {name!r} of variants: expected one of {', '.join(FUNCTIONS)}")

    def _run(self, model: Model, entry: EntryPoint, size: int, static_arguments: Arguments, arrays: Arguments,
             count: int | None, states: slice | None) -> int:
        """Call an entry point as `calls.run` does, with the constants of robot k for state k, or of the robots of `states`."""
        if states is not None:
            robots = Variants.of_numbers(self.model, self._varying_indices, self._varying_constants[states])
            return robots._run(model, entry, size, static_arguments, arrays, count, None) if len(robots) else batch_blocks.OK
        given_states, count = ("one state", 1) if count is None else (f"{count} states", count)
        if count != len(self):
            raise ShapeError(f"there are {len(self)} variants: expected arrays with {len(self)} states, got {given_states}")
        if is_enabled() and have_state_rows(nonempty_arrays(arrays), count):
            generated = generated_batch_function(
                model, specialization_of(entry, size, static_arguments, arrays, self._varying_indices))
            rows = nonempty_arrays((*arrays, self._varying_blocks))
            if generated is not None and run_generated_batch(generated, model, rows, count):
                return batch_blocks.OK
        signature = len(entry.liedyn_signatures) - 1
        compile_entry_point(entry, signature)
        for k in range(len(self)):
            state = [x[k:k + 1] if isinstance(x, np.ndarray) else x for x in arrays]
            constants = self._with_constants_of(k, model)
            code = entry(model._arrays.index, constants, simd_thread_workspace(size), *static_arguments, *state, 0, 1)
            if code:
                return code
        return batch_blocks.OK


class _NoFunctionError(NameLookupError, AttributeError):
    """A function that `Variants` do not have; also an AttributeError, which `hasattr` and `getattr` expect."""


def _geometry(model: Model) -> Array:
    return constraint_geometry(model.loop_constants, len(model.constraints))


def _rigid_frictions(model: Model) -> list[bool]:
    return [bool(c.rigid_friction) for joint in model.description.joints for c in joint.coordinate_parameters]


def merged_index(reference: Model, other: Model) -> Integers | None:
    """Return `Model.index` for both robots, or None if links, joints or their types differ.

    Springs, damping, friction and armature act if one of the robots has them, since zeros give the same results.
    """
    if reference.v_names != other.v_names or reference.link_names != other.link_names or reference.index.size != other.index.size:
        return None
    first, second = reference.index.copy(), other.index.copy()
    passive = first[_PASSIVE] | second[_PASSIVE]
    flags = [tree_views.py_func(x, model.constants).flags for x, model in ((first, reference), (second, other))]
    bare = flags[0] & flags[1] & NO_AXIAL_INERTIA
    for x, mark in zip((first, second), flags, strict=True):
        x[_PASSIVE], mark[:] = passive, mark & ~NO_AXIAL_INERTIA | bare
    return first if np.array_equal(first, second) else None


FUNCTIONS = tuple(name for name, value in vars(Variants).items() if isinstance(value, _VariantsMethod))
