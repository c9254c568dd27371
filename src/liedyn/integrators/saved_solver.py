"""The numbers of one of SciPy's solvers, or of `RosenbrockSolver`, with which another one goes on as if nothing had been.

They are what its attributes hold: numbers, arrays, tuples of arrays. LSODA keeps its own in Fortran, where nobody can read them:
a run by it begins anew from the state.
"""
from __future__ import annotations

import numpy as np

_SHARED = "K_extended", "K", "room"          # arrays that others look into: written, not replaced
_FIXED = "t_bound", "rtol", "atol", "method"
_KINDS = (bool, int, float, np.number, np.bool_)


def solver_numbers(solver) -> dict[str, np.ndarray]:
    """By "solver.<attribute>"; of a tuple "solver.<attribute>.<place>", of Radau's dense output "solver.sol.<attribute>"."""
    found = {"solver.t": np.array(solver.t), "solver.y": np.array(solver.y)}
    if type(solver).__name__ != "LSODA":
        for name, x in vars(solver).items():
            found |= _numbers(f"solver.{name}", vars(x) if name == "sol" and x is not None else x)
    return found


def _numbers(name: str, x) -> dict[str, np.ndarray]:
    if isinstance(x, (np.ndarray, *_KINDS)):
        return {name: np.array(x)} if np.asarray(x).dtype != object else {}
    parts = x.items() if isinstance(x, dict) else enumerate(x) if isinstance(x, tuple) else ()
    return {key: one for k, part in parts for key, one in _numbers(f"{name}.{k}", part).items()}


def set_solver(solver, saved) -> None:
    """What `solver_numbers` has found, into a new solver of the same problem."""
    names = dict.fromkeys(name.split(".")[1] for name in saved if name.startswith("solver."))
    for name in names:
        if name in _FIXED:
            continue
        of_it = {key.removeprefix(f"solver.{name}").lstrip("."): x for key, x in saved.items()
                 if key == f"solver.{name}" or key.startswith(f"solver.{name}.")}
        if name in _SHARED:
            for key, x in of_it.items():
                shared = getattr(solver, name)
                (shared[int(key)] if key else shared)[...] = x
        elif name == "sol":
            solver.sol = _radau_output(of_it)
        else:
            setattr(solver, name, _plain(of_it[""]) if "" in of_it else tuple(_plain(of_it[k]) for k in sorted(of_it, key=int)))


def _plain(x: np.ndarray):
    return np.array(x, order="K") if x.ndim else x[()]


def _radau_output(of_it):
    from scipy.integrate._ivp.radau import RadauDenseOutput
    output = object.__new__(RadauDenseOutput)
    vars(output).update({name: _plain(x) for name, x in of_it.items()})
    return output
