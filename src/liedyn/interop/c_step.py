"""A whole step of a scenario as C99 files."""
from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from textwrap import wrap

import numpy as np

from liedyn import __version__
from liedyn.arrays import Array
from liedyn.codegen.scenario_inputs import ScenarioTables
from liedyn.codegen.targets.c99 import CExpressions, comment, literals, program_functions, quadrant_function
from liedyn.codegen.trace import GeneratedProgram, single_call
from liedyn.errors import LiedynWarning
from liedyn.integrators.run_state import MIN_STEP_SPACINGS
from liedyn.interop.scenario_step import STEP_REASONS, Sampler, ScenarioStep, piece_tables
from liedyn.kernels.simulation.rate_evaluation import CURVE_COEFFICIENTS, INVALID_ARGUMENTS
from liedyn.kernels.simulation.signals import ORDER
from liedyn.simulation.control.thrusts import input_name

# of the maximum expected number, at least a characteristic unit: in the test program
TOLERANCE, SINGLE_TOLERANCE = 1e-9, 1e-3


@dataclass(frozen=True, eq=False)
class CStep:
    """The functions of a step in C: NAME_reset, NAME_step, NAME_outputs, and NAME_sample of a sampled controller."""

    step: ScenarioStep
    name: str

    @property
    def size(self) -> int:
        """Number of operations of a step."""
        return self.step.step.size

    @property
    def warnings(self) -> tuple[LiedynWarning, ...]:
        """Warnings of the step."""
        return self.step.warnings

    @cached_property
    def header(self) -> str:
        """Text of the header."""
        guard = f"{self.name.upper()}_H"
        lines = [*self._comment_lines(), f"#ifndef {guard}", f"#define {guard}", "#ifdef __cplusplus", 'extern "C" {', "#endif",
                 *(f"{signature};" for signature in self._signatures().values()), "#ifdef __cplusplus", "}", "#endif", "#endif"]
        return "\n".join(lines) + "\n"

    @cached_property
    def source(self) -> str:
        """Text of the source file."""
        body = [*self._source()]
        quadrant = quadrant_function(self._number)
        is_used = any(" quadrant(" in line for line in body)
        head = ["#include <math.h>", "#include <stdint.h>", "#include <string.h>", f'#include "{self.name}.h"']
        return "\n".join([*head, *([quadrant] if is_used else []), *body]) + "\n"

    # sizes and signatures -----------------------------------------------------------------------------------------------
    @cached_property
    def _sizes(self) -> dict[str, int]:
        problem, step = self.step.problem, self.step
        model = problem.model
        sampler = {} if step.sampler is None else {
            "torque": len(step.problem.sampled.controlled), "integral": model.nv,
            "law_values": len(step.sampler.tables.scenario_values)}
        return {"q": model.nq, "v": model.nv, "work": len(step.initial_work), "z": len(step.initial_states),
                "values": len(step.tables.scenario_values), "a": model.nv, "tau": model.nv, "wrench": problem.wrench_size,
                **sampler}

    @property
    def _number(self) -> str:
        return "float" if self.step.tables.single else "double"

    @property
    def _f(self) -> str:
        """Suffix of constants and of functions of the C library."""
        return "f" if self.step.tables.single else ""

    def _programs(self, program: GeneratedProgram, name: str) -> Iterator[str]:
        yield from program_functions(program, name, lambda: CExpressions(self._f), self._number)

    def _signatures(self) -> dict[str, str]:
        sampled = ("torque", "integral", "law_values") if self.step.sampler else ()
        functions = {"reset": ("void", "", (), ("q", "v", "work", "z", "values", *sampled)),
                     "step": ("int", "double t, double h", ("values", *sampled[:1]), ("q", "v", "work", "z")),
                     "outputs": ("int", "double t", ("z", "values", *sampled[:1]), ("q", "v", "a", "tau", "wrench"))}
        if sampled:
            functions["sample"] = "int", "double t", ("q", "v", "law_values"), ("integral", "torque")
        arguments = {function: ", ".join([*filter(None, (times,)), *self._arguments(read, written)])
                     for function, (_, times, read, written) in functions.items()}
        return {function: f"{functions[function][0]} {self.name}_{function}({text})" for function, text in arguments.items()}

    def _arguments(self, read: Iterable[str], written: Iterable[str]) -> Iterator[str]:
        for prefix, names in (("const ", read), ("", written)):
            yield from (f"{prefix}{self._number} {name}[{self._sizes[name]}]" for name in names if self._sizes[name])

    # header -------------------------------------------------------------------------------------------------------------
    def _comment_lines(self) -> Iterator[str]:
        step, model, scenario = self.step, self.step.problem.model, self.step.run.scenario
        yield f"/* A step of a simulation of the robot {comment(model.name)}: {self.size} operations."
        yield f"   Written by liedyn {__version__}."
        def text(words: str) -> list[str]:
            return wrap(words, 118, initial_indent="   ", subsequent_indent="   ")
        yield from text(f"{self.name}_step moves q, v and the supplied work from t to t + h, with rk4 and the signals, laws, "
                        f"motors, contacts and constraints of the scenario. The scenario has h = {scenario.integrator.step:g} s. "
                        "A step that contains a switching time of a signal is divided there.")
        yield from text(f"{self.name}_outputs writes accelerations, generalized forces and external wrenches at t, and sets "
                        f"prescribed coordinates. {self.name}_reset writes the initial state and the numbers of the scenario.")
        if step.sampler is not None:
            yield from text(f"{self.name}_sample computes the torques of the sampled controller; call it before the steps at "
                            f"t = 0, {step.sampler.interval:g} s, ..., and let a step end at each of these times.")
            if step.sampler.delay:
                yield from text(f"Torques act {step.sampler.delay:g} s after their sample, except those of t = 0, which act at "
                                f"once: {self.name}_step takes those that act.")
        if step.tables.single:
            yield from text("Numbers are of single precision, except times. Errors of about 1e-7 a step add up.")
        yield from text("They return 0, or another number and leave the state as it was: "
                        f"{'; '.join(f'{code} {reason}' for code, reason in STEP_REASONS.items())}.")
        if self._sizes["work"] > 1:
            yield from text("work: the supplied work, then data of events: set these to zero where q or v are changed by hand")
        if self._sizes["z"]:
            yield from text("z: states of laws: integrals of pid, stretches of contacts that stick, and estimated parameters")
        for name, of in (("q", model.q_names), ("v", model.v_names), ("values", step.value_names),
                         ("torque", [input_name(model, k) for k in range(self._sizes.get("torque", 0))])):
            yield from text(f"{name}: {', '.join(map(comment, of))}") if len(of) else ()
        yield "*/"

    # source -------------------------------------------------------------------------------------------------------------
    def _source(self) -> Iterator[str]:
        step, sampler = self.step, self.step.sampler
        initial = {"q": step.problem.q, "v": step.problem.v, "work": step.initial_work,
                   "z": step.initial_states, "values": step.tables.scenario_values}
        if sampler is not None:
            initial |= {name: np.zeros(self._sizes[name]) for name in ("torque", "integral")}
            initial["law_values"] = sampler.tables.scenario_values
        yield from self._programs(step.step, "advance")
        yield from self._programs(step.outputs, "forces")
        yield from _curve_function("curves_at", step.tables, self._number)
        yield from self._reset_function(initial)
        yield from self._step_function()
        yield from self._outputs_function()
        if sampler is not None:
            yield from self._sample_function(sampler)

    def _reset_function(self, initial: dict[str, Array]) -> Iterator[str]:
        """Yield the function that writes arrays."""
        yield from ("", self._signatures()["reset"], "{")
        for name, x in initial.items():
            if len(x):
                yield f"    static const {self._number} {name}_0[] = {{{literals(x, self._f)}}};"
        yield from (f"    memcpy({name}, {name}_0, sizeof {name}_0);" for name, x in initial.items() if len(x))
        yield "}"

    def _sample_function(self, sampler: Sampler) -> Iterator[str]:
        yield from self._programs(single_call(sampler.trace), "laws")
        yield from _curve_function("law_curves_at", sampler.tables, self._number)
        yield from ("", self._signatures()["sample"], "{", *_laws_clock(len(sampler.tables.curves), self._number),
                    f"    return laws({self._passed('now', 'law_values', 'q', 'v', 'integral', 'torque')});", "}")

    def _clock_at_t(self) -> Iterator[str]:
        """Yield the clock, the curves at t, and the array `work`."""
        number, curves = self._number, len(self.step.tables.curves)
        clock = ", ".join([f"({number})t"] * 3)
        yield from (f"    const {number} clock[4] = {{0, {clock}}};", f"    {number} work[{self._sizes['work']}] = {{0}};")
        if curves:
            yield f"    {number} c[{3 * CURVE_COEFFICIENTS * curves}];"
        yield from self._curves("    ", "t")

    def _curves(self, indent: str, time: str) -> Iterator[str]:
        """Yield a line that writes the curves at the three times of a step. time: of number i."""
        if curves := len(self.step.tables.curves):
            yield f"{indent}for (int i = 0; i < 3; i++) curves_at({time}, c + {CURVE_COEFFICIENTS * curves} * i);"

    def _passed(self, *names: str) -> str:
        """Return the arguments of a call, without arrays that have no numbers."""
        return ", ".join(name for name in names if self._sizes.get(name.removesuffix("_1"), 1))

    def _values(self) -> Iterator[str]:
        """Yield statements that put the torques of a sampled controller among the values."""
        sampler = self.step.sampler
        if sampler is not None:
            size = self._sizes["values"]
            yield from (f"    {self._number} values_1[{size}];", f"    memcpy(values_1, values, {size} * sizeof *values);")
            yield from (f"    values_1[{place}] = torque[{k}];" for place, k in zip(sampler.torques, sampler.inputs, strict=True))

    def _step_function(self) -> Iterator[str]:
        state = tuple(name for name in ("q", "v", "work", "z") if self._sizes[name])
        curves, breaks = len(self.step.tables.curves), self.step.breaks
        values = "values_1" if self.step.sampler else "values"
        declared = ", ".join(f"{name}_1[{self._sizes[name]}]" for name in state)
        sizes = {name: f"{self._sizes[name]} * sizeof({self._number})" for name in state}
        yield from ("", self._signatures()["step"], "{")
        if len(breaks):
            near = breaks[:, 0] - MIN_STEP_SPACINGS * np.spacing(breaks[:, 0])
            for name, x in (("breaks", breaks[:, 0]), ("before", breaks[:, 1]), ("near", near)):
                yield f"    static const double {name}[] = {{{literals(x)}}};"
        coefficients = [f"    {self._number} c[{3 * CURVE_COEFFICIENTS * curves}];"] if curves else []
        yield from ("    const double end = t + h;", f"    {self._number} {declared}, clock[4];", *coefficients, "    int code;",
                    *self._values())
        yield from (f"    memcpy({name}_1, {name}, {size});" for name, size in sizes.items())
        passed = self._passed("clock", *(["c"] if curves else []), values, "q_1", "v_1", "work_1", "z_1")
        yield f"    if (!(h >= 0) || t != t) return {INVALID_ARGUMENTS};"
        if len(self.step.tables.schedule.watch):
            yield from ("    if (work_1[1] == 0) {      /* at the start, a step without length evaluates the events */",
                        f"        clock[0] = 0; clock[1] = clock[2] = clock[3] = ({self._number})t;")
            yield from self._curves("        ", "t")
            yield from (f"        code = advance({passed});", "        if (code) return code;", "    }")
        yield from ("    while (t < end) {", "        double goal = end, latest = end, times[3];")
        if len(breaks):
            yield from (f"        for (int i = 0; i < {len(breaks)}; i++)",
                        "            if (t < breaks[i] && near[i] <= end) { goal = breaks[i]; latest = before[i]; break; }")
        yield from ("        times[0] = t;", "        times[1] = fmin(t + 0.5 * (goal == t + h ? h : goal - t), latest);",
                    "        times[2] = fmin(goal, latest);",
                    f"        clock[0] = ({self._number})(goal == t + h ? h : goal - t);",
                    f"        for (int i = 0; i < 3; i++) clock[1 + i] = ({self._number})times[i];")
        if self.step.tables.single and len(breaks):        # times before a switching time stay before it
            yield ("        if (latest < goal) for (int i = 1; i < 3; i++) clock[1 + i] = fminf(clock[1 + i], "
                   "nextafterf((float)goal, 0));")
        yield from self._curves("        ", "times[i]")
        yield from (f"        code = advance({passed});", "        if (code) return code;", "        h -= goal - t;",
                    "        t = goal;", "    }")
        yield from (f"    memcpy({name}, {name}_1, {size});" for name, size in sizes.items())
        yield from ("    return 0;", "}")

    def _outputs_function(self) -> Iterator[str]:
        curves, values = len(self.step.tables.curves), "values_1" if self.step.sampler else "values"
        yield from ("", self._signatures()["outputs"], "{", *self._clock_at_t(), *self._values())
        passed = self._passed("clock", *(["c"] if curves else []), values, "q", "v", "work", "z", "a", "tau", "wrench")
        yield from (f"    return forces({passed});", "}")

    # test ---------------------------------------------------------------------------------------------------------------
    def test(self, steps: int, expected: dict[str, Array], units: dict[str, Array]) -> str:
        """Return a program that takes steps of the scenario from the start and returns 0 if the state is as expected."""
        return "\n".join(self._test(steps, expected, units)) + "\n"

    def _test(self, steps: int, expected: dict[str, Array], units: dict[str, Array]) -> Iterator[str]:
        sampler, h = self.step.sampler, self.step.regular_step
        yield from ("#include <math.h>", "#include <stdio.h>", "#include <string.h>", f'#include "{self.name}.h"', "",
                    "int main(void)", "{")
        for name in ("q", "v"):
            yield f"    static const double expected_{name}[] = {{{literals(expected[name])}}};"
            yield f"    static const double unit_{name}[] = {{{literals(units[name])}}};"
        names = [name for name in ("q", "v", "work", "z", "values", *(("torque", "integral", "law_values") if sampler else ()))
                 if self._sizes[name]]
        yield from (f"    static {self._number} {name}[{self._sizes[name]}];" for name in names)
        yield from ("    double largest, worst = 0;", "    int k, i;", f"    {self.name}_reset({', '.join(names)});",
                    f"    for (k = 0; k < {steps}; k++) {{")
        if sampler is not None:
            every, late = round(sampler.interval / h), round(sampler.delay / h)
            size, places = f"{self._sizes['torque']} * sizeof *torque", late // every + 2
            arguments = self._passed("q", "v", "law_values", "integral", "torque")
            yield from (f"        static {self._number} samples[{places}][{self._sizes['torque']}];",
                        f"        if (k % {every} == 0) {{",
                        f"            if ({self.name}_sample(k * {h!r}, {arguments})) {{ puts(\"refused\"); return 1; }}",
                        f"            memcpy(samples[k / {every} % {places}], torque, {size});", "        }",
                        f"        memcpy(torque, samples[(k < {late} ? 0 : (k - {late}) / {every}) % {places}], {size});")
        arguments = self._passed("values", *(["torque"] if sampler else []), "q", "v", "work", "z")
        yield from (f"        if ({self.name}_step(k * {h!r}, {h!r}, {arguments})) {{ puts(\"refused\"); return 1; }}", "    }")
        for name in ("q", "v"):
            count = self._sizes[name]
            yield from ("    largest = 1;",
                        f"    for (i = 0; i < {count}; i++) largest = fmax(largest, fabs(expected_{name}[i] / unit_{name}[i]));",
                        f"    for (i = 0; i < {count}; i++)",
                        f"        worst = fmax(worst, fabs(({name}[i] - expected_{name}[i]) / unit_{name}[i]) / largest);")
        yield from (f'    printf("maximum relative difference from liedyn after {steps} steps: %g\\n", worst);',
                    f"    return !(worst <= {(SINGLE_TOLERANCE if self.step.tables.single else TOLERANCE)!r});", "}")


@dataclass(frozen=True, eq=False)
class CControl(CStep):
    """The control laws of a scenario in C: NAME_reset, and NAME_control or NAME_sample."""

    @property
    def warnings(self) -> tuple[LiedynWarning, ...]:
        """Warnings of the run: laws are evaluated at single states."""
        return self.step.run.warnings

    def _signatures(self) -> dict[str, str]:
        if self.step.sampler is not None:
            signatures = super()._signatures()
            reset = ", ".join(self._arguments((), ("torque", "integral", "law_values")))
            return {"reset": f"void {self.name}_reset({reset})", "sample": signatures["sample"]}
        reset, torques = (", ".join(self._arguments(*names)) for names in (((), ("z", "values")), (
            ("q", "v", "z", "values"), ("torque", "rates"))))
        return {"reset": f"void {self.name}_reset({reset or 'void'})", "control": f"int {self.name}_control(double t, {torques})"}

    def _comment_lines(self) -> Iterator[str]:
        step, model, sampler = self.step, self.step.problem.model, self.step.sampler
        yield f"/* Control laws, motors and signals of a scenario of the robot {comment(model.name)}: {self.size} operations."
        yield f"   Written by liedyn {__version__}."
        names, values = ("sample", step.law_value_names) if sampler else ("control", step.value_names)
        every = f" Call it at t = 0, {sampler.interval:g} s, ..." if sampler else ""
        has_rates = self._sizes["rates"] and not sampler
        rates = " It writes the rates of z, states of laws such as integrals of pid." if has_rates else ""
        texts = [f"{self.name}_{names} computes the torques and thrusts at t and the measured q, v.{rates}{every} "
                 f"{self.name}_reset writes the initial states of laws and the numbers of the scenario, which may be changed.",
                 "Returns 0; another number where a result is not finite or an angle is beyond 1e5 rad.",
                 *(f"{name}: {', '.join(map(comment, of))}" for name, of in (
                     ("q", model.q_names), ("v", model.v_names), ("law_values" if sampler else "values", values),
                     ("torque", [input_name(model, k) for k in range(self._sizes["torque"])])) if len(of))]
        for text in texts:
            yield from wrap(text, 118, initial_indent="   ", subsequent_indent="   ")
        yield "*/"

    @cached_property
    def _sizes(self) -> dict[str, int]:
        model = self.step.problem.model
        return super()._sizes | {"torque": model.nv + len(model.description.actuators), "rates": len(self.step.initial_states)}

    def _source(self) -> Iterator[str]:
        step, sampler = self.step, self.step.sampler
        yield from self._reset_function({"torque": np.zeros(self._sizes["torque"]), "integral": np.zeros(step.problem.model.nv),
                                         "law_values": sampler.tables.scenario_values} if sampler else
                                        {"z": step.initial_states, "values": step.tables.scenario_values})
        if sampler is not None:
            yield from self._sample_function(sampler)
            return
        yield from self._programs(step.outputs, "laws")
        yield from _curve_function("curves_at", step.tables, self._number)
        yield from ("", self._signatures()["control"], "{", *self._clock_at_t())
        passed = self._passed("clock", *(["c"] if len(step.tables.curves) else []), "values", "q", "v", "work", "z", "torque",
                              "rates")
        yield from (f"    return laws({passed});", "}")


def _laws_clock(curves: int, number: str) -> Iterator[str]:
    yield f"    {number} now[{1 + CURVE_COEFFICIENTS * curves}] = {{({number})t}};"
    if curves:
        yield "    law_curves_at(t, now + 1);"


def _curve_function(name: str, tables: ScenarioTables, number: str) -> Iterator[str]:
    """Yield a function that writes the Taylor coefficients of all curves at t, which it computes in double precision."""
    if not len(tables.curves):
        return
    first, breaks, coefficients = piece_tables(tables)
    yield from ("", f"static void {name}(double t, {number} *c)", "{",
                f"    static const int first[] = {{{', '.join(map(str, first))}}};",
                f"    static const double breaks[] = {{{literals(breaks)}}};",
                f"    static const double coefficients[] = {{{literals(coefficients.reshape(-1))}}};",
                f"    for (int i = 0; i < {len(first) - 1}; i++) {{", "        int k = first[i];",
                f"        double x[{ORDER}], s;", "        while (k + 1 < first[i + 1] && breaks[k + 1] <= t) k++;",
                "        s = t - breaks[k];", f"        memcpy(x, coefficients + {ORDER} * k, sizeof x);",
                f"        for (int r = 0; r < {CURVE_COEFFICIENTS}; r++) {{",
                f"            for (int j = {ORDER - 2}; j >= r; j--) x[j] += s * x[j + 1];",
                f"            c[{CURVE_COEFFICIENTS} * i + r] = ({number})x[r];", "        }", "    }", "}")
