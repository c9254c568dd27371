from __future__ import annotations

from liedyn.cli.along import along_command
from liedyn.cli.options import order_option, smooth_option


@along_command("Compute joint accelerations along a trajectory.", order_option, smooth_option)
def forward(model, motion, order, smooth, progress):
    """Compute the joint accelerations for the state and forces in each row of TRAJECTORY, a CSV of q, v and tau.

    Nothing is integrated; to simulate a motion, see `liedyn simulate`. With --order 2, the result also has the time derivatives
    d1a.elbow and d2a.elbow. They are computed from columns d1tau.elbow and d2tau.elbow, or from splines whose error is
    estimated.

    \b
    Example:  liedyn forward runs/panda_hybrid/trajectory.csv
    writes    runs/panda_hybrid/trajectory_forward.csv
    Example:  liedyn forward motion_inverse.csv --order 2
    """
    from liedyn.analyse.along.dynamics_along import dynamics_along
    return dynamics_along(model, motion, "forward", order=order, smooth=smooth, progress=progress)
