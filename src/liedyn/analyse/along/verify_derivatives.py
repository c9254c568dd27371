"""Checks derivatives along a trajectory against extrapolated differences of the dynamics themselves."""
from __future__ import annotations

import numpy as np

from liedyn.analyse.along.derivative_columns import Question, jacobian, kind_of, rows_of, unit_of
from liedyn.analyse.along.varied import value, varied
from liedyn.dynamics.hybrid import hybrid_dynamics
from liedyn.dynamics.inverse import inverse_dynamics
from liedyn.dynamics.manifold import integrate
from liedyn.dynamics.scales import scales_of
from liedyn.dynamics.variants import Variants
from liedyn.errors import CheckFailed
from liedyn.joints.kinds import FRICTION_SPEED
from liedyn.model.model import Model
from liedyn.simulation.extrapolation import BOUND, Compared, compare, condition_of, own_error, rough, surest_slope

ROWS, PARAMETERS = 5, 60   # at most so many rows and parameters of the model are compared
_STEP = 0.02          # of characteristic units, masses and inertias: results are smooth over it, and rounding is small beside it
_LIGHT = 1e-4         # of the largest mass or inertia: what a link without any gets at first
_NOTHING = 1e-6       # of a force or acceleration itself: derivatives below it are judged by it


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
    """Largest differences at these rows, {"dtau/dq": …}, relative to the largest entry of its kind in characteristic units, or to
    a millionth of the force or acceleration itself where that is more (by v, at rest, nothing depends)."""
    asked, chosen = _fewer_figures(asked), rows_of(motion, rows)
    u = np.where(asked.prescribed, *(np.zeros_like(chosen.v) if x is None else x for x in (chosen.a, chosen.tau)))
    condition = condition_of(model, chosen.q, ~asked.prescribed)
    of, by = _characteristic(model, asked)
    theirs, doubt = (x * by for x in _differences(model, asked, chosen, u, of, condition.max(), update))
    ours, level = jacobian(model, asked, chosen) * by / of[:, None], _outcome(model, asked, chosen, chosen.q, chosen.v, u) / of
    heads = np.array([name.partition(".")[0] for name in asked.by])
    out = {}
    for kind, mask in (("tau", asked.prescribed[asked.outputs]), ("a", ~asked.prescribed[asked.outputs])):
        for head in dict.fromkeys(heads):
            x, y, z = (block[:, mask][:, :, heads == head] for block in (ours, theirs, doubt))
            if y.size:
                size = max(np.abs(y).max(), _NOTHING * np.abs(level[:, mask]).max()) or 1.0
                doubtful = z.max(axis=1, keepdims=True) + own_error(condition[:, None, None], y)
                out[f"d{kind}/d{head}"] = compare(x, y, doubtful, size)
    return out


def _characteristic(model: Model, asked: Question) -> tuple[np.ndarray, np.ndarray]:
    """Characteristic units of what comes out, and of what it is differentiated by."""
    units = scales_of(model)
    outputs = [f"{'tau' if asked.prescribed[k] else 'a'}.{model.v_names[k]}" for k in asked.outputs]
    return tuple(units.of_all(unit_of(model, name) for name in names) for names in (outputs, asked.by))


def _fewer_figures(asked: Question) -> Question:
    """PARAMETERS of the parameters of the model, spread over all: each takes a robot built anew for every step."""
    parameters = [name for name in asked.by if kind_of(name) == "parameter"]
    kept = {parameters[k] for k in np.linspace(0, len(parameters) - 1, min(PARAMETERS, len(parameters))).astype(int)}
    by = tuple(name for name in asked.by if kind_of(name) != "parameter" or name in kept)
    return Question(asked.of, asked.prescribed, asked.outputs, by)


def _differences(model: Model, asked: Question, motion, u, of, condition: float, update) -> tuple[np.ndarray, np.ndarray]:
    """(N, outputs, by) by extrapolated central differences, and how far they may be off; of: units of the outputs."""
    out, doubt = np.empty((2, len(motion.q), len(asked.outputs), len(asked.by)))
    for j, name in enumerate(asked.by):
        update(j / len(asked.by))
        outcome, steps = _along(model, asked, motion, u, name)
        out[:, :, j], doubt[:, :, j] = surest_slope(lambda s, f=outcome: f(s) / of, steps, condition)
    return out, doubt


def _along(model: Model, asked: Question, motion, u, name: str):
    """What comes out as a function of a change of one variable, and the first steps to take."""
    kind = kind_of(name)
    if kind == "parameter":
        return lambda s: _outcome_of(varied(model, name, s), model, asked, motion, u), _steps(model, name)
    dq, dv, du = np.zeros((3, model.nv))
    {"q": dq, "v": dv, "u": du}[kind][model.v_names.index(name.partition(".")[2])] = 1.0
    step = _STEP * scales_of(model).of(unit_of(model, name))
    if kind == "u":                                            # which results are linear in
        sizes = scales_of(model).of_all(unit_of(model, f"{'a' if given else 'tau'}.{other}")
                                        for other, given in zip(model.v_names, asked.prescribed, strict=True))
        step = float(sizes @ np.abs(du)) * np.abs(u / sizes).max(initial=1.0)
    steps = (step, 2 * FRICTION_SPEED) if kind == "v" and motion.passive and rough(model, name.partition(".")[2]) else (step,)
    return lambda s: _outcome(model, asked, motion, integrate(model, motion.q, s * dq), motion.v + s * dv, u + s * du), steps


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
    unit = scales_of(model).of(unit_of(model, name))
    if head not in ("mass", "inertia", "armature"):
        return (_STEP * unit,)
    links = model.description.links
    size = {link.name: link.mass if head == "mass" else max(map(abs, link.inertia)) for link in links}
    most = unit if head == "armature" else max(size.values()) or unit
    own = abs(value(model, name)) if head == "armature" else size[rest if head == "mass" else rest.rpartition(".")[0]]
    small, large = _STEP * (own or _LIGHT * most), _STEP * max(own, unit if head == "armature" else most)
    return (small, (small * large) ** 0.5, large)
