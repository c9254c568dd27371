"""Checks derivatives along a trajectory against extrapolated differences of the dynamics themselves."""
from __future__ import annotations

import numpy as np

from liedyn.dynamics.hybrid import hybrid_dynamics
from liedyn.dynamics.inverse import inverse_dynamics
from liedyn.dynamics.manifold import integrate
from liedyn.errors import CheckFailed, ComputationError
from liedyn.model.model import Model
from liedyn.simulate.derivatives_along import Question, jacobian, kind_of, rows_of
from liedyn.simulate.varied import value, varied

BOUND = 1e-6          # of the relative differences: of sound derivatives about 1e-10; up to 3e-5 where cond(M) is 5e9 (iCub)
ROWS, FIGURES = 5, 60   # at most so many rows and figures of the model are compared
_STEP = 0.02          # rad, m, rad/s, m/s; inputs and figures go with their own size
_LEVELS = 7
_ROUNDING = 2e-16


def verify_rows(model: Model, asked: Question, motion) -> str:
    """The note that says how large the differences are. Raises CheckFailed where one is larger than BOUND."""
    rows = np.unique(np.linspace(0, len(motion.q) - 1, ROWS).astype(int))
    found = differences(model, asked, motion, rows)
    worst = max(found, key=found.get)
    told = f"largest relative difference from extrapolated differences, on {len(rows)} rows: {found[worst]:.1e} ({worst})"
    if not found[worst] <= BOUND:
        raise CheckFailed(f"{told}; expected at most {BOUND:g}; nothing is written")
    return told


def differences(model: Model, asked: Question, motion, rows) -> dict[str, float]:
    """Largest difference at these rows, {"dtau/dq": …}, relative to the largest entry of its kind, or to a millionth of the
    force or acceleration itself where that is more (by v, at rest, nothing depends)."""
    figures = [name for name in asked.by if kind_of(name) == "figure"]
    kept = [figures[k] for k in np.unique(np.linspace(0, len(figures) - 1, min(FIGURES, len(figures))).astype(int))]
    by = tuple(name for name in asked.by if kind_of(name) != "figure" or name in kept)
    asked = Question(asked.of, asked.prescribed, asked.outputs, by)
    chosen = rows_of(motion, rows)
    u = np.where(asked.prescribed, *(np.zeros_like(chosen.v) if x is None else x for x in (chosen.a, chosen.tau)))
    theirs, level = _differences(model, asked, chosen, u), _outcome(model, asked, chosen, chosen.q, chosen.v, u)
    scale = {"tau": asked.prescribed[asked.outputs], "a": ~asked.prescribed[asked.outputs]}
    heads = np.array([name.partition(".")[0] for name in by])
    out = {}
    ours = jacobian(model, asked, chosen)
    for kind, mask in scale.items():
        for head in dict.fromkeys(heads):
            x, y = (block[:, mask][:, :, heads == head] for block in (ours, theirs))
            if y.size:
                size = max(np.abs(y).max(), 1e-6 * np.abs(level[:, mask]).max()) or 1.0
                out[f"d{kind}/d{head}"] = float(np.abs(x - y).max() / size)
    return out


def _differences(model: Model, asked: Question, motion, u) -> np.ndarray:
    """(N, outputs, by) by extrapolated central differences."""
    out = np.empty((len(motion.q), len(asked.outputs), len(asked.by)))
    for j, name in enumerate(asked.by):
        kind, rest = kind_of(name), name.partition(".")[2]
        e = np.zeros(model.nv)
        if kind != "figure":
            e[model.v_names.index(rest)] = 1.0
        if kind == "q":
            f, steps = (lambda s, e=e: _outcome(model, asked, motion, integrate(model, motion.q, s * e), motion.v, u)), (_STEP,)
        elif kind == "v":
            f, steps = (lambda s, e=e: _outcome(model, asked, motion, motion.q, motion.v + s * e, u)), (_STEP,)
        elif kind == "u":
            f = lambda s, e=e: _outcome(model, asked, motion, motion.q, motion.v, u + s * e)                    # noqa: E731
            steps = (max(1.0, np.abs(u).max()),)
        else:
            f = lambda s, name=name: _outcome(varied(model, name, s), asked, motion, motion.q, motion.v, u)     # noqa: E731
            steps = _steps(model, name)
        out[:, :, j] = _surest(f, steps)
    return out


def _outcome(model: Model, asked: Question, motion, q, v, u) -> np.ndarray:
    """(N, outputs): tau where prescribed, a elsewhere."""
    given = {"f_ext": motion.f_ext, "passive": motion.passive}
    if asked.of == "inverse":
        return inverse_dynamics(model, q, v, u, **given)[:, asked.outputs]
    a, tau = hybrid_dynamics(model, q, v, u, u, asked.prescribed, **given)
    return np.where(asked.prescribed, tau, a)[:, asked.outputs]


def _steps(model: Model, name: str) -> tuple[float, ...]:
    """Of a figure: small beside the link's own, since accelerations bend with it, and large, since forces are linear in it."""
    head, _, rest = name.partition(".")
    if head not in ("mass", "inertia", "armature"):
        return (_STEP,)
    links = model.description.links
    size = {link.name: link.mass if head == "mass" else max(map(abs, link.inertia)) for link in links}
    most = max(size.values()) or 1.0
    own = abs(value(model, name)) if head == "armature" else size[rest if head == "mass" else rest.rpartition(".")[0]]
    small, large = _STEP * (own or 1e-4 * most), _STEP * max(own, 1.0 if head == "armature" else most)
    return (small, (small * large) ** 0.5, large)


def _surest(f, steps) -> np.ndarray:
    """`slope` from several first steps; one that leads to a body without inertia does not count."""
    best, error, failure = 0.0, np.inf, None
    for h in steps:
        try:
            found, doubt = slope(f, h)
        except ComputationError as problem:
            failure = problem
            continue
        best, error = np.where(doubt < error, found, best), np.minimum(doubt, error)
    if not np.all(np.isfinite(error)):
        raise failure or ComputationError("differences cannot be taken here: they are not finite")
    return best


def slope(f, h: float) -> tuple[np.ndarray, np.ndarray]:
    """f'(0) by central differences of steps h, h/2, …, extrapolated: of each entry the value that is surest, and how far it may
    be off (Ridders 1982, with the rounding of f: differences of a short step may agree by chance)."""
    best, error, before = 0.0, np.inf, []
    for level in range(_LEVELS):
        s = h / 2**level
        up, down = f(s), f(-s)
        rounding = _ROUNDING / s * np.maximum(np.abs(up), np.abs(down)).max(axis=-1, keepdims=True)
        row = [(up - down) / (2 * s)]
        for j, previous in enumerate(before):
            row.append(row[j] + (row[j] - previous) / (4.0**(j + 1) - 1))
            doubt = np.maximum(np.abs(row[j + 1] - row[j]), np.abs(row[j + 1] - previous)) + rounding
            best, error = np.where(doubt < error, row[j + 1], best), np.minimum(doubt, error)
        before = row
    return best, error
