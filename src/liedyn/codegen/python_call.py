"""Calls from Python to machine code with CPython's calling convention, in LLVM text.

The text depends on the binary interfaces of CPython and NumPy: the places of an array's type, data, shape, kind and flags (stable
since NumPy 1.7), and NumPy's table of C functions, which allocates a result in half the time of `np.empty`. `is_supported` checks
these places on an array; if they differ, `make_callable` uses ctypes.
"""
from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache

import numpy as np

INVALID_ARGUMENTS = 2                        # wrong type, shape or layout of arrays: nothing was computed
_HEAD = object.__basicsize__                 # offset of the first member of PyArrayObject
_TYPE, _DATA, _RANK, _SHAPE, _DESCR, _FLAGS = (_HEAD + k for k in (-8, 0, 8, 16, 40, 48))
_READABLE = 0x1 | 0x100                      # C-contiguous, aligned
_WRITABLE = _READABLE | 0x400                # … and writeable
_FASTCALL = 0x80
_NEW_ARRAY, _DOUBLE = 93, 12                 # PyArray_New in NumPy's table of functions, and the number of float64
# Objects and functions of Python for machine code, in the order of `_context`.
_CONTEXT_FIELDS = ("type", "descr", "single_descr", "new_int", "none", "new_array", "increment_references",
                   "decrement_references", "new_tuple", "set_item", "as_integer", "release_lock", "take_lock")


def wrapper_text(name: str, shapes: list[tuple[int, ...]], output_only: list[bool], has_results: list[bool]) -> list[str]:
    """Return ptr @python(self, arguments, count), which calls `name` with the data of arrays of these shapes.

    With all arrays, it returns the result of `name`, or INVALID_ARGUMENTS, as a Python int. Without those that are `output_only`,
    it creates and returns them, one array or a tuple; None if an array is not valid or `name` does not return 0. Arrays that are
    not `has_results` may be read-only. Each array may have a leading axis of length 1, a batch of one state; results have it if
    an argument does. self: `_context()`.
    """
    input_places, output_places = ([k for k, flag in enumerate(output_only) if flag is is_output] for is_output in (False, True))
    required_flags = [_WRITABLE if flag else _READABLE for flag in has_results]
    return [*_head(), f"%all = icmp eq i64 %count, {len(shapes)}", "br i1 %all, label %w_0, label %some",
            *_argument_checks("w", range(len(shapes)), shapes, output_only, required_flags, "refuse"),
            "w_good:", *_call_text("code", name, "w", shapes), "br label %end",
            "refuse:", "br label %end",
            "end:", f"%result = phi i64 [%code, %w_good], [{INVALID_ARGUMENTS}, %refuse]",
            "%int = call ptr %new_int(i64 %result)", "ret ptr %int",
            "some:", f"%inputs = icmp eq i64 %count, {len(input_places) if any(output_only) else -1}",
            "br i1 %inputs, label %n_0, label %nothing",
            *_argument_checks("n", input_places, shapes, output_only, required_flags, "nothing"),
            "n_good:", *_allocations(output_places, shapes),
            "make:", *_call_text("made", name, "n", shapes), "%well = icmp eq i64 %made, 0",
            "br i1 %well, label %give, label %release", *_return_new_arrays(output_places),
            "nothing:", "call void %increment_references(ptr %none)", "ret ptr %none", "failed:", "ret ptr null", "}"]


def batch_wrapper_text(name: str, sizes: list[int], has_results: list[bool], single: bool) -> list[str]:
    """Return ptr @python(self, arguments, count), which calls `name` for states of a batch, without the interpreter lock.

    Its arguments are arrays (N, size) of float64, or of float32 if `single`, an array that is the workspace, and the first state
    and the state after the last one, as Python ints. It returns the result of `name`, or INVALID_ARGUMENTS, as a Python int.
    Arrays that are not `has_results` may be read-only. It does not check the workspace.
    """
    shapes, required_flags = [(size,) for size in sizes], [_WRITABLE if flag else _READABLE for flag in has_results]
    arrays = ", ".join(f"ptr %w_data{k}" for k in range(len(sizes)))
    ends = [line for k, end in enumerate(("first", "last"), len(sizes) + 1)
            for line in (*_field(f"{end}_int", "%arguments", 8 * k, "ptr"), f"%{end} = call i64 %as_integer(ptr %{end}_int)")]
    return [*_head(), f"%all = icmp eq i64 %count, {len(sizes) + 3}", "br i1 %all, label %w_0, label %refuse",
            *_argument_checks("w", range(len(sizes)), shapes, [False] * len(sizes), required_flags, "refuse",
                              "%single_descr" if single else "%descr", "%states"),
            "w_good:", *ends, "%not_before = icmp sge i64 %first, 0", "%not_beyond = icmp sle i64 %last, %states",
            "%within = and i1 %not_before, %not_beyond", "br i1 %within, label %compute, label %refuse", "compute:",
            *_field("buffer", "%arguments", 8 * len(sizes), "ptr"), *_field("workspace", "%buffer", _DATA, "ptr"),
            "%lock = call ptr %release_lock()",
            f"%code = call i64 @{name}({arrays}, ptr %workspace, i64 %first, i64 %last)",
            "call void %take_lock(ptr %lock)", "br label %end", "refuse:", "br label %end",
            "end:", f"%result = phi i64 [%code, %compute], [{INVALID_ARGUMENTS}, %refuse]",
            "%int = call ptr %new_int(i64 %result)", "ret ptr %int", "}"]


def _head() -> list[str]:
    out = ["define ptr @python(ptr %self, ptr %arguments, i64 %count) {", *_field("context", "%self", _DATA, "ptr")]
    for k, word in enumerate(_CONTEXT_FIELDS):
        out += _field(word, "%context", 8 * k, "ptr")
    return out


def _call_text(code: str, name: str, prefix: str, shapes) -> list[str]:
    return [f"%{code} = call i64 @{name}({', '.join(f'ptr %{prefix}_data{k}' for k in range(len(shapes)))})"]


def _argument_checks(prefix: str, argument_places, shapes, output_only: list[bool], required_flags: list[int],
                     refuse: str, descr: str = "%descr", states: str = "") -> list[str]:
    """Return checks that arguments are contiguous arrays of these shapes; then it continues at `prefix`_good.

    %`prefix`_batch: whether an input has the leading axis of a batch of one; then all outputs must have it.
    descr: type of their numbers; states: name of the length of the leading axis that all arrays have, if it may be any
    """
    out, batch, same = [], "false", "true"
    for place, k in enumerate(argument_places):
        x, rank = f"{prefix}_{k}", len(shapes[k])
        out += [f"{prefix}_{place}:", *_field(f"{x}_x", "%arguments", 8 * place, "ptr"),
                *_field(f"{x}_type", f"%{x}_x", _TYPE, "ptr"),
                f"%{x}_typed = icmp eq ptr %{x}_type, %type", f"br i1 %{x}_typed, label %{x}_look, label %{refuse}", f"{x}_look:",
                *_field(f"{x}_descr", f"%{x}_x", _DESCR, "ptr"), *_field(f"{x}_flags", f"%{x}_x", _FLAGS, "i32"),
                *_field(f"{x}_rank", f"%{x}_x", _RANK, "i32"),
                f"%{x}_right = icmp eq ptr %{x}_descr, {descr}", f"%{x}_some = and i32 %{x}_flags, {required_flags[k]}",
                f"%{x}_all = icmp eq i32 %{x}_some, {required_flags[k]}",
                f"%{x}_more = sub i32 %{x}_rank, {rank}", f"%{x}_flat = icmp {'eq' if states else 'ule'} i32 %{x}_more, 1",
                f"%{x}_a = and i1 %{x}_right, %{x}_all", f"%{x}_b = and i1 %{x}_a, %{x}_flat",
                f"br i1 %{x}_b, label %{x}_size, label %{refuse}", f"{x}_size:", *_field(f"{x}_sizes", f"%{x}_x", _SHAPE, "ptr"),
                *_field(f"{prefix}_data{k}", f"%{x}_x", _DATA, "ptr"),
                f"%{x}_batch = icmp ne i32 %{x}_more, 0", f"%{x}_shape = getelementptr i64, ptr %{x}_sizes, i32 %{x}_more",
                f"%{x}_where = select i1 %{x}_batch, ptr %{x}_sizes, ptr %context",            # a scalar has no shape
                *_field(f"{x}_first", f"%{x}_where", 0, "i64"),
                *([f"{states} = add i64 %{x}_first, 0"] if states and not place else []),
                f"%{x}_one = icmp eq i64 %{x}_first, {states or 1}",
                f"%{x}_lead = select i1 %{x}_batch, i1 %{x}_one, i1 true"]
        good = f"%{x}_lead"
        for j, n in enumerate(shapes[k]):
            out += [*_field(f"{x}_n{j}", f"%{x}_shape", 8 * j, "i64"), f"%{x}_same{j} = icmp eq i64 %{x}_n{j}, {n}",
                    f"%{x}_good{j} = and i1 {good}, %{x}_same{j}"]
            good = f"%{x}_good{j}"
        if not output_only[k]:
            out.append(f"%{x}_any = or i1 {batch}, %{x}_batch")
            batch = f"%{x}_any"
        out.append(f"br i1 {good}, label %{prefix}_{place + 1}, label %{refuse}")
    out += [f"{prefix}_{len(argument_places)}:", f"%{prefix}_batch = or i1 {batch}, false"]
    for k in argument_places:
        if required_flags[k] == _WRITABLE:
            x = f"{prefix}_{k}"
            out += [f"%{x}_alike = icmp eq i1 %{x}_batch, %{prefix}_batch", f"%{x}_consistent = and i1 {same}, %{x}_alike"]
            same = f"%{x}_consistent"
    return [*out, f"br i1 {same}, label %{prefix}_good, label %{refuse}"]


def _allocations(new_places, shapes) -> list[str]:
    """Return the allocation of new arrays. A failure raises in Python; the arrays that were allocated before are leaked."""
    out = ["%lead = zext i1 %n_batch to i32", "%skipped = sub i32 1, %lead"] if new_places else []
    for place, k in enumerate(new_places):
        rank = len(shapes[k])
        out.append(f"%new{k}_all = alloca [{rank + 1} x i64]")
        for j, n in enumerate((1, *shapes[k])):
            out += [f"%new{k}_n{j} = getelementptr i8, ptr %new{k}_all, i64 {8 * j}", f"store i64 {n}, ptr %new{k}_n{j}"]
        next_label = f"new{place + 1}" if place + 1 < len(new_places) else "make"
        out += [f"%new{k}_rank = add i32 {rank}, %lead", f"%new{k}_shape = getelementptr i64, ptr %new{k}_all, i32 %skipped",
                f"%new{k} = call ptr %new_array(ptr %type, i32 %new{k}_rank, ptr %new{k}_shape, i32 {_DOUBLE}, ptr null, "
                "ptr null, i32 0, i32 0, ptr null)", f"%new{k}_failed = icmp eq ptr %new{k}, null",
                f"br i1 %new{k}_failed, label %failed, label %new{k}_made", f"new{k}_made:",
                *_field(f"n_data{k}", f"%new{k}", _DATA, "ptr"), f"br label %{next_label}"]
        if place + 1 < len(new_places):
            out.append(f"{next_label}:")
    return out or ["br label %make"]


def _return_new_arrays(new_places) -> list[str]:
    """Return the code that returns the new arrays."""
    releases = [f"call void %decrement_references(ptr %new{k})" for k in new_places]
    if len(new_places) == 1:
        return ["give:", f"ret ptr %new{new_places[0]}", "release:", *releases, "br label %nothing"]
    puts = [f"%put{k} = call i32 %set_item(ptr %tuple, i64 {place}, ptr %new{k})" for place, k in enumerate(new_places)]
    return ["give:", f"%tuple = call ptr %new_tuple(i64 {len(new_places)})", "%no_tuple = icmp eq ptr %tuple, null",
            "br i1 %no_tuple, label %failed, label %fill", "fill:", *puts, "ret ptr %tuple",
            "release:", *releases, "br label %nothing"]


def _field(name: str, base: str, place: int, kind: str) -> list[str]:
    return [f"%at_{name} = getelementptr i8, ptr {base}, i64 {place}", f"%{name} = load {kind}, ptr %at_{name}, align 4"]


class _MethodDef(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("method", ctypes.c_void_p), ("flags", ctypes.c_int), ("doc", ctypes.c_char_p)]


def make_callable(python: int, address: int, shapes: list[tuple[int, ...]], output_only: Sequence[bool],
                  has_results: Sequence[bool]):
    """Return `wrapper_text` as a callable. python, address: addresses of these functions; the caller keeps them alive."""
    return _new_callable(python) if is_supported() else _ctypes_callable(address, shapes, output_only, has_results)


def make_batch_callable(python: int):
    """Return `batch_wrapper_text` as a callable, or None if arrays are not as it expects."""
    return _new_callable(python) if is_supported() else None


def _new_callable(python: int):
    method = _MethodDef(b"generated", python, _FASTCALL, None)
    new = ctypes.pythonapi.PyCFunction_NewEx
    new.restype, new.argtypes = ctypes.py_object, (ctypes.POINTER(_MethodDef), ctypes.py_object, ctypes.c_void_p)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(method))        # never freed: at exit, CPython reads it again
    return new(ctypes.byref(method), _context(), None)


@cache
def _context() -> np.ndarray:
    """Return the addresses of `_CONTEXT_FIELDS`: type of arrays, dtype float64, None, and functions of Python and NumPy."""
    python = {name: ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value
              for name in ("PyLong_FromLong", "Py_IncRef", "Py_DecRef", "PyTuple_New", "PyTuple_SetItem", "PyLong_AsLongLong",
                           "PyEval_SaveThread", "PyEval_RestoreThread")}
    return np.array([id(np.ndarray), id(np.dtype(np.float64)), id(np.dtype(np.float32)), python["PyLong_FromLong"], id(None),
                     _new_array(), python["Py_IncRef"], python["Py_DecRef"], python["PyTuple_New"], python["PyTuple_SetItem"],
                     python["PyLong_AsLongLong"], python["PyEval_SaveThread"], python["PyEval_RestoreThread"]], dtype=np.int64)


def _new_array() -> int:
    """Return the address of NumPy's PyArray_New."""
    try:
        from numpy._core import _multiarray_umath as core  # type: ignore[attr-defined]  # not in NumPy's stubs
    except ImportError:                                        # before NumPy 2
        from numpy.core import _multiarray_umath as core
    table = ctypes.pythonapi.PyCapsule_GetPointer
    table.restype, table.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    return ctypes.c_size_t.from_address(table(core._ARRAY_API, None) + 8 * _NEW_ARRAY).value


@cache
def is_supported() -> bool:
    """Return whether members of an array are where `wrapper_text` expects them, and NumPy allocates arrays as expected."""
    x = np.arange(6.0).reshape(2, 3)
    if ctypes.sizeof(ctypes.c_void_p) != 8:
        return False

    def member(place, kind):
        return kind.from_address(id(x) + place).value
    return (member(_TYPE, ctypes.c_void_p) == id(np.ndarray) and member(_DATA, ctypes.c_void_p) == x.ctypes.data
            and member(_RANK, ctypes.c_int32) == 2 and member(_DESCR, ctypes.c_void_p) == id(np.dtype(np.float64))
            and member(_FLAGS, ctypes.c_int32) & _WRITABLE == _WRITABLE
            and [ctypes.c_int64.from_address(member(_SHAPE, ctypes.c_void_p) + 8 * k).value for k in (0, 1)] == [2, 3]
            and _allocation_works())


def _allocation_works() -> bool:
    new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object, ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p,
                            ctypes.c_void_p, ctypes.c_int, ctypes.c_int, ctypes.c_void_p)(_new_array())
    shape = (ctypes.c_ssize_t * 2)(2, 3)                       # not a temporary array, which may be freed before the call
    x = new(np.ndarray, 2, ctypes.addressof(shape), _DOUBLE, None, None, 0, 0, None)
    return type(x) is np.ndarray and x.dtype is np.dtype(np.float64) and x.shape == (2, 3) and x.flags.carray and x.flags.owndata


def _ctypes_callable(address: int, shapes, output_only, has_results):
    call = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * len(shapes))(address)
    float64, inputs = np.dtype(np.float64), len(output_only) - sum(output_only)

    def generated(*arrays):
        new = any(output_only) and len(arrays) == inputs
        if not new and len(arrays) != len(shapes):
            return None
        arguments, places = iter(arrays), [new and is_output for is_output in output_only]
        arrays = [None if place else next(arguments) for place in places]
        for x, shape in zip(arrays, shapes, strict=True):
            if x is not None and not (type(x) is np.ndarray and x.dtype is float64 and x.flags.carray
                                      and x.shape in (shape, (1, *shape))):
                return None if new else INVALID_ARGUMENTS
        read = [(x, shape) for x, shape, is_output in zip(arrays, shapes, output_only, strict=True) if not is_output]
        lead = (1,) if any(x.shape != shape for x, shape in read) else ()
        arrays = [np.empty((*lead, *shape)) if x is None else x for x, shape in zip(arrays, shapes, strict=True)]
        if any(x.shape != (*lead, *shape) for x, shape, flag in zip(arrays, shapes, has_results, strict=True) if flag):
            return None if new else INVALID_ARGUMENTS
        code = call(*(x.ctypes.data for x in arrays))
        if not new:
            return code
        results = tuple(x for x, is_output in zip(arrays, output_only, strict=True) if is_output)
        return None if code else results if len(results) > 1 else results[0]
    return generated
