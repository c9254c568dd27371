"""What a trajectory file gives to a computation along its rows, and what comes out."""
from __future__ import annotations

import fnmatch
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from liedyn.errors import Place, TrajectoryError, UsageError
from liedyn.model.model import Model
from liedyn.simulate.columns import bind, bind_wrenches
from liedyn.simulate.derive import derivatives, rates


@dataclass(frozen=True, eq=False)
class Along:
    """A completed trajectory, ready for `io.csv.write_trajectory`."""

    header: dict[str, str]
    t: np.ndarray
    columns: list[tuple[str, str, np.ndarray]]
    notes: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Motion:
    q: np.ndarray
    v: np.ndarray
    a: np.ndarray | None
    tau: np.ndarray | None
    f_ext: np.ndarray | None
    passive: bool
    notes: tuple[str, ...]


def mask_of(model: Model, patterns) -> np.ndarray:
    """(nv,) bool: coordinates of the joints whose names match a pattern. UsageError for one that matches nothing."""
    mask = np.zeros(model.nv, dtype=bool)
    for pattern in patterns:
        names = [name for name in model.joint_names if fnmatch.fnmatchcase(name, pattern)]
        if not names:
            raise UsageError(f"no moving joint matches {pattern!r}; the robot has {', '.join(model.joint_names) or 'none'}")
        for name in names:
            mask[model.v_index(name)] = True
    return mask


def motion_of(model: Model, trajectory, *, derive_a: bool) -> Motion:
    q, notes = positions_of(model, trajectory), []
    v, a, tau = (bind(model, trajectory, kind) for kind in ("v", "a", "tau"))
    if v is None:
        with naming(trajectory):
            v, derived = derivatives(model, trajectory.t, q)
        notes.append("velocities are derived from the positions, by polynomials through seven neighbouring rows")
    if a is None and derive_a:
        if "velocities are" in "".join(notes):
            a = derived
            notes[-1] = notes[-1].replace("velocities are", "velocities and accelerations are")
        else:
            with naming(trajectory):
                a = rates(trajectory.t, v)
            notes.append("accelerations are derived from the velocities, by polynomials through seven neighbouring rows")
    passive = trajectory.header.get("passive", "true") != "false"
    return Motion(q, v, a, tau, bind_wrenches(model, trajectory), passive, tuple(notes))


def positions_of(model: Model, trajectory) -> np.ndarray:
    """(N, nq) of the file. Refuses quaternions that are not of unit norm, with the line."""
    if not model.nv:
        raise TrajectoryError(f"the robot {model.name} has no moving joint: there is nothing to compute",
                              place=Place(trajectory.source))
    q = bind(model, trajectory, "q")
    require(trajectory, q, "q", "the positions")
    for joint in model.joints:
        if joint.type in ("ball", "free"):
            norms = np.linalg.norm(q[:, joint.q.stop - 4:joint.q.stop], axis=1)
            bad = np.flatnonzero(np.abs(norms - 1) > 4e-10)
            if len(bad):
                raise TrajectoryError(f"the quaternion of joint {joint.name} is not of unit norm",
                                      place=Place(trajectory.source, int(trajectory.lines[bad[0]])),
                                      found=f"|q| = {norms[bad[0]]:.9g}", expected="1", hint="write at least ten digits")
    return q


@contextmanager
def naming(trajectory):
    """Gives the file's name to errors that know the numbers only."""
    try:
        yield
    except TrajectoryError as error:
        if error.place is not None:
            raise
        raise TrajectoryError(error.message, place=Place(trajectory.source), found=error.found, expected=error.expected,
                              hint=error.hint) from None


def require(trajectory, array, kind: str, what: str) -> None:
    if array is None:
        raise TrajectoryError(f"there are no columns of {what}", place=Place(trajectory.source),
                              found=", ".join(trajectory.columns), expected=f"{kind}.<joint>")
