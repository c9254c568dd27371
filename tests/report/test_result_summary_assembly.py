"""Names in the YAML of a closed configuration."""
import pytest

from liedyn.io.yaml_nodes import parse_yaml
from liedyn.io.yaml_values import flow_yaml


@pytest.mark.parametrize("name", ["elbow", "left.arm-2", " ", "..", "=1+1", "a: b", "a #b", '"', "a\\x41", "größe", "true",
                                  "Null", "nan", "Inf", "infinity", "1e3", "~", "- a", "[1]", "{a}", "&a", "*a", "!a", "%a", "@a",
                                  "<<", "?"])
def test_a_name_is_read_back(name):
    """A joint called nan was printed as a number, which is not a valid key of a file."""
    root = parse_yaml(f"q:\n  {flow_yaml(name)}: 0.5\n")
    assert root.plain() == {"q": {name: 0.5}}
