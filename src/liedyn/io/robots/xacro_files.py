"""URDF text of xacro files: xacro expands them, and xacrodoc finds packages without ROS."""
from __future__ import annotations

import io
import os
import re
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from importlib.util import find_spec
from pathlib import Path

from liedyn.errors import ModelError, Place, nearest
from liedyn.io.yaml_nodes import read_bytes

_INSTALL = "pip install 'liedyn[xacro]'"


def is_xacro(path: str | os.PathLike[str]) -> bool:
    """Return whether a file is a xacro file by its name."""
    return os.fspath(path).lower().endswith(".xacro")


def expanded_xacro(path: str | os.PathLike[str], arguments: Mapping[str, object]) -> bytes:
    """Return the URDF text of a xacro file.

    `$(find package)` is searched in the parent folders of the file and in ROS_PACKAGE_PATH. arguments: values of its xacro:arg

    Raises ModelError if xacrodoc is missing or cannot expand the file, and for an argument that the file does not use. A xacro
    file is a program: its expressions are executed.
    """
    file = os.fspath(path)
    read_bytes(path, ModelError)
    if find_spec("xacrodoc") is None:
        raise ModelError("reading xacro files requires the package xacrodoc", place=Place(file), expected="a URDF",
                         hint=f"{_INSTALL}, or expand it: xacro robot.urdf.xacro > robot.urdf")
    import xacro
    from xacrodoc import packages
    values = _Arguments({name: str(value) for name, value in arguments.items()})
    try:                                                  # xacrodoc itself does not find includes relative to the file
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):          # xacro prints its messages
            packages.walk_up_from(Path(file).absolute())
            expanded = bytes(xacro.process_file(file, mappings=values).toxml(encoding="utf-8"))
    except (Exception, SystemExit) as problem:                                        # expressions raise anything
        text = " ".join(str(problem).split()) or type(problem).__name__
        if missing := re.search(r"Package not found: (\S+)", text):
            raise ModelError("a package of the xacro file is not found", place=Place(file), found=f"$(find {missing[1]})",
                             expected="a folder of this package, with its package.xml, in a folder above the file or in "
                                      "ROS_PACKAGE_PATH") from None
        raise ModelError(f"xacro cannot expand the file: {text[:300]}", place=Place(file)) from None
    for name in arguments:
        if name not in values.used:
            raise ModelError("the xacro file does not use this argument", place=Place(file), found=name,
                             expected=f"one of {', '.join(values.used)}" if values.used else "none",
                             hint=nearest(name, values.used))
    return expanded


class _Arguments(dict[str, str]):
    """Arguments for xacro. used: names of the arguments that the file declares or uses, as keys; xacro ignores others."""

    def __init__(self, values: Mapping[str, str]):
        super().__init__(values)
        self.used: dict[str, None] = {}

    def __contains__(self, name: object) -> bool:
        """Return whether the argument has a value. xacro looks up each argument that it meets."""
        self.used[str(name)] = None
        return super().__contains__(name)
