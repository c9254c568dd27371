"""Parameter sweeps: a scenario or trajectory, the varied parameters, and the stored results. `read_sweep` reads a file."""
from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from liedyn.arrays import Base, Criterion
from liedyn.errors import InputElement, Place, ScenarioError, nearest
from liedyn.io.csv_table import read_table, title_unit
from liedyn.io.file_schema import (
    Boolean,
    Choice,
    Field,
    File,
    Integer,
    List,
    Named,
    Number,
    OneOf,
    Schema,
    Text,
    Vector,
    default_of,
    one_or_more,
)
from liedyn.io.units import UNITS, unit_of
from liedyn.io.yaml_nodes import Node, SourceText, read_yaml
from liedyn.io.yaml_values import override_texts

COMBINATIONS, SAMPLINGS, SCALES = ("grid", "zip", "sample"), ("random", "latin_hypercube", "sobol"), ("absolute", "relative")
MOST_RUNS = 100_000_000
SIMULATE, JOBS = "simulate", ("inverse", "forward", "hybrid", "derivatives")
CRITERIA, WRENCH_AXES = ("unique", "least_torque", "least_constraint_force"), ("world", "link", "joint")


@dataclass(frozen=True, slots=True)
class Distribution:
    """Distribution of a parameter, truncated to the interval from `low` to `high`.

    kind  uniform or log_uniform; normal, with the mean `centre` and the standard deviation `spread`; or log_normal, with the
          median `centre`, whose logarithm has the standard deviation `spread`
    """

    kind: str
    low: float
    high: float
    centre: float = 0.0
    spread: float = 1.0


@dataclass(frozen=True, slots=True)
class Range:
    """`count` equally spaced values from `first` to `last`. There may be very many, so they are computed on demand."""

    first: float
    last: float
    count: int

    def __len__(self) -> int:
        return self.count

    def at(self, places: np.ndarray) -> np.ndarray:
        """Return the values at places of the range, counted from 0."""
        if self.count == 1:
            return np.full(len(places), self.first)
        return np.where(places == self.count - 1, self.last, self.first + (self.last - self.first) * places / (self.count - 1))


@dataclass(frozen=True, slots=True)
class SweepParameter(InputElement):
    """A quantity that differs from run to run.

    key      path of a scenario key, or robot.<parameter or key of the robot file>, or `trajectory` of a job along one
    name     of its column
    values   the list of them; or
    drawn    the distribution that they are drawn from
    scale    relative: values are factors of what the scenario or robot has
    """

    key: str
    name: str
    values: tuple[Any, ...] | Range | None = None
    drawn: Distribution | None = None
    scale: str = "absolute"

    @property
    def is_number(self) -> bool:
        """Whether all values are numbers."""
        return self.values is None or isinstance(self.values, Range) or all(isinstance(x, float) for x in self.values)

    @property
    def trajectories(self) -> tuple[str, ...]:
        """Paths of the trajectories if these vary, otherwise empty."""
        return self.values if self.key == "trajectory" and isinstance(self.values, tuple) else ()

    @property
    def of_robot(self) -> str | None:
        """Parameter or key of the robot; None for a key of the scenario."""
        return self.key.removeprefix("robot.") if self.key.startswith("robot.") else None


@dataclass(frozen=True, slots=True)
class Output(InputElement):
    """A named expression over a run."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class StoredTrajectories(InputElement):
    """Stored part of each trajectory: every `every`-th row, of the columns that match one of the patterns."""

    every: int = 1
    columns: tuple[str, ...] = ("*",)


@dataclass(frozen=True, slots=True)
class TrajectoryJob:
    """A command along a trajectory, with its options.

    kind         one of JOBS
    trajectory, robot   paths as they can be opened from the current folder; robot None: the robot of the trajectory
    columns      map of the columns of the trajectories: entries, or a path as it can be opened from the current folder
    smooth       seconds, "auto" or None
    """

    kind: str
    trajectory: str
    robot: str | None = None
    columns: str | None = None
    base: Base | None = None
    prescribed: tuple[str, ...] = ()
    function: str = "inverse"
    wrt: tuple[str, ...] = ()
    joints: tuple[str, ...] = ()
    order: int = 0
    smooth: float | str | None = None
    wrenches: str | None = None
    actuated: tuple[str, ...] = ()
    criterion: Criterion = "unique"


@dataclass(frozen=True, slots=True)
class Sweep:
    """Runs of a batch.

    scenario    path as it can be opened from the current folder; "" for a job along a trajectory
    overrides   of the scenario, "key.path=value"
    combine     grid: all combinations, in which the last parameter changes first; zip: the k-th values together; sample: random
    samples     number of random samples
    sampling    one of SAMPLINGS
    trajectories   None: they are not stored
    """

    scenario: str
    parameters: tuple[SweepParameter, ...]
    combine: str
    samples: int = 0
    sampling: str = "random"
    seed: int = 0
    outputs: tuple[Output, ...] = ()
    trajectories: StoredTrajectories | None = None
    overrides: tuple[str, ...] = ()
    job: TrajectoryJob | None = None
    source: str | None = field(default=None, compare=False)

    @property
    def begins_with(self) -> str:
        """Path of the file with which all runs start."""
        return self.job.trajectory if self.job else self.scenario


# Sweep YAML -> `Sweep`: its keys, and how they are read -----------------------------------------------------------------

_IN_MEMORY = 100_000_000         # numbers of a Latin hypercube or of Sobol's sequence
OWN_COLUMNS = ("number", "status", "reason", "seconds", "hash", "energy_balance")


# values of keys -----------------------------------------------------------------------------------------------------

def _varied(node: Node) -> SweepParameter:
    values = PARAMETER.values(node)
    key = values["key"].strip()
    if not key:
        raise node.value["key"].problem("the key is empty", expected="a key of the scenario, or robot.<parameter>")
    sources = [name for name in SOURCES if name in values]
    if len(sources) != 1:
        raise node.problem("one source of values is required", found=SourceText(", ".join(sources) or "none"),
                           expected="one of " + ", ".join(SOURCES))
    kind, = sources
    scale, name, source = values.get("scale", "absolute"), values.get("name", key), node.value[kind]
    if not name.strip() or not name.isprintable():
        raise node.value["name"].problem("not a name of a column", found=name)
    if kind in DISTRIBUTIONS:
        return SweepParameter(key, name, None, _distribution(kind, values[kind], source), scale, place=node.place)
    if kind == "range":
        values[kind] = _range(values[kind], source)
    if kind == "csv":
        values[kind] = _column(**values[kind], place=source.value["column"].place)
    parameter = SweepParameter(key, name, values[kind], None, scale, place=node.place)
    if scale == "relative" and not parameter.is_number:
        raise source.problem("relative values must be numbers", found=source.excerpt())
    return parameter


def _range(values: tuple[float, ...], node: Node) -> Range:
    first, last, count = values
    if count != int(count) or count < 1 or count > MOST_RUNS:
        raise node.problem("wrong count of a range", found=node.value[2].excerpt(),
                           expected=f"an integer from 1 to {MOST_RUNS:.0e}")
    return Range(first, last, int(count))


def _column(file: str, column: str, place: Place) -> tuple[float, ...]:
    """Return the numbers of a column of a CSV, by its title, in SI if it has a unit.

    Other columns may have text, and rows may end after the column.
    """
    table, unit = read_table(file, ScenarioError), unit_of(title_unit(column) or "1")
    if unit is None:
        raise ScenarioError("unknown unit", place=place, found=title_unit(column), expected="a unit such as deg, mm or N m",
                            hint=nearest(title_unit(column), UNITS))
    if table.titles.count(column) > 1:
        raise ScenarioError("two columns have the same name", place=table.place(column=column))
    if column not in table.titles:
        raise ScenarioError("no such column", place=place, found=column, expected=f"a name in line {table.title_line} of {file}",
                            hint=table.separator_hint or nearest(column, table.titles))     # names of any file are not shown
    if not table.rows:
        raise ScenarioError("the file has no rows", place=Place(file), expected="rows of numbers")
    index, values = table.titles.index(column), []
    for line, cells in table.cells():
        if any(map(str.strip, cells[len(table.titles):])):
            table.check_length(line, cells)
        number = table.number(line, column, cells[index] if index < len(cells) else "")
        values.append(unit.in_si(number))
    return tuple(values)


def _distribution(kind: str, values: Any, node: Node) -> Distribution:
    if kind in ("uniform", "log_uniform"):
        low, high = values
        if low >= high:
            raise node.problem("the bounds are not in order", found=node.excerpt(), expected="[low, high] with low below high")
        if kind == "log_uniform" and low <= 0:
            raise node.problem("a logarithmic distribution requires bounds above 0", found=node.excerpt())
        return Distribution(kind, low, high)
    low, high = values.pop("low", -math.inf), values.pop("high", math.inf)
    if low >= high:
        raise node.problem("the bounds are not in order", found=[low, high], expected="low below high")
    if kind == "log_normal" and high <= 0:
        raise node.problem("a log-normal distribution has no values below 0", found=high, expected="high above 0")
    centre, spread = ("mean", "std") if kind == "normal" else ("median", "sigma")
    return Distribution(kind, low, high, values[centre], values[spread])


def _plain(node: Node) -> Any:
    if node.kind == "number":
        return node.number()
    if node.kind == "list":
        return tuple(child.number() for child in node.items(minimum=1, of="numbers"))
    if node.kind not in ("text", "boolean"):
        raise node.wrong("a number, text, true or false, or a list of numbers")
    return node.value


def _overrides(node: Node) -> tuple[str, ...]:
    """Return overrides as "key.path=value"."""
    return tuple(f"{key}={json.dumps(_override(child))}" for key, child in node.mapping().items())


def _override(node: Node) -> Any:
    if node.kind == "mapping":
        return {key: _scalar(child) for key, child in node.mapping().items()}
    return None if node.kind == "null" else _plain(node)


def _scalar(node: Node) -> Any:
    if node.kind not in ("number", "text", "boolean"):
        raise node.wrong("a number, text, true or false", hint="write the path of the key: integrator.step")
    return node.number() if node.kind == "number" else node.value


def _outputs(node: Node) -> tuple[Output, ...]:
    return tuple(Output(name, child.text(), place=child.place) for name, child in node.mapping().items())


def _trajectories(node: Node) -> StoredTrajectories | None:
    if node.kind == "boolean":
        return StoredTrajectories(place=node.place) if node.value else None
    if node.kind != "mapping":
        raise node.wrong("true, false, or a mapping with every and columns")
    return StoredTrajectories(**TRAJECTORIES.values(node), place=node.value.get("columns", node).place)


def _columns(node: Node) -> str:
    text = node.text()
    return text if "=" in text else File("map of columns").read(node)


def _smooth(node: Node) -> float | str:
    return node.number(above=0) if node.kind == "number" else node.choice(("auto",))


# keys ---------------------------------------------------------------------------------------------------------------

_LOW = Field("low", Number(), "minimum; values below it are not drawn", "none", example=0.5)
_HIGH = Field("high", Number(), "maximum; values above it are not drawn", "none", example=1.5)

SWEEP_CSV = Schema("sweep_csv", (
    Field("file", File("CSV file"), "a CSV whose first line names its columns", required="a path", example="masses.csv"),
    Field("column", Text(), "the column with the values, one per run", required="a column's name", example="mass")))
NORMAL = Schema("normal", (
    Field("mean", Number(), "mean", required=True, example=1.0),
    Field("std", Number(above=0), "standard deviation", required=True, example=0.1), _LOW, _HIGH))
LOG_NORMAL = Schema("log_normal", (
    Field("median", Number(above=0), "median", required=True, example=1.0),
    Field("sigma", Number(above=0), "standard deviation of the logarithm", required=True, example=0.2), _LOW, _HIGH))
SOURCES = ("list", "range", "csv", "uniform", "log_uniform", "normal", "log_normal")
DISTRIBUTIONS = SOURCES[3:]
PARAMETER = Schema("parameter", (
    Field("key", Text(), "varied key: a key of the scenario such as `initial.q.elbow`, as for `-S`; or `robot.` and a parameter "
        "such as `robot.mass.hand`, or a key of the robot YAML such as `robot.links.hand.com`; or, of a job, `trajectory`",
        required="a key of the scenario, or robot.<parameter>", example="initial.q.shoulder", live=True),
    Field("name", Text(), "name of its column in the table", "the key", example="release"),
    Field("list", List(OneOf((Number(), Text(), Boolean(), List(Number())), reader=_plain), 1), "these values",
        example=[0.5, 1.0, 1.5]),
    Field("range", Vector(3), "`[first, last, count]`: equally spaced values", example=[0, 1, 11]),
    Field("csv", SWEEP_CSV, "values from a column of a CSV file"),
    Field("uniform", Vector(2), "`[low, high]`: uniform between these", example=[-0.1, 0.1], live=True),
    Field("log_uniform", Vector(2), "`[low, high]`: uniform in the logarithm", example=[0.01, 1]),
    Field("normal", NORMAL, "normal distribution `{mean, std}`, truncated at `low` and `high` if given"),
    Field("log_normal", LOG_NORMAL, "log-normal distribution `{median, sigma}`, truncated at `low` and `high` if given"),
    Field("scale", Choice(SCALES), "`relative`: the values are factors of the value in the scenario or robot, and the table "
        "has the product", "absolute", example="relative")), one_of=(SOURCES,), reader=_varied)
TRAJECTORIES = Schema("trajectories", (
    Field("every", Integer(minimum=1), "store every n-th row, and the last", default_of(StoredTrajectories, "every"), example=10),
    Field("columns", List(Text(), 1, words="names"), "names or patterns of columns", "all", example=["q.*"])))
_SCALARS = Number(), Text(), Boolean()
_VALUE = OneOf((*_SCALARS, List(Number(), 1), Named(OneOf(_SCALARS), "key")))
_NAMES = one_or_more(Text(), "patterns", "names")
_SERIES = JOBS[:3]                               # jobs that have time derivatives

SWEEP = Schema("sweep", (
    Field("scenario", File("scenario file"), "scenario or robot file on which all runs are based",
        required="the path of a scenario file", kinds=(SIMULATE,), example="scenario.yaml", live=True),
    Field("overrides", Named(_VALUE, "duration", _overrides),
        "keys of the scenario that are overridden in all runs; `null` removes a key", "none",
        kinds=(SIMULATE,), example={"duration": 2, "integrator.step": 0.002}),
    Field("parameters", List(PARAMETER, 1, words="entries"), "list of varied parameters",
        required="a list of parameters", live=True),
    Field("combine", Choice(COMBINATIONS), "`grid`: all combinations; `zip`: the k-th values of all parameters; `sample`: "
                                           "random samples", "`sample` if there is a distribution, else "
                                                             "`grid`", example="sample", live=True),
    Field("samples", Integer(minimum=1), f"number of runs, of `sample`; at most {MOST_RUNS:.0e}", "none", example=100, live=True),
    Field("sampling", Choice(SAMPLINGS), "of `sample`: `random` (a value depends on the seed, the name of the parameter and "
        "the number of the run alone), `latin_hypercube` or `sobol`", default_of(Sweep, "sampling"), example="latin_hypercube"),
    Field("seed", Integer(minimum=0), "of `sample`", default_of(Sweep, "seed"), example=7, live=True),
    Field("outputs", Named(Text(), "output", _outputs), "columns of the table, by name: expressions over a run, see "
        "[outputs](#outputs)",
        "none", example={"height": "max(energy.potential)", "last": "final(q.elbow)"}, live=True),
    Field("trajectories", OneOf((Boolean(), TRAJECTORIES), reader=_trajectories), "whether the trajectory of each run is stored: "
        "`true`, or `{every, columns}`", False, example={"every": 10, "columns": ["q.*"]}),
    Field("job", Choice((SIMULATE, *JOBS)), "job of each run: `simulate`, or a command [along a "
                                            "trajectory](#along-a-trajectory): "
        "`inverse`, `forward`, `hybrid`, `derivatives`", SIMULATE, example="inverse"),
    Field("trajectory", File("trajectory"), "CSV with the motion for the job", required="the path of a CSV file", kinds=JOBS,
        example="motion.csv"),
    Field("robot", File("robot file"), "robot file", "the one named in the trajectory", kinds=JOBS, example="robot.yaml"),
    Field("columns", OneOf((Text(),), reader=_columns), "[map of the columns](files.md#column-maps) of the trajectories: "
        "text, or a YAML file", "`motion.columns.yaml` next to `motion.csv`, if it exists", kinds=JOBS,
        example="t=stamp[ms],q.elbow=joint_3_pos[deg]"),
    Field("base", Choice(("fixed", "floating")), "whether the root link is fixed to the ground or floats",
          "as in the trajectory, "
        "else as in the robot file", kinds=JOBS, example="floating"),
    Field("prescribed", _NAMES, "joints whose acceleration is prescribed: names or patterns; required for `hybrid`",
        kinds=("hybrid", "derivatives"), example=["elbow"]),
    Field("function", Choice(_SERIES), "function that is differentiated", default_of(TrajectoryJob, "function"),
        kinds=("derivatives",), example="forward"),
    Field("wrt", _NAMES, "variables with respect to which it is differentiated, such as `q.*` or `mass.hand`",
        "q, v and the input", kinds=("derivatives",), example=["q.*"]),
    Field("joints", _NAMES, "joints whose force or acceleration is differentiated", "all", kinds=("derivatives",),
        example=["elbow"]),
    Field("order", Integer(minimum=0, maximum=170), "highest order of the time derivatives that are also computed",
          default_of(TrajectoryJob, "order"), kinds=_SERIES, example=1),
    Field("smooth", OneOf((Number(above=0), Choice(("auto",))), "smooth", _smooth),
        "knot spacing [s] of the least-squares splines for missing derivatives, or `auto`", "interpolating splines",
        kinds=_SERIES, example="auto"),
    Field("wrenches", Choice(WRENCH_AXES), "axes of the joint wrenches that are also computed", "none",
        kinds=("inverse",), example="world"),
    Field("actuated", _NAMES, "of a robot with loops: actuated joints",
        "those of the robot file, else those with a force in the trajectory",
        kinds=("inverse",), example=["crank"]),
    Field("criterion", Choice(CRITERIA), "of a robot with loops and redundant actuation: criterion that selects the forces",
        default_of(TrajectoryJob, "criterion"), kinds=("inverse",), example="least_torque")), kind="job",
    subject="the job {}", other_names={"of": "function", "by": "wrt"})


# files --------------------------------------------------------------------------------------------------------------

def read_sweep(path: str | os.PathLike[str], overrides: Iterable[str] = ()) -> Sweep:
    """Return the sweep in the YAML file `path`. overrides: further overrides of the scenario ("key.path=value").

    Paths in it are relative to its folder. Raises ScenarioError with file, line and key.
    """
    root = read_yaml(path, ScenarioError)
    if root.kind == "mapping" and "robot" in root.value and "parameters" not in root.value:
        raise root.problem("this is a scenario, not a sweep", expected="the keys scenario and parameters")
    nodes = SWEEP.nodes(root)
    kind = SWEEP.value(nodes, "job", SIMULATE)
    texts = override_texts(overrides, ScenarioError)
    if kind != SIMULATE and texts:
        raise ScenarioError("overrides do not apply to this job", place=Place(os.fspath(path)), found=texts[0],
                            expected=f"none for the job {kind}")
    values = SWEEP.values(root)
    job = _job(kind, root, values) if kind != SIMULATE else None
    if job:
        values["parameters"] = tuple(_of_files(parameter, os.path.dirname(os.fspath(path))) for parameter in values["parameters"])
    values.setdefault("combine", "sample" if any(parameter.drawn for parameter in values["parameters"]) else "grid")
    sweep = Sweep(**{field.name: values[field.name] for field in fields(Sweep) if field.name in values} | {
        "scenario": values.get("scenario", ""), "overrides": (*values.get("overrides", ()), *texts), "job": job,
        "source": os.fspath(path)})
    _check_combination(root, nodes, sweep)
    _check_names(sweep.parameters, sweep.outputs)
    return sweep


def _job(kind: str, root: Node, values: dict[str, Any]) -> TrajectoryJob:
    """Return the command along a trajectory, with the options in the file."""
    if "hybrid" in (kind, values.get("function")):
        root.require("prescribed", "names or patterns of joints")
    elif kind == "derivatives" and "prescribed" in values:
        raise root.value["prescribed"].problem("prescribed does not apply to this function", expected="function: hybrid")
    if "wrenches" in values and (values.get("order") or "smooth" in values):
        raise root.value["wrenches"].problem("wrenches cannot be combined with order and smooth")
    return TrajectoryJob(kind, **{field.name: values[field.name] for field in fields(TrajectoryJob) if field.name in values})


def _of_files(parameter: SweepParameter, folder: str) -> SweepParameter:
    """Return a parameter whose values are trajectories with their paths from the current folder."""
    if parameter.key != "trajectory":
        return parameter
    if not isinstance(parameter.values, tuple) or not all(isinstance(x, str) for x in parameter.values):
        raise ScenarioError("a trajectory must be a path", place=parameter.place.at("list"), expected="a list of paths")
    paths = tuple(os.path.normpath(os.path.join(folder, os.path.expanduser(x))) for x in parameter.values)
    for written, path in zip(parameter.values, paths, strict=True):
        if not os.path.isfile(path):
            raise ScenarioError("no such trajectory", place=parameter.place.at("list"), found=written)
    return replace(parameter, values=paths)


def _check_combination(root: Node, nodes: dict[str, Node], sweep: Sweep) -> None:
    location, runs = nodes.get("combine", root), sweep.samples
    drawn = [parameter for parameter in sweep.parameters if parameter.drawn]
    if sweep.combine == "sample":
        if not runs:
            raise root.problem("the key samples is missing", expected="a number of runs")
        if runs > MOST_RUNS:
            raise nodes["samples"].problem("too many runs", found=runs, expected=f"at most {MOST_RUNS:.0e}")
        count = runs * len(sweep.parameters)
        if count > _IN_MEMORY and sweep.sampling != "random":
            needed = f"the points of {nodes['sampling'].excerpt()} need {8e-9 * count:.3g} GB of memory"
            raise nodes["samples"].problem(needed, found=count,
                                           expected=f"at most {_IN_MEMORY:.0e} numbers", hint="sampling: random has no limit")
        return
    for key in ("samples", "sampling"):
        if key in nodes:
            raise nodes[key].problem(f"{key} does not apply to {sweep.combine}", expected="combine: sample")
    if drawn:
        raise location.problem(f"a distribution cannot be combined with {sweep.combine}", found=drawn[0].key,
                               expected="combine: sample, or a list or range")
    counts = {parameter.name: len(parameter.values or ()) for parameter in sweep.parameters}
    if sweep.combine == "zip" and len(set(counts.values())) > 1:
        raise location.problem("the lists of zip have different lengths", found=counts,
                               expected="one length")
    if sweep.combine == "grid" and math.prod(counts.values()) > MOST_RUNS:
        raise location.problem("too many runs", found=math.prod(counts.values()), expected=f"at most {MOST_RUNS:.0e}")


def _check_names(parameters: tuple[SweepParameter, ...], outputs: tuple[Output, ...]) -> None:
    seen: dict[str, str] = dict.fromkeys(OWN_COLUMNS, "a column that every table has")
    keys: set[str] = set()
    for parameter in parameters:
        if parameter.key in keys:
            raise ScenarioError("the same key varies twice", place=parameter.place.at("key"), found=parameter.key)
        keys.add(parameter.key)
    columns: tuple[SweepParameter | Output, ...] = (*parameters, *outputs)
    for column in columns:
        if column.name in seen:
            raise ScenarioError("two columns of the table have the same name", place=column.place.at("name"), found=column.name,
                                expected=f"another name than that of {seen[column.name]}")
        seen[column.name] = "another quantity" if isinstance(column, SweepParameter) else "another output"
