"""What a type checker sees of the package: nothing to say of a correct program, and each mistake."""
import os
import runpy
from pathlib import Path

from mypy import api

HERE = Path(__file__).parent
SOURCES = HERE.parents[1] / "src"

MISTAKES = {
    "a function that does not exist": ("ld.mass_matrx(model, q)", "attr-defined"),
    "a keyword that does not exist": ("ld.inverse_dynamics(model, q, q, q, gravity=1.0)", "call-arg"),
    "an argument that is missing": ("ld.forward_dynamics(model, q, q)", "call-arg"),
    "a file in place of a model": ('ld.mass_matrix("robot.urdf", q)', "arg-type"),
    "a frame that does not exist": ('ld.jacobian(model, q, "hand", frame="body")', "arg-type"),
    "an attribute that a result does not have": ("ld.inverse_dynamics_derivatives(model, q, q, q).dtau_dx", "attr-defined"),
    "one result in place of two": ("a: NDArray[np.float64] = ld.hybrid_dynamics(model, q, q, q, q, q)", "assignment"),
}


def checked(path: Path, monkeypatch, tmp_path) -> list[str]:
    monkeypatch.setenv("MYPYPATH", os.fspath(SOURCES))
    out, err, _ = api.run(["--strict", "--follow-imports=silent", "--no-error-summary", "--cache-dir", str(tmp_path / "cache"),
                           str(path)])
    assert not err
    return out.splitlines()


def test_a_correct_program_has_no_findings(monkeypatch, tmp_path):
    assert checked(HERE / "example.py", monkeypatch, tmp_path) == []


def test_each_mistake_is_found(monkeypatch, tmp_path):
    lines = ["import numpy as np", "from numpy.typing import NDArray", "import liedyn as ld",
             "q = np.zeros(3)", "model = ld.load('robot.yaml')"]
    path = tmp_path / "wrong.py"
    path.write_text("\n".join([*lines, *(text for text, _ in MISTAKES.values())]) + "\n", encoding="utf-8")
    found = checked(path, monkeypatch, tmp_path)
    for k, (what, (_, code)) in enumerate(MISTAKES.items(), len(lines) + 1):
        assert any(line.startswith(f"{path}:{k}: error") and line.endswith(f"[{code}]") for line in found), (what, found)
    assert len([line for line in found if ": error" in line]) == len(MISTAKES), found


def test_the_correct_program_runs(capsys):
    runpy.run_path(str(HERE / "example.py"), run_name="__main__")
    assert "<Result asymmetric_body: " in capsys.readouterr().out


def test_the_package_says_that_it_has_types():
    assert (SOURCES / "liedyn/py.typed").is_file()
