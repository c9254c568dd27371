"""Contact in right-hand sides as lines against the loops: every kind of joint, every shape, materials as values of the line."""
from dataclasses import replace

import numpy as np
import pytest

import liedyn as ld
from liedyn.codegen.specialize import is_supported
from liedyn.integrators.segment import RightHandSide
from liedyn.io.scenarios.scenario import Contact, Pair, Plane, Rule, Scenario, Shape
from liedyn.kernels.simulation.rate_evaluation import rates_compiled
from liedyn.kernels.simulation.right_hand_side import RUNNING
from liedyn.simulation.input_schedule import compile_schedule
from zoo import MOVING, model_of

pytestmark = pytest.mark.skipif(not is_supported(), reason="this LLVM cannot read the text of lines: loops are used")
SHAPES = (Shape("sphere", (0.1,), material=(("exponent", 2.0), ("smooth", 0.3))), Shape("point", (), (0.1, 0.2, 0.3)),
          Shape("capsule", (0.1, 0.3), rpy=(0.1, 0.2, 0.3)), Shape("box", (0.1, 0.2, 0.3), material=(("exponent", 1.0),)))
PLANES = Plane("deep", (0.0, 0.0, 3.0), (0.2, -0.1, 2.0)), Plane("through", (0.0, 0.0, 0.0), (0.3, 0.4, 0.1))


def problem_of(model, **material):
    last, several = model.link_names[-1], len({*model.link_body} - {0}) > 1
    planes = (*PLANES, *([Plane("carried", (0.0, 0.0, 1.0), (0.1, 0.2, 1.0), last)] if several else []))
    contact = Contact((Rule(last, SHAPES), Rule("*", SHAPES[1:2])), planes,
                      tuple(({"stiffness": 10.0, "damping": 0.3} | material).items()),
                      (Pair((last, "*")),) if several else ())
    return compile_schedule(Scenario("robot", 1.0, 0.1, contacts=contact), model).problem


def rates(problem, q0, y, line: bool) -> np.ndarray:
    rhs, work, K = RightHandSide(problem, problem.signals), problem.workspace(), np.zeros((2, len(y)))
    assert rhs.generated
    assert rates_compiled(*(rhs.generated, None) if line else (None, rhs.generic_call()), 0.3, q0.copy(), y, K, 0,
                          work) == RUNNING
    return np.concatenate([K[0], work.q, work.v, work.a, work.wrench])


@pytest.mark.parametrize("name", [*MOVING, "every kind", "every kind, floating"])
def test_lines_with_contact_give_what_the_loops_give(name, worst):
    model, rng = model_of(name), np.random.default_rng(1)
    problem = problem_of(model)
    for _ in range(4):
        q0 = ld.integrate(model, problem.q, 0.3 * rng.standard_normal(model.nv))
        y = np.r_[0.3 * rng.standard_normal(model.nv), rng.standard_normal(model.nv), 0.7]
        x, z = (rates(problem, q0, y, line) for line in (False, True))
        # 1e-10: the loops of wrists near a singular position lose digits, in other orders of sums
        assert worst("contact by lines", np.abs(x - z).max() / (1 + np.abs(x).max()), name) < 1e-10


def test_materials_are_values_of_a_line_and_no_part_of_its_code():
    model = model_of("free")
    soft, hard = problem_of(model), problem_of(model, stiffness=1e4, friction=0.1, friction_speed=1e-2)
    assert soft.tables().name() == hard.tables().name()
    moved = replace(soft, contacts=soft.contacts._replace(height=soft.contacts.height + 1.0))
    assert soft.tables().name() != moved.tables().name()
    q0, y = ld.integrate(model, soft.q, np.full(model.nv, 0.1)), np.r_[np.full(2 * model.nv, 0.2), 0.0]
    from_generated, by_loops = (rates(hard, q0, y, line) for line in (True, False))
    assert np.abs(from_generated - by_loops).max() < 1e-13 * np.abs(by_loops).max()                       # 4e6 N: an ulp is 5e-10
    assert np.abs(rates(hard, q0, y, True) - rates(soft, q0, y, True)).max() > 1
