"""Paths and digests of input files do not depend on the system."""
import ntpath
import os
from pathlib import PureWindowsPath

from liedyn.io import recorded_paths
from liedyn.io.recorded_paths import relative_path, text_digest


def test_a_path_is_relative_to_a_folder_with_slashes(tmp_path):
    assert relative_path(tmp_path / "robots/a.yaml", tmp_path / "runs") == "../robots/a.yaml"


def test_paths_in_results_have_slashes_and_are_absolute_on_another_drive(monkeypatch):
    monkeypatch.setattr(os, "path", ntpath)
    monkeypatch.setattr(recorded_paths, "Path", PureWindowsPath)
    assert relative_path("C:\\work\\robots\\a.yaml", "C:\\work\\runs") == "../robots/a.yaml"
    assert relative_path("C:\\work\\a.yaml", "D:\\runs") == "C:/work/a.yaml"


def test_line_ends_do_not_change_the_digest():
    assert text_digest(b"a: 1\r\nb: 2\r\n") == text_digest(b"a: 1\nb: 2\n") != text_digest(b"a: 1\nb: 3\n")
    assert text_digest(b"abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"        # of FIPS 180-2
