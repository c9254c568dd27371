"""From Python to machine code in one crossing: a function of CPython's own calling convention, in LLVM.

It leans on where CPython's and NumPy's binary interfaces keep an array's type, data, shape, kind and flags (stable since NumPy
1.7). `works` looks at an array and says whether all is where it is expected; where not, `callable_of` goes through ctypes.
"""
from __future__ import annotations

import ctypes
from functools import cache

import numpy as np

REFUSED = 2                                          # the arrays are not as they should be: nothing was computed
_HEAD = object.__basicsize__                         # where PyArrayObject's own members begin, and where they are
_TYPE, _DATA, _RANK, _SHAPE, _DESCR, _FLAGS = (_HEAD + k for k in (-8, 0, 8, 16, 40, 48))
_ASKED = 0x1 | 0x100 | 0x400                         # C-contiguous, aligned, writeable
_FASTCALL = 0x80


def text(name: str, shapes: list[tuple[int, ...]]) -> list[str]:
    """ptr @python(self, arguments, count): calls `name` with the data of arrays of these shapes; returns what it returns, or
    REFUSED, as an int of Python. self: `_known()`."""
    out = ["define ptr @python(ptr %self, ptr %arguments, i64 %count) {", *_field("known", "%self", _DATA, "ptr"),
           *_field("type", "%known", 0, "ptr"), *_field("descr", "%known", 8, "ptr"), *_field("new_int", "%known", 16, "ptr"),
           f"%counted = icmp eq i64 %count, {len(shapes)}", "br i1 %counted, label %array0, label %refuse"]
    for k, shape in enumerate(shapes):
        x = f"%x{k}"
        out += [f"array{k}:", *_field(f"x{k}", "%arguments", 8 * k, "ptr"), *_field(f"type{k}", x, _TYPE, "ptr"),
                f"%typed{k} = icmp eq ptr %type{k}, %type", f"br i1 %typed{k}, label %look{k}, label %refuse", f"look{k}:",
                *_field(f"descr{k}", x, _DESCR, "ptr"), *_field(f"flags{k}", x, _FLAGS, "i32"),
                *_field(f"rank{k}", x, _RANK, "i32"),
                f"%right{k} = icmp eq ptr %descr{k}, %descr", f"%some{k} = and i32 %flags{k}, {_ASKED}",
                f"%all{k} = icmp eq i32 %some{k}, {_ASKED}", f"%flat{k} = icmp eq i32 %rank{k}, {len(shape)}",
                f"%a{k} = and i1 %right{k}, %all{k}", f"%b{k} = and i1 %a{k}, %flat{k}",
                f"br i1 %b{k}, label %size{k}, label %refuse", f"size{k}:", *_field(f"shape{k}", x, _SHAPE, "ptr"),
                *_field(f"data{k}", x, _DATA, "ptr")]
        good = "true"
        for j, n in enumerate(shape):
            out += [*_field(f"n{k}_{j}", f"%shape{k}", 8 * j, "i64"), f"%same{k}_{j} = icmp eq i64 %n{k}_{j}, {n}",
                    f"%good{k}_{j} = and i1 {good}, %same{k}_{j}"]
            good = f"%good{k}_{j}"
        out.append(f"br i1 {good}, label %{f'array{k + 1}' if k + 1 < len(shapes) else 'call'}, label %refuse")
    return [*out, "call:", f"%code = call i64 @{name}({', '.join(f'ptr %data{k}' for k in range(len(shapes)))})", "br label %end",
            "refuse:", "br label %end", "end:", f"%result = phi i64 [%code, %call], [{REFUSED}, %refuse]",
            "%int = call ptr %new_int(i64 %result)", "ret ptr %int", "}"]


def _field(name: str, base: str, place: int, kind: str) -> list[str]:
    return [f"%at_{name} = getelementptr i8, ptr {base}, i64 {place}", f"%{name} = load {kind}, ptr %at_{name}, align 4"]


class _MethodDef(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("method", ctypes.c_void_p), ("flags", ctypes.c_int), ("doc", ctypes.c_char_p)]


def callable_of(python: int, one: int, shapes: list[tuple[int, ...]]):
    """A callable of arrays that returns the code of @one, or REFUSED. python, one: addresses of these functions, for whose
    lifetime the caller cares."""
    if not works():
        return _by_ctypes(one, shapes)
    method = _MethodDef(b"line", python, _FASTCALL, None)
    new = ctypes.pythonapi.PyCFunction_NewEx
    new.restype, new.argtypes = ctypes.py_object, (ctypes.POINTER(_MethodDef), ctypes.py_object, ctypes.c_void_p)
    _METHODS.append(method)                          # CPython keeps its address for as long as the function lives
    return new(ctypes.byref(method), _known(), None)


_METHODS: list[_MethodDef] = []


@cache
def _known() -> np.ndarray:
    """Addresses: type of arrays, their dtype float64, what makes an int."""
    new_int = ctypes.cast(ctypes.pythonapi.PyLong_FromLong, ctypes.c_void_p).value
    return np.array([id(np.ndarray), id(np.dtype(np.float64)), new_int], dtype=np.int64)


@cache
def works() -> bool:
    """Whether an array's members are where `text` looks for them."""
    x = np.arange(6.0).reshape(2, 3)
    if ctypes.sizeof(ctypes.c_void_p) != 8:
        return False

    def member(place, kind):
        return kind.from_address(id(x) + place).value
    return (member(_TYPE, ctypes.c_void_p) == id(np.ndarray) and member(_DATA, ctypes.c_void_p) == x.ctypes.data
            and member(_RANK, ctypes.c_int32) == 2 and member(_DESCR, ctypes.c_void_p) == id(np.dtype(np.float64))
            and member(_FLAGS, ctypes.c_int32) & _ASKED == _ASKED
            and [ctypes.c_int64.from_address(member(_SHAPE, ctypes.c_void_p) + 8 * k).value for k in (0, 1)] == [2, 3])


def _by_ctypes(one: int, shapes):
    call = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * len(shapes))(one)
    float64 = np.dtype(np.float64)

    def line(*arrays):
        for x, shape in zip(arrays, shapes, strict=True):
            if type(x) is not np.ndarray or x.dtype is not float64 or x.shape != shape or not x.flags.carray:
                return REFUSED
        return call(*(x.ctypes.data for x in arrays))
    return line
