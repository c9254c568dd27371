"""C99 code of a trace: a source file and a header that depend on <math.h> only."""
from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator
from textwrap import wrap

import numpy as np

from liedyn.arrays import ArrayLike
from liedyn.codegen.operations import LIBM, OPERATIONS
from liedyn.codegen.targets.target import Target
from liedyn.codegen.trace import STATUS, Array, GeneratedProgram, Trace, single_bound, single_constant

# Of the maximum expected number, and of a characteristic unit: robots may be badly conditioned.
_TOLERANCE, _TOLERANCE_AS_FLOAT = 1e-9, 1e-3
# names that a function cannot have: of the language, of <math.h> and <stdio.h>, and those in its own code
_RESERVED = """
    auto break case char const continue default do double else enum extern float for goto if inline int long register restrict
    return short signed sizeof static struct switch typedef union unsigned void volatile while
    alignas alignof and asm bool catch class delete false friend namespace new not operator or private protected public template
    this throw true try typename using virtual xor
    acos asin atan atan2 ceil cos cosh exp fabs floor fma fmax fmin fmod hypot log pow round sin sinh sqrt tan tanh trunc j0 j1 jn
    y0 y1 yn gamma erf main printf puts remove rename finite expected unit largest off worst i
    """
RESERVED = frozenset(_RESERVED.split())


# for operations quadrant_sine and quadrant_cosine: the last bits of `turns` count quarter turns
_QUADRANT = "quadrant"
_QUADRANT_FUNCTION = """
static {number} {name}({number} turns, {number} even, {number} odd, int64_t shift)
{{
    {integer} n;
    {number} x;
    memcpy(&n, &turns, sizeof n);
    x = n & 1 ? odd : even;
    return (n + shift) & 2 ? -x : x;
}}"""


def quadrant_function(number: str) -> str:
    """Return the function for the operations quadrant_sine and quadrant_cosine. number: "double" or "float"."""
    return _QUADRANT_FUNCTION.format(number=number, name=_QUADRANT, integer="int32_t" if number == "float" else "int64_t")


class CExpressions(Target):
    """Operations in C. suffix: of functions and constants, "f" for `float`."""

    def __init__(self, suffix: str = ""):
        super().__init__()
        self.suffix = suffix
        functions = {name: f"{name}{suffix}({', '.join(['{}'] * (OPERATIONS[name].arity or 1))})"
                     for name in ("fabs", "sqrt", *LIBM)}
        self.table = {"fadd": "{} + {}", "fsub": "{} - {}", "fmul": "{} * {}", "fdiv": "{} / {}", "quotient": "{} / {}",
                      "fneg": "-{}", "less": "{} < {} ? {} : {}", "quadrant_sine": f"{_QUADRANT}({{}}, {{}}, {{}}, 0)",
                      "quadrant_cosine": f"{_QUADRANT}({{0}}, {{2}}, {{1}}, 1)", **functions}

    def constant(self, x: float) -> str:
        """Return a literal."""
        x = single_constant(x) if self.suffix else x
        text = f"{x!r}{self.suffix}" if math.isfinite(x) else "NAN" if math.isnan(x) else "INFINITY" if x > 0 else "-INFINITY"
        return f"({text})" if x < 0 else text

    def bound(self, x: float) -> float:
        """Return a bound of a trace."""
        return single_bound(x) if self.suffix else x

    def input(self, array: str, i: int) -> str:
        """Return an element of an array."""
        return f"{array}[{i}]"

    def named(self, k: int, _expression: str) -> str:
        """Return the variable of operation k."""
        return f"t{k}"


class CFunction:
    """A function of a robot in C.

    name              of the function and of its files
    header, source    their texts
    """

    def __init__(self, trace: Trace, name: str, comments: Iterable[str], *, single: bool = False):
        """comments: lines about the function and its arrays."""
        self.trace, self.name, self.single, self._comments = trace, name, single, list(comments)
        self.outputs = {array.name: array.size for array in trace.arrays if array.results and array.name != STATUS}
        self._number, self._f = ("float", "f") if single else ("double", "")
        self.header = "\n".join(self._header()) + "\n"
        self.source = "\n".join(self._source()) + "\n"

    @property
    def size(self) -> int:
        """Number of operations."""
        return self.trace.size

    @property
    def arrays(self) -> list[tuple[str, int]]:
        """Return (name, count), results last."""
        return [(x.name, x.size) for x in self.trace.arrays if x.name != STATUS]

    def test(self, inputs: dict[str, np.ndarray], expected: dict[str, np.ndarray], units: dict[str, np.ndarray]) -> str:
        """Return a program that computes one state and returns 0 if the results are as expected.

        inputs, expected  arrays by name
        units             characteristic units of the expected arrays
        """
        return "\n".join(self._test(inputs, expected, units)) + "\n"

    # texts ----------------------------------------------------------------------------------------------------------
    def _comment_lines(self) -> Iterator[str]:
        text = ("Returns 0; 1 where an input or the result is not finite, a quaternion is not of unit norm, a coordinate "
                "contradicts the coupling that it follows, or an articulated inertia vanishes: the result is then invalid.")
        lines = [line for x in self._comments for line in wrap(comment(x), 118, subsequent_indent=" " * 8)]
        yield from block_comment([*lines, *wrap(text, 118)])

    def _signature(self) -> str:
        arguments = [f"{'const ' * (name not in self.outputs)}{self._number} {name}[{count}]" for name, count in self.arrays]
        return f"int {self.name}({', '.join(arguments)})"

    def _header(self) -> Iterator[str]:
        guard = f"{self.name.upper()}_H"
        yield from self._comment_lines()
        yield from (f"#ifndef {guard}", f"#define {guard}", "#ifdef __cplusplus", 'extern "C" {', "#endif")
        yield f"{self._signature()};"
        yield from ("#ifdef __cplusplus", "}", "#endif", "#endif")

    def _source(self) -> Iterator[str]:
        r, c = self.trace, CExpressions(self._f)
        yield from self._comment_lines()
        yield from ("#include <math.h>", f'#include "{self.name}.h"', "", self._signature(), "{")
        yield f"    {self._number} finite = 0;"
        if self.single:
            yield f"    {self._number} {STATUS}[1];"
        yield from statements(r, c, self._number)
        yield from (f"    finite += 0 * {c.value(x.k)};" for x in r.finite)
        bounds = [f"{c.value(x.k)} < {c.constant(c.bound(bound))}" for x, bound in r.bounds]
        valid = [f"{STATUS}[0] > 0"] if self.single else []
        yield f"    return !({' && '.join(['finite == 0', *bounds, *valid])});"
        yield "}"

    def _test(self, inputs, expected, units) -> Iterator[str]:
        tolerance = _TOLERANCE_AS_FLOAT if self.single else _TOLERANCE
        yield from ("#include <math.h>", "#include <stdio.h>", f'#include "{self.name}.h"', "", "int main(void)", "{")
        results = (("expected", expected), ("unit", units))
        named_results = ((f"{prefix}_{name}", x) for prefix, arrays in results for name, x in arrays.items())
        for name, values in (*inputs.items(), *named_results):
            yield f"    static const {self._number} {name}[] = {{{literals(values, self._f)}}};"
        yield from (f"    static {self._number} {name}[{count}];" for name, count in self.outputs.items())
        arguments = ", ".join(name for name, _ in self.arrays)
        yield from (f"    {self._number} largest, off, worst = 0;", "    int i;",
                    f"    if ({self.name}({arguments})) {{ puts(\"refused\"); return 1; }}")
        for name, count in self.outputs.items():
            yield from ("    largest = 1;", "    off = 0;", f"    for (i = 0; i < {count}; i++) {{",
                        f"        largest = fmax{self._f}(largest, fabs{self._f}(expected_{name}[i] / unit_{name}[i]));",
                        f"        off = fmax{self._f}(off, fabs{self._f}(({name}[i] - expected_{name}[i]) / unit_{name}[i]));",
                        "    }", f"    worst = fmax{self._f}(worst, off / largest);")
        yield from ('    printf("maximum relative difference from liedyn: %g\\n", (double)worst);',
                    f"    return !(worst <= {tolerance!r}{self._f});", "}")


def literals(values: ArrayLike, suffix: str = "") -> str:
    """Return the numbers of an array, separated by commas."""
    return ", ".join(map(CExpressions(suffix).constant, np.ravel(values).astype(float).tolist()))


def statements(trace: Trace, c: CExpressions, number: str = "double") -> Iterator[str]:
    """Yield the statements that compute a trace and write its results."""
    for k, expression in c.walk(trace.ops, trace.live_operations):
        yield f"    const {number} t{k} = {expression};"
    yield from (f"    {name}[{i}] = {c.value(x)};" for x, name, i in trace.outputs)


def program_functions(program: GeneratedProgram, name: str, expressions: Callable[[], CExpressions] = CExpressions,
                      number: str = "double") -> Iterator[str]:
    """Yield the functions of a program for one state: static int NAME(arrays …), which returns its code.

    A program without the array `code` returns 0, or 1 if a number is not finite or out of bounds. Arrays without numbers are no
    arguments. number: the type of numbers, for which expressions() writes operations.
    """
    traces, local = program.traces, {x.name: x.size for x in program.arrays if x.name == "code"}
    for k, trace in enumerate(traces):
        c = expressions()
        yield from ("", f"static int {name}_{k}({_parameters(trace.arrays, number)})", "{", f"    {number} finite = 0;")
        yield from statements(trace, c, number)
        yield from (f"    finite += 0 * {c.value(x.k)};" for x in trace.finite)
        bounds = [f"{c.value(x.k)} < {c.constant(c.bound(bound))}" for x, bound in trace.bounds]
        read = {x.name for x in trace.input_arrays}
        yield from (f"    (void){x.name};" for x in used_arrays(trace.arrays) if not x.results and x.name not in read)
        yield from (f"    return !({' && '.join(['finite == 0', *bounds])});", "}")
    arguments = [x for x in program.arrays if x.name not in local]
    for trace, renamed in program.calls:
        local |= {renamed[x.name]: x.size for x in trace.arrays if x.name in renamed and x.size}
    yield from ("", f"static int {name}({_parameters(arguments, number)})", "{")
    yield from (f"    {number} {array}[{size}];" for array, size in local.items())
    calls = [f"{name}_{traces.index(trace)}({', '.join(renamed.get(x.name, x.name) for x in used_arrays(trace.arrays))})"
             for trace, renamed in program.calls]
    yield from (f"    {call};" for call in (calls[:-1] if "code" not in local else calls))
    yield from (f"    return {'(int)code[0]' if 'code' in local else calls[-1]};", "}")


def used_arrays(arrays: Iterable[Array]) -> list[Array]:
    """Return the arrays with numbers."""
    return [x for x in arrays if x.size]


def _parameters(arrays: Iterable[Array], number: str) -> str:
    return ", ".join(f"{'' if x.results else 'const '}{number} *{x.name}" for x in used_arrays(arrays))


def identifier(text: str) -> str:
    """Return the text as a name in C."""
    plain = re.sub(r"\W+", "_", text, flags=re.ASCII).strip("_") or "robot"
    return plain if not plain[0].isdigit() else f"robot_{plain}"


def block_comment(lines: Iterable[str]) -> Iterator[str]:
    """Yield the lines of a comment of C."""
    first, *rest = lines
    yield from (f"/* {first}", *(f"   {line}" for line in rest), "*/")


def comment(text: str) -> str:
    """Return the text for a comment of C, without the end of a comment."""
    return "".join(c if c.isascii() and c.isprintable() else "?" for c in text).replace("*/", "* /")
