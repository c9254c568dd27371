"""Machine code of LLVM text, by the llvmlite that Numba brings."""
from __future__ import annotations

import os
from functools import cache

import llvmlite.binding as llvm


def _machine():
    """A new one for each use: an engine owns its own."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    name, features = processor()
    return llvm.Target.from_default_triple().create_target_machine(cpu=name, features=features, opt=2)


@cache
def processor() -> tuple[str, str]:
    """Name and features that code is made for: this machine's, or what NUMBA_CPU_NAME and NUMBA_CPU_FEATURES say."""
    name = os.environ.get("NUMBA_CPU_NAME")
    features = os.environ.get("NUMBA_CPU_FEATURES", "" if name else None)
    return name or llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten() if features is None else features


@cache
def supported() -> bool:
    """Whether this LLVM reads text with pointers that name no type: that of Numba 0.60 does not, and loops do all the work."""
    try:
        llvm.parse_assembly("define void @f(ptr %x) {\nret void\n}", llvm.create_context())
    except RuntimeError:
        return False
    return True


def object_code(text: str) -> bytes:
    module = llvm.parse_assembly(text, llvm.create_context())         # which ends with it; the global one keeps every constant
    module.verify()
    return _machine().emit_object(module)


def loaded(code: bytes):
    """An engine that holds the functions of an object file."""
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _machine())
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return engine
