"""Pictures of a result, one by one."""
from __future__ import annotations

from typing import TYPE_CHECKING

from liedyn.errors import NameLookupError
from liedyn.report.run_folder import recording_of
from liedyn.simulation.run import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def figure_of(result: Result, what: str = "positions") -> Figure:
    """A Matplotlib figure of a simulated motion.

    Parameters
    ----------
    result : Result
    what : str
        replay, positions, velocities, torques, energy, … as the files in the folder `plots` of a run are called.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    NameLookupError
        For a picture that the motion does not have.

    Examples
    --------
    >>> run = ld.simulate("robots/double_pendulum.yaml", duration=0.1, q0=[0.3, 0.0])
    >>> ld.figure_of(run, "velocities").savefig("velocities.png")
    """
    from liedyn.report.pictures.all_pictures import figures

    found = figures(recording_of(result))
    if what not in found:
        raise NameLookupError(f"there is no picture {what!r} of this motion; there are {', '.join(found)}")
    return found[what]
