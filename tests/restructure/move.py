"""Merges modules by `modules.json` (new module: present ones), for the issue about the source; to be removed with it.

`bash tests/restructure/run.sh` does all of it, from the project's root on a clean branch: 209 modules, no circle, `ruff` clean.
Names that meet in one module get other names by `names.json`; `after.patch` and `finish.py` hold what is done by hand. Without
`--write` this script tells what would meet. After it, `tests/test_layers.py` passes; the whole suite has not run on the result.
What it does: moves and joins files, one section each; rewrites imports in src, tests and docs, drops those between joined
modules, renames what meets (scopes are looked at); rewrites module names and paths in strings, comments and documents.
"""

import ast
import collections
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path("src/liedyn")
HERE = pathlib.Path(__file__).parent
MAP = json.loads((HERE / "modules.json").read_text())
MAP = {n: [o for o in os if (ROOT / o).exists()] for n, os in MAP.items()}
MAP = {n: os for n, os in MAP.items() if os}


def dotted(path):
    return path.removesuffix(".py").replace("/", ".").removesuffix(".__init__")


NEW = {dotted(o): dotted(n) for n, os in MAP.items() for o in os}
PATHS = {o: n for n, os in MAP.items() for o in os}
LOG = []


class Member:
    def __init__(self, path):
        self.path, self.name = path, dotted(path)
        self.text = (ROOT / path).read_text()
        self.tree = ast.parse(self.text)
        self.lines = self.text.split("\n")
        self.defs = {}
        for node in self.tree.body:
            self.bind(node)
        self.rename = {}  # global name -> new text

    def bind(self, node):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)):
            self.defs[node.name] = node
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            pass
        elif isinstance(node, (ast.If, ast.Try, ast.With, ast.For, ast.While)):
            if is_typechecking(node):
                return
            for x in ast.walk(node):
                if isinstance(x, ast.Name) and isinstance(x.ctx, ast.Store):
                    self.defs.setdefault(x.id, node)
            for field in ("body", "orelse", "finalbody"):
                for x in getattr(node, field, []):
                    self.bind(x)
            for h in getattr(node, "handlers", []):
                for x in h.body:
                    self.bind(x)
        else:
            for x in ast.walk(node):
                if isinstance(x, ast.Name) and isinstance(x.ctx, ast.Store) and not in_comprehension(node, x):
                    self.defs.setdefault(x.id, node)


def in_comprehension(root, name):
    for c in ast.walk(root):
        if isinstance(c, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            for g in c.generators:
                if any(x is name for x in ast.walk(g.target)):
                    return True
        if isinstance(c, ast.Lambda) and any(x is name for x in ast.walk(c)):
            return True
    return False


def is_typechecking(node):
    return isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")


MEMBERS = {dotted(p): Member(p) for p in PATHS}
DEFNAMES = {}  # (old module, name) -> new name


# 1. names of definitions
def suffix(name, tail):
    if name.isupper() or (name.startswith("_") and name[1:].isupper()):
        return f"{name}_{tail.upper()}"
    if name.lstrip("_")[:1].isupper():
        return name + "".join(w.capitalize() for w in tail.split("_"))
    return f"{name}_{tail}"


MANUAL = json.loads((HERE / "names.json").read_text())  # "module:name" -> new name
DROP = collections.defaultdict(set)
for new, olds in MAP.items():
    seen = {}
    # public names and names imported elsewhere first
    order = [(o, n) for o in olds for n in MEMBERS[dotted(o)].defs]
    for o, n in order:
        m = MEMBERS[dotted(o)]
        key = f"{m.name}:{n}"
        if key in MANUAL:
            DEFNAMES[m.name, n] = MANUAL[key]
            seen[MANUAL[key]] = m
            continue
        if n in seen:
            first = seen[n]
            a, b = (ast.get_source_segment(x.text, x.defs[n]) for x in (first, m))
            if a == b:
                DROP[m.name].add(n)
                DEFNAMES[m.name, n] = n
                LOG.append(f"same   {new}: {n} of {first.name} and {m.name}")
                continue
            t = suffix(n, m.name.split(".")[-1])
            LOG.append(f"rename {new}: {m.name}:{n} -> {t}{'   PUBLIC' if n[0] != '_' else ''}")
            DEFNAMES[m.name, n] = t
            seen[t] = m
        else:
            DEFNAMES[m.name, n] = n
            seen[n] = m


def new_name(module, name):
    return DEFNAMES.get((module, name), name)


def resolve(module, name):
    """(new module, new name or None for a module object, old module or None) of `from liedyn.module import name`."""
    module = module.removeprefix("liedyn").lstrip(".")
    full = f"{module}.{name}".lstrip(".")
    if full in NEW and full in MEMBERS and not (module in MEMBERS and name in MEMBERS[module].defs):
        return NEW[full], None, full
    if module in NEW:
        m = MEMBERS[module]
        if name not in m.defs:  # imported there from elsewhere
            for node in ast.walk(m.tree):
                if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("liedyn"):
                    for al in node.names:
                        if (al.asname or al.name) == name:
                            r = resolve(node.module, al.name)
                            if r is not None and r[1] is not None:
                                return r
        return NEW[module], new_name(module, name), module
    return None


# 2. scopes
class Uses(ast.NodeVisitor):
    """Name nodes that refer to a global of the module, or to an import inside the function."""

    def __init__(self, tree):
        self.found = []  # (node, scopes)
        self.scopes = []
        self.visit(tree)

    def locals_of(self, node):
        names, _imports, glob = set(), {}, set()
        a = node.args
        for x in [*a.posonlyargs, *a.args, *a.kwonlyargs, *([a.vararg] if a.vararg else []), *([a.kwarg] if a.kwarg else [])]:
            names.add(x.arg)

        def walk(n):
            for c in ast.iter_child_nodes(n):
                if isinstance(c, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)):
                    names.add(c.name)
                elif isinstance(c, ast.Lambda):
                    pass
                elif isinstance(c, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
                    for x in ast.walk(c):
                        if isinstance(x, ast.NamedExpr):
                            names.add(x.target.id)
                elif isinstance(c, ast.Global):
                    glob.update(c.names)
                else:
                    if isinstance(c, (ast.Import, ast.ImportFrom)):
                        for al in c.names:
                            names.add(al.asname or al.name.split(".")[0])
                    if isinstance(c, ast.Name) and isinstance(c.ctx, (ast.Store, ast.Del)):
                        names.add(c.id)
                    if isinstance(c, ast.ExceptHandler) and c.name:
                        names.add(c.name)
                    if isinstance(c, (ast.MatchAs, ast.MatchStar)) and c.name:
                        names.add(c.name)
                    walk(c)

        if isinstance(node, ast.Lambda):
            walk(node)
        else:
            for s in node.body:
                walk(ast.Module([s], []))
        return names - glob

    def visit_FunctionDef(self, node):
        for d in [
            *node.decorator_list,
            *node.args.defaults,
            *[x for x in node.args.kw_defaults if x],
            node.returns,
            *[
                x.annotation
                for x in [
                    *node.args.posonlyargs,
                    *node.args.args,
                    *node.args.kwonlyargs,
                    *([node.args.vararg] if node.args.vararg else []),
                    *([node.args.kwarg] if node.args.kwarg else []),
                ]
            ],
        ]:
            if d:
                self.visit(d)
        self.scopes.append((node, self.locals_of(node)))
        for s in node.body:
            self.visit(s)
        self.scopes.pop()

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Lambda(self, node):
        for d in [*node.args.defaults, *[x for x in node.args.kw_defaults if x]]:
            self.visit(d)
        self.scopes.append((node, self.locals_of(node)))
        self.visit(node.body)
        self.scopes.pop()

    def comp(self, node):
        names = {x.id for g in node.generators for x in ast.walk(g.target) if isinstance(x, ast.Name)}
        self.visit(node.generators[0].iter)
        self.scopes.append((node, names))
        for f in ("elt", "key", "value"):
            if hasattr(node, f):
                self.visit(getattr(node, f))
        for k, g in enumerate(node.generators):
            if k:
                self.visit(g.iter)
            self.visit(g.target)
            for i in g.ifs:
                self.visit(i)
        self.scopes.pop()

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = comp

    def visit_ClassDef(self, node):
        for d in [*node.decorator_list, *node.bases, *[k.value for k in node.keywords]]:
            self.visit(d)
        names = {
            x.id
            for s in node.body
            for x in ([t for t in s.targets] if isinstance(s, ast.Assign) else [s.target] if isinstance(s, ast.AnnAssign) else [])
            if isinstance(x, ast.Name)
        }
        names |= {s.name for s in node.body if isinstance(s, (ast.FunctionDef, ast.ClassDef))}
        self.scopes.append((node, names))
        for s in node.body:
            self.visit(s)
        self.scopes.pop()

    def visit_Name(self, node):
        self.found.append((node, list(self.scopes)))


def owner(node, scopes):
    """The innermost scope that binds the name; None: the module."""
    for k, (s, names) in enumerate(reversed(scopes)):
        if isinstance(s, ast.ClassDef) and k:
            continue
        if node.id in names:
            return s
    return None


def edits_for(text, tree, home, aliases_forbidden, defs_of=None, rename_of_import=None, taken=None):
    """Edits (start, end, text) by character offsets for one file.

    home: new module of this file (None for tests); defs_of: member's own renames.
    """
    starts = [0]
    for line in text.split("\n"):
        starts.append(starts[-1] + len(line.encode()) + 1)
    raw = text.encode()

    def at(l, c):
        return starts[l - 1] + c

    edits, bound = [], {}  # bound: (scope id or None, alias) -> ("name", new) | ("module", newmodule-binding, oldmodule)
    head_imports = []  # rewritten imports of the head of the file
    uses = Uses(tree)
    scope_of = {}

    def mark(node, scope):
        for c in ast.iter_child_nodes(node):
            scope_of[id(c)] = scope
            mark(c, c if isinstance(c, (ast.FunctionDef, ast.Lambda, ast.AsyncFunctionDef)) else scope)

    mark(tree, None)
    parents = {id(c): n for n in ast.walk(tree) for c in ast.iter_child_nodes(n)}
    for node in ast.walk(tree):
        if not isinstance(node, (ast.ImportFrom, ast.Import)):
            continue
        scope = scope_of.get(id(node))
        top = isinstance(parents[id(node)], ast.Module)
        lines = []
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "liedyn" and node.level == 0:
            groups = collections.OrderedDict()
            for al in node.names:
                r = resolve(node.module, al.name)
                alias = al.asname or al.name
                if r is None:
                    groups.setdefault(node.module, []).append((al.name, al.asname))
                    continue
                newmod, newname, old = r
                if newname is None:  # a module object
                    tail = newmod.split(".")[-1]
                    pkg = ".".join(["liedyn", *newmod.split(".")[:-1]])
                    if home == newmod:
                        bound[id(scope) if scope else None, alias] = ("self", None, old)
                        continue
                    want = al.asname if al.asname else tail
                    if al.asname is None and taken is not None and want in taken and taken[want] != (newmod, None):
                        want = "_" + tail
                        LOG.append(f"module alias {home}: {tail} as {want}")
                    groups.setdefault(pkg, []).append((tail, want if want != tail else None))
                    bound[id(scope) if scope else None, alias] = ("module", want, old)
                    continue
                if home == newmod:
                    bound[id(scope) if scope else None, alias] = ("name", newname, old)
                    continue
                want = al.asname or newname
                if taken is not None and want in taken and taken[want] != (newmod, newname):
                    want = (
                        f"{newmod.split('.')[-1]}_{newname.lstrip('_')}"
                        if newname[0] != "_"
                        else f"_{newmod.split('.')[-1]}{newname}"
                    )
                    LOG.append(f"alias  {home}: {newmod}.{newname} as {want}")
                if taken is not None and scope is None:
                    taken.setdefault(want, (newmod, newname))
                groups.setdefault(f"liedyn.{newmod}", []).append((newname, want if want != newname else None))
                if want != alias:
                    bound[id(scope) if scope else None, alias] = ("name", want, old)
            for mod, names in groups.items():
                lines.append(f"from {mod} import " + ", ".join(n + (f" as {a}" if a else "") for n, a in names))
        elif isinstance(node, ast.Import) and any(a.name.startswith("liedyn.") for a in node.names):
            for al in node.names:
                old = al.name.removeprefix("liedyn.")
                if old not in NEW or not al.asname:
                    LOG.append(f"IMPORT of module at {home}:{node.lineno}: {ast.unparse(node)}")
                    lines.append(f"import {al.name}" + (f" as {al.asname}" if al.asname else ""))
                    continue
                bound[id(scope) if scope else None, al.asname] = ("module", al.asname, old)
                lines.append(f"import liedyn.{NEW[old]} as {al.asname}")
        else:
            if not top:
                continue
            lines = [ast.unparse(node)]
        s, e = at(node.lineno, node.col_offset), at(node.end_lineno, node.end_col_offset)
        if top and home is not None:
            # to the head of the new module, its line removed
            head_imports.append((node, lines))
            end = raw.find(b"\n", e)
            comment = raw[e:end].decode().strip()
            if comment:
                head_imports[-1] = (
                    node,
                    [line + "  " + comment if k == len(lines) - 1 else line for k, line in enumerate(lines)],
                )
            edits.append((s, end + 1, ""))
        else:
            body = next(
                (
                    b
                    for f in ("body", "orelse", "finalbody")
                    if isinstance(b := getattr(parents[id(node)], f, None), list) and any(x is node for x in b)
                ),
                [],
            )
            pad = "\n" + " " * node.col_offset
            if not lines and len(body) == 1:
                lines = ["pass"]
            if lines:
                edits.append((s, e, pad.join(lines)))
            else:
                end = raw.find(b"\n", e)
                edits.append((raw.rfind(b"\n", 0, s) + 1, end + 1, ""))
    for node, scopes in uses.found:
        o = owner(node, scopes)
        key = (id(o) if o is not None else None, node.id)
        if o is not None and key not in bound:
            continue
        s, e = at(node.lineno, node.col_offset), at(node.end_lineno, node.end_col_offset)
        if key in bound:
            kind, want, old = bound[key]
            parent = parents[id(node)]
            if kind == "name":
                edits.append((s, e, want))
                check_shadow(home, want, scopes, o, node)
            elif isinstance(parent, ast.Attribute) and parent.value is node:
                attr = imported_there(old, parent.attr) or new_name(old, parent.attr)
                s, e = at(parent.lineno, parent.col_offset), at(parent.end_lineno, parent.end_col_offset)
                if (old, parent.attr) not in DEFNAMES and not imported_there(old, parent.attr):
                    LOG.append(f"ATTRIBUTE {home}: {ast.unparse(parent)} is not defined in {old}")
                edits.append((s, e, attr if kind == "self" else f"{want}.{attr}"))
                if kind == "self":
                    check_shadow(home, attr, scopes, None, node)
            elif name_beside(parent, node) is not None:         # setattr(module, "name", …)
                said = name_beside(parent, node)
                now = imported_there(old, said.value) or new_name(old, said.value)
                if now != said.value:
                    edits.append((at(said.lineno, said.col_offset), at(said.end_lineno, said.end_col_offset), json.dumps(now)))
                if kind == "self":
                    LOG.append(f"MODULE OBJECT {home}: {node.lineno} {node.id}")
                else:
                    edits.append((s, e, want))
            else:
                if kind == "self":
                    LOG.append(f"MODULE OBJECT {home}: {node.lineno} {node.id}")
                else:
                    edits.append((s, e, want))
        elif o is None and defs_of and node.id in defs_of and DEFNAMES[defs_of_name, node.id] != node.id:
            want = DEFNAMES[defs_of_name, node.id]
            edits.append((s, e, want))
            check_shadow(home, want, scopes, None, node)
    return edits, head_imports, raw


def imported_there(module, name):
    """The present name of what a former module imports from others under a name; None for what it does not import."""
    if (module, name) in DEFNAMES:
        return None
    for node in MEMBERS[module].tree.body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("liedyn"):
            for al in node.names:
                if (al.asname or al.name) == name:
                    r = resolve(node.module, al.name)
                    return None if r is None else al.asname or r[1] or r[0].split(".")[-1]
    return None


def name_beside(call, node):
    """The string after a module in the arguments of a call."""
    if isinstance(call, ast.Call) and node in call.args:
        after = call.args[call.args.index(node) + 1:][:1]
        if after and isinstance(after[0], ast.Constant) and isinstance(after[0].value, str):
            return after[0]
    return None


def check_shadow(home, want, scopes, o, node):
    for s, names in reversed(scopes):
        if s is o:
            return
        if isinstance(s, ast.ClassDef):
            continue
        if want in names:
            LOG.append(f"SHADOWED {home}: {want} line {node.lineno}")


defs_of_name = None


def apply(raw, edits):
    out, done = raw, None
    for s, e, t in sorted(set(edits), key=lambda x: (-x[0], -x[1])):
        if done is not None and e > done:
            LOG.append(f"OVERLAP {out[s:e][:60]!r} {t!r}")
            continue
        out = out[:s] + t.encode() + out[e:]
        done = s
    return out.decode()


def rename_defs(member):
    """Edits of the names of function and class definitions."""
    starts = [0]
    for line in member.text.split("\n"):
        starts.append(starts[-1] + len(line.encode()) + 1)
    raw = member.text.encode()
    out = []
    for name, node in member.defs.items():
        want = DEFNAMES[member.name, name]
        if want != name and isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            s = starts[node.lineno - 1] + node.col_offset
            k = raw.index(name.encode(), s + 3)
            out.append((k, k + len(name.encode()), want))
    return out


def drop_defs(member):
    starts = [0]
    for line in member.text.split("\n"):
        starts.append(starts[-1] + len(line.encode()) + 1)
    member.text.encode()
    out = []
    for name in DROP[member.name]:
        node = member.defs[name]
        first = min([node.lineno, *[d.lineno for d in getattr(node, "decorator_list", [])]])
        s = starts[first - 1]
        e = starts[node.end_lineno]
        # following lines of its comment
        out.append((s, e, ""))
    return out


def order_members(olds):
    names = [dotted(o) for o in olds]
    needs = {}
    for n in names:
        m = MEMBERS[n]
        needs[n] = set()
        for node in m.tree.body:
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("liedyn"):
                for al in node.names:
                    r = resolve(node.module, al.name)
                    if r and r[2] in names and r[2] != n:
                        needs[n].add(r[2])
    done = []
    while len(done) < len(names):
        ready = [n for n in names if n not in done and needs[n] <= set(done)]
        if not ready:
            LOG.append(f"CYCLE among members {names} {needs}")
            ready = [n for n in names if n not in done]
        done.append(ready[0])
    return done


def section(doc, name):
    first = doc.strip().split("\n\n")[0].replace("\n", " ").strip() if doc else name
    return first


def merged(heads):
    """One import statement a module."""
    groups, rest, notes = collections.OrderedDict(), [], {}
    for h in heads:
        h, _, note = h.partition("  #")
        m = re.fullmatch(r"from (\S+) import (.+)", h)
        if not m:
            rest.append(h + ("  #" + note if note else ""))
            continue
        for n in m[2].split(", "):
            groups.setdefault(m[1], {})[n] = None
        if note:
            notes[m[1]] = note
    return rest + [f"from {m} import " + ", ".join(ns) + ("  #" + notes[m] if m in notes else "") for m, ns in groups.items()]


written = {}
for new, olds in MAP.items():
    home = dotted(new)
    names = order_members(olds)
    if len(olds) == 1 and olds[0] == new:
        single = True
    taken = {}
    for n in names:
        for d in MEMBERS[n].defs:
            taken[DEFNAMES[n, d]] = (home, DEFNAMES[n, d])
    # plain third-party aliases
    for n in names:
        for node in MEMBERS[n].tree.body:
            if isinstance(node, ast.Import):
                for al in node.names:
                    k = al.asname or al.name.split(".")[0]
                    if taken.setdefault(k, ("import", al.name)) != ("import", al.name):
                        LOG.append(f"CONFLICT {home}: import {al.name} against {taken[k]}")
            elif isinstance(node, ast.ImportFrom) and not (node.module or "").startswith("liedyn"):
                for al in node.names:
                    k = al.asname or al.name
                    if taken.setdefault(k, (node.module, al.name)) != (node.module, al.name):
                        LOG.append(f"CONFLICT {home}: {node.module}.{al.name} of {n} against {taken[k]}")
    heads, bodies, checking = [], [], []
    for n in names:
        m = MEMBERS[n]
        defs_of_name = n
        edits, head, raw = edits_for(m.text, m.tree, home, None, defs_of=m.defs, taken=taken)
        edits += rename_defs(m) + drop_defs(m)
        doc = ast.get_docstring(m.tree, clean=False)
        if doc is not None:
            node = m.tree.body[0]
            starts = [0]
            for line in m.text.split("\n"):
                starts.append(starts[-1] + len(line.encode()) + 1)
            edits.append((starts[node.lineno - 1], starts[node.end_lineno], ""))
        drops = drop_defs(m)
        edits = [x for x in edits if not any(d[0] <= x[0] and x[1] <= d[1] and x not in drops for d in drops)]
        body = apply(raw, edits).strip("\n")
        heads += [line for node, lines in head for line in lines]
        bodies.append((n, doc, body))
    future = [h for h in heads if h.startswith("from __future__")]
    heads = [h for h in dict.fromkeys(heads) if not h.startswith("from __future__")]
    heads = merged(heads)
    chief = dotted(olds[0]) if MEMBERS[dotted(olds[0])].lines[0].startswith('"""') else names[0]  # the module's docstring
    doc = next(d for n, d, _ in bodies if n == chief)
    if chief != names[0]:
        LOG.append(f"docstring {new}: of {chief}, which is not the first")
    out = []
    if doc is not None:
        out.append(f'"""{doc}"""')
    if future:
        out.append(future[0] + "\n")
    out += heads
    text = "\n".join(out).rstrip("\n") + "\n"
    for k, (n, d, b) in enumerate(bodies):
        if not b.strip():
            continue
        if n == chief and k:
            title = n.split(".")[-1].replace("_", " ")
            text += f"\n\n# {title} " + "-" * max(3, 119 - len(title)) + "\n\n" + b + "\n"
        elif n != chief:
            title = section(d, n.split(".")[-1].replace("_", " ")).rstrip(".")
            title = title if len(title) <= 118 else title[: title.rfind(" ", 0, 116)] + " …"
            rest = "\n\n".join((d or "").strip().split("\n\n")[1:])
            comment = "\n".join("# " + line if line.strip() else "#" for line in rest.split("\n")) + "\n" if rest else ""
            if len((d or "").strip().split("\n\n")[0].replace("\n", " ")) > 118:
                comment = (
                    "\n".join("# " + line for line in (d or "").strip().split("\n\n")[0].split("\n"))
                    + "\n"
                    + ("#\n" + comment if comment else "")
                )
                title = n.split(".")[-1].replace("_", " ")
            text += f"\n\n# {title} " + "-" * max(3, 119 - len(title)) + "\n\n" + (comment + "\n" if comment else "") + b + "\n"
        else:
            text += "\n" + b + "\n"
    written[new] = text

TAILS = collections.defaultdict(set)
for old in NEW:
    TAILS[old.split(".")[-1]].add(old)
UNIQUE = {t: next(iter(o)) for t, o in TAILS.items() if len(o) == 1}


def prose(text):
    """Dotted names of modules, and names in them, in documents and comments."""

    def whole(m):
        w = m.group(0)
        if w in NEW:
            return NEW[w]
        if w.rpartition(".")[0] in NEW:
            return NEW[w.rpartition(".")[0]] + "." + new_name(w.rpartition(".")[0], w.rpartition(".")[2])
        mod, _, name = w.partition(".")
        if mod in UNIQUE and name in MEMBERS[UNIQUE[mod]].defs:
            return NEW[UNIQUE[mod]].split(".")[-1] + "." + new_name(UNIQUE[mod], name)
        return w

    return re.sub(r"(?<![\w./-])[a-z_0-9]+(?:\.[A-Za-z_0-9]+)+(?![\w(/])", whole, text)


def prose_of_python(text):
    import io
    import tokenize

    starts = [0]
    for line in text.split("\n"):
        starts.append(starts[-1] + len(line) + 1)
    docs = {
        n.body[0].lineno
        for n in ast.walk(ast.parse(text))
        if isinstance(n, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(n, clean=False) is not None
    }
    for t in reversed(list(tokenize.generate_tokens(io.StringIO(text).readline))):
        if t.type == tokenize.COMMENT or (t.type == tokenize.STRING and t.start[0] in docs):
            a, b = starts[t.start[0] - 1] + t.start[1], starts[t.end[0] - 1] + t.end[1]
            text = text[:a] + re.sub("`[^`\n]+`", lambda m: prose(m.group(0)), text[a:b]) + text[b:]
    return text


def tracked():
    """Files of the tree outside of this folder."""
    found = subprocess.run(["git", "ls-files"], check=True, capture_output=True, text=True).stdout.splitlines()
    return [p for p in map(pathlib.Path, found) if p.exists() and not p.resolve().is_relative_to(HERE.resolve())]


def said_programs(text):
    """Programs in strings, which tests write or run: their imports, and names of modules that they import."""
    starts = [0]
    for line in text.split("\n"):
        starts.append(starts[-1] + len(line.encode()) + 1)
    raw, edits, inner = text.encode(), [], set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.JoinedStr):
            inner |= {id(x) for x in ast.walk(node)} - {id(node)}
        if id(node) in inner or not isinstance(node, ast.JoinedStr | ast.Constant):
            continue
        if isinstance(node, ast.Constant) and not isinstance(node.value, str):
            continue
        a, b = starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset
        before = raw[a:b].decode()
        after = said_program(before)
        if after != before:
            edits.append((a, b, after))
    return apply(raw, edits) if edits else text


def said_program(text):
    modules = {}

    def taken(m):
        pairs = {}
        for name in m[2].split(", "):
            r = resolve(m[1], name)
            if r is None:
                mod, got = m[1], name
            elif r[1]:
                mod, got = f"liedyn.{r[0]}", r[1]
                if got != name:
                    LOG.append(f"IN A STRING {m[0]}: {name} is {got}")
            else:
                mod, got = ".".join(["liedyn", *r[0].split(".")[:-1]]), r[0].split(".")[-1]
                modules[name] = got, r[2]
            pairs.setdefault(mod, {})[got] = None
        if len(pairs) > 1:
            LOG.append(f"IN A STRING {m[0]}: {pairs}")
            return m[0]
        (mod, names), = pairs.items()
        return f"from {mod} import {', '.join(names)}"

    text = re.sub(r"\bfrom (liedyn(?:\.\w+)*) import (\w+(?:, \w+)*)", taken, text)
    for name, (got, old) in modules.items():
        text = re.sub(rf"(?<![\w.]){name}\.(\w+)", lambda m, got=got, old=old: f"{got}.{new_name(old, m[1])}", text)
    return re.sub(r"\bimport liedyn\.(\w+(?:\.\w+)*)", lambda m: "import liedyn." + NEW.get(m[1], m[1]), text)


if "--write" in sys.argv:
    # git mv of the largest member, so that history follows
    for new, olds in MAP.items():
        if new in olds and len(olds) == 1:
            continue
        big = new if new in olds else max(olds, key=lambda o: len(MEMBERS[dotted(o)].text))
        if big != new and not (ROOT / new).exists():
            (ROOT / new).parent.mkdir(parents=True, exist_ok=True)
            subprocess.run(["git", "mv", str(ROOT / big), str(ROOT / new)], check=True)
    for new, text in written.items():
        (ROOT / new).parent.mkdir(parents=True, exist_ok=True)
        (ROOT / new).write_text(text)
    for o in PATHS:
        if o not in MAP and (ROOT / o).exists():
            subprocess.run(["git", "rm", "-qf", str(ROOT / o)], check=True)
    # other files: __init__, stub, tests
    others = [p for p in ROOT.rglob("*.py*") if p.suffix in (".py", ".pyi") and str(p.relative_to(ROOT)) not in written]
    others += [p for p in tracked() if p.suffix == ".py" and not p.is_relative_to(ROOT)]
    for p in others:
        text = p.read_text()
        tree = ast.parse(text)
        defs_of_name = None
        edits, _, raw = edits_for(text, tree, None, None, taken=None)
        if edits:
            p.write_text(apply(raw, edits))
    # strings, paths
    keys = sorted(NEW, key=len, reverse=True)
    changed = {k: NEW[k] for k in keys if NEW[k] != k and "." in k}
    for p in {*ROOT.rglob("*.py"), *tracked()}:
        if p.suffix not in (".py", ".pyi", ".md", ".toml", ".json", "") or p.name == "CHANGELOG.md":
            continue
        text = p.read_text()
        before = text
        if p.suffix == ".py":
            tree = ast.parse(text)
            starts = [0]
            for line in text.split("\n"):
                starts.append(starts[-1] + len(line.encode()) + 1)
            edits = []
            for node in ast.walk(tree):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    v = node.value
                    pre = "liedyn." if v.startswith("liedyn.") else ""
                    w = v.removeprefix("liedyn.")
                    hit = None
                    if not re.fullmatch(r"[A-Za-z_.0-9]+", w) or v.endswith("."):
                        continue
                    if w in NEW and ("." in w or pre) and NEW[w] != w:
                        hit = pre + NEW[w]
                    elif "." in w and (mod := w.rsplit(".", 1)[0]) in NEW and (
                            pre or ("." in mod and w.rsplit(".", 1)[1] in MEMBERS[mod].defs)):
                        mod, attr = w.rsplit(".", 1)
                        hit = pre + NEW[mod] + "." + new_name(mod, attr)
                    if hit and hit != v:
                        s, e = starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset
                        edits.append((s, e, json.dumps(hit)))
            if edits:
                text = apply(text.encode(), edits)

        def path(m):
            o = m.group(0)
            return PATHS.get(o, o)

        text = re.sub(
            r"(?<![\w/.])(?:[a-z_0-9]+/)*[a-z_0-9]+\.py\b",
            lambda m: PATHS[m.group(0)] if "/" in m.group(0) and m.group(0) in PATHS else m.group(0),
            text,
        )
        text = re.sub(r"src/liedyn/([a-z_0-9/]+\.py)\b", lambda m: "src/liedyn/" + PATHS.get(m.group(1), m.group(1)), text)
        if p.suffix == ".md":
            text = prose(text)
            def tail(m):
                return m[1] + (NEW[UNIQUE[m[2]]].split(".")[-1] if m[2] in UNIQUE else m[2]) + ".py" + m[3]
            text = re.sub(r"([`\[])([a-z_0-9]+)\.py([`\]])", tail, text)
        elif p.suffix == ".py":
            if not p.is_relative_to(ROOT):
                text = said_programs(text)
            text = prose_of_python(text)
        if text != before:
            p.write_text(text)
    for d in sorted({p.parent for p in ROOT.rglob("__init__.py")}, key=lambda d: -len(str(d))):
        if d == ROOT:
            continue
        if not [x for x in d.iterdir() if x.name not in ("__init__.py", "__pycache__")]:
            subprocess.run(["git", "rm", "-qf", str(d / "__init__.py")], check=False)
for line in LOG:
    print(line)
print(len(MAP), "modules")
