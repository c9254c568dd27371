"""Expressions: what they mean, and that everything else is an error."""
import math
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from liedyn.errors import Place, ScenarioError
from liedyn.kernels.simulation import signals as code
from liedyn.model.expression_parser import MAX_LENGTH
from liedyn.simulation.signals.expression import SignalProgram, compile_expression
from messages import has_parts

PLACE = Place("s.yaml", 7, "joints.elbow.torque")


def compiled(text: str, state_allowed: bool = True) -> SignalProgram:
    return compile_expression(text, PLACE, state_allowed, lambda kind, name: {None: 1, "knee": 2, "base.px": 3}[name])


@pytest.mark.parametrize("text, value", [
    ("1", 1), ("1e-3", 1e-3), ("-2**2", -4), ("(-2)**2", 4), ("2**3**2", 512), ("2**-1", 0.5), ("7-2-1", 4), ("8/4/2", 1),
    ("1+2*3", 7), ("+ -+3", -3), ("2*pi", 2 * math.pi), ("e", math.e),
    ("sin(pi/6)", math.sin(math.pi / 6)), ("sqrt(2)", math.sqrt(2)),
    ("atan2(1, -1)", 3 * math.pi / 4), ("min(3, 1, 2)", 1), ("max(3, 1, 2)", 3),
    ("clip(5, 0, 2)", 2), ("clip(-5, 0, 2)", 0),
    ("floor(-1.5)", -2), ("sign(-3)", -1), ("sign(0)", 0), ("step(0)", 1), ("step(-1e-9)", 0),
    ("abs(-2)", 2), ("0x10", 16), ("1_000", 1000), ("log(e)", 1), ("tanh(0)", 0), ("  3\n + 4 ", 7), (".5", 0.5), ("2.", 2),
])
def test_what_depends_on_nothing_is_folded(text, value):
    assert compiled(text).constant == pytest.approx(value, rel=1e-15)


def test_program():
    assert compiled("2*t + sin(pi/2)") == SignalProgram((code.LITERAL, code.TIME, code.MULTIPLY, code.LITERAL + 256, code.ADD),
                                                  (2.0, 1.0), 2)
    assert compiled("clip(t, 0, 1)").code == (code.TIME, code.LITERAL, code.MAX, code.LITERAL + 256, code.MIN)
    assert compiled("t").constant is None


def test_state_is_resolved_by_kind_and_name():
    assert compiled("q").code == (code.STATE_Q + 256,)
    assert compiled("v( knee )").code == (code.STATE_V + 512,)
    assert compiled("q(base.px) - v").code == (code.STATE_Q + 768, code.STATE_V + 256, code.SUBTRACT)


def test_names_that_python_could_not_read():
    seen = []
    compile_expression("q(left-knee) + v(arm.1) * q(größe) + v(it's)", PLACE, True, lambda *what: seen.append(what) or 0)
    assert seen == [("q", "left-knee"), ("v", "arm.1"), ("q", "größe"), ("v", "it's")]


def test_many_terms_are_not_deep():
    text = "+".join(f"sin({k}*t)" for k in range(1, 91))
    assert len(text) <= MAX_LENGTH
    assert compiled(text).depth == 3
    assert compiled("(" * 90 + "t" + ")" * 90).depth == 1
    assert compiled("sin(" * 49 + "t" + ")" * 49).depth == 1


@pytest.mark.parametrize("text", ["q", "v*t", "q(knee)", "-20*(q-1)"])
def test_state_is_refused_where_only_time_counts(text):
    with pytest.raises(ScenarioError, match="may not be used here: this signal is a function of time only"):
        compiled(text, state_allowed=False)


def test_names_that_are_expected_are_those_that_are_allowed():
    for allowed, names in ((True, "t, pi, e, q, v, q(joint), v(joint), x(link)"), (False, "t, pi, e")):
        with pytest.raises(ScenarioError, match=re.escape(f"unknown name abc: expected {names}, or a function: ")):
            compiled("abc", state_allowed=allowed)


HOSTILE = [
    ("t.real", "attribute access is not allowed in an expression … got 't.real'"),
    ("2*q.elbow", "attribute access is not allowed in an expression: got 'q.elbow' (write q(elbow))"),
    ("t.__class__.__bases__", "attribute access"),
    ("sin.__globals__", "attribute access"),
    ("().__class__", "attribute access"),
    ("t[0]", "a subscript is not allowed"),
    ("__import__(os)", "unknown function __import__"),
    ("__import__('os').system('id')", "the character \"'\" is not allowed"),
    ("eval(t)", "unknown function eval"),
    ("exec(t)", "unknown function exec"),
    ("open(t)", "unknown function open"),
    ("getattr(t, t)", "unknown function getattr"),
    ("__builtins__", "unknown name __builtins__"),
    ("os", "unknown name os"),
    ("foo", "unknown name foo"),
    ("sine(t)", "(did you mean sin?)"),
    ("sen(t)", "unknown function sen: expected t, pi, e, q, v, q(joint), v(joint), x(link), or a function: sin"),
    ("sen(t)", "(did you mean sin?)"),
    ("time", "unknown name time"),
    ("T", "unknown name T"),
    ("t < 1", "a comparison is not allowed in an expression … got 't < 1' (step(x) is 1 where x >= 0, else 0; "
     "an event has value and direction)"),
    ("t == t", "a comparison"),
    ("t is t", "a comparison"),
    ("t if t else 1", "a condition"),
    ("t and 1", "a logical operation"),
    ("not t", "a logical operation"),
    ("lambda: 0", "a lambda"),
    ("(lambda x: x)(t)", "a lambda"),
    ("(t := 1)", "an assignment"),
    ("t = 1", "not an expression: invalid syntax"),
    ("[t for t in t]", "a comprehension"),
    ("(t for t in t)", "a comprehension"),
    ("{t: t}", "a mapping"),
    ("{t}", "a set"),
    ("[1, 2]", "a list"),
    ("1, 2", "a list"),
    ("1,5*t", "write decimals with a point"),
    ("()", "a list"),
    ("'text'", "the character \"'\" is not allowed"),
    ('"text"', "the character '\"' is not allowed"),
    ("f'{t}'", "the character \"'\" is not allowed"),
    ("`t`", "the character '`' is not allowed"),
    ("t # comment", "the character '#' is not allowed"),
    ("t; t", "the character ';' is not allowed"),
    ("t\\", "is not allowed"),
    ("t\0", "the character '\\x00' is not allowed"),
    ("t\x1b[2J", "the character '\\x1b' is not allowed"),
    ("ｓｉｎ(t)", "the character 'ｓ' is not allowed"),
    ("𝑡", "the character '𝑡' is not allowed"),
    ("sin(t\u200b)", "the character '\\u200b' is not allowed"),
    ("t\u202e+1", "is not allowed"),
    ("٣*t", "the character '٣' is not allowed"),
    ("9**9**9", "not a finite number … got '9**9**9'"),
    ("9**9**9**9**9**9", "not a finite number"),
    ("1e999", "not a finite number … got '1e999'"),
    ("-1e999*t", "not a finite number"),
    ("9" * 900, "not a finite number"),
    ("1e308*10", "not a finite number"),
    ("t + 1/0", "a division by zero … got '1/0'"), ("t/(2 - 2)", "a division by zero … got 't/(2 - 2)'"),
    ("t*log(0)", "not a finite number … got 'log(0)'"),
    ("sqrt(-1)", "not a finite number"),
    ("(-8)**(1/3)", "not a finite number"),
    ("0**-1", "not a finite number"),
    ("exp(1000)", "not a finite number"),
    ("inf", "unknown name inf"),
    ("nan*t", "unknown name nan"),
    ("1j", "an imaginary number is not allowed"),
    ("True", "a logical value is not allowed"),
    ("None", "None is not allowed"),
    ("...", "Ellipsis is not allowed"),
    ("t % 2", "the remainder % is not allowed in an expression … got 't % 2' (x - y*floor(x/y))"),
    ("t // 2", "use floor(x/y)"),
    ("t ^ 2", "write powers as x**y"),
    ("t @ t", "the operator @ is not allowed"),
    ("1 << 99999999", "the operator << is not allowed"),
    ("~t", "the operator ~ is not allowed"),
    ("2t", "(write products with *)"),
    ("2(t)", "a call of something that is not a function"),
    ("sin t", "not an expression"),
    ("sin", "the function sin needs an argument: sin(…)"),
    ("sin()", "wrong arguments of sin: expected 1 argument, got 'sin()'"),
    ("sin(t, t)", "expected 1 argument"),
    ("atan2(t)", "expected 2 arguments"),
    ("clip(t, 1)", "expected 3 arguments"),
    ("max(t)", "expected 2 or more arguments"),
    ("sin(x=t)", "wrong arguments"),
    ("sin(*t)", "an unpacking"),
    ("max(**t)", "wrong arguments"),
    ("t(1)", "unknown function t"),
    ("pi()", "unknown function pi"),
    ("sin(t)(t)", "a call of something that is not a function"),
    ("q()", "q(…) takes the name of a joint: expected q(joint), got 'q()'"),
    ("q((0))", "q(…) takes the name of a joint"),
    ("q(sin(t))", "q(…) takes the name of a joint"),
    ("q(knee)(knee)", "a call of something that is not a function"),
    ("q(knee).real", "attribute access is not allowed in an expression … got 'q(knee).real'"),
    ("", "the expression is empty"),
    ("  \n ", "the expression is empty"),
    ("(t", "not an expression: '(' was never closed"),
    ("t)", "not an expression: unmatched ')'"),
    ("t +", "not an expression: invalid syntax"),
    ("import os", "not an expression: invalid syntax"),
    ("(yield t)", "Yield is not allowed"),
    ("(await t)", "Await is not allowed"),
    ("-" * 60 + "t", "too deeply nested: expected"),
    ("-" * 999 + "t", "too deeply nested"),
    ("sin(" * 60 + "t" + ")" * 60, "too deeply nested"),
    ("t**" * 60 + "t", "too deeply nested"),
    ("(" * 400 + "t" + ")" * 400, "not an expression: too many nested parentheses"),
    ("[" * 400, "not an expression"),
    ("t" * 1001, "the expression is too long: expected at most 1000 characters, got 1001"),
    ("t" * 10_000_000, "the expression is too long"),
]


@pytest.mark.parametrize("text, message", HOSTILE, ids=[f"{k}-{text[:20]!r}" for k, (text, _) in enumerate(HOSTILE)])
def test_everything_else_is_refused(text, message):
    with pytest.raises(ScenarioError) as caught:
        compiled(text)
    error = str(caught.value)
    assert has_parts(error, message)
    assert error.startswith("s.yaml:7: joints.elbow.torque: ")
    assert "\n" not in error and len(error) < 500
    assert error.isprintable()
    assert caught.value.exit_status == 3


def test_an_error_does_not_show_the_quotes_that_we_put_in():
    with pytest.raises(ScenarioError, match=re.escape("got 'q(knee)[0]'")):
        compiled("q(knee)[0]")


TOKENS = ["t", "q", "v", "pi", "sin", "max", "clip", "(", ")", ",", "+", "-", "*", "**", "/", "//", ".", "1", "2.5", "1e9", " ",
          "[", "]", "lambda ", ":", "=", "<", "knee", "__", "import ", "'", "{", "}", "not ", "if ", "else ", "for ", "in ", "\n"]


@given(st.one_of(st.text(max_size=40), st.lists(st.sampled_from(TOKENS), max_size=30).map("".join)))
@settings(max_examples=500, deadline=None)
def test_any_text_compiles_or_is_refused_in_one_way(text):
    try:
        program = compile_expression(text, PLACE, True, lambda kind, name: 0)
    except ScenarioError as error:
        assert "\n" not in str(error)
    else:
        assert all(math.isfinite(x) for x in program.literals) and program.depth >= 1
