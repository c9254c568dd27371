"""Tables of text."""
from __future__ import annotations


def table(rows: list[list[str]], left: int) -> list[str]:
    """Aligned columns, the first `left` of them to the left, the others to the right."""
    columns = len(rows[0])
    rows = [row + [""] * (columns - len(row)) for row in rows]
    widths = [max(len(row[k]) for row in rows) for k in range(columns)]
    return ["  ".join(cell.ljust(w) if k < left else cell.rjust(w) for k, (cell, w) in enumerate(zip(row, widths, strict=True)))
            .rstrip() for row in rows]
