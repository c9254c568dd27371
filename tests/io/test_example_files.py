"""Example files: their titles, and copies that overwrite nothing by themselves."""
import json

import pytest

from liedyn.errors import UsageError
from liedyn.io.example_files import DEMOS, copy_examples, demo_file, example_files, title_of


@pytest.mark.parametrize("name, text, title", [
    ("a.yaml", "# A pendulum. It swings.\nname: a\n", "A pendulum"),
    ("a.yaml", "# A pendulum\n# that swings: by itself\nname: a\n", "A pendulum that swings"),
    ("a.yaml", "name: a\n# later\n", ""),
    ("a.py", '"""Find a motion (by IPOPT)."""\n', "Find a motion"),
    ("a.urdf", '<?xml version="1.0"?>\n<!-- An arm -->\n<robot/>', "An arm"),
    ("a.xml", '<mujoco model="m">\n<!-- A hand: five fingers -->', "A hand"),
    ("a.csv", "# no title of a table\n", ""),
    ("a.ipynb", json.dumps({"cells": [{"source": ["# First steps\n", "text"]}]}), "First steps")])
def test_the_title_is_the_first_phrase_of_the_comment(tmp_path, name, text, title):
    (tmp_path / name).write_text(text)
    assert title_of(tmp_path / name) == title


def test_demonstrations_are_among_the_examples():
    names = {path.as_posix() for path in example_files()}
    assert {f"configs/{demo_file(name).name}" for name in DEMOS} <= names


def test_a_copy_overwrites_changed_files_only_by_force(tmp_path):
    paths = copy_examples(tmp_path)
    assert len(paths) == len(example_files()) and paths == copy_examples(tmp_path)
    content = paths[0].read_bytes()
    paths[0].write_text("mine")
    with pytest.raises(UsageError, match=r"files with other contents already exist: .*; --force or force=True overwrites them"):
        copy_examples(tmp_path)
    assert paths[0].read_text() == "mine"
    copy_examples(tmp_path, force=True)
    assert paths[0].read_bytes() == content
