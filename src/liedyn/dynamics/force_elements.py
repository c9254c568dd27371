"""Forces, lengths and energies of the force elements of a robot (`ForceElement`)."""
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from liedyn.arrays import Array, ArrayLike, OnError
from liedyn.dynamics.batching.arrays import as_array
from liedyn.dynamics.batching.calls import check_configuration, check_finite, evaluate
from liedyn.dynamics.batching.failed_states import handle_failed_states
from liedyn.dynamics.scales import model_scales
from liedyn.errors import LiedynWarning, ModelError, list_names, summarized
from liedyn.kernels.force_elements import (
    COORDINATE,
    ENERGY,
    FORCE,
    POWER,
    RATE,
    STATE_SIZE,
    WRENCH_A,
    WRENCH_B,
    element_states,
)
from liedyn.model.description import WORLD
from liedyn.model.element_values import element_location
from liedyn.model.force_element import element_frame
from liedyn.model.model import Model
from liedyn.model.spatial import adjoint, inverse

_COINCIDENT = 1e-6       # of the length of the robot: ends that are closer coincide up to the error of an equilibrium

@summarized
class ElementForces(NamedTuple):
    """State of n force elements, in the order of the robot file.

    length   (..., n) distance of the frames [m]; of a torsion spring its angle [rad]; zero for bushings
    rate     (..., n) its time derivative
    force    (..., n) tension [N], negative where the element pushes; of a torsion spring the torque that reduces the angle [N m]
    energy   (..., n) stored energy [J]
    power    (..., n) power of the damping [W], zero or negative
    wrench   (..., n, 6) wrench [m; f] on link b, in frame b about its origin [N m | N]

    Examples
    --------
    >>> model = ld.load("robots/toggle_clamp.yaml")
    >>> ld.element_forces(model, model.neutral(), np.zeros(model.nv)).length.round(3)
    array([0.025, 0.204, 0.204])
    """

    length: Array
    rate: Array
    force: Array
    energy: Array
    power: Array
    wrench: Array


def element_forces(model: Model, q: ArrayLike, v: ArrayLike, *, on_error: OnError = "raise") -> ElementForces:
    """Lengths, forces, energies and wrenches of the springs, dampers and other elements between links.

    Parameters
    ----------
    model : Model
    q : (..., nq) array
        Configuration [rad | m]; ball and free joints have unit quaternions x y z w.
    v : (..., nv) array
        Velocity [rad/s | m/s].
    on_error
        As in `inverse_dynamics`.

    Returns
    -------
    ElementForces
        For each of the n elements, in the order of ``model.description.elements``.

    Raises
    ------
    ShapeError, ConfigurationError

    Examples
    --------
    >>> model = ld.load("robots/toggle_clamp.yaml")
    >>> ld.element_forces(model, model.neutral(), np.zeros(model.nv)).force.round(1)      # pad, spring, damper
    array([-100. ,    6.2,    0. ])
    """
    if on_error != "raise":
        return handle_failed_states(element_forces, locals())
    x = _element_states(model, q, v)
    return ElementForces(x[..., COORDINATE], x[..., RATE], x[..., FORCE], x[..., ENERGY], x[..., POWER],
                         x[..., WRENCH_B:WRENCH_B + 6])


def undirected_damping_warnings(model: Model, q: Array) -> list[LiedynWarning]:
    """Return a warning about elements with damping whose ends coincide at q (nq,)."""
    names, elements = [], model.description.elements
    damped = [k for k, element in enumerate(elements) if element.type not in ("torsion", "bushing") and (
        any(element.damping) or (element.type == "damper" and element.table))]
    if damped:
        length = element_forces(model, q, np.zeros(model.nv)).length
        names = [elements[k].name for k in damped if length[k] < _COINCIDENT * model_scales(model).length]
    if not names:
        return []
    return [LiedynWarning("damping-undirected", f"{list_names(names, 4)}: the ends coincide, so that the damping has no "
                          "direction: it is zero at this configuration, and depends on the direction near it")]


def check_without_elements(model: Model, passive: bool, computation: str) -> None:
    """Raise ModelError if force elements act, for a computation that does not support them."""
    if passive and model.description.elements:
        raise ModelError(f"{computation} is not supported for robots with force elements",
                         place=element_location(model.description.elements[0]), hint="passive=False leaves out their forces")


def _element_states(model: Model, q: ArrayLike, v: ArrayLike) -> Array:
    """Return the numbers (..., n, STATE_SIZE) that `element_states` writes."""
    n = len(model.description.elements)
    if not n:
        x, y = as_array(q, "q", (model.nq,)), as_array(v, "v", (model.nv,))
        check_configuration(model, x)
        check_finite("v", y, model.v_names)
        return np.zeros((*np.broadcast_shapes(x.shape[:-1], y.shape[:-1]), 0, STATE_SIZE))
    return evaluate(model, "element_states", element_states, lambda _, nq, nv, __: nq + nv + n * STATE_SIZE, {"q": q, "v": v},
                    (n, STATE_SIZE))


def element_wrenches(model: Model, q: ArrayLike, v: ArrayLike, *, on_error: OnError = "raise") -> Array:
    """Sum of the wrenches of all force elements on each link, in the form of ``f_ext``.

    Parameters
    ----------
    model, q, v, on_error
        As in `element_forces`.

    Returns
    -------
    F : (..., n_links, 6) array
        [m; f] [N m | N] in the link frames. The wrenches on the ground are not included.

    Raises
    ------
    ShapeError, ConfigurationError

    Examples
    --------
    >>> model = ld.load("robots/toggle_clamp.yaml")
    >>> ld.element_wrenches(model, model.neutral(), np.zeros(model.nv)).shape == (len(model.link_names), 6)
    True
    """
    if on_error != "raise":
        return handle_failed_states(element_wrenches, locals())
    x = _element_states(model, q, v)
    F = np.zeros((*x.shape[:-2], len(model.link_names), 6))
    for k, element in enumerate(model.description.elements):
        for side, link, first, sign in (("a", element.a, WRENCH_A, -1.0), ("b", element.b, WRENCH_B, 1.0)):
            if link in model.link_names or link != WORLD:
                to_link = adjoint(inverse(element_frame(element, side)))
                F[..., model.link_index(link), :] += sign * x[..., k, first:first + 6] @ to_link
    return F
