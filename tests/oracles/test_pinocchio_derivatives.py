"""Full Jacobians of real robots against Pinocchio's computeRNEADerivatives and computeABADerivatives: fixed and floating, one
state and a batch, with external wrenches; hybrid ones against the formula with Pinocchio's own matrices.

None of these robots has a planar joint, so S is a permutation, and Pinocchio's tangent (right-multiplied, twists linear first)
is ours permuted. Differences are relative to the largest entry of the same matrix in the same state."""
import os

import numpy as np
import pinocchio as pin
import pytest

import liedyn as ld
from bridge import SWAP, PinocchioBridge, file_of, full, relative
from liedyn.dynamics.derivatives import SplitDerivatives

EPS = np.finfo(float).eps
ROBOTS = ["ur5_robot", "panda", "kinova", "solo12", "hyq_no_sensors", "talos_reduced", "icub", "tiago_no_hand",
          "g1_29dof_rev_1_0", "simple_humanoid", "go2", "anymal-kinova"]
BY_LINES = {"ur5_robot, floating", "panda, fixed", "solo12, floating"}
EVERY = pytest.mark.parametrize("name", ROBOTS)
BASES = pytest.mark.parametrize("base", ["fixed", "floating"])
N = 9                       # a full block of Lanes and a remainder

# Rounding of inverse dynamics (measured 1e-14); where M is solved, times its condition (5e9 for the hands of icub), measured 1.5.
INVERSE, SOLVED = 1e-13, 5.0


class Case:
    """A robot in N random states with a wrench on each link: ours and Pinocchio's side by side."""

    def __init__(self, name, base, with_wrenches, seed=1):
        path = file_of(f"{name}.urdf")
        self.name, self.model = f"{name}, {base}", ld.load(path, base=base).spanning_tree()
        self.bridge = PinocchioBridge(path, self.model)
        rng = np.random.default_rng(seed)
        self.q = ld.random_configuration(self.model, rng, N)
        self.v, self.a, self.tau = rng.standard_normal((3, N, self.model.nv))
        self.F = rng.standard_normal((N, len(self.model.link_names), 6)) if with_wrenches else None
        self.Q = [self.bridge.q(q) for q in self.q]
        self.cond = np.linalg.cond(ld.mass_matrix(self.model, self.q)).max()

    def permuted(self, *matrices):
        """Return Pinocchio's (nv, nv) in the order of liedyn."""
        return [np.array(X)[np.ix_(self.bridge.v, self.bridge.v)] for X in matrices]

    def vector(self, x):
        """Return a vector (nv,) of liedyn in Pinocchio's order."""
        out = np.empty_like(x)
        out[self.bridge.v] = x
        return out

    def wrenches(self, k):
        """Return the wrenches of state k, on Pinocchio's joints and in their frames."""
        out = [pin.Force.Zero() for _ in range(self.bridge.pin.njoints)]
        for name, F in zip(self.model.link_names, self.F[k] if self.F is not None else (), strict=self.F is not None):
            frame = self.bridge.pin.frames[self.bridge.pin.getFrameId(name, pin.FrameType.BODY)]
            out[frame.parentJoint] += frame.placement.act(pin.Force(F[SWAP]))
        return out

    def inverse(self, k, a=None):
        """Return dtau_dq, dtau_dv, M of state k."""
        Q, V, A = self.Q[k], self.vector(self.v[k]), self.vector(self.a[k] if a is None else a)
        dq, dv, M = pin.computeRNEADerivatives(self.bridge.pin, self.bridge.data, Q, V, A, self.wrenches(k))
        return self.permuted(dq, dv, full(M))

    def forward(self, k):
        """Return da_dq, da_dv, M_inverse of state k."""
        Q, V, tau = self.Q[k], self.vector(self.v[k]), self.vector(self.tau[k])
        dq, dv, N = pin.computeABADerivatives(self.bridge.pin, self.bridge.data, Q, V, tau, self.wrenches(k))
        return self.permuted(dq, dv, full(N))


def both_numbers(function, case, *states):
    """Yield (kind, results of state k) for all k: of a batch, and of one state at a time."""
    states = [*states, case.F] if case.F is not None else list(states)
    batch = function(case.model, *states)
    for k in range(N):
        yield "Lanes", k, [x[k] for x in batch]
        yield "float64", k, function(case.model, *(x[k] for x in states))


def inverse(model, q, v, a, F=None): return ld.inverse_dynamics_derivatives(model, q, v, a, f_ext=F, passive=False)
def forward(model, q, v, tau, F=None): return ld.forward_dynamics_derivatives(model, q, v, tau, f_ext=F, passive=False)


def test_robots_have_only_joints_whose_velocity_is_pinocchios_permuted():
    assert set(ROBOTS) >= {name.partition(",")[0] for name in BY_LINES}
    for name in ROBOTS:
        for base in ("fixed", "floating"):
            types = {joint.type for joint in ld.load(file_of(f"{name}.urdf"), base=base).joints}
            assert types <= {"revolute", "continuous", "prismatic", "free"}


@pytest.mark.parametrize("with_wrenches", [False, True], ids=["alone", "with wrenches"])
@BASES
@EVERY
def test_inverse_dynamics_derivatives(name, base, with_wrenches, worst):
    case = Case(name, base, with_wrenches)
    expected = [case.inverse(k) for k in range(N)]
    for kind, k, ours in both_numbers(inverse, case, case.q, case.v, case.a):
        for what, x, y in zip("qva", ours, expected[k], strict=True):
            assert worst(f"Pinocchio, {kind}: dtau by {what}", relative(x, y), case.name) < INVERSE


@pytest.mark.parametrize("with_wrenches", [False, True], ids=["alone", "with wrenches"])
@BASES
@EVERY
def test_forward_dynamics_derivatives(name, base, with_wrenches, worst):
    """Within eps cond(M)."""
    case = Case(name, base, with_wrenches)
    expected = [case.forward(k) for k in range(N)]
    for kind, k, ours in both_numbers(forward, case, case.q, case.v, case.tau):
        for what, x, y in zip(("q", "v", "tau"), ours, expected[k], strict=True):
            off = relative(x, y)
            worst(f"Pinocchio, {kind}: da by {what}", off, case.name)
            assert worst(f"Pinocchio, {kind}: da by {what}, over eps cond(M)", off / EPS / case.cond, case.name) < SOLVED


@BASES
@EVERY
def test_hybrid_dynamics_derivatives(name, base, worst):
    """da_v = -M_vv^-1 dID_v, dtau_u = dID_u + M_uv da_v, with Pinocchio's dID and M at the completed motion."""
    case = Case(name, base, True)
    rng = np.random.default_rng(2)
    shares = (0.2, 0.5, 0.8) if os.environ["LIEDYN_CODE"] == "generic" else (0.5,)      # each mask is generated code of its own
    for share in shares:
        mask = rng.random(case.model.nv) < share
        a = ld.hybrid_dynamics(case.model, case.q, case.v, case.a, case.tau, mask, f_ext=case.F, passive=False)[0]

        def hybrid(model, q, v, a, tau, F, mask=mask):
            return ld.hybrid_dynamics_derivatives(model, q, v, a, tau, mask, f_ext=F, passive=False).split()
        expected = [by_formula(*case.inverse(k, a[k]), mask) for k in range(N)]
        for kind, k, ours in both_numbers(hybrid, case, case.q, case.v, case.a, case.tau):
            M = np.abs(case.inverse(k)[2])
            for field, x, y, da in zip(SplitDerivatives._fields, ours, expected[k], [None] * 3 + expected[k][:3], strict=True):
                size = 0.0 if da is None else (M @ np.abs(da)).max()             # dtau is a sum with M da, and may nearly cancel
                off = relative(x, y, size) / EPS / case.cond
                assert worst(f"Pinocchio, {kind}: hybrid {field}, over eps cond(M)", off, case.name) < SOLVED


def by_formula(Dq, Dv, M, mask):
    """Return six matrices from the derivatives of inverse dynamics at the completed motion."""
    nv, w = len(M), ~mask
    Du, unit = np.where(mask, M, 0.0), np.eye(nv)
    da = [np.zeros((nv, nv)), np.zeros((nv, nv)), unit * mask]
    for x, D in zip(da, (Dq, Dv, Du - unit * w), strict=True):
        x[w] = -np.linalg.solve(M[np.ix_(w, w)], D[w]) if w.any() else 0
    dtau = [np.where(mask[:, None], D + M[:, w] @ x[w], 0.0) for x, D in zip(da, (Dq, Dv, Du), strict=True)]
    dtau[2] = dtau[2] + unit * w
    return [*da, *dtau]
