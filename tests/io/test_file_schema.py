"""The declared keys of files: readers, schemas, templates and documents agree, since all of them come from the declarations."""
import re
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator

from liedyn.errors import ScenarioError
from liedyn.io.column_map import read_column_map
from liedyn.io.file_schema import Choice, Field, List, Named, Number, OneOf, Schema
from liedyn.io.robots.robot_yaml import read_loops_file, read_robot_yaml
from liedyn.io.scenarios.scenario_file import read_scenario, scenario_of
from liedyn.io.schema_export import KINDS, json_schema, meaning_markdown, template_text
from liedyn.io.sweep_file import read_sweep
from liedyn.io.yaml_nodes import Node, parse_yaml, read_yaml
from liedyn.model.description import Robot
from liedyn.model.links import Link

ROOT = Path(__file__).parents[2]
PART = Robot("part", [Link("part")])
READERS = {"scenario": read_scenario, "robot": lambda path: read_robot_yaml(path, load=lambda *_, **__: PART),
           "loops": read_loops_file, "sweep": read_sweep,
           "columns": read_column_map}
SCENARIOS, ROBOTS = (sorted((ROOT / folder).glob("*.yaml")) for folder in ("configs", "robots"))
FILES = [*((path, "scenario") for path in SCENARIOS),
         *((path, "sweep") for path in sorted((ROOT / "configs/sweeps").glob("*.yaml"))),
         *((path, "columns") for path in sorted((ROOT / "configs/logs").glob("*.columns.yaml"))),
         *((path, "loops" if path.name.endswith(".loops.yaml") else "robot") for path in ROBOTS)]
SCHEMAS = {kind: json_schema(keys) for kind, keys in KINDS.items()}


def declared(value) -> dict[int, Schema]:
    """Return all mappings with known keys within a value."""
    if isinstance(value, Schema):
        return {id(value): value} | {k: v for key in value.keys for k, v in declared(key.value).items()}
    if isinstance(value, List | Named):
        return declared(value.of)
    return {k: v for one in value.values for k, v in declared(one).items()} if isinstance(value, OneOf) else {}


def accepts(kind: str, values) -> bool:
    return Draft202012Validator(SCHEMAS[kind]).is_valid(values)


# --- schema ----------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("kind", KINDS)
def test_schemas_are_schemas_and_their_titles_are_unique(kind):
    Draft202012Validator.check_schema(SCHEMAS[kind])
    titles = [keys.title for keys in declared(KINDS[kind]).values()]
    assert len(titles) == len(set(titles))


@pytest.mark.parametrize("kind", KINDS)
def test_meanings_of_keys_can_be_read_alone(kind):
    """Templates, schemas and editors show a meaning without the rest of the table."""
    meanings = [(key.name, key.meaning) for keys in declared(KINDS[kind]).values() for key in keys.keys]
    elsewhere = re.compile(r"\bsee (below|above)\b|\b(laws|keys|rows) (above|below)\b|\bthese (laws|keys)\b|^the same (of|and)\b")
    assert not [entry for entry in meanings if elsewhere.search(entry[1])]


@pytest.mark.parametrize("path, kind", FILES, ids=lambda x: getattr(x, "name", x))
def test_schemas_accept_every_file_of_the_collections(path, kind):
    found = [error.message for error in Draft202012Validator(SCHEMAS[kind]).iter_errors(read_yaml(path).plain())]
    assert found == []


@pytest.mark.parametrize("kind, text", [
    ("scenario", "{robot: a, duration: 1, speed: 2}"), ("scenario", "{robot: a}"), ("scenario", "{robot: a, duration: 0}"),
    ("scenario", "{robot: a, duration: 1, joints: {j: {force: 1}}}"),
    ("scenario", "{robot: a, duration: 1, joints: {j: {torque: 1, prescribe: {velocity: 0}}}}"),
    ("scenario", "{robot: a, duration: 1, joints: {j: {torque: {sine: {amplitude: 1}}}}}"),
    ("scenario", "{robot: a, duration: 1, integrator: {rtol: 1e-6}}"),                      # not of rk4
    ("scenario", "{robot: a, duration: 1, integrator: {method: dopri5, step: 1e-6}}"),
    ("scenario", "{robot: a, duration: 1, constraints: {frequency: 3}}"),
    ("scenario", "{robot: a, duration: 1, control: {law: computed_torque, motion: {j: 0}}}"),
    ("scenario", "{robot: a, duration: 1, external_forces: [{link: a, wrench: [0, 0, 0]}]}"),
    ("robot", "{links: {a: {mas: 1}}}"), ("robot", "{joints: {}}"),
    ("robot", "{links: {}, joints: {j: {type: revolute, parent: a, child: b}}}"),           # no axis
    ("robot", "{links: {}, joints: {j: {type: ball, parent: a, child: b, stiffness: 1}}}"),
    ("robot", "{links: {}, loops: {j: {type: distance, a: a, b: b}}}"),
    ("loops", "{links: {}}"),
])
def test_schemas_refuse_what_the_readers_refuse(tmp_path, kind, text):
    assert not accepts(kind, yaml.safe_load(text))
    (tmp_path / "a").touch()
    (tmp_path / "file.yaml").write_text(text)
    with pytest.raises(ValueError):
        READERS[kind](tmp_path / "file.yaml")


@pytest.mark.parametrize("text", ["base:", "joints:", "initial: {q: }", "integrator: {}", "joints: {j: {torque: [1, t]}}",
                                  "external_forces: []", "joints: {j: {torque: {csv: {file: x.csv}}}}"])
def test_schemas_accept_what_the_readers_accept_without_a_value(tmp_path, text):
    (tmp_path / "a").touch()
    (tmp_path / "file.yaml").write_text(f"robot: a\nduration: 1\n{text}\n")
    read_scenario(tmp_path / "file.yaml")
    assert accepts("scenario", read_yaml(tmp_path / "file.yaml").plain())


@pytest.mark.parametrize("given, valid", [
    ({"law": "a", "p": 1}, True), ({"law": "a", "q": 1}, True), ({"law": "a"}, False), ({"law": "a", "p": 1, "q": 1}, False),
    ({"law": "b"}, True), ({"law": "b", "p": 1}, False), ({"law": "b", "r": 1}, True), ({"law": "a", "p": 1, "r": 1}, False)])
def test_one_of_several_keys_of_a_kind(given, valid):
    keys = Schema("law", (Field("law", Choice(("a", "b")), "the law", required=True), Field("p", Number(), "of a", kinds=("a",)),
                        Field("q", Number(), "of a", kinds=("a",)), Field("r", Number(), "of b", kinds=("b",))),
                kind="law", one_of=(("p", "q"),))
    assert Draft202012Validator(json_schema(keys)).is_valid(given) == valid


@pytest.mark.parametrize("kind", KINDS)
def test_every_example_is_valid(kind):
    schema = SCHEMAS[kind]
    for keys in declared(KINDS[kind]).values():
        properties = schema if keys is KINDS[kind] else schema["$defs"][keys.title]
        for name, one in properties["properties"].items():
            for example in one.get("examples", ()):
                Draft202012Validator(one | {"$defs": schema["$defs"]}).validate(example), name


# --- readers ---------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("path, kind", FILES, ids=lambda x: getattr(x, "name", x))
def test_every_key_that_a_reader_knows_is_declared(path, kind, monkeypatch):
    """A reader that took a key past the declarations would be found here, if a file of the collections has its mapping."""
    known, refuse = [], Node.check_known_keys
    monkeypatch.setattr(Node, "check_known_keys",
                        lambda node, names: known.append((node, tuple(names))) or refuse(node, names))
    READERS[kind](path)
    asked = {id(node): names for node, names in known}
    root = next(node for node, _ in known if node.key == "")
    seen = set()

    def visit(node, schema):
        for one in objects(schema, SCHEMAS[kind]["$defs"]):
            if id(node) in asked and set(asked[id(node)]) <= set(one.get("properties", ())):
                seen.add(id(node))
            for name, child in node.value.items() if node.kind == "mapping" else ():
                inner = one.get("properties", {}).get(name, one.get("additionalProperties"))
                visit(child, inner) if inner else None
        for child in node.value if node.kind == "list" else ():
            for items in lists(schema, SCHEMAS[kind]["$defs"]):
                visit(child, items)

    visit(root, SCHEMAS[kind])
    assert [(node.key, names) for node, names in known if id(node) not in seen] == []


def objects(schema, defs):
    return [one for one in alternatives(schema, defs) if "properties" in one or "additionalProperties" in one]


def lists(schema, defs):
    return [one["items"] for one in alternatives(schema, defs) if "items" in one]


def alternatives(schema, defs):
    if "$ref" in schema:
        return alternatives(defs[schema["$ref"].rpartition("/")[2]], defs)
    return [one for part in schema.get("anyOf", ()) for one in alternatives(part, defs)] or [schema]


def test_the_default_of_the_schema_is_that_of_the_reader(tmp_path):
    (tmp_path / "a").touch()
    bare = {"robot": str(tmp_path / "a"), "duration": 1}
    full = {"passive": True, "integrator": {"method": "rk4", "step": 1e-3}, "initial": {"assemble": True},
            "constraints": {"stabilization": "projection", "tolerance": 1e-12}}
    assert scenario_of(bare) == scenario_of(bare | full)
    for name, given in full.items():
        for key, value in given.items() if isinstance(given, dict) else ():
            assert SCHEMAS["scenario"]["$defs"][name]["properties"][key]["default"] == value
    assert SCHEMAS["scenario"]["properties"]["passive"]["default"] is True


# --- each key with a good and a bad value ------------------------------------------------------------------------------

# what a key needs next to it that is not declared
_CURVE = {"table": {"yaw": [0, 1], "x": [0, 0]}}
_NONLINEAR = {"follower": "elbow", "driver": "shoulder"}
NEEDS = {"coupling.follower": {"driver": "shoulder", "function": "q"}, "coupling.driver": {"follower": "elbow", "function": "q"},
         "coupling.function": _NONLINEAR, "coupling.table": _NONLINEAR,
         "joint.interpolation": _CURVE, "joint.periodic": _CURVE,
         "mount.interpolation": _CURVE, "mount.periodic": _CURVE,
         "coupling.interpolation": _NONLINEAR | {"table": [[0, 0], [1, 1]]},
         "coupling.periodic": _NONLINEAR | {"table": [[0, 0], [1, 0]]},
         "torque.from": {"spline": [[0, 0], [1, 1]]}, "curve.from": {"spline": [[0, 0], [1, 1]]},
         "contact_shape.at": {"box": [1, 1, 1]}, "contact_shape.rpy": {"box": [1, 1, 1]},
         "impact.point": {"link": "a"}, "impact.normal": {"link": "a"}, "control.poles": {"law": "computed_torque"},
         "event.value": {"when": "q(a)"}, "event.direction": {"when": "q(a)"}, "event.debounce": {"when": "q(a)"},
         "scenario.events": {"phases": {"phase": {}}}, "link.shape": {"mass": 1}, "initial.row": {"from": "runs/before"},
         "link.shapes": {"mass": 1}, "placed_shape.colour": {"sphere": {"radius": 1}},
         "link.density": {"shape": {"box": [1, 1, 1]}}, "link.rpy": {"shape": {"box": [1, 1, 1]}, "mass": 1},
         "sweep.parameters": {"samples": 3, "combine": "sample"}, "sweep.samples": {"combine": "sample"},
         "curve.limits": {"move": [[0, 0], [1.2]]},
         "motor.voltage": {"resistance": 1, "torque_constant": 1}, "motor.current": {"torque_constant": 1},
         "motor.resistance": {"torque_constant": 1}, "motor.regeneration": {"resistance": 1, "torque_constant": 1},
         "sweep.combine": {"samples": 3},
         "sweep.sampling": {"samples": 3, "combine": "sample"}}


def example_of(value):
    """Return the simplest value: the required keys with their examples."""
    if isinstance(value, OneOf):
        return example_of(value.values[0])
    if isinstance(value, Named):
        return {value.name: example_of(value.of)}
    if isinstance(value, List):
        return [example_of(value.of)] * max(value.minimum, 1)
    if isinstance(value, Schema):
        return beside(value, None) or beside(value, value.keys[0])
    return {Choice: lambda: value.options[0], Number: lambda: 1.0}.get(type(value), lambda: "a")()


def beside(keys: Schema, key: Field | None) -> dict:
    """Return a mapping with this key and the keys that it requires, from the examples of the keys."""
    found = dict(NEEDS.get(f"{keys.title}.{key.name}", {})) if key else {}
    if keys.kind:
        kinds = key.kinds if key else ()
        found = {keys.kind: kinds[0] if kinds else keys[keys.kind].example or keys[keys.kind].value.options[0]} | found
    of_kind = keys.of_kind(found[keys.kind]) if keys.kind else tuple(keys)
    wanted = [name for name in of_kind if keys[name].required] + ([key.name] if key else [])
    for group in keys.one_of:
        if group[0] in of_kind and not any(name in found or name in wanted for name in group):
            wanted.append(group[0])
    for one in (keys[name] for name in wanted if name not in found):
        found[one.name] = example_of(one.value) if one.example is None else one.example
    return found


def keys_with_places(keys: Schema, embed=lambda x: x, path=(), seen=None):
    """Return each key of a file once: its mapping, its path, and a function that wraps such a mapping into a complete file."""
    seen = set() if seen is None else seen
    if id(keys) in seen:
        return
    seen.add(id(keys))
    for key in keys.keys:
        yield keys, key, embed, (*path, key.name)
        for inner, wrap, way in mappings_in(key.value, key.example):
            yield from keys_with_places(inner, lambda x, key=key, wrap=wrap: embed(beside(keys, key) | {key.name: wrap(x)}),
                                        (*path, key.name, *way), seen)


def mappings_in(value, example):
    """Return the mappings with known keys that a value may be or contain, with a function that wraps one, and the path to it."""
    if isinstance(value, Schema):
        yield value, (lambda x: x), ()
    elif isinstance(value, OneOf):
        for one in value.values:
            yield from mappings_in(one, example)
    elif isinstance(value, Named):
        others = example if isinstance(example, dict) else {}
        for inner, wrap, way in mappings_in(value.of, None):
            yield inner, lambda x, wrap=wrap: others | {value.name: wrap(x)}, (value.name, *way)
    elif isinstance(value, List):
        others = (example if isinstance(example, list) else [])[:max(value.minimum, 1) - 1]
        for inner, wrap, way in mappings_in(value.of, None):
            yield inner, lambda x, wrap=wrap: [*others, wrap(x)], (len(others), *way)


PLACES = [(kind, keys, key, embed, path) for kind in KINDS for keys, key, embed, path in keys_with_places(KINDS[kind])]


def read_values(kind: str, values: dict, folder: Path):
    (folder / "runs" / "before").mkdir(parents=True, exist_ok=True)
    for name in ("robot.yaml", "robot.urdf", "controller.py", "robot.loops.yaml", "runs/before/trajectory.csv", "scenario.yaml",
                 "motion.csv"):
        (folder / name).touch()
    (folder / "masses.csv").write_text("mass\n1\n")
    (folder / "K.csv").write_text("1, 2\n")
    (folder / "file.yaml").write_text(yaml.safe_dump(values))
    return READERS[kind](folder / "file.yaml")


@pytest.mark.parametrize("kind, keys, key, embed, path", PLACES, ids=[".".join(map(str, place[4])) for place in PLACES])
def test_each_key_with_a_good_and_a_bad_value(kind, keys, key, embed, path, tmp_path):
    good = beside(keys, key)
    assert accepts(kind, embed(good)), embed(good)
    read_values(kind, embed(good), tmp_path)
    bad = embed(good | {key.name: {"no such key": []}})
    assert not accepts(kind, bad), bad
    with pytest.raises(ValueError) as caught:
        read_values(kind, bad, tmp_path)
    place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)[1:]
    assert (caught.value.place.key or "").startswith(place), caught.value
    assert caught.value.place.line and "\n" not in str(caught.value)


# --- templates -------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("kind", KINDS)
def test_the_template_has_every_key_with_its_meaning_and_is_valid(kind, tmp_path):
    text = template_text(kind)
    plain = " ".join(re.sub(r"^[# ]+|#", "", line) for line in text.splitlines())
    for keys in declared(KINDS[kind]).values():
        for key in keys.keys:
            assert re.search(rf"^[# -]*{re.escape(key.name)}:", text, re.MULTILINE), f"{keys.title}.{key.name}"
            words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", key.meaning).split()[-3:]
            assert words[-1] in plain, f"{keys.title}.{key.name}"
    assert accepts(kind, parse_yaml(text).plain())
    assert max(map(len, text.splitlines())) <= 130
    assert text.startswith(f"# yaml-language-server: $schema={kind}.schema.json\n")
    for name in ("robot.yaml", "robot.urdf", "controller.py", "scenario.yaml"):
        (tmp_path / name).touch()
    (tmp_path / "file.yaml").write_text(text, encoding="utf-8")
    READERS[kind](tmp_path / "file.yaml")


@pytest.mark.parametrize("kind", KINDS)
def test_lines_of_the_template_can_be_uncommented(kind):
    """Each block that is commented out at the first level is YAML without its signs, up to alternatives of one key."""
    blocks = re.findall(r"(?:^# [ a-z].*\n|^#  .*\n)+", template_text(kind).split("\n\n", 1)[1], re.MULTILINE)
    assert len(blocks) >= 2
    for block in blocks:
        assert yaml.safe_load(re.sub(r"^# ?", "", block, flags=re.MULTILINE))


# --- documents -------------------------------------------------------------------------------------------------------

TABLES = [(f"docs/{page}.md", title) for page, titles in {
    "scenarios": ("scenario", "constraints", "external_force", "initial", "pose_motion", "waypoint", "table"),
    "scenarios/control": ("control", "sampling", "quantization", "motor", "gear_efficiency", "thermal", "controller"),
    "scenarios/contact": ("limit_stops", "friction"),
    "scenarios/events": ("phase", "event"), "scenarios/integrators": ("integrator",), "scenarios/sensors": ("sensor",),
    "files": ("link", "joint", "actuator", "include", "column_map"), "loops": ("loop", "coupling"),
    "elements": ("element", "one_sided"), "batches": ("sweep", "parameter", "trajectories")}.items() for title in titles]
SCENARIO_PAGES = ["scenarios", *(f"scenarios/{page}" for page in ("contact", "control", "events", "integrators", "sensors"))]


@pytest.mark.parametrize("page, title", TABLES, ids=lambda x: x.rpartition("/")[2])
def test_the_tables_of_the_documents_are_the_declarations(page, title):
    everything = {keys.title: keys for root in KINDS.values() for keys in declared(root).values()}
    text = (ROOT / page).read_text(encoding="utf-8")
    rows = [f"| `{key.name}` | {meaning_markdown(key)} |" for key in everything[title].keys]
    shown = re.sub(r"\]\([./\w-]+\.md#", "](#", text).splitlines()                 # sections may be on other pages
    missing = [row for row in rows if row not in shown and row not in text.splitlines()]
    if missing:                                                # pytest cuts long messages of assertions
        pytest.fail(f"{page} lacks these rows:\n" + "\n".join(missing), pytrace=False)


@pytest.mark.parametrize("kind, pages", [("scenario", SCENARIO_PAGES), ("robot", ["files", "loops", "elements"]),
                                         ("loops", ["loops", "elements"])])
def test_every_key_is_in_the_documents(kind, pages):
    text = "\n".join((ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8") for page in pages)
    code = " ".join(re.findall(r"```.*?```|`[^`\n]+`", text, re.DOTALL))
    missing = [f"{keys.title}.{name}" for keys in declared(KINDS[kind]).values() for name in keys
               if not re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", code)]
    assert missing == []


def test_an_unknown_value_of_a_declared_key_is_refused_by_its_bounds(tmp_path):
    (tmp_path / "a").touch()
    with pytest.raises(ScenarioError, match="rho: out of range: expected a number >= 0 and <= 1, got 2"):
        scenario_of({"robot": str(tmp_path / "a"), "duration": 1, "integrator": {"method": "generalized_alpha", "rho": 2}})


# --- suggestions -----------------------------------------------------------------------------------------------------

EVERY = {keys.title: keys for root in KINDS.values() for keys in declared(root).values()}


@pytest.mark.parametrize("title", EVERY)
def test_mistyped_keys_are_recognized(title):
    keys = EVERY[title]
    for name in (name for name in keys if len(name) > 3):
        for typo in (name[:-2] + name[-1] + name[-2], name[:2] + name[3:], name.upper(), name + "x"):
            if typo not in tuple(keys):
                with pytest.raises(ScenarioError, match=r"unknown key.*\(did you mean ") as caught:
                    parse_yaml(f"{typo}: 1", error=ScenarioError).mapping(keys)
                meant = caught.value.hint.removeprefix("did you mean ").removesuffix("?")
                assert meant == name or {meant, name} in ({"axis", "axes"}, {"shape", "shapes"}, {"joint", "joints"})


@pytest.mark.parametrize("kind, key, meant", [
    ("scenario", "step", "integrator.step"), ("scenario", "q", "initial.q"), ("scenario", "torque", "joints.NAME.torque"),
    ("scenario", "wrench", "external_forces.0.wrench"), ("scenario", "joint", "joints"), ("robot", "mass", "links.NAME.mass"),
    ("robot", "damping", "joints.NAME.damping"), ("robot", "terms", "couplings.NAME.terms")])
def test_keys_in_a_wrong_mapping_are_recognized(kind, key, meant):
    with pytest.raises(ScenarioError, match=re.escape(f"(did you mean {meant}?)")):
        parse_yaml(f"{key}: 1", error=ScenarioError).mapping(KINDS[kind])
