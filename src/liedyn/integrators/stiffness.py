"""How fast the forces of joints and contacts act, which bounds the steps of explicit methods, and what may end a run.

A force -D v decays at the rates of M^-1 D, a spring K swings at the roots of M^-1 K. An explicit method is stable while its step
times the largest of them is below a bound, about 2.78 for rk4. Coulomb friction, smoothed about rest, counts by its secant: where
the step is too long, it turns the velocity round in each step, and the joint chatters where it should stand.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from liedyn.dynamics.inverse import inverse_dynamics
from liedyn.dynamics.loops.constraints import constraint_jacobian
from liedyn.dynamics.loops.rank import column_scale, scaled_equations, significant
from liedyn.integrators.stop_forces import stop_coefficients
from liedyn.integrators.touch import touch_coefficients
from liedyn.joints.kinds import FRICTION_SPEED
from liedyn.joints.tree import tree_of

if TYPE_CHECKING:
    from liedyn.integrators.problem import Options

GAINS = "pd gains"
LIMIT = 2.78             # of rk4: step times rate
_NOTHING = 1e-10         # of the usual: an inertia that is nearly nothing
_ROWS = 50               # of a record that are looked at


class Fastest(NamedTuple):
    rate: float          # 1/s; 0 where no force depends on the state
    coordinate: str
    t: float
    contact: bool = False        # coordinate is the contact of a link
    causes: tuple[str, ...] = ()           # what acts on the coordinate at this rate

    @property
    def acting(self) -> str:
        """Subject and verb, such as "friction and pd gains of elbow act"."""
        causes = " and ".join(filter(None, (", ".join(self.causes[:-1]), *self.causes[-1:])))
        one = len(self.causes) == 1 and self.causes[0] != GAINS
        return f"forces of {self.coordinate} act" if self.contact else f"{causes} of {self.coordinate} {'acts' if one else 'act'}"


def fastest(problem, t: float, q, v, pressed: bool = True) -> Fastest:
    """The fastest rate at which damping, friction, springs, pd laws, stops and contacts act on the coordinates whose motion is
    not prescribed. pressed: contacts count as if each carried its share of the weight at the least, stops the load of the joint.

    Driven closures count as if they stood at home."""
    parts, free = _coefficients(problem, q, v, pressed)
    resist, spring = (sum(x[free] for x in kind.values()) for kind in parts)
    names, touching = [problem.model.v_names[k] for k in free], None
    if problem.contacts is not None:
        touching, *more = touch_coefficients(problem.model, problem.contacts, q, v, pressed)
        resist, spring = np.concatenate([resist, more[0]]), np.concatenate([spring, more[1]])
        names += [f"the contact of {problem.model.link_names[k]}" for k in np.repeat(problem.contacts.link, 3)]
    if not (resist.any() or spring.any()):
        return Fastest(0.0, "", t)
    motions = _unit_motions(problem, q, free)
    if touching is not None:
        motions = np.vstack([motions, touching[:, free] @ motions])
    found = []
    for kind, (x, power) in enumerate(((resist, 2), (spring, 1))):
        acted = np.flatnonzero(x)
        if acted.size and motions.size:
            u, s, _ = np.linalg.svd(np.sqrt(x[acted])[:, None] * motions[acted], full_matrices=False)
            found.append((float(s[0] ** power), int(acted[np.argmax(np.abs(u[:, 0]))]), kind))    # s^2: an eigenvalue of M^-1 D
    rate, k, kind = max(found, default=(0.0, 0, 0))
    causes = tuple(name for name, x in parts[kind].items() if x[free[k]]) if rate and k < len(free) else ()
    return Fastest(rate, names[k] if rate else "", t, k >= len(free), causes)


def fastest_along(problem, record) -> Fastest:
    """The same along a recorded motion, at some of its rows."""
    rows = np.unique(np.linspace(0, len(record.t) - 1, _ROWS).astype(int))
    return max(fastest(problem, float(record.t[k]), record.q[k], record.v[k], False) for k in rows)


def _coefficients(problem, q, v, pressed):
    """Damping and stiffness (nv,) of all coordinates, by cause, and the numbers of the free ones."""
    s, tree = problem.schedule, tree_of.py_func(problem.model.index, problem.model.constants)
    free, law = np.flatnonzero(~problem.prescribed), np.asarray(s.target) >= 0
    resist, spring = {}, {}
    if problem.passive:
        resist = {"damping": tree.damping, "friction": tree.friction / np.hypot(v, FRICTION_SPEED)}
        spring = {"the spring": tree.stiffness}
    resist[GAINS], spring[GAINS] = np.where(law, s.kd, 0.0), np.where(law, s.kp, 0.0)
    if problem.stops is not None:
        resist["the stop"], spring["the stop"] = stop_coefficients(problem, q, v, pressed)
    return (resist, spring), free


def _unit_motions(problem, q, free) -> np.ndarray:
    """Columns of unit kinetic energy (times 2) that span what the free coordinates can do: W W^T = M^-1."""
    Z = np.eye(len(free))
    if problem.ties is not None:
        model = problem.model
        _, s, Vt = np.linalg.svd(scaled_equations(model, constraint_jacobian(model, q))[:, free])
        Z = column_scale(model)[free, None] * Vt[int(significant(s).sum()):].T
    M = Z.T @ mass_matrix_by_columns(problem.model, q)[np.ix_(free, free)] @ Z
    if not np.isfinite(M).all():
        return np.zeros((len(free), 0))
    w, U = np.linalg.eigh(M)
    floor = np.finfo(float).eps * w.max(initial=1e-300)
    return Z @ (U / np.sqrt(np.maximum(w, floor)))


def mass_matrix_by_columns(model, q) -> np.ndarray:
    """(nv, nv) by inverse dynamics, which a run needs anyway: the kernel of the mass matrix would take 5 s to compile."""
    tree, rest = model.open_tree(), np.zeros(model.nv)
    gravity = inverse_dynamics(tree, q, rest, rest, passive=False)
    return np.column_stack([inverse_dynamics(tree, q, rest, unit, passive=False) - gravity for unit in np.eye(model.nv)])


def weakest(problem, q) -> tuple[float, str]:
    """The least inertia of a motion, relative to the inertia of its coordinates, and the coordinate that moves most in it: of
    those that are not prescribed. 1 and no name where nothing can be said."""
    free = np.flatnonzero(~problem.prescribed)
    if not (free.size and np.isfinite(q).all()):
        return 1.0, ""
    M = mass_matrix_by_columns(problem.model, q)[np.ix_(free, free)]
    if not np.isfinite(M).all():
        return 1.0, ""
    size = np.sqrt(np.maximum(np.diag(M), 1e-300))
    w, U = np.linalg.eigh(M / np.outer(size, size))
    return float(w[0]), problem.model.v_names[free[int(np.argmax(np.abs(U[:, 0])))]]


def mend_inertia(model, coordinate: str) -> str:
    """What helps where the acceleration of a coordinate is not defined."""
    if not coordinate:
        return "give its bodies inertia, or the joint armature, or prescribe its motion"
    k = model.v_names.index(coordinate)
    joint = next(joint.name for joint in model.joints if joint.v.start <= k < joint.v.stop)
    return f"give its bodies inertia, or the joint armature, or prescribe its motion (-S joints.{joint}.prescribe.velocity=0)"


def probable_cause(problem, options: Options | None) -> tuple[str, bool]:
    """What the initial state shows of why a run ended early, "" for nothing; and whether another method may go on."""
    slight, coordinate = weakest(problem, problem.q)
    if slight < _NOTHING:
        return f"{coordinate} moves almost no inertia; {mend_inertia(problem.model, coordinate)}", False
    if options is None or options.method != "rk4":
        return "", True
    fast = fastest(problem, 0.0, problem.q, np.zeros(problem.model.nv))
    if fast.rate * options.step <= LIMIT:
        return "", True
    return (f"initially the forces at {fast.coordinate} act with a time constant of {1 / fast.rate:.1e} s, too fast for steps of "
            f"{options.step:g} s"), True
