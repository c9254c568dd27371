"""Directional derivatives against complex arithmetic (no differences: to rounding), against Kim's tables to the letter, against
differences of rebuilt robots, and against full Jacobians; over every kind of joint, every figure of the model, any mask."""
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import liedyn as ld
from bridge import file_of, relative
from complex_step import Reference, parts, vee
from liedyn.dynamics.kim2012 import Body, KimTables
from matrices import derivative
from zoo import ROBOTS, model_of, robots, state

EVERY = pytest.mark.parametrize("name", ROBOTS)
exploring = settings(max_examples=25, deadline=None, derandomize=True, database=None)

# Both sides are exact to rounding. Inverse dynamics: measured 2.7e-15 of the largest entry. Forward and hybrid: rounding times
# the condition of M, 1e4 at most here (measured 1.2e-12).
INVERSE, HYBRID = 2e-14, 2e-11


class Case:
    """A random state and a random direction of everything, figures of the model included or not."""

    def __init__(self, model, seed, figures: bool):
        rng = np.random.default_rng([seed, 6])
        self.model = model
        self.q, self.v, self.a, self.tau = state(model, seed)
        self.F, self.dF = rng.standard_normal((2, len(model.link_names), 6))
        self.dq, self.dv, self.da, self.dtau = rng.standard_normal((4, model.nv))
        names = ld.parameter_names(model) if figures else ()
        self.rates = dict(zip(names, rng.uniform(-1, 1, len(names)), strict=True))
        self.reference = Reference(model, self.q, self.v, dq=self.dq, dv=self.dv, f_ext=self.F, df_ext=self.dF, rates=self.rates)
        self.all = {"dq": self.dq, "dv": self.dv, "f_ext": self.F, "df_ext": self.dF, "parameters": self.rates}

    def masks(self, rng):
        """Nothing prescribed, everything, and any mask."""
        nv = self.model.nv
        return np.zeros(nv, bool), np.ones(nv, bool), rng.random(nv) < 0.5

    def inverse(self, **options):
        return ld.inverse_dynamics_directional(self.model, self.q, self.v, self.a, da=self.da, **self.all, **options)

    def forward(self, **options):
        return ld.forward_dynamics_directional(self.model, self.q, self.v, self.tau, dtau=self.dtau, **self.all, **options)

    def hybrid(self, mask, **options):
        """What is not to be read is NaN."""
        def known(x, of): return np.where(of, x, np.nan)
        return ld.hybrid_dynamics_directional(self.model, self.q, self.v, known(self.a, mask), known(self.tau, ~mask), mask,
                                              da=known(self.da, mask), dtau=known(self.dtau, ~mask), **self.all, **options)


@pytest.mark.parametrize("figures", [False, True], ids=["state", "state and figures"])
@EVERY
def test_directions_agree_with_complex_arithmetic(name, figures, worst):
    case = Case(model_of(name), 3, figures)
    for passive in (True, False):
        expected = case.reference.inverse(case.a, case.da, passive)
        for x, y in zip(case.inverse(passive=passive), expected, strict=True):
            assert worst("directional inverse, complex step", relative(x, y), name) < INVERSE
        for mask in case.masks(np.random.default_rng(1)):
            expected = case.reference.hybrid(case.a, case.tau, mask, case.da, case.dtau, passive)
            for x, y in zip(case.hybrid(mask, passive=passive), expected, strict=True):
                assert worst("directional hybrid, complex step", relative(x, y), name) < HYBRID
            if not mask.any():
                for x, y in zip(case.forward(passive=passive), expected[::2], strict=True):
                    assert worst("directional forward, complex step", relative(x, y), name) < HYBRID


@exploring
@given(robots, st.integers(0, 1000), st.booleans())
def test_directions_of_random_robots(robot, seed, figures):
    """Any tree, any mask. Screws that nearly depend on each other make M worse conditioned than the zoo's: the bound follows."""
    model = ld.build(robot)
    case = Case(model, seed, figures)
    for x, y in zip(case.inverse(), case.reference.inverse(case.a, case.da), strict=True):
        assert relative(x, y) < INVERSE
    bound = 1e-13 + 1e-15 * np.linalg.cond(ld.mass_matrix(model, case.q))
    for mask in case.masks(np.random.default_rng(seed)):
        for x, y in zip(case.hybrid(mask), case.reference.hybrid(case.a, case.tau, mask, case.da, case.dtau), strict=True):
            assert relative(x, y) < bound


REAL = ("ur5_robot", "panda", "kinova", "solo12", "hyq_no_sensors", "g1_29dof_rev_1_0", "talos_reduced", "centauro", "icub",
        "pr2", "tiago_no_hand", "human")


@pytest.mark.parametrize("base", ["fixed", "floating"])
@pytest.mark.parametrize("name", REAL)
def test_directions_of_real_robots(name, base, worst):
    """State and all figures at once, any mask. The bound follows the condition of M, up to 1e7: light fingers on heavy robots."""
    model = ld.load(file_of(f"{name}.urdf"), base=base).spanning_tree()
    case = Case(model, 8, True)
    for x, y in zip(case.inverse(), case.reference.inverse(case.a, case.da), strict=True):
        assert worst("directional inverse, real robots", relative(x, y), name) < 1e-13
    cond = np.linalg.cond(ld.mass_matrix(model, case.q))
    for mask in case.masks(np.random.default_rng(3)):
        for x, y in zip(case.hybrid(mask), case.reference.hybrid(case.a, case.tau, mask, case.da, case.dtau), strict=True):
            assert worst("directional hybrid, real robots, over eps cond(M)", relative(x, y) / (1e-16 * cond), name) < 20


def tables_of(reference):
    """Kim's tables with all that a derivative by p can touch, of numbers that owe nothing to liedyn."""
    bodies = []
    for link in reference.links:
        T, pT = parts(link.T)
        (S, pS), (dS, pdS), (I, pI), (F, pF) = map(parts, (link.S, link.dS, link.I, link.F))
        bodies.append(Body(link.parent, link.v, T, vee(np.linalg.inv(T) @ pT), S, pS, dS, pdS, I, F, pI, pF))
    (dV0, pdV0), (v, pv) = parts(reference.ground), parts(reference.v)
    (rotor, p_rotor), (passive, p_passive) = parts(reference.figure("armature")), parts(reference.passive())
    return KimTables(bodies, dV0, v, pv, rotor, pdV0, p_rotor, passive, p_passive)


@pytest.mark.parametrize("figures", [False, True], ids=["state", "state and figures"])
@EVERY
def test_tables_5_to_7_to_the_letter(name, figures, worst):
    """The paper's recursions, with derivatives of articulated inertias, and ours, which carries vectors only.
    Checks: K1 Tables 5-7."""
    model = model_of(name)
    case = Case(model, 4, figures)
    tables = tables_of(case.reference)
    for x, y in zip(case.inverse(), tables.table_5(case.a, case.da), strict=True):
        assert worst("Table 5", relative(x, y), name) < INVERSE
    odd = np.zeros(model.nv, bool)
    for joint in model.joints[::2]:
        odd[joint.v] = True
    for mask in (odd, ~odd, odd & False):
        expected = tables.table_7(case.a, case.tau, mask, case.da, case.dtau)
        for x, y in zip(case.hybrid(mask), expected, strict=True):
            assert worst("Tables 6 and 7", relative(x, y), name) < HYBRID


@EVERY
def test_directions_agree_with_differences(name, worst):
    """Independent of the reference's kinematics: along q (+) e dq, v + e dv, …; without friction, whose scale is 0.01 rad/s."""
    model = model_of(name)
    case = Case(model, 5, False)
    rate = 0.2                                       # within which the state varies little enough for eighth order

    def moved(e, function):
        q = ld.integrate(model, case.q, rate * e * case.dq)
        return function(q, *(x + rate * e * dx for x, dx in ((case.v, case.dv), (case.a, case.da), (case.tau, case.dtau),
                                                             (case.F, case.dF))))
    mask = np.arange(model.nv) % 2 == 0
    inverse = derivative(lambda e: moved(e, lambda q, v, a, tau, F: ld.inverse_dynamics(model, q, v, a, f_ext=F, passive=False)))
    hybrid = derivative(lambda e: moved(e, lambda q, v, a, tau, F: np.array(
        ld.hybrid_dynamics(model, q, v, a, tau, mask, f_ext=F, passive=False))))
    assert worst("directional inverse, differences", relative(rate * case.inverse(passive=False)[1], inverse), name) < 1e-11
    for x, y in zip(case.hybrid(mask, passive=False)[2:], hybrid, strict=True):
        assert worst("directional hybrid, differences", relative(rate * x, y), name) < 1e-9


@EVERY
def test_hybrid_directions_undo_inverse_directions(name, worst):
    """dtau of inverse dynamics at the completed motion, along the completed direction, is the completed dtau."""
    case = Case(model_of(name), 6, True)
    mask = case.masks(np.random.default_rng(2))[2]
    a, tau, da, dtau = case.hybrid(mask)
    again = ld.inverse_dynamics_directional(case.model, case.q, case.v, a, da=da, **case.all)
    size = np.abs(ld.mass_matrix(case.model, case.q)).max() * np.abs(da).max()
    for x, y in zip(again, (tau, dtau), strict=True):
        assert worst("directional ID of directional HD", relative(x, y, size), name) < 1e-12


@EVERY
def test_unit_directions_are_columns_of_the_full_jacobians(name, worst):
    """All columns at once: nv directions of one state."""
    model = model_of(name)
    q, v, a, tau = state(model, 7)
    eye = np.eye(model.nv)
    full = ld.inverse_dynamics_derivatives(model, q, v, a)
    for moved, columns in (("dq", full.dtau_dq), ("dv", full.dtau_dv), ("da", full.M)):
        ours = ld.inverse_dynamics_directional(model, q, v, a, **{moved: eye})[1].T
        assert worst("directions against full Jacobians, inverse", relative(ours, columns), name) < 1e-12
    full = ld.forward_dynamics_derivatives(model, q, v, tau)
    for moved, columns in (("dq", full.da_dq), ("dv", full.da_dv), ("dtau", full.M_inverse)):
        ours = ld.forward_dynamics_directional(model, q, v, tau, **{moved: eye})[1].T
        assert worst("directions against full Jacobians, forward", relative(ours, columns), name) < HYBRID
    mask = np.arange(model.nv) % 2 == 0
    full = ld.hybrid_dynamics_derivatives(model, q, v, a, tau, mask).split()
    for moved, columns in (({"dq": eye}, full[0::3]), ({"dv": eye}, full[1::3]), ({"da": eye, "dtau": eye}, full[2::3])):
        ours = ld.hybrid_dynamics_directional(model, q, v, a, tau, mask, **moved)[2:]
        for x, y in zip(ours, columns, strict=True):
            assert worst("directions against full Jacobians, hybrid", relative(x.T, y), name) < HYBRID
