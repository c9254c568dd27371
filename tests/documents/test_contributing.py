"""The examples of CONTRIBUTING.md, run in their order in a fresh process, as a reader would."""
import re
import subprocess
import sys

from document_pages import ROOT, blocks

_FILE = re.compile(r"# ([\w/.]+\.(?:yaml|csv|py))\n")


def test_examples_run(tmp_path):
    """A block whose first line is `# NAME` is written to that file before the others run."""
    script = []
    for block in blocks(ROOT / "CONTRIBUTING.md"):
        if name := _FILE.match(block.text):
            (tmp_path / name[1]).write_text(block.text, encoding="utf-8")
        elif block.language == "python" and not block.not_run:
            script.append(block.text)
    assert script
    (tmp_path / "examples.py").write_text("\n".join(script), encoding="utf-8")
    done = subprocess.run([sys.executable, "examples.py"], cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
