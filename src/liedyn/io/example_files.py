"""Example files: robots, scenarios, scripts and notebooks. A wheel has them in `liedyn/examples`, a clone at its top level."""
from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

from liedyn.errors import UsageError, list_names

FOLDERS = ("robots", "configs", "notebooks")
# The scenario of each demonstration. Those with `rk4` compile the least at their first run.
DEMOS = {"arm": "panda_hybrid", "pendulum": "double_pendulum", "racket": "tennis_racket", "dive": "humanoid_dive",
         "quadruped": "quadruped_walks", "platform": "stewart", "linkage": "four_bar", "delta": "delta"}
_PACKAGE = Path(__file__).parents[1]
_COMMENT = re.compile(r'\s*(?:<(?:\?xml|mujoco)[^>]*>\s*)*(?:#|"""|<!--)\s*((?:(?! \(|\s*-->)(?:[^.:;?"\n]|\n#|\.(?=\w)))+)')


def examples_root() -> Path:
    """Return the folder that contains the folders of the examples."""
    for folder in (_PACKAGE / "examples", _PACKAGE.parents[1]):
        if all((folder / name).is_dir() for name in FOLDERS):
            return folder
    raise UsageError("this installation has no example files; install a wheel, or a clone by `pip install -e .`")


def example_files() -> list[Path]:
    """Return the paths of all example files, relative to `examples_root`."""
    root = examples_root()
    paths = (path.relative_to(root) for name in FOLDERS for path in sorted((root / name).rglob("*")) if path.is_file())
    return [path for path in paths if not any(part.startswith((".", "__")) for part in path.parts)]


def demo_file(name: str) -> Path:
    """Return the scenario of a demonstration."""
    return examples_root() / "configs" / f"{DEMOS[name]}.yaml"


def title_of(path: Path) -> str:
    """Return the first phrase of the comment or docstring at the start of an example file, the title of a notebook, or ""."""
    if path.suffix == ".ipynb":
        return str(json.loads(path.read_text(encoding="utf-8"))["cells"][0]["source"][0]).lstrip("# ").strip()
    title = _COMMENT.match(path.read_text(encoding="utf-8")) if path.suffix in (".yaml", ".py", ".urdf", ".xml") else None
    return " ".join(title[1].replace("\n#", " ").split()) if title else ""


def copy_examples(folder: str | Path, *, force: bool = False) -> Sequence[Path]:
    """Copy the example files into a folder, which is created if it does not exist, and return their paths.

    Raises UsageError, before anything is written, if a file of another content exists and `force` is false.
    """
    contents = {Path(folder) / path: (examples_root() / path).read_bytes() for path in example_files()}
    try:
        changed = [path for path, content in contents.items() if path.exists() and path.read_bytes() != content]
        if changed and not force:
            names = list_names([str(path) for path in changed], 3)
            raise UsageError(f"files with other contents already exist: {names}; --force or force=True overwrites them")
        for path, content in contents.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
    except OSError as error:
        raise UsageError(f"{error.filename or folder} cannot be written: {error.strerror or error}") from error
    return tuple(contents)
