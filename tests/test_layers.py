"""A layer imports only from layers above it in this list; heavy packages stay where they are needed."""
import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from sources import nodes_of, tree_of

PACKAGE = Path(__file__).parents[1] / "src" / "liedyn"
# DESIGN: each may import from itself and from those before it …
LAYERS = ("arrays", "warning_codes", "errors", "immutable", "public_calls", "model", "numba_tools", "lie", "joints", "kernels",
          "codegen", "dynamics", "io", "robot_files", "integrators", "simulation", "rollouts", "interop", "analysis", "batch",
          "report", "cli")
# … except for these, which may import from these only (and from themselves).
NARROWER = {"arrays": set(), "warning_codes": set(), "errors": {"warning_codes"},
            "immutable": set(), "public_calls": {"errors"}, "numba_tools": {"errors"},
            "io": {"arrays", "errors", "immutable", "model.composition", "model.coupling_expression", "model.curve_joint",
                   "model.description",
                   "model.element_values", "model.expression_parser", "model.force_element", "model.interpolation",
                   "model.link_tree", "model.links",
                   "model.mass_properties", "model.model", "model.model_builder", "model.model_joint", "model.spatial",
                   "model.validate", "public_calls"}}
# The model is plain data: it does without compiled code, except for the table of joint kinds.
NARROWER["model"] = {"arrays", "errors", "immutable", "public_calls", "model.description"}
ABOVE_ALL = {"__init__", "__main__"}                        # names of the package, and its command
CONFINED = {"numba": {"numba_tools", "lie", "kernels"}, "llvmlite": {"numba_tools", "lie", "kernels", "codegen"},
            "click": {"cli"}, "matplotlib": {"report"}, "urdf_parser_py": {"io"}, "yaml": {"io"},
            "pyarrow": {"batch", "report"}, "distributed": {"batch"}, "jax": {"interop"},
            "torch": {"interop"}, "casadi": {"interop"}, "sympy": {"interop"}, "gymnasium": {"interop"}, "pyopencl": {"interop"},
            "cuda": {"interop"},
            "trimesh": {"io"}, "fast_simplification": {"report"}, "mcap": {"report"},
            "imageio_ffmpeg": {"report"}, "rosbags": {"io"}, "xacrodoc": {"io"}, "robot_descriptions": {"io"},
            "control": {"analysis"}}
FILES = sorted(PACKAGE.rglob("*.py"))


def layer_of(module: str) -> str:
    return module.split(".")[0]


def module_of(path: Path) -> str:
    name = ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
    return name.removesuffix(".__init__")


@cache
def imports_of(path: Path) -> list[tuple[int, str]]:
    """Modules that a file imports, also inside functions: (line, name)."""
    return list(_imports(path))


def _imports(path: Path):
    for node in nodes_of(path):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: a relative import"
            found = [f"{node.module}.{alias.name}" for alias in node.names] if node.module == "liedyn" else [node.module]
            yield from ((node.lineno, name) for name in found)
        elif isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)


@cache
def annotation_lines(path: Path) -> set[int]:
    """Lines under `if TYPE_CHECKING`, which import nothing when the program runs."""
    blocks = (node for node in nodes_of(path)
              if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING")
    return {line for node in blocks for line in range(node.body[0].lineno, node.body[-1].end_lineno + 1)}


def own(name: str) -> str | None:
    return name.removeprefix("liedyn.") if name.startswith("liedyn.") else None


def test_every_module_belongs_to_a_layer():
    assert {layer_of(module_of(path)) for path in FILES} - ABOVE_ALL == set(LAYERS)


def may_import(layer: str, target: str) -> bool:
    """Whether a module of a layer may import a module of this package."""
    if layer in ABOVE_ALL or target == "__version__" or layer_of(target) == layer:
        return True
    return target in NARROWER[layer] if layer in NARROWER else LAYERS.index(layer_of(target)) < LAYERS.index(layer)


def test_layers_import_only_from_above():
    assert may_import("dynamics", "kernels.kinematics") and not may_import("kernels", "dynamics.kinematics")
    assert not may_import("io", "dynamics.kinematics") and may_import("io", "model.model")
    assert not [f"{path.relative_to(PACKAGE)}:{line} imports {name}" for path in FILES for line, name in imports_of(path)
                if own(name) is not None and not may_import(layer_of(module_of(path)), own(name))]


def test_packages_stay_where_they_belong():
    assert not [f"{path.relative_to(PACKAGE)}:{line} imports {name}" for path in FILES for line, name in imports_of(path)
                if layer_of(module_of(path)) not in CONFINED.get(name.split(".")[0], {layer_of(module_of(path))})
                and (layer_of(module_of(path)) in ABOVE_ALL or line not in annotation_lines(path))]


def test_imports_without_cycles_inside_the_package():
    """Modules imported at the head of a file never lead back to it."""
    def heads(path):
        return {own(node.module) for node in tree_of(path).body if isinstance(node, ast.ImportFrom) and own(node.module or "")}

    graph = {module_of(path): heads(path) for path in FILES}

    done = set()

    def visit(name, trail):
        assert name not in trail, " -> ".join([*trail, name])
        for other in graph.get(name, set()) - done:
            visit(other, [*trail, name])
        done.add(name)                                       # without a memory, a hundred million ways lead down

    for name in graph:
        visit(name, [])


def test_every_module_is_imported_by_another():
    """One that no one imports is dead; or, where it teaches compiled code a number, was imported for something else by chance."""
    import liedyn
    used = {"report.plots.drawing", "interop.gymnasium", "interop.jax", "interop.torch",
            *liedyn._HOME.values()}       # a process; names of the package
    for path in FILES:
        for node in nodes_of(path):
            if isinstance(node, ast.ImportFrom) and own(node.module or ""):
                used |= {own(node.module), *(f"{own(node.module)}.{alias.name}" for alias in node.names)}
            elif isinstance(node, ast.ImportFrom) and node.module == "liedyn":
                used |= {alias.name for alias in node.names}
    others = {module_of(path) for path in FILES if path.name != "__init__.py" and path.parent.name != "cli"}    # imported by name
    assert others - used - ABOVE_ALL == set()


HEAVY = ("numba", "llvmlite", "scipy", "matplotlib", "yaml", "urdf_parser_py", "pandas", "pyarrow")


def loaded_by(code: str) -> set[str]:
    """Which heavy packages a fresh interpreter has loaded after running the code."""
    script = f"{code}\nimport sys\nprint(*sorted({{name.split('.')[0] for name in sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=600, check=True)
    return set(done.stdout.splitlines()[-1].split()) & set(HEAVY)


@pytest.mark.parametrize("code", ["import liedyn", "import liedyn; dir(liedyn); liedyn.ModelError", "import liedyn.model.model",
                                  "import liedyn.model.validate", "import liedyn.errors",
                                  "import liedyn.cli.app"])
def test_light_modules_load_no_heavy_package(code):
    assert loaded_by(code) == set()


def test_reading_and_writing_files_needs_no_compiler():
    """All modules in one process; if it loads too much, each alone, to name them."""
    modules = [f"liedyn.{module_of(path)}" for path in FILES if layer_of(module_of(path)) == "io"]
    allowed = {"yaml", "urdf_parser_py"}
    if not loaded_by(f"import {', '.join(modules)}") <= allowed:
        pytest.fail(f"they load a compiler: {[name for name in modules if not loaded_by(f'import {name}') <= allowed]}")


def test_loading_a_robot_needs_no_compiler(tmp_path):
    """Only the first computation does."""
    path = tmp_path / "robot.yaml"
    path.write_text("links: {a: {mass: 1, inertia: [1, 1, 1]}}\n"
                    "joints: {j: {type: ball, parent: world, child: a}}\n", encoding="utf-8")
    assert loaded_by(f"import liedyn; model = liedyn.load({str(path)!r}); assert model.nv == 3, model") <= {"yaml"}


def test_a_scenario_with_errors_needs_no_compiler_and_no_plots(tmp_path):
    path = tmp_path / "scenario.yaml"
    path.write_text("robot: arm.yaml\n", encoding="utf-8")
    assert loaded_by(f"from liedyn.cli.app import main\ntry:\n    main(['simulate', {str(path)!r}])\n"
                     "except SystemExit as end:\n    assert end.code == 3, end.code") == {"yaml"}


def test_names_of_the_package_exist():
    import liedyn
    for name in liedyn.__all__:
        assert getattr(liedyn, name) is not None
    assert set(dir(liedyn)) == set(liedyn.__all__)
    with pytest.raises(AttributeError, match="module 'liedyn' has no attribute 'nothing'"):
        _ = liedyn.nothing


MODULES_OF_RUNS = "import liedyn.integrators.solve, liedyn.integrators.runge_kutta, liedyn.simulation.run"


@pytest.mark.parametrize("before", [MODULES_OF_RUNS, f"import liedyn\nliedyn.integrate\n{MODULES_OF_RUNS}"])
def test_functions_of_the_package_are_not_hidden_by_its_modules(before):
    """`liedyn.integrate` was a function until the first simulation, and then the package of integrators."""
    code = f"{before}\nimport liedyn\nprint(all(callable(getattr(liedyn, name)) for name in liedyn._HOME))"
    code += "\nfrom liedyn.model.description import Link, Robot\nmodel = liedyn.build(Robot('r', (Link('a', 1.0),), ()))"
    code += "\nprint(liedyn.integrate(model, [], []).shape)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=600, check=False)
    assert done.stdout == "True\n(0,)\n", done.stderr


# Modules that only commands call, and tables and programs that are no messages of functions.
OF_COMMANDS = ("cli", "batch", "warning_codes", "analysis.trajectory_", "io.checkpoint_files", "io.schema_export",
               "report.assembly_report", "report.identification_report", "report.motion_plots", "report.plots.batch",
               "report.replay", "report.result_summary", "report.run_folder", "simulation.run_recorder")
READ_AS_TEXT = re.compile(r"f?'--(q|v|sweep|constraint-motion)\b")    # by functions for the command alone


def texts_of(path: Path):
    """Texts of a file with their lines, without docstrings. An f-string with all that is nested in it is one text."""
    nodes = nodes_of(path)
    documentation = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    parts = {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in ast.walk(node) if part != node}
    for node in nodes:
        if id(node) in documentation | parts:
            continue
        if isinstance(node, ast.JoinedStr):
            yield node.lineno, ast.unparse(node)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, repr(node.value)


def names_only_an_option(text: str) -> bool:
    """Whether a text names an option of a command and no argument."""
    return not READ_AS_TEXT.match(text) and bool(
        re.search(r"(?<![\w-])-[So] ", text) or (re.search(r"(?<![\w-])--[a-z]", text) and not re.search(r"\b[a-z_]+=", text)))


def test_messages_of_functions_name_more_than_options_of_commands():
    """Whoever calls from Python has no `-S`, `-o` or `--fix`: a message that names an option also names the argument."""
    assert names_only_an_option("'use --fix'") and names_only_an_option("'give -S a=b'")
    assert not names_only_an_option("'use --fix, fix=True'")
    assert not [f"{path.relative_to(PACKAGE)}:{line}: {text}" for path in FILES if not module_of(path).startswith(OF_COMMANDS)
                for line, text in texts_of(path) if names_only_an_option(text)]
