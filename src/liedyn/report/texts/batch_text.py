"""What a batch would do, for people."""
from __future__ import annotations


def batch_text(report: dict) -> str:
    """The report of `Batch.report` as text."""
    kept = f"; trajectories of {report['rows']} rows each" if report["trajectories"] else ""
    chunks = "1 chunk" if report["chunks"] == 1 else f"{report['chunks']} chunks of {report['runs_in_a_chunk']} runs"
    lines = [f"{report['runs']} runs of {report['robot']} ({report['scenario']})",
             f"  varied     {', '.join(f'{name} ({key})' if name != key else name for name, key in report['vary'].items())}",
             f"  outputs    {', '.join(report['outputs']) or 'none'}{kept}",
             f"  way        {report['way']}, {chunks}",
             f"  time       about {_seconds(report['seconds'])} ({_seconds(report['seconds_each'])} a run)",
             f"  disk       about {report['bytes'] / 1e6:.3g} MB in {report['folder']}"]
    return "\n".join(lines)


def _seconds(x: float) -> str:
    if x < 1e-3:
        return f"{1e6 * x:.3g} us"
    if x < 1.0:
        return f"{1e3 * x:.3g} ms"
    return f"{x:.3g} s" if x < 600 else f"{x / 3600:.3g} h"
