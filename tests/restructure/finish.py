# ruff: noqa
"""What neither move.py nor rewrap.py can do. From the root of the moved tree."""
import pathlib
def sub(path, old, new, n=1):
    p = pathlib.Path(path); s = p.read_text()
    if s.count(old) != n: print("NOT", path, s.count(old), old[:60]); return
    p.write_text(s.replace(old, new))
sub("src/liedyn/cli/app.py", """_COMMANDS = ("simulate", "batch", "linearize", "inverse", "forward", "hybrid", "kinematics", "info", "check", "convert", "plot",
             "replay", "parameters", "derivatives", "assemble", "export", "template", "schema", "warmup")
""", """_COMMANDS = {            # the module of each, in the order of `--help`
    "simulate": "simulate", "batch": "batch", "linearize": "result_commands", "inverse": "trajectory_commands",
    "forward": "trajectory_commands", "hybrid": "trajectory_commands", "kinematics": "trajectory_commands",
    "info": "robot_commands", "check": "robot_commands", "convert": "robot_commands", "plot": "result_commands",
    "replay": "result_commands", "parameters": "trajectory_commands", "derivatives": "trajectory_commands",
    "assemble": "robot_commands", "export": "robot_commands", "template": "robot_commands", "schema": "robot_commands",
    "warmup": "robot_commands"}
""")
sub("src/liedyn/cli/app.py", 'importlib.import_module(f"liedyn.cli.{name}")', 'importlib.import_module(f"liedyn.cli.{_COMMANDS[name]}")')
sub("src/liedyn/dynamics/dynamics.py", '''    return computed(model, _INVERSE_CALLS[bool(passive)], inverse_batch, inverse_batch_memory, {"q": q, "v": v, "a": a, "f_ext": f_ext},
                    (model.nv,), options''', '''    return computed(model, _INVERSE_CALLS[bool(passive)], inverse_batch, inverse_batch_memory,
                    {"q": q, "v": v, "a": a, "f_ext": f_ext}, (model.nv,), options''')
sub("src/liedyn/dynamics/dynamics.py", '''    return hand_over(_general(model, _FORWARD_CALLS[bool(passive)], q, v, NONE, tau, none_prescribed(model), f_ext, passive, out)[0], out)
''', '''    found = _general(model, _FORWARD_CALLS[bool(passive)], q, v, NONE, tau, none_prescribed(model), f_ext, passive, out)
    return hand_over(found[0], out)
''')
sub("src/liedyn/dynamics/model_parameters.py", '"""How many numbers the kernels\' `changes` has (`kernels.directional_derivatives`), and the twists of link frames behind it."""',
    '"""How many numbers the kernels\' `changes` has (`kernels.directional_derivatives`), and the twists of link frames after it."""')
sub("src/liedyn/io/__init__.py", "with the line and key of each finding. It imports `errors` and `model.description` only.", "with the line and key of each finding. Imports `errors` and `model.description` only.")
sub("src/liedyn/io/robots/mjcf_geometry.py", '''    """Pose of a primitive in its parent, and its sizes as `io.robots.robot_schema.SHAPES` names them; of an ellipsoid the half axes."""
''', '''    """Pose of a primitive in its parent, and its sizes as `robot_schema.SHAPES` names them; of an ellipsoid the half axes."""
''')
sub("src/liedyn/io/scenarios/contact_schema.py", '''    _of_mode("stiffness", Number(above=0, most=LARGEST_STOP_VALUE), "with `mode: compliant`: k [N m/rad or N/m]", "by `sink`", example=2000),
    _of_mode("sink", Number(least=LEAST_SINK, most=LARGEST_STOP_VALUE), "with `mode: compliant`, instead of `stiffness`: depth at which "
             "a stop''', '''    _of_mode("stiffness", Number(above=0, most=LARGEST_STOP_VALUE), "with `mode: compliant`: k [N m/rad or N/m]", "by `sink`",
             example=2000),
    _of_mode("sink", Number(least=LEAST_SINK, most=LARGEST_STOP_VALUE), "with `mode: compliant`, instead of `stiffness`: depth at "
             "which a stop''')
sub("src/liedyn/kernels/constraints/solver.py", '''FAIR_WHERE_CHOSEN = 1e-6          # a pivot, of what the row's diagonal is made of: below it six digits are lost, and other rows must be chosen
''', '''# A pivot, of what the row's diagonal is made of: below it six digits are lost, and other rows must be chosen.
FAIR_WHERE_CHOSEN = 1e-6
''')
sub("src/liedyn/kernels/constraints/solver.py", '''        store(work, gain + i, where_less(FAIR_WHERE_CHOSEN, pivot, 1.0 / d, zero))        # else infinite numbers hide why a run ends
''', '''        # else infinite numbers hide why a run ends
        store(work, gain + i, where_less(FAIR_WHERE_CHOSEN, pivot, 1.0 / d, zero))
''')
p = pathlib.Path("src/liedyn/model/model.py"); s = p.read_text()
for old, new in (('''    for field, values in of_links.items():
        for name, value in _items(values, field):
            link = _of(links, name, "link")
            links[name] = replace(link, **{field: _link_number(link, field, value)})
''', '''    for key, values in of_links.items():
        for name, value in _items(values, key):
            link = _of(links, name, "link")
            links[name] = replace(link, **{key: _link_number(link, key, value)})
'''), ('''    for field, values in of_coordinates.items():
        for name, value in _items(values, field):
            joint, which = _coordinates(joints, name)
            joints[joint.name] = _with_coordinates(joint, which, field, value)
''', '''    for key, values in of_coordinates.items():
        for name, value in _items(values, key):
            joint, which = _coordinates(joints, name)
            joints[joint.name] = _with_coordinates(joint, which, key, value)
''')):
    if s.count(old) != 1: print("NOT model.py")
    s = s.replace(old, new)
p.write_text(s)
sub("src/liedyn/simulation/run.py", "what happened, in order (`simulation.hybrid_simulation.Occurrence`); the rows", "what happened, in order (`hybrid_simulation.Occurrence`); the rows")
sub("tests/analyse/test_derivatives_along.py", '''    monkeypatch.setattr(trajectory_derivatives, "inverse_dynamics_derivatives", lambda *x, **y: [1.001 * z for z in right(*x, **y)])
''', '''    monkeypatch.setattr(trajectory_derivatives, "inverse_dynamics_derivatives",
                        lambda *x, **y: [1.001 * z for z in right(*x, **y)])
''')
sub("tests/cli/test_paper_script.py", '''    q, twists = bind_columns(model, given, "q"), np.stack([bind_columns(model, given, "v"), *(bind_columns(model, given, rate_of("a", k))
                                                                            for k in range(6))], axis=1)[..., :6]
''', '''    rates = [bind_columns(model, given, "v"), *(bind_columns(model, given, rate_of("a", k)) for k in range(6))]
    q, twists = bind_columns(model, given, "q"), np.stack(rates, axis=1)[..., :6]
''')
p = pathlib.Path("tests/lie/test_vec3.py"); s = p.read_text()
s = s.replace("@probe\ndef vectors(x, y)", "@probe\ndef of_vectors(x, y)").replace("evaluate(vectors, rows", "evaluate(of_vectors, rows"); p.write_text(s)
import ast
p = pathlib.Path("src/liedyn/__init__.pyi"); s = p.read_text(); tree = ast.parse(s)
groups = {}
for node in tree.body:
    if isinstance(node, ast.ImportFrom):
        groups.setdefault(node.module, set()).update(name.name for name in node.names)
first = next(n for n in tree.body if isinstance(n, ast.ImportFrom)); last = [n for n in tree.body if isinstance(n, ast.ImportFrom)][-1]
lines = s.split("\n")
text = []
for module in sorted(groups):
    names = [f"{x} as {x}" for x in sorted(groups[module], key=lambda x: (x.lower(), x))]
    one = f"from {module} import {', '.join(names)}"
    text += [one] if len(one) <= 130 else [f"from {module} import (", *(f"    {x}," for x in names), ")"]
p.write_text("\n".join([*lines[:first.lineno - 1], *text, *lines[last.end_lineno:]]))
p = pathlib.Path('tests/test_layers.py'); s = p.read_text()
a = s.index('LAYERS = ('); b = s.index('# … but for these')
s = s[:a] + '''LAYERS = ("arrays", "errors", "immutable", "public_calls", "model", "numba_tools", "lie", "joints", "kernels", "codegen", "dynamics",
          "io", "robot_files", "integrators", "simulation", "rollouts", "interop", "analysis", "batch", "report", "cli")
''' + s[b:]
def change(old, new):
    global s
    if s.count(old) != 1: print("NOT layers", old[:50])
    s = s.replace(old, new)
change('''"public_calls": {"errors"}, "seam": {"errors"},
            "code_cache": set(), "jit": {"numba_tools.numba_internals", "numba_tools.numba_internals", "code_cache"},
            "io": {"arrays", "errors", "immutable", "model.description"}}''','''"public_calls": {"errors"}, "numba_tools": {"errors"},
            "io": {"arrays", "errors", "immutable", "model.description", "model.link_tree"}}''')
change('''CONFINED = {"numba": {"seam", "lie", "kernels", "jit", "code_cache", "pointer_call"},
            "llvmlite": {"lie", "codegen", "code_cache", "pointer_call"},
''','''CONFINED = {"numba": {"numba_tools", "lie", "kernels"}, "llvmlite": {"numba_tools", "lie", "kernels", "codegen"},
''')
p.write_text(s)
sub("src/liedyn/io/scenarios/contact_schema.py", '''instead of `stiffness`: depth at "
             "which a stop carries''', '''instead of `stiffness`: depth "
             "at which a stop carries''')
sub("tests/test_layers.py", '''LAYERS = ("arrays", "errors", "immutable", "public_calls", "model", "numba_tools", "lie", "joints", "kernels", "codegen", "dynamics",
          "io", "robot_files",''', '''LAYERS = ("arrays", "errors", "immutable", "public_calls", "model", "numba_tools", "lie", "joints", "kernels", "codegen",
          "dynamics", "io", "robot_files",''')
sub("tests/test_layers.py", '"model.description", "model.link_tree"}}', '"model.description", "model.link_tree", "model.model",\n                   "model.validate"}}')
sub("tests/test_layers.py", "import liedyn.integrators.tableaux", "import liedyn.integrators.runge_kutta")
p = pathlib.Path('tests/test_layers.py'); s = p.read_text()
s = s.replace('"immutable", "model.description", "model.link_tree", "model.model",\n                   "model.validate"}}', '"immutable", "model.description", "model.link_tree",\n                   "model.model", "model.validate"}}')
p.write_text(s)
sub("tests/test_layers.py", '"import liedyn.errors", "import liedyn.robot_files",\n', '"import liedyn.errors",\n')
sub("tests/test_layers.py", '''          "dynamics", "io", "robot_files", "integrators", "simulation", "rollouts", "interop", "analysis", "batch", "report", "cli")
''', '''          "dynamics", "io", "robot_files", "integrators", "simulation", "rollouts", "interop", "analysis", "batch", "report",
          "cli")
''')
p = pathlib.Path("src/liedyn/arrays.py"); s = p.read_text()
i = s.index("__all___annotations = ["); j = s.index("]\n", i) + 2
s = s[:i].rstrip() + "\n" + s[j:]
p.write_text(s)
sub("src/liedyn/arrays.py", '''__all__ = ["Array", "ArrayLike", "ComplexArray", "Integers", "Mask", "short"]
''', '''__all__ = ["Actuated", "Array", "ArrayLike", "Base", "BaseFrame", "ComplexArray", "Controller", "Coriolis", "Criterion", "Frame",
           "Integers", "Mask", "Matrices", "Method", "OnError", "Pfaffian", "Wrenches", "short"]
''')

# names in f-strings, texts and documents
sub("src/liedyn/codegen/rhs.py", '"kernels.loops.parts.parts"', '"kernels.constraints.stages.parts"')
sub("src/liedyn/analysis/trajectory_derivatives.py", "      # io.csv would not read it", "  # `read_trajectory` refuses it")
sub("src/liedyn/model/link_tree.py", "# io.robots.element_place knows the line of each part", "# io.robots.robot_yaml knows the line of each part")
sub("src/liedyn/model/__init__.py", "`model.build`", "`build`")
sub("src/liedyn/simulation/event_actions.py", "within the parts of a run (`parts.Part`).", "within the parts of a run (`Part`).")
sub("tests/codegen/test_derivatives.py", 'f"kernels.derivatives.{which}_derivatives"', 'f"kernels.{which}_dynamics_derivatives"')
sub("tests/kernels/test_varied_models.py", "see joints.tree", "see joints.joint_model")
sub("tests/test_code_cache.py", '"kernels.recursions.manifold-"', '"kernels.manifold-"')
sub("tests/test_code_cache.py", "Path(compile_cache.__file__).parent,", "Path(compile_cache.__file__).parents[1],")
sub("tests/test_code_cache.py", """    done = subprocess.run([sys.executable, "-c", f"from liedyn.numba_tools.compile_cache import root\\n{code}"], env=env, capture_output=True,
                          text=True, timeout=600, check=True)
""", """    done = subprocess.run([sys.executable, "-c", f"from liedyn.numba_tools.compile_cache import root\\n{code}"], env=env,
                          capture_output=True, text=True, timeout=600, check=True)
""")
sub("tests/seam/test_fallbacks.py", """    done = subprocess.run([sys.executable, "-c", "import liedyn.numba_tools.numba_internals"], env=os.environ | {"LIEDYN_SEAM": "plan"},
                          capture_output=True, text=True, timeout=100, check=False)
""", """    done = subprocess.run([sys.executable, "-c", "import liedyn.numba_tools.numba_internals"],
                          env=os.environ | {"LIEDYN_SEAM": "plan"}, capture_output=True, text=True, timeout=100, check=False)
""")
sub("tests/test_jit.py", """    assert {f"kernels.recursions.{name}" for name in (
        "newton_euler.inverse_batch", "hybrid.hybrid_batch", "composite.mass_matrices")} <= set(ENTRIES)
""", """    assert {f"kernels.{name}" for name in (
        "newton_euler.inverse_batch", "hybrid_dynamics.hybrid_batch", "mass_matrix.mass_matrices")} <= set(ENTRIES)
""")
sub("tests/mutations/targets.py", '"kernels/loops": (', '"kernels/constraints": (')
sub("tests/mutations/targets.py", """                      ("dynamics/test_constrained.py", "dynamics/test_degenerate_mechanisms.py", "identities/test_constrained.py",
                       "identities/test_constrained_derivatives.py", "integrators/test_constrained.py", "codegen/test_parts.py",
                       "oracles/test_constrained.py")),
""", """                            ("dynamics/test_constrained.py", "dynamics/test_degenerate_mechanisms.py",
                             "identities/test_constrained.py", "identities/test_constrained_derivatives.py",
                             "integrators/test_constrained.py", "codegen/test_parts.py", "oracles/test_constrained.py")),
""")
sub("tests/mutations/targets.py", """    "dynamics/loops": (("dynamics", "identities", "joints", "model", "integrators", "simulate"),
                       ("dynamics/test_constrained.py", "dynamics/test_degenerate_mechanisms.py", "dynamics/test_assembly.py",
                        "identities/test_constrained.py")),
""", """    "dynamics/constraints": (("dynamics", "identities", "joints", "model", "integrators", "simulate"),
                             ("dynamics/test_constrained.py", "dynamics/test_degenerate_mechanisms.py",
                              "dynamics/test_assembly.py", "identities/test_constrained.py")),
""")
sub("tests/mutations/test_mutations.py", """packages(["kernels/loops", "batch"], ["kernels/constraints/driver.py", "batch/along"])
    assert not {"by_parts", "along"} &""", """packages(["kernels/constraints", "batch"], ["kernels/constraints/driver.py", "batch/trajectory"])
    assert not {"driver", "trajectory_jobs"} &""")
sub("docs/design.md", "| `adjoint.py`, `steps/adjoint_step.py` |", "| `trace_derivatives.py`, `batch_step.py` |")
sub("docs/design.md", "`kernels/simulation/joint_limits/stops.py`", "`kernels/simulation/joint_laws.py`")
sub("docs/design.md", "(`along.py`)", "(`trajectory_jobs.py`)")
sub("docs/design.md", "(`rates.py`)", "(`sensitivities.py`)")
sub("docs/design.md", "`simulations.py` and `along.py`", "`simulations.py` and `trajectory_jobs.py`")
sub("docs/proof.md", "`constrained._CLOSED`", "`constrained_dynamics._CLOSED`")
sub("docs/running.md", "`numba_tools.decorators.primitive` or `numba_tools.decorators.callee`", "`decorators.primitive` or `decorators.callee`")
sub("docs/design.md", "`signal_schema.py`, `signal_schema.py`, `event_schema.py`, `control_schema.py`, `control_schema.py`",
    "`signal_schema.py`, `event_schema.py`, `control_schema.py`")
sub("docs/design.md", "two problems of a scenario (`sampled_control.py`):", "two problems of a scenario:")
sub("docs/design.md", "`impacts.py` and `impacts.py` compute", "`impacts.py` computes")
sub("docs/design.md", "(`io/schema_export.py`), templates (`io/schema_export.py`) and", "and templates (`io/schema_export.py`) and")
p = pathlib.Path("docs/design.md"); s = p.read_text()
a = s.index("`arrays` types of arrays · `errors`"); b = s.index("\n", s.index("`rollouts`. `kernels`: `recursions`", a))
p.write_text(s[:a] + """`arrays` types of arrays · `errors` · `immutable` base of results · `public_calls` wrong arguments · `model` description and builder · `numba_tools` compiled code on disk, decorators, what leans on internals of Numba, with fallbacks · `lie` algebra ·
`joints` motion by joint types · `kernels` one algorithm per file · `codegen` straight-line code · `dynamics` public functions · `io` files · `robot_files` load, save · `integrators` · `simulation` scenarios · `rollouts` many runs from Python ·
`interop` other libraries · `analysis` recorded motions, linearization, identification · `batch` sweeps · `report` text and pictures · `cli`

Large layers have folders by subject. `kernels`: `constraints` (loops and couplings), `simulation`. `dynamics`: `batching` (arguments, threads), `constraints`. `io`: `robots`, `scenarios`. `simulation`: `control` (laws),
`signals`. `report`: `plots`, `replay`.""" + s[b:])
# commands, several to a module
sub("tests/test_documents.py", '''        command = getattr(importlib.import_module(f"liedyn.cli.{name}"), name)
''', '''        command = getattr(importlib.import_module(f"liedyn.cli.{_COMMANDS[name]}"), name)
''')
sub("tests/test_documents.py", '''from document_pages import PAGES, ROOT, anchors, commands, name_of
''', '''from document_pages import PAGES, ROOT, anchors, commands, name_of
from liedyn.cli.app import _COMMANDS
''')
sub("tests/papers/test_page.py", '''        parameters = getattr(importlib.import_module(f"liedyn.cli.{name}"), name).params
''', '''        parameters = getattr(importlib.import_module(f"liedyn.cli.{_COMMANDS[name]}"), name).params
''')
sub("tests/papers/test_page.py", '''    out = {}
    for module, path in files.items():
        found = out.setdefault(module, set())
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module in files:
                found |= {node.module, *(f"{node.module}.{x.name}" for x in node.names)} & set(files)
    return out


def reached(start: str) -> set[str]:
    seen, waiting = set(), [start]
''', '''    return {module: imported(ast.parse(path.read_text(encoding="utf-8")), set(files)) for module, path in files.items()}


def imported(tree: ast.AST, modules: set[str]) -> set[str]:
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module in modules:
            found |= {node.module, *(f"{node.module}.{x.name}" for x in node.names)} & modules
    return found


def imported_by(command: str) -> set[str]:
    """Modules that a command's function imports, or what it names of its own module."""
    tree = ast.parse((ROOT / f"src/liedyn/cli/{_COMMANDS[command]}.py").read_text(encoding="utf-8"))
    parts = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    parts |= {name.asname or name.name: node for node in tree.body if isinstance(node, ast.ImportFrom) for name in node.names}
    seen, waiting, found = set(), [command], set()
    while waiting:
        name = waiting.pop()
        if name in parts and name not in seen:
            seen.add(name)
            found |= imported(parts[name], set(imports()))
            waiting += [node.id for node in ast.walk(parts[name]) if isinstance(node, ast.Name)]
    return found


def reached(start: set[str]) -> set[str]:
    seen, waiting = set(), list(start)
''')
sub("tests/papers/test_page.py", '''    """The file of a command imports, through others, at least one of the functions' modules for each item."""
    reach = {command: reached(f"liedyn.cli.{command}") for command in _COMMANDS}
''', '''    """A command imports, through others, at least one of the functions' modules for each item."""
    reach = {command: reached(imported_by(command)) for command in _COMMANDS}
''')

sub("docs/make_papers.py", '''short name and the numbers as printed: `K1 (24)-(27), Table 2; PBP (21)`. A test names what it checks in the same form after the
word `Checks:` in its docstring.
''', '''short name and the numbers as printed: `K1 (24)-(27), Table 2; PBP (21)`; so does the comment at the head of a section. A test
names what it checks in the same form after the word `Checks:` in its docstring.
''')
sub("docs/make_papers.py", '''    \"""(name, docstring) of the module, its functions, classes and their methods; none of a file in which no paper is named.\"""
''', '''    \"""(name, docstring) of the module with the heads of its sections, its functions, classes and their methods; none of a file in
    which no paper is named.\"""
''')
sub("docs/make_papers.py", '''    return [(path.name, ast.get_docstring(tree, clean=False) or ""), *below(tree, "")]
''', '''    heads = (re.sub(r"^# ?|-{3,}$", "", head, flags=re.MULTILINE) for head in _SECTION.findall(text))
    return [(path.name, "\\n\\n".join([ast.get_docstring(tree, clean=False) or "", *heads])), *below(tree, "")]
''')
sub("docs/make_papers.py", '''

class Place(NamedTuple):''', '''
_SECTION = re.compile(r"^# .+ -{3,}\\n(?:\\n?(?:#.*\\n)+)?", re.MULTILINE)


class Place(NamedTuple):''')
sub("tests/mutations/test_mutations.py", '''"tests/simulate/test_motors.py" in names("io/scenarios/control_schema.py")[:3]''',
    '''"tests/simulate/test_rollout_events.py" in names("io/scenarios/event_schema.py")[:3]''')
sub("tests/test_jit.py", '''if "jit" in imports_of(''', '''if "numba_tools.decorators" in imports_of(''')
sub("tests/test_jit.py", "What `jit` finds by", "What the cache finds by")
