"""Checks derivatives along a trajectory against extrapolated differences of the dynamics themselves."""
from __future__ import annotations

import numpy as np

from liedyn.analyse.along.derivative_columns import Question, jacobian, kind_of, rows_of
from liedyn.analyse.along.varied import value, varied
from liedyn.dynamics.hybrid import hybrid_dynamics
from liedyn.dynamics.inverse import inverse_dynamics
from liedyn.dynamics.manifold import integrate
from liedyn.dynamics.variants import Variants
from liedyn.errors import CheckFailed
from liedyn.model.model import Model
from liedyn.simulation.extrapolation import BOUND, Compared, compare, condition_of, own_error, surest_slope

ROWS, PARAMETERS = 5, 60   # at most so many rows and parameters of the model are compared
_STEP = 0.02          # rad, m, rad/s, m/s; inputs and parameters go with their own size


def verify_rows(model: Model, asked: Question, motion, progress) -> str:
    """The note that says how large the differences are. Raises CheckFailed where one is larger than BOUND and than what the
    differences may be off themselves."""
    rows = np.unique(np.linspace(0, len(motion.q) - 1, ROWS).astype(int))
    with progress.stage("comparing with differences"):
        found = differences(model, asked, motion, rows, progress.update)
    worst = max(found, key=lambda kind: (found[kind].excess, found[kind].off))
    told = f"largest relative difference from extrapolated differences, on {len(rows)} row{'s' * (len(rows) > 1)}: " \
           f"{found[worst].off:.1e} ({worst})"
    if not found[worst].sound:
        raise CheckFailed(f"{told}; expected at most {BOUND:g}; nothing is written")
    doubtful = max(found.values(), key=lambda one: one.doubt)
    if doubtful.doubt > BOUND:
        told += f"; where the mass matrix is nearly singular, finite differences are accurate to {doubtful.doubt:.0e} only"
    return told


def differences(model: Model, asked: Question, motion, rows, update=lambda fraction: None) -> dict[str, Compared]:
    """Largest differences at these rows, {"dtau/dq": …}, relative to the largest entry of its kind, or to a millionth of the
    force or acceleration itself where that is more (by v, at rest, nothing depends)."""
    asked, chosen = _fewer_figures(asked), rows_of(motion, rows)
    u = np.where(asked.prescribed, *(np.zeros_like(chosen.v) if x is None else x for x in (chosen.a, chosen.tau)))
    condition = condition_of(model, chosen.q, ~asked.prescribed)
    theirs, doubt = _differences(model, asked, chosen, u, condition.max(), update)
    ours, level = jacobian(model, asked, chosen), _outcome(model, asked, chosen, chosen.q, chosen.v, u)
    heads = np.array([name.partition(".")[0] for name in asked.by])
    out = {}
    for kind, mask in (("tau", asked.prescribed[asked.outputs]), ("a", ~asked.prescribed[asked.outputs])):
        for head in dict.fromkeys(heads):
            x, y, z = (block[:, mask][:, :, heads == head] for block in (ours, theirs, doubt))
            if y.size:
                size = max(np.abs(y).max(), 1e-6 * np.abs(level[:, mask]).max()) or 1.0
                doubtful = z.max(axis=1, keepdims=True) + own_error(condition[:, None, None], y)
                out[f"d{kind}/d{head}"] = compare(x, y, doubtful, size)
    return out


def _fewer_figures(asked: Question) -> Question:
    """PARAMETERS of the parameters of the model, spread over all: each takes a robot built anew for every step."""
    parameters = [name for name in asked.by if kind_of(name) == "parameter"]
    kept = {parameters[k] for k in np.linspace(0, len(parameters) - 1, min(PARAMETERS, len(parameters))).astype(int)}
    by = tuple(name for name in asked.by if kind_of(name) != "parameter" or name in kept)
    return Question(asked.of, asked.prescribed, asked.outputs, by)


def _differences(model: Model, asked: Question, motion, u, condition: float, update) -> tuple[np.ndarray, np.ndarray]:
    """(N, outputs, by) by extrapolated central differences, and how far they may be off."""
    out, doubt = np.empty((2, len(motion.q), len(asked.outputs), len(asked.by)))
    for j, name in enumerate(asked.by):
        update(j / len(asked.by))
        out[:, :, j], doubt[:, :, j] = surest_slope(*_along(model, asked, motion, u, name), condition)
    return out, doubt


def _along(model: Model, asked: Question, motion, u, name: str):
    """What comes out as a function of a change of one variable, and the first steps to take."""
    kind = kind_of(name)
    if kind == "parameter":
        return lambda s: _outcome_of(varied(model, name, s), model, asked, motion, u), _steps(model, name)
    dq, dv, du = np.zeros((3, model.nv))
    {"q": dq, "v": dv, "u": du}[kind][model.v_names.index(name.partition(".")[2])] = 1.0
    step = max(1.0, np.abs(u).max()) if kind == "u" else _STEP
    return lambda s: _outcome(model, asked, motion, integrate(model, motion.q, s * dq), motion.v + s * dv, u + s * du), (step,)


def _outcome_of(other: Model, model: Model, asked: Question, motion, u) -> np.ndarray:
    """Of a robot with other numbers, by one line for all of them."""
    if not np.array_equal(other.index, model.index):
        return _outcome(other, asked, motion, motion.q, motion.v, u)
    numbers = np.tile(other.constants, (len(motion.q), 1))
    with Variants.of_numbers(model, range(len(other.constants)), numbers).in_place_of_the_model() as robots:
        return _outcome(robots, asked, motion, motion.q, motion.v, u)


def _outcome(model: Model, asked: Question, motion, q, v, u) -> np.ndarray:
    """(N, outputs): tau where prescribed, a elsewhere."""
    given = {"f_ext": motion.f_ext, "passive": motion.passive}
    if asked.of == "inverse":
        return inverse_dynamics(model, q, v, u, **given)[:, asked.outputs]
    a, tau = hybrid_dynamics(model, q, v, u, u, asked.prescribed, **given)
    return np.where(asked.prescribed, tau, a)[:, asked.outputs]


def _steps(model: Model, name: str) -> tuple[float, ...]:
    """Of a parameter: small beside the link's own, since accelerations bend with it, and large, since forces are linear in it."""
    head, _, rest = name.partition(".")
    if head not in ("mass", "inertia", "armature"):
        return (_STEP,)
    links = model.description.links
    size = {link.name: link.mass if head == "mass" else max(map(abs, link.inertia)) for link in links}
    most = max(size.values()) or 1.0
    own = abs(value(model, name)) if head == "armature" else size[rest if head == "mass" else rest.rpartition(".")[0]]
    small, large = _STEP * (own or 1e-4 * most), _STEP * max(own, 1.0 if head == "armature" else most)
    return (small, (small * large) ** 0.5, large)
