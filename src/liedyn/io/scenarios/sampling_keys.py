"""`sampling` of a scenario: its keys, from YAML and back."""
from __future__ import annotations

from liedyn.io.keys import Choice, Either, Key, Keys, Number, only
from liedyn.io.scenarios.sampling import HOLDS, LEAST_PERIOD, MEASURED, Sampling
from liedyn.io.scenarios.scenario import Rule
from liedyn.io.scenarios.signal_keys import by_name, plain_rules
from liedyn.io.yaml_text import Node

RATE = "rate", "period"


def read_sampling(node: Node, duration: float, most: int) -> Sampling:
    """most: samples that a run may take."""
    given = node.mapping(SAMPLING)
    chosen = only(node, given, RATE, "sampling", "neither", " and ", "rate: samples per second, or period: seconds")[1]
    values = SAMPLING.values(node)
    found = Sampling(**values.pop("quantization", {}), **values, place=node.place)
    if duration / found.interval > most:
        raise chosen.problem(f"about {duration / found.interval:.3g} samples in {duration:g} s", found=chosen.shown(),
                             expected=f"at most {most:g}", hint="--force-long or force_long=True allows more")
    return found


def _resolutions(node: Node) -> tuple[Rule, ...]:
    by_joint = _BY_JOINT.values[1]
    return by_joint.read(node) if node.kind == "mapping" else (Rule("*", _RESOLUTION.read(node), node.place),)


_RESOLUTION = Number(least=0)
_BY_JOINT = Either((_RESOLUTION, by_name(_RESOLUTION, "joint*")), "resolution", _resolutions)

QUANTIZATION = Keys("quantization", (
    Key("q", _BY_JOINT, "resolution of measured positions [rad or m]: a number, or by joint or pattern", 0, example=1e-4),
    Key("v", _BY_JOINT, "the same of measured velocities [rad/s or m/s]", 0, example=1e-3),
    Key("tau", _BY_JOINT, "the same of the torques that are put out [N m or N]", 0, example=0.01)))
SAMPLING = Keys("sampling", (
    Key("rate", Number(above=0, most=1 / LEAST_PERIOD), "samples per second [Hz]", example=1000),
    Key("period", Number(least=LEAST_PERIOD), "instead of `rate`: time between samples [s]", example=1e-3),
    Key("delay", Number(least=0), "time from a sample to the torque that is computed from it [s]; that of the first sample acts "
        "from the start", 0, example=5e-4),
    Key("hold", Choice(HOLDS), "torques between samples: `zero` keeps the last one, `first` continues the straight line through "
        "the last two", "zero", example="first"),
    Key("quantization", QUANTIZATION, "resolutions of what is measured and put out", "none")), one_of=(RATE,))


def plain_sampling(sampling: Sampling) -> dict:
    """In the layout of the file."""
    resolutions = {key: plain_rules(getattr(sampling, key)) for key in MEASURED if getattr(sampling, key)}
    return {"rate": sampling.rate, "period": sampling.period, "delay": sampling.delay, "hold": sampling.hold,
            "quantization": resolutions or None}
