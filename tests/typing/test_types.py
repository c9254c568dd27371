"""What a type checker sees of the package: nothing to say of correct programs and of the documents' Python, and each mistake."""
import os
import re
import runpy
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from mypy import api

import liedyn

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
SOURCES = ROOT / "src"

MISTAKES = {
    "a function that does not exist": ("ld.mass_matrx(model, q)", "attr-defined"),
    "a keyword that does not exist": ("ld.inverse_dynamics(model, q, q, q, gravity=1.0)", "call-overload"),
    "an argument that is missing": ("ld.forward_dynamics(model, q, q)", "call-overload"),
    "a file in place of a model": ('ld.mass_matrix("robot.urdf", q)', "call-overload"),
    "a frame that does not exist": ('ld.jacobian(model, q, "hand", frame="body")', "arg-type"),
    "a criterion that does not exist": ('ld.constrained_inverse_dynamics(model, q, q, q, ["a"], criterion="least")', "arg-type"),
    "an attribute that a result does not have": ("ld.inverse_dynamics_derivatives(model, q, q, q).dtau_dx", "attr-defined"),
    "one result in place of two": ("a: NDArray[np.float64] = ld.hybrid_dynamics(model, q, q, q, q, q)", "assignment"),
    "a mask in place of numbers": ("b: NDArray[np.float64] = ld.rollout(model, q, q, dt=1.0, steps=1).complete", "assignment"),
    "a method that variants do not have": ("ld.Variants([model]).mass_matrx(q)", "attr-defined"),
    "an argument of a variant's method that is missing": ("ld.Variants([model]).forward_dynamics(q)", "call-arg"),
}
WRONG = ["import numpy as np", "from numpy.typing import NDArray", "import liedyn as ld", "q = np.zeros(3)",
         "model = ld.load('robot.yaml')", *(text for text, _ in MISTAKES.values())]
# Blocks of a page continue from others: names that they do not define stand for anything.
EASY = ('# mypy: no-strict-optional, no-disallow-untyped-defs, no-disallow-incomplete-defs, no-disallow-untyped-calls, '
        'allow-redefinition, disable-error-code="name-defined,import-untyped,import-not-found,var-annotated"\n')
FIRST = ('import numpy as np\nimport liedyn as ld\nmodel = ld.load("robot.urdf")\nrng = np.random.default_rng(0)\n'
         'q = ld.random_configuration(model, rng)\nv, a, tau = rng.standard_normal((3, model.nv))\n'
         'prescribed = np.arange(model.nv) < 4\n')


def python_of_documents(folder: Path) -> list[Path]:
    """Files with the Python blocks of README and docs/, and the Python of configs/."""
    blocks = {path.stem: (path.read_text(encoding="utf-8"),) for path in [ROOT / "configs/cart_pole_swing_up.py"]}
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        found = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
        name = "_".join(page.relative_to(ROOT).with_suffix("").parts).replace("-", "_")
        blocks[name] = tuple(block if "import liedyn as ld" in block else FIRST + block for block in found)
    files = []
    for name, texts in blocks.items():
        for k, text in enumerate(texts):
            files.append(folder / f"{name}_{k}.py")
            files[-1].write_text(EASY + text, encoding="utf-8")
    return files


@pytest.fixture(scope="module")
def findings(tmp_path_factory):
    """{file name: what mypy finds in it, line by line}, of one run over all files."""
    folder = tmp_path_factory.mktemp("checked")
    (folder / "wrong.py").write_text("\n".join(WRONG) + "\n", encoding="utf-8")
    documents = python_of_documents(folder)
    files = [HERE / "example.py", HERE / "every_name.py", folder / "wrong.py", *documents]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MYPYPATH", os.fspath(SOURCES))
        out, err, _ = api.run(["--strict", "--follow-imports=silent", "--no-error-summary", "--cache-dir", str(folder / "cache"),
                               *map(str, files)])
    assert not err
    found = defaultdict(list, {path.name: [] for path in files})
    for line in out.splitlines():
        if ": note:" not in line:
            found[Path(line.partition(":")[0]).name].append(line)
    return found


@pytest.mark.parametrize("name", ["example.py", "every_name.py"])
def test_a_correct_program_has_no_findings(findings, name):
    assert findings[name] == []


@pytest.mark.skipif(np.lib.NumpyVersion(np.__version__) < "2.0.0", reason="older NumPy has less exact types of its own functions")
def test_the_python_of_the_documents_has_no_findings(findings):
    others = [name for name in findings if name not in ("example.py", "every_name.py", "wrong.py")]
    assert len(others) > 20 and any(name.startswith("README") for name in others)
    assert [line for name in others for line in findings[name]] == []


def test_each_mistake_is_found(findings):
    found, first = findings["wrong.py"], len(WRONG) - len(MISTAKES) + 1
    for k, (what, (text, code)) in enumerate(MISTAKES.items(), first):
        assert WRONG[k - 1] == text
        assert any(f"wrong.py:{k}: error" in line and line.endswith(f"[{code}]") for line in found), (what, found)
    assert {int(line.partition("wrong.py:")[2].partition(":")[0]) for line in found} == set(range(first, len(WRONG) + 1)), found


def test_every_public_name_is_used_in_a_program_that_is_checked():
    used = set(re.findall(r"\bld\.(\w+)", (HERE / "every_name.py").read_text(encoding="utf-8")))
    assert set(liedyn.__all__) == used


def test_the_correct_program_runs(capsys):
    runpy.run_path(str(HERE / "example.py"), run_name="__main__")
    assert "<Result asymmetric_body: " in capsys.readouterr().out


def test_the_package_says_that_it_has_types():
    assert (SOURCES / "liedyn/py.typed").is_file()
