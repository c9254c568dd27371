"""What the dynamics of the open tree says to a robot whose loops and couplings it would leave out."""
from __future__ import annotations

from liedyn.errors import ModelError


def refuse_constraints(model, function: str, instead: str | None = None) -> None:
    """ModelError for a robot with constraints (`model.nc`), with the function that obeys them."""
    names = [one.name for one in model.constraints]
    shown = ", ".join(names[:4]) + (", …" if len(names) > 4 else "")
    use = f"use {instead}, or " if instead else "no function obeys them here; "
    raise ModelError(f"{function} does not account for the constraints of robot {model.name} ({shown})",
                     hint=f"{use}model.open_tree() for the robot without them; see docs/loops.md#dynamics")
