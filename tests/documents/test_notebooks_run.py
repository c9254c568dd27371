"""The notebooks run as they are, in the folder to which `liedyn examples --copy` writes them, and have no output."""
import json
import os
import re
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

from liedyn.io.example_files import copy_examples

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


def run(notebook: nbformat.NotebookNode, folder: Path) -> str:
    """Return the text that the cells print."""
    NotebookClient(notebook, timeout=600, kernel_name="python3", resources={"metadata": {"path": str(folder)}}).execute()
    return "".join(output.get("text", "") for cell in notebook.cells for output in cell.get("outputs", []))


def test_there_are_six():
    assert len(NOTEBOOKS) == 6


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_leaves_no_files(path, tmp_path, monkeypatch):
    copy_examples(tmp_path)
    files = {each for each in tmp_path.rglob("*")}
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(ROOT / "src"), os.environ.get("PYTHONPATH", ""))))
    notebook = nbformat.read(path, as_version=4)
    assert run(notebook, tmp_path / "notebooks")
    images = [output for cell in notebook.cells for output in cell.get("outputs", []) if "image/png" in output.get("data", {})]
    assert images or "parameters" in path.stem or "formulas" in path.stem
    assert {each for each in tmp_path.rglob("*")} == files


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_valid_and_stripped(path):
    """`jupyter nbconvert --clear-output --inplace` strips output."""
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        assert cell["metadata"] == {} and cell.get("outputs", []) == [] and cell.get("execution_count") is None
    text = "".join(cell.source for cell in notebook.cells)
    assert notebook.cells[0].source.startswith("# ") and "assert " in text
    for name in re.findall(r'"(\.\./[\w/.]+)"', text):
        assert (ROOT / "notebooks" / name).is_file(), name


def test_a_cell_that_fails_fails_the_test(tmp_path):
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("assert 1 == 2")])
    with pytest.raises(CellExecutionError):
        run(notebook, tmp_path)
