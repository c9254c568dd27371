"""Compiled functions whose stack begins on a cache line.

The system promises 16 bytes. What a kernel of eight states has no register for is kept on the stack, a line each: where the stack
happens to begin elsewhere, in three processes of four, each such number lies on two lines, and batches of forward dynamics by
loops take 9 to 29% longer. One state pays 1% for it, and is left alone."""
from numba import types

from liedyn.seam.choice import PLAIN

try:
    from numba.core.compiler import CompilerBase, DefaultPassBuilder
    from numba.core.compiler_machinery import register_pass
    from numba.core.lowering import Lower
    from numba.core.typed_passes import NativeLowering
except ImportError:
    FOUND = False
else:
    FOUND = not PLAIN and hasattr(Lower, "setup_function") and hasattr(DefaultPassBuilder, "define_nopython_pipeline")


def _of_lines(fndesc):
    """Whether a function works on lines of eight: an entry's scratch says so, else any argument."""
    kinds = dict(zip(fndesc.args, fndesc.argtypes, strict=True))
    scratch = [kinds[name] for name in ("memory", "machine") if name in kinds]
    return any(_holds_lines(kind) for kind in scratch or kinds.values())


def _holds_lines(kind):
    if isinstance(kind, types.BaseTuple):
        return any(_holds_lines(each) for each in kind)
    return isinstance(kind, types.Array) and kind.ndim == 2 and kind.dtype == types.float64


if FOUND:
    class _Lower(Lower):
        def setup_function(self, fndesc):
            super().setup_function(fndesc)
            if _of_lines(fndesc):
                attributes = self.function.attributes
                attributes.add("nounwind")        # true of all that Numba compiles; without a name in it the set is not written
                attributes.alignstack = 64

    @register_pass(mutates_CFG=True, analysis_only=False)
    class _Lowering(NativeLowering):
        _name = "lowering_on_cache_lines"

        @property
        def lowering_class(self):
            return _Lower

    class _OnCacheLines(CompilerBase):
        """Numba's passes, but for the last."""

        def define_pipelines(self):
            manager = DefaultPassBuilder.define_nopython_pipeline(self.state)
            manager.passes = [(_Lowering if each is NativeLowering else each, name) for each, name in manager.passes]
            manager.finalize()
            return [manager]


# options for `njit`
ON_CACHE_LINES = {"pipeline_class": _OnCacheLines} if FOUND else {}
