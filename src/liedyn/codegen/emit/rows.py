"""LLVM that carries rows of a batch into a block, number k of all states side by side, and back: by square transpositions."""
from __future__ import annotations

from collections.abc import Iterator

from liedyn.codegen.emit.instructions import NUMBER, Instructions, numbers, vector

_GROUPS = 16               # transpositions to a block of code


def read(name: str, count: int, width: int, shared: bool = False) -> list[str]:
    """@read_NAME(array, i, last, block): rows i … i + width - 1 of an array (N, count) into a block (count, width). For rows
    beyond the last, the last. shared: its only row instead of each."""
    rows = _Rows(width, shared)
    for first, size in _groups(count, width):
        states = [rows.let(f"load {vector(size)}, ptr {rows.number(k, first)}, align {NUMBER}") for k in range(width)]
        for k, x in enumerate(rows.transposed([rows.joined(states[k::size]) for k in range(size)])):
            rows.store(x, "block", first + k)
        rows.end_group()
    return rows.function(f"read_{name}", count, "noalias readonly", "noalias")


def write(name: str, row: list[int | float | None], width: int) -> list[str]:
    """@write_NAME(array, i, last, block): the way back. row: of what its numbers are made, each a column of the block, a
    constant, or None for one that stays. For rows beyond the last, the last once more: `read` has given them its numbers."""
    rows = _Rows(width)
    for first, size in _groups(len(row), width):
        group = row[first:first + size]
        if None in group:
            for j, x in enumerate(group, first):
                for k in range(width if x is not None else 0):
                    one = rows.let(f"extractelement {rows.T} {rows.value(x)}, i32 {k}")
                    rows.add(f"store double {one}, ptr {rows.number(k, j)}")
        else:
            for k, x in enumerate(rows.transposed([rows.value(x) for x in group])):
                for j in range(k, width, size):
                    rows.add(f"store {vector(size)} {rows.part(x, j - k, size)}, ptr {rows.number(j, first)}, align {NUMBER}")
        rows.end_group()
    return rows.function(f"write_{name}", len(row), "noalias", "noalias readonly")


def _groups(count: int, width: int) -> Iterator[tuple[int, int]]:
    """Where groups of numbers begin, and their size, a power of two; the last may overlap the one before."""
    at = 0
    while at < count:
        size = min(width, 1 << (count - at - 1).bit_length())
        size = size if size <= count else size // 2
        yield min(at, count - size), size
        at += size


class _Rows(Instructions):
    """Of a function between `width` rows of an array, from %row0 on, and a %block."""

    def __init__(self, width: int, shared: bool = False):
        super().__init__(width)
        self._groups, self._shared = 0, shared

    def number(self, row: int, j: int) -> str:
        return self.let(f"getelementptr double, ptr %row{row}, i64 {j}")

    def value(self, x: int | float) -> str:
        return numbers([x] * self.width) if isinstance(x, float) else self.let(self.load("block", x))

    def joined(self, parts: list[str]) -> str:
        """Vectors side by side in one."""
        size = self.width // len(parts)
        while len(parts) > 1:
            size *= 2
            parts = [self._shuffled(a, b, range(size), size // 2) for a, b in zip(parts[::2], parts[1::2], strict=True)]
        return parts[0]

    def part(self, x: str, first: int, size: int) -> str:
        """Numbers first … first + size - 1 of a vector."""
        return x if size == self.width else self._shuffled(x, x, range(first, first + size), self.width)

    def transposed(self, x: list[str]) -> list[str]:
        """Numbers k, k + n, … of n vectors form vectors: squares of 1, 2, … numbers beside the diagonal change places."""
        x, width, size = list(x), self.width, 1
        while size < len(x):
            for i in (i for i in range(len(x)) if not i & size):
                a, b = x[i], x[i + size]
                x[i] = self._shuffled(a, b, [k + width - size if k & size else k for k in range(width)], width)
                x[i + size] = self._shuffled(a, b, [k + width if k & size else k + size for k in range(width)], width)
            size *= 2
        return x

    def _shuffled(self, a: str, b: str, places, size: int) -> str:
        """size: of a and b."""
        mask = ", ".join(f"i32 {k}" for k in places)
        return self.let(f"shufflevector {vector(size)} {a}, {vector(size)} {b}, <{len(places)} x i32> <{mask}>")

    def end_group(self) -> None:
        self._groups += 1
        if self._groups % _GROUPS == 0:
            self.end_block(f"group{self._groups}")

    def function(self, name: str, count: int, array: str, block: str) -> list[str]:
        rows, stride = [], 0 if self._shared else count
        for k in range(self.width):
            rows += [f"%i{k} = add i64 %i, {k}", f"%in{k} = icmp slt i64 %i{k}, %last",
                     f"%state{k} = select i1 %in{k}, i64 %i{k}, i64 %end", f"%first{k} = mul i64 %state{k}, {stride}",
                     f"%row{k} = getelementptr double, ptr %array, i64 %first{k}"]
        return [f"define internal void @{name}(ptr {array} %array, i64 %i, i64 %last, ptr {block} %block) {{",
                "%end = sub i64 %last, 1", "%go = icmp ne ptr %block, null", *rows, *self.taken(),
                "ret void", "never:", "ret void", "}"]
