"""Kernels that other compiled code calls without being compiled with them: a kernel is compiled at its first call.

For what few robots need: code that contains such a call compiles as fast as without it, and the kernel is compiled once for all
callers. The call reads the address of the kernel from a table. If the address is zero, Python is called to compile the kernel.
"""
from __future__ import annotations

import _thread
import ctypes
from collections.abc import Callable
from typing import Any, NamedTuple

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir
from numba import typeof, types
from numba.core import cgutils

from liedyn.numba_tools.decorators import _c_address, _intrinsic

_I64 = ir.IntType(64)
_SYMBOL = "liedyn_deferred_kernel"          # i64 (i64): the address of a kernel from its number
_MAX_KERNELS = 64


class _Deferred(NamedTuple):
    """A kernel for arguments of the types of an example."""

    function: Any
    example: Callable[[], tuple[Any, ...]]

    @property
    def signature(self) -> tuple[Any, ...]:
        """Types of the arguments."""
        return tuple(map(typeof, self.example()))


_kernels: list[_Deferred] = []
_table = np.zeros(_MAX_KERNELS, dtype=np.int64)


def defer(function: Any, *examples: Callable[[], tuple[Any, ...]]) -> None:
    """Register a kernel, which returns an integer, for the types of the arguments that each function of `examples` returns.

    The number of a kernel is part of compiled code. It must not depend on the order of imports: one module registers all.
    """
    _kernels.extend(_Deferred(function, each) for each in examples)


@_intrinsic
def call_deferred(_typing_context, function, arguments):
    """Call a kernel of `defer` with a tuple of arguments. Traces call the function itself."""
    layouts = _layouts(arguments.types)
    number = next((k for k, kernel in enumerate(_kernels)
                   if kernel.function is function.dispatcher and _layouts(kernel.signature) == layouts), None)
    if number is None:
        return None                                                # no such signature

    def codegen(context, builder, sig, args):
        look_up = cgutils.get_or_insert_function(builder.module, ir.FunctionType(_I64, [_I64]), _SYMBOL)
        kind = ir.FunctionType(_I64, [context.get_value_type(x) for x in sig.args[1]]).as_pointer()
        address = builder.call(look_up, [_I64(number)])
        return builder.call(builder.inttoptr(address, kind), cgutils.unpack_tuple(builder, args[1]))
    return types.int64(function, arguments), codegen


def _layouts(kinds: Any) -> tuple[Any, ...]:
    """Return what determines how values of Numba's types are passed: for arrays all but whether they are writable."""
    return tuple((kind.dtype, kind.ndim, kind.layout) if isinstance(kind, types.Array) else
                 _layouts(kind) if isinstance(kind, types.BaseTuple) else kind for kind in kinds)


def _compile(number: int) -> None:
    """Write the address of a kernel to the table. It is called by compiled code, to which an exception cannot return."""
    interrupted = False
    while not _table[number]:
        try:
            function, signature = _kernels[number].function, _kernels[number].signature
            if signature not in function.overloads:
                function.compile(signature)
            _table[number] = _c_address(function.overloads[signature])
        except KeyboardInterrupt:                               # after the compilation
            interrupted = True
    if interrupted:
        _thread.interrupt_main()


_callback = ctypes.CFUNCTYPE(None, ctypes.c_int64)(_compile)


def _add_look_up() -> Any:
    """Compile the function `_SYMBOL`. Return its engine, which must exist as long as the process."""
    module = ir.Module()
    function = ir.Function(module, ir.FunctionType(_I64, [_I64]), _SYMBOL)
    builder = ir.IRBuilder(function.append_basic_block())
    place = builder.gep(builder.inttoptr(_I64(_table.ctypes.data), _I64.as_pointer()), [function.args[0]])
    is_missing = builder.icmp_signed("==", builder.load(place), _I64(0))
    with builder.if_then(is_missing, likely=False):
        kind = ir.FunctionType(ir.VoidType(), [_I64]).as_pointer()
        address = ctypes.cast(_callback, ctypes.c_void_p).value
        builder.call(builder.inttoptr(_I64(address), kind), [function.args[0]])
    builder.ret(builder.load(place))
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(str(module)),
                                        llvm.Target.from_default_triple().create_target_machine())
    engine.finalize_object()
    llvm.add_symbol(_SYMBOL, engine.get_function_address(_SYMBOL))
    return engine


_engine: Callable[..., Any] = _add_look_up()
