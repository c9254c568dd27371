"""Paths and digests of input files, as results record them: the same on all systems."""
from __future__ import annotations

import hashlib
import os
from pathlib import Path


def relative_path(path: str | os.PathLike[str], folder: str | os.PathLike[str]) -> str:
    """Return a path relative to a folder, with slashes. On Windows, a path on another drive stays absolute."""
    try:
        path = os.path.relpath(path, folder)
    except ValueError:
        path = os.path.abspath(path)
    return Path(path).as_posix()


def text_digest(content: bytes) -> str:
    """Return the SHA-256 digest of a text file. Its line ends do not count: programs such as git may convert them."""
    return hashlib.sha256(content.replace(b"\r\n", b"\n")).hexdigest()
