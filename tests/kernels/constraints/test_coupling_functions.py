"""Functions of nonlinear couplings in the kernels: one state, vectorized and traced, against `model.coupling_functions`."""
import numpy as np
import pytest

import liedyn as ld
from liedyn.codegen.specialize import generic_kernels
from liedyn.codegen.trace import traced_module
from liedyn.model.coupling_expression import FUNCTIONS, CouplingFunction, read_expression
from liedyn.model.coupling_functions import INPUT, OPERATIONS, evaluate, function_program
from liedyn.model.description import Coupling, Joint, Robot
from liedyn.model.links import Link

X, Y = np.sort(np.random.default_rng(1).uniform(-2.0, 2.0, 11)), np.random.default_rng(2).standard_normal(11)
TABLES = {f"{kind}, {'periodic' if periodic else 'straight'}": CouplingFunction(
    points=tuple(zip(X.tolist(), [*Y[:-1].tolist(), float(Y[0] + 2 * np.pi if periodic else Y[-1])], strict=True)),
    interpolation=kind, periodic=periodic) for kind in ("cubic", "quintic") for periodic in (False, True)}
EXPRESSIONS = {name: read_expression(f"{name}(0.2*q + 0.3{', 1.5 + q' * (name == 'atan2')})", "cam", None) for name in FUNCTIONS}
CASES = TABLES | EXPRESSIONS | {"all": read_expression("(q + 9)**1.3/(2 + cos(q))**3 - q", "cam", None)}


def robot(function):
    links = tuple(Link(name, 1.0, (0.1, 0.2, 0.3), (0.3, 0.0, 0.0, 0.4, 0.0, 0.5)) for name in "ab")
    joints = (Joint("cam", "continuous", "world", "a", axes=((0, 0, 1),)),
              Joint("lift", "continuous", "a", "b", axes=((0, 1, 0),)))
    return Robot("r", links, joints, couplings=(Coupling("valve", (("lift", "", 1.0), ("cam", "", 0.0)), function=function),))


@pytest.mark.parametrize("name", CASES)
def test_kernels_compute_what_the_program_says(name):
    """Nine states fill one SIMD register and start another."""
    model, program = ld.build(robot(CASES[name])), function_program(CASES[name])
    x = np.random.default_rng(3).uniform(-2.5 if name in TABLES else -1.4, 2.5, 9)
    q, v = np.column_stack([x, np.zeros(9)]), np.tile([1.0, 0.0], (9, 1))
    f, df, ddf, dddf = evaluate(program, x)

    def compare():
        scale = 1e-13 * np.abs([f, df, ddf, dddf]).max()
        np.testing.assert_allclose(ld.constraint_residual(model, q)[:, 0], -f, rtol=0, atol=scale)
        np.testing.assert_allclose(ld.constraint_jacobian(model, q)[:, 0], np.column_stack([-df, np.ones(9)]), rtol=0, atol=scale)
        np.testing.assert_allclose(ld.constraint_velocity(model, q, v)[:, 0], -df, rtol=0, atol=scale)
        np.testing.assert_allclose(ld.constraint_bias(model, q, v)[:, 0], -ddf, rtol=0, atol=scale)
        rates = ld.balance_derivatives(model, q, 2.0 * v, 3.0 * v, np.full((9, 1), 0.7), 5.0 * v)
        np.testing.assert_allclose(rates.dR2_dq[:, 0, 0], -(3.0 * ddf + 4.0 * dddf), rtol=0, atol=10 * scale)
        np.testing.assert_allclose(rates.dR2_dv[:, 0, 0], -4.0 * ddf, rtol=0, atol=10 * scale)
        np.testing.assert_allclose(rates.dAx_dq[:, 0, 0], -5.0 * ddf, rtol=0, atol=10 * scale)
        np.testing.assert_allclose(ld.constraint_residual(model, q[4])[0], -f[4], rtol=0, atol=scale)

    with generic_kernels():
        compare()
    if name in ("quintic, periodic", "all"):
        compare()


def test_each_operation_has_a_kernel():
    """Every operation of a program is one of the kernel: an unknown one would be taken for a table."""
    used = {int(code) for function in CASES.values() for code in function_program(function).code[:, 0]}
    assert used == set(range(len(OPERATIONS)))


def test_the_traced_kernel_has_no_branch_on_the_driver():
    """Pieces of a table are selections: the trace of one state holds for all."""
    from liedyn.codegen.tracer import Operations, zeros
    ops, program = Operations(), function_program(TABLES["cubic, periodic"])
    registers = zeros(program.registers)
    registers[INPUT] = ops.inputs("q", 1)[0]
    traced_module("kernels.constraints.coupling_functions").run_program(
        program.code.ravel(), program.constants, 0, len(program.code), registers)
    assert sum(operation[0] == "less" for operation in ops.operations) == 9 * 5


def test_a_number_out_of_the_domain_is_an_error():
    model = ld.build(robot(read_expression("sqrt(q)", "cam", None)))
    with pytest.raises(ld.ComputationError):
        ld.constraint_residual(model, [-1.0, 0.0])
