"""Trajectories to and from arrays in the order of a model's coordinates."""
from __future__ import annotations

from dataclasses import replace
from os import PathLike
from typing import NamedTuple

from liedyn.analyse.along.recorded_motion import columns_of_motion, motion_of_arrays
from liedyn.analyse.along.recorded_motion import motion_of as completed
from liedyn.arrays import Array
from liedyn.dynamics.calling.annotations import ArrayLike, Wrenches
from liedyn.errors import LiedynError, warn
from liedyn.io.csv import Trajectory, read_trajectory
from liedyn.loading import load_description, read_model
from liedyn.model.description import Robot
from liedyn.model.model import Model
from liedyn.saving import yaml_of
from liedyn.simulation.records.motion_columns import header_of


class RecordedMotion(NamedTuple):
    """Arrays of a trajectory of N rows.

    t        (N,) time [s]
    q        (N, nq) configurations [rad | m]
    v, a     (N, nv) velocities and accelerations
    tau      (N, nv) joint forces [N m | N]; None if the trajectory has none
    f_ext    (N, n_links, 6) external wrenches [m; f] on the links, in link frames [N m | N]; None if it has none

    Examples
    --------
    >>> model = ld.load("robots/double_pendulum.yaml")
    >>> q = np.outer(np.linspace(0, 1, 101) ** 2, [1.0, 2.0])
    >>> motion = ld.motion_of(model, ld.trajectory_of(model, np.linspace(0, 1, 101), q))
    >>> motion.v[-1].round(3), motion.tau is None
    (array([2., 4.]), True)
    """

    t: Array
    q: Array
    v: Array
    a: Array
    tau: Array | None
    f_ext: Array | None


def motion_of(model: Model, trajectory: Trajectory | str | PathLike[str]) -> RecordedMotion:
    """The arrays of a trajectory, in the order of the model's coordinates; columns are matched by name.

    Missing v and a are derived, as by `liedyn inverse`: by polynomials through seven neighbouring rows, on the manifold. They
    magnify the noise of measured positions; `identify` smooths them.

    Parameters
    ----------
    model : Model
    trajectory : Trajectory or path

    Raises
    ------
    TrajectoryError
        With file, line and column: for a file that cannot be read, missing columns, wrong units, quaternions that are not of unit
        norm; and for derivatives across an event, where two rows have the same time.

    Examples
    --------
    >>> model = ld.load("robots/double_pendulum.yaml")
    >>> t = np.linspace(0, 1, 101)
    >>> motion = ld.motion_of(model, ld.trajectory_of(model, t, np.outer(t**2, [1.0, 2.0])))
    >>> motion.a[50].round(3)
    array([2., 4.])
    """
    source = trajectory if isinstance(trajectory, Trajectory) else read_trajectory(trajectory, events=True)
    motion = completed(model, source, derive_a=True)
    warn(motion.notes)
    return RecordedMotion(source.t, motion.q, motion.v, motion.a, motion.tau, motion.f_ext)


def trajectory_of(model: Model, t: ArrayLike, q: ArrayLike, v: ArrayLike | None = None, a: ArrayLike | None = None,
                  tau: ArrayLike | None = None, *, f_ext: Wrenches | None = None, passive: bool = True) -> Trajectory:
    """A trajectory of arrays, with the names and units of the model's coordinates, for `Trajectory.save` and the commands.

    Parameters
    ----------
    model : Model
        Its robot file, base and gravity are written as comments. If it differs from its robot file in more than that, as after
        `with_changes`, `save` writes it next to the trajectory; commands use it.
    t : (N,) array
        Times [s], increasing.
    q : (N, nq) array
        Configurations [rad | m]; ball and free joints hold unit quaternions x y z w.
    v, a, tau : (N, nv) arrays, optional
        Velocities, accelerations, joint forces [N m | N].
    f_ext : (N, n_links, 6) array or {link name: (N, 6) array}, optional
        External wrenches [m; f] on links, in link frames about their origins [N m | N]; links without a wrench get no columns.
    passive : bool
        Whether springs, damping and friction of the joints act in addition to tau.

    Raises
    ------
    ShapeError, ConfigurationError, NameLookupError

    Examples
    --------
    >>> model = ld.load("robots/double_pendulum.yaml")
    >>> ld.trajectory_of(model, [0.0, 0.1], [[0.3, 0.0], [0.2, 0.1]]).save("motion.csv", force=True)
    >>> ld.read_trajectory("motion.csv").columns["q.elbow"]
    array([0. , 0.1])
    """
    t, motion = motion_of_arrays(model, t, q, tau, v, a, f_ext, passive, needed=("q",))
    columns = columns_of_motion(model, motion)
    header = header_of(model, passive=passive)
    return Trajectory(header, t, {name: x for name, _, x in columns}, {name: unit for name, unit, _ in columns},
                      model="" if _is_of_file(model, header) else yaml_of(model))


def _is_of_file(model: Model, header: dict[str, str]) -> bool:
    """Whether the comments robot, loops, base and gravity give the model."""
    def known(robot: Robot) -> Robot:
        return replace(robot, base=model.base, gravity=model.description.gravity)
    if "robot" not in header:
        return False
    expected, of_file = known(model.description), {"base": model.base, "loops": header.get("loops")}
    try:                                                            # building may change the spanning tree
        return any(known(robot()) == expected for robot in (lambda: load_description(header["robot"], **of_file),
                                                            lambda: read_model(header["robot"], **of_file).description))
    except LiedynError:
        return False
