"""Comments of exported functions: what they compute, and the order, the axes and the units of their arrays."""
from __future__ import annotations

from collections.abc import Iterator
from math import prod

from liedyn import __version__
from liedyn.dynamics.inertial_parameters import inertial_parameters
from liedyn.interop.traced_functions import FunctionTrace
from liedyn.model.model import Model

_FORCES = {"rad": "N m", "m": "N"}
_FRAMES = {"local": "; twists along its axes about its origin",
           "local_world_aligned": "; twists along the axes of the world about the origin of the link",
           "world": "; twists along the axes of the world about the origin of the world"}
_TWIST = "angular, then linear"
_MEANINGS = {"pose": "maps coordinates in the link frame to the world [m]", "twist": f"twist ({_TWIST}) [rad/s | m/s]",
             "acceleration": f"rate of the twist ({_TWIST}) [rad/s^2 | m/s^2]", "energy": "[J]",
             "momentum": f"momentum ({_TWIST}) along the axes of the world about its origin [kg m^2/s | kg m/s]",
             "length": "in the world [m]", "constraint": "residuals of constraint equations [rad | m]",
             "constraint rate": "rates of constraint equations [rad/s | m/s]",
             "constraint acceleration": "terms dJ/dt v of constraint equations [rad/s^2 | m/s^2]"}
_AXES = {"v": "v", "c": "constraint equations", "p": "parameters"}
# quantities of inputs whose name differs
QUANTITIES = {"q0": "q", "q1": "q", "v_r": "v", "a_r": "a"}


def function_comment(traced: FunctionTrace) -> Iterator[str]:
    """Yield lines about a function."""
    model, options = traced.model, traced.options
    yield f"{traced.name.replace('_', ' ')} of the robot {model.name}, {model.base} base: {traced.trace.size} operations."
    yield f"Written by liedyn {__version__}. Gravity {' '.join(f'{g:g}' for g in model.gravity)} m/s^2."
    if "passive" in options:
        yield f"Joint springs, damping and friction {'act' if options['passive'] else 'do not act'}."
    if "link" in options:
        yield f"Link {options['link']}{_FRAMES[options['frame']] if 'frame' in options else ''}."
    if "prescribed" in options:
        names = [name for name, mask in zip(model.v_names, options["prescribed"], strict=True) if mask]
        yield f"The acceleration of these coordinates is prescribed: {', '.join(names)}."


def array_comments(traced: FunctionTrace) -> Iterator[str]:
    """Yield lines about the arrays of a function, results last."""
    model = traced.model
    for name, count in traced.inputs.items():
        yield f"{name}[{count}]: input"
        yield from _coordinates(model, QUANTITIES.get(name, name))
    for result, shape in zip(traced.function.results, traced.shapes.values(), strict=True):
        quantity, *_ = result.quantity.split("/")
        size = f"{result.name}[{prod(shape)}]: result"
        if result.axes in ("q", "v"):
            yield size
            yield from _coordinates(model, quantity)
            continue
        axes = [_AXES[axis] for axis in result.axes if axis in _AXES]
        texts = [f"{' x '.join(map(str, shape))} by rows" if len(shape) > 1 else "", _MEANINGS.get(quantity, ""),
                 f"in the order of {' and '.join(dict.fromkeys(axes))}" if axes else ""]
        yield ", ".join([size, *filter(None, texts)])
        if "p" in result.axes:
            parameters = inertial_parameters(model, passive=traced.options["passive"])
            yield from (f"  {k:3d}  {x} [{unit}]" for k, (x, unit) in enumerate(zip(*parameters[1:], strict=True)))


def coordinate_names(model: Model, quantity: str) -> tuple[str, ...]:
    """Return the names of the coordinates of q, x, v, a or tau."""
    return {"q": model.q_names, "a": model.a_names, "tau": model.tau_names}.get(quantity, model.v_names)


def _coordinates(model: Model, quantity: str) -> Iterator[str]:
    """Yield the names and units of the coordinates of q, x, v, a or tau."""
    rate = {"v": "/s", "a": "/s^2"}.get(quantity, "")
    units = model.q_units if quantity == "q" else [_FORCES[x] if quantity == "tau" else x + rate for x in model.v_units]
    for k, (x, unit) in enumerate(zip(coordinate_names(model, quantity), units, strict=True)):
        yield f"  {k:3d}  {x}{f' [{unit}]' if unit else ''}"
