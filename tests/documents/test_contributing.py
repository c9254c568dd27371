"""The examples of CONTRIBUTING.md, each section in a fresh process, as a reader would run them."""
import re
import subprocess
import sys

import pytest

from document_pages import ROOT, Block, blocks

PAGE = ROOT / "CONTRIBUTING.md"
_FILE = re.compile(r"# ([\w/.]+\.(?:yaml|csv|py))\n")


def sections() -> dict[str, list[Block]]:
    """Return the blocks of each section that has some, by its title."""
    found: dict[str, list[Block]] = {}
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    for block in blocks(PAGE):
        title = next(line for line in reversed(lines[:block.line]) if re.match(r"##+ ", line))
        found.setdefault(title.lstrip("# "), []).append(block)
    return {title: found[title] for title in found if any(block.language == "python" for block in found[title])}


def test_the_sections_are_found():
    assert len(sections()) >= 6 and "A control law" in sections()


@pytest.mark.parametrize("title", sections())
def test_examples_run(tmp_path, title):
    """A block whose first line is `# NAME` is written to that file before the others run. Sections are independent."""
    (tmp_path / "robots").symlink_to(ROOT / "robots")
    script = []
    for block in sections()[title]:
        if name := _FILE.match(block.text):
            (tmp_path / name[1]).write_text(block.text, encoding="utf-8")
        elif block.language == "python" and not block.not_run:
            script.append(block.text)
    assert script
    (tmp_path / "examples.py").write_text("\n".join(script), encoding="utf-8")
    done = subprocess.run([sys.executable, "examples.py"], cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
