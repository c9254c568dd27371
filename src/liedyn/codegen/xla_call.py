"""Calls from XLA, the compiler of JAX, to machine code and to Python: handlers of its typed foreign function interface (FFI).

The handlers depend on the binary interface of XLA, whose structures are part of its header `xla/ffi/api/c_api.h`: within a major
version, members are only added at the end. Buffers are dense arrays with the last axis first in memory.
"""
from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence

import numpy as np

MAJOR_VERSION = 0                    # of the interface that is described here
_METADATA = 1                        # type of the extension with which XLA asks for the version of a handler
_INVALID_ARGUMENT = 3                # code of an error
_NUMBER_TYPES = {11: ctypes.c_float, 12: ctypes.c_double}


class _Extension(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("type", ctypes.c_int32), ("next", ctypes.c_void_p)]


class _Version(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("extension", ctypes.c_void_p), ("major", ctypes.c_int32), ("minor", ctypes.c_int32)]


class _Metadata(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("version", _Version), ("traits", ctypes.c_uint32)]


class _MetadataExtension(ctypes.Structure):
    _fields_ = [("base", _Extension), ("metadata", ctypes.POINTER(_Metadata))]


class _Buffer(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("extension", ctypes.c_void_p), ("number_type", ctypes.c_int32),
                ("data", ctypes.c_void_p), ("rank", ctypes.c_int64), ("shape", ctypes.POINTER(ctypes.c_int64))]


class _Buffers(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("extension", ctypes.c_void_p), ("count", ctypes.c_int64), ("types", ctypes.c_void_p),
                ("items", ctypes.POINTER(ctypes.POINTER(_Buffer)))]


class _Scalar(ctypes.Structure):
    _fields_ = [("number_type", ctypes.c_int32), ("value", ctypes.POINTER(ctypes.c_int64))]


class _Attributes(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("extension", ctypes.c_void_p), ("count", ctypes.c_int64), ("types", ctypes.c_void_p),
                ("names", ctypes.c_void_p), ("items", ctypes.POINTER(ctypes.POINTER(_Scalar)))]


class _ErrorArguments(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("extension", ctypes.c_void_p), ("message", ctypes.c_char_p),
                ("code", ctypes.c_int32)]


class _Api(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("extension", ctypes.c_void_p), ("version", _Version), ("internal", ctypes.c_void_p),
                ("new_error", ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(_ErrorArguments)))]


class _CallFrame(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("extension", ctypes.POINTER(_MetadataExtension)), ("api", ctypes.POINTER(_Api)),
                ("context", ctypes.c_void_p), ("stage", ctypes.c_int32), ("arguments", _Buffers), ("results", _Buffers),
                ("attributes", _Attributes)]


HANDLER = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(_CallFrame))
_ALIGNMENT = 64                      # of a workspace, in bytes


def handler_text(address: int, n_inputs: int, n_results: int, minor: int) -> str:
    """Return LLVM text of ptr @handler(frame), which calls a function for batches (`llvm_ir.batch_text`) over the whole batch.

    address: of the function. Buffers have the batch as their first axis. The last result, after `n_results`, is the workspace,
    with 64 bytes to spare. minor: minor version of the interface of XLA, see `MAJOR_VERSION`
    """
    metadata = _Metadata.version.offset
    text = ["define ptr @handler(ptr %frame) {", *_load("extension", "%frame", _CallFrame.extension.offset, "ptr"),
            "%asks = icmp ne ptr %extension, null", "br i1 %asks, label %describe, label %compute", "describe:",
            *_load("type", "%extension", _Extension.type.offset, "i32"), f"%known = icmp eq i32 %type, {_METADATA}",
            "br i1 %known, label %version, label %end", "version:",
            *_load("metadata", "%extension", _MetadataExtension.metadata.offset, "ptr"),
            *_store("metadata", metadata + _Version.major.offset, MAJOR_VERSION),
            *_store("metadata", metadata + _Version.minor.offset, minor),
            *_store("metadata", _Metadata.traits.offset, 0), "br label %end", "compute:",
            *_load("inputs", "%frame", _CallFrame.arguments.offset + _Buffers.items.offset, "ptr"),
            *_load("results", "%frame", _CallFrame.results.offset + _Buffers.items.offset, "ptr")]
    for kind, count in ("input", n_inputs), ("result", n_results + 1):
        for k in range(count):
            text += [*_load(f"{kind}{k}", f"%{kind}s", 8 * k, "ptr"),
                     *_load(f"{kind}{k}_data", f"%{kind}{k}", _Buffer.data.offset, "ptr")]
    arrays = [f"ptr %{kind}{k}_data" for kind, count in (("input", n_inputs), ("result", n_results)) for k in range(count)]
    text += [*_load("shape", "%input0", _Buffer.shape.offset, "ptr"), *_load("states", "%shape", 0, "i64"),
             f"%place = ptrtoint ptr %result{n_results}_data to i64", f"%beyond = add i64 %place, {_ALIGNMENT - 1}",
             f"%aligned = and i64 %beyond, {-_ALIGNMENT}", "%workspace = inttoptr i64 %aligned to ptr",
             f"%function = inttoptr i64 {address} to ptr",
             f"%code = call i64 %function({', '.join(arrays)}, ptr %workspace, i64 0, i64 %states)", "br label %end"]
    return "\n".join([*text, "end:", "ret ptr null", "}"])


def _load(name: str, base: str, offset: int, kind: str) -> list[str]:
    return [f"%at_{name} = getelementptr i8, ptr {base}, i64 {offset}", f"%{name} = load {kind}, ptr %at_{name}"]


def _store(base: str, offset: int, x: int) -> list[str]:
    name = f"%at_{base}{offset}"
    return [f"{name} = getelementptr i8, ptr %{base}, i64 {offset}", f"store i32 {x}, ptr {name}"]


def python_handler(function: Callable[[int, Sequence[np.ndarray], Sequence[np.ndarray]], None], minor: int):
    """Return a handler that calls function(number, inputs, results) of arrays in the memory of XLA, an object of ctypes.

    number: the only attribute of the call, an int64. An exception becomes an error of XLA with its text.
    """
    def handle(pointer) -> int | None:
        frame = pointer.contents
        if frame.extension:
            if frame.extension.contents.base.type == _METADATA:
                version = frame.extension.contents.metadata.contents.version
                version.major, version.minor = MAJOR_VERSION, minor
                frame.extension.contents.metadata.contents.traits = 0
            return None
        try:
            function(frame.attributes.items[0].contents.value[0], _arrays(frame.arguments), _arrays(frame.results))
        except Exception as error:                                     # one that leaves the handler would be lost
            message = _ErrorArguments(ctypes.sizeof(_ErrorArguments), None, f"{type(error).__name__}: {error}".encode(),
                                      _INVALID_ARGUMENT)
            return frame.api.contents.new_error(ctypes.byref(message))
        return None
    return HANDLER(handle)


def _arrays(buffers: _Buffers) -> list[np.ndarray]:
    return [_array(buffers.items[k].contents) for k in range(buffers.count)]


def _array(buffer: _Buffer) -> np.ndarray:
    shape = tuple(buffer.shape[:buffer.rank])
    if not all(shape):
        return np.zeros(shape)
    data = ctypes.cast(buffer.data, ctypes.POINTER(_NUMBER_TYPES[buffer.number_type]))
    return np.ctypeslib.as_array(data, shape)
