"""What is wrong or doubtful in robot files: the words of `liedyn check`."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from liedyn.errors import CheckFailed, InputError, ModelError, shown
from liedyn.model.description import Finding
from liedyn.report.texts.constraint_text import constraint_count
from liedyn.report.texts.text_table import counted


@dataclass(frozen=True)
class Examined:
    """A robot file with what was found in it, or with the error for which it is refused."""

    file: str
    findings: tuple[Finding, ...] = ()
    constraints: str = ""                    # how many there are, in words
    error: InputError | None = None

    def text(self) -> str:
        if self.error is not None:
            return f"{shown(self.file)}: refused\n  {shown(str(self.error))}"
        count = counted(len(self.findings), "finding") if self.findings else "no findings"
        bound = f" ({self.constraints})" if self.constraints else ""
        return f"{shown(self.file)}: {count}{bound}" + "".join(f"\n  {shown(str(finding))}" for finding in self.findings)

    def plain(self) -> dict:
        return {"file": self.file, "error": str(self.error) if self.error else None, "constraints": self.constraints,
                "findings": [{"code": f.code, "element": f.element, "message": f.message, "file": f.place.file,
                              "line": f.place.line, "key": f.place.key} for f in self.findings]}


def examine(file: str, base: str | None = None, loops: str | None = None) -> Examined:
    """Load a robot file, with the closures and couplings of another where one is given, and keep what is said about it."""
    from liedyn.loading import read_model

    try:
        model = read_model(file, base=base, loops=loops)
        return Examined(file, model.findings, constraint_count(model))
    except InputError as error:
        return Examined(file, error=error)


def verdict(examined: Sequence[Examined]) -> None:
    """Raise if anything was found: ModelError where a file is refused, else CheckFailed."""
    refused = [one.file for one in examined if one.error is not None]
    doubtful = [one.file for one in examined if one.findings]
    if refused:
        raise ModelError(f"{counted(len(refused), 'robot')} of {len(examined)} cannot be used: {', '.join(refused)}")
    if doubtful:
        count = sum(len(one.findings) for one in examined)
        raise CheckFailed(f"{counted(count, 'finding')} in {counted(len(doubtful), 'robot')} of {len(examined)}")
