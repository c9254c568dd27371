"""Intermediate quantities of constrained dynamics at one state, by the kernels in plain Python, next to dense matrices.

For the search of a fault: the first row that differs names the kernel. Nothing is compiled, so the kernels can be edited and
stepped through.

    python tests/support/constrained_stages.py robots/four_bar.yaml
"""
from __future__ import annotations

import argparse
from typing import NamedTuple

import numpy as np

import liedyn as ld
import loop_reference
from liedyn.codegen.trace import traced_module
from liedyn.dynamics.batching.arrays import broadcast_states
from liedyn.dynamics.constraints.constrained_dynamics import _MOTION_STAGES
from liedyn.dynamics.constraints.constraints import constraint_workspace_for


class Quantity(NamedTuple):
    """A quantity, the kernel that writes it, its value and the reference."""

    name: str
    kernel: str
    value: np.ndarray
    reference: np.ndarray

    @property
    def error(self) -> float:
        """Return the maximum difference relative to the maximum number, which is at least 1."""
        return float(np.abs(self.value - self.reference).max(initial=0.0) / max(1.0, np.abs(self.reference).max(initial=0.0)))


def quantities(model, q, v, a, tau, prescribed, constraint_motion=None) -> list[Quantity]:
    """Return the quantities in the order of their computation. q and v satisfy the constraints."""
    stages, driver = (traced_module(f"kernels.constraints.{name}") for name in ("stages", "driver"))
    joint_model, loop_joints = (traced_module(f"joints.{name}") for name in ("joint_model", "loop_joints"))
    workspace = constraint_workspace_for(model, (prescribed,) * 3, True, 0.0, False, _MOTION_STAGES, True)
    d = workspace.workspace
    d.q[:], d.v[:], d.a[:], d.tau[:] = q, v, a, tau
    if constraint_motion:
        d.constraint_motion[:] = broadcast_states(model, {"q": q, "constraint_motion": constraint_motion})[1][
            "constraint_motion"].ravel()
    index, constants, rest = joint_model.unpack_model(workspace.packed_model)
    tree, loops = joint_model.tree_views(index, constants), loop_joints.constraint_views(*loop_joints.unpack_constraints(rest))
    n, m, passive = model.n_bodies, model.nc, model.has_passive_forces
    stage_ws = stages.stage_workspace(d.rest, n, model.nv, model.n_frames, m)

    A, gamma = loop_reference.equations(model, q, constraint_motion)[0], loop_reference.bias(model, q, v, constraint_motion)
    M, b = loop_reference.spanning_tree(model, q, v)
    free, given = ~prescribed, np.where(prescribed, a, 0.0)
    M_v, A_v = M[np.ix_(free, free)], A[:, free]

    def accelerations(force):
        """Return the accelerations of the free coordinates under a generalized force; the other accelerations are given."""
        x = given.copy()
        x[free] = np.linalg.solve(M_v, (np.where(free, tau, 0.0) + force - b - M @ given)[free])
        return x

    tree_frames = [loop_reference.frames(model, q, one, constraint_motion) if not hasattr(one, "terms") else None
                   for one in loop_reference.described(model)]
    stages.write_equations(tree, loops, prescribed, False, passive, d, stage_ws)
    matrix, rhs = d.solver.null.reshape(m, m).copy(), d.rhs.copy()             # the solver overwrites the matrix
    found = []
    for c, frames in enumerate(tree_frames):
        if frames is not None:
            T = np.linalg.inv(frames[0][0]) @ frames[1][0]
            found.append(Quantity(f"frames of {model.constraints[c].name}", "constraint_frames",
                                  stage_ws.rows.T[12 * c:12 * c + 12].copy(), np.r_[T[:3, :3].ravel(), T[:3, 3]]))
    G, spanning = A_v @ np.linalg.solve(M_v, A_v.T), A @ accelerations(np.zeros(model.nv)) + gamma
    found += [Quantity("A M^-1 A^T", "sweep_constraints, delassus_matrix", matrix, G),
              Quantity("-(A a + gamma) of the open tree", "accelerations, sweep_constraints", rhs, -spanning)]
    driver.solve_multipliers(d)
    multipliers = d.multipliers.copy()
    found += [Quantity("A M^-1 A^T lambda", "factor_constraints, solve_constraints", matrix @ multipliers, rhs),
              Quantity("lambda of minimum norm", "remove_null_space", multipliers,
                       np.linalg.pinv(matrix, rcond=loop_reference.RANK, hermitian=True) @ rhs)]
    stages.write_solution(tree, loops, prescribed, passive, d, stage_ws)
    x = accelerations(A.T @ multipliers)
    return [*found, Quantity("a", "add_multipliers, second_forward_pass", d.out_a.copy(), x),
            Quantity("tau where prescribed", "solve_joint", d.out_tau[prescribed],
                     (M @ x + b - A.T @ multipliers)[prescribed])]


def main(path: str) -> None:
    """Print the table of a robot file at a random state."""
    model, rng = ld.load(path), np.random.default_rng(0)
    q = ld.assemble(model, ld.random_configuration(model, rng)).q
    v = ld.project_velocity(model, q, rng.standard_normal(model.nv))
    for one in quantities(model, q, v, *rng.standard_normal((2, model.nv)), np.zeros(model.nv, dtype=bool)):
        print(f"{one.error:8.1e}  {one.name:31}  {one.kernel}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Compare intermediate quantities of constrained dynamics with dense matrices.")
    parser.add_argument("robot", help="robot file with loops or couplings")
    main(parser.parse_args().robot)
