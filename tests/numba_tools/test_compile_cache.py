"""The cache of compiled code: it never breaks a run, and no code of others is run from it."""
import ast
import errno
import logging
import os
import shutil
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from numba.core.compiler_lock import global_compiler_lock

from liedyn.numba_tools import compile_cache, decorators
from liedyn.numba_tools.compile_cache import CodeCache

posix = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="owners and modes of files")


def _cubed(x):
    return x * x * x


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """Use an empty cache without earlier messages."""
    monkeypatch.setattr(compile_cache, "root", lambda: tmp_path)
    compile_cache._warn_once.cache_clear()
    yield tmp_path
    compile_cache._warn_once.cache_clear()


def call() -> str:
    """Use the cache as a new process does, in this one: return 'loaded' or 'compiled'."""
    kernel = decorators.kernel(_cubed)
    assert kernel(2.0) == 8.0
    return "loaded" if sum(kernel.stats.cache_hits.values()) else "compiled"


def files(cache: Path) -> list[Path]:
    return [path for path in cache.rglob("*") if path.is_file()]


def test_compiled_code_is_kept(cache, caplog):
    assert [call(), call()] == ["compiled", "loaded"]
    (kept,) = files(cache)
    assert kept.name.startswith("_cubed-") and kept.parent.name.startswith("test_compile_cache-")
    assert not caplog.records


def _cut(content, k):
    return content[:len(content) * k // 8]


def _garbled(content, k):
    place = min(len(content) * k // 8, len(content) - 1)
    return content[:place] + bytes([content[place] ^ 0x10]) + content[place + 1:]


@pytest.mark.parametrize("damage", [*((_cut, k) for k in range(8)), *((_garbled, k) for k in range(9)),
                                    (lambda content, k: content + b"more", 0), (lambda content, k: bytes(5000), 0),
                                    (lambda content, k: os.urandom(5000), 0)],
                         ids=lambda d: f"{d[0].__name__} {d[1]}")
def test_a_damaged_file_is_compiled_again(cache, caplog, damage):
    """Every later run ended in a traceback of pickle; damaged machine code was executed."""
    call()
    (kept,) = files(cache)
    change, k = damage
    kept.write_bytes(change(kept.read_bytes(), k))
    assert [call(), call()] == ["compiled", "loaded"]
    (record,) = caplog.records
    assert record.getMessage() == (f"liedyn: some of the compiled code in {cache} is not used, and is compiled again: "
                                   "it is damaged")


def test_a_file_of_another_function_is_not_used(cache):
    """The file is complete but has a wrong name."""
    call()
    (kept,) = files(cache)
    other = decorators.kernel(_cubed)
    assert other(2) == 8
    (integers,) = set(files(cache)) - {kept}
    integers.replace(kept)
    assert [call(), call()] == ["compiled", "loaded"]


def test_a_folder_where_a_file_should_be(cache, caplog):
    call()
    (kept,) = files(cache)
    kept.unlink()
    kept.mkdir()
    (kept / "something").write_text("")
    assert [call(), call()] == ["compiled", "compiled"]
    assert len(caplog.records) == 2 and list(kept.parent.iterdir()) == [kept]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EDQUOT])
@pytest.mark.parametrize("where", ["mkdir", "open", "replace"])
def test_a_cache_that_cannot_be_written(cache, caplog, monkeypatch, number, where):
    """A full disk ended the run."""
    original = os.open

    def fail(*args, **options):
        raise OSError(number, os.strerror(number))

    def open_for_reading(path, flags, *mode):
        return fail() if flags & os.O_CREAT else original(path, flags, *mode)

    holder = Path if where == "mkdir" else os
    monkeypatch.setattr(holder, where, open_for_reading if where == "open" else fail)
    assert [call(), call()] == ["compiled", "compiled"]
    assert not files(cache)
    (record,) = caplog.records                                      # once
    assert record.getMessage() == (f"liedyn: compiled code cannot be stored in {cache}, and the next run compiles it again: "
                                   f"{os.strerror(number)}")


def test_a_disk_that_fills_while_a_file_is_written(cache, caplog, monkeypatch):
    class Full:
        def __init__(self, file):
            self.file = file

        def __enter__(self):
            return self

        def __exit__(self, *error):
            self.file.close()

        def write(self, content):
            self.file.write(content[:100])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def full(path, mode, **options):
        return (Full if mode == "xb" else lambda file: file)(open(path, mode, **options))

    monkeypatch.setattr(compile_cache, "open", full, raising=False)
    assert call() == "compiled"
    assert not files(cache) and len(caplog.records) == 1


def test_a_complete_cache_that_cannot_be_written_is_read(cache, caplog, monkeypatch):
    """It was ignored."""
    call()

    def fail(*args, **options):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    for name in "replace", "mkdir", "utime", "unlink":
        monkeypatch.setattr(os, name, fail)
    original = os.open
    monkeypatch.setattr(os, "open", lambda path, flags, *mode: fail() if flags & os.O_CREAT else original(path, flags, *mode))
    assert call() == "loaded"
    assert not caplog.records


@pytest.mark.skipif(compile_cache.fcntl is None, reason="locks of files")
def test_another_process_that_compiles_is_waited_for_but_not_for_ever(cache, monkeypatch):
    monkeypatch.setattr(compile_cache, "LOCK_TIMEOUT", 0.0)
    monkeypatch.setattr(compile_cache, "_try_lock", lambda descriptor: False)
    assert [call(), call()] == ["compiled", "loaded"]
    assert len(files(cache)) == 1 and not compile_cache._locks                      # no lock is left


def test_a_file_system_without_locks(cache, monkeypatch):
    def fail(*args):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(compile_cache.fcntl, "flock", fail)
    assert [call(), call()] == ["compiled", "loaded"]


@posix
@pytest.mark.parametrize("mode", [0o666, 0o664, 0o646])
def test_code_that_others_can_write_is_not_run(cache, caplog, mode):
    call()
    (kept,) = files(cache)
    kept.chmod(mode)
    assert call() == "compiled"
    assert "others can write to it; close it by `chmod -R go-w`" in caplog.text
    (kept,) = files(cache)
    assert not stat.S_IMODE(kept.stat().st_mode) & 0o022 and call() == "loaded"


@posix
def test_a_link_to_code_is_not_followed(cache):
    call()
    (kept,) = files(cache)
    elsewhere = cache / "elsewhere"
    kept.rename(elsewhere)
    kept.symlink_to(elsewhere)
    assert call() == "compiled"
    assert not kept.is_symlink() and call() == "loaded"


@posix
@pytest.mark.parametrize("owner, mode, refused", [
    (1000, 0o40755, None), (1000, 0o40700, None), (0, 0o40755, None),
    (1001, 0o40755, "it belongs to another user"), (1000, 0o40775, "others can write to it"),
    (1000, 0o41777, "others can write to it"), (0, 0o41777, "others can write to it"), (1000, 0o120777, "it is a symbolic link")])
def test_whose_folder_is_used(monkeypatch, owner, mode, refused):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    found = os.stat_result((mode, 1, 1, 1, owner, 1000, 0, 0, 0, 0))
    if refused is None:
        compile_cache._check_owner(found)
    else:
        with pytest.raises(compile_cache._UnusableFileError, match=refused):
            compile_cache._check_owner(found)


# Code that a wheel brings

@pytest.fixture
def prebuilt(cache, monkeypatch):
    """Create the content of a wheel, next to an empty cache: code of `call` for the portable processor."""
    folder = cache.parent / f"{cache.name}-prebuilt"
    monkeypatch.setattr(compile_cache, "PREBUILT", folder)
    original = CodeCache._path
    with monkeypatch.context() as build:
        build.setattr(compile_cache, "root", lambda: folder)
        build.setattr(CodeCache, "_path", lambda self, root, signature, processor: original(
            self, folder, signature, (processor[0], compile_cache.PREBUILT_CPU, "")))
        folder.mkdir()
        assert call() == "compiled"
    monkeypatch.setattr(compile_cache, "PREBUILT_FEATURES", set())       # also where tests compile for another processor
    return folder


def test_code_of_a_wheel_is_loaded_and_not_stored_again(cache, prebuilt, caplog):
    (file,) = files(prebuilt)
    file.chmod(0o666)                                       # as the sources of the package, whoever owns them
    before = file.stat(), file.parent.stat().st_mtime_ns
    assert [call(), call()] == ["loaded", "loaded"]
    assert not files(cache) and not caplog.records
    assert (file.stat().st_mtime_ns, file.parent.stat().st_mtime_ns) == (before[0].st_mtime_ns, before[1])


def test_a_user_s_own_code_comes_before_that_of_a_wheel(cache, prebuilt, monkeypatch, caplog):
    with monkeypatch.context() as alone:
        alone.setattr(compile_cache, "PREBUILT", cache / "none")
        assert call() == "compiled"
    (file,) = files(prebuilt)
    file.write_bytes(b"damaged")                            # which reading it would report
    assert call() == "loaded" and not caplog.records


@pytest.mark.parametrize("reason", ["processor", "sources", "versions", "damage"])
def test_code_of_a_wheel_that_does_not_fit_is_compiled(cache, prebuilt, monkeypatch, caplog, reason):
    (file,) = files(prebuilt)
    if reason == "processor":
        monkeypatch.setattr(compile_cache, "PREBUILT_FEATURES", {"+from_the_future"})
    elif reason == "sources":
        monkeypatch.setattr(compile_cache, "folder_name", lambda function: "test_code_cache-0123456789abcdef")
    elif reason == "versions":
        monkeypatch.setattr(compile_cache.numba, "__version__", "0.0.1")
        compile_cache._folder_name.cache_clear()
    else:
        file.write_bytes(file.read_bytes()[:-1])
    assert [call(), call()] == ["compiled", "loaded"]
    assert len(files(cache)) == 1
    said = [f"liedyn: some of the compiled code in {prebuilt} is not used, and is compiled again: it is damaged"]
    assert [record.getMessage() for record in caplog.records] == (said if reason == "damage" else [])
    monkeypatch.undo()
    compile_cache._folder_name.cache_clear()


def test_features_of_the_portable_processor():
    """They are names of LLVM: an unknown name would exclude every processor."""
    import llvmlite.binding as llvm
    if not llvm.get_process_triple().startswith("x86_64"):
        pytest.skip("names of x86-64")
    known = {f"+{name}" for name in llvm.get_host_cpu_features()}
    assert known >= compile_cache.PREBUILT_FEATURES


# Where it is

def place(code="print(root())", **environment):
    """Return the cache's root in a new interpreter, and its messages."""
    env = {key: value for key, value in os.environ.items() if key not in ("LIEDYN_CACHE_DIR", "XDG_CACHE_HOME")} | environment
    done = subprocess.run([sys.executable, "-c", f"from liedyn.numba_tools.compile_cache import root\n{code}"], env=env,
                          capture_output=True, text=True, timeout=600, check=True)
    return Path(done.stdout.strip()), done.stderr


def test_where_the_cache_is_kept(tmp_path):
    chosen, home = tmp_path / "chosen", tmp_path / "home"
    assert place(LIEDYN_CACHE_DIR=str(chosen)) == (chosen, "") and chosen.is_dir()
    assert place(HOME=str(home)) == (home / ".cache/liedyn", "")
    assert place(XDG_CACHE_HOME=str(home / "xdg")) == (home / "xdg/liedyn", "")


def test_a_home_that_cannot_be_written(tmp_path):
    """A file where the folder should be: also root cannot write there. A folder that anybody could have made beforehand was
    used instead."""
    blocked, temporary = tmp_path / "blocked", tmp_path / "tmp"
    blocked.write_text("", encoding="utf-8")
    temporary.mkdir()
    code = "import os, sys\nprint(root(), oct(os.stat(root()).st_mode))\nassert os.listdir(os.environ['TMPDIR'])"
    found, said = place(code, HOME=str(blocked), LIEDYN_CACHE_DIR=str(blocked / "cache"), TMPDIR=str(temporary))
    assert found.parent == temporary and str(found).endswith(" 0o40700")
    assert [line.split(": ")[1] for line in said.splitlines()] == [
        f"the cache of compiled code is not stored in {blocked / 'cache'}",
        f"the cache of compiled code is not stored in {blocked / '.cache/liedyn'}",
        "compiled code is stored for this process only; LIEDYN_CACHE_DIR names a folder for it"]
    assert not list(temporary.iterdir())                                # removed at the end


def test_a_user_without_home_gets_a_temporary_folder(tmp_path):
    """It was a folder named ~ in the current folder."""
    code = ("import os, pwd\ndef unknown(uid): raise KeyError(uid)\npwd.getpwuid = unknown\ndel os.environ['HOME']\n"
            "os.chdir(os.environ['TMPDIR'])\nprint(root())")
    found, said = place(code, TMPDIR=str(tmp_path))
    assert found.parent == tmp_path and "LIEDYN_CACHE_DIR names a folder" in said and not (tmp_path / "~").exists()


def test_a_chosen_folder_that_is_not_usable_is_named(tmp_path):
    file = tmp_path / "file"
    file.write_text("", encoding="utf-8")
    found, said = place(HOME=str(tmp_path), LIEDYN_CACHE_DIR=str(file))
    assert found == tmp_path / ".cache/liedyn"
    assert said == f"liedyn: the cache of compiled code is not stored in {file}: it is not a folder\n"


@posix
def test_a_folder_that_others_can_write_to_is_not_used(tmp_path):
    chosen = tmp_path / "open to all"
    chosen.mkdir()
    chosen.chmod(0o777)
    found, said = place(HOME=str(tmp_path), LIEDYN_CACHE_DIR=str(chosen))
    assert found == tmp_path / ".cache/liedyn"
    assert said == (f"liedyn: the cache of compiled code is not stored in {chosen}: others can write to it; close it by "
                    "`chmod -R go-w`\n")
    assert not list(chosen.iterdir())


@posix
def test_a_link_made_beforehand_is_not_followed(tmp_path):
    target, home = tmp_path / "target", tmp_path / "home"
    target.mkdir()
    (home / ".cache").mkdir(parents=True)
    (home / ".cache/liedyn").symlink_to(target)
    found, said = place(HOME=str(home), TMPDIR=str(tmp_path))
    assert found.parent == tmp_path and "it is a symbolic link" in said


@posix
def test_the_folder_of_a_process_outlives_its_forks(tmp_path):
    code = ("import os, sys\nfolder = root()\n"
            "if os.fork() == 0:\n    sys.exit()\n"
            "os.wait()\nassert folder.is_dir()\nprint(folder)")
    file = tmp_path / "file"
    file.write_text("", encoding="utf-8")
    found, _ = place(code, HOME=str(file), TMPDIR=str(tmp_path))
    assert found.parent == tmp_path and not found.exists()


# By what code is known

@pytest.fixture
def small_package(tmp_path, monkeypatch):
    """Create a package of two modules that import each other's sources, in place of liedyn's."""
    for name, text in {"kernels/algorithm.py": "from liedyn.lie.algebra import f\ndef g(): pass\n", "lie/algebra.py": "x = 1\n",
                       "lie/other.py": "y = 1\n", "kernels/__init__.py": "", "lie/__init__.py": ""}.items():
        path = tmp_path / "package" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    monkeypatch.setattr(compile_cache, "_PACKAGE", tmp_path / "package")
    monkeypatch.setattr(compile_cache, "_STARTED", np.inf)
    yield tmp_path / "package"
    forget()


def forget():
    compile_cache.source_path.cache_clear()
    compile_cache.source_bytes.cache_clear()
    compile_cache._imports.cache_clear()
    compile_cache._folder_name.cache_clear()


def folder(package):
    forget()
    space = {}
    path = package / "kernels/algorithm.py"
    exec(compile(path.read_text(encoding="utf-8").replace("from liedyn", "#"), path, "exec"), space)
    return compile_cache.folder_name(space["g"])


def test_the_cache_moves_when_an_imported_source_changes(small_package):
    first = folder(small_package)
    assert first.startswith("kernels.algorithm-")
    assert folder(small_package) == first
    (small_package / "lie/other.py").write_text("y = 2\n", encoding="utf-8")          # not imported
    assert folder(small_package) == first
    (small_package / "lie/algebra.py").write_text("x = 2\n", encoding="utf-8")        # imported
    assert folder(small_package) != first
    (small_package / "lie/algebra.py").write_text("x = 1\n", encoding="utf-8")
    assert folder(small_package) == first                                             # back again


@pytest.mark.parametrize("statement", [
    "from liedyn.lie.algebra import f",
    "from liedyn.lie.algebra import (\n    f,\n)",
    "from liedyn.lie.algebra import \\\n    f",
    "from liedyn.lie.algebra \\\n    import f",
    "from liedyn.lie import algebra",
    "from liedyn.lie import (\n    algebra as a,\n)",
    "from liedyn.lie.algebra import *",
    "import liedyn.lie.algebra as algebra",
    "import os, liedyn.lie.algebra",
    "import os, \\\n    liedyn.lie.algebra",
    "from liedyn.lie.algebra import (  # f (and no other)\n    f,\n)",
    "from liedyn.lie.algebra import(f)",
    "if True: from liedyn.lie.algebra import f",
    "x = 1;import liedyn.lie.algebra",
    "if True:\n\tfrom  liedyn.lie.algebra  import  f",
    "x = 1; from liedyn.lie.algebra import f",
    "from ..lie.algebra import f",
    "from ..lie import algebra",
    "from .. import lie\nfrom ..lie import algebra",
    "if True:\n    try:\n        from liedyn.lie.algebra import f\n    except ImportError:\n        pass",
    "def g():\n    from liedyn.lie.algebra import f",
    "from liedyn.kernels.middle import f",                    # two imports away
    "from .middle import f",
])
def test_every_form_of_import_counts(small_package, statement):
    """A regex for imports of one line missed the others: code of a changed sign stayed in use."""
    (small_package / "kernels/middle.py").write_text("from liedyn.lie.algebra import (\n    f\n)\n", encoding="utf-8")
    path = small_package / "kernels/algorithm.py"
    path.write_text(f"{statement}\n", encoding="utf-8")

    def key():
        forget()
        return compile_cache._folder_name(path)

    first = key()
    (small_package / "lie/algebra.py").write_text("x = 2\n", encoding="utf-8")
    assert key() != first


def test_no_import_of_a_source_is_missed():
    """Only text that resembles an import is parsed."""
    for path in sorted(compile_cache._PACKAGE.rglob("*.py")):
        source = path.read_bytes()
        imports = {ast.dump(node) for node in compile_cache._statements(ast.parse(source))
                   if isinstance(node, ast.Import | ast.ImportFrom)}
        assert imports <= {ast.dump(node) for node in compile_cache._import_statements(source)}, path


def test_a_source_that_changed_since_the_process_began_is_shared_with_no_other(small_package, monkeypatch):
    """The process may have imported the old one: its code would be loaded by processes that import the new one, and crash."""
    first, (old, new) = folder(small_package), (time.time() + shift for shift in (-100, -10))
    for path in small_package.rglob("*.py"):
        os.utime(path, (old - 1, old - 1))
    os.utime(small_package / "lie/algebra.py", (new, new))
    monkeypatch.setattr(compile_cache, "_STARTED", old)
    assert len({first, folder(small_package), folder(small_package)}) == 3
    monkeypatch.setattr(compile_cache, "_STARTED", new + 1)
    assert folder(small_package) == first
    os.utime(small_package / "lie/algebra.py", (new + 1e4, new + 1e4))         # a clock that is wrong
    assert folder(small_package) == first


def test_a_changed_source_two_imports_away_changes_the_result(tmp_path):
    """The cache is warm when one sign of the cross product changes, which `ad` uses."""
    copy = tmp_path / "liedyn"
    shutil.copytree(Path(compile_cache.__file__).parents[1], copy, ignore=shutil.ignore_patterns("__pycache__"))
    (copy / "probe.py").write_text("from liedyn.numba_tools.decorators import kernel\nfrom liedyn.lie.se3 import ad\n\n\n"
                                   "@kernel\ndef bracket(V, W): return ad(V, W)\n", encoding="utf-8")
    program = ("from liedyn.probe import bracket\nx, y = ((1., 2., 3.), (4., 5., 6.)), ((7., 8., 10.), (1., 2., 4.))\n"
               "print(bracket(x, y), sum(bracket.stats.cache_hits.values()))")

    def result():
        return subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True,
                              env=os.environ | {"PYTHONPATH": str(tmp_path), "LIEDYN_CACHE_DIR": str(tmp_path / "cache")}).stdout

    assert result() == "((-4.0, 11.0, -6.0), (4.0, 1.0, -3.0)) 0\n"
    assert result() == "((-4.0, 11.0, -6.0), (4.0, 1.0, -3.0)) 1\n"
    source = copy / "lie/vectors.py"
    text = source.read_text(encoding="utf-8")
    changed = text.replace("cross product.\"\"\"\n    return (x[1] * y[2] - x[2] * y[1],",
                           "cross product.\"\"\"\n    return (x[1] * y[2] + x[2] * y[1],")
    assert changed != text
    source.write_text(changed, encoding="utf-8")
    assert result() == "((44.0, 11.0, -6.0), (100.0, 1.0, -3.0)) 0\n"


def test_another_copy_of_the_sources_finds_the_same_code(small_package, monkeypatch):
    """Path and date of a file do not count: a new clone or environment of the same version compiles nothing."""
    first = folder(small_package)
    copy = small_package.with_name("another name")
    small_package.rename(copy)
    for path in copy.rglob("*.py"):
        os.utime(path, (0, 0))
    monkeypatch.setattr(compile_cache, "_PACKAGE", copy)
    assert folder(copy) == first


def test_a_function_without_a_source_is_compiled_and_not_kept(cache):
    space = {}
    exec("def twice(x): return 2 * x", space)
    assert decorators.kernel(space["twice"])(2.0) == 4.0
    assert not files(cache)


def test_a_function_of_values_around_it_is_compiled_and_not_kept(cache):
    """The values are not in the source: two functions of one place would share a file."""
    def times(c):
        return decorators.kernel(lambda x: c * x)

    assert times(2.0)(3.0) == 6.0 and times(5.0)(3.0) == 15.0
    assert not files(cache)


def test_old_generations_are_removed_and_recent_ones_kept(cache):
    old, kept = time.time() - 30 * 86400, compile_cache._MAX_GENERATIONS
    for k in range(kept + 20):
        path = cache / f"kernels.algorithm-{k:016d}"
        path.mkdir()
        stamp = old + k if k < kept + 10 else time.time()
        os.utime(path, (stamp, stamp))
    (cache / "notes-of-a-user-here!").mkdir()
    os.utime(cache / "notes-of-a-user-here!", (0, 0))
    call()
    left = sorted(path.name for path in cache.iterdir())
    assert "notes-of-a-user-here!" in left and len(left) == kept + 2
    assert f"kernels.algorithm-{kept + 19:016d}" in left and "kernels.algorithm-0000000000000000" not in left


CODE = """
import sys
from liedyn.numba_tools import compile_cache
compile_cache.PREBUILT = compile_cache.root() / "none"         # of the folder of sources, after `make wheel`
from liedyn.numba_tools.decorators import compile_entry_point
from liedyn.kernels.manifold import retractions
assert not retractions.signatures
for which in range(len(retractions.liedyn_signatures)):
    assert compile_entry_point(retractions, which) and not compile_entry_point(retractions, which)
stats = retractions.liedyn_compiler.stats
print(sum(stats.cache_hits.values()), sum(stats.cache_misses.values()))
"""


def start(tmp_path, **environment):
    return subprocess.Popen([sys.executable, "-c", CODE], env=os.environ | {"LIEDYN_CACHE_DIR": str(tmp_path)} | environment,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def end(process):
    out, said = process.communicate(timeout=600)
    assert process.returncode == 0, said
    return out


def test_two_first_runs_at_once_and_another_processor(tmp_path):
    """They share an empty cache. Code for one processor is not loaded by another."""
    both = [start(tmp_path), start(tmp_path)]
    both = [[int(x) for x in end(each).split()] for each in both]
    assert [hits + misses for hits, misses in both] == [1, 1]
    assert sum(misses for _, misses in both) == (1 if compile_cache.fcntl else 2)       # one waits for the other
    assert end(start(tmp_path)) == "1 0\n"
    assert end(start(tmp_path, NUMBA_CPU_NAME="generic", NUMBA_CPU_FEATURES="")) == "0 1\n"
    assert end(start(tmp_path)) == "1 0\n"
    assert len(files(tmp_path)) == 2 and all(
        path.parent.name.startswith("kernels.manifold-") for path in files(tmp_path))


# What is said about compilation

@pytest.fixture
def notice(monkeypatch):
    monkeypatch.setattr(compile_cache, "DELAY", 0.0)
    monkeypatch.setattr(compile_cache, "_notice", compile_cache._Notice())


def _slowly(caplog):
    """A compilation that ends when something was said."""
    with compile_cache.compiling():
        assert decorators.kernel(_cubed)(2.0) == 8.0
        end = time.monotonic() + 60
        while not caplog.records and time.monotonic() < end:
            time.sleep(0.001)


def test_a_long_compilation_is_told_once(cache, caplog, notice):
    _slowly(caplog)
    for path in files(cache):
        path.unlink()
    _slowly(caplog)
    (record,) = caplog.records
    assert record.name == "liedyn.compile" and str(cache) in record.getMessage()


def test_a_short_compilation_is_not_told(cache, caplog, notice, monkeypatch):
    monkeypatch.setattr(compile_cache, "DELAY", 3600.0)
    before = threading.active_count()
    assert call() == "compiled"
    assert not caplog.records and compile_cache._notice._timer is None
    for _ in range(1000):
        if threading.active_count() == before:
            break
        time.sleep(0.01)
    assert threading.active_count() == before


def test_loading_is_not_told(cache, caplog, notice):
    with caplog.at_level(logging.CRITICAL, "liedyn"):
        call()
    compile_cache._notice._warned = False
    with compile_cache.compiling():
        assert call() == "loaded"
        assert compile_cache._notice._timer is None
    assert not caplog.records


SLOW = """
import logging, sys, time
from liedyn.numba_tools import compile_cache, decorators
compile_cache.DELAY = 0.0
{ask}
with compile_cache.compiling():
    compile_cache._notice.start()
    compile_cache._notice._timer.join()
"""


@pytest.mark.parametrize("ask, lines", [("", 1), ("logging.getLogger('liedyn').setLevel(logging.ERROR)", 0)])
def test_scripts_can_ask_for_quiet(tmp_path, ask, lines):
    done = subprocess.run([sys.executable, "-c", SLOW.format(ask=ask)], env=os.environ | {"LIEDYN_CACHE_DIR": str(tmp_path)},
                          capture_output=True, text=True, timeout=600, check=True)
    assert done.stdout == "" and len(done.stderr.splitlines()) == lines, done.stderr
    assert all(line.startswith(f"liedyn: compiling for this processor, once: {compile_cache.FIRST_RUN_TIME};")
               for line in done.stderr.splitlines())


def test_messages_and_documents_say_the_same_of_first_runs():
    root = Path(__file__).parents[2]
    texts = [(root / name).read_text() for name in ("README.md", "docs/running.md", "docs/tutorials/first-motion.md")]
    assert all(compile_cache.FIRST_RUN_TIME in text for text in texts)


def test_compilation_is_named_while_it_lasts_and_only_then(tmp_path, monkeypatch):
    monkeypatch.setattr(compile_cache, "root", lambda: tmp_path)
    with compile_cache.compiling():
        assert compile_cache.compilation() == ""                         # the code may be in the cache
        compile_cache._notice.start()
        assert compile_cache.compilation().startswith("compiling for this processor (once, ")
    assert compile_cache.compilation() == ""
    said = [compile_cache.load_or_build("folder", "name", compile_cache.compilation) for _ in range(2)]
    assert said == ["generating code for this robot (once)"] * 2 and compile_cache.compilation() == ""


# Forks

FORK = """
import os, signal, sys, threading, time
import numpy as np
import liedyn as ld
from liedyn.numba_tools import compile_cache
model = ld.load(sys.argv[1])
x = np.ones(model.nv)
thread = threading.Thread(target=ld.integrate, args=(model, x, x))
thread.start()
while not compile_cache._notice._depth:
    time.sleep(0.001)
child = os.fork()
if child == 0:
    signal.alarm(500)                     # a child that hangs ends by it
    os._exit(0 if (ld.integrate(model, x, x) == 2 * x).all() and ld.difference(model, x, x) is not None else 1)
print(os.waitpid(child, 0)[1])
thread.join()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_a_child_forked_while_a_thread_compiles_can_compute(tmp_path):
    """It waited indefinitely for the lock of a thread that it does not have."""
    robot = Path(__file__).parents[2] / "robots/cart_pole.yaml"
    environment = os.environ | {"LIEDYN_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", FORK, robot], env=environment, capture_output=True, text=True,
                          timeout=600, check=False)
    assert done.stdout == "0\n", done.stderr


def test_compilation_that_fails_opens_the_lock(cache):
    kernel = decorators.kernel(_without_meaning)
    for _ in range(2):
        with pytest.raises(Exception, match="nothing_of_this_name"):
            kernel(np.ones(3))
    assert not global_compiler_lock.is_locked() and compile_cache._notice._depth == 0
    assert not files(cache) and not compile_cache._locks


def _without_meaning(x):
    return nothing_of_this_name(x)          # noqa: F821


def test_a_numba_that_keeps_nothing_compiles_all_the_same(cache, caplog, monkeypatch):
    """Another version of Numba may have other internals."""
    monkeypatch.delattr(compile_cache.CompileResult, "_reduce")
    assert [call(), call()] == ["compiled", "compiled"]
    assert len(caplog.records) == 1 and CodeCache(_cubed).cache_path
