"""The keys of a sweep: what `sweep_file` reads, and what schema, template and documents say."""
from __future__ import annotations

from liedyn.io.keys import Boolean, Choice, Either, File, Integer, Key, Keys, List, Named, Number, Text, Vector, default_of
from liedyn.io.sweep import (
    COMBINATIONS,
    CRITERIA,
    JOBS,
    MOST_RUNS,
    SAMPLINGS,
    SCALES,
    SIMULATE,
    WRENCH_AXES,
    AlongJob,
    Kept,
    Sweep,
)

_LOW = Key("low", Number(), "smallest value; what is below is not drawn", "none", example=0.5)
_HIGH = Key("high", Number(), "largest value; what is above is not drawn", "none", example=1.5)

SWEEP_CSV = Keys("sweep_csv", (
    Key("file", File("CSV file"), "a CSV whose first line names its columns", required=True, missing="a path",
        example="masses.csv"),
    Key("column", Text(), "the column that holds the values, one a run", required=True, missing="a column's name",
        example="mass")))
NORMAL = Keys("normal", (
    Key("mean", Number(), "mean", required=True, example=1.0),
    Key("std", Number(above=0), "standard deviation", required=True, example=0.1), _LOW, _HIGH))
LOG_NORMAL = Keys("log_normal", (
    Key("median", Number(above=0), "median", required=True, example=1.0),
    Key("sigma", Number(above=0), "standard deviation of the logarithm", required=True, example=0.2), _LOW, _HIGH))
SOURCES = ("list", "range", "csv", "uniform", "log_uniform", "normal", "log_normal")
DISTRIBUTIONS = SOURCES[3:]
VARY = Keys("vary", (
    Key("key", Text(), "what varies: a key of the scenario such as `initial.q.elbow`, as for `-S`; or `robot.` and a parameter "
        "such as `robot.mass.hand`, or a key of the robot YAML such as `robot.links.hand.com`; or, of a job, `trajectory`",
        required=True,
        missing="a key of the scenario, or robot.<parameter>", example="initial.q.shoulder", live=True),
    Key("name", Text(), "name of its column in the table", "the key", example="release"),
    Key("list", List(Either((Number(), Text(), Boolean(), List(Number()))), 1), "these values", example=[0.5, 1.0, 1.5]),
    Key("range", Vector(3), "`[first, last, count]`: equally spaced values", example=[0, 1, 11]),
    Key("csv", SWEEP_CSV, "values from a column of a CSV file"),
    Key("uniform", Vector(2), "`[low, high]`: uniform between these", example=[-0.1, 0.1], live=True),
    Key("log_uniform", Vector(2), "`[low, high]`: uniform in the logarithm", example=[0.01, 1]),
    Key("normal", NORMAL, "normal distribution `{mean, std}`, truncated at `low` and `high` if given"),
    Key("log_normal", LOG_NORMAL, "log-normal distribution `{median, sigma}`, truncated at `low` and `high` if given"),
    Key("scale", Choice(SCALES), "`relative`: the values are factors of the value in the scenario or robot", "absolute",
        example="relative")), one_of=(SOURCES,))
TRAJECTORIES = Keys("trajectories", (
    Key("every", Integer(least=1), "keep every n-th row, and the last", default_of(Kept, "every"), example=10),
    Key("columns", List(Text(), 1), "names or patterns of columns", "all", example=["q.*"])))
_SCALARS = Number(), Text(), Boolean()
_VALUE = Either((*_SCALARS, List(Number(), 1), Named(Either(_SCALARS), "key")))
_NAMES = Either((Text(), List(Text(), 1)), "patterns")
_SERIES = JOBS[:3]                               # jobs that have time derivatives

SWEEP = Keys("sweep", (
    Key("scenario", File("scenario file"), "scenario or robot file that all runs begin with", required=True,
        missing="the path of a scenario file", kinds=(SIMULATE,), example="scenario.yaml", live=True),
    Key("overrides", Named(_VALUE, "duration"), "keys of the scenario that are overridden in all runs", "none",
        kinds=(SIMULATE,), example={"duration": 2, "integrator.step": 0.002}),
    Key("vary", List(VARY, 1), "a list: what varies from run to run", required=True, missing="a list of what varies", live=True),
    Key("combine", Choice(COMBINATIONS), "`grid`: each value with each; `zip`: the first of each, the second of each, …; "
        "`sample`: drawn", "`sample` if there is a distribution, else `grid`", example="sample", live=True),
    Key("samples", Integer(least=1), f"number of runs, of `sample`; at most {MOST_RUNS:.0e}", "none", example=100, live=True),
    Key("sampling", Choice(SAMPLINGS), "of `sample`: `random` (the values of a run depend on seed and number alone), "
        "`latin_hypercube` or `sobol`", default_of(Sweep, "sampling"), example="latin_hypercube"),
    Key("seed", Integer(least=0), "of `sample`", default_of(Sweep, "seed"), example=7, live=True),
    Key("outputs", Named(Text(), "output"), "columns of the table, by name: expressions over a run, see [outputs](#outputs)",
        "none", example={"height": "max(energy.potential)", "last": "final(q.elbow)"}, live=True),
    Key("trajectories", Either((Boolean(), TRAJECTORIES)), "whether the trajectory of each run is kept: `true`, or `{every, "
        "columns}`", False, example={"every": 10, "columns": ["q.*"]}),
    Key("job", Choice((SIMULATE, *JOBS)), "what a run is: `simulate`, or a command [along a trajectory](#along-a-trajectory): "
        "`inverse`, `forward`, `hybrid`, `derivatives`", SIMULATE, example="inverse"),
    Key("trajectory", File("trajectory"), "CSV that the job is computed along", required=True, missing="the path of a CSV file",
        kinds=JOBS, example="motion.csv"),
    Key("robot", File("robot file"), "robot file", "the one named in the trajectory", kinds=JOBS, example="robot.yaml"),
    Key("base", Choice(("fixed", "floating")), "whether the root link is fixed to the ground or floats", "as in the trajectory, "
        "else as in the robot file", kinds=JOBS, example="floating"),
    Key("prescribed", _NAMES, "joints whose acceleration is prescribed: names or patterns; `hybrid` needs it",
        kinds=("hybrid", "derivatives"), example=["elbow"]),
    Key("of", Choice(_SERIES), "what is differentiated", default_of(AlongJob, "of"), kinds=("derivatives",), example="forward"),
    Key("by", _NAMES, "what to differentiate by, such as `q.*` or `mass.hand`", "q, v and the input", kinds=("derivatives",),
        example=["q.*"]),
    Key("joints", _NAMES, "joints whose force or acceleration is differentiated", "all", kinds=("derivatives",),
        example=["elbow"]),
    Key("order", Integer(least=0, most=170), "time derivatives up to this order are computed, too",
        default_of(AlongJob, "order"), kinds=_SERIES, example=1),
    Key("smooth", Either((Number(above=0), Choice(("auto",))), "smooth"), "knot spacing [s] of least-squares splines that "
        "missing derivatives are computed with, or `auto`", "interpolating splines", kinds=_SERIES, example="auto"),
    Key("wrenches", Choice(WRENCH_AXES), "axes of the wrenches that joints transmit, which are computed, too", "none",
        kinds=("inverse",), example="world"),
    Key("actuated", _NAMES, "of a robot with loops: joints that have a motor", "those with a force in the trajectory",
        kinds=("inverse",), example=["crank"]),
    Key("criterion", Choice(CRITERIA), "of a robot with loops and more motors than its motion needs: how forces are chosen",
        default_of(AlongJob, "criterion"), kinds=("inverse",), example="least_torque")), kind="job")
