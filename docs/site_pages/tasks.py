"""The README's table of tasks and commands, for a page of the site."""
from __future__ import annotations

import re
from pathlib import Path

README = Path(__file__).resolve().parents[2] / "README.md"


def tasks_page() -> str:
    """The section, with links from docs/how-to/."""
    section = re.search(r"^## Tasks\n(.*?)^## ", README.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)[1]
    return section.replace("](docs/", "](../")
