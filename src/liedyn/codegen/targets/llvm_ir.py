"""LLVM text of a trace: a function for as many states as a register holds, and its callers, a loop over a batch or Python."""
from __future__ import annotations

import struct
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import NamedTuple

from liedyn.codegen import python_call
from liedyn.codegen.operations import LIBM, OPERATIONS
from liedyn.codegen.targets.target import Target
from liedyn.codegen.trace import GeneratedProgram, Trace, single_constant
from liedyn.codegen.tracer import Operand, Tracer, operand

# LLVM text, instruction by instruction, over vectors with one number per state ------------------------------------------

class Vector(NamedTuple):
    """The type of `width` numbers: of float64, or of float32 if `single`.

    converts  names of blocks of float64 in memory, which are converted to float32 and back
    """

    width: int
    single: bool = False
    converts: frozenset[str] = frozenset()

    def memory(self, block: str) -> Vector:
        """Return the type of vectors of a block in memory."""
        return Vector(self.width) if block in self.converts else self

    @property
    def bits(self) -> int:
        """Return the size of a number."""
        return 32 if self.single else 64

    @property
    def size(self) -> int:
        """Return the size of a number in bytes."""
        return self.bits // 8

    @property
    def number(self) -> str:
        """Return the type of a number."""
        return "float" if self.single else "double"

    @property
    def type(self) -> str:
        """Return the type of the vector."""
        return f"<{self.width} x {self.number}>"

    @property
    def integers(self) -> str:
        """Return the type of a vector of integers of the same size."""
        return f"<{self.width} x i{self.bits}>"

    def of(self, width: int) -> str:
        """Return the type of a vector of `width` such numbers."""
        return self._replace(width=width).type

    def function(self, name: str) -> str:
        """Return the name of LLVM's function for vectors."""
        return f"@llvm.{name}.v{self.width}f{self.bits}"

    def constant(self, x: float) -> str:
        """Return a vector of equal constants in hexadecimal digits, exactly or rounded to float32."""
        if self.single:
            x = single_constant(x)
        return constants(self.number, [f"0x{struct.pack('>d', x).hex().upper()}"] * self.width)


class Instructions:
    """Instructions of a function over vectors of a type; T: its text."""

    def __init__(self, vector: Vector):
        self.vector, self.T = vector, vector.type
        self._lines: list[str] = []
        self._n_values = 0
        self.n_instructions = 0

    def add(self, text: str) -> None:
        """Append an instruction."""
        self._lines.append(text)
        self.n_instructions += 1

    def let(self, text: str) -> str:
        """Append an instruction and return the name of its value."""
        self._n_values += 1
        self.add(f"%n{self._n_values} = {text}")
        return f"%n{self._n_values}"

    def flush(self) -> list[str]:
        """Return the instructions since the last call."""
        lines, self._lines = self._lines, []
        return lines

    def column(self, block: str, i: int) -> str:
        """Return a pointer to number i of all states."""
        return self.let(f"getelementptr {self.vector.memory(block).type}, ptr %{block}, i64 {i}")

    def load(self, block: str, i: int) -> str:
        """Return the instruction that loads number i of all states."""
        memory = self.vector.memory(block)
        instruction = f"load {memory.type}, ptr {self.column(block, i)}, align {memory.size * memory.width}"
        return f"fptrunc {memory.type} {self.let(instruction)} to {self.T}" if block in self.vector.converts else instruction

    def store(self, value: str, block: str, i: int) -> None:
        """Append the instruction that stores number i of all states."""
        memory = self.vector.memory(block)
        value = self.let(f"fpext {self.T} {value} to {memory.type}") if block in self.vector.converts else value
        self.add(f"store {memory.type} {value}, ptr {self.column(block, i)}, align {memory.size * memory.width}")

    def end_block(self, label: str) -> None:
        """End a block, since LLVM's time grows with the square of its length. %go is always true, which LLVM does not know."""
        self.add(f"br i1 %go, label %{label}, label %never")
        self.add(f"{label}:")


def constants(kind: str, values) -> str:
    """Return a vector of constants."""
    return "<" + ", ".join(f"{kind} {x}" for x in values) + ">"


# Rows of a batch --------------------------------------------------------------------------------------------------------

# LLVM text that copies rows of a batch to a block, with number k of all states in one vector, and back: by square transpositions.

_GROUPS_PER_BLOCK = 16               # transpositions in a block of code


def read_row(name: str, count: int, vector: Vector, shared: bool = False) -> list[str]:
    """Return @read_NAME(array, i, last, block), which copies rows of an array (N, count) to a block (count, width).

    These are rows i … i + width - 1; beyond the last row, the last one. shared: the only row, for each state.
    """
    rows = _RowTransposer(vector, shared)
    for first, size in _groups(count, vector.width):
        states = [rows.let(f"load {vector.of(size)}, ptr {rows.number(k, first)}, align {vector.size}")
                  for k in range(vector.width)]
        for k, x in enumerate(rows.transpose([rows.concatenate(states[k::size]) for k in range(size)])):
            rows.store(x, "block", first + k)
        rows.end_group()
    return rows.function(f"read_{name}", count, "noalias readonly", "noalias")


def write_row(name: str, row: list[int | float | None], vector: Vector) -> list[str]:
    """Return @write_NAME(array, i, last, block), which copies a block to rows of an array.

    row: for each number a column of the block, a constant, or None if it does not change. Beyond the last row, the last one is
    written again, with the same numbers.
    """
    rows = _RowTransposer(vector)
    for first, size in _groups(len(row), vector.width):
        group = row[first:first + size]
        if None in group:
            for j, x in enumerate(group, first):
                if x is None:
                    continue
                for k in range(vector.width):
                    number = rows.let(f"extractelement {rows.T} {rows.value(x)}, i32 {k}")
                    rows.add(f"store {vector.number} {number}, ptr {rows.number(k, j)}")
        else:
            states = rows.transpose([rows.value(x) for x in group if x is not None])
            for k, y in enumerate(states):
                for j in range(k, vector.width, size):
                    rows.add(f"store {vector.of(size)} {rows.part(y, j - k, size)}, ptr {rows.number(j, first)}, "
                             f"align {vector.size}")
        rows.end_group()
    return rows.function(f"write_{name}", len(row), "noalias", "noalias readonly")


def _groups(count: int, width: int) -> Iterator[tuple[int, int]]:
    """Yield first indices and sizes of groups of numbers. Sizes are powers of two; the last group may overlap the one before."""
    at = 0
    while at < count:
        size = min(width, 1 << (count - at - 1).bit_length())
        size = size if size <= count else size // 2
        yield min(at, count - size), size
        at += size


class _RowTransposer(Instructions):
    """Writes a function that copies between rows of an array, from %row0 on, and a %block."""

    def __init__(self, vector: Vector, shared: bool = False):
        super().__init__(vector)
        self._groups, self._shared = 0, shared

    def number(self, row: int, j: int) -> str:
        return self.let(f"getelementptr {self.vector.number}, ptr %row{row}, i64 {j}")

    def value(self, x: Operand) -> str:
        return self.vector.constant(x) if isinstance(x, float) else self.let(self.load("block", x))

    def concatenate(self, parts: list[str]) -> str:
        """Concatenate vectors to one."""
        size = self.vector.width // len(parts)
        while len(parts) > 1:
            size *= 2
            parts = [self._shuffle(a, b, range(size), size // 2) for a, b in zip(parts[::2], parts[1::2], strict=True)]
        return parts[0]

    def part(self, x: str, first: int, size: int) -> str:
        """Return numbers first … first + size - 1 of a vector."""
        return x if size == self.vector.width else self._shuffle(x, x, range(first, first + size), self.vector.width)

    def transpose(self, x: list[str]) -> list[str]:
        """Return vectors of the numbers k, k + n, … of n vectors, by exchanging squares of 1, 2, … numbers next to the
        diagonal."""
        x, width, size = list(x), self.vector.width, 1
        while size < len(x):
            for i in (i for i in range(len(x)) if not i & size):
                a, b = x[i], x[i + size]
                x[i] = self._shuffle(a, b, [k + width - size if k & size else k for k in range(width)], width)
                x[i + size] = self._shuffle(a, b, [k + width if k & size else k + size for k in range(width)], width)
            size *= 2
        return x

    def _shuffle(self, a: str, b: str, places, size: int) -> str:
        """Return a shuffle of a and b, each of so many numbers."""
        mask = ", ".join(f"i32 {k}" for k in places)
        return self.let(f"shufflevector {self.vector.of(size)} {a}, {self.vector.of(size)} {b}, <{len(places)} x i32> <{mask}>")

    def end_group(self) -> None:
        self._groups += 1
        if self._groups % _GROUPS_PER_BLOCK == 0:
            self.end_block(f"group{self._groups}")

    def function(self, name: str, count: int, array: str, block: str) -> list[str]:
        rows, stride = [], 0 if self._shared else count
        for k in range(self.vector.width):
            rows += [f"%i{k} = add i64 %i, {k}", f"%in{k} = icmp slt i64 %i{k}, %last",
                     f"%state{k} = select i1 %in{k}, i64 %i{k}, i64 %end", f"%first{k} = mul i64 %state{k}, {stride}",
                     f"%row{k} = getelementptr {self.vector.number}, ptr %array, i64 %first{k}"]
        return [f"define internal void @{name}(ptr {array} %array, i64 %i, i64 %last, ptr {block} %block) {{",
                "%end = sub i64 %last, 1", "%go = icmp ne ptr %block, null", *rows, *self.flush(),
                "ret void", "never:", "ret void", "}"]


# Segments ---------------------------------------------------------------------------------------------------------------

# Long traces are divided into segments. Code that is larger than the processor's cache would be loaded from memory for every
# block of states. So each segment runs over a few blocks of states before the next, and stores numbers that later segments need.

MAX_SEGMENT_OPERATIONS = 45_000           # operations, for 400 kB of code: a processor's cache holds 512 kB and more


@dataclass(frozen=True)
class TraceSegment:
    """A part of a trace.

    operations  indices of operations, in order; inputs first
    reloaded    operations of earlier segments, and where they are stored
    spilled     operations that later segments need, and where they are stored
    bounds      those of the trace, in the last segment
    """

    operations: list[int]
    reloaded: dict[int, int]
    spilled: dict[int, int]
    bounds: list[tuple[Tracer, float]]


def single_segment(trace: Trace) -> TraceSegment:
    """Return the whole trace as one segment."""
    return TraceSegment(trace.live_operations, {}, {}, list(trace.bounds))


def segments(trace: Trace, late: bool = False) -> list[TraceSegment]:
    """Return segments of about the same length.

    late: the last segment has all results at hand, if inputs must not be overwritten earlier.
    """
    ops = trace.ops
    computed = [k for k in trace.live_operations if ops.operations[k][0] != "input"]
    count = -(-len(computed) // MAX_SEGMENT_OPERATIONS)
    if count <= 1:
        return [single_segment(trace)]
    of = {k: place * count // len(computed) for place, k in enumerate(computed)}
    uses = [{x for k in computed if of[k] == s for x in ops.operand_indices(k)} for s in range(count)]
    uses[0] |= {x.k for x in trace.finite}                 # with inputs
    uses[-1] |= {x.k for pair in trace.bounds for x in pair if isinstance(x, Tracer)}
    if late:
        uses[-1] |= {x.k for array in trace.arrays for x in array.results if isinstance(x, Tracer)}
    slots: dict[int, int] = {}
    starts = []
    for s, used in enumerate(uses):
        inputs = sorted(x for x in used if x not in of)
        reloaded = {x: slots.setdefault(x, len(slots)) for x in sorted(used) if of.get(x, s) < s}
        bounds = list(trace.bounds) if s == count - 1 else []
        starts.append(TraceSegment([*inputs, *(k for k in computed if of[k] == s)], reloaded, {}, bounds))
    for k, slot in slots.items():
        starts[of[k]].spilled[k] = slot
    return starts


# Functions --------------------------------------------------------------------------------------------------------------

# contract: multiply-add in one instruction; nsz: x + 0 is x; arcp: division by a constant is a product. As in the generic
# kernels.
_FLAGS = "contract nsz arcp"
OK, OUT_OF_BOUNDS = 0, 1
# LLVM's time grows with the square of a block's length (13 s for 20,000 operations, 1.7 s in blocks), but the code of one block
# is faster on AVX-512 (by 10 to 20 %). Longer traces are divided. In blocks of 600 operations, forward derivatives of a floating
# Talos (111,000 operations) took 52 us and 1.6 MB of code with AVX-512; in blocks of 1,200, 28 us and 0.96 MB.
_MAX_SINGLE_BLOCK, _BLOCK_INSTRUCTIONS = 12_000, 1200
_STATE_BLOCKS = 4                # blocks of states that a segment runs over before the next


def batch_text(trace: Trace, simd_width: int) -> str:
    """Return LLVM text of a function for batches, and of @python for Python, see `python_call`.

    i64 @batch(arrays …, workspace, first, last): states first … last - 1 of arrays (N, count), `simd_width` at a time. Returns
    OK, or OUT_OF_BOUNDS if a state is out of bounds or a number is not finite; then all results are meaningless. workspace:
    `workspace_size` float64, aligned to cache lines.
    """
    vector, read, slots, parts = Vector(simd_width, trace.ops.single), trace.input_arrays, _result_slots(trace), segments(trace)
    blocks = [*(x.name for x in read), "results", "spilled"]
    text = [*_declarations(vector), *_libm_declarations(trace)]
    for number, part in enumerate(parts):
        stores: dict[int, list[tuple[str, int]]] = {k: [("results", slot)] for k, slot in slots.items()}
        for k, slot in part.spilled.items():
            stores.setdefault(k, []).append(("spilled", slot))
        text += _trace_function(f"line{number}", trace, part, vector, blocks, stores)
    for array in read:
        if not array.blocks:
            text += read_row(array.name, array.size, vector, array.shared)
    for array in trace.arrays:
        if array.results:
            text += write_row(array.name, [slots[x.k] if isinstance(x, Tracer) else x for x in array.new_values], vector)
    wrapper = python_call.batch_wrapper_text("batch", [array.size for array in trace.arrays], has_results(trace), vector.single)
    return "\n".join([*text, *_batch_function(trace, blocks, parts, vector), *wrapper])


def one_text(trace: Trace, shapes: list[tuple[int, ...]]) -> str:
    """Return LLVM text of a function for one state: i64 @one(arrays …), which returns as @batch does, and @python for Python.

    shapes: of the arrays that Python passes, see `python_call`.
    """
    return "\n".join([pointers_text(trace), *python_call.wrapper_text("one", shapes, output_only(trace), has_results(trace))])


def pointers_text(trace: Trace) -> str:
    """Return @one alone, for compiled callers."""
    vector, arguments = Vector(1, trace.ops.single), ", ".join(f"ptr %{array.name}" for array in trace.arrays)
    return "\n".join([
        *_declarations(vector), *_libm_declarations(trace),
        *_trace_function("line", trace, single_segment(trace), vector, [x.name for x in trace.arrays], *_stores(trace)),
        f"define i64 @one({arguments}) {{",
        f"%good = call i1 @line({arguments})", f"%code = select i1 %good, i64 {OK}, i64 {OUT_OF_BOUNDS}",
        "ret i64 %code", "}"])


def _stores(trace: Trace) -> tuple[dict[int, list[tuple[str, int]]], list[tuple[Operand, str, int]]]:
    """Return where operations are written, and constants, for a function that writes its arrays directly."""
    stores: dict[int, list[tuple[str, int]]] = {}
    for x, name, i in trace.outputs:
        if isinstance(x, int):
            stores.setdefault(x, []).append((name, i))
    return stores, [output for output in trace.outputs if isinstance(output[0], float)]


def workspace_size(trace: Trace, simd_width: int) -> int:
    """Return the size of the workspace of `batch_text` in float64."""
    parts = segments(trace)
    size = simd_width * _n_state_blocks(len(parts)) * max(1, sum(_block_sizes(trace, parts).values()))
    return size // (2 if trace.ops.single else 1)


def _block_sizes(trace: Trace, parts: list[TraceSegment]) -> dict[str, int]:
    """Return the columns of the blocks in the workspace."""
    copies = {array.name: array.size for array in trace.input_arrays if not array.blocks}
    return copies | {"results": len(_result_slots(trace)), "spilled": _n_spilled(parts)}


def _n_state_blocks(parts: int) -> int:
    """Return the number of blocks of states that each segment runs over before the next."""
    return 1 if parts == 1 else _STATE_BLOCKS


def _n_spilled(parts: list[TraceSegment]) -> int:
    return sum(len(part.spilled) for part in parts)


def output_only(trace: Trace) -> list[bool]:
    """Return for each array whether it contains only results, so that a new array can be used."""
    read = {array.name for array in trace.input_arrays}
    return [array.name not in read and all(x is not None for x in array.new_values) for array in trace.arrays]


def has_results(trace: Trace) -> list[bool]:
    """Return for each array whether it contains results."""
    return [bool(array.results) for array in trace.arrays]


def _result_slots(trace: Trace) -> dict[int, int]:
    """Return operations that are results, each once, and their places in the block of results."""
    slots = sorted({x.k for array in trace.arrays for x in array.results if isinstance(x, Tracer)})
    return {k: slot for slot, k in enumerate(slots)}


def _declarations(vector: Vector) -> list[str]:
    return [f"declare {vector.type} {vector.function(name)}({vector.type})" for name in ("fabs", "sqrt")]


def _libm_declarations(trace: Trace) -> list[str]:
    used = {trace.ops.operations[k][0] for k in trace.live_operations}
    return [f"declare double @{name}({', '.join(['double'] * OPERATIONS[name].arity)})" for name in LIBM if name in used]


# one trace ----------------------------------------------------------------------------------------------------------
def _trace_function(function: str, trace: Trace, part: TraceSegment, vector: Vector, blocks: list[str],
                    stores: dict[int, list[tuple[str, int]]],
                    late: Sequence[tuple[Operand, str, int]] = ()) -> Iterator[str]:
    """Yield i1 @function(blocks), which returns whether all states of a vector are within bounds and finite.

    stores  where operations are written
    late    what is written at the end: constants, after a block that is both input and output was read (inputs come first)
    """
    writer = _TraceWriter(vector, part.reloaded)
    verified = {x.k for x in trace.finite}
    yield f"define internal i1 @{function}({', '.join(f'ptr %{name}' for name in blocks)}) {{"
    stored = sum(len(stores.get(k, ())) for k in part.operations) + len(late)
    cut = len(part.operations) + stored > _MAX_SINGLE_BLOCK
    yield f"%go = icmp ne ptr %{blocks[0]}, null"
    for k, instruction in writer.walk(trace.ops, part.operations):
        writer.add(f"%t{k} = {instruction}")
        if k in verified:
            writer.check_finite(f"%t{k}")
        for to in stores.get(k, ()):                     # at once, which frees a register
            writer.store(f"%t{k}", *to)
        if cut:
            writer.end_long_block()
        yield from writer.flush()
    for x, block, i in late:
        writer.store(writer.value(x), block, i)
        if cut:
            writer.end_long_block()
    bounds = [(writer.value(operand(x)), writer.value(bound)) for x, bound in part.bounds]
    writer.return_status(bounds)
    yield from writer.flush()
    yield from ("never:", "ret i1 false", "}")


class _TraceWriter(Instructions, Target):
    """Writes the instructions of a trace.

    reloaded  numbers of earlier segments, see `TraceSegment`
    """

    libm = False

    def __init__(self, vector: Vector, reloaded: dict[int, int]):
        Instructions.__init__(self, vector)
        Target.__init__(self)
        self.B = f"<{vector.width} x i1>"
        self.totals = [self.constant(0.0)] * 4
        self._ended, self._reloaded = 0, dict(reloaded)
        T = self.T
        functions = {name: f"call {T} {vector.function(name)}({T} {{}})" for name in ("fabs", "sqrt")}
        self.table = {**{name: f"{name} {_FLAGS} {T} {{}}, {{}}" for name in ("fadd", "fsub", "fmul", "fdiv")},
                      "quotient": f"fdiv {T} {{}}, {{}}",           # rounded, unlike a product with the reciprocal
                      "fneg": f"fneg {T} {{}}", **functions, "less": self._less,
                      "quadrant_sine": lambda turns, s, c: self._quadrant_value(turns, s, c, 0),
                      "quadrant_cosine": lambda turns, s, c: self._quadrant_value(turns, c, s, 1),
                      **{name: partial(self._library, name) for name in LIBM}}

    def end_long_block(self) -> None:
        if self.n_instructions - self._ended > _BLOCK_INSTRUCTIONS:
            self._ended = self.n_instructions
            self.end_block(f"block{self.n_instructions}")

    def constant(self, x: float) -> str:
        return self.vector.constant(x)

    def input(self, array: str, i: int) -> str:
        return self.load(array, i)

    def named(self, k: int, _expression: str) -> str:
        return f"%t{k}"

    def value(self, x: Operand) -> str:
        """Return an operand. A number of an earlier segment is loaded at its first use."""
        if isinstance(x, int) and x in self._reloaded:      # for a dictionary, the constant 5.0 equals operation 5
            self.add(f"%t{x} = {self.load('spilled', self._reloaded.pop(x))}")
            self.values[x] = f"%t{x}"
        return super().value(x)

    def _library(self, name: str, *operands: str) -> str:
        """Call a function of the C library, state by state."""
        values, single, number = "undef", self.vector.single, self.vector.number
        for lane in range(self.vector.width):
            x = [self.let(f"extractelement {self.T} {a}, i32 {lane}") for a in operands]
            x = [self.let(f"fpext float {y} to double") for y in x] if single else x
            element = self.let(f"call double @{name}({', '.join(f'double {y}' for y in x)})")
            element = self.let(f"fptrunc double {element} to float") if single else element
            insert = f"insertelement {self.T} {values}, {number} {element}, i32 {lane}"
            if lane < self.vector.width - 1:
                values = self.let(insert)
        return insert

    def _less(self, a: str, b: str, yes: str, no: str) -> str:
        condition = self.let(f"fcmp olt {self.T} {a}, {b}")
        return f"select {self.B} {condition}, {self.T} {yes}, {self.T} {no}"

    def _quadrant_value(self, turns: str, even: str, odd: str, shift: int) -> str:
        """Return sin(r + (n + shift) pi/2), see `operations`, by integer operations on the bits of `turns`."""
        T, I, bits = self.T, self.vector.integers, self.vector.bits

        def same(k: int) -> str:
            return constants(f"i{bits}", [k] * self.vector.width)
        n = self.let(f"bitcast {T} {turns} to {I}")
        last = self.let(f"and {I} {n}, {same(1)}")
        is_odd = self.let(f"icmp ne {I} {last}, {same(0)}")
        x = self.let(f"select {self.B} {is_odd}, {T} {odd}, {T} {even}")
        n = self.let(f"add {I} {n}, {same(shift)}") if shift else n
        two = self.let(f"and {I} {n}, {same(2)}")
        sign = self.let(f"shl {I} {two}, {same(bits - 2)}")
        signed = self.let(f"xor {I} {self.let(f'bitcast {T} {x} to {I}')}, {sign}")
        return f"bitcast {I} {signed} to {T}"

    # checks: the sum of 0 * x is 0, or NaN
    def check_finite(self, x: str) -> None:
        """Add 0 * x to one of four sums: additions to the same sum would wait for each other."""
        none = self.let(f"fmul contract {self.T} {x}, {self.constant(0.0)}")
        self.totals = [*self.totals[1:], self.let(f"fadd contract {self.T} {self.totals[0]}, {none}")]

    def return_status(self, bounds) -> None:
        a, b = (self.let(f"fadd {self.T} {self.totals[k]}, {self.totals[k + 2]}") for k in (0, 1))
        total = self.let(f"fadd {self.T} {a}, {b}")
        good = self.let(f"fcmp oeq {self.T} {total}, {self.constant(0.0)}")
        for x, bound in bounds:
            within = self.let(f"fcmp olt {self.T} {x}, {bound}")
            good = self.let(f"and {self.B} {good}, {within}")
        mask = self.let(f"bitcast {self.B} {good} to i{self.vector.width}")
        self.add(f"ret i1 {self.let(f'icmp eq i{self.vector.width} {mask}, -1')}")


# programs -----------------------------------------------------------------------------------------------------------
def program_text(program: GeneratedProgram, simd_width: int) -> str:
    """Return LLVM text of a program.

    i64 @batch(arrays …, workspace, first, last): states first … last - 1, both multiples of `simd_width`. Arrays (N / width,
    count, width), except those with one row for all, and the workspace (`program_workspace_size` float64) are aligned to cache
    lines. Arrays are of float64 in each precision, unless the program has `own_precision`. Those for each repetition have the
    numbers of the first one, then those of the next. Returns OUT_OF_BOUNDS if the last trace does for some states, which does not
    stop the others, else OK.
    """
    lines, arguments = program.traces, ", ".join(f"ptr %{x.name}" for x in program.arrays)
    vector = Vector(simd_width, lines[0].ops.single)
    memory, converts = vector if program.own_precision else Vector(simd_width), vector.single and not program.own_precision
    text = _declarations(vector)
    parts = [segments(trace, late=True) for trace in lines]
    for number, trace in enumerate(lines):
        text += [x for x in _libm_declarations(trace) if x not in text]
        text += _in_place_functions(number, trace, parts[number], vector._replace(
            converts=_converted_blocks(program, trace) if converts else frozenset()))
    shared = [array for array in program.arrays if array.shared]
    for array in shared:
        text += read_row(array.name, array.size, memory, True)
    block_sizes, last_block = _own_blocks(program), "rest" if program.repeated else "body"
    sizes = {x.name: x.size * (program.repetitions if x.name in program.per_repetition else 1) for x in program.arrays}
    text.append(f"define i64 @batch({arguments}, ptr %workspace, i64 %first, i64 %last) {{")
    for name, at in zip(block_sizes, accumulate(block_sizes.values(), initial=0), strict=False):
        text.append(f"%own_{name} = getelementptr {memory.type}, ptr %workspace, i64 {at}")
    text += [f"call void @read_{x.name}(ptr %{x.name}, i64 0, i64 1, ptr %own_{x.name})" for x in shared]
    text += ["br label %head", "head:", f"%i = phi i64 [%first, %0], [%next, %{last_block}]",
             f"%verdict = phi i64 [{OK}, %0], [%found, %{last_block}]", "%more = icmp slt i64 %i, %last",
             "br i1 %more, label %body, label %done", "body:"]
    for array in program.arrays:
        if not array.shared:
            text += [f"%far_{array.name} = mul i64 %i, {sizes[array.name]}",
                     f"%own_{array.name} = getelementptr {memory.number}, ptr %{array.name}, i64 %far_{array.name}"]
    for call, (trace, renamed) in enumerate(program.calls):
        text += _segment_calls(trace, renamed, f"fine{call}", lines.index(trace), parts, ())
    text.append(f"%found = select i1 %fine{len(program.calls) - 1}, i64 %verdict, i64 {OUT_OF_BOUNDS}")
    if program.repeated:
        text += ["br label %again", "again:", "%k = phi i64 [0, %body], [%later, %again]"]
        for array in program.arrays:
            if array.name in program.per_repetition:
                text += [f"%of_{array.name} = mul i64 %k, {array.size * simd_width}",
                         f"%part_{array.name} = getelementptr {memory.number}, ptr %own_{array.name}, "
                         f"i64 %of_{array.name}"]
        for call, (trace, renamed) in enumerate(program.repeated):
            text += _segment_calls(trace, renamed, f"repeated{call}", lines.index(trace), parts, program.per_repetition)
        text += ["%later = add i64 %k, 1", f"%repeats = icmp slt i64 %later, {program.repetitions}",
                 "br i1 %repeats, label %again, label %rest", "rest:"]
    return "\n".join([*text, f"%next = add i64 %i, {simd_width}", "br label %head", "done:", "ret i64 %verdict", "}"])


def _converted_blocks(program: GeneratedProgram, trace: Trace) -> frozenset[str]:
    """Return the names of blocks of a trace that are arrays of the caller in each of its calls, which are of float64."""
    arguments = {x.name for x in program.arrays}
    calls = [frozenset(name for name in _block_names(trace) if renamed.get(name, name) in arguments)
             for other, renamed in program.all_calls if other is trace]
    assert all(names == calls[0] for names in calls)
    return calls[0]


def _segment_calls(trace: Trace, renamed: dict[str, str], status: str, number: int, parts: list[list[TraceSegment]],
                   per_repetition: Collection[str]) -> list[str]:
    """Return the calls of the segments of a trace, the `number`-th of its program. status: name of the result of the last one."""
    names, last = [renamed.get(name, name) for name in [*_block_names(trace), "spilled"]], len(parts[number]) - 1
    blocks = ", ".join(f"ptr %{'part' if name in per_repetition else 'own'}_{name}" for name in names)
    return [f"%{status}{'' if k == last else f'_{k}'} = call i1 @line{number}_{k}({blocks})" for k in range(last + 1)]


def _in_place_functions(number: int, trace: Trace, parts: list[TraceSegment], vector: Vector) -> Iterator[str]:
    """Yield @lineNUMBER_0, 1, …: segments of a trace that write to the blocks that they read."""
    stores, late = _stores(trace)
    for k, part in enumerate(parts):
        if len(parts) > 1:                         # only the last segment writes: the others have read before
            spilled = {x: [("spilled", slot)] for x, slot in part.spilled.items()}
            everything = [(x, *to) for x, places in stores.items() for to in places] + late if k == len(parts) - 1 else []
        else:
            spilled, everything = stores, late
        yield from _trace_function(f"line{number}_{k}", trace, part, vector, [*_block_names(trace), "spilled"], spilled,
                                   everything)


def program_workspace_size(program: GeneratedProgram, simd_width: int) -> int:
    """Return the size of the workspace of `program_text` in float64."""
    return simd_width * max(1, sum(_own_blocks(program).values()))


def _own_blocks(program: GeneratedProgram) -> dict[str, int]:
    """Return the columns of the blocks of a program that are not arrays of its caller."""
    sizes = {array.name: array.size for array in program.arrays if array.shared}
    arguments = {array.name for array in program.arrays}
    for trace, renamed in program.all_calls:
        sizes |= {renamed.get(x.name, x.name): x.size for x in trace.arrays if renamed.get(x.name, x.name) not in arguments}
    return sizes | {"spilled": max(_n_spilled(segments(trace, late=True)) for trace in program.traces)}


def _block_names(trace: Trace) -> list[str]:
    """Return the names of the blocks that a trace reads or writes."""
    read = {x.name for x in trace.input_arrays}
    return [x.name for x in trace.arrays if x.name in read or x.results]


# batches ------------------------------------------------------------------------------------------------------------
def _batch_function(trace: Trace, blocks: list[str], parts: list[TraceSegment], vector: Vector) -> list[str]:
    """Return the loop over a batch. blocks: arguments of the segments; those of `_n_state_blocks` blocks are adjacent."""
    arrays, sizes = [array.name for array in trace.arrays], _block_sizes(trace, parts)
    states_per_pass = vector.width * _n_state_blocks(len(parts))
    stride, in_place = sum(sizes.values()), {array.name: array.size for array in trace.arrays if array.blocks}

    def step(k, body):
        """Over the blocks of states: where each lies, and its first state."""
        ends = accumulate(sizes.values(), initial=0)
        return [f"br label %before_{k}", f"before_{k}:", f"br label %head_{k}", f"head_{k}:",
                f"%{k} = phi i64 [0, %before_{k}], [%next_{k}, %last_{k}]", f"%more_{k} = icmp slt i64 %{k}, %count",
                f"br i1 %more_{k}, label %body_{k}, label %done_{k}", f"body_{k}:", f"%shift_{k} = mul i64 %{k}, {vector.width}",
                f"%i_{k} = add i64 %i, %shift_{k}", f"%far_{k} = mul i64 %{k}, {stride}",
                f"%base_{k} = getelementptr {vector.type}, ptr %workspace, i64 %far_{k}",
                *(f"%{name}_{k} = getelementptr {vector.type}, ptr %base_{k}, i64 {at}"
                  for name, at in zip(sizes, ends, strict=False)),
                *(line for name, size in in_place.items() for line in (
                    f"%at_{name}_{k} = mul i64 %i_{k}, {size}",
                    f"%{name}_{k} = getelementptr {vector.number}, ptr %{name}, i64 %at_{name}_{k}")),
                *body, f"br label %last_{k}", f"last_{k}:", f"%next_{k} = add i64 %{k}, 1", f"br label %head_{k}", f"done_{k}:"]

    read = [f"call void @read_{name}(ptr %{name}, i64 %i_read, i64 %last, ptr %{name}_read)" for name in sizes if name in arrays]
    write = [f"call void @write_{x.name}(ptr %{x.name}, i64 %i_write, i64 %last, ptr %results_write)"
             for x in trace.arrays if x.results]
    text = step("read", read)
    for number in range(len(parts)):
        k = f"part{number}"
        pointers = ", ".join(f"ptr %{name}_{k}" for name in blocks)
        text += step(k, [f"%fine_{k} = call i1 @line{number}({pointers})", f"br i1 %fine_{k}, label %good_{k}, label %bad",
                         f"good_{k}:"])
    text += step("write", write)
    return [f"define i64 @batch({', '.join(f'ptr %{name}' for name in arrays)}, ptr %workspace, i64 %first, i64 %last) {{",
            "br label %head", "head:", "%i = phi i64 [%first, %0], [%next, %again]", "%more = icmp slt i64 %i, %last",
            "br i1 %more, label %body, label %done", "body:", "%left = sub i64 %last, %i",
            f"%up = add i64 %left, {vector.width - 1}",
            f"%blocks = sdiv i64 %up, {vector.width}", f"%few = icmp slt i64 %blocks, {states_per_pass // vector.width}",
            f"%count = select i1 %few, i64 %blocks, i64 {states_per_pass // vector.width}", *text, "br label %again", "again:",
            f"%next = add i64 %i, {states_per_pass}", "br label %head",
            "bad:", f"ret i64 {OUT_OF_BOUNDS}", "done:", f"ret i64 {OK}", "}"]
