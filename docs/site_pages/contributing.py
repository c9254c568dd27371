"""CONTRIBUTING.md of the repository, for a page of the site."""
from __future__ import annotations

import re
from pathlib import Path

CONTRIBUTING = Path(__file__).resolve().parents[2] / "CONTRIBUTING.md"


def contributing_page() -> str:
    """The text below the title, with links from docs/. Links to files that the site does not have become plain text."""
    _title, text = CONTRIBUTING.read_text(encoding="utf-8").split("\n", 1)
    text = text.replace("](docs/", "](")
    return re.sub(r"\[([^\]]+)\]\([A-Z]+\.md\)", r"\1", text)
