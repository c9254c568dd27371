"""From a tape to LLVM: one function for as many states as a register holds, and what calls it: a loop over a batch, or Python."""
from __future__ import annotations

import struct
from collections.abc import Iterator

from liedyn.codegen import python_call
from liedyn.codegen.library import ARGUMENTS
from liedyn.codegen.recording import Recording
from liedyn.lie.recorded import Operand, Recorded, operand

# contract: multiply-add in one instruction; nsz: x + 0 is x; arcp: division by a constant is a product. As compiled loops.
_FLAGS = "contract nsz arcp"
OK, OUT_OF_BOUNDS = 0, 1
# LLVM takes time that grows with the square of a block's length (13 s for 20,000 operations, 1.7 in blocks of 300), but makes
# faster code of one block on AVX-512 (by a tenth or two). Longer lines are cut.
_WHOLE, _BLOCK = 12_000, 300


def batch_text(recording: Recording, width: int) -> str:
    """LLVM of a function for batches.

    i64 @batch(arrays …, scratch, first, last): states first … last - 1 of arrays (N, count), `width` at a time. Returns OK, or
    OUT_OF_BOUNDS where a state is out of bounds or a number is not finite: then nothing that is written is worth anything.
    scratch: `scratch_size` numbers on a border of cache lines.
    """
    return "\n".join([*_declarations(width), *_library(recording), *_line(recording, width), *_pack(width), *_unpack(width),
                      *_batch(recording, width)])


def one_text(recording: Recording, shapes: list[tuple[int, ...]]) -> str:
    """LLVM of a function for one state: i64 @one(arrays …), which returns as @batch does, and @python, which Python calls with
    arrays of these shapes (see `python_call`)."""
    return "\n".join([pointers_text(recording), *python_call.text("one", shapes)])


def pointers_text(recording: Recording) -> str:
    """@one alone, for compiled code that calls it."""
    arguments = [f"ptr %{array.name}" for array in recording.arrays]
    return "\n".join([
        *_declarations(1), *_library(recording), *_line(recording, 1), f"define i64 @one({', '.join(arguments)}) {{",
        f"%good = call i1 @line({', '.join(arguments)})", f"%code = select i1 %good, i64 {OK}, i64 {OUT_OF_BOUNDS}",
        "ret i64 %code", "}"])


def scratch_size(recording: Recording, width: int) -> int:
    return width * sum(array.size for array in recording.arrays)


def _declarations(width: int) -> list[str]:
    return [f"declare {_type(width)} @llvm.{name}.v{width}f64({_type(width)})" for name in ("fabs", "sqrt")]


def _library(recording: Recording) -> list[str]:
    used = {recording.tape.operations[k][0] for k in recording.needed}
    return [f"declare double @{name}({', '.join(['double'] * count)})" for name, count in ARGUMENTS.items() if name in used]


# one line -----------------------------------------------------------------------------------------------------------
def _line(recording: Recording, width: int) -> Iterator[str]:
    """i1 @line(arrays): blocks of `width` states; whether all are within bounds and finite. Inputs are first on the tape, and
    constants are stored last: an array that is read and written is read before."""
    tape, writer = recording.tape, _Writer(width)
    verified = {x.k for x in recording.finite}
    stores: dict[int, list[tuple[str, int]]] = {}
    yield f"define internal i1 @line({', '.join(f'ptr noalias %{array.name}' for array in recording.arrays)}) {{"
    for array in recording.arrays:
        for i, x in enumerate(array.written):
            if isinstance(x, Recorded):
                stores.setdefault(x.k, []).append((array.name, i))
    block = _BLOCK if recording.size > _WHOLE else recording.size + 1
    yield f"%go = icmp ne ptr %{recording.arrays[0].name}, null"            # always, which LLVM does not know
    for place, k in enumerate(recording.needed, 1):
        name, *rest = tape.operations[k]
        if name == "input":
            writer.add(f"%t{k} = {writer.load(*rest)}")
        else:
            getattr(writer, name, writer.library if name in ARGUMENTS else writer.arithmetic)(k, name, *rest)
        if k in verified:
            writer.look_at(f"%t{k}")
        for to in stores.get(k, ()):                     # as soon as it is known: it need not be kept any longer
            writer.store(k, *to)
        if place % block == 0:
            writer.add(f"br i1 %go, label %block{place}, label %never")
            writer.add(f"block{place}:")
        yield from writer.taken()
    for array in recording.arrays:
        for i, x in enumerate(array.written):
            if isinstance(x, float):
                writer.store(x, array.name, i)
    yield from writer.taken()
    writer.return_verdict([(operand(x), bound) for x, bound in recording.bounds])
    yield from writer.taken()
    yield from ("never:", "ret i1 false", "}")


class _Writer:
    """Instructions of one function over `width` states."""

    def __init__(self, width: int):
        self.width, self.T, self.lines, self._names = width, _type(width), [], 0
        self.I = f"<{width} x i64>"
        self.B = f"<{width} x i1>"
        self.totals = [self.constant("double", "0.0")] * 4

    def add(self, text: str) -> None:
        self.lines.append(text)

    def taken(self) -> list[str]:
        lines, self.lines = self.lines, []
        return lines

    def name(self) -> str:
        self._names += 1
        return f"%n{self._names}"

    def let(self, text: str) -> str:
        name = self.name()
        self.add(f"{name} = {text}")
        return name

    def value(self, x: Operand) -> str:
        return f"%t{x}" if isinstance(x, int) else self.constant("double", f"0x{struct.pack('>d', x).hex().upper()}")

    def constant(self, kind: str, x) -> str:
        return "<" + ", ".join([f"{kind} {x}"] * self.width) + ">"

    def pointer(self, block: str, i: int) -> str:
        return self.let(f"getelementptr {self.T}, ptr %{block}, i64 {i}")

    def load(self, block: str, i: int) -> str:
        return f"load {self.T}, ptr {self.pointer(block, i)}, align {8 * self.width}"

    def store(self, x: Operand, block: str, i: int) -> None:
        self.add(f"store {self.T} {self.value(x)}, ptr {self.pointer(block, i)}, align {8 * self.width}")

    # operations: what the tape calls them
    def arithmetic(self, k, name, a, b):
        self.add(f"%t{k} = {name} {_FLAGS} {self.T} {self.value(a)}, {self.value(b)}")

    def quotient(self, k, name, a, b):
        """Rounded as IEEE 754 says: a product with the reciprocal is not."""
        self.add(f"%t{k} = fdiv {self.T} {self.value(a)}, {self.value(b)}")

    def library(self, k, name, *operands):
        """A function of the C library, state by state."""
        found = "undef"
        for lane in range(self.width):
            x = [f"double {self.let(f'extractelement {self.T} {self.value(a)}, i32 {lane}')}" for a in operands]
            one, before = self.let(f"call double @{name}({', '.join(x)})"), found
            found = f"%t{k}" if lane == self.width - 1 else self.name()
            self.add(f"{found} = insertelement {self.T} {before}, double {one}, i32 {lane}")

    def fneg(self, k, name, a):
        self.add(f"%t{k} = fneg {self.T} {self.value(a)}")

    def fabs(self, k, name, a):
        self.add(f"%t{k} = call {self.T} @llvm.{name}.v{self.width}f64({self.T} {self.value(a)})")

    sqrt = fabs

    def less(self, k, name, a, b, yes, no):
        chosen = self.let(f"fcmp olt {self.T} {self.value(a)}, {self.value(b)}")
        self.add(f"%t{k} = select {self.B} {chosen}, {self.T} {self.value(yes)}, {self.T} {self.value(no)}")

    def turned_sine(self, k, name, turns, s, c):
        """sin(r + n pi/2) from s = sin r, c = cos r and n in the last bits of `turns`: odd n exchange s and c, n of 2 and 3
        change the sign."""
        self._turned(k, turns, s, c, 0)

    def turned_cosine(self, k, name, turns, s, c):
        self._turned(k, turns, c, s, 1)

    def _turned(self, k, turns, even, odd, shift):
        T, I = self.T, self.I
        n = self.let(f"bitcast {T} {self.value(turns)} to {I}")
        last = self.let(f"and {I} {n}, {self.constant('i64', 1)}")
        is_odd = self.let(f"icmp ne {I} {last}, {self.constant('i64', 0)}")
        x = self.let(f"select {self.B} {is_odd}, {T} {self.value(odd)}, {T} {self.value(even)}")
        n = self.let(f"add {I} {n}, {self.constant('i64', shift)}") if shift else n
        two = self.let(f"and {I} {n}, {self.constant('i64', 2)}")
        sign = self.let(f"shl {I} {two}, {self.constant('i64', 62)}")
        bits = self.let(f"xor {I} {self.let(f'bitcast {T} {x} to {I}')}, {sign}")
        self.add(f"%t{k} = bitcast {I} {bits} to {T}")

    # checks: the sum of 0 * x is 0, or NaN
    def look_at(self, x: str) -> None:
        """In four sums: one waits for itself."""
        none = self.let(f"fmul contract {self.T} {x}, {self.constant('double', '0.0')}")
        self.totals = [*self.totals[1:], self.let(f"fadd contract {self.T} {self.totals[0]}, {none}")]

    def return_verdict(self, bounds) -> None:
        a, b = (self.let(f"fadd {self.T} {self.totals[k]}, {self.totals[k + 2]}") for k in (0, 1))
        total = self.let(f"fadd {self.T} {a}, {b}")
        good = self.let(f"fcmp oeq {self.T} {total}, {self.constant('double', '0.0')}")
        for x, bound in bounds:
            within = self.let(f"fcmp olt {self.T} {self.value(x)}, {self.value(bound)}")
            good = self.let(f"and {self.B} {good}, {within}")
        mask = self.let(f"bitcast {self.B} {good} to i{self.width}")
        self.add(f"ret i1 {self.let(f'icmp eq i{self.width} {mask}, -1')}")


def _type(width: int) -> str: return f"<{width} x double>"


# batches ------------------------------------------------------------------------------------------------------------
def _batch(recording: Recording, width: int) -> list[str]:
    names, at, blocks, packs, unpacks = [array.name for array in recording.arrays], 0, [], [], []
    read = {recording.tape.operations[k][1] for k in recording.needed if recording.tape.operations[k][0] == "input"}
    for array in recording.arrays:
        name, count = array.name, array.size
        blocks.append(f"%b_{name} = getelementptr {_type(width)}, ptr %scratch, i64 {at}")
        if name in read or len(array.results) < count:
            packs.append(f"call void @pack(ptr %{name}, i64 {count}, i64 %i, i64 %last, ptr %b_{name})")
        if array.results:
            unpacks.append(f"call void @unpack(ptr %{name}, i64 {count}, i64 %i, i64 %last, ptr %b_{name})")
        at += count
    return [f"define i64 @batch({', '.join(f'ptr %{name}' for name in names)}, ptr %scratch, i64 %first, i64 %last) {{",
            *blocks, "br label %head", "head:", "%i = phi i64 [%first, %0], [%next, %good]", "%more = icmp slt i64 %i, %last",
            "br i1 %more, label %body, label %done", "body:", *packs,
            f"%fine = call i1 @line({', '.join(f'ptr %b_{name}' for name in names)})",
            "br i1 %fine, label %good, label %bad", "good:", *unpacks, f"%next = add i64 %i, {width}", "br label %head",
            "bad:", f"ret i64 {OUT_OF_BOUNDS}", "done:", f"ret i64 {OK}", "}"]


def _pack(width: int) -> list[str]:
    """@pack: rows i … i + width - 1 of an array (N, n) into a block; for rows beyond the last, the last."""
    T, text, gather, x = _type(width), [], [], "undef"
    for k in range(width):
        text += [f"%i{k} = add i64 %i, {k}", f"%in{k} = icmp slt i64 %i{k}, %last",
                 f"%r{k} = select i1 %in{k}, i64 %i{k}, i64 %end", f"%o{k} = mul i64 %r{k}, %n",
                 f"%p{k} = getelementptr double, ptr %x, i64 %o{k}"]
        gather += [f"%e{k} = getelementptr double, ptr %p{k}, i64 %j", f"%x{k} = load double, ptr %e{k}, align 8",
                   f"%v{k} = insertelement {T} {x}, double %x{k}, i32 {k}"]
        x = f"%v{k}"
    return ["define internal void @pack(ptr noalias readonly %x, i64 %n, i64 %i, i64 %last, ptr noalias %block) {",
            "%end = sub i64 %last, 1", *text, *_loop("0", "j", "%n", [
                *gather, f"%to = getelementptr {T}, ptr %block, i64 %j", f"store {T} {x}, ptr %to, align {8 * width}"]),
            "ret void", "}"]


def _unpack(width: int) -> list[str]:
    """@unpack: a block into rows i … of an array (N, n), those before the last."""
    T, text, scatter = _type(width), [], []
    for k in range(width):
        text += [f"%i{k} = add i64 %i, {k}", f"%o{k} = mul i64 %i{k}, %n", f"%p{k} = getelementptr double, ptr %x, i64 %o{k}"]
        scatter += [f"%e{k} = getelementptr double, ptr %p{k}, i64 %j", f"%x{k} = extractelement {T} %v, i32 {k}",
                    f"store double %x{k}, ptr %e{k}, align 8"]
    number = [f"%row = mul i64 %j2, {width}", "%at = add i64 %row, %k", "%from = getelementptr double, ptr %block, i64 %at",
              "%y = load double, ptr %from, align 8", "%to = getelementptr double, ptr %px, i64 %j2",
              "store double %y, ptr %to, align 8"]
    some = ["%ik = add i64 %i, %k", "%ok = mul i64 %ik, %n", "%px = getelementptr double, ptr %x, i64 %ok",
            *_loop("body_k", "j2", "%n", number)]
    return ["define internal void @unpack(ptr noalias %x, i64 %n, i64 %i, i64 %last, ptr noalias readonly %block) {",
            f"%over = add i64 %i, {width}", "%whole = icmp sle i64 %over, %last", "br i1 %whole, label %all, label %part", "all:",
            *text, *_loop("all", "j", "%n", [f"%from0 = getelementptr {T}, ptr %block, i64 %j",
                                             f"%v = load {T}, ptr %from0, align {8 * width}", *scatter]),
            "ret void", "part:", "%count = sub i64 %last, %i", *_loop("part", "k", "%count", some, last="done_j2"), "ret void",
            "}"]


def _loop(before: str, i: str, count: str, body: list[str], last: str | None = None) -> list[str]:
    """For %i from 0 to `count` - 1; `before`: the block that comes before, `last`: that in which the body ends."""
    return [f"br label %head_{i}", f"head_{i}:", f"%{i} = phi i64 [0, %{before}], [%next_{i}, %{last or f'body_{i}'}]",
            f"%more_{i} = icmp slt i64 %{i}, {count}", f"br i1 %more_{i}, label %body_{i}, label %done_{i}", f"body_{i}:", *body,
            f"%next_{i} = add i64 %{i}, 1", f"br label %head_{i}", f"done_{i}:"]
