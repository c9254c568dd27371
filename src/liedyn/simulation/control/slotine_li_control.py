"""The scenario's `control: {law: slotine_li}`, bound to a model, and the estimated parameters and Lyapunov function of a run.

See `kernels.simulation.slotine_li_law`.
"""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from liedyn.arrays import Array, Integers, Mask
from liedyn.dynamics.inertial_parameters import LINK_PARAMETERS, LINK_UNITS, inertial_parameters
from liedyn.dynamics.kinematics import energy
from liedyn.errors import LiedynWarning, ScenarioError, list_names
from liedyn.immutable import Immutable
from liedyn.integrators.problem import InitialValueProblem
from liedyn.integrators.run_state import Record
from liedyn.io.scenarios.scenario import SlotineLiControl
from liedyn.joints.joint_model import tree_views
from liedyn.kernels.simulation.joint_laws import JointLaws
from liedyn.kernels.simulation.slotine_li_law import N_PARAMETERS, SlotineLi
from liedyn.model.model import Model
from liedyn.model.spatial import inertia_from_link, transform_inertia
from liedyn.simulation.control.control_law import LawContext
from liedyn.simulation.control.elastic_joint_control import is_elastic
from liedyn.simulation.control.rigid_joint_laws import bind_desired_motions
from liedyn.simulation.control.task_space_control import signal_values
from liedyn.simulation.name_binding import bind_joints, bind_rules

# of the maximum second moment of mass about the centre of mass: below it, the minimum is rounding of the numbers of a file
_MIN_EXTENT = 1e-6


def bind_slotine_li(context: LawContext, laws: JointLaws) -> JointLaws:
    """Return the laws with passivity-based control of all joints that are not prescribed now.

    Raises ScenarioError for a joint without a motion or a gain, and for parameters of a link that cannot be adapted.
    """
    control, model = context.control, context.model
    assert isinstance(control, SlotineLiControl)
    if is_elastic(model):
        raise ScenarioError("slotine_li does not support elastic joints, which this robot has", place=control.place.at("law"),
                            expected="law: feedback_linearization")
    driven, signal = bind_desired_motions(context, laws)
    for k in np.flatnonzero(~(driven | laws.prescribed)):
        raise ScenarioError(f"slotine_li drives all joints, but {model.v_names[k]} has no desired motion",
                            place=control.place.at("motion"), expected=f"a motion of {model.v_names[k]}, or a prescribed joint")
    damping, gains = np.zeros(model.nv), bind_joints(control.kd, model)
    for joint in model.joints:
        if joint.name in gains:
            damping[joint.v] = cast(float, gains[joint.name].value)
        elif driven[joint.v].any():
            raise ScenarioError(f"joint {joint.name} has no gain", place=control.place.at("kd"), expected=f"kd of {joint.name}")
    known = context.law_model
    adapted = _adapted_parameters(control, known)
    links, n, nv = np.flatnonzero(adapted.any(axis=1)), known.n_bodies, known.nv
    _check_extent(control, known, links)
    values = np.array([inertia_from_link(known.description.links[k]) for k in links]).reshape(-1)
    state = np.full(values.size, -1, dtype=np.int64)
    chosen = adapted[links].reshape(-1)
    state[chosen] = np.arange(np.count_nonzero(chosen))
    law = SlotineLi(np.where(driven, signal, -1), damping, np.array([control.bandwidth], dtype=float),
                    np.array([control.adaptation_gain], dtype=float), _known_inertia(known, links), links.astype(np.int64),
                    values, state, *map(np.zeros, (nv, nv, nv, nv, values.size, 10 * n, 12 * n, 6 * n, 6 * n, 6 * n, 6 * n,
                                           N_PARAMETERS**2)))
    return laws._replace(driven=driven, signal=signal, slotine_li=law)


def place_estimate(laws: JointLaws | None, first: int) -> JointLaws | None:
    """Return the laws of a run whose adapted parameters are the states from `first` on in `MotionWorkspace.z`."""
    if laws is None or laws.slotine_li is None:
        return laws
    state = laws.slotine_li.state
    return laws._replace(slotine_li=laws.slotine_li._replace(state=np.where(state >= 0, state + first, -1)))


def _adapted_parameters(control: SlotineLiControl, model: Model) -> Mask:
    """Return the mask (links, 10) of the parameters that are adapted. Raises ScenarioError for an unknown one."""
    names, mask = inertial_parameters(model, joints=()).names, np.zeros((len(model.link_names), N_PARAMETERS), dtype=bool)
    for rule in control.adapt:
        for name in bind_rules((rule,), names, "parameter"):
            number, _, link = name.partition(".")
            mask[model.link_names.index(link), LINK_PARAMETERS.index(number)] = True
    return mask


def _check_extent(control: SlotineLiControl, model: Model, links: Integers) -> None:
    """Raise ScenarioError for a link without mass, or whose mass is in a plane: its pseudo-inertia is not positive definite."""
    flat = []
    for k in links:
        link = model.description.links[k]
        xx, xy, xz, yy, yz, zz = link.inertia
        A = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        moments = np.linalg.eigvalsh(0.5 * np.trace(A) * np.eye(3) - A)
        if not (link.mass > 0.0 and moments[0] > _MIN_EXTENT * moments[-1]):
            flat.append(link.name)
    if flat:
        raise ScenarioError(f"parameters of {list_names(flat, 4)} cannot be adapted: the mass has no extent in some direction",
                            place=control.place.at("adapt"), found=f"the inertia of {flat[0]} in the robot file",
                            expected="mass > 0, and each principal moment of inertia less than the sum of the other two",
                            hint="name other parameters in `adapt`, or correct the robot file")


def _known_inertia(model: Model, links: Integers) -> Array:
    """Return the inertias (10 n,) of the bodies without these links."""
    tree, bodies = tree_views.py_func(model.index, model.constants), np.zeros((model.n_bodies, N_PARAMETERS))
    for k, link in enumerate(model.description.links):
        if model.link_body[k] > 0 and k not in links:
            x, T = tree.link_pose[12 * k:12 * (k + 1)], np.eye(4)
            T[:3, :3], T[:3, 3] = x[:9].reshape(3, 3), x[9:]
            bodies[model.link_body[k]] += transform_inertia(T, inertia_from_link(link))
    return bodies.reshape(-1)


def with_known_robot(problem: InitialValueProblem, first: InitialValueProblem) -> InitialValueProblem:
    """Return a problem of the run whose slotine_li law has the robot of the first problem: it does not know attached bodies."""
    if problem.sampled is not None and first.sampled is not None:
        law = with_known_robot(problem.sampled.law, first.sampled.law)
        return replace(problem, sampled=replace(problem.sampled, law=law))
    laws, known = problem.joint_laws, first.joint_laws
    if laws is None or known is None or laws.slotine_li is None or known.slotine_li is None:
        return problem
    of_first = laws.slotine_li._replace(inertia=known.slotine_li.inertia, parameters=known.slotine_li.parameters)
    return replace(problem, joint_laws=laws._replace(slotine_li=of_first))


# after a run ------------------------------------------------------------------------------------------------------------

# of the maximum: a larger increase of the Lyapunov function is reported; errors of default steps are smaller
_MAX_INCREASE = 1e-4


@dataclass(frozen=True, eq=False)
class Adaptation(Immutable):
    """Estimated parameters of a run under `slotine_li`, and its Lyapunov function.

    names, units  (P,) of the parameters, such as mass.hand
    estimate      (N, P)
    lyapunov      (N,) [J] kinetic energy of s, plus the distance of the estimate from the parameters of the robot over the
                  adaptation gain; NaN where the latter is not defined
    definite      (N,) bool: the estimated pseudo-inertias are positive definite
    """

    names: tuple[str, ...]
    units: tuple[str, ...]
    estimate: Array
    lyapunov: Array
    definite: Mask

    @property
    def columns(self) -> list[tuple[str, str, Array]]:
        """(name, unit, (N,) array) estimate.<parameter> and lyapunov, for the trajectory file."""
        return [*((f"estimate.{name}", unit, self.estimate[:, k])
                  for k, (name, unit) in enumerate(zip(self.names, self.units, strict=True))), ("lyapunov", "J", self.lyapunov)]

    def increase(self, t: Array) -> float:
        """Return the maximum increase of the Lyapunov function between events, relative to its maximum in the run.

        t   (N,) times of the rows; rows before and after an event have the same time
        """
        parts = np.split(self.lyapunov, np.flatnonzero(np.diff(t) <= 0.0) + 1)
        increase = max(float(np.max(x - np.minimum.accumulate(x))) for x in parts)
        return increase / max(float(np.max(self.lyapunov)), 1e-300)


def adaptation_rows(problem: InitialValueProblem, record: Record) -> Adaptation | None:
    """Return the estimates of the rows of a segment, and the Lyapunov function; None without `slotine_li`."""
    law = None if problem.joint_laws is None else problem.joint_laws.slotine_li
    if law is None:
        return None
    adapted, links = law.state >= 0, [problem.law_model.link_names[k] for k in law.link]
    labels = [(f"{LINK_PARAMETERS[k % N_PARAMETERS]}.{links[k // N_PARAMETERS]}", LINK_UNITS[k % N_PARAMETERS])
              for k in np.flatnonzero(adapted)]
    estimate = np.tile(law.parameters, (len(record.t), 1))
    estimate[:, adapted] = record.estimate
    true = {link.name: inertia_from_link(link) for link in problem.model.description.links}
    robot = np.array([true.get(name, np.full(N_PARAMETERS, np.nan)) for name in links]).reshape(-1)
    P, P_hat = (pseudo_inertia(x.reshape(len(x), -1, N_PARAMETERS)) for x in (np.where(adapted, robot, estimate), estimate))
    kinetic = energy(problem.model, record.q, _filtered_error(problem, law, record), passive=False)[0]
    return Adaptation(tuple(name for name, _ in labels), tuple(unit for _, unit in labels), record.estimate,
                      kinetic + log_det_divergence(P, P_hat).sum(axis=1) / law.gain[0],
                      np.asarray(np.isfinite(log_det_divergence(P_hat, P_hat)).all(axis=1)))


def _filtered_error(problem: InitialValueProblem, law: SlotineLi, record: Record) -> Array:
    """Return s (N, nv) = e' + bandwidth e, zero for prescribed coordinates."""
    s, k = np.zeros_like(record.v), np.flatnonzero(law.signal >= 0)
    t = np.array(record.t)
    if len(t):
        t[-1] = np.nextafter(t[-1], -np.inf)                   # the end of a segment belongs to the interval before it
    r, dr = (signal_values(problem, law.signal[k], t, order) for order in (0, 1))
    s[:, k] = record.v[:, k] - dr + law.bandwidth[0] * (record.q[:, problem.schedule.q_of_v[k]] - r)
    return s


def pseudo_inertia(parameters: Array) -> Array:
    """Return the pseudo-inertias (…, 4, 4) of parameters (…, 10): second, first and zeroth moments of the mass."""
    m, h, (xx, xy, xz, yy, yz, zz) = parameters[..., 0], parameters[..., 1:4], np.moveaxis(parameters[..., 4:], -1, 0)
    half, P = 0.5 * (xx + yy + zz), np.zeros((*parameters.shape[:-1], 4, 4))
    for (i, j), x in zip(((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)), (half - xx, -xy, -xz, half - yy, -yz, half - zz),
                         strict=True):
        P[..., i, j] = P[..., j, i] = x
    P[..., :3, 3], P[..., 3, :3], P[..., 3, 3] = h, h, m
    return P


def log_det_divergence(P: Array, Q: Array) -> Array:
    """Return log(det Q / det P) + tr(Q^-1 P) - 4 (…,) of positive definite matrices (…, 4, 4); NaN where P or Q is not."""
    with np.errstate(invalid="ignore", divide="ignore"):
        scale = np.sqrt(np.einsum("...ii->...i", P))
        P, Q = (x / scale[..., :, None] / scale[..., None, :] for x in (P, Q))               # dimensionless
        definite = np.asarray(np.isfinite(P + Q).all(axis=(-2, -1)))
        P, Q = (np.where(definite[..., None, None], x, np.eye(4)) for x in (P, Q))
        definite &= (np.linalg.eigvalsh(P)[..., 0] > 0.0) & (np.linalg.eigvalsh(Q)[..., 0] > 0.0)
        P, Q = (np.where(definite[..., None, None], x, np.eye(4)) for x in (P, Q))
        values = np.linalg.eigvals(np.linalg.solve(Q, P)).real
        return np.where(definite, (values - 1.0 - np.log(values)).sum(axis=-1), np.nan)


def adaptation_warnings(adaptation: Adaptation | None, check: Mapping[str, float], t: Array) -> list[LiedynWarning]:
    """Return messages about an estimate that is not physically consistent, and about a Lyapunov function that increases.

    check   values of the self-check
    t       (N,) output times
    """
    if adaptation is None:
        return []
    if not adaptation.definite.all():
        return [LiedynWarning("estimate-inconsistent", f"from t = {t[np.argmin(adaptation.definite)]:.6g} s, the estimated "
                              "parameters belong to no body: use smaller steps, or a smaller adaptation_gain")]
    increase = check["lyapunov_increase"]
    if increase <= _MAX_INCREASE:
        return []
    size = f"increases by {increase:.2g} of its maximum" if np.isfinite(increase) else "is not defined"
    return [LiedynWarning("lyapunov-increase", f"the Lyapunov function of slotine_li {size}: parameters that are not adapted "
                          "differ from those of the robot, a force is at its limit, or other forces act")]
