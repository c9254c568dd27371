"""Expressions as trees of Python: what is computed, in which order, and one line for all else."""
import ast
import operator

import pytest

from liedyn.errors import Place, ScenarioError
from liedyn.model.expression_parser import MAX_DEPTH, MAX_LENGTH, ExpressionParser

OPERATIONS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
              ast.Pow: operator.pow}


class Numbers(ExpressionParser):
    """Values of numbers, of t = 2, and of the function twice."""

    def without_names(self, text):
        """Return the text, which has no names of joints."""
        return text, text

    def number_value(self, x):
        """Return the number."""
        return x

    def name_value(self, node):
        """Return 2."""
        return 2.0

    def call_value(self, name, node, depth):
        """Return twice the argument."""
        return 2.0 * self.value_of(node.args[0], depth + 1)

    def operation_value(self, node, *values):
        """Return the result of an operation."""
        return -values[0] if isinstance(node, ast.UnaryOp) else OPERATIONS[type(node.op)](*values)


def value(text):
    return Numbers(text, Place(key="k")).read()


@pytest.mark.parametrize("text, expected", [
    ("1 - 2 - 3", -4.0), ("(1 + 2)*3", 9.0), ("2 + 3*t", 8.0), ("-t**2", -4.0), ("2**3**2", 512.0), ("8/2/2", 2.0), ("+(t)", 2.0),
    ("twice(1 + t)", 6.0),
    ("1e3\n + 1", 1001.0), ("+".join(["1"] * 300), 300.0)])
def test_values_are_those_of_arithmetic(text, expected):
    assert value(text) == expected


@pytest.mark.parametrize("text, message", [
    ("", "the expression is empty"), ("1" * (MAX_LENGTH + 1), "the expression is too long"), ("t; 1", "the character ';'"),
    ("t + é", "the character 'é'"), ("2 t", "not an expression: .*write products with"), ("t[0]", "a subscript is not"),
    ("t.x", "attribute access is not allowed"), ("q.elbow", r"write q\(elbow\)"), ("t > 1", "a comparison is not"),
    ("1 if t else 2", "use step"), ("t ^ 2", r"the operator \^ is not allowed"), ("t % 2", "the remainder"),
    ("not t", "a logical operation"), ("~t", "the operator ~"), ("1j", "an imaginary number"), ("True", "a logical value"),
    ("1e999", "not a finite number"), ("t(1)(2)", "not a function"), ("(1, 2)", "a list is not allowed"),
    ("-" * MAX_DEPTH + "t", "too deeply nested")])
def test_all_else_is_an_error_with_its_place(text, message):
    with pytest.raises(ScenarioError, match=f"^k: .*{message}"):
        value(text)


def test_operations_may_be_nested_up_to_the_maximum():
    assert value("-" * (MAX_DEPTH - 1) + "t") == -2.0
