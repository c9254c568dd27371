"""WebAssembly of traces, written as bytes: functions over numbers in the memory of a module. It needs no toolchain.

The binary format is that of the WebAssembly Core Specification 1.0, sections 5.3 to 5.5.
"""
from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

from liedyn.codegen.operations import LIBM, OPERATIONS
from liedyn.codegen.targets.target import Target
from liedyn.codegen.trace import STATUS, Array, GeneratedProgram, Trace, single_constant

IMPORTS = "math"                        # module of the functions of the C library that a module imports, such as math.exp
MEMORY = "memory"                       # name of the exported memory
_PAGE = 65_536
_I32 = b"\x7f"
_GET, _SET, _CALL, _DROP, _SELECT, _END = b"\x20", b"\x21", b"\x10", b"\x1a", b"\x1b", b"\x0b"
_I32_CONST, _I32_AND, _I32_OR, _I32_IS_ZERO = b"\x41", b"\x71", b"\x72", b"\x45"
_OPCODES = {"fadd": 0xa0, "fsub": 0xa1, "fmul": 0xa2, "fdiv": 0xa3, "quotient": 0xa3, "fneg": 0x9a, "fabs": 0x99, "sqrt": 0x9f,
            "floor": 0x9c}              # of f64; those of f32 are smaller by 14


class NumberType(NamedTuple):
    """A type of numbers: its size in bytes, its instructions, and those of integers of the same size, on its bits."""

    size: int
    form: str
    kind: bytes
    constant: bytes
    load: bytes
    store: bytes
    less: bytes
    equal: bytes
    to_i32: bytes
    to_bits: bytes
    from_bits: bytes
    bits_constant: bytes
    bits_add: bytes
    bits_and: bytes
    bits_xor: bytes
    bits_shift: bytes
    bits_to_i32: bytes
    opcodes: Mapping[str, bytes]


FLOAT64 = NumberType(8, "<d", b"\x7c", b"\x44", b"\x2b\x03", b"\x39\x03", b"\x63", b"\x61", b"\xaa", b"\xbd", b"\xbf", b"\x42",
                  b"\x7c", b"\x83", b"\x85", b"\x86", b"\xa7", {name: bytes([x]) for name, x in _OPCODES.items()})
FLOAT32 = NumberType(4, "<f", b"\x7d", b"\x43", b"\x2a\x02", b"\x38\x02", b"\x5d", b"\x5b", b"\xa8", b"\xbc", b"\xbe", b"\x41",
                  b"\x6a", b"\x71", b"\x73", b"\x74", b"", {name: bytes([x - 14]) for name, x in _OPCODES.items()})
_MOST_INLINE = 48                       # bytes of an expression that is used once and stays on the stack


def unsigned(n: int) -> bytes:
    """Return an unsigned integer in LEB128."""
    out = bytearray()
    while True:
        n, low = n >> 7, n & 127
        out.append(low | (128 if n else 0))
        if not n:
            return bytes(out)


def signed(n: int) -> bytes:
    """Return a signed integer in LEB128."""
    out = bytearray()
    while True:
        n, low = n >> 7, n & 127
        is_last = n == (-1 if low & 64 else 0)
        out.append(low | (0 if is_last else 128))
        if is_last:
            return bytes(out)


def _vector(items: Sequence[bytes]) -> bytes:
    return unsigned(len(items)) + b"".join(items)


def _section(kind: int, items: Sequence[bytes]) -> bytes:
    body = _vector(items)
    return bytes([kind]) + unsigned(len(body)) + body


def _name(text: str) -> bytes:
    data = text.encode()
    return unsigned(len(data)) + data


def _joined(opcode: bytes):
    return lambda *operands: b"".join(operands) + opcode


def _quadrant(x: NumberType, turns: bytes, even: bytes, odd: bytes, shift: int) -> bytes:
    """Return instructions for `operations.quadrant`: odd quarter turns select `odd`, two and three change the sign."""
    def integer(n: int) -> bytes:
        return x.bits_constant + signed(n)
    bits = turns + x.to_bits
    chosen = odd + even + bits + integer(1) + x.bits_and + x.bits_to_i32 + _SELECT + x.to_bits
    moved = bits + (integer(shift) + x.bits_add if shift else b"")
    return chosen + moved + integer(2) + x.bits_and + integer(8 * x.size - 2) + x.bits_shift + x.bits_xor + x.from_bits


class WasmExpressions(Target):
    """Operations as instructions that leave their result on the stack.

    pointers  local variables that hold the addresses of the arrays
    imported  indices of the imported functions
    """

    libm = False

    def __init__(self, trace: Trace, pointers: Mapping[str, int], imported: Mapping[str, int]):
        super().__init__()
        self.trace, self.pointers, self.number_type = trace, pointers, number_type_of(trace)
        self.table = {**{name: _joined(opcode) for name, opcode in self.number_type.opcodes.items()},
                      **{name: _joined(_CALL + unsigned(index)) for name, index in imported.items()},
                      "less": lambda a, b, yes, no: yes + no + a + b + self.number_type.less + _SELECT,
                      "quadrant_sine": lambda turns, s, c: _quadrant(self.number_type, turns, s, c, 0),
                      "quadrant_cosine": lambda turns, s, c: _quadrant(self.number_type, turns, c, s, 1)}
        self.code, self.n_locals = bytearray(), len(pointers)
        self._uses, self._free = self._count_uses(), list[int]()
        self._local: dict[int, int] = {}

    def _count_uses(self) -> dict[int, int]:
        trace, uses = self.trace, dict[int, int]()
        for k in trace.live_operations:
            name, *operands = trace.ops.operations[k]
            repeated = 2 if name.startswith("quadrant") else 1             # `turns` appears twice
            for x in operands if name != "input" else ():
                if isinstance(x, int):
                    uses[x] = uses.get(x, 0) + repeated
        for k in self._ends:
            uses[k] = uses.get(k, 0) + 2
        return uses

    @property
    def _ends(self) -> set[int]:
        """Operations that are read at the end: results and checks."""
        trace = self.trace
        return {x for x, *_ in trace.outputs if isinstance(x, int)} | {x.k for x in trace.finite} | {x.k for x, _ in trace.bounds}

    def constant(self, x: float) -> bytes:
        """Return the instruction for a constant."""
        return self.number_type.constant + struct.pack(self.number_type.form, single_constant(x) if self.trace.ops.single else x)

    def input(self, array: str, i: int) -> bytes:
        """Return the instructions that read number i of an array."""
        return _GET + unsigned(self.pointers[array]) + self.number_type.load + unsigned(self.number_type.size * i)

    def named(self, k: int, expression: bytes) -> bytes:
        """Return what puts operation k on the stack. Append the instructions that store it, unless it is short and used once."""
        if self._uses.get(k, 0) == 1 and len(expression) <= _MOST_INLINE:
            return expression
        local = self._free.pop() if self._free else self._new_local()
        self._local[k] = local
        self.code += expression + _SET + unsigned(local)
        return _GET + unsigned(local)

    def _new_local(self) -> int:
        self.n_locals += 1
        return self.n_locals - 1

    def function(self) -> bytes:
        """Return the code of the function: it returns 0, or 1 if a number is not finite or out of bounds."""
        trace, ops, kind = self.trace, self.trace.ops, self.number_type
        last = self._last_uses()
        for k, _ in self.walk(ops, trace.live_operations):
            self._free += [self._local.pop(x) for x in last.get(k, ()) if x in self._local]
        for result, name, i in trace.outputs:
            self.code += _GET + unsigned(self.pointers[name]) + self.value(result) + kind.store + unsigned(kind.size * i)
        self.code += self.constant(0.0)
        for x in trace.finite:
            self.code += self.value(x.k) + self.constant(0.0) + kind.opcodes["fmul"] + kind.opcodes["fadd"]
        self.code += self.constant(0.0) + kind.equal
        for x, bound in trace.bounds:
            self.code += self.value(x.k) + self.constant(bound) + kind.less + _I32_AND
        self.code += _I32_IS_ZERO + _END
        count = self.n_locals - len(self.pointers)
        declared = _vector([unsigned(count) + kind.kind] if count else [])
        return declared + bytes(self.code)

    def _last_uses(self) -> dict[int, list[int]]:
        """Return for each operation the operations that are not used after it, also through expressions on the stack."""
        trace, last = self.trace, dict[int, int]()
        inline: dict[int, list[int]] = {}
        for k in trace.live_operations:
            operands = trace.ops.operand_indices(k)
            reached = [y for x in operands for y in (x, *inline.get(x, ()))]
            inline[k] = reached if self._uses.get(k, 0) == 1 else []
            last |= dict.fromkeys(reached, k)
        ends, at = self._ends, dict[int, list[int]]()
        for x, k in last.items():
            if x not in ends:
                at.setdefault(k, []).append(x)
        return at


def number_type_of(trace: Trace) -> NumberType:
    """Return the type of numbers of a trace."""
    return FLOAT32 if trace.ops.single else FLOAT64


class WasmModule:
    """A module with functions for one state: name() -> code, over arrays at fixed places in its memory.

    All programs have the same type of numbers.

    programs  by name; a function returns the number in the array `code` of its program, or 0 or 1 (see `WasmExpressions`)
    places    address of each array [bytes]; programs share arrays of the same name
    sizes     numbers of each array
    content   the module
    """

    def __init__(self, programs: Mapping[str, GeneratedProgram]):
        self.programs, self.number_type = programs, number_type_of(next(iter(programs.values())).traces[0])
        self.sizes: dict[str, int] = {}
        for program in programs.values():
            for array in program.arrays:
                self.sizes[array.name] = max(self.sizes.get(array.name, 0), array.size)
        self.places, at = self._addresses(self.sizes, 0)
        inner = {(name, renamed.get(x.name, x.name)): x.size for name, program in programs.items()
                 for trace, renamed in program.calls for x in trace.arrays if renamed.get(x.name, x.name) not in self.sizes}
        self._inner, self.size = self._addresses(inner, at)
        self.content = self._module()

    def _module(self) -> bytes:
        traces = [(name, trace) for name, program in self.programs.items() for trace in program.traces]
        used = {trace.ops.operations[k][0] for _, trace in traces for k in trace.live_operations}
        imported = {name: index for index, name in enumerate(name for name in LIBM if name in used and name not in _OPCODES)}
        kind = self.number_type.kind
        types = [b"\x60" + _vector([kind] * n) + _vector([kind]) for n in (1, 2)] + [b"\x60" + _vector([]) + _vector([_I32])]
        imports = [_name(IMPORTS) + _name(name) + b"\x00" + unsigned(OPERATIONS[name].arity - 1) for name in imported]
        functions, bodies, index = list[bytes](), list[bytes](), dict[tuple[str, int], int]()
        for name, trace in traces:
            arrays = _used(trace)
            form = b"\x60" + _vector([_I32] * len(arrays)) + _vector([_I32])
            if form not in types:
                types.append(form)
            index[name, id(trace)] = len(imported) + len(functions)
            functions.append(unsigned(types.index(form)))
            bodies.append(WasmExpressions(trace, {x.name: i for i, x in enumerate(arrays)}, imported).function())
        exports = [_name(MEMORY) + b"\x02\x00"]
        for name, program in self.programs.items():
            exports.append(_name(name) + b"\x00" + unsigned(len(imported) + len(functions)))
            functions.append(unsigned(2))
            bodies.append(self._entry(name, program, index))
        pages = -(-self.size // _PAGE) or 1
        return (b"\0asm" + struct.pack("<I", 1) + _section(1, types) + (_section(2, imports) if imports else b"")
                + _section(3, functions) + _section(5, [b"\x00" + unsigned(pages)]) + _section(7, exports)
                + _section(10, [unsigned(len(body)) + body for body in bodies]))

    def _entry(self, name: str, program: GeneratedProgram, index: Mapping[tuple[str, int], int]) -> bytes:
        """Return the code of the exported function of a program."""
        code, has_code = _vector([]), any(x.name == "code" for x in program.arrays)
        for number, (trace, renamed) in enumerate(program.calls):
            for array in _used(trace):
                passed = renamed.get(array.name, array.name)
                code += _I32_CONST + signed(self._inner[name, passed] if (name, passed) in self._inner else self.places[passed])
            code += _CALL + unsigned(index[name, id(trace)])
            code += _DROP if has_code or number < len(program.calls) - 1 else b""
        if has_code:
            code += _I32_CONST + signed(self.places["code"]) + self.number_type.load + unsigned(0) + self.number_type.to_i32
        elif STATUS in self.sizes:                         # 1 - status
            code += _I32_CONST + signed(self.places[STATUS]) + self.number_type.load + unsigned(0) + self.number_type.to_i32
            code += _I32_IS_ZERO + _I32_OR
        return code + _END

    def _addresses(self, sizes: Mapping[Any, int], start: int) -> tuple[dict[Any, int], int]:
        """Return the addresses of arrays of these sizes, and the end [bytes]."""
        ends = list(accumulate((self.number_type.size * size for size in sizes.values()), initial=start))
        return dict(zip(sizes, ends, strict=False)), ends[-1]


def _used(trace: Trace) -> list[Array]:
    """Return the arrays that a trace reads or writes."""
    read = {x.name for x in trace.input_arrays}
    return [x for x in trace.arrays if x.name in read or x.results]
