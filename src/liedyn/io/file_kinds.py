"""The kinds of YAML files that have keys of their own, with their templates and schemas."""
from __future__ import annotations

import json

from liedyn.io.keys import Keys
from liedyn.io.robots.robot_keys import LOOPS_FILE, ROBOT
from liedyn.io.scenarios.scenario_keys import SCENARIO
from liedyn.io.schema import json_schema
from liedyn.io.sweep_file import SWEEP
from liedyn.io.template import template

KINDS: dict[str, Keys] = {"scenario": SCENARIO, "robot": ROBOT, "loops": LOOPS_FILE, "sweep": SWEEP}
_HEAD = """\
yaml-language-server: $schema={kind}.schema.json
All keys of {what}.
Those behind a # are examples and alternatives.
Editors complete and check the file by the schema that `liedyn schema {kind} -o {kind}.schema.json` writes."""
_WHAT = {"scenario": "a scenario, which `liedyn simulate` runs; `liedyn template robot -o robot.yaml` writes its robot",
         "robot": "a robot", "loops": "a file of loops, which stands beside a URDF",
         "sweep": "a sweep, which `liedyn batch` runs; `liedyn template scenario -o scenario.yaml` writes its scenario"}


def template_text(kind: str) -> str:
    """A commented YAML file with all keys."""
    return template(KINDS[kind], _HEAD.format(kind=kind, what=_WHAT[kind]))


def schema_text(kind: str) -> str:
    """The JSON schema of a kind of file."""
    return json.dumps(json_schema(KINDS[kind]), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
