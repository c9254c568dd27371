"""The keys of `sampling`: what `sampling` reads."""
from __future__ import annotations

from liedyn.io.keys import Choice, Either, Key, Keys, Named, Number
from liedyn.io.scenarios.sampling import HOLDS, LEAST_PERIOD

RATE = "rate", "period"
_RESOLUTION = Number(least=0)
_BY_JOINT = Either((_RESOLUTION, Named(_RESOLUTION, "joint*")), "resolution")

QUANTIZATION = Keys("quantization", (
    Key("q", _BY_JOINT, "resolution of measured positions [rad or m]: a number, or by joint or pattern", 0, example=1e-4),
    Key("v", _BY_JOINT, "the same of measured velocities [rad/s or m/s]", 0, example=1e-3),
    Key("tau", _BY_JOINT, "the same of the torques that are put out [N m or N]", 0, example=0.01)))
SAMPLING = Keys("sampling", (
    Key("rate", Number(above=0, most=1 / LEAST_PERIOD), "samples in a second [Hz]", example=1000),
    Key("period", Number(least=LEAST_PERIOD), "instead of `rate`: time between samples [s]", example=1e-3),
    Key("delay", Number(least=0), "time from a sample to the torque that is computed from it [s]; that of the first sample acts "
        "from the start", 0, example=5e-4),
    Key("hold", Choice(HOLDS), "torques between samples: `zero` keeps the last one, `first` continues the straight line through "
        "the last two", "zero", example="first"),
    Key("quantization", QUANTIZATION, "resolutions of what is measured and put out", "none")), one_of=(RATE,))
