"""The YAML reader: values with their line and key, and one clear line for everything that it rejects."""
from __future__ import annotations

import os

import pytest

from liedyn.errors import InputError, ModelError, ScenarioError
from liedyn.io.yaml_nodes import parse_yaml, read_yaml

SAMPLE = """\
# a comment
name: sample
gains:
  stiff: {kp: 1e-3, kd: -.5, on: true}
  list:
    - 1
    - [2, 3.5E+2,
       4]
  frame:
  words: ["1", yes, 12:30]
"""


BOMB = "".join(f"l{k}: &l{k} [{', '.join(f'*l{k - 1}' for _ in range(9)) if k else 'lol'}]\n" for k in range(99))
MERGE_BOMB = "l0: &l0 {a: 1}\n" + "".join(f"l{k}: &l{k} {{<<: *l{k - 1}, k{k}: *l{k - 1}}}\n" for k in range(1, 99))
ALIASES = """\
a: &a
  x: 1
  y: [1, &n 2]
b: *a
c: {<<: *a, x: 5,
    z: *n}
d:
  z: 3
  <<: [{x: 7, w: 1}, *a]
"<<": *n
&k e: *k
f: &n 4
g: *n
"""


@pytest.fixture
def root():
    return parse_yaml(SAMPLE, "s.yaml", ScenarioError)


def refused(action) -> str:
    with pytest.raises(ScenarioError) as caught:
        action()
    text = str(caught.value)
    assert "\n" not in text
    return text


def test_values(root):
    assert root.plain() == {"name": "sample", "gains": {
        "stiff": {"kp": 1e-3, "kd": -0.5, "on": True}, "list": [1.0, [2.0, 350.0, 4.0]], "frame": None,
        "words": ["1", "yes", "12:30"]}}


def test_lines_and_keys(root):
    gains = root.get("gains")
    assert (gains.line, gains.key) == (3, "gains")
    assert (gains.get("list").line, gains.get("list").key) == (5, "gains.list")
    assert (gains.get("frame").line, gains.get("frame").kind) == (9, "null")
    last = gains.get("list").value[1].value[2]
    assert (last.line, last.key, last.number()) == (8, "gains.list[1][2]", 4.0)
    assert str(last.place) == "s.yaml:8: gains.list[1][2]"


def test_accessors(root):
    stiff = root.get("gains").get("stiff")
    assert stiff.get("kp").number(above=0) == 1e-3
    assert stiff.get("on").boolean() is True
    assert root.get("name").choice(["sample", "other"]) == "sample"
    assert root.get("gains").get("list").value[1].vector(3) == (2.0, 350.0, 4.0)
    assert [word.text() for word in root.get("gains").get("words").items(3)] == ["1", "yes", "12:30"]
    assert root.get("gains").get("frame").mapping() == {}
    assert root.get("none") is None
    assert parse_yaml("[3]").items()[0].integer() == 3


@pytest.mark.parametrize("action, message", [
    (lambda r: r.get("name").number(), "s.yaml:2: name: expected a number, got sample"),
    (lambda r: r.get("name").number(minimum=0, maximum=1), "expected a number >= 0 and <= 1"),
    (lambda r: r.get("gains").text(), "s.yaml:3: gains: expected text, got {stiff: {kp: 1e-3, kd: -.5, on: true}, list: [1, "
                                      "[2, 3.5E+2, 4]], frame: , words: ['1', yes, 12:30]}"),
    (lambda r: r.get("gains").get("frame").number(), "s.yaml:9: gains.frame: no value: expected a number"),
    (lambda r: r.get("gains").get("stiff").get("on").number(),
     "s.yaml:4: gains.stiff.on: expected a number, got true"),
    (lambda r: r.get("gains").get("stiff").get("kp").number(above=1), "expected a number > 1, got 1e-3"),
    (lambda r: r.get("gains").get("stiff").get("kp").integer(), "expected an integer, got 1e-3"),
    (lambda r: r.get("gains").get("stiff").get("kp").text(), 'expected text, got 1e-3 (write it in "quotes")'),
    (lambda r: r.get("gains").get("list").vector(3),
     "s.yaml:5: gains.list: expected a list of 3 numbers, got [1, [2, 3.5E+2, 4]]"),
    (lambda r: r.get("gains").get("list").vector(2),
     "s.yaml:7: gains.list[1]: expected a number, got [2, 3.5E+2, 4]"),
    (lambda r: r.get("name").items(minimum=1), "expected a list of at least 1 values"),
    (lambda r: r.get("gains").get("list").items(maximum=1), "expected a list of 0 to 1 values"),
    (lambda r: r.get("name").boolean(), "expected true or false"),
    (lambda r: r.get("name").mapping(), "expected a mapping (key: value)"),
    (lambda r: r.get("name").choice(["simple", "b"]), "expected one of simple, b, got sample (did you mean simple?)"),
    (lambda r: r.check_known_keys(["name", "gain"]),
     "s.yaml:3: gains: unknown key: expected one of name, gain (did you mean gain?)"),
    (lambda r: r.mapping(["gains"]), "s.yaml:2: name: unknown key: expected one of gains"),
    (lambda r: r.get("gains").require("zeta", "a number"), "s.yaml:3: gains: the key zeta is missing: expected a number"),
])
def test_wrong_values_name_file_line_key_found_and_expected(root, action, message):
    assert message in refused(lambda: action(root))


@pytest.mark.parametrize("number", [".nan", ".NaN", "nan", ".inf", "-.inf", "inf", "1e999"])
def test_numbers_that_are_not_finite(number):
    node = parse_yaml(f"a:\n  b: {number}", "s.yaml", ScenarioError).get("a").get("b")
    assert refused(node.number) == f"s.yaml:2: a.b: not a finite number: expected a number, got {number}"


@pytest.mark.parametrize("text", ["1,5", "'1,5'"])
def test_a_decimal_comma(text):
    node = parse_yaml(f"a:\n  b: {text}", "s.yaml", ScenarioError).get("a").get("b")
    assert refused(node.number) == f"s.yaml:2: a.b: expected a number, got {text} (write a decimal point: 1.5)"


@pytest.mark.parametrize("text, message", [
    ("", "s.yaml: the file is empty"),
    ("# only a comment\n", "s.yaml: the file is empty"),
    ("a: 1\nb: 2\na: 3\n", "s.yaml:3: a: duplicate key, first on line 1"),
    ("x: {a: 1, a: 2}", "s.yaml:1: x.a: duplicate key"),
    ("a: 1\nb: *x\nc: &x 1", "s.yaml:2: b: the YAML alias has no anchor before it: expected an anchor &name before *name"),
    ("a: &x\n - *x\n", "s.yaml:2: a[0]: the YAML alias refers to a value that contains it"),
    ("a: &x 1\n*x : 2\n", "s.yaml:2: a YAML alias cannot be a key: expected a name"),
    ("a:\n  <<: 1\n", "s.yaml:2: a.<<: wrong value of a YAML merge key: expected an alias of a mapping, or a list"),
    ("a: &x {b: 1}\nc:\n  <<: [*x, 2]\n", "s.yaml:3: c.<<: wrong value of a YAML merge key"),
    ("a: &x {b: 1}\nc:\n  <<: *x\n  <<: *x\n", "s.yaml:4: c: duplicate merge key <<: expected one with a list of aliases"),
    ("a: &x " + "[" * 30 + "]" * 30 + "\nb: " + "[" * 30 + "*x", "s.yaml:1: too deeply nested: expected at most 50 levels"),
    (BOMB, "s.yaml:6: l5[6]: YAML aliases add too many values: expected at most 100000"),
    (MERGE_BOMB, "s.yaml:11: l10.<<: YAML aliases add too many values: expected at most 100000"),
    ("a: !!python/object:os.system x",
     "s.yaml:1: a: YAML tags are not supported: expected a plain value"),
    ("--- {a: 1}\n--- {a: 2}\n", "s.yaml:2: more than one YAML document: expected one document in a file"),
    ("a: 1\n2: b\n", "s.yaml:2: the key is a number: expected a name (write it in quotes)"),
    ("true: b\n", "s.yaml:1: the key is a boolean: expected a name (write it in quotes)"),
    ("0: b\n", "s.yaml:1: the key is a number: expected a name (write it in quotes)"),              # they were called empty
    ("false: b\n", "s.yaml:1: the key is a boolean: expected a name (write it in quotes)"),
    ("x: {mass: 1,5, com: 0}", "s.yaml:1: x.mass: expected a number, got 1,5 (write a decimal point: 1.5)"),
    ("x: {damping: -0,25}", "s.yaml:1: x.damping: expected a number, got -0,25 (write a decimal point: -0.25)"),
    ("x: {mass: 1, 5: 0}", "s.yaml:1: x: the key is a number: expected a name (write it in quotes)"),
    ("? [a]\n: 1\n", "s.yaml:1: a list cannot be a key: expected a name"),
    ("a:\n\t- 1\n", "s.yaml:2: not valid YAML: the line is indented with a tab: expected spaces"),
    ("a:\n  b: 1\n  \tc: 2\n", "s.yaml:3: not valid YAML: the line is indented with a tab: expected spaces"),
    ("a: [1,\n\t@]\n", "s.yaml:2: not valid YAML: the line is indented with a tab: expected spaces"),
    ("a:\t[1\n", "s.yaml:1: not valid YAML: while"),
    ("a: 1\n b: 2\n", "s.yaml:2: not valid YAML: "),
    ("a: [1, 2\n", "s.yaml:1: not valid YAML: "),
    ("a: 'never closed\n", "s.yaml:1: not valid YAML: "),
    ("a: \ufffe", "s.yaml:1: a character that YAML does not allow"),
    ("[" * 100_000, "s.yaml:1: too deeply nested: expected at most 50 levels"),
    ("- " * 1000, "s.yaml:1: too deeply nested"),
    ("a: 1\nb: " + "{c: [" * 20_000, "s.yaml:2: too deeply nested: expected at most 50 levels"),
    ("a:\n" + "".join("  " * k + "- \n" for k in range(2000)), "s.yaml:51: too deeply nested"),
    ("a: [\"" + "[" * 60 + "\", '" + "[" * 60 + "'", "s.yaml:1: not valid YAML: "),       # brackets in quotes nest nothing
])
def test_texts_that_are_refused(text, message):
    assert refused(lambda: parse_yaml(text, "s.yaml", ScenarioError)).startswith(message)


def test_aliases_and_merge_keys_are_copies_under_other_keys():
    root = parse_yaml(ALIASES, "s.yaml", ScenarioError)
    a = {"x": 1, "y": [1, 2]}
    assert root.plain() == {"a": a, "b": a, "c": {"x": 5, "y": [1, 2], "z": 2}, "d": {"x": 7, "w": 1, "y": [1, 2], "z": 3},
                            "<<": 2, "e": "e", "f": 4, "g": 4}
    assert list(root.get("d").value) == ["x", "w", "y", "z"]               # merged keys first, as in PyYAML
    root.get("b").get("y").value.pop()
    assert root.get("a").plain() == a


def test_lines_of_aliases_are_those_of_the_text_and_keys_those_of_the_alias():
    root = parse_yaml(ALIASES, "s.yaml", ScenarioError)
    assert [str(node.place) for node in (root.get("b"), root.get("b").get("x"), root.get("b").get("y").value[1],
                                         root.get("c").get("y"), root.get("c").get("z"), root.get("d").get("w"))] == [
        "s.yaml:4: b", "s.yaml:2: b.x", "s.yaml:3: b.y[1]", "s.yaml:3: c.y", "s.yaml:6: c.z", "s.yaml:9: d.w"]
    assert refused(lambda: root.get("b").get("x").boolean()) == "s.yaml:2: b.x: expected true or false, got 1"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_is_refused_and_does_not_hang(tmp_path):
    os.mkfifo(tmp_path / "s.yaml")
    text = refused(lambda: read_yaml(tmp_path / "s.yaml", ScenarioError))
    assert text.endswith("s.yaml: this is a pipe: expected a file (save it to a file first)")


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="no device without end")
def test_a_link_to_a_device_without_end_is_refused_unread(tmp_path):
    (tmp_path / "s.yaml").symlink_to("/dev/zero")
    assert "s.yaml: this is a device: expected a file" in refused(lambda: read_yaml(tmp_path / "s.yaml", ScenarioError))


def test_a_file_that_is_too_large_is_refused_unread(tmp_path):
    with open(tmp_path / "s.yaml", "wb") as file:
        file.truncate(10_000_000_000)                       # a hole: it takes no room on the disk
    text = refused(lambda: read_yaml(tmp_path / "s.yaml", ScenarioError))
    assert text.endswith("s.yaml: the file is too large: expected at most 10 MB")


def test_names_with_control_characters_do_not_reach_the_terminal():
    text = refused(lambda: parse_yaml('{a: 1, "\\e[31m\\n": 1}', "s.yaml", ScenarioError).check_known_keys(["a"]))
    assert "\x1b" not in text and "\\x1b" in text


@pytest.mark.parametrize("contents, message", [
    (b"", "the file is empty"),
    (b"  \n", "the file is empty"),
    (b"\x7fELF\x00\x01", "this is a binary file: expected text in UTF-8"),
    (b"a: 1\nb: \xff\xfe\n", ":2: this is not a text file: expected text in UTF-8"),
    ("a: 1\n".encode("utf-16"), "this is a binary file: expected text in UTF-8"),
    ("a: 1\n".encode("utf-16-le"), "this is a binary file: expected text in UTF-8"),
    ("a: 1\n".encode("utf-16-be"), "this is a binary file: expected text in UTF-8"),
    ("a: 1\n".encode("utf-32"), "this is a binary file: expected text in UTF-8"),
    (b"a: 1\nb: x\x00y\n", "this is a binary file: expected text in UTF-8"),
    (b"a: 1\nb: \x07\n", ":2: control characters are not allowed: expected plain text, got '\\x07'"),
    (b"a: 1\nb: \x7f\n", ":2: control characters are not allowed: expected plain text, got '\\x7f'"),
    ("a: 1\nb: \x9b\n".encode(), ":2: control characters are not allowed: expected plain text, got '\\x9b'"),
    (b"a: 1\nb: \x1b[31m\n", ":2: control characters are not allowed: expected plain text, got '\\x1b'"),
])
def test_files_that_are_not_text(tmp_path, contents, message):
    path = tmp_path / "s.yaml"
    path.write_bytes(contents)
    text = refused(lambda: read_yaml(path, ScenarioError))
    assert text.startswith(str(path)) and text.endswith(message)


def test_missing_file_directory_and_too_large(tmp_path, monkeypatch):
    assert refused(lambda: read_yaml(tmp_path / "none.yaml", ScenarioError)) == f"{tmp_path / 'none.yaml'}: no such file"
    assert refused(lambda: read_yaml(tmp_path, ScenarioError)) == f"{tmp_path}: this is a directory: expected a file"
    (tmp_path / "big.yaml").write_text("a: 1\n" * 10)
    monkeypatch.setattr("liedyn.io.yaml_nodes.LARGEST_FILE", 20)
    assert "too large" in refused(lambda: read_yaml(tmp_path / "big.yaml", ScenarioError))
    with pytest.raises(InputError, match="cannot be read"):
        read_yaml("a\0b.yaml")


def test_model_error_is_the_default_and_a_mark_at_the_start_is_passed_over(tmp_path):
    path = tmp_path / "r.yaml"
    path.write_bytes(b"\xef\xbb\xbfname: r\n")
    assert read_yaml(path).plain() == {"name": "r"}
    with pytest.raises(ModelError):
        parse_yaml("[")
