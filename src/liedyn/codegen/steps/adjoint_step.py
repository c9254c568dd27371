"""The adjoint of a whole step, over many runs side by side: derivatives of a cost by the state after it become those by the state
before it. The step itself is done once more on the way."""
from __future__ import annotations

import numpy as np

from liedyn.codegen.adjoint import adjoint
from liedyn.codegen.lines import Batch
from liedyn.codegen.recording import VARYING, Program, Recording, alone
from liedyn.codegen.steps.scenario_tables import Tables
from liedyn.codegen.steps.whole_step import Calls, Evaluation, Rows, Runs, end_of_step, evaluation, kept
from liedyn.kernels.simulation.right_hand_side import RUNNING
from liedyn.lie.recorded import numbers

SHARED = "q", "values", VARYING         # what all evaluations of a step rest on


def adjoint_step(tables: Tables, method: str, varying: tuple[int, ...] = (), rows: Rows = ()) -> Batch | None:
    """step(clock, curves, values, q, v, work, by_q, by_v, by_values, by_varying, code, varying): see `WholeStep` and
    `record_adjoint`."""
    return kept(record_adjoint, tables, method, varying, rows, ())


def record_adjoint(tables: Tables, method: str, varying, rows: Rows, _) -> Program:
    """by_q, by_v, in place, are by the numbers of q (quaternions are not tangent); by_values, by_varying: by values and
    parameters."""
    called, runs = evaluation(tables, method, varying, rows), Runs(tables, varying, rows)
    calls = called and Calls(runs, called)
    if not calls:
        runs.tape.solved = {}
    _, q, v, _ = end_of_step(runs, method, calls or runs.rates)
    given = {name: runs.tape.inputs(name, len(x)) for name, x in (("by_q", q), ("by_v", v))}
    runs.given |= given
    pairs, parts = [*zip(q, given["by_q"], strict=True), *zip(v, given["by_v"], strict=True)], []
    if calls:
        line = _adjoint_of_evaluation(tables, varying, rows)
        for n, (y, rates) in reversed([*enumerate(calls.stages)]):
            back = adjoint(runs.tape, pairs)
            calls.add(runs.line(by_rates=[back(x) for x in rates]), {"by_rates": f"by_rates{n}"})
            results = "by_y", *(f"by_{name}" for name in SHARED)
            calls.add(line, {name: f"{name}{n}" for name in ("now", "rates", "by_rates", *results)})
            by_y, *by_shared = (calls.given(f"{name}{n}", size) for name, size in zip(
                results, (len(y), len(q), len(runs.given["values"]), len(runs.varying)), strict=True))
            pairs += zip(y, by_y, strict=True)
            parts.append(dict(zip(SHARED, by_shared, strict=True)))
    back = adjoint(runs.tape, pairs)

    def by(name: str, x) -> np.ndarray:
        own = numbers([back(y) for y in x])
        return sum((part[name] for part in parts if name in part), own)
    inputs = {name: runs.given[name] for name in ("q", "v", "values")} | {VARYING: runs.varying}
    last = runs.recording(float(RUNNING), **{f"by_{name}": by(name, x) for name, x in inputs.items()})
    return calls.program(last) if calls else alone(last)


def _adjoint_of_evaluation(tables: Tables, varying, rows: Rows) -> Recording:
    """From derivatives of a cost by the rates, those by the state y in the chart, and by what is shared."""
    one = Evaluation(tables, varying, rows)
    n, nv = len(one.y), tables.model.nv
    one.given |= {name: one.tape.inputs(name, n) for name in ("rates", "by_rates")}
    one.tape.solved, one.tape.known = {}, one.given["rates"][nv:2 * nv]
    rates, _ = one.rates(0, one.given["q"], one.y)
    back = adjoint(one.tape, zip(rates, one.given["by_rates"], strict=True))
    asked = {"y": one.y, **{name: one.given.get(name, one.varying) for name in SHARED}}
    return one.line(**{f"by_{name}": [back(x) for x in given] for name, given in asked.items()})
