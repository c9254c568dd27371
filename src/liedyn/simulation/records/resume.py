"""Going on with a run from its checkpoint: it must be the same run."""
from __future__ import annotations

import hashlib
import json

import numpy as np

from liedyn.errors import UsageError
from liedyn.integrators.saved_state import numbers_of
from liedyn.io.scenarios.plain_scenario import to_plain
from liedyn.io.unfinished import of_another_version
from liedyn.simulation.records.rows import Rows


def identity(prepared) -> dict:
    """What a checkpoint says of its run: the scenario, and a hash of all numbers that the robot and the files of signals gave."""
    p, hashed = prepared.problem, hashlib.sha256()
    numbers = numbers_of(model=(p.model.index, p.model.constants), schedule=p.schedule, signals=p.signals, start=(p.q, p.v),
                         law=p.law, contacts=p.contacts, joint_laws=p.joint_laws, stops=p.stops)
    for name, x in numbers.items():
        hashed.update(f"{name} {x.dtype} {x.shape}".encode() + np.ascontiguousarray(x).tobytes())
    return {"scenario": json.loads(json.dumps(to_plain(prepared.scenario))), "numbers": hashed.hexdigest()}


def resume(prepared, own: dict, rows: Rows) -> dict:
    """Give the rows their checkpoint. own: `identity`. Returns what the checkpoint says about itself.

    Raises UsageError where it is of another run, or damaged."""
    disk = rows.disk
    numbers, about = disk.load()
    if about["width"] != rows.width:
        raise of_another_version(disk.path)
    which = f"the run in {disk.path} cannot be resumed:"
    if about["scenario"] != own["scenario"]:
        raise UsageError(f"{which} it was begun with {_difference(about['scenario'], own['scenario'])} "
                         f"(`liedyn simulate {disk.folder} --resume` takes all options from it)")
    if about["numbers"] != own["numbers"]:
        raise UsageError(f"{which} the robot, or a file that the scenario reads, has changed since")
    stages = prepared.timeline.go_on(about) if prepared.timeline else [prepared.problem]
    rows.go_on(list(zip(stages, about["firsts"], strict=True)), about["rows"], numbers)
    return about


def _difference(was, now, path: str = "") -> str:
    """The first key that differs."""
    if isinstance(was, dict) and isinstance(now, dict):
        for key in dict.fromkeys((*was, *now)):
            if was.get(key) != now.get(key):
                return _difference(was.get(key), now.get(key), f"{path}.{key}".lstrip("."))
    told = ("no value" if x is None else json.dumps(x) for x in (was, now))
    return f"{path} = {next(told)[:100]}, not {next(told)[:100]}"

