"""What a batch would do, for people."""
from __future__ import annotations

from liedyn.io.sweep import SIMULATE
from liedyn.report.texts.plan_text import steps_text


def batch_text(report: dict) -> str:
    """The report of `Batch.report` as text."""
    kept = f"; trajectories of {report['rows']} rows each" if report["trajectories"] else ""
    chunks = "1 chunk" if report["chunks"] == 1 else f"{report['chunks']} chunks of {report['runs_in_a_chunk']} runs"
    length = f"{report['rows']} rows"
    if report["job"] == SIMULATE:
        length = f"{steps_text(report['steps'])}, {length}"
    lines = [f"{report['runs']} runs of {report['robot']} ({report['scenario']})",
             f"  varied     {', '.join(f'{name} ({key})' if name != key else name for name, key in report['vary'].items())}",
             f"  outputs    {', '.join(report['outputs']) or 'none'}{kept}",
             f"  way        {report['way']}, {chunks}",
             f"  first run  {length}",
             f"  disk       about {report['bytes'] / 1e6:.3g} MB in {report['folder']}"]
    return "\n".join(lines)
