"""Compiled functions that only compiled code calls."""
from functools import partial

from numba import njit
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.untyped_passes import FixupArgs

from liedyn.seam.choice import PLAIN

_OF_DISPATCHERS, _OF_LIBRARIES = ("_insert", "_compile_for_args"), ("_optimize_final_module", "_finalize_dynamic_globals",
                                                                   "_verify_declare_only_symbols", "get_pointer_to_function")
FOUND = not PLAIN and all(hasattr(njit(lambda: None), name) for name in _OF_DISPATCHERS)
LINKED = FOUND and all(hasattr(JITCodeLibrary, name) for name in _OF_LIBRARIES)


def without_wrappers(function, **options):
    """Without the wrappers that Python would call it through, and without machine code of its own: callers take its LLVM code
    into theirs and optimize it there. Everything compiles in less than half the time. A call from Python is an error, not a
    crash."""
    if not FOUND:
        return njit(function, **options)
    dispatcher = njit(function, no_cpython_wrapper=True, no_cfunc_wrapper=True, **options)
    dispatcher._insert = lambda *overload: None          # no wrapper is there to be called
    dispatcher._compile_for_args = partial(_refuse, function.__name__)
    if LINKED:
        dispatcher._compiler.pipeline_class = _IntoCallers
    return dispatcher


def _refuse(name, *args, **kwargs):
    raise TypeError(f"{name} is called by compiled code only; in Python, call {name}.py_func")


class _Linked(JITCodeLibrary):
    """What Numba compiles a function into, as LLVM code alone. A simulation by loops has three hundred functions, of which Python
    calls five."""

    def _optimize_final_module(self):
        """Callers do it."""

    def _finalize_final_module(self):
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True

    def get_pointer_to_function(self, name):
        return 0                                         # as of a function without a wrapper

    @property
    def codegen(self):
        return _WithoutEnvironments(self._codegen)


class _WithoutEnvironments:
    """Numba's code generator, which does not write to global variables of code that is not there."""

    def __init__(self, codegen):
        self._codegen = codegen

    def __getattr__(self, name):
        return getattr(self._codegen, name)

    def set_env(self, name, env):
        pass


@register_pass(mutates_CFG=False, analysis_only=True)
class _IntoLinked(FunctionPass):
    _name = "liedyn_into_linked"

    def __init__(self):
        FunctionPass.__init__(self)

    def run_pass(self, state):
        state.library = state.targetctx.codegen().create_library(state.func_id.func_qualname)
        state.library.__class__ = _Linked
        state.library.enable_object_caching()            # as Numba does with libraries that it makes
        return False


class _IntoCallers(CompilerBase):
    """Numba's passes, into a library that callers link."""

    def define_pipelines(self):
        passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
        passes.add_pass_after(_IntoLinked, FixupArgs)
        passes.finalize()
        return [passes]
