"""Tables of text, and numbers of things."""
from __future__ import annotations

from collections.abc import Collection
from itertools import zip_longest
from textwrap import wrap


def table(rows: list[list[str]], left: Collection[int], widest: int = 72) -> list[str]:
    """Aligned columns: those of the numbers `left` to the left, the others to the right. Cells of more than `widest` characters
    take several lines."""
    columns = len(rows[0])
    cells = [[wrap(cell, widest, break_on_hyphens=False) or [""] for cell in row] for row in rows]
    rows = [line for row in cells for line in zip_longest(*row, fillvalue="")]
    rows = [[*row, *[""] * (columns - len(row))] for row in rows]
    widths = [max(len(row[k]) for row in rows) for k in range(columns)]
    return ["  ".join(cell.ljust(w) if k in left else cell.rjust(w) for k, (cell, w) in enumerate(zip(row, widths, strict=True)))
            .rstrip() for row in rows]


def counted(number: int, noun: str) -> str:
    """Such as "1 loop", "2 loops"."""
    return f"{number} {noun}{'s' * (number != 1)}"
