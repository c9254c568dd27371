"""Sweep YAML -> `Sweep`."""
from __future__ import annotations

import csv
import json
import math
import os
from collections.abc import Iterable
from dataclasses import replace

from liedyn.errors import Place, ScenarioError, nearest
from liedyn.io.csv import number_in_cell
from liedyn.io.override import override_texts
from liedyn.io.sweep import MOST_RUNS, SIMULATE, AlongJob, Distribution, Kept, Output, Range, Sweep, Varied
from liedyn.io.sweep_keys import DISTRIBUTIONS, LOG_NORMAL, NORMAL, SOURCES, SWEEP, SWEEP_CSV, TRAJECTORIES, VARY
from liedyn.io.text_file import read_text
from liedyn.io.yaml_text import Node, read_yaml

_IN_MEMORY = 100_000_000         # numbers of a Latin hypercube or of Sobol's sequence
OWN_COLUMNS = ("number", "status", "reason", "seconds", "hash", "energy_balance")


def read_sweep(path: str | os.PathLike, overrides: Iterable[str] = ()) -> Sweep:
    """The sweep in the YAML file `path`; overrides: more of the scenario ("key.path=value").

    Paths in it are relative to its folder. Raises ScenarioError with file, line and key.
    """
    root = read_yaml(path, ScenarioError)
    if root.kind == "mapping" and "robot" in root.value and "vary" not in root.value:
        raise root.problem("this is a scenario, not a sweep", expected="the keys scenario and vary")
    given = root.mapping(SWEEP)
    kind = SWEEP.kind_of(given)
    SWEEP.check_kind(given, kind, f"the job {kind}")
    scenario, job = (SWEEP.required(root, "scenario"), None) if kind == SIMULATE else ("", _job(kind, root, given))
    texts = override_texts(overrides, ScenarioError)
    if job and texts:
        raise ScenarioError("there is no scenario to override", place=Place(os.fspath(path)), found=f"-S {texts[0]}",
                            expected=f"no -S for the job {kind}")
    nodes = SWEEP.require(root, "vary").items(least=1, of="entries")
    vary = tuple(_varied(node) for node in nodes)
    if job:
        vary = tuple(_of_files(one, os.path.dirname(os.fspath(path))) for one in vary)
    combine = SWEEP.value(given, "combine", "sample" if any(one.drawn for one in vary) else "grid")
    samples = SWEEP.value(given, "samples", 0)
    _check_combination(root, given, vary, combine, samples)
    outputs = tuple(Output(name, node.text(), node.place) for name, node in given["outputs"].mapping().items()) \
        if "outputs" in given else ()
    _check_names(vary, outputs)
    own = given["overrides"].mapping() if "overrides" in given else {}
    changed = [f"{key}={json.dumps(_override(node))}" for key, node in own.items()]
    sampling, seed = SWEEP.value(given, "sampling", "random"), SWEEP.value(given, "seed", 0)
    return Sweep(scenario, vary, combine, samples, sampling, seed, outputs,
                 _trajectories(given["trajectories"]) if "trajectories" in given else None,
                 (*changed, *texts), job, os.fspath(path))


def _job(kind: str, root: Node, given) -> AlongJob:
    """The options of the command, as its keys say."""
    trajectory = SWEEP.required(root, "trajectory")
    if kind == "hybrid" or SWEEP.value(given, "of") == "hybrid":
        root.require("prescribed", "names or patterns of joints")
    elif kind == "derivatives" and "prescribed" in given:
        raise given["prescribed"].problem("prescribed does not apply", expected="of: hybrid")
    options = {key: SWEEP.value(given, key) for key in ("robot", "base", "of", "order", "wrenches", "criterion") if key in given}
    options |= {key: _names(given[key]) for key in ("prescribed", "by", "joints", "actuated") if key in given}
    if "smooth" in given:
        node = given["smooth"]
        options["smooth"] = node.number(above=0) if node.kind == "number" else node.choice(("auto",))
    if options.get("wrenches") and (options.get("order") or "smooth" in options):
        raise given["wrenches"].problem("wrenches cannot be combined with order and smooth")
    return AlongJob(kind, trajectory, **options)


def _names(node: Node) -> tuple[str, ...]:
    return tuple(x.text() for x in node.items(least=1, of="names")) if node.kind == "list" else (node.text(),)


def _of_files(one: Varied, folder: str) -> Varied:
    """Where trajectories vary, their paths from the current folder."""
    if one.key != "trajectory":
        return one
    if not isinstance(one.values, tuple) or not all(isinstance(x, str) for x in one.values):
        raise ScenarioError("trajectories are files", place=one.place, expected="a list of paths")
    paths = tuple(os.path.normpath(os.path.join(folder, os.path.expanduser(x))) for x in one.values)
    for written, path in zip(one.values, paths, strict=True):
        if not os.path.isfile(path):
            raise ScenarioError("no such trajectory", place=one.place, found=written)
    return replace(one, values=paths)


def _varied(node: Node) -> Varied:
    given = node.mapping(VARY)
    key = VARY.required(node, "key").strip()
    if not key:
        raise given["key"].problem("the key is empty", expected="a key of the scenario, or robot.<parameter>")
    sources = [name for name in SOURCES if name in given]
    if len(sources) != 1:
        raise node.problem("one source of values is needed", found=", ".join(sources) or "none", expected="one of "
                           + ", ".join(SOURCES))
    source = given[sources[0]]
    scale = VARY.value(given, "scale", "absolute")
    name = VARY.value(given, "name", key)
    if not name.strip() or not name.isprintable():
        raise given["name"].problem("not a name of a column", found=name)
    if sources[0] in DISTRIBUTIONS:
        return Varied(key, name, None, _distribution(sources[0], source), scale, node.place)
    found = Varied(key, name, _READ[sources[0]](source), None, scale, node.place)
    if scale == "relative" and not found.is_number:
        raise source.problem("relative values must be numbers", found=source.shown())
    return found


def _list(node: Node) -> tuple:
    return tuple(_plain(child) for child in node.items(least=1, of="values"))


def _plain(node: Node):
    if node.kind == "number":
        return node.number()
    if node.kind == "list":
        return tuple(child.number() for child in node.items(least=1, of="numbers"))
    if node.kind not in ("text", "boolean"):
        raise node.wrong("a number, text, true or false, or a list of numbers")
    return node.value


def _override(node: Node):
    if node.kind == "mapping":
        return {key: _scalar(child) for key, child in node.mapping().items()}
    return _plain(node)


def _scalar(node: Node):
    if node.kind not in ("number", "text", "boolean"):
        raise node.wrong("a number, text, true or false", hint="write the path of the key: integrator.step")
    return node.number() if node.kind == "number" else node.value


def _range(node: Node) -> Range:
    first, last, count = node.vector(3)
    if count != int(count) or count < 1 or count > MOST_RUNS:
        raise node.problem("the count of a range is wrong", found=f"{count:g}",
                           expected=f"a whole number from 1 to {MOST_RUNS:.0e}")
    return Range(first, last, int(count))


def _csv(node: Node) -> tuple[float, ...]:
    values = SWEEP_CSV.values(node)
    return column_of(values["file"], values["column"], node.value["column"].place)


def column_of(file: str, column: str, place: Place) -> tuple[float, ...]:
    """The numbers of a column of a CSV whose first line that is no comment names the columns."""
    lines = enumerate(read_text(file, ScenarioError).splitlines(), 1)
    table = [(k, next(csv.reader([line], skipinitialspace=True))) for k, line in lines if line.strip() and line[0] != "#"]
    if not table:
        raise ScenarioError("the file has no columns", place=Place(file), expected="a line of column names, then rows of numbers")
    names = [name.strip() for name in table[0][1]]
    if names.count(column) > 1:
        raise ScenarioError("two columns have the same name", place=Place(file, table[0][0], column))
    if column not in names:
        raise ScenarioError("no such column", place=place, found=column, expected=f"one of {', '.join(names)} of {file}",
                            hint=nearest(column, names))
    if len(table) == 1:
        raise ScenarioError("the file has no rows", place=Place(file), expected="rows of numbers")
    at, found = names.index(column), []
    for line, row in table[1:]:
        place = Place(file, line, column)
        found.append(number_in_cell(row[at] if at < len(row) else "", place, ScenarioError))
        if not math.isfinite(found[-1]):
            raise ScenarioError("not a finite number", place=place, found=row[at])
    return tuple(found)


_READ = {"list": _list, "range": _range, "csv": _csv}


def _distribution(kind: str, node: Node) -> Distribution:
    if kind in ("uniform", "log_uniform"):
        low, high = node.vector(2)
        if low >= high:
            raise node.problem("the bounds are not in order", found=node.shown(), expected="[low, high] with low below high")
        if kind == "log_uniform" and low <= 0:
            raise node.problem("the logarithm needs bounds above 0", found=node.shown())
        return Distribution(kind, low, high)
    keys, names = (NORMAL, ("mean", "std")) if kind == "normal" else (LOG_NORMAL, ("median", "sigma"))
    values = keys.values(node)
    low, high = values.get("low", -math.inf), values.get("high", math.inf)
    if low >= high:
        raise node.problem("the bounds are not in order", found=f"low {low:g}, high {high:g}", expected="low below high")
    if kind == "log_normal" and high <= 0:
        raise node.problem("a log-normal distribution has no values below 0", found=f"high {high:g}")
    return Distribution(kind, low, high, *(values[name] for name in names))


def _check_combination(root: Node, given, vary: tuple[Varied, ...], combine: str, samples: int) -> None:
    at = given.get("combine", root)
    drawn = [one for one in vary if one.drawn]
    if combine == "sample":
        if not samples:
            raise root.problem("the key samples is missing", expected="a number of runs")
        if samples > MOST_RUNS:
            raise given["samples"].problem("too many runs", found=samples, expected=f"at most {MOST_RUNS:.0e}")
        if samples * len(vary) > _IN_MEMORY and SWEEP.value(given, "sampling", "random") != "random":
            needed = f"the points of {given['sampling'].shown()} need {8e-9 * samples * len(vary):.3g} GB of memory"
            raise given["samples"].problem(needed, found=f"{samples} x {len(vary)}", expected=f"at most {_IN_MEMORY:.0e} numbers",
                                           hint="sampling: random needs none")
        return
    for key in ("samples", "sampling"):
        if key in given:
            raise given[key].problem(f"{key} does not apply to {combine}", expected="combine: sample")
    if drawn:
        raise at.problem(f"a distribution does not go with {combine}", found=drawn[0].key,
                         expected="combine: sample, or a list or range")
    counts = {one.name: len(one.values) for one in vary}
    if combine == "zip" and len(set(counts.values())) > 1:
        raise at.problem("the lists of zip have different lengths", found=", ".join(f"{name}: {n}" for name, n in counts.items()),
                         expected="one length")
    if combine == "grid" and math.prod(counts.values()) > MOST_RUNS:
        raise at.problem("too many runs", found=" x ".join(map(str, counts.values())), expected=f"at most {MOST_RUNS:.0e}")


def _check_names(vary: tuple[Varied, ...], outputs: tuple[Output, ...]) -> None:
    seen: dict[str, str] = dict.fromkeys(OWN_COLUMNS, "a column that every table has")
    keys: set[str] = set()
    for one in vary:
        if one.key in keys:
            raise ScenarioError("the same key varies twice", place=one.place, found=one.key)
        keys.add(one.key)
    for one in (*vary, *outputs):
        if one.name in seen:
            raise ScenarioError("two columns of the table have the same name", place=one.place, found=one.name,
                                expected=f"another name than that of {seen[one.name]}")
        seen[one.name] = "another quantity" if isinstance(one, Varied) else "another output"


def _trajectories(node: Node) -> Kept | None:
    if node.kind == "boolean":
        return Kept(place=node.place) if node.value else None
    if node.kind != "mapping":
        raise node.wrong("true, false, or a mapping with every and columns")
    given = node.mapping(TRAJECTORIES)
    columns = tuple(child.text() for child in given["columns"].items(least=1, of="names")) if "columns" in given else ("*",)
    return Kept(TRAJECTORIES.value(given, "every", 1), columns, given.get("columns", node).place)
