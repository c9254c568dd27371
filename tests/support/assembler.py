"""The assembler of NVIDIA: of a CUDA toolkit, or of the package nvidia-cuda-nvcc."""
import re
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import pytest


def ptxas() -> str:
    package = find_spec("nvidia") and next((path for folder in find_spec("nvidia").submodule_search_locations
                                            for path in Path(folder).glob("*/bin/ptxas")), None)
    program = shutil.which("ptxas") or package
    return program or pytest.skip("needs ptxas, such as that of the package nvidia-cuda-nvcc")


class Assembled(NamedTuple):
    """registers: of a thread; spilled: bytes of those that do not fit."""

    registers: int
    spilled: int


def assembled(text: str, processor: str, folder: Path) -> Assembled:
    """Assemble a kernel in PTX."""
    (folder / "kernel.ptx").write_text(text)
    run = subprocess.run([ptxas(), "-v", "--gpu-name", processor, "kernel.ptx", "-o", "kernel.cubin"], cwd=folder, check=False,
                         capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    patterns = r"Used (\d+) registers", r"(\d+) bytes spill stores"
    return Assembled(*(int(re.search(pattern, run.stderr)[1]) for pattern in patterns))
