"""LLVM's text, written instruction after instruction, over vectors of `width` states."""
from __future__ import annotations

import struct

NUMBER = 8                 # bytes


class Instructions:
    """Of one function; T: the type of a vector."""

    def __init__(self, width: int):
        self.width, self.T = width, vector(width)
        self._lines: list[str] = []
        self._names = 0
        self.written = 0

    def add(self, text: str) -> None:
        self._lines.append(text)
        self.written += 1

    def let(self, text: str) -> str:
        """The name of a value."""
        self._names += 1
        self.add(f"%n{self._names} = {text}")
        return f"%n{self._names}"

    def taken(self) -> list[str]:
        """What was written since the last time."""
        lines, self._lines = self._lines, []
        return lines

    def column(self, block: str, i: int) -> str:
        """A pointer to number i of all states."""
        return self.let(f"getelementptr {self.T}, ptr %{block}, i64 {i}")

    def load(self, block: str, i: int) -> str:
        return f"load {self.T}, ptr {self.column(block, i)}, align {NUMBER * self.width}"

    def store(self, value: str, block: str, i: int) -> None:
        self.add(f"store {self.T} {value}, ptr {self.column(block, i)}, align {NUMBER * self.width}")

    def end_block(self, label: str) -> None:
        """LLVM's time grows with the square of a block's length. %go is always true, which LLVM does not know."""
        self.add(f"br i1 %go, label %{label}, label %never")
        self.add(f"{label}:")


def vector(width: int) -> str: return f"<{width} x double>"


def constants(kind: str, values) -> str:
    """A vector of constants."""
    return "<" + ", ".join(f"{kind} {x}" for x in values) + ">"


def numbers(values) -> str:
    return constants("double", (f"0x{struct.pack('>d', x).hex().upper()}" for x in values))
