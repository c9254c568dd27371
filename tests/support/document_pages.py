"""README and docs/: their pages, links, blocks and commands."""
import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
_BLOCK = re.compile(r"^(?:<!-- not run: ([^\n]+) -->\n+)?^(?:<!-- requires: (\w+) -->\n+)?^```([a-z]*)\n(.*?)^```$",
                    re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"```.*?```|`[^`]+`", re.DOTALL)


class Block(NamedTuple):
    """A fenced block. not_run: the reason in the comment before it, None where it is run. requires: a package that it imports."""

    language: str
    text: str
    line: int
    not_run: str | None
    requires: str | None = None


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    return [Block(found[3], found[4], text.count("\n", 0, found.start(4)) + 1, found[1], found[2])
            for found in _BLOCK.finditer(text)]


def command_lines(block: str) -> list[str]:
    """Return the lines of a block, each joined with the lines that continue it after a backslash."""
    return re.sub(r" *\\\n *", " ", block).splitlines()


def outside_blocks(page: Path) -> str:
    return _BLOCK.sub("", page.read_text(encoding="utf-8"))


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def commands(page: Path) -> list[str]:
    """Return the arguments of `liedyn` in blocks and between single backquotes."""
    code = command_lines("\n".join(_CODE.findall(page.read_text(encoding="utf-8"))).replace("`", "\n"))
    return re.findall(r"^(?:\.venv/bin/)?liedyn ([a-z]+ .*?)(?:  +#.*| \|.*)?$", "\n".join(code), re.MULTILINE)
