"""Robots of the package robot_descriptions, such as `robot_descriptions:panda_description`. The package downloads them."""
from __future__ import annotations

import os
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from liedyn.errors import ModelError, Place, nearest

PREFIX = "robot_descriptions:"


def is_described(path: str | os.PathLike[str]) -> bool:
    """Return whether a path is the name of a description."""
    return os.fspath(path).startswith(PREFIX)


def described_file(path: str | os.PathLike[str]) -> str:
    """Return the path of the URDF, MJCF or xacro file of a description. Other paths are returned unchanged.

    Raises ModelError if the package or the description does not exist, if the download fails, or if the description has no such
    file.
    """
    name, place = os.fspath(path).removeprefix(PREFIX), Place(os.fspath(path))
    if not is_described(path):
        return name
    if find_spec("robot_descriptions") is None:
        raise ModelError("the package robot_descriptions is not installed", place=place,
                         hint="pip install 'liedyn[descriptions]'")
    known: Any = import_module("robot_descriptions").DESCRIPTIONS
    if name not in known:
        raise ModelError("robot_descriptions has no such description", place=place, found=name, hint=nearest(name, known))
    try:
        module = import_module(f"robot_descriptions.{name}")
    except Exception as problem:                            # git and the network raise anything
        text = " ".join(str(problem).split()) or type(problem).__name__
        raise ModelError(f"robot_descriptions cannot download the description: {text[:300]}", place=place) from None
    file = next((str(getattr(module, key)) for key in ("URDF_PATH", "MJCF_PATH", "XACRO_PATH") if hasattr(module, key)), None)
    if file is None:
        raise ModelError("the description has no file of a robot", place=place, expected="a URDF, MJCF or xacro file")
    if arguments := getattr(module, "XACRO_ARGS", None) if file.endswith(".xacro") else None:
        raise ModelError("the description is a xacro file with arguments", place=place, found=file,
                         hint=f"name the file, with xacro_args={dict(arguments)!r}, or --xacro-arg for each")
    return file
