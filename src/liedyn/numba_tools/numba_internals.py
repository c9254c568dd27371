"""Uses of internals of Numba. Each has a plain fallback, which is selected if an internal is missing, and always with
LIEDYN_NUMBA_INTERNALS=off (unset or auto: no).

| use           | internals (Numba 0.60 to 0.62)                                   | without it                               |
|---------------|------------------------------------------------------------------|------------------------------------------|
| views         | numba.np.arrayobj: `make_array`, `populate_array`                | slices compile longer                    |
| stack         | the pass `NativeLowering`, `Lower.setup_function`, and llvmlite's | kernels on eight states take 9 % (AVX2)  |
|               | `attributes.alignstack`                                          | to 29 % (AVX-512) longer                 |
| dispatchers   | `_insert`, `_compile_for_args` of dispatchers, and the options   | 2.5 times as long to compile             |
|               | `no_cpython_wrapper`, `no_cfunc_wrapper`; `JITCodeLibrary`'s     |                                          |
|               | `_optimize_final_module`, `_finalize_final_module`, the pass     |                                          |
|               | `FixupArgs`                                                      |                                          |

Other modules use internals, too: `compile_cache` Numba's `NullCache` and `CompileResult`, `decorators` `_can_compile` and
`add_overload` of dispatchers, `populate_array`, the names of C wrappers and the layout of tuples. `codegen.python_call` uses the
binary interfaces of CPython and NumPy; it checks them and uses ctypes if they differ.
"""
import os
from functools import partial

from numba import njit, types
from numba.core import cgutils
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.typing import signature  # type: ignore[attr-defined]
from numba.core.untyped_passes import FixupArgs
from numba.extending import lower_builtin, overload, type_callable

from liedyn.errors import UsageError

# Selection of the fallbacks ---------------------------------------------------------------------------------------------

_SETTING = os.environ.get("LIEDYN_NUMBA_INTERNALS") or "auto"
if _SETTING not in ("auto", "off"):
    raise UsageError(f"LIEDYN_NUMBA_INTERNALS is not known: expected auto or off, got {_SETTING[:40]!r} (unset it for auto)")
DISABLED = _SETTING == "off"


# Compiled functions that only compiled code calls -----------------------------------------------------------------------

_DISPATCHER_MEMBERS, _LIBRARY_MEMBERS = ("_insert", "_compile_for_args"), ("_optimize_final_module", "_finalize_dynamic_globals",
                                                                   "_verify_declare_only_symbols", "get_pointer_to_function")
DISPATCHERS_FOUND = not DISABLED and all(hasattr(njit(lambda: None), name) for name in _DISPATCHER_MEMBERS)
CALLERS_LINK = DISPATCHERS_FOUND and all(hasattr(JITCodeLibrary, name) for name in _LIBRARY_MEMBERS)


def njit_without_wrappers(function, **options):
    """Compile a function without wrappers for Python and without separate machine code.

    Callers include its LLVM code and optimize it there. Compilation takes less than half the time. A call from Python raises an
    error.
    """
    if not DISPATCHERS_FOUND:
        return njit(function, **options)
    dispatcher = njit(function, no_cpython_wrapper=True, no_cfunc_wrapper=True, **options)
    dispatcher._insert = lambda *overload: None          # there is no wrapper to call
    dispatcher._compile_for_args = partial(_raise_not_callable, function.__name__)
    if CALLERS_LINK:
        dispatcher._compiler.pipeline_class = _CallerLinkedCompiler
    return dispatcher


def _raise_not_callable(name, *_args, **_kwargs):
    raise TypeError(f"{name} is called by compiled code only; in Python, call {name}.py_func")


class _CallerLinkedLibrary(JITCodeLibrary):
    """Library of a compiled function that holds LLVM code only.

    A simulation with generic kernels has three hundred functions, of which Python calls five.
    """

    def _optimize_final_module(self):
        """Do nothing: callers optimize the code."""

    def _finalize_final_module(self):
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True

    def get_pointer_to_function(self, name):             # noqa: ARG002 - a method of Numba
        return 0                                         # as for a function without a wrapper

    @property
    def codegen(self):
        return _NoEnvironmentCodegen(self._codegen)


class _NoEnvironmentCodegen:
    """Numba's code generator without writes to global variables of code that does not exist."""

    def __init__(self, codegen):
        self._codegen = codegen

    def __getattr__(self, name):
        return getattr(self._codegen, name)

    def set_env(self, name, env):
        pass


@register_pass(mutates_CFG=False, analysis_only=True)
class _CallerLinkedPass(FunctionPass):
    _name = "liedyn_into_linked"

    def __init__(self):
        FunctionPass.__init__(self)

    def run_pass(self, state):
        state.library = state.targetctx.codegen().create_library(state.func_id.func_qualname)
        state.library.__class__ = _CallerLinkedLibrary
        state.library.enable_object_caching()            # as Numba does for its libraries
        return False


class _CallerLinkedCompiler(CompilerBase):
    """Numba's passes, into a library that callers link."""

    def define_pipelines(self):
        passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
        passes.add_pass_after(_CallerLinkedPass, FixupArgs)
        passes.finalize()
        return [passes]


# Compiled functions whose stack begins on a cache line ------------------------------------------------------------------

# The system guarantees an alignment of 16 bytes. A kernel of eight states spills registers to the stack, one cache line each.
# Without alignment, in three processes of four, each spilled register lies on two cache lines, and batches of forward dynamics
# with generic kernels take 9 to 29% longer. Code for one state would take 1% longer with alignment and does without.

try:
    from numba.core.lowering import Lower
    from numba.core.typed_passes import NativeLowering
except ImportError:
    STACK_FOUND = False
else:
    STACK_FOUND = not DISABLED and hasattr(Lower, "setup_function") and hasattr(DefaultPassBuilder, "define_nopython_pipeline")


def _uses_simd_blocks(fndesc):
    """Return whether a function works on blocks of eight states, by the type of its workspace, else of any argument."""
    kinds = dict(zip(fndesc.args, fndesc.argtypes, strict=True))
    workspace = [kinds[name] for name in ("memory", "machine") if name in kinds]
    return any(_contains_simd_blocks(kind) for kind in workspace or kinds.values())


def _contains_simd_blocks(kind):
    if isinstance(kind, types.BaseTuple):
        return any(_contains_simd_blocks(each) for each in kind)
    return isinstance(kind, types.Array) and kind.ndim == 2 and kind.dtype == types.float64


if STACK_FOUND:
    class _Lower(Lower):
        def setup_function(self, fndesc):
            super().setup_function(fndesc)
            if _uses_simd_blocks(fndesc):
                attributes = self.function.attributes
                attributes.add("nounwind")        # true for all code of Numba; an empty set of attributes is not written
                attributes.alignstack = 64

    @register_pass(mutates_CFG=True, analysis_only=False)
    class _Lowering(NativeLowering):
        _name = "lowering_on_cache_lines"

        @property
        def lowering_class(self):
            return _Lower

    class _AlignedStackCompiler(CompilerBase):
        """Numba's passes, but for the last."""

        def define_pipelines(self):
            manager = DefaultPassBuilder.define_nopython_pipeline(self.state)
            manager.passes = [(_Lowering if each is NativeLowering else each, name) for each, name in manager.passes]
            manager.finalize()
            return [manager]


# options for `njit`
ALIGNED_STACK = {"pipeline_class": _AlignedStackCompiler} if STACK_FOUND else {}


# Views of parts of an array in compiled code: slices are calls, which take longer to compile ----------------------------

try:
    from numba.np.arrayobj import make_array, populate_array
except ImportError:
    VIEWS_FOUND = False
else:
    VIEWS_FOUND = not DISABLED


def split_workspace(buffer, sizes):
    """Return consecutive views of these sizes of a C-contiguous array along its first axis, and a view of the rest.

    The size of the array is not checked.
    """
    views, first = (), 0
    for size in sizes:
        views, first = (*views, buffer[first:first + size]), first + size
    return (*views, buffer[first:])


if VIEWS_FOUND:
    @type_callable(split_workspace)
    def _typed(_context):
        def typer(buffer, sizes):
            if not (isinstance(buffer, types.Array) and buffer.layout == "C"):
                return None
            return signature(types.UniTuple(buffer, len(sizes) + 1), buffer, types.UniTuple(types.intp, len(sizes)))
        return typer

    @lower_builtin(split_workspace, types.Array, types.UniTuple)
    def _split_workspace(context, builder, sig, args):
        whole = make_array(sig.args[0])(context, builder, args[0])
        shape, strides = (cgutils.unpack_tuple(builder, lengths) for lengths in (whole.shape, whole.strides))
        data, remaining, views = whole.data, shape[0], []
        for size in [*cgutils.unpack_tuple(builder, args[1]), None]:
            count = remaining if size is None else size
            view, n_items = make_array(sig.args[0])(context, builder), count
            for n in shape[1:]:
                n_items = builder.mul(n_items, n)
            populate_array(view, data=data, shape=[count, *shape[1:]], strides=strides, itemsize=whole.itemsize,
                           meminfo=whole.meminfo, parent=whole.parent)
            views.append(view._getvalue())
            data, remaining = builder.gep(data, [n_items]), builder.sub(remaining, count)
        return context.make_tuple(builder, sig.return_type, views)
else:
    @overload(split_workspace)
    def _split_workspace(buffer, sizes):                 # noqa: ARG001 - Numba requires the names of `split_workspace`
        if not len(sizes):
            return lambda buffer, sizes: (buffer,)
        return lambda buffer, sizes: (buffer[:sizes[0]], *split_workspace(buffer[sizes[0]:], sizes[1:]))
