"""LLVM that carries rows of a batch into a block, number k of all states side by side, and back: by square transpositions."""
from __future__ import annotations

from collections.abc import Iterator

from liedyn.codegen.instructions import NUMBER, Instructions, numbers

_GROUPS = 16               # transpositions to a block of code


def read(name: str, count: int, width: int, shared: bool = False) -> list[str]:
    """@read_NAME(array, i, last, block): rows i … i + width - 1 of an array (N, count) into a block (count, width). For rows
    beyond the last, the last. shared: its only row instead of each."""
    rows = _Rows(width, shared)
    for first in _groups(count, width):
        if first is None:
            for j in range(count):
                x = "undef"
                for k in range(width):
                    one = rows.let(f"load double, ptr {rows.number(k, j)}")
                    x = rows.let(f"insertelement {rows.T} {x}, double {one}, i32 {k}")
                rows.store(x, "block", j)
        else:
            states = [rows.let(f"load {rows.T}, ptr {rows.number(k, first)}, align {NUMBER}") for k in range(width)]
            for k, x in enumerate(rows.transposed(states)):
                rows.store(x, "block", first + k)
        rows.end_group()
    return rows.function(f"read_{name}", count, "noalias readonly", "noalias")


def write(name: str, row: list[int | float | None], width: int) -> list[str]:
    """@write_NAME(array, i, last, block): the way back. row: of what its numbers are made, each a column of the block, a
    constant, or None for one that stays. For rows beyond the last, the last once more: `read` has given them its numbers."""
    rows = _Rows(width)
    for first in _groups(len(row), width):
        group = row if first is None else row[first:first + width]
        if first is None or None in group:
            for j, x in enumerate(group, first or 0):
                for k in range(width if x is not None else 0):
                    one = rows.let(f"extractelement {rows.T} {rows.value(x)}, i32 {k}")
                    rows.add(f"store double {one}, ptr {rows.number(k, j)}")
        else:
            same = all(isinstance(x, float) for x in group)
            states = [numbers(group)] * width if same else rows.transposed([rows.value(x) for x in group])
            for k, x in enumerate(states):
                rows.add(f"store {rows.T} {x}, ptr {rows.number(k, first)}, align {NUMBER}")
        rows.end_group()
    return rows.function(f"write_{name}", len(row), "noalias", "noalias readonly")


def _groups(count: int, width: int) -> Iterator[int | None]:
    """Where groups of `width` numbers begin; the last may overlap the one before. None: all numbers one by one."""
    if count < width:
        yield None
    else:
        yield from range(0, count - width + 1, width)
        if count % width:
            yield count - width


class _Rows(Instructions):
    """Of a function between `width` rows of an array, from %row0 on, and a %block."""

    def __init__(self, width: int, shared: bool = False):
        super().__init__(width)
        self._groups, self._shared = 0, shared

    def number(self, row: int, j: int) -> str:
        return self.let(f"getelementptr double, ptr %row{row}, i64 {j}")

    def value(self, x: int | float) -> str:
        return numbers([x] * self.width) if isinstance(x, float) else self.let(self.load("block", x))

    def transposed(self, x: list[str]) -> list[str]:
        """Squares of 1, 2, … numbers beside the diagonal change places."""
        x, width, size = list(x), self.width, 1
        while size < width:
            for i in (i for i in range(width) if not i & size):
                a, b = x[i], x[i + size]
                x[i] = self._shuffled(a, b, [k + width - size if k & size else k for k in range(width)])
                x[i + size] = self._shuffled(a, b, [k + width if k & size else k + size for k in range(width)])
            size *= 2
        return x

    def _shuffled(self, a: str, b: str, places: list[int]) -> str:
        mask = ", ".join(f"i32 {k}" for k in places)
        return self.let(f"shufflevector {self.T} {a}, {self.T} {b}, <{self.width} x i32> <{mask}>")

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
